"""Propensity-scored metrics in hindsight: where they mislead, on a twin whose propensities are known.

The points made are those of the coverage paper (sections 1 and 3.1). A twin has a complete truth and an observed one,
so each use of the metric can be held against what it is meant to tell. Its propensities are those of eq. 1 with other
odds of missing (:func:`xcrepro.data.twin.twin`), so the model's, which is all that one has of real data, can be held
against them too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, propensity
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs import baselines, trained
from xcrepro.inputs.datasets import weights
from xcrepro.metrics import ranking
from xcrepro.papers.jain16._common import KS
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

MODELS = ("Popularity", "1-vs-All", "PLT", "FastXML", "PfastXML", "PfastreXML")
AS_IS, DIVIDED, MODELLED = "by probability", "by probability / p", "by probability / the model's p"
KNOWN = "the twin's own probabilities"

ESTIMATORS = (
    "P, propensities ignored",
    "PSP, the true p",
    "PSP as published (ratio), the true p",
    "PSP, the model's p",
    "PSP as published (ratio), the model's p",
    "PSP, A, B of Wikipedia (0.5, 0.4)",
    "PSP, A, B of Amazon (0.6, 2.6)",
    "PSP, the true p, plain cases marked first",
)
PLAIN, TRUE, RATIO, MODEL, PUBLISHED, *_, SALIENT = ESTIMATORS
GAINED = ["PSP", "PSP model", "P complete"]
ERRORS = ["k", "estimator", "complete", "estimate", "bias", "least", "largest", "spread"]
ORDERS = ["k", "estimator", "pairs", "right", "worst pair", "right there"]


def _predict(model: str, ds: Twin, Y, seed: int) -> TopK:
    training = trained.training(baselines.recipe(model, ds, seed), ds.train.X, Y)
    return training.predictions(ds.test.X, baselines.PLACES)


# ---------------------------------------------------------------- does it estimate what it should, and rank rightly?


def simulate(ds: Twin, tops: dict[str, TopK], draws: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """P@k of the complete truth as every estimator sees it, over draws of what goes missing in the test points.

    All estimators but the last see the labels go missing with p_l, independently; the last one's labels with
    :func:`case_propensities`. The model's p are eq. 1's, from the observed train counts and the dataset's A and B.

    Parameters
    ----------
    ds : Twin
    tops : dict of str to TopK
        Model -> its predictions for the test points.
    draws : int
    seed : int
        Of what goes missing.

    Returns
    -------
    complete : ndarray, shape (models, ks)
        P@k on the complete truth, as a fraction.
    values : ndarray, shape (draws, estimators, models, ks)
        What each of :data:`ESTIMATORS` makes of one draw of the observed truth, as a fraction.
    """
    rng, true = np.random.default_rng(seed), 1.0 / ds.propensities
    model, *others = (
        propensity.inverse(ds.label_counts, ds.n_train, A, B) for A, B in ((ds.A, ds.B), (0.5, 0.4), (0.6, 2.6))
    )
    truth, kept = Truth.of(ds.test.Y_complete), (ds.propensities, case_propensities(ds))
    bare, ratio = "PSP (bare)", "PSP"
    values = np.empty((draws, len(ESTIMATORS), len(tops), len(KS)))
    for draw in range(draws):
        left, salient = (Truth.of(propensity.drop_labels(truth, p, rng)) for p in kept)
        for m, top in enumerate(tops.values()):
            found = ranking.values(["P", bare, ratio], left, top, KS, true)
            assumed = ranking.values([bare, ratio], left, top, KS, model)
            other = [ranking.values([bare], left, top, KS, w)[bare] for w in others]
            last = ranking.values([bare], salient, top, KS, true)[bare]
            values[draw, :, m] = [found["P"], found[bare], found[ratio], assumed[bare], assumed[ratio], *other, last]
    return np.array([ranking.precision(truth, top, KS) for top in tops.values()]), values


def case_propensities(ds: Twin) -> np.ndarray:
    """Each test pair's probability of being marked where it is relevant: min(1, t_l eta_il).

    eta_il is the twin's P(y_il = 1 | x_i): pairs that are plain from the features are marked first. t_l is such that
    the mean over ALL relevant pairs of the label, train and test, is its p_l: per label nothing has changed.

    Parameters
    ----------
    ds : Twin

    Returns
    -------
    ndarray, shape (n, L)
        From 0 to 1.
    """
    splits = ds.train, ds.test
    pairs = [split.Y_complete.nonzero() for split in splits]
    labels = np.concatenate([columns for _, columns in pairs])
    eta = np.concatenate([split.marginals[at].A1 for split, at in zip(splits, pairs, strict=True)]).astype(float)
    counts = np.maximum(np.bincount(labels, minlength=ds.propensities.size), 1)
    low, high = np.zeros(counts.size), np.full(counts.size, 1.0 / eta.min())
    for _ in range(80):  # bisection
        middle = (low + high) / 2
        mean = np.bincount(labels, np.minimum(1.0, middle[labels] * eta), minlength=counts.size) / counts
        low, high = np.where(mean < ds.propensities, [middle, high], [low, middle])
    return np.minimum(1.0, (low + high) / 2 * ds.test.marginals.toarray())


def compute(models: Sequence[str], complete: np.ndarray, values: np.ndarray, apart: float = 0.01) -> pd.DataFrame:
    """How far each estimator is from P@k of the complete truth, and how often it puts two models in its order.

    Parameters
    ----------
    models : sequence of str
        Names of the models that were simulated.
    complete, values : ndarray
        Of :func:`simulate`.
    apart : float
        Pairs of models nearer than this in P@k of the complete truth are left out.

    Returns
    -------
    DataFrame
        :data:`ERRORS`: k, estimator, complete and estimate (P@k and what it makes of it, percent, means over models
        and draws), bias (their difference, in points), least and largest (of a model's mean over draws), spread
        (standard deviation over draws, averaged over models). Then :data:`ORDERS`: pairs, right (percent of pairs and
        draws; a tie of the estimator counts half), worst pair, and how often that one is right.
    """
    rows = []
    for at, k in enumerate(KS):
        truth = complete[:, at]
        better, worse = np.nonzero(truth[:, None] - truth >= apart)
        for name, seen in zip(ESTIMATORS, values[..., at].swapaxes(0, 1), strict=True):
            mean, spread = 100 * seen.mean(axis=0), 100 * seen.std(axis=0, ddof=1).mean()
            away = mean - 100 * truth
            errors = 100 * truth.mean(), mean.mean(), away.mean(), away.min(), away.max(), spread
            right = 50 * (1 + np.sign(seen[:, better] - seen[:, worse])).mean(axis=0)
            pairs = [f"{models[i]} > {models[j]}" for i, j in zip(better, worse, strict=True)]
            order = (right.mean(), pairs[right.argmin()], right.min()) if pairs else (np.nan, "", np.nan)
            rows.append((k, name, *errors, right.size, *order))
    return pd.DataFrame(rows, columns=[*ERRORS, *ORDERS[2:]])


def check_errors(table: pd.DataFrame) -> pd.DataFrame:
    """The levels: a difference near 0 is changed by much by one turned ranking."""
    return table.drop(columns=["bias", "least", "largest"])


def plot(table: pd.DataFrame, ks: Sequence[int] = (1, 5), ax=None) -> Figure:
    """Left the bias of each estimator (the range over models as a line), right how often it ranks two models rightly.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ks : sequence of int
        The k that are drawn.
    ax : array of Axes, optional
        Two.
    """
    at = np.arange(len(ESTIMATORS))
    with figures.new(looks.WIDE, 3.7, ncols=2, sharey=True, ax=ax) as (fig, (left, right)):
        for k, shift in zip(ks, np.linspace(-0.13, 0.13, len(ks)), strict=True):
            part, style = table[table["k"] == k], looks.PLACES[k].mark() | {"linestyle": "none"}
            left.hlines(at + shift, part["least"], part["largest"], color=style["color"], linewidth=1.2)
            left.plot(part["bias"], at + shift, label=f"k = {k}", **style)
            right.plot(part["right"], at + shift, **style)
        left.axvline(0, color="black", linewidth=0.8)
        left.set_yticks(at, ESTIMATORS)
        left.invert_yaxis()
        left.set(title="error as an estimate of P@k", xlabel="points (mark: mean, line: over models)")
        right.axvline(50, color="0.4", linewidth=0.8, linestyle=":")
        right.set(title="pairs of models in the right order", xlabel="% (50: a coin)", xlim=(48, 101))
        figures.draws(left, x=("bias", "least", "largest"))
        figures.draws(right, x="right")
        looks.legend(fig, left)
        bias = table[table["k"] == ks[0]].set_index("estimator")["bias"]
        about = f"{bias[TRUE]:+.1f} points with the true p, {bias[MODEL]:+.1f} with the model's"
        looks.title(fig, f"k = {ks[0]}: off by {about}")
    return fig


# ---------------------------------------------------------------- the same number in two worlds


def reweight(top: TopK, weights: np.ndarray, k: int = max(KS)) -> TopK:
    """The best labels by score times the label's weight, as float32; ties to the lowest id.

    Parameters
    ----------
    top : TopK
    weights : ndarray, shape (L,)
    k : int
        Places that are kept.

    Returns
    -------
    TopK
        The k best.

    Examples
    --------
    >>> top = TopK.from_ids([[0, 1, 2]], [[0.9, 0.5, 0.1]], n_labels=3)
    >>> reweight(top, np.array([1.0, 2.0, 3.0]), k=2).ids
    array([[1, 0]], dtype=int32)
    """
    scores = top.to_csr()
    scores.data = (scores.data * weights[scores.indices]).astype(np.float32)
    return TopK.from_scores(scores, k)


def compute_worlds(ds: Twin, model: str = "PLT", draws: int = 200, seed: int = 0) -> pd.DataFrame:
    """Rankings by probability, and by probability over propensity, in two worlds.

    ``missing``: labels go missing with p_l in train and test, and the published number sees what is left in test (its
    mean over ``draws``). ``complete``: nothing is missing, and the same propensities are used all the same. They are
    the twin's own p, and the model's (eq. 1, from the observed train counts, A and B).

    The probabilities are those of ``model``, trained on the labels that its world has, and the twin's own: P(y = 1 |
    x) of a label being MARKED, which is p times that of being relevant in the first world.

    Parameters
    ----------
    ds : Twin
    model : str
        A baseline.
    draws : int
        Of what goes missing in the test labels.
    seed : int
        Of the training and of the draws.

    Returns
    -------
    DataFrame
        world, source, ranking, k; PSP, PSP model (as published: the ratio, with the twin's own p and the model's), P
        complete (P@k of the complete truth), percent.
    """
    rng, own_w, model_w = np.random.default_rng(seed), 1.0 / ds.propensities, weights(ds)
    truth = ds.test.Y_complete
    left = [propensity.drop_labels(truth, ds.propensities, rng) for _ in range(draws)]
    rows = []
    for world, train, test, own in (
        ("missing", ds.train.Y, left, ds.test.observed_marginals),
        ("complete", ds.train.Y_complete, [truth], ds.test.marginals),
    ):
        for source, top in (
            (model, _predict(model, ds, train, seed)),
            (KNOWN, TopK.from_scores(own, baselines.PLACES)),
        ):
            rankings = {AS_IS: top.head(max(KS)), DIVIDED: reweight(top, own_w), MODELLED: reweight(top, model_w)}
            for name, shown in rankings.items():
                psp = [
                    np.mean([ranking.psp(Y, shown, KS, inverse_propensity=w) for Y in test], axis=0)
                    for w in (own_w, model_w)
                ]
                values = 100 * np.array([*psp, ranking.precision(truth, shown, KS)])
                rows += [(world, source, name, k, *values[:, i]) for i, k in enumerate(KS)]
    return pd.DataFrame(rows, columns=["world", "source", "ranking", "k", *GAINED])


def compute_gains(worlds: pd.DataFrame) -> pd.DataFrame:
    """What dividing by p gains.

    Parameters
    ----------
    worlds : DataFrame
        From :func:`compute_worlds`.

    Returns
    -------
    DataFrame
        ranking (which p divides), world, source, k, and the differences of :data:`GAINED` (points).
    """
    at = worlds.set_index(["world", "source", "k"])
    plain = at.loc[at["ranking"] == AS_IS, GAINED]
    gains = {name: at.loc[at["ranking"] == name, GAINED] - plain for name in (DIVIDED, MODELLED)}
    return pd.concat(gains, names=["ranking"]).reset_index()


def plot_worlds(table: pd.DataFrame, ax=None) -> Figure:
    """P@k of the complete truth against PSP@k as published (the model's p), a panel a world.

    An arrow for each source and k goes from the ranking by probability to the one divided by the model's p.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_worlds`.
    ax : array of Axes, optional
        Two.
    """
    titles = {"missing": "labels missing with p", "complete": "nothing missing"}
    with figures.new(looks.MEDIUM, 3.8, ncols=2, sharex=True, sharey=True, ax=ax) as (fig, axes):
        for axis, (world, title) in zip(axes, titles.items(), strict=True):
            for (source, k), part in table[table["world"] == world].groupby(["source", "k"], sort=False):
                ends = part.set_index("ranking")[["P complete", "PSP model"]]
                start, stop = ends.loc[AS_IS], ends.loc[MODELLED]
                style = looks.Look(looks.INK).mark() if source == KNOWN else looks.of(source).mark()
                axis.plot(*start, linestyle="none", label=source if k == KS[0] else None, **style)
                arrow = {"arrowstyle": "-|>", "color": style["color"], "linewidth": 1.3, "mutation_scale": 7}
                axis.annotate("", stop, start, arrowprops=arrow | {"shrinkA": 0, "shrinkB": 0})
                axis.plot(*stop, linestyle="none")  # so that the axes reach it
                looks.name(axis, f"{k}", tuple(start), (5, -9) if source == KNOWN else (-10, -9))
            axis.set(title=title, xlabel="P@k of the complete truth, %")
            axis.margins(0.12)
            figures.draws(axis, x="P complete", y="PSP model")
        axes[0].set_ylabel("PSP@k as published, %")
        looks.legend(fig, axes[0], title="ranked by (number: k; arrow: divided by the model's p)")
        gains, k = compute_gains(table).set_index(["ranking", "source", "k", "world"]), max(KS)
        known = [gains.loc[(MODELLED, KNOWN, k, world)] for world in titles]
        first, second = (f"PSP {gain['PSP model']:+.1f}, P {gain['P complete']:+.1f}" for gain in known)
        looks.title(
            fig, f"Dividing by the model's p, k = {k}: {first} where labels are missing; {second} where none is"
        )
    return fig


# ---------------------------------------------------------------- rare labels, guessed without looking


def compute_guesses(ds: Twin, top: TopK, seed: int = 0) -> pd.DataFrame:
    """Guessing rare labels without looking at the point.

    ``top`` as it is; with its fifth place given to a label seen 1 to 9 times in train, drawn from all of them, or
    only from those that some train point has beside the point's first label (from all where there is none); then two
    guesses that are the same for every point: the five most frequent labels, and five of the rare ones.

    Parameters
    ----------
    ds : Twin
    top : TopK
        Predictions for the test points, 5 places or more.
    seed : int
        Of the drawn labels.

    Returns
    -------
    DataFrame
        guess, hits (observed, in all test points); then, percent, at 5: P and PSP of the observed labels, PSP as
        published, with propensities from the train counts, A and B; P complete, P of the complete truth.
    """
    counts, k = ds.label_counts, max(KS)
    rng, rare = np.random.default_rng(seed), np.flatnonzero((counts >= 1) & (counts <= 9))
    same = {
        "five most frequent labels": np.argsort(-counts, kind="stable")[:k],
        "five rare labels": rng.permutation(rare)[:k],
    }
    guesses = {
        "as predicted": top.head(k),
        "fifth place: any rare label": _with_last(top, [rare] * len(top), rng),
        "fifth place: a rare label seen beside the first": _with_last(top, _beside(ds, top.ids[:, 0], rare), rng),
    }
    guesses |= {name: TopK.from_ids(np.tile(ids, (len(top), 1)), n_labels=counts.size) for name, ids in same.items()}
    truth, complete, rows = Truth.of(ds.test.Y), Truth.of(ds.test.Y_complete), []
    for name, guess in guesses.items():
        found = ranking.values(["P", "PSP"], truth, guess, (k,), weights(ds))
        there = ranking.precision(complete, guess, (k,))[0]
        rows.append((name, int(truth.hits(guess.ids).sum()), *(100 * v for v in (*found["P"], *found["PSP"], there))))
    return pd.DataFrame(rows, columns=["guess", "hits", "P", "PSP", "P complete"])


def check_guesses(table: pd.DataFrame) -> pd.DataFrame:
    """Without the hits: a whole number has no tolerance, and P is the same in percent."""
    return table.drop(columns="hits")


def _with_last(top: TopK, pools: Sequence[np.ndarray], rng: np.random.Generator) -> TopK:
    """``top`` with the fifth place of each row drawn from the row's pool, without what the row has already."""
    ids = top.ids[:, : max(KS)].copy()
    for row, pool in zip(ids, pools, strict=True):
        row[-1] = rng.choice(np.setdiff1d(pool, row[:-1]))
    return TopK.from_ids(ids, n_labels=top.n_labels)


def _beside(ds: Dataset, first: np.ndarray, rare: np.ndarray) -> list[np.ndarray]:
    """For each of the labels ``first`` those of ``rare`` that stand beside it in a train point; all where none does."""
    Y = ds.train.Y
    together = (Y[:, rare].T @ Y).tocsc()
    near = {label: rare[np.sort(together[:, [label]].indices)] for label in np.unique(first[first >= 0])}
    return [beside if (beside := near.get(label, rare)).size else rare for label in first]


def compute_exchange(ds: Dataset) -> pd.DataFrame:
    """What a hit weighs by how often the label is seen.

    Parameters
    ----------
    ds : Dataset
        Its train counts, A and B.

    Returns
    -------
    DataFrame
        points (train points of the label, the last row the most frequent one's), weight (1/p), hits (on the most
        frequent label that weigh as much).
    """
    points = np.array([1, 3, 10, 30, 100, int(ds.label_counts.max())])
    w = propensity.inverse(points, ds.n_train, ds.A, ds.B)
    return pd.DataFrame({"points": points, "weight": w, "hits": w / w[-1]})
