"""What objects show of themselves: right, escaped, small, whatever they hold."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse

import xcrepro as xc
from tests.refused import refused
from xcrepro.core import cards
from xcrepro.core.data.dataset import Dataset, Split

EVIL = "<script>alert(\"1\")</script> & 'x'"


class Tags(HTMLParser):
    """Which elements there are, whether each is closed, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open, self.seen, self.text = [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def made(n_labels=4, **about):
    Y = sparse.csr_matrix(np.eye(3, n_labels, dtype=np.float32))
    X = sparse.csr_matrix(np.eye(3, 5, dtype=np.float32))
    return Dataset("mine", Split(X, Y), Split(X, Y, texts=about.pop("texts", {})), A=0.55, B=1.5, **about)


@pytest.mark.parametrize("name", ["tib", "cooking", "gutenberg", "synthetic bibtex"])
def test_a_dataset_shows_its_sizes_its_tail_and_a_record(name):
    ds = xc.load(name) if name != "synthetic bibtex" else xc.twin("bibtex", scale=0.1)
    shown = Tags(ds._repr_html_())
    text = " ".join(shown.text)
    counts = np.asarray(ds.train.Y.sum(axis=0)).ravel()
    assert f"{ds.train.Y.shape[0]:,} train" in text
    assert f"{100 * (counts < 5).mean():.0f} % have fewer than 5" in text
    assert {"table", "svg", "polyline"} <= {*shown.seen}
    if ds.label_names:
        first = next(row for row in range(50) if ds.test.Y[row].nnz)
        assert all(ds.label_names[label] in text for label in ds.test.Y[first].indices[:10])
    assert len(ds._repr_html_()) < 6000
    assert len(repr(ds)) < 150
    assert "\n" not in repr(ds)
    assert repr(cards.dataset(ds)).splitlines()[0] == ds.title


def test_names_and_texts_cannot_break_out():
    ds = made(label_names=(EVIL,) * 4, texts={"title": np.array([EVIL] * 3)}, notes=(EVIL,))
    top = xc.TopK.from_ids([[0, 1], [1, 0], [3, -1]], n_labels=4)
    for html in (ds._repr_html_(), top.show(ds)._repr_html_(), cards.Card(EVIL, [[EVIL]], [EVIL])._repr_html_()):
        shown = Tags(html)
        assert "script" not in shown.seen
        assert EVIL in shown.text


def test_predictions_show_names_and_hits():
    ds = made(label_names=("ant", "bee", "cat", "dog"), texts={"title": np.array(["a", "b", "c"])})
    top = xc.TopK.from_ids([[0, 1], [0, 2], [3, -1]], n_labels=4)
    assert repr(top.show(ds)).splitlines()[2:] == ["0  a  [ant], bee", "1  b  ant, cat", "2  c  dog"]
    assert repr(top.show(ds.test, rows=[1])).splitlines()[2:] == ["1  0, 2"]
    assert repr(top.show(ds.test.Y, rows=1)).splitlines()[2:] == ["0  [0], 1"]
    assert "<strong>ant</strong>" in top.show(ds)._repr_html_()
    assert Tags(top._repr_html_()).seen.count("tr") == 4


def test_what_holds_much_says_little():
    state = xc.State([1], ["P", "nDCG"])
    assert repr(state) == "State(P, nDCG: 0 rows, no labels yet)"
    assert (
        repr(state.update(np.eye(3, 4), xc.TopK.from_ids([[0], [1], [2]], n_labels=4)))
        == "State(P, nDCG: 3 rows, 4 labels)"
    )
    claims = xc.claims("jain16")
    assert repr(claims) == f"Claims('jain16': {len(claims.table)} claims)"


def test_what_predictions_are_not_of_is_refused():
    top = xc.TopK.from_ids([[0, 1], [1, -1]], n_labels=3)
    assert repr(top.show([[1, 0, 0], [0, 1, 0]])).splitlines()[2:] == ["0  [0], 1", "1  [1]"]
    for data, rows, argument in (
        (np.eye(3), 5, "data"),
        (np.eye(2, 4), 5, "data"),
        (None, [2], "rows"),
        (None, [-1], "rows"),
    ):
        with refused(argument):
            top.show(data, rows)
