"""A block of rows in an ``.npz`` of its own: what :meth:`TopK.save` writes, truth as CSR offsets and labels, and the number of
the block's first row among all rows, -1 where it is not known."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xcrepro.core.accumulators.rows import check_n_relevant
from xcrepro.core.arguments import whole_number
from xcrepro.core.data.sources import npz_arrays
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.matrices import csr_from_arrays
from xcrepro.core.paths import atomic_path
from xcrepro.core.predictions import TopK, check_pair, read_calibration_npz, read_saved
from xcrepro.core.truth import as_truth

FORMAT = "xcrepro block 1"
_ARRAYS = ("truth_indptr", "truth_indices", "ids", "scores", "n_labels", "first_row")


@dataclass(frozen=True)
class Rows:
    """What a block holds; ``n_relevant``, labels of the complete truth, is for metrics that need them."""

    Y: object
    top: TopK
    first_row: int | None = None
    n_relevant: np.ndarray | None = None


def block_paths(pattern: str | os.PathLike) -> list[Path]:
    """The block files that a pattern or a folder names.

    Parameters
    ----------
    pattern : path_like
        A folder, for all block files in it, one file, or a pattern such as ``"blocks/*.npz"``.

    Returns
    -------
    list of Path
        By name; never empty.

    Raises
    ------
    DataMissing
        Where there are none.
    """
    path = Path(pattern)
    if path.is_dir():
        found = [each for each in path.iterdir() if each.suffix == ".npz" and not each.name.startswith(".")]
    elif path.exists():
        found = [path]
    else:
        found = [Path(each) for each in glob.glob(os.fspath(pattern))]
    if not found:
        raise DataMissing(f"{os.fspath(pattern)}: no block file (.npz) is there")
    return sorted(found)


def read_block(path: str | os.PathLike) -> Rows:
    """Read a block file.

    Parameters
    ----------
    path : path_like
        What :func:`write_block` made; or an ``.npz`` of the calibration@k authors, which holds truth and predictions, too
        (its first row is not known, and L is what its largest label says: give all of one truth).

    Returns
    -------
    Rows

    Raises
    ------
    DataMissing
        Where nothing is there.
    DataError
        For a damaged file, and content that breaks a rule, with row (in the block, from 0) and label.
    ArgumentError
        For another ending.
    """
    path = Path(path)
    if not path.exists():
        raise DataMissing(f"{path}: there is no such block; was it moved, or is it not written yet?")
    _check_name(path)
    arrays = npz_arrays(path)
    if "prediction_ids" in arrays:
        top, Y = read_calibration_npz(path)
        return Rows(Y, top)
    if missing := [name for name in _ARRAYS if name not in arrays]:
        do = "write_block, write_blocks and `xcrepro write-blocks` make them"
        raise DataError(path, f"arrays {sorted(arrays)}", f"those of a block, also {', '.join(missing)}", do=do)
    top, first_row = read_saved(path, arrays), arrays["first_row"]
    if first_row.shape != () or first_row.dtype.kind not in "iu" or not -1 <= int(first_row) < 2**63:
        found = f"first_row {first_row}" if first_row.shape == () else f"first_row of shape {first_row.shape}"
        raise DataError(path, found, "one whole number from 0, or -1 where it is not known")
    indices = arrays["truth_indices"]
    parts = {"indptr": arrays["truth_indptr"], "indices": indices, "data": np.ones(indices.shape, np.float32)}
    Y = csr_from_arrays(path, {"format": np.array("csr"), "shape": np.array([len(top), top.n_labels]), **parts})
    n_relevant = arrays.get("n_relevant")
    if n_relevant is not None:
        n_relevant = _complete(path, n_relevant, len(top))
    return Rows(Y, top, None if first_row < 0 else int(first_row), n_relevant)


def _complete(path: Path, n_relevant: np.ndarray, n_rows: int) -> np.ndarray:
    """Label counts of the complete truth."""
    try:
        if n_relevant.ndim != 1 or n_relevant.dtype.kind not in "iuf":
            got = f"shape {n_relevant.shape}, dtype {n_relevant.dtype}"
            raise ArgumentError("n_relevant", "must hold numbers in one dimension", got)
        return check_n_relevant(n_relevant, n_rows)
    except ArgumentError as error:
        raise DataError(path, f"n_relevant: {error.got}", f"n_relevant, which {error.rule}") from None


def write_block(path: str | os.PathLike, Y, top: TopK, first_row: int | None = None, n_relevant=None) -> Path:
    """Write a block file, whole or not at all.

    Parameters
    ----------
    path : path_like
        It ends in ``.npz``.
    Y : sparse matrix or array_like, shape (n, L)
        Truth.
    top : TopK
        Its predictions.
    first_row : int, optional
        The number of the first row among all rows.
    n_relevant : array_like of float, shape (n,), optional
        Labels of the complete truth, where a metric will need them.

    Returns
    -------
    Path

    Raises
    ------
    ArgumentError
        For truth and predictions that do not belong together, another ending.
    """
    path, truth = Path(path), as_truth(Y)
    _check_name(path)
    check_pair(truth, top)
    first = -1 if first_row is None else whole_number("first_row", first_row)
    start, stop = int(truth.indptr[0]), int(truth.indptr[-1])
    arrays = {
        "truth_indptr": truth.indptr.astype(np.int64) - start,
        "truth_indices": truth.indices[start:stop].astype(np.int32, copy=False),
        "ids": np.ascontiguousarray(top.ids),
        "scores": np.ascontiguousarray(top.scores),
        "n_labels": np.int64(truth.n_labels),
        "first_row": np.int64(first),
    }
    if top.outside:
        arrays["outside"] = np.int64(top.outside)
    if n_relevant is not None:
        arrays["n_relevant"] = check_n_relevant(n_relevant, truth.n_rows)
    with atomic_path(path) as part:
        np.savez(part, format=np.array(FORMAT), **arrays)  # packing would cost more than all else
    return path


def _check_name(path: Path) -> None:
    if path.suffix != ".npz":
        raise ArgumentError("a block's name", "must end in .npz", path.name)
