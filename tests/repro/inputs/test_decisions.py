"""Rules judged with each rule run anew: against loops that share nothing with the code, and planted faults."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats

import xcrepro as xc
from tests.refused import refused
from xcrepro.repro.inputs import decisions


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    eta = rng.random((12, 7)) ** 2
    return (rng.random((12, 7)) < eta).astype(float), eta


def naive_greedy(eta, k):
    failure, chosen = np.ones(eta.shape[1]), []
    for row in eta:
        best = sorted(range(len(row)), key=lambda j: (-failure[j] * row[j], j))[:k]
        for j in best:
            failure[j] *= 1 - row[j]
        chosen.append(best)
    return chosen


def naive_coverage(Y, chosen):
    return len({j for i, labels in enumerate(chosen) for j in labels if Y[i, j]}) / Y.shape[1]


def naive_precision(Y, chosen):
    return sum(Y[i, j] for i, labels in enumerate(chosen) for j in labels) / sum(map(len, chosen))


PARTITIONS = 3


def parts_of(n):
    """The quarters and halves, by the words of the docstring."""
    for partition in range(PARTITIONS):
        order = list(np.random.default_rng([0, partition]).permutation(n)[: n // 4 * 4])
        quarters = [sorted(order[q * (n // 4) : (q + 1) * (n // 4)]) for q in range(4)]
        halves = [sorted(quarters[a] + quarters[b]) for a, b in ((0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2))]
        yield [*quarters, *halves]


def naive_error(parts):
    """From values on quarters and halves, ten a partition: a power law through both variances."""
    quarters = np.mean([np.var(ten[:4], ddof=1) for ten in parts])
    halves = np.mean([(ten[i] - ten[i + 1]) ** 2 / 2 for ten in parts for i in (4, 6, 8)])
    slope = min(max(np.log2(halves / quarters), -2), 1)
    return np.sqrt(halves * 2**slope)


def test_greedy_is_run_anew_on_every_part(made):
    Y, eta = made
    rules = {
        "greedy": lambda rows, k: xc.decide.greedy_coverage(eta[rows], k),
        "top": lambda rows, k: xc.decide.top_k(eta[rows], k),
    }
    judged = decisions.judge(sparse.csr_matrix(Y), rules, (1, 2), ["P", "coverage"], PARTITIONS)
    for k in (1, 2):
        whole = naive_coverage(Y, naive_greedy(eta, k))
        parts = [[naive_coverage(Y[rows], naive_greedy(eta[rows], k)) for rows in ten] for ten in parts_of(12)]
        np.testing.assert_allclose(judged.numbers["greedy", "coverage", k], [whole, *np.ravel(parts)])
        right = [[naive_precision(Y[rows], naive_greedy(eta[rows], k)) for rows in ten] for ten in parts_of(12)]
        np.testing.assert_allclose(judged.numbers["greedy", "P", k][1:], np.ravel(right))
        found = judged.table().set_index(["rule", "metric", "k"]).loc[("greedy", "coverage", k)]
        assert found["stderr"] == pytest.approx(naive_error(parts))
        assert found["high"] - found["value"] == pytest.approx(stats.norm.ppf(0.975) * naive_error(parts))
    gaps = judged.compare([("greedy", "top")])
    assert list(gaps["metric"]) == ["P", "coverage", "P", "coverage"]
    one = gaps.iloc[0]
    pair = judged.numbers["greedy", "P", 1] - judged.numbers["top", "P", 1]
    assert one["value"] == pair[0]
    assert one["stderr"] == pytest.approx(naive_error(pair[1:].reshape(-1, 10)))
    assert one["p raw"] == pytest.approx(2 * stats.norm.sf(abs(one["value"]) / one["stderr"]), abs=1e-9)


def test_of_a_rule_that_looks_at_one_point_it_is_the_error_of_the_kit():
    """As xc.evaluate has it, but for the draw of the partitions."""
    rng = np.random.default_rng(1)
    eta = rng.random((200, 30)) ** 4
    Y = sparse.csr_matrix((rng.random(eta.shape) < eta).astype(float))
    judged = decisions.judge(Y, {"top": lambda rows, k: xc.decide.top_k(eta[rows], k)}, [1], ["coverage"], 40)
    kit = xc.evaluate(Y, xc.decide.top_k(eta, 1), metrics="coverage@1", confidence_level=0.95).iloc[0]
    found = judged.of(lambda at: at["top", "coverage", 1])
    assert found["value"] == kit.value
    assert found["value"] - found["low"] == pytest.approx(kit.value - kit.low, rel=0.2)  # the kit ends it at 1


def test_a_statistic_of_several_values(made):
    Y, eta = made
    rules = {"top": lambda rows, k: xc.decide.top_k(eta[rows], k)}
    judged = decisions.judge(sparse.csr_matrix(Y), rules, [1], ["P", "R"], PARTITIONS)
    ratio = judged.of(lambda at: at["top", "R", 1] / at["top", "P", 1])
    numbers = judged.numbers["top", "R", 1] / judged.numbers["top", "P", 1]
    assert ratio["value"] == numbers[0]
    assert ratio["stderr"] == pytest.approx(naive_error(numbers[1:].reshape(-1, 10)))
    same = judged.of(lambda at: at["top", "P", 1] - at["top", "P", 1])
    assert (same["stderr"], same["p raw"]) == (0, 1)


def test_planted_faults_are_refused(made):
    Y, eta = made
    whole = {"all": lambda rows, k: xc.decide.top_k(eta, k)}
    with refused("rules['all']", 12, match="3 points"):
        decisions.judge(sparse.csr_matrix(Y), whole, [1], ["P"])
    with refused("Y", 7, match="8 test"):
        decisions.judge(sparse.csr_matrix(Y[:7]), whole, [1], ["P"])
    with refused("partitions", 0):
        decisions.judge(sparse.csr_matrix(Y), whole, [1], ["P"], 0)


def test_a_difference_of_sums_in_another_order_is_none(monkeypatch):
    """With an error of 0 it would have a p of 0; without the rule it has."""
    values = np.full(21, 0.3)
    judged = decisions.Judged({("a", "P", 1): values + 5.6e-17, ("b", "P", 1): values})
    assert values[0] + 5.6e-17 != values[0]
    row = judged.compare([("a", "b")]).iloc[0]
    assert (row["value"], row["stderr"], row["p raw"], row["p"]) == (0, 0, 1, 1)
    monkeypatch.setattr(decisions, "ROUNDING", 0.0)
    assert judged.compare([("a", "b")])["p"].iloc[0] == 0
