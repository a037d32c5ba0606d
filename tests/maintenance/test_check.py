"""The normaliser and the guard: a good notebook passes, and each planted fault is found."""

from __future__ import annotations

import json

import pytest

from maintenance import check
from tests.refused import damaged
from tests.repro.conftest import code, markdown
from xcrepro.__main__ import main
from xcrepro.repro.engine import manifest, notebooks, tidy

MAKES = "item.check(a)\nitem.check(b, part='part')"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"


def stream(text: str, name: str = "stdout") -> dict:
    return {"output_type": "stream", "name": name, "text": text}


def shown(count: int | None = None, **data: str) -> dict:
    data = {mime.replace("_", "/"): text for mime, text in data.items()}
    if count is None:
        return {"output_type": "display_data", "data": data, "metadata": {}}
    return {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": count}


def problems() -> list[str]:
    entry = manifest.load()["demo/one"]
    return check.problems(entry.notebook, entry)


@pytest.fixture
def good(project):
    """A notebook with nothing wrong, as a dict to plant faults in; written by ``save``."""
    project.add("one")
    project.figure("demo/one.png", "png")
    project.figure("demo/one.csv", "a\n1\n")
    project.figure("demo/one-part.csv", "a\n1\n")
    cells = [
        project.markdown("# A title\n\nSee the [glossary](../glossary.md)."),
        project.code("seed = 0", "parameters", count=1),
        project.code("item.made_from(ds)\nitem.check(a)\nitem.check(b, 'part')", count=2),
        project.code("print('1 of 1')", count=3, outputs=[stream("1 of 1\n")]),
        project.markdown("![What it shows](../../figures/demo/one.png)"),
    ]
    path = project.root / "notebooks/demo/one.ipynb"

    def save(notebook: dict, tidied: bool = True) -> list[str]:
        project.accepted(path, notebook)
        path.write_text(tidy.tidied(notebook, path) if tidied else json.dumps(notebook))
        return problems()

    notebook = project.notebook(*cells)
    assert save(notebook) == []
    return notebook, save, project


def put(number: int, **parts: object):
    """A fault: a cell with other parts."""
    return lambda notebook: notebook["cells"][number].update(parts)


def says(text: str, *more: str):
    def plant(notebook):
        notebook["cells"] += [{**markdown(text), "metadata": {"tags": ["answer"]}}]
        notebook["cells"] += [code(source, count=4) for source in more]

    return plant


def test_a_text_whose_numbers_are_held(good):
    notebook, save, _ = good
    says("It gains 2.9<!-- x -->.", "x = 2.9\nitem.check_text()")(notebook)
    assert save(notebook) == []


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (put(2, metadata={"tags": ["parameters"]}), "2 code cells"),
        (put(1, source='seed = int("0")'), "`name = literal`"),
        (put(2, source="item.check(a)"), "no cell makes the table of 'part'"),
        (put(2, source="item.check(b, 'part')"), "no cell makes the table of 'the main part'"),
        (put(2, source=f"{MAKES}\nitem.check(c, 'x')"), "'x' is made and has no table"),
        (put(2, source="item.check(a)\nitem.save_table(b, 2, 'y')"), "'y' is made and has no table"),
        (put(2, source="item.check(a)\nitem.check(b, f'y{1}')"), "'y*' is made and has no table"),
        (put(2, source="item.check(a)\nitem.check(b, f'y{1}')"), "no cell makes the table of 'part'"),
        (put(3, execution_count=7), "[1, 2, 7]"),
        (says("It gains 2.9 points."), "no comment holds '2.9'"),
        (says("It gains 2.9<!-- x -->."), "the last code cell has to end with item.check_text()"),
        (says("It gains 2.9<!-- x -->.", "item.check_text()\nx = 1"), "the last code cell has to end with"),
        (put(2, execution_count=None), "execution counts are"),
        (put(2, source="x = 1;"), "code cell 2 ends with `;`"),
        (put(2, source="x = 1;  # quiet"), "code cell 2 ends with `;`"),
        (put(2, source="!pip install xcrepro"), "code cell 2 installs"),
        (put(2, source="%pip install xcrepro"), "code cell 2 installs"),
        (put(2, source="os.system('conda install x')"), "code cell 2 installs"),
        (put(2, source="%matplotlib inline"), "code cell 2 is not plain Python"),
        (put(2, source="x = 1\n" * 41), "code cell 2 has 41 lines"),
        (put(3, outputs=[{"output_type": "error", "ename": "E", "evalue": "v", "traceback": []}]), "ended with E: v"),
        (put(3, outputs=[stream("<object at 0x7f00aa11bb22>\n")]), "'at 0x7f00aa11bb22'"),
        (put(3, outputs=[stream("read /home/me/data.txt\n")]), "'/home/me/data.txt'"),
        (put(4, source="no picture"), "no cell shows figures/demo/one.png"),
        (put(4, source="![x](../../figures/demo/two.png)"), "../../figures/demo/two.png"),
        (put(4, source='<img src="../../figures/demo/two.png">'), "../../figures/demo/two.png"),
        (put(4, source="![x](https://example.org/a.png)"), "https://example.org/a.png"),
        (put(4, attachments={"a.png": {"image/png": PNG}}), "a picture is attached"),
        (put(0, source="x" * 205_001), "bytes; at most 205000"),
        (put(2, source=f"{MAKES}\nitem.recorded()"), "the manifest has none"),
    ],
)
def test_planted_faults(good, plant, message):
    notebook, save, _ = good
    plant(notebook)
    assert any(message in problem for problem in save(notebook)), save(notebook)


