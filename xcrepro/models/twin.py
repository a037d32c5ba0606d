"""Synthetic twins: data made to a named dataset's published shape, of which everything is known.

:func:`twin` says what a twin keeps of its dataset, what it does not, and how it is made; :func:`expected_observed_counts`
how often its labels are expected, without a point drawn.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.sparse import csr_matrix

from xcrepro.core import arithmetic, threads
from xcrepro.core.arguments import real_number
from xcrepro.core.data import registry
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.data.registry import Entry, TwinShape
from xcrepro.core.errors import ArgumentError
from xcrepro.models.kernels import twin as kernels

_TOPIC_WORDS = 60
_LABEL_WORDS = 10
# The share of a point's words that are its topics'.
_ABOUT = 0.2
# A label with more than this share of what a topic has belongs to none: it would be in every point that has the topic.
_GENERAL = 0.3
# The least share of its points that a label comes to by itself, not as another's companion.
_OWN = 0.3
# Labels with a chance in a point: so many, and so many more for each that a point has on average. Further ones have none
# that would be kept: EURLex-4K's points have 35 of the 56 left.
_NEAR, _NEAR_PER_LABEL = 24, 6
# A parent is at least so many times as frequent as what is below it.
_GAP = 3.0
# Log-odds of a label that cannot be relevant, for its parent cannot.
_NEVER = -1000.0
# A probability below this is exactly 0, to keep the marginals sparse; the share that a sum of probabilities can come to.
_CUT, _MOST = 1e-3, 0.95
# The fit ends when 99 of 100 labels are within a hundredth of their target, far less than a draw scatters.
_SWEEPS, _BALANCED = 40, 1e-2
# Expected counts below the least are none (a label that one data set in 50 has), and so are those of labels beyond so
# many times the published number.
_LEAST, _LONGEST = 0.02, 4
# The group of the catalogue that has label features.
_WITH_LABEL_FEATURES = "label-features"


@dataclass(frozen=True, repr=False)
class TwinSplit(Split):
    """One half of a twin: a :class:`Split` whose ``Y`` is the observed truth, and what is known about it.

    Attributes
    ----------
    Y_complete : csr_matrix of float32, (n, L)
        Ones, among them all of ``Y``: the relevant labels, before any went missing.
    marginals : csr_matrix of float32, (n, L)
        In (0, 1]: the probability that a label of the complete truth is relevant; absent is exactly 0.
    observed_marginals : csr_matrix of float32, (n, L)
        The same of ``Y``: ``marginals`` times the labels' propensities.
    """

    Y_complete: csr_matrix
    marginals: csr_matrix
    observed_marginals: csr_matrix


if TYPE_CHECKING:

    class _Complete(Entry):
        """An entry whose numbers are known."""

        n_train: int
        n_test: int
        n_labels: int
        avg_points_per_label: float
        avg_labels_per_point: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Twin(Dataset):
    """A :class:`Dataset` made by :func:`twin`.

    Attributes
    ----------
    propensities : float64, (L,)
        In (0, 1]: the probability that a relevant label is observed.
    expected_counts : float64, (L,)
        The expected number of train points of the complete truth, the sum of ``marginals`` over the train points.
        ``expected_counts * propensities`` is the expected observed number.
    label_features : csr_matrix of float32, (L, D), or None
        Of the datasets that have label features: the words of the labels, rows of unit length; ``label_names`` is the same
        as text.
    parents : int32, (L,), or None
        Of a twin with a hierarchy: the label above, relevant wherever the label is; -1 for a root.
    """

    train: TwinSplit
    test: TwinSplit
    propensities: np.ndarray = field(repr=False)
    expected_counts: np.ndarray = field(repr=False)
    label_features: csr_matrix | None = field(default=None, repr=False)
    parents: np.ndarray | None = field(default=None, repr=False)

    @property
    def title(self) -> str:
        """``"EURLex-4K (synthetic)"``: no table may take a twin for the dataset that it is made to."""
        name, comma, rest = super().title.partition(",")
        return f"{name}{registry.SYNTHETIC}{comma}{rest}"

    @property
    def origin(self) -> str:
        """What it is, for the foot of a figure or table: ``"synthetic twin of EURLex-4K × 0.2 (seed 0), 762 test points"``."""
        scale, _, seed = self.name.partition("@")[2].removesuffix("-hierarchy").partition("-seed")
        kind = ", with a hierarchy" if self.parents is not None else ""
        return f"synthetic twin of {super().title} × {scale} (seed {seed}{kind}), {self.test.Y.shape[0]:,} test points"


def twin(name: str, scale: float = 1.0, seed: int = 0, *, hierarchy: bool | None = None) -> Twin:
    """A synthetic dataset made to the published shape of ``name``, of which everything is known. Same arguments, same bytes.

    Parameters
    ----------
    name : str
        A dataset of the catalogue (``xcrepro.core.data.registry.names()``) whose numbers of points and labels and an average of
        labels are known; ``"synthetic "`` before it says the same.
    scale : float
        Its share of the dataset's points, above 0 and at most 1; at least 100 train and 50 test points. A smaller twin is
        as a random subsample of the points: labels a point and each label's share of the points stay,
        counts shrink with the points.
    seed : int
        0 to 2**63 - 1.
    hierarchy : bool, optional
        Whether labels have parents; None: what the catalogue says, which is False for all of its datasets.

    Returns
    -------
    Twin
        ``train`` and ``test`` with ``X``, ``Y`` (observed), ``Y_complete``, ``marginals`` and ``observed_marginals``,
        and the labels' ``propensities`` and ``expected_counts``. A label that no train point has observed is in
        neither split; so a point may be left without any. Its name, ``"eurlex-4k@0.1-seed0"``, is unique and may name a
        file; with a hierarchy ``"-hierarchy"`` follows.

    Raises
    ------
    ArgumentError
        An unknown name (with the near ones), one of which too little is known (with the keys that its ``dataset.toml``
        needs), a scale out of range, a seed out of range, a hierarchy that is neither None, True nor False.

    Notes
    -----
    **What is like the dataset.** ``xcrepro.repro.inputs.twin_statistics`` counts it in real data and in twins: the share of
    points that the frequent labels have, labels a point and their scatter, the label bins (where they are published; otherwise
    a long tail that meets the averages), how labels go together, how much single features tell, what Popularity and linear
    models reach, and that the latter say less than they are right.

    **What is not.** Words are numbers. Unless asked for, there is no hierarchy of labels. Sets of labels repeat less often
    than in real data: trees that average over a few near points (FastXML) find fewer labels at k = 3 and 5 than is printed.
    What is relevant and what is observed are a model's draws: nobody knows how the dataset's own labels went missing.

    **At which scale.** The recipe was held to real statistics and printed results at these scales: Bibtex and Delicious at 1,
    EURLex-4K at 0.2, Wiki10-31K at 0.1, AmazonCat-13K and Amazon-670K at 0.002. Models were held to print on the last four
    only. At any scale nothing says that a model reaches on the twin what it reaches on the dataset, or that two models have
    the same order: on Bibtex and Delicious the order of models on the twin agrees with that on the real dataset no better
    than a coin. ``xcrepro run kit/twin_against_real`` prints it, and where statistics differ. A twin is no substitute for
    its dataset: a claim about real data gets no support from a twin.

    **How it is made.** Labels have topics, but the most frequent none; each has a companion, a more frequent label of its
    topic that it brings along, some always, some hardly ever. A point has a number of labels to be observed, one or more
    topics, and labels from these by frequency. The most frequent labels of all come besides, by a comb over their shares of the
    points, so that each has its partners, those that lie a unit away. It has words from its labels' signatures (10
    words each, some of them its topic's), from its topics and from a Zipf background: tf-idf, unit length. Then, from the
    finished features, probabilities are *defined*:

        eta_l(x_i) = sigmoid(alpha cos(x_i, signature_l) + b_l + a_i)

    for the labels nearest to the point, and 0 for all others. The b_l make the sums over the points what the
    points' labels ask for; the a_i make the expected number of observed labels, the sum of eta_l p_l, the point's number.
    All points together are fitted, so that test points are as train points are.

    p_l is the propensity of label l, 1 / (1 + m C (N_l + B)^-A), C = (log N - 1)(B + 1)^A: the model of jain16 (eq. 1) at the
    twin's own N and expected observed counts N_l, with the odds of missing multiplied by m (``missing`` in
    ``dataset.toml``). With m = 1 no model could reach what is printed: where labels go missing by the model, the mean of
    y / p over the predicted labels is at most 1, and on EURLex-4K DiSMEC's printed PSP@1 says that it is 2.

    The observed labels of a point come by one systematic draw (a comb of unit pitch over eta_l p_l): as many as its number.
    A label that is not observed is relevant with what is left of its probability.

    **With a hierarchy** a label's companion is its parent, one of its topic that is at least three times as frequent; the
    label always brings it along. ``parents`` holds it (where the parent fell out, the next above). Once all is fitted, a
    parent's log-odds are lifted to the highest below it, and the a_i are fitted again. The complete truth is drawn from the
    roots down: a label, where its parent is relevant, with the quotient of the two probabilities, one systematic draw a level.
    So it is closed under ``parents``, as :func:`xcrepro.propensity.estimate_from_hierarchy` assumes. Each of its labels is
    observed with its propensity, whatever the others are. A point's number of labels is then its expected one only: it
    scatters more than the dataset's, and more labels stand beside another wherever they are. Therefore no dataset of the
    catalogue has a hierarchy unless asked for.

    **What is guaranteed.** P(y_il = 1 | x_i, the point's number of labels) is ``marginals[i, l]`` in the complete truth and
    ``observed_marginals[i, l]`` in the observed one, and a relevant label is observed with probability ``propensities[l]``,
    exactly, for each pair: alone, not jointly. Labels of one point exclude each other a little (but a label needs its
    parent), points are independent.
    Where a label falls out because no train point has it, that is a draw as well: in train, the rarest labels that are left are
    a little more frequent than their marginals say; in test they are not. Bytes depend neither on the number of threads
    nor on the processor: random numbers, exponentials and logarithms are our own.

    Examples
    --------
    >>> tw = twin("eurlex-4k", scale=0.05)
    >>> tw.name, tw.train.X.shape, tw.test.X.shape
    ('eurlex-4k@0.05-seed0', (777, 5000), (190, 5000))
    >>> abs(tw.train.Y.nnz / tw.n_train - tw.published["xcrepo:dataset-table"]["avg_labels_per_point"]) < 0.1
    True
    >>> bool((tw.train.Y > tw.train.Y_complete).nnz == 0 and tw.label_counts.min() > 0)
    True
    """
    original = registry.synthetic(name)
    entry, scale = _asked(name if original is None else original, scale)
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or not 0 <= seed < 2**63:
        raise ArgumentError("seed", "must be a whole number from 0 to 2**63 - 1", repr(seed))
    if not (hierarchy is None or isinstance(hierarchy, bool)):
        raise ArgumentError("hierarchy", "must be None, True or False", repr(hierarchy))
    recipe = entry.twin if hierarchy is None else dataclasses.replace(entry.twin, hierarchy=hierarchy)
    return _build(entry, recipe, scale, int(seed))


def expected_observed_counts(name: str, scale: float = 1.0) -> np.ndarray:
    """In how many train points each label of a twin is expected to be observed (m,), falling, before any point is drawn.

    Seconds at any size. A twin's own counts scatter around these, and it has only the labels that some train point came
    to have, so m is larger than the published number of labels. The sum is train points times labels per point.
    """
    entry, scale = _asked(name, scale)
    return _expected(entry, entry.twin) * (_train_points(entry, scale) / entry.n_train)


def _asked(name: str, scale: float) -> tuple[_Complete, float]:
    scale = real_number("scale", scale, above=0, at_most=1, do="1.0 is the published size")
    return _complete(registry.get(name)), scale


def _train_points(entry: _Complete, scale: float) -> int:
    return max(100, round(entry.n_train * scale))


def _complete(entry: Entry) -> _Complete:
    """The entry with labels per point, from points per label where only that is given; an error where too little is."""
    given = [number for number in (*registry.COUNTS, *registry.AVERAGES) if getattr(entry, number) is not None]
    missing = [number for number in ("n_train", "n_test", "n_labels") if number not in given]
    if not set(registry.AVERAGES) & set(given):
        missing.append(" or ".join(registry.AVERAGES))
    if missing:
        do = f"its {registry.FILE} needs {', '.join(missing)} in [expected]"
        raise ArgumentError("name", "must be a dataset whose numbers are known", repr(entry.name), do)
    known = cast("_Complete", entry)
    if entry.avg_labels_per_point is not None:
        return known
    n_points = known.n_train + (known.n_test if entry.points_per_label_basis != "train" else 0)
    return dataclasses.replace(known, avg_labels_per_point=known.avg_points_per_label * known.n_labels / n_points)


def _build(entry: _Complete, recipe: TwinShape, scale: float, seed: int) -> Twin:
    n_train, n_test = _train_points(entry, scale), max(50, round(entry.n_test * scale))
    plan = _plan(entry, recipe, n_train, seed)
    points = _points(plan, entry, recipe, n_train, n_test, seed)
    signatures = _signatures(plan, points, recipe, seed)
    X, idf = _features(plan, points, signatures, recipe, n_train, seed)
    propensities = plan.propensity[points.ids]
    parents = _above(plan.companion, points.ids) if recipe.hierarchy else None
    marginals, complete, observed = _truth(points, signatures, propensities, X, recipe, seed, parents)

    # Labels that no train point has are not in the data set.
    kept = np.flatnonzero(np.bincount(observed[:n_train].indices, minlength=points.ids.size))
    kept = kept[_permutation(seed, kernels.LABEL_IDS, kept.size)]
    marginals, complete, observed = (columns(matrix, kept) for matrix in (marginals, complete, observed))
    propensities = propensities[kept]
    seen = (marginals.data * propensities[marginals.indices]).astype(np.float32)
    observed_marginals = csr_matrix((seen, marginals.indices, marginals.indptr), shape=marginals.shape)
    in_train = marginals[:n_train]
    train, test = (
        TwinSplit(
            X=X[part], Y=observed[part], Y_complete=complete[part], marginals=marginals[part],
            observed_marginals=observed_marginals[part],
        )
        for part in (slice(0, n_train), slice(n_train, None))
    )  # fmt: skip
    named: dict[str, Any] = {} if parents is None else {"parents": _above(parents, kept)}
    if entry.group == _WITH_LABEL_FEATURES:
        named |= _label_features(signatures.words[kept], signatures.weights[kept], idf)
    return Twin(
        name=f"{entry.name}@{scale!r}-seed{seed}" + "-hierarchy" * recipe.hierarchy,
        train=train,
        test=test,
        A=entry.A,
        B=entry.B,
        published=entry.published,
        entry=entry,
        propensities=propensities,
        expected_counts=np.bincount(in_train.indices, in_train.data.astype(np.float64), kept.size),
        **named,
    )


def columns(matrix: csr_matrix, kept: np.ndarray) -> csr_matrix:
    """These columns of a matrix, in this order, ids sorted within rows."""
    matrix = matrix[:, kept]
    matrix.sort_indices()
    return matrix


def _above(parents: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """For each label of ``kept`` its place there of the nearest label above that is kept as well; -1: none."""
    place = np.full(parents.size + 1, -1, np.int32)
    place[kept] = np.arange(kept.size)
    above = parents[kept]
    # The last place, of -1, is -1: climbing ends there.
    while (missing := (above >= 0) & (place[above] < 0)).any():
        above[missing] = parents[above[missing]]
    return place[above]


@dataclass(frozen=True)
class _Plan:
    """Everything about the labels before any point exists, by falling frequency, the general ones first."""

    propensity: np.ndarray
    frequency: np.ndarray  # how often a label comes by itself
    n_general: int
    topic: np.ndarray  # -1 for the general
    topic_starts: np.ndarray
    by_topic: np.ndarray  # [topic_starts[t] : topic_starts[t + 1]] are topic t's
    companion: np.ndarray
    follow: np.ndarray
    n_words: int
    words_per_point: int


def _plan(entry: _Complete, recipe: TwinShape, n_train: int, seed: int) -> _Plan:
    expected = _expected(entry, recipe) * (n_train / entry.n_train)
    n_labels = expected.size
    propensity = _propensities(expected, n_train, entry.A, entry.B, recipe.missing)
    frequency = expected / propensity
    n_topics = max(1, round(n_labels / recipe.topic))
    n_general = int((frequency > _GENERAL * frequency.sum() / n_topics).sum())
    topic = np.empty(n_labels, np.int32)
    kernels.deal_topics(seed, n_general, n_topics, frequency, topic)
    by_topic = np.argsort(topic, kind="stable").astype(np.int32)[n_general:]
    topic_starts = np.searchsorted(topic[by_topic], np.arange(n_topics + 1))
    companion, follow, own = np.empty(n_labels, np.int32), np.empty(n_labels), np.empty(n_labels)
    # The last label of a point brings none.
    room = max(0.0, 1 - 1 / entry.avg_labels_per_point)
    how = recipe.follow, _GAP if recipe.hierarchy else 0.0, room, _OWN
    kernels.deal_companions(seed, topic_starts, by_topic, frequency, *how, companion, follow, own)
    return _Plan(
        propensity=propensity,
        frequency=own,
        n_general=n_general,
        topic=topic,
        topic_starts=topic_starts,
        by_topic=by_topic,
        companion=companion,
        follow=follow,
        # One dataset's number of features is not published.
        n_words=entry.n_features or 100_000,
        words_per_point=recipe.words or round(min(max(100.0, 15 * entry.avg_labels_per_point), 300.0)),
    )


def _expected(entry: _Complete, recipe: TwinShape) -> np.ndarray:
    """Expected observed train counts of the whole data set, falling: float64, with the published labels per point."""
    n_labels = entry.n_labels
    ranked, height = [1.0], [recipe.head * entry.n_train]
    if entry.bins is not None:
        in_bin = np.array([entry.bins[name] for name in reversed(registry.BINS)])
        ranked += list(np.cumsum(in_bin)[:3] + 0.5)
        height += [999.5, 99.5, 9.5]
        n_labels = int(in_bin.sum())
    at, log_height = np.array([*ranked, n_labels + 0.5]), arithmetic.log([*height, 1.0])
    total = entry.n_train * entry.avg_labels_per_point
    # Ranks one by one where the curve is steep, then in groups: fits need only sums.
    ranks = np.arange(1, _LONGEST * n_labels + 1, dtype=np.float64)
    edges = np.unique(np.concatenate([np.arange(min(300, ranks.size)), np.linspace(0, ranks.size, 1200).astype(int)]))
    group, size = (edges[:-1] + edges[1:] + 1) / 2, np.diff(edges)

    def curve(rank: np.ndarray, power: float, end: float, top: float) -> np.ndarray:
        x, points = arithmetic.power(rank, power), arithmetic.power(at, power)
        y = np.concatenate([[top], log_height[1:-1], [end]])
        # Line by line, the last one beyond its end; not np.interp, which may round otherwise on other processors.
        piece = np.clip(np.searchsorted(points, x, side="right") - 1, 0, points.size - 2)
        slope = (y[1:] - y[:-1]) / (points[1:] - points[:-1])
        line = y[piece] + slope[piece] * (x - points[piece])
        return line if recipe.tail is None else np.where(rank <= at[-1], line, -np.inf)

    def counts(rank: np.ndarray, *shape: float) -> np.ndarray:
        return np.where((c := arithmetic.exp(curve(rank, *shape))) >= _LEAST, c, 0.0)

    def end_of(power: float, top: float) -> float:
        def seen(end: float) -> float:
            return (size * (1 - arithmetic.exp(-counts(group, power, end, top)))).sum()

        if recipe.tail is not None:
            return arithmetic.log(recipe.tail)
        return _bisect(seen, n_labels, -10.0, min(float(log_height[-2]), top) - 0.01)

    def mass(power: float, top: float) -> float:
        return (size * counts(group, power, end_of(power, top), top)).sum()

    straight, top = 0.02, float(log_height[0])
    power = straight
    if mass(straight, top) > total:
        top = _bisect(lambda x: mass(straight, x), total, float(log_height[1]) if len(at) > 2 else 0.0, top)
    else:
        power = _bisect(lambda x: mass(x, top), total, straight, 5.0)
    found = counts(ranks, power, end_of(power, top), top)
    found = found[found > 0]
    return found * (total / found.sum())


@dataclass(frozen=True)
class _Points:
    """Each point's labels (places in ``ids``), its topics (-1: none), and how many labels are to be observed."""

    ids: np.ndarray
    sizes: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    topics: np.ndarray


def _points(plan: _Plan, entry: _Complete, recipe: TwinShape, n_train: int, n_test: int, seed: int) -> _Points:
    n, average, n_labels = n_train + n_test, entry.avg_labels_per_point, plan.propensity.size
    chance = _label_numbers(average, recipe.spread * average, n_labels)
    # A comb over the distribution in shuffled order: the numbers of a few points have its mean as well, in either split.
    order = _permutation(seed, kernels.SIZES, n)
    place = np.empty(n)
    for rows in (order[order < n_train], order[order >= n_train]):
        place[rows] = (np.arange(rows.size) + 0.5) / rows.size
    sizes = 1.0 + np.searchsorted(np.cumsum(chance)[:-1], place, side="right")
    topic_mass = np.cumsum(plan.frequency[plan.by_topic])
    mass = np.concatenate([[0.0], topic_mass])[plan.topic_starts[1:]]
    share = np.minimum(plan.frequency[: plan.n_general] / n_train, _MOST)
    # Points with more labels have the general ones more often: ``share`` at the average number, nearly so on average.
    general = 1 - arithmetic.exp(np.arange(1, int(sizes.max()) + 1)[:, None] / average * arithmetic.log(1 - share))
    # Room for all that a point can be about: some more than are observed.
    width = min(2 * int(sizes.max()) + 8, n_labels)
    labels, counts = np.empty((n, width), np.int32), np.empty(n, np.int64)
    topics = np.empty((n, recipe.topics), np.int32)
    args = (
        sizes, plan.propensity, np.cumsum(general, axis=1), plan.topic_starts, plan.by_topic, topic_mass, mass,
        np.cumsum(plan.frequency), plan.companion, plan.follow, recipe.topics, labels, counts, topics,
    )  # fmt: skip
    threads.over_rows(n, lambda lo, hi: kernels.draw_labels(lo, hi, seed, *args), min_rows=1024)
    named = np.arange(width) < counts[:, None]
    ids = np.flatnonzero(np.bincount(labels[named], minlength=n_labels))
    number = np.zeros(n_labels, np.int32)
    number[ids] = np.arange(ids.size)
    labels[named] = number[labels[named]]
    return _Points(ids, sizes, labels, counts, topics)


def _label_numbers(mean: float, deviation: float, most: int) -> np.ndarray:
    """Chances of 1 to ``most`` labels: of all distributions with this mean and deviation the one with the most entropy."""
    number = np.arange(1.0, min(math.ceil(mean + 12 * deviation + 1), most) + 1)

    def chance(bend: float) -> np.ndarray:
        def at(tilt: float) -> np.ndarray:
            log = tilt * (number - mean) - bend * (number - mean) ** 2
            weight = arithmetic.exp(log - log.max())
            return weight / weight.sum()

        return at(_bisect(lambda tilt: (at(tilt) * number).sum(), mean, -50.0, 50.0))

    def variance(bend: float) -> float:
        return (chance(bend) * (number - mean) ** 2).sum()

    return chance(_bisect(lambda x: -variance(x), -(deviation**2), 0.0, 20.0))


@dataclass(frozen=True)
class _Signatures:
    """Words of the topics; words of the labels that come up, and their weights, which add up to 1."""

    topic_words: np.ndarray
    words: np.ndarray
    weights: np.ndarray


def _signatures(plan: _Plan, points: _Points, recipe: TwinShape, seed: int) -> _Signatures:
    topic_words = np.empty((plan.topic_starts.size - 1, min(_TOPIC_WORDS, plan.n_words // 3)), np.int32)
    words = np.empty((points.ids.size, min(_LABEL_WORDS, plan.n_words // 3)), np.int32)
    weights = np.empty(words.shape)
    kernels.write_signatures(
        seed, plan.n_words, recipe.shared, points.ids, plan.topic[points.ids], topic_words, words, weights
    )
    return _Signatures(topic_words, words, weights)


def _features(
    plan: _Plan, points: _Points, signatures: _Signatures, recipe: TwinShape, n_train: int, seed: int
) -> tuple[csr_matrix, np.ndarray]:
    """The texts of all points, train first, as tf-idf rows of unit length, and the words' idf."""
    n = points.sizes.size
    background = np.cumsum(1.0 / (np.arange(plan.n_words) + 3.0))
    text = (
        points.labels, points.counts, points.topics, signatures.topic_words, signatures.words, signatures.weights,
        background / background[-1], _permutation(seed, kernels.WORD_IDS, plan.n_words), plan.words_per_point,
        recipe.told, _ABOUT, recipe.weak, recipe.even,
    )  # fmt: skip
    sizes, indptr = np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    idf, indices, data = np.empty(0), np.empty(0, np.int32), np.empty(0, np.float32)

    def write(lo: int, hi: int, second: bool) -> np.ndarray:
        in_points = np.zeros(0 if second else plan.n_words, np.int64)
        kernels.write_words(lo, hi, n_train, seed, *text, second, sizes, in_points, idf, indptr, indices, data)
        return in_points

    in_points: Any = sum(threads.over_rows(n, lambda lo, hi: write(lo, hi, False), min_rows=1024))
    idf = arithmetic.log(1.0 + n_train / np.maximum(in_points, 1))
    np.cumsum(sizes, out=indptr[1:])
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    threads.over_rows(n, lambda lo, hi: write(lo, hi, True), min_rows=1024)
    return csr_matrix((data, indices, indptr), shape=(n, plan.n_words)), idf


def _label_features(words: np.ndarray, weights: np.ndarray, idf: np.ndarray) -> dict[str, Any]:
    """The labels' words as tf-idf rows of unit length, and as text, the telling ones first."""
    value = weights * idf[words]
    value /= np.sqrt((value * value).sum(axis=1, keepdims=True))
    indptr = np.arange(0, words.size + 1, words.shape[1])
    features = csr_matrix((value.ravel().astype(np.float32), words.ravel(), indptr), shape=(len(words), idf.size))
    features.sort_indices()
    order = np.argsort(-weights, axis=1, kind="stable")
    names = tuple(" ".join(f"word{w}" for w in row) for row in np.take_along_axis(words, order, axis=1).tolist())
    return {"label_features": features, "label_names": names}


def _truth(
    points: _Points, signatures: _Signatures, propensity: np.ndarray, X: csr_matrix, recipe: TwinShape, seed: int,
    parents: np.ndarray | None = None,
) -> tuple[csr_matrix, ...]:  # fmt: skip
    """Marginals of the complete truth, the complete truth, the observed one."""
    n, n_labels, n_words = X.shape[0], points.ids.size, X.shape[1]
    # A point's labels count for so much that as many as it should have are observed, in expectation.
    named = np.arange(points.labels.shape[1]) < points.counts[:, None]
    row, label = np.nonzero(named)[0], points.labels[named]
    each = points.sizes / np.bincount(row, propensity[label], n)
    wanted = np.bincount(label, each[row], n_labels)
    prior = arithmetic.log(wanted / n)

    flat = signatures.words.ravel()
    by_word = np.argsort(flat, kind="stable")
    word_ptr = np.searchsorted(flat[by_word], np.arange(n_words + 1))
    length = np.sqrt((signatures.weights * signatures.weights).sum(axis=1, keepdims=True))
    word_weight = (signatures.weights / length).ravel()[by_word]
    word_label = (by_word // signatures.words.shape[1]).astype(np.int32)

    width = min(n_labels, _NEAR + math.ceil(_NEAR_PER_LABEL * points.sizes.mean()))
    labels, logits = np.empty((n, width), np.int32), np.empty((n, width), np.float32)

    def near(lo: int, hi: int) -> None:
        kernels.near_labels(
            lo, hi, X.indptr, X.indices, X.data, word_ptr, word_label, word_weight, recipe.alpha, prior, labels, logits
        )

    threads.over_rows(n, near, min_rows=1024)

    # Alternate: labels' shifts to meet their targets, points' shifts to have their number of labels.
    by_label = np.argsort(labels.ravel(), kind="stable")
    pairs = (by_label // width).astype(np.int32), logits.ravel()[by_label]
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels.ravel(), minlength=n_labels))])
    label_shift, row_shift, off = prior.copy(), np.zeros(n), np.empty(n_labels)

    def fit_labels(lo: int, hi: int) -> None:
        kernels.fit_labels(lo, hi, starts, *pairs, row_shift, wanted, _MOST, label_shift, off)

    def fit_rows(lo: int, hi: int) -> None:
        kernels.fit_rows(lo, hi, labels, logits, label_shift, propensity, points.sizes, _MOST, row_shift)

    for _ in range(_SWEEPS):
        threads.over_rows(n_labels, fit_labels, min_rows=256)
        threads.over_rows(n, fit_rows, min_rows=1024)
        if np.sort(off)[int(0.99 * (off.size - 1))] < _BALANCED:
            break

    if parents is not None:
        lifted = np.empty(logits.shape, np.float32)
        above = (labels, logits, label_shift, parents, _NEVER, lifted)
        threads.over_rows(n, lambda lo, hi: kernels.lift_parents(lo, hi, *above), min_rows=1024)
        logits, label_shift = lifted, np.zeros(n_labels)
        threads.over_rows(n, fit_rows, min_rows=1024)

    eta = np.empty(labels.shape, np.float32)
    observed, relevant = np.empty(labels.shape, np.bool_), np.empty(labels.shape, np.bool_)

    def draw(lo: int, hi: int) -> None:
        kernels.draw(
            lo, hi, seed, labels, logits, label_shift, row_shift, propensity, points.sizes, _MOST, _CUT, eta, observed,
            relevant,
        )  # fmt: skip

    threads.over_rows(n, draw, min_rows=1024)
    if parents is not None:
        below = (labels, eta, parents, _depth(parents), propensity, observed, relevant)
        threads.over_rows(n, lambda lo, hi: kernels.draw_below_parents(lo, hi, seed, *below), min_rows=1024)

    def matrix(values: np.ndarray) -> csr_matrix:
        chosen = values > 0
        indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
        return csr_matrix((values[chosen].astype(np.float32), labels[chosen], indptr), shape=(n, n_labels))

    return matrix(eta), matrix(relevant), matrix(observed)


def _depth(parents: np.ndarray) -> np.ndarray:
    """How many labels are above each."""
    depth, above = np.zeros(parents.size, np.int32), parents
    while (below := above >= 0).any():
        depth += below
        above = np.where(below, parents[above], -1)
    return depth


def _propensities(expected: np.ndarray, n_train: int, A: float, B: float, missing: float) -> np.ndarray:
    """The model of jain16, eq. (1), with ``missing`` times its odds that a relevant label is missing: (L,) in (0, 1]."""
    C = (arithmetic.log(n_train) - 1) * arithmetic.power(B + 1, A)
    return 1 / (1 + missing * C * arithmetic.power(expected + B, -A))


def _uniforms(seed: int, stream: int, n: int) -> np.ndarray:
    out = np.empty(n)
    kernels.uniforms(seed, stream, out)
    return out


def _permutation(seed: int, stream: int, n: int) -> np.ndarray:
    return np.argsort(_uniforms(seed, stream, n), kind="stable").astype(np.int32)


def _bisect(growing: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Where the growing function reaches ``wanted``; the nearer end where it does not."""
    for _ in range(40):
        mid = 0.5 * (low + high)
        if growing(mid) < wanted:
            low = mid
        else:
            high = mid
    return 0.5 * (low + high)
