"""Propensity-scored metrics in hindsight: where they mislead, on data whose propensities are known.

The points made are those of the coverage paper (sections 1 and 3.1). A twin has a complete truth and an observed one,
so each use of the metric can be held against what it is meant to tell. Its propensities are those of eq. 1 with other
odds of missing (:func:`xcrepro.data.twin.twin`), so the model's, which is all that one has of real data, can be held
against them too. Real data are taken for complete, as in the paper's simulation (section 7), and labels of them go
missing (:func:`known`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.sparse import csr_matrix

from xcrepro import looks, propensity
from xcrepro.data.dataset import Dataset, Split
from xcrepro.data.twin import Twin
from xcrepro.findings import Difference, Measured, corrected, signed
from xcrepro.inputs import baselines, parameters, trained
from xcrepro.inputs.datasets import weights
from xcrepro.metrics import ranking
from xcrepro.metrics.significance import jackknife_blocks, jackknife_error, t_p_value
from xcrepro.papers.jain16._common import KS
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

check_parameters = parameters.check

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
ERRORS = ["k", "estimator", "complete", "estimate", "bias", "error", "least", "largest", "spread"]
ORDERS = ["k", "estimator", "pairs", "right", "worst pair", "right there"]
RARE = 9
"""A label with at most so many train points is rare."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class KnownSplit(Split):
    """A split of which the complete truth is known, ``Y_complete``, as of a twin's."""

    Y_complete: csr_matrix


@dataclasses.dataclass(frozen=True, kw_only=True)
class Known(Dataset):
    """Real data from which labels went missing with known ``propensities``; made by :func:`known`."""

    train: KnownSplit
    test: KnownSplit
    propensities: np.ndarray = dataclasses.field(repr=False)

    @property
    def origin(self) -> str:
        """As a dataset's, and what was done to it."""
        return f"{super().origin}, taken for complete, labels dropped with eq. 1's propensities"


def known(ds: Dataset, seed: int = 0) -> Twin | Known:
    """Data whose complete truth and propensities are known.

    Parameters
    ----------
    ds : Dataset
    seed : int
        Of what goes missing.

    Returns
    -------
    Twin or Known
        A twin as it is. Of real data the labels are taken for the complete truth, and each goes missing, in train and
        test, with 1 minus eq. 1's propensity at the real train counts. The model's propensities, at the counts that
        are left, are smaller then.
    """
    if isinstance(ds, Twin):
        return ds
    rng, p = np.random.default_rng(seed), 1.0 / weights(ds)
    splits = (
        KnownSplit(part.X, propensity.drop_labels(part.Y, p, rng), Y_complete=part.Y) for part in (ds.train, ds.test)
    )
    fields = {field.name: getattr(ds, field.name) for field in dataclasses.fields(Dataset)}
    return Known(**fields | dict(zip(("train", "test"), splits, strict=True)), propensities=p)


def _predict(model: str, ds: Twin | Known, Y, seed: int) -> TopK:
    training = trained.training(baselines.recipe(model, ds, seed), ds.train.X, Y)
    return training.predictions(ds.test.X, baselines.PLACES)


# ---------------------------------------------------------------- does it estimate what it should, and rank rightly?


