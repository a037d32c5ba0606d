"""Figs 17 to 19 from printed numbers: two of four columns, three of four rows, five of six models."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from xcrepro.papers.calibration._common import correlate_with_precision, plot_against_precision, printed_table


def compute() -> pd.DataFrame:
    """The errors of table 7 beside the P@k of table 6.

    Returns
    -------
    DataFrame
        k, dataset, method, P (percent, of the model before calibration: a joint monotone map leaves it as it is),
        metric, variant, printed, value (percent), reading.
    """
    precision = printed_table(6).query("variant == 'none'").rename(columns={"value": "P"})
    errors = printed_table(7)[["dataset", "k", "method", "metric", "variant", "printed", "value", "reading"]]
    joined = precision[["dataset", "k", "method", "P"]].merge(errors)
    columns = ["k", "dataset", "method", "P", "metric", "variant", "printed", "value", "reading"]
    return joined[columns].sort_values("k", kind="stable").reset_index(drop=True)


compute_claims = correlate_with_precision


def plot(table: pd.DataFrame, k: int, ax=None) -> Figure:
    """Figs 17 (k = 1), 18 (3) and 19 (5); "c" marks a cell that is drawn at our reading, not as printed.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    k : {1, 3, 5}
    ax : array of Axes, optional
        As for :func:`xcrepro.papers.calibration._common.plot_against_precision`.
    """
    ece = table.query("k == @k and metric == 'ECE' and variant == 'isotonic'")["value"]
    title = (
        f"After isotonic regression no ECE@{k} is above {ece.max():.2f} %. Before it, precision and error rise together\n"
        "on EURLex-4K and go against each other on Amazon-670K, loosely: five models are few."
    )
    note = (
        "; c: drawn at our reading of the cell\n"
        "in no table, so not here: NLL, P@k on AmazonCat-13K and Wikipedia-500K, P@k of Renee"
    )
    return plot_against_precision(table, k, title, note, ax)
