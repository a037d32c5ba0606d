"""Tables 1 to 3: all of print is laid out, and each count can come out otherwise."""

from __future__ import annotations

import pytest

from xcrepro.papers.coverage import tables1_to_3 as item
from xcrepro.papers.coverage._common import printed_and_doubted


@pytest.mark.parametrize("number", [1, 2, 3])
def test_tables_are_laid_out_whole_with_their_errors(number):
    table, wide = printed_and_doubted(number), item.compute(number)
    cells = wide.drop(columns=[name for name in ("metric", "method", "dataset") if name in wide]).to_numpy().ravel()
    texts = table["printed"] + table["doubt"].map(item.mark)
    wanted = [p if s == "" else f"{p} ± {s}" for p, s in zip(texts, table["stderr"], strict=True)]
    assert sorted(text for text in cells if isinstance(text, str)) == sorted(wanted)


def test_ratios_read_off_the_page():
    head = item.compute_head().set_index(["metric", "k"])
    assert head.loc[("Cov", 5), "change %"] == pytest.approx(100 * (7.5 / 69.4 - 1))
    times = item.compute_times().set_index("dataset")
    assert times.loc["AmazonCat-13K", "COV-PLT / PLT"] == pytest.approx(13.66 / 1.71)
    recovered = item.compute_recovered().set_index(["dataset", "k"])
    assert recovered.loc[("EURLex-4K", 1), "% recovered"] == pytest.approx(100 * (75.64 - 62.83) / (81.70 - 62.83))


NDCG = "training on head labels costs P, nDCG, Abandonment under 10 %"
FIRST = "COV-PLT has the highest Cov@k"
SECOND = "COVbeta-PLT has the second highest Cov@k"
BEATEN = "every method but PLT is above BRS-PLT on all nine scores"
SHARED = "a cell that tables 2 and 3 share is the same in both"


@pytest.mark.parametrize(
    ("number", "value", "cell", "claim", "before", "after"),
    [
        (1, 50.0, {"metric": "P", "variant": "head-1000"}, NDCG, "8 of 8", "7 of 8"),
        (2, 99.0, {"metric": "Cov", "method": "PS-PLT", "dataset": "EURLex-4K"}, FIRST, "18 of 18", "17 of 18"),
        (2, 99.0, {"metric": "Cov", "method": "PS-PLT", "dataset": "EURLex-4K"}, SECOND, "13 of 18", "12 of 18"),
        (2, 1.0, {"metric": "P", "method": "PS-PLT", "dataset": "Amazon-670K"}, BEATEN, "3 of 6", "2 of 6"),
        (3, 1.0, {"metric": "P", "variant": "beta=0", "dataset": "EURLex-4K"}, SHARED, "108 of 108", "107 of 108"),
    ],
)
def test_a_claim_counts_one_cell_more_or_less_when_one_is_turned(put, number, value, cell, claim, before, after):
    assert item.compute_claims().set_index("claim").loc[claim, "holds in"] == before
    put(f"coverage:table{number}", value, **cell, k=1)
    assert item.compute_claims().set_index("claim").loc[claim, "holds in"] == after


def test_a_count_is_clear_only_beyond_the_printed_errors(put):
    before = item.compute_claims().set_index("claim")
    assert before.loc[FIRST, "clearly in"] == "16 of 18"
    assert before.loc[NDCG, "clearly in"] == "-"
    put("coverage:table2", 44.7, metric="Cov", method="COVbeta-PLT", dataset="EURLex-4K", k=1)  # COV-PLT: 44.77 ± 0.12
    after = item.compute_claims().set_index("claim")
    assert after.loc[FIRST, "holds in"] == "18 of 18"
    assert after.loc[FIRST, "clearly in"] == "14 of 18"  # its own cell, and by Holm the next one
    said = item.findings(after.reset_index())
    assert f"table 2: {FIRST}: in 18 of 18, clearly in 14" in said


def test_doubted_values_are_marked_and_not_counted():
    assert item.compute(1).set_index("metric").loc["N", "head-1000 @1"] == "58.1†"
    assert len(item.doubts()) == 3
    assert item.compute_claims()["holds in"][:2].tolist() == ["8 of 8", "11 of 11"]
