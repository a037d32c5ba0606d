"""The public, checked layer over the kernels. ``xc.metrics.precision(Y, top, ks=(1, 3, 5))`` and its like."""

from xcrepro.core import plugins
from xcrepro.core.metrics.calibration import (
    BrierParts,
    CorrectedECE,
    ace,
    brier,
    brier_decomposition,
    calibration_table,
    corrected_ece,
    ece,
    marginal_ece,
    nll,
    pairs,
    reliability,
    smooth_ece,
)
from xcrepro.core.metrics.compare import compare
from xcrepro.core.metrics.coverage import (
    alpha_coverage,
    coverage,
    diversity,
    label_entropy,
    reachable,
    sampled_coverage,
)
from xcrepro.core.metrics.evaluate import evaluate
from xcrepro.core.metrics.labelwise import (
    Counts,
    best_macro_f1,
    binned_macro_f1,
    confusion,
    macro_f1,
    macro_f_beta,
    macro_precision,
    macro_recall,
)
from xcrepro.core.metrics.ranking import (
    abandonment,
    adg,
    average_precision,
    coverage_error,
    f_beta,
    hamming_loss,
    lrap,
    micro_f1,
    micro_precision,
    micro_recall,
    mrr,
    ndcg,
    precision,
    precision_ceiling,
    psndcg,
    psp,
    recall,
)
from xcrepro.core.metrics.registry import METRICS, table
from xcrepro.core.metrics.significance import (
    Bootstrap,
    SharedErrorsWarning,
    TTest,
    holm,
    macro_t_test,
    paired_bootstrap,
)

__all__ = [
    "METRICS",
    "Bootstrap",
    "BrierParts",
    "CorrectedECE",
    "Counts",
    "SharedErrorsWarning",
    "TTest",
    "abandonment",
    "ace",
    "adg",
    "alpha_coverage",
    "average_precision",
    "best_macro_f1",
    "binned_macro_f1",
    "brier",
    "brier_decomposition",
    "calibration_table",
    "compare",
    "confusion",
    "corrected_ece",
    "coverage",
    "coverage_error",
    "diversity",
    "ece",
    "evaluate",
    "f_beta",
    "hamming_loss",
    "holm",
    "label_entropy",
    "lrap",
    "macro_f1",
    "macro_f_beta",
    "macro_precision",
    "macro_recall",
    "macro_t_test",
    "marginal_ece",
    "micro_f1",
    "micro_precision",
    "micro_recall",
    "mrr",
    "ndcg",
    "nll",
    "paired_bootstrap",
    "pairs",
    "precision",
    "precision_ceiling",
    "psndcg",
    "psp",
    "reachable",
    "recall",
    "reliability",
    "sampled_coverage",
    "smooth_ece",
    "table",
]


def __getattr__(name: str):
    return plugins.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *plugins.names(__name__)})
