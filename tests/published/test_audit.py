"""The audit: every check finds the error planted for it and is silent on a table that was computed."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import xcrepro as xc
from xcrepro.__main__ import main
from xcrepro.errors import DataError, DataMissing
from xcrepro.published import checks
from xcrepro.published.audit import CHECKS, JUDGEMENTS, Book, audit
from xcrepro.published.checks import IDENTITIES, Cell, Row, faults, rounding
from xcrepro.published.results import audit_results

KS = (1, 3, 5)


# ---------------------------------------------------------------- computed rows are clean


def computed(seed: int, ideal: str = "labels", decimals: int = 2, few: bool = True) -> dict[tuple[str, int], str]:
    """Every metric of random predictions, in percent, rounded as print is."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(20, 80)), int(rng.integers(8, 40))
    truth = rng.random((n, m)) < rng.random(m) * rng.uniform(0.1, 0.6)
    truth[np.arange(n), rng.integers(0, m, n)] = True
    scores = truth * rng.uniform(0, 1) + rng.random((n, m))
    top = xc.TopK.from_scores(scores, 5)
    weight = 1 + rng.exponential(3, m)
    Y = truth.astype(np.float32)
    values = {
        "P": xc.metrics.precision(Y, top, KS),
        "N": xc.metrics.ndcg(Y, top, KS, ideal=ideal),
        "PSP": xc.metrics.psp(Y, top, KS, inverse_propensity=weight),
        "PSN": xc.metrics.psndcg(Y, top, KS, inverse_propensity=weight),
        "R": xc.metrics.recall(Y, top, KS),
        "Abandonment": xc.metrics.abandonment(Y, top, KS, counts="served"),
        "micro_F1": xc.metrics.micro_f1(Y, top, KS),
        "Cov": xc.metrics.coverage(Y, top, KS, over="test"),
        "macro_P": xc.metrics.macro_precision(Y, top, KS, over="test"),
        "macro_R": xc.metrics.macro_recall(Y, top, KS, over="test"),
        "macro_F1": xc.metrics.macro_f1(Y, top, KS, over="test"),
    }
    cells = {(name, k): f"{100 * v:.{decimals}f}" for name, vs in values.items() for k, v in zip(KS, vs, strict=True)}
    return cells | {("avg_labels", 0): f"{truth.sum() / n:.2f}"} | calibration(top, Y)


def calibration(top, Y) -> dict[tuple[str, int], str]:
    """ECE and Brier score of the pooled top k."""
    cells = {}
    confidence, hit = np.clip(top.scores, 0, 1), np.take_along_axis(Y, top.ids, axis=1)
    for k in KS:
        pairs = confidence[:, :k], hit[:, :k]
        cells["ECE", k] = f"{100 * xc.metrics.ece(*pairs):.2f}"
        cells["Brier", k] = f"{100 * xc.metrics.brier(*pairs):.2f}"
    return cells


def row(cells: dict[tuple[str, int], str], one: float = 100.0) -> Row:
    return Row({where: Cell.of(text) for where, text in cells.items()}, one)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["labels", "k"]), st.sampled_from([1, 2, 4]))
@example(136, "labels", 4)
def test_no_fault_in_computed_results(seed, ideal, decimals):
    cells = computed(seed, ideal, decimals)
    assert faults(row(cells)) == []
    # As a fraction a number has two more decimals, whatever it was printed with.
    places = {where: len(text.partition(".")[2]) + 2 for where, text in cells.items()}
    fractions = {w: f"{float(t) / 100:.{places[w]}f}" if w[0] != "avg_labels" else t for w, t in cells.items()}
    assert faults(row(fractions, 1.0)) == []


# ---------------------------------------------------------------- every identity finds its planted error

