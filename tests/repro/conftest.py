"""A small project of its own, so that these tests do not depend on the real items."""

from __future__ import annotations

import contextlib
import io
import json
import os
import textwrap
from pathlib import Path
from unittest import mock

import pytest
import yaml

from xcrepro.repro import children, notebooks, record


def code(source: str, *tags: str, count: int | None = None, outputs: list | None = None) -> dict:
    return {
        "cell_type": "code",
        "execution_count": count,
        "id": "x",
        "metadata": {"tags": list(tags)} if tags else {},
        "outputs": outputs or [],
        "source": textwrap.dedent(source).strip(),
    }


def markdown(source: str) -> dict:
    return {"cell_type": "markdown", "id": "m", "metadata": {}, "source": source}


def notebook(*cells: dict) -> dict:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    # papermill wants distinct ids
    cells = tuple({**cell, "id": f"cell-{number}"} for number, cell in enumerate(cells))
    return {"cells": list(cells), "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


class Project:
    """``notebooks/manifest.toml`` and notebooks under a temporary folder that the package takes for the project."""

    code, markdown, notebook = staticmethod(code), staticmethod(markdown), staticmethod(notebook)

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries: dict[str, str] = {}
        (root / "notebooks" / "demo").mkdir(parents=True)
        self.manifest("")

    def manifest(self, text: str) -> None:
        path = self.root / "notebooks" / "manifest.toml"
        path.write_text(text)

    def add(self, name: str, *cells: str | dict, parameters: str = "", **keys) -> Path:
        """An item ``demo/<name>`` with these cells after its parameters, if it has any; ``keys`` are TOML texts."""
        path = self.root / "notebooks" / "demo" / f"{name}.ipynb"
        sources = [code(parameters, "parameters")] if parameters else []
        sources += [code(c) if isinstance(c, str) else c for c in cells]
        path.write_text(json.dumps(notebook(*sources)))
        lines = [f'["demo/{name}"]', f'title = "Item {name}"', *(f"{key} = {value}" for key, value in keys.items())]
        self.entries[name] = "\n".join(lines)
        self._write()
        return path

    def remove(self, name: str) -> None:
        del self.entries[name]
        self._write()

    def _write(self) -> None:
        self.manifest("\n\n".join(self.entries.values()))

    def figure(self, name: str, text: str) -> Path:
        """A committed file under ``figures/``."""
        path = self.root / "figures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def project(tmp_path, monkeypatch) -> Project:
    monkeypatch.setenv("XCREPRO_ROOT", str(tmp_path))
    for name in ("XCREPRO_FIGURES", "XCREPRO_ACCEPT", "XCREPRO_RECORD"):
        monkeypatch.delenv(name, raising=False)
    return Project(tmp_path)


class Here:
    """What papermill does with a notebook, in this process and at once: a kernel takes seconds to start and to end."""

    stdin = None

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        source, executed, *options = arguments
        book = notebooks.read(source)
        self.given = yaml.safe_load(options[options.index("-y") + 1]) if "-y" in options else {}
        if self.given:
            (at,) = (place for place, cell in enumerate(book["cells"]) if "parameters" in notebooks.tags(cell))
            lines = "\n".join(f"{name} = {value!r}" for name, value in self.given.items())
            book["cells"].insert(at + 1, code(lines, "injected-parameters"))
        names: dict = {}
        self.returncode = 0
        with mock.patch.dict(os.environ, environment, clear=True):
            for count, cell in enumerate(notebooks.code_cells(book), 1):
                cell["metadata"]["papermill"] = {"status": "completed"}
                cell["execution_count"] = count
                outputs = cell["outputs"] = []
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    try:
                        exec(notebooks.text(cell["source"]), names)
                    except Exception as fault:
                        self.returncode = 1
                        outputs.append({"output_type": "error", "ename": type(fault).__name__, "evalue": str(fault)})
                if said.getvalue():
                    outputs.insert(0, {"output_type": "stream", "name": "stdout", "text": said.getvalue()})
                if self.returncode:
                    break
        log.write_text("")
        Path(executed).write_text(json.dumps(book))

    def poll(self) -> int:
        return self.returncode


@pytest.fixture
def in_process(monkeypatch) -> list[dict]:
    """Items run by :class:`Here` from now on, which notes no inputs; the parameters that each run was given."""
    ran: list[dict] = []

    def start(*arguments):
        process = Here(*arguments)
        ran.append(process.given)
        return process

    monkeypatch.setattr(children, "start_here", start)
    monkeypatch.setattr(record, "watch", lambda: None)
    return ran
