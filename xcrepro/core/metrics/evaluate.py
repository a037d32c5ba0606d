"""All metrics of one set of predictions, or of several models', tidy, with their errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xcrepro.core.accumulators.block import KS
from xcrepro.core.arguments import one_of, real_number
from xcrepro.core.errors import ArgumentError, DataWarning
from xcrepro.core.metrics import extra as callers
from xcrepro.core.metrics import ranking, registry, replicates, state
from xcrepro.core.predictions import TopK
from xcrepro.core.tensors import labels_as_matrix
from xcrepro.core.truth import as_truth

if TYPE_CHECKING:
    import pandas as pd


def evaluate(
    Y,
    top: TopK | Mapping[str, TopK | Sequence[TopK]] | None = None,
    ks=KS,
    inverse_propensity=None,
    label_counts=None,
    *,
    n_relevant=None,
    hierarchy=None,
    metrics=None,
    extra: Mapping[str, Callable] | None = None,
    confidence_level: float | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    ties: str = "lowest-id",
) -> pd.DataFrame:
    """Every ranking and label-wise metric, in one pass over the rows; with ``confidence_level`` also how sure each value is.

    Parameters
    ----------
    Y, top
        Truth (n, L) and predictions, as for each function of :mod:`xcrepro.core.metrics.ranking`: a matrix, a tensor, or for
        each row a list of label ids; or an iterable of such pairs as ``Y`` alone, so that predictions larger than memory stream
        through. ``top`` may also be a mapping from models to their predictions, for example ``{"mine": top, "theirs":
        other}``; a model that was trained several times has a list, one TopK for each training (run).
    ks : int or sequence of int
        The cut-offs.
    inverse_propensity : array_like of float, shape (L,), optional
        Label weights; adds the propensity-scored metrics.
    label_counts : array_like of int, shape (L,), optional
        TRAIN rows of each label; adds macro-F1 by bin of train frequency, one row a bin that has labels: ``macro-F1 (1-9)``
        and so on, ``macro-F1 (0)`` for labels never trained.
    n_relevant : array_like of float, shape (n,), optional
        Label counts of the complete truth; with ``inverse_propensity`` adds PS-R, PS-MRR, PS-ADG and PS-F.
    hierarchy : Hierarchy, optional
        What is above each label (:class:`xcrepro.Hierarchy`); adds hP, hR, hF and their micro-averages
        (:func:`xcrepro.metrics.hierarchical`), which give credit to a label near the right one.
    metrics : str or sequence of str, optional
        To compute just these: names of :func:`xcrepro.metrics.table`, at all ``ks``, or at one, as ``"nDCG@5"``. Only so: the
        calibration metrics, such as ``"ECE@5"``, for scores in [0, 1]; ``coverage (reachable)``, which keeps the truth of all
        rows and takes longer than all else together; variants that the default leaves out; and families with a number in the
        name: ``"macro-F2"`` (any beta), ``"alpha-coverage (0.5)"``, ``"n'-coverage (100)"``. Diversity, which needs the labels'
        words, is :func:`xcrepro.metrics.diversity` only.
    extra : mapping of str to callable, optional
        Metrics of your own, by name: functions of the truth, a CSR matrix of float64 ones, and a TopK of k places. One that
        returns an array with a number for each row is averaged over rows, and its interval is that of such a mean. One that
        returns a number of all rows together has the other kind of interval, for which it is called on parts of the rows, some
        thousand times. Those that ``metrics`` does not name are asked for at all of ``ks``. Not for blocks.
    confidence_level : float, optional
        Such as 0.95: adds the columns ``stderr``, ``low`` and ``high``. The interval is to hold, with this probability, the
        value that is to be expected on a fresh test set of as many rows. It takes each metric's own replicates of the rows (see
        the notes), the same for all models. Not for blocks.
    n_resamples : int
        How many samples the bootstrap of sums over rows draws; all other metrics take a tenth as many cuts of the rows into
        quarters, 20 at least.
    seed : int
        The same seed gives the same bits on every machine, with any number of threads.
    ties : {"lowest-id", "expected", "bounds"}
        What labels with equal scores (as float32) are worth. ``"lowest-id"`` takes the order of ``top``, in which the lowest
        id comes first. ``"expected"`` gives the mean over all orders of tied labels, ``"bounds"`` besides the value the lowest,
        expected and highest one; both in closed form, for metrics that add up over places (so not for MRR, AP and LRAP, nor
        for macro-averages) and without ``confidence_level``. Ties count as far as labels are stored: keep more places than the
        largest k, or a tie across the k-th place is not seen.

    Returns
    -------
    DataFrame
        Columns metric, k, value: fractions, except Hamming and PS-Hamming, which count labels, DCG and PSDCG, which count
        discounted hits, and label entropy, in nats.
        The names say the variant: ``nDCG`` divides by the ideal of min(k, |y|), ``nDCG (ideal k)`` by that of k; ``PSP`` and
        ``PSnDCG`` are the published ratios, ``(bare)`` the unnormalised means; F is beta = 1 a row; macro-averages and
        ``coverage`` are over all L labels, ``coverage (test)`` over those with a test positive.

        With ``ties="bounds"`` there are five more columns: ``lowest``, ``expected`` and ``highest``; ``decided``, the number of
        rows whose own value the order decides; and ``cut``, the number of rows in which the last stored score ties with that at
        place k, so that labels which are not stored may tie with it, too. If exactly k places are stored, ``cut`` sees such a
        row only if its last two scores are equal; 0 then does not say that nothing ties beyond.

        Of a mapping, the column ``model`` comes first, and the value is the mean over the model's runs. If a model has several
        runs, ``confidence_level`` adds two more columns: ``stderr points`` is the part of the error that other test points
        would make, and ``stderr runs`` the part of other trainings. Then ``stderr`` is the root of the sum of their squares,
        and ``low`` and ``high`` use it with Student's law (Satterthwaite's degrees of freedom). A model with one run says
        nothing of its trainings: its ``stderr runs`` is NaN and its interval is about the test points only.

        The error and the ends are NaN if a replicate has no value, for example a calibration metric where a quarter of the
        rows has no prediction. If all replicates have the same value, as when no label is ever hit, the error is 0, which
        says nothing about rows that were never seen; of a share that is 0 or 1 in at most 400 rows the interval is then the
        exact one of Clopper and Pearson. That of a fraction that is no mean over rows, such as coverage, ends at 0 and 1.

    Raises
    ------
    ArgumentError
        For an unknown metric (the nearest is named), what a metric needs and was not given, and no rows; for a model whose
        predictions do not fit ``Y``, by its name; with ``confidence_level`` for fewer than 8 rows and for blocks; for other
        ``ties`` with ``confidence_level`` or a metric that does not add up over places.

    Warns
    -----
    DataWarning
        Once, where ties at a cut-off decide more than 1 % of the rows, or more than half of the interval's width: how many,
        with the expected value and the bounds, and what makes such scores (:func:`said_of_ties`).

    Notes
    -----
    Rows are taken for independent draws. Sums over rows and ratios of sums are bootstrapped; metrics of labels and of (score,
    hit) pairs are measured on disjoint parts of the rows, because a sample with repeated rows hits fewer labels and fills
    bins more roughly. ``docs/which_test.md`` says how, and how often the intervals hold.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> evaluate(Y, top, ks=(1, 3), metrics=["P", "nDCG", "coverage"])
         metric  k     value
    0         P  1  0.500000
    1         P  3  0.500000
    2      nDCG  1  0.500000
    3      nDCG  3  0.775325
    4  coverage  1  0.250000
    5  coverage  3  0.750000
    >>> tied = TopK.from_scores(np.array([[0.5, 0.5, 0.5, 0.1], [0.2, 0.9, 0.3, 0.9]]), k=3)
    >>> evaluate(Y, tied, ks=(1, 3), metrics=["P", "nDCG"], ties="bounds").round(3).drop(columns="k")
      metric  value  lowest  expected  highest  decided  cut
    0      P   1.00   0.000     0.583      1.0        2    1
    1      P   0.50   0.500     0.500      0.5        0    1
    2   nDCG   1.00   0.000     0.583      1.0        2    1
    3   nDCG   0.96   0.662     0.843      1.0        2    1
    >>> evaluate(Y, top, metrics=["P@1", "nDCG@3"])
      metric  k     value
    0      P  1  0.500000
    1   nDCG  3  0.775325
    >>> evaluate(Y, top, ks=3, label_counts=[120, 3, 9, 0], metrics=["binned macro-F1"])
                   metric  k     value
    0        macro-F1 (0)  3  0.000000
    1      macro-F1 (1-9)  3  0.833333
    2  macro-F1 (100-999)  3  0.666667

    A metric of one's own, here the place of the first hit, and none counts as 9:

    >>> def place(Y, top):
    ...     hit = np.take_along_axis(Y.toarray(), top.ids, axis=1) > 0
    ...     return np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, 9)
    >>> evaluate(Y, top, ks=(1, 3), metrics="P@1", extra={"first hit": place})
          metric  k  value
    0          P  1    0.5
    1  first hit  1    5.0
    2  first hit  3    1.5

    How sure is a value? Half of 40 points are right, and the interval says what that is worth. The three trainings of the
    second model differ by so much that most of its error is the training's:

    >>> half, third, quarter = (TopK.from_ids(np.arange(40)[:, None] // step * step, n_labels=40) for step in (2, 3, 4))
    >>> evaluate(np.eye(40), half, 1, metrics=["P", "coverage"], confidence_level=0.95).round(2)
         metric  k  value  stderr   low  high
    0         P  1    0.5    0.08  0.35  0.65
    1  coverage  1    0.5    0.08  0.34  0.66
    >>> models = {"one": half, "three": [half, third, quarter]}
    >>> evaluate(np.eye(40), models, 1, metrics="P", confidence_level=0.95).round(2).set_index("model").T
    model           one three
    metric            P     P
    k                 1     1
    value           0.5  0.37
    stderr         0.08  0.09
    low            0.35  0.13
    high           0.65   0.6
    stderr points  0.08  0.05
    stderr runs     NaN  0.07
    """
    ranking.check_goes_with(n_relevant, inverse_propensity)
    if one_of("ties", ties, ("lowest-id", "expected", "bounds")) != "lowest-id" and confidence_level is not None:
        raise ArgumentError(
            "ties", "must be 'lowest-id' with confidence_level", repr(ties), "ask for one of them at a time"
        )
    if metrics is None:
        given = inverse_propensity is not None, label_counts is not None, n_relevant is not None
        metrics = registry.default(*given, ties, hierarchy is not None)
    about = inverse_propensity, label_counts
    own: dict[str, registry.Metric] = {}
    models: dict[str, Any] = replicates.models_of("top", top) if isinstance(top, Mapping) else {"": [top]}
    first = next(iter(models.values()))[0]
    if isinstance(first, TopK):
        Y = as_truth(labels_as_matrix("Y", Y, first.n_labels))
    if extra is not None:
        if first is None or ties != "lowest-id":
            rule = "must go with a truth and its predictions, and with ties='lowest-id'"
            raise ArgumentError("extra", rule, "blocks, or no top" if first is None else repr(ties))
        own = callers.metrics_of(extra, Y, first)
    if confidence_level is not None:
        if top is None:
            do = "xc.State(..., n_resamples=1000) draws as blocks come"
            raise ArgumentError("confidence_level", "must go with a truth and its predictions", "blocks, or no top", do)
        real_number("confidence_level", confidence_level, above=0, below=1)
        options = replicates.Options(inverse_propensity, n_relevant, label_counts, hierarchy, extra)
        how = {"n_resamples": n_resamples, "seed": seed, "confidence_level": confidence_level, "pairs": []}
        table = replicates.Replicates(Y, models, ks, metrics, options, **how).table()
        warn_of_ties(Y, models, ks, metrics, own)
        return table if isinstance(top, Mapping) else table.drop(columns="model")
    further: dict[str, Any] = {"n_relevant": n_relevant, "ties": ties, "hierarchy": hierarchy}

    def table_of(run) -> pd.DataFrame:
        if not own:
            return state.of(Y, run, ks, metrics, *about, **further).compute()
        wanted = registry.wanted(metrics, ks, own)
        names = [f"{metric.name}@{k}" for metric, at in wanted if metric.name not in own for k in at.tolist()]
        found = state.of(Y, run, ks, names, *about, **further).compute() if names else None
        return callers.added(found, extra or {}, Y, run, {m.name: at.tolist() for m, at in wanted if m.name in own})

    found = replicates.by_model(models, table_of) if isinstance(top, Mapping) else table_of(top)
    if ties == "lowest-id" and top is not None:
        warn_of_ties(Y, models, ks, metrics, own)
    return found


TIED = 0.01
"""The share of rows that ties may decide in silence."""
_SLIGHT = 0.1  # no interval of P@k over n rows is so narrow that this times 1 / sqrt(n) is half its width


def warn_of_ties(Y, models: Mapping[str, Sequence[TopK]], ks, metrics, own=None) -> None:
    """One DataWarning of what :func:`said_of_ties` finds in the predictions of some models, in the first run of each where it
    finds something."""
    at = np.unique(np.concatenate([each for _, each in registry.wanted(metrics, ks, own)])).tolist()
    found = {
        model: next(filter(None, (said_of_ties(Y, run, at) for run in runs)), "") for model, runs in models.items()
    }
    if said := [f"{model}: {text}" if model else text for model, text in found.items() if text]:
        warnings.warn("\n".join(said), DataWarning, stacklevel=3)


def said_of_ties(Y, top: TopK, ks: Sequence[int]) -> str:
    """What equal scores across a cut-off decide, where that is more than :data:`TIED` of the rows, or moves P@k by more than
    half the width of its interval; else nothing. Where there are no such scores it takes one look at them.

    >>> top = TopK.from_scores(np.float32([[0.5, 0.5, 0.1], [0.9, 0.5, 0.5]]), 3)
    >>> said_of_ties([[0, 1, 0], [1, 0, 0]], top, [1, 2])[:86]
    'ties decide 1 of 2 rows at k = 1: P@1 is 0.500000 with the lowest id first, 0.750000 e'
    """
    n, scores = len(top), top.scores
    there = {k: scores[:, k - 1] == scores[:, min(k, top.k - 1)] for k in ks}
    if top.k in there and top.k > 1:
        there[top.k] = scores[:, -2] == scores[:, -1]
    there = {k: rows & (top.ids[:, min(k, top.k - 1)] >= 0) for k, rows in there.items() if rows.any()}
    least = min(TIED, _SLIGHT / math.sqrt(n)) * n
    crossed = [k for k, rows in there.items() if k < top.k and np.count_nonzero(rows) > least]
    said = ""
    if crossed:
        truth = as_truth(labels_as_matrix("Y", Y, top.n_labels))
        table = state.of(truth, top, crossed, ["P"], ties="bounds").compute()
        bias = table["value"] - table["expected"]
        half = [1.96 * truth.hits(top.ids[:, :k]).mean(axis=1).std() / math.sqrt(n) for k in crossed]
        wide = (table["decided"] > TIED * n) | (bias.abs() > half)
        if wide.any():
            k, value, low, mean, high, decided = table.loc[table["decided"].where(wide).idxmax()].tolist()[1:7]
            said = (
                f"ties decide {int(decided):,} of {n:,} rows at k = {int(k)}: P@{int(k)} is {value:.6f} with the lowest id "
                f"first, {mean:.6f} expected over all orders (bias {value - mean:+.6f}), between {low:.6f} and {high:.6f}. "
                f"{_cause_of_ties(top, there[int(k)], int(k))}"
            )
    if 1 < top.k < top.n_labels and top.k in there:
        cut = int(np.count_nonzero(there[top.k]))
        if cut > TIED * n:
            said += (
                f"{'; ' * bool(said)}in {cut:,} of {n:,} rows the last two of the {top.k} stored scores are equal, so "
            )
            said += "labels that are not stored may tie with them: keep more places to see what that decides"
    return said


def _cause_of_ties(top: TopK, rows: np.ndarray, k: int) -> str:
    """What makes such scores, as far as they tell."""
    scores = top.scores[np.isfinite(top.scores)]
    tied = top.scores[rows, k - 1]
    exact = scores.astype(np.float64)
    if (scores == np.round(scores)).all():
        cause = "The scores are whole numbers, such as votes"
    elif digits := next((d for d in (1, 2, 3) if (scores == np.round(exact, d).astype(np.float32)).all()), 0):
        cause = f"The scores are rounded to {digits} decimal{'s' * (digits > 1)}: save all digits"
    elif not (scores.view(np.uint32) & 0xFFFF).any():
        cause = "The scores are of half precision (bfloat16): rank by the logits in float32"
    elif (scores == scores.astype(np.float16).astype(np.float32)).all():
        cause = "The scores are of half precision (float16): rank by the logits in float32"
    elif np.mean(tied >= 1 - 1e-6) > 0.5:
        cause = "The scores reach 1, as a sigmoid or softmax of large margins does: rank by the margins"
    else:
        cause = f"The scores have {np.unique(scores).size:,} different values"
    return f"{cause} (docs/ties.md)"
