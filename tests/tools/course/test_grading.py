"""Lessons through nbgrader, from the student's copy to the points: one in every run, all where XCREPRO_COURSE is set."""

from __future__ import annotations

import json
import os
import re
from importlib.util import find_spec

import pytest

from tests.tools.course.wrong_answers import TYPICAL, WRONG
from xcrepro.repro import notebooks
from xcrepro.tools.course import copies

# Looked for and not imported: that takes seconds, in each process that collects the tests.
pytestmark = (
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # nbgrader's own; nothing of this project
    if find_spec("nbgrader")
    else pytest.mark.skip(reason="nbgrader is not installed (the extra `course`)")
)

LESSONS = sorted(WRONG) if os.environ.get("XCREPRO_COURSE") else ["01_data_and_long_tail"]
_REGION = re.compile(r"(### BEGIN SOLUTION\n).*?([ \t]*### END SOLUTION)", re.DOTALL)


def _answered(lesson, copy: dict, wrong: dict[str, str]) -> dict:
    """The student's copy with the solutions written into it, but for the wrong ones."""
    right = {
        cell["metadata"]["nbgrader"]["grade_id"]: notebooks.text(cell["source"])
        for cell in lesson.notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("solution")
    }
    for cell in copy["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("solution"):
            name = marks["grade_id"]
            cell["source"] = _with_body(right[name], wrong[name]) if name in wrong else right[name]
    return copy


def _with_body(source: str, body: str) -> str:
    changed, times = _REGION.subn(lambda found: f"{found.group(1)}{body}{found.group(2)}", source)
    assert times == 1
    return changed


def _points(folder, lesson: str, student: str) -> dict[str, float]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", copies.SETTINGS["CourseDirectory"]["course_id"]) as book:
        (notebook,) = book.find_submission(lesson, student).notebooks
        return {grade.name: grade.auto_score for grade in notebook.grades if grade.name.startswith("test_")}


@pytest.mark.parametrize("name", LESSONS)
def test_stub_solution_and_wrong_answers_get_the_points_they_should(course, tmp_path, name):
    (lesson,) = [one for one in course if one.name == name]
    copies.grade([lesson], tmp_path)
    nbgrader = copies.api(tmp_path)
    handed_out = (tmp_path / "release" / name / f"{name}.ipynb").read_text(encoding="utf-8")
    answers = {
        "stub": json.loads(handed_out),
        "right": _answered(lesson, json.loads(handed_out), {}),
        "wrong": _answered(lesson, json.loads(handed_out), WRONG[name]),
        "typical": _answered(lesson, json.loads(handed_out), TYPICAL.get(name, {})),
    }
    scored = {}
    for student, notebook in answers.items():
        place = tmp_path / "submitted" / student / name
        place.mkdir(parents=True)
        (place / f"{name}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        said = nbgrader.autograde(name, student)
        assert said["success"], said
        scored[student] = _points(tmp_path, name, student)
    full = {exercise.checked_by: exercise.points for exercise in lesson.exercises if not exercise.open}
    assert scored["right"] == full
    assert scored["stub"] == dict.fromkeys(full, 0)
    for student, wrong in (("wrong", WRONG[name]), ("typical", TYPICAL.get(name, {}))):
        expected = {test: 0 if test.removeprefix("test_") in wrong else points for test, points in full.items()}
        assert scored[student] == expected, student
