"""Propensity-scored metrics in hindsight: estimators against their expected values, orders and worlds that are planted."""

from __future__ import annotations

import math

import numpy as np
import pytest

import xcrepro as xc
from xcrepro import metrics, propensity
from xcrepro.papers.jain16 import since
from xcrepro.truth import Truth

KS = (1, 3, 5)


def test_cases_keep_each_labels_rate_and_prefer_the_plain_ones(twin):
    chance, eta = since.case_propensities(twin), twin.test.marginals.toarray()
    assert ((chance >= 0) & (chance <= 1)).all()
    relevant = twin.test.Y_complete.toarray() > 0
    for label in np.argsort(-twin.label_counts)[:20]:
        at = relevant[:, label]
        case, plain = chance[at, label], eta[at, label]
        assert (case > 0).all()
        assert (np.diff(case[np.argsort(plain)]) >= 0).all()
        # Over train and test together each label is marked as often as its p says.
        slope = (case / plain)[np.argmin(plain)]  # t_l, from the pair least likely to be cut at 1
        seen = twin.train.marginals.toarray()[twin.train.Y_complete.toarray()[:, label] > 0, label]
        mean = np.minimum(1, slope * np.r_[seen, plain]).mean()
        assert mean == pytest.approx(twin.propensities[label], rel=1e-6) or case.min() == 1


def test_simulated_estimates_lie_at_their_expected_values(twin, top):
    """The mean of each estimator of a sum over pairs is known: P sees y p, bare PSP y p w, whatever the draw."""
    draws = 400
    exact, found = since.simulate(twin, {"one": top}, draws, seed=3)
    complete = metrics.precision(twin.test.Y_complete, top, KS)
    assert exact[0] == pytest.approx(complete)
    truth, case = Truth.of(twin.test.Y_complete), since.case_propensities(twin)
    hit = truth.hits(top.ids[:, :5].copy())
    p = np.where(hit, twin.propensities[top.ids[:, :5]], 0)
    seen = np.where(hit, np.take_along_axis(case, top.ids[:, :5].astype(int), 1), 0)
    scaled = np.divide(seen, p, out=np.zeros_like(seen), where=hit)
    values = dict(zip(since.ESTIMATORS, found[:, :, 0].swapaxes(0, 1), strict=True))
    w = propensity.inverse(twin.label_counts, twin.n_train, twin.A, twin.B)
    model = np.where(hit, (twin.propensities * w)[top.ids[:, :5]], 0)
    expected = {
        since.MODEL: [model[:, :k].sum(axis=1).mean() / k for k in KS],
        since.PLAIN: [p[:, :k].sum(axis=1).mean() / k for k in KS],
        since.TRUE: complete,
        since.SALIENT: [scaled[:, :k].sum(axis=1).mean() / k for k in KS],
    }
    for name, value in expected.items():
        error = values[name].std(axis=0, ddof=1) / math.sqrt(draws)
        assert (np.abs(values[name].mean(axis=0) - value) <= 4 * error).all(), name
    # and the ratio is the bare value over a number that no model changes
    assert (values[since.RATIO] <= 1).all()
    assert not np.allclose(values[since.RATIO].mean(axis=0), complete, rtol=0.05)


def test_errors_and_orders_on_planted_draws():
    """Three models with 0.5, 0.4 and 0.395; every estimator sees the same two draws at every k."""
    complete = np.tile(np.array([0.5, 0.4, 0.395])[:, None], 3)
    drawn = np.array([[0.6, 0.4, 0.4], [0.4, 0.4, 0.6]])[:, None, :, None]
    found = ("a", "b", "c"), complete, np.broadcast_to(drawn, (2, len(since.ESTIMATORS), 3, 3))
    row = since.compute(*found).iloc[0]
    assert row[["bias", "least", "largest"]].tolist() == pytest.approx([(0 + 0 + 10.5) / 3, 0, 10.5])
    assert row["spread"] == pytest.approx(100 * math.sqrt(0.02) * 2 / 3)
    # a > b: right, then a tie; a > c: right, then wrong; b and c are too near to count.
    assert row[["pairs", "right", "worst pair", "right there"]].tolist() == [2, 62.5, "a > c", 50.0]
    assert since.compute(*found, apart=0.2)["pairs"].eq(0).all()


