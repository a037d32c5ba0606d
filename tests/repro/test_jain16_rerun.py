"""What the items on tables 3 and 4, on fig. 4 and on table 2 of Jain et al. 2016 compute, on numbers worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.data.dataset import Dataset, Split
from xcrepro.propensity import inverse
from xcrepro.repro import jain16_rerun, jain16_table2
from xcrepro.repro.jain16_rerun import MODELS, SCORED


def dataset(train, test, name="demo") -> Dataset:
    split = [Split(None, csr_matrix(np.asarray(Y, np.float32))) for Y in (train, test)]
    return Dataset(name, *split, A=0.55, B=1.5)


@pytest.fixture
def small():
    """Six train points, four labels seen 5, 3, 1 and 0 times; three test points."""
    train = np.zeros((6, 4))
    train[:5, 0] = train[:3, 1] = train[5, 2] = 1
    test = [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0]]
    return dataset(train, test)


@pytest.fixture
def tops():
    """Hits: head 1 0 / 0 1 / 1 0; tail 1 1 / 1 0 / 0 0."""
    head = xc.TopK.from_ids([[0, 2, 3, 1, -1], [0, 1, 3, 2, -1], [0, 1, 2, 3, -1]], n_labels=4)
    tail = xc.TopK.from_ids([[1, 0, 2, 3, -1], [2, 3, 0, 1, -1], [3, 2, 1, 0, -1]], n_labels=4)
    return {"head": head, "tail": tail}


def test_scores_are_the_papers_ratios(small, tops):
    w = inverse([5, 3, 1, 0], 6, 0.55, 1.5)
    found = jain16_rerun.scores(small, tops).set_index("model")
    # Place 1. The best rankings show label 1, label 2 and label 0.
    assert found.loc["head", "P1"] == pytest.approx(100 * 2 * w[0] / (w[1] + w[2] + w[0]))
    assert found.loc["tail", "P1"] == pytest.approx(100 * (w[1] + w[2]) / (w[1] + w[2] + w[0]))
    assert (found["N1"] == found["P1"]).all()
    # Three places: nDCG's ideal has the rarer label first, whatever the number of labels of the point.
    second, third = 1 / math.log2(3), 1 / math.log2(4)
    best = (w[1] + w[0] * second) + (w[2] + w[1] * second) + w[0]
    assert found.loc["head", "N3"] == pytest.approx(100 * (w[0] + w[1] * second + w[0]) / best)
    assert found.loc["tail", "N3"] == pytest.approx(100 * (w[1] + w[0] * second + w[2]) / best)
    assert third < second  # the third places of both are misses
    # Coverage: three labels can be covered at once in one place a point; label 0, and labels 1 and 2, are.
    assert found.loc["head", "C1"] == pytest.approx(100 / 3)
    assert found.loc["tail", "C1"] == pytest.approx(200 / 3)


def test_contributions_add_up_to_psp_and_name_their_labels(small, tops):
    w = inverse([5, 3, 1, 0], 6, 0.55, 1.5)
    scores = jain16_rerun.scores(small, tops).set_index("model")
    for k in (1, 3, 5):
        table = jain16_rerun.contributions(small, tops, k)
        assert table["best"].sum() == pytest.approx(100)
        for name in tops:
            assert table[name].sum() == pytest.approx(scores.loc[name, f"P{k}"])
    first = jain16_rerun.contributions(small, tops, 1)
    total = w[0] + w[1] + w[2]
    assert first["count"].tolist() == [5, 3, 1, 0]
    assert first["head"].tolist() == pytest.approx([200 * w[0] / total, 0, 0, 0])
    assert first["tail"].tolist() == pytest.approx([0, 100 * w[1] / total, 100 * w[2] / total, 0])


def test_the_curve_of_fig_4_runs_from_the_rarest_label_to_psp(small, tops):
    data = jain16_rerun.cumulated(small, tops, ks=(1,))
    one = jain16_rerun.contributions(small, tops, 1)
    assert data["count"].tolist() == [0, 1, 3, 5]
    assert data["labels"].tolist() == [1, 2, 3, 4]
    assert data["tail"].tolist() == pytest.approx(one["tail"].to_numpy()[::-1].cumsum().tolist())
    assert jain16_rerun.from_rare(data, "tail", 1, below=3) == pytest.approx(100 * one["tail"][2] / one["tail"].sum())
    assert jain16_rerun.from_rare(data, "head", 1, below=5) == 0


def test_bins_hold_every_label_once_and_the_whole_gain(small, tops):
    bins = jain16_rerun.by_frequency(small, tops)
    first = bins[bins["k"] == 1]
    assert dict(zip(first["points"], first["labels"], strict=True)) == {"0-2": 2, "3-9": 2}
    gain = jain16_rerun.gain_by_frequency(bins, "tail", "head")
    one = jain16_rerun.contributions(small, tops, 1)
    by_bin = gain[gain["k"] == 1].set_index("points")["gain"]
    assert by_bin["0-2"] == pytest.approx(one["tail"][2])
    assert by_bin["3-9"] == pytest.approx(one["tail"][1] - one["head"][0])
    assert gain.loc[gain["k"] == 1, "% of the gain"].sum() == pytest.approx(100)
    assert jain16_rerun.gain_by_frequency(bins).empty  # neither PfastreXML nor FastXML is here


def test_bins_take_their_edges(tops):
    counts = [2, 3, 9, 10]
    train = np.zeros((12, 4))
    for label, n in enumerate(counts):
        train[:n, label] = 1
    bins = jain16_rerun.by_frequency(dataset(train, np.eye(4)[:3]), tops, ks=(1,))
    assert dict(zip(bins["points"], bins["labels"], strict=True)) == {"0-2": 1, "3-9": 2, "10-29": 1}


def test_claims_count_columns_and_know_noise():
    """A model that hits in every point against one that never does, and against its own copy."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 60)
    Y = np.eye(6)[labels]
    ds = dataset(Y, Y)
    ids = np.array([[label, *(j for j in range(6) if j != label)] for label in labels])
    right = xc.TopK.from_ids(ids, n_labels=6)
    wrong = xc.TopK.from_ids(np.roll(ids, -1, axis=1), n_labels=6)  # the label comes last, beyond five places
    tops = {"FastXML": wrong, "PfastXML": right, "PfastreXML": right}
    table = jain16_rerun.claims(ds, tops, jain16_rerun.scores(ds, tops))
    nodes, ranked = (table[table["claim"].str.startswith(text)].iloc[0] for text in ("propensities", "re-ranking"))
    assert len(table) == 2  # no 1-vs-All, DiSMEC or PLT among the models
    assert (nodes["above"], nodes["below"], nodes["unclear"]) == (6, 0, 0)
    assert nodes["least"] == nodes["largest"] == nodes["C1"] == pytest.approx(100)
    assert (ranked["above"], ranked["below"], ranked["unclear"]) == (0, 0, 6)
    swapped = {"FastXML": right, "PfastXML": wrong}
    assert jain16_rerun.claims(ds, swapped, jain16_rerun.scores(ds, swapped)).iloc[0]["below"] == 6


