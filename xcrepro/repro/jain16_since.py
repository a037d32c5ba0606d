"""What the item on propensity-scored metrics in hindsight computes: where they mislead, on a twin whose propensities are known.

The points made are those of the coverage paper (sections 1 and 3.1). A twin has a complete truth and an observed one, so each
use of the metric can be held against what it is meant to tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import propensity
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs import baselines, trained
from xcrepro.metrics import ranking
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

KS = (1, 3, 5)
PLACES = 100
MODELS = ("Popularity", "1-vs-All", "PLT", "FastXML", "PfastXML", "PfastreXML")
AS_IS, DIVIDED, KNOWN = "by probability", "by probability / p", "the twin's own probabilities"

PLAIN = "P, propensities ignored"
TRUE = "PSP, the true p"
RATIO = "PSP as published (ratio), the true p"
COUNTED = "PSP, p from observed counts, right A, B"
WIKIPEDIA = "PSP, A, B of Wikipedia (0.5, 0.4)"
AMAZON = "PSP, A, B of Amazon (0.6, 2.6)"
SALIENT = "PSP, the true p, plain cases marked first"
ESTIMATORS = (PLAIN, TRUE, RATIO, COUNTED, WIKIPEDIA, AMAZON, SALIENT)


def predictions(ds: Twin, models: Sequence[str] = MODELS, seed: int = 0) -> dict[str, TopK]:
    """Models trained as one has to, on the OBSERVED train labels: name -> best labels of the test points."""
    return {
        name: trained.training(baselines.recipe(name, ds, seed), ds.train.X, ds.train.Y_observed).predictions(
            ds.test.X, PLACES
        )
        for name in models
    }


def observed_counts(ds: Twin) -> np.ndarray:
    """(L,) train points that carry each label in the observed truth: all that anybody without the complete truth has."""
    return Truth.of(ds.train.Y_observed).label_counts()


# ---------------------------------------------------------------- does it estimate what it should, and rank rightly?


@dataclass(frozen=True)
class Draws:
    """What :func:`simulate` found, as fractions.

    complete: (models, ks) P@k on the complete truth.  values: (draws, estimators, models, ks), what each of
    :data:`ESTIMATORS` makes of one draw of the observed truth.
    """

    models: tuple[str, ...]
    complete: np.ndarray
    values: np.ndarray


def simulate(ds: Twin, tops: dict[str, TopK], draws: int = 200, seed: int = 0) -> Draws:
    """P@k of the complete truth as every estimator sees it, over ``draws`` draws of what goes missing in the test points.

    All estimators but the last see the labels go missing with p_l, independently; the last one's labels with :func:`by_case`.
    """
    rng, counts = np.random.default_rng(seed), observed_counts(ds)
    true = 1.0 / ds.propensities
    assumed = [propensity.inverse(counts, ds.n_train, A, B) for A, B in ((ds.A, ds.B), (0.5, 0.4), (0.6, 2.6))]
    truth, case = Truth.of(ds.test.Y), by_case(ds)
    values = np.empty((draws, len(ESTIMATORS), len(tops), len(KS)))
    for draw in range(draws):
        left = Truth.of(propensity.drop_labels(truth, ds.propensities, rng))
        salient = Truth.of(drop_pairs(truth, case, rng))
        for m, top in enumerate(tops.values()):
            first = ranking.values(["P", "PSP (bare)", "PSP"], left, top, KS, true)
            bare = [ranking.psp(left, top, KS, inverse_propensity=w, normalize=False) for w in assumed]
            last = ranking.psp(salient, top, KS, inverse_propensity=true, normalize=False)
            values[draw, :, m] = [first["P"], first["PSP (bare)"], first["PSP"], *bare, last]
    complete = np.array([ranking.precision(truth, top, KS) for top in tops.values()])
    return Draws(tuple(tops), complete, values)


def by_case(ds: Twin) -> np.ndarray:
    """One probability of being marked for each relevant pair of the test points, in row order: min(1, t_l eta_il).

    eta_il is the twin's P(y_il = 1 | x_i): pairs that are plain from the features are marked first. t_l is such that the mean
    over ALL relevant pairs of the label, train and test, is its p_l: per label nothing has changed.
    """
    parts = [(Truth.of(split.Y), split.marginals) for split in (ds.train, ds.test)]
    labels = np.concatenate([truth.indices for truth, _ in parts])
    eta = np.concatenate([of_pairs(truth, marginals) for truth, marginals in parts])
    counts = np.maximum(np.bincount(labels, minlength=ds.propensities.size), 1)
    low = np.zeros(counts.size)
    high = np.full(counts.size, 1.0 / eta.min())
    for _ in range(80):
        middle = (low + high) / 2
        mean = np.bincount(labels, np.minimum(1.0, middle[labels] * eta), minlength=counts.size) / counts
        low, high = np.where(mean < ds.propensities, middle, low), np.where(mean < ds.propensities, high, middle)
    n_test = parts[1][0].indices.size
    return np.minimum(1.0, ((low + high) / 2)[labels] * eta)[-n_test:]


def of_pairs(truth: Truth, values: sparse.csr_matrix) -> np.ndarray:
    """The values at the relevant pairs of ``truth``, in row order, labels rising."""
    rows = np.repeat(np.arange(truth.n_rows), truth.sizes)
    return np.asarray(values[rows, truth.indices], np.float64).ravel()


def drop_pairs(truth: Truth, kept: np.ndarray, rng: np.random.Generator) -> sparse.csr_matrix:
    """As :func:`xcrepro.propensity.drop_labels`, with one probability a relevant pair."""
    stays = rng.random(kept.size) < kept
    rows = np.repeat(np.arange(truth.n_rows), truth.sizes)[stays]
    ones = np.ones(rows.size, np.float32)
    return sparse.csr_matrix((ones, (rows, truth.indices[stays])), shape=(truth.n_rows, truth.n_labels))


def errors(found: Draws, ks: Sequence[int] = KS) -> pd.DataFrame:
    """How far each estimator is from P@k of the complete truth, in points: k, estimator, complete and estimate (P@k and what it
    makes of it, percent, means over models and draws), bias (their difference), least and largest (of a model's mean
    over draws), spread (standard deviation over draws, averaged over models)."""
    rows = []
    for k in ks:
        at = KS.index(k)
        mean, complete = 100 * found.values[..., at].mean(axis=0), 100 * found.complete[:, at]
        spread = 100 * found.values[..., at].std(axis=0, ddof=1)
        for i, name in enumerate(ESTIMATORS):
            away = mean[i] - complete
            rows.append(
                (k, name, complete.mean(), mean[i].mean(), away.mean(), away.min(), away.max(), spread[i].mean())
            )
    names = ["k", "estimator", "complete", "estimate", "bias", "least", "largest", "spread"]
    return pd.DataFrame(rows, columns=names)


def orders(found: Draws, apart: float = 0.01, ks: Sequence[int] = KS) -> pd.DataFrame:
    """How often an estimator puts two models in the order of the complete truth: k, estimator, pairs, right (percent of pairs
    and draws), worst pair, and how often that one is right.

    apart: pairs nearer than this in P@k of the complete truth are left out. A tie of the estimator counts half.
    """
    rows = []
    for k in ks:
        at = KS.index(k)
        gap = found.complete[:, None, at] - found.complete[None, :, at]
        better, worse = np.nonzero(gap >= apart)
        for i, name in enumerate(ESTIMATORS):
            seen = found.values[:, i, :, at]
            right = 50 * (1 + np.sign(seen[:, better] - seen[:, worse])).mean(axis=0)
            least = int(np.argmin(right)) if right.size else -1
            pair = f"{found.models[better[least]]} > {found.models[worse[least]]}" if right.size else ""
            mean, lowest = (right.mean(), right[least]) if right.size else (np.nan, np.nan)
            rows.append((k, name, better.size, mean, pair, lowest))
    return pd.DataFrame(rows, columns=["k", "estimator", "pairs", "right", "worst pair", "right there"])


# ---------------------------------------------------------------- the same number in two worlds


def weighted(top: TopK, weights: np.ndarray, k: int = max(KS)) -> TopK:
    """The k best of ``top`` by score times the label's weight; ties to the lowest id.

    >>> top = TopK.from_ids([[0, 1, 2]], [[0.9, 0.5, 0.1]], n_labels=3)
    >>> weighted(top, np.array([1.0, 2.0, 3.0]), k=2).ids
    array([[1, 0]], dtype=int32)
    """
    scores = top.to_csr()
    scores.data = (scores.data * weights[scores.indices]).astype(np.float32)
    return TopK.from_scores(scores, k)


def worlds(ds: Twin, model: str = "PLT", draws: int = 200, seed: int = 0) -> pd.DataFrame:
    """Rankings by probability, and by probability over propensity, in two worlds.

    ``missing``: labels go missing with p_l in train and test, and the published number sees what is left in test (its mean
    over ``draws``). ``complete``: nothing is missing, and the same propensities are used all the same.

    The probabilities are those of ``model``, trained on the labels that its world has, and the twin's own: P(y = 1 | x) of a
    label being MARKED, which is p times that of being relevant in the first world.

    Returns world, source, ranking, k, PSP (as published), P complete (P@k of the complete truth), both percent.
    """
    rng, w = np.random.default_rng(seed), 1.0 / ds.propensities
    left = [propensity.drop_labels(ds.test.Y, ds.propensities, rng) for _ in range(draws)]
    marked = sparse.csr_matrix(ds.test.marginals.multiply(ds.propensities))
    rows = []
    for world, train, test, own in (
        ("missing", ds.train.Y_observed, left, marked),
        ("complete", ds.train.Y, [ds.test.Y], ds.test.marginals),
    ):
        learnt = trained.training(baselines.recipe(model, ds, seed), ds.train.X, train).predictions(ds.test.X, PLACES)
        for source, top in ((model, learnt), (KNOWN, TopK.from_scores(own, PLACES))):
            for name, shown in ((AS_IS, top.head(max(KS))), (DIVIDED, weighted(top, w))):
                psp = np.mean([ranking.psp(Y, shown, KS, inverse_propensity=w) for Y in test], axis=0)
                complete = ranking.precision(ds.test.Y, shown, KS)
                rows += [(world, source, name, k, 100 * psp[i], 100 * complete[i]) for i, k in enumerate(KS)]
    return pd.DataFrame(rows, columns=["world", "source", "ranking", "k", "PSP", "P complete"])


def gains(table: pd.DataFrame) -> pd.DataFrame:
    """What dividing by p gains, in points: world, source, k, PSP, P complete."""
    plain, changed = (table[table["ranking"] == name] for name in (AS_IS, DIVIDED))
    out = plain[["world", "source", "k"]].reset_index(drop=True)
    for column in ("PSP", "P complete"):
        out[column] = changed[column].to_numpy() - plain[column].to_numpy()
    return out


# ---------------------------------------------------------------- rare labels, blindly


def blind(ds: Twin, top: TopK, seed: int = 0) -> pd.DataFrame:
    """Guessing rare labels without looking: guess, hits (in all test points), P, PSP (percent, at 5), on the complete truth.

    ``top`` as it is; with its fifth place given to a label seen 1 to 9 times in train, drawn from all of them, or only from
    those under the same root as the point's first label (from all where there is none); then two guesses that are the same
    for every point: the five most frequent labels, and five of the rare ones. Propensities from the train counts, A and B.
    """
    counts, k = ds.label_counts, max(KS)
    rng, rare = np.random.default_rng(seed), np.flatnonzero((counts >= 1) & (counts <= 9))
    root = roots(ds.parents)
    first = root[top.ids[:, 0]]
    near = [pool if (pool := rare[root[rare] == r]).size else rare for r in range(counts.size)]
    same = {
        "five most frequent labels": np.argsort(-counts, kind="stable")[:k],
        "five rare labels": rng.permutation(rare)[:k],
    }
    guesses = {
        "as predicted": top.head(k),
        "fifth place: any rare label": _with_last(top, [rare] * len(top), rng),
        "fifth place: a rare label of the topic": _with_last(top, [near[r] for r in first], rng),
    } | {name: TopK.from_ids(np.tile(ids, (len(top), 1)), n_labels=counts.size) for name, ids in same.items()}
    w, truth, rows = propensity.inverse(counts, ds.n_train, ds.A, ds.B), Truth.of(ds.test.Y), []
    for name, guess in guesses.items():
        found = ranking.values(["P", "PSP"], truth, guess, (k,), w)
        rows.append((name, int(truth.hits(guess.ids).sum()), 100 * found["P"][0], 100 * found["PSP"][0]))
    return pd.DataFrame(rows, columns=["guess", "hits", "P", "PSP"])


def _with_last(top: TopK, pools: Sequence[np.ndarray], rng: np.random.Generator) -> TopK:
    """``top`` with the fifth place of each row drawn from the row's pool, without what the row has already."""
    ids = top.ids[:, : max(KS)].copy()
    for row, pool in zip(ids, pools, strict=True):
        row[-1] = rng.choice(np.setdiff1d(pool, row[:-1]))
    return TopK.from_ids(ids, n_labels=top.n_labels)


