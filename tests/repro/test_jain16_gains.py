"""The Monte Carlo behind table 1 of Jain et al. 2016, and what the item on propensity-scored metrics in hindsight computes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro import metrics, published
from xcrepro.propensity import drop_labels
from xcrepro.repro import jain16_gains, jain16_since
from xcrepro.repro.jain16_gains import GAINS
from xcrepro.truth import Truth

KS = (1, 3, 5)


@pytest.fixture(scope="module")
def ds():
    return xc.twin("eurlex-4k", scale=0.03, seed=1)


@pytest.fixture(scope="module")
def top(ds):
    rng = np.random.default_rng(0)
    noisy = ds.test.marginals.toarray() + rng.gumbel(0, 0.05, ds.test.marginals.shape)
    return xc.TopK.from_scores(noisy, 8)


# ---------------------------------------------------------------- table 1


def written_out(name, y, order, k, w=None, n_relevant=None) -> float:
    """Table 1 for one point in plain loops, w 1 and n_relevant |y| for the plain gain."""
    w = np.ones(y.size) if w is None else w
    size = y.sum() if n_relevant is None else n_relevant
    rank = {label: place + 1 for place, label in enumerate(order[:k])}
    hits = [(w[label], r) for label, r in rank.items() if y[label]]
    total = sum(weight for weight, _ in hits)
    discounted = sum(weight / math.log2(r + 1) for weight, r in hits)
    if name == "Precision@k":
        return total / k
    if name == "nDCG@k":
        return discounted / sum(1 / math.log2(r + 1) for r in range(1, k + 1))
    if name == "Hamming loss":
        return sum(w[label] * (1 - 2 * (label in rank)) for label in np.flatnonzero(y)) + len(rank)
    above = {
        "Recall@k": total,
        "MRR": sum(weight / r for weight, r in hits),
        "ADG": discounted,
        "F1 as printed": 2 * total * size / (size + 1),
        "F1 with k below": 2 * total * size / (size + k),
    }[name]
    return above / size if size else 0.0


@pytest.mark.parametrize("name", GAINS)
def test_every_gain_is_table_1s(name, ds, top):
    """Both forms on one draw, against plain loops over points and labels."""
    w = 1 / ds.propensities
    left = drop_labels(ds.test.Y, ds.propensities, 5)
    sizes = Truth.of(ds.test.Y).sizes
    plain, scored = GAINS[name][2:]
    ours = [jain16_gains._values([plain], left, top)[0], jain16_gains._values([scored], left, top, w, sizes)[0]]
    Y = left.toarray()
    for at, k in enumerate(KS):
        rows = [(y, order, n) for y, order, n in zip(Y, top.ids, sizes, strict=True)]
        assert ours[0][at] == pytest.approx(np.mean([written_out(name, y, order, k) for y, order, _ in rows]))
        assert ours[1][at] == pytest.approx(np.mean([written_out(name, y, order, k, w, n) for y, order, n in rows]))


def test_the_functions_named_are_the_ones_used(ds, top):
    """The text in the column ``function``, run, gives the values of the Monte Carlo."""
    w, sizes = 1 / ds.propensities, Truth.of(ds.test.Y).sizes
    for row in jain16_gains.functions().itertuples():
        given = "Y, top, ks, inverse_propensity=w" + (", n_relevant=sizes" if row.group == "b" else "")
        names = {"metrics": metrics, "Y": ds.test.Y, "top": top, "ks": KS, "w": w, "sizes": sizes}
        call = eval(row.function.replace("...", given), names)
        ours = jain16_gains._values([GAINS[row.gain][3]], ds.test.Y, top, w, sizes)[0]
        assert call == pytest.approx(ours, rel=1e-15), row.gain


def test_table_1_is_complete():
    formulas = published.formulas()
    printed = formulas[formulas["source"] == "jain16:table1"]
    ours = {name.replace("F1 as printed", "F-beta").replace("Hamming", "-Hamming") for name in GAINS}
    assert set(printed["name"]) == ours - {"F1 with k below"}
    groups = {name: group for name, (group, *_) in GAINS.items()}
    assert all(groups.get(row["name"].lstrip("-"), "b") == row["group"] for _, row in printed.iterrows())


def test_scored_gains_are_unbiased_and_plain_ones_are_not(ds, top):
    table = jain16_gains.monte_carlo(ds.test.Y, top, ds.propensities, draws=300, seed=0)
    away = jain16_gains.sigmas(table)
    assert len(table) == 24
    assert (away["scored"] <= 4).all()
    assert (away["unbiased"] == "yes").all()
    assert (away["plain"] > 4).sum() >= 20
    assert (table["scored error"] > 0).all()
    assert jain16_gains.verdict(table).startswith("propensity-scored: 24 of 24 within 4 standard errors")


def test_wrong_propensities_are_found(ds, top, monkeypatch):
    """Planted: labels go missing with other propensities than the weights are made of."""
    true = drop_labels
    monkeypatch.setattr(jain16_gains, "drop_labels", lambda Y, p, rng: true(Y, np.sqrt(p), rng))
    table = jain16_gains.monte_carlo(ds.test.Y, top, ds.propensities, draws=100, seed=0)
    assert (jain16_gains.sigmas(table)["unbiased"] == "no").sum() >= 20


def test_the_corollary(ds, top):
    table = jain16_gains.corollary(ds.test.Y, top, ds.propensities, draws=300, seed=0)
    assert len(table) == 9
    away = jain16_gains.sigmas(table)
    assert (away["scored"] <= 4).all()
    assert (away["plain"] > 4).all()


def test_the_mean_and_its_error():
    draws = np.array([[[1.0] * 3], [[3.0] * 3]])
    table = jain16_gains._table(["g"], np.array([[2.0] * 3]), draws, draws + 1)
    assert table["scored"].tolist() == [2.0] * 3
    assert table["plain"].tolist() == [3.0] * 3
    assert table["scored error"].tolist() == pytest.approx([1.0] * 3)  # deviation sqrt(2), over sqrt(2)
    assert jain16_gains.sigmas(table)["plain"].tolist() == pytest.approx([1.0] * 3)


# ---------------------------------------------------------------- in hindsight


def test_cases_keep_each_labels_rate_and_prefer_the_plain_ones(ds):
    case = jain16_since.by_case(ds)
    truth = Truth.of(ds.test.Y)
    eta = jain16_since.of_pairs(truth, ds.test.marginals)
    assert case.shape == eta.shape
    assert (case > 0).all()
    assert (case <= 1).all()
    for label in np.argsort(-ds.label_counts)[:8]:
        at = truth.indices == label
        assert (np.diff(case[at][np.argsort(eta[at])]) >= 0).all()
    # Over train and test together each label is marked as often as its p says.
    rows = [Truth.of(split.Y) for split in (ds.train, ds.test)]
    labels = np.concatenate([part.indices for part in rows])
    values = np.concatenate(
        [jain16_since.of_pairs(p, s.marginals) for p, s in zip(rows, (ds.train, ds.test), strict=True)]
    )
    for label in np.unique(truth.indices)[:20]:
        at = truth.indices == label
        slope = (case[at] / eta[at])[np.argmin(eta[at])]  # t_l, from the pair least likely to be cut at 1
        mean = np.minimum(1, slope * values[labels == label]).mean()
        assert mean == pytest.approx(ds.propensities[label], rel=1e-6) or case[at].min() == 1


def test_of_pairs_reads_in_row_order():
    Y = csr_matrix(np.array([[0, 1, 1], [1, 0, 0]]))
    values = csr_matrix(np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]))
    assert jain16_since.of_pairs(Truth.of(Y), values).tolist() == [0.2, 0.3, 0.4]


def test_dropping_pairs():
    Y = np.ones((2000, 2))
    kept = np.tile([1.0, 0.25], 2000)
    left = jain16_since.drop_pairs(Truth.of(Y), kept, np.random.default_rng(0)).toarray()
    assert left[:, 0].all()
    assert abs(left[:, 1].mean() - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 2000)


def test_simulated_estimates_lie_at_their_expected_values(ds, top):
    """The mean of each estimator of a sum over pairs is known: P sees y p, bare PSP y p w, whatever the draw."""
    draws = 400
    found = jain16_since.simulate(ds, {"one": top}, draws, seed=3)
    complete = metrics.precision(ds.test.Y, top, KS)
    assert found.complete[0] == pytest.approx(complete)
    truth, case = Truth.of(ds.test.Y), jain16_since.by_case(ds)
    hit = truth.hits(top.ids[:, :5].copy())
    p = np.where(hit, ds.propensities[top.ids[:, :5]], 0)
    of_case = csr_matrix((case, truth.indices, truth.indptr), shape=ds.test.Y.shape).toarray()
    seen = np.where(hit, np.take_along_axis(of_case, top.ids[:, :5].astype(int), 1), 0)
    scaled = np.divide(seen, p, out=np.zeros_like(seen), where=hit)
    expected = {
        jain16_since.PLAIN: [p[:, :k].sum(axis=1).mean() / k for k in KS],
        jain16_since.TRUE: complete,
        jain16_since.SALIENT: [scaled[:, :k].sum(axis=1).mean() / k for k in KS],
    }
    for name, value in expected.items():
        values = found.values[:, jain16_since.ESTIMATORS.index(name), 0]
        error = values.std(axis=0, ddof=1) / math.sqrt(draws)
        assert (np.abs(values.mean(axis=0) - value) <= 4 * error).all(), name
    # and the ratio is the bare value over a number that no model changes
    ratio = found.values[:, jain16_since.ESTIMATORS.index(jain16_since.RATIO), 0]
    assert (ratio <= 1).all()
    assert not np.allclose(ratio.mean(axis=0), complete, rtol=0.05)


def planted(values) -> jain16_since.Draws:
    """Three models with 0.5, 0.4 and 0.395; every estimator sees ``values`` (draws, models) at every k."""
    complete = np.tile(np.array([0.5, 0.4, 0.395])[:, None], 3)
    shape = (len(values), len(jain16_since.ESTIMATORS), 3, 3)
    return jain16_since.Draws(("a", "b", "c"), complete, np.broadcast_to(np.array(values)[:, None, :, None], shape))


def test_errors_and_orders_on_planted_draws():
    found = planted([[0.6, 0.4, 0.4], [0.4, 0.4, 0.6]])
    bias = jain16_since.errors(found, ks=(3,)).iloc[0]
    assert (bias["bias"], bias["least"], bias["largest"]) == pytest.approx(((0 + 0 + 10.5) / 3, 0, 10.5))
    assert bias["spread"] == pytest.approx(100 * math.sqrt(0.02) * 2 / 3)
    order = jain16_since.orders(found, ks=(1,)).iloc[0]
    # a > b: right, then a tie; a > c: right, then wrong; b and c are too near to count.
    assert (order["pairs"], order["right"], order["worst pair"], order["right there"]) == (2, 62.5, "a > c", 50.0)
    assert jain16_since.orders(found, apart=0.2, ks=(1,)).iloc[0]["pairs"] == 0


def test_known_probabilities_lose_precision_only_where_nothing_is_missing(monkeypatch):
    """With the twin's own probabilities the direction is a theorem, up to the draw of test labels: eta is best for P, eta / p
    for the weighted gain."""
    ds = xc.twin("eurlex-4k", scale=0.1)

    class Same:
        def predictions(self, X, k):
            return xc.TopK.from_scores(ds.test.marginals, min(k, ds.test.Y.shape[1]))

    monkeypatch.setattr(jain16_since.trained, "training", lambda *_: Same())
    monkeypatch.setattr(jain16_since, "PLACES", 20)
    gains = jain16_since.gains(jain16_since.worlds(ds, draws=20)).set_index(["world", "source", "k"])
    known = gains.xs(jain16_since.KNOWN, level="source")
    for k in KS:
        assert known.loc[("missing", k), "P complete"] >= 0
        assert known.loc[("missing", k), "PSP"] >= 0
        assert known.loc[("complete", k), "P complete"] < 0 < known.loc[("complete", k), "PSP"]
    assert known.loc[("missing", 5), "P complete"] > 0
    # Planted: the model whose probabilities are already those of the complete truth loses from division, even if labels miss.
    assert gains.loc[("missing", "PLT", 1), "P complete"] < 0


def test_blind_guesses(ds, top):
    table = jain16_since.blind(ds, top, seed=0).set_index("guess")
    truth = Truth.of(ds.test.Y)
    assert table.loc["as predicted", "hits"] == truth.hits(top.ids[:, :5].copy()).sum()
    assert table.loc["as predicted", "P"] == pytest.approx(100 * metrics.precision(ds.test.Y, top, 5)[0])
    frequent = np.sort(truth.label_counts()[np.argsort(-ds.label_counts, kind="stable")[:5]])
    assert table.loc["five most frequent labels", "hits"] == frequent.sum()
    four = truth.hits(top.ids[:, :4].copy()).sum()
    for name in ("fifth place: any rare label", "fifth place: a rare label of the topic"):
        assert four <= table.loc[name, "hits"] <= four + len(top)
    guess = jain16_since._with_last(top, [np.array([top.ids[0, 0], 3, 4])] * len(top), np.random.default_rng(0))
    assert np.isin(guess.ids[0, 4], [3, 4])
    assert all(len(set(row)) == 5 for row in guess.ids.tolist())


def test_exchange_at_the_ends(ds):
    table = jain16_since.exchange(ds)
    assert table["weight"].iloc[0] == pytest.approx(math.log(ds.n_train))
    assert table["hits"].iloc[-1] == 1