PLANTED = [
    ("first_place", {("N", 1): 0.3}, "N@1"),
    ("first_place", {("PSN", 1): -0.3}, "PSN@1"),
    ("first_place", {("Abandonment", 1): 0.5}, "Abandonment@1"),
    ("hits_grow", {("Cov", 5): -60.0}, "Cov@5"),
    ("hits_grow", {("R", 3): -60.0}, "R@3"),
    ("ndcg_bounds", {("N", 3): "7.00"}, "N@3"),
    ("ndcg_bounds", {("N", 5): "3.00"}, "N@5"),
    ("psndcg_bounds", {("PSN", 5): "99.90"}, "PSN@5"),
    ("psndcg_bounds", {("PSN", 3): "2.00"}, "PSN@3"),
    ("abandonment", {("Abandonment", 3): "1.00"}, "Abandonment@3"),
    ("micro_f1", {("micro_F1", 3): 2.0}, "micro_F1@3"),
    ("average_labels", {("avg_labels", 0): "0.50"}, "P@1"),
    ("macro", {("macro_R", 3): "99.99"}, "macro_R@3"),
    ("macro", {("macro_F1", 3): "99.00"}, "macro_F1@3"),
    ("brier_and_error", {("Brier", 3): "0.01", ("ECE", 3): "40.00"}, "Brier@3"),
    ("one_hit_a_place", {("P", 3): "99.99", ("P", 1): "1.00"}, "P@3"),
]


@pytest.mark.parametrize(("check", "change", "blamed"), PLANTED)
def test_a_planted_error_is_found(check, change, blamed):
    cells = computed(7)
    for where, new in change.items():
        cells[where] = new if isinstance(new, str) else f"{max(0.0, float(cells[where]) + new):.2f}"
    assert blamed in [fault.column for fault in IDENTITIES[check](row(cells))]


@pytest.mark.parametrize("check", sorted(IDENTITIES))
def test_every_identity_has_a_planted_error_and_a_derivation(check):
    assert check in {name for name, *_ in PLANTED}
    assert len(IDENTITIES[check].__doc__) > 90


def test_hits_and_brier_sums_grow():
    assert [f.column for f in checks.hits_grow(row({("P", 1): "60.00", ("P", 3): "19.00"}))] == ["P@3"]
    assert [f.column for f in checks.hits_grow(row({("Brier", 3): "16.41", ("Brier", 5): "1.57"}))] == ["Brier@5"]


def test_rounding_is_never_an_error():
    assert rounding("5.30") == pytest.approx((5.295, 5.305))
    assert faults(row({("P", 1): "47.11", ("N", 1): "47.10"})) == []  # both may be 47.105
    assert len(faults(row({("P", 1): "47.12", ("N", 1): "47.10"}))) == 1
    assert faults(row({("P", 1): "60.0", ("P", 3): "20.0"})) == []
    assert faults(row({("P", 1): "0.471", ("N", 1): "0.47"}, 1.0)) == []


def test_the_ndcg_bounds_are_attained():
    # All points have a hit in the first place and none after it: one label each, or five or more.
    given = {("P", 1): "100.00", ("P", 3): "33.33", ("P", 5): "20.00"}
    for n3 in ("100.00", "46.93"):
        assert faults(row({**given, ("N", 3): n3})) == []
    (fault,) = checks.ndcg_bounds(row({**given, ("N", 3): "46.80"}))
    low, high = map(float, fault.expected.split(" to "))
    assert (low, high) == pytest.approx((46.92, 100.0), abs=0.02)


# ---------------------------------------------------------------- tables, documents, sentences


def frame(*rows: tuple) -> pd.DataFrame:
    """A record: (source, row, dataset, method, variant, metric, k, printed) each."""
    columns = ["source", "row", "dataset", "method", "variant", "metric", "k", "printed"]
    made = pd.DataFrame(rows, columns=columns)
    return made.assign(k=pd.array(made["k"], dtype="Int64"))


def results(source, dataset, method, cells, variant="", number=1):
    return [(source, number, dataset, method, variant, m, k or pd.NA, text) for (m, k), text in cells.items()]


def run(check: str, *rows) -> list:
    return list(CHECKS[check](Book(frame(*rows))))


def plain(*texts: str) -> dict[tuple[str, int], str]:
    return {("P", k): t for k, t in zip(KS, texts, strict=True)}


def test_same_cell():
    a = results("calibration:table5", "D", "M", {("ECE", 5): "0.50"})
    b = results("calibration:table7", "D", "M", {("ECE", 5): "0.05", ("ACE", 5): "0.36"})
    (found,) = run("same_cell", *a, *b)
    assert (found.printed, found.table) == ("0.05", "calibration:table7")
    assert run("same_cell", *a, *results("calibration:table7", "D", "M", {("ECE", 5): "0.5"})) == []


