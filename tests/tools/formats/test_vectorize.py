"""From raw text to a dataset: held to scikit-learn's vectorizer and to a count by hand."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest

from tests.refused import damaged, refused
from xcrepro import load
from xcrepro.core.data.names import LabelNames
from xcrepro.core.errors import DataError
from xcrepro.tools import formats
from xcrepro.tools.formats.vectorize import vectorize

WORDS = ["tax", "fish", "law", "trade", "court", "sea", "water", "milk", "wine", "road"]
LABELS = ["fisheries", "Recht", "agriculture", "transport"]


@pytest.fixture
def points():
    rng, rows = np.random.default_rng(1), []
    for row in range(40):
        title, content = (" ".join(rng.choice(WORDS, n)) for n in (3, 6))
        labels = sorted({*rng.choice(LABELS, rng.integers(0, 3))})
        rows.append({"uid": f"doc {row}", "title": title, "content": content, "labels": labels})
    return rows


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def tf_idf(texts: list[list[str]], train: list[list[str]], terms: list[str]) -> np.ndarray:
    """1 + log count, times 1 + log((1 + n) / (1 + df)), rows of unit length."""
    df = {term: sum(term in text for text in train) for term in terms}
    found = np.zeros((len(texts), len(terms)))
    for row, text in enumerate(texts):
        for term, count in Counter(text).items():
            if term in df:
                weight = 1 + math.log((1 + len(train)) / (1 + df[term]))
                found[row, terms.index(term)] = (1 + math.log(count)) * weight
        found[row] /= np.linalg.norm(found[row]) or 1
    return found


def test_a_dataset_from_raw_text(tmp_path, points):
    source = write(tmp_path / "raw.jsonl", points)
    done = vectorize(source, tmp_path / "laws", test_share=0.25, validation_share=0.1, seed=3, min_df=2)
    assert done.points == {"train": 26, "test": 10, "validation": 4}
    ds = load("laws", tmp_path / "laws")
    assert ds.comparable
    assert ds.label_names == tuple(sorted({label for point in points for label in point["labels"]}))
    parts = {"train": ds.train, "test": ds.test, "validation": ds.validation}
    ids = {part: (tmp_path / "laws" / f"{part}_ids.txt").read_text().splitlines() for part in parts}
    assert sorted(i for of_part in ids.values() for i in of_part) == sorted(point["uid"] for point in points)
    by_id = {point["uid"]: point for point in points}
    text = {part: [f"{by_id[i]['title']} {by_id[i]['content']}".split() for i in ids[part]] for part in parts}
    terms = (tmp_path / "laws" / "vocabulary.txt").read_text().split()
    assert terms == sorted(word for word in WORDS if sum(word in words for words in text["train"]) >= 2)
    for part, split in parts.items():
        assert [int(i.split()[1]) for i in ids[part]] == sorted(int(i.split()[1]) for i in ids[part])
        labels = [{ds.label_names[label] for label in row.indices} for row in split.Y]
        assert labels == [set(by_id[i]["labels"]) for i in ids[part]]
        assert np.allclose(split.X.toarray(), tf_idf(text[part], text["train"], terms), atol=1e-6)
    # The same again, to the byte; another seed is another split.
    vectorize(source, tmp_path / "again", test_share=0.25, validation_share=0.1, seed=3, name="laws")
    vectorize(source, tmp_path / "other", test_share=0.25, validation_share=0.1, seed=4, name="laws")
    for file in (tmp_path / "laws").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
    assert (tmp_path / "laws" / "test_ids.txt").read_text() != (tmp_path / "other" / "test_ids.txt").read_text()


def test_the_truth_of_a_class_is_a_file_of_its_own(tmp_path, points):
    """The folder that students get has the test points' words and texts, and none of their labels."""
    source = write(tmp_path / "raw.jsonl", points)
    vectorize(source, tmp_path / "whole", min_df=1)
    vectorize(source, tmp_path / "mine", min_df=1, truth=tmp_path / "truth.npz")
    whole, mine = (load(name, tmp_path / name) for name in ("whole", "mine"))
    assert mine.test.Y.nnz == 0
    assert (mine.train.Y != whole.train.Y).nnz == 0
    assert (mine.test.X != whole.test.X).nnz == 0
    assert (formats.read_truth(tmp_path / "truth.npz") != whole.test.Y).nnz == 0
    assert len((tmp_path / "mine" / "test_texts.txt").read_text().splitlines()) == whole.test.Y.shape[0]
    with refused("truth"):
        vectorize(source, tmp_path / "again", min_df=1, truth=tmp_path / "truth.npz")
    assert not (tmp_path / "again").exists()


