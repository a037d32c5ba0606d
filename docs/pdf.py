"""A page of the site as a short paper: ``python -m docs.pdf [--page audit] [--out build]``, where LaTeX (latexmk) is installed.

Links to other files of the project become plain words, because a paper is read without the project beside it.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docs import sources
from xcrepro.core.errors import DataMissing, XCError
from xcrepro.core.paths import project_root

SETTINGS = {
    "extensions": ["myst_parser"],
    "latex_elements": {
        "papersize": "a4paper",
        "pointsize": "11pt",
        "extraclassoptions": "oneside,openany",
        "figure_align": "H",
        "tableofcontents": "",
        "printindex": "",
        "preamble": "".join(
            rf"\DeclareUnicodeCharacter{{{code:04X}}}{{\ensuremath{{{text}}}}}"
            for code, text in ((0x2264, r"\le"), (0x2265, r"\ge"), (0x3B2, r"\beta"), (0x2212, "-"), (0x2019, "'"))
        ),
    },
    "latex_theme": "howto",
    "latex_show_urls": "footnote",
    "language": "en",
    "author": "The xcrepro developers",
    "suppress_warnings": ["myst.header"],
}


def readable(text: str) -> str:
    """A page's Markdown whose links lead out of the project or nowhere.

    >>> readable("[a](../x.md) [b](https://example.org) [`c`](#d) ![e](f.png)")
    'a [b](https://example.org) `c` ![e](f.png)'
    """
    return re.sub(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:)[^()\s]*\)", r"\1", text)


def make(root: Path, page: str, out: Path) -> Path:
    """Set a page of ``docs`` as a PDF.

    Parameters
    ----------
    root : Path
        The project folder.
    page : str
        Of ``docs``, without suffix.
    out : Path
        The folder that gets ``PAGE.pdf``.

    Returns
    -------
    Path
        The PDF.

    Raises
    ------
    DataMissing
        Without such a page, without the extra ``docs`` or latexmk, and where LaTeX fails; the message has its last lines.
    """
    source = root / f"docs/{page}.md"
    if not source.is_file():
        raise DataMissing(f"{source}: there is no such page")
    absent = [name for name in ("sphinx", "myst_parser") if importlib.util.find_spec(name) is None]
    if absent:
        raise DataMissing(f"{' and '.join(absent)}: not installed; pip install -e '.[docs]'")
    if shutil.which("latexmk") is None:
        raise DataMissing("latexmk is not installed: install a TeX distribution, or read the page on the site")
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        text = readable(source.read_text(encoding="utf-8"))
        title = text.partition("\n")[0].lstrip("# ")
        (home / "index.md").write_text(text, encoding="utf-8")
        documents = [("index", f"{page}.tex", title, SETTINGS["author"], "howto")]
        settings = {**SETTINGS, "latex_documents": documents, "project": title}
        (home / "conf.py").write_text(
            "\n".join(f"{name} = {value!r}" for name, value in settings.items()), encoding="utf-8"
        )
        # In a process of its own: the site's extensions stay registered in one that has built it.
        sphinx = [sys.executable, "-m", "sphinx", "-q", "-b", "latex", str(home), str(home / "tex")]
        run = subprocess.run(sphinx, capture_output=True, text=True, errors="replace")
        if run.returncode:
            raise DataMissing(f"{source}: Sphinx could not read the page: {run.stderr.strip()[-500:]}")
        run = subprocess.run(
            ["latexmk", "-pdf", "-interaction=nonstopmode", "-halt-on-error", f"{page}.tex"],
            cwd=home / "tex", capture_output=True, text=True, errors="replace",
        )  # fmt: skip
        if run.returncode:
            raise DataMissing(f"{source}: LaTeX failed: {' '.join(run.stdout.split()[-60:])}")
        sources.copy(home / "tex" / f"{page}.pdf", out / f"{page}.pdf")
    return out / f"{page}.pdf"


def main(argv: list[str] | None = None) -> int:
    """0, or 2 where it cannot be set."""
    parser = argparse.ArgumentParser(prog="python -m docs.pdf", description="A page of docs as a PDF, by LaTeX.")
    parser.add_argument("--page", default="audit", help="of docs, without suffix (default: audit)")
    parser.add_argument("--out", type=Path, default=Path("build"), help="the folder for it (default: build)")
    arguments = parser.parse_args(argv)
    try:
        print(make(project_root(), arguments.page, arguments.out))
    except XCError as error:
        print(f"docs.pdf: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
