"""Read the text formats of extreme classification, and what their tools save as ``.npz``.

Every reader returns ``csr_matrix`` with float32 values, int32 indices (int64 beyond 2^31 - 1 stored values, where SciPy
asks for it), rows sorted by id, no repeated ids. Files may be plain, gzip, or a zip archive with one member; their
content decides, not their name, except for ``.npz``. What holds for all text here:

==========================================  =========================================================================
in the file                                 what happens
==========================================  =========================================================================
a blank line                                a row with nothing in it; rows are never dropped, at the end neither
a line that starts with ``#``               a comment, no row, before the header and after it
``#`` later in a line                       the rest of the line is a comment
blanks and tabs, CRLF, a byte order mark    accepted; tabs separate as blanks do, and may trail
no newline at the end                       accepted
ids out of order in a row                   sorted, and said in one warning with the count and the first line
an id twice in a row                        refused: whether to add, to keep the first or the last is not ours to guess
an id out of range, negative, ``+1``, 1.0   refused
``3`` or ``3:`` without a value             refused, not taken for 1 or 0
NaN, infinity, beyond float32               refused
values                                      rounded once, to the nearest float32 (ties to even); stored zeros stay
fewer or more rows than the header says     refused, with both numbers
==========================================  =========================================================================

A refusal is a :class:`~xcrepro.errors.DataError` with file, line, what was found and what was expected.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from xcrepro.core import threads as threading_rules
from xcrepro.core.arguments import whole_number
from xcrepro.core.data.lines import json_of, raw_lines
from xcrepro.core.data.parsing import FIRST_TOO_LARGE, Joined, Layout, exact_float32, offsets, read_rows, sort_rows
from xcrepro.core.data.sources import npz_arrays, open_source
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.matrices import MAX_COLUMNS, csr_from_arrays, row_of
from xcrepro.core.truth import warn_of_fractions

# Longer than any header; a first line beyond it is data.
_HEADER_BYTES = 4096


def read_xc(
    path: str | os.PathLike,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    one_based: bool | str = False,
    threads: int | None = None,
) -> tuple[csr_matrix, csr_matrix]:
    """Read a file of the old, one-file format: ``N D L``, then ``label,label,... feature:value feature:value ...``.

    A line that starts with a blank has no labels, and so has one that starts with a feature (its blank got lost). See the
    module for everything else. Source: xcrepo, "Data format".

    Parameters
    ----------
    path : path_like
        ``.npz`` is what :func:`~xcrepro.core.data.write.write_xc` makes of that name.
    n_features, n_labels : int, optional
        Widths. With a header they may widen its D and L (a test file that saw fewer features than its train file), never
        narrow them. A file WITHOUT a header is read only when both are given; its row count is then not checked. Exactly
        three whole numbers are a header and nothing else is: no data line looks like that.
    one_based : bool or {"features", "labels"}
        True where ids in the file start from 1, ``"features"`` or ``"labels"`` where only those do.
    threads : int, optional
        All cores by default. The result does not depend on it.

    Returns
    -------
    X : csr_matrix of float32, shape (N, D)
        The values.
    Y : csr_matrix of float32, shape (N, L)
        Ones.

    Raises
    ------
    DataMissing
        Where there is no such file.
    DataError
        For the content.
    ArgumentError
        For an argument.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = file.write_text("3 4 2\\n0,1 0:0.5 3:2\\n 1:1\\n1\\n")
    >>> X, Y = read_xc(file)
    >>> X.toarray().tolist()
    [[0.5, 0.0, 0.0, 2.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    >>> Y.toarray().tolist()
    [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """
    given = {"n_features": _width("n_features", n_features), "n_labels": _width("n_labels", n_labels)}
    if one_based not in (False, True, "features", "labels"):
        raise ArgumentError("one_based", "must be False, True, 'features' or 'labels'", repr(one_based))
    threads = thread_count(threads)
    if os.fspath(path).endswith(".npz"):
        return _read_npz_pair(path, given)
    first = {"first_id": int(one_based in (True, "features")), "first_label": int(one_based in (True, "labels"))}
    rows, (n_features, n_labels) = _read_text(path, given, threads, **first)
    Y = sorted_csr(None, rows.array("labels", np.int32), rows.indptr("label_lens"), n_labels)
    X = sorted_csr(rows.array("values", np.float32), rows.array("ids", np.int32), rows.indptr("lens"), n_features)
    return X, Y


def read_sparse(
    path: str | os.PathLike, *, n_columns: int | None = None, one_based: bool = False, threads: int | None = None
) -> csr_matrix:
    """Read a matrix of the new format: ``rows columns``, then ``id:value id:value ...``; features, labels or scores.

    Also ``.npz`` as ``scipy.sparse.save_npz`` writes it (pyxclib, PECOS and others), any layout, any number type; its
    rows are sorted without a word, for their order means nothing to SciPy. Source: xcrepo, "Data format".

    Parameters
    ----------
    path : path_like
    n_columns : int, optional
        With a header, the width may be more than it says; without a header it must be given, and the row count is not
        checked. Exactly two whole numbers are a header and nothing else is.
    one_based : bool
        Ids in the file start from 1 (text only).
    threads : int, optional
        As for :func:`read_xc`.

    Returns
    -------
    csr_matrix of float32
        Values as they are, zeros included.

    Raises
    ------
    DataMissing, DataError, ArgumentError
        As :func:`read_xc`. In an ``.npz``, a repeated place, NaN, infinity and values beyond float32 are refused, too; a
        row is named instead of a line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "score_mat.txt"
    >>> _ = file.write_text("2 3\\n0:11 2:0.25\\n\\n")
    >>> read_sparse(file).toarray().tolist()
    [[11.0, 0.0, 0.25], [0.0, 0.0, 0.0]]
    """
    return _read_matrix(path, "n_columns", n_columns, one_based, threads)


def read_labels(
    path: str | os.PathLike, *, n_labels: int | None = None, one_based: bool = False, threads: int | None = None
) -> csr_matrix:
    """Read a label matrix of the new format (``id:1``) or ``.npz``, as ones.

    A value above 0 is a label, whatever it is; a stored 0 is none and is dropped; a negative one is refused.

    Parameters
    ----------
    path, one_based, threads
        As for :func:`read_sparse`.
    n_labels : int, optional
        As ``n_columns`` there.

    Returns
    -------
    csr_matrix of float32
        Ones.

    Raises
    ------
    DataMissing, DataError, ArgumentError
        As :func:`read_sparse`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "trn_X_Y.txt"
    >>> _ = file.write_text("1 3\\n0:1 1:0 2:0.5\\n")
    >>> read_labels(file).toarray().tolist()
    [[1.0, 0.0, 1.0]]
    """
    Y = _read_matrix(path, "n_labels", n_labels, one_based, threads)
    if (Y.data == 0).any():
        Y.eliminate_zeros()
    warn_of_fractions(path, Y.data)
    Y.data[:] = 1
    return Y


def read_split(
    x_path: str | os.PathLike,
    y_path: str | os.PathLike,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    one_based: bool = False,
    threads: int | None = None,
) -> tuple[csr_matrix, csr_matrix]:
    """Read the new format's pair of files, ``trn_X_Xf.txt`` and ``trn_X_Y.txt``.

    Parameters
    ----------
    x_path, y_path : path_like
    n_features, n_labels, one_based, threads
        As for :func:`read_sparse` and :func:`read_labels`.

    Returns
    -------
    X, Y : csr_matrix of float32
        As :func:`read_xc` returns them.

    Raises
    ------
    DataMissing, DataError, ArgumentError
        As :func:`read_sparse` and :func:`read_labels`; DataError also where one has more rows than the other.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "trn_X_Xf.txt").write_text("2 3\\n0:0.5\\n1:1 2:1\\n")
    >>> _ = (folder / "trn_X_Y.txt").write_text("2 4\\n3:1\\n\\n")
    >>> X, Y = read_split(folder / "trn_X_Xf.txt", folder / "trn_X_Y.txt")
    >>> X.shape, Y.shape
    ((2, 3), (2, 4))
    """
    X = read_sparse(x_path, n_columns=n_features, one_based=one_based, threads=threads)
    Y = read_labels(y_path, n_labels=n_labels, one_based=one_based, threads=threads)
    if X.shape[0] != Y.shape[0]:
        expected, do = f"{X.shape[0]}, as in {os.fspath(x_path)}", "Take both files from the same archive and split"
        raise DataError(y_path, f"{Y.shape[0]} rows", expected, do=do)
    return X, Y


def read_jsonl_labels(path: str | os.PathLike, *, n_labels: int | None = None, relevance: bool = False) -> csr_matrix:
    """Read the labels of the raw-text format, one JSON object a line: ``target_ind`` and, where present, ``target_rel``.

    A label with relevance 0 is dropped. Ids may come in any order, as they are a list.

    Parameters
    ----------
    path : path_like
    n_labels : int, optional
        The width. The format does not hold it; without this it is the largest id + 1, which may be too few and differs
        between train and test, so give it where the matrix meets another.
    relevance : bool
        Keep ``target_rel`` as values instead of ones (1 where a line has none).

    Returns
    -------
    csr_matrix of float32

    Raises
    ------
    DataMissing
        Where there is no such file.
    DataError
        For a negative, NaN or infinite relevance, an id out of range or twice in a row, a blank line, a line that is cut.
    ArgumentError
        For an argument.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "trn.json"
    >>> _ = file.write_text('{"uid": "a", "title": "t", "target_ind": [2, 0], "target_rel": [1.0, 1.0]}\\n'
    ...                     '{"uid": "b", "title": "t", "target_ind": []}\\n')
    >>> read_jsonl_labels(file, n_labels=4).toarray().tolist()
    [[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    n_labels = _width("n_labels", n_labels)
    limit = MAX_COLUMNS if n_labels is None else n_labels
    ids: list[int] = []
    values: list[np.float32] = []
    lens: list[int] = []
    for line, text in raw_lines(path):
        if not text.strip():
            continue
        row = _jsonl_row(path, line, text, limit)
        ids.extend(row)
        values.extend(row.values())
        lens.append(len(row))
    width = max(ids, default=-1) + 1 if n_labels is None else n_labels
    data = np.array(values, np.float32) if relevance else None
    return sorted_csr(data, np.array(ids, np.int32), offsets([np.array(lens)]), width)


# -- the two text formats -------------------------------------------------------------------------------------------


def _read_matrix(
    path: str | os.PathLike, argument: str, width: int | None, one_based: bool, threads: int | None
) -> csr_matrix:
    """A matrix of the new format; it holds labels where the width's argument is n_labels."""
    width, ones = _width(argument, width), argument == "n_labels"
    if one_based not in (False, True):
        raise ArgumentError("one_based", "must be True or False", repr(one_based))
    threads = thread_count(threads)
    if os.fspath(path).endswith(".npz"):
        return clean_csr(path, csr_from_arrays(path, npz_arrays(path)), argument, width, ones)
    rows, (width,) = _read_text(path, {argument: width}, threads, first_id=int(one_based), ones=ones)
    return sorted_csr(rows.array("values", np.float32), rows.array("ids", np.int32), rows.indptr("lens"), width)


def _read_text(
    path: str | os.PathLike, given: dict[str, int | None], threads: int, **layout: int
) -> tuple[Joined, list[int]]:
    """The rows of a file, and its widths: of features and labels in the old format, of the one matrix in the new."""
    with open_source(path) as stream:
        start = begin(path, stream, given, **layout)
        rows = read_rows(path, stream, start.layout, threads=threads, **start.behind)
    _check_rows(path, rows, start)
    return rows, start.widths


@dataclass(frozen=True)
class Start:
    """What the first line of a text file says, and what was read of the body behind it; ``n_rows`` may be None."""

    layout: Layout
    widths: list[int]
    n_rows: int | None
    line: int
    behind: dict[str, Any]

    def wrong_rows(self, path: str | os.PathLike, got: str, do: str) -> DataError:
        """The error for another number of rows."""
        return DataError(path, got, f"{self.n_rows} (the header in line {self.line})", do=do)


def begin(path: str | os.PathLike, stream: BufferedIOBase, given: dict[str, int | None], **layout: int) -> Start:
    """Read the header, or find none; ``given`` are the caller's "features" and "labels", or "columns", or None."""
    names = ("features", "labels") if len(given) == 2 else ("columns",)
    line, text = _first_line(path, stream)
    header = _whole_numbers(text, 1 + len(given))
    if header is not None:
        n_rows, *said = header
        for width, name in zip(said, names, strict=True):
            if width > MAX_COLUMNS:
                raise DataError(path, f"{width} {name} in the header", f"at most {MAX_COLUMNS}", line=line)
        widths = [_widened(*wanted, width) for wanted, width in zip(given.items(), said, strict=True)]
        text, before = b"", line
    elif None not in given.values():
        n_rows, widths, before = None, [width for width in given.values() if width is not None], line - 1
    else:
        expected = f"a header '{'points' if len(given) == 2 else 'rows'} {' '.join(names)}'"
        raise _no_header(path, text, line, expected, old=len(given) == 2)
    origin = "header or argument says" if any(width is not None for width in given.values()) else "the header says"
    behind = {"begun": text, "lines_before": before}
    made = Layout(*widths, **layout | {"origin": origin})  # type: ignore[arg-type]
    return Start(made, widths, n_rows, line, behind)


def sorted_csr(data: np.ndarray | None, ids: np.ndarray, indptr: np.ndarray, width: int) -> csr_matrix:
    """Sorted, repeat-free arrays as a csr_matrix, without a copy; ``data`` None: ones."""
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    if data is None:
        data = np.ones(len(ids), np.float32)
    matrix = csr_matrix((data, ids, indptr), shape=(len(indptr) - 1, width))
    matrix.has_canonical_format = True
    return matrix


def _first_line(path: str | os.PathLike, stream: BufferedIOBase) -> tuple[int, bytes]:
    """The first line that is no comment: (its number, its first _HEADER_BYTES)."""
    line = 0
    while text := stream.readline(_HEADER_BYTES):
        line += 1
        if line == 1 and text.startswith(b"\xef\xbb\xbf"):
            # As many bytes of the line as without the mark: a longer one is cut here, and no header.
            text = text[3:] + (b"" if text.endswith(b"\n") else stream.readline(3))
        if not text.startswith(b"#"):
            return line, text
        while text and not text.endswith(b"\n"):
            text = stream.readline(_HEADER_BYTES)
    raise DataError(path, "nothing but comments" if line else "an empty file", "a header and data")


def header_size(path: str | os.PathLike, stream: BufferedIOBase) -> int:
    """How many whole numbers the first line that is no comment has, 2 or 3; 0 where it is no header."""
    text = _first_line(path, stream)[1]
    return next((count for count in (2, 3) if _whole_numbers(text, count) is not None), 0)


def _whole_numbers(text: bytes, count: int) -> list[int] | None:
    # Blanks and tabs separate, as in every other line; a vertical tab or a carriage return in the middle does not.
    tokens = re.split(rb"[ \t]+", text.split(b"#")[0].strip(b" \t\r\n"))
    if len(tokens) != count or len(text) == _HEADER_BYTES or not all(token.isdigit() for token in tokens):
        return None
    return [int(token) for token in tokens]


_SAVE = "save the matrix in it with scipy.sparse.save_npz"
_CONVERT = "xcrepro convert writes it in the repository's format, xc.formats reads it"
_OTHER_FORMATS = {
    b"\x93numpy": ("a NumPy array (.npy)", _CONVERT),
    b"\x80": ("a Python pickle", "It may run a stranger's code: where you trust it, " + _SAVE),
    b"\xfd7zxz": ("a file packed with xz", "Unpack it first"),
    b"bzh": ("a file packed with bzip2", "Unpack it first"),
    b"(\xb5/\xfd": ("a file packed with zstd", "Unpack it first"),
    b"7z\xbc\xaf": ("a 7z archive", "Unpack it first"),
    b"\xff\xfe": ("text in UTF-16", "Save it as UTF-8"),
    b"\xfe\xff": ("text in UTF-16", "Save it as UTF-8"),
    b"@relation": ("an ARFF file (Mulan, WEKA, MEKA)", _CONVERT),
    b"%%matrixmarket": ("a Matrix Market file", "scipy.io.mmread reads it: " + _SAVE),
    b"\x89hdf": ("an HDF5 file", _SAVE.capitalize()),
    b"par1": ("a Parquet file", _CONVERT),
    b"%": ("a file that begins with a comment in %, as ARFF files do (Mulan, WEKA, MEKA)", _CONVERT),
    b"sqlite format 3": ("an SQLite database", "Write its points in the repository's format first (xcrepro.write_xc)"),
    b"{": ("JSON lines", f"read_jsonl_labels reads label lists; {_CONVERT}"),
}
"""First bytes, in lower case -> what the file is and what to do, where asking for a width would lead astray."""


_TEXT_BYTES = frozenset(b"\t\n\r" + bytes(range(32, 127)))


def _is_binary(text: bytes) -> bool:
    return b"\0" in text[:100] or (b"\n" not in text and text[:1] > b"\x7f")


def _shown(text: bytes) -> str:
    if _is_binary(text):
        return "binary data"
    line = text.rstrip(b"\r\n")
    shown = line[:57].decode("utf-8", "backslashreplace")
    return repr(shown + "..." if len(line) > 57 else shown)


def other_format(text: bytes) -> tuple[str, str] | None:
    """What a file is that begins so, and what to do with it; None where nothing tells."""
    start = text[:20].lower().lstrip()
    for letters, others in ((text[0:8:2], text[1:8:2]), (text[1:8:2], text[0:8:2])):
        if len(others) > 1 and not any(others) and all(byte in _TEXT_BYTES for byte in letters):
            return _OTHER_FORMATS[b"\xff\xfe"]  # without its mark
    return next((known for magic, known in _OTHER_FORMATS.items() if start.startswith(magic)), None)


def _no_header(path: str | os.PathLike, text: bytes, line: int, expected: str, old: bool) -> DataError:
    """The error for a first line that is no header: another format is called by its name."""
    if other := other_format(text):
        return DataError(path, other[0], f"text that begins with {expected}", do=other[1])
    if _is_binary(text):
        do = f"Of a matrix in another form, {_SAVE.replace(' in it', '')}"
        return DataError(path, "binary data", f"text that begins with {expected}", do=do)
    return DataError(path, _shown(text), expected, line=line, do=_header_hint(text, old))


def _header_hint(text: bytes, old: bool) -> str:
    if old and _whole_numbers(text, 2) is not None:
        newer = "the newer format, which has one file for features and one for labels"
        return f"This looks like {newer}: read it with read_sparse or read_labels, or both with read_split"
    if not old and _whole_numbers(text, 3) is not None:
        return "This looks like the older format, with labels and features in one file: read it with read_xc"
    if b"," in text and b":" not in text:
        return "This looks like a CSV table: write its rows as 'id:value id:value ...' under the header, or as .npz"
    given = "n_features= and n_labels=" if old else "n_columns= (n_labels= for labels)"
    return f"If the file has no header, put one there, or give {given}"


CUT = "The file was probably cut: fetch it again"


def _check_rows(path: str | os.PathLike, rows: Joined, start: Start) -> None:
    n_rows = start.n_rows
    if n_rows is None or rows.n_rows == n_rows:
        return
    if rows.n_rows < n_rows:
        do = CUT
    elif not any(rows.indptr(name)[-1] > rows.indptr(name)[n_rows] for name in rows.length_names):
        do = "The rows beyond are blank lines: a blank line is a row without labels and features. Remove them"
    else:
        do = "Mend the header, or take the file that belongs to it"
    raise start.wrong_rows(path, f"{rows.n_rows} rows", do)


# -- npz ------------------------------------------------------------------------------------------------------------


def clean_csr(path: str | os.PathLike, matrix: csr_matrix, argument: str, width: int | None, ones: bool) -> csr_matrix:
    """Check the values of a loaded matrix as text is checked, and give it the package's layout."""
    width = _widened(argument, width, matrix.shape[1])
    indptr = matrix.indptr.astype(np.int64)
    ids = matrix.indices.astype(np.int32, copy=False)
    with np.errstate(over="ignore"):
        values = matrix.data.astype(np.float32, copy=False)

    for wrong, what, expected in (
        (~np.isfinite(values), "the value", "a finite number that float32 can hold"),
        (values < 0 if ones else np.zeros(0, bool), "the label value", "1, or another value above 0"),
    ):
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise DataError(path, f"{what} {matrix.data[at]} in row {row_of(indptr, at)} (rows from 0)", expected)
    if not matrix.has_canonical_format and (twice := sort_rows(np.diff(indptr), ids, values)) is not None:
        row = row_of(indptr, twice)
        raise DataError(path, f"id {ids[twice]} twice in row {row} (rows from 0)", "each id once in a row")
    return sorted_csr(values, ids, indptr, width)


# The arrays write_xc puts in an .npz.
PAIR_FORMAT = "xcrepro pair 1"


def _read_npz_pair(path: str | os.PathLike, given: dict[str, int | None]) -> tuple[csr_matrix, csr_matrix]:
    arrays = npz_arrays(path)
    if "pair" not in arrays or str(arrays["pair"]) != PAIR_FORMAT:
        found, do = f"the arrays {', '.join(sorted(arrays))}", "is read with read_sparse or read_labels"
        expected = "what write_xc saves, X and Y together"
        raise DataError(path, found, expected, do=f"One matrix (scipy.sparse.save_npz) {do}")

    def matrix(name: str, argument: str) -> csr_matrix:
        own = {key.removeprefix(name): array for key, array in arrays.items() if key.startswith(name)}
        found = csr_from_arrays(path, {**own, "format": np.array("csr")})
        return clean_csr(path, found, argument, given[argument], ones=name == "Y_")

    X, Y = matrix("X_", "n_features"), matrix("Y_", "n_labels")
    if X.shape[0] != Y.shape[0]:
        raise DataError(path, f"{X.shape[0]} rows of X and {Y.shape[0]} of Y", "as many of one as of the other")
    return X, Y


# -- JSON lines -----------------------------------------------------------------------------------------------------


def _jsonl_row(path: str | os.PathLike, line: int, text: bytes, limit: int) -> dict[int, np.float32]:
    """The labels of one line with their relevance, by rising id, zeros left out."""
    entry = json_of(text)
    if not isinstance(entry, dict) or not isinstance(entry.get("target_ind"), list):
        raise DataError(path, _shown(text), "one whole JSON object with a list 'target_ind'", line=line)
    labels = entry["target_ind"]
    relevances = entry.get("target_rel", [1.0] * len(labels))
    if not isinstance(relevances, list) or len(relevances) != len(labels):
        raise DataError(path, "a 'target_rel' that does not fit 'target_ind'", f"{len(labels)} numbers", line=line)
    pairs: dict[int, np.float32] = {}
    for label, value in zip(labels, relevances, strict=True):
        if type(label) is not int or not 0 <= label < limit:
            raise DataError(path, f"label id {label!r}", f"a whole number from 0 to {limit - 1}", line=line)
        if label in pairs:
            raise DataError(path, f"label {label} twice", "each id once in a row", line=line)
        if type(value) not in (int, float) or not 0 <= value < FIRST_TOO_LARGE:
            raise DataError(path, f"relevance {value!r} of label {label}", "0 or a finite number above", line=line)
        # A whole number may be longer than float64 can tell.
        pairs[label] = exact_float32(str(value)) if type(value) is int else np.float32(value)
    return {label: value for label, value in sorted(pairs.items()) if value > 0}


# -- arguments ------------------------------------------------------------------------------------------------------


def _width(name: str, given: int | None) -> int | None:
    return None if given is None else whole_number(name, given, 0, MAX_COLUMNS)


def _widened(name: str, given: int | None, width: int) -> int:
    if given is None:
        return width
    if given < width:
        raise ArgumentError(name, f"must be at least the file's own width, {width}", given, "leave it out to take that")
    return given


def thread_count(given: int | None) -> int:
    """How many threads to read with: what is given, checked, or as many as the process may use."""
    return threading_rules.count() if given is None else whole_number("threads", given, 1)
