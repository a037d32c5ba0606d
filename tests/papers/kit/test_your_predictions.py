"""Anybody's predictions: the interchange file by hand, the detour through files, a planted other order, the baseline."""

from __future__ import annotations

import numpy as np
import pytest

import xcrepro as xc
from xcrepro.errors import ArgumentError, DataError
from xcrepro.findings import Measured
from xcrepro.inputs import baselines, datasets
from xcrepro.papers.kit import your_predictions as item
from xcrepro.predictions import TopK, read_calibration_npz


def test_a_file_written_by_hand_is_the_interchange_format(overconfident, tmp_path):
    ds, top = overconfident
    Y = ds.test.Y.tocoo()
    item.write_by_hand(tmp_path / "a.npz", top.scores, top.ids, np.column_stack([Y.row, Y.col]))
    back, truth = read_calibration_npz(tmp_path / "a.npz", 6)
    assert np.array_equal(back.ids, top.ids)
    assert np.array_equal(back.scores, top.scores)
    assert (truth != ds.test.Y).nnz == 0


def test_files_of_all_three_kinds_give_the_numbers_from_memory(overconfident, capsys):
    ds, top = overconfident
    tops = {"by hand": top, "theirs": top, "ours": top}
    back = item.read(ds, tops, k=3)
    assert "by hand.npz" in capsys.readouterr().out
    assert list(back) == list(tops)
    table = item.compute_table(ds, back, 3)
    assert item.largest_difference(table, ds, tops, 3) == 0.0
    assert np.isnan(item.largest_difference(table, ds, {}, 3))
    table.loc[4, "after"] += 1e-6
    assert item.largest_difference(table, ds, tops, 3) == pytest.approx(1e-6)
    assert item.largest_difference(table, ds, tops | {"more": top}, 3) == np.inf


def test_own_predictions_stand_before_the_baselines_and_are_held_to_the_best_of_them(twin, misjudged, tmp_path):
    misjudged(twin, 5, 0.4).save(tmp_path / "mine.npz")
    tops, own = item.load(twin, ["Popularity"], 0, str(tmp_path), 5)
    assert (list(tops), own) == (["mine", "Popularity"], ["mine"])
    measured = item.compare(twin, tops, 5)
    assert list(measured) == ["P@1", "P@5", "nDCG@5", "PSP@5"]
    chosen = item.choose_baseline(measured["P@5"], ["Popularity"], own)
    table = item.compute_differences(measured, own, chosen)
    assert table["baseline"].tolist() == ["Popularity"] * 4
    assert table["verdict"].tolist() == ["above"] * 4  # the true probabilities, in their order
    precision = 100 * xc.metrics.precision(twin.test.Y, tops["mine"], [5])[0]
    assert item.lay_out(measured).set_index("model").loc["mine", "P@5"] == precision
    said = item.findings(measured, table, item.measure(twin, tops, 5), own)
    assert said[0].startswith("mine against Popularity, points: P@1 +")
    assert "(above, p < 0.001)" in said[0]
    assert not any("example" in sentence for sentence in said)


def test_a_file_of_fewer_places_than_k_is_refused(twin, misjudged, tmp_path):
    misjudged(twin, 3).save(tmp_path / "mine.npz")
    with pytest.raises(ArgumentError, match="parameter k must be at most 3, the places of mine; got 5"):
        item.load(twin, ["Popularity"], 0, str(tmp_path), 5)


def test_the_baseline_is_the_one_asked_for_or_the_best_and_never_ones_own():
    measured = Measured({"mine": 9.0, "a": 1.0, "b": 2.0}, {name: np.empty(0) for name in ("mine", "a", "b")})
    assert item.choose_baseline(measured, ["a", "b"], ["mine"]) == "b"
    assert item.choose_baseline(measured, ["a", "b"], ["mine"], "a") == "a"
    assert item.choose_baseline(measured, ["a", "b"], ["mine", "b"]) == "a"
    assert item.choose_baseline(measured, ["c"], ["mine"]) == ""
    assert len(item.compute_differences({"P@1": measured}, ["mine"], "")) == 0


@pytest.mark.parametrize(("models", "baseline", "name"), [(["PLT"], "FastXML", "baseline"), ([], "", "models")])
def test_a_baseline_that_is_not_there_is_refused_before_the_run(models, baseline, name):
    with pytest.raises(ArgumentError, match=f"parameter {name}"):
        item.check_parameters({"models": models, "baseline": baseline})
    item.check_parameters({"models": ["PLT"], "baseline": "PLT"})


def test_a_file_in_another_order_is_refused(overconfident, tmp_path):
    ds, top = overconfident
    TopK(top.ids[::-1], top.scores[::-1], 6).to_calibration_npz(tmp_path / "a.npz", ds.test.Y[::-1])
    with pytest.raises(DataError, match="other labels for test row"):
        baselines.saved(str(tmp_path), ds, 3)


def test_the_printed_rows_are_the_datasets_and_none_where_it_has_none():
    eurlex, bibtex = datasets.pick("eurlex-4k", scale=0.05), datasets.pick("bibtex", scale=0.1)
    found = item.compute_printed(eurlex).set_index("method")
    assert found.loc["LightXML"].tolist() == ["10.59", "13.79", "13.28"]
    assert found.loc["DiSMEC-I", "ECE@5"] == "0.05†"
    page = item.printed_rows(eurlex).set_index("method")
    assert page.loc["AnnexML *", ["P@1", "PSP@1"]].tolist() == ["79.26", "34.25†"]
    assert len(item.compute_printed(bibtex)) == 0
    assert page.shape[1] == 12


def planted(first: float, last: float) -> dict[int, Measured]:
    noise = 0.1 * np.random.default_rng(0).normal(size=20) / 19**0.5
    values = {1: first, 5: last}
    return {
        k: Measured({"a, before": value, "a, after": 1.0}, {"a, before": value + noise, "a, after": 1 - noise})
        for k, value in values.items()
    }


def test_the_figure_says_what_it_shows_and_the_findings_whether_errors_rise():
    rising, level = planted(2.0, 4.0), planted(2.0, 2.0)
    assert item.plot(item.compute(rising)).get_suptitle() == "ECE@k against k"
    ranked = {name: rising[5] for name in ("P@1", "P@5", "nDCG@5", "PSP@5")}
    none = item.compute_differences({}, [], "")
    said = item.findings(ranked, none, rising, [])
    assert said[0].startswith("Of the example's models: a, before leads P@5")
    assert said[1] == "Before calibration: ECE@5 (lower is better) of a alone: 4.00 ± 0.09 points."
    assert said[2] == "Over models, isotonic regression lowers ECE@5: clearly so in the one comparison."
    assert said[3].endswith("is higher at k = 5 than at k = 1: clearly so in the one comparison.")
    assert item.findings(ranked, none, level, [])[3].endswith("not clear in the one comparison.")
    assert item.findings(ranked, none, level, ["mine"])[0] == "No baseline stands here to hold your predictions to."
