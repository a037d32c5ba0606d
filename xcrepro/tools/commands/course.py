"""``course``: the lessons for students and teachers."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

from xcrepro.tools.commands import shared

_LARGE = 10**12
"""Seeds below can be found from a lesson's numbers by trying."""


def add(command) -> None:
    sub = command("course", _course, "write the course's notebooks for students, for a teacher, or as slides")
    sub.add_argument("folder", type=Path, metavar="DIR", help="where to; new or empty")
    kind = sub.add_mutually_exclusive_group()
    shared.flag(kind, "--solutions", "for a teacher: nbgrader's course folder with solutions, and instructor.md")
    shared.flag(kind, "--slides", "a page of slides a lesson (runs the lessons, some minutes)")

    shared.flag(
        kind,
        "--self-study",
        "for who learns alone: checks that run all cases, hints, then solutions, a quiz with reasons; no nbgrader",
    )
    sub.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="other records and other hidden tests in the exercises, the same for the same N",
    )


def _course(arguments) -> int:
    from xcrepro.tools.course import copies

    if arguments.seed is not None and arguments.seed < _LARGE:
        do = f"a student who tries all small numbers finds it; take a drawn one, such as {secrets.randbits(60)}"
        print(f"note: --seed {arguments.seed} is small: {do}", file=sys.stderr)
    asked = {copies.SOLUTIONS: arguments.solutions, copies.SLIDES: arguments.slides}
    asked |= {copies.SELF_STUDY: arguments.self_study, copies.STUDENTS: True}
    kind = next(kind for kind, wanted in asked.items() if wanted)
    for name in copies.write(arguments.folder, kind, **shared.taken(arguments, "seed")):
        print(arguments.folder / name)
    return 0
