"""Pages that follow from the library and from what is committed: documents, gallery, leaderboards, command line, API.

Nothing is computed here: numbers come from the committed tables under ``figures/``, what an item rests on from the
manifest and from what its committed notebook says of its data.
"""

from __future__ import annotations

import argparse
import ast
import csv
import html
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from docs import explore, reproduced, verdicts
from docs.markdown import page, table, toctree
from docs.papers import DOCUMENTS
from xcrepro.core.errors import DataError
from xcrepro.repro.engine import notebooks
from xcrepro.repro.engine.manifest import Entry
from xcrepro.tools import commands

RESTS_ON = (
    ("synthetic twin", "synthetic data"),
    ("as printed", "printed numbers"),
    ("TIB, ", "real data"),
    ("TIB (real", "real data"),
    ("removed by", "real data"),
    ("real data", "counts of real data"),
    ("counted labels", "counts of real data"),
    ("simulated", "simulated scores"),
)
"""Words in what a notebook says of its data -> what the item rests on; the first that occur count."""

_MEANS = {
    "printed numbers": "the document's own, compared, sorted and drawn; none is recomputed.",
    "synthetic data": "drawn in the likeness of a real dataset, so that the complete truth is known. They show what can happen, not how much of it "
    "happens on real data. [How near it is](notebooks/kit/twin_against_real.ipynb).",
    "real data": "the library records that come with the kit. [What they are](docs/tib.md).",
    "counts of real data": "how many points each label of a real dataset has.",
    "simulated scores": "drawn at random, for a question that needs no dataset.",
    "computation alone": "no data are needed.",
}
"""What the page of all documents says of each."""


_NOT_API = {"papers", "commands", "kernels", "__main__.py"}


def pages(root: Path, items: Mapping[str, Entry]) -> dict[str, str]:
    """Every generated page.

    Parameters
    ----------
    root : Path
        The project folder.
    items : mapping of str to Entry
        Of the manifest.

    Returns
    -------
    dict of str to str
        Path below the site's sources -> MyST Markdown.

    Raises
    ------
    DataError
        For a notebook that says of its data what :data:`RESTS_ON` does not know, and for a listing of what is reproduced that the
        items do not bear out.
    """
    rows = reproduced.read(root / reproduced.LISTING)
    if found := reproduced.faults(rows, items, rests_on, takes):
        raise DataError(root / reproduced.LISTING, "; ".join(found), "what the items bear out")
    titles = {name: title for name, (title, _) in DOCUMENTS.items()}
    made = {"gallery.md": gallery(root, items), "commands.md": command_line(), "explore.md": explore.page(root)}
    made["reproduced.md"] = reproduced.page(rows, items, titles, rests_on)
    made |= documents(root, items) | leaderboards(root) | api(root)
    return made


def contents(guides: Iterable[str], lessons: Iterable[str], data: Iterable[str]) -> str:
    """What ends the first page: the hidden tables of contents that the side bar is made from.

    Parameters
    ----------
    guides : iterable of str
        Names of the pages under ``docs``, in the order in which they are listed.
    lessons : iterable of str
        Notebooks of the course.
    data : iterable of str
        Pages that say what committed data are.

    Returns
    -------
    str
    """
    own = "documents", "reproduced", "gallery", "explore", "leaderboards", "docs/audit", "notebooks/glossary"
    use = [f"docs/{name}" for name in guides if name not in ("audit", "teach")]
    about = ["ARCHITECTURE", *(f"xcrepro/{wing}/README" for wing in ("core", "models", "repro", "tools"))]
    reference = [
        "commands",
        "api",
        "benchmarks/README",
        "benchmarks/results",
        *data,
        *about,
        "CONTRIBUTING",
        "CHANGELOG",
    ]
    return "\n\n" + page(
        toctree(own, "Read"),
        toctree([*lessons, "notebooks/primer", "docs/teach"], "Learn"),
        toctree(use, "Use"),
        toctree(reference, "Reference"),
    )


def lesson_list(titles: Mapping[str, str]) -> str:
    """What ends the page on teaching: name of a lesson -> its title, as links."""
    lines = [f"- [{title}](../notebooks/course/{name}.ipynb)" for name, title in titles.items()]
    return "\n".join(["", "## The lessons", "", "With the solutions of their exercises folded:", "", *lines, ""])


