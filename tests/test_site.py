"""The site's sources, its generated pages, the checks of what is built; and the README."""

from __future__ import annotations

import csv
import doctest
import html
import importlib.util
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import xcrepro as xc
from docs import browser, explore, generated, links, report_picture, sources
from tests.repro.conftest import code, markdown, notebook
from xcrepro.core.errors import DataError
from xcrepro.repro.engine import manifest, notebooks, tidy
from xcrepro.tools.course import lessons

PAGES = sorted(Path(__file__).parents[1].glob("docs/*.md"))


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def staged(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    return folder, sources.stage(root, folder)


# ---------------------------------------------------------------- figures: the line under each, sliders, words


def test_every_figure_says_where_it_comes_from(root, staged):
    folder, _ = staged
    text, n = (folder / "gallery.md").read_text(), 0
    for id, entry in manifest.load(root).items():
        for picture in (path for path in entry.figures() if path.suffix == ".png"):
            title, anchor = explore.place(entry, picture.name)
            link = f"[{title}](notebooks/{id}.ipynb{anchor})"
            data = table(picture.with_suffix(".csv"))[0]["data"]
            [line] = {one for one in text.splitlines() if link in one and f"data: {data.rstrip('.')} ·" in one}
            assert f"`xcrepro run {id}`" in line
            assert all(kind in line for kind in generated.rests_on(entry))
            n += 1
    assert n == text.count("Cell under [") > 40
    assert (folder / "notebooks/jain16/table3_table4.ipynb").read_text().count(
        "`xcrepro run jain16/table3_table4`"
    ) == 1


@pytest.fixture
def one(tmp_path):
    """``one(*cells)``: the item demo/one with these cells."""

    def make(*cells: dict) -> manifest.Entry:
        path = tmp_path / "notebooks/demo/one.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(notebook(*cells)))
        return manifest.Entry("demo/one", "One?", tmp_path, tmp_path)

    return make


def test_the_cell_of_a_figure_is_under_the_heading_before_it(one):
    def drawn(name: str) -> dict:
        return code("", outputs=[{"data": {"text/markdown": [f"![x](../../figures/demo/{name}.png)"]}}])

    entry = one(
        *(markdown("# One?"), drawn("one"), markdown("## A, b: c\n\n### What's in *d*?")),
        *(code(""), drawn("one-2"), markdown("## E")),
    )
    assert explore.place(entry, "one.png") == ("One?", "")
    assert explore.place(entry, "one-2.png") == ("What's in *d*?", "#whats-in-d")
    assert explore.place(entry, "two.png") == ("One?", "")


def test_sliders_carry_the_committed_rows(root):
    page = explore.page(root)
    carried = re.findall(r'<script type="application/json">(.*?)</script>', page)
    assert len(carried) == len(explore.CHARTS) == 3
    for (kind, name, *_), text in zip(explore.CHARTS, carried, strict=True):
        spec, rows = json.loads(text), table(root / f"figures/{name}.csv")
        assert spec["kind"] == kind
        assert len(rows) == len(spec["rows"])
        for row, one in zip(rows, spec["rows"], strict=True):
            for name, value in one.items():
                assert row[name] == "nan" if value is None else row[name] == value or float(row[name]) == value
            assert {*row} == {*one, "data"}


def test_metrics_of_the_glossary_are_explained(root):
    found = explore.terms((root / "notebooks/glossary.md").read_text())
    assert {"P@k", "PSP@k", "nDCG@k", "Macro-F1", "Cov@k", "ECE@k", "Brier@k", "corrected ECE"} <= {*found}
    assert "share of the first k" in found["P@k"][0]
    assert found["Brier@k"][0].startswith("Brier@k is the mean squared error")
    assert all(f'<a id="{anchor}">' in (root / "notebooks/glossary.md").read_text() for _, anchor in found.values())
    assert json.loads(explore.terms_script(root).partition(" = ")[2].rstrip(";\n")) == found


# ---------------------------------------------------------------- sources and generated pages


def test_every_item_stands_with_what_it_rests_on(root, staged):
    folder, pages = staged
    for id, entry in manifest.load(root).items():
        text = (folder / f"documents/{id.partition('/')[0]}.md").read_text()
        row = next(line for line in text.splitlines() if f"<br>`{id}` |" in line)
        assert f"(../notebooks/{id}.ipynb)" in row
        assert f"notebooks/{id}" in pages
        for dataset in entry.recorded:
            assert dataset in row
    kinds = {kind for entry in manifest.load(root).values() for kind in generated.rests_on(entry)}
    assert {"synthetic data", "printed numbers", "counts of real data"} <= kinds
    explained = set(re.findall(r"^- \*\*(.+?)\*\*:", (folder / "documents.md").read_text(), re.MULTILINE))
    assert explained == {kind for kind in kinds if not kind.startswith("recorded on")}


def test_an_item_whose_data_nobody_knows_is_refused(one):
    def rests_on(text: str) -> list[str]:
        return generated.rests_on(one(code("x", outputs=[{"output_type": "stream", "name": "stdout", "text": [text]}])))

    said = "Data: synthetic twin of X (seed 0); as printed in y.\n"
    assert rests_on(said) == ["synthetic data", "printed numbers"]
    assert rests_on("nothing\n") == ["computation alone"]
    with pytest.raises(DataError, match=r"one\.ipynb.*the moon"):
        rests_on("Data: as printed in y; from the moon.\n")


def test_every_figure_is_in_the_gallery_and_leads_to_its_notebook(root, staged):
    text = (staged[0] / "gallery.md").read_text()
    found = dict(re.findall(r"\{figure\} (\S+)\n:target: (\S+)\.html", text))
    drawn = {path.relative_to(root).as_posix() for path in root.glob("figures/*/*.png")}
    assert {*found} == {one for one in drawn if not one.startswith("figures/course/")}  # lessons show their own
    for picture, target in found.items():
        assert (root / f"{target}.ipynb").is_file()
        assert Path(picture).stem.partition("-")[0] == Path(target).name


def test_leaderboards_hold_every_printed_row_and_every_doubt(root, staged):
    rows = table(root / "figures/xcrepo/tables_benchmarks-tables.csv")
    boards = {path.stem: path.read_text() for path in (staged[0] / "leaderboards").glob("*.md")}
    assert {*boards} == {row["dataset"] for row in rows}
    assert len(boards) == 21
    assert sum(text.count("<tr><td>") for text in boards.values()) == len(rows)
    doubts = sum(len(row["doubted"].split(", ")) for row in rows if row["doubted"])
    assert sum(len(re.findall(r"\d†</td>", text)) for text in boards.values()) == doubts > 0
    for row in rows:
        printed = f'<td class="number" data-v="{row["P@1"]}">{float(row["P@1"]):.2f}' if row["P@1"] != "nan" else ""
        words = f"<tr><td>{re.escape(html.escape(row['method']))}</td><td>{re.escape(row['mark'])}</td>"
        assert re.search(f"{words}<td.*?</td>{printed}", boards[row["dataset"]])
        if row["doubted"]:
            assert "## What the audit found here" in boards[row["dataset"]]


def test_the_certainty_of_each_lead_is_shown(root, staged, tmp_path):
    boards = "".join(path.read_text() for path in (staged[0] / "leaderboards").glob("*.md"))
    shown = re.findall(r"<td title=[^>]*>(certain|open|no lead)</td>", boards)
    assert len(shown) == len(table(root / "figures/beyond/certainty-pairs.csv"))
    home = tmp_path / "figures/xcrepo"
    home.mkdir(parents=True)
    (home / "tables_benchmarks-tables.csv").write_text(
        "dataset,method,mark,P@1,doubted,data\nX,A,*,50.0,,d\nX,A,*,49.6,,d\nX,B,†,49.5,P@1,d\n"
    )
    (tmp_path / "figures/beyond").mkdir()
    (tmp_path / "figures/beyond/certainty-pairs.csv").write_text(
        "dataset,place,method,next,printed,gap,verdict\nX,1,A,A,50,0.4,certain\nX,2,A,B,49.60,0.1,open\n"
    )
    made = generated.leaderboards(tmp_path)
    assert "| A | 50.00 | A | 0.40 | certain | 1 |" in made["leaderboards.md"]
    page = made["leaderboards/X.md"]
    assert "A leads A by 0.40 points in P@1: **certain**" in page
    assert '<td title="0.40 points over A">certain</td><td class="number" data-v="50.0">50.00' in page
    assert '<td title="0.10 points over B">open</td><td class="number" data-v="49.6">49.60' in page
    assert '<td></td><td class="number" data-v="49.5">49.50†' in page


def test_api_and_commands_have_what_users_call(staged):
    folder, _ = staged
    core = (f"core.{name}" for name in ("metrics.ranking", "predictions", "propensity", "calibrate", "decide"))
    for module in (*core, "models.plt", "repro.published.printed_tables"):
        assert f".. automodule:: xcrepro.{module}\n" in (folder / f"api/xcrepro.{module}.md").read_text()
    assert not list((folder / "api").glob("*kernels*"))
    text = (folder / "commands.md").read_text()
    for name in ("list", "run", "fetch", "evaluate", "audit"):
        assert f"## xcrepro {name}\n" in text
        assert f"usage: xcrepro {name}" in text


def test_a_page_that_names_an_unknown_item_is_refused(root):
    items = manifest.load(root)
    sources.check_items("page.md", "`beyond/since` and `metrics/state`, `a/b`", items)
    with pytest.raises(sources.UnknownItem, match=r"page\.md: jain16/sinse"):
        sources.check_items("page.md", "see `jain16/sinse`", items)


def test_links_move_with_the_page():
    text = "[![a [b] c](../f/x.png)](../n/x.ipynb) [d](e.md#f) [g](https://h/../i) [j](#k)"
    assert sources.moved_up(text) == "[![a [b] c](f/x.png)](n/x.ipynb) [d](docs/e.md#f) [g](https://h/../i) [j](#k)"


def test_a_lesson_has_its_pictures_once_and_leads_to_its_slides(root):
    path = root / "notebooks/course/01_data_and_long_tail.ipynb"
    given = notebooks.read(path)
    first, *others = sources.with_slides(path.stem, given)["cells"]
    link = f'<a href="../../slides/{path.stem}.html">Slides of this lesson</a>'
    assert first["source"] == f"{notebooks.text(given['cells'][0]['source'])}\n\n{link}"
    assert others == given["cells"][1:]
    pictures = [cell for cell in others if lessons.PICTURE.fullmatch(notebooks.text(cell["source"]))]
    drawn = [cell for cell in others if "plt.show()" in notebooks.text(cell["source"])]
    assert len(pictures) == len(drawn) > 1
    assert not any("image/png" in output.get("data", {}) for cell in drawn for output in cell["outputs"])


def test_links_in_tables_lead_to_pages():
    def shown(text: str) -> dict:
        data = {"text/html": [text], "text/markdown": "[b](../b.ipynb)", "text/plain": ["x.ipynb"]}
        return notebook(code("", outputs=[{"output_type": "display_data", "metadata": {}, "data": data}]))

    link = '<a href="../a/b.ipynb#c">b.ipynb</a> <a href="https://x.org/b.ipynb">x</a>'
    made = sources.prepared(shown(link))["cells"][0]["outputs"][0]["data"]
    assert made["text/html"] == '<a href="../a/b.html#c">b.ipynb</a> <a href="https://x.org/b.ipynb">x</a>'
    assert made["text/markdown"] == "[b](../b.ipynb)"  # which is Sphinx's
    assert made["text/plain"] == ["x.ipynb"]


def test_solutions_are_folded():
    solved = {"metadata": {"nbgrader": {"solution": True}}}
    given = notebook(code("x"), code("x") | solved, markdown("x") | solved)
    plain, folded, text = sources.prepared(given)["cells"]
    assert "tags" not in plain["metadata"]
    assert folded["metadata"]["tags"] == ["hide-input"]
    assert text["source"].startswith("<details>")
    assert given["cells"][1]["metadata"] == {"nbgrader": {"solution": True}}


def test_the_closing_code_of_a_notebook_is_folded():
    text = [code("a = 1"), markdown("So."), code("b = 2"), code("item.check_text()")]
    made = json.loads(tidy.tidied({"cells": text}))
    folded = {"jupyter": {"source_hidden": True}}
    assert [one["metadata"] for one in made["cells"]] == [{}, {}, folded, folded]
    assert json.loads(tidy.tidied(made)) == made
    tags = [one["metadata"].get("tags") for one in sources.prepared(made)["cells"]]
    assert tags == [None, None, ["hide-input"], ["hide-input"]]
    lesson = json.loads(tidy.tidied({"cells": text[:-1]}))
    assert [one["metadata"] for one in lesson["cells"]] == [{}, {}, {}]


def test_the_comments_behind_numbers_are_not_on_the_site(staged):
    """Nor in its search; elsewhere they are comments of HTML, which Markdown passes on and a browser does not show."""
    folder, _ = staged
    held = [path for path in (folder / "notebooks").rglob("*.ipynb") if "<!--" in path.read_text(encoding="utf-8")]
    assert held == []
    given = notebook(markdown("gains 2.9<!-- gain['a'] > 1 --> points"))
    assert sources.prepared(given)["cells"][0]["source"] == "gains 2.9 points"


# ---------------------------------------------------------------- what is built


SOUND = """<html><head><link rel="stylesheet" href="s.css"><script src="a.js?v=1"></script><link rel="next" href="b.html">
</head>
<body id="top"><img src="p.png" srcset="p.png 1x, p.png 2x"><a href="b.html#here">b</a> <a href="#top">t</a>
<a href="https://example.org/x">elsewhere</a><div style="background: url('p.png')"></div></body></html>"""


@pytest.fixture
def built(tmp_path):
    (tmp_path / "a.html").write_text(SOUND)
    (tmp_path / "b.html").write_text('<p id="here">b</p>')
    for name in ("p.png", "a.js"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "s.css").write_text(
        "@font-face { src: url(data:font/woff2;base64,AA) } /* url(gone.png) */ p { background: url(p.png) }"
    )
    return tmp_path


def test_a_sound_site_has_no_faults(built):
    assert links.check(built) == []
    (built / "a.html").write_text(
        SOUND.replace("elsewhere", "<pre>| a |\n|---|</pre>").replace("b.html#here", "c.html#x")
    )
    assert links.check(built, {"c": ["x"]}) == []
    assert links.check(built, {"c": ["y"]}) == ["a.html: c.html#x: the page has no such place"]


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        ("a.html", "a.js?v=1", "https://cdn.example.org/a.js", "a.html: fetches https://cdn.example.org/a.js from elsewhere"),
        ("a.html", "a.js?v=1", "//cdn.example.org/a.js", "a.html: fetches //cdn.example.org/a.js from elsewhere"),
        ("a.html", 'src="p.png"', 'src="q.png"', "a.html: q.png is not there"),
        ("a.html", "p.png 2x", "q.png 2x", "a.html: q.png is not there"),
        ("a.html", "url('p.png')", "url('q.png')", "a.html: q.png is not there"),
        ("a.html", "b.html#here", "b.html#there", "a.html: b.html#there: the page has no such place"),
        ("a.html", "b.html#here", "c.html", "a.html: c.html is not there"),
        ("a.html", "b.html#here", "/b.html", "a.html: /b.html leads from the host's root, not from the page"),
        ("a.html", "elsewhere<", "| claim | | :– | ––: | | c1 |<", "a.html: a table is shown as its Markdown, | :– |"),
        ("s.css", "url(p.png)", "url(https://f.example.org/f)", "s.css: fetches https://f.example.org/f from elsewhere"),
        ("s.css", "p {", "@import 'more.css'; p {", "s.css: more.css is not there"),
    ],
)  # fmt: skip
def test_faults_of_a_site_name_their_page(built, file, old, new, fault):
    text = (built / file).read_text()
    assert old in text
    (built / file).write_text(text.replace(old, new, 1))
    assert links.check(built) == [fault]


