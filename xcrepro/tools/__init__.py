"""What acts on one's own predictions and classes: report, diagnose, formats, judged, blocks, course, commands."""

from __future__ import annotations

from xcrepro.core import served

_METRICS = "xcrepro.core.metrics"
served.serve(_METRICS, "xcrepro.tools.judged")
served.serve(_METRICS, "xcrepro.tools.confused", "Confused", "confused_labels")
served.serve("xcrepro.core.decide", "xcrepro.tools.one_pass", "OnePass")
served.serve(_METRICS, "xcrepro.tools.gaps", "label_gaps")
served.serve(_METRICS, "xcrepro.tools.overlap", "changed_labels", "overlap", "rank_biased_overlap")
served.serve(_METRICS, "xcrepro.tools.sets", "ThresholdCurve", "aurc", "best_threshold", "conformal_threshold",
             "cross_fit_sets", "risk_coverage", "threshold_curve")  # fmt: skip
served.serve("xcrepro.core.data", "xcrepro.tools.filters")
served.serve("xcrepro.core.data", "xcrepro.tools.filters", "make_filter", "read_texts", "write_filter")
served.serve("xcrepro.repro.inputs", "xcrepro.tools.diagnose")
served.serve("xcrepro.repro.inputs", "xcrepro.tools.formats")
served.serve("xcrepro.repro.published", "xcrepro.tools.explain", "conclusion", "explain")
