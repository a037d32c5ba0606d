"""The public, checked layer over the kernels. ``xc.metrics.precision(Y, top, ks=(1, 3, 5))`` and its like."""

import types as _types

from xcrepro.metrics import judged
from xcrepro.metrics.calibration import (
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
from xcrepro.metrics.compare import compare
from xcrepro.metrics.coverage import alpha_coverage, coverage, diversity, label_entropy, reachable, sampled_coverage
from xcrepro.metrics.evaluate import evaluate
from xcrepro.metrics.labelwise import (
    Counts,
    best_macro_f1,
    binned_macro_f1,
    confusion,
    macro_f1,
    macro_f_beta,
    macro_precision,
    macro_recall,
)
from xcrepro.metrics.ranking import (
    abandonment,
    adg,
    average_precision,
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
from xcrepro.metrics.registry import METRICS, table
from xcrepro.metrics.significance import (
    Bootstrap,
    Comparison,
    Interval,
    SharedErrorsWarning,
    TTest,
    compare_all,
    confidence_intervals,
    holm,
    macro_t_test,
    paired_bootstrap,
)

__all__ = sorted(
    name for name, value in globals().items() if name[0] != "_" and not isinstance(value, _types.ModuleType)
)
