"""Metrics of a caller's own: functions of truth and predictions, beside those of the registry."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics import registry
from xcrepro.core.metrics.registry import Metric
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth

if TYPE_CHECKING:
    import pandas as pd

Extra = Mapping[str, Callable]


def values(name: str, function: Callable, truth: Truth, top: TopK, k: int) -> np.ndarray:
    """What the function says of the first k places: a number, or one for each row, as float64."""
    said = function(truth.to_csr().astype(np.float64), top.head(k))
    found = np.asarray(said)
    if found.dtype.kind not in "biuf" or found.shape not in ((), (truth.n_rows,)) or not np.isfinite(found).all():
        got = f"shape {found.shape}" if found.dtype.kind in "biuf" and found.size > 1 else repr(said)
        rule = f"must return a finite number, or one for each of the {truth.n_rows:,} rows"
        raise ArgumentError(f"extra[{name!r}]", rule, got)
    return found.astype(np.float64)


def value(found: np.ndarray) -> float:
    """The mean over rows, rounded once; what is a number already stays so."""
    return math.fsum(found) / found.size if found.shape else float(found)


def added(
    table: pd.DataFrame | None, extra: Extra, truth: Truth, top: TopK, asked: Mapping[str, Sequence[int]]
) -> pd.DataFrame:
    """The table of other metrics with those asked for behind it: metric, k, value."""
    import pandas as pd

    rows = [(name, k, value(values(name, extra[name], truth, top, k))) for name, ks in asked.items() for k in ks]
    return pd.concat([table, pd.DataFrame(rows, columns=["metric", "k", "value"])], ignore_index=True)


def metrics_of(extra: Extra | None, truth: Truth, top: TopK) -> dict[str, Metric]:
    """Name -> what a function is, by what it returns for ``top``: a sum over rows, in a column below 0, or a number of all."""
    if extra is None:
        return {}
    if not isinstance(extra, Mapping):
        raise ArgumentError("extra", "must map names to functions", type(extra).__name__, "{'mine': function}")
    found = {}
    for column, (name, function) in enumerate(extra.items(), -len(extra)):
        if not isinstance(name, str) or not name or "@" in name or name in registry.METRICS or registry.family(name):
            rule = "must have names that no other metric has, without @"
            raise ArgumentError("extra", rule, repr(name))
        if not callable(function):
            raise ArgumentError(f"extra[{name!r}]", "must be a function of truth and TopK", type(function).__name__)
        if values(name, function, truth, top, top.k).shape:
            found[name] = Metric(name, "rows", _mean(column), "your own", (column,), "", "", False, averages="rows")
        else:
            found[name] = Metric(name, "own", function, "your own", (), "", "", False)
    return found


def _mean(column: int) -> Callable:
    return lambda sums: sums.mean(column)
