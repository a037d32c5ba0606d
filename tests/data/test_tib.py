"""The open dataset: its files built again, counts and tf-idf held to slow oracles, splits, subsamples, names, damage."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import runpy
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

import xcrepro as xc
from tests.refused import damaged, refused
from xcrepro.__main__ import main
from xcrepro.data import tib
from xcrepro.data.read import read_xc
from xcrepro.errors import DataMissing, XCError
from xcrepro.inputs import calibrated, datasets
from xcrepro.reports import report as reports

PARTS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def home(root) -> Path:
    return root / "data" / "tib"


@pytest.fixture(scope="module")
def raw(home) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Counts and headings of all records."""
    return read_xc(home / "tib.txt.gz")


@pytest.fixture(scope="module")
def ds() -> xc.Dataset:
    return xc.load("tib")


def unpacked(folder: Path) -> dict[str, bytes]:
    return {name: gzip.decompress((folder / f"{name}.gz").read_bytes()) for name in tib.FILES}


def letters(home: Path) -> np.ndarray:
    return np.array([list(line) for line in unpacked(home)["splits.txt"].decode().split()])


@pytest.fixture(scope="module")
def records(real_data) -> tuple[Path, Path]:
    folder = real_data("tib")
    return folder / "records.jsonl.gz", folder / "subjects.tsv"


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
def test_built_again_it_is_the_same(records, home, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["tib", *map(str, records), str(tmp_path)])
    runpy.run_module("xcrepro.data.tib", run_name="__main__")
    assert unpacked(tmp_path) == unpacked(home)
    assert (tmp_path / tib.SUMS).read_bytes() == (home / tib.SUMS).read_bytes()


def test_counts_of_records_by_hand(records, home, raw, ds):
    """Five records, letter by letter; nothing of the builder."""
    counts, Y = raw
    words = {word: i for i, word in enumerate(ds.words)}
    with gzip.open(records[0], "rt", encoding="utf-8") as file:
        lines = [line for line, _ in zip(file, range(9000), strict=False)]
    for row in (0, 1, 33, 571, 8999):
        record = json.loads(lines[row])
        text = "".join(
            c if c.isalpha() and ord(c) < 256 else " " for c in f"{record['title']} {record['abstract']}".lower()
        )
        expected = Counter(word for word in text.split() if len(word) > 1 and word in words)
        assert {ds.words[i]: n for i, n in zip(counts[row].indices, counts[row].data, strict=True)} == expected
        assert {ds.label_codes[label] for label in Y[row].indices} == set(record["subjects"])


def test_the_numbers_of_the_readme(raw, home, ds):
    text = (home / "README.md").read_text()
    table = dict(re.findall(r"^\| ([^|]+) \| ([\d.,]+) \|$", text, re.MULTILINE))
    counts, Y = raw
    carried = np.bincount(Y.indices, minlength=Y.shape[1])
    found = {
        "records": counts.shape[0],
        "words": counts.shape[1],
        "headings": Y.shape[1],
        "record-heading pairs": Y.nnz,
        "headings with fewer than ten records": (carried < 10).sum(),
        "headings with one record": (carried == 1).sum(),
        "records of the most frequent heading": carried.max(),
        "record-word pairs": counts.nnz,
        "word occurrences": int(counts.data.sum()),
        "records without a word of the vocabulary": (np.diff(counts.indptr) == 0).sum(),
        "headings whose name has no word of the vocabulary": (np.diff(ds.label_features.indptr) == 0).sum(),
    }
    assert {name: f"{n:,}" for name, n in found.items()} == {name: table[name] for name in found}
    shares = {
        "headings per record": Y.nnz / len(Y.indptr[1:]),
        "records per heading": Y.nnz / Y.shape[1],
        "distinct words per record": counts.nnz / counts.shape[0],
    }
    assert {name: f"{n:.2f}" for name, n in shares.items()} == {name: table[name] for name in shares}
    assert set(table) == {*found, *shares}
    bins = np.bincount(np.digitize(ds.label_counts, [1, 10, 100]), minlength=4)
    assert "| headings | " + " | ".join(f"{n:,}" for n in bins) + " |" in text
    assert carried.min() == 1
    assert (counts.data == counts.data.round()).all()
    assert counts.data.min() == 1
    assert np.bincount(counts.indices).min() == 3


