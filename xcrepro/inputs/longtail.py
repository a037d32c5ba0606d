"""Label counts, from a dataset, its twin, or the small tables in the project: what every long-tail figure starts from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xcrepro.data import registry
from xcrepro.data import twin as twins
from xcrepro.data.load import load


@dataclass(frozen=True)
class Tail:
    """name: what a figure calls it. counts: (L,) points per label. real: False for a twin."""

    name: str
    counts: np.ndarray
    real: bool


def tail(dataset: str, size: str, scale: float = 1.0, seed: int = 0, folder: str = "") -> Tail:
    """Train label counts of ``dataset``: the real set's at size paper, its twin's at size small.

    folder: where the real datasets lie, one subfolder each named by registry key; empty: the cache, downloading at need.
    """
    printed = registry.get(dataset).printed_name
    if size == "paper":
        path = Path(folder) / registry.get(dataset).name if folder else None
        return Tail(printed, load(dataset, path).label_counts, True)
    ds = twins.twin(dataset, scale=scale, seed=seed)
    return Tail(f"{printed}, twin", ds.label_counts, False)


def counted(dataset: str) -> Tail:
    """The real counts that come with the project: EURLex-4K (all points) or Bibtex (train points)."""
    table = registry.label_counts(dataset)
    column = "train" if "train" in table else "count"
    return Tail(registry.get(dataset).printed_name, table[column].to_numpy(), True)
