"""Which data an item runs on: a real dataset from the reader's folder or the cache, or its synthetic twin."""

from __future__ import annotations

from pathlib import Path

from xcrepro.data.dataset import Dataset
from xcrepro.data.load import load
from xcrepro.data.twin import Twin, twin
from xcrepro.errors import ArgumentError


def pick(dataset: str, size: str = "small", scale: float = 1.0, seed: int = 0, folder: str = "") -> Dataset:
    """The real ``dataset`` where ``folder`` is given or at size paper (from the cache, downloading at need), else its twin.

    folder: the dataset's own folder. A dataset that the registry does not know is taken as it is: a reader's own.
    scale, seed: of the twin (see :func:`xcrepro.twin`); they do nothing for real data.
    """
    if folder:
        return load(dataset, Path(folder).expanduser(), check=False)
    if size == "paper":
        return load(dataset)
    return twin(dataset, scale=scale, seed=seed)


def origin(ds: Dataset) -> str:
    """One line for a notebook: what the data are, and whether they are real."""
    kind = "SYNTHETIC TWIN, not the real dataset" if isinstance(ds, Twin) else "real data"
    n_train, n_labels = ds.train.Y.shape
    return f"{ds.name} ({kind}): {n_train:,} train and {ds.test.Y.shape[0]:,} test points, {n_labels:,} labels"


def registry_name(ds: Dataset) -> str:
    """The dataset's key in the registry, for a twin that of its original."""
    return ds.name.partition("@")[0]


def need_twin(ds: Dataset, why: str) -> Twin:
    """``ds`` as a twin; ArgumentError, with ``why``, for real data, of which the truth behind the labels is not known."""
    if not isinstance(ds, Twin):
        raise ArgumentError(
            "folder", f"must be empty here: {why}", ds.name, "this part runs on the synthetic twin only"
        )
    return ds
