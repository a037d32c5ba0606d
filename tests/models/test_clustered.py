"""ClusterNetwork and GraphTowers: gradients against finite differences, paths, soft labels and hops by slow loops, edges."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import xcrepro as xc
from tests.models.slopes import follow_the_slope, gathered
from tests.refused import refused
from xcrepro.models import ClusterNetwork, GraphTowers, TwoTowers
from xcrepro.models.networks import clustered, graph

PARENTS = {1: [np.array([0, 1, 0, 2, 1, 2, 0])], 2: [np.array([0, 1, 1]), np.array([0, 1, 0, 2, 1, 2, 0])]}


def small_net(seed, levels, n_words=5, dim=3):
    rng = np.random.default_rng(seed)
    sizes = [int(PARENTS[levels][0].max()) + 1, *(len(one) for one in PARENTS[levels])]
    net = {"embedding": rng.normal(size=(n_words, dim)), "hidden_bias": rng.normal(size=dim)}
    for level, size in enumerate(sizes):
        net[f"output{level}"], net[f"bias{level}"] = rng.normal(size=(size, dim)), rng.normal(size=size)
    return {name: array.astype(np.float32) for name, array in net.items()}


def with_parents(net, levels):
    return net | {f"parent{level + 1}": parent for level, parent in enumerate(PARENTS[levels])}


def conditional(net, x, level):
    """Of each node of a level, given that its parent is relevant."""
    hidden = np.tanh(x @ net["embedding"].astype(float) + net["hidden_bias"])
    return 1 / (1 + np.exp(-(net[f"output{level}"].astype(float) @ hidden + net[f"bias{level}"])))


def slow_loss(net, X, T, levels, beam):
    """The mean over rows of the cross-entropy of all nodes whose parent is relevant or among the best."""
    targets = clustered._targets(sp.csr_matrix(T, dtype=np.float32), PARENTS[levels])
    total = 0.0
    for x, *relevant in zip(X, *(one.toarray().astype(float) for one in targets), strict=True):
        reach, opened = np.ones(1), np.ones(1, bool)
        for level, y in enumerate(relevant):
            parent = PARENTS[levels][level - 1] if level else np.zeros(y.size, int)
            p = conditional(net, x, level)
            looked = opened[parent]
            total -= (y * np.log(p) + (1 - y) * np.log(1 - p))[looked].sum()
            reach = p * reach[parent] * looked
            best = np.isin(np.arange(y.size), np.argsort(-reach)[:beam])
            opened, reach = best | (y > 0), reach * best  # what is only relevant crowds out nothing that is predicted
    return total / len(X)


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_the_step_follows_the_slope_of_the_loss(levels, seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((4, 5)) * (rng.random((4, 5)) < 0.7)).astype(np.float32)
    T = (rng.random((4, 7)) < 0.3) * rng.choice([0.3, 1.0], size=(4, 7))  # soft targets too
    net = small_net(seed, levels)
    targets = clustered._targets(sp.csr_matrix(T, dtype=np.float32), PARENTS[levels])
    given = with_parents(net, levels), sp.csr_matrix(X), targets, np.ones((4, 3), np.float32), 1
    got = gathered(partial(clustered.backpropagate, *given), net)
    follow_the_slope(got, lambda moved: slow_loss(moved, X, T, levels, 1), net, 1e-4, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(("kind", "levels"), [("k-means", 1), ("random", 2), ("learned", 1)])
def test_a_score_is_the_product_along_the_path(twin, kind, levels):
    model = ClusterNetwork(kind, levels=levels, max_leaf=8, beam=200, dim=6, epochs=2).fit(twin.train.X, twin.train.Y)
    net, X = model.net_, clustered.unit_rows(twin.test.X[:3]).toarray()
    depth = clustered._depth(net)
    assert depth == 1 + levels
    top = model.predict(twin.test.X[:3], 5)
    for x, ids, scores in zip(X, top.ids, top.scores, strict=True):
        p = [conditional(net, x[net["features"]], level) for level in range(depth)]
        every = np.zeros(twin.train.Y.shape[1])
        for node, label in enumerate(net["labels"]):
            every[label] = p[-1][node]
            if "share" in net:
                every[label] *= min(1, p[0] @ clustered._below(net, 1)[:, [node]].toarray().ravel())
                continue
            for level in range(depth - 1, 0, -1):
                node = net[f"parent{level}"][node]
                every[label] *= p[level - 1][node]
        best = np.sort(every)[::-1][:5]
        np.testing.assert_allclose(every[ids], best, rtol=1e-4)
        np.testing.assert_allclose(scores, best, rtol=1e-4)


@pytest.mark.parametrize("kind", ["k-means", "random", "learned"])
def test_clusters_are_none_too_large_and_differ(twin, kind):
    model = ClusterNetwork(kind, max_leaf=8, dim=6, epochs=4).fit(twin.train.X, twin.train.Y)
    sizes = np.bincount(model.net_["parent1"])
    assert sizes.max() <= 8
    assert sizes.size == model.net_["bias0"].size
    if kind == "learned":
        shares = clustered._below(model.net_, 1)
        assert np.diff(shares.indptr).max() <= 16 + 8
        assert (shares.sum(axis=1) <= 16 + 1e-4).all()
        assert 0 < shares.data.min() <= shares.data.max() <= 1
        # Every label is in its own cluster, some in others too.
        assert (shares[model.net_["parent1"], np.arange(shares.shape[1])] > 0).all()
        assert shares.nnz > shares.shape[1]


def net_with_shares(seed):
    """Three clusters, of which the first two share labels, the last has the two that are left and one of the first's."""
    net = with_parents(small_net(seed, 1), 1)
    labels = [sorted(np.flatnonzero(net["parent1"] == cluster)) for cluster in range(3)]
    labels[0] = sorted({*labels[0], *labels[1]})
    labels[2] = sorted({*labels[2], labels[1][0]})
    u = np.random.default_rng(seed).normal(size=sum(map(len, labels))).astype(np.float32)
    starts = np.cumsum([0, *map(len, labels)])
    return net | {"share": u, "share_label": np.concatenate(labels), "share_start": starts}


