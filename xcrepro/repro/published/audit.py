"""The audit of the published record: what follows from mathematics, or from comparing the documents.

:func:`audit` runs every check over every table. The identities of one row are in :mod:`xcrepro.repro.published.checks`; here
are the checks that compare rows, tables, documents, and a sentence with its table. Each states its derivation. Printed
numbers are intervals throughout: what rounding explains is not reported.
"""

from __future__ import annotations

import functools
import itertools
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xcrepro.core.data import registry
from xcrepro.repro.published import checks, printed_tables
from xcrepro.repro.published.checks import IDENTITIES, TINY, Cell, Fault, Row, column, span

if TYPE_CHECKING:
    import pandas as pd

JUDGEMENTS = ("typo", "rounding", "other variant", "conversion damage", "definition")
"""typo: the printed cell cannot be right as it stands.  rounding: cut or padded digits.  other variant: right for
another run, model or dataset version than its neighbours.  conversion damage: the text at hand differs from print.
definition: two readings of a metric or an average."""


@dataclass(frozen=True)
class Finding:
    """One row of :func:`audit`."""

    document: str
    table: str
    dataset: str
    row: str
    column: str
    printed: str
    expected: str
    judgement: str
    why: str
    check: str = ""  # audit has it from the name of the function


_COLUMNS = ("document", "table", "dataset", "row", "column", "printed", "expected", "check", "judgement", "why")


@dataclass(frozen=True, eq=False)
class Line:
    """The cells of one method (and variant) on one dataset in one document, all its tables together; compared by identity."""

    document: str
    dataset: str
    method: str
    variant: str
    row: Row

    @property
    def label(self) -> str:
        # Marks of the hardware and "none" are no part of a name.
        return f"{self.method} ({self.variant})" if len(self.variant) > 1 and self.variant != "none" else self.method

    def cell(self, metric: str, k: int) -> Cell | None:
        return self.row.cells.get((metric, k))

    def finding(
        self, metric: str, k: int, expected: str, judgement: str, why: str, check: str = "", cell: Cell | None = None
    ) -> Finding:
        """A finding about one of its cells, or about ``cell``, printed for the same elsewhere."""
        cell = cell or self.row.cells[metric, k]
        place = self.document, _names(cell.tables), self.dataset, self.label, column(metric, k)
        return Finding(*place, cell.printed, expected, judgement, why, check)


def audit(record: pd.DataFrame | None = None) -> pd.DataFrame:
    """Everything the checks find in the published record, each printed cell once, strongest first.

    It finds what contradicts its neighbours, so it does not find every slip: of single slips in P, N, PSP and PSN of the
    page's tables it saw 55 of 60 where two columns were exchanged, 45 where 10 points were added, 21 where one was, and 19
    where the last digit was wrong (``docs/audit.md``).

    Parameters
    ----------
    record : DataFrame, optional
        Tidy rows as :func:`xcrepro.published.find` returns them; None: the whole record. A part of it is checked as far as
        it goes.

    Returns
    -------
    DataFrame of str
        ``document``, ``table`` (several where the same cell is printed twice), ``dataset``, ``row`` (method and variant),
        ``column``, ``printed``, ``expected`` (what it must be, or its bounds), ``check`` (the function whose docstring
        derives it), ``judgement`` (one of :data:`JUDGEMENTS`) and ``why``. What several checks find stands once: ``check``,
        ``expected`` and ``why`` have all of them, the strongest first (names with ``", "``, expectations with ``"; "``
        between), ``judgement`` is the strongest's. The order: contradictions inside a row first, then those between rows,
        tables and documents, then sentences; typos before the rest.

    Examples
    --------
    >>> found = audit()
    >>> found[(found["document"] == "coverage") & found["check"].str.contains("first_place")]["printed"].tolist()
    ['58.1']
    """
    import pandas as pd

    if record is None:
        from xcrepro.repro.published.printed_tables import find

        record = find()
    book = Book(record)
    found = {replace(f, check=f.check or name): None for name, check in CHECKS.items() for f in check(book)}
    order = list(dict.fromkeys((*_ORDER_OF_CHECKS, *IDENTITIES, *CHECKS)))
    ranked = sorted(found, key=lambda f: (f.judgement != "typo", order.index(f.check), -_distance(f)))
    cells: dict[tuple[str, ...], list[Finding]] = defaultdict(list)
    for f in ranked:
        cells[f.document, f.dataset, f.row, f.column, f.printed].append(f)
    return pd.DataFrame([_together(same) for same in cells.values()], columns=_COLUMNS)


def _together(findings: list[Finding]) -> Finding:
    """Findings about one cell, the strongest first, as one."""

    def joined(name: str, between: str) -> str:
        texts: list[str] = []
        for f in findings:  # "93.0, as P@1" says nothing that "93.0" before it does not
            text = getattr(f, name)
            texts += [] if any(text.startswith(earlier) for earlier in texts) else [text]
        return between.join(texts)

    tables = _names(table for f in findings for table in f.table.split(", "))
    several = {"expected": joined("expected", "; "), "check": joined("check", ", "), "why": joined("why", " ")}
    return replace(findings[0], table=tables, **several)


def doubted(rows: pd.DataFrame) -> pd.Series:
    """Which printed values cannot be what their row says, by the audit of their datasets.

    Parameters
    ----------
    rows : DataFrame
        Printed values as :func:`xcrepro.published.table` and :func:`xcrepro.published.find` return them.

    Returns
    -------
    Series of str
        With the index of ``rows``: why a value is in doubt (a finding with the judgement ``"typo"``), empty where it is not.

    Examples
    --------
    >>> from xcrepro.repro.published import table
    >>> rows = table("xcrepo:EURLex-4K")
    >>> sorted(set(rows["method"][doubted(rows) != ""]))[:3]
    ['AnnexML', 'CPLST', 'CS']
    """
    import pandas as pd

    from xcrepro.repro.published.printed_tables import find

    known = [name for name in dict.fromkeys(rows["dataset"]) if name]
    found = audit(find(dataset=known)) if known else audit(rows)
    reasons = {}
    for one in found[found["judgement"] == "typo"].itertuples(index=False):
        for dataset in one.dataset.split(", "):
            for where in _cells_of(one.column):
                reasons.setdefault((one.document, dataset, one.row, checks.column(*where)), one.why)

    def why(row) -> str:
        line = Line(row.source.partition(":")[0], row.dataset, row.method, row.variant, checks.Row({}))
        k = 0 if pd.isna(row.k) else int(row.k)
        return reasons.get((line.document, row.dataset, line.label, checks.column(row.metric, k)), "")

    return pd.Series([why(row) for row in rows.itertuples()], rows.index, dtype=object)


