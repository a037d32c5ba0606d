"""Loading from folders, and the comparison with published numbers."""

from __future__ import annotations

import gzip
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, save_npz

import xcrepro as xc
from tests.refused import damaged, refused
from tests.rehearsal import standins
from xcrepro.core.data import registry
from xcrepro.core.data.against_print import compare, nearest
from xcrepro.core.data.dataset import Split
from xcrepro.core.data.load import load
from xcrepro.core.data.locate import at_hand
from xcrepro.core.data.read import read_xc
from xcrepro.core.data.write import write_xc
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.repro.inputs.download import fetch

TRAIN = "3 4 3\n0,2 0:1 3:0.5\n1 1:1\n 2:2\n"
TEST = "2 4 3\n2 0:1\n0,1 3:1\n"
PAIR = {"train.txt": TRAIN, "test.txt": TEST}
SPLIT = {
    "trn_X_Xf.txt": "3 4\n0:1 3:0.5\n1:1\n2:2\n",
    "trn_X_Y.txt": "3 3\n0:1 2:1\n1:1\n\n",
    "tst_X_Xf.txt": "2 4\n0:1\n3:1\n",
    "tst_X_Y.txt": "2 3\n2:1\n0:1 1:1\n",
}
# The same five points in one file, and two splits of them: 1 2 3 | 4 5 and 5 4 3 | 2 1.
COLUMNS = {
    "Tiny_data.txt": "5 4 3\n0,2 0:1 3:0.5\n1 1:1\n 2:2\n2 0:1\n0,1 3:1\n",
    "tiny_trSplit.txt": "1 5\n2 4\n3 3\n",
    "tiny_tstSplit.txt": "4 2\n5 1\n",
}
X_TRAIN = [[1, 0, 0, 0.5], [0, 1, 0, 0], [0, 0, 2, 0]]
Y_TRAIN = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]


