"""Estimates from judged rows against slow oracles, all rows judged, and simulation of what the intervals promise."""

from __future__ import annotations

import io
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests import naive
from tests.refused import refused
from xcrepro.__main__ import main
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.judged import sampling

j = xc.judged
METRICS = ("P", "R", "nDCG", "nDCG (ideal k)", "AP", "abandonment", "coverage")
ORACLES = {"P": naive.precision, "R": naive.recall, "nDCG": naive.ndcg, "AP": naive.average_precision}


@pytest.fixture(autouse=True)
def quiet():
    """Small examples are below what can be trusted; the tests of the warnings ask for them by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", j.JudgedWarning)
        yield


def problem(n=60, n_labels=12, k=4, seed=0, missing=0.4):
    """Complete truth, observed truth, two models."""
    rng = np.random.default_rng(seed)
    complete = rng.random((n, n_labels)) < 3 / n_labels
    observed = complete & (rng.random(complete.shape) >= missing)
    hard, shared = rng.random((n, 1)), rng.random(complete.shape)  # some rows are hard for both models
    models = {
        name: xc.TopK.from_scores(complete * weight * hard + shared + 0.2 * rng.random(complete.shape), k)
        for name, weight in (("one", 1.0), ("other", 0.8))
    }
    return complete.astype(float), observed.astype(float), models


def said(complete, rows, labels=None):
    """Verdicts of a perfect judge on every label of the rows."""
    labels = range(complete.shape[1]) if labels is None else labels
    return [(int(row), label, int(complete[row, label])) for row in rows for label in labels]


# ---------------------------------------------------------------- oracles


def slow_estimate(f_all, f, y, method):
    """The formulas, with NumPy's covariance."""
    weight = {"ppi": 1.0, "judged only": 0.0}.get(method)
    lost = 1
    if weight is None:
        weight, lost = (np.clip(np.cov(y, f)[0, 1] / np.var(f, ddof=1), 0, 1) if np.ptp(f) > 0 else 1.0), 2
    d = y - weight * f
    value = d.mean() + weight * f_all.mean()
    squares = ((d - d.mean()) ** 2).sum()
    squares += 2 * weight * np.var(y, ddof=1) if squares > 1e-20 else 0  # two rows more, as far apart as rows are
    error = squares / (d.size - lost) / d.size * (1 - d.size / f_all.size)
    return value, np.sqrt(error)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 40), st.sampled_from(["ppi++", "ppi", "judged only"]))
def test_estimates_equal_the_formulas_row_by_row(seed, n, method):
    complete, observed, models = problem(seed=seed)
    rows = np.sort(j.sample(60, n, seed))
    found = j.estimate(observed, models, said(complete, rows), (1, 4), list(ORACLES), complete=True, method=method)
    for line in found.itertuples():
        rankings = [[int(label) for label in ids] for ids in models[line.model].ids]

        def value(truth, row, line=line, rankings=rankings):
            return ORACLES[line.metric]([set(np.flatnonzero(truth[row]).tolist())], [rankings[row]], line.k)

        f_all = np.array([value(observed, row) for row in range(60)])
        y = np.array([value(complete, row) for row in rows])
        slow, error = slow_estimate(f_all, f_all[rows], y, method)
        assert line.value == pytest.approx(slow, abs=1e-12)
        assert line.stderr == pytest.approx(error, abs=1e-9)
        assert line.observed == pytest.approx(f_all.mean(), abs=1e-12)
        assert line.low <= line.high


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_with_all_rows_judged_nothing_is_left_to_guess(seed):
    complete, observed, models = problem(seed=seed)
    verdicts = said(complete, range(60))
    found = j.estimate(observed, models, verdicts, (1, 3), METRICS, complete=True)
    true = xc.evaluate(complete, models, (1, 3), metrics=METRICS)
    rows = found["metric"] != "coverage"
    assert np.allclose(found[rows][["value", "low", "high"]], true[rows][["value"]], atol=1e-12)
    covered = found[~rows]
    assert (covered["low"] <= true[~rows]["value"] + 1e-12).all()
    assert (true[~rows]["value"] <= covered["high"] + 1e-12).all()
    gaps = j.compare(observed, models, verdicts, 3, "P")
    one, other = true.query("metric == 'P' and k == 3")["value"]
    assert np.allclose(gaps[["value", "low", "high"]], one - other, atol=1e-12)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 30))