def test_own_test_file_ids_as_labels_and_other_keys(tmp_path, points):
    rows = [
        {"body": point["content"], "target_ind": [len(label) % 7 for label in point["labels"][:1]]} for point in points
    ]
    source, test = write(tmp_path / "raw.jsonl", rows[:30]), write(tmp_path / "test.jsonl", rows[30:])
    names = LabelNames(tuple("abcdefg"))
    done = vectorize(
        source, tmp_path / "own", test=test, text_keys=["body"], ngrams=2, max_features=15, label_names=names
    )
    assert (done.points, done.n_features, done.n_labels) == ({"train": 30, "test": 10}, 15, 7)
    ds = load("own", tmp_path / "own")
    assert [row.indices.tolist() for row in ds.test.Y] == [row["target_ind"] for row in rows[30:]]
    assert (tmp_path / "own" / "test_ids.txt").read_text().split() == [str(line) for line in range(1, 11)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"title": "a"}', "keys 'title', .*labels or target_ind"),
        ('{"labels": []}', "keys 'labels', .*title, content, text"),
        ('{"title": 3, "labels": []}', "texts"),
        ('{"title": "a", "labels": [1.5]}', "label 1.5"),
        ('{"title": "a", "labels": [4], "when": 2}', "among names"),
        ('{"title": "a", "labels": ["\\ud800"]}', "half of"),
        ("[]", r"'\[\]', .*JSON object"),
        ('{"uid": " doc  0", "title": "a", "labels": []}', "the id 'doc 0' a second time, after line 1"),
        ('{"title": "a", "labels": []}', "when 'None'"),
        ('{"title": "a", "labels": [], "when": "26 Nov 2026"}', "when '26 Nov"),
        ('{"title": "a", "labels": [], "when": "2026"}', "numbers or dates throughout"),
        ('{"title": "a", "labels": [], "when": true}', "when 'True'"),
        ('{"title": "a", "labels": [], "when": 2, "series": [1]}', "series"),
    ],
)
def test_faults_are_named_with_their_line(tmp_path, points, line, message):
    first, *others = (json.dumps(point | {"labels": ["law"], "when": 1, "series": "a"}) + "\n" for point in points[:3])
    source = tmp_path / "raw.jsonl"
    source.write_text("".join([first, line + "\n", *others]))
    with damaged(source, line=2, match=message):
        vectorize(source, tmp_path / "out", min_df=1, by="when", group="series")
    assert not (tmp_path / "out").exists()


def test_blanks_in_names_follow_one_rule(tmp_path, points):
    """Those at the ends are no part of a name, and several inside are one: of labels and of ids."""
    points[0]["labels"], points[1]["labels"] = [" sea  law", "sea law "], ["sea\tlaw"]
    points[1]["uid"] = "  doc   1 "
    vectorize(write(tmp_path / "raw.jsonl", points), tmp_path / "out", min_df=1, seed=0)
    names = (tmp_path / "out" / "label_names.txt").read_text().splitlines()
    assert [name for name in names if "law" in name] == ["sea law"]
    ids = [*(tmp_path / "out" / "train_ids.txt").read_text().splitlines()]
    ids += (tmp_path / "out" / "test_ids.txt").read_text().splitlines()
    assert sorted(ids) == sorted(f"doc {row}" for row in range(40))


def test_arguments_are_named(tmp_path, points):
    source = write(tmp_path / "raw.jsonl", points)
    for argument, value in (("test_share", 1.5), ("min_df", 0), ("name", "bibtex")):
        with refused(argument, repr(value)):
            vectorize(source, tmp_path / "out", **{argument: value})
    with refused("test_share and validation_share", match="train points"):
        vectorize(source, tmp_path / "out", test_share=0.5, validation_share=0.5)
    for options, found in (({"label_names": LabelNames(("law",))}, "1 label"), ({"min_df": 1000}, "no terms")):
        with pytest.raises(DataError, match=found):
            vectorize(source, tmp_path / "out", **options)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    with refused("out"):
        vectorize(source, tmp_path / "full")


