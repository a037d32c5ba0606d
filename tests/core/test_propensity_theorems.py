"""jain16, section 4, by Monte Carlo: with the true propensities a metric of the observed truth estimates, without bias, the
plain metric of the complete truth.

Each test draws the observed truth DRAWS times with a fixed seed, takes the metric each time, and asks that the mean lies
within 4 standard errors (sample deviation / sqrt(DRAWS)) of the exact value on the complete truth. That the bound is tight
enough to see something is checked beside it: the same mean without propensities, or with wrong ones, lies outside.
"""

from __future__ import annotations

import numpy as np
import pytest

import xcrepro as xc
from xcrepro.core import metrics
from xcrepro.core.propensity import drop_labels, inverse

DRAWS = 400
KS = (1, 3, 5)
N, L = 60, 25


@pytest.fixture(scope="module")
def world():
    """Marginals of a complete truth, one draw of it, predictions near it, propensities by eq. 1."""
    rng = np.random.default_rng(0)
    eta = rng.beta(0.4, 2.0, (N, L))
    complete = (rng.random((N, L)) < eta).astype(np.float32)
    complete[:, -1] = 1  # so that no row is without labels, as corollary 4.2.1 asks
    complete[:, -2] = 1
    top = xc.TopK.from_scores(eta + rng.normal(0, 0.25, (N, L)), max(KS))
    propensity = 1 / inverse(rng.integers(1, 2000, L), 5000)
    assert 0.1 < propensity.min() < 0.5 < propensity.max()
    return eta, complete, top, propensity


def within(draws, exact, sigmas=4.0):
    """Is the mean of (DRAWS, ks) within that many standard errors of (ks,)?"""
    draws = np.array(draws)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (error > 0).all()
    return np.abs(draws.mean(axis=0) - exact) <= sigmas * error


# The gains of table 1 (a) and Hamming loss: (with weights w, None for plain) -> values at KS.
DECOMPOSABLE = {
    "precision": lambda Y, top, w: plain_or_scored("precision", "psp", Y, top, w),
    "nDCG": lambda Y, top, w: plain_or_scored("ndcg", "psndcg", Y, top, w, ideal="k"),
    "Hamming loss": lambda Y, top, w: metrics.hamming_loss(Y, top, KS, inverse_propensity=w),
}


def plain_or_scored(plain, scored, Y, top, w, **given):
    if w is None:
        return getattr(metrics, plain)(Y, top, KS, **given)
    return getattr(metrics, scored)(Y, top, KS, inverse_propensity=w, normalize=False, **given)


@pytest.mark.parametrize("name", DECOMPOSABLE)
def test_theorems_4_1_and_4_4_with_drop_labels(world, name):
    """A fixed complete truth, labels dropped independently. 400 draws."""
    _, complete, top, propensity = world
    rng = np.random.default_rng(2)
    metric = DECOMPOSABLE[name]
    exact = metric(complete, top, None)
    observed = [drop_labels(complete, propensity, rng) for _ in range(DRAWS)]
    assert within([metric(Y, top, 1 / propensity) for Y in observed], exact).all()
    assert not within([metric(Y, top, None) for Y in observed], exact).any()


# The gains of table 1 (b): (Y, top, weights, labels a row of the complete truth).
PER_RELEVANT = {
    "recall": metrics.recall,
    "MRR": lambda *args, **kwargs: metrics.mrr(*args, over="relevant", **kwargs),
    "ADG": metrics.adg,
    "F1": metrics.f_beta,
    "F2": lambda *args, **kwargs: metrics.f_beta(*args, beta=2.0, **kwargs),
    "F1 as printed": lambda *args, **kwargs: metrics.f_beta(*args, denominator="printed", **kwargs),
}


@pytest.mark.parametrize("name", PER_RELEVANT)
def test_theorem_4_2(world, name):
    """A fixed complete truth with |y*| known, 400 draws, labels dropped independently; with the observed |y| in its
    place the estimate is biased, plain or propensity-scored."""
    _, complete, top, propensity = world
    rng = np.random.default_rng(4)
    metric = PER_RELEVANT[name]
    exact = metric(complete, top, KS)
    sizes = complete.sum(axis=1)
    scored, plain, own_size = [], [], []
    for _ in range(DRAWS):
        Y = drop_labels(complete, propensity, rng)
        scored.append(metric(Y, top, KS, inverse_propensity=1 / propensity, n_relevant=sizes))
        plain.append(metric(Y, top, KS))
        own = np.asarray(Y.sum(axis=1)).ravel()
        own_size.append(metric(Y, top, KS, inverse_propensity=1 / propensity, n_relevant=own))
    assert within(scored, exact).all()
    assert not within(plain, exact).all()
    assert not within(own_size, exact).any()
