"""Metrics over all orders of tied scores, against every permutation."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests import naive
from tests.refused import damaged
from xcrepro.core.accumulators.ties import IN_ORDER
from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics import registry

KS = (1, 2, 4)
N_LABELS = 6
WEIGHT = [1.5, 3.0, 1.0, 7.0, 2.5, 4.0]
METRICS = [
    name for name, metric in registry.METRICS.items() if metric.fold == "rows" and IN_ORDER.isdisjoint(metric.columns)
]
WEIGHTS = {"inverse_propensity": np.array(WEIGHT)}


@st.composite
def tied_rows(draw):
    """Truth and scores of a few rows, with at most five labels scored and many ties."""
    scores = st.dictionaries(st.integers(0, N_LABELS - 1), st.sampled_from([0.25, 0.5, 0.75]), max_size=5)
    rows = draw(st.lists(st.tuples(st.sets(st.integers(0, N_LABELS - 1), max_size=4), scores), min_size=1, max_size=4))
    return [y for y, _ in rows], [row for _, row in rows]


def as_given(truth, scores, k=5):
    Y = sp.csr_matrix(np.array([[label in y for label in range(N_LABELS)] for y in truth], np.float32))
    return Y, xc.TopK.from_pairs([[*row.items()] for row in scores], n_labels=N_LABELS, k=k)


def one(metric, k, **about):
    """A naive metric of one row."""
    return lambda y, ranking: metric([y], [ranking], k, **about)


@settings(max_examples=100, deadline=None)
@given(tied_rows())
def test_bounds_are_those_of_all_permutations(case):
    truth, scores = case
    Y, top = as_given(truth, scores, k=5)
    bare = functools.partial(naive.psp, weight=WEIGHT, normalize=False)
    discounted = functools.partial(naive.psndcg, weight=WEIGHT, normalize=False)
    oracles = {"P": naive.precision, "R": naive.recall, "nDCG": naive.ndcg, "F": naive.f_beta}
    oracles |= {"nDCG (ideal k)": functools.partial(naive.ndcg, ideal="k"), "P (predicted)": naive.set_precision}
    oracles |= {"abandonment": naive.abandonment, "PSP": bare, "PSP (bare)": bare}
    oracles |= {"PSnDCG": discounted, "PSnDCG (bare)": discounted}
    table = xc.evaluate(Y, top, KS, **WEIGHTS, metrics=[*oracles], ties="bounds").set_index(["metric", "k"])
    for name, oracle in oracles.items():
        for k in KS:
            below, best = len(truth), [sorted(y, key=lambda label: -WEIGHT[label]) for y in truth]
            if name in ("PSP", "PSnDCG"):
                below = sum(oracle([y], [ranking], k) for y, ranking in zip(truth, best, strict=True))
            low, mean, high, decided = naive.over_orders(truth, scores, one(oracle, k))
            row = table.loc[name, k]
            want = [value / below if below else 0.0 for value in (low, mean, high)]
            np.testing.assert_allclose(row[["lowest", "expected", "highest"]].tolist(), want, rtol=1e-9, atol=1e-12)
            assert row["decided"] == decided, (name, k)
            assert row["lowest"] - 1e-12 <= row["value"] <= row["highest"] + 1e-12


def test_expected_is_its_column_of_bounds_and_the_value_is_untouched():
    rng = np.random.default_rng(0)
    Y = (rng.random((300, 40)) < 0.1).astype(int)
    top = xc.TopK.from_scores(rng.integers(0, 9, (300, 40)) / 8, 20)
    plain = xc.evaluate(Y, top, KS, **weights_of(40), metrics=METRICS, n_relevant=Y.sum(axis=1))
    bounds = xc.evaluate(Y, top, KS, **weights_of(40), metrics=METRICS, n_relevant=Y.sum(axis=1), ties="bounds")
    expected = xc.evaluate(Y, top, KS, **weights_of(40), metrics=METRICS, n_relevant=Y.sum(axis=1), ties="expected")
    assert plain.equals(bounds[["metric", "k", "value"]])
    assert expected.value.tolist() == bounds.expected.tolist()
    assert (bounds.lowest <= bounds.expected).all()
    assert (bounds.expected <= bounds.highest).all()
    assert (bounds.decided > 100).sum() > len(bounds) / 2


def weights_of(n_labels):
    return {"inverse_propensity": np.linspace(1, 9, n_labels)}


def test_a_tie_across_the_last_place_needs_the_places_behind_it():
    Y, scores = np.array([[0, 1, 0]]), np.array([[0.5, 0.5, 0.5]])
    kept, cut = (xc.evaluate(Y, xc.TopK.from_scores(scores, k), 1, metrics="P", ties="bounds").iloc[0] for k in (3, 1))
    assert (kept.lowest, kept.expected, kept.highest, kept.decided, kept.cut) == (0, 1 / 3, 1, 1, 0)
    assert (cut.lowest, cut.expected, cut.highest, cut.decided, cut.cut) == (0, 0, 0, 0, 0)  # one place says nothing
    two = xc.evaluate(Y, xc.TopK.from_scores(scores, 2), 1, metrics="P", ties="bounds").iloc[0]
    assert (two.expected, two.decided, two.cut) == (1 / 2, 1, 1)  # the third label may tie with these


def test_models_and_their_runs_have_bounds():
    Y, a = np.array([[0, 1, 0]]), xc.TopK.from_scores(np.array([[0.5, 0.5, 0.1]]), 3)
    b = xc.TopK.from_scores(np.array([[0.5, 0.6, 0.1]]), 3)
    table = xc.evaluate(Y, {"one": a, "two": [a, b]}, 1, metrics="P", ties="bounds").set_index("model")
    assert table.loc["one", ["value", "lowest", "expected", "highest"]].tolist() == [0, 0, 0.5, 1]
    assert table.loc["two", ["value", "lowest", "expected", "highest", "decided"]].tolist() == [0.5, 0.5, 0.75, 1, 0.5]


Y, TOP = np.eye(4), xc.TopK.from_ids([[0, 1], [1, 2], [2, 3], [3, 0]], n_labels=4)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: xc.evaluate(Y, TOP, 1, ties="best"), "ties must be one of 'lowest-id', 'expected', 'bounds'"),
        (lambda: xc.evaluate(Y, TOP, 1, metrics="MRR", ties="expected"), "got MRR: these do: P, R, nDCG"),
        (lambda: xc.evaluate(Y, TOP, 1, metrics=["P", "macro-F1"], ties="bounds"), "got macro-F1"),
        (
            lambda: xc.evaluate(Y, TOP, 1, confidence_level=0.95, ties="bounds"),
            "must be 'lowest-id' with confidence_level",
        ),
        (lambda: xc.State(1, "P", n_resamples=10, ties="expected"), "must be 'lowest-id' with n_resamples"),
        (lambda: xc.State(1, "P", ties="bounds").merge(xc.State(1, "P")), "ties bounds here and lowest-id there"),
    ],
)
def test_what_cannot_be_is_named(call, said):
    with pytest.raises(ArgumentError, match=said):
        call()


def test_counts_that_cannot_be_are_refused(tmp_path):
    state = xc.State(1, "P", ties="bounds").update(Y, TOP)
    state._folds["rows"].cut = np.array([9])
    state.save(tmp_path / "odd.npz")
    with damaged("odd.npz", match="int64"):
        xc.State.load(tmp_path / "odd.npz")