# ---------------------------------------------------------------- documents and their items


def said_of_data(entry: Entry) -> str:
    """What a committed notebook prints of its data, without the word ``Data:``; empty where it prints nothing."""
    for cell in notebooks.code_cells(notebooks.read(entry.notebook)):
        for output in cell.get("outputs", []):
            for line in notebooks.text(output.get("text")).splitlines():
                if line.startswith("Data: "):
                    return line.removeprefix("Data: ").rstrip(".")
    return ""


def rests_on(entry: Entry) -> list[str]:
    """What an item's committed numbers rest on.

    Parameters
    ----------
    entry : Entry

    Returns
    -------
    list of str
        Values of :data:`RESTS_ON`, each once; ``"computation alone"`` where the notebook names no data. Then the real
        datasets on which its numbers are recorded.

    Raises
    ------
    DataError
        For words that :data:`RESTS_ON` does not know.
    """
    said, found = said_of_data(entry), []
    for part in said.split("; ") if said else []:
        kinds = [kind for words, kind in RESTS_ON if words in part]
        if not kinds:
            raise DataError(entry.notebook, f"data {part!r}", f"one of {', '.join(words for words, _ in RESTS_ON)}")
        found.append(kinds[0])
    found = list(dict.fromkeys(found)) or ["computation alone"]
    if entry.recorded:
        found.append(f"recorded on {', '.join(entry.recorded)}")
    return found


def takes(entry: Entry) -> list[str]:
    """What a reader may put in the place of an item's data: saved predictions, a real dataset."""
    names = entry.official()
    found = ["your predictions"] if "predictions" in names else []
    found += ["a real dataset"] if {"folder", "dataset", "names"} & set(names) else []
    return found


def documents(root: Path, items: Mapping[str, Entry]) -> dict[str, str]:
    """The page of all documents, and one for each with its items and what they rest on."""
    used = {kind for entry in items.values() for kind in rests_on(entry)}
    made, rows = {}, []
    for paper, entries in _by_paper(items).items():
        title, about = DOCUMENTS.get(paper, (paper, ""))
        rows.append((f"[{title}](documents/{paper}.md)", about, len(entries)))
        made[f"documents/{paper}.md"] = _document(title, about, entries)
    kinds = [f"- **{kind}**: {meaning}" for kind, meaning in _MEANS.items() if kind in used]
    kinds.append(
        "- **recorded on** a dataset: the same notebook was also run on that real dataset, and its numbers are shown beside "
        "the others. [How](data/recorded/README.md)."
    )
    pages = [name.removesuffix(".md") for name in made]
    made["documents.md"] = page(
        "# Papers and their notebooks",
        "Each paper has a page of its claims with our verdicts, and a notebook for each figure or table. A notebook's numbers rest on:",
        "\n".join(kinds),
        table("llr", ("document", "what it is", "notebooks"), rows),
        "[Each figure and table of the documents](reproduced.md), with how far it is reproduced. "
        "[One notebook makes all of them again](notebooks/00_regenerate_all.ipynb).",
        toctree([*pages, "notebooks/00_regenerate_all"]),
    )
    return made


def _by_paper(items: Mapping[str, Entry]) -> dict[str, list[Entry]]:
    """The items of each folder, those of :data:`DOCUMENTS` first."""
    found: dict[str, list[Entry]] = {paper: [] for paper in DOCUMENTS}
    for entry in sorted(items.values(), key=_paper):
        found.setdefault(_paper(entry), []).append(entry)
    return {paper: entries for paper, entries in found.items() if entries}


def _paper(entry: Entry) -> str:
    return entry.id.partition("/")[0]


_FIRST = {"claims": 0, "equations": 1}
"""Notebooks of a paper that come before its figures and tables."""


