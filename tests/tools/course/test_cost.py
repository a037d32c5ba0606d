"""A lesson costs no more than promised: one minute on one core, 2 GB of memory."""

from __future__ import annotations

import os
import re

import pytest

from tests.tools.course import cost

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
