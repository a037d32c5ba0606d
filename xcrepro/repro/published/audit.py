"""The audit of the published record: what is wrong, or differs, in the numbers that the five documents print.

The findings are data: ``data/published/findings.csv``, each with the printed cells that it rests on
(``findings_rest_on.csv``), from which the tests work it out again. The identities of one row, which ``xcrepro audit`` also
tries on anybody's own results, are in :mod:`xcrepro.repro.published.checks`.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

from xcrepro.repro.published import checks, printed_tables

if TYPE_CHECKING:
    import pandas as pd

JUDGEMENTS = ("typo", "rounding", "other variant", "conversion damage", "definition")
"""typo: the printed cell cannot be right as it stands.  rounding: cut or padded digits.  other variant: right for
another run, model or dataset version than its neighbours.  conversion damage: the text at hand differs from print.
definition: two readings of a metric or an average."""

_CELL = ["source", "dataset", "method", "variant", "metric", "k", "printed"]


def audit(record: pd.DataFrame | None = None) -> pd.DataFrame:
    """What is wrong or differs in the published record, each printed cell once, strongest first.

    The findings are kept as data; a finding is given as long as all the cells that it rests on are printed as they were.

    Parameters
    ----------
    record : DataFrame, optional
        Tidy rows as :func:`xcrepro.published.find` returns them; None: the whole record.

    Returns
    -------
    DataFrame of str
        ``document``, ``table`` (several where the same cell is printed twice), ``dataset``, ``row`` (method and variant),
        ``column``, ``printed``, ``expected`` (what it must be, or its bounds), ``check`` (the rule: an identity of
        :mod:`xcrepro.repro.published.checks`, or a comparison that ``docs/audit.md`` describes), ``judgement`` (one of
        :data:`JUDGEMENTS`) and ``why``. What several rules find stands once, with all of them, the strongest first. The
        order: contradictions inside a row first, then those between rows, tables and documents, then sentences; typos
        before the rest.

    Examples
    --------
    >>> found = audit()
    >>> found[(found["document"] == "coverage") & found["check"].str.contains("first_place")]["printed"].tolist()
    ['58.1']
    """
    found = _findings()
    if record is not None:
        printed = set(_cells(record).itertuples(index=False, name=None))
        found = found[[cells <= printed for cells in rest_on()]]
    return found.reset_index(drop=True).copy()


def rest_on() -> list[set[tuple[str, ...]]]:
    """Of each finding, in order, the printed cells that it rests on: source, dataset, method, variant, metric, k, printed."""
    return _rest_on()


@functools.cache
def _findings() -> pd.DataFrame:
    return printed_tables.kept("findings").drop(columns="finding")


@functools.cache
def _rest_on() -> list[set[tuple[str, ...]]]:
    cells = defaultdict(set)
    for number, *cell in printed_tables.kept("findings_rest_on").itertuples(index=False, name=None):
        cells[number].add(tuple(cell))
    return [cells[number] for number in printed_tables.kept("findings")["finding"]]


def _cells(record: pd.DataFrame) -> pd.DataFrame:
    """The printed cells of a record as text."""
    cells = record.loc[record["printed"] != "", _CELL]
    return cells.assign(k=cells["k"].fillna(0).astype(int).astype(str).replace("0", ""))


def label(method: str, variant: str) -> str:
    """A row's name in findings; marks of the hardware and "none" are no part of it."""
    method = "COVbeta-PLT" if method == "COV-PLT" else method  # the coverage paper's beta = 0, by table 3
    return f"{method} ({variant})" if len(variant) > 1 and variant != "none" else method


def doubted(rows: pd.DataFrame) -> pd.Series:
    """Which printed values cannot be what their row says, by the audit.

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

    found, reasons = _findings(), {}
    for one in found[found["judgement"] == "typo"].itertuples(index=False):
        for dataset in one.dataset.split(", "):
            for where in _cells_of(one.column):
                reasons.setdefault((one.document, dataset, one.row, checks.column(*where)), one.why)

    def why(row) -> str:
        k = 0 if pd.isna(row.k) else int(row.k)
        place = row.source.partition(":")[0], row.dataset, label(row.method, row.variant), checks.column(row.metric, k)
        return reasons.get(place, "")

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
        second``, ``difference`` (points, second less first), ``said`` (the audit's rules that speak of one of the two cells,
        of its row or of the dataset's versions; empty: nothing does), the largest difference of a dataset, method and metric
        first.

    Examples
    --------
    >>> table = shared()
    >>> len(table), int((table["difference"].abs() > 1).sum())
    (216, 106)
    """
    import pandas as pd

    record = printed_tables.find() if record is None else record
    spoken, versions = defaultdict(set), {}
    for f in audit(record).itertuples():
        if f.check == "other_points":
            versions[f.document, f.dataset] = f.check
        for dataset, name in itertools.product(f.dataset.split(", "), f.row.removesuffix(", second row").split(", ")):
            for where in _cells_of(f.column):
                spoken[f.document, dataset, name, *where] |= set(f.check.split(", "))
    lines: dict[tuple, dict[tuple, dict]] = defaultdict(dict)
    kept = record[(record["printed"] != "") & (record["method"] != "") & ~record["variant"].isin(_TREATED)]
    for row in kept[kept["metric"].isin(_RATES)].itertuples():
        document, method = row.source.partition(":")[0], row.method.replace("COV-PLT", "COVbeta-PLT")
        own = (document, row.variant, row.row if document == "xcrepo" else 0)  # the page lists two runs of a method
        first, cells = lines[row.dataset, method].setdefault(document, (own, {}))
        if first == own:
            place = row.metric, int(row.k)
            cells[place] = max(cells.get(place, row.printed), row.printed, key=len)
    rows = []
    for (dataset, method), of in lines.items():
        for (one, ((_, variant, _), first)), (two, ((_, other, _), second)) in itertools.combinations(of.items(), 2):
            for metric, k in sorted(first.keys() & second.keys(), key=lambda cell: (_RATES.index(cell[0]), cell[1])):
                said = {check for document, v in ((one, variant), (two, other)) for at in (k, 0)
                        for check in spoken[document, dataset, label(method, v), metric, at]}  # fmt: skip
                said |= {versions[document, dataset] for document in (one, two) if (document, dataset) in versions}
                a, b = first[metric, k], second[metric, k]
                apart = round(checks.Cell.of(b).value - checks.Cell.of(a).value, 6)
                rows.append((dataset, method, metric, k, one, two, a, b, apart, ", ".join(sorted(said))))
    table = pd.DataFrame(rows, columns=list(_SHARED))
    groups = table.groupby(["dataset", "method", "metric", "first", "second"], sort=False)["difference"]
    order = ["most", "dataset", "method", "metric", "k"]
    table = table.assign(most=-groups.transform(lambda gap: gap.abs().max()))
    return table.sort_values(order, kind="stable", ignore_index=True).drop(columns="most")


_SHARED = "dataset", "method", "metric", "k", "first", "second", "printed first", "printed second", "difference", "said"
_TREATED = ("isotonic", "platt", "isotonic-separate", "platt-separate", "head-1000")
_RATES = ("P", "N", "PSP", "PSN")


def _cells_of(text: str) -> list[tuple[str, int]]:
    """The cells that a finding's column names, such as "PSP, PSN at 1, 3" or "P@5"; k = 0 means all k of a metric."""
    names, _, places = text.partition(" at ")
    if places:
        return [(name, int(k)) for name in names.split(", ") for k in places.split(", ")]
    pairs = (name.partition("@") for name in names.split(", "))
    return [(name, int(k or 0)) for name, _, k in pairs]
