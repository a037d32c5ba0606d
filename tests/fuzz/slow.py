"""Slow readers, one a form of text, in plain Python from the documented rules: they judge what the package's readers make of
it.

Nothing of the package is used here. A reader returns plain lists, or raises :class:`Refused`; :class:`NoJudgement` where the
rules are a library's (quotes in CSV, say) and writing them again would be copying it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
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


def real(text: str) -> float:
    """A number of the formats of others: no NaN, infinity spelt out."""
    form = r"[+-]?([0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|inf(inity)?)"
    need(text.isascii() and re.fullmatch(form, text.lower()) is not None)
    value = float(text)
    need("i" in text.lower() or not math.isinf(value))
    return value


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


def row_ids(data: bytes) -> list[str]:
    """``read_row_ids``: a line each, none twice."""
    texts = decoded(data)
    need(len({*texts}) == len(texts))
    return texts


def jsonl_labels(data: bytes) -> list:
    """``read_jsonl_labels`` with ``n_labels=12`` and relevances."""
    need(data != b"")
    rows = []
    for line in lines_of(data):
        if not line.strip():
            continue
        entry = as_json(line + b"\n")
        need(isinstance(entry, dict) and isinstance(entry.get("target_ind"), list))
        names = entry["target_ind"]
        values = entry.get("target_rel", [1.0] * len(names))
        need(isinstance(values, list) and len(values) == len(names))
        need(all(type(label) is int and 0 <= label < 12 for label in names) and len({*names}) == len(names))
        need(all(type(value) in (int, float) and 0 <= value < TOO_LARGE for value in values))
        pairs = sorted(zip(names, map(float, np.array(values, np.float32)), strict=True))
        rows.append([(label, value) for label, value in pairs if value > 0])
    return [[len(rows), 12], rows]


def as_json(text: str | bytes) -> object:
    """JSON, or refused."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Refused from None


# -- the formats of others: 12 labels -------------------------------------------------------------------------------


def decoded(data: bytes) -> list[str]:
    """The lines of UTF-8 text, without their ends."""
    need(data != b"")
    try:
        texts = [line.decode("utf-8") for line in lines_of(data)]
    except UnicodeDecodeError:
        raise Refused from None
    if texts:
        texts[0] = texts[0].removeprefix("\ufeff")
    return [text.rstrip("\r") for text in texts]


def gathered(pairs: list[tuple[int, int, float]], n: int | None) -> list[list[tuple[int, float]]]:
    """Rows of (label, score) from (row, label, score); n None: rows 0, 1, 2, ... each."""
    seen = {row for row, _, _ in pairs}
    if n is None:
        n = len(seen)
        need(seen == {*range(n)})
    rows: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for row, label, score in pairs:
        need(0 <= label < 12)
        rows[row].append((label, score))
    need(all(len({label for label, _ in entries}) == len(entries) for entries in rows))
    return rows


def of_truth(rows: list) -> list:
    """Rows as a truth: what is above 0; a negative value is refused."""
    need(all(value >= 0 for entries in rows for _, value in entries))
    return [[len(rows), 12], [[(label, 1.0) for label, value in sorted(entries) if value > 0] for entries in rows]]


def of_scores(rows: list) -> list:
    """Rows as predictions, as many places as the longest row has."""
    return ranked(rows, 12, max([1, *map(len, rows)]))


def whole(text: str | int) -> int:
    """A label or row by its number."""
    if isinstance(text, str):
        need(re.fullmatch(r"0|[1-9][0-9]{0,17}", text) is not None)
    need(not isinstance(text, bool) and 0 <= int(text) < 10**18)
    return int(text)


def pairs(data: bytes) -> list:
    """omikuji's and napkinXC's predictions."""
    found = []
    texts = decoded(data)
    for row, text in enumerate(texts):
        for token in text.split():
            label, colon, score = token.rpartition(":")
            need(bool(colon))
            found.append((row, whole(label), real(score)))
    return of_scores(gathered(found, len(texts)))