def test_printed_cells_are_the_papers(small):
    ds = dataset(small.train.Y.toarray(), small.test.Y.toarray(), name="eurlex-4k@0.1-seed0")
    cells = jain16_rerun.printed(ds).set_index(["model", "column"])["printed"]
    assert len(cells) == 5 * 6 + 3 * 3  # table 3 has five of the models, table 4 three
    assert cells["PfastreXML", "N1"] == "45.38"
    assert cells["1-vs-All", "C5"] == "53.82"
    assert cells["Popularity", "P5"] == "2.62"
    assert set(cells.index.get_level_values(0)) <= set(MODELS)
    assert jain16_rerun.printed(small).empty


def test_beside_subtracts_the_printed_value():
    found = pd.DataFrame([{"model": "FastXML"} | dict.fromkeys(SCORED, 30.0)])
    paper = pd.DataFrame({"model": ["FastXML", "PLT"], "column": ["P1", "P1"], "printed": ["27.61", "1"]})
    table = jain16_rerun.beside(found, paper)
    assert table["difference"].tolist() == [pytest.approx(2.39)]
    assert jain16_rerun.beside(found, paper[:0]).empty


# ---------------------------------------------------------------- table 2


def test_table_2_as_printed():
    table = jain16_table2.printed().set_index("dataset")
    assert table.loc["Ads-9M", "L"] == 8_838_461
    assert table.loc["Wiki10-31K", "N train"] == 14_149
    assert table.loc["EURLex-4K", "points per label"] == "25.73"
    assert table.loc["Ads-9M", "labels per point"] == "1.79"


