"""Figure 2 as far as the printed tables go: micro-F1 and macro-F1 of five methods."""

from __future__ import annotations

import functools

from xcrepro.papers.reeval._common import compute_printed_bars, plot_f1_bars

compute = compute_printed_bars
plot = functools.partial(plot_f1_bars, twin=False)