def slow_shares(u, net, room):
    """(clusters, labels), by the formula."""
    found = np.zeros((3, 7))
    for cluster in range(3):
        at = slice(*net["share_start"][cluster : cluster + 2])
        found[cluster, net["share_label"][at]] = np.minimum(room * np.exp(u[at]) / np.exp(u[at]).sum(), 1)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_step_of_shares_follows_the_slope_of_the_loss(seed):
    rng, room, beam = np.random.default_rng(seed), 2, 1
    X = (rng.random((4, 5)) * (rng.random((4, 5)) < 0.7)).astype(np.float32)
    T = (rng.random((4, 7)) < 0.3) * rng.choice([0.3, 1.0], size=(4, 7))
    net = net_with_shares(seed)

    def loss(moved):
        net_, total = net | moved, 0.0
        shares = slow_shares(net_["share"].astype(float), net, room)
        for x, y in zip(X, T, strict=True):
            p, own = (conditional(net_, x, level) for level in range(2))
            opened = np.isin(np.arange(3), np.argsort(-p)[:beam])
            opened[net["parent1"][y > 0]] = True
            q = np.minimum((p * opened) @ shares, 1) * own
            there = q > 0
            total -= (y * np.log(q, where=there, out=np.zeros(7)) + (1 - y) * np.log(1 - q))[there].sum()
        return total / 4

    given = net, sp.csr_matrix(X), sp.csr_matrix(T, dtype=np.float32), np.ones((4, 3), np.float32), beam, room
    got = gathered(partial(clustered.backpropagate_shares, *given), net)
    assert np.abs(got["share"]).max() > 1e-3
    follow_the_slope(got, loss, net, 1e-4, rel=2e-3, abs=2e-4)


