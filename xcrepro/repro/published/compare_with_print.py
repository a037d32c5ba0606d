"""What documents print of a dataset, beside ours: printed, ours, difference, and what chance allows.

One way for a notebook, whose own tables are at hand (:func:`beside`), and for what was recorded of several notebooks
(``xcrepro.tools.reports.reproduce``): :func:`cells` reads the numbers of models out of tables of every form, :func:`matched`
finds the printed number of the same method, state, metric and k, and :func:`row` says how far apart they are.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from xcrepro.core.data import registry as datasets
from xcrepro.core.metrics import registry
from xcrepro.repro.drawing import tables
from xcrepro.repro.published import printed_tables
from xcrepro.repro.published.audit import doubted

if TYPE_CHECKING:
    from xcrepro.core.data.dataset import Dataset

COLUMNS = ("table", "method", "metric", "printed", "ours", "difference", "test points", "chance")
"""Of what a notebook shows."""
MEANS = ("P", "N", "Brier")
"""Means over test points of numbers from 0 to 1, so that the largest error of a mean is known."""
SURE = 1.96
_STATES = {"": "none", "full": "none", "before": "none", "I": "isotonic", "after": "isotonic"}
_PLAIN = ("", "none", "full", "*", "†", "‡", "♦")
"""Variants of a printed row that are the method as it is: no calibration, all labels, or the mark of its hardware."""
STAND_INS = {("reeval", "SVM"): "DiSMEC"}
"""(document, its method) -> ours of the same kind, which is set beside it by both names."""
_COLUMN = re.compile(
    r"([A-Za-z][A-Za-z0-9-]*?)(?:@(\d+))?(?: \((ideal k|test|test labels|reachable)\))?"
    r"(?:-(I)|[ -](none|isotonic|platt|before|after))?"
)


# ---------------------------------------------------------------- ours


@dataclasses.dataclass(frozen=True)
class Cell:
    """A number of a notebook's table: of a model in a state (before or after calibration), by a metric as documents call it.

    ``value`` is in the unit of print; ``sd`` over splits and ``half`` of a 95 % interval are NaN where a table has none.
    """

    item: str
    part: str
    method: str
    state: str
    metric: str
    k: str
    value: float
    sd: float
    half: float

    @property
    def key(self) -> tuple[str, str, str, str]:
        """By what it meets a printed number."""
        return self.method, self.state, self.metric, self.k


def cells(item: str, tables_: Mapping[str, Sequence[Mapping[str, tuple[str, str]]]]) -> Iterator[Cell]:
    """What the tables of an item have of models: tables with a row for each number, or a column for each metric.

    A table is a list of rows, column -> (value, standard deviation over splits or empty), as they are recorded.
    """
    for part, who, line, (metric, at, own), (value, sd), half in _numbers(tables_):
        if not math.isnan(number := _number(value)):
            own = own or line.get("state", ("", ""))[0]
            about = (item, part, line[who][0], _STATES.get(own, own), metric, at or line.get("k", ("", ""))[0])
            yield Cell(*about, number, _number(sd), half)


def _numbers(tables_: Mapping[str, Sequence[Mapping[str, tuple[str, str]]]]) -> Iterator[tuple]:
    """Of each cell with a metric of a model: part, column of the model, row, metric, cell, and half of its interval."""
    for part, table in tables_.items():
        who = next((name for name in ("model", "rule", "method") if table and name in table[0]), None)
        for line in table if who and part != "evidence" else ():
            named = [(name, cell, math.nan) for name, cell in line.items() if name != who]
            if {"metric", "k", "value"} <= line.keys():
                low, high = (_number(line.get(name, ("", ""))[0]) for name in ("low", "high"))
                named = [(line["metric"][0], line["value"], (high - low) / 2)]
            for name, cell, half in named:
                if found := _metric(name):
                    yield part, who, line, found, cell, half


DIFFERENCES = ("changes", "differences", "ends")
"""Recorded tables whose numbers are differences of a metric."""


def impossible(tables_: Mapping[str, Sequence[Mapping[str, tuple[str, str]]]]) -> str:
    """The first number of a model in recorded tables that no metric can have, in words; empty where there is none."""
    for part, who, line, (metric, at, _), (value, _), _ in _numbers(tables_):
        number, least = _number(value), -100 if part in DIFFERENCES else 0
        share = metric in _fractions()
        if not math.isfinite(number) or (share and not least - _ROUNDED <= number <= 100 + _ROUNDED):
            called = f"{metric}@{at or line.get('k', ('', ''))[0]}".rstrip("@")
            return f"{called} of {line[who][0]} in table {part!r} is {value}, and has to be " + (
                f"from {least} to 100" if share else "a number"
            )
    return ""


_ROUNDED = 1e-3
"""How far six significant digits may leave 100."""


@functools.cache
def _fractions() -> frozenset[str]:
    """The names in print of metrics that are shares, in percent there."""
    codes = registry.codes()
    named = {codes.get(registry.plain(name)) for name, one in registry.METRICS.items() if one.unit == "fraction"}
    return frozenset(filter(None, named))


@functools.cache
def _metric(column: str) -> tuple[str, str, str] | None:
    """The name under which documents print what a column has, its k, and the state."""
    if not (match := _COLUMN.fullmatch(column.replace("Cov", "coverage"))):
        return None
    name, k, of, short, state = match.groups()
    codes = registry.codes()
    if name == "n":  # how many, and not the documents' N
        return None
    code = codes.get(registry.plain(f"{name} ({of})")) or codes.get(registry.plain(name))
    return (code, k or "", short or state or "") if code else None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


# ---------------------------------------------------------------- print, and both


def lines(dataset: str, sources: Sequence[str]) -> pd.DataFrame:
    """What tables or documents print of a dataset, without empty cells; ``doubt`` says whether the audit doubts a number."""
    found = printed_tables.find(source=list(sources))
    found = found[found["dataset"].map(datasets.get(dataset).is_called).astype(bool) & (found["printed"] != "")]
    return found.assign(doubt=doubted(found) != "" if len(found) else False)


def matched(printed: pd.DataFrame, ours: Iterable[Cell]) -> Iterator[tuple[object, str, Cell | None]]:
    """Each printed number of :func:`lines`, its k as text, and the first of our cells that is of the same thing, or None."""
    first: dict[tuple, Cell] = {}
    for cell in ours:
        first.setdefault(cell.key, cell)
    for line in printed.itertuples():
        k = "" if pd.isna(line.k) else str(line.k)
        method, state = _called(line.method, line.variant)
        names = (method, own_method(line.source, method))
        yield line, k, next((first[key] for name in names if (key := (name, state, line.metric, k)) in first), None)


def own_method(table: str, method: str) -> str:
    """What a printed method is called here: by its name, or by that of :data:`STAND_INS`."""
    return STAND_INS.get((table.partition(":")[0], method), method)


def _called(method: str, variant: str) -> tuple[str, str]:
    """A printed row's method and state as the notebooks' tables have them."""
    if variant.startswith("beta="):
        beta = variant.removeprefix("beta=")
        return ("COV-PLT" if float(beta) == 0 else f"COVβ={beta}"), "none"
    return method, "none" if variant in _PLAIN else variant


def row(
    line, k: str, cell: Cell, every: Iterable[Cell], points: int, spread: Mapping[str, float] | None = None
) -> dict[str, str]:
    """One printed number, ours, and what chance allows: 95 % of what test points, split and training may do to ours.

    ``every`` are all cells, of which one that is the same number may have the interval; ``points`` are the test points, and
    ``spread`` is model -> standard deviation of its P@1 over seeds.
    """
    same = (one for one in every if one.key == cell.key)
    halves = _known(*(one.half for one in same if math.isclose(one.value, cell.value, rel_tol=1e-4)))
    at_most = not halves and line.metric in MEANS
    if at_most:
        share = min(max(cell.value / 100, 0.0), 1.0)
        halves = [100 * SURE * math.sqrt(share * (1 - share) / points)]
    split = _known(SURE * cell.sd)
    seed = _known(SURE * (spread or {}).get(cell.method, math.nan)) if (line.metric, k) == ("P", "1") else []
    # Splits differ in test points and training as well, so of the two errors the larger counts.
    ours = max([*split, math.hypot(*halves[:1], *seed)])
    digits = len(line.printed.partition(".")[2])
    allowed = math.hypot(ours, SURE * float(line.stderr or 0)) + 0.5 * 10**-digits
    off = cell.value - line.value
    unknown = math.isnan(off)  # what was meant cannot be read from the print
    stands_in = f", here {cell.method}" * (cell.method == STAND_INS.get((line.source.partition(":")[0], line.method)))
    plain = unknown or _number(line.printed.replace(",", "")) == line.value
    read = "" if plain else f", read as {line.value:.{digits}f}"
    return {
        "table": line.source,
        "method": f"{line.method} {line.variant}".strip() + stands_in,
        "metric": f"{line.metric}@{k}" if k else line.metric,
        "printed": line.printed + ("†" if line.doubt else "") + read,
        "ours": f"{cell.value:.{max(digits, 1)}f}",
        "difference": "" if unknown else f"{off:+.{max(digits, 1)}f}",
        "test points": "".join(f"{'at most ' * at_most}± {half:.2f}" for half in halves[:1]),
        "split": "".join(f"± {one:.2f}" for one in split) or "one split",
        "training": "".join(f"± {one:.2f}" for one in seed),
        "chance": "cannot tell" if unknown or not (halves or split) else "within" if abs(off) <= allowed else "beyond",
    }


def _known(*numbers: float) -> list[float]:
    return [one for one in numbers if not math.isnan(one)]


def other_version(entry: datasets.Entry, document: str) -> str:
    """How the data of a document differ from those of an entry, by its own table of datasets; empty if they do not."""
    for its in (its for id, its in entry.published.items() if id.startswith(f"{document}:")):
        sizes = [(name, its[name], getattr(entry, name)) for name in ("n_labels", "n_features") if name in its]
        if off := [f"{one:,} {name[2:]}, here {own:,}" for name, one, own in sizes if own not in (None, one)]:
            return f"{document} used another version of {entry.printed_name}: {'; '.join(off)}"
    return ""


# ---------------------------------------------------------------- of a notebook


def beside(ds: Dataset, table: pd.DataFrame, sources: Sequence[str]) -> pd.DataFrame:
    """The printed numbers of a run's dataset that the run has, a row for each, with :data:`COLUMNS`.

    Parameters
    ----------
    ds : Dataset
        Of the run. Of other data than those of print (not ``ds.comparable``) :func:`why_apart` says why they are others.
    table : DataFrame
        What the run found, in the unit of print, in one of the forms that :func:`cells` reads: ``model`` (or ``rule``), metric
        (the names of ``xc.evaluate``), k, value and perhaps low and high; ``state`` where a model was calibrated
        (``"isotonic"``, ``"platt"``, or a variant's name in print).
    sources : sequence of str
        Ids of tables, or of documents.

    Returns
    -------
    DataFrame
        Empty where nothing of it is printed. Printed values that the audit doubts have a dagger.
    """
    entry, every = _entry(ds), [*cells("", {"": json.loads(noted(table))})]
    found = matched(lines(entry.name, sources), every) if entry else ()
    rows = [row(line, k, cell, every, ds.test.Y.shape[0]) for line, k, cell in found if cell]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def noted(table: pd.DataFrame) -> str:
    """A table of numbers as :func:`cells` reads it, as JSON."""
    names, _, texts = tables.exact(table)
    return json.dumps([{name: (text, "") for name, text in zip(names, one, strict=True)} for one in texts])


def _entry(ds: Dataset) -> datasets.Entry | None:
    return datasets.find(ds.entry.name if ds.entry else ds.name)


def why_apart(ds: Dataset, documents: Iterable[str]) -> list[str]:
    """Why a run's data are not those of documents: other data by their size or split, or another version."""
    if (entry := _entry(ds)) is None:
        return []
    other = [] if ds.comparable else [f"These are not the data that are printed ({'; '.join(ds.notes)})"]
    return other + [version for one in dict.fromkeys(documents) if (version := other_version(entry, one))]


def of_others(words: str, data: Sequence) -> str:
    """``"as printed in jain16, table 3"`` with the word that it is of other data, if none of ``data`` is printed there."""
    named = re.search(r"\bas printed (?:in (\w+)|on the repository's page)", words)
    document = (named[1] or "xcrepo") if named else ""
    entries = [_entry(one) for one in data if hasattr(one, "entry")]
    if not entries or document not in {id.partition(":")[0] for id in printed_tables.sources()}:
        return ""
    return "" if any(one and len(lines(one.name, [document])) for one in entries) else f"of other data, {words}"


def why_none(ds: Dataset, sources: Sequence[str]) -> str:
    """Why nothing of what is printed of a run's dataset meets the run; empty if nothing is printed of it."""
    if not (entry := _entry(ds)) or not len(printed := lines(entry.name, sources)):
        return ""
    methods = ", ".join(filter(None, dict.fromkeys(printed["method"])))
    title = ds.title.partition(", ")[0]
    return f"Of {title} there is print of {methods or 'the data'}, and no number of it is in this run."
