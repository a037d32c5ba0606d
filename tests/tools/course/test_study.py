"""Self-study: who learns alone is told of every wrong program, gets hints, then a solution, and reasons in the quiz."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import warnings
import zipfile
from pathlib import Path

import nbformat
import numpy as np
import pytest

from tests.refused import damaged
from tests.tools.course import answers
from xcrepro.__main__ import main
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.engine import notebooks
from xcrepro.tools.course import copies, lessons, mistakes, quizzes, study


@pytest.fixture(scope="module")
def written(root, tmp_path_factory):
    """A self-learner's folder, written where nbgrader is not installed."""
    folder = tmp_path_factory.mktemp("study") / "mine"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XCREPRO_ROOT", str(root))
        find = importlib.util.find_spec
        patch.setattr(
            importlib.util, "find_spec", lambda name, *more: find(name, *more) if name != "nbgrader" else None
        )
        assert main(["course", str(folder), "--self-study"]) == 0
    return folder


def test_every_exercise_has_two_hints_every_choice_a_reason_every_text_a_model_answer(course):
    assert list(quizzes.texts()) == [lesson.name for lesson in course]
    for lesson in course:
        found = quizzes.texts()[lesson.name]
        assert list(found["hints"]) == [one.name for one in lesson.exercises if not one.open]
        lines = {line.strip() for text in lesson.solutions() for line in text.splitlines() if len(line.strip()) > 24}
        for name, hints in found["hints"].items():
            assert len({*hints}) == 2, name
            assert not any(line in hint for line in lines for hint in hints), f"{name}: a hint is a solution's line"
        assert (len(found["quiz"]), len(found["open"]["questions"])) == (3, 3)
        for question in found["quiz"]:
            assert sum(choice.get("right", False) for choice in question["choices"]) == 1
            assert len({choice["why"] for choice in question["choices"]}) == len(question["choices"]) >= 3


def test_the_copies_need_no_nbgrader_and_give_nothing_away(course, written):
    assert {path.name for path in written.glob("*.ipynb")} == {f"{lesson.name}.ipynb" for lesson in course}
    page = (written / copies.START).read_text(encoding="utf-8")
    assert "{" not in page
    assert "whl[notebooks]" in page
    assert "progress.json" in page
    for lesson in course:
        copy = notebooks.read(written / f"{lesson.name}.ipynb")
        nbformat.validate(nbformat.from_dict(copy))
        text = answers.text(copy)
        for secret in [*lesson.solutions(), *answers.hidden_tests(lesson), *answers.teachers(lesson)]:
            assert secret.strip() not in text, lesson.name
        programs = [one for one in lesson.exercises if not one.open]
        assert text.count(lessons.STUB) >= len(programs)
        for exercise in programs:
            assert text.count(f'study.more("{exercise.name}", globals())') == 1
            assert text.count(f'study.tried("{exercise.name}", globals())') == 1
            assert text.count(f'# study.hint("{exercise.name}")') == 1
        assert text.count("# study.compare(") == text.count("study.compare(") == 1
        for number, question in enumerate(quizzes.questions(course)[lesson.name], 1):
            place = text.index(f"**{number}.**", text.index("# Quiz"))
            assert place < text.index(f"- (a) {question.choices[0]['says']}", place)
        for cell in notebooks.code_cells(copy):
            ast.parse(notebooks.text(cell["source"]))
            assert cell["outputs"] == []


@pytest.mark.parametrize("lesson", mistakes.known())
def test_right_programs_are_counted_and_wrong_ones_told(course, lesson, tmp_path, capsys):
    """With the lesson's own names, as a notebook has them: first a wrong program for each exercise, then the right one."""
    (found,) = [one for one in course if one.name == lesson]
    room = answers.Room(found)
    mine = study.Study(lesson, folder=tmp_path)
    for name, wrong in mistakes.known()[lesson].items():
        what, body, _ = wrong[0]
        names = dict(room.names)
        exec(mistakes.with_body(room.cells[name], body), names)
        for exercise in room.exercises:  # what calls the wrong one calls it in these names
            if exercise.name != name:
                exec(room.cells[exercise.name], names)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            mine.more(name, names)
        said = capsys.readouterr().out
        right, of = map(int, re.match(rf"{name}: (\d+) of (\d+) more cases are right", said).groups())
        assert right < of, what
        assert said.count("\n- ") == of - right
        assert f"{found.number}: 0 of {len(room.exercises)} programs are done" in said
    for number, name in enumerate(mistakes.known()[lesson], 1):
        mine.more(name, room.names)
        first, last = capsys.readouterr().out.splitlines()
        assert re.fullmatch(rf"{name}: (\d+) of \1 more cases are right", first)
        assert last == f"Lesson {found.number}: {number} of {len(room.exercises)} programs are done"
    kept = json.loads((tmp_path / study.PROGRESS).read_text())[lesson]
    assert all(kept[name] == {"done": True} for name in mistakes.known()[lesson])