def shared(record: pd.DataFrame | None = None) -> pd.DataFrame:
    """What two documents print for one dataset, method, metric and k, and how far apart.

    Rows that a document prints after calibrating the scores, or of a model without tail labels, are left out; of several rows
    of one method the first counts. A difference is no fault by itself: versions of datasets, other settings and other runs go
    under one name.

    Parameters
    ----------
    record : DataFrame, optional
        As for :func:`audit`.

    Returns
    -------
    DataFrame
        ``dataset``, ``method``, ``metric``, ``k`` (int64), ``first``, ``second`` (documents), ``printed first``, ``printed
        second``, ``difference`` (points, second less first), ``said`` (the audit's checks that speak of one of the two cells,
        of its row or of the dataset's versions; empty: nothing does), the largest difference of a dataset, method and metric
        first.

    Examples
    --------
    >>> table = shared()
    >>> len(table), int((table["difference"].abs() > 1).sum())
    (216, 106)
    """
    import pandas as pd

    if record is None:
        from xcrepro.repro.published.printed_tables import find

        record = find()
    found = audit(record)
    versions = {(f.document, f.dataset): f.check for f in found.itertuples() if f.check == "other_points"}
    spoken = defaultdict(set)
    for f in found.itertuples():
        for dataset in f.dataset.split(", "):
            for name in f.row.removesuffix(", second row").split(", "):
                for metric, k in _cells_of(f.column):
                    spoken[f.document, dataset, name, metric, k] |= set(f.check.split(", "))
    rows = []
    book = Book(record)
    plain = {}
    for line in book.lines:
        if line.variant not in _TREATED:
            plain.setdefault((line.dataset, line.method), {}).setdefault(line.document, line)
    for (dataset, method), lines in plain.items():
        for one, two in itertools.combinations(lines.values(), 2):
            for metric in _RATES:
                for k, a, b in ((k, a, two.cell(metric, k)) for k, a in _of_metric(one, metric)):
                    if b is None:
                        continue
                    said = {check for x in (one, two) for key in ((metric, k), (metric, 0))
                            for check in spoken[x.document, dataset, x.label, *key]}  # fmt: skip
                    said |= {versions[x.document, dataset] for x in (one, two) if (x.document, dataset) in versions}
                    rows.append((dataset, method, metric, k, one.document, two.document, a.printed, b.printed,
                                 round(b.value - a.value, 6), ", ".join(sorted(said))))  # fmt: skip
    table = pd.DataFrame(rows, columns=_SHARED)
    groups = table.groupby(["dataset", "method", "metric", "first", "second"], sort=False)["difference"]
    most = groups.transform(lambda gap: gap.abs().max())
    return (
        table.assign(most=-most)
        .sort_values(["most", "dataset", "method", "metric", "k"], kind="stable", ignore_index=True)
        .drop(columns="most")
    )


_SHARED = [
    "dataset",
    "method",
    "metric",
    "k",
    "first",
    "second",
    "printed first",
    "printed second",
    "difference",
    "said",
]
_TREATED = ("isotonic", "platt", "isotonic-separate", "platt-separate", "head-1000")
_RATES = ("P", "N", "PSP", "PSN")


def _of_metric(line: Line, metric: str) -> list[tuple[int, Cell]]:
    return [(k, line.row.cells[metric, k]) for k in line.row.ks(metric)]


def _cells_of(text: str) -> list[tuple[str, int]]:
    """The cells that a finding's column names, such as "PSP, PSN at 1, 3" or "P@5"; k = 0 means all k of a metric."""
    names, _, places = text.partition(" at ")
    if places:
        return [(name, int(k)) for name in names.split(", ") for k in places.split(", ")]
    pairs = (name.partition("@") for name in names.split(", "))
    return [(name, int(k or 0)) for name, _, k in pairs]


_ORDER_OF_CHECKS = ("psndcg_bounds", "ndcg_bounds", "hits_grow", "brier_and_error", "first_place", "owners")


def _distance(finding: Finding) -> float:
    """How far the printed number is from the expected one, relatively; 0 where they are no plain numbers."""
    try:
        printed, expected = float(finding.printed), float(finding.expected)
    except ValueError:
        return 0.0
    return abs(printed - expected) / max(printed, expected, TINY)


class Book:
    """The record, arranged for the checks: ``tables``, the lines of a (document, dataset); ``clashes``, second prints of a
    cell that differ from the first; ``statistics`` of datasets, (source, dataset) -> metric -> cell; ``printed``, all
    cells as text."""

    def __init__(self, record: pd.DataFrame) -> None:
        rows: dict[tuple, Line] = {}
        self.tables: dict[tuple[str, str], list[Line]] = defaultdict(list)
        self.statistics: dict[tuple[str, str], dict[str, Cell]] = defaultdict(dict)
        self.clashes: list[tuple[Line, tuple[str, int], Cell]] = []
        columns = ["source", "row", "dataset", "method", "variant", "metric", "k", "printed"]
        printed = record.loc[printed_tables["printed"] != "", columns].assign(
            k=lambda rows: rows["k"].fillna(0).astype(int)
        )
        texts = printed.drop(columns="row").assign(k=printed["k"].astype(str).replace("0", ""))
        self.printed = set(texts.itertuples(index=False, name=None))
        for source, number, dataset, method, variant, metric, k, text in printed.itertuples(index=False, name=None):
            cell = Cell.of(text, (source,))
            if not method:
                self.statistics[source, dataset][metric] = cell
                continue
            document = source.partition(":")[0]
            # The coverage paper calls one method COV-PLT in table 2 and beta = 0 in table 3.
            name = "COVbeta-PLT" if method == "COV-PLT" else method
            # The page lists two runs of a method in one table; its tables have a dataset each, so nothing is torn.
            key = (document, dataset, name, variant, number if document == "xcrepo" else 0)
            if key not in rows:
                rows[key] = Line(*key[:4], Row({}))
                self.tables[document, dataset].append(rows[key])
            cells = rows[key].row.cells
            have = cells.setdefault((metric, k), cell)
            if have.apart(cell):
                self.clashes.append((rows[key], (metric, k), cell))
            elif have is not cell:
                finer = min(have, cell, key=lambda c: c.high - c.low)
                cells[metric, k] = replace(finer, tables=(*have.tables, *cell.tables))
        self.lines = list(rows.values())
        self._named = {(x.document, x.dataset, x.method, x.variant): x for x in reversed(self.lines)}

    def of(self, document: str) -> list[Line]:
        """The lines of a document."""
        return [line for line in self.lines if line.document == document]

    def line(self, document: str, dataset: str, method: str, variant: str = "") -> Line | None:
        """The first line of that name."""
        return self._named.get((document, dataset, method, variant))

    def plain(self, line: Line) -> Line | None:
        """The same method on the same dataset as it came, not calibrated."""
        return self.line(line.document, line.dataset, line.method, "none")

    @functools.cached_property
    def row_faults(self) -> list[tuple[Line, Fault]]:
        return [(line, fault) for line in self.lines for fault in checks.faults(line.row)]

    def off_prediction(self, line: Line, where: tuple[str, int]) -> tuple[float, float] | None:
        """How far a discounted cell is from what its plain ones say in this table, and the typical error; None: unknown."""
        residuals, typical = self.predicted[line.document, line.dataset].get(where, ({}, 0.0))
        return (residuals[line], typical) if line in residuals else None

    @functools.cached_property
    def predicted(self) -> dict[tuple[str, str], dict[tuple[str, int], tuple[dict[Line, float], float]]]:
        """Of each table (N or PSN, k) -> residuals of its rows and their typical size: :func:`out_of_line` says how."""
        found: dict = {}
        for place, lines in self.tables.items():
            found[place] = {}
            for metric, k in (("N", 3), ("N", 5), ("PSN", 3), ("PSN", 5)):
                plain = [(_PLAIN[metric], j) for j in (1, 3, 5) if j <= k]
                rows = [line for line in lines if {(metric, k), *plain} <= set(line.row.cells)]
                if len(rows) >= len(plain) + 6:
                    found[place][metric, k] = _fit(rows, plain, (metric, k))
        return found

    @functools.cached_property
    def broken(self) -> set[tuple[Line, tuple[str, int]]]:
        """Cells that an identity refutes, so that other checks do not lean on them."""
        return {(line, _blamed(self, line, fault).where) for line, fault in self.row_faults}


