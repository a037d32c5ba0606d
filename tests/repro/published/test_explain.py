"""Each variant's number, worked out by a slow oracle and rounded, is found under its name; a number of nobody's is not."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import sparse

import xcrepro as xc
from tests.refused import refused
from xcrepro import TopK
from xcrepro.__main__ import main
from xcrepro.core.data.read import read_labels, read_sparse
from xcrepro.core.metrics import calibration
from xcrepro.repro.published import conclusion, explain

K, N_LABELS = 3, 40


@functools.cache
def case():
    """120 rows with ties, some without labels, some with fewer predictions; and a train truth."""
    rng = np.random.default_rng(7)
    chance = np.sort(rng.random(N_LABELS))[::-1] ** 3 * 0.35
    truth = [{label for label in range(N_LABELS) if rng.random() < chance[label]} for _ in range(120)]
    for row in (3, 50):
        truth[row] = set()
    train = (rng.random((300, N_LABELS)) < chance).astype(float)
    ranked = []
    for y in truth:
        labels = rng.permutation(N_LABELS)[: int(rng.integers(2, 9))]
        labels = {*labels.tolist(), *list(y)[:2]}
        votes = {label: (int(rng.integers(1, 5)) + (label in y)) / 5 for label in labels}
        ranked.append(sorted(votes.items(), key=lambda pair: (-pair[1], pair[0])))
    ranked[20] = []
    Y = np.zeros((len(truth), N_LABELS))
    for i, y in enumerate(truth):
        Y[i, sorted(y)] = 1
    return truth, ranked, Y, TopK.from_pairs(ranked, n_labels=N_LABELS, k=12), train


def mean(values) -> float:
    values = list(values)
    return math.fsum(values) / len(values)


def rows(order=None):
    """(labels, ranking) of each row, cut to K after ``order`` has put ties in place."""
    truth, ranked, *_ = case()
    for y, pairs in zip(truth, ranked, strict=True):
        pairs = sorted(pairs, key=lambda pair: (-pair[1], *order(pair[0], y))) if order else pairs
        yield y, [label for label, _ in pairs][:K]


def hits(y, labels) -> list[int]:
    return [int(label in y) for label in labels]


def gain(found) -> float:
    return sum(hit / math.log2(place + 2) for place, hit in enumerate(found))


def late(found) -> float:
    return sum(hit / math.log2(max(place + 1, 2)) for place, hit in enumerate(found))


def ideal(m: int) -> float:
    return gain([1] * m)


def over(a: float, b: float) -> float:
    return a / b if b else 0.0


def rising(found) -> float:
    return sum(sum(found[: place + 1]) / (place + 1) for place, hit in enumerate(found) if hit)


def by_label():
    tp, predicted, true = (np.zeros(N_LABELS) for _ in range(3))
    for y, labels in rows():
        for label in labels:
            predicted[label] += 1
            tp[label] += label in y
        for label in y:
            true[label] += 1
    return tp, predicted, true


def f1(labels=slice(None), epsilon: float = 0.0) -> float:
    tp, predicted, true = (part[labels] for part in by_label())
    return mean(over(2 * t, p + r + epsilon * 120) for t, p, r in zip(tp, predicted, true, strict=True))


def averaged_precision() -> float:
    """All orders of tied places, one by one."""
    truth, ranked, *_ = case()
    total = 0.0
    for y, pairs in zip(truth, ranked, strict=True):
        groups = [[label for label, _ in group] for _, group in itertools.groupby(pairs, key=lambda pair: pair[1])]
        expected, place = 0.0, 0
        for group in groups:
            inside = max(0, min(len(group), K - place))
            expected += inside * sum(label in y for label in group) / len(group)
            place += len(group)
        total += expected / K
    return total / len(truth)


def weights(counts, n: int, A: float = 0.55, B: float = 1.5):
    return [1 + (math.log(n) - 1) * (B + 1) ** A * (c + B) ** -A for c in counts]


def psp(w, normalize: str = "ratio") -> float:
    got, best = [], []
    for y, labels in rows():
        got.append(sum(w[label] for label in labels if label in y))
        best.append(sum(sorted((w[label] for label in y), reverse=True)[:K]))
    if normalize == "ratio":
        return sum(got) / sum(best)
    return mean(got) / K if normalize == "bare" else mean(over(g, b) for g, b in zip(got, best, strict=True))


def counts():
    *_, Y, _, train = case()
    return train.sum(axis=0), Y.sum(axis=0)


def seen(labels: str):
    _, predicted, true = by_label()
    train, _ = counts()
    either = (predicted + true) > 0
    return {
        "test": true > 0, "either": either, "largest": np.arange(N_LABELS) <= np.flatnonzero(either).max(), "train": train > 0,
    }[labels]  # fmt: skip


# (definition, variant) -> its value at K.
ORACLES = {
    ("P", ""): lambda: mean(sum(hits(*row)) / K for row in rows()),
    ("nDCG", ""): lambda: mean(over(gain(hits(y, z)), ideal(min(K, len(y)))) for y, z in rows()),
    ("nDCG (ideal k)", ""): lambda: mean(gain(hits(*row)) for row in rows()) / ideal(K),
    ("nDCG (retrieved)", ""): lambda: mean(over(gain(hits(*row)), ideal(sum(hits(*row)))) for row in rows()),
    ("nDCG (ideal all)", ""): lambda: mean(over(gain(hits(y, z)), ideal(len(y))) for y, z in rows()),
    ("nDCG (ratio of means)", ""): lambda: sum(gain(hits(*row)) for row in rows())
    / sum(ideal(min(K, len(y))) for y, _ in rows()),
    ("nDCG (late discount)", ""): lambda: mean(
        over(late(hits(y, z)), late([1] * min(K, len(y)))) for y, z in rows()
    ),
    ("DCG", ""): lambda: mean(gain(hits(*row)) for row in rows()),
    ("RP", ""): lambda: mean(over(sum(hits(y, z)), min(K, len(y))) for y, z in rows()),
    ("P (predicted)", ""): lambda: mean(over(sum(hits(y, z)), len(z)) for y, z in rows()),
    ("micro-P", ""): lambda: sum(sum(hits(*row)) for row in rows()) / sum(len(z) for _, z in rows()),
    ("micro-R", ""): lambda: sum(sum(hits(*row)) for row in rows()) / sum(len(y) for y, _ in rows()),
    ("AP (of |y|)", ""): lambda: mean(over(rising(hits(y, z)), len(y)) for y, z in rows()),
    ("AP (of hits)", ""): lambda: mean(over(rising(hits(*row)), sum(hits(*row))) for row in rows()),
    ("Jaccard", ""): lambda: mean(over(len(y & set(z)), len(y | set(z))) for y, z in rows()),
    ("Hamming (of L)", ""): lambda: mean(len(y ^ set(z)) / N_LABELS for y, z in rows()),
    ("macro-F1", ""): f1,
    ("macro-F1 (over labels of test)", ""): lambda: f1(seen("test")),
    ("macro-F1 (over labels of train)", ""): lambda: f1(seen("train")),
    ("macro-F1 (epsilon 1e-06)", ""): lambda: f1(epsilon=1e-6),
    ("P", "ties to the highest label id"): lambda: mean(
        sum(hits(*row)) / K for row in rows(lambda label, y: (-label,))
    ),
    ("P", "ties: hits first"): lambda: mean(sum(hits(*r)) / K for r in rows(lambda label, y: (label not in y, label))),
    ("P", "ties: hits last"): lambda: mean(sum(hits(*r)) / K for r in rows(lambda label, y: (label in y, label))),
    ("P", "ties averaged"): averaged_precision,
    ("P", "rows without labels left out"): lambda: mean(sum(hits(y, z)) / K for y, z in rows() if y),
    ("P", "rows without predictions left out"): lambda: mean(sum(hits(y, z)) / K for y, z in rows() if z),
    ("PSP", ""): lambda: psp(weights(counts()[0], 300)),
    ("PSP (bare)", ""): lambda: psp(weights(counts()[0], 300), "bare"),
    ("PSP (mean of ratios)", ""): lambda: psp(weights(counts()[0], 300), "mean"),
    ("PSP", "A 0.6, B 2.6"): lambda: psp(weights(counts()[0], 300, 0.6, 2.6)),
    ("PSP", "propensities from test counts"): lambda: psp(weights(counts()[1], 120)),
    ("PSP", "N of test"): lambda: psp(weights(counts()[0], 120)),
    ("PSP", "propensities from train and test counts"): lambda: psp(weights(sum(counts()), 420)),
}  # fmt: skip


@pytest.mark.parametrize("wanted", ORACLES, ids=" ".join)
def test_every_variant_is_found_by_its_number(wanted):
    *_, Y, top, train = case()
    if wanted == ("PSP", "N of test") and counts()[0].max() > 120:
        pytest.fail("the case must let N of test be tried")
    value = ORACLES[wanted]()
    text = f"{value:.7f}" if wanted[1] else f"{100 * value:.5f}%"
    found = explain(text, Y, top, Y_train=train, ks=[K])
    agree = found[found["agrees"] == "rounded"]
    names = {(row.definition, row.variant, row.k) for row in agree.itertuples()}
    also = {name for row in agree.itertuples() for name in row.same.split("; ")}
    definition, variant = wanted
    name = f"{definition}@{K}" + (f", {variant}" if variant else "")
    assert (definition, variant, K) in names or name in also, conclusion(found)
    assert found.attrs["by_chance"] < 0.05
    assert text in conclusion(found)


@pytest.mark.parametrize(
    "value", ["0.4137219", "0.2931847", "0.7777777", "43.918273%", "0.0912837", "1.2345678", "812.3456"]
)
def test_a_number_of_nobodys_is_explained_by_nothing(value):
    *_, Y, top, train = case()
    found = explain(value, Y, top, Y_train=train)
    assert not (found["agrees"] != "").any()
    assert conclusion(found).startswith(f"Nothing explains {value}")
    assert found["difference"].abs().is_monotonic_increasing
    assert {*found["unit"]} == ({"percent"} if value.endswith("%") else {"fraction", "percent"})


def test_what_agrees_stands_plainest_first():
    """Standard definitions before variants, however near each lies; what does not agree by its distance."""
    _, _, Y, top, train = case()
    table = explain("0.4", Y, top, ks=[1, 2, 3], Y_train=train)
    agrees = table["agrees"] != ""
    assert agrees.sum() > 10
    assert agrees.is_monotonic_decreasing
    variants, distance = (table["variant"] != "")[agrees], table["difference"].abs().round(12)
    assert variants.is_monotonic_increasing
    assert not distance[agrees][~variants].is_monotonic_increasing
    assert distance[~agrees].is_monotonic_increasing


def test_agreement_by_chance_is_as_frequent_as_said():
    """Numbers drawn where candidates lie: how many agree, and how many were to."""
    *_, Y, top, train = case()
    rng = np.random.default_rng(3)
    agreed, said = 0, 0.0
    for value in rng.uniform(0.1, 0.6, 12):
        found = explain(f"{value:.2f}", Y, top, Y_train=train, ks=[1, 3])
        agreed += int((found["agrees"] != "").sum())
        said += found.attrs["by_chance"]
    assert said > 20
    assert 0.6 * said < agreed < 1.6 * said


def test_few_digits_are_said_to_tell_nothing():
    *_, Y, top, train = case()
    value = xc.metrics.precision(Y, top, [3])[0]
    found = explain(f"{value:.2f}", Y, top, Y_train=train)
    assert (found["agrees"] != "").sum() > 3
    assert found.attrs["by_chance"] > 1
    assert "Too many" in conclusion(found)
    # The name and k of the metric leave fewer.
    few = explain(f"{value:.4f}", Y, top, metric="P@3")
    assert few.loc[0, ["definition", "k", "variant"]].tolist() == ["P", 3, ""]
    assert set(few["k"]) == {3}
    assert {*few["definition"]} <= {"P", "P (mean over batches)", "P (predicted)", "micro-P", "RP", "served"}
    assert few.attrs["candidates"] < 0.1 * found.attrs["candidates"]


def test_cut_off_instead_of_rounded():
    *_, Y, top, _ = case()
    value = xc.metrics.ndcg(Y, top, [3])[0]
    digits = next(d for d in range(4, 9) if round(value, d) != math.floor(value * 10**d) / 10**d)
    text = f"{math.floor(value * 10**digits) / 10**digits:.{digits}f}"
    found = explain(text, Y, top, metric="nDCG@3")
    assert found.loc[0, ["definition", "agrees"]].tolist() == ["nDCG", "cut off"]
    assert "cut off" in conclusion(found)


def test_another_truth_and_calibration():
    *_, Y, top, _ = case()
    other = np.roll(Y, 1, axis=0)
    value = xc.metrics.precision(other, top, [5])[0]
    found = explain(f"{value:.6f}", Y, top, truths={"another split": other})
    assert found.loc[0, ["definition", "k", "variant"]].tolist() == ["P", 5, "truth: another split"]
    with refused("truths['short']", "5 x 40"):
        explain(0.5, Y, top, truths={"short": Y[:5]})
    scores, hit = calibration.pairs(Y, top, 3)
    value = xc.metrics.ece(Y, top, 3, bins=15)
    found = explain(f"{value:.6f}", Y, top, metric="ECE")
    assert ("ECE", 3) in {(row.definition, row.k) for row in found[found["agrees"] != ""].itertuples()}
    gaps = []
    for b in range(10):
        inside = np.minimum((scores * 10).astype(int), 9) == b
        gaps += [abs(scores[inside].mean() - hit[inside].mean())] if inside.any() else []
    found = explain(f"{np.mean(gaps):.6f}", Y, top, metric="ECE@3")
    assert found.loc[0, ["definition", "variant"]].tolist() == ["ACE (average)", "10 bins"]


def test_what_is_no_number_and_no_metric():
    *_, Y, top, train = case()
    for value in ("P@1", "nan", "", None, True, float("inf")):
        with refused("value"):
            explain(value, Y, top)
    with refused("metrics", "'nDGC'", match="'nDCG'"):
        explain(0.5, Y, top, metric="nDGC")
    with refused("ks", 13):
        explain(0.5, Y, top, ks=[13])
    with refused("Y_train"):
        explain(0.5, Y, top, Y_train=train[:, 1:])
    with refused("Y", "no rows"):
        explain(0.5, Y[:0], top.rows(slice(0, 0)))


def test_the_repositorys_sample(real_data):
    folder = real_data("bibtex/sample_score")
    truth = read_labels(folder / "tst_X_Y.txt")
    top = TopK.from_scores(read_sparse(folder / "score_mat.txt"), 30)
    found = explain("0.650895", truth, top)  # what the page's data give where ties go to the highest id
    assert found.loc[0, ["definition", "k", "variant"]].tolist() == ["P", 1, "ties to the highest label id"]
    assert found.attrs["by_chance"] < 0.05
    bare = xc.metrics.ndcg(truth, top, [3], ideal="k")[0]
    found = explain(f"{bare:.5f}", truth, top, metric="nDCG@3")
    assert found.loc[0, "definition"] == "nDCG (ideal k)"


@pytest.fixture
def files(tmp_path):
    *_, Y, top, train = case()
    top.save(tmp_path / "top.npz")
    for name, matrix in (("truth", Y), ("train", train)):
        sparse.save_npz(tmp_path / f"{name}.npz", sparse.csr_matrix(matrix))
    return tmp_path


def test_the_command(files, capsys):
    paths = [str(files / "truth.npz"), str(files / "top.npz")]
    value = f"{100 * ORACLES['PSP', 'propensities from test counts']():.4f}%"
    assert main(["explain", value, *paths, "--train-truth", str(files / "train.npz"), "--metric", "PSP@3"]) == 0
    out = capsys.readouterr().out
    assert f"{value} is PSP@3, propensities from test counts" in out
    assert main(["explain", "0.7777777", *paths]) == 1
    assert "Nothing explains 0.7777777" in capsys.readouterr().out
    assert main(["explain", "0.5", *paths, "--csv", "-k", "1"]) in (0, 1)
    assert capsys.readouterr().out.startswith("definition,k,variant,")


@pytest.mark.parametrize("seed", range(6))
def test_lrap_of_scikit_learn_at_full_depth(seed):
    """With ties, rows without labels and rows of all; where places are missing, all labels beyond them tie at the end."""
    from sklearn.metrics import label_ranking_average_precision_score

    rng = np.random.default_rng(seed)
    scores = np.round(rng.random((30, 130)) + 0.01, int(rng.integers(1, 4)))
    Y = rng.random((30, 130)) < 0.03
    Y[0], Y[1] = False, True
    for k in (130, 12):
        top = TopK.from_scores(scores, k)
        kept = np.zeros(scores.shape)
        np.put_along_axis(kept, top.ids.astype(np.int64), top.scores, axis=1)
        value = label_ranking_average_precision_score(Y, kept)
        found = explain(f"{value:.6f}", Y, top, metric="LRAP")
        assert found["agrees"][0] == "rounded"
        assert "LRAP (scikit-learn)" in f"{found['definition'][0]} {found['same'][0]}"
        assert found["k"][0] == k
        assert found["value"][0] == pytest.approx(value, abs=1e-12)