def put(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        if name.endswith(".gz"):
            (folder / name).write_bytes(gzip.compress(text.encode()))
        elif name.endswith(".zip"):
            with zipfile.ZipFile(folder / name, "w") as bundle:
                bundle.writestr(name.removesuffix(".zip"), text)
        else:
            (folder / name).write_text(text)
    return folder


def mine(folder: Path, **options) -> xc.Dataset:
    return load("mine", folder, **options)


@pytest.mark.parametrize(
    "files",
    [
        PAIR,
        {"Train.TXT": TRAIN, "TEST.txt": TEST},
        {"tiny_train.txt": TRAIN, "tiny_test.txt": TEST},
        {"train.txt.gz": TRAIN, "test.txt": TEST},
        {"train.txt.zip": TRAIN, "test.txt.zip": TEST},
        SPLIT,
        {name + ".gz": text for name, text in SPLIT.items()},
        COLUMNS,
        # Files that lie beside the data in the archives.
        PAIR | {"validation.txt": "x", "trn.json.gz": "x", "tst_X_Y.txt": "x"},
        PAIR | {"filter_labels_train.txt": "", "filter_labels_test.txt": ""},
        {**SPLIT, "lbl_X_Xf.txt": "x", "Y.txt": "x", "filter_labels_test.txt": ""},
    ],
)
def test_layouts(tmp_path, files):
    ds = mine(put(tmp_path, files))
    assert np.array_equal(ds.train.X.toarray(), X_TRAIN)
    assert np.array_equal(ds.train.Y.toarray(), Y_TRAIN)
    assert np.array_equal(ds.test.X.toarray(), [[1, 0, 0, 0], [0, 0, 0, 1]])
    assert np.array_equal(ds.test.Y.toarray(), [[0, 0, 1], [1, 1, 0]])


def test_npz(tmp_path):
    put(tmp_path / "text", PAIR)
    (tmp_path / "one").mkdir()
    for half in ("train", "test"):
        write_xc(tmp_path / "one" / f"{half}.npz", *read_xc(tmp_path / "text" / f"{half}.txt"))
    assert np.array_equal(mine(tmp_path / "one").train.X.toarray(), X_TRAIN)
    (tmp_path / "pair").mkdir()
    ds = mine(tmp_path / "text")
    for half, split in (("trn", ds.train), ("tst", ds.test)):
        save_npz(tmp_path / "pair" / f"{half}_X_Xf.npz", split.X)
        save_npz(tmp_path / "pair" / f"{half}_X_Y.npz", csr_array(split.Y))
    assert np.array_equal(mine(tmp_path / "pair").train.X.toarray(), X_TRAIN)


def test_labels_alone(tmp_path):
    ds = mine(put(tmp_path, {name: text for name, text in SPLIT.items() if name.endswith("Y.txt")}))
    assert ds.train.X is None
    assert ds.test.X is None
    assert np.array_equal(ds.train.Y.toarray(), Y_TRAIN)
    # Half of the features lost on the way is not a dataset without features.
    put(tmp_path, {"trn_X_Xf.txt": SPLIT["trn_X_Xf.txt"]})
    with pytest.raises(DataMissing, match="no train"):
        mine(tmp_path)


def test_words_of_labels_beside_the_data(tmp_path):
    assert mine(put(tmp_path, SPLIT)).label_features is None
    n_labels = mine(tmp_path).train.Y.shape[1]
    rows = "".join(f"{label}:0.5\n" if label < 2 else "\n" for label in range(n_labels))
    put(tmp_path, {"lbl_X_Xf.txt": f"{n_labels} 4\n{rows}"})
    words = mine(tmp_path).label_features
    assert words.shape == (n_labels, 4)
    assert words.toarray()[:2].tolist() == [[0.5, 0, 0, 0], [0, 0.5, 0, 0]]
    put(tmp_path, {"lbl_X_Xf.txt": f"{n_labels} 5\n{rows}"})
    with pytest.warns(UserWarning, match=rf"lbl_X_Xf.txt: found {n_labels} labels and 5"):
        assert mine(tmp_path).label_features is None
    save_npz(tmp_path / "lbl_X_Xf.npz", words)
    with pytest.warns(UserWarning, match=r"lbl_X_Xf\.npz, lbl_X_Xf\.txt"):
        assert mine(tmp_path).label_features is None


def test_split_files(tmp_path):
    folder = put(tmp_path, COLUMNS)
    ds = mine(folder, split=1)
    assert np.array_equal(ds.train.Y.toarray(), [[1, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert np.array_equal(ds.test.Y.toarray(), [[0, 1, 0], [1, 0, 1]])
    assert mine(folder, split=np.int64(1)).n_train == 3
    with refused("split", 2, match="0 to 1.*trSplit"):
        mine(folder, split=2)
    put(folder, {"tiny_tstSplit.txt": "4 2\n6 1\n"})
    with damaged("tiny_tstSplit.txt", match="row number 6 in column 1, .*at most 5, the rows of Tiny_data"):
        mine(folder)
    put(folder, {"tiny_tstSplit.txt": "4 2\n1 1\n"})
    with damaged("tiny_tstSplit.txt", match="row number 1 in column 1, which tiny_trSplit.txt has as well"):
        mine(folder)


@pytest.mark.parametrize(
    ("files", "argument", "value"),
    [
        *((COLUMNS, "split", split) for split in (-1, 1.0, True, "0", None)),
        (PAIR, "split", 1),  # no split files, no split
        *((PAIR, "A", A) for A in (-1, "0.5", True)),
        *((PAIR, "B", B) for B in (float("nan"), float("inf"))),
    ],
)
def test_bad_arguments(tmp_path, files, argument, value):
    with refused(argument, repr(value)):
        mine(put(tmp_path, files), **{argument: value})


def test_one_subfolder_is_entered(tmp_path):
    put(tmp_path / "a", PAIR)
    put(tmp_path / "__MACOSX", {"train.txt": "x", "test.txt": "x"})
    put(tmp_path / ".hidden", {"train.txt": "x", "test.txt": "x"})
    put(tmp_path / "docs", {"readme.txt": "x"})
    assert mine(tmp_path).n_train == 3
    put(tmp_path / "b", SPLIT)
    with pytest.raises(DataError, match="2 subfolders, a, b"):
        mine(tmp_path)
    # Files on top win over subfolders.
    put(tmp_path, PAIR)
    assert mine(tmp_path).n_train == 3


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (PAIR | {"tiny_train.txt": TRAIN}, ["train.txt", "tiny_train.txt"]),
        (PAIR | SPLIT, ["train.txt", "trn_X_Xf.txt"]),
        (COLUMNS | {"tiny_train.txt": TRAIN, "tiny_test.txt": TEST}, ["Tiny_data.txt", "tiny_train.txt"]),
    ],
)
def test_ambiguous_folders_are_refused(tmp_path, files, named):
    with pytest.raises(DataError, match="more than one") as caught:
        mine(put(tmp_path, files))
    assert all(name in str(caught.value) for name in named)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"filter_labels_train.txt": "", "filter_labels_test.txt": ""},
        {"Tiny_data.txt": COLUMNS["Tiny_data.txt"]},
        {"trn_X_Xf.txt": SPLIT["trn_X_Xf.txt"], "trn_X_Y.txt": SPLIT["trn_X_Y.txt"]},
    ],
)
def test_incomplete_folders(tmp_path, files):
    with pytest.raises(DataMissing, match=r"Wanted: train\.txt") as caught:
        mine(put(tmp_path, files))
    assert all(name in str(caught.value) for name in files)