def test_the_page_prints_other_numbers_for_four_datasets():
    table = jain16_table2.beside_page()
    assert set(table["dataset"]) == {"AmazonCat-13K", "Wiki10-31K", "WikiLSHTC-325K", "Amazon-670K"}
    where = (table["dataset"] == "Wiki10-31K") & (table["quantity"] == "L")
    assert table.loc[where, ["table 2", "page"]].to_numpy().tolist() == [["30935", "30938"]]


def test_averages_are_over_all_points_but_for_the_proprietary_dataset():
    counted = jain16_table2.points_counted().set_index("dataset")["counted"]
    assert counted.to_dict() == {
        name: "neither" if name == "Ads-9M" else "all" for name in jain16_table2.printed()["dataset"]
    }


def test_a_change_in_print_is_seen(monkeypatch):
    true = jain16_table2.registry.interval

    def planted(name, number, source=None):
        wrong = (name, number) == ("eurlex-4k", "avg_points_per_label")
        return (20.66, 20.67) if wrong else true(name, number, source)

    monkeypatch.setattr(jain16_table2.registry, "interval", planted)
    counted = jain16_table2.points_counted().set_index("dataset")["counted"]
    assert counted["EURLex-4K"] == "train"


def test_the_real_counts_give_table_2s_averages():
    table = jain16_table2.counted()
    assert len(table) == 3
    assert all(round(row.ours, 2) == float(row.printed) for row in table.itertuples())


def test_twins_are_counted_over_all_points():
    table = jain16_table2.from_twins([0.02, 0.001, 0.02, 0.0005, 0.001]).set_index("dataset")
    ds = xc.twin("eurlex-4k", scale=0.02)
    pairs = ds.train.Y.nnz + ds.test.Y.nnz
    row = table.loc["EURLex-4K, twin"]
    assert row["points per label"] == pairs / ds.train.Y.shape[1]
    assert row["labels per point"] == pairs / (ds.n_train + ds.test.Y.shape[0])
    assert len(table) == 5
    with pytest.raises(ValueError, match="zip"):
        jain16_table2.from_twins([0.02])


def test_nothing_is_loaded_unasked_and_a_folder_is_counted(tmp_path):
    assert jain16_table2.loaded("", "small").empty
    xc.write_xc(tmp_path / "eurlex-4k" / "eurlex_train.txt", csr_matrix(np.eye(3, 5)), csr_matrix(np.eye(3, 4)))
    xc.write_xc(tmp_path / "eurlex-4k" / "eurlex_test.txt", csr_matrix(np.eye(2, 5)), csr_matrix(np.eye(2, 4)))
    found = jain16_table2.loaded(str(tmp_path), "small").set_index("quantity")
    assert found["ours"].to_dict() == {
        "N train": 3, "D": 5, "L": 4, "M test": 2, "labels per point": 1, "points per label": 1.25,
    }  # fmt: skip
    assert found.loc["N train", "printed"] == "15539"
