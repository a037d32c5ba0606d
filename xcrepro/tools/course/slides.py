"""A page of slides a lesson: the cells whose slide type is not ``skip``, run, shown with reveal.js from the folder itself.

nbconvert's own slides load reveal.js, RequireJS and MathJax from the web. These load nothing: reveal.js is copied beside
them (from the installed sphinx-revealjs, which brings it along), formulas are MathML, pictures are inside the page.
"""

from __future__ import annotations

import html
import importlib.util
import json
import re
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from xcrepro.core import threads
from xcrepro.core.errors import DataError
from xcrepro.repro.engine import notebooks
from xcrepro.tools.course.lessons import LINK, Lesson, words_of_picture

_FILES = ("LICENSE", "dist/reset.css", "dist/reveal.css", "dist/reveal.js", "dist/theme/white.css")
_NOTES = "plugin/notes/notes.js"
_FONTS = "dist/theme/fonts/source-sans-pro"  # the theme's
_SECTION = "<section>{}</section>"
_AROUND = {"fragment": '<div class="fragment">{}</div>', "notes": '<aside class="notes">{}</aside>'}
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL)
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


def write(course: Iterable[Lesson], ran: Iterable[dict], folder: Path) -> None:
    """Write the slides of every lesson, from its notebook with outputs (:func:`run_all`), with reveal.js beside them."""
    (found,) = importlib.util.find_spec("sphinx_revealjs").submodule_search_locations
    source = Path(found) / "_static" / "revealjs"
    fonts = [f"{_FONTS}/{path.name}" for path in (source / _FONTS).iterdir()]  # whole: its style sheet names every form
    for name in (*_FILES, _NOTES, *fonts):
        (folder / "reveal.js" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, folder / "reveal.js" / name)
    for lesson, notebook in zip(course, ran, strict=True):
        (folder / f"{lesson.name}.html").write_text(page(lesson, notebook), encoding="utf-8")


def run_all(course: Sequence[Lesson]) -> list[dict]:
    """Run every lesson, as many at once as there are cores."""
    with ThreadPoolExecutor(min(threads.count(), len(course))) as pool:
        return list(pool.map(run, course))


def run(lesson: Lesson) -> dict:
    """The lesson's notebook with the outputs of a run now, pictures included, which committed notebooks do not have."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.reads(json.dumps(lesson.notebook), as_version=4)
    try:
        NotebookClient(notebook, timeout=3600, kernel_name="python3").execute()
    except CellExecutionError as error:
        raise DataError(
            lesson.path, f"a cell that fails ({error.ename}: {error.evalue})", "a run without error"
        ) from None
    return notebook


def page(lesson: Lesson, notebook: dict) -> str:
    """One HTML page: a section a slide; what belongs to a slide is below it, fragments appear one by one."""
    columns: list[list[list[str]]] = []
    for number, cell in enumerate(notebook["cells"]):
        kind = cell["metadata"]["slideshow"]["slide_type"]
        if kind == "skip":
            continue
        if kind == "slide" or not columns:
            columns.append([[]])
        elif kind == "subslide":
            columns[-1].append([])
        body = _cell(cell, words_of_picture(notebook["cells"], number))
        columns[-1][-1].append(_AROUND.get(kind, "{}").format(body))
    slides = []
    for column in columns:
        sections = [_SECTION.format("\n".join(parts)) for parts in column]
        slides.append(sections[0] if len(sections) == 1 else _SECTION.format("\n".join(sections)))
    here = Path(__file__).parent
    whole, style = ((here / name).read_text(encoding="utf-8") for name in ("slides.html", "slides.css"))
    title = html.escape(f"Lesson {lesson.number}: {lesson.title}")
    return whole.format(title=title, style=style, slides="\n".join(slides))


def _cell(cell: dict, picture: str) -> str:
    source = notebooks.text(cell["source"])
    if cell["cell_type"] == "markdown":
        return _markdown(source)
    shown = [f'<pre class="code"><code>{html.escape(source)}</code></pre>']
    return "\n".join([*shown, *(_output(output, picture) for output in cell.get("outputs", []))])


def _markdown(source: str) -> str:
    from nbconvert.filters import markdown2html

    source = LINK.sub(r"\1", source)  # the files are not beside the slides
    # Formulas become placeholders that Markdown leaves alone; dollars in code are no formulas.
    kept: list[str] = []

    def keep(match: re.Match) -> str:
        kept.append(formula(match.group(1) or match.group(2), display=bool(match.group(1))))
        return f"FORMULA{len(kept) - 1}END"

    def prose(text: str) -> str:
        return _FORMULA.sub(keep, text)

    parts, last = [], 0
    for code in _CODE.finditer(source):
        parts += [prose(source[last : code.start()]), code.group()]
        last = code.end()
    text = markdown2html("".join([*parts, prose(source[last:])]))
    return re.sub(r"FORMULA(\d+)END", lambda found: kept[int(found.group(1))], text)


def formula(tex: str, display: bool = False) -> str:
    """A formula, without its dollars, as MathML, which browsers show by themselves."""
    from latex2mathml.converter import convert

    return convert(tex.strip(), display="block" if display else "inline")


def _output(output: dict, picture: str) -> str:
    if output["output_type"] == "stream":
        return f"<pre>{html.escape(notebooks.text(output['text']))}</pre>" if output["name"] == "stdout" else ""
    data = output.get("data", {})
    if "image/png" in data:
        drawn = notebooks.text(data["image/png"]).strip()
        return f'<img src="data:image/png;base64,{drawn}" alt="{html.escape(picture)}">'
    if "text/html" in data:
        return notebooks.text(data["text/html"])
    return f"<pre>{html.escape(notebooks.text(data.get('text/plain', '')))}</pre>"
