"""Values with their errors, and paired differences: bootstraps by hand, planted errors of runs, what intervals promise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal
from scipy import stats

import xcrepro as xc
from benchmarks import intervals
from tests import naive
from tests.refused import refused
from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics import registry, replicates

m = xc.metrics
AT_5 = "PSP", "micro-F1", "macro-F1", "coverage", "coverage (test)", "ECE", "NLL", "binned macro-F1"
MIXED = ("P@1", *(f"{name}@5" for name in AT_5))


class Small:
    """120 rows and 60 labels, three sets of predictions, weights."""

    def __init__(self) -> None:
        self.Y, (self.good, self.bad) = intervals.population(120, 60, seed=2)
        self.third = intervals.population(120, 60, seed=3)[1][0]
        self.trained = self.Y.getnnz(axis=0)
        self.weights = xc.propensity.inverse(self.trained + 1, 1000, 0.55, 1.5)
        hierarchy = xc.Hierarchy.from_pairs([(label, 60 + label // 4) for label in range(60)], 60)
        self.about = {"inverse_propensity": self.weights, "label_counts": self.trained, "hierarchy": hierarchy}
        self.truth = [set(row.indices.tolist()) for row in self.Y]
        self.tops = {"good": self.good, "bad": self.bad, "third": self.third}

    def rows(self, top: xc.TopK) -> list[list[int]]:
        return [[label for label in row if label >= 0] for row in top.ids.tolist()]


@pytest.fixture(scope="module")
def small():
    return Small()


# ---------------------------------------------------------------- one set of predictions


def test_every_metric_and_family_goes_through_every_door(small):
    """Value, interval, several trainings and differences agree; ``coverage (reachable)`` is slow in parts: k = 1."""
    names = [*registry.METRICS, *registry.FAMILIES]
    about = small.about | {"n_relevant": small.trained[: len(small.truth)].size * np.ones(120)}
    for asked, ks in (
        ([name for name in names if name != "coverage (reachable)"], (1, 5)),
        (["coverage (reachable)"], 1),
    ):
        plain, other = (xc.evaluate(small.Y, top, ks, metrics=asked, **about) for top in (small.good, small.bad))
        drawn = {"metrics": asked, **about, "n_resamples": 20}
        found = xc.evaluate(small.Y, small.good, ks, **drawn, confidence_level=0.9)
        assert list(found) == ["metric", "k", "value", "stderr", "low", "high"]
        assert_frame_equal(found[["metric", "k", "value"]], plain, check_exact=True)
        assert found.notna().all().all()
        assert (found["stderr"] >= 0).all()
        assert (found["low"] <= found["high"]).all()
        still = set(found["metric"][found["stderr"] == 0])
        assert still <= {"pairs", "macro-F1 (0)", "F (printed)", "ECE under", "ECE max"}, still
        runs = xc.evaluate(small.Y, {"both": [small.good, small.bad]}, ks, **drawn, confidence_level=0.9)
        both = (plain["value"] + other["value"]) / 2
        np.testing.assert_allclose(runs["value"], both, rtol=1e-12, atol=1e-15)
        assert runs["stderr runs"].notna().all()
        pairs = xc.compare(small.Y, {"good": small.good, "bad": small.bad}, asked, ks, **about, n_resamples=20)
        assert pairs["value"].tolist() == (plain["value"] - other["value"]).tolist()
        assert pairs["stderr"].notna().all()


@pytest.fixture
def many(monkeypatch):
    """So many rows that none are swapped."""
    monkeypatch.setattr(replicates, "FEW_ROWS", 0)
    monkeypatch.setattr(replicates, "FEW_DIFFER", -1)


def test_intervals_hold_the_truth_in_most_test_sets():
    """Of 100 test sets of 250 rows from one population; the truth is the mean over 120 more."""
    size, n, names = 8000, 250, ["P@1", "PSP@5", "macro-F1@5", "coverage@5", "unique labels@1"]
    Y, (one, other) = intervals.population(size, 150)
    weights = xc.propensity.inverse(Y.getnnz(axis=0), size, 0.55, 1.5)
    rng = np.random.default_rng(8)

    def draw() -> tuple:
        rows = rng.integers(size, size=n)
        return Y[rows], {"one": one.rows(rows), "other": other.rows(rows)}

    how = {"metrics": names, "inverse_propensity": weights}
    values = np.mean([xc.evaluate(*draw(), **how)["value"].to_numpy().reshape(2, 5) for _ in range(120)], axis=0)
    held, differ = np.zeros((2, 5)), np.zeros(5)
    for _ in range(100):
        Y_here, tops = draw()
        found = xc.evaluate(Y_here, tops, **how, confidence_level=0.95, n_resamples=100)
        held += (found["low"].le(values.ravel()) & found["high"].ge(values.ravel())).to_numpy().reshape(2, 5)
        pair = xc.compare(Y_here, tops, n_resamples=100, **how)
        differ += pair["low"].le(values[0] - values[1]) & pair["high"].ge(values[0] - values[1])
    share = np.vstack([held, differ]) / 100
    assert (share >= 0.9).all(), share
    assert 0.93 < share.mean() < 0.97, share


# ---------------------------------------------------------------- models and runs


def test_the_error_of_runs_is_split(small):
    """Each part by hand, then both together; a model with one run has none of the second."""
    runs = [small.good, small.bad, small.third]
    how = {"metrics": ["P@1", "PSP@5", "coverage@5"], "confidence_level": 0.9, "n_resamples": 100, **small.about}
    found = xc.evaluate(small.Y, {"three": runs, "one": small.good}, **how)
    plain = xc.evaluate(small.Y, {"three": runs, "one": small.good}, metrics=how["metrics"], **small.about)
    assert_frame_equal(found[list(plain)], plain, check_exact=True)
    values = np.array([xc.evaluate(small.Y, top, **how)["value"] for top in runs])
    three, one = (found[found["model"] == name].reset_index(drop=True) for name in ("three", "one"))
    np.testing.assert_allclose(three["value"], values.mean(axis=0))
    np.testing.assert_allclose(three["stderr runs"], values.std(axis=0, ddof=1) / 3**0.5)
    np.testing.assert_allclose(three["stderr"], np.hypot(three["stderr points"], three["stderr runs"]))
    rows = [small.rows(top) for top in runs]
    drawn = []
    for s in range(100):
        which = np.random.default_rng([0, s]).integers(120, size=120)
        truth = [small.truth[i] for i in which]
        drawn.append(np.mean([naive.precision(truth, [own[i] for i in which], 1) for own in rows]))
    assert three["stderr points"][0] == pytest.approx(np.std(drawn, ddof=1), rel=1e-9)
    # Satterthwaite's degrees of freedom: points count as known, runs have two; ends of halves lie on both sides alike.
    degrees = 2 * (three["stderr"] / three["stderr runs"]) ** 4
    reach = stats.t(degrees).ppf(0.95) * three["stderr"]
    assert three["high"][2] == pytest.approx(min(three["value"][2] + reach[2], 1.0), rel=1e-8)
    assert three["low"][2] == pytest.approx(max(three["value"][2] - reach[2], 0.0), rel=1e-8)
    stretch = reach[0] / (stats.norm.ppf(0.95) * three["stderr points"][0])
    low, high = np.quantile(drawn, [0.05, 0.95])
    assert three["low"][0] == pytest.approx(three["value"][0] - stretch * (three["value"][0] - low), rel=1e-8)
    assert three["high"][0] == pytest.approx(three["value"][0] + stretch * (high - three["value"][0]), rel=1e-8)
    assert one["stderr runs"].isna().all()
    assert (one["stderr"] == one["stderr points"]).all()
    alone = xc.evaluate(small.Y, small.good, **how)
    assert_frame_equal(one[list(alone)], alone, check_exact=True)


# ---------------------------------------------------------------- comparisons


def test_differences_are_those_of_paired_bootstrap_one_by_one(small, many):
    how = {"n_resamples": 60, "seed": 2, **small.about}
    found = xc.compare(small.Y, small.tops, MIXED, **how)
    assert list(found) == ["metric", "k", "left", "right", "value", "stderr", "low", "high", "p", "p raw"]
    for pair in itertools.combinations(small.tops, 2):
        mine = found[(found["left"] == pair[0]) & (found["right"] == pair[1])]
        given = m.paired_bootstrap(small.Y, *(small.tops[name] for name in pair), metrics=MIXED, **how)
        for row, one in zip(mine.itertuples(), given, strict=True):
            if row.stderr == 0:
                assert (row.value, row.low, row.high) == (0, 0, 0)
                continue
            ends = (one.metric, one.k, one.difference, one.low, one.high)
            assert (row.metric, row.k, row.value, row.low, row.high) == ends
            assert row._10 == pytest.approx(2 * stats.norm.sf(abs(row.value / row.stderr)), rel=1e-8)
    # Rows of a metric and k stand together, its pairs in the models' order.
    assert found["left"].tolist() == ["good", "good", "bad"] * (len(found) // 3)


def test_against_one_model_it_is_always_on_the_right(small):
    how = {"metrics": ["P@1", "macro-F1@5"], "n_resamples": 40}
    found, every = xc.compare(small.Y, small.tops, against="bad", **how), xc.compare(small.Y, small.tops, **how)
    assert found["left"].tolist() == ["good", "third"] * 2
    assert set(found["right"]) == {"bad"}
    turned = every[(every["left"] == "bad") & (every["right"] == "third")].reset_index(drop=True)
    mine = found[found["left"] == "third"].reset_index(drop=True)
    assert (mine["value"] == -turned["value"]).all()
    np.testing.assert_allclose(mine["low"], -turned["high"], rtol=1e-12)
    assert (mine["p raw"] == turned["p raw"]).all()


def test_models_that_do_not_differ_have_p_1_and_those_that_always_do_the_least_there_is(small):
    found = xc.compare(small.Y, {"a": small.good, "b": small.good}, MIXED, **small.about, n_resamples=40)
    assert (found[["value", "stderr", "low", "high"]] == 0).all().all()
    assert (found[["p", "p raw"]] == 1).all().all()
    # The mean of three runs in another order may differ in its last digit, which is no difference.
    runs = [small.good, small.bad, small.third]
    how = {"metrics": ["P@1", "macro-F1@5"], "n_resamples": 40}
    found = xc.compare(small.Y, {"a": runs, "b": runs[::-1]}, **how)
    assert np.abs(found["value"]).max() < 1e-15
    assert (found["p raw"] > 0.99).all()
    right, wrong = (xc.TopK.from_ids((np.arange(12)[:, None] + shift) % 12, n_labels=12) for shift in (0, 1))
    [one] = xc.compare(np.eye(12), {"right": right, "wrong": wrong}, "P@1").to_dict("records")
    assert (one["value"], one["high"], one["p"], one["p raw"]) == (1, 1, 2 / 2**12, 2 / 2**12)
    assert 0 < one["low"] < 1


def test_models_within_the_margin_are_alike_and_what_could_be_seen_is_said():
    """A planted difference of nothing, of less than the margin, and of more; few test points show none of them."""
    rng = np.random.default_rng(3)

    def models(n, gap):
        truth = np.zeros((n, 4))
        truth[:, 0] = 1
        first = rng.random(n) < 0.5
        second = np.where(rng.random(n) < 2 * gap, True, first)  # lifts half of these rows
        return truth, {
            name: xc.TopK.from_ids(np.where(right, 0, 1)[:, None], n_labels=4)
            for name, right in (("first", first), ("second", second))
        }

    for n, gap, alike in ((20_000, 0.0, True), (20_000, 0.005, True), (20_000, 0.05, False), (100, 0.02, False)):
        truth, given = models(n, gap)
        (row,) = xc.compare(truth, given, "P@1", margin=0.02, n_resamples=200).itertuples()
        assert row.alike == alike, (n, gap, row)
        assert row.detectable == pytest.approx((1.959964 + 0.841621) * row.stderr)
    assert row.p > 0.05  # of the last: the points are too few to tell, and the table says so
    assert row.detectable > 0.02
    with pytest.raises(ArgumentError, match="margin"):
        xc.compare(truth, given, "P@1", margin=-0.01)
    assert not {"alike", "detectable"} & {*xc.compare(truth, given, "P@1")}


def test_runs_of_both_sides_count_in_a_difference(small):
    models = {"two": [small.good, small.third], "three": [small.bad, small.good, small.third], "one": small.bad}
    found = xc.compare(small.Y, models, "P@1", n_resamples=100)
    assert list(found)[8:] == ["stderr points", "stderr runs", "p", "p raw"]
    spread = {}
    for name, runs in models.items():
        values = [float(m.precision(small.Y, top, 1)[0]) for top in ([runs] if name == "one" else runs)]
        spread[name] = (np.var(values, ddof=1) / len(values), len(values) - 1) if len(values) > 1 else (0.0, 1)
    for row in found.to_dict("records"):
        (a, dof_a), (b, dof_b) = spread[row["left"]], spread[row["right"]]
        assert row["stderr runs"] == pytest.approx((a + b) ** 0.5)
        assert row["stderr"] == pytest.approx(np.hypot(row["stderr points"], row["stderr runs"]))
        degrees = row["stderr"] ** 4 / (a**2 / dof_a + b**2 / dof_b)
        assert row["p raw"] == pytest.approx(2 * stats.t(degrees).sf(abs(row["value"]) / row["stderr"]), rel=1e-8)


def test_a_metric_without_value_in_a_part_has_no_error_and_is_not_counted(small):
    """Predictions for one row only: most quarters have no pair of which ECE could be made."""
    ids = np.full((120, 1), -1)
    ids[0] = 3
    few = xc.TopK(ids.astype(np.int32), np.where(ids < 0, -np.inf, 0.5).astype(np.float32), 60)
    found = xc.evaluate(small.Y, few, metrics=["ECE@1", "P@1"], confidence_level=0.95, n_resamples=40)
    assert found.loc[0, ["stderr", "low", "high"]].isna().all()
    assert found.loc[1].notna().all()
    pair = xc.compare(small.Y, {"few": few, "good": small.good}, ["ECE@1", "P@1"], n_resamples=40)
    assert pair.loc[0, ["stderr", "low", "high", "p", "p raw"]].isna().all()
    assert pair.loc[1, "p"] == pair.loc[1, "p raw"]


# ---------------------------------------------------------------- bits, and what is refused


def test_the_same_bits_for_any_threads_stretches_and_company(small, monkeypatch):
    """Draws are worked out in stretches; smECE's transform of several at once may round by how many they are."""
    models, found = {"good": small.good, "two": [small.bad, small.third], "bad": small.bad}, []
    for count, held in (("1", 2**22), ("3", 2**22), ("2", 500)):
        monkeypatch.setenv("XCREPRO_THREADS", count)
        monkeypatch.setattr(replicates, "_HELD", held)
        how = {"metrics": MIXED, "n_resamples": 40, **small.about}
        found.append((xc.evaluate(small.Y, models, **how, confidence_level=0.95), xc.compare(small.Y, models, **how)))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert_frame_equal(one, two, check_exact=True)
    without = xc.compare(small.Y, {name: models[name] for name in ("good", "two")}, **how).drop(columns="p")
    both = found[0][1].query("left == 'good' and right == 'two'").drop(columns="p").reset_index(drop=True)
    assert_frame_equal(both, without, check_exact=True)
    seeds = [
        xc.evaluate(small.Y, small.good, metrics="P@1", confidence_level=0.95, seed=seed)["stderr"][0]
        for seed in range(4)
    ]
    assert len({*seeds}) > 1


