"""What ``xcrepro course`` writes: the students' copies, or the teacher's folder for nbgrader, or slides."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from xcrepro.core import extras, paths
from xcrepro.core.arguments import one_of, whole_number
from xcrepro.core.errors import ArgumentError, XCError
from xcrepro.core.version import __version__
from xcrepro.repro.engine import notebooks
from xcrepro.tools.course import lessons, mistakes, quizzes, slides, study
from xcrepro.tools.course.lessons import Lesson

STUDENTS, SOLUTIONS, SLIDES, SELF_STUDY = "students", "solutions", "slides", "self-study"
KINDS = (STUDENTS, SOLUTIONS, SLIDES, SELF_STUDY)
SETTINGS = {
    "CourseDirectory": {"course_id": "xcrepro"},
    "ClearSolutions": {
        "code_stub": {"python": lessons.STUB},
        "text_stub": "Write your answer here.",
    },
    # Kernels compile when they first run; nbgrader's own 30 seconds are too short for that.
    "Execute": {"timeout": 3600},
}
"""nbgrader's settings, which are not its defaults."""
_GLOSSARY, _PRIMER, _EXAM, _PICTURES = "glossary.md", "primer.md", "exam.md", "pictures"
START = "start_here.md"
"""The students' start page: what this is, how to install it, which lesson first, and what the lessons cite."""
_BEFORE = {1: "", 2: "1", 3: "2", 4: "3", 5: "3", 6: "3", 7: "3", 8: "2, 5", 9: "2", 10: "3, and the primer"}
"""Which lessons a lesson needs, as the teacher's page says it."""
_WEEK = {1: 1, 2: 2, 3: 3, 10: 4, 4: 5, 5: 6, 6: 7, 7: 8, 8: 9, 9: 10}
"""In which week of a semester a lesson is, as the teacher's page says it; its exercises are due a week later."""
_MINUTES = 3
"""That a person grades an answer in words, by our estimate."""
_PROGRAMS = "A programming exercise is a cell with `raise NotImplementedError`: write it there, and run the next cell."
_IN_CLASS = {
    "extra": "course",
    "wheel": "Your teacher gives you the file that ends in `.whl`. The installation takes some minutes and 1.1 GB of disk.",
    "checks": f"{_PROGRAMS} It says what is wrong with which case, or that its cases are right; when you hand the notebook in, "
    "more are tried.",
}
_ALONE = {
    "extra": "notebooks",
    "wheel": "`pip wheel --no-deps .` makes the file that ends in `.whl` in a clone of the project.",
    "checks": f"{_PROGRAMS} It says what is wrong with which case; if nothing is, it tries more cases, and says of each that "
    "fails what it was. Below it a line gives two hints, one after the other, when you have tried twice, and after five tries "
    "a solution. Exercises in words have an example of a good answer and three questions to yours, and each choice of a quiz "
    "has its reason. What you have done is kept in `progress.json`; open the notebooks in this folder, so that it is found "
    "again.",
}
"""What the start page says to a class, and to who learns alone."""
_FOLD = (
    "<details><summary>The picture, for the settings that this notebook came with. Run the cell above first.</summary>"
)

_FOLD_RESULT = "<details><summary>What came out. Guess, run the cell above, then open this.</summary>"