EURLEX = standins.Shape(15_449, 3_865, 300, 3_956, 102_741)
ROWS = "\n".join(["0 0:1"] * 3)


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"Bibtex_data.txt": f"7395 1836 159\n{ROWS}", "Bibtex_trSplit.txt": "1"}, ("*_tstSplit.txt", "'bibtex'")),
        ({"a/eurlex_train.txt": f"15539 5000 3993\n{ROWS}"}, ("*_test.txt", "'eurlex-4k'")),
        ({"trn_X_Xf.txt": "485176 66666", "trn_X_Y.txt": "485176 670091"}, ("tst_X_Y.txt", "'amazontitles-670k'")),
        ({"trn_X_Xf.txt": "7 7"}, ("trn_X_Y.txt",)),
        ({"b/trn.json.gz": "{}", "b/tst.json.gz": "{}"}, ("raw text", "vectorize")),
    ],
)
def test_what_is_missing_is_named_and_what_the_rest_may_be(tmp_path, files, named):
    for name, text in files.items():
        put((tmp_path / name).parent, {Path(name).name: text})
    with pytest.raises(DataMissing) as caught:
        mine(tmp_path)
    for words in (*named, Path(next(iter(files))).name):
        assert words in str(caught.value)
    assert ("nearest" in str(caught.value)) == any("'" in words for words in named)


def test_both_formats_in_a_folder_are_named_with_what_each_may_be(tmp_path):
    old = {"train.txt": f"15539 5000 3993\n{ROWS}", "test.txt": f"3809 5000 3993\n{ROWS}"}
    with pytest.raises(DataError, match="more than one dataset") as caught:
        mine(put(tmp_path, old | SPLIT | {"trn_X_Xf.txt": "294805 40000"}))
    for words in ("train.txt is nearest to 'eurlex-4k'", "trn_X_Xf.txt is nearest to 'lf-amazontitles-131k'"):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (EURLEX, "check='calibration:table3'"),
        (replace(EURLEX, n_train=15_511, n_labels=3_950), "nearest to 'eurlex-4k'"),
        (standins.Shape(4_880, 2_515, 1_836, 159, 17_760), "of 'bibtex'"),
    ],
)
def test_a_wrong_archive_or_version_is_named(tmp_path, monkeypatch, shape, words):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    standins.put("eurlex-4k", tmp_path, shape)
    assert at_hand("eurlex-4k")  # saved by hand, not unpacked yet
    with pytest.raises(DataError) as caught:
        fetch("eurlex-4k", progress=False)
    assert words in str(caught.value)
    assert [path.name for path in (tmp_path / "datasets").iterdir()] == ["eurlex-4k.zip"]


def test_the_nearest_is_the_printed_row_with_the_most_equal_counts():
    """Of every printed row its own counts; each is near to many others."""
    rows = [row for entry in registry.package().values() for row in entry.published.values()]
    counts = [
        {name: row[name] for name in ("n_features", "n_labels", "n_train", "n_test") if name in row} for row in rows
    ]
    counts = [found for found in counts if len(found) > 1]
    assert len(counts) > 20
    for found in counts:
        assert f"({len(found)} of {len(found)} counts are equal)" in nearest(found), found


def test_no_folder(tmp_path):
    with pytest.raises(DataMissing, match="nowhere"):
        mine(tmp_path / "nowhere")
    put(tmp_path, {"train.txt": TRAIN})
    with pytest.raises(DataMissing, match="is a file"):
        mine(tmp_path / "train.txt")


def test_train_and_test_of_different_widths(tmp_path):
    put(tmp_path, {"train.txt": TRAIN, "test.txt": TEST.replace("2 4 3", "2 5 3")})
    with damaged("test.txt", match=r"5 features, .*4, .*train\.txt"):
        mine(tmp_path)
    put(tmp_path, {"test.txt": TEST.replace("2 4 3", "2 4 7")})
    with damaged("test.txt", match="7 labels, expected 3"):
        mine(tmp_path)


# --- names and parameters ---