E8 = np.eye(8)
T8 = xc.TopK.from_ids(np.arange(8)[:, None], n_labels=8)
TWO = {"mine": T8, "theirs": T8}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: xc.compare(E8, TWO, "P@1", against="thiers"), r"against must be one of .* did you mean 'theirs'\?"),
        (lambda: xc.compare(E8, {"mine": T8}, "P@1"), "models must be two or more to be compared; got only 'mine'"),
        (lambda: xc.compare(E8, {"a": T8, "b": []}, "P@1"), "got an empty list for model 'b'"),
        (lambda: xc.compare(E8, TWO | {"short": T8.rows([0])}, "P@1"), "8 rows of Y; got 1 rows, model 'short'"),
        (
            lambda: xc.compare(E8[:7], {k: v.rows(range(7)) for k, v in TWO.items()}, "P@1"),
            "at least 8 rows for intervals",
        ),
        (
            lambda: xc.evaluate([(E8, T8)], ks=1, confidence_level=0.95),
            "confidence_level must go with a truth and its predictions",
        ),
        (lambda: xc.evaluate(E8, [T8, T8], 1, confidence_level=0.95), "top must be a TopK; got list"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


# ---------------------------------------------------------------- what the arithmetic can tell


@pytest.mark.parametrize("left_over", [5.6e-17, -1.1e-16])
def test_a_difference_of_sums_in_another_order_is_none(small, many, monkeypatch, left_over):
    """It has error 0, so a p of 0 would make it clear; without the rule it is."""
    points = replicates.Replicates.of_points

    def planted(self):
        found = points(self)
        value, error, low, high, p = (np.array(part) for part in found)
        value[2:], error[2:], low[2:], high[2:], p[:] = left_over, 0.0, left_over, left_over, 0.0
        return replicates.Estimates(value, error, low, high, p)

    monkeypatch.setattr(replicates.Replicates, "of_points", planted)
    both = {"one": small.good, "other": small.good}
    row = xc.compare(small.Y, both, "P@1").iloc[0]
    assert (row["value"], row["stderr"], row["low"], row["high"], row["p raw"], row["p"]) == (0, 0, 0, 0, 1, 1)
    monkeypatch.setattr(replicates, "ROUNDING", 0.0)
    assert xc.compare(small.Y, both, "P@1")["p"].iloc[0] == 0


def test_a_model_that_predicts_nothing_is_not_compared(small):
    """It would lose with any p that one likes, and may only have failed to run."""
    nothing = xc.TopK.from_ids(np.full(small.bad.ids.shape, -1), n_labels=small.bad.n_labels)
    for runs in (nothing, [small.good, nothing]):
        with refused("models", match="'ill'"):
            xc.compare(small.Y, {"good": small.good, "ill": runs}, "P@1")


@pytest.mark.parametrize(
    ("runs", "spread", "least", "most"), [(1, 0, 0, 0.12), (3, 0, 0, 0.05), (3, 1, 0, 0.12), (1, 1, 0.5, 1)]
)
def test_how_often_equal_models_are_called_different(runs, spread, least, most):
    """At 5 %: fewer with several runs, because luck with rows is in both parts of the error; one run knows no trainings."""
    n, alarms = 200, 0

    def trained(rng, hard):
        hit = rng.random(n) < 1 / (1 + np.exp(-(hard + spread * rng.normal())))
        return xc.TopK.from_ids(np.where(hit, np.arange(n), (np.arange(n) + 1) % n)[:, None], n_labels=n)

    for seed in range(80):
        rng = np.random.default_rng([seed, runs, spread])
        hard = rng.normal(size=n)
        models = {name: [trained(rng, hard) for _ in range(runs)] for name in ("one", "other")}
        alarms += xc.compare(np.eye(n), models, "P@1", n_resamples=100)["p"][0] < 0.05
    assert least <= alarms / 80 <= most


# ---------------------------------------------------------------- few rows


def right_in(rows, n):
    """A model whose first label is right in these rows."""
    return xc.TopK.from_ids(np.where(np.isin(np.arange(n), rows), 0, 1)[:, None], n_labels=3)


@pytest.mark.parametrize("n", [8, 20, 50, 200, 1000])
@pytest.mark.parametrize(("wins", "losses"), [(5, 0), (6, 0), (7, 0), (8, 0), (6, 1), (3, 3), (7, 1)])
def test_p_of_few_rows_that_differ_is_mcnemars(n, wins, losses):
    """The exact binomial test on the rows where two models differ, whatever the others are."""
    if wins + losses > n:
        return
    Y = np.zeros((n, 3))
    Y[:, 0] = 1
    models = {"a": right_in(range(wins), n), "b": right_in(range(wins, wins + losses), n)}
    [row] = xc.compare(Y, models, "P@1").to_dict("records")
    exact = min(2 * sum(math.comb(wins + losses, i) for i in range(losses + 1)) / 2 ** (wins + losses), 1.0)
    assert row["p"] == pytest.approx(exact)
    assert (row["low"] <= 0 <= row["high"]) == (exact > 0.05)
    assert row["low"] < row["value"] <= row["high"]
    for metric in ("macro-F1@1", "coverage@1"):
        [row] = xc.compare(Y, models, metric, n_resamples=200).to_dict("records")
        assert row["p"] >= min(2.0 ** (1 - wins - losses), 1)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(8, 10))
