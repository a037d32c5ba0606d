"""Lessons through nbgrader, from the student's copy to the points: one in every run, all where XCREPRO_COURSE is set."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec

import pytest

from xcrepro.repro.engine import notebooks
from xcrepro.tools.course import copies, mistakes

# Looked for and not imported: that takes seconds, in each process that collects the tests.
pytestmark = (
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # nbgrader's own; nothing of this project
    if find_spec("nbgrader")
    else pytest.mark.skip(reason="nbgrader is not installed (the extra `course`)")
)

LESSONS = sorted(mistakes.known()) if os.environ.get("XCREPRO_COURSE") else ["01_data_and_long_tail"]


def _answered(lesson, copy: dict, wrong: dict[str, str | None]) -> dict:
    """The student's copy with the solutions written into it, but for the wrong ones, of which None is the stub."""
    right = {
        cell["metadata"]["nbgrader"]["grade_id"]: notebooks.text(cell["source"])
        for cell in lesson.notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("solution")
    }
    for cell in copy["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("solution") and (name := marks["grade_id"]) not in wrong:
            cell["source"] = right[name]
        elif marks.get("solution") and wrong[name] is not None:
            cell["source"] = mistakes.with_body(right[name], wrong[name])
    return copy


def _points(folder, lesson: str, student: str) -> dict[str, float]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}", copies.SETTINGS["CourseDirectory"]["course_id"]) as book:
        (notebook,) = book.find_submission(lesson, student).notebooks
        return {grade.name: grade.auto_score for grade in notebook.grades if grade.name.startswith("test_")}


@pytest.mark.parametrize("name", LESSONS)
def test_solutions_stubs_and_wrong_answers_get_the_points_they_should(course, tmp_path, name):
    (lesson,) = [one for one in course if one.name == name]
    copies.grade([lesson], tmp_path)
    nbgrader = copies.api(tmp_path)
    handed_out = (tmp_path / "release" / name / f"{name}.ipynb").read_text(encoding="utf-8")
    wrong = {
        exercise: (None, programs[0][1], programs[-1][1])[number % 3]
        for number, (exercise, programs) in enumerate(mistakes.known()[name].items())
    }
    answers = {
        student: _answered(lesson, json.loads(handed_out), own) for student, own in (("right", {}), ("wrong", wrong))
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
    assert scored["wrong"] == dict.fromkeys(full, 0)
