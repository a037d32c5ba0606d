"""Sets of any size, ties, graded relevance and confused labels: what each costs beside the plain call of the same metric.

The input is that of ``benchmarks.metrics``, ranked once to all 100 places; "tied" are the same scores rounded to hundredths.
The plain call is :func:`xcrepro.evaluate` of the metric in its group's first line, at the same places, on the same ranking. A
curve over all thresholds has to sort all scores, so its group has ACE as well, the plain metric that sorts them too.

Then, without a clock, whether cross-fitted sets say what a threshold is worth on other rows. A draw has 300 rows of 60 labels,
all as rare, of which the 20 with the highest scores are predicted: normal numbers, with 2 more for a relevant label, or with
nothing more (noise), and an offset for each label. The thresholds are chosen on one draw. *cross-fitted* is the macro-F1 of
:func:`xcrepro.metrics.cross_fit_sets` on it, *others* that of the thresholds on a second draw of the same labels.

Last, whether :func:`xcrepro.metrics.conformal_threshold` keeps its promise on real data: PLT's test points are cut in half
many times, the threshold is chosen on one half, and the loss is counted on the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix

import xcrepro as xc
from benchmarks.metrics import KS, make_case, race, row
from xcrepro.core.metrics.labelwise import frequency_bins

SUMS = ("P", "R", "nDCG", "PSP", "PSnDCG", "abandonment")


def groups(n: int, n_labels: int, per_row: int) -> dict[str, dict[str, Callable[[], object]]]:
    """Calls that belong together; the first of each is the plain one."""
    case = make_case(n, n_labels, per_row, dense=False)
    Y, m = case.truth, xc.metrics
    top = xc.TopK.from_scores(case.scores, per_row)
    rounded = csr_matrix(
        (np.round(case.scores.data * 100) / 100, case.scores.indices, case.scores.indptr), case.scores.shape
    )
    tied = xc.TopK.from_scores(rounded, per_row)
    graded = csr_matrix((1.0 + np.arange(Y.nnz) % 4, Y.indices, Y.indptr), Y.shape)
    each = np.full(n_labels, 0.5)

    def plain(which: xc.TopK, ks, *names: str, **given) -> Callable[[], object]:
        return lambda: xc.evaluate(Y, which, ks, case.weights, metrics=[*names], **given)

    def orders(which: xc.TopK) -> dict[str, Callable[[], object]]:
        return {f"ties={ties!r}": plain(which, KS, *SUMS, ties=ties) for ties in ("lowest-id", "expected", "bounds")}

    whole = top.k
    return {
        f"{', '.join(SUMS)} at 1, 3, 5": orders(top),
        "the same of tied scores": orders(tied),
        f"micro-F1@{whole}": {
            "xc.evaluate": plain(top, whole, "micro-F1"),
            "micro-P, micro-R, P (predicted)": plain(top, whole, "micro-P", "micro-R", "P (predicted)"),
            "top.above(0.5) and its micro-F1": lambda: xc.evaluate(Y, top.above(0.5), whole, metrics="micro-F1"),
            "top.above(one for each label)": lambda: top.above(each),
            "xc.evaluate, ACE": plain(top, whole, "ACE"),
            "threshold_curve": lambda: m.threshold_curve(Y, top),
            "best_threshold": lambda: m.best_threshold(Y, top),
            "cross_fit_sets": lambda: m.cross_fit_sets(Y, top),
            "aurc of pairs": lambda: m.aurc(Y, top, whole, of="pairs"),
        },
        f"macro-F1@{whole}": {
            "xc.evaluate": plain(top, whole, "macro-F1"),
            'best_threshold(per="label")': lambda: m.best_threshold(Y, top, per="label", at_least=0),
            'cross_fit_sets(per="label")': lambda: m.cross_fit_sets(Y, top, per="label", at_least=0),
        },
        f"AP@{whole}": {
            "xc.evaluate": plain(top, whole, "AP"),
            "LRAP": plain(top, whole, "LRAP"),
            "coverage error": plain(top, whole, "coverage error"),
        },
        "nDCG@5": {
            "xc.evaluate": plain(top, 5, "nDCG"),
            'gains="linear"': lambda: m.ndcg(graded, top, 5, gains="linear"),
            'gains="exponential"': lambda: m.ndcg(graded, top, 5, gains="exponential"),
        },
        "macro-F1@5": {
            "xc.evaluate": plain(top, 5, "macro-F1"),
            "confused_labels at 1": lambda: m.confused_labels(Y, top, 1),
            "confused_labels at 5": lambda: m.confused_labels(Y, top, 5),
        },
        "P@1": {
            "xc.evaluate": plain(top, 1, "P"),
            "risk_coverage of rows": lambda: m.risk_coverage(Y, top),
            "aurc of rows": lambda: m.aurc(Y, top),
        },
    }


def compare(n: int, n_labels: int, per_row: int, rounds: int) -> list[dict]:
    rows = []
    for name, calls in groups(n, n_labels, per_row).items():
        seconds = race(calls, rounds, at_least=0.0)
        reference = next(iter(seconds.values()))
        job = f"{name}: {n:,} x {n_labels:,}, {per_row} scores a row"
        rows += [row(job, who, each, reference, "") for who, each in seconds.items()]
    return rows


CHOICES = {
    "one for all": {"per": "all"},
    "one for each label": {"per": "label", "at_least": 0},
    "... of 10 rows": {"per": "label", "at_least": 10},
    "... of 20 rows": {"per": "label"},
}


def fair(positives: float, lift: float, draws: int, seed: int = 0) -> dict[str, np.ndarray]:
    """(draws, 2): macro-F1 of each choice of thresholds, cross-fitted and on other rows."""
    rng = np.random.default_rng([seed, int(10 * positives), int(10 * lift)])
    n, n_labels, k, m = 300, 60, 20, xc.metrics
    found = {name: np.empty((draws, 2)) for name in CHOICES}

    def draw(offset: np.ndarray) -> tuple[np.ndarray, xc.TopK]:
        Y = rng.random((n, n_labels)) < positives / n
        return Y, xc.TopK.from_scores(rng.normal(size=Y.shape) + lift * Y + offset, k)

    for i in range(draws):
        offset = rng.normal(size=n_labels) / 2
        (Y, top), (others, other_top) = draw(offset), draw(offset)
        for name, how in CHOICES.items():
            sets = m.cross_fit_sets(Y, top, **how), other_top.above(m.best_threshold(Y, top, **how))
            found[name][i] = [m.macro_f1(*pair, k)[0] for pair in zip((Y, others), sets, strict=True)]
    return found


def fairness(draws: int) -> list[dict]:
    rows = []
    for scores, lift in (("informative", 2.0), ("noise", 0.0)):
        for positives in (1.5, 3, 10, 20, 30):
            for name, values in fair(positives, lift, draws).items():
                differences = values[:, 0] - values[:, 1]
                means = dict(zip(("cross-fitted", "others"), values.mean(axis=0).tolist(), strict=True))
                means |= {"difference": differences.mean(), "±": differences.std(ddof=1) / draws**0.5}
                row = {"scores": scores, "relevant rows a label": f"{positives:g}", "thresholds": name}
                job = f"macro-F1 of cross-fitted sets and of the same thresholds on other rows, {draws} draws"
                rows.append({"job": job} | row | {column: f"{value:.3f}" for column, value in means.items()})
    return rows


def losses(Y: csr_matrix, sets: xc.TopK, of: str, bins: np.ndarray) -> dict[int, float]:
    """Bin -> the mean share of missed labels over the rows that have one of this bin, or of wrong ones over all rows."""
    row, place = np.nonzero(sets.ids >= 0)
    given = csr_matrix((np.ones(row.size), (row, sets.ids[row, place])), Y.shape)
    hits, found = given.multiply(Y).tocsr(), {}
    for number in np.unique(bins):
        right, whole = ((part[:, bins == number]).sum(axis=1) for part in (hits, given if of == "wrong" else Y))
        right, whole = np.asarray(right).ravel(), np.asarray(whole).ravel()
        share = 1 - right[whole > 0] / whole[whole > 0]
        found[number] = share.sum() / (len(sets) if of == "wrong" else max(share.size, 1))
    return found


PROMISES = {"missed": ("missed", 0.6, False), "missed, by bin": ("missed", 0.85, True), "wrong": ("wrong", 0.5, False)}
PLACES = 100


def promises(draws: int, quick: bool) -> list[dict]:
    rows, rng = [], np.random.default_rng(0)
    for name in ("tib",) if quick else ("tib", "gutenberg"):
        ds = xc.load(name, points=2000 if quick else None)
        top = xc.models.PLT(trees=3).fit(ds.train.X, ds.train.Y).predict(ds.test.X, PLACES)
        Y, names = ds.test.Y, frequency_bins(ds.label_counts, ds.test.Y.shape[1])[1]
        seen = np.flatnonzero(ds.label_counts > 0)  # no model can find the others
        Y, top = Y[:, seen], xc.TopK.from_scores(top.to_csr()[:, seen], PLACES)
        counts = ds.label_counts[seen]
        halves = [np.array_split(rng.permutation(len(top)), 2) for _ in range(draws)]
        for what, (of, level, by_bin) in PROMISES.items():
            bins = frequency_bins(counts, seen.size)[0] if by_bin else np.zeros(seen.size, np.int64)
            how = {"of": of} | ({"label_counts": counts} if by_bin else {})
            found: dict[int, list[float]] = {number: [] for number in np.unique(bins)}
            for mine, others in halves:
                threshold = xc.metrics.conformal_threshold(Y[mine], top.rows(mine), level, **how)
                for number, loss in losses(Y[others], top.rows(others).above(threshold), of, bins).items():
                    found[number].append(loss)
            for number, of_draws in found.items():
                text = {"promise": what, "train points": names[number] if by_bin else "all", "level": f"{level}"}
                measured = {
                    "mean": np.mean(of_draws),
                    "±": np.std(of_draws, ddof=1) / draws**0.5,
                    "sd": np.std(of_draws, ddof=1),
                }
                job = f"conformal thresholds on {ds.title}, PLT's {PLACES} places, {draws} halves of the test points"
                rows.append({"job": job} | text | {column: f"{value:.4f}" for column, value in measured.items()})
    return rows


def run(quick: bool = False) -> list[dict]:
    """Amazon-670K's test set; ``quick`` shrinks it to see that everything runs."""
    timed = compare(300, 900, 20, 1) if quick else compare(153_025, 670_091, 100, 5)
    return [*timed, *fairness(2 if quick else 200), *promises(3 if quick else 200, quick)]