def test_recalibrated():
    def rows(after, before="20.00", p="50.00"):
        return [
            *results("d:t", "D", "M", {("Brier", 1): before, ("P", 1): p}, "none"),
            *results("d:t", "D", "M", {("Brier", 1): after}, "isotonic"),
        ]

    assert run("recalibrated", *rows("19.90")) == []
    assert [f.expected for f in run("recalibrated", *rows("22.00"))] == ["at most 20.00"]
    assert len(run("recalibrated", *rows("19.90", p="90.00"))) == 1  # above P(1 - P) = 9

    def shifted(after):
        before = {("Brier", 1): "30.69", ("ECE", 1): "43.21", ("ACE", 1): "43.21"}
        rows = results("d:t", "D", "M", before, "none")
        return run("recalibrated", *rows, *results("d:t", "D", "M", {("Brier", 1): after}, "isotonic"))

    assert [f.expected for f in shifted("16.00")] == ["at most 12.03"]
    assert shifted("11.60") == []


def test_copied():
    here = results("xcrepo:A", "A", "M", plain("70.20", "50.64", "39.71") | {("N", 3): "42.13", ("N", 5): "40.52"})

    def there(n5):
        cells = plain("44.70", "39.70", "36.10") | {("N", 3): "42.13", ("N", 5): n5}
        return run("copied", *results("xcrepo:B", "B", "M", cells), *here)

    # On A this nDCG is impossible, so A's is the copy.
    assert [(f.dataset, f.column) for f in there("40.52")] == [("A", "N@3"), ("A", "N@5")]
    assert there("40.51") == []


def test_labels_to_hit():
    assert run("labels_to_hit", *results("xcrepo:EURLex-4K", "EURLex-4K", "M", plain("90.00", "80.00", "70.00"))) == []
    cells = {("P", 5): "99.00", ("P", 10): "63.00"}
    (found,) = run("labels_to_hit", *results("xcrepo:EURLex-4K", "EURLex-4K", "M", cells))
    assert found.column == "P@10"


def test_far_from_sisters():
    def rows(last):
        texts = ["15.04", "15.40", "15.35", "15.81", last]
        return [r for i, t in enumerate(texts) for r in results("d:t", "D", f"M{i}", {("Brier", 5): t}, "isotonic")]

    (found,) = run("far_from_sisters", *rows("1.57"))
    assert "15.70" in found.why
    assert run("far_from_sisters", *rows("13.00")) == []


def f1_rows(*averages):
    rows = []
    for i, average in enumerate(averages):
        cells = plain("80.00", "70.00", "60.00")
        cells |= {("micro_F1", k): f"{2 * k * float(cells['P', k]) / (k + average):.2f}" for k in KS}
        rows += results("reeval:table3", "EURLex-4K", f"M{i}", cells)
    return rows


def test_micro_f1_average():
    assert run("micro_f1_average", *f1_rows(5.3, 5.3, 5.3)) == []
    (found,) = run("micro_f1_average", *f1_rows(5.3, 5.3, 5.33))
    assert (found.row, found.judgement) == ("M2", "other variant")
    (found,) = run("micro_f1_average", *f1_rows(5.4, 5.4, 5.4))
    assert (found.row, found.judgement) == ("all rows", "definition")


def statistics_rows(source="d:t", dataset="EURLex-4K", **texts):
    return [(source, 1, dataset, "", "", name, pd.NA, text) for name, text in texts.items()]


STATISTICS = {
    "n_train": "294,805", "n_test": "134,835", "n_labels": "131,073", "avg_labels_per_point": "2.29",
    "avg_points_per_label": "5.15",
}  # fmt: skip


def test_points_per_label():
    assert run("points_per_label", *statistics_rows(**STATISTICS)) == []
    swapped = STATISTICS | {"avg_labels_per_point": "5.15", "avg_points_per_label": "2.29"}
    (found,) = run("points_per_label", *statistics_rows(**swapped))
    assert (found.column, found.judgement) == ("avg_labels_per_point, avg_points_per_label", "typo")
    other = statistics_rows("e:t", n_train="1,717,899")
    exchanged = {"n_train": "2,812,281", "n_test": "742,507", "n_labels": "1,717,899", "avg_labels_per_point": "36.17",
                 "avg_points_per_label": "31.64"}  # fmt: skip
    (found,) = run("points_per_label", *statistics_rows(**exchanged), *other)
    assert found.column == "n_train, n_labels"
    (found,) = run("points_per_label", *statistics_rows(**STATISTICS | {"avg_labels_per_point": "2.28"}))
    assert found.judgement == "rounding"
    (found,) = run("points_per_label", *statistics_rows(**STATISTICS | {"avg_labels_per_point": "2.35"}))
    assert found.judgement == "definition"