def test_the_bounds_of_coverage_equal_sets(seed, n):
    """Of each open label, the sums of r / m and of r over the judged rows, one by one."""
    complete, observed, models = problem(n_labels=40, seed=seed, missing=0.7)
    rows, top = j.sample(60, n, seed), models["one"]
    line = j.estimate(observed, top, said(complete, rows), 4, "coverage", complete=True).iloc[0]
    covered = {label for row in range(60) for label in top.ids[row] if observed[row, label]}
    predicted = [label for ids in top.ids for label in ids]
    opened = set(predicted) - covered
    right = [(row, label) for row in rows for label in top.ids[row] if label in opened and complete[row, label]]
    low = max(60 / n * sum(1 / predicted.count(label) for _, label in right), len({label for _, label in right}))
    high = min(60 / n * len(right), len(opened))
    assert line["observed"] == pytest.approx(len(covered) / 40)
    assert line["value"] == pytest.approx((len(covered) + (low + high) / 2) / 40)
    assert line["low"] >= (len(covered) + len({label for _, label in right})) / 40 - 1e-12
    assert line["high"] <= (len(covered) + len(opened)) / 40 + 1e-12


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 30))
def test_bounds_equal_the_metric_with_all_unjudged_wrong_or_right(seed, n):
    complete, observed, models = problem(seed=seed)
    top, rows = models["one"], j.sample(60, n, seed) if n else []
    found = j.bounds(observed, top, said(complete, rows, range(0, 12, 2)), (1, 4), METRICS)
    low, high, known = observed.copy(), observed.copy(), observed > 0
    for row in rows:
        low[row, ::2] = high[row, ::2] = complete[row, ::2]
        known[row, ::2] = True
    for row in range(60):
        for label in top.ids[row]:
            high[row, label] = 1.0 if not known[row, label] else high[row, label]
    ends = [xc.evaluate(truth, top, (1, 4), metrics=METRICS)["value"].to_numpy() for truth in (low, high)]
    assert np.allclose(found["low"], np.minimum(*ends))
    assert np.allclose(found["high"], np.maximum(*ends))
    share = {k: np.mean([known[row, label] for row in range(60) for label in top.ids[row, :k]]) for k in (1, 4)}
    assert np.allclose(found["judged"], found["k"].map(share))
    assert np.allclose(found["residual"], found["high"] - found["low"])


# ---------------------------------------------------------------- what the intervals promise


def recall_and_ndcg(seed, n_rows=2000, k=5):
    """(rows, 2 models) of R@5 and nDCG@5: with the complete truth, without 1.5 % of the labels, without 3 % of the rows."""
    rng = np.random.default_rng(seed)
    size = 1 + rng.poisson(4, n_rows)
    relevant = np.arange(30) < size[:, None]
    order = np.argsort(-(rng.normal(size=(2, n_rows, 30)) + 1.6 * relevant), axis=2)[:, :, :k]

    def values(truth):
        hits, n = np.take_along_axis(np.stack([truth, truth]), order, 2), truth.sum(axis=1)
        worth = 1 / np.log2(np.arange(2, k + 2))
        best = np.concatenate([[1.0], np.cumsum(worth)])[np.minimum(n, k)]
        return (hits.sum(axis=2) / np.maximum(n, 1)).T, ((hits * worth).sum(axis=2) / best).T

    kept, whole = rng.random(relevant.shape) >= 0.015, rng.random((n_rows, 1)) >= 0.03
    return [values(truth) for truth in (relevant, relevant & kept, relevant & whole)]


