"""Slides in a browser, where Chromium is installed: nothing is fetched, nothing is cut off, formulas and pictures are there."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess

import pytest

from xcrepro.tools.course import slides

pytest.importorskip("sphinx_revealjs", reason="sphinx-revealjs is not installed (the extra `course`)")
pytest.importorskip("latex2mathml", reason="latex2mathml is not installed (the extra `course`)")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
browser = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")

# Shows every slide with all its fragments and puts what is wrong into the page, where --dump-dom finds it.
_LOOK = """<script>Reveal.on("ready", async () => {
  const wrong = [];
  await document.fonts.ready;
  for (const slide of Reveal.getSlides()) {
    const place = Reveal.getIndices(slide);
    Reveal.slide(place.h, place.v || 0, 99);
    await new Promise(done => setTimeout(done, 20));
    const say = what => wrong.push(`slide ${place.h + 1}.${(place.v || 0) + 1}: ${what}`);
    if (slide.scrollHeight > slide.clientHeight + 1) say(`${slide.scrollHeight} high, ${slide.clientHeight} are there`);
    if (slide.scrollWidth > slide.clientWidth + 1) say(`${slide.scrollWidth} wide, ${slide.clientWidth} are there`);
    for (const part of slide.querySelectorAll("pre, code, table"))
      if (part.scrollWidth > part.clientWidth + 1 && part.clientWidth) say(`cut off: ${part.textContent.slice(0, 60)}`);
    for (const part of slide.querySelectorAll("img"))
      if (!part.naturalWidth || !part.clientHeight) say("a picture that is not shown");
    for (const part of slide.querySelectorAll("math"))
      if (part.getBoundingClientRect().height < 5) say(`a formula that is not shown: ${part.textContent}`);
  }
  const asked = performance.getEntriesByType("resource").map(entry => entry.name).filter(name => !/^(file|data):/.test(name));
  const said = document.createElement("output");
  said.textContent = JSON.stringify({slides: Reveal.getTotalSlides(), wrong, asked,
    font: document.fonts.check("20px 'Source Sans Pro'")});
  document.body.append(said);
});</script></body>"""


def _looked_at(page, room) -> dict:
    """What the script above found in a page."""
    copy = page.with_name(f"looked_{page.name}")
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", _LOOK), encoding="utf-8")
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={room}"]
    command += ["--window-size=1280,800", "--virtual-time-budget=60000", "--dump-dom", copy.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    found = re.search(r"<output>(.*)</output>", done.stdout, re.DOTALL)
    assert found, done.stderr
    return json.loads(html.unescape(found.group(1)))


def _cell(kind: str, slide: str, source: str, *outputs: dict) -> dict:
    cell = {"cell_type": kind, "metadata": {"slideshow": {"slide_type": slide}}, "source": source}
    return cell | ({"outputs": list(outputs)} if kind == "code" else {})


@pytest.fixture
def shown(course, tmp_path):
    """``shown(*cells)``: what is wrong with the slides of these cells in the browser."""
    slides.write([], [], tmp_path)

    def look(*cells: dict) -> dict:
        page = tmp_path / "page.html"
        page.write_text(slides.page(course[0], {"cells": list(cells)}), encoding="utf-8")
        return _looked_at(page, tmp_path / "profile")

    return look


@browser
def test_what_does_not_fit_a_slide_is_found(shown):
    good = _cell("markdown", "slide", "# Title\n\n$$\\frac{1}{p_l}$$")
    assert shown(good) == {"slides": 1, "wrong": [], "asked": [], "font": True}
    picture = {"output_type": "display_data", "data": {"image/png": "AAAA"}}
    bad = {
        "high": _cell("markdown", "slide", "\n\n".join(["A line."] * 40)),
        "cut off": _cell("code", "slide", "x = " + "1 + " * 60 + "1"),
        "picture": _cell("code", "slide", "draw()", picture),
    }
    for word, cell in bad.items():
        (wrong,) = shown(good, cell)["wrong"]
        assert wrong.startswith("slide 2.1: ")
        assert word in wrong


@browser
@pytest.mark.skipif("XCREPRO_COURSE" not in os.environ, reason="runs all lessons: make test-course")
def test_the_slides_of_all_lessons_fit_their_frame(course, tmp_path):
    slides.write(course, slides.run_all(course), tmp_path)
    found = {lesson.name: _looked_at(tmp_path / f"{lesson.name}.html", tmp_path / "profile") for lesson in course}
    assert [f"{name}, {wrong}" for name, one in found.items() for wrong in one["wrong"]] == []
    for name, one in found.items():
        assert one["slides"] >= 6, name
        assert one["asked"] == [], name
        assert one["font"], name


def test_a_picture_has_the_words_of_the_committed_one(course):
    picture = {"output_type": "display_data", "data": {"image/png": "AAAA"}}
    drawing = _cell("code", "fragment", "plt.show()", picture)
    below = _cell("markdown", "skip", '![Two lines, one "above" the other.](../../figures/course/x.png)')
    found = re.findall(r'alt="([^"]*)"', slides.page(course[0], {"cells": [drawing, below, drawing, drawing]}))
    assert [html.unescape(words) for words in found] == ['Two lines, one "above" the other.', "", ""]
