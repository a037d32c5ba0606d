"""Every exercise against its typical wrong programs: each gets the message that names what is wrong with this input."""

from __future__ import annotations

import ast
import copy
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.tools.course import answers
from xcrepro.tools.course import lessons, mistakes

WRONG = mistakes.known()


@pytest.fixture(scope="module")
def rooms(course):
    return {lesson.name: answers.Room(lesson) for lesson in course}


def test_every_exercise_has_its_wrong_programs(rooms):
    assert {name: list(programs) for name, programs in WRONG.items()} == {
        name: [exercise.name for exercise in room.exercises] for name, room in rooms.items()
    }
    for programs in WRONG.values():
        for name, wrong in programs.items():
            assert len(wrong) >= 4, name
            assert len({what for what, _, _ in wrong}) == len({body for _, body, _ in wrong}) == len(wrong), name


def test_the_teachers_page_says_how_many_there_are(root):
    (said,) = re.findall(
        r"Every one of the (\d+) typical wrong programs", (root / "docs/teach.md").read_text(encoding="utf-8")
    )
    assert int(said) == sum(len(wrong) for programs in WRONG.values() for wrong in programs.values())


@pytest.mark.parametrize("lesson", WRONG)
def test_a_right_program_passes_and_is_told_so(rooms, lesson, capsys):
    for exercise in rooms[lesson].exercises:
        assert rooms[lesson].run(exercise.name) == "", exercise.name
        said = capsys.readouterr().out.splitlines()
        assert len(said) == 1, exercise.name
        assert said[0].startswith(f"{exercise.name}: "), exercise.name


@pytest.mark.parametrize("lesson", WRONG)
def test_each_wrong_program_gets_its_message_from_what_students_see(rooms, lesson, capsys):
    for name, wrong in WRONG[lesson].items():
        for what, body, message in wrong:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                said = rooms[lesson].run(name, body, hidden=False)
            assert said.startswith(message), f"{name}, {what}"
            assert capsys.readouterr().out == "", f"{name}, {what}: a wrong program is told that it is right"


def test_hidden_messages_name_the_exercise(rooms):
    """A student who only sees the message must know of which program it speaks; lessons without a message are not read."""
    for room in rooms.values():
        for exercise in room.exercises:
            names = ("skill", "best_constant") if exercise.name == "skill" else exercise.name
            for node in answers.asserts(answers.parts(room.cells[exercise.checked_by])[1]):
                said = ast.unparse(node.msg).lstrip("f")[1:]
                assert said.startswith(names), f"{exercise.name}: {said}"


@pytest.mark.parametrize("seed", [None, 1, 2027])
def test_hidden_cases_by_themselves_accept_right_programs_and_refuse_wrong_ones(course, seed, capsys):
    """They are the ones that count: a program that looks the visible cases up must fail there; those of another seed too."""
    passed = []
    for lesson in course:
        room = answers.Room(lesson if seed is None else lessons.drawn(lesson, seed))
        for exercise in room.exercises:
            assert room.run(exercise.name, seen=False) == "", exercise.name
            for what, body, _ in WRONG[lesson.name][exercise.name]:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    if room.run(exercise.name, body, seen=False) == "":
                        passed.append(f"{exercise.name}: {what}")
    assert len(passed) <= (0 if seed is None else 2), passed


RIGHT = mistakes.known(Path(__file__).with_name("right_programs.txt"))
"""Two or three programs of another form than each solution, in the form of the wrong ones."""
LONG = "XCREPRO_COURSE" in os.environ


@pytest.mark.parametrize("lesson", RIGHT)
def test_right_programs_of_another_form_pass_whatever_is_drawn(course, rooms, lesson):
    """Equal values are equal in each form: no seed may draw what rounding decides (make test-course tries 50)."""
    (whole,) = (one for one in course if one.name == lesson)
    assert {name: len(forms) >= 2 for name, forms in RIGHT[lesson].items()} == dict.fromkeys(whole.programs, True)
    refused, room = [], copy.copy(rooms[lesson])  # with the same records, which take long
    for seed in range(50 if LONG else 2):
        room.cells = lessons.drawn(whole, seed).cells
        for name, forms in RIGHT[lesson].items():
            for what, body in [("the solution", None), *((what, body) for what, body, _ in forms)]:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    if said := room.run(name, body, seen=seed == 0):
                        refused.append((seed, name, what, said))
    assert refused == []


UNSTEADY = {"no seed", "a generator of its own"}
"""Programs that say another thing at each call."""


@pytest.mark.parametrize("lesson", WRONG)
def test_each_wrong_program_is_named_by_its_mistake(rooms, lesson):
    """Whatever the check says first: of programs that agree on all inputs, one is named for both."""
    room, unnamed = rooms[lesson], []
    for name, wrong in WRONG[lesson].items():
        mistakes.look(lesson, name, room.names)
        for what, body, _ in wrong:
            names = dict(room.names)
            for exercise in room.exercises:
                source = room.cells[exercise.name]
                exec(mistakes.with_body(source, body) if exercise.name == name else source, names)
            try:
                mistakes.look(lesson, name, names)
                said = ""
            except AssertionError as error:
                said = str(error)
            named = said.removeprefix(f"{name}: known mistake: ").partition(". ")[0].split("; or ")
            if what not in named:
                unnamed.append((what, said))
            assert len(named) < 3, named
    assert {what for what, _ in unnamed} <= UNSTEADY, unnamed


def test_a_program_that_no_known_one_is_like_is_left_to_its_check(rooms):
    room = rooms["01_data_and_long_tail"]
    mistakes.look("01_data_and_long_tail", "summary", room.names | {"summary": lambda Y: (0.123, 4.5, [6])})
    mistakes.look("01_data_and_long_tail", "summary", room.names | {"summary": lambda Y: 1 / 0})