def identities(book: Book) -> Iterator[Finding]:
    """The identities of one row (:mod:`xcrepro.repro.published.checks`) on every row.

    Where a refuted number stands elsewhere in its own row, in its own column, or in the same method's row of another
    table, that is added: it is where the number may have come from. Of two nDCG that exclude each other, the one that the
    other rows of the table predict from this row's P stays (:func:`out_of_line`), and the other is blamed.

    N@1 and P@1 that differ, or PSN@1 and PSP@1, are the same average, so one of them is wrong, whatever the size of the
    gap: a "typo", with two exceptions. "rounding": one of them, without its trailing zero, is a coarser rounding of the
    other. "other variant", the two halves of the row from two runs: N@3 and N@5 are both off what the other rows predict
    from this row's P, more than twice the typical error, to the same side as N@1 and by as much within a factor of three.
    """
    for line, fault in book.row_faults:
        fault = _blamed(book, line, fault)
        source = _elsewhere(book, line, fault.where)
        if sisters := _sisters(book, line, fault.where):
            low, high, count = sisters
            source += f" The other {count} models print {span(low, high)}."
            source += _readings(book, line, *fault.where, low, high)
        judgement = "typo"
        if fault.check == "first_place":
            # What it expects is the same average as printed elsewhere in the row.
            if _coarse_meets(fault.printed, fault.expected) or _coarse_meets(fault.expected, fault.printed):
                judgement, source = "rounding", " One of the two may have been printed with one decimal and padded."
            else:
                judgement, said = _halves(book, line, fault)
                source += said or ("" if source else " Which of the two is wrong, the table does not say.")
        yield line.finding(*fault.where, fault.expected, judgement, fault.why + source, fault.check)


def _blamed(book: Book, line: Line, fault: Fault) -> Fault:
    """The fault, or where it is one of two cells that exclude each other: that of the cell farther from its prediction."""
    if not fault.rivals:
        return fault
    off = {where: book.off_prediction(line, where) for where in (fault.where, *fault.rivals)}
    if None in off.values():
        return fault
    worst = max(off, key=lambda where: abs(off[where][0]) / off[where][1])
    if worst == fault.where:
        return fault
    name, cell = column(*fault.where), line.row.cells[fault.where]
    residual, typical = off[fault.where]
    low, high = checks.discounted_bounds(line.row, worst, [fault.where])
    why = f"With {name} = {cell.printed}, {column(*worst)} lies in {span(low, high)}, whichever normaliser is used. Of the two "
    why += f"{name} stays: the other rows predict {cell.value - residual:.2f} for it (typical error {typical:.2f})."
    cell, (residual, typical) = line.row.cells[worst], off[worst]
    why += f" For {column(*worst)} they predict {cell.value - residual:.2f}."
    if slips := _slips(cell.printed, cell.value - residual, max(3 * typical, 0.3)):
        why += f" With one digit changed, {slips[0]}, it fits."
    return replace(fault, where=worst, printed=line.row.cells[worst].printed, expected=span(low, high), why=why)


def _halves(book: Book, line: Line, fault: Fault) -> tuple[str, str]:
    """Judgement and reason where N@1 and P@1, or PSN@1 and PSP@1, differ: a slip, or two runs in one row."""
    name = fault.where[0]
    gap = float(fault.printed) - float(fault.expected)
    known = {k: found for k in (3, 5) if (found := book.off_prediction(line, (name, k)))}
    others = {k: found for k, found in known.items() if (line, (name, k)) not in book.broken}
    if not others:
        return "typo", ""
    if len(others) == 2 and all(abs(r) > 2 * t and 1 / 3 <= r / gap <= 3 for r, t in others.values()):
        off = " and ".join(f"{column(name, k)} by {r:+.2f}" for k, (r, _) in others.items())
        said = (
            f" From this row's {_PLAIN[name]} the other rows predict another {off}: the two halves of the row may come "
        )
        return "other variant", said + "from two runs."
    near = [f"{column(name, k)} within {abs(r):.2f}" for k, (r, t) in others.items() if abs(r) <= 3 * t]
    if len(near) < len(others):
        return "typo", ""
    said = (
        f" The other rows predict {' and '.join(near)} from this row's {_PLAIN[name]}: the slip is at the first place."
    )
    return "typo", said


