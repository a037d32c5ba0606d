"""All metrics of one set of predictions, tidy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcrepro.folds.block import KS
from xcrepro.metrics import ranking, registry, state
from xcrepro.predictions import TopK

if TYPE_CHECKING:
    import pandas as pd


def evaluate(
    Y,
    top: TopK | None = None,
    ks=KS,
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
        Truth (n, L) and predictions, as for each function of :mod:`xcrepro.metrics.ranking`: a matrix, a tensor, or for each
        row a list of label ids; or an iterable of such pairs as ``Y`` alone, so that predictions larger than memory stream
        through.
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
        To compute just these: names of :func:`xcrepro.metrics.table`, at all ``ks``, or at one, as ``"nDCG@5"``. Only so: the
        calibration metrics, such as ``"ECE@5"``, for scores in [0, 1]; ``coverage (reachable)``, which keeps the truth of all
        rows and takes longer than all else together; and variants that the default leaves out.

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
    >>> evaluate(Y, top, metrics=["P@1", "nDCG@3"])
      metric  k     value
    0      P  1  0.500000
    1   nDCG  3  0.775325
    >>> evaluate(Y, top, ks=3, label_counts=[120, 3, 9, 0], metrics=["binned macro-F1"])
                   metric  k     value
    0        macro-F1 (0)  3  0.000000
    1      macro-F1 (1-9)  3  0.833333
    2  macro-F1 (100-999)  3  0.666667
    """
    ranking.check_goes_with(n_relevant, inverse_propensity)
    if metrics is None:
        given = inverse_propensity is not None, label_counts is not None, n_relevant is not None
        metrics = registry.default(*given)
    found = state.of(Y, top, ks, metrics, inverse_propensity, label_counts, n_relevant=n_relevant, exact=True)
    return found.result()