def simulate(
    ds: Twin | Known, tops: Mapping[str, TopK], draws: int = 200, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """P@k of the complete truth as every estimator sees it, over draws of what goes missing in the test points.

    All estimators but the last see the labels go missing with p_l, independently; the last one's labels with
    :func:`case_propensities`, which only a twin knows. The model's p are eq. 1's, from the observed train counts and the
    dataset's A and B.

    Parameters
    ----------
    ds : Twin or Known
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    draws : int
    seed : int
        Of what goes missing.

    Returns
    -------
    complete : ndarray, shape (models, ks)
        P@k on the complete truth, as a fraction.
    values : ndarray, shape (draws, estimators, models, ks)
        What each of :data:`ESTIMATORS` (without the last one where ``ds`` is no twin) makes of one draw of the observed
        truth, as a fraction.
    """
    rng, true = np.random.default_rng(seed), 1.0 / ds.propensities
    model, *others = (
        propensity.inverse(ds.label_counts, ds.n_train, A, B) for A, B in ((ds.A, ds.B), (0.5, 0.4), (0.6, 2.6))
    )
    truth, kept = Truth.of(ds.test.Y_complete), [ds.propensities]
    kept += [case_propensities(ds)] if isinstance(ds, Twin) else []
    bare, ratio = "PSP (bare)", "PSP"
    values = np.empty((draws, len(ESTIMATORS) - 2 + len(kept), len(tops), len(KS)))
    for draw in range(draws):
        left, *salient = (Truth.of(propensity.drop_labels(truth, p, rng)) for p in kept)
        for m, top in enumerate(tops.values()):
            found = ranking.values(["P", bare, ratio], left, top, KS, true)
            assumed = ranking.values([bare, ratio], left, top, KS, model)
            other = [ranking.values([bare], left, top, KS, w)[bare] for w in others]
            last = [ranking.values([bare], seen, top, KS, true)[bare] for seen in salient]
            values[draw, :, m] = [found["P"], found[bare], found[ratio], assumed[bare], assumed[ratio], *other, *last]
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
        and draws), bias (their difference, in points) and its standard error over the draws, least and largest (of a
        model's mean over draws), spread (standard deviation over draws, averaged over models).
        Then :data:`ORDERS`: pairs, right (percent of pairs and
        draws; a tie of the estimator counts half), worst pair, and how often that one is right.
    """
    rows = []
    for at, k in enumerate(KS):
        truth = complete[:, at]
        better, worse = np.nonzero(truth[:, None] - truth >= apart)
        for name, seen in zip(ESTIMATORS[: values.shape[1]], values[..., at].swapaxes(0, 1), strict=True):
            mean, spread = 100 * seen.mean(axis=0), 100 * seen.std(axis=0, ddof=1).mean()
            error = 100 * seen.mean(axis=1).std(ddof=1) / np.sqrt(len(seen))
            away = mean - 100 * truth
            errors = 100 * truth.mean(), mean.mean(), away.mean(), error, away.min(), away.max(), spread
            right = 50 * (1 + np.sign(seen[:, better] - seen[:, worse])).mean(axis=0)
            pairs = [f"{models[i]} > {models[j]}" for i, j in zip(better, worse, strict=True)]
            order = (right.mean(), pairs[right.argmin()], right.min()) if pairs else (np.nan, "", np.nan)
            rows.append((k, name, *errors, right.size, *order))
    return pd.DataFrame(rows, columns=[*ERRORS, *ORDERS[2:]])


def findings_estimates(table: pd.DataFrame, draws: int) -> list[str]:
    """What the estimators come to, and whether they order models rightly.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    draws : int
        As given to :func:`simulate`.

    Returns
    -------
    list of str
    """
    biases = corrected(_bias(row, draws) for row in table.itertuples(index=False))
    clear = {(one.left, k): one.clear for one, k in zip(biases, table["k"], strict=True)}
    rows, ks = table.set_index(["estimator", "k"]), sorted(set(table["k"]))
    names, ends = list(dict.fromkeys(table["estimator"])), (ks[0], ks[-1])
    near = [name for name in names if not any(clear[name, k] for k in ks)]
    said = []
    if near:
        error = max(rows.loc[(name, k), "error"] for name in near for k in ks)
        said.append(
            f"On average right, as far as {draws} draws tell (standard error at most {error:.2f} points): {', '.join(near)}."
        )
    off = [
        f"{name} ({' / '.join(signed(rows.loc[(name, k), 'bias'], 1) for k in ends)})"
        for name in names
        if name not in near
    ]
    if off:
        said.append(f"Clearly off (points at k = {ends[0]} / {ends[1]}): {'; '.join(off)}.")
    spreads = [f"{rows.loc[(name, ks[0]), 'spread']:.1f} with {name}" for name in (PLAIN, TRUE, MODEL)]
    said.append(
        f"One draw moves a model's number at k = {ks[0]} by (standard deviation, points): {', '.join(spreads)}."
    )
    return [*said, _say_orders(table)]


def _bias(row, draws: int) -> Difference:
    # Where no draw differs the bias is known: it is 0, or it is not.
    p = float(t_p_value(row.bias / row.error, draws - 1)) if row.error else float(abs(row.bias) < 1e-9)
    return Difference(row.estimator, "complete", row.bias, row.error, draws - 1, p)


def _say_orders(table: pd.DataFrame) -> str:
    pairs = table.groupby("k")["pairs"].first()
    if not pairs.sum():
        return "No two models are a point of P@k apart, so there is no order to get right."
    known = table[table["pairs"] > 0]
    wrong = known[known["right"] < 100]
    every = f"the {' + '.join(map(str, pairs))} pairs of models a point or more apart (k = {', '.join(map(str, pairs.index))})"
    if wrong.empty:
        return f"Every estimator has all of {every} in the right order in every draw."
    worst = wrong.loc[wrong["right there"].idxmin()]
    names = [name for name in dict.fromkeys(known["estimator"]) if name not in set(wrong["estimator"])]
    return (
        f"Of {every}, some come out in the wrong order at least once with {wrong['estimator'].nunique()} of "
        f"{len(names) + wrong['estimator'].nunique()} estimators; worst is {worst['estimator']} at k = {worst['k']}, with "
        f"{worst['worst pair']} right in {worst['right there']:.0f} % of the draws."
    )


def plot(table: pd.DataFrame, ks: Sequence[int] = (1, 5), ax=None) -> Figure:
    """Left the bias of each estimator (the range over models as a line), right how often it ranks two models rightly;
    left alone where no pair of models is ever in the wrong order.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ks : sequence of int
        The k that are drawn.
    ax : array of Axes, optional
        Two; one where there is the left alone.
    """
    names = list(dict.fromkeys(table["estimator"]))
    at, right = np.arange(len(names)), table.loc[table["k"].isin(ks), "right"].min()
    panels = 2 if right < 100 else 1
    widths = (2, 1)[:panels]
    with figures.new(looks.WIDE, 3.7, ncols=panels, sharey=True, squeeze=False, width_ratios=widths, ax=ax) as (
        fig,
        axes,
    ):
        left, *orders = axes[0]
        for k, shift in zip(ks, np.linspace(-0.16, 0.16, len(ks)), strict=True):
            part, style = table[table["k"] == k], looks.PLACES[k].mark() | {"linestyle": "none"}
            left.hlines(at + shift, part["least"], part["largest"], color=style["color"], linewidth=1.2)
            left.plot(part["bias"], at + shift, label=f"k = {k}", **style)
            for panel in orders:
                panel.plot(part["right"], at + shift, **style)
        left.axvline(0, color="black", linewidth=0.8)
        left.set_yticks(at, names)
        left.invert_yaxis()
        left.set(title="error as an estimate of P@k", xlabel="points (mark: mean, line: over models)")
        figures.draws(left, x=("bias", "least", "largest"))
        for panel in orders:
            panel.set(title="pairs in the right order", xlabel="% of pairs and draws")
            panel.set_xlim(right - 0.1 * (100 - right), 100 + 0.1 * (100 - right))
            figures.draws(panel, x="right")
        looks.legend(fig, left)
        bias = table[table["k"] == ks[0]].set_index("estimator")["bias"]
        looks.title(
            fig,
            f"k = {ks[0]}: {signed(bias[TRUE], 1)} points with the true p, {signed(bias[MODEL], 1)} with the model's",
        )
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


def rank_worlds(ds: Twin | Known, model: str = "PLT", seed: int = 0) -> dict[tuple[str, str, str], TopK]:
    """Rankings by probability, and by probability over propensity, in two worlds.

    ``missing``: labels go missing with p_l in train. ``complete``: nothing is missing, and the same propensities are
    used all the same. They are the data's own p, and the model's (eq. 1, from the observed train counts, A and B).

    The probabilities are those of ``model``, trained on the labels that its world has, and of a twin also its own: P(y
    = 1 | x) of a label being MARKED, which is p times that of being relevant in the first world.

    Parameters
    ----------
    ds : Twin or Known
    model : str
        A baseline.
    seed : int
        Of the training.

    Returns
    -------
    dict of (world, source, ranking) to TopK
    """
    own_w, model_w, found = 1.0 / ds.propensities, weights(ds), {}
    for world, train in (("missing", ds.train.Y), ("complete", ds.train.Y_complete)):
        tops = {model: _predict(model, ds, train, seed)}
        if isinstance(ds, Twin):
            exact = ds.test.observed_marginals if world == "missing" else ds.test.marginals
            tops[KNOWN] = TopK.from_scores(exact, baselines.PLACES)
        for source, top in tops.items():
            rankings = {AS_IS: top.head(max(KS)), DIVIDED: reweight(top, own_w), MODELLED: reweight(top, model_w)}
            found |= {(world, source, name): shown for name, shown in rankings.items()}
    return found


def compute_worlds(ds: Twin | Known, ranked: Mapping, draws: int = 200, seed: int = 0) -> pd.DataFrame:
    """What the published number and precision say of the rankings of two worlds.

    Parameters
    ----------
    ds : Twin or Known
    ranked : mapping
        From :func:`rank_worlds`.
    draws : int
        Of what goes missing in the test labels of the first world, of which the published number is the mean; nothing
        is missing in the second.
    seed : int
        Of the draws.

    Returns
    -------
    DataFrame
        world, source, ranking, k; PSP, PSP model (as published: the ratio, with the data's own p and the model's), P
        complete (P@k of the complete truth), percent.
    """
    rng, own_w, model_w = np.random.default_rng(seed), 1.0 / ds.propensities, weights(ds)
    truth = ds.test.Y_complete
    tests = {
        "missing": [propensity.drop_labels(truth, ds.propensities, rng) for _ in range(draws)],
        "complete": [truth],
    }
    rows = []
    for (world, source, name), shown in ranked.items():
        psp = [
            np.mean([ranking.psp(Y, shown, KS, inverse_propensity=w) for Y in tests[world]], axis=0)
            for w in (own_w, model_w)
        ]
        values = 100 * np.array([*psp, ranking.precision(truth, shown, KS)])
        rows += [(world, source, name, k, *values[:, i]) for i, k in enumerate(KS)]
    return pd.DataFrame(rows, columns=["world", "source", "ranking", "k", *GAINED])


def compute_gains(ds: Twin | Known, ranked: Mapping, worlds: pd.DataFrame) -> pd.DataFrame:
    """What dividing by p gains.

    Parameters
    ----------
    ds : Twin or Known
    ranked : mapping
        From :func:`rank_worlds`.
    worlds : DataFrame
        From :func:`compute_worlds`.

    Returns
    -------
    DataFrame
        ranking (which p divides), world, source, k, the differences of :data:`GAINED` (points), and of the last two the
        standard errors, ``PSP model ±`` and ``P complete ±``: a paired jackknife over 20 blocks of test points, of PSP
        on the one observed truth that the data come with.
    """
    at = worlds.set_index(["world", "source", "k"])
    plain = at.loc[at["ranking"] == AS_IS, GAINED]
    gains = {name: at.loc[at["ranking"] == name, GAINED] - plain for name in (DIVIDED, MODELLED)}
    table = pd.concat(gains, names=["ranking"]).reset_index()
    left = {key: _left_out(ds, key[0], top) for key, top in ranked.items()}
    errors = {
        key: 100 * jackknife_error(values - left[(*key[:2], AS_IS)]) for key, values in left.items() if key[2] != AS_IS
    }
    found = [errors[row.world, row.source, row.ranking][:, KS.index(row.k)] for row in table.itertuples(index=False)]
    return table.assign(**dict(zip(("PSP model ±", "P complete ±"), np.array(found).T, strict=True)))


def _left_out(ds: Twin | Known, world: str, top: TopK) -> np.ndarray:
    """(blocks, 2, ks): PSP with the model's p, and P of the complete truth, without one block of test points each."""
    seen, w = ds.test.Y if world == "missing" else ds.test.Y_complete, weights(ds)
    parts = []
    for keep in jackknife_blocks(len(top)):
        rest = top.rows(keep)
        psp = ranking.psp(seen[keep], rest, KS, inverse_propensity=w)
        parts.append((psp, ranking.precision(ds.test.Y_complete[keep], rest, KS)))
    return np.array(parts)


_WORLDS = {"missing": "labels missing", "complete": "nothing missing"}


def findings_worlds(gains: pd.DataFrame) -> list[str]:
    """What dividing by the model's p gains at the last k, by the published number and by the complete truth.

    Parameters
    ----------
    gains : DataFrame
        From :func:`compute_gains`.

    Returns
    -------
    list of str
        One sentence each of a source of probabilities and a world.
    """
    part = gains[(gains["ranking"] == MODELLED) & (gains["k"] == max(KS))]
    told = corrected(_gain(row, column) for _, row in part.iterrows() for column in ("PSP model", "P complete"))
    said = []
    for (_, row), psp, p in zip(part.iterrows(), told[::2], told[1::2], strict=True):
        verdict = f"{_move(psp, 'the published number')}, {_move(p, 'precision')}"
        said.append(
            f"{_WORLDS[row['world']].capitalize()}, {_scores(row['source'])} divided by the model's p, k = {row['k']}: PSP "
            f"{_plus(psp)}, P of the complete truth {_plus(p)} points: {verdict}."
        )
    return said


def _scores(source: str) -> str:
    return source if source == KNOWN else f"{source}'s scores"


def _gain(row: pd.Series, column: str) -> Difference:
    value, error = row[column], row[f"{column} ±"]
    p = float(t_p_value(value / error, 19)) if error else float(not value)
    return Difference(MODELLED, AS_IS, value, error, 19, p)


def _plus(one: Difference) -> str:
    return f"{signed(one.value, 1)} ± {one.error:.1f}"


def _move(one: Difference, what: str) -> str:
    return f"{what} {'does not clearly move' if not one.clear else 'rises' if one.value > 0 else 'falls'}"


def plot_worlds(table: pd.DataFrame, gains: pd.DataFrame, ax=None) -> Figure:
    """P@k of the complete truth against PSP@k as published (the model's p), a panel a world.

    An arrow for each source and k goes from the ranking by probability to the one divided by the model's p.

    Parameters
    ----------
    table, gains : DataFrame
        From :func:`compute_worlds` and :func:`compute_gains`.
    ax : array of Axes, optional
        Two.
    """
    last, told = max(KS), gains.set_index(["ranking", "source", "k", "world"])
    about = KNOWN if KNOWN in set(table["source"]) else table["source"].iloc[0]
    with figures.new(looks.MEDIUM, 3.8, ncols=2, sharex=True, sharey=True, ax=ax) as (fig, axes):
        for axis, (world, title) in zip(axes, _WORLDS.items(), strict=True):
            for (source, k), part in table[table["world"] == world].groupby(["source", "k"], sort=False):
                ends = part.set_index("ranking")[["P complete", "PSP model"]]
                start, stop = ends.loc[AS_IS], ends.loc[MODELLED]
                style = looks.Look(looks.INK).mark() if source == KNOWN else looks.of(source).mark()
                axis.plot(*start, linestyle="none", label=source if k == KS[0] else None, **style)
                arrow = {"arrowstyle": "-|>", "color": style["color"], "linewidth": 1.3, "mutation_scale": 7}
                axis.annotate("", stop, start, arrowprops=arrow | {"shrinkA": 0, "shrinkB": 0})
                axis.plot(*stop, linestyle="none")  # so that the axes reach it
                looks.name(axis, f"{k}", tuple(start), (5, -9) if source == KNOWN else (-10, -9))
            gain = told.loc[(MODELLED, about, last, world)]
            psp, p = (f"{signed(gain[name], 1)} ± {gain[f'{name} ±']:.1f}" for name in ("PSP model", "P complete"))
            axis.set(title=f"{title}: PSP {psp}, P {p}", xlabel="P@k of the complete truth, %")
            axis.title.set_fontsize(looks.SMALL + 1)
            axis.margins(0.12)
            figures.draws(axis, x="P complete", y="PSP model")
        axes[0].set_ylabel("PSP@k as published, %")
        looks.legend(fig, axes[0], title="ranked by (number: k; arrow: divided by the model's p)")
        words = _scores(about)
        looks.title(fig, f"{words[0].upper()}{words[1:]} divided by the model's p, points at k = {last}:")
    return fig


# ---------------------------------------------------------------- rare labels, guessed without looking


def rare_labels(counts: np.ndarray) -> np.ndarray:
    """The ids of the labels seen 1 to 9 times; where there are fewer than twenty, the rarest tenth of those seen.

    Parameters
    ----------
    counts : ndarray of int, shape (L,)

    Returns
    -------
    ndarray of int
        Rising; at least ten where so many occur.
    """
    seen = np.flatnonzero(counts)
    rare = seen[counts[seen] <= RARE]
    if rare.size >= 20:
        return rare
    rarest = seen[np.argsort(counts[seen], kind="stable")]
    return np.sort(rarest[: max(10, seen.size // 10)])


def guess(ds: Twin | Known, top: TopK, seed: int = 0) -> dict[str, TopK]:
    """Guessing rare labels without looking at the point.

    ``top`` as it is; with its fifth place given to one of :func:`rare_labels`, drawn from all of them, or only from
    those that some train point has beside the point's first label (from all where none is left); then two guesses
    that are the same for every point: the five most frequent labels, and five of the rare ones.

    Parameters
    ----------
    ds : Twin or Known
    top : TopK
        Predictions for the test points, 5 places or more.
    seed : int
        Of the drawn labels.

    Returns
    -------
    dict of str to TopK
    """
    counts, k = ds.label_counts, max(KS)
    rng, rare = np.random.default_rng(seed), rare_labels(counts)
    same = {
        "five most frequent labels": np.argsort(-counts, kind="stable")[:k],
        "five rare labels": rng.permutation(rare)[:k],
    }
    guesses = {
        "as predicted": top.head(k),
        "fifth place: any rare label": _with_last(top, [rare] * len(top), rare, rng),
        "fifth place: a rare label seen beside the first": _with_last(top, _beside(ds, top.ids[:, 0], rare), rare, rng),
    }
    tiled = {name: TopK.from_ids(np.tile(ids, (len(top), 1)), n_labels=counts.size) for name, ids in same.items()}
    return guesses | tiled


def compute_guesses(ds: Twin | Known, guesses: Mapping[str, TopK]) -> pd.DataFrame:
    """What guesses come to.

    Parameters
    ----------
    ds : Twin or Known
    guesses : mapping
        From :func:`guess`.

    Returns
    -------
    DataFrame
        guess, hits (observed, in all test points); then, percent, at 5: P and PSP of the observed labels, PSP as
        published, with propensities from the train counts, A and B; P complete, P of the complete truth; then PSP
        change and P complete change, points from the predictions as they are, with standard errors (``±``, a paired
        jackknife over 20 blocks of test points).
    """
    truth, complete, k, rows = Truth.of(ds.test.Y), Truth.of(ds.test.Y_complete), max(KS), []
    for name, shown in guesses.items():
        found = ranking.values(["P", "PSP"], truth, shown, (k,), weights(ds))
        there = ranking.precision(complete, shown, (k,))[0]
        rows.append((name, int(truth.hits(shown.ids).sum()), *(100 * v for v in (*found["P"], *found["PSP"], there))))
    table = pd.DataFrame(rows, columns=["guess", "hits", "P", "PSP", "P complete"])
    for column, one in measure_guesses(ds, guesses).items():
        apart = [one.difference(name, table["guess"][0]) for name in table["guess"]]
        table[f"{column} change"] = [d.value for d in apart]
        table[f"{column} ±"] = [d.error for d in apart]
    return table


def measure_guesses(ds: Twin | Known, guesses: Mapping[str, TopK]) -> dict[str, Measured]:
    """PSP and P complete of guesses at 5, percent, with a jackknife over test points.

    Parameters
    ----------
    ds, guesses
        As for :func:`compute_guesses`.

    Returns
    -------
    dict of str to Measured
    """
    w, k = weights(ds), (max(KS),)
    psp = Measured.of_rows(lambda Y, top: 100 * ranking.psp(Y, top, k, inverse_propensity=w)[0], ds.test.Y, guesses)
    there = Measured.of_rows(lambda Y, top: 100 * ranking.precision(Y, top, k)[0], ds.test.Y_complete, guesses)
    return {"PSP": psp, "P complete": there}


def findings_guesses(ds: Dataset, guesses: pd.DataFrame, exchange: pd.DataFrame) -> list[str]:
    """What guessing rare labels gains.

    Parameters
    ----------
    ds : Dataset
    guesses, exchange : DataFrame
        From :func:`compute_guesses` and :func:`compute_exchange`.

    Returns
    -------
    list of str
    """
    rare = rare_labels(ds.label_counts)
    low, high = ds.label_counts[rare].min(), ds.label_counts[rare].max()
    said = [f"Rare are {rare.size:,} labels here, with {low} to {high} train points."]
    for row in guesses[guesses["guess"].str.startswith("fifth")].itertuples(index=False):
        said.append(
            f"{row.guess.capitalize()}: PSP@5 {signed(row[5], 1)} ± {row[6]:.1f} points, P@5 of the complete truth "
            f"{signed(row[7], 1)} ± {row[8]:.1f}."
        )
    rarest, most = exchange.iloc[0], exchange.iloc[-1]
    said.append(
        f"By the model a hit on a label with {_points(rarest)} weighs as much as {rarest['hits']:.1f} hits on the most "
        f"frequent one, with {_points(most)}."
    )
    return said


def _points(row: pd.Series) -> str:
    return f"{int(row['points']):,} train point{'s' if row['points'] > 1 else ''}"


def _with_last(top: TopK, pools: Sequence[np.ndarray], rare: np.ndarray, rng: np.random.Generator) -> TopK:
    """``top`` with the fifth place of each row drawn from what the row has not already of its pool, or of all the rare
    labels where that is nothing; it stays where that is nothing too."""
    ids = top.ids[:, : max(KS)].copy()
    for row, pool in zip(ids, pools, strict=True):
        for labels in (pool, rare):
            if (left := np.setdiff1d(labels, row[:-1])).size:
                row[-1] = rng.choice(left)
                break
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
        points (train points of the label, the last row the most frequent one's, none above it), weight (1/p), hits (on the most
        frequent label that weigh as much).
    """
    most = int(ds.label_counts.max())
    points = np.array([*(points for points in (1, 3, 10, 30, 100) if points < most), most])
    w = propensity.inverse(points, ds.n_train, ds.A, ds.B)
    return pd.DataFrame({"points": points, "weight": w, "hits": w / w[-1]})
