"""Self-study: what the cells of a self-learner's copies call, so that nobody is needed who grades.

``xcrepro course DIR --self-study`` writes the copies. A check there begins with :meth:`Study.tried`, so that a try counts
wherever it fails, and goes on with :meth:`Study.more`, which runs the hidden cases one after the other. :meth:`Study.hint`
gives two hints and then the solution, as soon as there were enough tries, :meth:`Study.quiz` a reason for each choice,
:meth:`Study.compare` a model answer for an exercise in words, and what to look for in one's own. What was done is kept in
``progress.json`` beside the copies. The texts are in ``study.toml``; the cases are the lessons' own.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.arguments import one_of
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.repro.engine import manifest, notebooks
from xcrepro.tools.course import lessons, mistakes, quizzes

PROGRESS = "progress.json"
HINTS, SOLUTION = 2, 5
"""So often a program is tried before there are hints to it, and before its solution is shown."""


class Study:
    """One lesson's checks, hints, quiz and model answer, and what was done of it.

    Parameters
    ----------
    name : str
        The lesson's name, such as ``"02_precision_and_ndcg"``.
    seed : int, optional
        That of the copies.
    folder : path_like
        Where ``progress.json`` is.
    """

    def __init__(self, name: str, seed: int | None = None, folder: str | os.PathLike = "."):
        lesson = lessons.read(paths.committed(f"notebooks/{manifest.LESSONS}/{name}.ipynb"))
        self.lesson = lesson if seed is None else lessons.drawn(lesson, seed)
        self.texts = quizzes.texts()[name]
        self.seed = seed
        self.path = Path(folder) / PROGRESS
        self._cells = self.lesson.cells

    @functools.cached_property
    def asked(self) -> list[quizzes.Question]:
        """The quiz, with its questions of earlier lessons; read when it is opened."""
        return quizzes.questions(lessons.find(), self.seed)[self.lesson.name]

    def tried(self, exercise: str, names: Mapping) -> None:
        """Count a try of an exercise, and name a known mistake of the program in ``names``: a check calls it first, because
        nothing after an assert that fails is run."""
        self._note(self._program(exercise), tries=self._noted(exercise).get("tries", 0) + 1)
        mistakes.look(self.lesson.name, exercise, names)

    def more(self, exercise: str, names: Mapping) -> None:
        """Run the hidden cases of an exercise on the programs in ``names``: how many hold, and the messages of the others."""
        check = self._cells[f"test_{self._program(exercise)}"]
        room, said, passed, cases = dict(names), [], 0, list(_cases(lessons.hidden(check)))
        for case in cases:
            try:
                exec(compile(case, f"more cases of {exercise}", "exec"), room)
                passed += 1
            except AssertionError as error:
                said.append(str(error))
            except Exception as error:  # whatever a learner's program does
                said.append(f"{exercise}: {type(error).__name__}: {error}")
        done = self._note(exercise, done=passed == len(cases))
        print(f"{exercise}: {passed} of {len(cases)} more cases are right")
        for message in said:
            print(f"- {message}")
        programs = self.lesson.programs
        ready = sum(done.get(name, {}).get("done", False) for name in programs)
        print(f"Lesson {self.lesson.number}: {ready} of {len(programs)} programs are done")

    def hint(self, exercise: str) -> None:
        """The first hint, then the second, then the solution: after the tries of :data:`HINTS`, or once it is done."""
        hints = self.texts["hints"][self._program(exercise)]
        noted = self._noted(exercise)
        shown, tries = noted.get("hints", 0), noted.get("tries", 0)
        wanted = 0 if noted.get("done") else HINTS if shown < len(hints) else SOLUTION
        if tries < wanted:
            what = "hints" if shown < len(hints) else "a solution, because both hints are used"
            print(f"Run the check of your program: after {wanted} tries this shows {what}. So far there are {tries}.")
        elif shown < len(hints):
            print(f"Hint {shown + 1}: {hints[shown]}")
            self._note(exercise, hints=shown + 1)
        else:
            body = "\n...\n".join(textwrap.dedent(part).rstrip() for part in lessons.solution(self._cells[exercise]))
            print(f"A solution of {exercise}:\n\n{textwrap.indent(body, '    ')}")
            self._note(exercise, solution=True)

    def quiz(self, number: int, choice: str = "") -> None:
        """The choices of a question, or whether this choice is right, and why."""
        if isinstance(number, bool) or number not in range(1, len(self.asked) + 1):
            raise ArgumentError("number", f"must be a question of the quiz, 1 to {len(self.asked)}", number)
        choices = self.asked[number - 1].choices
        if not choice:
            print("\n".join(f"({letter}) {one['says']}" for letter, one in zip("abcdef", choices, strict=False)))
            return
        letters = "abcdef"[: len(choices)]
        taken = choices[letters.index(one_of("choice", str(choice).lower(), list(letters)))]
        print(f"{'Right' if taken.get('right') else 'No'}. {taken['why']}")
        self._note(f"quiz {number}", done=bool(taken.get("right")))

    def compare(self, exercise: str, answers: str = "") -> None:
        """A model answer to the exercise in words, and three questions to one's own; ``answers`` such as "yyn" are kept."""
        asked = self.texts["open"]
        one_of("exercise", exercise, [one.name for one in self.lesson.exercises if one.open])
        if not answers:
            print("An example of a good answer:\n\n" + textwrap.fill(asked["model"], 100) + "\n\nDid you say")
            print("\n".join(f"{number}. {question}" for number, question in enumerate(asked["questions"], 1)))
            print(f'Answer with y or n, as in study.compare("{exercise}", "yyn").')
            return
        if len(answers) != len(asked["questions"]) or set(answers) - set("yn"):
            rule = f"must be {len(asked['questions'])} letters, y or n"
            raise ArgumentError("answers", rule, repr(answers), 'for example "yyn"')
        self._note(exercise, done="n" not in answers, said=answers)
        missing = [question for question, answer in zip(asked["questions"], answers, strict=True) if answer == "n"]
        print("All of it." if not missing else "Look again at: " + " ".join(missing))

    def _program(self, exercise: str) -> str:
        return one_of("exercise", exercise, self.lesson.programs)

    def _read(self) -> dict:
        if not self.path.exists():
            return {}
        try:
            return json.loads(self.path.read_text(encoding="utf-8"))
        except json.JSONDecodeError:
            raise DataError(self.path, "no JSON", "what was done", do="Move it away: a new one is begun") from None

    def _noted(self, exercise: str) -> dict:
        """What was done of this exercise before."""
        return self._read().get(self.lesson.name, {}).get(exercise, {})

    def _note(self, exercise: str, **what) -> dict:
        """Keep what was done; what is done stays done. What is known of this lesson then."""
        kept = self._read()
        mine = kept.setdefault(self.lesson.name, {})
        noted = mine.setdefault(exercise, {})
        if "done" in what:
            what["done"] = what["done"] or noted.get("done", False)
        noted |= what
        with paths.atomic_path(self.path) as part:
            part.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        return mine


