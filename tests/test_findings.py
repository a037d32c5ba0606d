"""Sentences are true of their numbers: chance is called chance, as often as it should be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from xcrepro import findings
from xcrepro.errors import ArgumentError
from xcrepro.findings import Measured
from xcrepro.metrics import ranking
from xcrepro.predictions import TopK


def runs(**values) -> Measured:
    return Measured.of_runs(values)


def test_a_difference_of_runs_is_a_paired_t_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 7))
    found, theirs = runs(a=a, b=b).difference("a", "b"), stats.ttest_rel(a, b)
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.dof == theirs.df == 6
    assert found.value == pytest.approx((a - b).mean())


def test_two_standard_errors_of_five_runs_are_not_clear():
    d = np.array([-1.0, -1, 0, 1, 1])
    d = d / (d.std(ddof=1) / np.sqrt(5)) + 2.1  # mean 2.1, standard error 1
    found = runs(a=d, b=np.zeros(5)).difference("a", "b")
    assert found.error == pytest.approx(1)
    assert found.verdict == "not clear"
    assert found.p == pytest.approx(2 * stats.t(4).sf(2.1))


def test_false_leads_are_as_rare_as_promised():
    rng = np.random.default_rng(1)
    for n in (3, 5, 20):
        clear = [runs(a=rng.normal(size=n), b=rng.normal(size=n)).leader("P@1").clear for _ in range(1000)]
        assert 0.03 < np.mean(clear) < 0.07


def test_a_jackknife_of_a_mean_has_its_standard_error():
    rng = np.random.default_rng(2)
    Y = (rng.random((200, 6)) < 0.4).astype(float)
    tops = {name: TopK.from_scores(rng.random((200, 6)), 1) for name in ("a", "b")}
    found = Measured.of_rows(lambda Y, top: 100 * ranking.precision(Y, top, [1])[0], Y, tops)
    for name, top in tops.items():
        hits = 100 * np.take_along_axis(Y, top.ids, 1)[:, 0]
        assert found.values[name] == pytest.approx(hits.mean())
        by_block = hits.reshape(20, 10).mean(axis=1)
        assert found.error(name) == pytest.approx(by_block.std(ddof=1) / np.sqrt(20))


def test_the_leader_must_beat_every_other():
    a, near, far = np.array([5.0, 5.1, 4.9, 5.0]), np.array([4.0, 6.0, 5.2, 4.4]), np.array([1.0, 1.5, 0.5, 1.0])
    found = runs(a=a, near=near, far=far).leader("P@1")
    assert (found.name, found.clear, found.nearest.right) == ("a", False, "near")
    assert found.text.startswith("no clear leader in P@1: a is 0.1 ± 0.4 points above near")
    found = runs(a=a, far=far).leader("P@1")
    assert found.text == "a leads P@1, by 4.0 ± 0.2 points over far"
    assert runs(a=a, far=far).leader("ECE", better="lower").name == "far"


def test_where_no_error_is_known_nothing_is_clear():
    found = runs(a=[5.0], b=[1.0])
    assert np.isnan(found.error("a"))
    assert found.leader("P@1").text == (
        "no clear leader in P@1: a is 4.0 points above b, with an error that is not known"
    )
    assert found.difference("a", "b").verdict == "not clear"
    assert runs(a=[5.0]).leader("P@1").text == "P@1 of a alone: 5.0 points"
    assert runs(a=[4.0, 6.0]).leader("P@1").text == "P@1 of a alone: 5.0 ± 1.0 points"
    assert runs(a=[np.nan, np.nan]).leader("P@1").text == "P@1 is not known of any"
    same = runs(a=[1.0, 1.0], b=[1.0, 1.0]).leader("P@1")
    assert same.text == "no clear leader in P@1: a is 0.0 ± 0.0 points away from b, which chance explains"


def test_a_leader_in_a_sentence_of_its_own():
    a, far = [5.0, 5.1, 4.9], [1.0, 1.2, 0.8]
    assert runs(a=a, b=a).leader("nDCG@5").sentence.startswith("No clear leader in nDCG@5: a is 0.0 ± 0.0")
    assert runs(a=a, far=far).leader("nDCG@5").sentence == "a leads nDCG@5, by 4.00 ± 0.06 points over far."
    assert runs(a=[5.0]).leader("nDCG@5").sentence == "nDCG@5 of a alone: 5.0 points."


def test_runs_that_come_to_the_same_hits_are_not_certain():
    for n, clear in ((2, False), (5, False), (6, True)):
        found = runs(a=[100 * 0.1 * 3] * n, b=[100 * 0.1 * 2.9] * n).difference("a", "b")
        assert (found.error, found.clear) == (0, clear)
        assert found.p == 2.0 ** (1 - n)
    # What is no more than rounding is no scatter.
    assert runs(a=[30.0, 30.0 + 1e-14], b=[29.0, 29.0]).difference("a", "b").verdict == "not clear"
    blocks = Measured({"a": 3.0, "b": 2.0}, {"a": np.full(4, 3.0), "b": np.full(4, 2.0)}).difference("a", "b")
    assert (blocks.p, blocks.verdict) == (0, "above")


@pytest.mark.parametrize("kind", ["blocks", "runs"])
def test_a_difference_that_only_the_order_of_a_sum_made_is_none(kind):
    one, other = 100.0, float(np.nextafter(100.0, 0.0))
    same = Measured({"a": one, "b": other}, {"a": np.full(20, one), "b": np.full(20, other)}, kind)
    found = same.difference("a", "b")
    assert (found.value, found.error, found.p, found.verdict) == (0.0, 0.0, 1.0, "not clear")
    assert same.leader("P@1").text == "no clear leader in P@1: a is 0.0 ± 0.0 points away from b, which chance explains"
    assert findings.count(same.differences([("a", "b"), ("b", "a")]), "a is above b").endswith("not clear in 2")
    # One part in a million is a difference, and so is a small one of small numbers.
    apart = Measured({"a": 1.0, "b": 1 - 1e-6}, {"a": np.full(20, 1.0), "b": np.full(20, 1 - 1e-6)}, kind)
    assert apart.difference("a", "b").clear
    small = Measured({"a": 3e-14, "b": 1e-14}, {"a": np.full(20, 3e-14), "b": np.full(20, 1e-14)}, kind)
    assert small.difference("a", "b").value == pytest.approx(2e-14)


def test_several_comparisons_are_corrected_together():
    rng = np.random.default_rng(3)
    values = {f"m{i}": rng.normal(size=6) for i in range(12)}
    pairs = [(f"m{2 * i}", f"m{2 * i + 1}") for i in range(6)]
    alone = [runs(**values).difference(*pair).p for pair in pairs]
    together = [one.p for one in runs(**values).differences([*pairs, ("m0", "absent")])]
    order = np.argsort(alone)
    worst = np.maximum.accumulate([alone[i] * (6 - rank) for rank, i in enumerate(order)])
    assert np.array(together)[order] == pytest.approx(np.minimum(1, worst))


def test_counts_are_said_as_they_are():
    up, down, flat = np.array([3.0, 3.1, 2.9]), np.array([1.0, 1.2, 0.9]), np.array([0.0, 9.0, 1.0])
    found = runs(up=up, down=down, flat=flat)

    def said(*pairs):
        return findings.count([found.difference(*pair) for pair in pairs], "A beats B")

    assert said(("up", "down"), ("up", "down")) == "A beats B: clearly so in all 2 comparisons"
    assert (
        said(
            ("down", "up"),
        )
        == "A beats B: clearly the other way round in the one comparison"
    )
    assert said(("up", "down"), ("down", "up"), ("up", "flat")) == (
        "A beats B: clearly so in 1 of 3 comparisons, clearly the other way round in 1, not clear in 1"
    )
    assert said() == "A beats B: nothing here to compare"


def test_a_relation_of_few_points_is_seldom_clear():
    assert "no clear relation" in findings.relation([1, 2, 3, 4], [1, 2, 3, 4], "x and y")  # p = 2/24
    assert findings.relation(range(6), range(6), "x and y").startswith("x and y rise together")
    assert findings.relation(range(6), range(0, -6, -1), "x and y").startswith("x and y go in opposite directions")
    assert findings.relation([1, 1, 1], [1, 2, 3], "x and y") == (
        "x and y: too few different points for a relation (3)"
    )


def test_faults_are_named():
    with pytest.raises(ArgumentError, match="replicates must be of the systems a"):
        Measured({"a": 1.0}, {"b": np.ones(2)})
    with pytest.raises(ArgumentError, match="as many for each system"):
        Measured({"a": 1.0, "b": 2.0}, {"a": np.ones(2), "b": np.ones(3)})
    with pytest.raises(ArgumentError, match="kind"):
        Measured({"a": 1.0}, {"a": np.ones(2)}, "means")


def test_recorded_data_agree_or_not_on_what_is_clear_alone():
    here = runs(a=[9.0, 9.1, 8.9, 9.2], b=[5.0, 5.2, 4.9, 5.0], c=[1.0, 1.1, 0.8, 1.0], d=[0.0, 2.0, 1.5, 0.9])
    pairs = here.pairs()
    assert [(one.left, one.right) for one in pairs if not one.clear] == [("c", "d")]

    def said(**recorded):
        return findings.agreement(pairs, recorded, "P@1")

    start = "Real data first, P@1: of the pairs of models that are clear in this run, recorded in the same order: on "
    assert said(bibtex={"a": 3.0, "b": 2.0, "c": 1.0}) == f"{start}bibtex 3 of 3."
    # c and d are not clear here, so that real data have them the other way round says nothing; equal is not above.
    assert said(bibtex={"a": 2.0, "b": 2.0, "c": 1.0, "d": 3.0}) == (
        f"{start}bibtex 2 of 5 (not a above b, a above d, b above d)."
    )
    assert said(bibtex={"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}) == (
        f"{start}bibtex 0 of 5 (not a above b, a above c, a above d and 2 more)."
    )
    assert said(bibtex={"a": 3.0, "b": 2.0}, delicious={"c": 0.0, "a": 1.0}) == (
        f"{start}bibtex 1 of 1, on delicious 1 of 1."
    )
    assert said(bibtex={"c": 1.0, "d": 2.0}) == (
        "Real data first, P@1: none of the pairs of models recorded on bibtex is clear in this run."
    )
    assert said() == said(bibtex={"a": 1.0}) == said(bibtex={"a": 1.0, "b": np.nan}) == ""


def test_recorded_columns_are_read_by_name():
    tables = {"bibtex": pd.DataFrame({"model": ["a", "b"], "P@1": [1.0, 2.0]}), "other": pd.DataFrame({"model": ["a"]})}
    assert findings.numbers(tables, "model", "P@1") == {"bibtex": {"a": 1.0, "b": 2.0}}