def test_it_is_small(home, root):
    sizes = {path.name: path.stat().st_size for path in home.iterdir()}
    assert sum(sizes.values()) < 3e6
    assert set(sizes) == {"README.md", tib.SUMS, *(f"{name}.gz" for name in tib.FILES)}
    assert (home / "tib.txt.gz").read_bytes()[4:8] == bytes(4)  # no date
    sums = dict(reversed(line.split()) for line in (home / tib.SUMS).read_text().splitlines())
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in unpacked(home).items()}


def test_splits_are_disjoint_complete_and_of_one_size(home):
    found = letters(home)
    assert found.shape == (17_740, 10)
    for column in found.T:
        assert dict(Counter(column.tolist())) == {"r": 13_305, "v": 887, "t": 3_548}
        blocks = column.reshape(-1, 20)
        assert ((blocks == "r").sum(axis=1) == 15).all()
        assert ((blocks == "t").sum(axis=1) == 4).all()
    # Independent: two splits test the same record as often as chance says, 4 %.
    both = [(found[:, a] == "t") @ (found[:, b] == "t").astype(int) for a in range(10) for b in range(a)]
    assert max(abs(n - 17_740 / 25) for n in both) < 5 * np.sqrt(17_740 / 25)
    assert all((found == letter).any(axis=1).sum() > 17_740 / 3 for letter in "rvt")


@pytest.mark.parametrize(("split", "points"), [(0, None), (7, 3000)])
def test_tf_idf_is_scikit_learns(raw, home, split, points):
    counts, Y = (part[:points] for part in raw)
    of = {
        part: np.flatnonzero(letters(home)[:points, split] == letter) for part, letter in zip(PARTS, "rvt", strict=True)
    }
    ds = xc.load("tib", split=split, points=points)
    peer = TfidfTransformer(sublinear_tf=True).fit(counts[of["train"]].astype(float))
    kept = np.flatnonzero(np.asarray(Y.sum(axis=0)).ravel())
    for part, rows in of.items():
        given = getattr(ds, part)
        assert given.X.dtype == np.float32
        assert given.X.has_sorted_indices
        assert abs(given.X - peer.transform(counts[rows].astype(float))).max() < 1e-6
        assert (Y[rows][:, kept] != given.Y).nnz == 0
    words = {word: i for i, word in enumerate(ds.words)}
    names = [[words[w] for w in re.findall("[a-zß-öø-ÿ]{2,}", name.lower()) if w in words] for name in ds.label_names]
    pairs = [(row, column) for row, of_name in enumerate(names) for column in of_name]
    named = sparse.csr_matrix((np.ones(len(pairs)), np.array(pairs).T), ds.label_features.shape)
    assert abs(ds.label_features - peer.transform(named)).max() < 1e-6


def test_subsamples_are_nested():
    small, large = xc.load("tib", points=4000, split=2), xc.load("tib", points=8000, split=2)
    assert large.title == "TIB, 8,000 of 17,740 records"
    assert large.origin == "TIB, 8,000 of 17,740 records (real data), 1,600 test points"
    assert "2,698 of 8,862 headings are on none of them" in large.notes[0]
    assert set(small.label_codes) < set(large.label_codes)
    columns = [large.label_codes.index(code) for code in small.label_codes]
    for part in PARTS:
        few, many = getattr(small, part), getattr(large, part)
        n = few.Y.shape[0]
        assert (many.Y[:n][:, columns] != few.Y).nnz == 0
        assert all(a.tolist() == b.tolist() for a, b in zip(few.X[:9].nonzero(), many.X[:9].nonzero(), strict=True))
    assert sum(getattr(small, part).Y.sum(axis=0) for part in PARTS).min() == 1
    assert len(small.label_names) == len(small.label_codes) == small.label_features.shape[0] == small.train.Y.shape[1]


