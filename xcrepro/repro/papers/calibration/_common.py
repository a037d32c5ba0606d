"""What the calibration paper's items share: its printed tables, errors against precision, and reliability."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from xcrepro.core import calibrate
from xcrepro.repro import published
from xcrepro.repro.drawing import tables
from xcrepro.repro.inputs import calibrated

if TYPE_CHECKING:
    from xcrepro.core.data.dataset import Dataset
    from xcrepro.core.predictions import TopK

_MARKS = {"isotonic": "-I", "platt": "-P", "isotonic-separate": "-I", "platt-separate": "-P"}


def printed_table(name: int | str) -> pd.DataFrame:
    """One printed table as :func:`xcrepro.published.table` gives it, by its number or as in ``"appendixA/fig6"``.

    Further columns: ``mark``, ``"-I"`` and ``"-P"`` for isotonic and Platt as in print; ``text`` (:func:`format_cell`);
    ``on page``, the printed text as a number; ``doubted``, whether the audit doubts the cell.
    """
    source = f"calibration:table{name}" if isinstance(name, int) else f"calibration:{name}"
    found = published.table(source)
    return found.assign(
        doubted=_doubts(source),
        mark=found["variant"].map(_MARKS).fillna(""),
        text=[format_cell(*row) for row in zip(found["printed"], found["value"], found["reading"], strict=True)],
        **{"on page": pd.to_numeric(found["printed"].str.replace(",", ""), errors="coerce")},
    )


@functools.cache
def _doubts(source: str) -> tuple[bool, ...]:
    """Of each row of a printed table whether the audit doubts it; kept, as the audit takes seconds."""
    if source.startswith("calibration:table"):
        return _doubts_of_tables()[source]
    return tuple(published.doubted(published.table(source)) != "")


@functools.cache
def _doubts_of_tables() -> dict[str, tuple[bool, ...]]:
    """The same of tables 1 to 8, from one audit of all their datasets."""
    rows = pd.concat([published.table(f"calibration:table{number}") for number in range(1, 9)], ignore_index=True)
    doubted = published.doubted(rows) != ""
    return {source: tuple(part) for source, part in doubted.groupby(rows["source"])}


def format_cell(printed: str, value: float, reading: str) -> str:
    """A cell as printed, with our reading in brackets if it differs or is in doubt: ``"1.79 [17.9]"``, ``"9.79 [?]"``."""
    if not printed or reading == "as printed":
        return printed or "-"
    if pd.isna(value):
        return f"{printed} [unknown]"
    read = "" if float(printed.replace(",", "")) == value else f"{value:,.10g}"
    return f"{printed} [{read}{'?' if reading == 'uncertain' else ''}]"


def lay_out_table(number: int) -> pd.DataFrame:
    """Printed table 1 to 8 as the page lays it out: "†" behind what the audit doubts, "I" and "P" for isotonic and Platt."""
    t = printed_table(number)
    t["text"] += t["doubted"].map({True: "†", False: ""})
    if number in (1, 3):
        rows, columns = {"dataset" if number == 3 else "x": t["dataset"]}, t["metric"]
    elif number in (5, 6):
        rows = {"dataset": t["dataset"], "method": t["method"]}
        columns = t["metric"] + "@" + t["k"].astype(str) + t["mark"].str.replace("-", " ")
    else:
        rows = {"k": t["k"].astype(str), "method": t["method"] + t["mark"]}
        columns = t["dataset"] + " " + t["metric"]
    return tables.spread(pd.DataFrame({**rows, "column": columns, "text": t["text"]}), list(rows), "column", "text")


def calibrate_all(
    ds: Dataset, tops: calibrated.Tops, methods: Mapping[str, Mapping], ks: Sequence[int], given: str = ""
) -> dict[tuple[str, int], dict[str, TopK]]:
    """(model, k) -> method -> the first k places, cross-fitted over ten contiguous folds of the test points; "none" first."""
    found = {}
    start = {k: calibrated.probabilities(tops, k, given) for k in ks}
    for name in tops:
        for k in ks:
            before = start[k][name]
            fits = {method: calibrate.cross_fit_top(ds.test.Y, before, **how) for method, how in methods.items()}
            found[name, int(k)] = {"none": before, **fits}
    return found


# ---------------------------------------------------------------- reliability: items on trained models
