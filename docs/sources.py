"""Stages the sources of the site: the project's own layout under one folder, so that every link stands as it is committed.

``notebooks/``, ``figures/`` and the Markdown files that readers are sent to are copied; ``docs/index.md`` becomes the first
page; pages that follow from the library are written by ``docs/generated.py``.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from docs import explore, generated
from xcrepro.core.errors import DataMissing, XCError
from xcrepro.repro.engine import manifest, notebooks, prose_numbers
from xcrepro.repro.engine.manifest import Entry

PAGES = (
    *("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/*.md", "data/**/*.md", "docs/*.md"),
    *("notebooks/**/*.md", "xcrepro/*/README.md"),
)
"""Markdown files that become pages, beside the notebooks and the tables under ``figures``."""

SOUGHT = {
    "docs/evaluate.md": "ICD coding, subject indexing, product tagging, extreme classification",
    "docs/formats.md": "Annif, omikuji, napkinXC, PECOS, fastText",
    "docs/macro_f1.md": "macro-F1",
    "docs/missing_labels.md": "missing labels",
    "docs/other_tools.md": "hit rate, R-precision, AUC, exact match",
    "docs/psp.md": "PSP@k, propensity-scored precision",
    "docs/sigmoid_scores.md": "calibration@k, ECE",
    "docs/which_test.md": "significance, confidence interval",
}
"""What readers type into the site's search -> the page that answers, as entries of its index; the glossary has one a term."""

UNSOUGHT = ("api/", "benchmarks/", "figures/", "CHANGELOG")
"""Pages that the search of the site leaves out: they have every word."""

_LINK = re.compile(r"\]\(([^()\s]+)\)")
_PLACE = re.compile(r'^<a id="([\w-]+)"></a>', re.MULTILINE)  # links to it resolve where MyST sees a target
_TERM = re.compile(r'^(<a id="[\w-]+"></a>)\*\*([^*]+)\*\*', re.MULTILINE)
_NOTEBOOK_LINK = re.compile(r"""(href="(?![a-z]+:)[^"#\s]+)\.ipynb((?:#[^"\s]*)?")""")
_FOLDED = "hide-input"  # myst-nb's tag


class UnknownItem(XCError, ValueError):
    """A page names an item that the manifest does not have. The message names both."""