def _elsewhere(book: Book, line: Line, where: tuple[str, int]) -> str:
    """Where else a number stands that cannot stand where it does; "" where nowhere near."""
    cell = line.row.cells[where]
    if not _telling(cell):
        return ""
    for other, same in line.row.cells.items():
        if other != where and same.printed == cell.printed:
            return f" The same number is this row's {column(*other)}."
    for other in book.of(line.document):
        same = other.cell(*where)
        if other is line or same is None or same.printed != cell.printed:
            continue
        if other.dataset == line.dataset:
            return f" The same number is the {column(*where)} of {other.label} in this table."
        if other.method == line.method:
            return f" The same number is the {column(*where)} of {line.label} on {other.dataset}."
    return ""


def _telling(cell: Cell) -> bool:
    """Has it digits enough to meet another by more than chance? Small and round numbers have not."""
    return len(cell.printed.replace(".", "").strip("0")) >= 3


def _coarse_meets(padded: str, other: str) -> bool:
    """Does ``padded`` without its trailing zeros round ``other``?"""
    coarse = padded.rstrip("0")
    return coarse != padded and not coarse.endswith(".") and not Cell.of(coarse).apart(Cell.of(other))


def same_cell(book: Book) -> Iterator[Finding]:
    """One document prints one quantity in several tables: the intervals must meet.

    Which of two numbers is doubtful is decided, where the row has both, by the two estimates of the calibration error:
    ECE and ACE of a row agree within a few tenths everywhere else, so the one farther from the ACE is the doubtful one.
    """
    for line, (metric, k), second in book.clashes:
        doubtful, other, said = line.row.cells[metric, k], second, ""
        if judge := line.cell("ACE", k) if metric == "ECE" else None:
            doubtful, other = sorted((doubtful, other), key=lambda c: -abs(c.value - judge.value))
            said = f" The ACE@{k} of the row, {judge.printed}, is nearer to {other.printed}."
        there = _names(other.tables)
        why = f"{_names(doubtful.tables)}: {doubtful.printed}; {there}: {other.printed}, for the same quantity.{said}"
        yield line.finding(metric, k, f"{other.printed} ({there})", "typo", why, cell=doubtful)


def copied(book: Book) -> Iterator[Finding]:
    """One method, two datasets, the same metric equal at two or more k > 1, to every digit of at least three.

    Two independent averages seldom agree in three or four digits, and two pairs in a row, for one method and one metric, do
    not by chance; values of fewer digits are left out. One of the two rows repeats the other: the one that an identity
    refutes is the copy, else the later one.
    """
    by_method = defaultdict(list)
    for line in book.lines:
        by_method[line.document, line.method, line.variant].append(line)
    pairs = (pair for lines in by_method.values() for pair in itertools.combinations(lines, 2))
    rates = ("P", "N", "PSP", "PSN", "Cov", "Cov_norm", "micro_F1", "macro_F1", "Brier")
    for (first, second), metric in itertools.product(pairs, rates):
        if first.dataset == second.dataset:
            continue
        ks = [k for k in first.row.ks(metric) if k > 1 and _repeats(first.cell(metric, k), second.cell(metric, k))]
        if len(ks) < 2:
            continue
        copy, source = (first, second) if (first, (metric, ks[0])) in book.broken else (second, first)
        both = " and ".join(f"{column(metric, k)} = {copy.row.cells[metric, k].printed}" for k in ks)
        why = f"{both} are, digit by digit, those of {source.label} on {source.dataset}."
        for k in ks:
            yield copy.finding(metric, k, f"its own, not {source.dataset}'s", "typo", why)


def _repeats(first: Cell, second: Cell | None) -> bool:
    return second is not None and first.printed == second.printed and _telling(first)


def recalibrated(book: Book) -> Iterator[Finding]:
    """After isotonic regression: Brier <= P(1 - P), Brier <= Brier before, and less the squared error where that is a shift.

    A constant is a monotone map, and the best constant leaves P(1 - P); leaving the scores as they are is one too. The
    isotonic map has the least squared error of all monotone maps on the points it is fitted to; half a point of percent
    is granted for cross-fitting. P@k is that of the uncalibrated row, for the map keeps the order. Adding a constant d to
    all scores is monotone as well, and with d the mean gap it takes d^2 off the Brier score. The calibration error is at
    least |d|, and equal to it where all bins err on one side; two ways of binning that print the same number, ECE = ACE,
    say that they do. There Brier <= Brier before - ECE^2.
    """
    slack = 0.5
    for line in book.lines:
        before = book.plain(line) if line.variant == "isotonic" else None
        for k in line.row.ks("Brier") if before else ():
            after, raw = line.cell("Brier", k), before.cell("Brier", k)
            p, ece, ace = (before.cell(metric, k) for metric in ("P", "ECE", "ACE"))
            refuted = (before, ("Brier", k)) in book.broken
            if p:
                most = 25.0 if p.low <= 50 <= p.high else max(x / 100 * (100 - x) for x in (p.low, p.high))
                if after.low > most + slack:
                    why = f"A constant would reach P(1 - P) = {most:.2f} at P@{k} = {p.printed}."
                    yield line.finding("Brier", k, f"at most {most:.2f}", "typo", why)
            if raw and ece and ace and ece.printed == ace.printed and not refuted:
                most = raw.high - ece.low**2 / 100
                if raw.high + slack >= after.low > most + slack:
                    left = f"{raw.printed} - {ece.printed}^2 / 100 = {raw.value - ece.value**2 / 100:.2f}"
                    why = f"Before, ECE@{k} = ACE@{k} = {ece.printed}: all bins err on one side. "
                    why += f"Shifting all scores by as much leaves {left}."
                    yield line.finding("Brier", k, f"at most {most:.2f}", "typo", why)
            if raw and after.low > raw.high + slack:
                # Blame the cell that an identity already refutes, else the later one.
                blamed, sound, bound = line, raw, f"at most {raw.high:.2f}"
                if refuted:
                    blamed, sound, bound = before, after, f"at least {after.low:.2f}"
                why = f"Isotonic regression cannot raise the Brier score: {raw.printed} before, {after.printed} after; "
                why += f"{sound.printed} is in line with the other models."
                yield blamed.finding("Brier", k, bound, "typo", why)


# Metrics whose value for one model says what to expect of another: the factor that nobody else comes near.
_SISTERS = {
    ("Brier", "isotonic"): 4.0,
    ("Brier", "none"): 4.0,
    ("ACE", "isotonic"): 30.0,
    ("model_size_gb", None): 50.0,
}


