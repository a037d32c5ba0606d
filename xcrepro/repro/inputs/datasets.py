"""Which data an item runs on: the real ones that a dataset's name means, or synthetic ones, asked for by name.

``folder`` is a dataset's own folder (:func:`pick`), or, if an item takes several datasets, a folder with a subfolder
for each, named by its key in the catalogue (:func:`subfolder`, :func:`load_available`).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from xcrepro.core.data import registry
from xcrepro.core.data.dataset import Dataset
from xcrepro.core.data.load import load
from xcrepro.core.data.locate import home_of, require
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.models.twin import Twin, twin
from xcrepro.repro.inputs import fingerprints
from xcrepro.repro.published import doubted, printed_tables

_VERSION = " as "
"""Between a dataset's name and the table that prints its version."""
PRINTED = {"P": "P", "N": "nDCG", "PSP": "PSP", "PSN": "PSnDCG"}
"""The repository's name of a metric -> this package's."""


def pick(
    dataset: str,
    scale: float = 1.0,
    seed: int = 0,
    folder: str | os.PathLike = "",
    split: int | str | None = None,
    A: float | None = None,
    B: float | None = None,
    points: int | None = None,
) -> Dataset:
    """The real ``dataset``: from ``folder``, else where :func:`xcrepro.load` finds it; DataMissing where it is nowhere.

    Nothing is downloaded here. ``"synthetic eurlex-4k"`` asks for synthetic data, drawn at ``scale`` with ``seed``
    (:func:`xcrepro.twin`); ``points`` (of those that come with the package) and the split, by default the first, are real
    data's (:func:`xcrepro.load`). ``"eurlex-4k as calibration:table3"`` are the data in ``folder`` of which that table prints
    the size, where documents have several versions under one name.
    """
    if split == "mean":
        do = "xcrepro run ITEM -p split mean -p folder DIR runs each"
        raise ArgumentError("split", "must be one split's number here", repr(split), do)
    if (original := registry.synthetic(dataset)) is None:
        if not folder:
            require(dataset)
            if "committed" in registry.get(dataset).archive:
                return load(dataset, split=split or 0, points=points, A=A, B=B)
        name, _, source = dataset.partition(_VERSION)
        check = source or "repository"
        return _held_to_record(load(name, folder or None, split=split or 0, check=check, A=A, B=B))
    for name, value in (("folder", folder), ("split", split)):
        if value:
            raise ArgumentError(name, "must be empty for synthetic data", value, f"real data are called {original!r}")
    ds = twin(original, scale=scale, seed=seed)
    return dataclasses.replace(ds, A=ds.A if A is None else A, B=ds.B if B is None else B)


def home(dataset: str, folder: str | os.PathLike = "") -> Path | None:
    """The folder with the files of the dataset that :func:`pick` takes; None of synthetic data and of what the kit brings."""
    return home_of(dataset.partition(_VERSION)[0], folder or None) if registry.synthetic(dataset) is None else None


def _held_to_record(ds: Dataset) -> Dataset:
    """Not comparable where the truth of every split is on record and this is none of them."""
    splits = ds.entry.splits or 1 if ds.entry else 1
    if sum(line.dataset == ds.name and line.part == "test" for line in fingerprints.table()) < splits:
        return ds
    found = fingerprints.recognise(ds.test.Y, twins=False)
    if found.comparable:
        return ds
    return dataclasses.replace(ds, comparable=False, notes=(*ds.notes, f"the test split is {found.text}"))


def subfolder(folder: str | os.PathLike, dataset: str) -> str:
    """The subfolder of ``dataset`` in a ``folder`` of several, named by its key; empty if ``folder`` is."""
    if not folder:
        return ""
    entry, parent = registry.find(dataset), Path(folder).expanduser()
    home = parent / (entry.name if entry else dataset)
    if not home.is_dir():
        form = "this item takes several datasets, and folder= holds a subfolder for each, named by its key"
        raise DataMissing(f"{home}: no such folder; {form}: {home.name}")
    return str(home)


def load_available(datasets: Sequence[str], folder: str | os.PathLike = "") -> list[Dataset]:
    """Those of ``datasets`` that have a subfolder in ``folder``; none where that is empty."""
    parent = Path(folder).expanduser()
    return [load(name, parent / name) for name in datasets if folder and (parent / name).is_dir()]


def registry_name(ds: Dataset) -> str:
    """The dataset's key in the catalogue, for a twin that of its original."""
    return ds.name.partition("@")[0]


def printed_name(ds: Dataset) -> str:
    """What documents call the dataset, for a twin its original; empty if they print nothing that is comparable with it."""
    entry = ds.entry or registry.find(registry_name(ds))
    return entry.printed_name if entry and ds.comparable else ""


def short_name(ds: Dataset) -> str:
    """What a figure calls the dataset: as it is printed, without how many of its records there are; of a twin its title."""
    listed = registry.find(ds.entry.name) if ds.entry and not isinstance(ds, Twin) else None
    # The name of part of the records says how many; that of another version says which.
    return listed.printed_name if listed and listed.source == ds.entry.source else ds.title


def printed_rows(ds: Dataset) -> pd.DataFrame:
    """The results that are printed for the dataset, in the columns of :func:`xcrepro.published.table`; perhaps no rows.

    They are the ``printed.csv`` beside its ``dataset.toml``, else the benchmark table of the repository's page.
    """
    name = printed_name(ds)
    entry = ds.entry or registry.find(registry_name(ds))
    file = entry.folder / "printed.csv" if name and entry.folder else None
    if file and file.is_file():
        rows = printed_tables.read_printed(file)
        for line, text in enumerate(rows["dataset"], 2):
            if not entry.is_called(text):
                raise DataError(file, f"dataset {text!r}", f"{entry.name!r}, whose folder this is", line=line)
        return rows
    source = f"xcrepo:{name}"
    if source in printed_tables.sources():
        return printed_tables.table(source)
    return pd.DataFrame(columns=printed_tables.COLUMNS)


def printed_table(ds: Dataset) -> pd.DataFrame:
    """:func:`printed_rows` as a table to read: method, then P@1, P@3, ... as texts, with "†" behind what the audit doubts."""
    rows = printed_rows(ds)
    rows = rows[rows["metric"].isin(PRINTED) & (rows["printed"] != "")]
    if not len(rows):
        return pd.DataFrame(columns=["method"])
    rows = rows.reset_index(drop=True)
    doubts = (doubted(rows) != "").map({True: "†", False: ""})
    column = rows["metric"].map(PRINTED) + "@" + rows["k"].astype(int).astype(str)
    rows = rows.assign(text=rows["printed"] + doubts, column=column)
    rows["method"] += rows["variant"].where(rows["variant"] != "", "").radd(" ").str.rstrip()
    rows["row"] = rows["row"].astype(int)
    wide = rows.pivot(index=["row", "method"], columns="column", values="text")[list(rows["column"].unique())]
    return wide.rename_axis(columns=None).reset_index("method").reset_index(drop=True)
