"""PfastreXML, section 6 of Jain et al. 2016: the node's objective, the labels' centres, and the second ranking."""

from __future__ import annotations

import copy
import itertools
import timeit
from collections.abc import Iterator, Mapping, Sequence
from time import process_time

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import looks, metrics
from xcrepro.arguments import real_number
from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError
from xcrepro.findings import Measured, corrected
from xcrepro.inputs import baselines, parameters
from xcrepro.inputs.datasets import complete, weights
from xcrepro.models import PfastreXML, PfastXML
from xcrepro.papers.jain16._common import KS
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

MODEL = "PfastreXML"
TREES, MEAN, EXACT, CENTRES = "trees alone (eq. 3)", "means (eq. 7)", "maximum (eq. 6)", "centres alone (eq. 5)"
"""The rankings that are compared."""
PAPER_ALPHA, PAPER_GAMMA = 0.8, 30.0
RANGES = (1, 3, 10, 30, 100, 300)
"""Bounds between which a measured share of time is said to lie, percent."""
_DASHES = ("-", "--", "-.", ":")
_COLOURS = (looks.INK, looks.TEAL, looks.AMBER, looks.RUST, looks.VIOLET)


def check_parameters(values: Mapping[str, object]) -> None:
    """The shared rules, and those of ``alphas`` and ``gammas``: numbers in their range, each once."""
    parameters.check(values)
    for name, most in (("alphas", 1.0), ("gammas", None)):
        numbers = values[name]
        if not isinstance(numbers, list | tuple) or not numbers or len(set(numbers)) != len(numbers):
            raise ArgumentError(f"parameter {name}", "must hold numbers, each once", repr(numbers))
        for number in numbers:
            real_number(f"parameter {name}", number, at_least=0, at_most=most)


# ---------------------------------------------------------------- a node: equation 4


def node_gain(Y, w, side) -> float:
    """What eq. 4 takes off for a partition whose two sides rank the labels as well as they can.

    Parameters
    ----------
    Y : array, shape (n, L)
        The node's rows.
    w : array, shape (L,)
        Inverse propensities.
    side : array of int, shape (n,)
        -1 or +1.

    Returns
    -------
    float
        The mean over rows of PSnDCG@L with the ranking of the row's side, with eq. 4's constant normaliser.

    Examples
    --------
    >>> round(node_gain([[1, 0], [0, 1]], [1.0, 1.0], [-1, 1]), 4), round(node_gain([[1, 0], [0, 1]], [1.0, 1.0], [1, 1]), 4)
    (0.6131, 0.5)
    """
    Y, w, side = np.asarray(Y, float), np.asarray(w, float), np.asarray(side)
    discount = 1 / np.log2(np.arange(2, Y.shape[1] + 2))
    total = 0.0
    for of in (-1, 1):
        worth = np.sort((w * Y[side == of]).sum(axis=0))[
            ::-1
        ]  # the best ranking is by what a label is worth on this side
        total += float(worth @ discount)
    return float(total / discount.sum() / len(Y))


def partitions(n: int) -> Iterator[np.ndarray]:
    """Every way to part n rows in two, each once: the first row is on the side -1."""
    for rest in itertools.product((-1, 1), repeat=n - 1):
        yield np.array([-1, *rest])


def alternate(Y, w, side) -> list[float]:
    """The gain after each step of the alternation of section 6.1, which ends where no row moves.

    Given the sides, each ranks the labels by their summed worth; given both rankings, each row goes to the side that ranks its
    own labels higher, and stays where they stand alike.

    Parameters
    ----------
    Y, w, side
        As for :func:`node_gain`; ``side`` is where it starts.

    Returns
    -------
    list of float
        :func:`node_gain` at the start and after each step; never falling.
    """
    Y, w, side = np.asarray(Y, float), np.asarray(w, float), np.array(side)
    discount = 1 / np.log2(np.arange(2, Y.shape[1] + 2))
    found = [node_gain(Y, w, side)]
    while True:
        edge = np.zeros(Y.shape[1])
        for of in (-1, 1):
            order = np.argsort(-(w * Y[side == of]).sum(axis=0), kind="stable")
            edge[order] += of * discount
        more = (Y * w) @ edge
        moved = np.where(np.abs(more) > 1e-12, np.sign(more), side)
        if (moved == side).all():
            return found
        side = moved
        found.append(node_gain(Y, w, side))


