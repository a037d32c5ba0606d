"""Label counts, from a dataset, its twin with or without its points, or the small tables in the project: what every
long-tail figure starts from."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from xcrepro import arithmetic
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin, expected_observed_counts
from xcrepro.inputs import datasets


@dataclass(frozen=True)
class Tail:
    """Points per label.

    Attributes
    ----------
    name : str
        What a figure calls it.
    counts : int array, (L,)
        Points per label, in the order of the label ids.
    real : bool
        False for a twin.
    whole : bool
        False for a twin of less than its dataset's points: counts are smaller, rare labels fall out.
    """

    name: str
    counts: np.ndarray
    real: bool
    whole: bool = True


def from_dataset(ds: Dataset) -> Tail:
    """The train label counts of a dataset or a twin."""
    real = not isinstance(ds, Twin)
    name = ds.entry.printed_name if ds.entry else ds.name
    return Tail(name if real else f"{name}, twin", ds.label_counts, real, real or ds.n_train >= ds.entry.n_train)


def tail(dataset: str, size: str, scale: float = 1.0, seed: int = 0, folder: str | os.PathLike = "") -> Tail:
    """Train label counts of ``dataset``: of the real set where ``folder`` is given or at size paper, else of its twin.

    Parameters
    ----------
    dataset, size, scale, seed
        As for :func:`xcrepro.inputs.datasets.pick`.
    folder : path
        Where real datasets lie, one subfolder each named by its key (:func:`xcrepro.inputs.datasets.subfolder`).

    Returns
    -------
    Tail
    """
    return from_dataset(datasets.pick(dataset, size, scale, seed, datasets.subfolder(folder, dataset)))


def drawn(dataset: str, scale: float = 1.0, seed: int = 0) -> Tail:
    """Label counts as a twin has them, drawn alone: no points, so that a second does for the largest dataset.

    Each count is drawn by itself, Poisson, about what is expected of the twin; a label that comes to no point is none. A twin's
    own counts come of two draws of its points: it has up to some percent more or fewer labels than this.

    Parameters
    ----------
    dataset, scale, seed
        As for :func:`xcrepro.twin`.

    Returns
    -------
    Tail

    Examples
    --------
    >>> tail = drawn("amazon-670k")
    >>> tail.name, tail.real, tail.whole, int(tail.counts.min())
    ('Amazon-670K, twin', False, True, 1)
    """
    counts = arithmetic.poissons(seed, expected_observed_counts(dataset, scale))
    return Tail(f"{registry.get(dataset).printed_name}, twin", counts[counts > 0], False, scale == 1)


def counted(dataset: str) -> Tail:
    """The real counts that come with the project.

    Parameters
    ----------
    dataset : str
        EURLex-4K (all points) or Bibtex (train points), by any of its names.

    Returns
    -------
    Tail

    Raises
    ------
    DataMissing
        For a dataset without such a table.
    """
    table = registry.label_counts(dataset)
    column = "train" if "train" in table else "count"
    return Tail(registry.get(dataset).printed_name, table[column].to_numpy(), True)
