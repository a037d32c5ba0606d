"""One name is one sample: the same model, metric, k and dataset have the same number in every table, and one split is named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from xcrepro.core.data import registry
from xcrepro.repro.engine import recorded
from xcrepro.repro.published.claims import sample_of

OURS = ("TIB", "Bibtex", "Delicious", "Gutenberg")
"""Datasets that we run on: of the others, documents print numbers of different trainings."""
CELL = re.compile(r"(P|R|PSP|nDCG|macro-F1|micro-F1)@(\d+)")
MENTION = re.compile(r"\bDelicious(?!-200K)((?:, split |/)\d+)?")

Key = tuple[str, str, int, str]


def samples(root: Path) -> dict[str, dict[str, str]]:
    """Of each notebook with recorded results: dataset as the catalogue spells it -> the name of what was recorded of it."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((root / "data/recorded").glob("*/*/*.csv")):
        record = recorded.read(path)
        name = record.provenance["dataset"]
        found.setdefault(f"{path.parts[-3]}/{path.parts[-2]}", {})[registry.title(name)] = registry.title(
            recorded.sample(record)
        )
    return found


def split_named(root: Path) -> dict[str, str]:
    """Notebook -> how it has to call Delicious, where that is one split."""
    of = {item: names["Delicious"] for item, names in samples(root).items() if "Delicious" in names}
    return {item: name for item, name in of.items() if name != "Delicious"}


def tables(root: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """The tables behind the figures: notebook, table."""
    for path in sorted((root / "figures").glob("*/*.csv")):
        item = f"{path.parent.name}/{path.stem.partition('-')[0]}"
        yield item, pd.read_csv(path, low_memory=False)


def numbers(table: pd.DataFrame) -> Iterator[tuple[Key, float]]:
    """(model, metric, k, dataset) -> percent, of a table that has these and nothing else to tell its rows apart by."""
    model = next((name for name in ("model", "method") if name in table), None)
    printed = "data" in table and table["data"].astype(str).str.startswith("as printed").any()
    if model is None or "dataset" not in table or printed:
        return
    value = next((name for name in ("ours", "value") if name in table), None)
    named = [name for name in table if CELL.fullmatch(name)]
    if {"metric", "k"} <= set(table) and value:
        rows = [(row[model], row["metric"], row["k"], row["dataset"], row[value]) for _, row in table.iterrows()]
    elif named:
        rows = [(row[model], *CELL.fullmatch(name).groups(), row["dataset"], row[name])
                for _, row in table.iterrows() for name in named]  # fmt: skip
    elif {"k", "P"} <= set(table):
        rows = [(row[model], "P", row["k"], row["dataset"], row["P"]) for _, row in table.iterrows()]
    else:
        return
    keys = [row[:4] for row in rows]
    if len(set(keys)) < len(keys):  # a strength, a share or a state tells them apart
        return
    for name, metric, k, dataset, number in rows:
        number = pd.to_numeric(number, errors="coerce")
        if sample_of(str(dataset)) in OURS and pd.notna(number) and pd.notna(k):
            yield (str(name), str(metric), int(k), str(dataset)), float(number)


def disagreeing(found: Iterator[tuple[str, Key, float]]) -> list[str]:
    """Keys that have two numbers in the tables of two notebooks; fractions and percent of one number are one."""
    first: dict[Key, tuple[str, float]] = {}
    wrong = []
    for item, key, number in found:
        there, other = first.setdefault(key, (item, number))
        if not any(abs(number - scale * other) < 0.051 for scale in (1, 100, 0.01)):
            wrong.append(f"{key}: {other:.2f} in {there}, {number:.2f} in {item}")
    return wrong


def every(root: Path) -> Iterator[tuple[str, Key, float]]:
    for item, table in tables(root):
        for key, number in numbers(table):
            yield item, key, number


def test_the_same_name_has_the_same_number(root):
    found = list(every(root))
    assert len({key for _, key, _ in found}) > 200
    assert len({item for item, _, _ in found}) > 5
    assert disagreeing(iter(found)) == []


def test_a_split_without_its_name_would_be_found(root):
    """The pairs that a reader found: with split 0 called Delicious, FastXML has two numbers, and so has PLT."""
    planted = [(item, (*key[:3], key[3].partition(", split")[0]), number) for item, key, number in every(root)]
    wrong = disagreeing(iter(planted))
    for model in ("FastXML", "PLT"):
        assert any(f"('{model}', 'P', 1, 'Delicious')" in one for one in wrong), wrong


def test_a_split_is_named_in_its_tables(root):
    single = split_named(root)
    assert len(single) > 30
    for item, table in tables(root):
        if item in single:
            assert "Delicious" not in table.columns, item
            for column in ("dataset", "data"):
                said = table[column].astype(str) if column in table else pd.Series(dtype=str)
                assert not said.str.contains(r"\bDelicious\b(?!, split|/|-200K)").any(), (item, column)


@pytest.mark.parametrize("kind", ["markdown", "code"])
def test_a_split_is_named_in_its_notebook(root, kind):
    """The first mention in each cell of text, and each name of a dataset in the code, is of the split."""
    for item, name in split_named(root).items():
        for cell in json.loads((root / f"notebooks/{item}.ipynb").read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] != kind:
                continue
            if kind == "code":
                assert not re.search(r"[\"']([Dd])elicious[\"']", source), (item, source[:200])
            elif first := MENTION.search(source):
                said = source[max(0, first.start() - 80) : first.end() + 20]
                assert first[0].replace("/", ", split ") == name, (item, said)


def test_pages_name_the_split(root):
    """A page's number of Delicious is of a notebook that has the mean of its splits, or the page says which split."""
    single = split_named(root)
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        for paragraph in re.split(r"\n\s*\n|\n(?=[-*] )", path.read_text(encoding="utf-8")):
            mention = MENTION.search(paragraph)
            linked = set(re.findall(r"notebooks/(\w+/\w+)\.ipynb", paragraph))
            if mention and linked and linked <= set(single) and re.search(r"\d", paragraph):
                assert mention[1], (path.name, paragraph[:200])
