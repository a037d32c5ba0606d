"""Every number of a report beside ``evaluate`` and slow counts of the same."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.core import metrics as m
from xcrepro.core.metrics import registry
from xcrepro.tools.reports import compute, sentences
from xcrepro.tools.reports.given import by_seed, collect

KS = (1, 3, 5)


@pytest.fixture(scope="module")
def given(small):
    return collect(small.Y, small.tops, train_truth=small.train)


def weights(small):
    counts = small.train.getnnz(axis=0)
    return counts, xc.propensity.inverse(counts, 400, 0.55, 1.5)


def test_every_metric_is_the_one_that_evaluate_has(small, made):
    counts, inverse = weights(small)
    names = [name for name in compute.metrics_in() if "hierarchy" not in registry.METRICS[name].needs] + ["ECE"]
    how = {"metrics": names, "confidence_level": 0.95, "n_resamples": 60}
    expected = xc.evaluate(small.Y, small.tops, KS, inverse, counts, **how)
    ours, fractions = made.frame(), expected["metric"] != "label entropy"
    assert ours["value"].tolist() == expected["value"].tolist()
    assert ours[["model", "metric", "k"]].equals(expected[["model", "metric", "k"]])
    assert ours["low"].tolist() == expected["low"].clip(0).tolist()
    assert ours["high"].tolist() == expected["high"].clip(upper=np.where(fractions, 1, np.inf)).tolist()


def test_pairs_are_those_of_compare_and_corrected_over_all_of_them(small, made):
    counts, inverse = weights(small)
    names = ["P@1", "nDCG@5", "PSP@5", "macro-F1@5", "ECE@5"]
    expected = xc.compare(
        small.Y, small.tops, names, KS, inverse_propensity=inverse, label_counts=counts, n_resamples=60
    )
    keys = ["metric", "k", "left", "right"]
    one, other = (table.set_index(keys).sort_index() for table in (made.frame("pairs"), expected))
    pd.testing.assert_frame_equal(one, other)
    names = ["R", "MRR@2", *registry.FAMILIES]
    own, pairs = compute.metrics_and_pairs(collect(small.Y, small.tops), KS, names, n_resamples=60)
    pd.testing.assert_frame_equal(pairs, xc.compare(small.Y, small.tops, names, KS, n_resamples=60))
    assert {"MRR", *registry.FAMILIES} <= {*own["metric"]}


def test_one_rule_corrects_all_comparisons_of_a_report(small):
    tops = {**small.tops, "third": small.drawn(1)}
    given = collect(small.Y, tops)
    _, pairs = compute.metrics_and_pairs(given, KS, n_resamples=100)
    assert len(pairs) == 3 * 4
    assert pairs["p"].tolist() == m.holm(pairs["p raw"]).tolist()
    tests = compute.t_tests(given, compute.couples_of(given, "good"), KS, 0)
    assert tests["p"].tolist() == m.holm(tests["p raw"]).tolist()


def test_t_tests_are_the_macro_t_test(small, given):
    table = compute.t_tests(given, [("good", "bad")], KS, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", m.SharedErrorsWarning)
        expected = m.macro_t_test(small.Y, small.good, small.bad, KS, n_resamples=100)
    assert table["p raw"].tolist() == [one.p for one in expected]
    assert table["value"].tolist() == [one.difference for one in expected]


def test_bins_have_the_ceiling_of_their_labels(small, made):
    table = made.frame("bins")
    counts, _ = weights(small)
    for row in table.itertuples():
        low, _, high = row.bin.rstrip("+").partition("-")
        labels = (counts >= int(low)) & (counts <= int(high or (low if row.bin == "0" else 10**9)))
        assert row.labels == labels.sum()
        assert row.ceiling == m.best_macro_f1(csr_matrix(small.Y[:, labels]), row.k)
        assert row.value <= row.ceiling + 1e-12


def test_a_ceiling_that_is_too_large_a_programme_is_a_bound_above_it(given, made, monkeypatch):
    monkeypatch.setattr(compute, "_EXACT_CEILING", -1)
    bound = compute.bins(made.frame(), given)
    assert set(bound["ceiling is"]) == {"bound"}
    assert (bound["ceiling"] >= made.frame("bins")["ceiling"] - 1e-12).all()


def test_bands_add_up_to_the_metrics_and_count_what_they_say(small, made):
    bands, counts = made.frame("bands"), weights(small)[0]
    table = made.frame().set_index(["model", "metric", "k"])["value"]
    Y = small.Y.toarray() > 0
    for model, rows in bands.groupby("model"):
        assert rows["P"].sum() == pytest.approx(table[model, "P", 5], abs=1e-12)
        assert rows["PSP"].sum() == pytest.approx(table[model, "PSP", 5], abs=1e-12)
        assert rows["labels"].sum() == 30
        assert rows["positives"].sum() == Y.sum()
        hits = [counts[label] for i, row in enumerate(small.tops[model].ids[:, :5]) for label in row if Y[i, label]]
        assert rows["hits"].sum() == len(hits)
        rare = rows[rows["band"].isin(["0", "1-9"])]["hits"].sum()
        assert rare == sum(count < 10 for count in hits)


def test_calibration_is_evaluate_before_and_after_cross_fitting(small, made):
    table = made.frame("calibration").set_index(["model", "metric", "state", "k"])["value"]
    for model, top in small.tops.items():
        for k in KS:
            before = top.head(k)
            after = xc.calibrate.cross_fit_top(small.Y, before)
            for state, one in (("before", before), ("after", after)):
                for row in xc.evaluate(small.Y, one, k, metrics=["ECE", "ACE", "Brier", "NLL"]).itertuples():
                    assert table[model, row.metric, state, k] == row.value
    last = made.frame("calibration").query("k == 5")
    assert last[["low", "high"]].notna().all(axis=None)
    corrected = made.frame("calibration").query("metric == 'ECE corrected'")
    assert set(corrected["state"]) == {"before"}  # beside a map that was fitted to these hits it would say 0
    for row in corrected.itertuples():
        found = m.corrected_ece(small.Y, small.tops[row.model], row.k)
        assert (row.value, row.low, row.high) == (found.corrected, found.low, found.high)
    one = m.evaluate(small.Y, small.good, metrics="ECE@5", confidence_level=0.95, n_resamples=60).iloc[0]
    own = last.query("model == 'good' and metric == 'ECE' and state == 'before'")
    assert own[["low", "high"]].to_numpy().tolist() == [[one.low, one.high]]


def test_reliability_is_that_of_the_pairs(small, made):
    found = made.frame("reliability").query("model == 'bad' and state == 'before'").drop(columns=["model", "state"])
    expected = m.reliability(*m.pairs(small.Y, small.bad, 5))
    pd.testing.assert_frame_equal(found.reset_index(drop=True), expected)


def test_the_price_is_greedy_selection_evaluated_on_the_truth(small, made):
    table = made.frame("price")
    assert table["beta"].tolist() == [*compute.BETAS] * 2
    for row in table.itertuples():
        chosen = xc.decide.greedy_coverage(small.tops[row.model].to_csr(), 5, row.beta)
        assert (row.P, row.Cov) == (m.precision(small.Y, chosen, 5)[0], m.coverage(small.Y, chosen, 5)[0])
    plain = made.frame().set_index(["model", "metric", "k"])[["value", "low", "high"]]
    assert table.iloc[0][["P", "P low", "P high"]].tolist() == plain.loc[("good", "P", 5)].tolist()
    assert table.iloc[0][["Cov", "Cov low", "Cov high"]].tolist() == plain.loc[("good", "coverage", 5)].tolist()


def test_labels_and_points_are_counted_one_by_one(small, made):
    Y = small.Y.toarray() > 0
    labels, points = made.frame("labels").set_index("label"), made.frame("points")
    for model, top in small.tops.items():
        hits = np.array([[label in top.ids[i, :5] and Y[i, label] for label in range(30)] for i in range(120)])
        predicted = np.array([sum(label in row[:5] for row in top.ids) for label in range(30)])
        assert points[f"{model} hits"].tolist() == hits.sum(axis=1).tolist()
        assert labels[f"{model} hits"].tolist() == hits.sum(axis=0)[labels.index].tolist()
        assert labels[f"{model} predicted"].tolist() == predicted[labels.index].tolist()
    assert points["good nDCG@5"].tolist() == [
        m.ndcg(small.Y[i], small.good.rows([i]), 5)[0] for i in range(120)
    ]  # of each point alone
    assert labels["train points"].tolist() == weights(small)[0][labels.index].tolist()
    counted = made.frame("differences").set_index("counted")
    d = points["good hits"] - points["bad hits"]
    ways = [(d > 0).sum(), (d < 0).sum(), (d == 0).sum()]
    assert counted.loc["points", ["more", "fewer", "as many"]].tolist() == ways


def test_the_most_different_points_name_the_labels_that_only_one_has(small, given):
    points = compute.by_point(given, 5)
    found = compute.most_different(points, "good", "bad", 3)
    found = compute.with_labels(given, found, "good", "bad", 5)
    Y = small.Y.toarray() > 0
    largest = (points["good hits"] - points["bad hits"]).abs().max()
    assert abs(found.loc[0, "good hits"] - found.loc[0, "bad hits"]) == largest
    for row in found.to_dict("records"):
        relevant = set(np.flatnonzero(Y[row["point"]]))
        a, b = (set(top.ids[row["point"], :5]) for top in (small.good, small.bad))
        assert row["only good"] == "; ".join(map(str, sorted(relevant & a - b)[:5]))
        neither = [*map(str, sorted(relevant - a - b))] or [""]
        assert row["neither"].split("; ")[0] == neither[0]


def test_seeds_are_one_model_whose_error_has_both_parts(small):
    tops = {f"net.seed{seed}": small.drawn(seed) for seed in range(4)} | {"good": small.good}
    given = collect(small.Y, tops)
    assert given.models == ["net", "good"]
    metrics, pairs = compute.metrics_and_pairs(given, (1, 5), ["P"])
    row = metrics.set_index(["model", "metric", "k"]).loc[("net", "P", 5)]
    values = np.array([m.precision(small.Y, small.drawn(seed), 5)[0] for seed in range(4)])
    assert row["value"] == pytest.approx(values.mean(), abs=1e-15)
    assert row["seeds"] == 4
    assert row["stderr runs"] == pytest.approx(values.std(ddof=1) / 2)
    assert row["stderr"] == pytest.approx(np.hypot(row["stderr points"], row["stderr runs"]))
    assert "over 4 seeds" in sentences.seeds(metrics, 5)
    assert "and seeds" in sentences.leader(metrics, pairs, "P", 5)
    assert any("Of net" in note for note in sentences.reports_without(given, (1, 5)))


@pytest.mark.parametrize("names", [["a.seed0", "a.seed00"], ["a.seed1", "a"], ["a", "a.seed1"]])
def test_a_seed_twice_or_a_model_with_and_without_is_refused(small, names):
    with pytest.raises(xc.errors.ArgumentError, match="seed of 'a'"):
        by_seed(dict.fromkeys(names, small.good))


def test_ranks_share_ties_and_take_the_models_that_all_datasets_have():
    def table(**values):
        return pd.DataFrame([(n, "P", 1, v) for n, v in values.items()], columns=["model", "metric", "k", "value"])

    placed = compute.ranks({"x": table(a=0.5, b=0.4, c=0.4), "y": table(a=0.1, b=0.3, c=0.2, d=0.9)}, "P", 1)
    assert placed["model"].tolist() == ["b", "a", "c"]
    assert placed["mean rank"].tolist() == [1.75, 2.0, 2.25]
    assert compute.ranks({"x": table(a=0.5)}, "PSP", 1).empty


# ---------------------------------------------------------------- sentences


def test_metrics_over_seen_labels_and_gaps_are_those_of_the_calls(small, given):
    train = small.train.copy().tolil()
    train[:, :4] = 0
    unseen = collect(small.Y, small.tops, train_truth=csr_matrix(train))
    found = compute.seen(unseen, KS)
    counts = unseen.label_counts
    for model, top in small.tops.items():
        own = found[found["model"] == model]
        P = own[own["metric"] == "P"]
        assert P["value"].tolist() == m.precision(small.Y, top, KS).tolist()
        assert P["seen"].tolist() == m.precision(*xc.diagnose.over_seen(small.Y, top, counts), KS).tolist()
        most = small.Y[:, counts > 0].getnnz(axis=0) > 0
        assert (own[own["metric"] == "coverage"]["seen"] <= most.mean() + 1e-12).all()
    rare = set(np.flatnonzero(given.label_counts == 0)) & set(small.Y.indices)
    assert len(compute.seen(given, KS)) == (len(found) if rare else 0)
    assert not len(compute.seen(collect(small.Y, small.tops), KS))
    gaps = compute.gaps(given, 5)
    assert gaps.groupby("model").size().max() <= compute.WORST
    own = m.label_gaps(small.Y, small.good, 5)
    assert gaps[gaps["model"] == "good"]["label"].tolist() == own["label"][: compute.WORST].tolist()


def test_what_two_models_share_is_what_the_calls_say(small, given):
    both = [("good", "bad")]
    line = compute.overlaps(given, both, KS).iloc[0]
    assert line[[f"overlap@{k}" for k in KS]].tolist() == m.overlap(small.good, small.bad, KS).tolist()
    assert line["RBO"] == m.rank_biased_overlap(small.good, small.bad)
    table = compute.changed(given, both, 5)
    assert table[["of left", "of right"]].sum().tolist() == [(top.ids[:, :5] >= 0).sum() for top in small.tops.values()]
    whole = compute.changed(collect(small.Y, small.tops), both, 5)
    assert whole["both"].tolist() == [table["both"].sum()]


def test_of_many_models_those_with_the_best_are_looked_at(small):
    many = collect(small.Y, {f"m{i}": small.good for i in range(compute.MANY + 1)})
    assert compute.couples_of(many, "m3") == [("m3", name) for name in many.models if name != "m3"]
    few = collect(small.Y, {f"m{i}": small.good for i in range(4)})
    assert compute.couples_of(few, "m3") == list(itertools.combinations(few.models, 2))