def roots(parents: np.ndarray) -> np.ndarray:
    """(L,) the label at the top of each label's branch; itself where it has no parent.

    >>> roots(np.array([-1, 0, 1, -1]))
    array([0, 0, 0, 3])
    """
    above = np.where(parents < 0, np.arange(parents.size), parents)
    while not np.array_equal(above, above[above]):
        above = above[above]
    return above


def exchange(ds: Dataset) -> pd.DataFrame:
    """What a hit weighs by how often the label is seen, in hits on the most frequent label: points, weight, hits."""
    counts = ds.label_counts
    points = np.array([1, 3, 10, 30, 100, int(counts.max())])
    w = propensity.inverse(points, ds.n_train, ds.A, ds.B)
    return pd.DataFrame({"points": points, "weight": w, "hits": w / w[-1]})


# ---------------------------------------------------------------- figure


def plot(bias: pd.DataFrame, order: pd.DataFrame, ks: Sequence[int] = (1, 5)) -> Figure:
    """Left the bias of each estimator (the range over models as a line), right how often it ranks two models rightly."""
    looks = {ks[0]: ("o", "C0", -0.13), ks[-1]: ("s", "C1", 0.13)}
    at = np.arange(len(ESTIMATORS))
    with figures.new(width=7.4, height=3.7, ncols=2, sharey=True) as (fig, (left, right)):
        for k, (mark, color, shift) in looks.items():
            one, two = bias[bias["k"] == k], order[order["k"] == k]
            left.hlines(at + shift, one["least"], one["largest"], color=color, linewidth=1.2)
            left.plot(one["bias"], at + shift, mark, color=color, linestyle="none", label=f"k = {k}")
            right.plot(two["right"], at + shift, mark, color=color, linestyle="none")
        left.axvline(0, color="black", linewidth=0.8)
        left.set_yticks(at, ESTIMATORS)
        left.invert_yaxis()
        left.set(title="error as an estimate of P@k", xlabel="points (mark: mean, line: over models)")
        right.axvline(50, color="0.4", linewidth=0.8, linestyle=":")
        right.set(title="pairs of models in the right order", xlabel="% (50: a coin)", xlim=(48, 101))
        fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        error = bias[bias["k"] == ks[0]].set_index("estimator")["bias"]
        fig.suptitle(
            f"k = {ks[0]}: off by {error[TRUE]:+.1f} points with the true p, {error[SALIENT]:+.0f} if plain cases come first",
            fontsize=10,
        )
    return fig


