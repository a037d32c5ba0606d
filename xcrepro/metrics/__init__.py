"""The public, checked layer over the kernels. ``xc.metrics.precision(Y, top, ks=(1, 3, 5))`` and its like."""

from xcrepro.metrics.evaluate import evaluate
from xcrepro.metrics.ranking import (
    abandonment,
    adg,
    f_beta,
    hamming_loss,
    micro_f1,
    mrr,
    ndcg,
    precision,
    psndcg,
    psp,
    recall,
)

__all__ = [
    "abandonment",
    "adg",
    "evaluate",
    "f_beta",
    "hamming_loss",
    "micro_f1",
    "mrr",
    "ndcg",
    "precision",
    "psndcg",
    "psp",
    "recall",
]
