"""The slow reader: the repository's text and the arrays of ``.npz`` files, which go to kernels, in plain Python from the
documented rules. It judges what the package's readers make of them.

Nothing of the package is used here. A reader returns plain lists, or raises :class:`Refused`; :class:`NoJudgement` where the
rules are a library's and writing them again would be copying it. The forms of others are judged by what was written into them.
"""

from __future__ import annotations

import itertools
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np

MOST = 2**31 - 1  # columns
TOO_LARGE = Fraction(2**128) - Fraction(2**103)  # rounds to a float32 infinity


class Refused(Exception):
    """The rules refuse this text."""


class NoJudgement(Exception):
    """The slow reader does not know."""


def need(holds: bool) -> None:
    """Refuse unless it holds."""
    if not holds:
        raise Refused


# -- numbers --------------------------------------------------------------------------------------------------------


def float32(text: str) -> float:
    """The nearest float32 of a decimal number, ties to even; refused where that is infinite."""
    rough, sign = abs(float(text)), -1 if text.startswith("-") else 1
    if rough < 1e-60:
        return sign * 0.0
    need(rough < 1e60)
    number = abs(Fraction(Decimal(text)))
    need(number < TOO_LARGE)
    unit = Fraction(2) ** max(math.frexp(float(number))[1] - 24, -149)
    return sign * float(round(number / unit) * unit)  # round() of a Fraction: ties to even


# -- the repository's text ------------------------------------------------------------------------------------------


def lines_of(data: bytes) -> list[bytes]:
    """Lines without their newline; no line behind the last newline."""
    lines = data.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def body(data: bytes, numbers: int) -> tuple[list[int], list[bytes]]:
    """The header's numbers and the lines behind it, comments left out."""
    need(data != b"")
    lines = lines_of(data)
    lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
    lines = [line for line in lines if not line.startswith(b"#")]
    need(bool(lines))
    tokens = re.split(rb"[ \t]+", lines[0].split(b"#")[0].strip(b" \t\r"))
    need(len(tokens) == numbers and all(token.isdigit() for token in tokens) and len(lines[0]) < 4095)
    header = [int(token) for token in tokens]
    need(all(width <= MOST for width in header[1:]))
    need(len(lines) - 1 == header[0])
    return header, lines[1:]


