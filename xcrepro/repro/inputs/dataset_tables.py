"""A document's table of datasets: what it prints, which points its averages count, and what files and label counts say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from xcrepro.core.data import registry
from xcrepro.core.data.against_print import statistics
from xcrepro.core.data.dataset import Dataset
from xcrepro.repro.inputs.datasets import load_available, registry_name

FIELDS = {
    "N train": "n_train",
    "N test": "n_test",
    "M test": "n_test",
    "D": "n_features",
    "L": "n_labels",
    "labels per point": "avg_labels_per_point",
    "points per label": "avg_points_per_label",
}
"""Column of a table -> field of a published row (see :func:`xcrepro.core.data.registry.published`)."""


def printed(source: str, columns: Sequence[str]) -> pd.DataFrame:
    """A table of datasets as printed, a row per dataset: averages are texts with their digits, counts numbers, or None."""
    rows = []
    for entry in map(registry.get, registry.names(source)):
        row = entry.published[source] | {name: entry.printed(name, source) for name in registry.AVERAGES}
        rows.append({"dataset": entry.printed_name} | {column: row.get(FIELDS[column]) for column in columns})
    return pd.DataFrame(rows)


def implied_points_per_label(name: str, source: str) -> tuple[dict[str, tuple[float, float]], str]:
    """The least and largest average over ``"train"`` and ``"all"`` points that labels per point x points / L leaves.

    And which of the two meets the printed points per label, or ``"neither"``.
    """
    row = registry.published(name, source)
    low, high = registry.interval(name, "avg_labels_per_point", source)
    below, above = registry.interval(name, "avg_points_per_label", source)
    points = {"train": row["n_train"], "all": row["n_train"] + row["n_test"]}
    ranges = {basis: (low * n / row["n_labels"], high * n / row["n_labels"]) for basis, n in points.items()}
    met = [basis for basis, (least, most) in ranges.items() if least <= above and below <= most]
    return ranges, " or ".join(met) or "neither"


def count(ds: Dataset, source: str, columns: Sequence[str]) -> dict[str, float | None]:
    """The columns of a table counted in ``ds``, averages over the points that ``source`` counts; None without features."""
    row = registry.published(registry_name(ds), source)
    basis = "train" if row["points_per_label_basis"] == "train" else "all"
    found = statistics(ds.train, ds.test)
    found |= {name: found[f"{name}_{basis}"] for name in registry.AVERAGES}
    return {column: found[FIELDS[column]] for column in columns}


def compare_files(source: str, columns: Sequence[str], folder: str) -> pd.DataFrame:
    """Every number of a table whose dataset is on this machine, counted in its files: dataset, quantity, printed, ours."""
    here = load_available(registry.names(source), folder)
    found = ((registry_name(ds), count(ds, source, columns)) for ds in here)
    return _compare(source, found)


def compare_label_counts(source: str, names: Iterable[str]) -> pd.DataFrame:
    """As :func:`compare_files`, from the real label counts that come with the project: L and the two averages."""
    found = []
    for name in names:
        counts, row = registry.label_counts(name), registry.published(name, source)
        n_labels, n_points, pairs = len(counts), row["n_train"] + row["n_test"], int(counts.to_numpy().sum())
        ours = {"L": n_labels, "points per label": pairs / n_labels, "labels per point": pairs / n_points}
        found.append((name, ours))
    return _compare(source, found)


def _compare(source: str, ours: Iterable[tuple[str, dict]]) -> pd.DataFrame:
    """ours: pairs of a dataset and our numbers by column."""
    rows = [
        (registry.get(name).printed_name, column, registry.printed(name, FIELDS[column], source), float(value))
        for name, values in ours
        for column, value in values.items()
        if value is not None
    ]
    return pd.DataFrame(rows, columns=["dataset", "quantity", "printed", "ours"])