@pytest.mark.parametrize("n", [20, 50, 100, 200, 400])
def test_intervals_hold_where_few_labels_or_a_few_whole_rows_are_missing(n):
    """R@5 held in 82 to 92 %, and nDCG@5 in 88 to 97 %, while the spread of the few changed rows alone counted."""
    rng, held = np.random.default_rng([n, 61]), {}
    for seed in range(4):
        complete, few_labels, few_rows = recall_and_ndcg(seed)
        (recall, ndcg), gap = complete, np.array([1.0, -1.0])
        cases = {
            "R": (few_labels[0][:, 0], recall[:, 0], 1.0, True),
            "nDCG": (few_labels[1][:, 0], ndcg[:, 0], 1.0, True),
            "gap R": (few_labels[0] @ gap, recall @ gap, 2.0, False),
            "gap nDCG of whole rows": (few_rows[1] @ gap, ndcg @ gap, 2.0, False),
            "R of whole rows": (few_rows[0][:, 0], recall[:, 0], 1.0, True),
        }
        for _ in range(75):
            rows = rng.permutation(2000)[:n]
            for name, (f, y, *how) in cases.items():
                given = f.mean(), f[rows], y[rows], 2000, "ppi++", "these rows", 0.95, *how
                _, _, low, high, _ = j.estimated(*given)
                held.setdefault(name, []).append(low <= y.mean() <= high)
    assert min(np.mean(each) for each in held.values()) > 0.92, {name: np.mean(each) for name, each in held.items()}


def test_fresh_rows_are_less_sure_than_these_rows():
    complete, observed, models = problem(n=400, seed=5)
    both = j.Judged(observed, models["one"], said(complete, j.sample(400, 200)), 4, complete=True)
    assert both.estimate(target="fresh rows")["stderr"][0] > 1.2 * both.estimate()["stderr"][0]


def test_rows_without_a_change_still_leave_room():
    """Thirty judged rows that show nothing missing do not prove that nothing is."""
    complete, observed, models = problem(n=400, missing=0.0)
    line = j.estimate(observed, models["one"], said(complete, j.sample(400, 30)), 4).iloc[0]
    assert line["low"] < line["observed"] < line["high"]
    assert line["high"] - line["low"] > 0.1


# ---------------------------------------------------------------- what to judge


def test_samples_grow_and_next_rows_make_the_interval_narrow_enough():
    complete, observed, models = problem(n=1000, seed=6)
    rows = j.sample(1000, 40, 2)
    assert j.sample(1000, 90, 2)[:40].tolist() == rows.tolist()
    assert np.unique(j.sample(1000, 1000)).size == 1000
    found = j.estimate(observed, models["one"], said(complete, rows), 4, method="ppi")
    more = j.next_rows(found, said(complete, rows), 0.02, 1000)
    assert more.size
    assert not np.isin(more, rows).any()
    found = j.estimate(observed, models["one"], said(complete, [*rows, *more]), 4, method="ppi")
    assert (found["high"] - found["low"])[0] / 2 < 0.025
    assert j.next_rows(found, said(complete, [*rows, *more]), 0.5, 1000).size == 0