def row(line: bytes, labelled: bool, n_labels: int, n_ids: int) -> tuple[list[int], list[tuple[int, float]]]:
    """The labels and the entries of one line, by id."""
    text = line.decode("latin-1")
    text = text[:-1] if text.endswith("\r") and "#" not in text else text
    text = text.split("#")[0]
    need("\r" not in text)
    tokens = [token for token in re.split(r"[ \t]", text) if token]
    labels: list[int] = []
    if labelled and text[:1] not in ("", " ", "\t") and not re.match(r"[0-9]+:", text):
        tokens = [token for token in re.split(r"[ \t]", re.sub(r",[ \t]+", ",", text)) if token]
        labels = [identifier(label, n_labels) for label in tokens.pop(0).split(",")]
    entries = []
    for token in tokens:
        name, colon, value = token.partition(":")
        need(bool(colon) and re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", value) is not None)
        entries.append((identifier(name, n_ids), float32(value)))
    need(len({*labels}) == len(labels) and len({id for id, _ in entries}) == len(entries))
    return sorted(labels), sorted(entries)


def identifier(text: str, n: int) -> int:
    """A whole number below n, of at most 18 digits."""
    need(re.fullmatch(r"[0-9]{1,18}", text) is not None and int(text) < n)
    return int(text)


def xc(data: bytes) -> list:
    """``read_xc``: shapes and rows of X and Y."""
    (n, n_features, n_labels), lines = body(data, 3)
    rows = [row(line, True, n_labels, n_features) for line in lines]
    Y = [[(label, 1.0) for label in labels] for labels, _ in rows]
    return [[n, n_features], [n, n_labels], [entries for _, entries in rows], Y]


def matrix(data: bytes) -> list:
    """``read_sparse``: shape and rows."""
    (n, width), lines = body(data, 2)
    return [[n, width], [row(line, False, 0, width)[1] for line in lines]]


def labels(data: bytes) -> list:
    """``read_labels``."""
    shape, rows = matrix(data)
    need(all(value >= 0 for entries in rows for _, value in entries))
    return [shape, [[(label, 1.0) for label, value in entries if value > 0] for entries in rows]]


def scores(data: bytes) -> list:
    """``TopK.load`` of a score matrix, k = 3."""
    (_, width), rows = matrix(data)
    return ranked(rows, width, 3)


LEAST = -(2.0**128) + 2.0**103
"""Half a step below the lowest float32: from here on it is minus infinity."""


def ranked(rows: list, width: int, k: int) -> list:
    """ids and scores, best first, ties to the lowest id."""
    ids, values = [], []
    for entries in rows:
        best = sorted((-score, label) for label, score in entries if score > LEAST)[:k]
        absent = k - len(best)
        ids.append([label for _, label in best] + [-1] * absent)
        with np.errstate(over="ignore"):
            values.append([float(np.float32(-score)) for score, _ in best] + [-math.inf] * absent)
    return [width, ids, values]


def table(data: bytes) -> list[list[int]]:
    """Lines of whole numbers, all of one length; empty lines and comments left out."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    rows = [line.split() for line in lines if line.split() and not line.startswith(b"#")]
    need(all(token.isdigit() and len(token) <= 18 for tokens in rows for token in tokens))
    need(len({len(tokens) for tokens in rows}) < 2)
    return [[int(token) for token in tokens] for tokens in rows]


def filter_pairs(data: bytes) -> list:
    """``read_filter``."""
    rows = table(data)
    need(all(len(numbers) == 2 for numbers in rows))
    return [[row for row, _ in rows], [column for _, column in rows]]


def split(data: bytes) -> list[int]:
    """``read_split_columns``, the first column."""
    rows = [numbers[0] - 1 for numbers in table(data)]
    need(bool(rows) and min(rows) >= 0 and len({*rows}) == len(rows))
    return rows


# -- arrays of an .npz ----------------------------------------------------------------------------------------------


def fits(arrays: dict[str, np.ndarray]) -> bool:
    """Real numbers, the whole ones within int64."""
    return all(
        a.dtype.kind != "c" and (a.dtype.kind != "u" or not a.size or int(a.max()) < 2**63) for a in arrays.values()
    )


def stored_matrix(arrays: dict[str, np.ndarray]) -> list:
    """``read_sparse`` of a CSR, CSC or COO matrix as SciPy saves it."""
    kind = arrays["format"].tolist() if "format" in arrays else None
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    need(kind in ("csr", "csc", "coo", "dia", "bsr"))
    if kind in ("dia", "bsr") or "coords" in arrays:
        raise NoJudgement
    names = ("row", "col") if kind == "coo" else ("indices", "indptr")
    need({"shape", "data", *names} <= {*arrays} and fits(arrays))
    shape, data, first, second = (arrays[name] for name in ("shape", "data", *names))
    need(shape.shape == (2,) and shape.dtype.kind in "iu" and all(0 <= size <= MOST for size in shape.tolist()))
    need(data.dtype.kind in "biuf" and data.ndim == 1)
    need(all(ids.dtype.kind in "iu" and ids.ndim == 1 for ids in (first, second)))
    n, width = shape.tolist()
    if kind == "coo":
        need(len(first) == len(second) == len(data))
        places = list(zip(first.tolist(), second.tolist(), strict=True))
    else:
        lines = n if kind == "csr" else width
        ends = second.tolist()
        need(len(ends) == lines + 1 and len(first) == len(data) and ends[0] == 0 and ends[-1] == len(data))
        need(all(low <= high for low, high in itertools.pairwise(ends)))
        line = [at for at in range(lines) for _ in range(ends[at], ends[at + 1])]
        places = list(zip(line, first.tolist(), strict=True))
        places = places if kind == "csr" else [(row, column) for column, row in places]
    need(all(0 <= row < n and 0 <= column < width for row, column in places) and len({*places}) == len(places))
    with np.errstate(over="ignore"):
        values = data.astype(np.float64).astype(np.float32) if data.dtype.kind == "f" else data.astype(np.float32)
    need(bool(np.isfinite(values).all()))
    if n > 100_000:
        raise NoJudgement
    rows: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for (row, column), value in sorted(zip(places, values.tolist(), strict=True)):
        rows[row].append((column, value))
    return [[n, width], rows]


def places(labels: list[int], n_labels: int) -> list[int]:
    """A row's labels, none twice; -1 stands behind them only."""
    present = [label for label in labels if label >= 0]
    need(labels == present + [-1] * (len(labels) - len(present)) and len({*present}) == len(present))
    need(all(label < n_labels for label in present))
    return present


def saved_top(arrays: dict[str, np.ndarray]) -> list:
    """``TopK.load`` of what ``TopK.save`` wrote."""
    need({"ids", "scores", "n_labels"} <= {*arrays})
    if {"format", "shape", "data"} <= {*arrays} or "prediction_ids" in arrays:
        raise NoJudgement
    ids, values, n_labels = (arrays[name] for name in ("ids", "scores", "n_labels"))
    need(n_labels.shape == () and n_labels.dtype.kind in "iu" and 1 <= int(n_labels) <= MOST)
    need(fits(arrays) and ids.ndim == 2 and values.shape == ids.shape)
    need(ids.dtype.kind in "iu" and values.dtype.kind == "f")
    for labels, given in zip(ids.tolist(), values.tolist(), strict=True):
        places(labels, int(n_labels))
        need(not any(math.isnan(value) for value in given))
        need(all(low <= high for high, low in itertools.pairwise(given)))
        need(all((value <= LEAST) == (label < 0) for label, value in zip(labels, given, strict=True)))
    with np.errstate(over="ignore"):
        return [int(n_labels), ids.tolist(), values.astype(np.float32).tolist()]


def arrays_named(arrays: dict[str, np.ndarray], *names: str) -> dict[str, np.ndarray]:
    """These arrays alone; refused where one is not there."""
    need({*names} <= {*arrays})
    return {name: arrays[name] for name in names}


def streamed_matrix(arrays: dict[str, np.ndarray]) -> list:
    """``blocks`` of a CSR matrix, in one piece; a matrix without rows has no block that would tell its width."""
    arrays = arrays_named(arrays, "format", "shape", "data", "indices", "indptr")
    need(arrays["format"].tolist() in (b"csr", "csr"))
    shape, rows = stored_matrix(arrays)
    if not rows:
        raise NoJudgement
    return [shape, rows]


def saved_pair(arrays: dict[str, np.ndarray]) -> list:
    """``read_xc`` of what ``write_xc`` makes of an ``.npz`` name: shapes and rows of X and Y."""
    need("pair" in arrays and fits(arrays))
    need(str(arrays["pair"]) == "xcrepro pair 1")
    found = []
    for part in ("X_", "Y_"):
        own = {name.removeprefix(part): array for name, array in arrays.items() if name.startswith(part)}
        found.append(stored_matrix({**own, "format": np.array("csr")}))
    (size, rows), (label_size, label_rows) = found
    need(size[0] == label_size[0])
    need(all(value >= 0 for entries in label_rows for _, value in entries))
    return [size, label_size, rows, label_rows]


def block(arrays: dict[str, np.ndarray]) -> list:
    """A block file's arrays: the truth's rows, ids, scores, labels, first row, labels of the complete truth."""
    if "prediction_ids" in arrays:
        raise NoJudgement
    need(fits(arrays))
    known = arrays_named(arrays, "truth_indptr", "truth_indices", "ids", "scores", "n_labels", "first_row")
    first = known["first_row"]
    need(first.shape == () and first.dtype.kind in "iu" and int(first) >= -1)
    need(known["scores"].dtype.kind == "f")
    with np.errstate(over="ignore"):
        scores = known["scores"].astype(np.float32)
    width, ids, values = saved_top({"ids": known["ids"], "scores": scores, "n_labels": known["n_labels"]})
    labels, ends = known["truth_indices"], known["truth_indptr"]
    need(all(array.ndim == 1 and array.dtype.kind in "iu" for array in (labels, ends)))
    labels, ends = labels.tolist(), ends.tolist()
    need(len(ends) == len(ids) + 1 and ends[0] == 0 and ends[-1] == len(labels) and ends == sorted(ends))
    need(all(0 <= label < width for label in labels))
    rows = [[(label, 1.0) for label in sorted({*labels[low:high]})] for low, high in itertools.pairwise(ends)]
    complete = arrays.get("n_relevant")
    if complete is not None:
        need(complete.shape == (len(ids),) and complete.dtype.kind in "iuf")
        need(bool((complete >= 0).all() and (complete < math.inf).all()))
    return [width, rows, ids, values, int(first), None if complete is None else complete.tolist()]
