"""The synthetic twin: that it is like its dataset, and that what it says about itself is true."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.refused import refused
from xcrepro.core.data import registry
from xcrepro.core.errors import ArgumentError
from xcrepro.models import twin as module
from xcrepro.models.kernels import twin as kernels
from xcrepro.models.twin import expected_observed_counts, twin
from xcrepro.repro.inputs.twin_statistics import statistics


@pytest.fixture(scope="module")
def small():
    return twin("eurlex-4k", scale=0.2)


@pytest.fixture(scope="module")
def bibtex():
    return twin("bibtex")


def counts(Y):
    return np.bincount(Y.indices, minlength=Y.shape[1])


def parts(tw):
    """Plan, points, signatures and marginals before any label falls out: as twin() makes them."""
    entry = tw.entry
    plan = module._plan(entry, entry.twin, tw.n_train, 0)
    points = module._points(plan, entry, entry.twin, tw.n_train, tw.test.Y.shape[0], 0)
    signatures = module._signatures(plan, points, entry.twin, 0)
    X, _ = module._features(plan, points, signatures, entry.twin, tw.n_train, 0)
    propensity = plan.propensity[points.ids]
    return plan, points, signatures, X, propensity, *module._truth(points, signatures, propensity, X, entry.twin, 0)


@pytest.fixture(scope="module")
def inside(small):
    return parts(small)


# ---------------------------------------------------------------- like its dataset


def test_matrices_are_canonical(small):
    for split in (small.train, small.test):
        for matrix in (split.X, split.Y, split.Y_complete, split.marginals, split.observed_marginals):
            assert type(matrix).__name__ == "csr_matrix"
            assert matrix.dtype == np.float32
            assert matrix.indices.dtype == np.int32
            fresh = type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
            assert fresh.has_canonical_format
            assert np.all(matrix.data > 0)
        for binary in (split.Y, split.Y_complete):
            assert np.all(binary.data == 1)
        assert split.marginals.data.max() <= 1
        np.testing.assert_allclose(np.asarray(split.X.multiply(split.X).sum(axis=1)).ravel(), 1, rtol=1e-5)
        assert np.diff(split.X.indptr).min() >= 1
    assert np.diff(small.train.Y.indptr).min() >= 1


def test_labels_without_train_points_are_in_neither_split(small):
    assert small.label_counts.min() == 1
    assert small.test.Y.shape[1] == small.train.Y.shape[1] < small.entry.n_labels


def test_a_small_twin_is_as_a_random_subsample_of_real_points(small):
    """EURLex-4K's own label counts, of which every point is kept with one chance: what is expected of them."""
    whole = registry.label_counts("eurlex-4k")["count"].to_numpy()
    kept = small.n_train / 19_314
    assert small.train.Y.shape[1] == pytest.approx((1 - (1 - kept) ** whole).sum(), rel=0.1)
    bins = np.histogram(small.label_counts, [1, 10, 100, 1000])[0] / small.train.Y.shape[1]
    draws = np.random.default_rng(0).binomial(whole, kept)
    expected = np.histogram(draws, [1, 10, 100, 1000])[0] / (draws > 0).sum()
    np.testing.assert_allclose(bins, expected, atol=0.03)
    assert small.label_counts.max() / small.n_train == pytest.approx(whole.max() / 19_314, abs=0.01)


def test_statistics_are_near_the_real_ones(small, bibtex):
    """What EURLex-4K (a fifth of its points) and Bibtex have, as xcrepro.repro.inputs.twin_statistics counts it in them."""
    found = statistics(small)
    for name, real, within in (
        ("labels a point", 5.32, 0.03), ("sd of labels a point", 1.33, 0.1), ("points with at most 2 labels", 0.023, 0.02),
        ("Gini of label counts", 0.648, 0.03), ("labels with at most 5 points", 0.721, 0.03), ("nearest label", 0.443, 0.1),
        ("always beside another", 0.031, 0.03), ("Popularity P@1", 6.95, 2), ("Popularity PSP@1", 1.70, 1),
        ("Popularity PSP@5", 2.23, 1), ("best gain", 6.76, 1),
    ):  # fmt: skip
        assert found[name] == pytest.approx(real, abs=within), name
    found = statistics(bibtex)
    for name, real, within in (
        ("labels a point", 2.40, 0.03), ("sd of labels a point", 1.67, 0.1), ("points with at most 2 labels", 0.624, 0.03),
        ("head share", 0.141, 0.015), ("features a point", 68.7, 12), ("best phi", 0.359, 0.06),
        ("features with phi > 0.1 a label", 20.0, 6), ("always beside another", 0.069, 0.07), ("Popularity PSP@1", 8.32, 1.5),
        ("Popularity PSP@5", 10.9, 3), ("Gini of label counts", 0.334, 0.07),
    ):  # fmt: skip
        assert found[name] == pytest.approx(real, abs=within), name