def far_from_sisters(book: Book) -> Iterator[Finding]:
    """A number that no other row of its table and column comes near, by the factor of a shifted point or of a unit.

    No law forbids such a value; it is reported where it is four times below the median of at least four others (Brier
    scores), thirty times above the greatest other (ACE after calibration) or fifty times (model sizes). The readings
    offered are those that print the same digits, with the point moved or a leading 1 lost, and fall among the others
    and below P(1 - P), the Brier score of a constant.
    """
    for line in book.lines:
        for where in line.row.cells:
            sisters = _sisters(book, line, where)
            if sisters and (line, where) not in book.broken:
                low, high, count = sisters
                why = f"The other {count} rows on {line.dataset} print {span(low, high)}."
                why += _readings(book, line, *where, low, high)
                yield line.finding(*where, f"{span(low, high)} in the other rows", "typo", why)


def _sisters(book: Book, line: Line, where: tuple[str, int]) -> tuple[float, float, int] | None:
    """The range and number of the other rows, where this one is far from all of them; else None."""
    metric, cell = where[0], line.row.cells[where]
    variant = line.variant if metric != "model_size_gb" else None
    factor = _SISTERS.get((metric, variant))
    if factor is None:
        return None
    others = [other.row.cells[where].value for other in book.tables[line.document, line.dataset]
              if other is not line and where in other.row.cells and variant in (None, other.variant)]  # fmt: skip
    if len(others) < 4:
        return None
    middle = statistics.median(others)
    if not (cell.high * factor < middle if metric == "Brier" else cell.low > factor * max(others)):
        return None
    good = [v for v in others if v > middle / 4] or others
    return min(good), max(good), len(good)


def _readings(book: Book, line: Line, metric: str, k: int, low: float, high: float) -> str:
    cell = line.cell(metric, k)
    if metric == "model_size_gb":
        small = cell.value / 1000
        return f" {cell.printed} MB would be {small:.2f} GB, in their midst." if low <= small <= high else ""
    if metric != "Brier":
        error = line.cell("ECE", k)
        return f" The ECE@{k} of the row is {error.printed}." if error else ""
    plain, most, bound = book.plain(line), 100.0, ""
    if plain and plain is not line:
        p, *before = (plain.cell(name, k) for name in ("P", "Brier", "ECE", "ACE"))
        if p and line.variant == "isotonic":
            most = p.value / 100 * (100 - p.value)
            bound = f" A constant would reach P(1 - P) = {most:.2f}."
        if all(before) and before[1].printed == before[2].printed:
            shifted = before[0].value - before[1].value ** 2 / 100
            if shifted < most:
                most = shifted
                bound = f" Shifting the scores before by their ECE of {before[1].printed} would reach {most:.2f}."
    readings = {10 * cell.value: "with the point moved", float("1" + cell.printed): "with a lost leading 1"}
    fits = [v for v in readings if 0.85 * low <= v <= min(1.15 * high, most)]
    if not fits:
        return bound + " No shift of the point gives a number among them."
    return bound + f" Read {fits[0]:.2f}, {readings[fits[0]]}, it is among them."


def micro_f1_average(book: Book) -> Iterator[Finding]:
    """micro-F1@k = 2 k P@k / (k + average labels): all rows of a dataset imply one average, and it is a known one.

    Micro-averaged over n points, hits are n k P@k, predictions n k and labels n avg, whence the formula; solved for avg
    it gives an interval for each k, and the k of a row are intersected. The average is that of the test points: rows that
    imply different ones were scored on different test sets (or on points filtered differently).
    """
    for (document, dataset), lines in book.tables.items():
        found = {}
        for line in lines:
            averages = [checks.implied_average(p, f1, k) for k, f1, p in line.row.both("micro_F1", "P") if f1.low > 0]
            low, high = checks.shared(averages)
            if averages and low <= high:
                found[line] = low, high
        if not found:
            continue
        clusters: list[dict[Line, tuple[float, float]]] = []
        found = dict(sorted(found.items(), key=lambda item: item[1][0]))
        for line, ends in found.items():
            if not clusters or ends[0] > checks.shared(clusters[-1].values())[1] + TINY:
                clusters.append({})
            clusters[-1][line] = ends
        main = max(clusters, key=len)
        average, who = checks.shared(main.values()), ", ".join(line.label for line in main)
        for line, ends in found.items():
            if line in main:
                continue
            *_, k = ks = line.row.ks("micro_F1")
            why = (
                f"micro-F1 and P at k = {', '.join(map(str, ks))} all imply {span(*ends, 3)} labels a test point; "
                f"{who} imply {span(*average, 3)}. Rounding is in these intervals: two test sets (or two sets of labels) "
                "stand in one table."
            )
            expected = span(*checks.implied_f1(line.cell("P", k), average, k))
            yield line.finding("micro_F1", k, expected, "other variant", why)
        stated = registry_average(document, dataset)
        if stated and (average[0] > stated.high + TINY or average[1] < stated.low - TINY):
            first, implied = next(iter(main)).row, span(*average, 4)
            place = document, _names(first.cells["micro_F1", first.ks("micro_F1")[0]].tables), dataset, "all rows"
            why = f"{stated.tables[0]} prints {stated.printed} labels a point; P and micro-F1 imply {implied}. "
            why += "The printed average is not that of the test points scored."
            yield Finding(*place, "average labels implied", stated.printed, implied, "definition", why)


def _entry(dataset: str) -> registry.Entry | None:
    try:
        return registry.get(dataset)
    except ValueError:
        return None


def registry_average(document: str, dataset: str) -> Cell | None:
    """The average labels a point that a document prints for a dataset."""
    entry = _entry(dataset)
    for source in entry.published if entry else ():
        if source.startswith(f"{document}:") and (text := entry.printed("avg_labels_per_point", source)):
            return Cell.of(text, (source,))
    return None


