"""What the reliability items compute: by hand, or against a slow way that shares nothing with it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import binom
from sklearn.isotonic import IsotonicRegression

from xcrepro.errors import DataError
from xcrepro.metrics import ranking
from xcrepro.predictions import TopK, read_calibration_npz
from xcrepro.repro import calibration_plots as plots


def data(scores, hits) -> tuple[SimpleNamespace, TopK]:
    """A dataset and predictions of one label a point, label 0 where it is relevant, with these scores and hits."""
    hits = np.asarray(hits, float)
    Y = csr_matrix(np.column_stack([hits, 1 - hits]))
    ids = np.zeros((len(hits), 1), np.int32)
    return SimpleNamespace(test=SimpleNamespace(Y=Y)), TopK(ids, np.asarray(scores, np.float32)[:, None], 2)


@pytest.fixture
def two_bins():
    """Ten points with score 0.95, five of them hits, and ten with 0.15, one of them a hit; alternating."""
    scores = np.tile([0.95, 0.15], 10)
    hits = np.zeros(20)
    hits[[0, 2, 4, 6, 8, 1]] = 1
    return data(scores, hits)


@pytest.fixture
def many():
    """300 points, 6 labels, three places each; scores too high."""
    rng = np.random.default_rng(3)
    chance = rng.random((300, 6))
    Y = csr_matrix((rng.random((300, 6)) < chance**2).astype(np.float32))
    top = TopK.from_scores(chance, 3)
    return SimpleNamespace(test=SimpleNamespace(Y=Y)), top


def test_the_bins_of_a_case_by_hand(two_bins):
    ds, top = two_bins
    found = plots.curves(ds, {"a": top}, ks=(1,)).query("state == 'before'").set_index("bin")
    assert found["share"].tolist() == found["weight"].tolist() == [0, 50, 0, 0, 0, 0, 0, 0, 0, 50]
    np.testing.assert_allclose(found.loc[[1, 9], "confidence"], [0.15, 0.95], rtol=1e-6)
    np.testing.assert_allclose(found.loc[[1, 9], "accuracy"], [0.1, 0.5])
    assert found.loc[[0, 2, 8], "accuracy"].isna().all()
    # ten fair draws of 0.95 and of 0.15: the two-sided 95 % intervals of the binomial law
    np.testing.assert_allclose(found.loc[9, ["low", "high"]].astype(float), binom.ppf([0.025, 0.975], 10, 0.95) / 10)
    np.testing.assert_allclose(found.loc[1, ["low", "high"]].astype(float), binom.ppf([0.025, 0.975], 10, 0.15) / 10)


def test_a_score_on_an_edge_counts_left_in_the_histogram_and_right_in_the_curve():
    ds, top = data([0.5, 0.5, 0.25, 0.75], [1, 0, 0, 1])
    tops = {"a": top}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots.calibrated, "before_after", lambda ds, tops, k: {name: (t, t) for name, t in tops.items()})
        found = plots.curves(ds, tops, ks=(1,)).query("state == 'after'").set_index("bin")
    assert found.loc[[4, 5], "share"].tolist() == [0, 50]
    assert found.loc[[4, 5], "weight"].tolist() == [50, 0]


def test_the_summary_of_a_case_by_hand(two_bins):
    ds, top = two_bins
    row = plots.summary(ds, {"a": top}, ks=(1,)).iloc[0]
    assert row["mean score"] == pytest.approx(55)
    assert row["hit rate"] == pytest.approx(30)
    assert row["ECE"] == pytest.approx(25)  # half of 45 and half of 5, both promising too much
    assert (row["over"], row["under"]) == (pytest.approx(25), 0)


def test_after_is_what_scikit_learn_gives_fold_by_fold(many):
    ds, top = many
    k = 2
    scores = top.scores[:, :k].astype(float)
    hits = np.array([[ds.test.Y[i, label] for label in row] for i, row in enumerate(top.ids[:, :k])])
    fitted = np.empty_like(scores)
    for rows in np.array_split(np.arange(300), 10):
        rest = np.setdiff1d(np.arange(300), rows)
        model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores[rest].ravel(), hits[rest].ravel())
        fitted[rows] = model.predict(scores[rows].ravel()).reshape(-1, k)
    bins = np.minimum((fitted.astype(np.float32) * np.float32(10)).astype(int), 10)  # 1 has a bin of its own
    error = sum(
        abs((fitted - hits)[bins == b].sum()) for b in range(11)
    ) / fitted.size  # fmt: skip
    assert plots.summary(ds, {"a": top}, ks=(k,))["after"][0] == pytest.approx(100 * error, rel=1e-4)
    state = plots.curves(ds, {"a": top}, ks=(k,)).query("state == 'after'")
    assert (state["confidence"].fillna(0) * state["weight"]).sum() / 100 == pytest.approx(fitted.mean(), rel=1e-5)


def test_models_keep_their_order_and_k_goes_up_within(many):
    ds, top = many
    found = plots.summary(ds, {"z": top, "a": top}, ks=(1, 3))
    assert list(zip(found["model"], found["k"], strict=True)) == [("z", 1), ("z", 3), ("a", 1), ("a", 3)]


def test_the_floor_is_the_expected_error_of_right_scores():
    n, p = 40, 0.3
    hits = np.arange(n + 1)
    exact = (binom.pmf(hits, n, p) * abs(hits / n - p)).sum()
    assert plots.floor(np.full(n, p), draws=4000) == pytest.approx(exact, rel=0.05)
    assert plots.floor(np.full(n, p)) == plots.floor(np.full(n, p))
    assert plots.floor(np.full(100 * n, p)) == pytest.approx(exact / 10, rel=0.15)


def test_directions_by_hand():
    rows = [
        ("a", 8.0, 7.0, 1.0),
        ("b", 8.0, 1.0, 7.0),
        ("c", 8.0, 5.0, 3.0),
        ("d", 1.9, 1.9, 0.0),
        ("e", 2.0, 2.0, 0.0),
    ]
    found = pd.DataFrame(rows, columns=["model", "ECE", "over", "under"]).assign(k=3, floor=1.0)
    assert plots.direction(found)["k = 3"].tolist() == ["over", "under", "mixed", "fine", "over"]


def test_bins_outside_the_band_by_hand():
    bins = pd.DataFrame(
        {"accuracy": [0.5, 0.1, np.nan, 0.2], "low": [0.4, 0.2, np.nan, 0.2], "high": [0.6, 0.3, np.nan, 0.3]}
    )
    table = pd.concat([bins.assign(model="a", state=state, k=1) for state in plots.STATES])
    table.loc[(table["state"] == "after") & (table["accuracy"] == 0.1), "accuracy"] = 0.25
    found = plots.outside(table)
    assert found.iloc[0].tolist() == ["a", "1 of 3", "0 of 3"]


# ---------------------------------------------------------------- errors against precision


def test_precision_is_that_of_the_ranking_and_does_not_move(many):
    ds, top = many
    found = plots.against_precision({"toy": (ds, {"a": top})}, ks=(1, 3))
    expected = 100 * ranking.precision(ds.test.Y, top, (1, 3))
    for k, value in zip((1, 3), expected, strict=True):
        assert set(found[found["k"] == k]["P"]) == {value}
    assert plots.moved(found) == 0.0
    assert len(found) == 2 * 4 * 2
    found.loc[found.index[-1], "P"] += 0.25
    assert plots.moved(found) == pytest.approx(0.25)


def test_errors_beside_each_other_by_hand():
    rows = [
        (k, "toy", "a", 50.0 + k, metric, variant, k + place + (10 if variant == "none" else 0))
        for k in (1, 3) for place, metric in enumerate(("ECE", "Brier")) for variant in ("none", "isotonic")
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["k", "dataset", "method", "P", "metric", "variant", "value"])
    found = plots.errors_beside(table)
    assert found.columns.tolist() == [
        "dataset", "method", "k", "P", "ECE before", "ECE after", "Brier before", "Brier after",
    ]  # fmt: skip
    assert found.iloc[1].tolist() == ["toy", "a", 3, 53.0, 13, 3, 14, 4]


def test_the_figure_says_the_largest_errors(many):
    ds, top = many
    found = plots.against_precision({"toy": (ds, {"a": top, "b": top})}, ks=(1,))
    ece = found[found["metric"] == "ECE"].groupby("variant")["value"].max()
    text = plots.plot_precision(found, 1).get_suptitle()
    assert f"{ece['none']:.0f} %" in text
    assert f"{ece['isotonic']:.1f} %" in text


# ---------------------------------------------------------------- files


def test_a_file_written_by_hand_is_the_interchange_format(many, tmp_path):
    ds, top = many
    Y = ds.test.Y.tocoo()
    plots.write_by_hand(tmp_path / "a.npz", top.scores, top.ids, np.column_stack([Y.row, Y.col]))
    back, truth = read_calibration_npz(tmp_path / "a.npz", 6)
    assert np.array_equal(back.ids, top.ids)
    assert np.array_equal(back.scores, top.scores)
    assert (truth != ds.test.Y).nnz == 0


def test_files_of_all_three_kinds_give_the_numbers_from_memory(many, capsys):
    ds, top = many
    tops = {"by hand": top, "theirs": top, "ours": top}
    back = plots.from_files(ds, tops, k=3)
    assert "by hand.npz" in capsys.readouterr().out
    assert list(back) == list(tops)
    found = plots.calibrated.errors(ds, back, ks=plots.ranks(3), metrics=("P", "ECE", "NLL"))
    assert plots.detour(ds, tops, found, 3) == 0.0
    assert np.isnan(plots.detour(ds, {}, found, 3))
    found.loc[4, "after"] += 1e-6
    assert plots.detour(ds, tops, found, 3) == pytest.approx(1e-6)
    assert plots.detour(ds, tops | {"more": top}, found, 3) == np.inf


def test_a_file_in_another_order_is_refused(many, tmp_path):
    ds, top = many
    turned = TopK(top.ids[::-1], top.scores[::-1], 6)
    turned.to_calibration_npz(tmp_path / "a.npz", ds.test.Y[::-1])
    with pytest.raises(DataError, match="other labels for test row"):
        plots.from_files(ds, {}, str(tmp_path), 3)


def test_the_printed_strategies():
    found = plots.strategies().set_index(["dataset", "method"])
    assert found.loc[("EURLex-4K", "LightXML")].tolist() == [10.59, 13.79, 13.28]
    assert found.loc[("Amazon-670K", "CascadeXML")].tolist() == [15.63, 15.06, 14.54]
    assert len(found) == 8


def test_the_figure_counts_rising_curves():
    table = pd.DataFrame(
        {"model": ["a", "a", "b", "b"], "k": [1, 2, 1, 2], "before": [1.0, 2.0, 3.0, 1.0], "after": [0.1] * 4}
    )
    assert "rises in 1 of 2 models" in plots.plot_by_k(table).axes[0].get_title(loc="left")


def test_the_title_of_figure_2_follows_its_columns(many):
    ds, top = many
    lower = TopK(top.ids, top.scores * np.float32(0.5), 6)
    tops = {"a": top, "b": lower}
    found = plots.summary(ds, tops, ks=(3,)).set_index("model")
    fig = plots.plot_effects(plots.curves(ds, tops, ks=(3,)), found.reset_index(), ["b", "a"])
    assert f"{found.loc['b', 'ECE']:.1f}, {found.loc['a', 'ECE']:.1f} % before" in fig.get_suptitle()
