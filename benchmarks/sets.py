"""Whether :func:`xcrepro.metrics.conformal_threshold` keeps its promise on real data; this measures no speed.

PLT's test points are cut in half many times, the threshold is chosen on one half, and the loss is counted on the other.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.core.metrics.labelwise import frequency_bins


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
    """``quick`` takes few points and draws, to see that everything runs."""
    return promises(3 if quick else 200, quick)
