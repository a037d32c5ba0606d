"""What ``xcrepro course`` writes: copies without answers, the teacher's folder, slides; and what it refuses."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys

import pytest

import xcrepro as xc
from docs import links
from tests.refused import damaged
from tests.tools.course import answers
from xcrepro.__main__ import main
from xcrepro.core.errors import ArgumentError, DataError, XCError
from xcrepro.repro.engine import notebooks
from xcrepro.tools.course import copies, lessons, slides

nbgrader = pytest.mark.skipif(
    importlib.util.find_spec("nbgrader") is None, reason="nbgrader is not installed (the extra `course`)"
)
reveal = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx_revealjs", "latex2mathml")),
    reason="sphinx-revealjs and latex2mathml are not installed (the extra `course`)",
)


@pytest.fixture(scope="module")
def written(root, tmp_path_factory):
    """The students' copies of the whole course."""
    folder = tmp_path_factory.mktemp("course") / "students"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XCREPRO_ROOT", str(root))
        copies.write(folder)
    return folder


@nbgrader
def test_a_students_copy_has_no_solution_and_no_hidden_test(course, written):
    for lesson in course:
        lines = set(map(str.strip, answers.text(written / f"{lesson.name}.ipynb").splitlines()))
        secret = "\n".join([*lesson.solutions(), *answers.hidden_tests(lesson)]).splitlines()
        assert len(secret) > 20
        seen = {line.strip() for cell in lesson.notebook["cells"] for line in _open_part(cell).splitlines()}
        leaked = [line for line in map(str.strip, secret) if len(line) > 3 and line in lines - seen]
        assert leaked == [], lesson.name
        assert not any("HIDDEN" in line or "BEGIN SOLUTION" in line for line in lines)


@nbgrader
def test_what_is_the_teachers_is_in_no_students_copy(course, written):
    for lesson in course:
        secret = answers.teachers(lesson)
        assert len(secret) >= 3, f"{lesson.name}: the quiz has three answers"
        copy = answers.text(written / f"{lesson.name}.ipynb")
        assert [text for text in secret if text.strip() in copy] == [], lesson.name
        results = sum(lessons.RESULT in notebooks.tags(cell) for cell in lesson.notebook["cells"])
        folds = copy.count(f"{copies._FOLD}\n\n!["), copy.count(copies._FOLD_RESULT)
        assert copy.count("<details>") == copy.count("</details>") == sum(folds), "pictures and results only"
        assert folds[1] == results > 0, lesson.name
        assert "TEACHER" not in copy


@nbgrader
def test_a_students_folder_begins(course, written):
    """A start page with the lessons in their order, how to install, addresses of all that is cited; nothing left to fill in."""
    page = (written / copies.START).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", page, re.MULTILINE)
    assert rows == [(str(lesson.number), lesson.title) for lesson in course]
    assert "{" not in page
    assert f"xcrepro-{xc.__version__}-py3-none-any.whl[course]" in page
    cited = {"Jain et al. 2016", "Calibration paper", "Coverage paper", "Re-evaluating XMTC methods"}
    assert all(f"**{name}**" in page for name in cited)
    prose = "\n".join(answers.text(lesson.notebook) for lesson in course)
    assert all(name in prose for name in cited)
    assert len(re.findall(r"<https?://[^>]+>", page)) >= 6
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page):
        assert (written / target).is_file()


