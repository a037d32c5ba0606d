"""The page's dataset table, and which points its averages count. Plots nothing: the page has no figure."""

from __future__ import annotations

import pandas as pd

from xcrepro.data import registry
from xcrepro.data.load import statistics
from xcrepro.inputs import datasets


def compute() -> pd.DataFrame:
    """The page's dataset table, one row a dataset in the page's order, with the propensity parameters added.

    ``points per label`` and ``labels per point`` are texts with the digits as printed; D is missing where the page prints
    none.
    """
    rows = []
    for name in registry.names(registry.PAGE_TABLE):
        entry = registry.get(name)
        rows.append(
            {
                "dataset": entry.printed_name,
                "D": entry.n_features,
                "L": entry.n_labels,
                "N train": entry.n_train,
                "N test": entry.n_test,
                "points per label": registry.printed(name, "avg_points_per_label"),
                "labels per point": registry.printed(name, "avg_labels_per_point"),
                "A": entry.A,
                "B": entry.B,
            }
        )
    return pd.DataFrame(rows).astype({"D": "Int64"})


def compute_implied() -> pd.DataFrame:
    """What labels per point x points / L gives, for the train points and for all points, beside the printed average.

    ``low`` and ``high`` are left by the rounding of the printed labels per point; ``points counted`` names the one whose
    interval meets that of the printed points per label ("train", "all", or "neither").
    """
    rows = []
    for name in registry.names(registry.PAGE_TABLE):
        entry = registry.get(name)
        row: dict[str, object] = {
            "dataset": entry.printed_name,
            "printed": registry.printed(name, "avg_points_per_label"),
        }
        low, high = registry.interval(name, "avg_labels_per_point")
        below, above = registry.interval(name, "avg_points_per_label")
        meets = []
        for basis, points in (("train", entry.n_train), ("all", entry.n_train + entry.n_test)):
            least, most = low * points / entry.n_labels, high * points / entry.n_labels
            row |= {f"{basis} low": least, f"{basis} high": most}
            if least <= above and below <= most:
                meets.append(basis)
        row["points counted"] = " or ".join(meets) or "neither"
        rows.append(row)
    return pd.DataFrame(rows)


def compute_counted() -> pd.DataFrame:
    """The averages of EURLex-4K and Bibtex from the label counts that come with the project, beside the printed ones."""
    rows = []
    for name in ("eurlex-4k", "bibtex"):
        entry, counts = registry.get(name), registry.label_counts(name)
        pairs = int(counts.to_numpy().sum())
        for quantity, field, ours in (
            ("L", "n_labels", float(len(counts))),
            ("points per label", "avg_points_per_label", pairs / entry.n_labels),
            ("labels per point", "avg_labels_per_point", pairs / (entry.n_train + entry.n_test)),
        ):
            printed = registry.printed(name, field)
            rows.append({"dataset": entry.printed_name, "quantity": quantity, "printed": printed, "ours": ours})
    return pd.DataFrame(rows)


def compute_loaded(folder: str, size: str) -> pd.DataFrame:
    """Every printed number of the datasets that are on this machine, recomputed from their files.

    folder: where one subfolder a dataset lies, named by registry key. Empty: at size paper the cache, where ``xcrepro fetch``
    puts them; at size small nothing, so that the result does not depend on what a machine has.
    A subfolder that is no dataset of the registry is passed over. Nothing is downloaded.
    """
    rows = []
    for ds in datasets.load_available(registry.names(registry.PAGE_TABLE), size, folder):
        entry = ds.entry
        found = statistics(ds.train, ds.test)
        over = "train" if entry.points_per_label_basis == "train" else "all"
        for quantity, field, ours in (
            ("D", "n_features", found["n_features"]),
            ("L", "n_labels", found["n_labels"]),
            ("N train", "n_train", found["n_train"]),
            ("N test", "n_test", found["n_test"]),
            ("points per label", "avg_points_per_label", found[f"avg_points_per_label_{over}"]),
            ("labels per point", "avg_labels_per_point", found[f"avg_labels_per_point_{over}"]),
        ):
            if ours is not None:
                printed = entry.printed(field)
                rows.append(
                    {"dataset": entry.printed_name, "quantity": quantity, "printed": printed, "ours": float(ours)}
                )
    return pd.DataFrame(rows, columns=["dataset", "quantity", "printed", "ours"])