def plot_worlds(table: pd.DataFrame) -> Figure:
    """An arrow for each source and k from the ranking by probability to the one divided by p: P@k of the complete truth
    against PSP@k as published, a panel a world."""
    titles = {"missing": "labels missing with p", "complete": "nothing missing"}
    looks = dict(zip(dict.fromkeys(table["source"]), (("C1", "s"), ("C0", "o")), strict=True))
    with figures.new(width=7.0, height=3.7, ncols=2, sharex=True, sharey=True) as (fig, axes):
        for ax, (world, title) in zip(axes, titles.items(), strict=True):
            for (source, k), part in table[table["world"] == world].groupby(["source", "k"], sort=False):
                ends = part.set_index("ranking")[["P complete", "PSP"]]
                start, stop = ends.loc[AS_IS], ends.loc[DIVIDED]
                color, mark = looks[source]
                ax.plot(*start, mark, color=color, linestyle="none", label=source if k == KS[0] else None)
                style = {
                    "arrowstyle": "-|>",
                    "color": color,
                    "linewidth": 1.3,
                    "shrinkA": 0,
                    "shrinkB": 0,
                    "mutation_scale": 7,
                }
                ax.annotate("", stop, start, arrowprops=style)
                ax.plot(*stop, marker="none", linestyle="none")
                ax.annotate(f"{k}", start, xytext=(5, -9), textcoords="offset points", fontsize=8)
            ax.set(title=title, xlabel="P@k of the complete truth, %")
            ax.margins(0.12)
        axes[0].set_ylabel("PSP@k as published, %")
        handles, labels = axes[0].get_legend_handles_labels()
        fig.legend(
            handles, labels, loc="outside lower center", ncols=2, title="ranked by (number: k; arrow: divided by p)"
        )
        k = max(KS)
        known = gains(table[(table["source"] == KNOWN) & (table["k"] == k)]).set_index("world")
        first, second = known.loc["missing"], known.loc["complete"]
        fig.suptitle(
            f"Dividing by p, k = {k}: PSP {first['PSP']:+.1f} and P {first['P complete']:+.1f} where labels are missing, "
            f"{second['PSP']:+.1f} and {second['P complete']:+.1f} where none is",
            fontsize=10,
        )
    return fig
