"""ARFF with the labels named in an XML file beside it (Mulan), or counted in the relation's name (MEKA, scikit-multilearn).

Which attributes are labels says, in this order: ``NAME.xml`` of ``NAME.arff``; the only XML file of the folder; ``-C n`` in the
relation's name (the first n attributes; negative: the last n, as Mulan has them); ``n_labels`` (the last so many). Labels are 0
or 1, or words that say so (true, no, present). A nominal feature whose values are numbers has these, words for true and false
are 1 and 0, and any other has the place of its value, from 0. In a sparse row what is left out is 0, or the first value of a
nominal attribute. A missing value (``?``), texts and dates are refused.
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from xcrepro.core.data.lines import logical, real, shown, text_lines
from xcrepro.core.data.names import LabelNames
from xcrepro.core.data.parsing import FIRST_TOO_LARGE
from xcrepro.core.data.sources import open_source
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.matrices import checked_csr
from xcrepro.core.paths import atomic_path
from xcrepro.core.truth import as_truth
from xcrepro.tools.formats.entries import writing
from xcrepro.tools.formats.index import Index

_WORD = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|(?:\\.|[^\s,{}'\"%\\])+"
_ATTRIBUTE = re.compile(rf"@attribute\s+({_WORD})\s+(.*)", re.IGNORECASE)
_CELL = re.compile(rf"\s*({_WORD})\s*(?:,|$)")
_SPARSE = re.compile(rf"\s*(\d+)\s+({_WORD})\s*(?:,|$)")


class Attribute(NamedTuple):
    """A column."""

    name: str
    values: dict[str, float] | None  # of a nominal one: text -> number
    default: float  # what a sparse row leaves out
    by_place: bool = False  # whether these numbers are nothing but places in the list of values


def sniff(name: str, head: bytes) -> bool:
    """Whether the first line that is no comment begins a relation."""
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    first = next((line.strip() for line in lines if line.strip() and not line.strip().startswith(b"%")), b"")
    return first.lower().startswith(b"@relation")


def holds(head: bytes) -> tuple[str, ...]:
    """Features and labels, or one of them."""
    return ("dataset", "truth", "features")


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The labels."""
    return read_dataset(path, index)[1]