def test_linear_models_reach_the_published_precision_and_say_less(bibtex):
    top = xc.models.OneVsRest().fit(bibtex.train.X, bibtex.train.Y).predict(bibtex.test.X, 5)
    reached = 100 * xc.metrics.precision(bibtex.test.Y, top, (1, 3, 5))
    np.testing.assert_allclose(reached, (62.62, 39.09, 28.79), atol=4)
    assert 100 * top.scores.mean() < reached[2] - 2


def test_expected_counts_meet_the_printed_numbers():
    for name in registry.names(registry.PAGE_TABLE):
        entry = registry.get(name)
        if entry.n_labels > 100_000:
            continue
        expected = module._expected(module._complete(entry), entry.twin)
        assert np.all(np.diff(expected) <= 1e-9), name
        assert expected.sum() / entry.n_train == pytest.approx(entry.avg_labels_per_point, rel=1e-6), name
        published = sum(entry.bins.values()) if entry.bins else entry.n_labels
        assert (1 - np.exp(-expected)).sum() == pytest.approx(published, rel=0.02), name
        if entry.bins:
            above = [(expected >= edge).sum() for edge in (999.5, 99.5, 9.5)]
            np.testing.assert_allclose(
                above, np.cumsum(list(entry.bins.values())[::-1])[:3], rtol=0.05, atol=3, err_msg=name
            )


@pytest.mark.parametrize(
    ("mean", "deviation", "reached"), [(5.31, 1.36, 1.36), (2.4, 1.67, 1.67), (19, 5, 5), (2.4, 9, None)]
)
def test_numbers_of_labels_have_the_most_entropy(mean, deviation, reached):
    chance = module._label_numbers(mean, deviation, 1000)
    number = np.arange(1, chance.size + 1)
    assert chance.sum() == pytest.approx(1)
    assert (chance * number).sum() == pytest.approx(mean, rel=1e-6)
    found = np.sqrt((chance * (number - mean) ** 2).sum())
    # A normal's logarithm is a parabola; no distribution from 1 on with most entropy scatters more than the geometric.
    assert found == pytest.approx(reached or np.sqrt(mean * (mean - 1)), rel=1e-2)
    likely = chance > 1e-200
    assert np.ptp(np.diff(np.log(chance[likely]), 2)) < 1e-6


# ---------------------------------------------------------------- what it says about itself


def assert_calibrated(split, truth, marginals):
    eta, relevant = getattr(split, marginals).toarray().astype(np.float64), getattr(split, truth).toarray()
    assert np.all(eta[relevant > 0] > 0)
    p, y = eta[eta > 0], relevant[eta > 0]
    which = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
    sigma = np.sqrt(np.bincount(which, p * (1 - p)))
    assert (np.bincount(which) > 50).sum() >= 8
    assert np.all(np.abs(np.bincount(which, y - p)) <= 4 * sigma + 1)


@pytest.mark.parametrize(("truth", "marginals"), [("Y_complete", "marginals"), ("Y", "observed_marginals")])
def test_marginals_are_calibrated(small, bibtex, truth, marginals):
    """In the test split; in train of Bibtex's twin as well, where no label fell out; and where labels have parents."""
    tree = twin("eurlex-4k", scale=0.2, seed=3, hierarchy=True)
    for split in (small.test, bibtex.train, bibtex.test, tree.test):
        assert_calibrated(split, truth, marginals)


