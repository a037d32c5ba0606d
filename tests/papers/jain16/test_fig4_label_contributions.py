"""Fig. 4: contributions by hand, which add up to PSP."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro import metrics
from xcrepro.errors import ArgumentError
from xcrepro.findings import Measured
from xcrepro.papers.jain16 import fig4_label_contributions as fig4
from xcrepro.predictions import TopK
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


def test_bins_hold_every_label_once_and_the_whole_gain(small, tops):
    bins = fig4.compute_bins(small, tops)
    first = bins[bins["k"] == 1]
    assert dict(zip(first["points"], first["labels"], strict=True)) == {"0-2": 2, "3-9": 2}
    gain = fig4.compute_gain(bins, [("tail", "head")])
    one = fig4.compute_labels(small, tops, 1)
    by_bin = gain[gain["k"] == 1].set_index("points")["gain"]
    assert by_bin["0-2"] == pytest.approx(one["tail"][2])
    assert by_bin["3-9"] == pytest.approx(one["tail"][1] - one["head"][0])
    whole = one[["tail", "head"]].sum()
    assert by_bin.sum() == pytest.approx(whole["tail"] - whole["head"])


def test_a_twins_bins_have_its_complete_truth_beside(twin, top, small, tops):
    bins = fig4.compute_bins(twin, {"FastXML": top, "PfastreXML": top.rows(slice(None))})
    assert bins.columns.tolist()[3:] == ["best", "FastXML", "FastXML complete", "PfastreXML", "PfastreXML complete"]
    for k, part in bins.groupby("k"):
        exact = 100 * metrics.precision(twin.test.Y_complete, top, k)[0]
        assert part["FastXML complete"].sum() == pytest.approx(exact)
        assert exact > 100 * metrics.precision(twin.test.Y, top, k)[0]
    assert "gain complete" in fig4.compute_gain(bins, [("PfastreXML", "FastXML")])
    assert "head complete" not in fig4.compute_bins(small, tops)  # of real data nobody knows it


def test_bins_have_their_edges(make_dataset, tops):
    train = np.arange(12)[:, None] < [2, 3, 9, 10]
    bins = fig4.compute_bins(make_dataset(train, np.eye(4)[:3]), tops, ks=(1,))
    assert dict(zip(bins["points"], bins["labels"], strict=True)) == {"0-2": 1, "3-9": 2, "10-29": 1}


def test_which_models_are_compared(small, tops):
    """Each of the reader's and the best baseline; else the paper's two; else the first two by PSP@5; of one model none."""
    bins = fig4.compute_bins(small, tops)
    assert fig4.contrasts(bins, ["head"]) == [("tail", "head")]
    assert [set(pair) for pair in fig4.contrasts(bins, ["head", "tail"])] == [{"head", "tail"}]
    assert fig4.contrasts(fig4.compute_bins(small, {"head": tops["head"]}), ["head"]) == []
    paper = {"PfastreXML": tops["tail"], "FastXML": tops["head"], "PLT": tops["head"]}
    assert fig4.contrasts(fig4.compute_bins(small, paper), list(paper)) == [("PfastreXML", "FastXML")]


def test_each_of_several_own_models_is_compared(small, tops):
    last = {name: fig4.compute_labels(small, {name: top}, 1)[name].sum() for name, top in tops.items()}
    best, worst = sorted(last, key=last.get, reverse=True)
    several = {"one": tops[worst], "two": tops[best], "PLT": tops[worst], "FastXML": tops[best]}
    bins = fig4.compute_bins(small, several, ks=(1,))
    pairs = fig4.contrasts(bins, ["PLT", "FastXML"])
    assert pairs == [("one", "FastXML"), ("two", "FastXML")]
    assert fig4.contrasts(bins.drop(columns=["PLT", "FastXML"]), ["PLT"]) == [("two", "one")]  # no baseline
    gain = fig4.compute_gain(bins, pairs).groupby("difference", sort=False)["gain"].sum()
    assert list(gain.index) == ["one minus FastXML", "two minus FastXML"]
    assert gain["two minus FastXML"] == 0
    assert gain["one minus FastXML"] == pytest.approx(last[worst] - last[best])
    said = [one for one in fig4.findings(small, {1: fig4.measure(small, several, 1)}, pairs) if " minus " in one]
    assert [one.partition(":")[0] for one in said] == ["PSP@1, one minus FastXML", "PSP@1, two minus FastXML"]


def test_a_twins_columns_are_no_models(twin, top):
    bins = fig4.compute_bins(twin, {"one": top, "two": top})
    assert [set(pair) for pair in fig4.contrasts(bins, ["one", "two"])] == [{"one", "two"}]


def test_rare_labels_hold_at_most_half_of_the_instances(make_dataset, twin):
    train = np.arange(12)[:, None] < [1, 1, 2, 4, 8]
    ds = make_dataset(train, np.eye(5)[:2])
    assert fig4.rare_below(ds) == 8  # 1 + 1 + 2 + 4 are half of 16
    for one in (ds, twin):
        counts, below = one.label_counts, fig4.rare_below(one)
        assert 2 * counts[counts < below].sum() <= counts.sum() < 2 * counts[counts <= below].sum()


def test_the_parts_add_up_and_their_error_is_the_jackknifes(twin, top):
    parts, w = fig4.measure(twin, {"one": top}, 3), inverse(twin.label_counts, twin.n_train, twin.A, twin.B)
    whole, rare, other = (parts[part].values["one"] for part in fig4.PARTS)
    assert rare + other == pytest.approx(whole)
    below = fig4.rare_below(twin)
    labels = fig4.compute_labels(twin, {"one": top}, 3)
    assert rare == pytest.approx(labels.loc[labels["count"] < below, "one"].sum())
    slow = Measured.of_rows(lambda Y, t: 100 * metrics.psp(Y, t, 3, inverse_propensity=w)[0], twin.test.Y, {"one": top})
    assert parts["all labels"].error("one") == pytest.approx(slow.error("one"))
    table = fig4.compute_rare({3: parts})
    assert table.loc[0, ["k", "model", "rare labels"]].tolist() == [3, "one", rare]


def test_findings_say_where_a_gain_comes_from(make_dataset):
    """Planted: a better model gains on the rare label alone, on the frequent one alone, not at all."""
    truth = np.eye(3)[np.r_[np.zeros(40, int), np.ones(20, int)]]
    ds = make_dataset(truth, truth)
    right = np.tile([0, 1, 2], (60, 1))
    right[40:] = [1, 0, 2]
    only = {"frequent": right.copy(), "rare": right.copy()}
    only["frequent"][40:] = only["rare"][:40] = [2, 0, 1]
    tops = {name: TopK.from_ids(ids, n_labels=3) for name, ids in ({"both": right} | only).items()}
    measured = {1: fig4.measure(ds, tops, 1)}
    assert fig4.findings(ds, measured, [("both", "frequent")])[-1].endswith("the gain comes from the rare ones.")
    assert fig4.findings(ds, measured, [("frequent", "both")])[-1].endswith("the loss comes from the rare ones.")
    assert fig4.findings(ds, measured, [("both", "rare")])[-1].endswith("the gain comes from the others.")
    assert fig4.findings(ds, measured, [("both", "both")])[-1].endswith("no clear difference.")
    turned = fig4.findings(ds, measured, [("rare", "frequent")])[-1]
    assert "alone, against" in turned or "no clear difference" in turned
    # Of two pairs each has its own sentence; together they are corrected more.
    both = fig4.findings(ds, measured, [("both", "frequent"), ("both", "rare")])[-2:]
    assert both[0].endswith("the gain comes from the rare ones.")
    assert both[1].endswith("the gain comes from the others.")
    alone = {1: fig4.measure(ds, {"both": tops["both"]}, 1)}
    said = fig4.findings(ds, alone, [])
    assert "of both alone" in said[1]
    assert len(said) == 2


def test_parameters_are_checked():
    with pytest.raises(ArgumentError, match="parameter models"):
        fig4.check_parameters({"dataset": "bibtex", "models": ["PLT", "nobody"]})
