"""Fig. 4: contributions by hand, which add up to PSP."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro import metrics
from xcrepro.papers.jain16 import fig4_label_contributions as fig4
from xcrepro.propensity import inverse


def test_contributions_add_up_to_psp_and_name_their_labels(small, tops):
    w = inverse([5, 3, 1, 0], 6, 0.55, 1.5)
    for k in (1, 3, 5):
        table = fig4.compute_labels(small, tops, k)
        assert table["best"].sum() == pytest.approx(100)
        for name, top in tops.items():
            assert table[name].sum() == pytest.approx(100 * metrics.psp(small.test.Y, top, k, inverse_propensity=w)[0])
    first = fig4.compute_labels(small, tops, 1)
    total = w[0] + w[1] + w[2]
    assert first["count"].tolist() == [5, 3, 1, 0]
    assert first["head"].tolist() == pytest.approx([200 * w[0] / total, 0, 0, 0])
    assert first["tail"].tolist() == pytest.approx([0, 100 * w[1] / total, 100 * w[2] / total, 0])


def test_the_curve_runs_from_the_rarest_label_to_psp(small, tops):
    data = fig4.compute(small, tops, ks=(1,))
    one = fig4.compute_labels(small, tops, 1)
    assert data["count"].tolist() == [0, 1, 3, 5]
    assert data["labels"].tolist() == [1, 2, 3, 4]
    assert data["tail"].tolist() == pytest.approx(one["tail"].to_numpy()[::-1].cumsum().tolist())
    assert fig4.rare_share(data, "tail", 1, below=3) == pytest.approx(100 * one["tail"][2] / one["tail"].sum())
    assert fig4.rare_share(data, "head", 1, below=5) == 0


def test_bins_hold_every_label_once_and_the_whole_gain(small, tops):
    bins = fig4.compute_bins(small, tops)
    first = bins[bins["k"] == 1]
    assert dict(zip(first["points"], first["labels"], strict=True)) == {"0-2": 2, "3-9": 2}
    gain = fig4.compute_gain(bins, "tail", "head")
    one = fig4.compute_labels(small, tops, 1)
    by_bin = gain[gain["k"] == 1].set_index("points")["gain"]
    assert by_bin["0-2"] == pytest.approx(one["tail"][2])
    assert by_bin["3-9"] == pytest.approx(one["tail"][1] - one["head"][0])
    assert gain.loc[gain["k"] == 1, "% of the gain"].sum() == pytest.approx(100)
    assert fig4.compute_gain(bins).empty  # neither PfastreXML nor FastXML is here


def test_a_twins_bins_have_its_complete_truth_beside(twin, top, small, tops):
    bins = fig4.compute_bins(twin, {"FastXML": top, "PfastreXML": top.rows(slice(None))})
    assert bins.columns.tolist()[3:] == ["best", "FastXML", "FastXML complete", "PfastreXML", "PfastreXML complete"]
    for k, part in bins.groupby("k"):
        exact = 100 * metrics.precision(twin.test.Y_complete, top, k)[0]
        assert part["FastXML complete"].sum() == pytest.approx(exact)
        assert exact > 100 * metrics.precision(twin.test.Y, top, k)[0]
    assert "gain complete" in fig4.compute_gain(bins)
    assert "head complete" not in fig4.compute_bins(small, tops)  # of real data nobody knows it


def test_bins_have_their_edges(make_dataset, tops):
    train = np.arange(12)[:, None] < [2, 3, 9, 10]
    bins = fig4.compute_bins(make_dataset(train, np.eye(4)[:3]), tops, ks=(1,))
    assert dict(zip(bins["points"], bins["labels"], strict=True)) == {"0-2": 1, "3-9": 2, "10-29": 1}
