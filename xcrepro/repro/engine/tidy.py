"""One canonical form for committed notebooks, so that a diff shows what changed and nothing else."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.repro.engine import notebooks

# Cells whose outputs differ from run to run (progress, timings) carry nbval's tag and are committed without outputs.
VOLATILE = "nbval-ignore-output"
# What a lesson's cells need beside tags: which are exercises and how they are graded, and what is a slide.
_METADATA = ("nbgrader", "slideshow")
_KEPT = ("text/plain", "text/html", "text/markdown", "text/latex")
_TIMING = re.compile(r"^(CPU times|Wall time): .*\n?", re.MULTILINE)
_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def tidied(notebook: dict, path: str | os.PathLike = "notebook") -> str:
    """The canonical text of ``notebook``."""
    seen: dict[str, int] = {}
    cells = []
    for cell in notebook["cells"]:
        empty = cell["cell_type"] == "code" and not notebooks.text(cell["source"]).strip()
        if empty and not set(_METADATA) & {*cell["metadata"]}:
            continue  # JupyterLab adds one below the last cell that is run
        if "injected-parameters" in notebooks.tags(cell):
            found, do = "a cell of injected parameters", "Run it without -p and tidy that"
            raise DataError(path, found, "a notebook run with its own", do=do)
        if any("papermill-error" in tag for tag in notebooks.tags(cell)):
            found = "papermill's marks of a failed run"
            raise DataError(path, found, "a notebook that ran through", do="Mend it first")
        cells.append(_cell(cell, seen))
    _fold_closing(cells)
    whole = {
        "cells": cells,
        "metadata": {"kernelspec": _KERNEL, "language_info": {"name": "python"}} | _note(notebook),
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _note(notebook: dict) -> dict:
    """What `xcrepro accept` noted, as it is: tidying what a reader has changed does not accept it."""
    note = notebooks.accepted(notebook)
    return {"xcrepro": note} if note else {}


def _fold_closing(cells: list[dict]) -> None:
    """Fold, in JupyterLab and on the site, the code behind the last text: it holds the text's numbers and shows no method."""
    if cells and notebooks.text(cells[-1]["source"]).rstrip().endswith("item.check_text()"):
        for cell in itertools.takewhile(lambda cell: cell["cell_type"] == "code", reversed(cells)):
            cell["metadata"]["jupyter"] = {"source_hidden": True}


def _cell(cell: dict, seen: dict[str, int]) -> dict:
    source = notebooks.text(cell["source"])
    digest = hashlib.sha256(f"{cell['cell_type']}\n{source}".encode()).hexdigest()[:8]
    seen[digest] = seen.get(digest, 0) + 1
    tags = notebooks.tags(cell)
    tidy = {
        "cell_type": cell["cell_type"],
        "id": digest if seen[digest] == 1 else f"{digest}-{seen[digest]}",
        "metadata": ({"tags": tags} if tags else {})
        | {key: cell["metadata"][key] for key in _METADATA if key in cell.get("metadata", {})},
        "source": _lines(source),
    }
    if cell.get("attachments"):
        tidy["attachments"] = cell["attachments"]
    if cell["cell_type"] == "code":
        tidy["execution_count"] = cell.get("execution_count")
        tidy["outputs"] = [] if VOLATILE in tags else outputs(cell.get("outputs", []))
    return tidy


def outputs(given: Iterable[dict]) -> list[dict]:
    """A cell's outputs in the form in which they are committed (see :func:`tidied`)."""
    kept: list[dict] = []
    for output in given:
        kind = output["output_type"]
        if kind == "stream":
            text = _TIMING.sub("", notebooks.text(output["text"]))
            if output["name"] != "stdout" or not text:
                continue
            if kept and kept[-1]["output_type"] == "stream":
                text = notebooks.text(kept.pop()["text"]) + text
            kept.append({"name": "stdout", "output_type": "stream", "text": _lines(text)})
        elif kind == "error":
            kept.append({key: output[key] for key in ("ename", "evalue", "output_type", "traceback")})
        else:
            data = output["data"]
            if link := output.get("metadata", {}).get("xcrepro", {}).get("link"):
                data, kind = {"text/markdown": link}, "display_data"
            # The text beside a picture or a widget is only its name.
            if any(mime.startswith(("image/", "application/vnd.jupyter.widget")) for mime in data):
                continue
            data = {mime: _lines(notebooks.text(data[mime])) for mime in _KEPT if mime in data}
            if data:
                count = {"execution_count": output["execution_count"]} if kind == "execute_result" else {}
                kept.append({"data": data, "metadata": {}, "output_type": kind, **count})
    return kept


def output_text(given: Iterable[dict]) -> str:
    """A cell's outputs in the form in which they are committed, as one text to be compared."""
    parts = []
    for output in outputs(given):
        if output["output_type"] == "stream":
            parts.append(notebooks.text(output["text"]))
        elif output["output_type"] == "error":
            parts.append(f"{output['ename']}: {output['evalue']}")
        else:
            parts += [notebooks.text(text) for _, text in sorted(output["data"].items())]
    return "\n".join(parts)


def _lines(text: str) -> list[str]:
    # Only "\n" ends a line here: splitlines() would also cut at form feeds and the like.
    return [part for part in re.split(r"(?<=\n)", text) if part]


def find(where: Iterable[str | os.PathLike] = ()) -> list[Path]:
    """The notebooks meant by files and folders."""
    found: list[Path] = []
    for place in [Path(p) for p in where] or [paths.project_root() / "notebooks"]:
        if place.is_dir():
            hidden = re.compile(r"(^|/)\.")
            inside = sorted(place.rglob("*.ipynb"))
            found += [path for path in inside if not hidden.search(path.relative_to(place).as_posix())]
        elif place.suffix == ".ipynb" and place.is_file():
            found.append(place)
        else:
            hint = "" if where else "`xcrepro start DIR` makes one"
            raise ArgumentError("path", "must be a notebook or a folder of notebooks", place, hint)
    return found


def tidy(where: Iterable[str | os.PathLike] = (), check: bool = False) -> list[Path]:
    """Bring notebooks into the canonical form (:func:`tidied`); a bad one leaves every file as it was."""
    changed = []
    for path in find(where):
        text = tidied(notebooks.read(path), path)
        # Bytes, so that CRLF counts as a difference.
        if path.read_bytes() != text.encode():
            changed.append((path, text))
    for path, text in [] if check else changed:
        with paths.atomic_path(path) as part:
            part.write_text(text, encoding="utf-8", newline="\n")
    return [path for path, _ in changed]