def test_a_program_that_fails_by_itself_is_told_and_what_is_done_stays_done(tmp_path, capsys, course):
    room = answers.Room(course[1])
    mine = study.Study(course[1].name, folder=tmp_path)
    before = set(room.names)
    mine.more("recall_ceiling", room.names)
    assert set(room.names) == before, "the learner's names stay as they are"
    mine.more("recall_ceiling", room.names | {"recall_ceiling": lambda Y, k: 1 / 0})
    said = capsys.readouterr().out
    assert "- recall_ceiling: ZeroDivisionError: division by zero" in said
    assert "1 of 5 programs are done" in said.splitlines()[-1]


@pytest.mark.parametrize(
    ("wrong", "fails"),
    [(lambda L, branches: 1 / 0, ZeroDivisionError), (lambda L, branches: 0, AssertionError), (None, NameError)],
)
def test_who_is_stuck_gets_hints_after_two_tries_and_the_solution_after_five(wrong, fails, tmp_path, capsys, course):
    """By the cell that a self-learner runs, on a program that never gets as far as the hidden cases."""
    name = "09_how_models_work"
    (lesson,) = (one for one in course if one.name == name)
    sources = [notebooks.text(cell["source"]) for cell in notebooks.code_cells(study.copy(lesson, course))]
    (check,) = (source for source in sources if 'study.more("questions"' in source)
    names = answers.Room(lesson).names | {"questions": wrong}
    if wrong is None:
        del names["questions"]

    def says():
        study.Study(name, folder=tmp_path).hint("questions")  # each time as on another day: it is kept
        return capsys.readouterr().out

    hints, heard = quizzes.texts()[name]["hints"]["questions"], []
    for _ in range(6):
        heard.append(says())
        with pytest.raises(fails):
            exec(check, names | {"study": study.Study(name, folder=tmp_path)})
    assert [f"Hint {1 + number}: {hints[number]}\n" for number in (0, 1)] == heard[2:4]
    for tries in (0, 1, 4):
        assert f"So far there are {tries}." in heard[tries]
    assert "while L > 1:" in heard[5]
    assert not any("while L > 1:" in text for text in heard[:5])
    with pytest.raises(ArgumentError, match="did you mean 'questions'"):
        study.Study(name, folder=tmp_path).hint("question")


def test_who_is_done_sees_hints_and_solution_at_once(tmp_path, capsys, course):
    (lesson,) = (one for one in course if one.name == "09_how_models_work")
    mine = study.Study(lesson.name, folder=tmp_path)
    mine.more("questions", answers.Room(lesson).names)
    for _ in range(3):
        mine.hint("questions")
    said = capsys.readouterr().out
    assert said.index("Hint 1") < said.index("Hint 2") < said.index("while L > 1:")


def test_a_quiz_has_a_reason_for_each_choice(tmp_path, capsys):
    mine = study.Study("02_precision_and_ndcg", folder=tmp_path)
    mine.quiz(1)
    assert capsys.readouterr().out.count("\n") == 3
    for letter, choice in zip("aBc", mine.asked[0].choices, strict=True):
        mine.quiz(1, letter)
        assert capsys.readouterr().out == f"{'Right' if choice.get('right') else 'No'}. {choice['why']}\n"
    assert json.loads((tmp_path / study.PROGRESS).read_text())["02_precision_and_ndcg"]["quiz 1"]["done"]
    for number, letter in ((1, "d"), (6, "a"), (0, "a"), (True, "a")):
        with pytest.raises(ArgumentError):
            mine.quiz(number, letter)


