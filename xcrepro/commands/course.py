"""``course``: the lessons for students and teachers."""

from __future__ import annotations

from pathlib import Path


def add(command) -> None:
    sub = command("course", _course, "write the course's notebooks for students, for a teacher, or as slides")
    sub.add_argument("folder", type=Path, metavar="DIR", help="where to; new or empty")
    kind = sub.add_mutually_exclusive_group()
    kind.add_argument(
        "--solutions",
        action="store_true",
        help="for a teacher: nbgrader's course folder with solutions, and instructor.md",
    )
    kind.add_argument(
        "--slides", action="store_true", help="a page of slides a lesson (runs the lessons, some minutes)"
    )


def _course(arguments) -> int:
    from xcrepro.course import copies

    kind = copies.SOLUTIONS if arguments.solutions else copies.SLIDES if arguments.slides else copies.STUDENTS
    for name in copies.write(arguments.folder, kind):
        print(arguments.folder / name)
    return 0
