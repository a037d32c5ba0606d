"""Fig. 2: curves against the formula written out, estimates against counting by hand and against a world whose propensities
are known, and the committed EuroVoc counts against the data."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.core import propensity
from xcrepro.core.data import registry
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.papers.jain16 import fig2_propensity as fig2


def test_parameters_are_refused_by_their_name():
    fig2.check_parameters({"dataset": "synthetic eurlex-4k", "draws": 40})
    with pytest.raises(ArgumentError, match="draws"):
        fig2.check_parameters({"dataset": "synthetic eurlex-4k", "draws": 39})


def test_overlaps_with_several_parents_against_sets():
    rng = np.random.default_rng(3)
    truth = (rng.random((40, 12)) < 0.15).astype(np.float32)
    pairs = np.array([(child, above) for child in range(1, 12) for above in range(child) if rng.random() < 0.25])

    def under(label: int) -> set[int]:
        return {c for child, above in pairs if above == label for c in ({int(child)} | under(int(child)))}

    found = fig2.count_overlaps(truth, pairs).set_index("label")
    assert list(found.index) == [label for label in range(12) if under(label)]
    for label, row in found.iterrows():
        itself = {i for i in range(40) if truth[i, label]}
        implied = {i for i in range(40) if any(truth[i, d] for d in under(label))}
        assert row.tolist() == [len(under(label)), len(itself), len(implied), len(itself & implied)]


def test_the_procedure_is_that_of_the_package():
    ds = xc.twin("eurlex-4k", scale=0.2, seed=1, hierarchy=True)
    theirs = propensity.estimate_from_hierarchy(ds.train.Y, ds.parents)
    ours = fig2.compute_labels(fig2.count_overlaps(ds.train.Y, ds.parents))
    labels = theirs.labels[theirs.labels["count"] > 0]
    assert ours["label"].tolist() == labels["label"].tolist()
    assert ours["procedure"].tolist() == pytest.approx(labels["propensity"].tolist(), rel=1e-15)
    bins = fig2.compute_bins(ours)
    assert bins["procedure"].tolist() == pytest.approx(theirs.bins["propensity"].tolist())
    assert bins["count"].tolist() == pytest.approx(theirs.bins["count_mean"].tolist())


def test_few_descendants_unseen_labels_and_nothing_below():
    rows = [(4, 4, 9, 3, 1), (3, 5, 0, 3, 0), (2, 5, 7, 0, 0), (1, 5, 2, 1, 1)]
    found = fig2.compute_labels(pd.DataFrame(rows, columns=["label", "descendants", "count", "below", "both"]))
    assert found["label"].tolist() == [1, 2]  # by rising count; 4 has too few descendants, 3 no point
    assert found["procedure"].tolist() == [1.0, 1.0]
    assert found["among descendants"].tolist() == pytest.approx([1.0, math.nan], nan_ok=True)


def test_the_procedure_is_too_high_and_the_points_with_a_descendant_are_not():
    """20,000 points with label 0, six in ten of them with some of its five descendants; p = 0.4 for it, 0.2 for them."""
    rng = np.random.default_rng(0)
    n, p = 20_000, np.array([0.4, *[0.2] * 5])
    complete = np.zeros((n, 6), bool)
    complete[:, 0] = True
    complete[:, 1:] = (rng.random((n, 5)) < 0.5) & (rng.random((n, 1)) < 0.6)
    observed = complete & (rng.random((n, 6)) < p)
    row = fig2.compute_labels(fig2.count_overlaps(observed, np.array([-1, 0, 0, 0, 0, 0]))).iloc[0]
    among, size = row["among descendants"], row["below"]
    assert abs(among - 0.4) <= 4 * math.sqrt(0.4 * 0.6 / size)
    # The procedure's denominator is what is seen at all: 1 - 0.6 * P(not one of five marked).
    gone = 0.4 + 0.6 * 0.9**5
    assert row["procedure"] == pytest.approx(0.4 / (1 - 0.6 * gone), abs=0.01)
    assert row["procedure"] > 0.6


def test_a_twin_knows_where_its_points_went():
    ds = xc.twin("eurlex-4k", scale=0.3, seed=2, hierarchy=True)
    found = fig2.compute_twin_labels(ds)
    assert len(found) > 20
    shares = found[["seen", "implied", "lost", "lost alone"]]
    assert (shares >= 0).all(axis=None)
    assert shares.sum(axis=1).tolist() == pytest.approx([1.0] * len(found))
    assert found["procedure"].tolist() == pytest.approx((found["seen"] / (found["seen"] + found["implied"])).tolist())
    kept = found["seen"] / (1 - found["lost alone"])
    assert found["complete descendants"].tolist() == pytest.approx(kept.tolist())
    # One label by brute force.
    label = int(found["label"].iloc[-1])
    under = {label}
    for _ in range(10):
        under |= {i for i, above in enumerate(ds.parents) if above in under}
    under = sorted(under - {label})
    full, seen = ds.train.Y_complete.toarray() > 0, ds.train.Y.toarray() > 0
    rows, size = full[:, label] & ~seen[:, label], full[:, label].sum()
    assert found["implied"].iloc[-1] == pytest.approx(seen[rows][:, under].any(axis=1).sum() / size)
    assert found["lost alone"].iloc[-1] == pytest.approx((~full[rows][:, under].any(axis=1)).sum() / size)


def test_bins_take_means_of_what_is_there():
    p, q = np.r_[np.full(44, 0.5), 1.0], np.r_[np.nan, np.arange(44) / 44.0]
    found = fig2.compute_bins(pd.DataFrame({"count": np.arange(45), "p": p, "q": q}))
    bins = [20, 9.5, 0, 19, 0.5], [20, 29.5, 20, 39, 0.5], [5, 42.0, 40, 44, 0.6]
    assert found[["labels", "count", "lowest", "highest", "p"]].to_numpy().tolist() == list(bins)
    assert found["q"][0] == pytest.approx(np.mean(np.arange(19) / 44))


def test_fits_find_a_and_b_or_say_why_not_after_the_printed_pairs():
    counts = np.array([2.0, 8.0, 40.0, 300.0])
    twin = pd.DataFrame({"labels": [20, 20, 20, 3], "count": counts, "procedure": [0.9, 0.8, 0.7, 0.6]})
    twin["true"] = 1 / propensity.inverse(counts, 15_539, 0.6, 2.6)
    table = fig2.compute_fits(twin, 15_539, twin[["labels", "count", "procedure"]])
    assert table["source"].tolist() == ["paper", "paper", "twin", "twin", "EuroVoc"]
    printed = xc.published.table("jain16:sec5").set_index(["dataset", "metric"])["value"]
    for name in ("Wikipedia", "Amazon"):
        ours = table[table["estimate"] == f"printed for {name}"].iloc[0]
        assert [ours["A"], ours["B"]] == [printed[name, "A"], printed[name, "B"]]
    found = table[table["source"] == "twin"].set_index("estimate")
    assert list(found.index) == ["true", "procedure"]
    assert found.loc["true", ["A", "B"]].tolist() == pytest.approx([0.6, 2.6], rel=1e-6)
    assert (found["fits"]["true"], found["rms"]["true"] < 1e-9) == ("yes", True)
    assert math.isnan(found["A"]["procedure"])
    assert "rising" in found["fits"]["procedure"]


def test_bins_by_chance():
    table = pd.DataFrame({"count": [1, 9], "below": [2, 9], "both": [1, 0], "procedure": [0.5, 0.5]})
    found = fig2.compute_eurovoc(table, draws=400, per_bin=1)
    # Either order of the two extras, 1 and 9: 1/2 or 1/10 for the first label, 9/18 or 9/10 for the second.
    assert found["low"].tolist() == [0.1, 0.5]
    assert found["high"].tolist() == [0.5, 0.9]
    assert found["chance"].tolist() == pytest.approx([0.3, 0.7], abs=4 * 0.2 / math.sqrt(400))
    same = fig2.compute_eurovoc(table.assign(below=[5, 5], both=[1, 1]), draws=40, per_bin=1)
    assert same["low"].tolist() == same["high"].tolist() == [1 / 5, 9 / 13]


def test_equation_1_in_the_second_figure():
    labels = pd.DataFrame({"count": [1, 6], "procedure": [0.1, 0.2]})
    twin = pd.DataFrame({"count": [9.0], **dict.fromkeys(fig2.ESTIMATES, 0.5)})
    table = fig2.compute_hierarchy(twin, labels, labels.assign(chance=0.2, low=0.1, high=0.3))
    model = table[table["source"] == "eq. 1"]
    assert model["true"].iloc[0] == pytest.approx(1 / math.log(15_539))  # of a label seen once
    assert model["count"].iloc[-1] == 6
    # A line of one bin has no length: the mark shows it.
    assert fig2.plot_hierarchy(table, "Twin").axes[0].lines[0].get_marker() == "_"


# ---------------------------------------------------------------- the committed counts


def test_the_committed_counts_fit_together():
    table = fig2.read_eurovoc()
    assert len(table) == 50
    assert table["label"].is_monotonic_increasing
    assert table["count"].tolist() == registry.label_counts("eurlex-4k")["count"][table["label"]].tolist()
    assert ((table["both"] <= table["count"]) & (table["both"] <= table["below"])).all()
    assert (table["below"] < fig2.DOCUMENTS).all()


def test_the_committed_counts_are_those_of_the_data(real_data):
    from xcrepro.core.data.read import read_sparse

    folder = real_data("eurlex-4k-labels")
    matrix = read_sparse(folder / "Y_all_xcids_3993.txt")
    assert matrix.shape[0] == fig2.DOCUMENTS
    labels = pd.read_csv(folder / "hierarchy_xcid_eurovoc.tsv", sep="\t", dtype=str, keep_default_na=False)
    above = [set(codes.split(",")) for codes in labels["microthesauri"] + "," + labels["domains"]]
    # One step only: a domain's label has all labels of the domain below it as it is.
    for row in fig2.read_eurovoc().itertuples():
        codes = set(row.codes.split(";"))
        assert codes <= above[row.label]
        under = [i for i in range(len(labels)) if i != row.label and codes & above[i]]
        carried = np.asarray(matrix[:, under].sum(axis=1)).ravel() > 0
        itself = matrix[:, [row.label]].toarray().ravel() > 0
        counted = [len(under), itself.sum(), carried.sum(), (carried & itself).sum()]
        assert counted == [row.descendants, row.count, row.below, row.both]
