"""A block of rows in a file of its own, truth and predictions together: ``.npz``, and by extra ``.parquet`` and ``.zarr``.

All hold the same: truth as CSR offsets and labels, ranked ids and scores, L, and the number of the block's first row among
all rows, -1 where it is not known.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xcrepro.core import extras
from xcrepro.core.arguments import whole_number
from xcrepro.core.data.sources import in_known_types, npz_arrays
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.folds.rows import check_n_relevant
from xcrepro.core.matrices import MAX_COLUMNS, csr_from_arrays
from xcrepro.core.paths import atomic_path
from xcrepro.core.predictions import TopK, check_pair
from xcrepro.core.truth import as_truth

FORMAT = "xcrepro block 1"
SUFFIXES = (".npz", ".parquet", ".zarr")
_ALWAYS, _PER_ENTRY = 2**20, 1000  # places that a block may have; more for each row and prediction, each stored byte
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
    if path.is_dir() and path.suffix != ".zarr":
        found = [each for each in path.iterdir() if each.suffix in SUFFIXES and not each.name.startswith(".")]
    elif path.exists():
        found = [path]
    else:
        found = [Path(each) for each in glob.glob(os.fspath(pattern))]
    if not found:
        raise DataMissing(f"{os.fspath(pattern)}: no block file ({', '.join(SUFFIXES)}) is there")
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
        For Parquet or Zarr where the package is not installed, and another ending.
    """
    path = Path(path)
    if not path.exists():
        raise DataMissing(f"{path}: there is no such block; was it moved, or is it not written yet?")
    arrays = _of_suffix(path, {".npz": npz_arrays, ".parquet": _read_parquet, ".zarr": _read_zarr})(path)
    if "prediction_ids" in arrays:
        from xcrepro.core.predictions import read_calibration_npz

        top, Y = read_calibration_npz(path)
        return Rows(Y, top)
    if missing := [name for name in _ARRAYS if name not in arrays]:
        do = "write_block, write_blocks and `xcrepro write-blocks` make them"
        raise DataError(path, f"arrays {sorted(arrays)}", f"those of a block, also {', '.join(missing)}", do=do)
    n_labels, first_row = (_number(path, arrays, name) for name in ("n_labels", "first_row"))
    if not 1 <= n_labels <= MAX_COLUMNS or not -1 <= first_row < 2**63:
        raise DataError(path, f"n_labels {n_labels}, first_row {first_row}", f"1 to {MAX_COLUMNS}, and -1 to 2^63 - 1")
    ids, scores = arrays["ids"], arrays["scores"]
    if ids.ndim != 2 or ids.dtype.kind not in "iu" or scores.shape != ids.shape or scores.dtype.kind != "f":
        found = f"ids {ids.dtype} {ids.shape}, scores {scores.dtype} {scores.shape}"
        raise DataError(path, found, "two arrays (rows, places) of one shape, whole numbers and floats")
    indptr, indices = arrays["truth_indptr"], arrays["truth_indices"]
    parts = {"indptr": indptr, "indices": indices, "data": np.ones(indices.shape, np.float32)}
    Y = csr_from_arrays(path, {"format": np.array("csr"), "shape": np.array([len(ids), n_labels]), **parts})
    n_relevant = arrays.get("n_relevant")
    if n_relevant is not None:
        n_relevant = _complete(path, n_relevant, len(ids))
    return Rows(Y, _top(path, ids, scores, n_labels), None if first_row < 0 else first_row, n_relevant)


def _complete(path: Path, n_relevant: np.ndarray, n_rows: int) -> np.ndarray:
    """Label counts of the complete truth."""
    try:
        if n_relevant.ndim != 1 or n_relevant.dtype.kind not in "iuf":
            got = f"shape {n_relevant.shape}, dtype {n_relevant.dtype}"
            raise ArgumentError("n_relevant", "must hold numbers in one dimension", got)
        return check_n_relevant(n_relevant, n_rows)
    except ArgumentError as error:
        raise DataError(path, f"n_relevant: {error.got}", f"n_relevant, which {error.rule}") from None


def _number(path: Path, arrays: dict[str, np.ndarray], name: str) -> int:
    array = np.asarray(arrays[name])
    if array.shape != () or array.dtype.kind not in "iu":
        raise DataError(path, f"{name} of shape {array.shape} and dtype {array.dtype}", "one whole number")
    return int(array)