def test_an_answer_in_words_is_compared_by_three_questions(tmp_path, capsys):
    mine = study.Study("02_precision_and_ndcg", folder=tmp_path)
    mine.compare("clearly_better")
    said = capsys.readouterr().out
    assert "paired bootstrap" in said
    assert said.count("?\n") == 3
    mine.compare("clearly_better", "yny")
    assert capsys.readouterr().out.startswith("Look again at: that 100 cannot be reached")
    mine.compare("clearly_better", "yyy")
    assert capsys.readouterr().out == "All of it.\n"
    assert json.loads((tmp_path / study.PROGRESS).read_text())["02_precision_and_ndcg"]["clearly_better"]["done"]
    for wrong in ("yy", "yyx"):
        with pytest.raises(ArgumentError, match="3 letters"):
            mine.compare("clearly_better", wrong)


def test_a_seed_draws_a_self_learners_cases_too(course, tmp_path, capsys):
    lesson = course[0]
    copy = study.copy(lessons.drawn(lesson, 5), course, 5)
    text = answers.text(copy)
    assert "study = Study('01_data_and_long_tail', seed=5)" in text
    plain, drawn = (study.Study(lesson.name, seed, tmp_path) for seed in (None, 5))
    assert plain._cells["test_popular"] != drawn._cells["test_popular"]
    drawn.more("popular", answers.Room(lessons.drawn(lesson, 5)).names)
    assert "popular: 2 of 2 more cases are right" in capsys.readouterr().out


def test_a_damaged_file_of_progress_is_named(tmp_path):
    (tmp_path / study.PROGRESS).write_text("{")
    with damaged(study.PROGRESS, match="no JSON"):
        study.Study("01_data_and_long_tail", folder=tmp_path).hint("popular")


def test_quizzes_ask_again_and_their_choices_are_shuffled(course):
    asked = quizzes.questions(course)
    places = []
    for lesson in course:
        mine, more = asked[lesson.name][:3], asked[lesson.name][3:]
        assert all(one.lesson == lesson.number for one in mine)
        assert all(one.lesson < lesson.number for one in more)
        assert len(more) == (2 if lesson.number > 1 else 0)
        places += [[choice.get("right", False) for choice in one.choices].index(True) for one in mine]
        seeded = quizzes.questions(course, 5)[lesson.name][:3]
        one, other = ([sorted(c["says"] for c in each.choices) for each in asking] for asking in (seeded, mine))
        assert one == other
    assert max(map(places.count, range(3))) <= 13, "as often at each place"
    everything = [one.asked for questions in asked.values() for one in questions[3:]]
    assert len({*everything}) == len(everything)
    assert quizzes.questions(course, 5) != asked


def test_quizzes_for_learning_platforms(course, tmp_path):
    """GIFT: a right choice each, special characters escaped. QTI: a package that holds the same questions."""
    text = quizzes.gift(course)
    assert len(re.findall(r"^=", text, re.MULTILINE)) == text.count("[markdown]") == 30
    assert all(not re.search(r"(?<!\\)[{}]", line) for line in text.splitlines() if line[:1] in "~=" and line)
    pytest.importorskip("text2qti", reason="not installed: pip install 'xcrepro[course]'")
    quizzes.qti(course[:2], tmp_path)
    with zipfile.ZipFile(tmp_path / f"{course[0].name}.zip") as package:
        found = "".join(package.read(name).decode() for name in package.namelist())
    assert found.count("respcondition continue=") >= 3
    assert "6,000,000,000,000" in found


@pytest.mark.parametrize("seed", [None, *range(40)])
def test_the_exam_holds_what_it_asks_for_at_every_seed(seed):
    """Its table has the two impossible numbers and no third, its sums are right."""
    text = quizzes.exam((Path(quizzes.__file__).with_name("exam.md")).read_text(encoding="utf-8"), seed)
    assert "[[" not in text
    lines = re.findall(r"^\| ([AB]) " + r"\| ([\d.]+) " * 5 + r"\|", text, re.MULTILINE)
    rows = {name: [*map(float, cells)] for name, *cells in lines}
    (a1, a3, a5, an, _), (b1, b3, b5, bn, _) = rows["A"], rows["B"]
    assert a1 == an
    assert b1 != bn
    assert 5 * a5 < 3 * a3 - 0.5
    assert b1 < 3 * b3 < 5 * b5 + 10
    assert b1 > b3 > b5
    p, hits = map(int, re.search(r"probability 1/(\d+), .*? first in (\d+) test", text).groups())
    assert f"{hits} · {p} = {hits * p} and" in text
    assert f"from {hits * p} to {2 * hits}" in text