def test_observed_marginals_are_marginals_times_propensities(small):
    tree = twin("eurlex-4k", scale=0.1, hierarchy=True)
    for split, propensities in ((small.train, small.propensities), (small.test, small.propensities),
                                (tree.test, tree.propensities)):  # fmt: skip
        product = split.marginals.toarray() * propensities
        np.testing.assert_allclose(split.observed_marginals.toarray(), product, rtol=1e-6)


def test_observed_labels(small):
    """Every relevant label is observed with its propensity; in test, where none fell out for want of points."""
    Y, complete, p = small.test.Y, small.test.Y_complete, small.propensities
    assert (complete - Y).min() == 0
    seen, possible = counts(Y), counts(complete)
    assert complete.nnz > 1.05 * Y.nnz
    for part in np.array_split(np.argsort(p), 5):
        sigma = np.sqrt((possible * p * (1 - p))[part].sum())
        assert abs((seen - possible * p)[part].sum()) <= 4 * sigma


def test_draws_have_their_probability():
    """One point's labels, many times: each truth by its share, the pair of truths by the propensity."""
    n, propensity = 40_000, np.array([0.9, 0.5, 0.7, 0.95, 0.6])
    labels = np.tile(np.arange(5, dtype=np.int32), (n, 1))
    logits = np.tile(np.array([3.0, 0.5, -1.0, 2.0, -9.0], np.float32), (n, 1))
    eta, observed, relevant = np.empty((n, 5), np.float32), np.empty((n, 5), np.bool_), np.empty((n, 5), np.bool_)
    sizes, zeros = np.full(n, 2.0), np.zeros(5)
    kernels.draw(0, n, 5, labels, logits, zeros, np.zeros(n), propensity, sizes, 0.95, 1e-3, eta, observed, relevant)
    assert np.all(eta[:, 4] == 0)
    assert not relevant[:, 4].any()
    p = eta[0].astype(float)
    assert (p * propensity).sum() == pytest.approx(2, abs=1e-5)
    shift = np.log(p[:4] / (1 - p[:4])) - logits[0, :4]
    assert np.ptp(shift) < 1e-4
    assert set(observed.sum(1)) == {2}
    assert np.all(relevant >= observed)
    assert np.all(np.abs(relevant.mean(0) - p) <= 4 * np.sqrt(p * (1 - p) / n))
    q = p * propensity
    assert np.all(np.abs(observed.mean(0) - q) <= 4 * np.sqrt(q * (1 - q) / n))


def test_probabilities_are_sigmoids_of_the_cosine(inside, small):
    """The formula, worked out again: log-odds less alpha times the cosine are one number a label plus one a point."""
    _, points, signatures, X, propensity, marginals, _, observed = inside
    eta = marginals[:400].toarray().astype(np.float64)
    dense = np.zeros((X.shape[1], points.ids.size))
    for l, (words, weights) in enumerate(zip(signatures.words, signatures.weights, strict=True)):
        dense[words, l] = weights / np.linalg.norm(weights)
    with np.errstate(divide="ignore"):
        rest = np.log(eta / (1 - eta)) - small.entry.twin.alpha * (X[:400].astype(np.float64) @ dense)
    clear = (eta > 0.002) & (eta < 0.99)
    # Alternate means solve for the two parts; in a sum of two parts nothing is left.
    a, b = np.zeros((400, 1)), np.zeros((1, eta.shape[1]))
    value = np.where(clear, rest, 0)
    for _ in range(300):
        b = (value - a * clear).sum(0, keepdims=True) / np.maximum(clear.sum(0, keepdims=True), 1)
        a = (value - b * clear).sum(1, keepdims=True) / np.maximum(clear.sum(1, keepdims=True), 1)
    left = np.abs(value - (a + b) * clear)[clear]
    assert clear.sum() > 5000
    assert np.quantile(left, 0.95) < 0.05
    sums = np.asarray(marginals @ propensity)
    assert np.mean(np.abs(sums - points.sizes) < 1e-3) > 0.98
    assert np.mean(np.diff(observed.indptr) == points.sizes) > 0.98


