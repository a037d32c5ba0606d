"""What acts on one's own predictions and classes: report, diagnose, formats, judged, blocks, course, commands."""

from __future__ import annotations

from xcrepro.core import plugins

_METRICS = "xcrepro.core.metrics"
plugins.serve(_METRICS, "xcrepro.core.judged")
plugins.serve(_METRICS, "xcrepro.core.metrics.confused", "Confused", "confused_labels")
plugins.serve("xcrepro.core.decide", "xcrepro.core.one_pass", "OnePass")
plugins.serve(_METRICS, "xcrepro.core.metrics.gaps", "label_gaps")
plugins.serve(_METRICS, "xcrepro.core.metrics.agreement", "changed_labels", "overlap", "rank_biased_overlap")
plugins.serve(_METRICS, "xcrepro.core.metrics.sets", "ThresholdCurve", "aurc", "best_threshold", "conformal_threshold",
             "cross_fit_sets", "risk_coverage", "threshold_curve")  # fmt: skip
plugins.serve("xcrepro.core.data", "xcrepro.core.data.filters")
plugins.serve("xcrepro.core.data", "xcrepro.core.data.filters", "make_filter", "read_texts", "write_filter")
plugins.serve("xcrepro.repro.inputs", "xcrepro.tools.diagnose")
plugins.serve("xcrepro.repro.inputs", "xcrepro.tools.formats")
plugins.serve("xcrepro.repro.published", "xcrepro.repro.published.explain", "conclusion", "explain")
