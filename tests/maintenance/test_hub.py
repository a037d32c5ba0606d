"""The open datasets for a hub: what is in the Parquet files is what the loader gives, and the reference loader reads them."""

from __future__ import annotations

import hashlib
import json

import pytest
import yaml

import xcrepro as xc
from xcrepro.core.data import open_sets

parquet = pytest.importorskip("pyarrow.parquet", reason="not installed: pip install 'xcrepro[formats]'")


@pytest.fixture(scope="module", params=sorted(open_sets.HOMES))
def made(request, tmp_path_factory):
    from maintenance import hub

    folder = tmp_path_factory.mktemp("hub") / request.param
    hub.write(request.param, folder)
    return request.param, folder


def test_rows_are_those_of_the_loader(made):
    name, folder = made
    ds = xc.load(name)
    names = (folder / "label_names.txt").read_text(encoding="utf-8").splitlines()
    assert names == list(ds.label_names)
    for part in ("train", "test"):
        split, table = getattr(ds, part), parquet.read_table(folder / "data" / f"{part}.parquet").to_pylist()
        assert len(table) == split.Y.shape[0]
        for row in (0, len(table) // 2, len(table) - 1):
            ids = split.Y[row].indices.tolist()
            assert table[row]["label_ids"] == ids
            assert table[row]["labels"] == [names[label] for label in ids]
            if split.texts:
                assert table[row]["text"].startswith(next(iter(split.texts.values()))[row])
            else:
                assert table[row]["words"] == [ds.words[word] for word in split.X[row].indices]


def test_the_card_and_the_metadata_say_what_the_files_are(made):
    _, folder = made
    front = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---")[1])
    files = {one["path"] for one in front["configs"][0]["data_files"]}
    assert files == {f"data/{path.name}" for path in (folder / "data").iterdir()}
    task = yaml.safe_load((folder / "eval.yaml").read_text(encoding="utf-8"))["tasks"][0]
    assert (task["config"], task["split"]) == (front["configs"][0]["config_name"], "test")
    about = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    assert {one["sha256"] for one in about["distribution"]} == {
        hashlib.sha256(path.read_bytes()).hexdigest() for path in (folder / "data").iterdir()
    }
    mlcroissant = pytest.importorskip("mlcroissant", reason="not installed: pip install mlcroissant")
    found = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    row = next(iter(found.records(record_set="test")))
    assert [label.decode() for label in row["test/labels"]]