def fasttext(data: bytes) -> list:
    """fastText's predictions, with scores or without."""
    found = []
    texts = decoded(data)
    for row, text in enumerate(texts):
        words = text.split()
        bare = all(word.startswith("__label__") for word in words)
        pairs = [(word, str(-1 - place)) for place, word in enumerate(words)]
        if not bare:
            need(len(words) % 2 == 0)
            pairs = list(zip(words[::2], words[1::2], strict=True))
        for word, score in pairs:
            need(word.startswith("__label__"))
            found.append((row, whole(word[9:]), real(score)))
    return of_scores(gathered(found, len(texts)))


def dictionary(data: bytes) -> list:
    """An object of objects of numbers, rows 0 to n - 1."""

    def once(pairs):
        need(len(dict(pairs)) == len(pairs))
        return dict(pairs)

    need(data != b"")
    try:
        table = json.loads(data, object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise Refused from None
    need(isinstance(table, dict) and all(isinstance(labels, dict) for labels in table.values()))
    need({whole(row) for row in table} == {*range(len(table))})
    found = []
    for row, labels in table.items():
        for label, score in labels.items():
            need(finite(score))
            found.append((whole(row), whole(label), float(score)))
    return of_scores(gathered(found, len(table)))


def lists(data: bytes) -> list:
    """One JSON list of lists, as predictions."""
    need(data != b"")
    rows = as_json(data)
    need(isinstance(rows, list) and all(isinstance(labels, list) for labels in rows))
    kinds = {isinstance(label, list) for labels in rows for label in labels}
    need(len(kinds) < 2)
    found = []
    for row, labels in enumerate(rows):
        for place, label in enumerate(labels):
            score = -1.0 - place
            if isinstance(label, list):
                need(len(label) == 2 and finite(label[1]))
                label, score = label
            need(type(label) is int)
            found.append((row, whole(label), float(score)))
    return of_scores(gathered(found, len(rows)))


def finite(value: object) -> bool:
    """A real number of JSON that float64 holds."""
    return type(value) in (int, float) and abs(value) <= 1.7976931348623157e308


def jsonl(data: bytes) -> list:
    """An object a row, as predictions."""
    found, scored = [], None
    texts = [text for text in decoded(data) if text.strip()]
    for row, text in enumerate(texts):
        record = as_json(text)
        need(isinstance(record, dict))
        if "results" in record:
            labels = record["results"]
            need(isinstance(labels, list))
            values = [label.get("score") if isinstance(label, dict) else None for label in labels]
        else:
            need("labels" in record and isinstance(record["labels"], list))
            labels, has = record["labels"], "scores" in record
            if labels:
                scored = has if scored is None else scored
                need(has == scored)
            values = record["scores"] if has else [-place - 1 for place in range(len(labels))]
            need(isinstance(values, list) and len(labels) == len(values))
        for label, value in zip(labels, values, strict=True):
            if isinstance(label, dict):
                label = label.get("uri") if label.get("label") is None else label["label"]
            need(finite(value) and type(label) is int)  # a text is a name
            found.append((row, whole(label), float(value)))
    return of_scores(gathered(found, len(texts)))


def csv(data: bytes, score: str = "score") -> list:
    """``row,label,score``; no judgement about quotes."""
    texts = decoded(data)
    if any('"' in text or "\r" in text or "\0" in text for text in texts):
        raise NoJudgement
    separator = max(",\t;", key=texts[0].strip().count)
    if separator != max(",\t;", key=texts[0].count):
        raise NoJudgement
    columns = [name.strip() for name in texts[0].strip().split(separator)]
    need(all(columns.count(name) == 1 for name in ("row", "label", "score")))
    found = []
    for text in texts[1:]:
        if not text:
            continue
        cells = [cell.lstrip(" ") for cell in text.split(separator)]
        need(len(cells) == len(columns))
        record = dict(zip(columns, cells, strict=True))
        found.append((whole(record["row"]), whole(record["label"]), real(record["score"].strip())))
    return of_scores(gathered(found, None))


def columns(data: bytes, n: int, value: int) -> list[tuple[int, int, float]]:
    """(row, label, number) of a TREC file, whose lines have so many columns, the number in this one."""
    lines = [text.split() for text in decoded(data) if text.split() and not text.split()[0].startswith("#")]
    need(all(len(cells) == n for cells in lines))
    need(n < 6 or len({cells[5] for cells in lines}) < 2)  # one run
    return [(whole(cells[0]), whole(cells[2]), real(cells[value])) for cells in lines]


def trec_run(data: bytes) -> list:
    """``row Q0 label rank score tag``."""
    return of_scores(gathered(columns(data, 6, 4), None))


def trec_qrels(data: bytes) -> list:
    """``row 0 label relevance``."""
    return of_truth(gathered([(row, label, max(value, 0.0)) for row, label, value in columns(data, 4, 3)], None))


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


def calibration(arrays: dict[str, np.ndarray]) -> list:
    """The predictions of the calibration@k authors' file: ranked by score, ties to the lowest label."""
    names = ("prediction_ids", "scores", "true_positives", "labels")
    need({*names} <= {*arrays} and fits(arrays))
    ids, scores, marked, pairs = (arrays[name] for name in names)
    need(all(arrays[name].dtype.kind in kinds for name, kinds in zip(names, ("iu", "iuf", "biuf", "iu"), strict=True)))
    need(pairs.ndim == 2 and pairs.shape[1] == 2 and ids.ndim == 2 and scores.shape == marked.shape == ids.shape)
    relevant = {(row, label) for row, label in pairs.tolist()}
    largest = max([0, *ids.reshape(-1).tolist(), *(label for _, label in relevant)])
    need(largest < MOST and all(0 <= row < len(ids) and label >= 0 for row, label in relevant))
    rows = []
    for row, (labels, values) in enumerate(zip(ids.tolist(), scores.astype(np.float64).tolist(), strict=True)):
        present = places(labels, MOST)
        need(not any(math.isnan(value) for value in values[: len(present)]))
        need([(row, label) in relevant for label in labels] == marked[row].astype(bool).tolist())
        rows.append(list(zip(present, values, strict=False)))
    return ranked(rows, largest + 1, ids.shape[1])


def dense(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The array of an ``.npy``, which is the first, as float64."""
    need(bool(arrays))
    array = next(iter(arrays.values()))
    need(array.ndim == 2 and array.dtype.kind in "biuf" and max(array.shape) <= MOST)
    if array.dtype.kind in "iu" and array.size and int(np.abs(array.astype(object)).max()) > 2**53:
        raise NoJudgement  # which float64 would round once more
    return array.astype(np.float64)


def dense_truth(arrays: dict[str, np.ndarray]) -> list:
    """A dense array as a truth."""
    rows = dense(arrays).tolist()
    if any(math.isinf(value) for row in rows for value in row):
        raise NoJudgement
    need(all(value >= 0 for row in rows for value in row))
    array = next(iter(arrays.values()))
    return [[*array.shape], [[(label, 1.0) for label, value in enumerate(row) if value > 0] for row in rows]]


def dense_features(arrays: dict[str, np.ndarray]) -> list:
    """A dense array as features."""
    with np.errstate(over="ignore"):
        array = dense(arrays).astype(np.float32)
    need(bool(np.isfinite(array).all()))
    return [[*array.shape], [[(column, value) for column, value in enumerate(row) if value] for row in array.tolist()]]


def dense_predictions(arrays: dict[str, np.ndarray]) -> list:
    """A dense array as scores: minus infinity is not predicted."""
    array = dense(arrays)
    need(not np.isnan(array).any())
    if not array.shape[1]:
        raise NoJudgement
    rows = [[(label, value) for label, value in enumerate(row) if value > -math.inf] for row in array.tolist()]
    return ranked(rows, array.shape[1], max([1, *map(len, rows)]))


def arrays_named(arrays: dict[str, np.ndarray], *names: str) -> dict[str, np.ndarray]:
    """These arrays alone; refused where one is not there."""
    need({*names} <= {*arrays})
    return {name: arrays[name] for name in names}


def streamed_matrix(arrays: dict[str, np.ndarray]) -> list:
    """``blocks`` of a CSR matrix, in one piece; a matrix without rows has no block that would tell its width."""
    arrays = arrays_named(arrays, "format", "shape", "data", "indices", "indptr")
    need(arrays["format"].tolist() in (b"csr", "csr"))
    return with_rows(stored_matrix(arrays))


def streamed_text(data: bytes) -> list:
    """``blocks`` of text, in one piece: the header's numbers say which of the two formats it is."""
    for reader in (matrix, xc):
        with contextlib.suppress(Refused):
            return with_rows(reader(data))
    raise Refused


def with_rows(matrix: list) -> list:
    """What was read, where there is a row."""
    if not matrix[-1]:
        raise NoJudgement
    return matrix


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


# -- tables of Parquet ----------------------------------------------------------------------------------------------


def columns_of(table) -> dict[str, list]:
    """A table's columns as Python has their values."""
    if len({*table.column_names}) < len(table.column_names):
        raise NoJudgement
    try:
        return table.to_pydict()
    except (ValueError, OverflowError):  # a text that is none, a time that Python has not
        raise NoJudgement from None


def table_pairs(table, scored: bool) -> tuple[list[tuple[int, int, float]], int | None]:
    """(row, label, score) of a table, and how many rows it has where each has a line."""
    columns = columns_of(table)
    lists = "labels" in columns
    wanted = (["labels"] if lists else ["row", "label"]) + (["scores"] if lists else ["score"]) * scored
    need({*wanted} <= {*columns})
    need(scored or not {"score", "scores"} & {*columns})
    records = list(zip(*(columns[name] for name in wanted), strict=True))
    if not lists:
        places = [(row, [label], [score[0] if score else 1.0]) for row, label, *score in records]
    else:
        places = [(row, labels, *(given or [None])) for row, (labels, *given) in enumerate(records)]
    found = []
    for row, labels, scores in places:
        need(isinstance(labels, list))
        scores = [1.0] * len(labels) if scores is None and not scored else scores
        need(isinstance(scores, list) and len(scores) == len(labels) and type(row) in (str, int))
        for label, score in zip(labels, scores, strict=True):
            need(type(label) is int and type(score) in (int, float) and not math.isnan(score))
            found.append((whole(row), whole(label), float(score)))
    return found, len(records) if lists else None


def table_predictions(table) -> list:
    """A table as predictions."""
    return of_scores(gathered(*table_pairs(table, True)))


def table_truth(table) -> list:
    """A table as a truth."""
    return of_truth(gathered(*table_pairs(table, False)))


# -- ARFF -----------------------------------------------------------------------------------------------------------


def arff(files: dict[str, bytes]) -> list:
    """``a.arff`` with ``a.xml`` beside it, or without: shapes and rows of features and labels."""
    need("a.arff" in files and files["a.arff"] != b"")
    text = files["a.arff"]
    if text[:2] in (b"\x1f\x8b", b"PK") or re.search(rb"[^\x20-\x7e\t\r\n]", text):
        raise NoJudgement
    lines = [line.strip() for line in text.decode().split("\n")]
    lines = [(line.split()[0].lower(), line) for line in lines if line and not line.startswith("%")]
    words = [word for word, _ in lines]
    need("@data" in words)
    data = words.index("@data")
    need({*words[:data]} <= {"@relation", "@attribute"})
    attributes = [
        arff_attribute(line.removeprefix(line.split()[0])) for word, line in lines[:data] if word == "@attribute"
    ]
    rows = [arff_row(line, attributes) for _, line in lines[data + 1 :]]
    names = [name for name, _ in attributes]
    need(bool(names) and len({*names}) == len(names))
    if "a.xml" in files:
        labels = xml_labels(files["a.xml"])
        need(bool(labels) and len({*labels}) == len(labels) and {*labels} <= {*names})
        places = [names.index(label) for label in labels]
    else:
        relation = [line for word, line in lines[:data] if word == "@relation"][-1:]
        counted = re.search(r"-C\s+(-?[0-9]+)", "".join(relation))
        n = int(counted[1]) if counted else 0
        need(0 < abs(n) <= len(names))
        places = [*range(n)] if n > 0 else [*range(len(names) + n, len(names))]
    need(not any(isinstance(attributes[place][1], ByPlace) for place in places))
    need(all(row[place] in (0, 1) for row in rows for place in places))
    others = [place for place in range(len(names)) if place not in places]
    X = [[(column, float(np.float32(row[at]))) for column, at in enumerate(others) if row[at]] for row in rows]
    Y = [[(column, 1.0) for column, at in enumerate(places) if row[at]] for row in rows]
    return [[len(rows), len(others)], [len(rows), len(places)], X, Y]


WORD = r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?:\\.|[^\s,{}'"%\\])+)"""
YES = ("true", "t", "yes", "y", "present", "relevant", "positive", "on")
NO = ("false", "f", "no", "n", "absent", "irrelevant", "negative", "off")


class ByPlace(dict):
    """The values of an attribute that have nothing but their places for numbers; no label may be one."""


def arff_words(text: str) -> list[tuple[str, bool]]:
    """(word without quotes, whether a comma stands behind it), a line's each."""
    found, text = [], text.strip()
    while text:
        match = re.match(WORD + r"\s*(,?)\s*", text)
        need(match is not None)
        text = text[match.end() :]
        need(text != "" or not match[2])
        word = match[1]
        inside = word[1:-1] if word[0] in "'\"" else word
        guarded = r"\\(.)" if inside != word else r"\\(['\"\\%,{} ])"
        found.append((re.sub(guarded, r"\1", inside), match[2] == ","))
    return found


def arff_cells(text: str) -> list[str]:
    """Words with a comma between each."""
    words = arff_words(text)
    need(all(comma for _, comma in words[:-1]))
    return [word for word, _ in words]


def arff_attribute(text: str) -> tuple[str, dict[str, float] | None]:
    """Name, and the numbers of a nominal attribute's values."""
    match = re.fullmatch(rf"[ \t\r]\s*{WORD}[ \t\r](.*)", text)
    need(match is not None)
    (name,), kind = arff_cells(match[1]), match[2].strip()
    if kind.startswith("{") and kind.endswith("}") and len(kind) > 1:
        values = arff_cells(kind[1:-1])
        need(bool(values) and len({*values}) == len(values))
        said = [1.0 if value.lower() in YES else 0.0 if value.lower() in NO else -1.0 for value in values]
        try:
            numbers = said if sorted(said) in ([0.0], [1.0], [0.0, 1.0]) else [real(value) for value in values]
        except Refused:
            if any(value.strip() != value for value in values):
                raise NoJudgement from None
            return name, ByPlace(zip(values, map(float, range(len(values))), strict=True))
        need(all(abs(number) < TOO_LARGE for number in numbers))
        return name, dict(zip(values, numbers, strict=True))
    need(kind.lower().split()[:1] in (["numeric"], ["real"], ["integer"]))
    return name, None


def arff_value(text: str, values: dict[str, float] | None) -> float:
    """A cell's number."""
    if values is None:
        number = real(text)
        need(abs(number) < TOO_LARGE)
        return number
    need(text in values)
    return values[text]


def arff_row(line: str, attributes: list[tuple[str, dict[str, float] | None]]) -> list[float]:
    """A dense or a sparse row, all its numbers."""
    kinds = [values for _, values in attributes]
    if not line.startswith("{"):
        cells = arff_cells(line)
        need(len(cells) == len(kinds))
        return [arff_value(cell, values) for cell, values in zip(cells, kinds, strict=True)]
    need(line.endswith("}") and len(line) > 1)
    row = [0.0 if values is None else next(iter(values.values())) for values in kinds]
    words = arff_words(line[1:-1])
    need(len(words) % 2 == 0 and all(comma == place % 2 for place, (_, comma) in enumerate(words[:-1])))
    cells = [(place, cell) for (place, _), (cell, _) in zip(words[::2], words[1::2], strict=True)]
    need(all(place.isdigit() and int(place) < len(kinds) for place, _ in cells))
    need(len({int(place) for place, _ in cells}) == len(cells))
    for place, cell in cells:
        row[int(place)] = arff_value(cell, kinds[int(place)])
    if re.search(r"['\"][0-9]+['\"]\s", line) or re.search(r"[0-9]['\"]", line):
        raise NoJudgement  # a column's number in quotes, or quotes at once behind it
    return row


def xml_labels(text: bytes) -> list[str]:
    """The names of an XML file of the plainest form; of any other nothing is said here."""
    plain = re.fullmatch(
        rb"(<\?xml version=\"1\.0\" encoding=\"utf-8\"\?>[ \t\r\n])?[ \t\r\n]*<labels xmlns=\"http://mulan\.sourceforge\.net/labels\">"
        rb"(([ \t\r\n]*<label name=\"[\w .:-]*\"[ \t\r\n]?(/>|>[ \t\r\n]*</label>))*)[ \t\r\n]*</labels>[ \t\r\n]*",
        text,
    )
    if plain is None:
        raise NoJudgement
    return [name.decode() for name in re.findall(rb'name="([^"]*)"', plain[2])]


# -- who stands above whom ------------------------------------------------------------------------------------------


def hierarchy(arrays: dict[str, np.ndarray]) -> list[list[int]]:
    """All labels above each label, of a label matrix and its ``parents``."""
    matrix = stored_matrix({name: array for name, array in arrays.items() if name != "parents"})
    need("parents" in arrays and fits(arrays))
    (_, width), rows = matrix
    need(all(value >= 0 for entries in rows for _, value in entries))
    given = arrays["parents"]
    need(not given.size or given.dtype.kind in "iu")
    if given.ndim == 1 and len(given) == width:
        pairs = [(label, above) for label, above in enumerate(given.tolist()) if above != -1]
    else:
        need(given.ndim == 2 and given.shape[1] == 2)
        pairs = given.tolist()
    need(all(0 <= label < width and 0 <= above < width for label, above in pairs))
    need(width <= 10**6)
    found = []
    for label in range(width):
        seen, fresh = set(), {label}
        while fresh:
            fresh = {above for one, above in pairs if one in fresh} - seen
            seen |= fresh
        need(label not in seen)
        found.append(sorted(seen))
    return found


# -- archives -------------------------------------------------------------------------------------------------------


def archive(members: list[tuple]) -> dict[str, str]:
    """Files by name, of an archive that may be unpacked."""
    files: dict[str, str] = {}
    taken: dict[str, bool] = {}  # place without upper case -> is it a file?
    for name, data, kind, packing in members:
        name = name.partition("\0")[0]
        parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
        is_folder = name.endswith("/")
        need(not name.replace("\\", "/").startswith("/") and ".." not in parts and ":" not in "".join(parts[:1]))
        need(kind & 0o170000 in (0, 0o100000, 0o040000))
        need(len(parts) <= 20 and all(len(part.encode()) <= 200 and part.isprintable() for part in parts))
        need(len(data) <= 1 << 20 or packing == 0)
        need(bool(parts) or is_folder)
        for end in range(1, len(parts) + 1):
            place = "/".join(parts[:end]).lower()
            is_file = end == len(parts) and not is_folder
            need(place not in taken or not (taken[place] or is_file))
            taken[place] = is_file
        if not is_folder:
            files["/".join(part for part in name.split("/") if part not in ("", "."))] = data.decode("latin-1")
    return files
