"""A lesson's exercises outside of Jupyter and without its talk: solutions or other programs in their place, and the checks."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import xcrepro as xc
from xcrepro.repro.engine import notebooks
from xcrepro.tools.course import lessons, mistakes
from xcrepro.tools.course.lessons import Lesson


class Room:
    """The names that a lesson's exercises need: imports, functions of the talk, the exercises' records, all solutions."""

    def __init__(self, lesson: Lesson):
        self.cells = lesson.cells
        self.exercises = [exercise for exercise in lesson.exercises if not exercise.open]
        self.names = {"np": np, "xc": xc, "plt": plt}
        for cell in notebooks.code_cells(lesson.notebook):
            source = notebooks.text(cell["source"])
            if "nbgrader" in cell["metadata"]:
                continue
            if "mine = xc.load(" in source:
                self.names |= _records(source)
            else:  # what the talk defines, and what it imports
                kept = [
                    n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef | ast.Import | ast.ImportFrom)
                ]
                exec(compile(ast.Module(kept, []), lesson.name, "exec"), self.names)
        for exercise in self.exercises:
            exec(self.cells[exercise.name], self.names)

    def run(self, name: str, body: str | None = None, *, seen: bool = True, hidden: bool = True) -> str:
        """Run an exercise's check on another program, or on the solution, in parts: its message, empty where it passes."""
        names = dict(self.names)
        source = self.cells[name] if body is None else mistakes.with_body(self.cells[name], body)
        check = self.cells[f"test_{name}"]
        # Programs of later exercises call earlier ones by their name, so these are defined in the same names.
        for exercise in self.exercises:
            exec(source if exercise.name == name else self.cells[exercise.name], names)
        try:
            for part, wanted in zip(parts(check), (seen, hidden), strict=True):
                if wanted:
                    exec(compile(part, name, "exec"), names)
        except AssertionError as error:
            return str(error) or "an assert without a message"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""


@functools.cache
def _records(source: str) -> dict:
    """The names that an exercise cell gives: the records, and predictions for them, of a model that is trained at once."""
    names = {"np": np, "xc": xc}
    exec(source.replace("OneVsRest()", "KNN()"), names)
    return names


def asserts(text: str) -> list[ast.Assert]:
    """Every assert of a check."""
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert)]


def parts(check: str) -> tuple[str, str]:
    """What students see of a check, and what is hidden."""
    return lessons._HIDDEN.sub("", check), "\n".join(lessons._HIDDEN.findall(check))


def text(notebook: dict | Path) -> str:
    """All that stands in a notebook's cells; a path is read."""
    notebook = notebooks.read(notebook) if isinstance(notebook, Path) else notebook
    return "\n".join(notebooks.text(cell["source"]) for cell in notebook["cells"])


# ---------------------------------------------------------------- what no student's copy may hold


def hidden_tests(lesson: Lesson) -> list[str]:
    """The text of every hidden test."""
    return [found for cell in lesson.notebook["cells"] for found in lessons._HIDDEN.findall(lessons._text(cell))]


def teachers(lesson: Lesson) -> list[str]:
    """Every text that is for the teacher only: cells with the tag, and regions of other cells."""
    found = []
    for cell in lesson.notebook["cells"]:
        source = lessons._text(cell)
        found += [source] if lessons._is_teachers(cell) else lessons._TEACHERS.findall(source)
    return found
