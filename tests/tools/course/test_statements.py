"""What the lessons say, computed again: statements that were once wrong, each by another way than the lesson's.

Numbers that a text or an output prints are read off it, so that text, output and computation cannot part.
"""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

import numpy as np
import pytest

import xcrepro as xc
from xcrepro.repro.engine import notebooks


@pytest.fixture(scope="module")
def texts(course):
    """Lesson number -> the text of every cell, and what it printed."""
    return {
        lesson.number: [(notebooks.text(cell["source"]), _printed(cell)) for cell in lesson.notebook["cells"]]
        for lesson in course
    }


def _printed(cell: dict) -> str:
    return "".join(notebooks.text(output.get("text", "")) for output in cell.get("outputs", []))


def _one(texts, number: int, part: str) -> tuple[str, str]:
    """The one cell of a lesson that has this text, and what it printed."""
    (found,) = [cell for cell in texts[number] if part in cell[0]]
    return found


def _numbers(text: str) -> list[float]:
    return [float(number.replace("−", "-")) for number in re.findall(r"[−+-]?\d+(?:\.\d+)?", text)]


@pytest.fixture(scope="module")
def library():
    """All records, the weights of equation 1, and the two methods of lesson 4."""
    ds = xc.load("tib")
    usual = xc.propensity.inverse(ds.label_counts, ds.n_train, 0.55, 1.5)
    eta = xc.models.PLT(trees=1).fit(ds.train.X, ds.train.Y).predict_proba(ds.test.X, 100)
    shown = {name: xc.decide.weighted(eta, 1, usual**power).ids[:, 0] for name, power in (("bold", 3), ("careful", 2))}
    return ds, usual, eta, shown


def _hits(truth, labels) -> np.ndarray:
    return np.asarray(truth[np.arange(truth.shape[0]), labels]).ravel()


def _lead(truth, shown, weight) -> tuple[float, float, float]:
    """Bold minus careful in the unnormalised PSP@1, and the best value, by sums over rows."""
    bold, careful = (float((_hits(truth, shown[name]) * weight[shown[name]]).sum()) for name in ("bold", "careful"))
    rows = [weight[truth.indices[a:b]].max() if b > a else 0.0 for a, b in itertools.pairwise(truth.indptr)]
    return bold, careful, float(sum(rows))


def test_lesson_5_prints_macro_f1_over_all_as_the_share_times_that_over_the_test_labels(texts):
    share, _, _, over_all, over_test = re.findall(
        r"(?:^|[ :])(\d\.\d{3}|\d+\.\d%)", _one(texts, 5, "perfect = xc.TopK")[1]
    )
    assert float(over_all) == pytest.approx(float(share.rstrip("%")) / 100 * float(over_test), abs=9e-4)


def test_the_ratio_orders_as_its_numerator_and_the_notes_of_lesson_4_print_both(texts, library):
    """W2: and at strength 1, with the right propensities, the unnormalised value does not tell either."""
    ds, usual, _, shown = library
    note = _one(texts, 4, "Their table, in percentage points")[0]
    said = _numbers(re.search(r"ahead by 0\.1 \((.*?)\)", note)[1]) + _numbers(re.search(r"behind by (.*?)\)", note)[1])
    for strength, value in ((0.1, 0.1), (0.5, -0.6), (1, -1.6)):
        observed = xc.propensity.drop_labels(ds.test.Y, 1 / usual**strength, 0)
        bold, careful, best = _lead(observed, shown, usual)
        assert np.sign(bold / best - careful / best) == np.sign(bold - careful)
        assert 100 * (bold - careful) / best == pytest.approx(value, abs=0.051)
    differences = [_hits(observed, shown[name]) * usual[shown[name]] for name in ("bold", "careful")]
    d = 100 * (differences[0] - differences[1])
    error = d.std() / np.sqrt(d.size)
    value, low, high = said[2:]
    assert -value == pytest.approx(d.mean(), abs=0.051)
    assert (low, high) == (
        pytest.approx(d.mean() - 1.96 * error, abs=0.3),
        pytest.approx(d.mean() + 1.96 * error, abs=0.3),
    )
    assert low < 0 < high


def test_a_third_of_a_point_of_p_at_1_is_below_its_standard_error(texts):
    """W3: on so many points; the answer of lesson 8 claims neither a lead nor that the two are alike."""
    answer = _one(texts, 8, "What may the abstract say?")[0]
    assert "on a par" not in re.sub(r"Neither that it is better nor that it is on a par", "", answer)
    for p in (0.80, 0.85, 0.87):
        assert 0.3 / (100 * np.sqrt(p * (1 - p) / 3809)) == pytest.approx(0.5, abs=0.06)