def test_names(ds):
    names = dict(zip(ds.label_codes, ds.label_names, strict=True))
    assert len(set(ds.label_names)) == 8862
    assert sum(name == f"{name.rpartition(' (')[0]} ({code})" for code, name in names.items()) == 337
    assert names["4114528-8"] == "4114528-8"
    assert names["4002851-3"] == "Architecture"
    assert ds.label_features[ds.label_codes.index("4114528-8")].nnz == 0
    assert (ds.A, ds.B) == (0.55, 1.5)
    assert "not fitted" in ds.entry.propensity_source
    assert xc.diagnose.recognise(ds.test.Y).text == "TIB (real data), test split 0"
    picked = datasets.pick("tib", points=1000, split=3)
    assert (picked.name, picked.test.Y.shape[0], picked.comparable) == ("tib", 200, True)
    few = calibrated.keep_labels(picked, np.array([5, 2]))
    assert few.label_codes == (picked.label_codes[5], picked.label_codes[2])


def test_a_label_is_found_by_its_name(ds):
    found = ds.find_label("LEARNING")
    names = found["name"].str.casefold().tolist()
    starts = [name.startswith("learning") for name in names]
    assert starts == sorted(starts, reverse=True)
    assert all("learning" in name for name in names)
    assert found["points"].tolist() == ds.label_counts[found.index].tolist()
    for kind in (True, False):
        points = found["points"][[start == kind for start in starts]].tolist()
        assert points == sorted(points, reverse=True)
    assert ds.find_label("machine learning")["name"].iloc[0] == "Machine learning"
    assert ds.find_label("mathematics")["name"].iloc[0] == "Mathematics"  # before what only begins so
    assert ds.find_label("4002851-3")["name"].tolist() == ["Architecture"]
    for text, hint in (("machin lerning", "'Machine learning'"), ("qqqqqqqqqqqq", "label_names"), ("", "label's name")):
        with refused("text", repr(text), match=hint):
            ds.find_label(text)


def test_without_names_and_words(twin):
    with refused("text", "'a'", match="has none"):
        twin.find_label("a")
    with refused("part", "'test'"):
        twin.telling_words(0)


def test_telling_words(ds):
    row = ds.validation.X[3].toarray()[0]
    best = sorted(range(len(row)), key=lambda word: (-row[word], word))[:6]
    assert ds.telling_words(3, 6, "validation") == tuple(ds.words[word] for word in best)
    empty = int(np.flatnonzero(np.diff(ds.train.X.indptr) == 0)[0])
    assert ds.telling_words(empty, part="train") == ()
    with refused("row", 3548, match="0 to 3,547"):
        ds.telling_words(3548)
    with refused("part", "'dev'"):
        ds.telling_words(0, part="dev")


@pytest.mark.parametrize(
    ("argument", "value", "range_"),
    [
        ("split", 10, "0 to 9"),
        ("split", -1, "0"),
        ("points", 17_741, "20 to 17,740"),
        ("points", 19, "20 to 17,740"),
        ("points", 0.5, "20 to 17,740"),
    ],
)
def test_what_is_not_there_is_refused_with_the_range(argument, value, range_):
    with refused(argument, value, match=range_):
        xc.load("tib", **{argument: value})


def test_points_are_of_this_dataset(tmp_path):
    (tmp_path / "train.txt").write_text("1 1 1\n0 0:1\n")
    (tmp_path / "test.txt").write_text("1 1 1\n0 0:1\n")
    with refused("points", 1):
        xc.load("mine", tmp_path, points=1)
    # A notebook's parameter, set for TIB: with another dataset it does nothing, as the scale of a twin.
    assert datasets.pick("bibtex", scale=0.05, points=30).n_train > 30


@pytest.mark.parametrize("name", tib.FILES)
def test_a_damaged_file_is_named_with_its_digest(home, tmp_path, monkeypatch, name):
    shutil.copytree(home, tmp_path / tib.HOME)
    monkeypatch.setattr(tib, "committed", lambda folder: tmp_path / folder)
    path = tmp_path / tib.HOME / f"{name}.gz"
    whole = unpacked(home)[name]
    digest = f"SHA-256 {hashlib.sha256(whole).hexdigest()}"
    other = whole.replace(b"1", b"2", 1) if b"1" in whole else whole.replace(b"r", b"t", 1)
    path.write_bytes(gzip.compress(other, 1))
    with damaged(path) as fault:
        xc.load("tib")
    assert fault.value.found == f"SHA-256 {hashlib.sha256(other).hexdigest()}"
    assert digest in fault.value.expected
    path.write_bytes(gzip.compress(whole, 1)[:-200])
    with damaged(path, match=f"expected {digest}.*Put it back"):
        xc.load("tib")
    path.unlink()
    with pytest.raises(DataMissing, match=rf"{name}\.gz"):
        xc.load("tib")