def parts_of(folder):
    names = ("train", "validation", "test")
    files = {name: folder / f"{name}_ids.txt" for name in names}
    return {name: [int(text) for text in file.read_text().split()] for name, file in files.items() if file.is_file()}


def dated(rng, n, date=lambda day: day):
    days, series = zip(*((int(rng.integers(20)), int(rng.integers(60))) for _ in range(n)), strict=True)
    about = {"title": "cats dogs", "labels": ["x"]}
    return [{"id": i, **about, "when": date(days[i]), "series": series[i]} for i in range(n)]


@pytest.mark.parametrize(
    "date", [lambda day: day, lambda day: day / 8, lambda day: f"2026-{1 + day // 9:02}-{10 + day % 9}"]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_split_by_time(tmp_path, date, seed):
    rows = dated(np.random.default_rng(seed), 60, date)
    done = vectorize(
        write(tmp_path / "raw.jsonl", rows), tmp_path / "own", test_share=0.2, validation_share=0.1, by="when", min_df=1
    )
    parts, when = parts_of(tmp_path / "own"), {row["id"]: row["when"] for row in rows}
    assert sorted(i for ids in parts.values() for i in ids) == list(range(60))
    assert max(when[i] for i in parts["train"]) < min(when[i] for i in parts["validation"])
    assert max(when[i] for i in parts["validation"]) < min(when[i] for i in parts["test"])
    # As many as were asked for, and those of the same time.
    first = min(when[i] for i in parts["test"])
    assert sum(when[i] > first for i in when) < 12 <= len(parts["test"])
    assert done.left_out == 0


@pytest.mark.parametrize("seed", range(4))
def test_groups_are_in_one_part(tmp_path, seed):
    rows = dated(np.random.default_rng(seed), 80)
    source = write(tmp_path / "raw.jsonl", rows)
    vectorize(source, tmp_path / "drawn", test_share=0.25, validation_share=0.1, group="series", min_df=1, seed=seed)
    series, when = ({row["id"]: row[key] for row in rows} for key in ("series", "when"))
    parts = parts_of(tmp_path / "drawn")
    of = [{series[i] for i in ids} for ids in parts.values()]
    assert sum(map(len, of)) == len(set.union(*of))
    largest = max(Counter(series.values()).values())
    assert 20 <= len(parts["test"]) < 20 + largest
    done = vectorize(source, tmp_path / "both", test_share=0.5, by="when", group="series", min_df=1)
    parts = parts_of(tmp_path / "both")
    assert not {series[i] for i in parts["train"]} & {series[i] for i in parts["test"]}
    cut = max(when[i] for i in parts["train"])
    began = {series[i] for i in when if when[i] <= cut}
    left = {*when} - {i for ids in parts.values() for i in ids}
    assert left == {i for i in when if when[i] > cut and series[i] in began}
    assert done.left_out == len(left) > 0


def test_a_point_without_a_group_is_one_of_its_own(tmp_path):
    """As if each had a value that nobody else has; none is the group of another's line number."""
    rows = dated(np.random.default_rng(1), 40)
    bare, own = ([{**row} for row in rows] for _ in range(2))
    for i in range(0, 40, 3):
        bare[i]["series"], own[i]["series"] = None, f"own {i}"
        if i % 2:
            del bare[i]["series"]
    bare, own = write(tmp_path / "bare.jsonl", bare), write(tmp_path / "own.jsonl", own)
    for source in (bare, own):
        vectorize(source, tmp_path / source.stem, test_share=0.4, by="when", group="series", min_df=1)
    assert parts_of(tmp_path / "bare") == parts_of(tmp_path / "own")
    with damaged(bare):
        vectorize(bare, tmp_path / "misspelt", group="serie", min_df=1)


def test_a_time_that_leaves_a_part_empty_is_refused(tmp_path):
    source = write(tmp_path / "raw.jsonl", [{"title": "a", "labels": ["x"], "when": 1}] * 9)
    with damaged(source):
        vectorize(source, tmp_path / "own", by="when", min_df=1)
    with refused("by and group"):
        vectorize(source, tmp_path / "own", test=source, by="when")