def test_a_folder_without_pages_is_a_fault(tmp_path):
    assert links.check(tmp_path) == [f"{tmp_path}: holds no page"]


needs_chromium = pytest.mark.skipif(browser.find() is None, reason="no Playwright, or no Chromium")


@needs_chromium
def test_the_browser_sees_planted_faults(tmp_path):
    pixel = "data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22 width=%2230%22 height=%2230%22/>"
    head = '<head><meta name="viewport" content="width=device-width"></head>'
    good = f"<article><p>text</p><img width=30 src='{pixel}'></article>"
    found = "<div id='search-results'><ul><li><a href='docs/psp.html'>good</a></li></ul></div>"
    planted = {
        "far": (
            f"<img src='http://elsewhere.example/x.png'>{good}",
            "request to elsewhere: http://elsewhere.example/x.png",
        ),
        "gone": ("<article><img src='gone.png'></article>", "picture not shown: gone.png"),
        "wide": ("<article><div style='width: 700px'>wide</div></article>", "px wide in a window of 390: DIV"),
        "formula": ("<article><span class='math'>x</span></article>", "formula not set: x"),
        "script": ("<script>nothing.here()</script>", "script error: ReferenceError"),
        "console": ("<script>console.error('sums differ')</script>", "error in the console: sums differ"),
        "broad": ("<main><p style='width: 1400px'>broad</p></main>", "px wide in a window of 1280: P"),
    }
    for name, (body, _) in (planted | {"good": (good, ""), "search": (found, "")}).items():
        (tmp_path / f"{name}.html").write_text(head + body)
    with browser.Browser(browser.find()) as one:
        faults = browser.check(tmp_path, one)
    assert [text for text in faults if text.startswith("good")] == []
    asked = {text.split("'")[1] for text in faults if text.startswith("search")}
    assert asked == {query for query, pages in browser.QUERIES.items() if "docs/psp" not in pages}
    for page, (_, words) in planted.items():
        assert any(text.startswith(f"{page}.html: ") and words in text for text in faults), (page, faults)