def test_headings_of_one_name_get_their_numbers(tmp_path):
    names, lines = tmp_path / "names.tsv", tmp_path / "records.jsonl"
    names.write_text("gnd\tname\n1\tcats\n2\tdogs\n3\tcats\n4114528-8\tXenondifluoride ion\n")
    lines.write_text('{"title": "a purring cat", "abstract": "", "subjects": ["3", "4114528-8"]}\n')
    (tmp_path / "out").mkdir()
    with gzip.open(tib.build(lines, names, tmp_path / "out") / "label_names.txt.gz", "rt") as stream:
        shown = stream.read().splitlines()
    assert shown == ["<1>\tcats (1)", "<2>\tdogs", "<3>\tcats (3)", "<4114528-8>\t4114528-8"]


def test_what_is_built_from_other_files_is_refused_by_line(tmp_path):
    names, lines = tmp_path / "names.tsv", tmp_path / "records.jsonl"
    names.write_text("gnd\tname\n1\tcats\n2\tdogs\n")
    lines.write_text('{"title": "a", "abstract": "", "subjects": ["1"]}\n{"title": "a", "subjects": ["1"]}\n')
    with damaged(lines, line=2, match="abstract"):
        tib.build(lines, names, tmp_path / "out")
    lines.write_text('{"title": "a", "abstract": "", "subjects": ["3"]}\n')
    with damaged(lines, line=1, match=r"KeyError\('3'\)"):
        tib.build(lines, names, tmp_path / "out")
    names.write_text("gnd\tname\n1\tcats\n1\tdogs\n")
    with damaged(names, line=3, match="once"):
        tib.build(lines, names, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_commands_show_names(tmp_path, capsys, monkeypatch):
    ds = xc.load("tib", points=1000, split=1)
    top = xc.models.Popularity().fit(ds.train.X, ds.train.Y).predict(ds.test.X, 5)
    top.save(tmp_path / "top.npz")
    given = ["evaluate", "tib", str(tmp_path / "top.npz"), "--points", "1000", "--split", "1"]
    assert main([*given, "--csv"]) == 0
    weights = xc.propensity.inverse(ds.label_counts, ds.n_train, ds.A, ds.B)
    expected = xc.evaluate(ds.test.Y, top, (1, 3, 5), weights, ds.label_counts)
    assert len(capsys.readouterr().out.splitlines()) == len(expected) + 1
    assert main([*given, "--per-label"]) == 0
    shown = capsys.readouterr().out
    assert "Architecture" in shown
    assert len(shown.splitlines()) == 21
    assert main([*given, "--per-label", "--csv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    counts = xc.metrics.confusion(ds.test.Y, top, 5)
    assert rows[0] == "label,name,true,predicted,tp,precision,recall,F1"
    assert len(rows) - 1 == ((counts.true > 0) | (counts.predicted[0] > 0)).sum()
    assert main(["evaluate", str(tmp_path / "top.npz"), str(tmp_path / "top.npz"), "--points", "1000"]) == 2
    assert "--points" in capsys.readouterr().err
    assert main([*given, "--train-truth", "x"]) == 2
    seen = {}

    def stop(values, handed, code):
        seen.update(handed)
        raise XCError("no page: tests/reports/ looks at it")

    monkeypatch.setattr(reports, "_run", stop)
    assert main(["report", *given[1:], "--out", str(tmp_path / "report"), "--no-price"]) == 2
    assert seen["given"].label_names == ds.label_names
    assert seen["given"].origin == ds.origin
    assert main(["evaluate", "--blocks", str(tmp_path), "--per-label"]) == 2


def test_the_readmes_code_runs(home, monkeypatch, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", (home / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    code = "".join(blocks).replace('xc.load("tib")', 'xc.load("tib", points=500)').replace("trees=10", "trees=1")
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "Machine learning" in printed
    assert re.search(r"^DiSMEC \{\('P', 1\): [12]\d", printed, re.MULTILINE)