def test_mixed_versions():
    a = statistics_rows("a:t", n_train="15,539", n_test="3,809", n_labels="3,993")
    b = statistics_rows("b:t", n_train="15449", n_test="3865", n_labels="3956")
    (found,) = run(
        "mixed_versions", *a, *b, *statistics_rows("c:t", n_train="15,539", n_test="3,809", n_labels="3,956")
    )
    assert (found.table, found.printed) == ("c:t", "3,956")
    assert run("mixed_versions", *a, *b, *[(("c:t"), *r[1:]) for r in a]) == []


def test_label_bins():
    bins = {"n_labels": "100", "labels_1-9": "60", "labels_10-99": "20", "labels_100-999": "9", "labels_1000+": "1"}
    share = {"pct_labels_with_1_9_train_instances": "66.67"}
    (found,) = run("label_bins", *statistics_rows("reeval:table2", **bins), *statistics_rows("reeval:sec4", **share))
    assert (found.expected, found.judgement) == ("60.00", "definition")
    share = {"pct_labels_with_1_9_train_instances": "60"}
    assert run("label_bins", *statistics_rows("reeval:table2", **bins), *statistics_rows("reeval:sec4", **share)) == []
    assert run("label_bins", *statistics_rows("reeval:table2", **bins | {"n_labels": "80"}))[0].judgement == "typo"


def test_coverage_denominator():
    # 153,025 test points and 670,091 labels.
    assert (
        run("coverage_denominator", *results("c:t", "Amazon-670K", "M", {("Cov", 1): "9.00", ("P", 1): "42.80"})) == []
    )
    found = run("coverage_denominator", *results("c:t", "Amazon-670K", "M", {("Cov", 1): "14.56", ("P", 1): "42.80"}))
    assert [f.judgement for f in found] == ["definition"]


def test_macro_recall():
    cells = {("macro_R", 3): "4.5", ("Cov", 3): "7.4", ("macro_R", 5): "7.5", ("Cov", 5): "7.5", ("P", 5): "58.1"}
    (found,) = run("macro_recall", *results("c:t", "AmazonCat-13K", "M", cells))
    assert (found.column, found.judgement) == ("macro_R@5", "typo")
    assert run("macro_recall", *results("c:t", "AmazonCat-13K", "M", cells | {("macro_R", 5): "6.9"})) == []


def clean_table(seed=3, rows=14):
    rng = np.random.default_rng(seed)
    for i in range(rows):
        p = 60 + 2 * i + rng.random()
        cells = {("P", 1): p, ("P", 3): 0.7 * p + rng.random(), ("N", 1): p}
        cells["N", 3] = 0.3 * p + 0.75 * cells["P", 3]
        yield i, {where: f"{value:.2f}" for where, value in cells.items()}


def test_out_of_line():
    def rows(at=None, new=None):
        made = []
        for i, cells in clean_table():
            if i == at:
                cells["N", 3] = new(cells["N", 3])
            made += results("xcrepo:D", "D", f"M{i}", cells, number=i + 1)
        return made

    assert run("out_of_line", *rows()) == []
    slip = lambda text: text[0] + str((int(text[1]) + 4) % 10) + text[2:]  # noqa: E731
    (found,) = run("out_of_line", *rows(5, slip))
    assert (found.row, found.column) == ("M5", "N@3")
    # Far off, but no slip explains it: silence.
    assert run("out_of_line", *rows(5, lambda text: f"{float(text) - 33.37:.2f}")) == []


NAMES = ["A", "B", "C", "D", "E", "F", "G"]


def scored(seed):
    rng = np.random.default_rng(seed)
    base = {name: 10.0 + 7 * i + rng.random() for i, name in enumerate(NAMES)}
    return {n: {(m, k): f"{b * (1 + 0.05 * k):.2f}" for m in ("PSP", "PSN") for k in KS} for n, b in base.items()}


def test_owners():
    table = scored(1)
    theirs = [r for name in NAMES for r in results("jain16:t", "D", name, table[name])]
    same = [r for i, name in enumerate(NAMES) for r in results("xcrepo:D", "D", name, table[name], number=i)]
    assert run("owners", *theirs, *same) == []
    turned = dict(zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))
    moved = [r for i, n in enumerate(NAMES) for r in results("xcrepo:D", "D", n, table[turned[n]], number=i)]
    found = run("owners", *theirs, *moved)
    assert {f.row: f.expected for f in found} == {n: f"the row of {turned[n]}" for n in NAMES}


