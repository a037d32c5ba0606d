"""Lessons are what their readers rely on: complete, checked, and each fault named by notebook and cell."""

from __future__ import annotations

import ast
import itertools
import re

import pytest

import xcrepro as xc
from tests.tools.course import answers
from xcrepro.core import paths
from xcrepro.core.errors import DataError, DataMissing
from xcrepro.repro.engine import notebooks
from xcrepro.tools.course import lessons


def test_there_are_ten_lessons(course):
    assert [lesson.number for lesson in course] == list(range(1, 11))
    assert len({lesson.title for lesson in course}) == 10


def test_every_picture_is_there_when_the_lesson_is_opened_unrun(course, root):
    for lesson in course:
        cells = lesson.notebook["cells"]
        for cell, below in itertools.pairwise(cells):
            if "plt.show()" in notebooks.text(cell["source"]) and cell["cell_type"] == "code":
                alt, link = re.fullmatch(r"!\[(.{40,})\]\((\S+\.png)\)", notebooks.text(below["source"])).groups()
                assert "figures/course" in link
                assert alt.count(" ") > 8
                assert (lesson.path.parent / link).stat().st_size < 60_000


def test_lessons_use_the_public_face_only(course):
    for lesson in course:
        for cell in notebooks.code_cells(lesson.notebook):
            for node in ast.walk(ast.parse(notebooks.text(cell["source"]))):
                if isinstance(node, ast.ImportFrom):
                    assert not (node.module or "").startswith("xcrepro"), f"{lesson.name}: from {node.module}"
                elif isinstance(node, ast.Import):
                    names = [(alias.name, alias.asname) for alias in node.names if alias.name.startswith("xcrepro")]
                    assert names in ([], [("xcrepro", "xc")]), f"{lesson.name}: {names}"
                elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "xc":
                    assert node.attr in xc.__all__, f"{lesson.name}: xc.{node.attr}"
                    assert not node.attr.startswith("_")


def test_points_in_headings_are_those_of_the_checks(course):
    for lesson in course:
        prose = answers.text(lesson.notebook)
        printed = [int(points) for points in re.findall(r"^## \d\. .*\((\d+) points?\)$", prose, re.MULTILINE)]
        assert printed == [exercise.points for exercise in lesson.exercises], lesson.name


def test_what_is_read(save, small):
    lesson = lessons.read(save(small))
    assert (lesson.name, lesson.number, lesson.title, lesson.points) == ("01_small", 1, "Small", 3)
    assert [(e.name, e.points, e.checked_by, e.open) for e in lesson.exercises] == [
        ("double", 2, "test_double", False),
        ("why", 1, "", True),
    ]
    assert lesson.solutions() == ["    return x + x\n", "A good answer names a doubler."]
    (hidden,) = answers.hidden_tests(lesson)
    assert hidden.endswith('assert double(x) == 2 * x, "double: drawn data"\n')


def _marks(cells, place, **changed):
    cells[place]["metadata"]["nbgrader"].update(changed)


def _source(cells, place, old, new):
    assert old in cells[place]["source"]
    cells[place]["source"] = cells[place]["source"].replace(old, new)