def test_p_of_few_rows_is_that_of_all_ways_to_swap_them(seed, n):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, 6)) < 0.4).astype(float)
    Y[:, 0] = 1
    tops = [xc.TopK.from_scores(np.round(rng.random((n, 6)), 1), 4) for _ in range(2)]
    weights = rng.random(6) + 1
    asked = ["nDCG@3", "PSP@3", "micro-F1@2", "macro-F1@2", "coverage@3"]

    def values(choice):
        ids, scores = (
            np.array([getattr(tops[one], part)[row] for row, one in enumerate(choice)]) for part in ("ids", "scores")
        )
        return xc.State(3, asked, weights).update(Y, xc.TopK(ids, scores, 6)).compute()["value"].to_numpy()

    every = [values(choice) for choice in itertools.product((0, 1), repeat=n)]
    differences = np.array(every) - np.array(every[::-1])
    expected = (np.abs(differences) >= np.abs(differences[0]) - 1e-12).mean(axis=0)
    found = xc.compare(Y, {"a": tops[0], "b": tops[1]}, asked, inverse_propensity=weights)
    np.testing.assert_allclose(found["value"], differences[0], atol=1e-12)
    told = found["value"].abs() > 1e-12
    np.testing.assert_allclose(found["p raw"][told], expected[told])