def _top(path: Path, ids: np.ndarray, scores: np.ndarray, n_labels: int) -> TopK:
    """The ranking as it stands in the file; kernels trust it from here on."""
    try:
        top = TopK.from_ids(ids, n_labels=n_labels)
    except ArgumentError as error:
        raise DataError(path, f"ids: {error.got}", f"ids that {error.rule}") from None
    # As everywhere, what float32 cannot hold is infinite; some bits of a NaN, refused below, warn when they are cast.
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.ascontiguousarray(scores, np.float32)
    for found, expected, wrong in (
        ("NaN", "a number", np.isnan(scores)),
        ("a score", "minus infinity where the label is -1, and nowhere else", (scores == -np.inf) != (top.ids < 0)),
        ("a score", "scores that fall along each row", _rises(scores)),
    ):
        if wrong.any():
            row, place = np.argwhere(wrong)[0]
            where = f"{found} ({scores[row, place]}) at row {row}, place {place}, label {top.ids[row, place]}"
            raise DataError(path, where, expected)
    return TopK(top.ids, scores, n_labels)


def _rises(scores: np.ndarray) -> np.ndarray:
    """Which scores stand above the one before them in the row."""
    rises = np.zeros(scores.shape, bool)
    np.greater(scores[:, 1:], scores[:, :-1], out=rises[:, 1:])
    return rises


def write_block(path: str | os.PathLike, Y, top: TopK, first_row: int | None = None, n_relevant=None) -> Path:
    """Write a block file, whole or not at all.

    Parameters
    ----------
    path : path_like
        Its ending says the format: ``.npz``, ``.parquet`` or ``.zarr`` (a folder).
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
        For truth and predictions that do not belong together, another ending, or a format that is not installed.
    """
    path, truth = Path(path), as_truth(Y)
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
    if n_relevant is not None:
        arrays["n_relevant"] = check_n_relevant(n_relevant, truth.n_rows)
    _of_suffix(path, {".npz": _write_npz, ".parquet": _write_parquet, ".zarr": _write_zarr})(path, arrays)
    return path


def _of_suffix(path: Path, functions: dict[str, Callable]) -> Callable:
    if path.suffix not in functions:
        raise ArgumentError("a block's name", f"must end in {', '.join(SUFFIXES)}", path.name)
    return functions[path.suffix]


# ---------------------------------------------------------------------------------------------- npz


def _write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with atomic_path(path) as part:
        np.savez(part, format=np.array(FORMAT), **arrays)  # packing would cost more than all else


# ---------------------------------------------------------------------------------------------- Parquet


def _pyarrow():
    extras.library("pyarrow.parquet", "or write .npz")
    return extras.library("pyarrow")


def _read_parquet(path: Path) -> dict[str, np.ndarray]:
    pa = _pyarrow()
    try:
        table = pa.parquet.read_table(path)
        about = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
        columns = {name: table.column(name).combine_chunks() for name in table.schema.names}
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:  # a text that is none; one name twice
        raise DataError(path, f"no readable Parquet file ({error})", "one", do="Make it again") from None
    if about.get("xcrepro") != FORMAT or not {"truth", "labels", "scores"} <= set(columns):
        do = "write_block, write_blocks and `xcrepro write-blocks` make them"
        raise DataError(path, f"columns {sorted(columns)} that are no block", FORMAT, do=do)
    lists, kinds = {}, {"truth": pa.types.is_integer, "labels": pa.types.is_integer, "scores": pa.types.is_floating}
    for name, is_kind in kinds.items():
        column = columns[name]
        if not pa.types.is_list(column.type) or not is_kind(column.type.value_type):
            raise DataError(path, f"column {name}: {column.type}", "lists of whole numbers, of scores floats")
        if column.null_count or column.flatten().null_count:
            raise DataError(path, f"nulls in column {name}", "lists without nulls")
        offsets = column.offsets.to_numpy().astype(np.int64)
        lists[name] = offsets - offsets[0], column.flatten().to_numpy(zero_copy_only=False)
    for name in ("truth", "labels"):
        if (odd := (lists[name][1] < 0) | (lists[name][1] > MAX_COLUMNS)).any():
            raise DataError(path, f"label {lists[name][1][odd][0]} in column {name}", "labels from 0")
    (starts, labels), (score_starts, scores) = lists["labels"], lists["scores"]
    if not np.array_equal(starts, score_starts):
        row = int(np.argmax(starts != score_starts)) - 1
        raise DataError(path, f"other numbers of labels and scores in row {row}", "a score a label")
    try:
        k, n_labels, first_row = (int(about[name]) for name in ("k", "n_labels", "first_row"))
    except (KeyError, ValueError) as error:
        raise DataError(path, f"no k, n_labels, first_row ({error!r})", "three whole numbers") from None
    sizes = np.diff(starts)
    if sizes.size and sizes.max() > k:
        raise DataError(path, f"{sizes.max()} predictions in row {sizes.argmax()}", f"at most k = {k}")
    if k < 1 or k * max(1, sizes.size) > _ALWAYS + _PER_ENTRY * (sizes.size + labels.size):
        # A few bytes may claim any number of places.
        found = f"k = {k:,} of {sizes.size:,} rows with {labels.size:,} predictions"
        raise DataError(path, found, "1 or more, and places that are not nearly all empty", do="Write it as .npz")
    ids, values = np.full((sizes.size, k), -1, np.int32), np.full((sizes.size, k), -np.inf, scores.dtype)
    present = np.arange(k) < sizes[:, None]
    ids[present], values[present] = labels, scores
    arrays = {"truth_indptr": lists["truth"][0], "truth_indices": lists["truth"][1], "ids": ids, "scores": values}
    arrays |= {"n_labels": np.asarray(n_labels), "first_row": np.asarray(first_row)}
    if "n_relevant" in columns:
        column = columns["n_relevant"]
        if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise DataError(path, f"column n_relevant: {column.type}, {column.null_count} nulls", "numbers")
        arrays["n_relevant"] = column.to_numpy(zero_copy_only=False)
    return arrays