FAULTS = {
    "grade_id twice": (lambda c: _marks(c, 3, grade_id="double"), "grade_id 'double' in cell 2 and in cell 4"),
    "no grade_id": (lambda c: _marks(c, 1, grade_id=""), "cell 2 without a grade_id"),
    "no test": (lambda c: c.pop(2), r"cell 2 \('double'\), a solution without a test"),
    "no solution": (lambda c: c.pop(1), r"cell 2 \('test_double'\), a check without a solution"),
    "no points": (lambda c: _marks(c, 2, points=0), r"cell 3 \('test_double'\), a graded cell with points 0"),
    "not locked": (lambda c: _marks(c, 2, locked=False), r"cell 3 \('test_double'\), a check that is not locked"),
    "silent stub": (lambda c: _source(c, 1, '    """Twice x."""\n', ""), r"cell 2 \('double'\), a stub that is silent"),
    "nothing between": (
        lambda c: _source(c, 1, "    ### BEGIN SOLUTION\n    return x + x\n    ### END SOLUTION", "    return x"),
        r"cell 2 \('double'\), a solution cell without a solution",
    ),
    "not ended": (lambda c: _source(c, 1, "    ### END SOLUTION", ""), r"cell 2 \('double'\): BEGIN SOLUTION"),
    "solution in the test": (
        lambda c: _source(c, 2, "assert double(2)", "### BEGIN SOLUTION\n### END SOLUTION\nassert double(2)"),
        r"cell 3 \('test_double'\): BEGIN SOLUTION in a cell that is not marked",
    ),
    "hidden in the solution": (
        lambda c: _source(c, 1, "def", "### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS\ndef"),
        r"cell 2 \('double'\): BEGIN HIDDEN TESTS in a cell that is not marked",
    ),
    "all hidden": (
        lambda c: _source(c, 2, 'assert double(2) == 4, "twice two"\n', ""),
        r"cell 3 \('test_double'\), a check of which no part students see",
    ),
    "nothing hidden": (
        lambda c: _source(c, 2, 'assert double(x) == 2 * x, "double: drawn data"\n', ""),
        r"cell 3 \('test_double'\), a check of which no part is hidden",
    ),
    "no message": (
        lambda c: _source(c, 2, ', "double: drawn data"', ""),
        r"cell 3 \('test_double'\), an assert that says nothing: assert double\(x\) == 2 \* x",
    ),
    "nothing drawn": (
        lambda c: _source(c, 2, "  # drawn anew by the teacher's seed", ""),
        r"cell 3 \('test_double'\), hidden cases that no seed draws",
    ),
    "no slide type": (lambda c: c[1]["metadata"].pop("slideshow"), r"cell 2 \('double'\) with slide type None"),
    "another number": (lambda c: _source(c, 0, "Lesson 1", "Lesson 2"), "another name or first heading"),
    "notes for everybody": (
        lambda c: c[0]["metadata"]["slideshow"].update(slide_type="notes"),
        "cell 1, speaker's notes that students would get",
    ),
    "folded answer": (
        lambda c: _source(c, 0, "See", "<details>Yes.</details>\n\nSee"),
        "cell 1, a folded answer that students would get",
    ),
    "region not ended": (
        lambda c: _source(c, 0, "See", "<!-- BEGIN TEACHER -->\nSee"),
        "cell 1: a region for the teacher that does not begin or end",
    ),
    "graded and the teacher's": (
        lambda c: c[3]["metadata"].update(tags=["teacher"]),
        r"cell 4 \('why'\), tagged 'teacher', has nbgrader's metadata",
    ),
    "no exercise": (lambda c: [c.pop() for _ in range(3)], "no exercise"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_named(save, small, fault):
    plant, said = FAULTS[fault]
    plant(small)
    path = save(small)
    with pytest.raises(DataError, match=said) as error:
        lessons.read(path)
    assert str(path) in str(error.value)


def test_lessons_count_from_one(save, small):
    _source(small, 0, "Lesson 1", "Lesson 2")
    save(small, "02_small")
    with pytest.raises(DataError, match="lesson 1"):
        lessons.find()


def test_a_project_without_lessons_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_ROOT", str(tmp_path))
    monkeypatch.setattr(paths, "_BROUGHT", tmp_path)
    with pytest.raises(DataMissing, match="no lessons"):
        lessons.find()


def first_cell(root) -> str:
    page = (root / "docs/teach.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"```\n(try:\n.*?)```", page, re.DOTALL)
    return found


def test_the_first_cell_for_colab_is_python_and_installs_only_what_is_missing(root):
    transform = pytest.importorskip("IPython.core.inputtransformer2", reason="IPython reads cells with %pip")
    cell = transform.TransformerManager().transform_cell(first_cell(root))
    (tried,) = ast.parse(cell).body
    assert "run_line_magic('pip', \"install -q 'xcrepro-0.1.0-py3-none-any.whl[course]'\")" in ast.unparse(tried)
    exec(compile(cell, "first cell", "exec"), {})  # the package is here, so nothing is installed


def test_the_wheel_of_the_first_cell_is_this_version(root):
    version = re.search(r'__version__ = "(.*?)"', (root / "xcrepro/core/version.py").read_text())[1]
    page = (root / "docs/teach.md").read_text(encoding="utf-8")
    assert set(re.findall(r"xcrepro-([\d.]+)-py3", page)) == {version}
