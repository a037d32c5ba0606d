"""Tables 1 to 8 as printed: how we read them, which cells contradict each other, and the paper's sentences counted."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from xcrepro.papers.calibration._common import describe_count, lay_out_table, printed_table
from xcrepro.repro import tables

TABLES = (1, 2, 3, 4, 5, 6, 7, 8)
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


def check_readings(readings: pd.DataFrame) -> pd.DataFrame:
    """All but the reasons, which are prose."""
    return readings.drop(columns="why")


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
        claim, where, as printed (``"12 of 14"``: over the numbers on the page), as read (over our readings of them).
    """
    counts = {words: list(_test_claims(column)) for words, column in (("as printed", "on page"), ("as read", "value"))}
    claims = pd.DataFrame([row[:2] for row in counts["as read"]], columns=["claim", "where"])
    return claims.assign(**{words: [describe_count(true) for *_, true in rows] for words, rows in counts.items()})


def _test_claims(column: str) -> Iterator[tuple[str, str, pd.Series]]:
    """Each claim, its tables, and whether it is true, cell by cell of ``column``."""
    every = _all_cells()

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
    ratio = (platt["platt"] / platt["isotonic"]).unstack("dataset")
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
