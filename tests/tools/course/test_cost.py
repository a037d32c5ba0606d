"""A lesson costs no more than promised: one minute on one core, 2 GB of memory."""

from __future__ import annotations

import os
import re

import pytest

from tests.tools.course import cost
from xcrepro.tools.course import lessons

LESSONS = range(1, 11) if os.environ.get("XCREPRO_COURSE") else [6]  # a quick one


@pytest.mark.parametrize("number", LESSONS)
def test_a_lesson_keeps_the_promise(course, number):
    found = cost.of(course[number - 1])
    assert found.processor < cost.SECONDS
    assert 50 < found.megabytes < cost.MEGABYTES


def test_the_teachers_page_has_what_each_lesson_costs(course, root):
    page = (root / "docs/teach.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (\d+) \| ([\d,]+) \|$", page, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == [lesson.number for lesson in course]
    for _, seconds, megabytes in rows:
        assert int(seconds) <= cost.SECONDS
        assert int(megabytes.replace(",", "")) <= cost.MEGABYTES


def test_the_talk_of_a_unit_fits_a_quarter_of_an_hour(course):
    for lesson in course:
        talk = cost.minutes(lesson)
        assert list(talk) == list(range(1, 4 if lesson.number == 9 else 3))
        for unit, long in talk.items():
            assert 3 < long <= cost.UNIT, f"{lesson.name}: unit {unit}"


def test_minutes_are_words_said_and_cells_and_formulas_shown(save, small):
    """Of 260 words, a formula, a cell and a speaker's note: two, one, one and no minutes."""
    said = " ".join(["word"] * 259) + " $p_l < 1$"
    slides = [("slide", "markdown", said), ("fragment", "markdown", "$$a = b$$"), ("fragment", "code", "1 + 1")]
    talk = [*slides, ("skip", "markdown", "**Unit 2 (15 minutes): end.**"), ("slide", "markdown", "word " * 65)]
    talk += [("notes", "markdown", said), ("skip", "code", "2 + 2")]
    cells = [
        {"cell_type": kind, "id": f"talk{i}", "source": source, "metadata": {"slideshow": {"slide_type": slide}}}
        | ({"execution_count": None, "outputs": []} if kind == "code" else {})
        | ({"metadata": {"slideshow": {"slide_type": slide}, "tags": ["teacher"]}} if slide == "notes" else {})
        for i, (slide, kind, source) in enumerate(talk)
    ]
    assert cost.minutes(lessons.read(save([small[0], *cells, *small[1:]]))) == {1: 4, 2: 0.5}
