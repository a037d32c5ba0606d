"""The page that makes reports in a browser's tab, where `make web` has made it and a Chromium is installed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import xcrepro as xc
from docs import browser
from xcrepro.core import paths

SECONDS = 300


@pytest.fixture
def page(root, request):
    """The page, opened over http from the folder that `make web` wrote."""
    folder = root / "build/site/html"
    if not (folder / "run/parts.json").exists() or browser.find() is None:
        pytest.skip("the page was not tried: `make web` has not run, or there is no Playwright or no Chromium")
    from playwright.sync_api import sync_playwright

    with browser.served(folder) as home, sync_playwright() as play:
        flags = ["--no-sandbox", *getattr(request, "param", [])]
        chromium = play.chromium.launch(executable_path=browser.find(), args=flags)
        page = chromium.new_page()
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(f"{home}run/index.html")
        page.home = home
        yield page
        chromium.close()


def reported(page, *words: str) -> str:
    """What the page says in the end."""
    for _ in range(4 * SECONDS):
        if any(word in (said := page.inner_text("#said")) for word in words):
            return said
        page.wait_for_timeout(250)  # scripts of a test's own are forbidden by the page's rule
    raise TimeoutError(page.inner_text("#said"))


def judged(page, truth: Path, model: Path) -> None:
    """Give the page two files, and ask for the report."""
    page.set_input_files("#truth", truth)
    page.set_input_files("#predictions", model)
    page.click("button[type=submit]")


def test_files_become_a_report_with_the_right_numbers_and_nothing_is_sent(page, tmp_path):
    rng = np.random.default_rng(0)
    scores = rng.random((40, 12)).astype(np.float32)
    truth = (rng.random((40, 12)) < scores / 2).astype(np.float32)
    truth[:, 0] = 1
    names = [f"<b>{label}</b>" for label in range(12)]
    lines = (json.dumps([names[label] for label in np.flatnonzero(row)]) for row in truth)
    (tmp_path / "truth.jsonl").write_text("".join(f"{line}\n" for line in lines))
    np.save(tmp_path / "model.npy", scores)
    (tmp_path / "names.txt").write_text("\n".join(names) + "\n")
    page.click("summary")
    page.set_input_files("#labels", tmp_path / "names.txt")
    judged(page, tmp_path / "truth.jsonl", tmp_path / "model.npy")
    assert reported(page, "Done", "This", "no report").startswith("Done"), page.inner_text("#log")
    value = xc.metrics.precision(truth, xc.TopK.from_scores(scores, 5), 1)[0]
    assert f"{100 * value:.1f}" in page.frames[-1].inner_text("table")
    assert page.frames[-1].query_selector("td b") is None  # a name is text
    assert {url for url in page.asked if not url.startswith((page.home, "blob:", "data:"))} == set()
    page.context.set_offline(True)
    page.click("button[type=submit]")
    assert reported(page, "Done", "This did", "no report").startswith("Done")  # what has loaded is enough


def test_the_words_of_a_refusal_are_the_commands_own(page, tmp_path):
    np.save(tmp_path / "model.npy", np.zeros((3, 4), np.float32) + np.arange(4))
    np.save(tmp_path / "truth.npy", np.eye(4)[:2])
    judged(page, tmp_path / "truth.npy", tmp_path / "model.npy")
    assert reported(page, "no report", "Done").startswith("There is no report")
    assert "3 points" in page.inner_text("#log")


def test_a_damaged_part_is_not_run(page, root, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(root / "build/site/html/run", folder)
    (kit,) = folder.glob("xcrepro-*.zip")
    kit.write_bytes(kit.read_bytes()[:-1] + b"x")
    with browser.served(tmp_path) as home:
        page.goto(f"{home}run/index.html")
        page.click("#example")
        assert "damaged" in reported(page, "damaged", "Done", "no report")


def test_a_notebook_runs_to_its_committed_outputs_and_is_edited_stopped_and_begun_again(page):
    page.goto(f"{page.home}run/notebook.html?item=beyond/certainty")
    assert "MB" in reported(page, "Nothing is loaded")
    page.click("#all")
    notebook = json.loads((paths.project_root() / "notebooks/beyond/certainty.ipynb").read_text())
    n_cells = sum(cell["cell_type"] == "code" for cell in notebook["cells"])
    assert reported(page, "Done", "failed", "This ") == f"Done: {n_cells} cells gave what is committed."
    assert page.query_selector_all("section img[src^='data:image/png']")
    assert {url for url in page.asked if not url.startswith((page.home, "blob:", "data:"))} == set()
    last = page.query_selector_all("section")[-1]
    last.query_selector("textarea").fill("while True:\n    pass")
    last.query_selector("button").click()
    reported(page, "Running")
    page.click("#stop")
    assert reported(page, "Stopped") == "Stopped."
    page.click("#again")
    last.query_selector("textarea").fill("if 6:\n\t")
    last.query_selector("textarea").press("Tab")
    page.keyboard.type("print(6 * 7)")
    first = page.query_selector_all("section")[0]
    first.query_selector("button").click()
    assert reported(page, "Done") == "Done: 1 cells gave what is committed."
    page.reload()  # what was typed is still there
    reported(page, "Nothing is loaded")
    assert page.query_selector_all("textarea")[-1].input_value() == "if 6:\n\t    print(6 * 7)"
    cells = kept(page)
    assert [cell["cell_type"] for cell in cells] == [cell["cell_type"] for cell in notebook["cells"]]
    assert cells[-1]["source"] == "if 6:\n\t    print(6 * 7)"


def kept(page) -> list[dict]:
    """The cells of the notebook that the page gives to be saved."""
    with page.expect_download() as saved:
        page.click("#save")
    return json.loads(Path(saved.value.path()).read_text())["cells"]


WRONG = "def summary(Y):\n    return 0.25, 1.5, np.asarray(Y.sum(axis=1)).ravel()"
RIGHT = "def summary(Y):\n    each = np.asarray(Y.sum(axis=1)).ravel()\n"
RIGHT += "    return np.mean(each == 0), each.mean(), np.asarray(Y.sum(axis=0)).ravel()"


def test_an_exercise_is_checked_and_kept(page):
    page.goto(f"{page.home}run/notebook.html?item=course/01_data_and_long_tail")
    reported(page, "Nothing is loaded")
    sections = page.query_selector_all("section")
    sources = [section.query_selector("textarea").input_value() for section in sections]
    (at,) = (i for i, source in enumerate(sources) if source.startswith("def summary"))
    assert "labels_of_point" not in sources[at]  # no solution
    assert not any("HIDDEN" in source for source in sources)
    for answer, state in ((WRONG, "failed"), (RIGHT, "ran")):
        sections[at].query_selector("textarea").fill(answer)
        for section in sections[at : at + 2]:  # the exercise, then its check
            section.query_selector("button").click()
            reported(page, "Done", "This ")
        assert sections[at + 1].query_selector("small").inner_text() == state
        assert ("AssertionError" in sections[at + 1].inner_text()) == (state == "failed")
    page.reload()
    reported(page, "Nothing is loaded")
    assert page.query_selector_all("textarea")[at].input_value() == RIGHT
    assert RIGHT in [cell["source"] for cell in kept(page)]


@pytest.mark.parametrize("page", [[f"--js-flags=--wasm-max-mem-pages={n}"] for n in (600, 1300)], indirect=True)
def test_too_little_memory_is_said(page):
    """A browser that gives Python 39 MB, too little to begin, and more, with which it ends while it computes."""
    page.click("#example")
    reported(page, "memory", "Done", "no report")
    assert "memory" in page.inner_text("#said") + page.inner_text("#log")
    assert not page.is_disabled("button[type=submit]")


def test_a_large_file_is_refused_before_it_is_read(page, tmp_path):
    np.save(tmp_path / "truth.npy", np.eye(4))
    with (tmp_path / "model.npy").open("wb") as file:
        file.truncate(2**31)
    judged(page, tmp_path / "truth.npy", tmp_path / "model.npy")
    said = reported(page, "MB")
    assert "2147 MB" in said
    assert "xcrepro report truth.npy model.npy" in said


def test_a_file_that_was_changed_is_said(page, tmp_path):
    for name in ("truth", "model"):
        np.save(tmp_path / f"{name}.npy", np.eye(4))
    page.set_input_files("#truth", tmp_path / "truth.npy")
    page.set_input_files("#predictions", tmp_path / "model.npy")
    (tmp_path / "model.npy").unlink()
    page.click("button[type=submit]")
    assert "model.npy cannot be read" in reported(page, "cannot", "Done", "no report")


def test_a_browser_without_webassembly_is_told(page):
    page.add_init_script("delete window.WebAssembly")
    page.reload()
    assert "lacks WebAssembly" in reported(page, "lacks")
    assert page.is_disabled("button[type=submit]")