def test_labels_are_fitted_to_what_points_ask_for(inside):
    _, points, _, _, propensity, marginals, *_ = inside
    wanted = np.zeros(points.ids.size)
    for labels, n, size in zip(points.labels, points.counts, points.sizes, strict=True):
        assert len(set(labels[:n])) == n >= 1
        wanted[labels[:n]] += size / propensity[labels[:n]].sum()
    sums = np.asarray(marginals.sum(axis=0)).ravel()
    often = wanted > 3
    assert np.quantile(np.abs(sums - wanted)[often] / wanted[often], 0.9) < 0.1
    assert sums.sum() == pytest.approx(wanted.sum(), rel=0.03)


def test_propensities_are_the_models_with_fewer_missing(inside, small):
    """The odds of missing are ``missing`` times the model's at the twin's own N and expected counts, which draws meet."""
    plan, points = inside[:2]
    recipe = small.entry.twin
    expected = module._expected(small.entry, recipe) * small.n_train / small.entry.n_train
    C = (math.log(small.n_train) - 1) * (small.B + 1) ** small.A
    np.testing.assert_allclose(
        (1 / plan.propensity - 1) / recipe.missing, C * (expected + small.B) ** -small.A, rtol=1e-12
    )
    assert set(small.propensities) <= set(plan.propensity[points.ids])
    # Labels of one topic keep each other out of a point: the frequent ones of a topic come out a little too rare.
    order = np.argsort(-small.propensities)
    seen, asked = small.label_counts[order], np.sort(expected)[::-1]
    for part in np.array_split(np.arange(400), 4):
        assert seen[part].sum() == pytest.approx(asked[part].sum(), rel=0.25)


def test_expected_observed_counts_are_what_a_drawn_twin_scatters_about(small):
    """Counts of labels in steps of rank, and by hand: all labels of the plan, with the published labels a point."""
    expected = expected_observed_counts("eurlex-4k", 0.2)
    assert np.all(np.diff(expected) <= 0)
    assert expected.min() > 0
    assert expected.sum() == pytest.approx(small.n_train * small.entry.avg_labels_per_point, rel=1e-6)
    drawn, about = (np.sort(one)[::-1] for one in (small.label_counts, np.random.default_rng(0).poisson(expected)))
    for first, last in ((0, 20), (20, 200), (200, 1000)):
        assert drawn[first:last].sum() == pytest.approx(about[first:last].sum(), rel=0.1)
    assert drawn.size == pytest.approx((about > 0).sum(), rel=0.1)
    plan = module._plan(small.entry, small.entry.twin, small.n_train, 0)
    assert plan.propensity.size == expected.size
    whole = expected_observed_counts("eurlex-4k")
    np.testing.assert_allclose(expected / whole[: expected.size], small.n_train / small.entry.n_train)
    for arguments, wrong in ((("eurlex-4k", 0), "scale"), (("eurlex-4k", True), "scale"), (("nothing",), "name")):
        with refused(wrong, repr(arguments[-1])):
            expected_observed_counts(*arguments)


# ---------------------------------------------------------------- the parts


@hypothesis_settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.floats(-30, 30), st.floats(0.1, 1)), min_size=2, max_size=20),
    st.floats(0.01, 0.95),
    st.floats(-5, 5),
)
def test_shift_solves_for_the_sum(pairs, share, start):
    z, weight = np.array(pairs).T.copy()
    wanted = share * weight.sum()
    c, before = kernels._shift(z, weight, z.size, wanted, start)
    assert (weight / (1 + np.exp(-(z + c)))).sum() == pytest.approx(wanted, rel=1e-5)
    assert before == pytest.approx((weight / (1 + np.exp(-(z + start)))).sum(), rel=1e-9)