def test_words_and_pictures_are_free(good):
    """As long as it takes to say it in sentences; the committed picture may stand on the first screen."""
    notebook, save, _ = good
    put(0, source="# A question?\n\n![The answer](../../figures/demo/one.png)\n\n" + "word " * 5000)(notebook)
    put(2, source=MAKES + "\nx = 1" * 38)(notebook)
    assert save(notebook) == []


def test_a_picture_is_committed_as_a_link(good):
    notebook, save, _ = good
    picture = shown(image_png=PNG, text_plain="<Image>")
    picture["metadata"] = {"xcrepro": {"link": "![One](../../figures/demo/one.png)"}}
    put(3, outputs=[picture])(notebook)
    put(4, source="no picture")(notebook)
    assert save(notebook) == []
    [kept] = notebooks.read(notebook_path())["cells"][3]["outputs"]
    assert kept["data"] == {"text/markdown": ["![One](../../figures/demo/one.png)"]}


def notebook_path():
    return manifest.load()["demo/one"].notebook


@pytest.mark.parametrize(
    ("plant", "message"),
    [
        (lambda notebook: notebook["metadata"]["kernelspec"].update(name="xc"), "the kernel is 'xc'"),
        (lambda notebook: notebook["metadata"].update(papermill={}), "papermill metadata"),
        (put(2, metadata={"papermill": {"duration": 1}}), "papermill metadata"),
        (put(3, outputs=[shown(image_png=PNG, text_plain="<Image>")]), "a picture is inside"),
        (put(2, metadata={"tags": ["injected-parameters"]}), "a cell of injected parameters"),
        (lambda notebook: None, "not in the canonical form"),
        (lambda notebook: notebook.update(nbformat=3), "JSON that is not a notebook"),
    ],
)
def test_planted_faults_that_tidying_would_hide(good, plant, message):
    notebook, save, _ = good
    plant(notebook)
    assert any(message in problem for problem in save(notebook, tidied=False)), save(notebook, tidied=False)


@pytest.mark.parametrize(
    "plant", [put(1, source="seed = 1"), put(3, source="print(2)"), says("It gains 2.9<!-- x -->.")]
)
def test_what_was_edited_is_to_be_accepted(good, plant):
    notebook, save, _ = good
    before = {**notebook["metadata"]["xcrepro"]}
    plant(notebook)
    save(notebook)
    notebook["metadata"]["xcrepro"] = before
    notebook_path().write_text(tidy.tidied(notebook))  # which does not accept it
    assert any("`xcrepro accept demo/one`" in problem for problem in problems())


def test_the_project_as_a_whole(good, capsys):
    _, _, project = good
    assert check.project() == {}
    project.figure("demo/gone.csv", "a\n1\n")
    project.figure("demo/onecsv.png", "png")
    path = project.root / "notebooks/demo/one.ipynb"
    path.with_name("loose.ipynb").write_text(path.read_text())
    found = check.project()
    assert found["figures/demo/gone.csv"] == ["no item of manifest.toml has this file"]
    assert found["figures/demo/onecsv.png"] == ["no item of manifest.toml has this file"]
    assert found["notebooks/demo/loose.ipynb"] == ["no item of manifest.toml uses it"]