def _write_parquet(path: Path, arrays: dict[str, np.ndarray]) -> None:
    pa = _pyarrow()
    present = arrays["ids"] >= 0
    starts = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    columns = {
        "truth": (arrays["truth_indptr"], arrays["truth_indices"]),
        "labels": (starts, arrays["ids"][present]),
        "scores": (starts, arrays["scores"][present]),
    }
    made = {
        name: pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))
        for name, (offsets, values) in columns.items()
    }
    if "n_relevant" in arrays:
        made["n_relevant"] = pa.array(arrays["n_relevant"])
    about = {"xcrepro": FORMAT, "k": str(arrays["ids"].shape[1])}
    about |= {name: str(int(arrays[name])) for name in ("n_labels", "first_row")}
    with atomic_path(path) as part:
        pa.parquet.write_table(pa.table(made).replace_schema_metadata(about), part)


# ---------------------------------------------------------------------------------------------- Zarr


def _zarr():
    return extras.library("zarr", "or write .npz")


def _read_zarr(path: Path) -> dict[str, np.ndarray]:
    zarr = _zarr()
    try:
        group = zarr.open_group(str(path), mode="r")
        if group.attrs.get("format") != FORMAT:
            raise DataError(path, f"a Zarr group of format {group.attrs.get('format')!r}", FORMAT)
        stored = sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and file.name != "zarr.json")
        arrays = {}
        for name, array in group.arrays():
            if array.size > _ALWAYS + _PER_ENTRY * stored:  # what is not stored is filled in, each chunk looked for
                found = f"{name} of shape {array.shape} in {stored:,} bytes"
                raise DataError(path, found, "places that are not nearly all empty", do="Write it as .npz")
            arrays[name] = in_known_types(array[...])
        numbers = {name: group.attrs[name] for name in ("n_labels", "first_row")}
        return arrays | {name: np.asarray(number) for name, number in numbers.items()}
    except DataError:
        raise
    except Exception as error:  # Zarr and its codecs have many ways to say that a file is damaged
        raise DataError(path, f"no readable Zarr group ({error})", "a block", do="Make it again") from None


def _write_zarr(path: Path, arrays: dict[str, np.ndarray]) -> None:
    zarr = _zarr()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        group = zarr.open_group(str(part / "new"), mode="w")
        for name, array in arrays.items():
            if np.ndim(array):
                group.create_array(name, data=array)
        group.attrs.update({"format": FORMAT} | {name: int(arrays[name]) for name in ("n_labels", "first_row")})
        if path.exists():
            os.replace(path, part / "old")
        os.replace(part / "new", path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def content_stamp(path: Path) -> list:
    """What tells whether a block file is still the same: place, size and time of change; of a folder, of all in it."""
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    return [os.path.abspath(path), *((each.name, each.stat().st_size, each.stat().st_mtime_ns) for each in files)]