def points_per_label(book: Book) -> Iterator[Finding]:
    """labels a point x points = points a label x labels: both sides count the relevant pairs, of train or of train + test.

    All four numbers are intervals (counts are exact). Where neither basis meets, two columns printed in each other's
    place, then digits cut instead of rounded ("rounding"), then one unit of the last digit ("typo") are tried; farther off,
    the two averages count different things ("definition").
    """
    for (source, dataset), cells in book.statistics.items():
        if not {"n_train", "n_labels", "avg_labels_per_point", "avg_points_per_label"} <= set(cells):
            continue
        if _pairs_meet(cells):
            continue
        # Either exchange gives the same product; other documents' numbers of points say which it is.
        elsewhere = {other["n_train"].printed for (place, name), other in book.statistics.items()
                     if name == dataset and place != source and "n_train" in other}  # fmt: skip
        exchanges = [("avg_labels_per_point", "avg_points_per_label"), ("n_train", "n_labels")]
        if cells["n_labels"].printed in elsewhere:
            exchanges.reverse()
        for first, second in exchanges:
            one, two = cells[first], cells[second]
            if _pairs_meet(cells | {first: two, second: one}):
                why = f"As printed, {_pairs(cells)}; with {first} and {second} exchanged both sides agree."
                numbers = f"{one.printed}, {two.printed}", f"{two.printed}, {one.printed}"
                yield _of_dataset(source, dataset, f"{first}, {second}", *numbers, "typo", why)
                break
        else:
            average, points = cells["avg_labels_per_point"], cells["avg_points_per_label"]
            labels = cells["n_labels"].value
            implied = [span(points.low * labels / n, points.high * labels / n, 4) for n in _bases(cells)]
            why = f"{points.printed} points a label mean {implied[0]} labels a point over train"
            why += f" and {implied[1]} over train and test" if len(implied) > 1 else ""
            cut = replace(average, low=average.value, high=average.value + average.high - average.low)
            judgement, reason = "definition", "the two averages count different points or labels."
            unit = average.high - average.low
            near = replace(average, low=average.low - unit, high=average.high + unit)
            if _pairs_meet(cells | {"avg_labels_per_point": cut}):
                judgement, reason = "rounding", "cut after the second digit instead of rounded it is met."
            elif unit and _pairs_meet(cells | {"avg_labels_per_point": near}):
                judgement, reason = "typo", "one more or less in the last digit and it is met."
            numbers = average.printed, " or ".join(implied)
            yield _of_dataset(source, dataset, "avg_labels_per_point", *numbers, judgement, f"{why}; {reason}")


def _bases(cells: dict[str, Cell]) -> list[float]:
    train = cells["n_train"].value
    return [train, train + cells["n_test"].value] if "n_test" in cells else [train]


def _pairs_meet(cells: dict[str, Cell]) -> bool:
    labels, average, points = (cells[name] for name in ("n_labels", "avg_labels_per_point", "avg_points_per_label"))
    return any(
        average.low * n <= points.high * labels.value + TINY and points.low * labels.value <= average.high * n + TINY
        for n in _bases(cells)
    )


def _pairs(cells: dict[str, Cell]) -> str:
    products = []
    for a, b in (("avg_labels_per_point", "n_train"), ("avg_points_per_label", "n_labels")):
        products.append(f"{cells[a].printed} x {cells[b].printed} = {cells[a].value * cells[b].value:,.0f}")
    return " relevant pairs, but ".join(products)


def mixed_versions(book: Book) -> Iterator[Finding]:
    """Numbers of points of one version of a dataset beside the number of labels of another.

    A row is reported where its points are those of one document and its labels those of a second, and these two
    documents differ in both.
    """
    names = ("n_train", "n_test", "n_labels")
    rows = {place: [f"{cells[name].value:,.0f}" for name in names]
            for place, cells in book.statistics.items() if set(names) <= set(cells)}  # fmt: skip
    for (source, dataset), (*points, labels) in rows.items():
        others = {place: row for (place, name), row in rows.items() if name == dataset and place != source}
        with_points = [place for place, row in others.items() if row[:2] == points and row[2] != labels]
        with_labels = [place for place, row in others.items()
                       if row[2] == labels and row[0] != points[0] and row[1] != points[1]]  # fmt: skip
        if with_points and with_labels and [*points, labels] not in others.values():
            a, b = with_points[0], with_labels[0]
            why = f"{' + '.join(points)} points go with {others[a][2]} labels in {a}; {labels} labels go with "
            why += f"{' + '.join(others[b][:2])} points in {b}."
            numbers = labels, f"{others[a][2]} with these points"
            yield _of_dataset(source, dataset, "n_labels", *numbers, "other variant", why)


def other_points(book: Book) -> Iterator[Finding]:
    """Under one dataset's name, other train and test points than the repository's page has.

    Reported where both numbers of points differ (one alone is a slip of another check, columns exchanged included). Results
    on the two are of different test points, however alike the names.
    """
    names = ("n_train", "n_test", "n_labels")
    page = "xcrepo:dataset-table"
    for (source, dataset), cells in book.statistics.items():
        theirs = book.statistics.get((page, dataset), {})
        if source == page or not all({"n_train", "n_test"} <= set(one) for one in (cells, theirs)):
            continue
        if all(cells[name].apart(theirs[name]) for name in names[:2]):
            printed, expected = (
                ", ".join(one[name].printed for name in names if name in one) for one in (cells, theirs)
            )
            gaps = " and ".join(f"{cells[name].value - theirs[name].value:+,.0f}" for name in names[:2])
            same = (
                " with as many labels"
                if "n_labels" in cells and not cells["n_labels"].apart(theirs["n_labels"])
                else ""
            )
            why = f"{gaps} points in train and test against {page}{same}: another version or split under one name. The two "
            why += f"documents' results on {dataset} are of different test points."
            yield _of_dataset(
                source, dataset, ", ".join(n for n in names if n in cells), printed, expected, "other variant", why
            )


def labels_to_hit(book: Book) -> Iterator[Finding]:
    """k P@k <= average labels a point: hits are at most the labels there are.

    The average is that of the test points, and what is printed is mostly that of train or of all points; the two differ
    by a few percent where both can be worked out. Reported is only what exceeds the printed average by a tenth.
    """
    for (document, dataset), lines in book.tables.items():
        stated = registry_average(document, dataset) or registry_average("xcrepo", dataset)
        for line in lines if stated else ():
            for k in line.row.ks("P"):
                cell = line.cell("P", k)
                if k * cell.low / 100 > 1.1 * stated.high:
                    why = f"{k} x {cell.printed} % = {k * cell.value / 100:.2f} hits a point; "
                    why += f"{stated.tables[0]} prints {stated.printed} labels a point."
                    yield line.finding("P", k, f"at most {100 * stated.high / k:.2f}", "typo", why)