def node_found(Y, w, seed: int = 0) -> np.ndarray:
    """The partition of a root that :class:`xcrepro.models.PfastXML` comes to where any partition can be separated.

    Each row has a feature of its own, so the separator stands in nobody's way; one split, then leaves.

    Parameters
    ----------
    Y, w
        As for :func:`node_gain`; 2 rows or more.
    seed : int
        Of the tree, which starts from a partition by chance.

    Returns
    -------
    ndarray of int, shape (n,)
        -1 for the first row's side, +1 for the other; all -1 where the node was not parted.
    """
    Y = np.asarray(Y, np.float32)
    tree = PfastXML(trees=1, max_leaf=len(Y) - 1, C=1000.0, inverse_propensity=w, seed=seed).fit(np.eye(len(Y)), Y)
    reached = tree.predict(np.eye(len(Y)), Y.shape[1]).to_csr().toarray()
    return np.where((reached == reached[0]).all(axis=1), -1, 1)


# ---------------------------------------------------------------- centres: equations 5 to 7


def unit_rows(X) -> sparse.csr_matrix:
    """The rows at length 1, which gamma = 30 supposes; an empty row stays empty."""
    X = sparse.csr_matrix(X, dtype=np.float64)
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags_array(1 / np.where(length > 0, length, 1.0)) @ X)


def mean_centres(X, Y) -> np.ndarray:
    """mu_l of eq. 7, the mean of the label's rows.

    Parameters
    ----------
    X : sparse matrix or array, shape (n, D)
        Unit rows.
    Y : sparse matrix or array, shape (n, L)

    Returns
    -------
    ndarray, shape (L, D)
        0 for a label without a row.
    """
    Y = sparse.csr_matrix(Y, dtype=np.float64)
    counts = np.maximum(np.asarray(Y.sum(axis=0)).ravel(), 1)
    return np.asarray((Y.T @ sparse.csr_matrix(X)).todense()) / counts[:, None]


def likelihood(X, y, p, mu: np.ndarray, gamma: float = PAPER_GAMMA) -> np.ndarray:
    """Eq. 6 of each of some labels.

    Parameters
    ----------
    X : sparse matrix, shape (n, D)
        Unit rows.
    y : ndarray of 0 and 1, shape (n, m)
        A column a label.
    p : ndarray, shape (m,)
        Propensities.
    mu : ndarray, shape (m, D)
    gamma : float

    Returns
    -------
    ndarray, shape (m,)
        The sum over rows of log((1 - y) + p (2y - 1) / (1 + v)).
    """
    v = _v(X, mu, gamma)
    return np.where(y > 0, np.log(p) - np.log1p(v), np.log1p(-p / (1 + v))).sum(axis=0)


def _v(X, mu: np.ndarray, gamma: float) -> np.ndarray:
    """v_il of eq. 5, (n, m)."""
    square = np.asarray(X.multiply(X).sum(axis=1)).ravel()[:, None] + (mu * mu).sum(axis=1)
    return np.exp(gamma / 2 * np.maximum(square - 2 * (X @ mu.T), 0.0))


def exact_centres(
    X, Y, p: np.ndarray, gamma: float = PAPER_GAMMA, steps: int = 50, tol: float = 1e-6, block: int = 200
) -> np.ndarray:
    """mu_l of eq. 6: a maximum of the likelihood, by ascent from eq. 7's mean.

    Each step is along the gradient, the sum of u_il (x_i - mu_l), by the sum of the |u_il|: where no other point is
    near this is all
    the way to the weighted mean. A label whose likelihood would fall goes half as far, and half of that, and stays
    where nothing helps.

    Parameters
    ----------
    X : sparse matrix, shape (n, D)
        Unit rows.
    Y : sparse matrix, shape (n, L)
    p : ndarray, shape (L,)
        Propensities.
    gamma : float
    steps : int
        At most.
    tol : float
        A label is done where no coordinate moves by more.
    block : int
        Labels at a time.

    Returns
    -------
    ndarray, shape (L, D)
    """
    X, mu = sparse.csr_matrix(X), mean_centres(X, Y)
    Y = sparse.csc_matrix(Y, dtype=np.float64)
    for lo in range(0, Y.shape[1], block):
        labels = np.arange(lo, min(lo + block, Y.shape[1]))
        labels = labels[np.diff(Y.indptr)[labels] > 0]  # a label without a row has no centre to move
        best = likelihood(X, Y[:, labels].toarray(), p[labels], mu[labels], gamma)
        for _ in range(steps):
            if not labels.size:
                break
            y, now = Y[:, labels].toarray(), mu[labels]
            v = _v(X, now, gamma)
            share = v / (1 + v)
            u = np.where(y > 0, share, -share * p[labels] / (1 + v - p[labels]))
            step = (X.T @ u).T - now * u.sum(axis=0)[:, None]
            step /= np.maximum(np.abs(u).sum(axis=0), np.finfo(float).tiny)[:, None]
            length = np.ones(labels.size)
            for _ in range(20):
                tried = now + length[:, None] * step
                value = likelihood(X, y, p[labels], tried, gamma)
                worse = value < best
                if not worse.any():
                    break
                length[worse] /= 2
            worse = value < best
            tried[worse], value[worse] = now[worse], best[worse]
            moved = np.abs(tried - now).max(axis=1) > tol
            mu[labels] = tried
            labels, best = labels[moved], value[moved]
    return mu


