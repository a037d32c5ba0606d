"""Table 2 of Jain et al. 2016: its dataset statistics, the repository's, and ours."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from xcrepro import published
from xcrepro.data import registry
from xcrepro.data import twin as twins
from xcrepro.data.dataset import Dataset
from xcrepro.data.load import statistics
from xcrepro.inputs import datasets

SOURCE, PAGE = "jain16:table2", "xcrepo:dataset-table"
FIELDS = {
    "N train": "n_train",
    "D": "n_features",
    "L": "n_labels",
    "M test": "n_test",
    "labels per point": "avg_labels_per_point",
    "points per label": "avg_points_per_label",
}
"""The table's columns -> the registry's names for them."""


def _entries() -> list[registry.Entry]:
    """The table's datasets, in its order."""
    return [registry.get(name) for name in published.table(SOURCE)["dataset"].unique()]


def _texts(entry: registry.Entry, source: str = SOURCE) -> dict[str, str]:
    return {column: registry.printed(entry.name, field, source) for column, field in FIELDS.items()}


def _count(ds: Dataset) -> dict[str, float | None]:
    """The table's columns counted in ``ds``, the averages over train and test points together."""
    found = statistics(ds.train, ds.test)
    return {column: found[f"{field}_all" if "avg" in field else field] for column, field in FIELDS.items()}


def compute() -> pd.DataFrame:
    """Table 2 as printed, averages as texts with their digits: dataset and the columns of :data:`FIELDS`."""
    rows = [{"dataset": entry.printed_name} | _texts(entry) for entry in _entries()]
    return pd.DataFrame(rows).astype({column: int for column, field in FIELDS.items() if "avg" not in field})


def compute_page() -> pd.DataFrame:
    """Where the table and the repository's page print other numbers for a dataset: dataset, quantity, table 2, page (texts)."""
    rows = []
    for entry in _entries():
        if PAGE in entry.published:
            both = zip(FIELDS, _texts(entry).values(), _texts(entry, PAGE).values(), strict=True)
            rows += [(entry.printed_name, *cells) for cells in both if cells[1] != cells[2]]
    return pd.DataFrame(rows, columns=["dataset", "quantity", "table 2", "page"])


def compute_counted() -> pd.DataFrame:
    """Which points the averages count.

    Returns
    -------
    DataFrame
        dataset, printed (points per label), then what labels per point x points / L gives: ``train`` and ``all`` for the
        train points and for all points at the printed labels per point; ``margin`` is how far the rounding of the latter
        moves the second; ``counted`` names the basis whose range meets the printed value, or "neither".
    """
    rows = []
    for entry in _entries():
        row = registry.published(entry.name, SOURCE)
        low, high = registry.interval(entry.name, "avg_labels_per_point", SOURCE)
        below, above = registry.interval(entry.name, "avg_points_per_label", SOURCE)
        points = {"train": row["n_train"], "all": row["n_train"] + row["n_test"]}
        ratio = {basis: n / row["n_labels"] for basis, n in points.items()}
        meets = [basis for basis, r in ratio.items() if low * r <= above and below <= high * r]
        products = {basis: (low + high) / 2 * r for basis, r in ratio.items()}
        margin, counted = (high - low) / 2 * ratio["all"], " or ".join(meets) or "neither"
        printed = {"dataset": entry.printed_name, "printed": row["avg_points_per_label"]}
        rows.append(printed | products | {"margin": margin, "counted": counted})
    return pd.DataFrame(rows)


def compare_with_printed() -> pd.DataFrame:
    """EURLex-4K from the real label counts that come with the project: dataset, quantity, printed (text), ours."""
    entry, counts = registry.get("eurlex-4k"), registry.label_counts("eurlex-4k")
    pairs = int(counts.to_numpy().sum())
    n_points = entry.n_train + entry.n_test
    found = {"L": len(counts), "points per label": pairs / len(counts), "labels per point": pairs / n_points}
    return _compare([(entry, found)])


def compute_twins(scales: Sequence[float], seed: int = 0) -> pd.DataFrame:
    """The table's datasets as twins.

    Parameters
    ----------
    scales : sequence of float
        One for each public dataset, in the table's order. Ads-9M has no twin: it is proprietary.

    Returns
    -------
    DataFrame
        dataset, scale, N train, D, L, M test, then labels per point and points per label of all points as counted, each
        followed by the printed number.
    """
    rows = []
    for entry, scale in zip([entry for entry in _entries() if not entry.proprietary], scales, strict=True):
        row = registry.published(entry.name, SOURCE)
        found = _count(twins.twin(entry.name, scale=scale, seed=seed))
        found |= {"printed lpp": row["avg_labels_per_point"], "printed ppl": row["avg_points_per_label"]}
        rows.append({"dataset": f"{entry.printed_name}, twin", "scale": scale} | found)
    *sizes, lpp, ppl = FIELDS
    return pd.DataFrame(rows)[["dataset", "scale", *sizes, lpp, "printed lpp", ppl, "printed ppl"]]


def compare_files_with_printed(folder: str, size: str) -> pd.DataFrame:
    """Every number of the table whose dataset is on this machine, counted in its files: dataset, quantity, printed, ours.

    ``size`` and ``folder``: as for :func:`xcrepro.inputs.datasets.load_available`.
    """
    found = datasets.load_available([entry.name for entry in _entries()], size, folder)
    return _compare((ds.entry, _count(ds)) for ds in found)


def _compare(found) -> pd.DataFrame:
    """found: pairs of an entry and our numbers by column."""
    rows = [
        (entry.printed_name, column, _texts(entry)[column], float(value))
        for entry, values in found
        for column, value in values.items()
        if value is not None
    ]
    return pd.DataFrame(rows, columns=["dataset", "quantity", "printed", "ours"])