needs_sphinx = pytest.mark.skipif(importlib.util.find_spec("myst_nb") is None, reason="the extra docs is not installed")


@pytest.fixture
def few_pages(root, tmp_path, monkeypatch):
    """A project of three pages, with our settings: the first page, a page of docs, a notebook."""
    shutil.copytree(root / "docs/_static", tmp_path / "docs/_static")
    shutil.copy(root / "docs/conf.py", tmp_path / "docs")
    (tmp_path / "docs/index.md").write_text("# Home\n\n[a](page.md)\n")
    (tmp_path / "docs/teach.md").write_text("# Teach\n")
    (tmp_path / "docs/page.md").write_text(
        '# Page\n\n<a id="place"></a>**Place.** [one](../notebooks/demo/one.ipynb) GOOD\n'
    )
    (tmp_path / "notebooks/demo").mkdir(parents=True)
    book = notebook(markdown("# One\n\n[place](../../docs/page.md#place) GOOD"))
    (tmp_path / "notebooks/demo/one.ipynb").write_text(json.dumps(book))
    (tmp_path / "notebooks/manifest.toml").write_text('["demo/one"]\ntitle = "One"\n')
    monkeypatch.setenv("XCREPRO_ROOT", str(tmp_path))
    monkeypatch.setattr(generated, "pages", lambda root, items: {})
    monkeypatch.setattr(explore, "terms_script", lambda root: "window.XC_TERMS = {};")
    tree = "\n\n```{toctree}\n:hidden:\n\ndocs/page\ndocs/teach\nnotebooks/demo/one\n```\n"
    monkeypatch.setattr(generated, "contents", lambda *_: tree)
    return tmp_path


