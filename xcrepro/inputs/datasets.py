"""Which data an item runs on: a real dataset from the reader's folder or the cache, or its synthetic twin."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from xcrepro import propensity
from xcrepro.data.dataset import Dataset
from xcrepro.data.load import load
from xcrepro.data.twin import Twin, twin


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


def weights(ds: Dataset) -> np.ndarray:
    """Inverse propensities of the dataset's labels from its train counts, with its A and B."""
    return propensity.inverse(ds.label_counts, ds.n_train, ds.A, ds.B)