def test_a_name_of_your_own_needs_a_path(tmp_path):
    folder = put(tmp_path, PAIR)
    ds = load("mine", folder)
    assert (ds.name, ds.A, ds.B, ds.comparable) == ("mine", 0.55, 1.5, False)
    assert ds.notes == ("'mine' is not in the catalogue: nothing is printed about it",)
    ds = load("mine", folder, A=0.6, B=np.float32(2.5))
    assert (ds.A, ds.B) == (0.6, 2.5)
    # A misspelt name is not taken for one's own in silence.
    assert "'eurlex-4k' or" in load("eurlx-4k", folder).notes[0]
    with refused("name", match="'eurlex-4k'"):
        load("eurlx-4k")
    for wrong in (None, "a/b"):
        with refused("name", repr(wrong)):
            load(wrong, folder)
    with pytest.raises(ArgumentError, match=r"xcrepro\.twin"):
        load("eurlex-4k@0.1")


@pytest.mark.parametrize("check", ["page", "calibration:table3", None, 1.5])
def test_bad_check(tmp_path, check):
    with refused("check", match="'xcrepo:dataset-table'"):
        load("bibtex", put(tmp_path, PAIR), check=check)


# --- the comparison ---


def shaped(n: int, n_features: int, n_labels: int, pairs: int) -> Split:
    """A split of these sizes with ``pairs`` (row, label) pairs, spread evenly."""
    place = np.arange(pairs, dtype=np.int64)
    Y = csr_matrix((np.ones(pairs, np.float32), (place % n, place // n)), shape=(n, n_labels))
    return Split(csr_matrix((n, n_features), dtype=np.float32), Y)


def test_compare_accepts_what_rounds_to_the_printed_digits():
    # EURLex-4K, all points: 25.73 per label is 102,720.0 to 102,759.8 pairs, 5.31 per point 102,641.2 to 102,834.6.
    def agree(pairs: int) -> list[bool]:
        train = shaped(15_539, 5000, 3993, pairs - 20_000)
        return [line.agrees for line in compare(train, shaped(3809, 5000, 3993, 20_000), "eurlex-4k")]

    assert agree(102_741) == [True] * 6
    assert agree(102_720) == [True] * 6
    assert agree(102_759) == [True] * 6
    assert agree(102_719) == [True] * 4 + [False, True]
    assert agree(102_760) == [True] * 4 + [False, True]
    assert agree(102_641) == [True] * 4 + [False, False]


def test_compare_names_each_count_that_differs():
    good = [shaped(4880, 1836, 159, 11_729), shaped(2515, 1836, 159, 6_033)]
    assert all(line.agrees for line in compare(*good, "bibtex"))
    assert [line.quantity for line in compare(*good, "bibtex")] == [
        "n_train", "n_test", "n_features", "n_labels", "avg_points_per_label", "avg_labels_per_point"
    ]  # fmt: skip
    bad = [shaped(4881, 1837, 160, 11_729), shaped(2514, 1837, 160, 6_033)]
    assert [line.quantity for line in compare(*bad, "bibtex") if not line.agrees] == [
        "n_train", "n_test", "n_features", "n_labels", "avg_points_per_label"
    ]  # fmt: skip
    # Labels only: nothing to say about features.
    labels = [Split(None, half.Y) for half in good]
    assert "n_features" not in [line.quantity for line in compare(*labels, "bibtex")]


def test_mismatch_shows_both_numbers(tmp_path):
    with pytest.raises(DataError) as caught:
        load("bibtex", put(tmp_path, PAIR))
    text = str(caught.value)
    assert str(tmp_path) in text
    lines = [line.split() for line in text.splitlines()[1:]]
    assert ["xcrepo:dataset-table", "found"] in lines
    assert ["n_train", "4,880", "3", "differs"] in lines
    assert ["avg_points_per_label", "111.71", "2.0000", "differs"] in lines
    assert '"my-bibtex"' in text
    ds = load("bibtex", tmp_path, check=False)
    assert ds.published["xcrepo:dataset-table"]["n_train"] == 4880
    assert not ds.comparable
    assert ds.notes == ("not compared with what is printed (check=False)",)


# --- other data under a known name ---


def write(folder: Path, train: Split, test: Split, toml: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, half in (("train", train), ("test", test)):
        write_xc(folder / f"{name}.txt", half.X, half.Y)
    if toml:
        (folder / "dataset.toml").write_text(toml)
    return folder


GOOD = """
name = "ten-8"
[expected]
n_train = 10
n_test = 5
n_features = 5
n_labels = 8
avg_points_per_label = 2.00
avg_labels_per_point = 1.60
points_per_label_basis = "train"
"""


@pytest.mark.parametrize(
    ("train", "test", "notes"),
    [
        ((10, 5, 8, 16), (5, 5, 8, 4), []),
        ((9, 5, 8, 16), (6, 5, 8, 4), [["another split", "9 (n_train)", "6 (n_test)", "10 (n_train)", "5 (n_test)"],
                                       ["avg_labels_per_point", "1.7778", "1.60"]]),
        ((10, 5, 8, 20), (5, 5, 8, 4), [["avg_points_per_label", "2.5000", "2.00"],
                                        ["avg_labels_per_point", "2.0000", "1.60"]]),
    ],
)  # fmt: skip
def test_another_split_or_average_is_named(tmp_path, train, test, notes):
    ds = load("ten-8", write(tmp_path, shaped(*train), shaped(*test), GOOD))
    assert ds.comparable == (not notes)
    assert ds.entry.printed("avg_points_per_label") == "2.00"
    for note, words in zip(ds.notes, notes, strict=True):
        assert [word for word in words if word not in note] == []


@pytest.mark.parametrize(
    ("train", "test", "quantity"),
    [
        ((11, 5, 8, 16), (5, 5, 8, 4), "n_train"),
        ((10, 6, 8, 16), (5, 6, 8, 4), "n_features"),
        ((10, 5, 9, 16), (5, 5, 9, 4), "n_labels"),
    ],
)
def test_other_points_features_or_labels_are_refused(tmp_path, train, test, quantity):
    folder = write(tmp_path, shaped(*train), shaped(*test), GOOD)
    with pytest.raises(DataError, match=rf"other data(?s:.)*\n  {quantity} .*differs"):
        load("ten-8", folder)


def test_a_dataset_of_a_reader_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    home = put(tmp_path / "mine", {"a.txt": TRAIN, "b.txt": TEST, "labels.txt": "one\ntwo\nthree\n"})
    toml = 'name = "mine"\nlabel_names = "labels.txt"\n[files]\ntrain = "a.txt"\ntest = "b.txt"\n'
    (home / "dataset.toml").write_text(toml + "[propensity]\nA = 0.6\nB = 2.6\n[expected]\nn_labels = 3\n")
    for ds in (load("mine"), load("MINE"), load("mine", home)):
        assert (ds.name, ds.A, ds.B, ds.comparable, ds.notes) == ("mine", 0.6, 2.6, True, ())
        assert ds.label_names == ("one", "two", "three")
        assert np.array_equal(ds.train.Y.toarray(), Y_TRAIN)
    assert fetch("mine") == home
    # Other files under the same name: the entry's numbers hold for them too.
    other = put(
        tmp_path / "elsewhere", {"a.txt": TRAIN.replace("3 4 3", "3 4 5"), "b.txt": TEST.replace("2 4 3", "2 4 5")}
    )
    with pytest.raises(DataError, match="1 of 1"):
        load("mine", other)
    (home / "labels.txt").write_text("one\ntwo\n")
    with damaged("labels.txt", match="2 names, expected 3"):
        load("mine")
    (home / "labels.txt").unlink()
    with pytest.raises(DataMissing, match=r"labels\.txt"):
        load("mine")
    (home / "b.txt").unlink()
    with pytest.raises(DataMissing, match=r"no b\.txt"):
        load("mine", home)
    with pytest.raises(DataMissing) as caught:
        fetch("mine")
    for part in (str(home / "dataset.toml"), "(a.txt, b.txt)", f"into {home}{os.sep}"):
        assert part in str(caught.value)


def test_the_folder_says_what_it_is(tmp_path):
    folder = put(tmp_path, PAIR | {"dataset.toml": 'name = "mine"\naliases = ["own"]'})
    assert load("own", folder).name == "mine"
    with refused("name", "'bibtex'", match="'mine'"):
        load("bibtex", folder)
    put(tmp_path, {"dataset.toml": 'name = "mine"\nsplits = 1'})
    with refused("split", 1, match="0 to 0"):
        load("mine", folder, split=1)


# --- real data ---


@pytest.mark.parametrize("split", range(10))
def test_every_split_of_real_delicious_is_the_printed_dataset(real_data, split):
    ds = load("delicious", real_data("delicious"), split=split)
    assert (ds.comparable, ds.notes) == (True, ())


def test_what_the_features_are_called_is_read_where_a_file_says_it(tmp_path):
    for part in ("train", "test"):
        (tmp_path / f"{part}.txt").write_text("1 3 2\n0 0:1 2:0.5\n")
    assert load("mine", tmp_path).words == ()
    (tmp_path / "words.txt").write_text("bridge\nsteel\nwöod\n", encoding="utf-8")
    ds = load("mine", tmp_path)
    assert ds.words == ("bridge", "steel", "wöod")
    assert ds.telling_words(0) == ("bridge", "wöod")
    (tmp_path / "words.txt").write_text("bridge\n")
    with pytest.warns(UserWarning, match="1, the data have 3 features"):
        assert load("mine", tmp_path).words == ()
