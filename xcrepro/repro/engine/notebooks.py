"""Notebook files as plain JSON: their parameters, their code, and what went wrong in an executed one."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from xcrepro.core.arguments import did_you_mean
from xcrepro.core.errors import ArgumentError, DataError

IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)|<img[^>]*\bsrc=[\"']([^\"']+)")
"""A picture that Markdown shows: its file is the first group, or the second."""


_LINK = re.compile(r"(?P<before>\]\(|<img[^>]*\bsrc=[\"'])(?P<target>[^)\"'\s#]+)")
"""A link or a picture of Markdown, up to the end of its file's name."""


_LOOKS, _PAUSE = 5, 0.1


def read(path: str | os.PathLike) -> dict:
    """The notebook as a dict."""
    file = Path(path)
    for look in range(1, _LOOKS + 1):
        try:
            notebook = json.loads(file.read_text(encoding="utf-8"))
            break
        except (ValueError, RecursionError) as error:
            # JupyterLab empties a file and then writes it: what has just changed is looked at again.
            if look == _LOOKS or time.time() - file.stat().st_mtime > 1:
                raise DataError(path, f"text that is not JSON ({error})", "a notebook") from None
            time.sleep(_PAUSE)
    if not isinstance(notebook, dict) or notebook.get("nbformat") != 4 or not isinstance(notebook.get("cells"), list):
        raise DataError(path, "JSON that is not a notebook", "nbformat 4 with a list of cells")
    for number, cell in enumerate(notebook["cells"], 1):
        if fault := _fault(cell):
            raise DataError(path, f"cell {number}: {fault}", "what nbformat 4 has", do="JupyterLab writes such cells")
    return notebook


def _fault(cell: object) -> str:
    """What of a cell has another form than everybody who reads it takes for granted; empty where nothing has."""
    if not isinstance(cell, dict):
        return f"a {type(cell).__name__}"
    metadata, source = cell.get("metadata"), cell.get("source")
    if not (isinstance(source, str) or _texts(source)):
        return "no source that is a text or a list of texts"
    if not isinstance(metadata, dict) or not _texts(metadata.get("tags", [])):
        return "metadata that are no object, or tags that are no list of texts"
    if odd := [name for name in _ABOUT if not isinstance(metadata.get(name, {}), dict)]:
        return f"metadata.{odd[0]} that is no object"
    outputs = cell.get("outputs", [])
    if not isinstance(outputs, list) or not all(isinstance(output, dict) for output in outputs):
        return "outputs that are no list of objects"
    return ""


_ABOUT = ("papermill", "slideshow", "nbgrader")


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def text(value: str | list[str] | None) -> str:
    """A source or an output text, which the format keeps as one string or as a list of lines."""
    return value if isinstance(value, str) else "".join(value or [])


def tags(cell: dict) -> list[str]:
    """The tags in a cell's metadata."""
    return cell.get("metadata", {}).get("tags", [])


def code_cells(notebook: dict) -> list[dict]:
    """The notebook's code cells, in its order, but for empty ones: an editor adds one below the last cell that is run."""
    return [cell for cell in notebook["cells"] if cell.get("cell_type") == "code" and text(cell["source"]).strip()]


def accepted(notebook: dict) -> dict:
    """What `xcrepro accept` noted in a notebook: its parameters, and digests of its code and of its typed numbers.

    An editor keeps the note when a reader changes cells and saves. It is empty where there is none.
    """
    metadata = notebook.get("metadata")
    note = metadata.get("xcrepro") if isinstance(metadata, dict) else None
    return note if isinstance(note, dict) and isinstance(note.get("parameters"), dict) else {}


def relinked(text: str, home: Path, place: Path, others: Mapping[Path, Path]) -> str:
    """A text whose relative links led from the folder ``home``, for ``place``; ``others``: file -> the one instead."""

    def link(match: re.Match) -> str:
        target = Path(os.path.normpath(home / match["target"]))
        target = others.get(target, target)
        if ":" in match["target"] or not target.exists():
            return match[0]
        return match["before"] + Path(os.path.relpath(target, place)).as_posix()

    return _LINK.sub(link, text)


def code_hash(notebook: dict) -> str:
    """SHA-256 over the code cells alone: prose and outputs do not change what a notebook computes."""
    sources = [text(cell["source"]) for cell in code_cells(notebook)]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def plain(value: object) -> object:
    """A tuple as a list, inner ones too: the manifest and papermill know only lists, and ``(1, 3)`` means the same."""
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def parameters(path: str | os.PathLike, notebook: dict | None = None) -> dict:
    """Names and default values of the notebook's parameters cell; none where it has no such cell."""
    notebook = read(path) if notebook is None else notebook
    cells = [cell for cell in code_cells(notebook) if "parameters" in tags(cell)]
    if not cells:
        return {}
    if len(cells) > 1:
        raise DataError(path, f"{len(cells)} code cells tagged `parameters`", "one, or none where nothing can be set")
    expected = "only lines `name = literal` in the parameters cell"
    found: dict = {}
    try:
        body = ast.parse(text(cells[0]["source"])).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # a NUL; too many brackets
        said = error.msg if isinstance(error, SyntaxError) else error
        raise DataError(path, f"a parameters cell that is not Python ({said})", expected) from None
    for line in body:
        if isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name):
            try:
                found[line.targets[0].id] = plain(ast.literal_eval(line.value))
                continue
            except (ValueError, TypeError, RecursionError):  # {[]: 1} is a TypeError
                pass
        raise DataError(path, repr(ast.unparse(line)), expected)
    return found


def check_values(where: str, defaults: dict, given: dict) -> None:
    """Refuse a parameter the notebook does not have, or one of another type than its default."""
    for name, value in given.items():
        value = plain(value)
        if name not in defaults:
            hint = did_you_mean(name, list(defaults), 1)
            among = f"must be among {', '.join(defaults)} of" if defaults else "must be left out: nothing can be set in"
            raise ArgumentError("parameters", f"{among} {where}", repr(name), hint)
        default = defaults[name]
        if default is None or value is None or type(value) is type(default):
            continue
        if isinstance(default, float) and type(value) is int:
            continue
        raise ArgumentError(
            f"parameter {name}",
            f"must be of type {type(default).__name__}, like its default {default!r} in {where}",
            f"{value!r} ({type(value).__name__})",
        )


def failure(notebook: dict) -> tuple[str, str] | None:
    """The first failing cell of an executed notebook."""
    for cell in code_cells(notebook):
        for output in cell.get("outputs", []):
            if output.get("output_type") == "error":
                count = cell.get("execution_count")
                return f"In [{count}]", f"{output.get('ename')}: {output.get('evalue')}"
    for cell in code_cells(notebook):
        if cell.get("metadata", {}).get("papermill", {}).get("status") == "running":
            first = (text(cell["source"]).strip().splitlines() or [""])[0]
            return f"the cell that starts with `{first}`", "the kernel died while it ran (out of memory?)"
    return None


def started(notebook: dict) -> bool:
    """Whether papermill got as far as running a cell."""
    states = [cell.get("metadata", {}).get("papermill", {}).get("status") for cell in code_cells(notebook)]
    return any(state not in (None, "pending") for state in states)