def test_known_probabilities_lose_precision_only_where_nothing_is_missing(monkeypatch):
    """With the twin's own probabilities the direction is a theorem, up to the draw of test labels: eta is best for P, eta / p
    for the weighted gain."""
    ds = xc.twin("eurlex-4k", scale=0.1)
    same = xc.TopK.from_scores(ds.test.marginals, 20)
    monkeypatch.setattr(since, "_predict", lambda *_: same)
    monkeypatch.setattr(since.baselines, "PLACES", 20)
    ranked = since.rank_worlds(ds)
    worlds = since.compute_worlds(ds, ranked, draws=20)
    gains = since.compute_gains(ds, ranked, worlds).set_index(["ranking", "source", "world", "k"])
    assert (gains[["PSP model ±", "P complete ±"]] > 0).all(axis=None)
    said = since.findings_worlds(gains.reset_index())
    assert said[1].startswith("Labels missing, the twin's own probabilities divided by the model's p, k = 5: PSP +")
    assert said[1].endswith("the published number rises, precision falls.")
    known = gains.xs(since.KNOWN, level="source")
    own, model = known.loc[since.DIVIDED], known.loc[since.MODELLED]
    # Few labels are missing, so the twin's own p changes few rankings, and the draw of test labels can outweigh them.
    assert (own.loc["missing", ["PSP", "P complete"]] > -0.2).all(axis=None)
    assert (own.loc[("missing", 5), ["PSP", "P complete"]] > 0.1).all()
    assert (own.loc["complete", "PSP"] > -0.2).all()
    assert (own.loc["complete", "P complete"] <= 0).all()
    # The model has far smaller p: its number rises, and precision falls whatever is missing.
    assert (model["PSP model"] > 1).all()
    assert (model["P complete"] < -1).all()


def test_guesses(twin, top):
    found = since.compute_guesses(twin, since.guess(twin, top, seed=0))
    table = found.set_index("guess")
    complete = 100 * metrics.precision(twin.test.Y_complete, top, 5)[0]
    assert table.loc["as predicted", "P complete"] == pytest.approx(complete)
    truth = Truth.of(twin.test.Y)
    assert table.loc["as predicted", "hits"] == truth.hits(top.ids[:, :5].copy()).sum()
    assert table.loc["as predicted", "P"] == pytest.approx(100 * metrics.precision(twin.test.Y, top, 5)[0])
    frequent = truth.label_counts()[np.argsort(-twin.label_counts, kind="stable")[:5]]
    assert table.loc["five most frequent labels", "hits"] == frequent.sum()
    four = truth.hits(top.ids[:, :4].copy()).sum()
    assert table.loc[table.index.str.startswith("fifth"), "hits"].between(four, four + len(top)).all()
    assert table.loc["as predicted", ["PSP change", "PSP ±"]].tolist() == [0, 0]
    assert table["PSP change"].to_numpy() == pytest.approx((table["PSP"] - table["PSP"].iloc[0]).to_numpy())
    said = since.findings_guesses(twin, found, since.compute_exchange(twin))
    assert said[0].endswith("with 1 to 9 train points.")
    assert "a label with 1 train point weighs" in said[-1]
    rare, rng = np.array([5, 6]), np.random.default_rng(0)
    guess = since._with_last(top, [np.array([top.ids[0, 0], 3, 4])] * len(top), rare, rng)
    assert np.isin(guess.ids[0, 4], [3, 4])
    assert all(len(set(row)) == 5 for row in guess.ids.tolist())
    # Where the row has all of its pool: any rare label. Where it has those too: as it was.
    row = xc.TopK.from_ids([[0, 1, 2, 3, 4]], n_labels=8)
    assert since._with_last(row, [np.array([2])], rare, rng).ids[0, 4] in (5, 6)
    assert since._with_last(row, [np.array([2])], np.array([1]), rng).ids[0].tolist() == [0, 1, 2, 3, 4]


def test_a_rare_label_beside_the_first_is_one_of_a_train_point(make_dataset):
    ds = make_dataset([[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 0, 1, 0]], np.eye(5)[:2])
    found = since._beside(ds, np.array([0, 3, -1, 1]), np.array([1, 2, 3]))
    assert [pool.tolist() for pool in found] == [[1, 2], [3], [1, 2, 3], [1]]
    assert since._beside(ds, np.array([4]), np.array([1, 2]))[0].tolist() == [1, 2]  # never seen: all


def test_the_worlds_are_trained_and_judged_on_their_own_truth(twin, monkeypatch):
    """What a model is trained on, and a ranking that is right in the complete truth alone."""
    seen, hidden = [], (twin.test.Y_complete - twin.test.Y).tocsr()
    top = xc.TopK.from_scores(hidden, 5)
    monkeypatch.setattr(since, "_predict", lambda model, ds, Y, seed: seen.append(Y) or top)
    found = since.compute_worlds(twin, since.rank_worlds(twin), draws=2).set_index(["world", "source", "ranking", "k"])
    assert [Y.nnz for Y in seen] == [twin.train.Y.nnz, twin.train.Y_complete.nnz]
    for world in ("missing", "complete"):
        expected = 100 * metrics.precision(twin.test.Y_complete, top, 5)[0]
        assert found.loc[(world, "PLT", since.AS_IS, 5), "P complete"] == pytest.approx(expected)