@pytest.mark.parametrize(("hits", "low", "high"), [(8, 0.025 ** (1 / 8), 1.0), (0, 0.0, 1 - 0.025 ** (1 / 8))])
def test_what_all_of_few_rows_say_has_the_exact_interval(hits, low, high):
    Y = np.zeros((8, 3))
    Y[:, 0] = 1
    found = xc.evaluate(Y, right_in(range(hits), 8), 1, metrics=["P", "macro-F1"], confidence_level=0.95)
    assert found["low"][0] == pytest.approx(low)
    assert found["high"][0] == pytest.approx(high)
    assert found["stderr"][0] > 0


@pytest.mark.parametrize("metric", ["P", "coverage", "ECE"])
def test_the_error_of_a_mean_of_cells_knows_that_rows_are_shared(small, metric):
    """Of one cell it is that of compare; cells that are the same say no more than one, and opposite ones nothing."""
    one, turned = (small.good, small.bad, 3), (small.bad, small.good, 3)
    of_one = xc.compare(small.Y, {"a": small.good, "b": small.bad}, metric, 3).iloc[0]
    spread = replicates.mean_difference(small.Y, [one], metric)
    assert spread == pytest.approx((of_one["value"], of_one["stderr"]))
    assert replicates.mean_difference(small.Y, [one] * 3, metric) == pytest.approx(spread)
    assert replicates.mean_difference(small.Y, [one, turned], metric) == pytest.approx((0, 0), abs=1e-12)


