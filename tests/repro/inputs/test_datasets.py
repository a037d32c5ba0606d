"""Which data a notebook's parameters mean."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.refused import damaged, refused
from tests.rehearsal import standins
from xcrepro import twin, write_xc
from xcrepro.core.data import load
from xcrepro.core.data.dataset import Dataset
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.models.twin import Twin
from xcrepro.repro.inputs import datasets, download, parameters
from xcrepro.repro.published import table

TOML = """
name = "mine"
printed_name = "Mine-16"
[propensity]
A = 0.6
B = 2.6
[expected]
n_train = 244
n_test = 126
n_features = {features}
n_labels = {labels}
avg_labels_per_point = {average}
points_per_label_basis = "train"
"""
PRINTED = """source,row,dataset,method,variant,metric,k,printed,value,reading,stderr,note
a reader:table 1,1,Mine-16,PLT,,P,1,61.50,61.50,as printed,,
a reader:table 1,1,{dataset},PLT,,P,3,40.1,40.1,as printed,,
"""


def write(folder: Path, made: Dataset) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "test"):
        part = getattr(made, name)
        write_xc(folder / f"{name}.txt", part.X, part.Y)
    return folder


@pytest.fixture
def made() -> Dataset:
    return twin("bibtex", scale=0.05)


def toml(made: Dataset, average: str = "") -> str:
    """The dataset.toml of ``made``; another average makes it other data than those that are printed."""
    labels, features = made.train.Y.shape[1], made.train.X.shape[1]
    return TOML.format(average=average or f"{made.train.Y.nnz / made.n_train:.2f}", labels=labels, features=features)


@pytest.fixture
def mine(tmp_path, monkeypatch, made) -> Path:
    """The folder of a reader's dataset in ``$XCREPRO_DATA``: a dataset.toml, printed.csv and the files."""
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    home = write(tmp_path / "cache" / "mine", made)
    (home / "dataset.toml").write_text(toml(made))
    (home / "printed.csv").write_text(PRINTED.format(dataset="mine"))
    return home


def test_synthetic_data_are_asked_for_by_name():
    ds = datasets.pick("synthetic eurlex-4k", 0.02, seed=3)
    assert isinstance(ds, Twin)
    assert (ds.train.X != twin("eurlex-4k", scale=0.02, seed=3).train.X).nnz == 0
    assert datasets.registry_name(ds) == "eurlex-4k"
    assert ds.title == datasets.short_name(ds) == "EURLex-4K (synthetic)"
    assert ds.origin.startswith("synthetic twin of EURLex-4K × 0.02 (seed 3), ")
    renamed = dataclasses.replace(ds, entry=dataclasses.replace(ds.entry, printed_name="Mine, first half"))
    assert renamed.title.partition(",")[0] == "Mine (synthetic)"  # as notebooks cut it


def test_a_folder_is_the_readers_own_data(tmp_path, made):
    write(tmp_path, made)
    ds = datasets.pick("any", folder=str(tmp_path))
    assert not isinstance(ds, Twin)
    assert (ds.train.Y != made.train.Y).nnz == 0
    np.testing.assert_allclose(ds.test.X.toarray(), made.test.X.toarray(), rtol=1e-5)
    assert datasets.registry_name(ds) == datasets.short_name(ds) == "any"
    assert ds.origin.startswith("any (real data), ")  # of what nothing is printed about, this says nothing
    assert ds.notes == ("'any' is not in the catalogue: nothing is printed about it",)
    assert (datasets.printed_name(ds), len(datasets.printed_rows(ds))) == ("", 0)


def test_a_dataset_toml_works_by_name_as_the_packages_do(mine):
    small = twin("mine", 0.5, seed=2)
    assert (small.name, small.A, small.train.Y.shape[0]) == ("mine@0.5-seed2", 0.6, 122)
    for ds in (datasets.pick("Mine-16"), datasets.pick("mine"), datasets.pick("mine", folder=mine)):
        assert (ds.name, ds.A, ds.B, ds.n_train, ds.comparable) == ("mine", 0.6, 2.6, 244, True)
        assert not ds.notes
    for each in (small, ds):
        assert datasets.printed_name(each) == "Mine-16"
        rows = datasets.printed_rows(each)
        assert rows[["method", "metric", "k", "value"]].values.tolist() == [
            ["PLT", "P", 1, 61.5],
            ["PLT", "P", 3, 40.1],
        ]


