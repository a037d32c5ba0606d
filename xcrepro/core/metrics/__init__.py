"""The public, checked layer over the kernels. ``xc.metrics.precision(Y, top, ks=(1, 3, 5))`` and its like."""

import importlib
from typing import TYPE_CHECKING

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
    unique_labels,
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
    exact_match,
    f_beta,
    hamming_loss,
    hierarchical,
    hit_rate,
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
    r_precision,
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

if TYPE_CHECKING:
    from xcrepro.core.metrics.agreement import changed_labels as changed_labels
    from xcrepro.core.metrics.agreement import overlap as overlap
    from xcrepro.core.metrics.agreement import rank_biased_overlap as rank_biased_overlap
    from xcrepro.core.metrics.confused import Confused as Confused
    from xcrepro.core.metrics.confused import confused_labels as confused_labels
    from xcrepro.core.metrics.gaps import label_gaps as label_gaps
    from xcrepro.core.metrics.roc import auc as auc
    from xcrepro.core.metrics.sets import ThresholdCurve as ThresholdCurve
    from xcrepro.core.metrics.sets import aurc as aurc
    from xcrepro.core.metrics.sets import best_threshold as best_threshold
    from xcrepro.core.metrics.sets import conformal_threshold as conformal_threshold
    from xcrepro.core.metrics.sets import cross_fit_sets as cross_fit_sets
    from xcrepro.core.metrics.sets import risk_coverage as risk_coverage
    from xcrepro.core.metrics.sets import threshold_curve as threshold_curve

_LATER = {
    "Confused": "confused",
    "ThresholdCurve": "sets",
    "auc": "roc",  # a module of the name of its function would hide it
    "aurc": "sets",
    "best_threshold": "sets",
    "changed_labels": "agreement",
    "conformal_threshold": "sets",
    "confused_labels": "confused",
    "cross_fit_sets": "sets",
    "label_gaps": "gaps",
    "overlap": "agreement",
    "rank_biased_overlap": "agreement",
    "risk_coverage": "sets",
    "threshold_curve": "sets",
}
"""Name -> its module, which few need: imported when the name is used."""

__all__ = [
    "METRICS",
    "Bootstrap",
    "BrierParts",
    "Confused",
    "CorrectedECE",
    "Counts",
    "SharedErrorsWarning",
    "TTest",
    "ThresholdCurve",
    "abandonment",
    "ace",
    "adg",
    "alpha_coverage",
    "auc",
    "aurc",
    "average_precision",
    "best_macro_f1",
    "best_threshold",
    "binned_macro_f1",
    "brier",
    "brier_decomposition",
    "calibration_table",
    "changed_labels",
    "compare",
    "conformal_threshold",
    "confused_labels",
    "confusion",
    "corrected_ece",
    "coverage",
    "coverage_error",
    "cross_fit_sets",
    "diversity",
    "ece",
    "evaluate",
    "exact_match",
    "f_beta",
    "hamming_loss",
    "hierarchical",
    "hit_rate",
    "holm",
    "label_entropy",
    "label_gaps",
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
    "overlap",
    "paired_bootstrap",
    "pairs",
    "precision",
    "precision_ceiling",
    "psndcg",
    "psp",
    "r_precision",
    "rank_biased_overlap",
    "reachable",
    "recall",
    "reliability",
    "risk_coverage",
    "sampled_coverage",
    "smooth_ece",
    "table",
    "threshold_curve",
    "unique_labels",
]


if not TYPE_CHECKING:

    def __getattr__(name: str):
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return __all__