# ---------------------------------------------------------------- metrics of one's own


def hits_by_row(Y, top):
    return (np.take_along_axis(Y.toarray(), np.maximum(top.ids, 0), axis=1) * (top.ids >= 0)).mean(axis=1)


EXTRA = {"mine": hits_by_row, "covered": lambda Y, top: len({*top.ids[hits_by_row(Y, top) > 0].ravel()}) / Y.shape[1]}


def test_a_function_by_row_is_judged_as_the_metric_of_the_registry_that_it_is(small):
    for sure in ({}, {"confidence_level": 0.9, "n_resamples": 40}):
        found = xc.evaluate(small.Y, small.good, (1, 5), metrics=["P"], extra=EXTRA, **sure)
        assert found["metric"].tolist() == ["P", "P", "mine", "mine", "covered", "covered"]
        own = found[found["metric"] == "mine"].reset_index(drop=True)
        np.testing.assert_allclose(own.iloc[:, 2:], found[found["metric"] == "P"].iloc[:, 2:], rtol=1e-12)
    pairs = xc.compare(small.Y, small.tops, ["P@5", "mine@5", "covered@5"], extra=EXTRA, n_resamples=40).set_index(
        "metric"
    )
    np.testing.assert_allclose(
        pairs.loc["mine", ["value", "low", "high", "p raw"]].astype(float),
        pairs.loc["P", ["value", "low", "high", "p raw"]].astype(float), rtol=1e-9,
    )  # fmt: skip