def test_a_dataset_toml_without_its_files_is_drawn_only_by_name(mine):
    (mine / "train.txt").unlink()
    with pytest.raises(DataMissing, match="Mine-16"):
        datasets.pick("mine", 0.5, seed=2)
    assert datasets.pick("synthetic mine", 0.5, seed=2).name == "mine@0.5-seed2"


def test_printed_rows_of_a_reader_are_checked(mine):
    (mine / "printed.csv").write_text(PRINTED.format(dataset="Bibtex"))
    with damaged("printed.csv", line=3, match="'Bibtex', expected 'mine'"):
        datasets.printed_rows(datasets.pick("mine"))
    (mine / "printed.csv").write_text(PRINTED.format(dataset="mine").replace("40.1,40.1", "40.1,40.2"))
    with damaged("printed.csv", line=3, match=r"'40\.2'"):
        datasets.printed_rows(datasets.pick("mine"))
    (mine / "printed.csv").unlink()
    assert datasets.printed_rows(datasets.pick("mine")).empty


def test_other_data_are_not_set_beside_printed_results(mine, made):
    (mine / "dataset.toml").write_text(toml(made, "9.99"))
    ds = datasets.pick("mine")
    assert not ds.comparable
    assert ds.notes[0].startswith("avg_labels_per_point is")
    assert "(real data, not those that are printed), " in ds.origin
    assert (datasets.printed_name(ds), len(datasets.printed_rows(ds))) == ("", 0)
    with pytest.raises(DataError, match=r"EURLex-4K(?s:.)*my-eurlex-4k"):
        datasets.pick("eurlex-4k", folder=write(mine.parent.parent / "other", made))


def test_printed_results_of_the_page():
    ds = twin("eurlex-4k", scale=0.02)
    assert datasets.printed_name(ds) == "EURLex-4K"
    assert datasets.printed_rows(ds).equals(table("xcrepo:EURLex-4K"))
    # Made by hand, and called as one of the catalogue.
    assert datasets.printed_name(Dataset("bibtex", ds.train, ds.test, ds.A, ds.B)) == "Bibtex"
    assert datasets.printed_rows(Dataset("orcas-800k", ds.train, ds.test, ds.A, ds.B)).empty


def test_another_version_of_a_dataset_is_asked_for_by_the_table_that_prints_it(tmp_path, monkeypatch):
    """EURLex-4K with 3,956 labels: refused by the bare name, and never set beside what is printed of 3,993."""
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    shape = standins.Shape(15_449, 3_865, 300, 3_956, 102_741)
    for path, text in standins.files("eurlex-4k", standins.plain(shape)).items():
        (tmp_path / path.rpartition("/")[2]).write_text(text)
    with pytest.raises(DataError, match="eurlex-4k as calibration:table3"):
        datasets.pick("eurlex-4k", folder=tmp_path)
    ds = datasets.pick("eurlex-4k as calibration:table3", folder=tmp_path)
    assert (ds.entry.name, ds.entry.n_train, ds.entry.n_labels, ds.entry.n_features) == ("eurlex-4k", 15449, 3956, None)
    assert ds.title == datasets.short_name(ds) == "EURLex-4K (3,956 labels)"
    assert datasets.home("eurlex-4k as calibration:table3", tmp_path) == tmp_path
    assert datasets.printed_rows(ds).empty
    with pytest.raises(ArgumentError, match="calibration:table3"):
        datasets.pick("eurlex-4k as calibration", folder=tmp_path)


def test_a_folder_of_several_has_a_subfolder_for_each(mine):
    assert datasets.subfolder(mine.parent, "Mine-16") == str(mine)
    with pytest.raises(DataMissing, match="eurlex-4k"):
        datasets.subfolder(mine.parent, "EURLex-4K")


def test_what_is_on_this_machine(mine, monkeypatch, made):
    write(mine.parent / "datasets" / "mine", made)
    assert datasets.load_available(["mine", "eurlex-4k"]) == []
    assert [ds.name for ds in datasets.load_available(["mine", "eurlex-4k"], mine.parent)] == ["mine"]


# ---------------------------------------------------------------- a name means the real data


@pytest.fixture(scope="module")
def fetched(tmp_path_factory) -> Path:
    """A cache into which a stand-in of EURLex-4K was fetched from where somebody saved its archive."""
    cache = tmp_path_factory.mktemp("cache")
    standins.put("eurlex-4k", cache, make=standins.plain)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XCREPRO_DATA", str(cache))
        assert download.fetch("eurlex-4k", progress=False) == cache / "datasets" / "eurlex-4k"
    return cache


