"""Planted faults are found and named; clean cases, good models and bad, give no alarm."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import binom

import xcrepro as xc
from xcrepro import TopK, models
from xcrepro.core import propensity
from xcrepro.core.data import registry
from xcrepro.core.data.read import read_labels, read_sparse
from xcrepro.core.errors import ArgumentError
from xcrepro.tools import diagnose
from xcrepro.tools.diagnose import alignment

TWINS = {"bibtex": 0.2, "eurlex-4k": 0.05, "delicious": 0.1, "wiki10-31k": 0.02}


@functools.cache
def drawn(name: str):
    return xc.twin(name, TWINS[name])


def neighbours(train, test, k: int = 5, voters: int = 5) -> TopK:
    """Votes of the nearest train points: a plain, honest model."""
    norms = [sparse.diags(1 / np.maximum(np.sqrt(X.multiply(X).sum(axis=1).A1), 1e-9)) @ X for X in (test.X, train.X)]
    near = np.argpartition(-(norms[0] @ norms[1].T).toarray(), voters, axis=1)[:, :voters]
    rows = np.repeat(np.arange(len(near)), voters)
    votes = sparse.csr_matrix((np.ones(rows.size), (rows, near.ravel())), (len(near), train.Y.shape[0])) @ train.Y
    return TopK.from_scores(votes / voters, k)


@functools.cache
def on_bibtex(folder):
    ds = xc.load("bibtex", folder)
    return ds, neighbours(ds.train, ds.test)


def scored(ds, score, k: int = 5) -> TopK:
    """By the twin's own probabilities, which ``score`` changes; it has their labels, too."""
    chance = ds.test.observed_marginals
    data = score(chance.data.astype(float), chance.indices)
    return TopK.from_scores(sparse.csr_matrix((data, chance.indices, chance.indptr), chance.shape), k)


def noisy(ds, power: float, noise: float, k: int = 5) -> TopK:
    """Bent and blurred."""
    blur = np.exp(noise * np.random.default_rng(1).standard_normal(ds.test.observed_marginals.nnz))
    most = (ds.test.observed_marginals.data.astype(float) ** power * blur).max()
    return scored(ds, lambda chance, labels: chance**power * blur / most, k)


MODELS = {
    "popularity": lambda ds: models.Popularity().fit(ds.train.X, ds.train.Y).predict(ds.test.X, 5),
    "best": lambda ds: noisy(ds, 1.0, 0.0),
    "blurred": lambda ds: noisy(ds, 1.0, 1.5),
    "weak": lambda ds: noisy(ds, 0.3, 3.0),
    # Rare labels first, well below the best P; and what a model for the tail alone does.
    "for PSP": lambda ds: scored(
        ds, lambda chance, labels: chance * propensity.inverse(ds.label_counts, ds.n_train, ds.A, ds.B)[labels]
    ),
    "for the tail": lambda ds: scored(ds, lambda chance, labels: chance / ds.label_counts[labels]),
    "neighbours": lambda ds: neighbours(ds.train, ds.test),
}
CLEAN = [(name, model) for name in TWINS for model in MODELS]


@pytest.mark.parametrize(("name", "model"), CLEAN)
def test_clean_cases_give_no_alarm(name, model):
    ds = drawn(name)
    top = MODELS[model](ds)
    for train in (None, ds.train.Y):
        for k in (1, 3, 5):
            assert diagnose.check(ds.test.Y, top.head(k), Y_train=train) == []
    assert diagnose.check(ds.test.Y_complete, top, Y_train=ds.train.Y_complete) == []


def test_clean_real_data_gives_no_alarm(real_data):
    folder = real_data("bibtex")
    truth, scores = read_labels(folder / "sample_score/tst_X_Y.txt"), read_sparse(folder / "sample_score/score_mat.txt")
    for k in (1, 5, 50):
        assert diagnose.check(truth, TopK.from_scores(scores, k)) == []  # votes: most rows have ties
    ds, top = on_bibtex(folder)
    for k in (1, 3, 5):
        assert diagnose.check(ds.test.Y, top.head(k), Y_train=ds.train.Y) == []


def test_clean_halves_and_few_rows():
    """Fewer rows tell less, and raise no alarm the more."""
    ds = drawn("eurlex-4k")
    for model in ("best", "weak", "neighbours"):
        top = MODELS[model](ds)
        for rows in (slice(0, 1), slice(0, 7), slice(0, 30), slice(0, 60), slice(50, None), slice(None, None, -1)):
            assert diagnose.check(ds.test.Y[rows], top.rows(rows)) == []