def test_a_number_of_all_rows_has_the_interval_of_parts(small):
    """As coverage has, which is such a number."""

    def coverage(Y, top):
        return xc.metrics.coverage(Y, top, top.k)[0]

    about = {"metrics": "coverage@5", "confidence_level": 0.9, "n_resamples": 40, "extra": {"own": coverage}}
    found = xc.evaluate(small.Y, {"runs": [small.good, small.third], "one": small.bad}, 5, **about)
    found[["low", "high"]] = found[["low", "high"]].clip(0, 1)  # as those of the kit's own, a fraction, are
    by_name = [
        found[found["metric"] == name].drop(columns="metric").reset_index(drop=True) for name in ("coverage", "own")
    ]
    assert_frame_equal(*by_name, rtol=1e-9)
    alone = xc.evaluate(small.Y, small.good, 5, metrics=[], extra={"own": coverage})
    assert alone["value"].tolist() == xc.metrics.coverage(small.Y, small.good, 5).tolist()


@pytest.mark.parametrize(
    ("extra", "argument"),
    [
        ({"P": hits_by_row}, "extra"),
        ({"mine@5": hits_by_row}, "extra"),
        ({"mine": 3}, "extra['mine']"),
        ({"mine": lambda Y, top: [1.0, 2.0]}, "extra['mine']"),
        ({"mine": lambda Y, top: np.nan}, "extra['mine']"),
    ],
)
def test_what_is_no_metric_of_one_s_own(small, extra, argument):
    with refused(argument):
        xc.evaluate(small.Y, small.good, 5, extra=extra)
    with refused(argument):
        xc.compare(small.Y, {"a": small.good, "b": small.bad}, "P@5", extra=extra)


def test_one_s_own_needs_all_rows_and_one_order_of_ties(small):
    with refused("extra", "blocks, or no top"):
        xc.evaluate([(small.Y, small.good)], extra=EXTRA)
    with refused("extra", repr("expected")):
        xc.evaluate(small.Y, small.good, extra=EXTRA, ties="expected")