def label_bins(book: Book) -> Iterator[Finding]:
    """Bins of labels by frequency sum to the number of labels, and a printed share of a bin is over that number.

    Labels without a train point are in no bin. A share that is met by the sum of the bins and not by the number of
    labels is over the labels that occur in training.
    """
    share = "pct_labels_with_1_9_train_instances"
    shares = [(place, name, cells[share]) for (place, name), cells in book.statistics.items() if share in cells]
    for (source, dataset), cells in book.statistics.items():
        counts = [cells[name].value for label in registry.BINS if (name := f"labels_{label}") in cells]
        if "n_labels" not in cells or len(counts) != len(registry.BINS):
            continue
        n_labels, binned, first = cells["n_labels"].value, sum(counts), counts[0]
        if binned > n_labels:
            numbers = f"{binned:,.0f}", f"at most {n_labels:,.0f}"
            yield _of_dataset(source, dataset, "bins", *numbers, "typo", "The bins hold more than all labels.")
        for place, name, cell in shares:
            half = 0.0 if "." in cell.printed else 0.5  # a whole number of percent is no count: it is rounded too
            low, high = cell.low - half - TINY, cell.high + half + TINY
            of_all = 100 * first / n_labels
            if name != dataset or low <= of_all <= high:
                continue
            judgement, reason = "typo", "met by neither denominator."
            if low <= 100 * first / binned <= high:
                judgement, reason = "definition", f"{first:,.0f} of the {binned:,.0f} labels in the bins: "
                reason += "labels that never occur in training are left out."
            why = f"{first:,.0f} of {n_labels:,.0f} labels are {of_all:.2f} %; the printed share is {reason}"
            about = place, dataset, "share of labels with 1-9 train points", cell.printed
            yield _of_dataset(*about, f"{of_all:.2f}", judgement, why)


def coverage_denominator(book: Book) -> Iterator[Finding]:
    """Labels covered <= correct predictions: m Cov@k <= n k P@k for the m labels that coverage divides by.

    Every covered label has a correct prediction of its own among the n k made. With n test points known, m is at most
    n k P@k / Cov@k; where that is below the number of labels, coverage is a share of fewer labels: those with a test
    positive. ``Cov_norm`` divides by what can be reached and is left out.
    """
    for (_, dataset), lines in book.tables.items():
        if not (entry := _entry(dataset)):
            continue
        bounds = [(entry.n_test * k * p.high / coverage.low, line, k)
                  for line in lines for k, coverage, p in line.row.both("Cov", "P") if coverage.low > 0]  # fmt: skip
        count = sum(bound < entry.n_labels for bound, *_ in bounds)
        if not count:
            continue
        most, line, k = min(bounds, key=lambda bound: bound[0])
        coverage, p = line.cell("Cov", k), line.cell("P", k)
        why = (
            f"{entry.n_test:,} x {k} x {p.printed} % = {entry.n_test * k * p.value / 100:,.0f} correct predictions "
            f"cover at most as many labels; {coverage.printed} % of all {entry.n_labels:,} would be "
            f"{entry.n_labels * coverage.value / 100:,.0f}. The denominator is at most {most:,.0f}: labels with a "
            f"test positive, not all labels. {count} cells on {dataset} say so."
        )
        expected = f"at most {100 * entry.n_test * k * p.high / 100 / entry.n_labels:.2f} of all labels"
        yield line.finding("Cov", k, expected, "definition", why)


def out_of_line(book: Book) -> Iterator[Finding]:
    """A discounted metric that its plain ones predict wrongly, where a slip explains it.

    Within a table, N@k is close to a linear function of P@1, P@3, P@5, and PSN@k of PSP@1, PSP@3, PSP@5 (the weights of
    the places are linear, only the normaliser is not): a least-absolute fit over the rows of a table leaves a few
    hundredths to tenths. Reported is a cell more than ten times the typical residual and more than 1 away, and only if
    a slip explains it: one changed digit, or a number that stands elsewhere in the row or column, or one that fits the
    next column, whose own cell is refuted. A row with several such cells is left out: it is another split or run.
    Nothing here is proof; the identities are.
    """
    for (_, dataset), fitted in book.predicted.items():
        odd = [(line, where, residual) for where, (residuals, typical) in fitted.items()
               for line, residual in residuals.items()
               if abs(residual) >= max(1.0, 10 * typical) and (line, where) not in book.broken]  # fmt: skip
        alone = Counter(line for line, *_ in odd)
        for line, (metric, k), residual in odd:
            if alone[line] > 1:
                continue
            residuals, typical = fitted[metric, k]
            cell, reason, following = line.row.cells[metric, k], "", (metric, k + 2)
            predicted = cell.value - residual
            if (line, following) in book.broken and line in fitted.get(following, ((),))[0]:
                impossible, there = line.row.cells[following], fitted[following]
                fits = impossible.value - there[0][line]
                if abs(cell.value - fits) <= max(3 * there[1], 0.5):
                    reason = (
                        f" It fits {column(*following)}, where the other rows predict {fits:.2f} and an impossible "
                    )
                    reason += f"{impossible.printed} is printed: the cells look shifted by one."
            reason = reason or _elsewhere(book, line, (metric, k))
            slips = _slips(cell.printed, predicted, max(3 * typical, 0.3))
            if slips and not reason:
                reason = f" With one digit changed, {slips[0]}, it fits."
            if reason:
                why = f"The other {len(residuals) - 1} rows on {dataset} predict {predicted:.2f} from this row's "
                why += f"{_PLAIN[metric]} (typical error {typical:.2f}).{reason}"
                yield line.finding(metric, k, f"about {predicted:.2f}", "typo", why)


_PLAIN = {"N": "P", "PSN": "PSP"}


def _fit(rows: list[Line], plain: list[tuple[str, int]], target: tuple[str, int]) -> tuple[dict[Line, float], float]:
    """Residuals of a least-absolute linear fit (reweighted least squares), and their typical size."""
    import numpy as np

    x = np.array([[line.row.cells[p].value for p in plain] + [1.0] for line in rows])
    y = np.array([line.row.cells[target].value for line in rows])
    weight = np.ones(len(y))
    for _ in range(60):
        root = np.sqrt(weight)
        solution = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
        residual = y - x @ solution
        weight = 1 / np.maximum(np.abs(residual), 1e-3)
    typical = 1.4826 * float(np.median(np.abs(residual))) + 0.02
    return dict(zip(rows, residual.tolist(), strict=True)), typical


def _slips(printed: str, predicted: float, near: float) -> list[str]:
    """The numbers one digit away from ``printed`` that come within ``near`` of ``predicted``, nearest first."""
    texts = [printed[:i] + new + printed[i + 1 :] for i, old in enumerate(printed) if old.isdigit()
             for new in "0123456789" if new != old]  # fmt: skip
    away = {text: abs(float(text) - predicted) for text in texts}
    return sorted((text for text in texts if away[text] <= near), key=away.get)


