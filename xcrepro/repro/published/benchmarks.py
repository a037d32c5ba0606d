"""The benchmark tables of the Extreme Classification Repository's page: their rows, leaders, costs and years."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

from xcrepro.core.data import registry
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.published import printed_tables, significance_from_print
from xcrepro.repro.published.audit import doubted

RANKING = [f"{metric}@{k}" for metric in ("P", "N", "PSP", "PSN") for k in (1, 3, 5)]
COSTS = {"model_size_gb": "size GB", "train_time_hr": "train h"}
COLUMNS = [*RANKING, *COSTS.values()]

_REFERENCED = {"Astec": "[55]", "CPLST": "[09]", "CS": "[06]", "LPSR": "[04]", "ML-CSSP": "[08]", "PINA": "[68]"}
_REFERENCED |= {"Slice+FastText": "[41]", "WSABIE": "[11]"}
"""Methods of the tables that the page's code list lacks or calls otherwise, and the page's reference to them.
1-vs-All and kNN are no one paper's; XT and XR-Transformer have no entry on the page."""


def sources() -> list[str]:
    """The ids of the page's 21 benchmark tables, in the page's order."""
    ids = (source for source in printed_tables.sources() if source.startswith("xcrepo:"))
    return [source for source in ids if "P" in set(printed_tables.table(source)["metric"])]


def board(dataset: str = "") -> pd.DataFrame:
    """The benchmark table of a dataset, or all of them, in print order: dataset, method, mark, :data:`COLUMNS`, doubted.

    Numbers are percent, gigabytes and hours, NaN where the page has a dash. The mark names the machine (``*``, ``†``,
    ``‡``), or says that the row is from the method's own publication (``♦``). ``doubted`` names the columns that cannot
    be right.
    """
    source = f"xcrepo:{registry.get(dataset).printed_name}" if dataset else ""
    if source and source not in sources():
        known = ", ".join(one.removeprefix("xcrepo:") for one in sources())
        rule = "must have a benchmark table on the page"
        raise ArgumentError("dataset", rule, repr(dataset), f"one of {known}, or '' for all")
    return _read(source).copy()


@functools.cache
def _read(source: str) -> pd.DataFrame:
    wanted = [source] if source else sources()
    rows = pd.concat([printed_tables.wide(one).reset_index() for one in wanted], ignore_index=True)
    rows = rows.rename(columns={"variant": "mark", **COSTS})[["dataset", "method", "mark", *COLUMNS]]
    printed = pd.concat([printed_tables.table(one) for one in wanted], ignore_index=True)
    doubts: dict[tuple, list[str]] = {}
    for one in printed[doubted(printed) != ""].itertuples():
        column = COSTS.get(one.metric) or f"{one.metric}@{one.k}"
        doubts.setdefault((one.dataset, one.method, one.variant), []).append(column)
    names = rows[["dataset", "method", "mark"]].itertuples(index=False, name=None)
    return rows.assign(doubted=[", ".join(doubts.get(name, [])) for name in names])


def in_doubt(rows: pd.DataFrame, *columns: str) -> pd.Series:
    """Which rows of :func:`board` have a number in one of the columns that cannot be right."""
    return pd.Series([bool(set(columns) & set(text.split(", "))) for text in rows["doubted"]], rows.index, dtype=bool)


def sure(*columns: str, dataset: str = "") -> pd.DataFrame:
    """The rows of :func:`board` that print all of the columns, none of them in doubt."""
    rows = board(dataset).dropna(subset=list(columns))
    return rows[~in_doubt(rows, *columns)].reset_index(drop=True)


def leaders(metric: str = "P@1") -> pd.DataFrame:
    """The best method of each table by P or PSP at 1, 3 or 5, and whether its lead is certain from the two printed numbers.

    One row per table, numbers in doubt left out: dataset, methods (that print the metric), best, mark, value, next,
    ahead (points) and lead (``"certain"``, ``"open"`` or ``"no lead"``, see
    :mod:`xcrepro.repro.published.significance_from_print`).
    """
    name, _, k = metric.partition("@")
    found = significance_from_print.leads(name, int(k)).itertuples()
    verdicts, rows = {(one.dataset, one.method, one.next): one.verdict for one in found}, []
    for dataset, part in sure(metric).groupby("dataset", sort=False):
        first = part.sort_values(metric, ascending=False, kind="stable")[:2]
        best, other = first[["method", "mark", metric]].to_numpy()
        verdict = verdicts.get((dataset, best[0], other[0]), "")
        rows.append((dataset, len(part), *best, other[0], best[2] - other[2], verdict))
    return pd.DataFrame(rows, columns=["dataset", "methods", "best", "mark", metric, "next", "ahead", "lead"])


def unbeaten(value, cost) -> np.ndarray:
    """Which rows no other beats: none is at least as good for at most the cost, and better in one of the two."""
    p, c = (np.asarray(one, float)[:, None] for one in (value, cost))
    return ~((p >= p.T) & (c <= c.T) & ((p > p.T) | (c < c.T))).any(axis=0)


def years() -> dict[str, int]:
    """When the methods of the tables came out, from the page's code list, else from its references; others are left out."""
    cited = printed_tables.references().set_index("ref")["year"]
    known = {method: cited[ref] for method, ref in _REFERENCED.items()}
    known |= dict(printed_tables.methods()[["method", "year"]].dropna().to_numpy())
    return {name: int(known[name]) for name in sorted(set(board()["method"])) if name in known}
