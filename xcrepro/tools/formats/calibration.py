"""The interchange file of the calibration@k authors, an ``.npz`` with the predictions and the truth of the same rows."""

from __future__ import annotations

import os

from scipy import sparse

from xcrepro.core.predictions import TopK, read_calibration_npz
from xcrepro.tools.formats.index import Index


def sniff_npz(arrays: set[str]) -> bool:
    """Whether an .npz has its arrays."""
    return "prediction_ids" in arrays


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Its ``labels``."""
    return read_calibration_npz(path, index.n_labels)[1]


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """Its ``prediction_ids`` and ``scores``."""
    top = read_calibration_npz(path, index.n_labels)[0]
    return top if k is None else top.head(k)
