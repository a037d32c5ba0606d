"""Figs 17 to 19 from printed numbers: two of four columns, three of four rows, five of six models."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from xcrepro.papers.calibration._common import (
    correlate_with_precision,
    describe_count,
    describe_relations,
    plot_against_precision,
    printed_table,
)


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


def findings(table: pd.DataFrame) -> list[str]:
    """Do the errors fall, and do precision and error go together? From the cells that are taken as they are printed.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    list of str
    """
    kept = table[table["reading"] == "as printed"]
    keys = ["dataset", "k", "method", "metric"]
    wide = kept.pivot(index=keys, columns="variant", values="value").dropna().reset_index()
    lower = wide["isotonic"] < wide["none"]
    counts = [f"{metric} in {describe_count(lower[rows.index])}" for metric, rows in wide.groupby("metric", sort=False)]
    said = [
        f"Lower after isotonic regression than before, of the printed cases (a model, dataset and k): {', '.join(counts)}."
        " Plain counts: nothing is printed with an error."
    ]
    for metric in ("ECE", "ACE"):
        after = kept[(kept["metric"] == metric) & (kept["variant"] == "isotonic")]
        largest = after.loc[after.groupby("dataset", sort=False)["value"].idxmax()]
        ends = "; ".join(
            f"{row.value:.2f} % on {row.dataset} ({row.method}, k = {row.k})" for row in largest.itertuples()
        )
        said.append(f"The largest {metric} after it: {ends}.")
    said += [describe_relations(kept), describe_relations(kept, "Brier", "isotonic")]
    doubted = len(table) - len(kept)
    return [*said, f"Left out of these sentences: {doubted} cells that are not taken as printed."]


def plot(table: pd.DataFrame, k: int, ax=None) -> Figure:
    """Figs 17 (k = 1), 18 (3) and 19 (5); "†" marks a cell that is drawn at our reading, not as printed.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    k : {1, 3, 5}
    ax : array of Axes, optional
        As for :func:`xcrepro.papers.calibration._common.plot_against_precision`.
    """
    note = (
        "; †: doubted in print, drawn at our reading\n"
        "in no table, so not here: NLL, P@k on AmazonCat-13K and Wikipedia-500K, P@k of Renee"
    )
    return plot_against_precision(table, k, f"Calibration errors at k = {k} against P@{k}, as printed", note, ax)