def test_a_sheet_filled_in_comes_back(tmp_path):
    complete, observed, models = problem()
    table = j.sheet(observed, models, j.sample(60, 25), 4, [f"label {i}" for i in range(12)])
    assert (table.loc[table["judge"] == "observed", "verdict"] == "1").all()
    blank = table["verdict"] == ""
    right = complete[table["row"], table["label"]].astype(int).astype(str)
    table.loc[blank, "verdict"], table.loc[blank, "judge"] = right[blank.to_numpy()], "me"
    table.to_csv(tmp_path / "sheet.csv", index=False)
    found = j.estimate(observed, models, tmp_path / "sheet.csv", 4)
    pd.testing.assert_frame_equal(found, j.estimate(observed, models, said(complete, j.sample(60, 25)), 4))
    late = table["row"] == table["row"].iloc[-1]
    table.loc[late, "verdict"] = ""
    table.to_csv(tmp_path / "sheet.csv", index=False)
    assert j.verdicts(tmp_path / "sheet.csv").drawn.size == 24
    table.loc[table["row"] == table["row"].iloc[0], "verdict"] = ""
    table.to_csv(tmp_path / "sheet.csv", index=False)
    with pytest.warns(j.JudgedWarning, match="23 judged rows"):
        assert j.verdicts(tmp_path / "sheet.csv").drawn.size == 0


def test_rows_with_nothing_predicted_are_on_the_sheet():
    top = xc.TopK.from_ids([[0, 1], [-1, -1]], n_labels=3)
    assert j.sheet(np.eye(3)[:2], top, [1, 0], 2)["label"].tolist() == [-1, 0, 1]


def test_the_command_draws_and_estimates(tmp_path, capsys):
    complete, observed, models = problem(n=200)
    xc.write_xc(tmp_path / "truth.txt", sp.csr_matrix((200, 1)), sp.csr_matrix(observed))
    for name, top in models.items():
        top.save(tmp_path / f"{name}.npz")
    files = [str(tmp_path / name) for name in ("truth.txt", "one.npz", "other.npz")]
    sheet = tmp_path / "sheet.csv"
    assert main(["judge", "sample", *files, "-k", "1", "4", "-n", "40", "--out", str(sheet)]) == 0
    assert "40 rows" in capsys.readouterr().out
    assert main(["judge", "estimate", *files, "-k", "4", "--verdicts", str(sheet)]) == 2
    assert "none of its lines is blank" in capsys.readouterr().err
    table = pd.read_csv(sheet, dtype=str, keep_default_na=False)
    blank = table["verdict"] == ""
    table.loc[blank, "verdict"] = [
        str(int(complete[int(r), int(x)])) for r, x in table[["row", "label"]][blank].to_numpy()
    ]
    table.to_csv(sheet, index=False)
    ask = ["judge", "estimate", *files, "-k", "1", "4", "--verdicts", str(sheet)]
    assert main([*ask, "--csv"]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out.split("metric,k,left")[0]))
    assert np.allclose(found["value"], j.estimate(observed, models, sheet, (1, 4))["value"], atol=1e-6)
    assert main([*ask, "--within", "1"]) == 0
    assert "reaches 1 points to either side" in capsys.readouterr().out
    table[table["row"].isin(table["row"].unique()[:10])].to_csv(sheet, index=False)
    assert main(ask) == 0
    assert "10 rows" in capsys.readouterr().err


