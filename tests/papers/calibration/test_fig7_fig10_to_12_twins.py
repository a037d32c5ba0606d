"""Figures 7 and 10 to 12 on several twins: each part is the one dataset's own table, print stands beside its cell."""

from __future__ import annotations

import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import _common
from xcrepro.papers.calibration import fig7_fig10_to_12_rerun as rerun
from xcrepro.papers.calibration import fig7_fig10_to_12_twins as twins
from xcrepro.repro import figures


@pytest.fixture(scope="module")
def made():
    sets = {}
    for key, name, scale in (("eurlex-4k", "EURLex-4K", 0.03), ("bibtex", "Bibtex", 0.1)):
        ds = xc.twin(key, scale)
        models = {"PLT": xc.models.PLT(trees=1), "Popularity": xc.models.Popularity()}
        tops = {model: one.fit(ds.train.X, ds.train.Y).predict(ds.test.X, 5) for model, one in models.items()}
        sets[name] = ds, calibrated.before_after(ds, tops)
    measured = twins.measure(sets)
    return sets, measured, twins.compute(sets), twins.compute_table(sets, measured)


def test_each_part_is_the_datasets_own(made):
    sets, _, bins, table = made
    for name, (ds, states) in sets.items():
        part = table[table["dataset"] == name].drop(columns=["dataset", "printed ECE", "printed after"])
        own = rerun.compute_table(ds, states, rerun.measure(ds, states))
        pd.testing.assert_frame_equal(part.reset_index(drop=True), own)
        part = bins[bins["dataset"] == name].drop(columns="dataset").reset_index(drop=True)
        pd.testing.assert_frame_equal(part, rerun.compute(ds, states))
        pd.testing.assert_frame_equal(
            twins.describe_direction(table[table["dataset"] == name]).rename(columns={name: "k = 1"}).iloc[:1, [0, 2]],
            _common.describe_direction(own).iloc[:1, :2],
            check_names=False,
        )


def test_print_stands_beside_the_model_it_stands_for(made):
    *_, table = made
    found = table.set_index(["dataset", "model", "k"])
    assert found.loc[("EURLex-4K", "PLT", 1), "printed ECE"] == printed("PLT", "none")
    assert found.loc[("EURLex-4K", "PLT", 1), "printed after"] == printed("PLT", "isotonic")
    assert found.loc[("EURLex-4K", "Popularity", 1), "printed ECE":].isna().all()  # the paper has no such model
    assert found.loc[("Bibtex", "PLT", 1), "printed ECE":].isna().all()  # nor the dataset


def printed(method, variant):
    rows = _common.printed_table(7).query("metric == 'ECE' and k == 1 and dataset == 'EURLex-4K'")
    return rows[(rows["method"] == method) & (rows["variant"] == variant)]["value"].item()


def test_a_figure_shows_one_model_of_all_datasets(made):
    _, _, bins, table = made
    fig = twins.plot(bins, table, "PLT")
    assert fig.get_suptitle() == "PLT, as figure 11: before and after isotonic regression"
    assert [axes.get_ylabel() for axes in fig.axes[::4]] == ["EURLex-4K", "Bibtex"]
    figures.held(fig, bins[bins["model"] == "PLT"])
    with pytest.raises(figures.DrawingFault):
        figures.held(fig, bins[bins["model"] == "Popularity"])


def test_findings_count_datasets_and_print(made):
    _, measured, _, table = made
    first, second = twins.findings(table, measured)
    assert first.startswith("PLT, 6 pairs of a dataset and a k: the error is `")
    assert "; printed of PLT, lower in " in first
    assert second.startswith("Popularity, 6 pairs")
    assert "printed" not in second
    planted = table.assign(**{"printed ECE": 5.0, "printed after": 6.0})
    assert "; printed of PLT, lower in 0 of 6." in twins.findings(planted, measured)[0]
