"""Annif's folder: for each document ``NAME.txt`` its subjects, ``NAME.tsv`` or ``NAME.key``, and suggestions, ``NAME.annif``.

A line is ``<uri><TAB>label``, or the label alone; of a suggestion the score comes last. A document ``NAME.json`` has its
``subjects`` inside. Rows are the documents by name, and one without subjects has no labels. Annif's JSON lines are read as
:mod:`xcrepro.tools.formats.jsonl`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from scipy import sparse

from xcrepro.core.data.lines import json_of, real, shown, text_lines
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.paths import filling
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats.entries import Entries, predicted, relevant
from xcrepro.tools.formats.index import Index

SUBJECTS, SUGGESTIONS = (".tsv", ".key", ".json"), (".annif",)


def sniff_folder(path: Path) -> bool:
    """Whether a folder is one of documents, and not one of a dataset's files."""
    names = {file.name for file in path.iterdir() if file.is_file()}
    stems = {Path(name).stem for name in names if name.endswith((".txt", ".json"))}
    subjects = {Path(name).stem for name in names if name.endswith((".tsv", ".key"))}
    if any(name.endswith(".annif") for name in names) or stems & subjects:
        return True
    if "dataset.toml" in names or any(name.startswith(("train", "test", "trn", "tst")) for name in names):
        return False
    known = (".tsv", ".key", ".json", ".txt")
    return (
        bool(names)
        and all(name.endswith(known) for name in names)
        and all(_is_document(path / name) for name in sorted(names) if not name.endswith(".txt"))
        and not all(name.endswith(".txt") for name in names)
    )


def _is_document(file: Path) -> bool:
    """Whether a file holds a document's subjects, and not predictions or a truth of many rows, by what it begins with."""
    from xcrepro.tools.formats import csv, head_of, wide

    head = head_of(file) if file.stat().st_size else b""
    if file.suffix == ".json":
        return head.lstrip().startswith(b"{") and any(f'"{key}"'.encode() in head for key in ("subjects", "text"))
    return not csv.sniff(file.name, head) and not wide.sniff(file.name, head)


