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
    filtered = guesses(Y, 0.6)
    return {
        "tied models": (Y, {"a": guesses(Y, 0.3), "b": guesses(Y, 0.3)}, {}),
        "one model": (Y, guesses(Y, 0.4), {"train_truth": train}),
        "all wrong": (Y, {"a": wrong(Y)}, {}),
        "8 rows": (few, {"a": guesses(few, 0.5), "b": guesses(few, 0.4, 3)}, {}),
        "5 rows": (few[:5], {"a": guesses(few[:5], 0.5), "b": guesses(few[:5], 0.1, 3)}, {}),
        "no overlap": (Y, {"a": guesses(Y * even, 0.9), "b": guesses(Y * (1 - even), 0.9, 3)}, {}),
        "perfect scores": (Y, {"a": xc.TopK.from_scores(Y, 5), "b": guesses(Y, 0.1)}, {}),
        "one label": (truth(labels=1), {"a": guesses(truth(labels=1), 0.2)}, {}),
        "filters": (Y, {"a": filtered}, {"exclude": (np.arange(ROWS), filtered.ids[:, 0].astype(int))}),
        "forty models": (Y, {f"m{i:02}": guesses(Y, 0.45 - 0.01 * i, i) for i in range(40)}, {}),
        "no names": (Y, {"a": guesses(Y, 0.4), "b": guesses(Y, 0.05, 3)}, {"train_truth": train}),
        "clear lead": (Y, {"a": guesses(Y, 0.05), "b": guesses(Y, 0.45, 3)}, {"train_truth": train}),
        "split leads": (Y, {"a": xc.TopK.from_scores(Y * 0.3, 5), "b": xc.TopK.from_scores(Y * 0.5 + 0.5, 5)}, {}),
        "an order": (Y, {"a": xc.TopK.from_ids(guesses(Y, 0.5).ids, n_labels=LABELS)}, {}),
        "margins": (Y, {"a": xc.TopK.from_scores(5 * guesses(Y, 0.5).to_csr() - 2 * csr_matrix(Y > -1), 5)}, {}),
        "nothing predicted": (Y, {"a": xc.TopK.from_ids(np.full((ROWS, 5), -1), n_labels=LABELS)}, {}),
    }


SAID = {
    "tied models": {"leads": "all models are equal", "next": "read the test points"},
    "one model": {"leads": "P@1 of model is", "next": "xc.calibrate"},
    "all wrong": {
        "leads": "P@1 of a is 0.0 %",
        "loses": "a finds none of the relevant labels",
        "suspicious": "Look at this",
    },
    "8 rows": {"leads": "no model leads clearly", "next": "test points could tell a and b apart"},
    "5 rows": {"leads": "of 5 test points nobody can say", "next": "judge more test points"},
    "no overlap": {"leads": "leads clearly in", "loses": "a is weakest on labels with"},
    "perfect scores": {
        "leads": "a leads clearly in P@1",
        "loses": "a misses nothing",
        "scores": "of a can be read as prob",
    },
    "one label": {"leads": "P@1 of a is", "loses": "a misses nothing"},
    "filters": {"suspicious": "Look at this first: a: filter pairs", "next": "settle that sign"},
    "forty models": {"leads": "are too close to call", "scores": "on average they are off by"},
    "no names": {"leads": "a leads clearly", "suspicious": "Nothing looks wrong"},
    "clear lead": {"leads": "b leads clearly in P@1, nDCG@5, PSP@5 and macro-F1@5", "scores": "The scores of b"},
    "split leads": {"leads": "b leads clearly in ECE@5"},
    "an order": {"scores": "Only the order of labels was given", "next": "save the scores beside the labels"},
    "margins": {"scores": "do not lie between 0 and 1"},
    "nothing predicted": {"leads": "P@1 of a is 0.0 %", "next": "settle that sign"},
}
"""What must be said. A text of this table is said nowhere else but where ALSO has it."""
ALSO = {
    "leads clearly in": {"perfect scores", "clear lead", "split leads", "no names", "no overlap", "forty models"},
    "all models are equal": {"split leads"},
    "P@1 of a is": {"all wrong", "one label", "filters", "an order", "margins", "nothing predicted"},
    "Look at this": {"all wrong", "filters", "one label", "nothing predicted"},
    "settle that sign": {"filters", "all wrong", "one label", "nothing predicted"},
}
NEVER = {
    "leads clearly": ["tied models", "one model", "8 rows", "5 rows", "an order"],
    "misses nothing": ["all wrong", "clear lead", "one model", "forty models", "nothing predicted"],
    "weakest on labels": ["perfect scores", "all wrong", "one label", "nothing predicted"],
    "can be read as probabilities": ["one model", "all wrong", "an order", "margins", "nothing predicted"],
    "no probabilities: on average": ["perfect scores", "an order", "margins"],
    "Look at this first": ["perfect scores", "clear lead", "no names", "forty models", "one model"],
    "naming the most frequent": ["clear lead", "all wrong", "tied models"],  # of one model, and with a train truth
    "could tell": ["clear lead", "tied models", "5 rows", "one model"],
    "no training point": ["tied models", "perfect scores"],  # nothing is known of training
}


@pytest.fixture(scope="module")
def asked():
    found = {}

    def measured(name: str) -> Measured:
        if name not in found:
            Y, tops, options = situations()[name]
            found[name] = Measured(Asked(collect(Y, tops, **options), ks=[1, min(5, Y.shape[1])], samples=60))
        return found[name]

    return measured


@pytest.mark.filterwarnings("ignore::xcrepro.core.errors.DataWarning")
@pytest.mark.parametrize("name", SAID)
def test_what_the_first_screen_says(asked, name):
    said = {key: make(asked(name)) for key, make in first.SENTENCES.items()}
    for key, text in SAID[name].items():
        assert text in said[key]
    whole = " ".join(said.values())
    assert all(text not in whole for text, others in NEVER.items() if name in others)
    for text, places in ALSO.items():
        assert text not in whole or name in places, text
    assert sum(bool(text) for text in said.values()) <= 5
    assert "nan" not in whole
    assert all(not text or text[0].upper() + text[1:] for text in said.values())
