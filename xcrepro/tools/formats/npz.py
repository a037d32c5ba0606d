"""``.npz`` of one SciPy sparse matrix, as ``scipy.sparse.save_npz`` writes it: PECOS, pyxclib, Renee, LightXML."""

from __future__ import annotations

import os

from scipy import sparse

from xcrepro.core.data import read, write
from xcrepro.core.data.sources import npz_arrays
from xcrepro.core.errors import ArgumentError
from xcrepro.core.matrices import csr_from_arrays
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth
from xcrepro.tools.formats.entries import of_file, ranked
from xcrepro.tools.formats.index import Index


def sniff_npz(arrays: set[str]) -> bool:
    """Whether an .npz has the arrays of a SciPy matrix."""
    return {"format", "shape", "data"} <= arrays


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """A label matrix."""
    return read.read_labels(path, n_labels=index.n_labels)


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """The best of a score matrix, compared as it stands: float64 stays float64."""
    scores = csr_from_arrays(path, npz_arrays(path))
    with of_file(path):
        return ranked(scores, k)


def read_features(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """A feature matrix."""
    return read.read_sparse(path, n_columns=index.n_features)


def write_truth(path: str | os.PathLike, Y, index: Index) -> None:
    """A label matrix."""
    write.write_sparse(_named(path), as_truth(Y).to_csr())


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """A score matrix."""
    write.write_sparse(_named(path), top.to_csr())


def write_features(path: str | os.PathLike, X, index: Index) -> None:
    """A feature matrix."""
    write.write_sparse(_named(path), X)


def _named(path: str | os.PathLike) -> str:
    path = os.fspath(path)
    if not path.endswith(".npz"):
        raise ArgumentError("path", "must end in .npz", repr(path))
    return path