@pytest.mark.parametrize("width", [1, 7, 60])
def test_near_labels_are_the_nearest(width):
    rng = np.random.default_rng(0)
    n, D, L = 50, 40, 60
    X = module.csr_matrix((rng.random((n, D)) < 0.2) * rng.random((n, D)), dtype=np.float32)
    words = np.array([rng.permutation(D)[:3] for _ in range(L)])
    weights = rng.random((L, 3))
    dense = np.zeros((D, L))
    dense[words.T, np.arange(L)] = weights.T
    cosine, prior = X.astype(np.float64) @ dense, rng.normal(size=L)
    order = np.argsort(words.ravel(), kind="stable")
    labels, logits = np.empty((n, width), np.int32), np.empty((n, width), np.float32)
    kernels.near_labels(
        0, n, X.indptr, X.indices, X.data, np.searchsorted(words.ravel()[order], np.arange(D + 1)),
        (order // 3).astype(np.int32), weights.ravel()[order], 5.0, prior, labels, logits,
    )  # fmt: skip
    for i in range(n):
        shared = np.flatnonzero(cosine[i])
        best = shared[np.argsort(-(5 * cosine[i] + prior)[shared], kind="stable")][:width]
        fill = np.setdiff1d(np.arange(L), shared)[: width - best.size]
        assert sorted([*best, *fill]) == labels[i].tolist()
    np.testing.assert_allclose(logits, 5 * np.take_along_axis(cosine, labels, 1), rtol=1e-5, atol=1e-6)


def test_topics_and_companions(inside):
    plan = inside[0]
    members = [plan.by_topic[lo:hi] for lo, hi in zip(plan.topic_starts, plan.topic_starts[1:], strict=False)]
    assert np.all(plan.topic[: plan.n_general] == -1)
    assert sum(len(labels) for labels in members) == plan.topic.size - plan.n_general
    assert all(np.all(plan.topic[labels] == t) for t, labels in enumerate(members))
    has = np.flatnonzero(plan.companion >= 0)
    assert has.size > 0.8 * plan.topic.size
    assert np.all(plan.companion[has] < has)
    assert np.all(plan.topic[plan.companion[has]] == plan.topic[has])
    assert plan.follow.max() <= 1
    # What a label brings and what it comes to by itself add up to its frequency again.
    whole = plan.frequency.copy()
    room = 1 - 1 / registry.get("eurlex-4k").avg_labels_per_point
    for l in range(whole.size - 1, -1, -1):
        if plan.companion[l] >= 0:
            whole[plan.companion[l]] += plan.follow[l] * room * whole[l]
    assert np.all(plan.frequency >= 0.3 * whole - 1e-9)
    assert np.all(np.diff(whole[plan.n_general :]) <= 1e-6 * whole[plan.n_general])


def test_label_features_tell_the_label():
    tw = twin("lf-amazontitles-131k", 0.003)
    n_labels, n_words = tw.label_features.shape
    assert (n_labels, n_words) == (tw.train.Y.shape[1], tw.train.X.shape[1])
    np.testing.assert_allclose(
        np.asarray(tw.label_features.multiply(tw.label_features).sum(axis=1)).ravel(), 1, rtol=1e-5
    )
    for names, lo, hi in zip(tw.label_names, tw.label_features.indptr, tw.label_features.indptr[1:], strict=False):
        assert sorted(int(word[4:]) for word in names.split()) == tw.label_features.indices[lo:hi].tolist()
    cosine = (tw.test.X @ tw.label_features.T).toarray()
    own = cosine[tw.test.Y.toarray() > 0]
    assert own.mean() > 10 * cosine.mean()


# ---------------------------------------------------------------- the same everywhere, for every dataset

_DIGEST = """
import hashlib
from xcrepro.models.twin import expected_observed_counts, twin
tw = twin("eurlex-4k", scale=0.2, seed=3)
digest = hashlib.sha256()
for split in (tw.train, tw.test):
    for m in (split.X, split.Y, split.Y_complete, split.marginals):
        for part in (m.indptr, m.indices, m.data):
            digest.update(part.tobytes())
for part in (tw.propensities, tw.expected_counts):
    digest.update(part.tobytes())
print(digest.hexdigest())
"""


def test_same_bytes_in_every_process_and_with_any_number_of_threads(monkeypatch, capsys):
    digests = []
    for threads in ("1", "3"):
        monkeypatch.setenv("XCREPRO_THREADS", threads)
        exec(_DIGEST, {})
        digests.append(capsys.readouterr().out)
    monkeypatch.setenv("XCREPRO_THREADS", "2")
    run = subprocess.run([sys.executable, "-c", _DIGEST], capture_output=True, text=True, check=True)
    assert digests == [run.stdout] * 2
    assert len(run.stdout.strip()) == 64


def digest(matrix):
    return hashlib.sha256(matrix.indices.tobytes() + matrix.data.tobytes()).hexdigest()


def test_seeds_differ():
    a, b, big = (twin("bibtex", 0.1, seed) for seed in (0, 1, 2**63 - 1))
    for one, other in ((a, b), (b, big)):
        assert digest(one.train.X) != digest(other.train.X)
        assert digest(one.train.Y) != digest(other.train.Y)
        assert one.name != other.name
    assert digest(twin("bibtex", 0.1, np.int64(1)).train.X) == digest(b.train.X)


def test_train_and_test_are_different_points(small):
    assert digest(small.train.X[:100]) != digest(small.test.X[:100])


@pytest.mark.parametrize(
    "name", [name for name in registry.names() if (registry.get(name).n_labels or 10**9) < 140_000]
)
def test_every_dataset_has_a_twin(name):
    entry = registry.get(name)
    if entry.n_train is None or not (entry.avg_labels_per_point or entry.avg_points_per_label):
        pytest.skip("too little of it is printed")
    tw = twin(name, 400 / entry.n_train)
    assert tw.train.X.shape == (400, entry.n_features or 100_000)
    assert tw.train.Y.nnz / 400 == pytest.approx(module._complete(entry).avg_labels_per_point, rel=0.1)
    assert np.diff(tw.train.Y.indptr).min() >= 1


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Writes the dataset.toml of ``mine`` into ``$XCREPRO_DATA``."""
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    (tmp_path / "mine").mkdir()

    def write(*lines: str) -> None:
        (tmp_path / "mine" / "dataset.toml").write_text("\n".join(['name = "mine"', *lines]))

    return write


SIZE = ("[expected]", "n_train = 900", "n_test = 300", "n_labels = 60")


@pytest.mark.parametrize(
    ("average", "labels_per_point"),
    [
        (("avg_labels_per_point = 3.0",), 3.0),
        # From points per label: 60 x 45 pairs over the train points, or over all.
        (("avg_points_per_label = 45.0", 'points_per_label_basis = "train"'), 3.0),
        (("avg_points_per_label = 45.0",), 2.25),
    ],
)
def test_a_readers_dataset_has_a_twin(put, average, labels_per_point):
    put(*SIZE, *average)
    tw = twin("mine", seed=1)
    assert (tw.name, tw.entry.name) == ("mine@1.0-seed1", "mine")
    assert (tw.train.X.shape[0], tw.test.X.shape[0]) == (900, 300)
    assert tw.train.Y.shape[1] == pytest.approx(60, abs=8)
    assert tw.train.Y.nnz / 900 == pytest.approx(labels_per_point, rel=0.03)
    assert tw.comparable


def test_the_shape_of_a_twin_is_the_datasets(put):
    put(*SIZE, "n_features = 400", "avg_labels_per_point = 3.0")
    plain = twin("mine")
    put(*SIZE, "n_features = 400", "avg_labels_per_point = 3.0", "[twin]", "head = 0.6", "words = 15")
    other = twin("mine")
    assert plain.train.X.shape == other.train.X.shape == (900, 400)
    assert other.label_counts.max() > 1.5 * plain.label_counts.max()
    assert other.train.X.nnz < 0.5 * plain.train.X.nnz


def test_what_a_twin_needs_is_named(put):
    put("[expected]", "n_train = 900")
    with pytest.raises(ArgumentError, match=r"n_test, n_labels, avg_points_per_label or"):
        twin("mine")


def test_smallest_and_a_name_for_each_scale_and_seed():
    tw = twin("EURLex-4K", 1.2345678e-9)
    assert (tw.train.X.shape, tw.test.Y.shape[0]) == ((100, 5000), 50)
    assert tw.name == "eurlex-4k@1.2345678e-09-seed0"


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("scale", scale) for scale in (0, -1, 1.5, math.nan, math.inf, "1", None, True)),
        *(("seed", seed) for seed in (-1, 1.0, "0", None, True, 2**63)),
        ("hierarchy", "yes"),
    ],
)
def test_bad_arguments(argument, value):
    with refused(argument, repr(value)):
        twin("bibtex", **{"scale": 0.1, argument: value})
