"""Shares by bin against counting label by label; table 2's sums as printed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError, DataMissing
from xcrepro.inputs import longtail
from xcrepro.papers.reeval import fig1_fig4_label_bins as fig1


def test_shares_are_of_labels_with_a_point():
    planted = longtail.Tail("own", np.array([0, 1, 9, 10, 99, 100, 1000, 5000, 0]), True)
    bins = fig1.compute([planted])
    assert bins["labels"].tolist() == [2, 2, 1, 2]
    assert bins["instances"].tolist() == [10, 109, 100, 6000]
    assert bins["% labels"].tolist() == pytest.approx([200 / 7, 200 / 7, 100 / 7, 200 / 7])
    assert bins["% instances"].sum() == pytest.approx(100)
    assert (bins["unseen"] == 2).all()
    assert bins[fig1.PRINTED].isna().all()
    claims = fig1.compute_claims(bins).set_index("dataset").loc["own"].tolist()
    assert claims == pytest.approx([300 / 7, 610000 / 6219, 200 / 7, 1000 / 6219])


def test_the_printed_shares_are_those_of_section_4(loaded):
    bins = fig1.compute([longtail.counted("eurlex-4k"), *map(longtail.from_dataset, loaded.values())])
    assert list(bins.loc[::4, "dataset"]) == ["EURLex-4K", "EURLex-4K, twin"]
    # A fifth of the points has other bins: nothing printed stands beside them.
    assert bins.loc[::4, fig1.PRINTED].round(2).tolist() == pytest.approx([63.48, np.nan], nan_ok=True)
    whole = longtail.Tail("EURLex-4K, twin", loaded["EURLex-4K"].label_counts, False)
    assert fig1.compute([whole]).loc[0, fig1.PRINTED] == bins.loc[0, fig1.PRINTED]
    assert list(bins.loc[::4, "real"]) == [True, False]


def test_table_2_adds_up_as_printed():
    sums = fig1.compute_sums().set_index("dataset")
    assert sums["unbinned"].tolist() == [3956 - 3801, 30938 - 29945, 0]
    assert sums["ours"].tolist() == pytest.approx([100 * 2413 / 3801, 100 * 26545 / 29945, 100 * 3936 / 13330])
    assert sums["printed"].tolist() == ["63.48", "88.65", "30"]


def test_table_2_of_a_dataset(loaded, twin):
    counts = np.asarray(twin.train.Y.sum(axis=0)).ravel()
    rows = fig1.compute_table2({**loaded, "own": twin}, [0.2, 1.0])
    # A dataset that table 2 does not have stands there with nothing printed beside it.
    own = rows[rows["dataset"] == "own"]
    assert (len(own), set(own["printed"]), own["expected"].isna().all()) == (9, {""}, True)
    rows = rows[rows["dataset"] == "EURLex-4K"].set_index("column")
    assert rows.loc["L 1-9", "ours"] == ((counts >= 1) & (counts <= 9)).sum()
    assert rows.loc["L 10-99", "ours"] == ((counts >= 10) & (counts <= 99)).sum()
    assert rows.loc["labels a point", "ours"] == pytest.approx(twin.train.Y.sum(axis=1).mean())
    assert rows.loc[["N_train", "N_test", "F", "L"], "ours"].tolist() == [3108, 762, 5000, counts.size]
    assert rows.loc[["L", "L 1-9", "L 1000+"], "expected"].isna().all()
    assert rows.loc["F", "expected"] == 186_104
    assert (rows.loc["N_train", "printed"], rows.loc["N_train", "expected"]) == ("15539", pytest.approx(3107.8))
    assert rows.loc["labels a point", "expected"] == 5.3
    whole = fig1.compute_table2(loaded, [1.0]).set_index("column")
    assert whole.loc["L 1-9", "expected"] == 2413


def test_real_counts_stand_before_a_twins_alone(loaded, twin):
    assert [tail.name for tail in fig1.tails(loaded)] == ["EURLex-4K", "EURLex-4K, twin"]
    real = Dataset(**{f.name: getattr(twin, f.name) for f in dataclasses.fields(Dataset)})
    assert [tail.name for tail in fig1.tails({"EURLex-4K": real})] == ["EURLex-4K"]


def test_an_own_dataset_without_features(twin, tmp_path):
    fields = {f.name: getattr(twin, f.name) for f in dataclasses.fields(Dataset)}
    own = Dataset(**fields | {"name": "own", "entry": None, "train": dataclasses.replace(twin.train, X=None)})
    bins = fig1.compute(fig1.tails({"own": own}))
    assert bins["dataset"].unique().tolist() == ["own"]
    figure = fig1.plot(bins)
    # The legend promises only what is drawn.
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["labels", "instances"]
    rows = fig1.compute_table2({"own": own}).set_index("column")
    assert np.isnan(rows.loc["F", "ours"])
    [said] = fig1.findings(fig1.compute_claims(bins))
    assert said.startswith("own: ")


def test_parameters_are_checked(tmp_path):
    fig1.check_parameters({"size": "small", "names": ["bibtex"], "scales": [], "seed": 0, "folder": ""})
    with pytest.raises(ArgumentError, match="parameter scales"):
        fig1.check_parameters({"size": "small", "names": ["bibtex"], "scales": [1.0, 0.5], "seed": 0, "folder": ""})
    with pytest.raises(DataMissing, match="own"):
        fig1.check_parameters({"size": "small", "names": ["own"], "scales": [], "seed": 0, "folder": str(tmp_path)})