@needs_sphinx
@pytest.mark.parametrize("page", ["docs/page.md", "notebooks/demo/one.ipynb"])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("GOOD", ""),
        ("[a link](gone.md)", "gone.md"),
        ("[a place](#gone)", "gone"),
        ("![a picture](gone.png)", "gone.png"),
        ("an item, `demo/two`", "demo/two is not an item"),
    ],
)
def test_a_fault_stops_the_build_and_names_the_page(few_pages, capfd, page, fault, said):
    from docs.__main__ import main

    path = few_pages / page
    path.write_text(path.read_text().replace("GOOD", fault))
    code = main(["--as-committed"])
    told = capfd.readouterr().err
    assert code == (0 if not said else 2 if "item" in said else 1)
    assert not said or any(page in line and said in line for line in told.splitlines()), told


OPENED = (
    *("notebooks/calibration/claims.html", "notebooks/beyond/audit.html", "documents/jain16.html"),
    *("explore.html", "report.html"),
)
"""Of the site a page of claims, a notebook, a paper's and the sliders; and a report, which lies beside them for the test."""


@needs_sphinx
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"
)  # Sphinx's, by the thousand
def test_the_site_builds_without_a_warning_and_looks_right(root, tmp_path):
    """Every page is read and what it refers to resolved; some are written, with LONG=1 all, and five are opened."""
    from docs.__main__ import build

    long = bool(os.environ.get("XCREPRO_LONG"))
    assert build(root, tmp_path, quiet=True, run=long, whole=long) == []
    home = tmp_path / "html"
    claims = [*home.glob("notebooks/*/claims.html")]
    assert len(claims) == len([*root.glob("notebooks/*/claims.ipynb")])
    assert all(path.read_text().count("<table") >= 3 for path in claims)
    if program := browser.find():
        Y = sparse.random(60, 12, 0.2, "csr", np.float32, np.random.default_rng(0))
        tops = {name: xc.TopK.from_scores(np.random.default_rng(name == "b").random(Y.shape), 5) for name in "ab"}
        report = xc.report(Y, tops, train_truth=Y, n_resamples=20, price=False)
        (home / "report.html").write_text(report.to_html(), encoding="utf-8")
        with browser.Browser(program) as one:
            assert browser.check(home, one, None if long else [*OPENED]) == []


# ---------------------------------------------------------------- README, pages, hosts


def test_the_picture_of_a_report_says_what_the_report_says():
    """`python -m docs.report_picture` makes it again."""
    shown = pytest.importorskip("PIL.Image").open(report_picture.PICTURE)
    assert shown.text["data"] == report_picture.digest(report_picture.report())
    assert report_picture.PICTURE.stat().st_size <= 200_000


def test_python_of_the_readme_prints_what_it_says(root):
    """That of the pages is run by tests/test_docs.py."""
    text = (root / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert blocks
    example = doctest.DocTestParser().get_doctest("".join(blocks), {}, "README.md", "README.md", 0)
    assert len(example.examples) >= 4
    assert doctest.DocTestRunner().run(example).failed == 0


def test_links_lead_somewhere_where_the_sources_are_read(root):
    for path in [root / "README.md", *PAGES]:
        for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
            assert "://" in link or (path.parent / link.partition("#")[0]).exists(), (path.name, link)


def test_the_first_page_of_the_site_leads_to_what_the_site_makes(staged):
    folder, _ = staged
    first = (folder / "index.md").read_text(encoding="utf-8")
    for here, page in sources.GENERATED.items():
        assert f"]({page})" in first
        assert f"]({here})" not in first