def test_first_shares_by_counting():
    net, room = with_parents(small_net(0, 1), 1), 2
    X, T = sp.identity(5, np.float32, "csr"), sp.csr_matrix(np.eye(5, 7) + np.eye(5, 7, 2), dtype=np.float32)
    brought = np.zeros((3, 7))
    for x, y in zip(X.toarray(), T.toarray(), strict=True):
        p = conditional(net, x, 0)
        best = np.argsort(-p)[:2]
        brought[best] += p[best, None] * y
    found = net | clustered._first_shares(net, X, T, 2, room)
    got = {}
    for cluster in range(3):
        at = slice(*found["share_start"][cluster : cluster + 2])
        got |= {(cluster, label): u for label, u in zip(found["share_label"][at], found["share"][at], strict=True)}
    want = {}
    for cluster in range(3):
        for label in range(7):
            own = net["parent1"][label] == cluster
            rank = (brought[cluster] > brought[cluster, label]).sum()
            if own or (rank < room and brought[cluster, label] > 0):
                part = 1 if own else brought[cluster, label] / brought[:, label].max()
                want[cluster, label] = np.log(max(part, 1e-4))
    assert got.keys() == want.keys()
    np.testing.assert_allclose([got[one] for one in want], list(want.values()), rtol=1e-4, atol=1e-5)


def test_soft_labels_by_walking():
    Y = (np.random.default_rng(0).random((30, 8)) < 0.2).astype(int)
    Y[:, 7] = 0  # a label that no point has
    got = clustered.soft_labels(Y, 0.2).toarray()
    for a in range(8):
        points = np.flatnonzero(Y[:, a])
        ends = [sum(Y[i, b] / Y[i].sum() for i in points) / max(len(points), 1) for b in range(8)]
        want = [min(end / ends[a], 1) if ends[a] and end / ends[a] >= 0.2 else 0 for end in ends]
        np.testing.assert_allclose(got[a], want, rtol=1e-6)


def test_words_of_labels_teach_labels_without_points_and_soft_ones_raise_others():
    X = sp.csr_matrix(np.array([[1, 0, 0.0], [1, 0, 0], [0, 1, 0]]))
    Y, words = [[1, 1, 0], [1, 1, 0], [1, 0, 0]], np.eye(3)
    assert not (ClusterNetwork("none", dim=4, epochs=3).fit(X, Y).predict(X, 3).ids == 2).any()
    both = (ClusterNetwork("none", dim=8, epochs=200, dropout=0.0, soft=soft).fit(X, Y, words) for soft in (0.0, 1.0))
    hard, soft = (model.predict_proba(np.eye(3)) for model in both)
    assert hard[2, 2] > 0.5 < soft[2, 2]
    assert soft[0, 1] > hard[0, 1]  # whoever has label 0 often has label 1


def test_hops_by_walking():
    rng = np.random.default_rng(1)
    unit, names = (clustered.unit_rows(sp.csr_matrix(rng.random(shape))) for shape in ((6, 5), (4, 5)))
    Y = rng.random((6, 4)) < 0.5
    share = Y / np.maximum(Y.sum(axis=0), 1)
    around = names + sp.csr_matrix(share.T) @ unit
    got = graph.propagated(unit, names, around.tocsr(), 2, 0.5, sp.csr_matrix(share)).toarray()
    for i, x in enumerate(unit.toarray()):
        alike = names.toarray() @ x
        best, found = np.argsort(-alike)[:2], np.zeros(5)
        for label in best:
            others = sum(share[j, label] * unit.toarray()[j] for j in range(6) if j != i)
            found += alike[label] * (names.toarray()[label] + others)
        np.testing.assert_allclose(got[i], x + 0.5 * found / np.linalg.norm(found), rtol=1e-5)


def test_without_neighbours_it_is_the_two_towers():
    data = xc.twin("lf-amazontitles-131k", scale=0.001, seed=0)
    given = data.train.X, data.train.Y, data.label_features
    plain, none = (kind.fit(*given).predict(data.test.X, 3) for kind in (TwoTowers(dim=8), GraphTowers(dim=8, mix=0.0)))
    assert (plain.ids == none.ids).mean() > 0.99  # rows are scaled twice, so last digits may differ


def test_learned_clusters_have_one_level():
    with refused("levels"):
        ClusterNetwork("learned", levels=2).fit(np.eye(3), np.eye(3, dtype=int))
