"""Which of several models is better, and is the difference more than chance?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from xcrepro.core import distributions
from xcrepro.core.accumulators.block import KS
from xcrepro.core.arguments import one_of, real_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics import ranking
from xcrepro.core.metrics.evaluate import warn_of_ties
from xcrepro.core.metrics.replicates import Options, Replicates, has_predictions, models_of
from xcrepro.core.metrics.significance import holm
from xcrepro.core.predictions import TopK

if TYPE_CHECKING:
    import pandas as pd


_POWER = 0.8
"""With which probability a difference of the size ``detectable`` would have been shown."""


def compare(
    Y,
    models: Mapping[str, TopK | Sequence[TopK]],
    metrics: str | Sequence[str],
    ks=KS,
    *,
    against: str | None = None,
    confidence_level: float = 0.95,
    margin: float | None = None,
    inverse_propensity=None,
    label_counts=None,
    n_relevant=None,
    hierarchy=None,
    extra: Mapping[str, Callable] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """The difference of each two models, with its interval and p, all corrected together.

    The models are judged on the same test rows, so a difference is much surer than two intervals side by side would say:
    each replicate of the rows counts for both models.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L)
        Truth, as for :func:`xcrepro.evaluate`; at least 8 rows, not in blocks.
    models : mapping of str to TopK or sequence of TopK
        Two models or more, each with its predictions, or with a list of them, one TopK for each training (run).
    metrics : str or sequence of str
        Names of :func:`xcrepro.metrics.table`, at all ``ks``, or at one, as ``"PSP@5"``. Name what you want to know: the
        correction takes more from each comparison if there are many.
    ks : int or sequence of int
    against : str, optional
        A model: then each other one is compared with it only, and it is always ``right``.
    confidence_level : float
        The probability with which ``low`` to ``high`` is to hold the difference that is to be expected on fresh test rows; each
        interval for itself, not corrected.
    margin : float, optional
        The smallest difference that matters to you, as a fraction: 0.005 is half a point. A large p does not say that two
        models are alike; with a margin the table does.
    inverse_propensity, label_counts, n_relevant, hierarchy, extra, n_resamples, seed
        As for :func:`xcrepro.evaluate`.

    Returns
    -------
    DataFrame
        One row for each metric, k and pair; ``value`` is left minus right. The columns are metric, k, left, right, value,
        stderr, low, high, p, p raw. ``p raw`` is the probability that chance alone goes as far from 0, on either side, and
        ``p`` the same after Holm's correction over all rows of the table. If a model has several runs, ``stderr points`` and
        ``stderr runs`` come after ``high``, as in :func:`xcrepro.evaluate`; trainings of two models are taken as independent.
        The two are on the safe side: luck with rows that differs from run to run is in both. Where trainings differ by such
        luck only, two equal models have a p below 0.05 in 1 % of test sets with 2, 3 or 5 runs; where trainings differ by
        much, in 2 to 8 %. With one run it is 5 % in the first case and 77 % in the second, because one run cannot tell.
        (300 sets of 200 rows, right with a chance that depends on the row; much: a standard deviation of 1 of its logit.)

        ``p raw`` is the normal law's of value / stderr, and with several runs Student's. The interval of a sum over rows has
        the bootstrap's quantiles as its ends, so close to 0.05 it may just hold 0 where p does not say so, or the other way
        round. A comparison whose error is NaN has a p of NaN, and the correction does not count it. Models that do not differ
        have a p of 1.

        With few rows, at most 400, or at most 20 in which the two differ, ``p raw`` of a sum over rows is that of swapping rows
        between the two models: the share of all ways to swap that go as far from 0 (of 8,192 ways drawn, if there are more). So
        no p is below what the rows allow: 5 rows to none have 2 / 2^5 = 0.0625. The interval is then at least as wide as the
        swaps say, and holds 0 only if p is above what it leaves out. Other metrics have a p of at least 2 / 2^d, if d rows
        differ.

        With a ``margin`` there are two more columns. ``alike`` says whether the interval lies within -margin to margin, so
        that the models are equivalent for your purpose (two one-sided tests; with an interval of 95 % each has a level of
        2.5 %). ``detectable`` is the difference that these test points would have shown with a probability of 80 %: the
        error times the sum of two normal quantiles, 2.80 for 95 %. If it is above the margin, there are too few test points.

    Raises
    ------
    ArgumentError
        As for :func:`xcrepro.evaluate`, for fewer than two models, for a model with a run that predicts nothing at all (it
        would lose beyond doubt, whatever it is worth), and for an unknown model (the nearest is named).

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> ids = np.arange(40)[:, None]
    >>> models = {f"1 of {step}": TopK.from_ids(ids // step * step, n_labels=40) for step in (2, 3, 10)}
    >>> found = compare(np.eye(40), models, "P@1", against="1 of 2")
    >>> found[["left", "right", "value", "stderr", "p", "p raw"]].round(3)
          left   right  value  stderr     p  p raw
    0   1 of 3  1 of 2  -0.15   0.112  0.26   0.26
    1  1 of 10  1 of 2  -0.40   0.100  0.00   0.00
    >>> compare(np.eye(40), models, "P@1", against="1 of 2", margin=0.05)[["left", "alike", "detectable"]].round(2)
          left  alike  detectable
    0   1 of 3  False        0.31
    1  1 of 10  False        0.28
    """
    given = models_of("models", models)
    if len(given) < 2:
        raise ArgumentError("models", "must be two or more to be compared", f"only {next(iter(given))!r}")
    for name, runs in given.items():
        if not all(has_predictions(run) for run in runs):
            do = "leave it out of the comparison, or look why its file is empty"
            raise ArgumentError("models", "must have a prediction each", f"none in any row of {name!r}", do)
    real_number("confidence_level", confidence_level, above=0, below=1)
    if margin is not None:
        real_number("margin", margin, above=0, below=1)
    ranking.check_goes_with(n_relevant, inverse_propensity)
    names = list(given)
    pairs = list(itertools.combinations(range(len(names)), 2))
    if against is not None:
        right = names.index(against if against in names else one_of("against", against, names))
        pairs = [(left, right) for left in range(len(names)) if left != right]
    options = Options(inverse_propensity, n_relevant, label_counts, hierarchy, extra)
    how = {"n_resamples": n_resamples, "seed": seed, "confidence_level": confidence_level, "pairs": pairs}
    engine = Replicates(Y, given, ks, metrics, options, **how)
    found = engine.differences()
    warn_of_ties(Y, given, ks, metrics, engine.own)
    found.insert(found.columns.get_loc("p raw"), "p", holm(found["p raw"]))
    if margin is not None:
        found["alike"] = (found["low"] > -margin) & (found["high"] < margin)
        shown = distributions.normal_quantile((1 + confidence_level) / 2) + distributions.normal_quantile(_POWER)
        found["detectable"] = shown * found["stderr"]
    return found