def test_a_lesson_has_no_parameters(project):
    """A notebook in the folder ``course`` is no item; all else that is said of notebooks holds for it."""
    path = project.root / "notebooks" / manifest.LESSONS / "01_one.ipynb"
    path.parent.mkdir()

    def save(lines: int, outputs=()) -> dict:
        cell = project.code("\n".join(["x = 1"] * lines), count=1, outputs=list(outputs))
        path.write_text(tidy.tidied(project.notebook(project.markdown("# Lesson 1: One"), cell)))
        return check.project()

    assert save(40) == {}
    assert "41 lines" in save(41)["notebooks/course/01_one.ipynb"][0]
    assert "'/home/me/x'" in save(1, [stream("/home/me/x")])["notebooks/course/01_one.ipynb"][0]


def test_tidy_keeps_what_exercises_and_slides_need(project):
    cell = project.code("x", count=1)
    cell["metadata"] = {"slideshow": {"slide_type": "skip"}, "nbgrader": {"grade_id": "a"}, "editable": False}
    (kept,) = json.loads(tidy.tidied(project.notebook(cell)))["cells"]
    assert kept["metadata"] == {"slideshow": {"slide_type": "skip"}, "nbgrader": {"grade_id": "a"}}


MESSY = [
    stream("progress\n", "stderr"),
    stream("one\n"),
    stream("CPU times: user 1 s\nWall time: 2 s\n"),
    stream("two"),
    shown(image_png=PNG, text_plain="<Image>"),
    shown(text_plain="table", text_html="<table></table>", application_json="{}"),
    {"output_type": "display_data", "metadata": {}, "data": {"application/vnd.jupyter.widget-view+json": {}}},
    shown(3, image_svg="<svg/>", text_plain="<SVG>"),
]


def test_tidy_keeps_texts_and_drops_the_rest(project):
    cell = project.code("x", count=3, outputs=MESSY)
    cell["metadata"] = {"collapsed": True, "execution": {"iopub.status.busy": "2026"}, "papermill": {"duration": 1}}
    notebook = project.notebook(
        cell, project.code("x"), project.code("y", "nbval-ignore-output", outputs=[stream("4.2 s")])
    )
    notebook["metadata"] |= {"widgets": {}, "papermill": {}, "language_info": {"name": "python", "version": "3.11.7"}}
    text = tidy.tidied(notebook)
    result = json.loads(text)
    first, second, third = result["cells"]
    assert first["outputs"] == [
        {"output_type": "stream", "name": "stdout", "text": ["one\n", "two"]},
        {
            "output_type": "display_data",
            "metadata": {},
            "data": {"text/html": ["<table></table>"], "text/plain": ["table"]},
        },
    ]
    assert (first["execution_count"], first["metadata"]) == (3, {})
    assert second["id"] == first["id"] + "-2"
    assert third["outputs"] == []
    assert third["metadata"] == {"tags": ["nbval-ignore-output"]}
    assert set(result["metadata"]) == {"kernelspec", "language_info"}
    assert result["metadata"]["language_info"] == {"name": "python"}
    assert text.endswith("}\n")
    assert "\r" not in text
    assert tidy.tidied(result) == text


def test_tidy_on_the_command_line(good, capsys):
    notebook, _, project = good
    path = project.root / "notebooks/demo/one.ipynb"
    path.write_text(json.dumps(notebook))
    assert main(["tidy", "--check"]) == 1
    assert json.loads(path.read_text()) == notebook
    assert main(["tidy", str(path)]) == 0
    assert main(["tidy", "--check"]) == 0
    assert path.read_text() == tidy.tidied(notebook)
    capsys.readouterr()
    assert main(["tidy", "nothing.ipynb"]) == 2
    assert "got nothing.ipynb" in capsys.readouterr().err


def test_one_bad_notebook_leaves_all_as_they_were(good):
    notebook, _, project = good
    path = project.root / "notebooks/demo/one.ipynb"
    path.write_text(json.dumps(notebook))
    bad = project.root / "notebooks/demo/zzz.ipynb"
    bad.write_text(json.dumps(project.notebook(project.code("x", "injected-parameters"))))
    with damaged("zzz.ipynb", match="injected"):
        tidy.tidy()
    assert json.loads(path.read_text()) == notebook
    bad.write_text("{")
    with damaged("zzz.ipynb", match="JSON"):
        tidy.tidy()


def test_check_says_what_is_wrong(project, capsys):
    assert check.main([]) == 0
    assert "nothing to mend" in capsys.readouterr().out
    project.figure("demo/gone.csv", "a\n1\n")
    assert check.main(["--static"]) == 1
    assert "figures/demo/gone.csv: " in capsys.readouterr().out