def test_real_data_are_taken_for_complete(twin, make_dataset, monkeypatch):
    """Labels go missing from train and test by eq. 1; the model's p are smaller, the true ones are known."""
    assert since.known(twin) is twin
    real = make_dataset(twin.train.Y.toarray(), twin.test.Y.toarray(), name="mine")
    ds = since.known(real, seed=1)
    assert (ds.test.Y_complete != real.test.Y).nnz == 0
    assert ds.test.Y.nnz < real.test.Y.nnz
    assert (ds.label_counts <= real.label_counts).all()
    assert ds.propensities == pytest.approx(1 / propensity.inverse(real.label_counts, real.n_train, real.A, real.B))
    assert (1 / since.weights(ds) <= ds.propensities + 1e-12).all()
    assert ds.origin.startswith("mine (real data), ")
    top = xc.TopK.from_scores(twin.test.marginals, 6)
    complete, values = since.simulate(ds, {"one": top}, 60, seed=2)
    table = since.compute(["one"], complete, values)
    assert since.SALIENT not in set(table["estimator"])
    bias = table.set_index(["estimator", "k"])
    assert (bias.loc[since.TRUE, "bias"].abs() < 4 * bias.loc[since.TRUE, "error"]).all()
    assert (bias.loc[since.MODEL, "bias"] > 1).all()
    said = since.findings_estimates(table, 60)
    assert said[-1] == "No two models are a point of P@k apart, so there is no order to get right."
    assert len(since.plot(table).axes) == 1
    monkeypatch.setattr(since, "_predict", lambda *_: top)
    ranked = since.rank_worlds(ds)
    assert since.KNOWN not in {source for _, source, _ in ranked}
    worlds = since.compute_worlds(ds, ranked, draws=3)
    gains = since.compute_gains(ds, ranked, worlds)
    assert since.plot_worlds(worlds, gains).get_suptitle().startswith("PLT's scores divided by")
    assert len(since.findings_worlds(gains)) == 2


def test_rare_labels_are_there_without_any_seen_one_to_nine_times(make_dataset):
    """As Bibtex, whose rarest label has 27 train points: a crash before."""
    assert since.rare_labels(np.array([0, 1, 9, 10] * 20)).tolist() == [i for i in range(80) if i % 4 in (1, 2)]
    counts = np.arange(50, 250)
    assert since.rare_labels(counts).tolist() == list(range(20))
    assert since.rare_labels(np.array([0, 30, 20])).tolist() == [1, 2]
    train = (np.arange(60)[:, None] < np.arange(20, 60)[None, ::2]).astype(float)
    ds = since.known(make_dataset(train, train[:10]))
    top = xc.TopK.from_ids(np.tile(np.arange(5), (10, 1)), n_labels=20)
    assert len(since.compute_guesses(ds, since.guess(ds, top))) == 5


def test_what_a_hit_weighs_ends_with_the_most_frequent_label(make_dataset):
    ds = make_dataset(np.arange(12)[:, None] < [1, 2, 7], np.eye(3))
    table = since.compute_exchange(ds)
    assert table["points"].tolist() == [1, 3, 7]
    assert table["hits"].iloc[-1] == 1


def test_findings_tell_the_unbiased_from_the_others():
    """Planted: one estimator with a bias, one that turns a pair in half of the draws."""
    complete = np.tile(np.array([0.5, 0.4])[:, None], 3)
    noise = np.random.default_rng(0).normal(0, 0.01, (50, len(since.ESTIMATORS), 2, 3))
    values = complete + noise - noise.mean(axis=0)
    values[:, 0] += 0.1
    values[::2, 3, 0], values[::2, 3, 1] = values[::2, 3, 1].copy(), values[::2, 3, 0].copy()
    table = since.compute(["a", "b"], complete, values)
    said = since.findings_estimates(table, 50)
    assert since.PLAIN not in said[0]
    assert since.TRUE in said[0]
    assert said[1].startswith(f"Clearly off (points at k = 1 / 5): {since.PLAIN} (+10.0 / +10.0)")
    assert f"worst is {since.MODEL} at k = " in said[-1]
    assert "a > b right in 50 % of the draws" in said[-1]
    assert len(since.plot(table).axes) == 2