def stage(root: Path, target: Path, lessons: Collection[str] = ()) -> list[str]:
    """Write all sources of the site.

    Parameters
    ----------
    root : Path
        The project folder.
    target : Path
        Emptied first.
    lessons : collection of str
        Names of lessons that have slides; their pages lead there.

    Returns
    -------
    list of str
        The pages, without suffix, sorted.

    Raises
    ------
    UnknownItem
        For a page or notebook that names an item which is not there.
    """
    shutil.rmtree(target, ignore_errors=True)
    items = manifest.load(root)
    for path in _seen(root, *PAGES):
        name = path.relative_to(root)
        text = path.read_text(encoding="utf-8")
        if name.name != "CHANGELOG.md":  # which says what items were called
            check_items(name.as_posix(), text, items)
        if name.name == "glossary.md":
            text = _TERM.sub(lambda term: entries_of_index(term[2].strip(".")) + term[0], text)
        text = entries_of_index(SOUGHT.get(name.as_posix(), "")) + text
        _write(target / name, _PLACE.sub(r"(\1)=\n", text))
    for path in _seen(root, "notebooks/**/*.ipynb"):
        name, notebook = path.relative_to(root), notebooks.read(path)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                check_items(name.as_posix(), notebooks.text(cell["source"]), items)
        if path.parent.name == "course" and path.stem in lessons:
            notebook = with_slides(path.stem, notebook)
        line = functools.partial(_line, root, items, name.as_posix())
        notebook = explore.with_lines(prepared(notebook, path.stem == "claims"), line)
        _write(target / name, json.dumps(notebook, ensure_ascii=False))
    for path in sorted((root / "figures").rglob("*")):
        if path.suffix in {".png", ".csv"}:
            copy(path, target / path.relative_to(root))
    for id, entry in items.items():
        for path in entry.figures():
            if path.suffix == ".md":
                _write(target / path.relative_to(root), generated.table_page(id, path))
    for name, text in generated.pages(root, items).items():
        _write(target / name, text)
    for path in target.rglob("*.md"):
        if path.relative_to(target).as_posix().startswith(UNSOUGHT):
            text = path.read_text(encoding="utf-8")
            _write(path, "---\nnosearch: true\n" + (text[4:] if text.startswith("---\n") else f"---\n{text}"))
    first = moved_up((target / "docs/index.md").read_text(encoding="utf-8"))
    for here, page in GENERATED.items():
        first = first.replace(f"]({here})", f"]({page})")
    (target / "docs/index.md").unlink()
    # As the first page mentions them, the others behind.
    mentioned = re.findall(r"\(docs/(\w+)\.md", first)
    guides = list(dict.fromkeys([*mentioned, *sorted(path.stem for path in (target / "docs").glob("*.md"))]))
    titles = {}
    for path in sorted((target / "notebooks/course").glob("*.ipynb")):
        head = notebooks.text(notebooks.read(path)["cells"][0]["source"])
        titles[path.stem] = head.partition("\n")[0].lstrip("# ")
    with (target / "docs/teach.md").open("a", encoding="utf-8", newline="\n") as page:
        page.write(generated.lesson_list(titles))
    data = _names(target, target.glob("data/**/*.md"))
    course = [f"notebooks/course/{name}" for name in titles]
    _write(target / "index.md", first + generated.contents(guides, course, data))
    for path in [*target.rglob("*.md"), *target.rglob("*.ipynb")]:
        for link in _local_links(path):
            # A file that is no page (a source, a licence) comes along, for readers to download.
            found, wanted = (path.parent / link).resolve(), root / _below(path.parent / link, target)
            if not found.exists() and wanted.is_file():
                copy(wanted, found)
    return _names(target, [*target.rglob("*.md"), *target.rglob("*.ipynb")])


def _seen(root: Path, *patterns: str) -> list[Path]:
    """The files of these patterns, but for hidden ones and those of folders that hold what pages need."""
    found = {path for pattern in patterns for path in root.glob(pattern)}
    return sorted(path for path in found if not re.search(r"(^|/)[._]", path.relative_to(root).as_posix()))


def _names(target: Path, files: Iterable[Path]) -> list[str]:
    """Pages as Sphinx calls them."""
    return sorted(path.relative_to(target).with_suffix("").as_posix() for path in files)


def entries_of_index(names: str) -> str:
    """MyST for entries of the index, which the search of the site shows before all that has a word somewhere.

    >>> entries_of_index("PSP@k")
    '```{index} ! single: PSP@k\\n```\\n\\n'
    """
    found = [name.strip() for name in re.split(r"[,;()=]", names)]
    return "".join(f"```{{index}} ! single: {name}\n```\n\n" for name in found if name)


def prepared(notebook: dict, folded: bool = False) -> dict:
    """A notebook for the site: as committed, without the comments behind its numbers, with the solutions of exercises
    and the closing cells folded.

    Parameters
    ----------
    notebook : dict
        Its content; a cell is a solution where nbgrader's metadata say so.
    folded : bool
        Fold all code.

    Returns
    -------
    dict
        A new one.
    """
    cells = []
    for cell in notebook["cells"]:
        cell = {**cell, "metadata": dict(cell["metadata"])}
        if cell["cell_type"] == "markdown":
            cell["source"] = prose_numbers.without_comments(notebooks.text(cell["source"]))
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            if cell["cell_type"] == "code":
                cell["metadata"]["tags"] = [*notebooks.tags(cell), _FOLDED]
            else:
                answer = notebooks.text(cell["source"])
                cell["source"] = f"<details><summary>Solution</summary>\n\n{answer}\n\n</details>"
        elif cell["metadata"].get("jupyter", {}).get("source_hidden") or (folded and cell["cell_type"] == "code"):
            cell["metadata"]["tags"] = [*notebooks.tags(cell), _FOLDED]
        if shown := cell.get("outputs"):
            cell["outputs"] = [_with_pages(output) for output in shown]
        cells.append(cell)
    return {**notebook, "cells": cells}