def _cases(hidden: str) -> Iterator[ast.Module]:
    """The hidden tests in pieces, each up to the next statement that asserts something."""
    body: list[ast.stmt] = []
    for statement in ast.parse(hidden).body:
        body.append(statement)
        if any(isinstance(node, ast.Assert) for node in ast.walk(statement)):
            yield ast.Module(body, [])
            body = []
    if body:
        yield ast.Module(body, [])


def copy(lesson: lessons.Lesson, course: list[lessons.Lesson], seed: int | None = None) -> dict:
    """A self-learner's notebook: stubs, checks that go on with the hidden cases, hints, quiz and model answer as calls."""
    call = f"Study({lesson.name!r}" + ("" if seed is None else f", seed={seed}") + ")"
    found = lessons.students(lesson.notebook)
    cells, begun = [], False
    for cell in found["cells"]:
        source, marks = notebooks.text(cell["source"]), cell["metadata"].get("nbgrader", {})
        cell = {key: value for key, value in cell.items() if key != "metadata"} | {"metadata": {}}
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
            if not begun:
                source += f"\nfrom xcrepro.tools.course.study import Study\n\nstudy = {call}"
                begun = True
        name = marks.get("grade_id", "")
        if marks.get("solution") and marks.get("grade"):
            shown = f'# Written? Take the # away.\n# study.compare("{name}")'
            cells += [cell | {"source": "Write your answer here."}, _call(cell, shown)]
            continue
        if marks.get("solution"):
            source = lessons.stub(source)
        elif marks.get("grade"):
            name = name.removeprefix("test_")
            first, last = (f'study.{call}("{name}", globals())' for call in ("tried", "more"))
            source = f"{first}\n{lessons.without_hidden(source)}\n{last}"
            cells += [cell | {"source": source}, _call(cell, f'# Stuck? Take the # away.\n# study.hint("{name}")')]
            continue
        cells.append(cell | {"source": source})
        if cell["cell_type"] == "markdown" and source.startswith("# Quiz"):
            asked = quizzes.questions(course, seed)[lesson.name]
            cells[-1]["source"] = _quiz(asked, source)
            calls = "\n".join(f'study.quiz({number}, "")' for number in range(1, len(asked) + 1))
            cells.append(_call(cell, f'# Put a letter between the quotation marks, such as "a".\n{calls}'))
    return found | {"cells": cells}


def _quiz(asked: list[quizzes.Question], source: str) -> str:
    """The quiz with its choices below each question."""
    for number, question in enumerate(asked, 1):
        choices = zip("abcdef", question.choices, strict=False)
        chosen = "\n".join(f"- ({letter}) {one['says']}" for letter, one in choices)
        head, mark, rest = source.partition(f"**{number}.**")
        asked, gap, after = rest.partition("\n\n**")
        source = f"{head}{mark}{asked.rstrip()}\n\n{chosen}{gap}{after}"
    return source


def _call(cell: dict, source: str) -> dict:
    """A code cell after this one."""
    made = {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
    return made | ({"id": f"{cell['id'][:56]}-study"} if "id" in cell else {})