def test_in_half_of_the_fields_table_the_points_of_a_label_are_those_of_train_and_test(texts):
    """W5: N times the labels of a point = L times the points of a label; which N makes it so?"""
    table = xc.published.wide("xcrepo:dataset-table").droplevel(["method", "variant"])
    found = {}
    for name, row in table.iterrows():
        ones = [n * row["avg_labels_per_point"] for n in (row["n_train"], row["n_train"] + row["n_test"])]
        met = [abs(one / (row["n_labels"] * row["avg_points_per_label"]) - 1) < 0.01 for one in ones]
        assert sum(met) == 1, name
        found[name] = ("train", "train and test")[met.index(True)]
    shown = ["Bibtex", "EURLex-4K", "AmazonCat-13K", "Amazon-670K", "Amazon-3M"]
    assert [found[name] for name in shown].count("train and test") == 3
    assert "In some rows they do not" in _one(texts, 1, "should fit together")[0]


def test_lesson_1_opens_with_the_tutorials_numbers_and_ours_as_its_program_counts_them(texts, root):
    """Hits of the first tag over questions, and over all tags; one question lacks a tag that fits."""
    ds = xc.load("cooking")
    asked = _one(texts, 1, "whose *P@1* is")[0]
    printed = [float(number) for number in re.findall(r"is (0\.\d{3})", asked)]
    page = (root / "docs/fasttext_tutorial.md").read_text(encoding="utf-8")
    theirs = set(re.findall(r"0\.\d+", asked))
    assert theirs == {"0.599", "0.261", "0.5", "0.702", "0.2"} <= set(re.findall(r"0\.\d+", page))
    assert theirs - {"0.261"} <= set(re.findall(r"0\.\d+", _one(texts, 1, "Those who followed the tutorial")[0]))
    first = xc.models.DiSMEC().fit(ds.train.X, ds.train.Y).predict(ds.test.X, 1).ids[:, 0]
    hit = [label in ds.test.Y[row].indices for row, label in enumerate(first)]
    ours = [sum(hit) / 3000, sum(hit) / ds.test.Y.nnz]
    said = [float(number) for number in re.findall(r"(0\.\d{3}):", _one(texts, 1, "linear = xc.models")[1])]
    assert said == pytest.approx(ours, abs=5e-4)
    lead = float(re.search(r"is (0\.\d\d) higher", _one(texts, 1, "Is this model good?")[0])[1])
    assert ours[0] - printed[0] == pytest.approx(lead, abs=5e-3)
    rows = _one(texts, 1, "asked = np.unique(")[1]
    found, of = map(int, re.search(r"(\d+) of the (\d+) tags", rows).groups())
    assert found == len({label for label, right in zip(first, hit, strict=True) if right})
    assert of == sum(column.nnz > 0 for column in ds.test.Y.T.tocsr())
    assert 0.5 < found / of < 0.55  # for nearly half of the tags never
    iron = ds.label_names.index("cast-iron")
    assert "cast iron" in ds.test.texts["title"][56]
    assert iron not in ds.test.Y[56].indices
    assert first[56] == iron
    assert "cast-iron (counted as wrong)" in rows


def test_what_knowing_nothing_reaches_on_the_two_datasets_of_lesson_1(texts):
    """One question in ten, one record in forty-five."""
    said = re.findall(r"first label right: +(\d+\.\d)%", _one(texts, 1, "for data in (questions, ds):")[1])
    shares = []
    for name in ("cooking", "tib"):
        ds = xc.load(name)
        most = int(np.argmax(ds.label_counts))
        shares.append(100 * ds.test.Y[:, [most]].nnz / ds.test.Y.shape[0])
    assert list(map(float, said)) == pytest.approx(shares, abs=0.051)
    assert shares[0] / 10 == pytest.approx(1, abs=0.05)
    assert 100 / shares[1] == pytest.approx(45, abs=1)
    assert 10 / shares[1] > 4


def test_real_valued_scores_tie(texts):
    """W8: in 16 bits, and where a sigmoid has reached 1."""
    said = _one(texts, 2, "For which models does this matter?")[0]
    (first,) = map(int, re.findall(r"says 1\.0 for every input from (\d+) on", said))
    sigmoid = {x: np.float32(1) / (np.float32(1) + np.exp(np.float32(-x))) for x in range(first - 2, first + 60)}
    assert [x for x, value in sigmoid.items() if value == 1] == list(range(first, first + 60))
    scores = np.random.default_rng(0).random(5000)
    assert np.unique(scores).size == 5000
    assert np.unique(scores.astype(np.float16)).size < 4500


