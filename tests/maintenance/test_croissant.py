"""Croissant metadata: as committed, and each field of a line is what the loader reads there."""

from __future__ import annotations

import gzip
import hashlib
import json
import re

import pytest

import xcrepro as xc
from maintenance import croissant
from xcrepro.core.data import open_sets
from xcrepro.core.paths import committed


def lines(name, file):
    """The values of each field in the lines of a file, as a reader of the metadata takes them."""
    about = json.loads((committed(f"data/{name}") / "croissant.json").read_text())
    (record,) = (record for record in about["recordSet"] if record["@id"] == file)
    path = committed(f"data/{name}") / record["field"][0]["source"]["fileObject"]["@id"]
    text = gzip.decompress(path.read_bytes()).decode().splitlines()
    regex = {field["name"]: field["source"]["transform"]["regex"] for field in record["field"]}
    return {
        part: [found and found[1] for found in (re.search(of, line) for line in text)] for part, of in regex.items()
    }


@pytest.mark.parametrize("name", open_sets.HOMES)
def test_committed_metadata_is_what_the_files_say(name):
    folder = committed(f"data/{name}")
    about = json.loads((folder / "croissant.json").read_text())
    assert about == croissant.metadata(name), "python -m maintenance.croissant"
    assert {one["sha256"] for one in about["distribution"]} == {
        hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.gz")
    }


@pytest.mark.parametrize("name", ["gutenberg", "cooking"])
def test_records_by_the_metadata_are_those_of_the_loader(name):
    ds, found = xc.load(name), lines(name, "records")
    row = {int(number): place for place, number in enumerate(found["number"])}
    names, letters = lines(name, "label_names")["name"], lines(name, "splits")["letters"]
    for place, number in enumerate(ds.test.numbers[:500]):
        at = row[number]
        assert letters[at][0] == "t"
        assert [found[field][at] for field in ds.test.texts] == [of[place] for of in ds.test.texts.values()]
        labels = {ds.label_names[label] for label in ds.test.Y[place].indices}
        assert {names[int(label)] for label in found["labels"][at].split(",")} == labels


def test_lines_of_word_counts():
    ds, found = xc.load("tib"), lines("tib", "tib")
    assert found["labels"][0] is None  # the header
    rows = [at for at, letters in enumerate(lines("tib", "splits")["letters"], 1) if letters[0] == "r"]
    assert [len(found["labels"][at].split(",")) for at in rows] == ds.train.Y.getnnz(axis=1).tolist()
    assert [len((found["words"][at] or "").split()) for at in rows] == ds.train.X.getnnz(axis=1).tolist()
    assert lines("tib", "words")["word"] == list(ds.words)
