"""The first screen of a report: its five sentences in ten situations, its scoreboard, and the five points that it shows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from tests.tools.reports.test_report import Page
from xcrepro.tools.reports import first, grid
from xcrepro.tools.reports.asked import Asked
from xcrepro.tools.reports.given import collect
from xcrepro.tools.reports.measured import Measured

ROWS, LABELS = 160, 20


def truth(rows=ROWS, labels=LABELS, seed=0):
    """Each point has one to three labels, the first ones more often."""
    rng, Y = np.random.default_rng(seed), np.zeros((rows, labels), np.float32)
    chance = 1.0 / np.arange(1, labels + 1)
    for row in Y:
        row[rng.choice(labels, min(rng.integers(1, 4), labels), replace=False, p=chance / chance.sum())] = 1
    return Y


def guesses(Y, skill, seed=1, k=5):
    """Scores in [0, 1] that know so much of the truth."""
    scores = np.random.default_rng(seed).random(Y.shape) * (1 - skill) + skill * Y
    return xc.TopK.from_scores(scores.astype(np.float32), min(k, Y.shape[1]))


def wrong(Y):
    return xc.TopK.from_scores((1 - Y) * np.linspace(0.9, 0.1, Y.shape[1], dtype=np.float32), 5)


def situations():
    """Name -> truth, models, options."""
    Y, train = truth(), truth(400, seed=2)
    few = truth(rows=8)
    even = np.where(np.arange(LABELS) % 2, 1.0, 0.0)
    filtered, low = guesses(Y, 0.6), np.linspace(1e-4, 1e-5, LABELS, dtype=np.float32)
    return {
        "tied models": (Y, {"a": guesses(Y, 0.3), "b": guesses(Y, 0.3)}, {}),
        "one model": (Y, guesses(Y, 0.4), {"train_truth": train}),
        "all wrong": (Y, {"a": wrong(Y)}, {}),
        "8 rows": (few, {"a": guesses(few, 0.5), "b": guesses(few, 0.4, 3)}, {}),
        "5 rows": (few[:5], {"a": guesses(few[:5], 0.5), "b": guesses(few[:5], 0.1, 3)}, {}),
        "no overlap": (Y, {"a": guesses(Y * even, 0.9), "b": guesses(Y * (1 - even), 0.9, 3)}, {}),
        "perfect scores": (Y, {"a": xc.TopK.from_scores(0.999 * Y + low, 5), "b": guesses(Y, 0.2)}, {}),
        "one label": (truth(labels=1), {"a": guesses(truth(labels=1), 0.2)}, {}),
        "filters": (Y, {"a": filtered}, {"exclude": (np.arange(ROWS), filtered.ids[:, 0].astype(int))}),
        "forty models": (Y[:48], {f"m{i:02}": guesses(Y[:48], 0.6 - 0.014 * i, i) for i in range(40)}, {}),
        "no names": (Y, {"a": guesses(Y, 0.4), "b": guesses(Y, 0.2, 3)}, {"train_truth": train}),
        "clear lead": (Y, {"a": guesses(Y, 0.2), "b": guesses(Y, 0.45, 3)}, {"train_truth": train}),
        "split leads": (Y, {"a": guesses(Y, 0.3), "b": xc.TopK.from_scores(0 * Y + Y.mean(axis=0), 5)}, {}),
        "an order": (Y, {"a": xc.TopK.from_ids(guesses(Y, 0.5).ids, n_labels=LABELS)}, {}),
        "margins": (Y, {"a": xc.TopK.from_scores(5 * guesses(Y, 0.5).to_csr() - 2 * csr_matrix(Y > -1), 5)}, {}),
        "nothing predicted": (Y, {"a": xc.TopK.from_ids(np.full((ROWS, 5), -1), n_labels=LABELS)}, {}),
    }


PHRASES = {
    "leads": "leads clearly in", "equal": "all models are equal", "nobody": "nobody can say",
    "often": "naming the most frequent",
    "none": "finds none", "nothing": "misses nothing", "probabilities": "can be read as probabilities",
    "order": "Only the order", "margins": "do not lie between", "look": "Look at this first", "settle": "settle that sign",
    "power": "could tell", "more": "judge more", "save": "save the scores", "training": "training points",
    "unseen": "no training point",
}  # fmt: skip
SAID = {
    "tied models": ("equal", {"leads": "all models are equal", "next": "xc.calibrate"}),
    "one model": ("often training", {"leads": "P@1 of model is", "next": "xc.calibrate"}),
    "all wrong": ("none look settle", {"leads": "P@1 of a is 0.0 %", "loses": "a finds none of the relevant labels"}),
    "8 rows": ("equal nothing power", {"leads": "No model leads clearly", "next": "test points could tell a and b apart"}),
    "5 rows": ("nobody nothing more", {"leads": "of 5 test points nobody can say", "next": "judge more test points"}),
    "no overlap": ("leads", {"leads": "b leads clearly in P@1", "loses": "b is weakest on labels with 1-9 test points"}),
    "perfect scores": ("leads nothing probabilities", {
        "leads": "a leads clearly in P@1", "loses": "a misses nothing", "scores": "of a can be read as prob"}),
    "one label": ("nothing", {"leads": "P@1 of a is", "loses": "a misses nothing"}),
    "filters": ("nothing look settle", {"suspicious": "Look at this first: a: filter pairs"}),
    "forty models": ("nothing", {"leads": "m00, m01, m02 and 17 more are too close to call"}),
    "no names": ("leads training", {"leads": "a leads clearly", "suspicious": "Nothing looks wrong: no sign"}),
    "clear lead": ("leads training", {
        "leads": "b leads clearly in P@1, nDCG@5, PSP@5, macro-F1@5 and ECE@5", "scores": "The scores of b"}),
    "split leads": ("leads", {
        "leads": "b leads clearly in ECE@5; in nDCG@5 no difference is clear", "loses": "b finds more at labels with"}),
    "an order": ("nothing order save", {"scores": "Only the order of labels was given"}),
    "margins": ("nothing margins", {"scores": "do not lie between 0 and 1", "next": "read the test points"}),
    "nothing predicted": ("none order look settle", {"leads": "P@1 of a is 0.0 %"}),
}  # fmt: skip
"""Which phrases are said there, and nowhere else; and what the sentences must have."""


@pytest.fixture(scope="module")
def asked():
    found = {}

    def measured(name: str) -> Measured:
        if name not in found:
            Y, tops, options = situations()[name]
            ks = sorted({1, min(5, Y.shape[1])})
            found[name] = Measured(Asked(collect(Y, tops, **options), ks=ks, n_resamples=60))
        return found[name]

    return measured


@pytest.mark.filterwarnings("ignore::xcrepro.core.errors.DataWarning")
@pytest.mark.parametrize("name", SAID)
def test_what_the_first_screen_says(asked, name):
    said = {key: make(asked(name)) for key, make in first.SENTENCES.items()}
    phrases, must = SAID[name]
    assert {key: text for key, text in must.items() if text not in said[key]} == {}
    whole = " ".join(said.values()).replace("No model leads", "")
    assert {key for key, text in PHRASES.items() if text in whole} == {*phrases.split()}
    assert len(said) == 5
    assert all(said.values())
    assert "nan" not in whole


def test_what_training_has_not_seen_is_said_with_its_share():
    Y, train = truth(), truth(400, seed=2)
    train[:, 3] = 0
    m = Measured(Asked(collect(Y, guesses(Y, 0.4), train_truth=train), n_resamples=20))
    share = Y[:, 3].sum() / Y.sum()
    assert f"{100 * share:.1f} % of the relevant labels have no training point" in first.suspicious(m)
    assert "with 0 training" not in first.loses(m)


def test_where_the_leader_loses_is_counted_label_by_label(asked):
    m = asked("clear lead")
    Y, top, counts = m.given.truth.to_csr().toarray(), m.given.first("b").ids, m.given.label_counts
    found = {(10, 99): [], (100, 999): []}
    for (low, high), hits in found.items():
        hits += [label in top[row] for row, label in zip(*np.nonzero(Y), strict=True) if low <= counts[label] <= high]
    rare, often = (f"{100 * np.mean(hits):.0f} %" for hits in found.values())
    assert (
        f"labels with 10-99 training points: among its first 5 are {rare} of what is relevant there, but {often} at"
        in first.loses(m)
    )


def test_how_many_points_would_do_is_the_power_of_the_difference(asked):
    m = asked("8 rows")
    row = m.pairs.loc[(m.pairs["value"] / m.pairs["stderr"]).abs().idxmax()]
    needed = 8 * (2.8 * row["stderr"] / row["value"]) ** 2
    assert f"about {needed:.0f} test points" in first.next_step(m)


# ---------------------------------------------------------------- scoreboard, points, page


def test_places_are_those_that_clear_differences_leave(asked):
    m = asked("forty models")
    board = first.board(m)
    assert board.columns[:3] == ["model", "place in P@1", "P@1"]
    beaten = {model: [0, 0] for model in m.given.models}
    for row in m.pairs[m.pairs["metric"] == "P"].itertuples():
        if row.p < 0.05:
            better, worse = (row.left, row.right) if row.value > 0 else (row.right, row.left)
            beaten[better][1] += 1
            beaten[worse][0] += 1
    for model, place, *_ in board.rows:
        above, below = beaten[model.text]
        assert place.text == (f"{1 + above}–{40 - below}" if above + below < 39 else f"{1 + above}")
    values = m.rows("P", 1)["value"]
    assert [row[0].text for row in board.rows] == sorted(values.index, key=lambda name: (-values[name], name))


@pytest.mark.parametrize(
    ("name", "mark"), [("clear lead", grid.LEADS), ("tied models", grid.MAY_LEAD), ("one model", "")]
)
def test_the_best_is_marked_by_whether_it_leads(asked, name, mark):
    m = asked(name)
    best = next(row for row in first.board(m).rows if row[0].text == m.leader)
    assert {cell.mark for cell in best[1:]} == {mark}
    assert all(cell.bold == bool(mark) for cell in best[1:])


def test_the_five_points_follow_their_rules(asked):
    m = asked("clear lead")
    Y, counts = m.given.truth.to_csr().toarray() > 0, m.given.label_counts
    a, b = (m.given.first(model) for model in "ab")
    hits = np.take_along_axis(Y, b.ids, axis=1)
    right, confident, found, missed, apart = first.examples(m)
    assert hits[right["point"]].sum() == Y[right["point"]].sum() == max(hits.sum(axis=1))
    sure = b.scores[:, 0][~hits[:, 0]]
    assert b.scores[confident["point"], 0] == sure.max()
    assert not hits[confident["point"], 0]
    rarest = min(counts[label] for row, label in zip(*np.nonzero(Y), strict=True) if label in b.ids[row])
    assert found["rule"].endswith(f"({rarest:,})")
    lost = min(counts[label] for row, label in zip(*np.nonzero(Y), strict=True) if label not in b.ids[row])
    assert missed["rule"].endswith(f"({lost:,})")
    d = np.abs(hits.sum(axis=1) - np.take_along_axis(Y, a.ids, axis=1).sum(axis=1))
    used = {one["point"] for one in (right, confident, found, missed)}
    assert d[apart["point"]] == max(d[row] for row in range(len(d)) if row not in used)
    assert len(used | {apart["point"]}) == 5
    for one in (right, confident, found, missed, apart):
        assert list(one["models"]) == ["b", "a"]
        assert one["relevant"] == [str(label) for label in np.flatnonzero(Y[one["point"]])]
        for name, score, hit in one["models"]["b"]:
            assert hit == Y[one["point"], int(name)]
            assert score in b.scores[one["point"]]


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("name", ["forty models", "5 rows", "nothing predicted", "no names"])
def test_the_page_of_a_situation_is_sound_small_and_knows_no_folder(name, tmp_path):
    Y, tops, options = situations()[name]
    np.save(tmp_path / "truth.npy", Y)
    for model, top in ({"model": tops} if isinstance(tops, xc.TopK) else tops).items():
        (tmp_path / "models").mkdir(exist_ok=True)
        top.save(tmp_path / "models" / f"{model}.npz")
    about = {"price": False, "n_resamples": 20, "out": tmp_path / "out", **options}
    made = xc.report(tmp_path / "truth.npy", tmp_path / "models", **about)
    page = made.to_html()
    Page(page)
    assert len(page.encode()) < 1_000_000
    first_screen = made._repr_html_()
    assert first_screen.count("<h1") == 1
    assert "report.html" in first_screen
    assert "<section" not in first_screen
    for path in (tmp_path / "out").rglob("*.*"):
        assert str(tmp_path).encode() not in path.read_bytes(), path.name