def write(folder: str | os.PathLike, kind: str = STUDENTS, *, seed: int | None = None) -> list[str]:
    """Write one kind of copy of the whole course into a new or empty folder: all of it, or nothing; the names in it, sorted.

    ``"students"``: the notebooks as nbgrader makes them, solutions replaced by stubs, hidden tests, outputs and what is for
    the teacher taken out, with folded pictures, a start page, glossary and primer. ``"solutions"``: the teacher's folder, a
    course of nbgrader (``source``, ``release``, ``nbgrader_config.py``, ``gradebook.db``), the whole lessons, the exam with
    and without solutions, and ``instructor.md``. ``"slides"``: a page of slides per lesson, which needs no network.
    ``"self-study"``: notebooks for who learns alone, without nbgrader (:mod:`xcrepro.tools.course.study`).

    With a ``seed`` the exercises have other records and the hidden tests other cases (:func:`lessons.drawn`), in the students'
    copies and in the teacher's folder alike; slides have none of either.
    """
    one_of("kind", kind, KINDS)
    if seed is not None:
        whole_number("seed", seed, 0)
        if kind == SLIDES:
            raise ArgumentError("seed", "is for copies with exercises", seed, "slides are the same for every seed")
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArgumentError("DIR", "must be new or an empty folder", folder, "nothing was written")
    needed = {SLIDES: ["sphinx_revealjs", "latex2mathml"], SELF_STUDY: [], SOLUTIONS: ["nbgrader", "text2qti"]}
    for name in needed.get(kind, ["nbgrader"]):
        if importlib.util.find_spec(name) is None:
            raise extras.missing(name)
    course = lessons.find()
    if seed is not None:
        course = [lessons.drawn(lesson, seed) for lesson in course]
    whole, course = course, quizzes.with_earlier(course, seed)
    with tempfile.TemporaryDirectory() as room:
        made = Path(room) / "made"
        made.mkdir()
        if kind == SLIDES:
            slides.write(course, slides.run_all(course), made)
        elif kind == SELF_STUDY:
            for lesson in course:
                _save(lesson, study.copy(lesson, whole, seed), made, folded=True)
            _words(course, made, alone=True)
        else:
            teacher = made if kind == SOLUTIONS else Path(room) / "teacher"
            grade(course, teacher)
            if kind == STUDENTS:
                for lesson in course:
                    shutil.copytree(teacher / "release" / lesson.name, made, dirs_exist_ok=True)
            else:
                _teachers(course, made, seed)
                (made / "quizzes").mkdir()
                (made / "quizzes" / "quizzes.gift").write_text(quizzes.gift(whole, seed), encoding="utf-8")
                quizzes.qti(whole, made / "quizzes", seed)
        with paths.filling(folder) as part:
            shutil.copytree(made, part, dirs_exist_ok=True)
    return sorted(path.name for path in folder.iterdir())


