"""Tensors of PyTorch, and label lists, as the matrices that everything here takes. No framework is imported for it.

A tensor is what has ``detach`` and ``cpu``; it may be on a device, need a gradient, be of half precision, sparse (COO or CSR).
Arrays of other frameworks go through NumPy, which asks them for theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from xcrepro.arguments import whole_number
from xcrepro.errors import ArgumentError


def plain(name: str, value: Any) -> Any:
    """A tensor as a NumPy array or SciPy matrix; all else as it is.

    Parameters
    ----------
    name : str
        What errors call the argument.
    value : object
        What the caller gave. A tensor on the CPU shares its memory with the result where it can.

    Returns
    -------
    ndarray, csr_matrix or coo_matrix for a tensor; ``value`` otherwise
        bfloat16 becomes float32, which holds it.

    Raises
    ------
    ArgumentError
        For a sparse tensor of another layout, or of other than two dimensions.
    """
    if not (hasattr(value, "detach") and hasattr(value, "cpu")):
        return value
    tensor = value.detach().cpu()
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout == "torch.sparse_coo":
        # Not coalesced: that would add up what stands twice, which is refused later.
        places, values = tensor._indices(), _array(tensor._values())
        if len(tensor.shape) != 2 or values.ndim != 1:
            raise ArgumentError(name, "must have two dimensions", f"a sparse tensor of shape {tuple(tensor.shape)}")
        row, column = _array(places)
        return _matrix(name, sparse.coo_matrix, (values, (row, column)), tensor)
    if layout == "torch.sparse_csr":
        if len(tensor.shape) != 2:
            raise ArgumentError(name, "must have two dimensions", f"a sparse tensor of shape {tuple(tensor.shape)}")
        parts = tensor.values(), tensor.col_indices(), tensor.crow_indices()
        return _matrix(name, sparse.csr_matrix, tuple(_array(part) for part in parts), tensor)
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
    """Label lists as a matrix; all else as it is.

    Label lists are a list or tuple that has for each point a list, tuple, set or array of label ids. A list whose rows all
    have L numbers, 0 and 1 alone, is a dense matrix instead: no point has a label twice, so it could be label lists only where
    L is 1 or 2.

    Parameters
    ----------
    name : str
        What errors call the argument.
    rows : object
        What the caller gave.
    n_labels : int, optional
        L; None: ``rows`` are returned as they are.

    Returns
    -------
    csr_matrix of float32, shape (n, L), for label lists; ``rows`` otherwise
        Ones.

    Raises
    ------
    ArgumentError
        For an id out of range or twice in a row, or what is none; the row is named.

    Examples
    --------
    >>> labels_as_matrix("Y", [[1, 5], [2], []], 6).toarray().astype(int)
    array([[0, 1, 0, 0, 0, 1],
           [0, 0, 1, 0, 0, 0],
           [0, 0, 0, 0, 0, 0]])
    >>> labels_as_matrix("Y", [[0, 1, 1], [1, 0, 0]], 3)
    [[0, 1, 1], [1, 0, 0]]
    >>> labels_as_matrix("Y", [[1, 6]], 6)
    Traceback (most recent call last):
    xcrepro.errors.ArgumentError: Y must hold lists of label ids from 0 to 5; got 6 in row 0
    """
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
