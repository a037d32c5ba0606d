"""Tensors of PyTorch, and label lists, as the matrices that everything here takes. No framework is imported for it.

A tensor is what has ``detach`` and ``cpu``; it may be on a device, need a gradient, be of half precision, or sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from xcrepro.core.arguments import whole_number
from xcrepro.core.errors import ArgumentError


def plain(name: str, value: Any) -> Any:
    """A tensor as a NumPy array or SciPy matrix, sharing memory if possible, bfloat16 as float32; all else as it is."""
    if not (hasattr(value, "detach") and hasattr(value, "cpu")):
        return value
    tensor = value.detach().cpu()
    layout = str(getattr(tensor, "layout", "torch.strided"))
    flat = len(tensor.shape) == 2 and (layout != "torch.sparse_coo" or len(tensor._values().shape) == 1)
    if layout in ("torch.sparse_coo", "torch.sparse_csr") and not flat:
        raise ArgumentError(name, "must have two dimensions", f"a sparse tensor of shape {tuple(tensor.shape)}")
    if layout == "torch.sparse_coo":
        # Not coalesced: that would add up what stands twice, which is refused later.
        row, column = _array(tensor._indices())
        return _matrix(name, sparse.coo_matrix, (_array(tensor._values()), (row, column)), tensor)
    if layout == "torch.sparse_csr":
        parts = tensor.values(), tensor.col_indices(), tensor.crow_indices()
        return _matrix(name, sparse.csr_matrix, tuple(map(_array, parts)), tensor)
    if layout != "torch.strided":
        raise ArgumentError(name, "must be dense, COO or CSR", layout, "call to_sparse_csr() on it")
    return _array(tensor)


def _matrix(name: str, kind: type, parts: tuple, tensor: Any) -> sparse.spmatrix:
    try:
        return kind(parts, shape=tuple(tensor.shape))
    except ValueError as error:  # PyTorch does not check what it is made of, SciPy does
        raise ArgumentError(
            name, "must be a sound sparse tensor", error, "build it anew, with indices in range"
        ) from None


def _array(tensor: Any) -> np.ndarray:
    try:
        return np.asarray(tensor.numpy())
    except TypeError:  # bfloat16, which NumPy does not know
        return np.asarray(tensor.float().numpy())


def labels_as_matrix(name: str, rows: Any, n_labels: int | None) -> Any:
    """Label lists as a csr_matrix of float32 ones (n, L); all else as it is.

    Label lists are a list or tuple that has for each point a list, tuple, set or array of label ids, or a column of such lists
    (a pandas Series, an array of objects). A list whose rows all have L numbers, 0 and 1 only, is a dense matrix instead.
    """
    if getattr(rows, "ndim", 0) == 1 and getattr(getattr(rows, "dtype", None), "kind", "") == "O":
        index = np.asarray(getattr(rows, "index", ()))
        numbered = index.dtype.kind in "iu" and (np.sort(index) == np.arange(len(index))).all()
        if numbered and (index != np.arange(len(index))).any():
            do = "sort_index() puts it in order, reset_index(drop=True) takes it as it stands"
            raise ArgumentError(name, "must have its rows in the order of its index", index[:5].tolist(), do)
        rows = list(rows)
    if (
        n_labels is None
        or not isinstance(rows, (list, tuple))
        or not all(_is_row(row) for row in rows)
        or _is_dense(rows, n_labels)
    ):
        return rows
    ids: list[int] = []
    indptr = [0]
    for row, labels in enumerate(rows):
        kept = []
        for label in labels.tolist() if isinstance(labels, np.ndarray) else labels:
            try:
                kept.append(whole_number(name, label, 0, n_labels - 1))
            except ArgumentError:
                rule = f"must hold lists of label ids from 0 to {n_labels - 1}"
                raise ArgumentError(name, rule, f"{label!r} in row {row}") from None
        kept.sort()
        if len(set(kept)) < len(kept):
            raise ArgumentError(name, "must not name a label twice in a row", f"{kept[:10]} in row {row}")
        ids.extend(kept)
        indptr.append(len(ids))
    ones = np.ones(len(ids), np.float32)
    return sparse.csr_matrix((ones, ids, indptr), shape=(len(rows), n_labels))


def _is_row(row: Any) -> bool:
    return isinstance(row, (list, tuple, set, frozenset)) or (isinstance(row, np.ndarray) and row.ndim == 1)


def _is_dense(rows: Sequence, n_labels: int) -> bool:
    """Whether all rows have L numbers, each 0 or 1 or no whole number at all."""
    if any(isinstance(row, (set, frozenset)) or len(row) != n_labels for row in rows):
        return False
    return all(value in (0, 1) or not isinstance(value, (int, np.integer)) for row in rows for value in row)
