"""Figure 2 as far as the printed tables go: micro-F1 and macro-F1 of five methods."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from xcrepro.papers.reeval import table3_table4
from xcrepro.papers.reeval._common import F1, plot_f1_bars

FIGURE_K = {"EURLex-4K": 5, "Wiki10-31K": 19, "AmazonCat-13K": 5}
"""Section 5 of the paper."""


def compute() -> pd.DataFrame:
    """The thirty bars of figure 2: metric, dataset, k, method, value (percent); NaN for the ten that no table has.

    The figure takes k = 19 on Wiki10-31K; tables 3 and 4 stop at k = 5.
    """
    printed = table3_table4.compute()
    rows = [
        (metric, row["dataset"], k, row["method"], row.get(f"{metric}@{k}", float("nan")))
        for metric in F1
        for _, row in printed.iterrows()
        for k in [FIGURE_K[row["dataset"]]]
    ]
    return pd.DataFrame(rows, columns=["metric", "dataset", "k", "method", "value"])


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """:func:`xcrepro.papers.reeval._common.plot_f1_bars` of the printed numbers."""
    return plot_f1_bars(table, twin=False, ax=ax)