def _document(title: str, about: str, entries: list[Entry]) -> str:
    """A paper's page: its question and short answer, the bars of its verdicts, its figures, then all notebooks, folded."""
    paper, shown, rows = _paper(entries[0]), [], []
    entries = sorted(entries, key=lambda entry: _FIRST.get(entry.id.partition("/")[2], len(_FIRST)))
    for entry in entries:
        link = f"[{entry.title}](../notebooks/{entry.id}.ipynb)"
        for path in entry.figures():
            if path.suffix == ".png" and path.stem == entry.id.partition("/")[2]:
                shown.append(
                    f"[![{entry.title}](../figures/{paper}/{path.name})](../notebooks/{entry.id}.ipynb)<br>{link}"
                )
        tables = " ".join(f"[{path.stem}](../figures/{paper}/{path.name})" for path in _tables(entry))
        more = "; ".join(takes(entry)) or "nothing"
        rows.append((f"{link}<br>`{entry.id}`", "; ".join(rests_on(entry)), more, tables))
    shown += [""] * (-len(shown) % 3)
    grid = [shown[at : at + 3] for at in range(0, len(shown), 3)]
    all_of = table("llll", ("notebook", "rests on", "also takes", "tables"), rows)
    return page(
        f"# {title}",
        about,
        _answer(entries[0]),
        verdicts.bars(paper),
        table("lll", ("", "", ""), grid) if grid else "",
        "```{admonition} All notebooks, what they rest on, their tables to download\n:class: dropdown\n\n"
        + all_of
        + "\n```",
        f"To make them again: `xcrepro run {paper}`. Figures: [gallery](../gallery.md).",
        toctree(f"../notebooks/{entry.id}" for entry in entries),
    )


def _answer(entry: Entry) -> str:
    """What a paper's page of claims begins with, as its first cell says it, and a link to the page."""
    if not entry.id.endswith("/claims"):
        return ""
    text = notebooks.text(notebooks.read(entry.notebook)["cells"][0]["source"])
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).partition("\n")[2].strip()
    paper = _paper(entry)
    text = re.sub(r"\]\((?!\.\./|#|[a-z]+:)", f"](../notebooks/{paper}/", text).replace("](../", "](../notebooks/")
    text = text.replace("/notebooks/notebooks/", "/notebooks/")
    return f"{text}\n\n[Each claim with its verdict](../notebooks/{entry.id}.ipynb)"


def _tables(entry: Entry) -> list[Path]:
    """Its tables, each as the page that it is committed as, or as its CSV; without the data behind figures."""
    files = {*entry.figures()}
    own = [path for path in sorted(files) if path.suffix == ".csv" and path.with_suffix(".png") not in files]
    return [path.with_suffix(".md") if path.with_suffix(".md") in files else path for path in own]


def table_page(id: str, path: Path) -> str:
    """A committed Markdown table as a page, which says where it comes from.

    Parameters
    ----------
    id : str
        The item's.
    path : Path
        The table's.

    Returns
    -------
    str
    """
    name = path.stem
    text = path.read_text(encoding="utf-8")
    return f"---\norphan: true\n---\n\n# {id.partition('/')[0]}/{name}\n\nOf [`{id}`](../../notebooks/{id}.ipynb); as [csv]({name}.csv), and as LaTeX by `xcrepro table {id.partition('/')[0]}/{name} --latex`.\n\n{text}"


# ---------------------------------------------------------------- gallery


def gallery(root: Path, items: Mapping[str, Entry]) -> str:
    """Every committed figure, each leading to its notebook, with the line that says what it is made of."""
    parts = [
        "# Gallery",
        "Every committed figure. Each leads to the notebook that makes it, and the line below it says from which data. "
        "[Three of them have sliders](explore.md).",
    ]
    for paper, entries in _by_paper(items).items():
        drawn = [(entry, path) for entry in entries for path in entry.figures() if path.suffix == ".png"]
        figures = [
            f":::{{figure}} figures/{paper}/{picture.name}\n:target: notebooks/{entry.id}.html\n"
            f":alt: {captions(entry).get(picture.name, entry.title)}\n:loading: lazy\n\n"
            f"[{entry.title}](notebooks/{entry.id}.ipynb)\n\n"
            f"{explore.line(root, entry, picture.stem, rests_on(entry))}\n:::"
            for entry, picture in drawn
        ]
        if figures:
            title, _ = DOCUMENTS.get(paper, (paper, ""))
            parts += [f"## {title}", "::::{container} gallery", *figures, "::::"]
    return page(*parts)


