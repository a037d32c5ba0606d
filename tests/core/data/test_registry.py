"""The catalogue: what the documents print, whole and consistent; the form of a dataset.toml; a reader's own."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from tests.refused import damaged, refused
from xcrepro.core.data import registry
from xcrepro.core.data.read import read_sparse, read_xc
from xcrepro.core.errors import DataMissing

TABLES = (registry.PAGE_TABLE, "reeval:table2", "calibration:table3", "jain16:table2")
ALL = list(dict.fromkeys(name for table in TABLES for name in registry.names(table)))
"""What the documents print; the catalogue may have more."""
ROWS = [(name, source) for name in ALL for source in registry.get(name).published]


def bases_that_fit(name: str, source: str) -> list[str]:
    """Oracle: for which points do labels per point x points / labels and points per label round to what is printed?"""
    row = registry.published(name, source)
    points = registry.interval(name, "avg_points_per_label", source)
    labels = registry.interval(name, "avg_labels_per_point", source)
    sizes = {"train": row["n_train"], "all": row["n_train"] + row["n_test"]}
    scale = {basis: n / row["n_labels"] for basis, n in sizes.items()}
    return [basis for basis, s in scale.items() if s * labels[0] <= points[1] and points[0] <= s * labels[1]]


@pytest.mark.parametrize(("name", "source"), ROWS)
def test_basis_follows_from_the_printed_numbers(name, source):
    row = registry.published(name, source)
    if "avg_points_per_label" not in row:
        assert "points_per_label_basis" not in row
        return
    fits = bases_that_fit(name, source)
    assert len(fits) <= 1
    assert row["points_per_label_basis"] == (fits[0] if fits else "neither")
    assert fits or row["note"], "an average that contradicts the other one needs a note"


def test_same_rows_as_the_published_table(root):
    tables = [root / "data" / "published" / "datasets.csv", root.parent / "shared" / "published" / "datasets.csv"]
    table = next((path for path in tables if path.is_file()), None)
    if table is None:
        pytest.skip(f"datasets.csv is in none of {', '.join(map(str, tables))}")
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(ROWS)
    page = [row["name"] for row in rows if row["source"] == "xcrepo:dataset-table"]
    assert [registry.get(name).printed_name for name in registry.names(registry.PAGE_TABLE)] == page
    for row in rows:
        entry = registry.get(row["name"])
        # The text, so that digits count: 5.30 is not 5.3.
        ours = entry.as_printed[row["source"]]
        assert entry.group == row["group"]
        for number in ("n_features", "n_labels", "n_train", "n_test", "avg_points_per_label", "avg_labels_per_point"):
            assert str(ours.get(number, "")) == row[number], (row["source"], row["name"], number)
        bins = [row[column] for column in ("bin1_1_9", "bin2_10_99", "bin3_100_999", "bin4_ge1000")]
        assert [str(count) for count in entry.published[row["source"]].get("bins", {}).values()] == [
            b for b in bins if b
        ]


def test_the_page_is_a_filter():
    page = registry.names(registry.PAGE_TABLE)
    assert len(page) == len(set(page)) == 27
    assert set(ALL) - set(page) == {"ads-9m"}
    assert registry.get("ads-9m").proprietary
    assert registry.names()[:27] == page
    assert "ads-9m" not in registry.names()
    assert "ads-9m" in registry.names(proprietary=True)
    assert registry.names("jain16:table2")[-1] == "ads-9m"
    for table in TABLES:
        rows = [registry.get(name).row(table) for name in registry.names(table)]
        assert rows == list(range(1, len(rows) + 1)), table
    with refused("source", match="'jain16:table2'"):
        registry.names("jain16:table3")


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("EUR-Lex", "eurlex-4k"),
        ("eurlex_4k", "eurlex-4k"),
        ("Wiki-500K", "wikipedialarge-500k"),
        ("Delicious-200K", "deliciouslarge-200k"),
        ("RCV1-X", "rcv1-2k"),
    ],
)
def test_aliases(alias, name):
    assert registry.get(alias).name == name


def test_no_name_means_two_datasets():
    seen = {}
    for name in registry.package():
        entry = registry.get(name)
        for text in entry.all_names:
            assert seen.setdefault(registry._plain(text), name) == name, text


def test_unknown_name_says_what_is_near():
    for name, hint in (("eurlx-4k", "'eurlex-4k'"), ("qqqqqq", "registry.names"), (3, "")):
        with refused("name", repr(name)) as error:
            registry.get(name)
        assert hint in str(error.value)
    with refused("source", match="'xcrepo:dataset-table'"):
        registry.published("bibtex", "jain16:table2")


def test_intervals_know_the_printed_digits():
    assert registry.interval("eurlex-4k", "avg_labels_per_point", "reeval:table2") == (5.295, 5.305)
    assert registry.interval("amazoncat-14k", "avg_points_per_label") == (1330.05, 1330.15)
    assert registry.interval("bibtex", "n_train") == (4880, 4880)
    assert registry.interval("orcas-800k", "n_features") is None


def test_archives_are_napkinxc_s():
    datasets = pytest.importorskip("napkinxc.datasets").DATASETS
    without = {"mm-amazontitles-300k", "orcas-800k", "bibtex", "delicious", "ads-9m"}
    for name in ALL:
        entry = registry.get(name)
        if name in without:
            assert entry.archive == {}
            continue
        key, form = entry.archive["key"], entry.archive["format"]
        assert form == ("bow-v1" if "bow-v1" in datasets[key]["formats"] else "bow")
        assert {"url", "dir", "train", "test"} <= set(datasets[key][form])
        # Only the twice-named Wikipedia set borrows another's archive.
        assert key == name or name == "lf-wikipedia-500k"


def test_what_comes_out_is_a_copy():
    registry.published("bibtex")["n_train"] = 0
    assert registry.published("bibtex")["n_train"] == 4880


# --- the committed label counts ---


def test_eurlex_counts_meet_the_published_averages():
    counts = registry.label_counts("EURLex-4K")["count"].to_numpy()
    low, high = registry.interval("eurlex-4k", "avg_points_per_label")
    assert counts.sum() == 102_741
    assert low <= counts.sum() / 3993 <= high
    low, high = registry.interval("eurlex-4k", "avg_labels_per_point")
    # The page's 15,539 + 3,809 points: the source of the counts has 34 fewer, and they carry no labels here.
    assert low <= counts.sum() / 19_348 <= high


def test_committed_counts_are_those_of_the_data(real_data):
    Y = read_sparse(real_data("eurlex-4k-labels") / "Y_all_xcids_3993.txt")
    assert Y.shape == (19_314, 3993)
    assert np.array_equal(np.bincount(Y.indices, minlength=3993), registry.label_counts("eurlex-4k")["count"])
    Y = read_xc(real_data("delicious") / "delicious_data.txt")[1]
    assert np.array_equal(np.bincount(Y.indices, minlength=983), registry.label_counts("delicious")["count"])
    counts = registry.label_counts("bibtex")
    for half in ("train", "test"):
        _, Y = read_xc(real_data("bibtex") / f"{half}.txt")
        assert np.array_equal(np.bincount(Y.indices, minlength=159), counts[half])


def test_no_counts_says_which_there_are():
    with pytest.raises(DataMissing, match="bibtex, delicious, eurlex-4k"):
        registry.label_counts("amazon-670k")


# --- the form of a dataset.toml ---

OWN = """
name = "own-100"
printed_name = "Own-100"
aliases = ["my own"]
splits = 2
label_names = "names/labels.txt"