def test_same_precision():
    a = plain("94.56", "79.78", "64.59") | {("N", 5): "72.00"}
    b = plain("94.56", "79.82", "64.61") | {("N", 5): "86.66"}
    (found,) = run("same_precision", *results("reeval:t", "D", "M", a), *results("xcrepo:D", "D", "M", b))
    assert (found.printed, found.judgement) == ("72.00", "definition")
    assert "can be that one" in found.why
    near = results("xcrepo:D", "D", "M", b | {("N", 5): "72.50"})
    assert run("same_precision", *results("reeval:t", "D", "M", a), *near) == []


def test_sentences():
    head = {("P", 1): "93.0", ("N", 1): "58.1"}
    full = results("coverage:table1", "AmazonCat-13K", "DiSMEC", {("P", 1): "93.0", ("N", 1): "93.0"}, "full")

    def with_head(cells):
        return run("sentences", *full, *results("coverage:table1", "AmazonCat-13K", "DiSMEC", cells, "head-1000"))

    assert [f.column for f in with_head(head)] == ["N@1"]
    assert with_head(head | {("N", 1): "93.0"}) == []

    def gandalf(soft):
        return run(
            "sentences",
            *results("calibration:table8", "LF-WikiSeeAlso-320K", "Gandalf", {("ECE", 5): soft}, "none"),
            *results("calibration:table8", "LF-WikiSeeAlso-320K", "Renee", {("ECE", 5): "12.29"}, "none"),
        )

    assert [f.printed for f in gandalf("12.85")] == ["12.85"]
    assert gandalf("12.15") == []

    def ranges(head_gain):
        rows = []
        for dataset, values in (("Ads-9M", ("12.0", "15.0")), ("AmazonCat-13K", ("46.0", head_gain))):
            for method, value in zip(("FastXML", "PfastreXML"), values, strict=True):
                rows += results("jain16:t", dataset, method, {("PSP", 1): value})
        return run("sentences", *rows)

    assert ranges("69.0") == []
    assert len(ranges("60.0")) == 1

    def renee(text):
        return run(
            "sentences",
            *results("calibration:a", "Amazon-670K", "Renee (BCE loss)", {("ECE", 5): text}, "none"),
            *results("calibration:b", "Amazon-670K", "Renee", {("ECE", 5): "14.94"}, "none"),
        )

    assert len(renee("15.47")) == 1
    assert renee("14.9") == []

    def separate(last):
        rows = []
        for i, after in enumerate(["69.80", "69.90", "69.70", "69.95", "69.85", last]):
            rows += results("calibration:table6", "D", f"M{i}", {("P", 3): "70.00"}, "none")
            rows += results("calibration:table6", "D", f"M{i}", {("P", 3): after}, "isotonic-separate")
        return run("sentences", *rows)

    assert separate("69.75") == []
    assert [f.row for f in separate("68.10")] == ["M5 (isotonic-separate)"]


def test_identities_name_the_place_a_number_came_from():
    cells = plain("93.0", "76.6", "58.1") | {("N", 1): "58.1"}
    (found,) = run("identities", *results("c:t", "D", "M", cells))
    assert (found.expected, found.judgement) == ("93.0", "typo")
    assert "this row's P@5" in found.why
    padded = run("identities", *results("c:t", "D", "M", {("P", 1): "56.63", ("N", 1): "56.60"}))
    assert [f.judgement for f in padded] == ["rounding"]
    runs = run("identities", *results("c:t", "D", "M", {("P", 1): "35.05", ("N", 1): "34.77"}))
    assert [f.judgement for f in runs] == ["other variant"]


# ---------------------------------------------------------------- the record itself


@pytest.fixture(scope="module")
def found():
    return audit()


def test_every_check_derives_itself_and_is_tested(request):
    text = request.path.read_text(encoding="utf-8")
    for name, check in CHECKS.items():
        assert len(check.__doc__) > 60, name
        assert f'run("{name}"' in text, name


