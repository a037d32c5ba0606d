"""The one door for a notebook: an item of the manifest with the parameters of this run."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro import paths
from xcrepro.errors import ArgumentError
from xcrepro.repro import compare, figures, golden, manifest, notebooks, tables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def folder(size: str, official: bool) -> Path:
    """Where a run's figures and tables go.

    Size small with the manifest's parameters writes what is committed, ``figures/``; size paper ``build/figures/paper/``;
    everything else is the reader's own and goes to ``build/figures/other/``. ``$XCREPRO_FIGURES`` (from the project
    folder) moves all of them: the notebook tests use it so that a test changes nothing that is committed.
    """
    root = paths.project_root()
    if moved := os.environ.get("XCREPRO_FIGURES"):
        return root / moved
    if not official:
        return root / "build" / "figures" / "other"
    return root / "figures" if size == "small" else root / "build" / "figures" / size


@dataclasses.dataclass(frozen=True)
class Item:
    """A figure or table being made. Get one with :func:`item`.

    ``official`` says whether ``parameters`` are the manifest's for their size; only then are results compared with the
    golden file, and only then do they go to ``figures/`` (see :func:`folder`).
    """

    entry: manifest.Entry
    parameters: dict
    official: bool

    @property
    def size(self) -> str:
        return self.parameters["size"]

    @property
    def folder(self) -> Path:
        """The folder under which this run writes ``<id>.csv`` and so on."""
        return folder(self.size, self.official)

    def name(self, part: str = "") -> str:
        """``paper/item``, or ``paper/item:part`` for an item with more than one table."""
        return f"{self.entry.id}:{part}" if part else self.entry.id

    # These print or show what they have to say and return nothing, so that a cell that ends with one shows it once.

    def check(self, table: pd.DataFrame, part: str = "") -> None:
        """:func:`xcrepro.repro.golden.check` with the manifest's tolerance; tells when there is nothing to compare."""
        if self.official:
            golden.check(self.name(part), table, self.size, self.entry.tolerance)
        else:
            print(f"{self.name(part)}: not compared, these are not the manifest's parameters")

    def published(
        self,
        table: pd.DataFrame,
        ours: str = "ours",
        printed: str = "printed",
        decimals: int | None = None,
        part: str = "",
    ) -> None:
        """:func:`xcrepro.repro.compare.published` under this item's name."""
        compare.published(self.name(part), table, ours, printed, decimals)

    def save_figure(self, fig: Figure, data: pd.DataFrame, part: str = "") -> None:
        """:func:`xcrepro.repro.figures.save` into this run's folder, and show it; a part's file is ``<id>-<part>``."""
        figures.save(fig, self.name(part).replace(":", "-"), data, self.folder)

    def save_table(self, table: pd.DataFrame, decimals: tables.Decimals = 3, part: str = "") -> None:
        """:func:`xcrepro.repro.tables.save` into this run's folder; a part's file is ``<id>-<part>``."""
        tables.save(table, self.name(part).replace(":", "-"), decimals, self.folder)


def item(id: str, /, size: str = "small", **parameters: object) -> Item:
    """The item ``id`` with all of the notebook's parameters: ``repro.item("jain16/table3", size=size, seed=seed)``.

    Raises :class:`~xcrepro.errors.ArgumentError` for an unknown id or size, and where ``parameters`` are not by name
    those in the manifest: leaving one out would let a changed run pass for the official one.
    """
    entries = manifest.load()
    if id not in entries:
        raise ArgumentError("id", "must be an item of notebooks/manifest.toml", repr(id), "`xcrepro list` shows them")
    if size not in manifest.SIZES:
        raise ArgumentError("size", f"must be {' or '.join(map(repr, manifest.SIZES))}", repr(size))
    entry = entries[id]
    known = entry.parameters["small"]
    if set(parameters) != set(known):
        raise ArgumentError(
            f"item {id}",
            f"must be given the parameters {', '.join(['size', *known])}",
            ", ".join(["size", *parameters]),
            "pass every name of the notebook's parameters cell, and list the same in the manifest",
        )
    values = {"size": size, **{name: notebooks.plain(value) for name, value in parameters.items()}}
    return Item(entry, values, official=values == entry.official(size))