[files]
train = "a.txt"
test = "sub/b.txt"

[propensity]
A = 0.6

[expected]
n_train = 1_000
n_test = 500
n_features = 300
n_labels = 100
avg_points_per_label = 30.0
avg_labels_per_point = 3.00
points_per_label_basis = "train"
bins = [10, 80, 10, 0]

[[published]]
source = "somewhere:table 1"
n_labels = 99

[twin]
head = 1
words = 20
"""


def put(folder: Path, text: str = OWN) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dataset.toml").write_text(text)
    return folder / "dataset.toml"


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_everything_is_read(tmp_path):
    entry = registry.read(put(tmp_path))
    assert (entry.name, entry.printed_name, entry.aliases, entry.splits) == ("own-100", "Own-100", ("my own",), 2)
    assert (entry.A, entry.B, entry.group, entry.proprietary) == (0.6, 1.5, "own", False)
    assert (entry.n_train, entry.n_test, entry.n_features, entry.n_labels) == (1000, 500, 300, 100)
    assert (entry.printed("avg_labels_per_point"), entry.interval("avg_labels_per_point")) == ("3.00", (2.995, 3.005))
    assert entry.bins == dict(zip(registry.BINS, (10, 80, 10, 0), strict=True))
    assert list(entry.published) == ["dataset.toml", "somewhere:table 1"]
    assert entry.published["somewhere:table 1"] == {"printed_name": "Own-100", "n_labels": 99}
    assert (entry.files, entry.label_names) == ({"train": "a.txt", "test": "sub/b.txt"}, "names/labels.txt")
    assert entry.folder == tmp_path
    assert (entry.twin.head, entry.twin.words, entry.twin.tail) == (1, 20, registry.TwinShape().tail)
    assert registry.read(put(tmp_path, 'name = "own"')).published == {"dataset.toml": {"printed_name": "own"}}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("splits = 2", "splitz = 2", r"the key splitz.*Did you mean splits"),
        ("n_train = 1_000", "n_trian = 1_000", r"key expected\.n_trian.*expected\.n_train"),
        ("30.0", "-30.0", r"expected\.avg_points_per_label = -30\.0, "),
        ('"train"', '"test"', "points_per_label_basis = 'test', .* 'neither'"),
        ("80, 10, 0]", "80, 10]", r"expected\.bins = \[10, 80, 10\], .*4 whole"),
        ('"a.txt"', '"../a.txt"', r"files\.train = '\.\./a\.txt', .*folder"),
        ('test = "sub/b.txt"', "", "files: train, .*train_X"),
        ('name = "own-100"\nprinted', "printed", "name: nothing"),
        ('name = "own-100"', "name = own", r"no TOML \(.*line 2"),
        ('source = "somewhere:table 1"', "", r"sources \[None, None\]"),
        ("[files]", "files = 3\n[fails]", "files = 3, .*table"),
        ('name = "own-100"', 'name = "BibTex"', '(?s)name of bibtex,.*"my-BibTex"'),
        ('printed_name = "Own-100"', 'printed_name = "EUR-Lex"', "name of eurlex-4k"),
        ("[twin]", "[archive]\nurl = 'x'\nfile = 'y'\n[twin]", "archive: url, file, "),
    ],
)  # fmt: skip
def test_what_breaks_the_form_is_named(tmp_path, old, new, said):
    assert old in OWN
    path = put(tmp_path, OWN.replace(old, new, 1))
    with damaged(path, match=said):
        registry.read(path)


def test_a_changed_file_is_read_again(cache):
    put(cache / "own-100")
    assert registry.get("own-100").A == 0.6
    path = put(cache / "own-100", OWN.replace("A = 0.6", "A = 0.7"))
    os.utime(path, ns=(1, 1))
    assert registry.get("own-100").A == 0.7


def test_a_readers_dataset_is_in_the_catalogue(cache):
    before = registry.names()
    assert registry.find("own-100") is None
    put(cache / "own-100")
    (cache / "trained").mkdir()
    assert registry.names() == [*before, "own-100"]
    for name in ("own-100", "Own 100", "My-Own"):
        assert registry.get(name).name == "own-100"
    with refused("name", match="'own-100'"):
        registry.get("own-10")
    assert registry.names(registry.PAGE_TABLE) == ALL[:27]


def test_a_readers_dataset_replaces_none_of_the_package(cache):
    put(cache / "bibtex", 'name = "bibtex"')
    with damaged("dataset.toml", match="name of bibtex"):
        registry.get("bibtex")
    assert registry.get("delicious").name == "delicious"
    put(cache / "mine", 'name = "other"')
    with damaged("dataset.toml", match="'other', .*'mine'"):
        registry.get("mine")