def moved(top: TopK, order) -> TopK:
    return top.rows(np.asarray(order))


def renumbered(top: TopK, new) -> TopK:
    return TopK.from_ids(np.where(top.ids >= 0, np.asarray(new)[top.ids], -1), n_labels=top.n_labels)


def one_further(top: TopK, by: int) -> TopK:
    """Ids off by one over the same labels: the label at the end is lost, and its place empty."""
    matrix = top.to_csr()
    move = sparse.eye(top.n_labels, k=by, format="csr")
    return TopK.from_scores(matrix @ move, top.k)


def blank_line(top: TopK, at: int) -> TopK:
    rows = np.concatenate([np.arange(at), np.arange(at + 1, len(top)), [len(top) - 1]])
    return moved(top, rows)


def first_points(split, n: int):
    return xc.Split(split.X[:n], split.Y[:n])


def distances(top: TopK) -> TopK:
    """The nearest labels with their distances: the farthest of them first."""
    return TopK.from_ids(top.ids, np.where(top.ids >= 0, 1 - top.scores, -np.inf), n_labels=top.n_labels)


def permutation(n: int):
    """The same in every test, whichever ran before on this worker."""
    return np.random.default_rng(5).permutation(n)


FAULTS = {
    "rows shuffled": ("no information", lambda ds, top: moved(top, permutation(len(top)))),
    "one row on": ("rows moved", lambda ds, top: moved(top, np.roll(np.arange(len(top)), 1))),
    "two rows back": ("rows moved", lambda ds, top: moved(top, np.roll(np.arange(len(top)), -2))),
    "a blank line": ("rows moved", lambda ds, top: blank_line(top, len(top) // 3)),
    "rows reversed": ("rows moved", lambda ds, top: moved(top, np.arange(len(top))[::-1])),
    "rows sorted as text": ("rows moved", lambda ds, top: moved(top, np.argsort(np.arange(len(top)).astype(str)))),
    "ids from 1": ("labels renumbered", lambda ds, top: one_further(top, 1)),
    "ids one too low": ("labels renumbered", lambda ds, top: one_further(top, -1)),
    "ids sorted as text": (
        "labels renumbered",
        lambda ds, top: renumbered(top, np.argsort(np.argsort(np.arange(top.n_labels).astype(str)))),
    ),
    "ids by frequency": (
        "labels renumbered",
        lambda ds, top: renumbered(top, np.argsort(np.argsort(-ds.label_counts, kind="stable"))),
    ),
    "labels permuted": ("no information", lambda ds, top: renumbered(top, permutation(top.n_labels))),
    "transposed": ("transposed", lambda ds, top: TopK.from_scores(top.to_csr().T, 5)),
    "made for train points": (
        "training points",
        lambda ds, top: neighbours(ds.train, first_points(ds.train, len(top))),
    ),
    "all train points": ("shape", lambda ds, top: neighbours(ds.train, ds.train)),
    "a batch twice": (
        "repeated rows",
        lambda ds, top: moved(top, np.r_[0 : len(top) - 40, len(top) - 80 : len(top) - 40]),
    ),
    "every row twice": ("repeated rows", lambda ds, top: moved(top, np.arange(len(top)) // 2)),
    "constant scores": ("constant scores", lambda ds, top: TopK.from_scores((top.to_csr() > 0).astype(float), 5)),
    "distances": ("reversed order", lambda ds, top: distances(noisy(ds, 1.0, 0.5, 20))),
}


@pytest.mark.parametrize("name", ["bibtex", "eurlex-4k", "wiki10-31k"])
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_named(name, fault):
    kind, plant = FAULTS[fault]
    ds = drawn(name)
    for model in ("best", "blurred"):
        top = plant(ds, MODELS[model](ds))
        found = diagnose.check(ds.test.Y, top, Y_train=ds.train.Y)
        assert kind in [finding.kind for finding in found], (fault, model, [str(f) for f in found])
        assert {finding.kind for finding in found} <= set(alignment.KINDS)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in ("distances", "all train points")])
def test_faults_planted_in_real_data_are_named(real_data, fault):
    ds, top = on_bibtex(real_data("bibtex"))
    kind, plant = FAULTS[fault]
    found = diagnose.check(ds.test.Y, plant(ds, top), Y_train=ds.train.Y)
    assert kind in kinds(found), [str(finding) for finding in found]


CUTS = {
    "the last fifth": (lambda n: np.arange(n) < n - n // 5, "the last "),
    "a batch": (lambda n: (np.arange(n) < n // 3) | (np.arange(n) >= n // 3 + 40), "rows "),
    "the last fifth as text": (lambda n: np.argsort(np.argsort(np.arange(n).astype(str))) < n - n // 5, "the last "),
    "all but the first tenth": (lambda n: np.arange(n) < n // 10, "the last "),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", ["bibtex", "eurlex-4k"])
def test_files_that_are_cut_off_are_named(name, cut):
    ds, (keep, which) = drawn(name), CUTS[cut]
    top = MODELS["best"](ds)
    kept = keep(len(top))
    part = TopK.from_ids(np.where(kept[:, None], top.ids, -1), n_labels=top.n_labels)
    found = diagnose.check(ds.test.Y, part, Y_train=ds.train.Y)[0]
    assert found.message.startswith(f"{(~kept).sum()} of {len(top)} rows have no prediction, {which}")
    assert found.evidence["rows"] == (~kept).sum()


def test_rows_without_predictions_that_lie_scattered_are_no_finding():
    ds = drawn("bibtex")
    top = MODELS["best"](ds)
    n = len(top)
    shares = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5)
    scattered = [np.random.default_rng(seed).random(n) < share for seed, share in enumerate(shares)]
    for rows in (*scattered, [n - 1], [0, n - 1], list(range(n))):
        ids = top.ids.copy()
        ids[rows] = -1
        found = diagnose.check(ds.test.Y, TopK.from_ids(ids, n_labels=top.n_labels))
        assert "rows without predictions" not in kinds(found)


def kinds(found) -> list[str]:
    return [finding.kind for finding in found]


def test_numbers_in_the_evidence_are_those_of_evaluate():
    ds = drawn("bibtex")
    top = MODELS["blurred"](ds)
    faulty = one_further(top, 1)
    (finding,) = diagnose.check(ds.test.Y, faulty)
    assert finding.evidence["rule"] == "-1"
    assert finding.evidence["given"] == pytest.approx(xc.metrics.precision(ds.test.Y, faulty, 5)[0], abs=1e-12)
    undone = one_further(faulty, -1)
    assert finding.evidence["renumbered"] == pytest.approx(xc.metrics.precision(ds.test.Y, undone, 5)[0], abs=1e-12)
    assert f"{100 * finding.evidence['renumbered']:.1f} %" in finding.message
    assert str(finding).startswith("labels ren")
    (finding,) = diagnose.check(ds.test.Y, blank_line(top, 150))
    assert finding.evidence["step"] == 1
    assert abs(finding.evidence["first_row"] - 151) < 25
    (finding,) = diagnose.check(ds.test.Y, moved(top, np.random.default_rng(3).permutation(len(top))))
    orders = [np.random.default_rng(seed).permutation(len(top)) for seed in range(50)]
    deals = [xc.metrics.precision(ds.test.Y, moved(top, order), 5)[0] for order in orders]
    assert finding.evidence["dealt"] == pytest.approx(np.mean(deals), abs=3 * np.std(deals) / np.sqrt(20))
    assert "another order" in finding.message
    (finding,) = diagnose.check(ds.test.Y, renumbered(top, np.random.default_rng(3).permutation(top.n_labels)))
    assert "list" in finding.message
    assert abs(finding.evidence["frequency_correlation"]) < 0.2


def test_sizes_that_do_not_fit_are_explained():
    ds = drawn("eurlex-4k")
    Y, top = ds.test.Y, MODELS["best"](ds)
    (finding,) = diagnose.check(Y, top.rows(np.delete(np.arange(len(top)), 60)))
    assert finding.kind == "shape"
    assert abs(finding.evidence["first_row"] - 61) < 20
    assert "blank line" in finding.message
    (finding,) = diagnose.check(Y[np.delete(np.arange(len(top)), 60)], top)
    assert finding.evidence["step"] == -1
    assert "about row" in finding.message
    (finding,) = diagnose.check(Y, top.rows(slice(0, 100)))
    assert "stop after 100" in finding.message
    from_one = TopK.from_ids(np.where(top.ids >= 0, top.ids + 1, -1), n_labels=top.n_labels + 1)
    assert kinds(diagnose.check(Y, from_one)) == ["shape", "labels renumbered"]
    # Labels of train alone, numbered anew: fewer columns.
    train = ds.train.Y.copy().tolil()
    train[:, 10:300] = 0
    train = train.tocsr()
    seen = np.flatnonzero(np.bincount(train.indices, minlength=train.shape[1]))
    few = TopK.from_scores(top.to_csr()[:, seen], 5)
    found = diagnose.check(Y, few, Y_train=train)
    assert kinds(found) == ["shape", "labels renumbered"]
    assert found[1].evidence["rule"] == "train labels"
    assert "numbered anew" in found[0].message
    # A label beyond those of the truth hits nothing, whatever each row has.
    true, guessed = np.random.default_rng(0).integers(2, 20, (2, 300))
    Y = np.eye(20)[true] + np.eye(20)[1]
    _, finding = diagnose.check(Y, TopK.from_ids(np.column_stack([np.full(300, 20), guessed]), n_labels=21))
    assert finding.evidence["given"] == np.mean(true == guessed) / 2


def test_a_square_matrix_that_is_transposed():
    ds = drawn("bibtex")
    n = ds.test.Y.shape[1]
    Y, scores = ds.test.Y[:n], MODELS["best"](ds).to_csr()[:n]
    assert diagnose.check(Y, TopK.from_scores(scores, 5)) == []
    assert kinds(diagnose.check(Y, TopK.from_scores(scores.T, 5)))[0] == "transposed"


def test_a_truth_whose_print_is_filtered_and_no_filter():
    """Of the shape of LF-AmazonTitles-131K's test split; with a filter, empty or not, and of other data nothing is said."""
    entry = registry.get("lf-amazontitles-131k")
    rng = np.random.default_rng(0)
    ids = rng.integers(0, entry.n_labels, (entry.n_test, 2), dtype=np.int32)
    ones = np.ones(entry.n_test), ids[:, 0], np.arange(entry.n_test + 1)
    Y, top = sparse.csr_matrix(ones, (entry.n_test, entry.n_labels)), TopK.from_ids(ids, n_labels=entry.n_labels)
    nothing, first = (np.empty(0, int), np.empty(0, int)), (np.array([0]), np.array([ids[0, 1]]))
    for given, kind in ((None, {"no filter"}), (nothing, set()), (first, {"filter pairs"})):
        assert {*kinds(diagnose.check(Y, top, exclude=given))} & {"no filter", "filter pairs"} == kind
    assert "no filter" not in kinds(diagnose.check(Y[1:], TopK(ids[1:], top.scores[1:], top.n_labels)))


def test_filter_pairs_left_in():
    ds = drawn("bibtex")
    top = MODELS["best"](ds)
    pairs = np.array([3, 7, 7]), np.array([top.ids[3, 2], top.ids[7, 0], top.ids[7, 1]])
    (finding,) = diagnose.check(ds.test.Y, top, exclude=pairs)
    assert finding.kind == "filter pairs"
    assert finding.evidence["left"] == 3
    assert finding.evidence["row"] == 3
    chance = ds.test.observed_marginals
    assert diagnose.check(ds.test.Y, TopK.from_scores(chance, 5, exclude=pairs), exclude=pairs) == []
    assert diagnose.check(ds.test.Y, top, exclude=(np.empty(0, int), np.empty(0, int))) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: np.broadcast_to(-np.arange(1.0, 6.0), s.shape), "ranks"),
        (lambda s: np.broadcast_to(np.arange(5.0, 0.0, -1), s.shape), "ranks"),
        (lambda s: np.broadcast_to(1 / np.arange(1.0, 6.0), s.shape), "ranks"),
        (lambda s: np.log(s / (1 - s)), "log-odds"),
        (lambda s: np.log(s), "logarithms"),
        (lambda s: 100 * s, "percent"),
        (lambda s: np.ceil(25 * s), "votes"),
    ],
)
def test_scores_that_are_no_probabilities(change, words):
    ds = drawn("eurlex-4k")
    top = MODELS["blurred"](ds)
    scores = np.clip(top.scores.astype(float), 1e-6, 1 - 1e-6)
    other = TopK.from_ids(top.ids, np.where(top.ids >= 0, change(scores), -np.inf), n_labels=top.n_labels)
    (finding,) = diagnose.check(ds.test.Y, other, metrics=["P", "ECE@5"])
    assert finding.kind == "no probabilities"
    assert words in finding.message
    assert finding.evidence["metrics"] == ["ECE"]
    assert diagnose.check(ds.test.Y, other, metrics="P") == [] == diagnose.check(ds.test.Y, other)
    assert diagnose.check(ds.test.Y, top, metrics="ECE") == []


def test_popularity_has_probabilities_by_place():
    ds = drawn("bibtex")
    assert diagnose.check(ds.test.Y, MODELS["popularity"](ds), metrics="ECE") == []


def test_a_truth_that_is_the_train_splits():
    ds = drawn("bibtex")
    top = neighbours(ds.train, ds.train)
    assert kinds(diagnose.check(ds.train.Y, top, Y_train=ds.train.Y)) == ["training truth"]
    assert kinds(diagnose.check(ds.train.Y[:100], top.rows(slice(0, 100)), Y_train=ds.train.Y)) == ["training truth"]


def test_alarms_by_chance_are_as_rare_as_said():
    """The sign test against its law, and against plain noise: no reading of noise is better than another."""
    rng = np.random.default_rng(0)
    for up, down in ((20, 0), (30, 5), (3, 3), (0, 9)):
        other = np.r_[np.ones(up, int), np.zeros(down, int), np.ones(4, int)]
        given = np.r_[np.zeros(up, int), np.ones(down, int), np.ones(4, int)]
        exact = sum(binom.pmf(j, up + down, 0.5) for j in range(up, up + down + 1))
        assert alignment._p_better(other, given) == pytest.approx(exact, rel=1e-9)
    for seed in range(80):
        n, labels = ((300, 40), (18, 15), (33, 8), (60, 25))[seed % 4]
        Y = sparse.random(n, labels, 0.1, "csr", rng=np.random.default_rng(seed))
        top = TopK.from_scores(rng.random((n, labels)), 5)
        assert kinds(diagnose.check(Y, top)) in ([], ["no information"], ["below popularity"])


@pytest.mark.parametrize(("n", "parts", "wrong"), [(21, 4, 2), (33, 2, 5), (48, 7, 9), (60, 16, 12)])
def test_few_rows_that_processes_gathered_are_named(n, parts, wrong):
    """Each of ``parts`` predicted its share, the first rows once more to fill the last round; and what is too many was cut."""
    rng = np.random.default_rng(n)
    labels = rng.integers(15, size=n)
    scores = rng.random((n, 15))
    scores[np.arange(n), np.where(np.arange(n) < n - wrong, labels, (labels + 1) % 15)] += 1
    right, whole = TopK.from_scores(scores, 5), -(-n // parts) * parts
    gathered = np.concatenate([np.arange(part, whole, parts) for part in range(parts)])[:n] % n
    assert diagnose.check(np.eye(15)[labels], right) == []
    found = diagnose.check(np.eye(15)[labels], moved(right, gathered))
    assert [finding.evidence.get("step") for finding in found] == [f"{parts} parts"]


def test_nothing_to_see_and_what_is_no_truth():
    empty = TopK.from_scores(np.zeros((0, 3)), 2)
    assert diagnose.check(np.zeros((0, 3)), empty) == []
    assert diagnose.check(np.zeros((4, 3)), TopK.from_scores(np.eye(4, 3), 2)) == []
    absent = TopK.from_ids(np.full((4, 2), -1), n_labels=3)
    assert diagnose.check(np.eye(4, 3), absent, metrics="ECE") == []
    with pytest.raises(ArgumentError, match=r"TopK\.from_scores"):
        diagnose.check(np.eye(3), np.eye(3))


def test_far_below_popularity_is_said_where_a_few_rows_are_right():
    """The label of four rows in five has its id off by one, everywhere; a few hits on rare labels are no chance."""
    rng = np.random.default_rng(0)
    Y = (rng.random((800, 40)) < 0.03).astype(np.float32)
    Y[:, 7], Y[:, 8] = rng.random(800) < 0.8, 0
    ids = np.full((800, 1), 8)
    rare = np.flatnonzero(Y[:, 9:].any(axis=1))[:8]
    ids[rare, 0] = Y[rare, 9:].argmax(axis=1) + 9
    found = diagnose.check(Y, TopK.from_ids(ids, n_labels=40))
    assert [finding.kind for finding in found] == ["below popularity"]
    assert found[0].evidence["given"] > 2 * found[0].evidence["dealt"]
