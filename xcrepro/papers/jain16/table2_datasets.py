"""Table 2 of Jain et al. 2016: its dataset statistics, the repository's, and ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from xcrepro.data import registry
from xcrepro.data import twin as twins
from xcrepro.errors import ArgumentError
from xcrepro.inputs import dataset_tables, parameters

SOURCE, PAGE = "jain16:table2", registry.PAGE_TABLE
COLUMNS = ("N train", "D", "L", "M test", "labels per point", "points per label")


def public() -> list[registry.Entry]:
    """The catalogue's entries of the table's datasets that anybody can get, in its order: all but Ads-9M."""
    return [entry for entry in map(registry.get, registry.names(SOURCE)) if not entry.proprietary]


def check_parameters(values: Mapping[str, object]) -> None:
    """:func:`xcrepro.inputs.parameters.check`, and one of ``scales`` for each public dataset."""
    parameters.check(values)
    if len(values["scales"]) != len(public()):
        names = ", ".join(entry.printed_name for entry in public())
        raise ArgumentError(
            "parameter scales", f"must be {len(public())} numbers, one each for {names}", values["scales"]
        )


def compute() -> pd.DataFrame:
    """Table 2 as printed.

    Returns
    -------
    DataFrame
        dataset and the columns of :data:`COLUMNS`; averages as texts with their digits.
    """
    return dataset_tables.printed(SOURCE, COLUMNS)


def compute_page() -> pd.DataFrame:
    """Where table 2 and the repository's page print other numbers for a dataset.

    Returns
    -------
    DataFrame
        dataset, quantity, table 2, page (texts).
    """
    rows = []
    for name in (name for name in registry.names(SOURCE) if PAGE in registry.get(name).published):
        for column in COLUMNS:
            here, there = (registry.printed(name, dataset_tables.FIELDS[column], source) for source in (SOURCE, PAGE))
            rows += [(registry.get(name).printed_name, column, here, there)] * (here != there)
    return pd.DataFrame(rows, columns=["dataset", "quantity", "table 2", "page"])


def compute_counted() -> pd.DataFrame:
    """Which points the averages count.

    Returns
    -------
    DataFrame
        dataset, printed (points per label), then what labels per point x points / L gives: ``train`` and ``all`` for
        the train points and for all points at the printed labels per point; ``margin`` is how far the rounding of the
        latter moves the second; ``counted`` names the basis whose range meets the printed value, or "neither".
    """
    rows = []
    for name in registry.names(SOURCE):
        ranges, counted = dataset_tables.implied_points_per_label(name, SOURCE)
        (low, high), printed = ranges["all"], registry.published(name, SOURCE)["avg_points_per_label"]
        middles = (sum(ends) / 2 for ends in ranges.values())
        rows.append((registry.get(name).printed_name, printed, *middles, (high - low) / 2, counted))
    return pd.DataFrame(rows, columns=["dataset", "printed", "train", "all", "margin", "counted"])


def compare_with_printed() -> pd.DataFrame:
    """Table 2's EURLex-4K from the real label counts that come with the project.

    Returns
    -------
    DataFrame
        dataset, quantity, printed (text), ours.
    """
    return dataset_tables.compare_label_counts(SOURCE, ["eurlex-4k"])


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
        followed by the printed number. Counted are the observed labels, as in print.
    """
    rows = []
    for entry, scale in zip(public(), scales, strict=True):
        printed = entry.published[SOURCE]
        found = dataset_tables.count(twins.twin(entry.name, scale=scale, seed=seed), SOURCE, COLUMNS)
        found |= {"printed lpp": printed["avg_labels_per_point"], "printed ppl": printed["avg_points_per_label"]}
        rows.append({"dataset": f"{entry.printed_name}, twin", "scale": scale} | found)
    *sizes, lpp, ppl = COLUMNS
    return pd.DataFrame(rows)[["dataset", "scale", *sizes, lpp, "printed lpp", ppl, "printed ppl"]]


def findings(page: pd.DataFrame, counted: pd.DataFrame, twins: pd.DataFrame) -> list[str]:
    """What the table's numbers say.

    Parameters
    ----------
    page, counted, twins : DataFrame
        From :func:`compute_page`, :func:`compute_counted` and :func:`compute_twins`.

    Returns
    -------
    list of str
    """
    said = []
    for basis, names in counted.groupby("counted")["dataset"]:
        words = "neither train points nor all points" if basis == "neither" else f"{basis} points"
        said.append(f"The printed averages fit {words}: {', '.join(names)}.")
    different = page[page["quantity"].str.contains("per")]["dataset"].unique()
    said.append(f"The repository's page prints other averages for {', '.join(different) or 'no dataset'}.")
    sizes = page[~page["quantity"].str.contains("per")]
    for name, part in sizes.groupby("dataset"):
        cells = "; ".join(f"{row.quantity} {row[3]} here, {row[4]} there" for row in part.itertuples())
        said.append(f"{name} is another version of the data: {cells}.")
    away = (twins["labels per point"] / twins["printed lpp"].astype(float) - 1).abs()
    farthest = twins.loc[away.idxmax()]
    said.append(
        f"Labels per point of the twins are within {100 * away.max():.0f} % of print; the farthest is {farthest['dataset']}."
    )
    return said


def compare_files_with_printed(folder: str, size: str) -> pd.DataFrame:
    """Table 2 against dataset files: :func:`xcrepro.inputs.dataset_tables.compare_files` of its columns.

    Parameters
    ----------
    folder, size : str
        As for :func:`xcrepro.inputs.datasets.load_available`.

    Returns
    -------
    DataFrame
        dataset, quantity (the column), printed (text), ours.
    """
    return dataset_tables.compare_files(SOURCE, COLUMNS, folder, size)