def _with_pages(output: dict) -> dict:
    """An output whose links to notebooks lead to their pages in HTML too: Sphinx sees to those of Markdown alone."""
    data = dict(output.get("data", {}))
    if "text/html" in data:
        data["text/html"] = _NOTEBOOK_LINK.sub(r"\1.html\2", notebooks.text(data["text/html"]))
    return {**output, "data": data} if data else output


def with_slides(name: str, notebook: dict) -> dict:
    """A lesson whose first cell leads to its slides. Its pictures are the committed ones, each once, with their words.

    Parameters
    ----------
    name : str
        Of the lesson.
    notebook : dict
        As committed.

    Returns
    -------
    dict
        A new one.
    """
    first, *others = notebook["cells"]
    link = f'<a href="../../slides/{name}.html">Slides of this lesson</a>'  # made after the pages
    return {**notebook, "cells": [{**first, "source": f"{notebooks.text(first['source'])}\n\n{link}"}, *others]}


GENERATED = {
    "data/claims/README.md": "documents.md",
    "notebooks/reproduced.csv": "reproduced.md",
    "figures": "gallery.md",
    "docs/explore.py": "explore.md",
    "data/published/README.md": "leaderboards.md",
    "xcrepro/core/README.md": "api.md",
    "xcrepro/tools/README.md": "commands.md",
}
"""What the first page links to in the repository -> the page that the site makes of it."""


def moved_up(text: str) -> str:
    """The text of a page of ``docs/`` with its links as they are from the folder above.

    >>> moved_up("[a](edges.md) [b](../notebooks/x.ipynb) [c](https://example.org) [d](#here)")
    '[a](docs/edges.md) [b](notebooks/x.ipynb) [c](https://example.org) [d](#here)'
    """

    def link(match: re.Match) -> str:
        where = match[1]
        if not re.match(r"[a-z]+:|#", where):
            where = where[3:] if where.startswith("../") else f"docs/{where}"
        return f"]({where})"

    return _LINK.sub(link, text)


def check_items(name: str, text: str, items: dict) -> None:
    """That whatever looks like an item in a page's code words is one.

    Parameters
    ----------
    name : str
        Of the page, for the message.
    text : str
        Its Markdown.
    items : dict
        Of the manifest.

    Raises
    ------
    UnknownItem
    """
    papers = {id.partition("/")[0] for id in items}
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for word in re.findall(r"`([a-z0-9_]+/[A-Za-z0-9_]+)`", prose):
        if word.partition("/")[0] in papers and word not in items:
            raise UnknownItem(f"{name}: {word} is not an item of notebooks/manifest.toml; `xcrepro list` shows them")


def mathjax() -> Path:
    """The one file of MathJax that the pages need, from the installed package that brings it.

    Raises
    ------
    DataMissing
        Where the extra ``docs`` is not installed.
    """
    package = "sphinx-mathjax-offline"
    try:
        return Path(metadata.distribution(package).locate_file(f"{package}/static/mathjax/tex-svg-full.js"))
    except metadata.PackageNotFoundError:
        raise DataMissing(f"{package} is not installed: pip install -c constraints.txt -e '.[docs]'") from None


def _line(root: Path, items: Mapping[str, Entry], page: str, figure: str) -> str:
    """The line under ``paper/name`` on a page of the notebooks."""
    paper, _, name = figure.partition("/")
    entry = items[f"{paper}/{name.partition('-')[0]}"]
    return explore.line(root, entry, name, generated.rests_on(entry), "../" * page.count("/"))


def _local_links(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    for link in _LINK.findall(text):
        if not re.match(r"[a-z]+:|#", link):
            yield link.partition("#")[0]


def _below(path: Path, folder: Path) -> Path:
    """``path`` relative to ``folder``, of which it need not be a part on disk; an odd one leads nowhere."""
    path = path.resolve()
    return path.relative_to(folder.resolve()) if path.is_relative_to(folder.resolve()) else Path("nowhere")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def copy(source: Path, target: Path) -> None:
    """Copy a file, its folder made where there is none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
