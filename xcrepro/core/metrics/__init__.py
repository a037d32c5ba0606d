"""The public, checked layer over the kernels. ``xc.metrics.precision(Y, top, ks=(1, 3, 5))`` and its like."""

import importlib
from typing import TYPE_CHECKING

from xcrepro.core.metrics.calibration import BrierParts as BrierParts
from xcrepro.core.metrics.calibration import CorrectedECE as CorrectedECE
from xcrepro.core.metrics.calibration import ace as ace
from xcrepro.core.metrics.calibration import brier as brier
from xcrepro.core.metrics.calibration import brier_decomposition as brier_decomposition
from xcrepro.core.metrics.calibration import calibration_table as calibration_table
from xcrepro.core.metrics.calibration import corrected_ece as corrected_ece
from xcrepro.core.metrics.calibration import ece as ece
from xcrepro.core.metrics.calibration import marginal_ece as marginal_ece
from xcrepro.core.metrics.calibration import nll as nll
from xcrepro.core.metrics.calibration import pairs as pairs
from xcrepro.core.metrics.calibration import reliability as reliability
from xcrepro.core.metrics.calibration import smooth_ece as smooth_ece
from xcrepro.core.metrics.compare import compare as compare
from xcrepro.core.metrics.coverage import alpha_coverage as alpha_coverage
from xcrepro.core.metrics.coverage import coverage as coverage
from xcrepro.core.metrics.coverage import diversity as diversity
from xcrepro.core.metrics.coverage import label_entropy as label_entropy
from xcrepro.core.metrics.coverage import reachable as reachable
from xcrepro.core.metrics.coverage import sampled_coverage as sampled_coverage
from xcrepro.core.metrics.coverage import unique_labels as unique_labels
from xcrepro.core.metrics.evaluate import evaluate as evaluate
from xcrepro.core.metrics.labelwise import Counts as Counts
from xcrepro.core.metrics.labelwise import best_macro_f1 as best_macro_f1
from xcrepro.core.metrics.labelwise import binned_macro_f1 as binned_macro_f1
from xcrepro.core.metrics.labelwise import confusion as confusion
from xcrepro.core.metrics.labelwise import macro_f1 as macro_f1
from xcrepro.core.metrics.labelwise import macro_f_beta as macro_f_beta
from xcrepro.core.metrics.labelwise import macro_precision as macro_precision
from xcrepro.core.metrics.labelwise import macro_recall as macro_recall
from xcrepro.core.metrics.ranking import abandonment as abandonment
from xcrepro.core.metrics.ranking import adg as adg
from xcrepro.core.metrics.ranking import average_precision as average_precision
from xcrepro.core.metrics.ranking import coverage_error as coverage_error
from xcrepro.core.metrics.ranking import exact_match as exact_match
from xcrepro.core.metrics.ranking import f_beta as f_beta
from xcrepro.core.metrics.ranking import hamming_loss as hamming_loss
from xcrepro.core.metrics.ranking import hierarchical as hierarchical
from xcrepro.core.metrics.ranking import hit_rate as hit_rate
from xcrepro.core.metrics.ranking import lrap as lrap
from xcrepro.core.metrics.ranking import micro_f1 as micro_f1
from xcrepro.core.metrics.ranking import micro_precision as micro_precision
from xcrepro.core.metrics.ranking import micro_recall as micro_recall
from xcrepro.core.metrics.ranking import mrr as mrr
from xcrepro.core.metrics.ranking import ndcg as ndcg
from xcrepro.core.metrics.ranking import precision as precision
from xcrepro.core.metrics.ranking import precision_ceiling as precision_ceiling
from xcrepro.core.metrics.ranking import psndcg as psndcg
from xcrepro.core.metrics.ranking import psp as psp
from xcrepro.core.metrics.ranking import r_precision as r_precision
from xcrepro.core.metrics.ranking import recall as recall
from xcrepro.core.metrics.registry import METRICS as METRICS
from xcrepro.core.metrics.registry import table as table
from xcrepro.core.metrics.significance import Bootstrap as Bootstrap
from xcrepro.core.metrics.significance import SharedErrorsWarning as SharedErrorsWarning
from xcrepro.core.metrics.significance import TTest as TTest
from xcrepro.core.metrics.significance import holm as holm
from xcrepro.core.metrics.significance import macro_t_test as macro_t_test
from xcrepro.core.metrics.significance import paired_bootstrap as paired_bootstrap

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

_NAMES = {
    "agreement": ("changed_labels", "overlap", "rank_biased_overlap"),
    "confused": ("Confused", "confused_labels"),
    "gaps": ("label_gaps",),
    "roc": ("auc",),  # a module of the name of its function would hide it
    "sets": (
        "ThresholdCurve",
        "aurc",
        "best_threshold",
        "conformal_threshold",
        "cross_fit_sets",
        "risk_coverage",
        "threshold_curve",
    ),
}
"""Module -> its names, which few need: imported when a name is used."""
_LATER = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted({"METRICS", *_LATER, *(name for name, value in globals().items() if callable(value))})


if not TYPE_CHECKING:

    def __getattr__(name: str):
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return __all__
