"""What the tests of the course share."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from xcrepro.tools.course import lessons


@pytest.fixture(autouse=True)
def project(monkeypatch, root):
    monkeypatch.setenv("XCREPRO_ROOT", str(root))


@pytest.fixture(scope="session")
def course(root):
    """All lessons of the project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XCREPRO_ROOT", str(root))
        return lessons.find()


@pytest.fixture(scope="session", autouse=True)
def quick_gradebook():
    """nbgrader starts a process for the version of its tables each time it opens a gradebook: here once for all tests."""
    if importlib.util.find_spec("nbgrader") is None:
        yield
        return
    from nbgrader import api

    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    version = api.get_alembic_version()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "get_alembic_version", lambda: version)
        yield


def _cell(kind: str, source: str, **marks) -> dict:
    metadata = {"slideshow": {"slide_type": "skip"}}
    if marks:
        standard = {"schema_version": 3, "task": False, "solution": False, "grade": False, "locked": False}
        metadata["nbgrader"] = standard | marks
    cell = {"cell_type": kind, "metadata": metadata, "source": source, "id": marks.get("grade_id", "title")}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


_SMALL = [
    _cell("markdown", "# Lesson 1: Small\n\nSee [P@k](../glossary.md#pk) and [the audit](../beyond/audit.ipynb)."),
    _cell(
        "code",
        'def double(x):\n    """Twice x."""\n    ### BEGIN SOLUTION\n    return x + x\n    ### END SOLUTION',
        grade_id="double",
        solution=True,
    ),
    _cell(
        "code",
        'import numpy as np\n\nassert double(2) == 4, "twice two"\nprint("double: right")\n### BEGIN HIDDEN TESTS\n'
        "x = np.random.default_rng(7).random()  # drawn anew by the teacher's seed\n"
        'assert double(x) == 2 * x, "double: drawn data"\n### END HIDDEN TESTS',
        grade_id="test_double",
        grade=True,
        locked=True,
        points=2,
    ),
    _cell("markdown", "A good answer names a doubler.", grade_id="why", grade=True, solution=True, points=1),
]


@pytest.fixture
def small():
    """The cells of a lesson without a fault, to plant one."""
    return copy.deepcopy(_SMALL)


@pytest.fixture
def save(tmp_path, monkeypatch):
    """``save(cells)``: a project folder with this one lesson; gives the notebook's path."""

    def make(cells: list[dict], name: str = "01_small"):
        folder = tmp_path / "project" / "notebooks"
        path = folder / "course" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        (folder / "glossary.md").write_text("# Glossary\n\n[audit](beyond/audit.ipynb)\n")
        (folder / "primer.md").write_text("# Primer\n")
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": cells}))
        monkeypatch.setenv("XCREPRO_ROOT", str(tmp_path / "project"))
        return path

    return make