def captions(entry: Entry) -> dict[str, str]:
    """File name of a figure -> its title, as the committed notebook has it."""
    found = {}
    for cell in notebooks.code_cells(notebooks.read(entry.notebook)):
        for output in cell.get("outputs", []):
            text = notebooks.text(output.get("data", {}).get("text/markdown"))
            for title, name in re.findall(r"^!\[(.*)\]\([^()]*/([^/()]+\.png)\)$", text, re.MULTILINE):
                found[name] = title
    return found


# ---------------------------------------------------------------- leaderboards

_WORDS = {"dataset", "method", "mark", "doubted", "data"}
_LEAD = (
    "*Lead*: does a row's P@1 exceed that of the next by more than the luck of the test points? *certain*: yes, whatever the two predicted; "
    "*no lead*: no, whatever they predicted; *open*: it depends on their predictions. "
    "[How](notebooks/beyond/certainty.ipynb) that follows from the printed numbers and the number of test points alone."
)


def leaderboards(root: Path) -> dict[str, str]:
    """The printed benchmark tables, sortable, with the audit's doubts and the certainty of each lead: from the committed tables
    of ``xcrepo/tables_benchmarks``, ``beyond/audit`` and ``beyond/certainty``.
    """
    rows = _read(root / "figures/xcrepo/tables_benchmarks-tables.csv")
    doubts = defaultdict(list)
    for one in _read(root / "figures/beyond/audit-findings.csv"):
        if one["document"] == "xcrepo":
            for dataset in one["dataset"].split(", "):
                doubts[dataset].append(one)
    # By what was printed as well: two rows of a table may have one name.
    leads = {
        (one["dataset"], one["method"], float(one["printed"])): one
        for one in _read(root / "figures/beyond/certainty-pairs.csv")
    }
    boards = defaultdict(list)
    for row in rows:
        boards[row["dataset"]].append(row)
    made, lines = {}, []
    for dataset, board in boards.items():
        # Rows of one lead: best first by P@1, as the committed table is sorted.
        first, second = ([*board, {}])[:2]
        gap = f"{float(first['P@1']) - float(second['P@1']):.2f}" if second else ""
        of_board = [leads.get((dataset, row["method"], float(row["P@1"]))) for row in board]
        lead = of_board[0]["verdict"] if of_board[0] else ""
        n = sum(len(row["doubted"].split(", ")) for row in board if row["doubted"])
        best = first["method"], f"{float(first['P@1']):.2f}"
        link = f"[{dataset}](leaderboards/{dataset}.md)"
        lines.append((link, len(board), *best, second.get("method", ""), gap, lead, n or ""))
        made[f"leaderboards/{dataset}.md"] = _board(dataset, board, doubts[dataset], of_board)
    head = "dataset", "rows", "highest P@1", "P@1", "next", "behind", "lead", "†"
    made["leaderboards.md"] = page(
        "# Leaderboards",
        "The 21 benchmark tables of the Extreme Classification Repository's page, as printed there; none of the numbers is recomputed. "
        "Every table can be sorted by any column: a click on its head. A number that [the audit](notebooks/beyond/audit.ipynb) finds "
        "impossible or misplaced carries a †, with the reason below the table.",
        f"The page prints no errors. {_LEAD} What the tables say together: "
        "[`xcrepo/tables_benchmarks`](notebooks/xcrepo/tables_benchmarks.ipynb).",
        table("lrlrlrlr", head, lines),
        toctree(f"leaderboards/{dataset}" for dataset in boards),
    )
    return made


