"""The page's dataset table, and which points its averages count. Plots nothing: the page has no figure."""

from __future__ import annotations

import pandas as pd

from xcrepro.data import registry
from xcrepro.data.registry import PAGE_TABLE
from xcrepro.inputs import dataset_tables, parameters

check_parameters = parameters.check

COLUMNS = ("D", "L", "N train", "N test", "points per label", "labels per point")


def compute() -> pd.DataFrame:
    """The page's dataset table, with the propensity parameters added.

    Returns
    -------
    DataFrame
        One row a dataset in the page's order: dataset, D (missing where the page prints none), L, N train, N test,
        points per label and labels per point (texts with the digits as printed), A, B.
    """
    table, entries = (
        dataset_tables.printed(PAGE_TABLE, COLUMNS),
        [registry.get(name) for name in registry.names(PAGE_TABLE)],
    )
    return table.astype({"D": "Int64"}).assign(A=[entry.A for entry in entries], B=[entry.B for entry in entries])


def compute_implied() -> pd.DataFrame:
    """What labels per point x points / L gives, for the train points and for all points, and the printed average.

    Returns
    -------
    DataFrame
        dataset, printed (text), then train low, train high, all low, all high: what the rounding of the printed
        labels per point leaves; points counted: the one whose range meets that of the printed points per label
        ("train", "all", or "neither").
    """
    rows = []
    for name in registry.names(PAGE_TABLE):
        ranges, counted = dataset_tables.implied_points_per_label(name, PAGE_TABLE)
        printed = registry.printed(name, "avg_points_per_label", PAGE_TABLE)
        rows.append((registry.get(name).printed_name, printed, *ranges["train"], *ranges["all"], counted))
    names = ["dataset", "printed", "train low", "train high", "all low", "all high", "points counted"]
    return pd.DataFrame(rows, columns=names)


def compute_counted() -> pd.DataFrame:
    """The page's averages of EURLex-4K and Bibtex, from the label counts in the project.

    Returns
    -------
    DataFrame
        dataset, quantity, printed (text), ours.
    """
    return dataset_tables.compare_label_counts(PAGE_TABLE, ["eurlex-4k", "bibtex"])


def compute_loaded(folder: str, size: str) -> pd.DataFrame:
    """The page's dataset table against files: :func:`xcrepro.inputs.dataset_tables.compare_files` of its columns.

    Parameters
    ----------
    folder, size : str
        As for :func:`xcrepro.inputs.datasets.load_available`.

    Returns
    -------
    DataFrame
        dataset, quantity (the column), printed (text), ours.
    """
    return dataset_tables.compare_files(PAGE_TABLE, COLUMNS, folder, size)
