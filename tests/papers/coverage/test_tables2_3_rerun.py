"""The rules run anew: the search against the choice among all labels, means, claims on planted tables, times."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.papers.coverage import tables2_3_rerun as item
from xcrepro.papers.coverage._common import Run, at_random, scores

BETAS = [0.0, 0.25]


@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_search_in_the_tree_chooses_what_the_rules_choose_among_all_labels(twin, run, k):
    both = (item.rules(twin, run, k, BETAS, search).items() for search in (True, False))
    searched, chosen = ({name: choose().ids for name, choose in rules} for rules in both)
    assert list(searched) == list(chosen) == ["PLT", "PS-PLT", "COV-PLT", "COVβ=0.25"]
    for name, ids in searched.items():
        # float32 probabilities can turn a tie of the search round, no more
        assert (ids == chosen[name]).mean() > 0.99
        assert all((ids != other).any() for rule, other in searched.items() if rule != name)


def test_random_selection_is_drawn_once_for_five(run):
    five, one = at_random(run, 5), at_random(run, 1)
    assert np.array_equal(five.ids[:, :1], one.ids)
    best = xc.decide.top_k(run.probabilities, 10).ids
    assert all(set(row) <= set(ten) for row, ten in zip(five.ids.tolist(), best.tolist(), strict=True))


def test_each_rule_metric_k_and_run_is_compared_once(twin, run):
    found = item.compute(twin, [run, Run(1, run.probabilities, None)], BETAS)
    names = ["PLT", "PS-PLT", "COV-PLT", "COVβ=0.25", "BRS-PLT"]
    cells = [(name, i, m, k) for name in names for m in ("P", "PSP", "Cov") for k in (1, 3, 5) for i in (0, 1)]
    assert list(found[["rule", "run", "metric", "k"]].itertuples(index=False, name=None)) == cells
    top = xc.decide.greedy_coverage(run.probabilities, 3)
    expected = 100 * xc.metrics.coverage(twin.test.Y, top, 3, over="test")[0]
    value = found.set_index(["rule", "run", "metric", "k"])["value"]
    assert value["COV-PLT", 1, "Cov", 3] == pytest.approx(expected)


# ---------------------------------------------------------------- means, layout, claims


def planted(values: dict[str, list[float]], metric: str = "Cov", ks=(1, 3, 5)) -> pd.DataFrame:
    rows = [(rule, i, metric, k, v) for rule, runs in values.items() for k in ks for i, v in enumerate(runs)]
    return pd.DataFrame(rows, columns=["rule", "run", "metric", "k", "value"])


def test_means_their_errors_and_the_layout_by_hand():
    means = item.compute_means(planted({"PS-PLT": [1.0, 2.0, 6.0], "PLT": [3.0, 4.0, 5.0]}))
    assert means["mean"].tolist() == [3, 3, 3, 4, 4, 4]
    assert means["stderr"][0] == pytest.approx(math.sqrt((4 + 1 + 9) / 2) / math.sqrt(3))
    found = item.lay_out(means)
    assert found.columns.tolist() == ["rule", "Cov@1", "Cov@3", "Cov@5"]
    assert found["rule"].tolist() == ["PS-PLT", "PLT"]
    assert found["Cov@1"].tolist() == ["3.00 ± 1.53", "4.00 ± 0.58"]
    assert item.check(means)["Cov@5"].tolist() == [3, 4]
    # One run has no standard error.
    assert item.lay_out(item.compute_means(planted({"PLT": [1.0]}))).iloc[0].tolist() == ["PLT", "1.00", "1.00", "1.00"]


def test_the_printed_rows_of_the_datasets_own_table(twin, small):
    found = item.compute_printed(twin).set_index("rule")
    assert found.index.tolist() == ["PLT", "PS-PLT", "COV-PLT", "BRS-PLT", "COVβ=0.25", "COVβ=0.5", "COVβ=1"]
    assert found.loc["PLT", "P@1"] == 81.70
    assert found.loc["COVβ=0.25", "Cov@5"] == 62.95
    assert found.loc["COVβ=1", "PSP@3"] == 45.32
    assert found.shape == (7, 9)
    assert len(item.compute_printed(small())) == 0
    assert len(item.compute_printed(xc.twin("bibtex", scale=0.1, seed=0))) == 0


COV = {"PLT": 10, "PS-PLT": 20, "BRS-PLT": 5, "COV-PLT": 40, "COVβ=0.25": 30}
P = {"PLT": 90, "PS-PLT": 80, "BRS-PLT": 5, "COV-PLT": 40, "COVβ=0.25": 60}


def claims(cov: dict, p: dict, runs: int = 2) -> pd.DataFrame:
    """Of tables where each run is 0.1 above the one before, unless the values are lists; PSP is P."""
    cov, p = (
        {rule: v if isinstance(v, list) else [v + 0.1 * i for i in range(runs)] for rule, v in values.items()}
        for values in (cov, p)
    )
    return item.compute_claims(pd.concat([planted(cov), planted(p, "P"), planted(p, "PSP")]), BETAS)


def counts(found: pd.DataFrame, text: str) -> tuple[int, ...]:
    [row] = found[found["claim"].str.contains(text, regex=False)][["cells", "holds", "reversed", "open"]].to_numpy()
    return tuple(row)


def test_claims_that_hold_everywhere():
    found = claims(COV, P)
    assert counts(found, "COV-PLT has the highest Cov") == (12, 12, 0, 0)
    assert counts(found, "larger beta lowers Cov") == (6, 6, 0, 0)
    assert counts(found, "larger beta raises P") == (6, 6, 0, 0)
    assert counts(found, "second highest") == (9, 9, 0, 0)
    assert counts(found, "between COV-PLT and PLT") == (6, 6, 0, 0)
    assert counts(found, "PLT has the highest P@k") == (12, 12, 0, 0)
    assert counts(found, "PS-PLT has the highest PSP") == (12, 9, 3, 0)  # here PSP is P, where PLT is higher
    # A single run decides by sign alone.
    assert counts(claims(COV, COV, runs=1), "COV-PLT has the highest Cov") == (12, 12, 0, 0)


def test_a_planted_reversal_and_a_planted_tie_are_seen():
    found = claims(COV | {"COVβ=0.25": 41}, P | {"COVβ=0.25": [88.0, 92.2]})
    assert counts(found, "COV-PLT has the highest Cov") == (12, 9, 3, 0)
    assert counts(found, "between COV-PLT and PLT") == (6, 3, 0, 3)
    text = found.set_index("claim")["reversed in"]["COV-PLT has the highest Cov@k"]
    assert text.startswith("Cov@1: COV-PLT, COVβ=0.25")


# ---------------------------------------------------------------- candidates, once or each, times


def test_all_candidates_cost_nothing_and_k_candidates_are_the_top_k(twin, run):
    most = twin.train.Y.shape[1]
    found = item.compute_candidates(twin, [run], [5, most]).set_index(["candidates", "k"])
    assert found.index.get_level_values("candidates")[:3].tolist() == ["5", str(most), "all"]
    assert found.loc[(str(most), 5), "same"] > 99
    assert found.loc[(str(most), 5), "Cov"] == pytest.approx(found.loc[("all", 5), "Cov"], rel=0.02)
    plain = scores(twin, xc.decide.top_k(run.probabilities, 5), 5)
    assert found.loc[("5", 5), ["P", "Cov"]].tolist() == pytest.approx([plain["P"], plain["Cov"]])
    assert found.loc[("5", 5), "Cov"] < found.loc[("all", 5), "Cov"]
    without = item.compute_candidates(twin, [Run(0, run.probabilities, None)], [5])
    assert without["candidates"].unique().tolist() == ["5"]
    assert without["same"].isna().all()


def test_decided_once_is_the_first_places_of_the_decision_for_five(twin, run):
    found = item.compute_decided_once(twin, [run]).set_index(["rule", "k"])
    five, one = (xc.decide.greedy_coverage(run.probabilities, k) for k in (5, 1))
    assert found.loc[("COV-PLT", 1), "Cov, once for 5"] == pytest.approx(scores(twin, five.head(1), 1)["Cov"])
    assert found.loc[("COV-PLT", 1), "Cov, each k"] == pytest.approx(scores(twin, one, 1)["Cov"])


def test_times_are_ratios_to_the_plain_search_with_the_papers_beside(twin, run):
    found = item.compute_times(twin, [run], [0.0, 0.25, 0.5]).set_index("rule")
    assert found.loc["PLT", "search / PLT"] == 1
    assert (found["search ms"] > 0).all()
    assert found.loc["COV-PLT", "printed / PLT"] == pytest.approx(6.51 / 3.17)
    assert found.loc["COVβ=0.25", "printed / PLT"] == pytest.approx(4.67 / 3.17)
    assert np.isnan(found.loc["COVβ=0.5", "printed / PLT"])
    assert len(item.compute_times(twin, [Run(0, run.probabilities, None)], [0.0])) == 0
