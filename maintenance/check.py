"""What a committed notebook must be, beyond that its outputs come out again (nbval looks at those).

``python -m maintenance.check`` says whether all items still make what is committed, and what committed notebooks must be.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.errors import XCError
from xcrepro.repro.engine import manifest, notebooks, prose_numbers, recording, runner, tidy
from xcrepro.repro.engine.manifest import LESSONS

MAX_BYTES = 205_000
MAX_LINES = 40
"""Of a cell: a short function and what calls it stand in the notebook, where a reader sees and changes them."""
MASTER = "00_regenerate_all.ipynb"
_INSTALL = re.compile(
    r"^\s*(!|%pip|%conda|%mamba|%%bash|%%sh|%system)|\bpip3?\s+install\b|\bconda\s+install\b", re.MULTILINE
)
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")
_HOME = re.compile(r"(?<![\w.])/(home|root|tmp|Users)/\S+")


def problems(path: str | os.PathLike, entry: manifest.Entry | None = None) -> list[str]:
    """Everything wrong with a notebook, one sentence each."""
    path = Path(path)
    try:
        notebook = notebooks.read(path)
    except XCError as error:
        return [str(error)]
    lesson = path.parent.name == LESSONS
    found = [] if lesson else _parameters(path, notebook, entry)
    found += [*_cells(notebook), *_images(path, notebook, entry)]
    found += [*_checks(notebook, entry), *_text(notebook, entry)] if entry else []
    if (kernel := notebook.get("metadata", {}).get("kernelspec", {}).get("name")) != "python3":
        found.append(f"the kernel is {kernel!r}, not 'python3'")
    if any("papermill" in part.get("metadata", {}) for part in (notebook, *notebook["cells"])):
        found.append("papermill metadata is inside")
    if (size := path.stat().st_size) > MAX_BYTES:
        found.append(f"{size} bytes; at most {MAX_BYTES}")
    try:
        if tidy.tidy([path], check=True):
            found.append("not in the canonical form; run `xcrepro tidy`")
    except XCError as error:
        found.append(str(error))
    return found


def _parameters(path: Path, notebook: dict, entry: manifest.Entry | None) -> list[str]:
    try:
        notebooks.parameters(path, notebook)
    except XCError as error:
        return [str(error)]
    if entry and notebooks.accepted(notebook) != prose_numbers.note(notebook):
        return [f"its parameters, code or typed numbers are not those accepted: `xcrepro accept {entry.id}`"]
    return []


def _text(notebook: dict, entry: manifest.Entry) -> list[str]:
    """That each number of the text is held, by a notebook that compares them at its end."""
    last = ([notebooks.text(cell["source"]) for cell in notebooks.code_cells(notebook)] or [""])[-1]
    if prose_numbers.held(notebook) and not last.rstrip().endswith("item.check_text()"):
        return ["the last code cell has to end with item.check_text(), which compares the numbers of the text"]
    return prose_numbers.unheld(notebook)


# Place of the part's name among the arguments of each call that makes a committed table.
_MAKERS = {"item.check": 1, "item.save_figure": 2, "item.save_table": 2}


def _checks(notebook: dict, entry: manifest.Entry) -> Iterator[str]:
    """That each committed table is made by a cell, and what cells make is committed."""
    parts, recorded, evidence = set(), False, False
    for cell in notebooks.code_cells(notebook):
        source = notebooks.text(cell["source"])
        for call in ast.walk(ast.parse(source)) if _is_python(source) else ():
            name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
            recorded |= name == "item.recorded"
            evidence |= name == "item.evidence"  # which takes what is recorded, and does without
            if name in _MAKERS:
                given = [*call.args[_MAKERS[name] :][:1], *(word.value for word in call.keywords if word.arg == "part")]
                parts.add(_pattern(given[0]) if given else "")
            elif name == "item.evidence":
                parts.add("evidence")
            elif name == "item.verdicts":
                parts.add("claims")
    committed = {path.stem.removeprefix(Path(entry.id).name).removeprefix("-") for path in entry.tables()}
    for part in sorted(committed):
        if not any(fnmatch.fnmatchcase(part, pattern) for pattern in parts):
            yield f"no cell makes the table of {part or 'the main part'!r}"
    for pattern in sorted(parts):
        if not fnmatch.filter(committed, pattern):
            yield f"{pattern or 'the main part'!r} is made and has no table under figures/"
    if recorded > bool(entry.recorded) or bool(entry.recorded) > (recorded or evidence):
        unused = "results on real data are recorded, and no cell uses them: item.recorded()"
        yield unused if entry.recorded else "a cell asks for recorded results, and the manifest has none of this item"


def _pattern(part: ast.expr) -> str:
    """A part's name as written, with a star for what only a run knows: ``k*`` of ``f"k{k}"``."""
    if isinstance(part, ast.Constant):
        return part.value or ""
    pieces = part.values if isinstance(part, ast.JoinedStr) else [part]
    return "".join(piece.value if isinstance(piece, ast.Constant) else "*" for piece in pieces)


