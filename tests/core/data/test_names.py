"""Label names: every form of the file, and who is meant by a name."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.refused import damaged, refused
from xcrepro.core.data.load import load
from xcrepro.core.data.names import LabelNames, read_label_names, read_row_ids, write_label_names
from xcrepro.core.errors import DataError

FORMS = {
    "lines": ("cats\ndogs -> wolves\n[birds\n", ("cats", "dogs -> wolves", "[birds"), ()),
    "label map": ("2\tbirds\n0\tcats\n1\tdogs\n", ("cats", "dogs", "birds"), ()),
    "arrow": ("B01->cats\nB02->dogs->wolves\n", ("cats", "dogs->wolves"), ("B01", "B02")),
    "annif": ("<http://a>\tcats\n<http://b>\tdogs\t599.7\n", ("cats", "dogs"), ("http://a", "http://b")),
    "lbl.json": ('{"uid": "B1", "title": "cats"}\n{"uid": "B2", "title": "dogs"}\n', ("cats", "dogs"), ("B1", "B2")),
    "list": ('["cats",\n "dogs"]', ("cats", "dogs"), ()),
    "name to id": ('{"dogs": 1, "cats": 0}', ("cats", "dogs"), ()),
    "id to name": ('{"1": "dogs", "0": "cats"}', ("cats", "dogs"), ()),
    "a table": ("id,name\n1,dogs\n0,cats\n", ("cats", "dogs"), ()),
    "a table with tabs": ("id\tname\n0\tcats\n1\tdogs\n", ("cats", "dogs"), ()),
    "names, then ids": ("Name;Class_ID\ncats;0\ndogs;1\n", ("cats", "dogs"), ()),
    "Annif's CSV": ("uri,label_en\n<http://a>,cats\n<http://b>,dogs\n", ("cats", "dogs"), ("http://a", "http://b")),
    "ids out of order": ('id,uri,name\n1,b,"dogs, all"\n0,a,cats\n', ("cats", "dogs, all"), ("a", "b")),
    "no header": ("0,cats\n1,dogs\n", ("cats", "dogs"), ()),
    "no header, ids last": ("cats;1\ndogs;0\n", ("dogs", "cats"), ()),
    "names with commas": ("cats, black\ndogs, white\n", ("cats, black", "dogs, white"), ()),
    "names with numbers": ("1, 2 or more\n3, 4 or more\n", ("1, 2 or more", "3, 4 or more"), ()),
}


@pytest.mark.parametrize(
    "text",
    ["0\tcats\n2\tdogs\n", "cats\tfelis\ndogs\tcanis\n", "id,name\n1,cats\n2,dogs\n", "name,name\ncats,a\n",
     "name\ncats\n", "label\ncats\n", "id\n0\n1\n", "@prefix a: <http://a> .\na:x a:y a:z .\n",
     "<?xml version='1.0'?>\n<a/>\n"],
)  # fmt: skip
def test_what_is_no_list_of_names_is_no_list_of_lines(tmp_path, text):
    path = tmp_path / "names"
    path.write_text(text)
    with pytest.raises(DataError, match="names"):
        read_label_names(path)


@pytest.mark.parametrize("form", FORMS)
def test_every_form(tmp_path, form):
    text, names, codes = FORMS[form]
    path = tmp_path / "names"
    path.write_text(text)
    assert read_label_names(path) == LabelNames(names, codes)
    path.write_bytes(gzip.compress(text.encode()))
    assert read_label_names(path, len(names)).names == names
    with damaged(path, match=f"{len(names)} names, expected 9"):
        read_label_names(path, 9)


def test_faults(tmp_path):
    path = tmp_path / "names"
    for text, line, words in (
        ('{"a": 0, "b": 2}', None, "gap"),
        ('{"a": 0, "b": 0.5}', None, "another kind"),
        ('["\\ud800"]', None, "half of"),
        ('{"title": "a"}\n{"uid": 3}\n', 2, "'title'"),
    ):
        path.write_text(text)
        with damaged(path, line, match=words):
            read_label_names(path)
    path.write_text("a\nb\na\n")
    with damaged(path, line=3, match=r"'a' .*\(line 1\)"):
        read_row_ids(path)
    with refused("label_names", "'b c'"):
        write_label_names(path, LabelNames(("a",), ("b c",)))


words = st.text(
    st.characters(exclude_categories=["C", "Z"], exclude_characters="<>[{\"'0123456789"), min_size=1, max_size=6
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words, min_size=1, max_size=5), st.booleans())
def test_written_names_come_back(tmp_path, names, coded):
    codes = tuple(f"http://x/{place}" for place in range(len(names))) if coded else ()
    written = LabelNames(tuple(names), codes)
    write_label_names(tmp_path / "names.txt", written)
    assert read_label_names(tmp_path / "names.txt") == written


TRAIN, TEST = "2 4 3\n0 0:1\n1,2 1:1\n", "1 4 3\n2 3:1\n"


def test_a_folder_with_a_file_of_names_has_names(tmp_path):
    (tmp_path / "train.txt").write_text(TRAIN)
    (tmp_path / "test.txt").write_text(TEST)
    assert load("mine", tmp_path).label_names == ()
    (tmp_path / "Y.txt").write_text("a\nb\nc\n")
    assert load("mine", tmp_path).label_names == ("a", "b", "c")
    (tmp_path / "label_names.txt").write_text("0\tx\n2\tz\n1\ty\n")
    assert load("mine", tmp_path).label_names == ("x", "y", "z")
    (tmp_path / "label_names.txt").write_text("x\ny\n")
    with pytest.warns(UserWarning, match=r"label_names\.txt: found 2"):
        assert load("mine", tmp_path).label_names == ()


@pytest.mark.parametrize("layout", ["one file", "pair", "labels alone"])
def test_validation_points_are_named_by_the_toml(tmp_path, layout):
    if layout == "one file":
        files = {"train": TRAIN, "test": TEST, "validation": "1 4 3\n0,1 2:0.5\n"}
    else:
        files = {"train_Y": "2 3\n0:1\n1:1 2:1\n", "test_Y": "1 3\n2:1\n", "validation_Y": "1 3\n0:1 1:1\n"}
        if layout == "pair":
            files |= {"train_X": "2 4\n0:1\n1:1\n", "test_X": "1 4\n3:1\n", "validation_X": "1 4\n2:0.5\n"}
    for role, text in files.items():
        (tmp_path / f"{role}.txt").write_text(text)
    toml = 'name = "mine"\n[expected]\nn_train = 2\nn_test = 1\n[files]\n'
    (tmp_path / "dataset.toml").write_text(toml + "".join(f'{role} = "{role}.txt"\n' for role in files))
    ds = load("mine", tmp_path)
    assert ds.validation.Y.toarray().tolist() == [[1, 1, 0]]
    assert (ds.n_train, ds.comparable, ds.label_counts.tolist()) == (2, True, [1, 1, 1])
    if layout != "labels alone":
        assert ds.validation.X.toarray().tolist() == [[0, 0, 0.5, 0]]
    last = list(files)[-1] if layout == "one file" else "validation_Y"
    (tmp_path / f"{last}.txt").write_text("1 4 5\n0 2:0.5\n" if layout == "one file" else "1 5\n0:1\n")
    with damaged(f"{last}.txt", match="5 labels, expected 3"):
        load("mine", tmp_path)
    (tmp_path / "dataset.toml").write_text(toml + 'train = "train.txt"\ntest = "test.txt"\nvalidation_X = "a.txt"\n')
    with pytest.raises(DataError, match="validation_X and validation_Y"):
        load("mine", tmp_path)
