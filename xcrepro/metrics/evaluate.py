"""All metrics of one set of predictions, tidy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcrepro.errors import ArgumentError
from xcrepro.metrics import ranking
from xcrepro.predictions import TopK

if TYPE_CHECKING:
    import pandas as pd

PLAIN = ("P", "R", "nDCG", "nDCG (ideal k)", "MRR", "ADG", "F", "micro-F1", "Hamming", "abandonment")
SCORED = ("PSP", "PSnDCG", "PSP (bare)", "PSnDCG (bare, ideal k)", "PS-Hamming")
GIVEN_TRUTH = ("PS-R", "PS-MRR (relevant)", "PS-ADG", "PS-F")


def evaluate(
    Y, top: TopK | None = None, ks=ranking.KS, inverse_propensity=None, *, n_relevant=None, metrics=None
) -> pd.DataFrame:
    """Every ranking metric, in one pass over the rows.

    Y, top: truth (n, L) and predictions, as for each function of :mod:`xcrepro.metrics.ranking`; or an iterable of such
        pairs as ``Y`` alone, so that predictions larger than memory stream through.
    ks: the cut-offs. inverse_propensity: (L,) label weights; adds the propensity-scored metrics.
    n_relevant: (n,) label counts of the complete truth; with ``inverse_propensity`` adds PS-R, PS-MRR, PS-ADG and PS-F.
    metrics: names from :data:`xcrepro.metrics.ranking.FORMULAS`, to compute just these.

    Returns a DataFrame with columns metric, k, value: fractions, except Hamming and PS-Hamming, which count labels. The
    names say the variant: ``nDCG`` divides by the ideal of min(k, |y|), ``nDCG (ideal k)`` by that of k; ``PSP`` and
    ``PSnDCG`` are the published ratios, ``(bare)`` the unnormalised means; F is beta = 1.

    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0]], n_labels=4)
    >>> evaluate(Y, top, ks=(1, 3), metrics=["P", "nDCG"])
      metric  k     value
    0      P  1  0.500000
    1      P  3  0.500000
    2   nDCG  1  0.500000
    3   nDCG  3  0.775325
    """
    import pandas as pd

    if metrics is None:
        metrics = list(PLAIN)
        if inverse_propensity is not None:
            metrics += SCORED
            if n_relevant is not None:
                metrics += GIVEN_TRUTH
    unknown = [name for name in metrics if name not in ranking.FORMULAS]
    if unknown:
        raise ArgumentError("metrics", "must be names of metrics", unknown, f"one of {', '.join(ranking.FORMULAS)}")
    if n_relevant is not None and inverse_propensity is None:
        raise ArgumentError("n_relevant", "goes with inverse_propensity", "n_relevant alone")
    found = ranking.values(metrics, Y, top, ks, inverse_propensity, n_relevant)
    cut_offs = ranking.check_ks(ks)
    return pd.DataFrame(
        [(name, int(k), float(value)) for name in metrics for k, value in zip(cut_offs, found[name], strict=True)],
        columns=["metric", "k", "value"],
    )