def _cells(notebook: dict) -> Iterator[str]:
    code = notebooks.code_cells(notebook)
    counts = [cell.get("execution_count") for cell in code]
    if counts != list(range(1, len(code) + 1)):
        yield f"execution counts are {counts}, not 1 to {len(code)}: run it from top to bottom"
    for number, cell in enumerate(code, start=1):
        where, source = f"code cell {number}", notebooks.text(cell["source"])
        lines = [line for line in source.splitlines() if line.strip()]
        metadata = cell.get("metadata", {})  # a lesson's check is locked: nobody is to read or change it
        free = "parameters" in metadata.get("tags", []) or metadata.get("nbgrader", {}).get("locked")
        if len(lines) > MAX_LINES and not free:
            yield f"{where} has {len(lines)} lines; at most {MAX_LINES}: cut it, or move code into the package"
        if _INSTALL.search(source):
            yield f"{where} installs or runs a shell command"
        elif lines[-1].split("#")[0].rstrip().endswith(";"):
            yield f"{where} ends with `;`, which hides its output"
        elif not _is_python(source):
            yield f"{where} is not plain Python"
        yield from (f"{where}: {text}" for text in _output_problems(cell))


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _output_problems(cell: dict) -> Iterator[str]:
    for output in cell.get("outputs", []):
        if output["output_type"] == "error":
            yield f"ended with {output.get('ename')}: {output.get('evalue')}"
            continue
        data = output.get("data", {"text/plain": output.get("text")})
        if any(mime.startswith("image/") for mime in data):
            yield "a picture is inside; link its file instead"
            continue
        shown = "".join(notebooks.text(value) for mime, value in data.items() if mime.startswith("text/"))
        root = str(paths.project_root())
        for text in [match.group() for match in (_ADDRESS.search(shown), _HOME.search(shown)) if match] or [root]:
            if text in shown:
                yield f"the output shows {text!r}, which differs from machine to machine"


def _images(path: Path, notebook: dict, entry: manifest.Entry | None) -> Iterator[str]:
    shown = set()
    for cell in notebook["cells"]:
        if cell.get("attachments"):
            yield "a picture is attached to a cell; link its file instead"
        if cell["cell_type"] == "markdown":
            seen = notebooks.text(cell["source"])
        else:
            seen = "\n".join(notebooks.text(o.get("data", {}).get("text/markdown", "")) for o in cell["outputs"])
        for match in notebooks.IMAGE.finditer(seen):
            link = match.group(1) or match.group(2)
            if link.startswith(("http:", "https:", "data:", "attachment:")):
                yield f"the image {link[:60]} is not a file of this project"
            elif not (path.parent / link).is_file():
                yield f"the image {link} is not there"
            else:
                shown.add((path.parent / link).resolve())
    wanted = [output for output in (entry.figures() if entry else ()) if output.suffix == ".png"]
    if wanted and not any(output.resolve() in shown for output in wanted):
        yield f"no cell shows {wanted[0].relative_to(entry.root).as_posix()}"


def project() -> dict[str, list[str]]:
    """What is wrong in the whole project: file -> problems, of notebooks, manifest, figures and ``data/recorded``."""
    root = paths.project_root()
    entries = manifest.load(root)
    manifest.require_project(entries, "the check")
    by_path = {entry.notebook.resolve(): entry for entry in entries.values()}
    report: dict[str, list[str]] = {}
    for path in tidy.find([root / "notebooks"]):
        entry = by_path.get(path.resolve())
        found = problems(path, entry)
        if entry is None and path.name != MASTER and path.parent.name != LESSONS:
            found.append("no item of manifest.toml uses it")
        report[path.relative_to(root).as_posix()] = found
    known = {path for entry in entries.values() for path in entry.figures()}
    for path in (root / "notebooks" / LESSONS).glob("*.ipynb"):
        links = notebooks.IMAGE.findall(path.read_text(encoding="utf-8"))
        known |= {(path.parent / link).resolve() for link, _ in links if link}
    for path in sorted(path for path in (root / "figures").rglob("*.*") if path.is_file() and path not in known):
        report[path.relative_to(root).as_posix()] = ["no item of manifest.toml has this file"]
    report |= recording.problems(entries, root)
    return {name: found for name, found in report.items() if found}


def main(argv: list[str] | None = None) -> int:
    """0 where all items make what is committed and nothing is to be mended, else 1."""
    parser = argparse.ArgumentParser("python -m maintenance.check", description=main.__doc__)
    what = "run nothing: the forms of notebooks, figures and records"
    parser.add_argument("--static", action="store_true", help=what)
    parser.add_argument("--jobs", type=int, help="notebooks at once, by default one a core")
    parser.add_argument("--long", action="store_true", help="also items that take long")
    chosen = parser.parse_args(argv)
    ok = chosen.static or runner.run(None, jobs=chosen.jobs, long=chosen.long).ok
    faults = project()
    print(
        "\n".join(f"{name}: {one}" for name, found in faults.items() for one in found) or "notebooks: nothing to mend"
    )
    return 0 if ok and not faults else 1


if __name__ == "__main__":
    sys.exit(main())