def least_weight(X, Y, mu: np.ndarray, gamma: float = PAPER_GAMMA) -> float:
    """The least u_il = v / (1 + v) that a label's own row has in eq. 6's gradient; eq. 7 takes 1 for all.

    Parameters
    ----------
    X : sparse matrix, shape (n, D)
        Unit rows.
    Y : sparse matrix, shape (n, L)
    mu : ndarray, shape (L, D)
    gamma : float

    Returns
    -------
    float
        Over labels of two rows or more, the 1st percentile of all such pairs; of a label of one row its mean is the
        row, whatever u.
        NaN without such a label.
    """
    pairs = sparse.coo_matrix(Y)
    often = np.bincount(pairs.col, minlength=Y.shape[1])[pairs.col] > 1
    rows, labels, X = pairs.row[often], pairs.col[often], sparse.csr_matrix(X)
    if not rows.size:
        return float("nan")
    square = np.asarray(X.multiply(X).sum(axis=1)).ravel()[rows] + (mu * mu).sum(axis=1)[labels]
    along = np.concatenate([_along(X, mu, rows[at], labels[at]) for at in np.array_split(np.arange(rows.size), 50)])
    return float(np.quantile(1 / (1 + np.exp(-gamma / 2 * np.maximum(square - 2 * along, 0.0))), 0.01))


