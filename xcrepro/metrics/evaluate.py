"""All metrics of one set of predictions, tidy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcrepro.arguments import check_rows, cut_offs, some_of
from xcrepro.errors import ArgumentError
from xcrepro.metrics import labelwise, ranking
from xcrepro.metrics.coverage import covered_of_reachable
from xcrepro.predictions import TopK

if TYPE_CHECKING:
    import pandas as pd

PLAIN = ("P", "R", "nDCG", "nDCG (ideal k)", "MRR", "ADG", "F", "micro-F1", "Hamming", "abandonment")
LABELWISE = tuple(labelwise.FORMULAS)
SCORED = ("PSP", "PSnDCG", "PSP (bare)", "PSnDCG (bare, ideal k)", "PS-Hamming")
GIVEN_TRUTH = ("PS-R", "PS-MRR (relevant)", "PS-ADG", "PS-F")
BINNED = "binned macro-F1"
REACHABLE = "coverage (reachable)"
NAMES = (*ranking.FORMULAS, *LABELWISE, REACHABLE, BINNED)
"""What ``metrics`` may name."""


def evaluate(
    Y,
    top: TopK | None = None,
    ks=ranking.KS,
    inverse_propensity=None,
    label_counts=None,
    *,
    n_relevant=None,
    metrics=None,
) -> pd.DataFrame:
    """Every ranking and label-wise metric, in one pass over the rows.

    Parameters
    ----------
    Y, top
        Truth (n, L) and predictions, as for each function of :mod:`xcrepro.metrics.ranking`; or an iterable of such pairs
        as ``Y`` alone, so that predictions larger than memory stream through.
    ks : int or sequence of int
        The cut-offs.
    inverse_propensity : array_like of float, shape (L,), optional
        Label weights; adds the propensity-scored metrics.
    label_counts : array_like of int, shape (L,), optional
        TRAIN rows of each label; adds macro-F1 by bin of train frequency, one row a bin that has labels: ``macro-F1 (1-9)``
        and so on, ``macro-F1 (0)`` for labels never trained.
    n_relevant : array_like of float, shape (n,), optional
        Label counts of the complete truth; with ``inverse_propensity`` adds PS-R, PS-MRR, PS-ADG and PS-F.
    metrics : str or sequence of str, optional
        Names from :data:`NAMES`, to compute just these. Only here: ``coverage (reachable)``, which keeps the truth of all
        rows and takes longer than all else together, and ranking formulas that the default leaves out.

    Returns
    -------
    DataFrame
        Columns metric, k, value: fractions, except Hamming and PS-Hamming, which count labels, and label entropy, in nats.
        The names say the variant: ``nDCG`` divides by the ideal of min(k, |y|), ``nDCG (ideal k)`` by that of k; ``PSP`` and
        ``PSnDCG`` are the published ratios, ``(bare)`` the unnormalised means; F is beta = 1 a row; macro-averages and
        ``coverage`` are over all L labels, ``coverage (test)`` over those with a test positive.

    Raises
    ------
    ArgumentError
        For an unknown metric (the nearest is named), what a metric needs and was not given, and no rows.

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
    >>> evaluate(Y, top, ks=3, label_counts=[120, 3, 9, 0], metrics=["binned macro-F1"])
                   metric  k     value
    0        macro-F1 (0)  3  0.000000
    1      macro-F1 (1-9)  3  0.833333
    2  macro-F1 (100-999)  3  0.666667
    """
    import pandas as pd

    if metrics is None:
        metrics = [*PLAIN, *LABELWISE]
        if inverse_propensity is not None:
            metrics += SCORED
            if n_relevant is not None:
                metrics += GIVEN_TRUTH
        if label_counts is not None:
            metrics.append(BINNED)
    metrics = some_of("metrics", metrics, NAMES)
    ranking.check_goes_with(n_relevant, inverse_propensity)
    if BINNED in metrics and label_counts is None:
        raise ArgumentError("label_counts", f"must be given for {BINNED}", None, "the train rows of each label")
    ks = cut_offs(ks)
    by_row = [name for name in metrics if name in ranking.FORMULAS]
    by_label = [name for name in metrics if name not in ranking.FORMULAS]
    sums = ranking.Sums(ks, {column for name in by_row for column in ranking.FORMULAS[name][0]}, inverse_propensity)
    counter, truths, n_rows = labelwise.Counter(ks), [], 0
    for truth, block, of_block in ranking.blocks(Y, top, n_relevant):
        if by_row:
            sums.add(truth, block, of_block)
        if by_label:
            counter.add(truth, block)
        if REACHABLE in by_label:
            truths.append(truth)
        n_rows += truth.n_rows
    check_rows(n_rows)
    counts = counter.counts() if by_label else None
    found = {}
    for name in metrics:
        if name in ranking.FORMULAS:
            found[name] = ranking.FORMULAS[name][1](sums)
        elif name == BINNED:
            table = labelwise.binned_macro_f1(counts, ks=ks, label_counts=label_counts)
            for bin_name, rows in table[table["labels"] > 0].groupby("bin", sort=False):
                found[f"macro-F1 ({bin_name})"] = rows["value"].to_numpy()
        elif name == REACHABLE:
            found[name] = covered_of_reachable(counts, truths)
        else:
            found[name] = labelwise.FORMULAS[name](counts)
    rows = [(name, int(k), float(value)) for name in found for k, value in zip(ks, found[name], strict=True)]
    return pd.DataFrame(rows, columns=["metric", "k", "value"])
