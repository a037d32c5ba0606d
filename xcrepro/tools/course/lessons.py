"""A lesson: a notebook whose exercises carry nbgrader's metadata, read and checked."""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.errors import DataError, DataMissing
from xcrepro.repro.engine import manifest, notebooks

SLIDE_TYPES = ("slide", "subslide", "fragment", "notes", "skip")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
"""A link to a file: its words, the file, the place in it."""
PICTURE = re.compile(r"!\[([^\]]+)\]\(([^)\s]+)\)")
"""A picture: its words, the file. A cell that is one shows what the code cell above it draws."""
TEACHER = "teacher"
"""The tag of a cell that only the teacher's copy has."""
RESULT = "result"
"""The tag of a text that says what came out; copies fold it, so that it is read after one's own guess."""
_TEACHERS = re.compile(r"\n*^<!-- BEGIN TEACHER -->\n(.*?)^<!-- END TEACHER -->$", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"(\d\d)_[a-z0-9_]+")
_TITLE = re.compile(r"# Lesson (\d+): (.+)")
_WHOLE = (("BEGIN SOLUTION", "END SOLUTION"), ("BEGIN HIDDEN TESTS", "END HIDDEN TESTS"))
_SOLUTION = re.compile(r"^[ \t]*### BEGIN SOLUTION\n(.*?)^[ \t]*### END SOLUTION", re.DOTALL | re.MULTILINE)
DRAWN = re.compile(r"\b(default_rng\(|points=)(\d+)(\).*?  # drawn anew by the teacher's seed)$", re.MULTILINE)
"""A line whose number a teacher's seed replaces (:func:`drawn`): a generator's seed, or how many records are loaded."""
_HIDDEN = re.compile(r"^[ \t]*### BEGIN HIDDEN TESTS\n(.*?)^[ \t]*### END HIDDEN TESTS", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Exercise:
    """One exercise: code that a check grades, or a text that a person grades; ``name`` is the grade_id of the cell that a
    student writes, ``checked_by`` that of the check, empty where a person grades."""

    name: str
    points: float
    checked_by: str

    @property
    def open(self) -> bool:
        """Whether a person grades it."""
        return not self.checked_by


@dataclass(frozen=True)
class Lesson:
    """What :func:`read` found in a notebook: its place in the course, title and exercises; ``notebook`` has the solutions."""

    path: Path
    number: int
    title: str
    exercises: tuple[Exercise, ...]
    notebook: dict

    @property
    def name(self) -> str:
        """The file's name without its suffix, which nbgrader calls the assignment."""
        return self.path.stem

    @property
    def points(self) -> float:
        """What all exercises together can get."""
        return sum(exercise.points for exercise in self.exercises)

    @property
    def programs(self) -> list[str]:
        """The names of the exercises that a check grades."""
        return [exercise.name for exercise in self.exercises if not exercise.open]

    @property
    def cells(self) -> dict[str, str]:
        """The source of programs, checks and texts by their names."""
        cells = [cell for cell in self.notebook["cells"] if "nbgrader" in cell["metadata"]]
        return {cell["metadata"]["nbgrader"]["grade_id"]: _text(cell) for cell in cells}

    def solutions(self) -> list[str]:
        """The text of every solution, one a cell, as it stands in the notebook."""
        cells = self.notebook["cells"]
        return [one for cell in cells for one in ([_text(cell)] if _is_open(cell) else _SOLUTION.findall(_text(cell)))]


def words_of_picture(cells: list[dict], number: int) -> str:
    """The words of the picture that a code cell draws: those of the committed one below it, or none."""
    below = cells[number + 1] if number + 1 < len(cells) else None
    found = PICTURE.fullmatch(_text(below)) if below and below["cell_type"] == "markdown" else None
    return found[1] if found else ""


def for_students(text: str) -> str:
    """Markdown without what is for the teacher only.

    >>> for_students("Why?\\n\\n<!-- BEGIN TEACHER -->\\nBecause.\\n<!-- END TEACHER -->\\n\\nAnd?")
    'Why?\\n\\nAnd?'
    """
    return _TEACHERS.sub("", text)


def students(notebook: dict) -> dict:
    """A notebook of the same cells, without what is for the teacher only."""

    def shown(cell: dict) -> dict:
        return cell | {"source": for_students(_text(cell))} if cell["cell_type"] == "markdown" else cell

    return notebook | {"cells": [shown(cell) for cell in notebook["cells"] if not _is_teachers(cell)]}


def without_hidden(source: str) -> str:
    """A check without its hidden tests."""
    return _HIDDEN.sub("", source).rstrip("\n")


def hidden(source: str) -> str:
    """The hidden tests of a check."""
    return "\n".join(_HIDDEN.findall(source))


def solution(source: str) -> list[str]:
    """The bodies of a cell's solutions."""
    return _SOLUTION.findall(source)


STUB = 'raise NotImplementedError("Not written yet: the lines above say what to write.")'
"""What stands in the place of a solution."""


def stub(source: str) -> str:
    """A cell without its solutions."""
    return _SOLUTION.sub(lambda found: re.match(r"[ \t]*", found[0])[0] + STUB, source)


def drawn(lesson: Lesson, seed: int) -> Lesson:
    """The lesson with other records in its exercises and other hidden cases, for a seed of the teacher's.

    Lines that :data:`DRAWN` finds get another number: records of about as many, cases of another generator. The numbers come
    from the seed by a digest, so that nobody who sees one knows the others. Outputs from the first such line on are dropped,
    because they are those of other data.
    """

    def other(match: re.Match) -> str:
        key = f"{seed}, {lesson.name}, {match[1]}{match[2]}".encode()
        number = int.from_bytes(hashlib.sha256(key).digest()[:6])
        if match[1] == "points=":
            number = int(match[2]) + number % (int(match[2]) // 5)  # up to a fifth more, and so other counts and splits
        return f"{match[1]}{number}{match[3]}"

    cells, begun = [], False
    for cell in lesson.notebook["cells"]:
        if cell["cell_type"] == "code":
            source, times = DRAWN.subn(other, _text(cell))
            begun |= times > 0
            cell = cell | {"source": source} | ({"outputs": [], "execution_count": None} if begun else {})
        cells.append(cell)
    return replace(lesson, notebook=lesson.notebook | {"cells": cells})


def find() -> list[Lesson]:
    """All lessons of the project, checked (:func:`read`), in their order, which is 1, 2, ..."""
    folder = paths.committed(f"notebooks/{manifest.LESSONS}")
    found = [read(path) for path in sorted(folder.glob("*.ipynb"))]
    if not found:
        do = "run this in a checkout of the project, or set XCREPRO_ROOT to one"
        raise DataMissing(f"{folder} holds no lessons: {do}")
    for number, lesson in enumerate(found, start=1):
        if lesson.number != number:
            raise DataError(lesson.path, f"lesson {lesson.number}", f"lesson {number}", do="Lessons count from 1")
    return found


def read(path: str | os.PathLike) -> Lesson:
    """Read a lesson and check all that nbgrader, the slides and the students rely on; DataError names the notebook and the
    cell.

    Checked: the name, ``NN_name.ipynb``, and the first heading, ``# Lesson N: title``; slides' types; that every graded cell
    has a grade_id of its own; that every code solution is followed by its check, which is locked, has points, a part that
    students see and a part that they do not, every assert with a message, and a line in the hidden part that a seed draws anew
    (:data:`DRAWN`); that the markers of solutions and hidden tests stand in pairs and in cells that
    are marked so; that a solution cell says, outside the solution, what to write; that speaker's notes and folded answers
    are marked as the teacher's.
    """
    path = Path(path)
    notebook = notebooks.read(path)
    name, title = _NAME.fullmatch(path.stem), _TITLE.match(_text(notebook["cells"][0]) if notebook["cells"] else "")
    if not name or not title or int(name.group(1)) != int(title.group(1)):
        expected = "NN_name.ipynb, which begins `# Lesson N: title` with the same number"
        raise DataError(path, "another name or first heading", expected)
    exercises = _exercises(path, notebook)
    if not exercises:
        raise DataError(path, "no exercise", "cells with nbgrader's metadata")
    return Lesson(path, int(name.group(1)), title.group(2).strip(), tuple(exercises), notebook)


def _exercises(path: Path, notebook: dict) -> list[Exercise]:
    found: list[Exercise] = []
    places: dict[str, int] = {}
    waiting: tuple[str, str] | None = None  # a solution whose check has to come: where it is, its name
    for number, cell in enumerate(notebook["cells"], start=1):
        marks = cell["metadata"].get("nbgrader") or {}
        name, solution, grade = marks.get("grade_id"), bool(marks.get("solution")), bool(marks.get("grade"))
        where = f"cell {number}" + f" ({name!r})" * bool(name)
        if fault := next(_faults(cell, marks), None):
            raise DataError(path, f"{where}{fault[0]}", fault[1])
        if not marks:
            continue
        if name in places:
            expected = "a grade_id that no other cell has"
            raise DataError(path, f"grade_id {name!r} in cell {places[name]} and in cell {number}", expected)
        places[name] = number
        if waiting and solution:
            break
        if solution and grade:
            found.append(Exercise(name, marks["points"], ""))
        elif solution:
            waiting = where, name
        elif grade and waiting is None:
            raise DataError(path, f"{where}, a check without a solution before it", "solution, then its check")
        elif grade:
            found.append(Exercise(waiting[1], marks["points"], name))
            waiting = None
    if waiting:
        raise DataError(path, f"{waiting[0]}, a solution without a test", "a graded cell after it")
    return found


def _faults(cell: dict, marks: dict) -> Iterator[tuple[str, str]]:
    """What is wrong with a cell by itself, and what is expected."""
    source, kind = _text(cell), cell["metadata"].get("slideshow", {}).get("slide_type")
    solution, grade, points = (marks.get(name) for name in ("solution", "grade", "points"))
    if kind not in SLIDE_TYPES:
        yield f" with slide type {kind!r}", f"one of {', '.join(SLIDE_TYPES)}"
    for (begin, end), here in zip(_WHOLE, (solution, grade and not solution), strict=True):
        order = [word for line in source.splitlines() for word in (begin, end) if line.strip() == f"### {word}"]
        if order != [begin, end] * (len(order) // 2) or source.count(begin) + source.count(end) != len(order):
            yield f": {' and '.join(order) or begin}", f"`### {begin}` and `### {end}` in pairs"
        if order and not here:
            yield f": {begin} in a cell that is not marked for it", "nbgrader's metadata on the cell"
    # Speaker's notes and folded answers are the teacher's; what is graded stays in every copy.
    if source.count("BEGIN TEACHER") + source.count("END TEACHER") != 2 * len(_TEACHERS.findall(source)):
        expected = "`<!-- BEGIN TEACHER -->` and `<!-- END TEACHER -->` in pairs, each on a line of its own"
        yield ": a region for the teacher that does not begin or end", expected
    if _is_teachers(cell):
        if marks:
            yield f", tagged {TEACHER!r}, has nbgrader's metadata", "one or the other"
    elif kind == "notes":
        yield ", speaker's notes that students would get", f"the tag {TEACHER!r}"
    elif "<details" in for_students(source):
        yield ", a folded answer that students would get", "a region for the teacher"
    if marks and not (marks.get("grade_id") and isinstance(marks["grade_id"], str)):
        yield " without a grade_id", "one for every cell with nbgrader's metadata"
    if grade and not (isinstance(points, int | float) and points > 0):
        yield f", a graded cell with points {points!r}", "a number above 0"
    if solution and not grade:
        # Outside the solution there must be something that says what to write.
        if not _SOLUTION.search(source):
            yield ", a solution cell without a solution", "`### BEGIN SOLUTION` ... `### END SOLUTION`"
        if not re.search(r"#\s*\w|\"\"\"\s*[^\s\"]", _SOLUTION.sub("", source)):
            yield ", a stub that is silent", "a docstring or comment that says what to write"
    if grade and not solution:
        yield from _faults_of_check(source, bool(marks.get("locked")))


def _faults_of_check(source: str, locked: bool) -> Iterator[tuple[str, str]]:
    if not locked:
        yield ", a check that is not locked", "locked: true"
    for what, text in (("students see", _HIDDEN.sub("", source)), ("is hidden", hidden(source))):
        try:
            asserts = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert)]
        except SyntaxError as error:
            yield f", a check that is no Python ({error.msg})", "plain Python"
            return
        if not asserts:
            yield f", a check of which no part {what}", "an assert before the hidden tests and in them"
        for silent in (node for node in asserts if node.msg is None):
            said = f", an assert that says nothing: {ast.unparse(silent)}"
            yield said, "a message that says what is wrong with this input"
    if not DRAWN.search(hidden(source)):
        expected = "a line `random = np.random.default_rng(1)  # drawn anew by the teacher's seed` in them"
        yield ", hidden cases that no seed draws", expected


def _is_open(cell: dict) -> bool:
    marks = cell["metadata"].get("nbgrader", {})
    return bool(marks.get("solution") and marks.get("grade"))


def _is_teachers(cell: dict) -> bool:
    return TEACHER in cell["metadata"].get("tags", [])


def _text(cell: dict) -> str:
    return notebooks.text(cell["source"])