def _along(X: sparse.csr_matrix, mu: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.asarray(X[rows].multiply(mu[labels]).sum(axis=1)).ravel() if rows.size else np.empty(0)


def with_centres(model: PfastreXML, mu: np.ndarray) -> PfastreXML:
    """The same trees with other centres.

    Parameters
    ----------
    model : PfastreXML
        Fitted; it stays as it is.
    mu : ndarray, shape (L, D)

    Returns
    -------
    PfastreXML
    """
    other, means = copy.copy(model), sparse.csr_matrix(mu, dtype=np.float32)
    other.m_indptr_, other.m_indices_ = means.indptr.astype(np.int64), means.indices.astype(np.int32)
    other.m_data_ = means.data
    other.m_square_ = np.asarray(means.astype(np.float64).power(2).sum(axis=1)).ravel()
    return other


# ---------------------------------------------------------------- the second ranking: equation 8


def trained_model(ds: Dataset, seed: int = 0) -> PfastreXML:
    """The baseline that all items share, with the dataset's A and B."""
    return baselines.training(MODEL, ds, seed).model()


def rankings(ds: Dataset, model: PfastreXML) -> dict[str, TopK]:
    """The five best labels of each test point, of the same trees.

    Parameters
    ----------
    ds : Dataset
    model : PfastreXML
        Fitted on its train points.

    Returns
    -------
    dict of str to TopK
        By the trees alone; re-ranked with eq. 7's means, as published; with eq. 6's maximum; by eq. 5 alone (alpha
        = 0), among the
        labels that the trees hold.
    """
    X, w = unit_rows(ds.train.X), weights(ds)
    exact = with_centres(model, exact_centres(X, ds.train.Y, 1 / w, model.gamma))
    centres = copy.copy(model).set_params(alpha=0.0)
    k = max(KS)
    return {
        TREES: model.pfastxml().predict(ds.test.X, k),
        MEAN: model.predict(ds.test.X, k),
        EXACT: exact.predict(ds.test.X, k),
        CENTRES: centres.predict(ds.test.X, k),
    }


def _psp(Y, top: TopK, w: np.ndarray, k: int) -> float:
    return 100 * float(metrics.psp(Y, top, k, inverse_propensity=w)[0])


def measure(ds: Dataset, tops: Mapping[str, TopK]) -> dict[int, Measured]:
    """PSP@k of each ranking with a jackknife over test points, by k."""
    w = weights(ds)
    return {k: Measured.of_rows(lambda Y, top, k=k: _psp(Y, top, w, k), ds.test.Y, tops) for k in KS}


def compute(ds: Dataset, tops: Mapping[str, TopK], measured: Mapping[int, Measured]) -> pd.DataFrame:
    """The rankings by PSP, precision and coverage.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Of :func:`rankings`.
    measured : mapping of int to Measured
        Of :func:`measure`.

    Returns
    -------
    DataFrame
        ranking; P1, P3, P5 (PSP, as table 3 of the paper calls it) and their errors; p1, p5 (precision), of a twin
        on its complete truth;
        C5 (coverage@5 as table 4 has it); percent and points.
    """
    truth = complete(ds)
    truth = ds.test.Y if truth is None else truth
    rows = []
    for name, top in tops.items():
        row = {"ranking": name} | {f"P{k}": measured[k].values[name] for k in KS}
        row |= {f"P{k} error": measured[k].error(name) for k in KS}
        row |= {f"precision@{k}": 100 * metrics.precision(truth, top, k)[0] for k in (1, 5)}
        rows.append(row | {"C5": 100 * metrics.coverage(ds.test.Y, top, 5, over="reachable")[0]})
    return pd.DataFrame(rows)


def compute_grid(ds: Dataset, model: PfastreXML, alphas: Sequence[float], gammas: Sequence[float]) -> pd.DataFrame:
    """PSP@1, PSP@5 and coverage@5 by alpha and gamma, which act when predicting: the trees stay.

    Parameters
    ----------
    ds : Dataset
    model : PfastreXML
    alphas, gammas : sequence of float

    Returns
    -------
    DataFrame
        gamma, alpha, P1, P5, C5; percent. alpha = 1 is the trees alone, whatever gamma.
    """
    w, rows = weights(ds), []
    for gamma in sorted(gammas):
        for alpha in sorted(alphas):
            top = copy.copy(model).set_params(alpha=float(alpha), gamma=float(gamma)).predict(ds.test.X, 5)
            covered = 100 * metrics.coverage(ds.test.Y, top, 5, over="reachable")[0]
            rows.append((gamma, alpha, *(_psp(ds.test.Y, top, w, k) for k in (1, 5)), covered))
    return pd.DataFrame(rows, columns=["gamma", "alpha", "P1", "P5", "C5"])


# ---------------------------------------------------------------- time


def compute_times(ds: Dataset, model: PfastreXML, repeats: int = 3) -> pd.DataFrame:
    """CPU time of what re-ranking adds, beside the trees'.

    Parameters
    ----------
    ds : Dataset
    model : PfastreXML
    repeats : int
        The least of so many is taken.

    Returns
    -------
    DataFrame
        what, ms (a test point when predicting, in all when training), share (percent of the trees' time). Shown,
        never compared.
    """
    plain, n = model.pfastxml(), ds.test.Y.shape[0]

    def least(work) -> float:
        work()  # compiled, in memory
        return 1000 * min(timeit.repeat(work, number=1, repeat=repeats, timer=process_time))

    trees, both = (least(lambda one=one: one.predict(ds.test.X, 5)) / n for one in (plain, model))
    X = unit_rows(ds.train.X)
    truth = Truth.of(ds.train.Y).to_csr()
    means = least(lambda: truth.T @ X)
    one_tree = least(lambda: copy.copy(plain).set_params(trees=1).fit(ds.train.X, ds.train.Y))
    rows = [
        ("prediction: the trees", trees, 100.0),
        ("prediction: re-ranking", max(both - trees, 0.0), 100 * max(both / trees - 1, 0.0)),
        (f"training: {plain.trees} trees, from one", one_tree * plain.trees, 100.0),
        ("training: means", means, 100 * means / (one_tree * plain.trees)),
    ]
    return pd.DataFrame(rows, columns=["what", "ms", "share"])


def between(share: float) -> str:
    """A share of time in words that another machine would use too.

    >>> between(0.2), between(14.0), between(500.0)
    ('below 1 %', '10 to 30 %', 'above 300 %')
    """
    if share < RANGES[0]:
        return f"below {RANGES[0]} %"
    above = [bound for bound in RANGES if bound > share]
    if not above:
        return f"above {RANGES[-1]} %"
    return f"{RANGES[RANGES.index(above[0]) - 1]} to {above[0]} %"


# ---------------------------------------------------------------- what comes out


def findings(measured: Mapping[int, Measured], grid: pd.DataFrame, least: float) -> list[str]:
    """What re-ranking brings, what eq. 7 costs, and what alpha and gamma do.

    Parameters
    ----------
    measured : mapping of int to Measured
        Of :func:`measure`.
    grid : DataFrame
        Of :func:`compute_grid`.
    least : float
        Of :func:`least_weight`, with eq. 7's means.

    Returns
    -------
    list of str
    """
    said = []
    for left, right, words in (
        (MEAN, TREES, "Re-ranking with eq. 7's means brings, over the trees alone"),
        (EXACT, MEAN, "Eq. 6's maximum is, over eq. 7's means"),
    ):
        pairs = corrected(measured[k].difference(left, right) for k in KS)
        each = [f"{one.value:+.2f} ± {one.error:.2f} ({one.verdict})" for one in pairs]
        said.append(f"{words}, in points of PSP@{', '.join(map(str, KS))}: {', '.join(each)}.")
    cost = [100 * (measured[k].values[EXACT] / measured[k].values[MEAN] - 1) for k in KS]
    said[-1] += (
        f" In percent of itself: {', '.join(f'{one:+.2f}' for one in cost)}; the paper says that eq. 7 costs 0.2 %."
    )
    if not np.isnan(least):
        said.append(
            f"Eq. 7 puts every weight u of a label's own points at 1; of 99 % of them it is {least:.4f} or more."
        )
    best = grid.loc[grid["P5"].idxmax()]
    published = grid[(grid["alpha"] == PAPER_ALPHA) & (grid["gamma"] == PAPER_GAMMA)]
    text = f"Of the grid α = {best['alpha']:g}, γ = {best['gamma']:g} has the highest PSP@5, {best['P5']:.2f} %"
    if len(published):
        text += f"; the paper's α = {PAPER_ALPHA}, γ = {PAPER_GAMMA:g} {published['P5'].iloc[0]:.2f} %"
    said.append(f"{text}. Chosen on the test points, so an upper bound.")
    return said


def findings_recorded(recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """What eq. 7 costs and re-ranking brings on real data, as recorded.

    Parameters
    ----------
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`compute`.

    Returns
    -------
    list of str
        One sentence; none where nothing is recorded.
    """
    said = []
    for dataset, table in recorded.items():
        value = table.set_index("ranking")
        gain, cost = (
            ", ".join(f"{value.loc[left, f'P{k}'] - value.loc[right, f'P{k}']:+.2f}" for k in KS)
            for left, right in ((MEAN, TREES), (EXACT, MEAN))
        )
        said.append(f"{dataset}: re-ranking {gain}, eq. 6 for eq. 7 {cost}")
    return [f"Real data first, points of PSP@1, 3, 5: {'; '.join(said)}."] if said else []


def plot(grid: pd.DataFrame, ax=None) -> Figure:
    """PSP@1, PSP@5 and coverage@5 against alpha, a line a gamma.

    Parameters
    ----------
    grid : DataFrame
        Of :func:`compute_grid`.
    ax : array of Axes, optional
        Three.
    """
    names = {"P1": "PSP@1 (%)", "P5": "PSP@5 (%)", "C5": "coverage@5 (%)"}
    with figures.new(looks.WIDE, 3.4, ncols=3, ax=ax) as (fig, axes):
        for axis, (column, label) in zip(axes, names.items(), strict=True):
            for at, (gamma, part) in enumerate(grid.groupby("gamma")):
                look = looks.Look(_COLOURS[at % len(_COLOURS)], "os^Dv"[at % 5], _DASHES[at % len(_DASHES)])
                axis.plot(part["alpha"], part[column], label=f"γ = {gamma:g}", **look.line())
            axis.axvline(PAPER_ALPHA, color="0.6", linewidth=0.8, label="_guide")
            axis.set(xlabel="α, the trees' share", ylabel=label)
            figures.draws(axis, x="alpha", y=column)
        looks.legend(fig, axes[0])
        looks.title(fig, f"What α and γ of eq. 8 do, the trees being the same (line: the paper's α = {PAPER_ALPHA})")
        return fig
