"""The quizzes: each with two questions of earlier lessons, choices in a drawn order, and as files for a learning platform.

A question and its answer are in a lesson's quiz cell, its choices in ``study.toml``.
"""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xcrepro.core import extras
from xcrepro.repro.engine import notebooks
from xcrepro.tools.course.lessons import Lesson

EARLIER = 2
"""How many questions of a quiz are from earlier lessons."""
_QUESTION = re.compile(r"^\*\*(\d)\.\*\* (.*?)(?=^\*\*\d\.\*\* |\Z)", re.DOTALL | re.MULTILINE)


@cache
def texts() -> dict:
    """Hints, choices of the quizzes, and model answers: lesson -> what ``study.toml`` has of it."""
    return tomllib.loads(Path(__file__).with_name("study.toml").read_text(encoding="utf-8"))


class Question(NamedTuple):
    """A question as its lesson has it, answer included, and its choices in the order in which they are shown."""

    lesson: int
    text: str
    choices: list[dict]

    @property
    def asked(self) -> str:
        """The question without its answer."""
        return self.text.partition("<!-- BEGIN TEACHER -->")[0].strip()


def own(lesson: Lesson, seed: int | None = None) -> list[Question]:
    """The questions of a lesson's own quiz."""
    if (cell := _cell(lesson)) is None:
        return []
    asked = [text for _, text in _QUESTION.findall(notebooks.text(cell["source"]))]
    choices = texts()[lesson.name]["quiz"]
    found = []
    for n, (text, one) in enumerate(zip(asked, choices, strict=True), 1):
        order = _drawn(f"{lesson.name} {n} {seed}", len(one["choices"]))
        found.append(Question(lesson.number, text.strip(), [one["choices"][at] for at in order]))
    return found


def questions(course: list[Lesson], seed: int | None = None) -> dict[str, list[Question]]:
    """Lesson -> its questions and two of earlier lessons, none of them twice before all were asked."""
    found, waiting = {}, []
    for lesson in course:
        mine = own(lesson, seed)
        order = _drawn(f"earlier {lesson.name}", len(waiting))[:EARLIER]
        found[lesson.name] = mine + [waiting[at] for at in order]
        waiting = [one for at, one in enumerate(waiting) if at not in order] + mine
    return found


def with_earlier(course: list[Lesson], seed: int | None = None) -> list[Lesson]:
    """The lessons, whose quizzes go on with questions of earlier ones."""
    asked, made = questions(course, seed), []
    for lesson in course:
        more = asked[lesson.name][len(own(lesson)) :]
        if (quiz := _cell(lesson)) is None:
            made.append(lesson)
            continue
        source = notebooks.text(quiz["source"]).rstrip()
        first = len(asked[lesson.name]) - len(more) + 1
        source += "".join(f"\n\n**{n}.** (Lesson {one.lesson}) {one.text}" for n, one in enumerate(more, first))
        cells = [cell | {"source": source} if cell is quiz else cell for cell in lesson.notebook["cells"]]
        made.append(replace(lesson, notebook=lesson.notebook | {"cells": cells}))
    return made


def gift(course: list[Lesson], seed: int | None = None) -> str:
    """All quizzes in Moodle's GIFT, with a reason for each choice; other platforms import it, too."""
    lines = []
    for lesson in course:
        lines.append(f"$CATEGORY: Lesson {lesson.number}. {_escaped(lesson.title)}\n")
        for n, one in enumerate(own(lesson, seed), 1):
            choices = "\n".join(
                f"{'=' if choice.get('right') else '~'}{_escaped(choice['says'])}#{_escaped(choice['why'])}"
                for choice in one.choices
            )
            lines.append(f"::Lesson {lesson.number}, question {n}::[markdown]{_escaped(one.asked)}{{\n{choices}\n}}\n")
    return "\n".join(lines)


def qti(course: list[Lesson], folder: Path, seed: int | None = None) -> None:
    """A QTI package per quiz, as Canvas and others import it, by text2qti."""
    extras.library("text2qti")
    from text2qti.config import Config
    from text2qti.qti import QTI
    from text2qti.quiz import Quiz

    for lesson in course:
        if not own(lesson):
            continue
        lines = [f"Quiz title: Lesson {lesson.number}. {lesson.title}", ""]
        for n, one in enumerate(own(lesson, seed), 1):
            lines.append(f"{n}. {_one_line(one.asked)}")
            for letter, choice in zip("abcdef", one.choices, strict=False):
                lines.append(f"{'*' if choice.get('right') else ''}{letter}) {_one_line(choice['says'])}")
                lines.append(f"... {_one_line(choice['why'])}")
            lines.append("")
        QTI(Quiz("\n".join(lines), config=Config(), source_name=lesson.name)).save(folder / f"{lesson.name}.zip")


def exam(text: str, seed: int | None = None) -> str:
    """The exam with its numbers: ``[[expression]]`` is worked out from a few drawn ones; without a seed always the same.

    >>> exam("[[hits]] of a label that is kept with probability 1/[[p]]: [[hits * p]]")
    '6 of a label that is kept with probability 1/4: 24'
    """
    random = np.random.default_rng([*hashlib.sha256(f"exam {seed}".encode()).digest()])
    given = {"p": 4, "hits": 6, "others": 20, "p1": 80.0, "p3": 65.0, "n": 3548, "cov": 41.2}
    if seed is not None:
        given = {"p": int(random.choice([5, 8, 10])), "hits": int(random.integers(5, 12))}
        given |= {"others": 4 * int(random.integers(4, 9))}
        given |= {"p1": float(random.integers(760, 840)) / 10, "p3": float(random.integers(600, 680)) / 10}
        given |= {"n": int(random.integers(3000, 4500)), "cov": float(random.integers(300, 450)) / 10}
    given["p5"] = round((3 * given["p3"] - 5) / 5, 1)  # less than three fifths of P@3: no such hits
    return re.sub(r"\[\[(.+?)\]\]", lambda found: str(eval(found[1], {"sqrt": math.sqrt, "round": round}, given)), text)


def _cell(lesson: Lesson) -> dict | None:
    """The cell of the quiz, where there is one."""
    cells = lesson.notebook["cells"]
    return next((cell for cell in cells if notebooks.text(cell["source"]).startswith("# Quiz")), None)


def _drawn(key: str, n: int) -> list[int]:
    """An order of n things by a key."""
    random = np.random.default_rng([*hashlib.sha256(key.encode()).digest()[:8]])
    return random.permutation(n).tolist()


def _escaped(text: str) -> str:
    """Text in which GIFT's own characters mean themselves."""
    return re.sub(r"([~=#{}:\\])", r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())