def same_precision(book: Book) -> Iterator[Finding]:
    """Two documents, one method and dataset, the same P@1, P@3, P@5, but another nDCG: two normalisers.

    With P within half a point at every k, the hits of the places are nearly the same, and under one normaliser nDCG is
    within a point or so. Reported where N@k differs by more than 3. The sum up to k (constant) leaves a range for N@k
    given P@k (a linear programme, :func:`xcrepro.repro.published.checks.ndcg_bounds`); whether the number lies in it says
    which normaliser it can be.
    """
    for line, other in itertools.combinations(book.lines, 2):
        if (line.dataset, line.method) != (other.dataset, other.method) or line.document == other.document:
            continue
        if any(len(x.variant) > 1 and x.variant != "full" for x in (line, other)):
            continue
        plain = [(line.cell("P", k), other.cell("P", k)) for k in (1, 3, 5)]
        if not all(a and b and abs(a.value - b.value) <= 0.5 for a, b in plain):
            continue
        gaps = {k: abs(a.value - other.cell("N", k).value) for k, a, _ in line.row.both("N", "P") if other.cell("N", k)}
        if not gaps or max(gaps.values()) <= 3:
            continue
        low, high = sorted((line, other), key=lambda x: x.cell("N", 5).value if x.cell("N", 5) else 0.0)
        k = max(gaps, key=gaps.get)
        cell, rival, reason = low.cell("N", k), high.cell("N", k), ""
        if bounds := checks.constant_ndcg(low.row, k):
            reason = f"The normaliser summed up to k leaves {span(*bounds)}"
            inside = cell.low <= bounds[1] and bounds[0] <= cell.high
            reason += ": it can be that one." if inside else f", so it is neither that one nor that of {high.document}."
        ours, theirs = (" ".join(x.cell("P", j).printed for j in (1, 3, 5)) for x in (low, high))
        why = f"P@1, P@3, P@5 are {ours} and, in {high.document}, {theirs}, yet N@{k} is {cell.printed} against "
        expected = f"{rival.printed} ({_names(rival.tables)})"
        yield low.finding("N", k, expected, "definition", f"{why}{rival.printed}. {reason}")


# ---------------------------------------------------------------- what is found once, and kept


@functools.cache
def _kept() -> list[tuple[Finding, set[tuple[str, ...]]]]:
    """The findings of ``data/published/findings.csv``, each with the printed cells that it rests on."""
    cells = defaultdict(set)
    for number, *cell in printed_tables.kept("findings_rest_on").itertuples(index=False, name=None):
        cells[number].add(tuple(cell))
    return [
        (Finding(*row), cells[number])
        for number, *row in printed_tables.kept("findings").itertuples(index=False, name=None)
    ]


def _of_record(book: Book, check: str) -> Iterator[Finding]:
    """The kept findings of one check, as long as all cells that they rest on are printed as they were."""
    yield from (finding for finding, cells in _kept() if finding.check == check and cells <= book.printed)


def owners(book: Book) -> Iterator[Finding]:
    """Rows of a table that match another row's owner in a second document better than their own.

    Two documents that report the same methods on the same dataset differ by versions and settings, but a method's
    propensity-scored row stays nearer to itself than to others. Compared is the greatest relative difference of PSP and PSN
    at all k to every row of the other document. A row is misplaced where one of another name is within 5 % and its own
    counterpart at least three times as far; a row that the other document lacks is found by elimination, which is weaker.
    """
    yield from _of_record(book, "owners")


def unlike_itself(book: Book) -> Iterator[Finding]:
    """PSP beside P as no other row of the table has it, nor the same method in any other table.

    PSP@k / P@k says how far a method reaches into the tail; it differs between datasets, so its logarithm is taken less the
    median of the table. No law forbids another value; reported is a row that at 1, 3 and 5 lies beyond all other rows of its
    table by 5 % or more, and beyond everything that the method shows in three other tables or more by a fifth.
    """
    yield from _of_record(book, "unlike_itself")


def macro_recall(book: Book) -> Iterator[Finding]:
    """Macro-recall equal to coverage: every covered label is found at every one of its test points.

    Recall of a label is at most 1 and 0 without a hit, so macro-recall <= coverage with equality only then. Hits are
    n k P@k; the missing positives, n avg - n k P@k, then all belong to labels that were never found, and the mean
    number of test positives of a label found, k P@k / Cov, can be set against that of a label never found,
    (avg - k P@k) / (1 - Cov) (both times n / m). Another average than macro-recall would be printed at every k, so where
    the two differ at another k one cell was copied.
    """
    yield from _of_record(book, "macro_recall")


def psndcg_definitions(book: Book) -> Iterator[Finding]:
    """PSnDCG of two definitions in one table: (PSN@5 - PSP@1) / (PSP@5 - PSP@1) falls into two groups.

    PSN@1 is PSP@1, and both metrics then move with the weighted hits of the places 2 to 5, PSN with the discounted ones: the
    quotient says how much of PSP's way PSN goes. With the sum up to k as normaliser (jain16) a place of PSN only weighs less
    than in PSP, and the quotient is about 0.7 for any method; with the sum up to min(k, labels of the point) (the page's
    formula) it also hangs on how many labels the points have. Reported is a table whose widest step, with four rows or more
    on both sides, is at least 0.05 and five times the median step. Two witnesses: rows that the sum up to k excludes
    (:func:`xcrepro.repro.published.checks.constant_psndcg_fits`, proof), and on which side jain16's own rows of the dataset
    fall.
    """
    yield from _of_record(book, "psndcg_definitions")


def listed_twice(book: Book) -> Iterator[Finding]:
    """One method in two rows of a table, with the same mark, and numbers that differ: two runs under one name."""
    yield from _of_record(book, "listed_twice")


def sentences(book: Book) -> Iterator[Finding]:
    """A sentence of a paper against the numbers of its own tables: the reason of each finding says which it compares."""
    yield from _of_record(book, "sentences")


def _names(tables: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(tables))


def _of_dataset(source: str, dataset: str, about: str, *said: str) -> Finding:
    """A finding about the statistics of a dataset, which are their own row."""
    return Finding(source.partition(":")[0], source, dataset, dataset, about, *said)


CHECKS: dict[str, Callable[[Book], Iterator[Finding]]] = {
    check.__name__: check
    for check in (identities, owners, copied, points_per_label, recalibrated, far_from_sisters, same_cell, out_of_line,
                  macro_recall, micro_f1_average, mixed_versions, other_points, listed_twice, unlike_itself, psndcg_definitions,
                  label_bins, labels_to_hit, coverage_denominator, same_precision, sentences)
}  # fmt: skip
"""The checks over rows, tables and documents, by name."""
