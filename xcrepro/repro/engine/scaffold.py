"""A new item, from templates that run: notebook, test and its lines in the manifest."""

from __future__ import annotations

from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.engine import manifest, tidy

_TEMPLATES = Path(__file__).with_name("template")


def new(id: str, title: str = "") -> list[Path]:
    """Write the files of a new item ``paper/name``; a paper that is not there yet becomes a folder."""
    root = paths.project_root()
    entries = manifest.load(root)
    paper, _, name = id.partition("/")
    if not manifest.is_id(id) or not (paper.isidentifier() and name.isidentifier()):
        raise ArgumentError("item", "must look like paper/item_name", repr(id), "letters, digits and _")
    if id in entries:
        raise ArgumentError("item", "must be new", repr(id), f"xcrepro run {id} runs it")
    if not (root / "xcrepro" / "repro" / "papers").is_dir():
        raise ArgumentError("project", "must hold the package's sources, as a clone does", root, "run it there")
    title = title.strip() or name.replace("_", " ")
    texts = {kind: (_TEMPLATES / f"{kind}.py.txt").read_text(encoding="utf-8") for kind in ("notebook", "test")}
    filled = {kind: text.format(id=id, paper=paper, name=name, title=title) for kind, text in texts.items()}
    files = {
        root / "notebooks" / f"{id}.ipynb": tidy.tidied(_notebook(filled["notebook"])),
        root / "tests" / "repro" / "papers" / paper / f"test_{name}.py": filled["test"],
    }
    if there := [path for path in files if path.exists()]:
        do = "it is there already: move or remove it, or take another name"
        raise ArgumentError("item", "must be new", there[0], do)
    listing = root / "notebooks" / "manifest.toml"
    escaped = title.replace("\\", "\\\\").replace('"', '\\"')
    files[listing] = f'{listing.read_text(encoding="utf-8").rstrip()}\n\n["{id}"]\ntitle = "{escaped}"\n'.lstrip()
    paths.write_together({path: text.encode() for path, text in files.items()})
    return list(files)


def _notebook(text: str) -> dict:
    """The notebook that ``text`` writes down: each cell after a line ``# %%``, with ``[markdown]`` and tags behind."""
    cells = []
    for piece in ("\n" + text).split("\n# %%")[1:]:
        head, _, source = piece.partition("\n")
        tags = head.split()
        kind = "markdown" if "[markdown]" in tags else "code"
        tags = [tag for tag in tags if tag != "[markdown]"]
        cell = {"cell_type": kind, "metadata": {"tags": tags}, "source": source.strip("\n")}
        cells.append({**cell, "outputs": [], "execution_count": None} if kind == "code" else cell)
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
