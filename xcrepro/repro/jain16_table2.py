"""What the item on table 2 of Jain et al. 2016 computes: its dataset statistics, beside the repository's and ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from xcrepro import paths
from xcrepro.data import registry
from xcrepro.data import twin as twins
from xcrepro.data.load import load, statistics

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


def names() -> list[str]:
    """The registry keys of the table's datasets, in the table's order."""
    order = ["eurlex-4k", "amazoncat-13k", "wiki10-31k", "wikilshtc-325k", "amazon-670k", "ads-9m"]
    missing = {name for name in registry.names(proprietary=True) if SOURCE in registry.get(name).published} ^ set(order)
    if missing:
        raise ValueError(f"table 2 of the registry and of this module differ in {sorted(missing)}")
    return order


def printed() -> pd.DataFrame:
    """Table 2 as printed, averages as texts with their digits: dataset and the columns of :data:`FIELDS`."""
    rows = []
    for name in names():
        row = registry.published(name, SOURCE)
        texts = {column: registry.printed(name, field, SOURCE) for column, field in FIELDS.items()}
        whole = {column: int(row[field]) for column, field in FIELDS.items() if not field.startswith("avg")}
        rows.append({"dataset": registry.get(name).printed_name} | texts | whole)
    return pd.DataFrame(rows)


def beside_page() -> pd.DataFrame:
    """Where the table and the repository's page print other numbers for a dataset: dataset, quantity, table 2, page (texts)."""
    rows = []
    for name in names():
        if PAGE not in registry.get(name).published:
            continue
        for column, field in FIELDS.items():
            ours, theirs = registry.printed(name, field, SOURCE), registry.printed(name, field, PAGE)
            if ours != theirs:
                rows.append((registry.get(name).printed_name, column, ours, theirs))
    return pd.DataFrame(rows, columns=["dataset", "quantity", "table 2", "page"])


def points_counted() -> pd.DataFrame:
    """Which points the averages count: dataset, printed (points per label), then what labels per point x points / L gives.

    ``train`` and ``all`` are that product for the train points and for all points at the printed labels per point;
    ``margin`` is how far the rounding of the latter moves the second; ``counted`` names the basis whose range meets the
    printed value, or "neither".
    """
    rows = []
    for name in names():
        row = registry.published(name, SOURCE)
        low, high = registry.interval(name, "avg_labels_per_point", SOURCE)
        below, above = registry.interval(name, "avg_points_per_label", SOURCE)
        bases = {"train": row["n_train"], "all": row["n_train"] + row["n_test"]}
        per_label = {basis: n / row["n_labels"] for basis, n in bases.items()}
        meets = [basis for basis, ratio in per_label.items() if low * ratio <= above and below <= high * ratio]
        middle = (low + high) / 2
        rows.append(
            {
                "dataset": registry.get(name).printed_name,
                "printed": row["avg_points_per_label"],
                "train": middle * per_label["train"],
                "all": middle * per_label["all"],
                "margin": (high - low) / 2 * per_label["all"],
                "counted": " or ".join(meets) or "neither",
            }
        )
    return pd.DataFrame(rows)


def counted() -> pd.DataFrame:
    """EURLex-4K from the real label counts that come with the project: dataset, quantity, printed (text), ours."""
    entry, counts = registry.get("eurlex-4k"), registry.label_counts("eurlex-4k")
    pairs = int(counts.to_numpy().sum())
    found = {
        "L": float(len(counts)),
        "points per label": pairs / len(counts),
        "labels per point": pairs / (entry.n_train + entry.n_test),
    }
    return _compared("eurlex-4k", found)


def from_twins(scales: Sequence[float], seed: int = 0) -> pd.DataFrame:
    """The table's datasets as twins: dataset, scale, N train, D, L, M test, then labels per point and points per label of all
    points as counted, each beside the printed number.

    scales: one for each public dataset, in the table's order. Ads-9M has no twin: it is proprietary.
    """
    rows = []
    for name, scale in zip([name for name in names() if not registry.get(name).proprietary], scales, strict=True):
        ds = twins.twin(name, scale=scale, seed=seed)
        found, row = statistics(ds.train, ds.test), registry.published(name, SOURCE)
        rows.append(
            {
                "dataset": f"{registry.get(name).printed_name}, twin",
                "scale": scale,
                "N train": found["n_train"],
                "D": found["n_features"],
                "L": found["n_labels"],
                "M test": found["n_test"],
                "labels per point": found["avg_labels_per_point_all"],
                "printed lpp": row["avg_labels_per_point"],
                "points per label": found["avg_points_per_label_all"],
                "printed ppl": row["avg_points_per_label"],
            }
        )
    return pd.DataFrame(rows)


def loaded(folder: str, size: str) -> pd.DataFrame:
    """Every number of the table whose dataset is on this machine, counted in its files: dataset, quantity, printed, ours.

    folder: where one subfolder a dataset lies, named by registry key. Empty: at size paper the cache, at size small nothing,
    so that the result does not depend on what a machine has. Nothing is downloaded.
    """
    home = Path(folder).expanduser() if folder else paths.cache_dir() / "datasets"
    parts = [pd.DataFrame(columns=["dataset", "quantity", "printed", "ours"])]
    for name in names() if folder or size == "paper" else []:
        if (home / name).is_dir():
            ds = load(name, home / name, check=False)
            found = statistics(ds.train, ds.test)
            keys = {field: field + "_all" if field.startswith("avg") else field for field in FIELDS.values()}
            parts.append(_compared(name, {column: found[keys[field]] for column, field in FIELDS.items()}))
    return parts[-1] if len(parts) == 2 else pd.concat(parts, ignore_index=True)


def _compared(name: str, found: Mapping[str, float | None]) -> pd.DataFrame:
    entry = registry.get(name)
    rows = [
        (entry.printed_name, column, registry.printed(name, FIELDS[column], SOURCE), float(value))
        for column, value in found.items()
        if value is not None
    ]
    return pd.DataFrame(rows, columns=["dataset", "quantity", "printed", "ours"])
