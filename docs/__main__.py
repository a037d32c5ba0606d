"""Builds the site: ``python -m docs`` runs the lessons, stages the sources, runs Sphinx with every warning an error, and checks
what came out.

Afterwards ``build/site/html`` is a folder that any host of static files takes, and that a browser opens as files.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from docs import explore, links, sources
from xcrepro.core import threads
from xcrepro.core.errors import XCError
from xcrepro.core.paths import project_root
from xcrepro.tools.course import lessons, slides
from xcrepro.tools.reports import html


def build(root: Path, out: Path, quiet: bool = False, run: bool = True, whole: bool = True) -> list[str]:
    """Build the site.

    Parameters
    ----------
    root : Path
        The project folder.
    out : Path
        ``source``, ``html`` and ``doctrees`` are made in it.
    quiet : bool
        Print warnings alone.
    run : bool
        Run the lessons of the course, for their slides, which are not committed.
    whole : bool
        Write every page, and what search needs; else read them all, resolve what they refer to, and write :func:`some`.

    Returns
    -------
    list of str
        What is wrong, a line each, naming the page; empty for a sound site.
    """
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    started = time.monotonic()
    course = lessons.find() if run else []
    ran = slides.run_all(course) if course else []
    pages = sources.stage(root, out / "source", [lesson.name for lesson in course])
    static = out / "static" / "mathjax"
    static.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(sources.mathjax(), static / "tex-svg-full.js")
    shutil.copy(Path(html.__file__).with_name("page.js"), static.parent)  # which sorts tables
    (static.parent / "terms-data.js").write_text(explore.terms_script(root), encoding="utf-8")
    shutil.rmtree(out / "html", ignore_errors=True)
    with patch_docutils(), docutils_namespace():
        folders = {"srcdir": out / "source", "outdir": out / "html", "doctreedir": out / "doctrees"}
        own = {"html_static_path": [str(root / "docs/_static"), str(static.parent)]}
        told = {"status": None if quiet else sys.stdout, "warning": sys.stderr, "warningiserror": True}
        how = {"confdir": root / "docs", "confoverrides": own, "parallel": threads.count()}
        app = Sphinx(buildername="html", **folders, **how, **told)
        unwritten = {} if whole else _build_some(app, pages)
        if whole:
            app.build(force_all=True)
    if course:
        (out / "html" / "slides").mkdir()
        slides.write(course, ran, out / "html" / "slides")
    faults = [f"{app._warncount} warnings of Sphinx, above"] if app._warncount else []
    wanted = {*pages, "search"} if whole else {*pages} - {*unwritten}
    missing = [page for page in sorted(wanted) if not (out / "html" / f"{page}.html").is_file()]
    faults += [f"{page}: the page was not made" for page in missing]
    faults += links.check(out / "html", unwritten)
    print(f"{len(pages) - len(unwritten)} pages in {time.monotonic() - started:.0f} s: {out / 'html' / 'index.html'}")
    return faults


def some(pages: Collection[str]) -> set[str]:
    """The pages that break alone: guides, claims, what is generated for the whole site; of each other folder the first.

    >>> sorted(some(["index", "docs/a", "docs/b", "api/c", "api/d", "notebooks/p/claims", "notebooks/p/a"]))
    ['api/c', 'docs/a', 'docs/b', 'index', 'notebooks/p/a', 'notebooks/p/claims']
    """
    folders: dict[str, list[str]] = defaultdict(list)
    for page in pages:
        folders[page.rpartition("/")[0]].append(page)
    alone = {page for page in pages if page.endswith("/claims")} | {*folders[""], *folders["docs"]}
    return alone | {min(each) for each in folders.values() if each}


def _build_some(app, pages: Collection[str]) -> dict[str, set[str]]:
    """Write :func:`some` pages; of the others resolve what they refer to, and find the places that they have."""
    from docutils import nodes

    written = some(pages)
    app.builder.search = False  # an index of a part would come with a warning; pages ask for it all the same
    app.build(filenames=[app.env.doc2path(page) for page in sorted(written)])
    (Path(app.outdir) / "searchindex.js").write_text("")
    found = {}
    for page in sorted({*pages} - written):
        tree = app.env.get_and_resolve_doctree(page, app.builder)
        found[page] = {place for node in tree.findall(nodes.Element) for place in node["ids"]}
        for raw in tree.findall(nodes.raw):
            found[page] |= links.Page(raw.astext()).anchors
    return found


def main(argv: list[str] | None = None) -> int:
    """0 for a sound site, 1 for faults, 2 where it cannot be built."""
    parser = argparse.ArgumentParser(prog="python -m docs", description="Build the site and check it.")
    parser.add_argument("--out", type=Path, help="default: build/site")
    parser.add_argument("--as-committed", action="store_true", help="run nothing: lessons without pictures and slides")
    parser.add_argument("--part", action="store_true", help="look at every page and write some, as make test does")
    arguments = parser.parse_args(argv)
    root = project_root()
    try:
        run = not (arguments.as_committed or arguments.part)
        faults = build(root, arguments.out or root / "build" / "site", run=run, whole=not arguments.part)
    except XCError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 2
    print("\n".join(faults), file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
