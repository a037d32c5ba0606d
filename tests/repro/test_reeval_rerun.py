"""Reeval's tables 3 and 4 and figures 2 and 3, rerun: hand-worked numbers, oracles that go label by label, planted faults."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import xcrepro as xc
from tests import naive
from xcrepro.errors import ArgumentError
from xcrepro.inputs import baselines
from xcrepro.predictions import TopK
from xcrepro.repro import reeval_figures, reeval_rerun, reeval_table2, reeval_tables


@pytest.fixture(scope="module")
def twin():
    return xc.twin("eurlex-4k", scale=0.1, seed=0)


@pytest.fixture(scope="module")
def tops(twin):
    """A good ranking, one with much noise, and one that leaves out every label with fewer than 100 train points."""
    rng = np.random.default_rng(3)
    noisy, head = twin.test.marginals.copy(), twin.test.marginals.copy()
    noisy.data = noisy.data * rng.uniform(0.2, 1.0, noisy.data.size)
    head = head.multiply(twin.label_counts >= 100).tocsr()
    head.eliminate_zeros()
    scores = {"SVM": twin.test.marginals, "noisy": noisy, "head": head}
    return {"EURLex-4K": {name: TopK.from_scores(matrix, 20) for name, matrix in scores.items()}}


@pytest.fixture(scope="module")
def loaded(twin):
    return {"EURLex-4K": twin}


def dataset(Y, counts, n_train=100):
    test = SimpleNamespace(Y=sparse.csr_matrix(np.asarray(Y, np.float32)))
    return SimpleNamespace(name="own", test=test, label_counts=np.asarray(counts), n_train=n_train, A=0.55, B=1.5)


# ---------------------------------------------------------------- tables 3 and 4


def test_both_tables_by_hand():
    ds = dataset([[1, 0, 1, 0], [0, 1, 0, 0]], [50, 20, 10, 1])
    top = TopK.from_ids([[0, 1, 2, -1, -1], [3, 1, 0, -1, -1]], n_labels=4)
    [row] = reeval_rerun.metrics({"D": ds}, {"D": {"M": top}}).to_dict("records")
    assert (row["P@1"], row["P@3"], row["P@5"]) == (50, 50, 30)
    # TP 1, 2 said, 3 so; TP 3, 6 said, 3 so.
    assert row["micro_F1@1"] == pytest.approx(100 * 2 / 5)
    assert row["micro_F1@3"] == row["micro_F1@5"] == pytest.approx(100 * 6 / 9)
    assert row["macro_F1@1"] == pytest.approx(100 / 4)
    assert row["macro_F1@3"] == pytest.approx(100 * (2 / 3 + 2 / 3 + 1) / 4)
    discount = 1 / np.log2(np.arange(2, 5))
    first, second = discount[[0, 2]].sum() / discount[:2].sum(), discount[1]
    assert row["N@3"] == pytest.approx(100 * (first + second) / 2)
    w = 1 + (np.log(100) - 1) * 2.5**0.55 * (np.array([50, 20, 10, 1]) + 1.5) ** -0.55
    assert row["PSP@1"] == pytest.approx(100 * w[0] / (w[2] + w[1]))
    assert row["PSP@3"] == pytest.approx(100)


def test_columns_are_those_of_the_printed_tables(loaded, tops):
    found = reeval_rerun.metrics(loaded, tops)
    for number in (3, 4):
        mine, printed = reeval_rerun.table(found, number), reeval_tables.table(number)
        assert list(mine.columns) == list(printed.columns)
    assert list(reeval_rerun.printed().columns) == list(found.columns)


def board(**columns):
    """Tables 3 and 4 of three models; what is not given is 0."""
    names = [f"{m}@{k}" for metrics in reeval_rerun.TABLES.values() for m in metrics for k in reeval_rerun.KS]
    table = pd.DataFrame(0.0, index=range(3), columns=names)
    for name, values in columns.items():
        table[name.replace("_at_", "@")] = values
    table.insert(0, "dataset", "EURLex-4K")
    table.insert(1, "method", ["SVM", "A", "B"])
    return table


def test_pairs_in_opposite_order():
    found = board(
        macro_F1_at_5=[3, 2, 1], P_at_5=[3, 2, 1], micro_F1_at_5=[1, 2, 3], N_at_5=[1, 2, 2], PSP_at_5=[3, 1, 2]
    )
    rows = reeval_rerun.disagreement(found).set_index("k")
    assert rows.loc[5].to_dict() == {"dataset": "EURLex-4K", "P": 0, "micro_F1": 3, "N": 2, "PSP": 1, "pairs": 3}
    # The last digit of what is equal is no order.
    found = board(macro_F1_at_1=[3, 2, 1], P_at_1=[0.1 + 0.2, 0.3 + 1e-15, 0.3])
    assert reeval_rerun.disagreement(found)["P"].tolist() == [0, 0, 0]


def test_micro_f1_orders_as_precision_does(loaded, tops):
    full = {"EURLex-4K": {name: tops["EURLex-4K"][name] for name in ("SVM", "noisy")}}
    found = reeval_rerun.metrics(loaded, full)
    ratio = (found["micro_F1@5"] / found["P@5"]).tolist()
    labels = loaded["EURLex-4K"].test.Y.nnz / loaded["EURLex-4K"].test.Y.shape[0]
    assert ratio == pytest.approx([10 / (5 + labels)] * 2)


def test_beside_the_printed_svm():
    rows = reeval_rerun.beside(board(P_at_1=[80, 82, 82])).set_index("column").loc["P@1"]
    assert (rows["SVM here"], rows["best here"], rows["ahead here"]) == (80, "A = B", 2)
    assert (rows["SVM printed"], rows["best printed"]) == (83.44, "LightXML")
    assert rows["ahead printed"] == pytest.approx(86.98 - 83.44)
    assert reeval_rerun.beside(board().assign(dataset="own")).empty
    assert reeval_rerun.beside(board(), baseline="C").empty


def test_the_same_order_of_tables_of_ones_own():
    found = board(P_at_1=[3, 2, 1], N_at_1=[1, 2, 3])
    rows = reeval_tables.same_order(found, found).set_index("k")
    assert (rows.loc[1, "opposite"], rows.loc[1, "best by P"], rows.loc[1, "best by nDCG"]) == (3, "SVM", "B")
    assert rows.loc[3, "opposite"] == 0


# ---------------------------------------------------------------- what is loaded


def test_lengths_and_names_are_checked(loaded, tops):
    with pytest.raises(ArgumentError, match="scales"):
        reeval_rerun.load(["eurlex-4k", "bibtex"], "small", [0.1])
    with pytest.raises(ArgumentError, match="ks"):
        reeval_figures.bars(loaded, tops, [5, 19])
    for compute in (reeval_figures.leads, reeval_figures.bins, reeval_figures.resampled):
        with pytest.raises(ArgumentError, match="baseline"):
            compute(loaded, tops, [5], baseline="BERT")


def test_saved_predictions_lie_in_a_folder_a_dataset(tops, tmp_path):
    loaded = reeval_rerun.load(["eurlex-4k"], "small", [0.1])
    (tmp_path / "eurlex-4k").mkdir()
    tops["EURLex-4K"]["noisy"].save(tmp_path / "eurlex-4k" / "mine.npz")
    found = reeval_rerun.predictions(loaded, given=str(tmp_path))
    assert list(found["EURLex-4K"]) == ["mine"]
    np.testing.assert_array_equal(found["EURLex-4K"]["mine"].ids, tops["EURLex-4K"]["noisy"].ids)


def test_the_tree_is_the_shared_one_unless_its_leaves_are_changed(twin, monkeypatch):
    asked = []

    def training(model, X, Y):
        asked.append(model)
        return SimpleNamespace(predictions=lambda X, k: k)

    monkeypatch.setattr(reeval_rerun.trained, "training", training)
    found = reeval_rerun.predictions({"T": twin}, seed=4)
    assert list(found["T"]) == list(reeval_rerun.MODELS)
    for model, name in zip(asked, reeval_rerun.MODELS.values(), strict=True):
        shared = baselines.recipe(name, twin, 4)
        assert type(model) is type(shared)
        assert model.get_params() == shared.get_params()
    asked.clear()
    reeval_rerun.predictions({"T": twin}, max_leaf=10)
    [tree] = [model for model in asked if type(model).__name__ == "PLT"]
    assert tree.max_leaf == 10


# ---------------------------------------------------------------- figure 2


def test_bars_and_leads(loaded, tops, twin):
    bars = reeval_figures.bars(loaded, tops, [5]).set_index(["metric", "method"])["value"]
    models = tops["EURLex-4K"]
    for name, top in models.items():
        assert bars["macro_F1", name] == pytest.approx(100 * naive.label_f1(twin.test.Y, top, 5).mean())
    leads = reeval_figures.leads(loaded, tops, [5], samples=40).set_index(["metric", "method"])
    assert set(leads.index) == {(m, n) for m in ("micro_F1", "macro_F1") for n in ("noisy", "head")}
    for key, row in leads.iterrows():
        assert row["difference"] == pytest.approx(bars[key] - bars[key[0], "SVM"])
    # Without rare labels macro-F1 must fall by more than the choice of points.
    assert leads.loc[("macro_F1", "head"), "high"] < 0


def test_the_title_of_figure_2_counts():
    rows = [("micro_F1", "D", 5, "SVM", 1.0), ("micro_F1", "D", 5, "A", 2.0)]
    rows += [("macro_F1", "D", 5, "SVM", 3.0), ("macro_F1", "D", 5, "A", 2.0)]
    data = pd.DataFrame(rows, columns=["metric", "dataset", "k", "method", "value"])
    title = reeval_figures.plot_bars(data).get_suptitle()
    assert "macro-F1 on 1 of 1" in title
    assert "micro-F1 on 0" in title


# ---------------------------------------------------------------- figure 3


def test_bins_are_means_over_their_labels_and_the_test_is_scipys(loaded, tops, twin):
    found = reeval_figures.bins(loaded, tops, [5])
    bounds = {"1-9": (1, 10), "10-99": (10, 100), "100-999": (100, 1000)}
    assert [tuple(row) for row in found[["method", "bin"]].to_numpy()] == [
        (m, b) for m in ("noisy", "head") for b in bounds
    ]
    base = naive.label_f1(twin.test.Y, tops["EURLex-4K"]["SVM"], 5)
    for row in found.itertuples():
        low, high = bounds[row.bin]
        labels = (twin.label_counts >= low) & (twin.label_counts < high)
        ours = naive.label_f1(twin.test.Y, tops["EURLex-4K"][row.method], 5)
        assert row.labels == labels.sum()
        assert (row.value, row.baseline) == pytest.approx((100 * ours[labels].mean(), 100 * base[labels].mean()))
        assert row.improvement == pytest.approx(100 * (ours[labels].mean() / base[labels].mean() - 1))
        want = stats.ttest_rel(ours[labels], base[labels])
        assert (row.t, row.p) == pytest.approx((want.statistic, want.pvalue), rel=1e-9)
    head = found[found["method"] == "head"].set_index("bin")["improvement"]
    assert head["1-9"] == head["10-99"] == -100


def test_small_bins_stay_untested_and_a_baseline_of_0_has_no_ratio():
    Y = np.eye(12)
    ds = dataset(Y, [5] * 11 + [0])
    right, wrong = np.arange(12)[:, None], (np.arange(12)[:, None] + 1) % 12
    tops = {"D": {"SVM": TopK.from_ids(wrong, n_labels=12), "A": TopK.from_ids(right, n_labels=12)}}
    [row] = reeval_figures.bins({"D": ds}, tops, [1]).to_dict("records")
    assert (row["bin"], row["labels"], row["value"], row["baseline"]) == ("1-9", 11, 100, 0)
    assert np.isnan(row["improvement"])
    assert row["p"] == 0
    [row] = reeval_figures.bins({"D": ds}, tops, [1], more_than=11).to_dict("records")
    assert np.isnan(row["p"])


def test_the_bootstrap_of_a_bin_is_that_of_copied_rows(loaded, tops, twin):
    found = reeval_figures.resampled(loaded, tops, [5], samples=30, seed=7)
    binned = reeval_figures.bins(loaded, tops, [5])
    assert found[["method", "bin"]].to_numpy().tolist() == binned[["method", "bin"]].to_numpy().tolist()
    labels = (twin.label_counts >= 10) & (twin.label_counts < 100)
    ours, base = tops["EURLex-4K"]["noisy"], tops["EURLex-4K"]["SVM"]
    drawn, n = [], twin.test.Y.shape[0]
    for sample in range(30):
        rows = np.random.default_rng([7, sample]).integers(n, size=n)
        Y = twin.test.Y[rows]
        drawn.append(
            naive.label_f1(Y, ours.rows(rows), 5)[labels].mean() - naive.label_f1(Y, base.rows(rows), 5)[labels].mean()
        )
    row = found[(found["method"] == "noisy") & (found["bin"] == "10-99")].iloc[0]
    assert [row["low"], row["high"]] == pytest.approx(list(100 * np.quantile(drawn, [0.025, 0.975])), rel=1e-9)


def test_only_leaves_the_given_labels():
    Y = sparse.csr_matrix(np.array([[1, 1, 0], [0, 1, 1]], np.float32))
    assert reeval_figures.only(Y, np.array([1])).toarray().tolist() == [[0, 1, 0], [0, 1, 0]]
    assert Y.nnz == 4


def planted():
    """Four bars: both tests say worse; only the t-test; only the bootstrap, the other way round; untested."""
    rows = [("1-9", 50, -1.0, 0.001), ("10-99", 50, 2.0, 0.009), ("100-999", 50, 1.0, 0.01), ("1000+", 3, 1.0, np.nan)]
    binned = pd.DataFrame(rows, columns=["bin", "labels", "difference", "p"]).assign(dataset="D", method="A")
    rows = [("1-9", -2, -0.5, 0.002), ("10-99", -1, 3, 0.2), ("100-999", -2, -1, 0.004), ("1000+", 1, 2, 0.002)]
    return binned, pd.DataFrame(rows, columns=["bin", "low", "high", "p"]).assign(dataset="D", method="A")


def test_verdicts_and_their_summary():
    found = reeval_figures.verdicts(*planted())
    assert found["t-test"].tolist() == ["worse", "better", "-", "untested"]
    assert found["bootstrap"].tolist() == ["worse", "-", "worse", "better"]
    assert found["agree"].tolist() == ["yes", "no", "no", ""]
    rest = reeval_figures.disagreements(found, *planted())
    assert rest[["bin", "p", "low", "p (points)"]].to_numpy().tolist() == [
        ["10-99", 0.009, -1, 0.2],
        ["100-999", 0.01, -2, 0.004],
    ]
    counts = reeval_figures.summary(found.iloc[::-1]).set_index("bin")
    assert list(counts.index) == ["1-9", "10-99", "100-999", "1000+"]
    assert counts["* below"].tolist() == [1, 0, 0, 0]
    assert counts["* above"].tolist() == [0, 1, 0, 0]
    assert counts["rows below"].tolist() == [1, 0, 1, 0]
    assert counts["tested by both"].tolist() == [1, 1, 1, 0]
    assert counts["agree"].tolist() == [1, 0, 0, 0]


def test_stars_stand_where_p_is_below_the_level(loaded, tops):
    data = reeval_figures.bins(loaded, tops, [5])
    for p, stars in (([0.5] * len(data), 0), ([0.009, 0.01, np.nan, 0.0, 1.0, 0.5], 2)):
        figure = reeval_figures.plot_bins(data.assign(p=p))
        assert sum(text.get_text() == "*" for text in figure.axes[0].texts) == stars
    figure = reeval_figures.plot_bins(data.assign(p=np.nan))
    assert [text.get_text() for text in figure.axes[0].texts] == ["not tested"] * 3


def test_psp_beside_the_tail(loaded, tops, twin):
    binned = reeval_figures.bins(loaded, tops, [5])
    rows = reeval_figures.psp_and_tail(loaded, tops, binned).set_index("method")
    found = reeval_rerun.metrics(loaded, tops).set_index("method")
    for method in ("noisy", "head"):
        for ours, column in (("P", "P@5"), ("PSP", "PSP@5"), ("macro-F1", "macro_F1@5")):
            assert rows.loc[method, ours] == pytest.approx(found.loc[method, column] - found.loc["SVM", column])
    rare = (twin.label_counts >= 1) & (twin.label_counts < 10)
    base = naive.label_f1(twin.test.Y, tops["EURLex-4K"]["SVM"], 5)[rare].mean()
    assert rows.loc["head", "rarest bin"] == pytest.approx(-100 * base)


# ---------------------------------------------------------------- table 2


def test_table_2_adds_up_as_printed():
    sums = reeval_table2.arithmetic().set_index("dataset")
    assert sums["unbinned"].tolist() == [3956 - 3801, 30938 - 29945, 0]
    assert sums["ours"].tolist() == pytest.approx([100 * 2413 / 3801, 100 * 26545 / 29945, 100 * 3936 / 13330])
    assert sums["printed"].tolist() == ["63.48", "88.65", "30"]


def test_table_2_of_a_dataset(loaded, twin):
    ours = reeval_table2.statistics(twin)
    counts = np.asarray(twin.train.Y.sum(axis=0)).ravel()
    assert ours["L 1-9"] == ((counts >= 1) & (counts <= 9)).sum()
    assert ours["L 10-99"] == ((counts >= 10) & (counts <= 99)).sum()
    assert ours["labels a point"] == pytest.approx(twin.train.Y.sum(axis=1).mean())
    assert (ours["N_train"], ours["N_test"], ours["F"], ours["L"]) == (1554, 381, 500, 399)
    table = reeval_table2.compared({**loaded, "own": twin}, [0.1, 1.0])
    assert set(table["dataset"]) == {"EURLex-4K"}
    rows = table.set_index("column")
    assert (rows.loc["N_train", "printed"], rows.loc["N_train", "expected"]) == ("15539", pytest.approx(1553.9))
    assert rows.loc["labels a point", "expected"] == 5.3
    [tail] = reeval_table2.tails(loaded)
    assert (tail.name, tail.real) == ("EURLex-4K, twin", False)


def test_costs_are_trainings_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    small = xc.twin("eurlex-4k", scale=0.02, seed=0)
    found = reeval_figures.costs(small, 5, [0.01, 10.0])
    assert list(zip(found["loss"], found["C"], strict=True)) == [
        (loss, C) for loss in ("squared_hinge", "logistic") for C in (0.01, 10.0)
    ]
    model = xc.models.OneVsRest(loss="logistic", C=10.0).fit(small.train.X, small.train.Y)
    f1 = naive.label_f1(small.test.Y, model.predict(small.test.X, 5), 5)
    rare = (small.label_counts >= 1) & (small.label_counts < 10)
    assert found["macro_F1"].iloc[-1] == pytest.approx(100 * f1.mean())
    assert found["1-9"].iloc[-1] == pytest.approx(100 * f1[rare].mean())
    assert found["macro_F1"].nunique() > 2
    assert reeval_figures.costs(small, 5, []).empty


def test_what_a_golden_file_holds():
    rows = [("SVM", "1-9", 1.0), ("SVM", "10-99", 2.0), ("PfastreXML", "10-99", 3.0), ("PLT", "10-99", 4.0)]
    table = pd.DataFrame(rows, columns=["method", "bin", "value"]).assign(p=0.5, difference=1.0)
    kept = reeval_rerun.steady(table)
    assert kept.to_dict("list") == {"method": ["SVM", "PLT"], "bin": ["10-99"] * 2, "value": [2.0, 4.0]}
    assert reeval_rerun.steady(table.drop(columns="bin"))["value"].tolist() == [1.0, 2.0, 4.0]
