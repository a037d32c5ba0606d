"""Two models without a truth: loops over sets, and values that the package rbo prints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xcrepro as xc
from tests.refused import refused
from xcrepro.__main__ import main

N_LABELS = 12
m = xc.metrics
PLACES = 7, 9  # of the two models: what only the second has room for is shared with nobody
RANKINGS = [
    st.permutations(range(N_LABELS)).flatmap(lambda order, k=k: st.integers(0, k).map(lambda size: order[:size]))
    for k in PLACES
]
ROWS = st.lists(st.tuples(*RANKINGS), min_size=1, max_size=5)


def as_top(rankings, k):
    ids = np.full((len(rankings), k), -1)
    for row, ranking in enumerate(rankings):
        ids[row, : len(ranking)] = ranking
    return xc.TopK.from_ids(ids, n_labels=N_LABELS)


def shared(a, b, depth):
    return len({*a[:depth]} & {*b[:depth]})


def slow_overlap(a, b, k):
    return shared(a, b, k) / max(len(a[:k]), len(b[:k])) if a or b else 1.0


def slow_rbo(a, b, p):
    """Equation 32 of Webber, Moffat and Zobel (2010), as it is printed."""
    short, long = sorted((a, b), key=len)
    s, n = len(short), len(long)
    if s == 0:
        return float(n == 0)
    x = [shared(short, long, d) for d in range(n + 1)]
    first = sum(x[d] / d * p**d for d in range(1, n + 1))
    second = sum(x[s] * (d - s) / (s * d) * p**d for d in range(s + 1, n + 1))
    return (1 - p) / p * (first + second) + ((x[n] - x[s]) / n + x[s] / s) * p**n


@given(ROWS, st.sampled_from([0.3, 0.9, 0.98]))
def test_as_loops_over_sets(rows, p):
    a, b = map(as_top, zip(*rows, strict=True), PLACES)
    for one, other in ((a, b), (b, a)):
        expected = [np.mean([slow_overlap(*row, k) for row in rows]) for k in (7, 1, 3)]
        np.testing.assert_allclose(m.overlap(one, other, (7, 1, 3)), expected, rtol=1e-12)
        assert m.rank_biased_overlap(one, other, p) == pytest.approx(np.mean([slow_rbo(*row, p) for row in rows]))


@given(ROWS, st.integers(1, 7))
def test_labels_that_come_and_go(rows, k):
    a, b = map(as_top, zip(*rows, strict=True), PLACES)
    table = m.changed_labels(a, b, k)
    for label, *counts in table.itertuples(index=False):
        of_a, of_b = (np.array([label in one[:k] for one in of]) for of in zip(*rows, strict=True))
        assert counts == [sum(of_a), sum(of_b), sum(of_a & of_b), sum(of_a & ~of_b), sum(of_b & ~of_a)]
    assert {*table["label"]} == {label for row in rows for ranking in row for label in ranking[:k]}
    moved = (table["gone"] + table["new"]).tolist()
    assert moved == sorted(moved, reverse=True)
    train = np.arange(N_LABELS) * 5
    binned = m.changed_labels(a, b, k, label_counts=train).set_index("train count")
    for name, low, high in (("0", 0, 1), ("1-9", 1, 10), ("10-99", 10, 100)):
        inside = table[(train[table["label"]] >= low) & (train[table["label"]] < high)]
        found = binned.loc[name] if name in binned.index else 0 * table.sum()[["a", "b", "both", "gone", "new"]]
        assert found.tolist() == inside[["a", "b", "both", "gone", "new"]].sum().tolist()


# Printed by rbo 0.1.3 (`RankingSimilarity(a, b).rbo_ext(p)`).
OF_RBO = [
    ([2, 9, 1, 4, 10], [7, 11, 10, 6, 3], 0.9, 0.13122),
    ([4, 3, 9, 1, 5, 0, 6, 7, 11, 8], [10, 3, 6, 0], 0.5, 0.204554191),
    ([3, 10, 11, 7, 4, 0, 9, 8], [10, 1, 2, 4, 11, 5, 9, 8], 0.98, 0.593718624),
    ([7, 8, 6, 0, 11, 1, 5], [6, 11], 0.8, 0.197778286),
    ([], [], 0.9, 1.0),
]


@pytest.mark.parametrize(("a", "b", "p", "value"), OF_RBO)
def test_as_the_package_rbo(a, b, p, value):
    assert m.rank_biased_overlap(as_top([a], 10), as_top([b], 10), p) == pytest.approx(value, abs=1e-9)


A, OTHER = as_top([[0, 1]], 2), as_top([[0, 1], [2]], 2)
REFUSED = {
    "rows": (lambda: m.overlap(A, OTHER), refused("b", 2)),
    "labels": (lambda: m.overlap(A, xc.TopK.from_ids([[0, 1]], n_labels=3), 1), refused("b", 3)),
    "places": (lambda: m.overlap(A, A, 3), refused("ks")),
    "p of 0": (lambda: m.rank_biased_overlap(A, A, 0), refused("p", 0.0)),
    "names": (lambda: m.changed_labels(A, A, 1, label_names=["a"]), refused("label_names", 1)),
    "counts": (lambda: m.changed_labels(A, A, 1, label_counts=[1]), refused("label_counts")),
}


@pytest.mark.parametrize(("call", "raises"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_compared_is_refused(call, raises):
    with raises:
        call()


def test_the_command_without_a_truth_and_with_one(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids = np.array([[0, 1, 2], [3, 1, 0]]), np.array([[1, 0, 2], [3, 2, -1]])
    for name, of in zip(("old.npz", "new.npz"), ids, strict=True):
        xc.TopK.from_ids(of, n_labels=N_LABELS).save(name)
    (tmp_path / "names.txt").write_text("".join(f"label {label}\n" for label in range(N_LABELS)))
    assert main(["evaluate", "old.npz", "--against", "new.npz", "-k", "1", "3", "--labels", "names.txt"]) == 0
    said = capsys.readouterr().out
    assert [line.split()[-1] for line in said.splitlines() if line.startswith("overlap")] == ["0.500000", "0.666667"]
    assert [line.split()[2:] for line in said.splitlines() if line.startswith("label 2")] == [["1", "2", "1", "0", "1"]]
    assert "label 3" not in said  # the same rows have it
    (tmp_path / "truth.txt").write_text("2 12\n0:1\n3:1\n")
    (tmp_path / "train.txt").write_text("3 12\n0:1\n0:1\n1:1\n")
    with_truth = ["evaluate", "truth.txt", "old.npz", "--against", "new.npz", "--train-truth", "train.txt", "-k", "3"]
    assert main(with_truth) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("1-9")] == [
        ["1-9", "4", "2", "2", "2", "0"]
    ]
    assert main(["evaluate", "old.npz", "--against", "new.npz", "-k", "1", "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "measure,k,value"


@pytest.mark.parametrize("more", [["--per-label"], ["--metrics", "P@1"], ["--ties", "bounds"], ["-k", "3"]])
def test_what_does_not_go_with_against_is_refused(tmp_path, more, capsys):
    path = tmp_path / "a.npz"
    A.save(path)
    assert main(["evaluate", str(path), "--against", str(path), *more]) == 2
    said = capsys.readouterr().err
    assert ("2 places" if more[0] == "-k" else "--against") in said


LISTS = [
    '{"labels": ["cat", "dog"]}\n{"labels": ["fox"]}\n',
    '{"labels": ["dog", "cat"]}\n{"labels": ["owl"]}\n',
]
RUNS = [
    "q1 Q0 cat 1 2.0 r\nq1 Q0 dog 2 1.0 r\nq2 Q0 fox 1 1.0 r\n",
    "q2 Q0 owl 1 1.0 r\nq1 Q0 dog 1 2.0 r\nq1 Q0 cat 2 1.0 r\n",
]


@pytest.mark.parametrize(("ending", "texts"), [("jsonl", LISTS), ("run", RUNS)])
def test_names_that_only_predictions_have(ending, texts, tmp_path, capsys):
    """Without a truth the names are those of the first file, and then of the other."""
    paths = [tmp_path / f"{name}.{ending}" for name in ("old", "new")]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    assert main(["evaluate", str(paths[0]), "--against", str(paths[1]), "-k", "1", "2"]) == 0
    said = capsys.readouterr().out
    assert [line.split()[-1] for line in said.splitlines() if line.startswith("overlap")] == ["0.000000", "0.500000"]
    assert {"fox", "owl"} <= set(said.split())