def test_the_audit_is_stable(found, root):
    path = root / "tests" / "published" / "audit.csv"
    columns = ["check", "judgement", "table", "dataset", "row", "column", "printed", "expected"]
    assert found[columns].to_csv(index=False, lineterminator="\n") == path.read_text(encoding="utf-8"), (
        f"the findings changed; write found[columns].to_csv to {path} if they should"
    )


def test_form(found):
    assert list(found.columns) == [
        "document", "table", "dataset", "row", "column", "printed", "expected", "check", "judgement", "why",
    ]  # fmt: skip
    assert set(found["judgement"]) <= set(JUDGEMENTS)
    assert set(found["check"]) <= {*CHECKS, *IDENTITIES}
    assert not found.duplicated(["table", "dataset", "row", "column", "check"]).any()
    assert not found.map(lambda text: text == "" or text != text.strip()).any().any()
    tables = {name for cell in found["table"] for name in cell.split(", ")}
    assert tables <= set(xc.published.sources())


def test_what_the_issue_asks_for(found):
    wrong = found[found["judgement"] == "typo"]
    cells = wrong[wrong["check"] != "owners"].drop_duplicates(["document", "dataset", "row", "column"])
    assert len(cells) >= 8
    block = found[found["check"] == "owners"]
    assert len(block) == 10
    assert set(block["dataset"]) == {"EURLex-4K"}
    assert set(found["document"]) == {"xcrepo", "reeval", "calibration", "jain16", "coverage"}


def test_findings_come_from_the_record_not_from_a_list():
    record = xc.published.find(dataset="AmazonCat-13K", source="coverage:table1")
    record.loc[(record["metric"] == "N") & (record["k"] == 1), "printed"] = "93.0"
    assert "first_place" not in set(audit(record)["check"])
    record.loc[(record["metric"] == "P") & (record["k"] == 3), "printed"] = "20.0"
    assert {"hits_grow", "ndcg_bounds"} & set(audit(record)["check"])


# ---------------------------------------------------------------- somebody's own results


@pytest.fixture
def write(tmp_path):
    def to(text: str):
        path = tmp_path / "results.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return to


def tidy(cells, scale=1.0):
    lines = [f"D,M,{m},{k or ''},{float(t) * scale if m != 'avg_labels' else t}" for (m, k), t in cells.items()]
    return "\n".join(["dataset,method,metric,k,value", *lines])


def test_own_results_tidy_and_wide(write, capsys):
    cells = {w: t for w, t in computed(11).items() if w[0] != "Abandonment"}
    assert audit_results(write(tidy(cells))).empty
    assert main(["audit", str(write(tidy(cells)))]) == 0
    cells["N", 1] = f"{float(cells['N', 1]) + 5:.2f}"
    path = write(tidy(cells))
    assert audit_results(path)["column"].tolist() == ["N@1"]
    assert main(["audit", str(path)]) == 1
    assert re.search(r"D / M: N@1 = .* \[first_place\]", capsys.readouterr().out)
    wide = write("method,P@1,nDCG@1,PSP@1,PSnDCG@1,served@1,hours\nM,0.5,0.5,0.20,0.25,0.5,3\nO,.4,-,.1,,.4,\n")
    assert audit_results(wide)[["method", "column", "expected"]].values.tolist() == [["M", "PSN@1", "0.20"]]


def test_own_results_of_the_package(write):
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 20)) < 0.2).astype(np.float32)
    Y[:, 0] = 1
    top = xc.TopK.from_scores(rng.random((60, 20)), 5)
    table = xc.evaluate(Y, top, inverse_propensity=1 + rng.random(20))
    assert audit_results(write(table.to_csv(index=False))).empty


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "line 1: found columns a, b"),
        ("", r"line 1: found columns \(none\)"),
        ("method,P@1\nM,x\n", "line 2: found P@1 'x', expected a number"),
        ("metric,k,value\nP,1,0.5\nP,1,0.6\n", "line 3: found P@1 a second time"),
        ("metric,k,value\nP,one,0.5\n", "line 2: found k 'one'"),
        ("metric,k,value\nP,1\n", "line 2: found 2 fields, expected 3"),
        ("metric,k,value\nhours,,3\n", "no metric that is checked"),
    ],
)
def test_own_results_with_faults_in_the_file(write, capsys, text, message):
    path = write(text)
    with pytest.raises(DataError, match=message):
        audit_results(path)
    assert main(["audit", str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_own_results_missing(tmp_path):
    with pytest.raises(DataMissing, match="no such file"):
        audit_results(tmp_path / "none.csv")
