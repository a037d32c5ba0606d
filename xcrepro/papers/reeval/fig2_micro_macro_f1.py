"""Figure 2 as far as the printed tables go: micro-F1 and macro-F1 of five methods."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from xcrepro.papers.reeval._common import compute_printed_bars, plot_f1_bars

compute = compute_printed_bars


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """:func:`xcrepro.papers.reeval._common.plot_f1_bars` of the printed numbers."""
    return plot_f1_bars(table, twin=False, ax=ax)
