"""Tables 1 to 8 as printed: how we read them, which cells contradict each other, and the paper's sentences counted.

The item's name is of the tables that have methods in them; table 1 is the example of ``table1_counterexample``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from xcrepro.papers.calibration._common import describe_count, lay_out_table, printed_table
from xcrepro.repro import tables

TABLES = (1, 2, 3, 4, 5, 6, 7, 8)
CAPTIONS = {
    1: "the counterexample, two points and two labels: probability and score of each label",
    2: "errors at k = 5, datasets without label features",
    3: "the datasets",
    4: "errors at k = 5, datasets with label features",
    5: "ECE as it was, after isotonic regression (I) and after Platt scaling (P)",
    6: "P@k as it was, after separate isotonic (I) and separate Platt (P) calibration",
    7: "errors at k = 1, 3, 5, datasets without label features",
    8: "errors at k = 1, 3, 5, datasets with label features",
}
_CELL = ["dataset", "k", "method", "variant", "metric"]


compute = lay_out_table


def _all_cells() -> pd.DataFrame:
    return pd.concat([printed_table(number).assign(table=number) for number in TABLES], ignore_index=True)


def compute_readings() -> pd.DataFrame:
    """Every cell of the tables that we read otherwise than printed, or doubt.

    Returns
    -------
    DataFrame
        table (integer), dataset, k, method, metric, printed, read as (text), reading, why.
    """
    every = _all_cells()
    every = every[every["reading"] != "as printed"]
    every["method"] += every["mark"]
    every["read as"] = ["unknown" if pd.isna(value) else f"{value:,.10g}" for value in every["value"]]
    columns = ["table", "dataset", "k", "method", "metric", "printed", "read as", "reading", "note"]
    return every[columns].rename(columns={"note": "why"}).reset_index(drop=True)


def compute_repeats() -> pd.DataFrame:
    """Cells that stand in two places.

    Returns
    -------
    DataFrame
        places, cells, agree printed (how many, as numbers), agree read, differ (texts of the cells that differ in
        print).
    """
    rows = []
    for one, other in ((2, 7), (4, 8), (5, 7), ("sec2.2", 7), ("appendixB", 6), ("appendixC", 5)):
        both = printed_table(one).dropna(subset="on page")
        both = both.merge(printed_table(other), on=_CELL, suffixes=("", " there"))
        off = both[both["on page"] != both["on page there"]]
        cells = off["dataset"] + " " + off["method"] + off["mark"] + " " + off["metric"] + "@" + off["k"].astype(str)
        differ = "; ".join(cells + ": " + off["printed"] + " / " + off["printed there"])
        agree = len(both) - len(off), int((both["value"] == both["value there"]).sum())
        rows.append((f"{_PLACES.get(one, f'table {one}')} and table {other}", len(both), *agree, differ))
    return pd.DataFrame(rows, columns=["places", "cells", "agree printed", "agree read", "differ"])


_PLACES = {"sec2.2": "section 2.2", "appendixB": "appendix B", "appendixC": "appendix C"}


def compute_effect() -> pd.DataFrame:
    """Tables 7 and 8: medians over all cells, as read.

    Returns
    -------
    DataFrame
        table, metric, k, cells, median before and median after isotonic regression (in the table's units).
    """
    keys, cells = ["table", "metric", "k"], _all_cells().query("table in (7, 8)").astype({"k": int})
    wide = tables.spread(cells, [*keys, "dataset", "method"], "variant", "value").dropna()
    medians = {"median before": ("none", "median"), "median after": ("isotonic", "median")}
    return wide.groupby(keys, sort=False).agg(cells=("none", "size"), **medians).reset_index()


def compute_claims() -> pd.DataFrame:
    """What the paper says of its tables, counted in them.

    Returns
    -------
    DataFrame
        claim, where, as printed (``"12 of 14"``: over the numbers on the page), as read (over our readings of them), not
        doubted (over our readings, without the cells that the audit doubts).
    """
    columns = {"as printed": "on page", "as read": "value", "not doubted": "undoubted"}
    every = _all_cells()
    every["undoubted"] = every["value"].where(~every["doubted"])
    counts = {words: list(_test_claims(every, column)) for words, column in columns.items()}
    claims = pd.DataFrame([row[:2] for row in counts["as read"]], columns=["claim", "where"])
    return claims.assign(**{words: [describe_count(true) for *_, true in rows] for words, rows in counts.items()})


def _test_claims(every: pd.DataFrame, column: str) -> Iterator[tuple[str, str, pd.Series]]:
    """Each claim, its tables, and whether it is true, cell by cell of ``column``."""

    def wide(numbers: tuple[int, ...], over: str, **where) -> pd.DataFrame:
        """Cells of some tables side by side by ``over``; ``where`` keeps those with the given values."""
        keep = every["table"].isin(numbers)
        for name, wanted in where.items():
            keep &= every[name] == wanted
        rows = [name for name in ("table", *_CELL) if name != over]
        return every[keep].pivot(index=rows, columns=over, values=column)

    def lower(numbers: tuple[int, ...], over: str, low: str, high: str, **where) -> pd.Series:
        both = wide(numbers, over, **where)[[low, high]].dropna()
        return both[low] < both[high]

    for metric in ("ECE", "ACE", "Brier"):
        yield f"isotonic lowers {metric}", "tables 7, 8", lower((7, 8), "variant", "isotonic", "none", metric=metric)
    yield "isotonic has the lower ECE than Platt", "table 5", lower((5,), "variant", "isotonic", "platt")
    platt = wide((5,), "variant")
    ratio = (platt["platt"] / platt["isotonic"]).unstack("dataset").dropna()
    larger = ratio["Amazon-670K"] > ratio["EURLex-4K"]
    yield "Platt over isotonic is larger on Amazon-670K than on EURLex-4K", "table 5", larger
    for variant, words in (("isotonic-separate", "isotonic"), ("platt-separate", "Platt")):
        yield f"separate {words} calibration lowers P@k", "table 6", lower((6,), "variant", variant, "none")
    ece = {"over": "method", "metric": "ECE", "variant": "none"}
    for k in (1, 3, 5):
        pairs = [lower((8,), low=a, high=b, k=k, **ece) for a in ("Renee", "Gandalf") for b in ("GalaXC", "NGAME")]
        yield f"label augmentation has the lower ECE than two towers, k = {k}", "table 8", pd.concat(pairs)
    for number, k in ((4, 5), (8, 5), (8, 3), (8, 1)):
        better = lower((number,), low="Gandalf", high="Renee", k=k, **ece)
        yield f"Gandalf has the lower ECE than Renee, k = {k}", f"table {number}", better
    worse = lower((7,), low="LightXML", high="CascadeXML", **ece)
    yield "CascadeXML has the higher ECE than LightXML", "table 7", worse
    worse = lower((7,), low="LightXML", high="Renee", dataset="Amazon-670K", **ece)
    yield "Renee has the higher ECE than LightXML on Amazon-670K", "table 7", worse
    for variant, words in (("none", "before"), ("isotonic", "after")):
        pair = wide((7, 8), "metric", variant=variant)[["ECE", "ACE"]].dropna()
        near = (pair["ACE"] - pair["ECE"]).abs() / pair["ECE"] <= 0.1
        yield f"ACE is within a tenth of ECE {words} isotonic", "tables 7, 8", near


def findings(claims: pd.DataFrame, effect: pd.DataFrame, repeats: pd.DataFrame) -> list[str]:
    """What the printed numbers bear out: counts of cells that the audit does not doubt.

    Parameters
    ----------
    claims : DataFrame
        From :func:`compute_claims`.
    effect : DataFrame
        From :func:`compute_effect`.
    repeats : DataFrame
        From :func:`compute_repeats`.

    Returns
    -------
    list of str
    """
    holds = claims.assign(all=[len(set(text.split(" of "))) == 1 for text in claims["not doubted"]])
    sentences = []
    for whole, words in (
        (True, "true in every cell that is not in doubt"),
        (False, "true in a part of the cells alone"),
    ):
        part = holds[holds["all"] == whole]
        if len(part):
            told = [f"{row.claim} ({row.where}: {row._5})" for row in part.itertuples()]
            sentences.append(f"{words.capitalize()}: {'; '.join(told)}.")
    for row in claims.to_dict("records"):
        (true, cells), (read, others) = (map(int, row[words].split(" of ")) for words in ("as printed", "as read"))
        if true != read and cells - true != others - read:
            counts = f"{row['as printed']} as printed, {row['as read']} as read"
            sentences.append(f"A misprint decides: {row['claim']} ({row['where']}), {counts}.")
    ece = effect[effect["metric"] == "ECE"]
    told = [
        f"{r['median before']:.1f} to {r['median after']:.2f} % (table {r['table']}, k = {r['k']})"
        for r in ece.to_dict("records")
    ]
    sentences.append(f"The median ECE@k falls from {'; from '.join(told)}.")
    off = int((repeats["cells"] - repeats["agree printed"]).sum())
    sentences.append(f"Of {repeats['cells'].sum()} cells that stand in two places, {off} are printed in two ways.")
    return sentences