def grade(course: list[Lesson], folder: Path) -> None:
    """A course folder of nbgrader: sources, settings, and what it generates of them (``release``, ``gradebook.db``)."""
    for lesson in course:
        copy = mistakes.asked_first(lessons.students(lesson.notebook), lesson.name)
        _save(lesson, copy, folder / "source" / lesson.name, folded=True)
        _words(course, folder / "source" / lesson.name)
    lines = [
        "from xcrepro.tools.course.feedback import PREPROCESSORS",
        "",
        "c = get_config()  # noqa: F821: nbgrader's",
    ]
    lines += [f"c.{group}.{key} = {value!r}" for group, values in SETTINGS.items() for key, value in values.items()]
    lines += ["c.GenerateFeedback.preprocessors = PREPROCESSORS  # without the hidden tests"]
    (folder / "nbgrader_config.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    nbgrader = api(folder)
    for lesson in course:
        said = nbgrader.generate_assignment(lesson.name)
        if not said["success"]:
            raise XCError(f"nbgrader refused {lesson.path}: {said.get('error', '')}{said.get('log', '')}")


def api(folder: Path):
    """nbgrader's own interface to a course folder, with :data:`SETTINGS`."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    from xcrepro.tools.course import feedback

    if shutil.which("alembic") is None:  # nbgrader starts it by its name, which needs the environment to be activated
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    settings = Config(SETTINGS)
    settings.CourseDirectory.root = str(folder)
    settings.GenerateFeedback.preprocessors = feedback.PREPROCESSORS
    return NbGraderAPI(config=settings)


def _words(course: list[Lesson], folder: Path, alone: bool = False) -> None:
    """Glossary, primer and start page beside a lesson that links to them; ``alone`` for who has no teacher."""
    text = Path(__file__).with_name("start.md").read_text(encoding="utf-8")
    lines = [f"| {one.number} | {one.title} | {_BEFORE.get(one.number, '')} |" for one in course]
    said = _ALONE if alone else _IN_CLASS
    for name, words in (said | {"lessons": "\n".join(lines), "version": __version__}).items():
        text = text.replace(f"{{{name}}}", words)
    (folder / START).write_text(text, encoding="utf-8")
    for name in (_GLOSSARY, _PRIMER):
        text = paths.committed(f"notebooks/{name}").read_text(encoding="utf-8")
        (folder / name).write_text(_links(text), encoding="utf-8")


def _teachers(course: list[Lesson], folder: Path, seed: int | None) -> None:
    """What the teacher has beside nbgrader's folders: lessons with all answers and notes, the exam, the guide."""
    for lesson in course:
        _save(lesson, lesson.notebook, folder / "lessons")
    _words(course, folder / "lessons")
    exam = quizzes.exam(Path(__file__).with_name(_EXAM).read_text(encoding="utf-8"), seed)
    (folder / _EXAM).write_text(_links(lessons.for_students(exam)), encoding="utf-8")
    (folder / "exam_solutions.md").write_text(_links(exam), encoding="utf-8")
    (folder / "instructor.md").write_text(instructor(course, seed), encoding="utf-8")


def _save(lesson: Lesson, notebook: dict, folder: Path, folded: bool = False) -> None:
    """Write a notebook with its pictures beside it; its links lead to the glossary or the primer beside it, or nowhere.

    A cell that is a picture only, or says what came out, may be folded: who has not guessed and run the cell above does not
    see its result, and a picture of other settings does not stand below one's own.
    """
    (folder / _PICTURES).mkdir(parents=True, exist_ok=True)

    def picture(match: re.Match) -> str:
        name = Path(match[2]).name
        shutil.copy(lesson.path.parent / match[2], folder / _PICTURES / name)
        return f"![{match[1]}]({_PICTURES}/{name})"

    def shown(cell: dict) -> dict:
        source = notebooks.text(cell["source"])
        text, result = lessons.PICTURE.sub(picture, _links(source)), lessons.RESULT in notebooks.tags(cell)
        fold = _FOLD if lessons.PICTURE.match(source) else _FOLD_RESULT if result else ""
        return cell | {"source": f"{fold}\n\n{text}\n\n</details>" if folded and fold else text}

    cells = [shown(cell) if cell["cell_type"] == "markdown" else cell for cell in notebook["cells"]]
    text = json.dumps(notebook | {"cells": cells}, indent=1, ensure_ascii=False)
    (folder / f"{lesson.name}.ipynb").write_text(text + "\n", encoding="utf-8")


def _links(text: str) -> str:
    """Links to the glossary and the primer, as they are from a folder that has them; other links to files as plain text.

    >>> _links("[P@k](../glossary.md#pk), [audit](../beyond/audit.ipynb), [below](#pk), [page](https://example.org)")
    '[P@k](glossary.md#pk), audit, [below](#pk), [page](https://example.org)'
    """

    def one(match: re.Match) -> str:
        words, target, place = match.groups()
        name = Path(target).name
        return f"[{words}]({name}{place or ''})" if name in (_GLOSSARY, _PRIMER) else words

    return lessons.LINK.sub(one, text)


def instructor(course: list[Lesson], seed: int | None = None) -> str:
    """The teacher's page: the text of ``instructor.md`` in this package, with the table of lessons made from them."""
    text = Path(__file__).with_name("instructor.md").read_text(encoding="utf-8")
    heads = ["lesson", "title", "exercises", "of them open", "points", "graded by a person"]
    heads += ["in week", "due in week", "minutes to grade a student"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for lesson in course:
        by_hand, week = [exercise for exercise in lesson.exercises if exercise.open], _WEEK[lesson.number]
        cells = [lesson.number, lesson.title, len(lesson.exercises), len(by_hand), f"{lesson.points:g}"]
        cells += [f"{sum(exercise.points for exercise in by_hand):g}", week, week + 1, _MINUTES * len(by_hand)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    total = sum(lesson.points for lesson in course)
    drawn = "They are as in the project: `--seed N` draws other ones."
    if seed is not None:
        drawn = f"They were drawn with `--seed {seed}`; the same number makes them again. Keep it to yourself."
    text = text.replace("{drawn}", drawn)
    return text.replace("{lessons}", "\n".join(lines)).replace("{points}", f"{total:g}")
