"""What the calibration paper's items share: its printed tables, errors against precision, and the
reliability of models before and after calibration."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from xcrepro import calibrate, published
from xcrepro.inputs import calibrated
from xcrepro.repro import tables

if TYPE_CHECKING:
    from xcrepro.data.dataset import Dataset
    from xcrepro.predictions import TopK

_MARKS = {"isotonic": "-I", "platt": "-P", "isotonic-separate": "-I", "platt-separate": "-P"}


def printed_table(name: int | str) -> pd.DataFrame:
    """One printed table as :func:`xcrepro.published.table` gives it, with what all items make of its cells.

    Parameters
    ----------
    name : int or str
        The table's number, or the rest of the source's name: ``"appendixA/fig6"``.

    Returns
    -------
    DataFrame
        ``variant`` is the calibration: ``"none"``, ``"isotonic"``, ``"platt"``, or the last two with ``-separate``,
        fitted for each rank of the top k alone. Further columns: ``mark``, ``"-I"`` and ``"-P"`` for isotonic and
        Platt as in print, ``""`` for none; ``text``, :func:`format_cell`; ``on page``, the printed text as a number;
        ``doubted``, whether the audit doubts the cell.
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
    """A cell as the page has it, with our reading in brackets where it differs or is in doubt.

    Parameters
    ----------
    printed : str
        The cell's text; empty where there is none.
    value : float
        As we read it; NaN where that is not known.
    reading : str
        ``"as printed"``, ``"corrected"`` or ``"uncertain"``.

    Returns
    -------
    str
        The text, ``"-"`` for none.

    Examples
    --------
    >>> format_cell("1.79", 17.9, "corrected"), format_cell("1.60", 11.6, "uncertain")
    ('1.79 [17.9]', '1.60 [11.6?]')
    >>> format_cell("9.79", 9.79, "uncertain"), format_cell("18.45", float("nan"), "uncertain")
    ('9.79 [?]', '18.45 [unknown]')
    >>> format_cell("12.3", 12.3, "as printed"), format_cell("", float("nan"), "as printed")
    ('12.3', '-')
    """
    if not printed or reading == "as printed":
        return printed or "-"
    if pd.isna(value):
        return f"{printed} [unknown]"
    read = "" if float(printed.replace(",", "")) == value else f"{value:,.10g}"
    return f"{printed} [{read}{'?' if reading == 'uncertain' else ''}]"


def lay_out_table(number: int) -> pd.DataFrame:
    """A printed table as the page lays it out.

    Parameters
    ----------
    number : int
        1 to 8.

    Returns
    -------
    DataFrame
        The texts of :func:`format_cell`, "†" behind what the audit doubts; "I" and "P" mark isotonic and Platt.
    """
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
    """Every method on every model, cross-fitted over ten contiguous folds of the test points.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    methods : mapping of str to mapping
        Method -> keywords of :func:`xcrepro.calibrate.cross_fit_top`.
    ks : sequence of int
        How many places are calibrated together.
    given : str
        The file or folder of saved predictions among them.

    Returns
    -------
    dict
        (model, k) -> method -> the first k places calibrated by it; ``"none"`` first, as they were.
    """
    found = {}
    start = {k: calibrated.probabilities(tops, k, given) for k in ks}
    for name in tops:
        for k in ks:
            before = start[k][name]
            fits = {method: calibrate.cross_fit_top(ds.test.Y, before, **how) for method, how in methods.items()}
            found[name, int(k)] = {"none": before, **fits}
    return found


# ---------------------------------------------------------------- reliability: items on trained models