@given(st.integers(0, 10**6), st.integers(0, 30))
def test_verdicts_are_counted_as_by_pandas(seed, n):
    """Grouped by pair, what a judge says twice counts once; the first line that contradicts an earlier one is named."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.integers([0, -1, 0], [4, 3, 2], (n, 3)), columns=["row", "label", "verdict"])
    judges = [["Ann", "Bob", "Cy"], ["", "", ""], [3, None, "3"]][seed % 3]
    table["judge"] = pd.Series([judges[i] for i in rng.integers(3, size=n)], dtype=object)
    real = table[table["label"] >= 0].drop_duplicates(["row", "label", "judge", "verdict"])
    twice = real[real.duplicated(["row", "label", "judge"])]
    if len(twice):
        line = twice.iloc[0]
        words = f"judge {line['judge']!r} on row {line['row']}, label {line['label']}:"
        with pytest.raises(ArgumentError, match=re.escape(words)):
            j.verdicts(table)
        table = table[~table.set_index(["row", "label"]).index.isin(twice.set_index(["row", "label"]).index)]
        real = table[table["label"] >= 0].drop_duplicates(["row", "label", "judge", "verdict"])
    each = real.groupby(["row", "label"])["verdict"].agg(["sum", "size"])
    found = j.verdicts(table)
    assert [*zip(found.rows.tolist(), found.labels.tolist(), strict=True)] == each.index.tolist()
    np.testing.assert_array_equal(found.right, 2 * each["sum"] > each["size"])
    assert found.drawn.tolist() == sorted({*table["row"]})


def test_the_gap_of_two_coverages_lies_between_the_ends_of_both():
    """With all rows judged, only what rows cannot tell is left: the ends of the gap are those of the two models."""
    complete, observed, models = problem(n_labels=40, seed=2, missing=0.7)
    both = j.Judged(observed, models, said(complete, range(60)), 4, "coverage")
    one, other = both.estimate().itertuples()
    gap = both.compare().iloc[0]
    assert gap["low"] <= one.low - other.low + 1e-12
    assert gap["low"] >= one.low - other.high - 1e-12
    assert gap["high"] >= one.high - other.high - 1e-12
    assert gap["high"] <= one.high - other.low + 1e-12


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([(0, 0, 1, "a"), (0, 0, 0, "a")], "1 and 0 .*'a' .*row 0, label 0"),
        ([(0, 0, 2)], "verdict '2' .*line 1"),
        ([(0, 0, 1), (-3, 0, 1)], "row '-3' .*line 2"),
        ([(0, -2, 1)], "label '-2'"),
        ([(0, 0)], "columns row, label, verdict"),
    ],
)
def test_verdicts_that_break_a_rule_are_named(lines, words):
    with pytest.raises(ArgumentError, match=words):
        j.verdicts(lines)


def test_what_cannot_be_estimated_is_refused():
    complete, observed, models = problem()
    top, rows = models["one"], j.sample(60, 30)

    def ask(verdicts, metrics="P", **how):
        return j.estimate(observed, top, verdicts, 4, metrics, **how)

    for verdicts, words in (
        ([*said(complete, rows), (60, 0, 1)], "below 60; got row 60"),
        ([(0, 12, 1)], "below 12; got label 12 in row 0"),
        (said(complete, rows, [0]), r"first 4 .*label \d+ at place \d"),
        (said(complete, rows[:2]), "3 rows .*got 2"),
    ):
        with pytest.raises(ArgumentError, match=words):
            ask(verdicts)
    with pytest.raises(ArgumentError, match=r"row 5.*random"):
        j.verdicts(said(complete, [5]), rows=[6, 7])
    with pytest.raises(ArgumentError, match=r"all labels .*'R'"):
        ask(said(complete, rows), "R")
    with pytest.raises(ArgumentError, match="rows: P, R"):
        ask(said(complete, rows), "macro-F1")
    with pytest.raises(ArgumentError, match="'these rows'"):
        ask(said(complete, rows), "coverage", target="fresh rows")
    with pytest.raises(ArgumentError, match="two or"):
        j.compare(observed, {"one": top}, said(complete, rows), 4)


def test_a_file_that_is_no_sheet_is_named(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"x\.csv.*verdict"):
        j.verdicts(tmp_path / "x.csv")


def test_doubts_are_warned_of():
    complete, observed, models = problem(n=600, seed=8)
    top = models["one"]

    def warned(verdicts, words):
        with pytest.warns(j.JudgedWarning, match=words):
            j.estimate(observed, top, verdicts, 4)

    warned(said(complete, j.sample(600, 10)), "only 10 rows are judged")
    warned(said(complete, range(100)), "do not look drawn at random: the mean row number is 49\\.5 among them")
    warned(said(complete, range(250, 350)), "squared distance from the middle")
    easy = np.argsort(-(observed.sum(axis=1)), kind="stable")[:60]
    warned(said(complete, easy), "mean observed labels")
    rows = j.sample(600, 60)
    warned(said(1 - complete, rows), "judges reject .* observed labels")
    both = [(*line, "a") for line in said(complete, rows)] + [(*line, "b") for line in said(1 - complete, rows)]
    warned(both, "agree on 0 % of 720 pairs")


# ---------------------------------------------------------------- cheap verdicts


def cheap(complete, models, wrong, seed=0):
    """Verdicts on all predicted pairs, this share of them wrong."""
    rng, found = np.random.default_rng(seed), np.zeros(complete.shape)
    for top in models.values():
        rows = np.repeat(np.arange(len(top)), top.k)
        found[rows, top.ids.ravel()] = complete[rows, top.ids.ravel()]
    flip = rng.random(complete.shape) < wrong
    asked = np.zeros(complete.shape, bool)
    for top in models.values():
        asked[np.repeat(np.arange(len(top)), top.k), top.ids.ravel()] = True
    return np.where(flip & asked, 1 - found, found)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(8, 40), st.sampled_from([1, 8]))
def test_a_proxy_is_a_second_predictor_of_least_squares(seed, n, levels):
    complete, observed, models = problem(seed=seed)
    rng = np.random.default_rng(seed)
    proxy = cheap(complete, models, 0.2, seed) * (1.0 if levels == 1 else rng.uniform(0.2, 1.0, complete.shape))
    rows = np.sort(j.sample(60, n, seed))
    how = {"complete": True, "proxy": proxy}
    for line in j.estimate(observed, models, said(complete, rows), 4, list(ORACLES), **how).itertuples():
        rankings = [[int(label) for label in ids] for ids in models[line.model].ids]

        def value(truth, row, line=line, rankings=rankings):
            return ORACLES[line.metric]([set(np.flatnonzero(truth[row]).tolist())], [rankings[row]], line.k)

        cuts = [(observed > 0) | (proxy >= (2 * level + 1) / (2 * levels)) for level in range(levels)]
        F = np.array([[value(observed, row), np.mean([value(cut, row) for cut in cuts])] for row in range(60)])
        y = np.array([value(complete, row) for row in rows])
        F = F if n - 1 >= sampling.ENOUGH else F[:, 1:]  # of few rows the proxy alone
        design, p = np.column_stack([np.ones(n), F[rows]]), F.shape[1]
        if np.linalg.matrix_rank(design - design.mean(axis=0), 1e-7) < p or (abs(y - F[rows, -1]) <= 1e-12).all():
            continue
        beta = np.linalg.lstsq(design, y, rcond=None)[0]
        rest = y - design @ beta
        assert line.value == pytest.approx(np.array([1.0, *F.mean(axis=0)]) @ beta, abs=1e-8)
        wrong = abs(y - F[rows, -1]) > 1e-12
        more = 2 * (rest[wrong] ** 2).mean() if wrong.any() else 2 * (rest**2).mean()
        error = ((rest**2).sum() + more) / (n - 1 - p) / n * (1 - n / 60)
        assert line.stderr == pytest.approx(np.sqrt(error), abs=1e-8)


def test_intervals_with_a_proxy_hold_whatever_it_says():
    """Of a proxy that agrees, one that flatters and one that guesses: only the width hangs on it."""
    complete, observed, models = problem(n=800, n_labels=60, seed=3, missing=0.3)
    top, true = models["one"], xc.metrics.precision(complete, models["one"], 4)[0]
    rng = np.random.default_rng(0)
    guess = (rng.random(complete.shape) < 0.5).astype(float)
    proxies = {
        "right": cheap(complete, models, 0.0),
        "agrees": cheap(complete, models, 0.05),
        "flatters": np.maximum(cheap(complete, models, 0.0), rng.random(complete.shape) < 0.3),
        "says yes": np.ones(complete.shape),
        "guesses": guess,
    }
    held, width = {name: [] for name in proxies}, {name: [] for name in [*proxies, "none", "people"]}
    for seed in range(60):
        verdicts = j.verdicts(said(complete, j.sample(800, 60, seed)))
        for name, proxy in proxies.items():
            line = j.estimate(observed, top, verdicts, 4, proxy=proxy).iloc[0]
            held[name].append(line["low"] <= true <= line["high"])
            width[name].append(line["high"] - line["low"])
        for name, method in (("none", "ppi++"), ("people", "judged only")):
            line = j.estimate(observed, top, verdicts, 4, method=method).iloc[0]
            width[name].append(line["high"] - line["low"])
    assert min(np.mean(each) for each in held.values()) >= 0.88, {name: np.mean(each) for name, each in held.items()}
    width = {name: np.mean(each) for name, each in width.items()}
    assert width["agrees"] < 0.9 * width["none"]
    assert width["flatters"] < width["none"]
    assert max(width["says yes"], width["guesses"]) < 1.02 * width["people"]


def test_proxies_of_every_kind_give_the_same_bits():
    complete, observed, models = problem(seed=4)
    proxy, verdicts = cheap(complete, models, 0.1), j.verdicts(said(complete, j.sample(60, 25)))
    whole = j.estimate(observed, models, verdicts, (1, 4), ["P", "nDCG (ideal k)", "abandonment"], proxy=proxy)
    assert "proxy weight" in whole
    row, label = np.nonzero(proxy)
    table = pd.DataFrame({"row": row, "label": label, "verdict": 1})
    for same in (sp.csr_matrix(proxy), table):
        again = j.estimate(observed, models, verdicts, (1, 4), ["P", "nDCG (ideal k)", "abandonment"], proxy=same)
        pd.testing.assert_frame_equal(whole, again)
    gap = j.compare(observed, models, verdicts, 4, proxy=proxy).iloc[0]
    one, other = (xc.metrics.precision(complete, top, 4)[0] for top in models.values())
    assert gap["low"] <= one - other <= gap["high"]
    every = j.estimate(observed, models, said(complete, range(60)), 4, proxy=proxy)
    assert np.allclose(every[["value", "low", "high"]].T, xc.evaluate(complete, models, 4, metrics=["P"])["value"])


def test_proxies_that_do_not_fit_are_refused():
    complete, observed, models = problem()
    verdicts = said(complete, j.sample(60, 30))
    ask = lambda proxy, **how: j.estimate(observed, models["one"], verdicts, 4, proxy=proxy, **how)  # noqa: E731
    for proxy in (np.ones((60, 11)), 2 * np.ones((60, 12)), np.full((60, 12), np.nan), pd.DataFrame({"row": [0]})):
        with refused("proxy"):
            ask(proxy)
    with refused("proxy"):
        ask(pd.DataFrame({"row": [60], "label": [0], "verdict": [1]}))
    with refused("method", "'ppi'"):
        ask(complete, method="ppi")


def test_the_command_takes_a_proxy(tmp_path, capsys):
    complete, observed, models = problem(n=200)
    xc.write_xc(tmp_path / "truth.txt", sp.csr_matrix((200, 1)), sp.csr_matrix(observed))
    models["one"].save(tmp_path / "one.npz")
    proxy, rows = cheap(complete, models, 0.05), j.sample(200, 60)
    sp.save_npz(tmp_path / "proxy.npz", sp.csr_matrix(proxy))
    lines = [",".join(map(str, line)) for line in said(complete, rows)]
    (tmp_path / "sheet.csv").write_text("row,label,verdict\n" + "\n".join(lines) + "\n")
    given = [str(tmp_path / name) for name in ("truth.txt", "one.npz")]
    given += ["-k", "3", "--verdicts", str(tmp_path / "sheet.csv"), "--proxy", str(tmp_path / "proxy.npz"), "--csv"]
    assert main(["judge", "estimate", *given]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))[["value", "low", "high"]]
    expected = j.estimate(observed, models["one"], said(complete, rows), 3, proxy=proxy)[["value", "low", "high"]]
    assert np.allclose(found, expected, atol=1e-6)