def test_a_method_without_the_tail_keeps_what_lesson_4_says(texts, library):
    """W12: none of the tail's headings is found, PSP@1 falls by about a quarter, coverage@1 by a little more."""
    ds, usual, eta, _ = library
    head = np.zeros(ds.label_counts.size)
    head[np.argsort(-ds.label_counts, kind="stable")[: head.size // 10]] = 1
    kept, found = {}, {}
    for name, weights in (("top k", np.ones(head.size)), ("only the head", head)):
        labels = xc.decide.weighted(eta, 1, weights).ids[:, 0]
        hits = _hits(ds.test.Y, labels)
        found[name] = int(sum(hit for hit, label in zip(hits, labels, strict=True) if not head[label]))
        kept[name] = {
            "P": hits.sum(),
            "PSP": sum(usual[label] for hit, label in zip(hits, labels, strict=True) if hit),
            "coverage": len({int(label) for hit, label in zip(hits, labels, strict=True) if hit}),
        }
    assert found["only the head"] == 0
    printed = _one(texts, 4, "only_head = xc.decide.weighted")[1]
    assert f"k = 1, top k        : {found['top k']} of" in printed
    for name in ("P", "PSP", "coverage"):
        share = kept["only the head"][name] / kept["top k"][name]
        assert re.search(rf"^{name} +keeps {share:.0%} at k = 1", printed, re.MULTILINE)
    assert 0.7 < kept["only the head"]["PSP"] / kept["top k"]["PSP"] < 0.8


def test_the_odds_of_a_sample_are_the_true_odds_over_r_and_a_fitted_model_falls_short(texts):
    """W13: Bayes' rule by exact counts; and more steps of training do not bring the slope to 1."""
    p, r = Fraction(1, 50), Fraction(1, 10)
    in_sample = p / (p + r * (1 - p))
    assert in_sample / (1 - in_sample) == p / (1 - p) / r
    ds = xc.load("tib", points=2000)
    frequent = np.flatnonzero(ds.label_counts >= 3)
    used = np.flatnonzero(np.asarray((ds.train.X > 0).sum(axis=0)).ravel() >= 3)
    X, X_test, Y = ds.train.X[:, used], ds.test.X[:, used], ds.train.Y[:, frequent].toarray()
    y = Y[:, int(Y.sum(axis=0).argmax())]
    kept = (y > 0) | (np.random.default_rng(0).random(len(y)) < 0.1)

    def log_odds(rows, steps):
        share = (y[rows].sum() + 1) / (rows.sum() + 2)
        bias, w = np.log(share / (1 - share)), np.zeros(X.shape[1])
        for _ in range(steps):
            w -= 4.0 * (X[rows].T @ (1 / (1 + np.exp(-(X[rows] @ w + bias))) - y[rows]))
        return X_test @ w + bias

    slopes = {n: np.polyfit(log_odds(np.ones(len(y), bool), n), log_odds(kept, n), 1)[0] for n in (30, 300)}
    (printed,) = re.findall(r"slope (\d\.\d+)", _one(texts, 9, "log_odds = [")[1])
    assert float(printed) == pytest.approx(slopes[30], abs=0.006)
    assert all(0.55 < slope < 0.8 for slope in slopes.values())


def test_the_winner_depends_on_A_at_one_strength_of_three(texts, library):
    """W14: where the interval of the lead leaves 0, and who is ahead on the complete labels."""
    ds, _, _, shown = library
    ahead = {}
    for strength in (0.1, 0.5, 1):
        usual = xc.propensity.inverse(ds.label_counts, ds.n_train)
        observed = xc.propensity.drop_labels(ds.test.Y, 1 / usual**strength, 0)
        for A in (0.02, 0.4, 0.55, 0.8, 1.2):
            weight = xc.propensity.inverse(ds.label_counts, ds.n_train, A, 1.5)
            d = np.subtract(*(_hits(observed, shown[name]) * weight[shown[name]] for name in ("bold", "careful")))
            z = d.mean() / (d.std() / np.sqrt(d.size))
            ahead[strength, A] = "bold" if z > 1.96 else "careful" if z < -1.96 else ""
    assert [ahead[0.1, A] for A in (0.02, 0.55, 0.8, 1.2)] == ["careful", "", "bold", "bold"]
    assert all(ahead[strength, 0.02] == "careful" for strength in (0.5, 1))
    assert all(ahead[strength, A] != "bold" for strength in (0.5, 1) for A in (0.55, 0.8, 1.2))
    complete = [_hits(ds.test.Y, shown[name]).mean() for name in ("careful", "bold")]
    assert 100 * (complete[0] - complete[1]) == pytest.approx(4.7, abs=0.06)
    printed = _one(texts, 4, "leads = [xc.compare")[1]
    assert re.search(r"bold is ahead.*A = \[0\.8, ", printed)
    assert re.search(r"careful is ahead.*, 0\.4\]", printed)