def _board(dataset: str, board: list[dict], doubts: list[dict], leads: list[dict | None]) -> str:
    names = [name for name in board[0] if name not in _WORDS]
    head = '<th scope="col">method</th><th scope="col">mark</th><th scope="col">lead</th>' + "".join(
        f'<th scope="col" class="number">{html.escape(name)}</th>' for name in names
    )
    body = []
    for row, one in zip(board, leads, strict=True):
        lead = (
            f' title="{float(one["gap"]):.2f} points over {html.escape(one["next"])}">{one["verdict"]}' if one else ">"
        )
        doubted = set(row["doubted"].split(", "))
        cells = "".join(
            f'<td class="number" data-v="{row[name]}">{_number(row[name])}{"†" if name in doubted else ""}</td>'
            for name in names
        )
        body.append(
            f"<tr><td>{html.escape(row['method'])}</td><td>{html.escape(row['mark'])}</td><td{lead}</td>{cells}</tr>"
        )
    one, found = leads[0], []
    if doubts:
        columns = ("row", "column", "printed", "expected", "judgement", "why")
        found = [
            "## What the audit found here",
            table("llrlll", columns, ([doubt[name] for name in columns] for doubt in doubts)),
            "A † stands where the judgement is *typo*: the printed number cannot be right as it stands.",
        ]
    return page(
        f"# {dataset}",
        f"{len(board)} rows as printed on the repository's page: percent, gigabytes, hours. *Mark*: `*` 24 CPU cores, `†` the same with a "
        "P40 GPU, `‡` with a V100 GPU, `♦` taken from the method's own publication, which may have used another version of the "
        "dataset. A † behind a number: doubted, see below.",
        one and f"{one['method']} leads {one['next']} by {float(one['gap']):.2f} points in P@1: **{one['verdict']}**.",
        _LEAD.replace("](", "](../"),
        "\n".join(
            [
                f'<div class="scroll xcrepro-report"><table class="sortable"><thead><tr>{head}</tr></thead>',
                *("<tbody>", *body, "</tbody></table></div>"),
            ]
        ),
        *found,
    )


def _number(text: str) -> str:
    return "" if text in ("", "nan") else f"{float(text):.2f}"


def _read(path: Path) -> list[dict]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------- command line and API


def command_line() -> str:
    """Every command with its arguments, as ``xcrepro COMMAND --help`` prints them."""
    parsers = {}

    def command(name: str, function, help: str) -> argparse.ArgumentParser:
        form = lambda prog: argparse.HelpFormatter(prog, width=78)  # noqa: E731
        parsers[name] = argparse.ArgumentParser(prog=f"xcrepro {name}", description=help, formatter_class=form)
        return parsers[name]

    for group in commands.GROUPS:
        group.add(command)
    parts = ["# Command line", "`xcrepro --help` lists the commands; this is what each prints with `--help`."]
    for name, parser in parsers.items():
        parts += [f"## xcrepro {name}", f"```text\n{parser.format_help().rstrip()}\n```"]
    return page(*parts)


def api(root: Path) -> dict[str, str]:
    """A page for every module of the package that readers may import, from its docstrings."""
    rooms = defaultdict(list)
    for path in sorted((root / "xcrepro").rglob("*.py")):
        parts = path.relative_to(root / "xcrepro").parts
        if _NOT_API & {*parts} or (parts[-1].startswith("_") and parts[-1] != "__init__.py"):
            continue
        name = ".".join(["xcrepro", *parts]).removesuffix(".py").removesuffix(".__init__")
        rooms[name.split(".")[1] if name.count(".") else ""].append((name, path))
    made, rows = {}, []
    for name, path in itertools.chain(*rooms.values()):
        title = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]
        rows.append((f"[`{name}`](api/{name}.md)", _plain(title)))
        directive = f".. automodule:: {name}\n   :members:\n   :ignore-module-all:"
        made[f"api/{name}.md"] = page(f"# {name}", f"```{{eval-rst}}\n{directive}\n```")
    pages = [name.removesuffix(".md") for name in made]
    made["api.md"] = page(
        "# API",
        "`import xcrepro as xc` has the names that most users need: `xc.load`, `xc.twin`, `xc.read_xc`, `xc.TopK`, `xc.evaluate`, `xc.compare`, "
        "`xc.State`, `xc.metrics`, `xc.propensity`, `xc.calibrate`, `xc.decide`, `xc.models`, `xc.published`, `xc.claims`. Each function says what it "
        "takes and gives, with shapes, ranges, ties and edge cases, what it raises, and where in which document it is defined.",
        table("ll", ("module", "what it is"), rows),
        toctree(pages),
    )
    return made


def _plain(text: str) -> str:
    """reStructuredText's roles and literals as Markdown's code words."""
    text = re.sub(r":[a-z:]+:`~?([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")
