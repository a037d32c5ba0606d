"""A twin with a hierarchy of labels: closed, and its marginals those of its draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.refused import damaged
from xcrepro.core import propensity
from xcrepro.models import twin as module
from xcrepro.models.kernels import twin as kernels
from xcrepro.models.twin import twin


@pytest.fixture(scope="module")
def tree():
    return twin("eurlex-4k", scale=0.1, hierarchy=True)


def test_parents_are_labels_in_trees(tree):
    parents = tree.parents
    assert parents.dtype == np.int32
    assert parents.shape == (tree.train.Y.shape[1],)
    above = propensity.ancestors(parents, parents.size)  # raises for circles
    assert (parents >= 0).mean() > 0.3
    assert (np.bincount(above.indices, minlength=parents.size) >= 5).sum() > 20


def test_the_complete_truth_is_closed_and_its_marginals_too(tree):
    below = np.flatnonzero(tree.parents >= 0)
    for split in (tree.train, tree.test):
        complete, eta = split.Y_complete.toarray(), split.marginals.toarray()
        assert (complete[:, below] <= complete[:, tree.parents[below]]).all()
        assert (eta[:, below] <= eta[:, tree.parents[below]] * (1 + 1e-6)).all()
        assert (split.Y_complete < split.Y).nnz == 0
    observed = tree.train.Y.toarray()
    assert (observed[:, below] > observed[:, tree.parents[below]]).any()


def test_draws_have_their_probability_alone_and_below_their_parent():
    """One point, many times: 0 above 1 above 2, 0 above 3, 4 a root."""
    n, parents = 40_000, np.array([-1, 0, 1, 0, -1], np.int32)
    p = np.array([0.7, 0.5, 0.2, 0.3, 0.4])
    labels, eta = np.tile(np.arange(5, dtype=np.int32), (n, 1)), np.tile(p.astype(np.float32), (n, 1))
    propensities = np.array([0.9, 0.5, 0.7, 0.95, 0.6])
    observed, relevant = np.empty((n, 5), np.bool_), np.empty((n, 5), np.bool_)
    kernels.draw_below_parents(0, n, 5, labels, eta, parents, module._depth(parents), propensities, observed, relevant)
    for drawn, chance in ((relevant, p), (observed, p * propensities)):
        assert np.all(np.abs(drawn.mean(0) - chance) <= 4 * np.sqrt(chance * (1 - chance) / n))
    for label, above in enumerate(parents):
        if above >= 0:
            assert (relevant[:, label] <= relevant[:, above]).all()
            # Whether a relevant label is observed does not depend on what is below it.
            given_child = observed[relevant[:, label], above]
            q = propensities[above]
            assert abs(given_child.mean() - q) <= 4 * np.sqrt(q * (1 - q) / given_child.size)


@st.composite
def rows(draw):
    n_labels = draw(st.integers(2, 9))
    parents = np.array([draw(st.integers(-1, l - 1)) for l in range(n_labels)], np.int32)
    chosen = sorted(draw(st.sets(st.integers(0, n_labels - 1), min_size=1)))
    logits = [draw(st.floats(-5, 5, width=32)) for _ in chosen]
    return parents, np.array([chosen], np.int32), np.array([logits], np.float32)


@hypothesis_settings(deadline=None, max_examples=100)
@given(rows())
def test_lifted_log_odds_against_recursion(row):
    parents, labels, logits = row
    lifted, shift = np.empty_like(logits), np.linspace(-1, 1, parents.size)
    kernels.lift_parents(0, 1, labels, logits, shift, parents, -1000.0, lifted)
    own = {l: np.float32(np.float64(z) + shift[l]) for l, z in zip(labels[0], logits[0], strict=True)}

    def possible(label):
        return label == -1 or (label in own and possible(parents[label]))

    def highest(label):
        return max([own[label], *(highest(child) for child in own if parents[child] == label)])

    assert lifted[0].tolist() == [highest(l) if possible(l) else -1000.0 for l in labels[0]]


@hypothesis_settings(deadline=None, max_examples=100)
@given(st.data())
def test_the_nearest_label_above_that_is_kept(data):
    n = data.draw(st.integers(1, 9))
    parents = np.array([data.draw(st.integers(-1, l - 1)) for l in range(n)], np.int32)
    kept = np.array(data.draw(st.permutations(range(n))))[: data.draw(st.integers(1, n))]

    def up(label):
        above = parents[label]
        return -1 if above < 0 else list(kept).index(above) if above in kept else up(above)

    found = module._above(parents, kept)
    assert found.dtype == np.int32
    assert found.tolist() == [up(label) for label in kept]
    depth = module._depth(parents)
    assert all(depth[l] == (0 if parents[l] < 0 else depth[parents[l]] + 1) for l in range(n))


def test_parents_are_dealt_from_the_frequent_with_room_left():
    frequency = np.sort(np.random.default_rng(0).pareto(1, 60) + 1)[::-1]
    topic = np.arange(60, dtype=np.int32) % 3
    by_topic, starts = np.argsort(topic, kind="stable").astype(np.int32), np.array([0, 20, 40, 60])
    parents, follow, own = np.empty(60, np.int32), np.empty(60), np.empty(60)
    kernels.deal_companions(0, starts, by_topic, frequency, 1.0, 3.0, 0.8, 0.3, parents, follow, own)
    below = np.flatnonzero(parents >= 0)
    assert below.size > 10
    assert (topic[below] == topic[parents[below]]).all()
    assert (frequency[parents[below]] >= 3 * frequency[below]).all()
    brought = np.bincount(parents[below], 0.8 * frequency[below], 60)
    np.testing.assert_allclose(own, frequency - brought)
    assert (own >= 0.3 * frequency).all()


def test_it_is_told_apart_and_off_by_default(tree):
    plain = twin("eurlex-4k", scale=0.02)
    assert plain.parents is None
    assert plain.name == "eurlex-4k@0.02-seed0" == twin("eurlex-4k", scale=0.02, hierarchy=False).name
    assert tree.name == "eurlex-4k@0.1-seed0-hierarchy"


def test_the_catalogue_can_ask_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    (tmp_path / "mine").mkdir()
    lines = (
        'name = "mine"\n[expected]\nn_train = 600\nn_test = 200\nn_labels = 80\navg_labels_per_point = 3.0\n[twin]\n'
    )
    (tmp_path / "mine" / "dataset.toml").write_text(lines + "hierarchy = true\n")
    assert twin("mine").parents is not None
    assert twin("mine", hierarchy=False).parents is None
    (tmp_path / "mine" / "dataset.toml").write_text(lines + "hierarchy = 1\n")
    with damaged("dataset.toml", match="hierarchy = 1"):
        twin("mine")