def read_features(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The features."""
    return read_dataset(path, index)[0]


def read_dataset(path: str | os.PathLike, index: Index) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Features and labels, in the order of the attributes (labels: of the XML file); the names go to the index."""
    relation, attributes, matrix = _table(path)
    labels = _label_columns(path, relation, attributes, index)
    if index.label_names is None:
        index.label_names = LabelNames(tuple(attributes[column].name for column in labels))
        index.n_labels = len(labels)
    elif len(index.label_names) != len(labels):
        raise DataError(path, f"{len(labels)} labels", f"{len(index.label_names)}, as there are label names")
    if words := [attributes[column] for column in labels if attributes[column].by_place]:
        found = f"the label {shown(words[0].name)} with the values {shown(', '.join(words[0].values))}"
        raise DataError(path, found, "0 and 1, or words such as true and false", do="Write it with {0,1}")
    features = np.setdiff1d(np.arange(len(attributes)), labels)
    columns = matrix.tocsc()
    Y = columns[:, labels].tocsr()
    odd = (Y.data != 0) & (Y.data != 1)
    if odd.any():
        place = int(np.argmax(odd))
        row = int(np.searchsorted(Y.indptr, place, side="right")) - 1
        name = attributes[labels[Y.indices[place]]].name
        raise DataError(path, f"{Y.data[place]:g} for the label {shown(name)} in row {row}", "0 or 1")
    X = columns[:, features].tocsr()
    X.eliminate_zeros()
    return X.astype(np.float32), as_truth(Y).to_csr()


def _table(path: str | os.PathLike) -> tuple[str, list[Attribute], sparse.csr_matrix]:
    """The relation's name, the attributes, and all data as one matrix of float64."""
    relation, attributes, in_data = "", [], False
    names: set[str] = set()
    values: list[float] = []
    columns: list[int] = []
    indptr, defaults = [0], {}
    for line, full in text_lines(path):
        text = full.strip()
        if not text or text.startswith("%"):
            continue
        if in_data:
            row = _row(path, line, text, attributes, defaults)
            values.extend(row.values())
            columns.extend(row)
            indptr.append(len(columns))
            continue
        word = text.split(None, 1)[0].lower()
        if word == "@relation":
            relation = text[len(word) :].strip()
        elif word == "@attribute":
            attribute = _attribute(path, line, text)
            if attribute.name in names:
                raise DataError(path, f"the attribute {shown(attribute.name)} again", "each once", line=line)
            names.add(attribute.name)
            attributes.append(attribute)
        elif word == "@data":
            in_data = True
            defaults = {column: attribute.default for column, attribute in enumerate(attributes) if attribute.default}
        else:
            raise DataError(path, shown(text), "@relation, @attribute or @data", line=line)
    if not in_data or not attributes:
        raise DataError(path, "no @data" if not in_data else "no @attribute", "a whole ARFF file")
    matrix = sparse.csr_matrix((values, columns, indptr), shape=(len(indptr) - 1, len(attributes)))
    return relation, attributes, matrix


def _attribute(path: str | os.PathLike, line: int, text: str) -> Attribute:
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        raise DataError(path, shown(text), "@attribute NAME TYPE", line=line)
    name, kind = _plain(match[1]), match[2].strip()
    if kind.startswith("{") and kind.endswith("}"):
        values = _cells(kind[1:-1])
        if not values or len(set(values)) < len(values):
            raise DataError(path, shown(kind), "{value, value, ...}, each value once", line=line)
        numbers, by_place = [logical(value) for value in values], False
        if None in numbers or len(set(numbers)) < len(numbers):  # two words for one truth are two values
            try:
                numbers = [real(path, line, value, "") for value in values]
            except DataError:
                numbers, by_place = [*map(float, range(len(values)))], True
        for value, number in zip(values, numbers, strict=True):
            _check_float32(path, line, number, f"the value {shown(value)} of {shown(name)}")
        return Attribute(name, dict(zip(values, numbers, strict=True)), numbers[0], by_place)
    if kind.lower().split()[:1] not in (["numeric"], ["real"], ["integer"]):
        raise DataError(path, f"an attribute of type {shown(kind)}", "numeric, or {value, value}", line=line)
    return Attribute(name, None, 0.0)


def _row(
    path: str | os.PathLike, line: int, text: str, attributes: list[Attribute], defaults: dict[int, float]
) -> dict[int, float]:
    """The values of a row that are not 0, by column."""
    if not text.startswith("{"):
        cells = _cells(text)
        if cells is None or len(cells) != len(attributes):
            found = f"{len(cells)} values" if cells else shown(text)
            raise DataError(path, found, f"{len(attributes)}, one for each attribute", line=line)
        row = {column: _value(path, line, cell, attributes[column]) for column, cell in enumerate(cells)}
        return {column: value for column, value in row.items() if value}
    row = dict(defaults)
    seen: set[int] = set()
    cells = _cells(text[1:-1], _SPARSE) if text.endswith("}") else None
    if cells is None:
        raise DataError(path, shown(text), "{column value, column value, ...}", line=line)
    for column, cell in cells:
        place = int(column) if len(column) < 12 else len(attributes)
        if place >= len(attributes) or place in seen:
            found = f"column {shown(column)}" + (" twice" if place in seen else "")
            raise DataError(path, found, f"columns 0 to {len(attributes) - 1}, each once", line=line)
        seen.add(place)
        row[place] = _value(path, line, _plain(cell), attributes[place])
    return {column: value for column, value in sorted(row.items()) if value}


def _value(path: str | os.PathLike, line: int, text: str, attribute: Attribute) -> float:
    if attribute.values is None:
        value = real(path, line, text, f"the value of {shown(attribute.name)}:")
        _check_float32(path, line, value, f"the value {shown(text)} of {shown(attribute.name)}")
        return value
    if text not in attribute.values:
        expected = "one of " + shown(", ".join(attribute.values))
        raise DataError(path, f"{shown(text)} for {shown(attribute.name)}", expected, line=line)
    return attribute.values[text]


def _check_float32(path: str | os.PathLike, line: int, value: float, what: str) -> None:
    if abs(value) >= FIRST_TOO_LARGE:
        raise DataError(path, what, "one that float32 can hold", line=line)


def _cells(text: str, pattern: re.Pattern = _CELL) -> list | None:
    """The parts of a list with commas; None where it is none."""
    found, at, text = [], 0, text.strip()
    while at < len(text):
        match = pattern.match(text, at)
        if match is None:
            return None
        found.append(_plain(match[1]) if pattern is _CELL else match.groups())
        at = match.end()
    return None if text.endswith(",") else found


def _plain(word: str) -> str:
    """A word without its quotes, and without the signs that guard others."""
    if word[:1] in ("'", '"'):
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    return re.sub(r"\\(['\"\\%,{} ])", r"\1", word)


def _quoted(name: str) -> str:
    return "'" + re.sub(r"(['\\])", r"\\\1", name) + "'"


def _label_columns(path: str | os.PathLike, relation: str, attributes: list[Attribute], index: Index) -> list[int]:
    file = Path(path)
    beside = [_xml_beside(file)] if _xml_beside(file).is_file() else sorted(file.parent.glob("*.xml"))
    if len(beside) == 1:
        columns = {attribute.name: column for column, attribute in enumerate(attributes)}
        # Mulan's XML files spell a guarded quote as the ARFF file does.
        names = [name if name in columns else _plain(name) for name in _xml_labels(beside[0])]
        if missing := [name for name in names if name not in columns]:
            found, expected = f"the label {shown(missing[0])}", f"labels that are attributes of {file.name}"
            raise DataError(beside[0], found, expected, do="Is it of another dataset?")
        return [columns[name] for name in names]
    counted = re.search(r"-C\s+(-?\d{1,9})", relation)
    n = int(counted[1]) if counted else -(index.n_labels or 0)
    if not 0 < abs(n) <= len(attributes):
        do = "Put the XML file that names them beside it, or say how many of the last ones are labels (--n-labels)"
        raise DataError(path, f"nothing that says which of {len(attributes)} attributes are labels", "it", do=do)
    return [*range(len(attributes))][:n] if n > 0 else [*range(len(attributes))][n:]


def _xml_beside(file: Path) -> Path:
    """``NAME.xml`` of ``NAME.arff`` or ``NAME.arff.gz``."""
    return Path(os.fspath(file).removesuffix(".gz").removesuffix(".arff") + ".xml")


def beside(path: str | os.PathLike) -> tuple[Path, ...]:
    """What is written beside a file."""
    return (_xml_beside(Path(path)),)


def _xml_labels(path: Path) -> list[str]:
    with open_source(path) as stream:
        text = stream.read()
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise DataError(path, "a document type of its own", "plain XML: <labels><label name=...>")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(path, f"no XML ({error})", "<labels><label name=...></label></labels>") from None
    names = [node.get("name") for node in root.iter() if node.tag.rpartition("}")[2] == "label"]
    if not names or None in names or len(set(names)) < len(names):
        raise DataError(path, f"{len(names)} labels, some without a name or twice", "<label name=...>, each once")
    return names


def write_dataset(path: str | os.PathLike, X, Y, index: Index) -> None:
    """Sparse rows, labels at the end, and the XML file beside it."""
    X, truth = checked_csr("X", X).astype(np.float32), as_truth(Y)
    X.sum_duplicates()
    n, width = X.shape
    if n != truth.n_rows:
        raise ArgumentError("Y", f"must have as many rows as X, {n}", truth.n_rows)
    if not np.isfinite(X.data).all():
        raise ArgumentError("X", "must hold finite values", X.data[~np.isfinite(X.data)][0])
    names = [index.label_text(label) if index.label_names else f"label{label}" for label in range(truth.n_labels)]
    names = [re.sub(r"\s+", " ", name) for name in names]
    own = {f"feature{column}" for column in range(width)}
    if len({*names} | own) < len(names) + width:
        raise ArgumentError("label_names", "must be different from each other in an ARFF file", "a name twice")
    if bad := next((name for name in names if not name.isprintable()), None):
        raise ArgumentError("label_names", "must be printable", shown(bad))
    file = Path(path)

    root = ElementTree.Element("labels", xmlns="http://mulan.sourceforge.net/labels")
    for name in names:
        ElementTree.SubElement(root, "label", name=name)
    ElementTree.indent(root)
    with writing(file) as out, atomic_path(_xml_beside(file)) as part:
        part.write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")
        out.write(f"@relation '{file.stem}: -C -{truth.n_labels}'\n\n")
        out.writelines(f"@attribute feature{column} numeric\n" for column in range(width))
        out.writelines(f"@attribute {_quoted(name)} {{0,1}}\n" for name in names)
        out.write("\n@data\n")
        for row in range(n):
            places = slice(X.indptr[row], X.indptr[row + 1])
            pairs = [*zip(X.indices[places].tolist(), X.data[places], strict=True)]
            labels = truth.indices[truth.indptr[row] : truth.indptr[row + 1]].tolist()
            pairs += [(width + label, 1) for label in labels]
            out.write("{" + ",".join(f"{column} {value}" for column, value in pairs) + "}\n")
