"""How the notebooks and pages speak: ``python -m tests.prose [FILE ...]`` counts the habits that readers stumbled over.

For each file: words, words per sentence, *because* and semicolons per 1,000 words, and phrases that have a plainer form. The
counts are for a writer to look at, and nobody should write for them. ``test_prose.py`` refuses the phrases alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "data/**/*.md",
    "notebooks/*.md",
    "notebooks/**/*.ipynb",
    "benchmarks/README.md",
)

PHRASES: dict[str, str] = {
    r"(?<!hich )(?:labels|points|hits|rows|values|trees) a (?:point|label|row|model|dataset|bin|method)\b(?! \w+s )": "per",
    r"\ba (?:row|line|column|panel) an? (?:model|method|dataset|label|metric|claim|split|item)\b": "one row per model",
    r"\bstands? (?:in for|in|on|at|under|beside|above|below)\b": "is, appears",
    r"\bcomes? out at\b|\b(?:it|which|that|P@\d|ECE) comes? to (?:\d|about|nearly)": "is, equals, reaches",
    r"\bk = \d+ alone\b|\bprint alone\b|\bTIB alone\b": "only at k = 1",
    r"\bwhere (?:it|there) (?:has|is) none\b": "if it has none",
    r"\bclearly so\b|\bnot clear in \d": "the effect with its interval",
    r"\bthe other way round\b": "the opposite holds",
    r"\b[Tt]o doubt\b|\bwhat to doubt\b": "Limitations",
    r"\bnobody publishes\b|\bnobody has published\b": "has not been published",
    r"\bheld to (?:print|the|real|its)\b": "compared with",
    r"\b[Ww]here it is another\b": "if it differs",
}
"""What is refused (regular expression) -> what to write in its place."""

_FENCE = re.compile(r"^```.*?^```|^\$\$.*?^\$\$|<!--.*?-->", re.DOTALL | re.MULTILINE)
_MARKUP = re.compile(r"`[^`\n]*`|!?\[([^\]]*)\]\([^)]*\)|\$[^$\n]*\$|<[^>\n]+>")


def prose(path: Path) -> str:
    """The sentences of a page or of a notebook's Markdown cells: without code, formulas, tables and headings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    text = _MARKUP.sub(lambda match: match[1] or "x", _FENCE.sub("", text))
    lines = [line for line in text.splitlines() if not re.match(r"\s*(\||#)", line)]
    return "\n".join(lines)


def phrases(text: str) -> list[str]:
    """Each occurrence of a refused phrase, with some words around it."""
    flat = " ".join(text.split())
    found = [match for pattern in PHRASES for match in re.finditer(pattern, flat)]
    return [flat[max(0, one.start() - 30) : one.end() + 30] for one in sorted(found, key=lambda one: one.start())]


def habits(text: str) -> dict[str, float]:
    """What is counted of a text; rates are per 1,000 words."""
    words = len(re.findall(r"\b[A-Za-z][\w'-]*", text))
    sentences = len(re.findall(r"[.?!](?=\s|$)", text)) or 1
    rate = 1000 / max(words, 1)
    return {
        "words": words,
        "per sentence": round(words / sentences, 1),
        "because": round(
            rate * len(re.findall(r"\b(?:because|so that|therefore|for example)\b", text, re.IGNORECASE)), 1
        ),
        "semicolons": round(rate * text.count(";"), 1),
        "phrases": len(phrases(text)),
    }


def pages(root: Path = ROOT) -> list[Path]:
    """All that readers read."""
    return sorted({path for pattern in PAGES for path in root.glob(pattern) if ".ipynb_checkpoints" not in path.parts})


def main(argv: list[str] | None = None) -> int:
    """0; the table goes to the terminal."""
    parser = argparse.ArgumentParser(prog="python -m tests.prose", description="Count habits of prose.")
    parser.add_argument("files", nargs="*", type=Path, help="default: every notebook and page")
    parser.add_argument("--phrases", action="store_true", help="show each refused phrase in its place")
    arguments = parser.parse_args(argv)
    total = ""
    print(f"{'words':>6} {'a sentence':>10} {'because':>8} {'; ':>6} {'phrases':>8}")
    for path in arguments.files or pages():
        text = prose(path)
        total += text + "\n"
        print("{:6.0f} {:10.1f} {:8.1f} {:6.1f} {:8.0f}".format(*habits(text).values()), f" {path}")
        if arguments.phrases:
            print("".join(f"{'':>45}... {one}\n" for one in phrases(text)), end="")
    print("{:6.0f} {:10.1f} {:8.1f} {:6.1f} {:8.0f}".format(*habits(total).values()), " together")
    return 0


if __name__ == "__main__":
    sys.exit(main())
