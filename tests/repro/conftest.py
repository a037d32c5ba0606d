"""A small project of its own, so that these tests do not depend on the real items."""

from __future__ import annotations

import contextlib
import json
import textwrap
from pathlib import Path

import pytest

from xcrepro.core.errors import DataError
from xcrepro.repro.engine import prose_numbers


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
        self.accepted(path, notebook(*sources))
        lines = [f'["demo/{name}"]', f'title = "Item {name}"', *(f"{key} = {value}" for key, value in keys.items())]
        self.entries[name] = "\n".join(lines)
        self._write()
        return path

    @staticmethod
    def accepted(path: Path, notebook: dict) -> Path:
        """Write a notebook as if it had been accepted as it is."""
        with contextlib.suppress(DataError):  # of a parameters cell that is none
            notebook["metadata"]["xcrepro"] = prose_numbers.note(notebook)
        path.write_text(json.dumps(notebook))
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
