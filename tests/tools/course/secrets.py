"""What no student's copy may hold, as a lesson's own notebook has it."""

from __future__ import annotations

from xcrepro.tools.course import lessons


def hidden_tests(lesson: lessons.Lesson) -> list[str]:
    """The text of every hidden test."""
    return [found for cell in lesson.notebook["cells"] for found in lessons._HIDDEN.findall(lessons._text(cell))]


def teachers(lesson: lessons.Lesson) -> list[str]:
    """Every text that is for the teacher only: cells with the tag, and regions of other cells."""
    return [
        found
        for cell in lesson.notebook["cells"]
        for found in (
            [lessons._text(cell)] if lessons._is_teachers(cell) else lessons._TEACHERS.findall(lessons._text(cell))
        )
    ]
