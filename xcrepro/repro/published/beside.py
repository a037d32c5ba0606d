"""What a document prints of this run's dataset, beside what this run found: printed, ours, interval, difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from xcrepro.core.data import registry as datasets
from xcrepro.core.metrics import registry
from xcrepro.repro.published import record
from xcrepro.repro.published.audit import doubted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xcrepro.core.data.dataset import Dataset

COLUMNS = ("table", "model", "metric", "printed", "ours", "± test points", "difference")


def beside(ds: Dataset, table: pd.DataFrame, sources: Sequence[str], unit: float = 1.0) -> pd.DataFrame:
    """The printed cells of a run's dataset that the run has, a row for each, with :data:`COLUMNS`.

    Parameters
    ----------
    ds : Dataset
        Of the run. Only data that are those of print are set beside it (``ds.comparable``).
    table : DataFrame
        What the run found, tidy: model, metric (the names of ``xc.evaluate``), k, value and perhaps low and high. A variant
        in brackets, such as ``coverage (test)``, counts as what the document prints under the name before it. If a table has
        several variants of a method, the model's name has the variant behind it (``DiSMEC isotonic``), or none.
    sources : sequence of str
        Ids of tables, or of documents.
    unit : float
        By which the values are multiplied to be those of print, 100 for fractions.

    Returns
    -------
    DataFrame
        Empty where nothing of it is printed. Printed values that the audit doubts have a dagger.
    """
    entry = datasets.find(ds.entry.name if ds.entry else ds.name)
    printed = record.find(source=list(sources))
    printed = printed[(printed["printed"] != "") & printed["k"].notna()]
    printed = printed[printed["dataset"] == (entry.printed_name if entry and ds.comparable else None)]
    if not len(printed):
        return pd.DataFrame(columns=list(COLUMNS))
    several = printed.groupby(["source", "method"])["variant"].transform("nunique") > 1
    printed = printed.assign(model=printed["method"].where(~several, printed["method"] + " " + printed["variant"]))
    printed = printed.assign(doubt=doubted(printed) != "", code=[_code(name) for name in printed["metric"]])
    ours = {(row.model, _code(row.metric), int(row.k)): row for row in table.itertuples()}
    rows = []
    for cell in printed.itertuples():
        mine = ours.get((cell.model.strip().removesuffix(" none"), cell.code, int(cell.k)))
        if mine is not None:
            digits = len(cell.printed.partition(".")[2])
            half = unit * (mine.high - mine.low) / 2 if hasattr(mine, "low") else float("nan")
            rows.append((
                cell.source, mine.model, f"{mine.metric}@{cell.k}", cell.printed + "†" * cell.doubt,
                f"{unit * mine.value:.{digits}f}", half, unit * mine.value - cell.value,
            ))  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))


def of(sources: Sequence[str]) -> list[str]:
    """The datasets that documents or tables print, in their order."""
    return list(dict.fromkeys(record.find(source=list(sources))["dataset"]))


def _code(metric: str) -> str:
    """The code of a metric by any of its names; of a variant that has none, that of the name before the bracket."""
    codes, name = registry.codes(), registry.plain(metric)
    return codes.get(name) or codes.get(registry.plain(metric.partition(" (")[0]), metric)
