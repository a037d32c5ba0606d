"""Which mistake a program makes: some 290 known wrong programs run beside it on the same inputs.

``wrong_programs.txt`` has them by lesson (``#``) and exercise (``##``): what is wrong (``-``), the body that is between the
solution's markers (of two solutions, divided by ``---``), and how the message of the check begins that students see (``>``).
Copies of the lessons call :func:`look` at the head of each check.
"""

from __future__ import annotations

import contextlib
import copy
import io
import re
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from xcrepro.core import paths
from xcrepro.repro.engine import manifest, notebooks
from xcrepro.tools.course import lessons

_REGION = re.compile(r"(### BEGIN SOLUTION\n).*?([ \t]*### END SOLUTION)", re.DOTALL)

WRONG = Path(__file__).with_name("wrong_programs.txt")


@cache
def known(path: Path = WRONG) -> dict[str, dict[str, list[tuple[str, str, str]]]]:
    """Lesson -> exercise -> (what is wrong, the program's body, how the check's message begins)."""

    def parts(text: str, mark: str) -> Iterator[tuple[str, str]]:
        """What stands behind each line with a mark, by what the line says."""
        found = re.split(rf"^{mark} (.*)\n", text, flags=re.MULTILINE)
        return zip(found[1::2], found[2::2], strict=True)

    def programs(text: str) -> list[tuple[str, str, str]]:
        each = ((what, *re.split(r"^> ?", rest.rstrip("\n"), flags=re.MULTILINE)) for what, rest in parts(text, "-"))
        return [(what, body, message) for what, body, message in each]

    lessons = parts(path.read_text(encoding="utf-8"), "#")
    return {name: {exercise: programs(of) for exercise, of in parts(text, "##")} for name, text in lessons}


def with_body(source: str, body: str) -> str:
    """A cell whose solutions are another program: one body for each, divided by ``---`` lines."""
    left = iter(body.split("---\n"))
    return _REGION.sub(lambda found: f"{found.group(1)}{next(left)}{found.group(2)}", source)


def look(lesson: str, exercise: str, names: Mapping) -> None:
    """Raise an AssertionError that names the mistake, if the program in ``names`` agrees with a known wrong one in all values.

    A program that passes its check, hidden cases included, is right, and one that agrees with none is left to the check.
    """
    if not (programs := known().get(lesson, {}).get(exercise)):
        return
    cells = _cells(lesson)
    check = cells[f"test_{exercise}"]
    said = _fails(check, names)
    if said is None:
        return
    room = dict(names)
    written = [name.removeprefix("test_") for name in cells if name.startswith("test_")]
    for name in written:
        exec(cells[name], room)
    calls: list[tuple[str, tuple, dict]] = []
    for name in re.findall(r"^def (\w+)", cells[exercise], re.MULTILINE):
        room[name] = _recorder(name, room[name], calls)
    if _fails(check, room) is not None or not calls:
        return  # the check needs something that this notebook has not run
    mine = _values(names, calls)
    like = []
    for what, body, _ in programs:
        other = dict(room)
        for name in written:
            exec(with_body(cells[name], body) if name == exercise else cells[name], other)
        if all(_equal(one, two) for one, two in zip(mine, _values(other, calls), strict=True)):
            like.append(what)
    if like:
        raise AssertionError(f"{exercise}: known mistake: {'; or '.join(like)}. {said}".rstrip())


def asked_first(notebook: dict, lesson: str) -> dict:
    """A notebook whose checks look for known mistakes first."""

    def with_look(cell: dict) -> dict:
        marks = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] != "code" or not marks.get("grade") or marks.get("solution"):
            return cell
        exercise = marks["grade_id"].removeprefix("test_")
        head = f'mistakes.look("{lesson}", "{exercise}", globals())\n'
        return cell | {"source": f"from xcrepro.tools.course import mistakes\n\n{head}{notebooks.text(cell['source'])}"}

    return notebook | {"cells": [with_look(cell) for cell in notebook["cells"]]}


@cache
def _cells(lesson: str) -> dict[str, str]:
    """Programs and checks of a lesson, by their names."""
    return lessons.read(paths.committed(f"notebooks/{manifest.LESSONS}/{lesson}.ipynb")).cells


def _fails(check: str, names: Mapping) -> str | None:
    """What a check says of the programs in ``names``, or nothing if it is only a hidden case that fails; None if it passes."""
    said = ""
    try:
        with _quiet():
            room = dict(names)
            exec(lessons.without_hidden(check), room)
            said = None
            exec(lessons.hidden(check), room)
    except AssertionError as error:
        return "" if said is None else str(error)
    except Exception:
        return ""
    return None


def _recorder(name: str, function, calls: list):
    """The function, which notes what it is called with."""

    def called(*given, **named):
        calls.append((name, copy.deepcopy(given), copy.deepcopy(named)))
        return function(*given, **named)

    return called


def _values(names: Mapping, calls: list) -> list:
    """What a program makes of these calls: its value and what became of its arguments, or its error's name."""
    found = []
    for name, given, named in calls:
        given, named = copy.deepcopy(given), copy.deepcopy(named)
        try:
            with _quiet():
                found.append((names[name](*given, **named), given, named))
        except Exception as error:
            found.append(type(error).__name__)
    return found


@contextlib.contextmanager
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _equal(one, two) -> bool:
    """Whether two values are the same to rounding."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_equal(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple):
        return len(one) == len(two) and all(map(_equal, one, two))
    if isinstance(one, np.random.Generator):
        return isinstance(two, np.random.Generator)  # however often it was asked
    if one is None or isinstance(one, str | set) or (type(one).__module__ == "builtins" and not np.isscalar(one)):
        return type(one) is type(two) and one == two
    with contextlib.suppress(Exception):
        one, two = (each.toarray() if hasattr(each, "toarray") else np.asarray(each) for each in (one, two))
        if one.dtype.kind in "biufc" and two.dtype.kind in "biufc":
            return one.shape == two.shape and bool(np.allclose(one, two, equal_nan=True))
        return bool(one.shape == two.shape and (one == two).all())
    return one is two