def holds_folder(path: Path) -> tuple[str, ...]:
    """By the files in it."""
    suffixes = {file.suffix for file in path.iterdir()}
    kinds = (("truth", SUBJECTS), ("predictions", SUGGESTIONS))  # .json may be without subjects, as .txt is
    return tuple(kind for kind, wanted in kinds if suffixes & {*wanted})


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The subjects, a repeated one once; where a document has a ``.tsv`` and a ``.key``, the first; both as in Annif."""
    entries = Entries(path, index, once=True)
    for row, file in _documents(path, SUBJECTS, entries):
        for line, cells in _of_json(file) if file.suffix == ".json" else _lines(file):
            entries.add(line, row, _label(cells, index), file=file)
    return entries.truth()


def _of_json(file: Path) -> Iterator[tuple[None, list[str]]]:
    """The subjects inside a document, as the cells of a line."""
    document = json_of(file.read_bytes())
    subjects = document.get("subjects", []) if isinstance(document, dict) else None
    if not isinstance(subjects, list) or not all(isinstance(one, dict) for one in subjects):
        raise DataError(file, "no document of Annif's", 'a JSON object with {"subjects": [{"uri": ..., "label": ...}]}')
    for one in subjects:
        uri, label = one.get("uri"), one.get("label")
        if not isinstance(uri or label, str) or not isinstance(label or "", str):
            raise DataError(file, f"the subject {shown(one)}", "a uri, or a label, or both")
        yield None, [*([f"<{uri}>"] if uri else []), *([label] if label else [])]


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """The suggestions with their scores."""
    entries = Entries(path, index)
    for row, file in _documents(path, SUGGESTIONS, entries):
        seen: set[str] = set()
        for line, cells in _lines(file):
            if len(cells) < 2:
                raise DataError(file, shown("\t".join(cells)), "<uri>, label and score with tabs between", line=line)
            label, score = _label(cells[:-1], index), real(file, line, cells[-1], "the score")
            if label in seen:
                raise DataError(file, f"{shown(cells[0])} again", "each subject once", line=line)
            seen.add(label)
            entries.add(line, row, label, score, file=file)
    return entries.top(k)


def _documents(path: str | os.PathLike, suffixes: tuple[str, ...], entries: Entries) -> Iterator[tuple[int, Path]]:
    folder = Path(path)
    if not folder.is_dir():
        raise DataMissing(f"{folder}: no such folder; Annif keeps a file for each document in one")
    files = {file.name for file in folder.iterdir() if file.is_file()}
    texts, own = ({Path(name).stem for name in files if name.endswith(kind)} for kind in (".txt", ".json"))
    if both := sorted(texts & own):
        found = f"{both[0]}.txt and {both[0]}.json"
        raise DataError(folder, found, "one document of a name", do="Rename one, or move one kind away")
    documents = {Path(name).stem for name in files if name.endswith((".txt", ".json"))}
    stems = sorted(documents or {Path(name).stem for name in files if name.endswith(suffixes)})
    if not any(stem + suffix in files for stem in stems for suffix in suffixes):
        raise DataError(folder, f"no {' or '.join(suffixes)} file", f"one for each document, NAME{suffixes[0]}")
    for place, stem in enumerate(stems):
        row = entries.place(None, place, stem)
        here = [suffix for suffix in suffixes if stem + suffix in files]
        if ".json" in here and len(here) > 1:
            raise DataError(folder / f"{stem}.json", f"also {stem}{here[0]}", "the subjects of a document in one place")
        name = stem + here[0] if here else None
        if name is not None and (folder / name).stat().st_size:
            yield row, folder / name
    entries.has_rows(len(stems))


def _lines(file: Path) -> Iterator[tuple[int, list[str]]]:
    for line, text in text_lines(file):
        if text.strip():
            yield line, [cell.strip() for cell in text.split("\t") if cell.strip()]


def _label(cells: list[str], index: Index) -> str:
    """By the URI where the vocabulary has it, else by the name behind it."""
    uri, text = re.fullmatch(r"<(.*)>", cells[0]), cells[0]
    if uri is not None:
        known = index.label_names is not None and index.label_names.id(uri[1]) is not None
        text = uri[1] if known or len(cells) < 2 else cells[1]
    return text


def write_truth(path: str | os.PathLike, Y, index: Index) -> None:
    """``NAME.tsv``, named by row id or number."""
    rows = relevant(Y)
    _write(path, ".tsv", ([_subject(label, index) for label in labels] for labels in rows), len(rows), index)


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """``NAME.annif``, best first."""
    rows = (predicted(top, row) for row in range(len(top)))
    texts = ([f"{_subject(label, index)}\t{score}" for label, score in row] for row in rows)
    _write(path, ".annif", texts, len(top), index)


def _subject(label: int, index: Index) -> str:
    if index.label_names is None:
        return str(label)
    name = re.sub(r"\s+", " ", index.label_names.names[label])
    return f"<{index.label_names.codes[label]}>\t{name}" if index.label_names.codes else name


def _write(path: str | os.PathLike, suffix: str, rows: Iterator[list[str]], n: int, index: Index) -> None:
    folder = Path(path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArgumentError("path", "must be a new or an empty folder", folder)
    names = [index.row_text(row) if index.has_row_ids else f"{row:0{len(str(n))}}" for row in range(n)]
    if odd := next((name for name in names if not re.fullmatch(r"[^/\\\0]+", name) or name.startswith(".")), None):
        raise ArgumentError("row_ids", "must be names that files can have", shown(odd))
    if names != sorted(names):
        raise ArgumentError("row_ids", "must be in the order of their names", "another order", "rows are read so again")
    with filling(folder) as part:
        for name, lines in zip(names, rows, strict=True):
            (part / f"{name}{suffix}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