def _open_part(cell: dict) -> str:
    """What a student may see of a cell of the solution version."""
    marks, source = cell["metadata"].get("nbgrader", {}), notebooks.text(cell["source"])
    if marks.get("solution") and marks.get("grade"):
        return ""
    return re.sub(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n.*?### END \1", "", source, flags=re.DOTALL)


@nbgrader
def test_a_students_copy_has_stubs_that_say_what_to_write_and_no_outputs(course, written):
    for lesson in course:
        copy = notebooks.read(written / f"{lesson.name}.ipynb")
        assert all(cell["outputs"] == [] for cell in notebooks.code_cells(copy))
        marked = {c["metadata"]["nbgrader"]["grade_id"]: c for c in copy["cells"] if "nbgrader" in c["metadata"]}
        for exercise in lesson.exercises:
            source = notebooks.text(marked[exercise.name]["source"])
            if exercise.open:
                assert source == copies.SETTINGS["ClearSolutions"]["text_stub"]
            else:
                assert "raise NotImplementedError(" in source
                assert '"""' in source
                assert marked[exercise.checked_by]["metadata"]["editable"] is False


@nbgrader
def test_links_of_a_students_copy_stay_in_its_folder(written):
    for path in written.glob("*.ipynb"):
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+\.\w+)[#)]", answers.text(path)):
            assert (written / target).is_file(), f"{path.name}: {target}"
    assert "](xcrepo/" not in (written / "glossary.md").read_text(encoding="utf-8")


@nbgrader
def test_the_teachers_folder(save, small, tmp_path):
    save(small)
    names = "exam.md exam_solutions.md gradebook.db instructor.md lessons nbgrader_config.py quizzes release source"
    assert copies.write(tmp_path / "out", "solutions") == names.split()
    source = notebooks.read(tmp_path / "out" / "source" / "01_small" / "01_small.ipynb")
    assert "return x + x" in notebooks.text(source["cells"][1]["source"])
    page = (tmp_path / "out" / "instructor.md").read_text()
    assert "| 1 | Small | 2 | 1 | 3 | 1 | 1 | 2 | 3 |" in page
    assert "{" not in page
    assert "Timetable" in page or "90 minutes" in page
    exam, solved = ((tmp_path / "out" / name).read_text() for name in ("exam.md", "exam_solutions.md"))
    assert "**Solution.**" in solved
    assert solved.count("\n## ") == exam.count("\n## ") == solved.count("**Solution.**")
    assert "Solution" not in exam
    assert (tmp_path / "out" / "lessons" / "01_small.ipynb").is_file()
    release = notebooks.read(tmp_path / "out" / "release" / "01_small" / "01_small.ipynb")
    assert "x + x" not in json.dumps(release)
    for folder in ("release/01_small", "lessons"):
        assert {"glossary.md", "primer.md", copies.START} <= {
            path.name for path in (tmp_path / "out" / folder).iterdir()
        }
    settings = (tmp_path / "out" / "nbgrader_config.py").read_text()
    assert "c.Execute.timeout = 3600" in settings


@nbgrader
def test_links_of_a_copy(save, small, tmp_path):
    save(small)
    assert copies.write(tmp_path / "out") == ["01_small.ipynb", "glossary.md", "primer.md", "start_here.md"]
    text = notebooks.text(notebooks.read(tmp_path / "out" / "01_small.ipynb")["cells"][0]["source"])
    assert "[P@k](glossary.md#pk) and the audit." in text


def test_a_folder_that_holds_something_is_refused_and_stays_as_it_is(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    for more in ([], ["--solutions"], ["--slides"]):
        assert main(["course", str(tmp_path), *more]) == 2
        assert "DIR must" in capsys.readouterr().err
        assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(ArgumentError, match="nothing was"):
        copies.write(tmp_path / "mine.txt")


@pytest.mark.parametrize(
    ("kind", "needed"),
    [("students", "nbgrader"), ("solutions", "nbgrader"), ("slides", "sphinx_revealjs")],
)
def test_what_is_not_installed_is_named_with_the_command(tmp_path, monkeypatch, kind, needed):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(XCError, match=rf"{needed} is not installed: pip install 'xcrepro\[course\]'"):
        copies.write(tmp_path / "out", kind)
    assert not (tmp_path / "out").exists()


@nbgrader
def test_a_seed_draws_the_exercises_of_students_and_teacher_alike(course, written, root, tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_ROOT", str(root))
    assert main(["course", str(tmp_path / "students"), "--seed", "5"]) == 0
    copies.write(tmp_path / "again", seed=5)
    numbers = {}
    for lesson in course:
        folders = written, tmp_path / "students", tmp_path / "again"
        plain, drawn, again = (answers.text(folder / f"{lesson.name}.ipynb") for folder in folders)
        assert drawn == again
        numbers[lesson.name] = [re.findall(r"mine = xc.load\(.tib., points=(\d+)\)", one) for one in (plain, drawn)]
        assert re.sub(r"points=\d+", "", plain) == re.sub(r"points=\d+", "", drawn)
        mine = lessons.drawn(lesson, 5)
        (cell,) = [c for c in notebooks.code_cells(mine.notebook) if "mine = xc.load" in c["source"]] or [None]
        assert cell is None or f"points={numbers[lesson.name][1][0]})" in cell["source"], (
            "the teacher's data are the students'"
        )
        hidden = ["\n".join(answers.hidden_tests(one)) for one in (lesson, mine, lessons.drawn(lesson, 6))]
        seeds = [set(re.findall(r"default_rng\((\d+)\)  # drawn", text)) for text in hidden]
        assert len(set.union(*seeds)) == sum(map(len, seeds)), "each seed has cases of its own"
        assert not any(seed in drawn for seed in seeds[1]), "students do not see what draws the hidden cases"
    assert sum(plain != drawn and len(drawn) == 1 for plain, drawn in numbers.values()) >= 6, numbers


@nbgrader
def test_a_seed_must_fit(tmp_path, capsys):
    assert main(["course", str(tmp_path / "out"), "--seed", "-1"]) == 2
    assert main(["course", str(tmp_path / "out"), "--seed", "1", "--slides"]) == 2
    assert capsys.readouterr().err.count("seed") >= 2
    assert not (tmp_path / "out").exists()


@nbgrader
@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
def test_feedback_has_the_message_and_not_the_hidden_tests(save, small, tmp_path):
    """Of a program that squares: right where students see it, wrong in a hidden case. By the command and by the interface."""
    save(small)
    copies.write(tmp_path / "out", "solutions")
    folder = tmp_path / "out"
    handed_out = (folder / "release" / "01_small" / "01_small.ipynb").read_text(encoding="utf-8")
    answer = json.loads(handed_out)
    answer["cells"][1]["source"] = "def double(x):\n    return x * x"
    for student in ("ann", "bob"):
        place = folder / "submitted" / student / "01_small"
        place.mkdir(parents=True)
        (place / "01_small.ipynb").write_text(json.dumps(answer), encoding="utf-8")
    api = copies.api(folder)
    assert api.autograde("01_small", "ann")["success"]
    assert api.autograde("01_small", "bob")["success"]
    ran = (folder / "autograded" / "bob" / "01_small" / "01_small.ipynb").read_text(encoding="utf-8")
    assert "default_rng" in ran, "the teacher's copy has them"
    said = api.generate_feedback("01_small", "ann")
    assert said["success"], said
    command = [sys.executable, "-m", "nbgrader", "generate_feedback", "01_small", "--student", "bob"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    for student in ("ann", "bob"):
        page = (folder / "feedback" / student / "01_small" / "01_small.html").read_text(encoding="utf-8")
        assert "AssertionError: double: drawn data" in page
        assert "twice two" in page, "what students see stays"
        for secret in ("default_rng", "HIDDEN", "2 * x", "Traceback (most"):
            assert secret not in page, secret


@nbgrader
def test_a_broken_lesson_writes_nothing(save, small, tmp_path):
    small[2]["metadata"]["nbgrader"]["grade_id"] = "double"
    save(small)
    with damaged("01_small.ipynb", match="'double' in cell 2"):
        copies.write(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@nbgrader
def test_what_nbgrader_refuses_is_said_and_nothing_written(save, small, tmp_path):
    small[1]["metadata"]["nbgrader"]["schema_version"] = 99
    save(small)
    with pytest.raises(XCError, match=r"nbgrader refused .*01_small"):
        copies.write(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def talk(save, small):
    """A lesson of two slides, the first with a slide below and a fragment."""
    small[0]["metadata"]["slideshow"]["slide_type"] = "slide"
    text = "Below: $p_l < 1$ and\n\n$$\\frac{1}{p}$$\n\nbut `$HOME` and 5 & 6. [words](../glossary.md#x)"
    kinds = [("subslide", "markdown", text), ("fragment", "code", "print('<shown>')")]
    kinds += [("notes", "markdown", "Ask them."), ("slide", "markdown", "# End")]
    cells = [
        {"cell_type": cell, "id": f"talk{i}", "source": text, "metadata": {"slideshow": {"slide_type": kind}, **more}}
        | ({"execution_count": None, "outputs": []} if cell == "code" else {})
        for i, (kind, cell, text) in enumerate(kinds)
        for more in [{"tags": ["teacher"]} if kind == "notes" else {}]
    ]
    return save([small[0], *cells, *small[1:]])


@reveal
def test_slides_need_no_network_and_show_no_exercise(talk, tmp_path):
    assert copies.write(tmp_path / "out", "slides") == ["01_small.html", "reveal.js"]
    page = (tmp_path / "out" / "01_small.html").read_text(encoding="utf-8")
    assert re.findall(r"(?:src|href)=\"([^\"]+)\"", page)
    assert links.check(tmp_path / "out") == []  # nothing from elsewhere, nothing missing, style sheets included
    assert "5 &amp; 6. words</p>" in page
    assert "double" not in page
    assert page.count("<section>") == page.count("</section>") == 4  # a column of two, and one
    assert '<div class="fragment"><pre class="code"><code>print(&#x27;&lt;shown&gt;&#x27;)' in page
    assert "<pre>&lt;shown&gt;\n</pre>" in page
    assert '<aside class="notes">' in page
    assert page.count("<math") == 2
    assert "<mfrac>" in page
    assert "<code>$HOME</code>" in page


@reveal
def test_a_lesson_that_fails_has_no_slides(save, small, tmp_path):
    small[1]["source"] = small[1]["source"].replace("x + x", "x + y")
    path = save(small)
    with pytest.raises(DataError, match=f"{path}.*NameError"):
        copies.write(tmp_path / "out", "slides")
    assert not (tmp_path / "out").exists()


@reveal
def test_every_formula_of_the_lessons_becomes_mathml(course):
    for lesson in course:
        for cell in lesson.notebook["cells"]:
            if cell["cell_type"] == "markdown" and cell["metadata"]["slideshow"]["slide_type"] != "skip":
                for display, inline in slides._FORMULA.findall(slides._CODE.sub("", notebooks.text(cell["source"]))):
                    made = slides.formula(display or inline, bool(display))
                    assert made.startswith("<math")
                    assert "\\" not in re.sub(r"<annotation.*?</annotation>", "", made), (
                        f"{lesson.name}: {display or inline}"
                    )