@pytest.mark.parametrize("name", ["eurlex-4k", "EURLex-4K", "eurlex"])
def test_the_real_data_in_the_cache_are_taken(fetched, monkeypatch, name):
    monkeypatch.setenv("XCREPRO_DATA", str(fetched))
    ds = datasets.pick(name, scale=0.02)
    assert (type(ds), ds.name, ds.origin) == (Dataset, "eurlex-4k", "EURLex-4K (real data), 3,809 test points")
    assert (ds.train.Y.nnz + ds.test.Y.nnz, ds.comparable) == (standins.published("eurlex-4k").pairs, True)
    assert datasets.home(name) == fetched / "datasets" / "eurlex-4k" / "Eurlex"
    parameters.check({"dataset": name, "folder": ""})


def test_a_folder_of_its_name_where_one_is_goes_first(tmp_path, monkeypatch, fetched):
    monkeypatch.setenv("XCREPRO_DATA", str(fetched))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(fetched / "datasets/eurlex-4k/Eurlex", tmp_path / "eurlex-4k")
    assert datasets.home("eurlex-4k") == tmp_path / "eurlex-4k"
    shutil.rmtree(tmp_path / "eurlex-4k")
    (tmp_path / "eurlex-4k").mkdir()
    (tmp_path / "eurlex-4k" / "notes.txt").write_text("no data")
    assert datasets.home("eurlex-4k") == fetched / "datasets/eurlex-4k/Eurlex"


@pytest.mark.parametrize("ask", [datasets.pick, lambda name: parameters.check({"dataset": name, "folder": ""})])
def test_where_they_are_nowhere_nothing_is_drawn_and_nothing_downloaded(tmp_path, monkeypatch, ask):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    monkeypatch.setattr("xcrepro.repro.inputs.download.download", None)
    with pytest.raises(DataMissing) as caught:
        ask("eurlex-4k")
    for words in ("xcrepro fetch eurlex-4k", f"{tmp_path}/datasets/eurlex-4k.zip", '"synthetic eurlex-4k"', "folder"):
        assert words in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_real_data_and_synthetic_ones_have_their_own_arguments(tmp_path):
    for argument, value in (("folder", str(tmp_path)), ("split", 1)):
        with refused(argument, match="synthetic"):
            datasets.pick("synthetic bibtex", 0.05, **{argument: value})
    for argument, value in (("path", tmp_path), ("points", 100), ("split", 1)):
        with refused(argument, match="synthetic"):
            load.load("synthetic bibtex", **{argument: value})
    for ask in (datasets.pick, load.load, twin, lambda name: parameters.check({"dataset": name})):
        with refused("name", match="bibtex"):
            ask("synthetic bibtecks")


def test_load_and_twin_know_the_name():
    ds = load.load("synthetic bibtex", A=0.6)
    assert (ds.title, ds.A, ds.B, ds.name) == ("Bibtex (synthetic)", 0.6, 1.5, "bibtex@1.0-seed0")
    assert twin("Synthetic Bibtex", 0.05).name == twin("bibtex", 0.05).name


def test_a_run_has_one_split(tmp_path, made):
    write(tmp_path, made)
    assert datasets.pick("any", folder=tmp_path, split=0).n_train == made.n_train
    with refused("split", 1):
        datasets.pick("any", folder=tmp_path, split=1)
    for folder in ("", tmp_path):
        with refused("split", match="-p split mean"):
            datasets.pick("any", folder=folder, split="mean")


def test_the_propensities_of_a_run_may_be_others(tmp_path, made):
    write(tmp_path, made)
    for given in ({"dataset": "any", "folder": tmp_path}, {"dataset": "synthetic bibtex", "scale": 0.05}):
        own, other = datasets.pick(**given), datasets.pick(**given, A=0.6, B=2.6)
        assert (own.A, own.B, other.A, other.B) == (0.55, 1.5, 0.6, 2.6)
        assert (own.train.Y != other.train.Y).nnz == 0


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(DataMissing, match=str(tmp_path)):
        datasets.pick("bibtex", folder=str(tmp_path / "gone"))


def test_the_folder_of_one_dataset_is_not_taken_for_another(real_data):
    """`-p folder bibtex` without `-p dataset`: two ways out, and the right name among them."""
    with pytest.raises(DataError) as caught:
        datasets.pick("eurlex-4k", folder=real_data("bibtex"))
    text = str(caught.value)
    assert "EURLex-4K: 6 of 6" in text
    assert "(xcrepo:dataset-table prints these numbers of 'bibtex')" in text
    assert '"my-eurlex-4k"' in text
    ds = datasets.pick("bibtex", folder=real_data("bibtex"))
    assert ds.comparable
    assert not datasets.printed_rows(ds).empty
