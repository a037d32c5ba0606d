"""The coverage paper's rules, run anew: selections, means, claims, and the frontier."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import xcrepro as xc
from xcrepro.data.dataset import Dataset, Split
from xcrepro.repro import coverage_rules as rules
from xcrepro.repro.coverage_rules import Run

BETAS = [0.0, 0.25]


@pytest.fixture(scope="module")
def twin():
    return xc.twin("eurlex-4k", scale=0.03, seed=0)


@pytest.fixture(scope="module")
def run(twin) -> Run:
    tree = xc.models.PLT(trees=2, max_leaf=20, seed=0).fit(twin.train.X, twin.train.Y)
    return Run(0, tree.predict_proba(twin.test.X, twin.train.Y.shape[1]), tree)


# Two points, three labels, of which label 2 has no test point; probabilities so that the greedy rule moves on.
ETA = sparse.csr_matrix([[0.9, 0.5, 0.1], [0.8, 0.3, 0.2]], dtype=np.float32)
TRUTH = sparse.csr_matrix([[1, 0, 0], [1, 1, 0]], dtype=np.float32)
TRAIN = sparse.vstack([TRUTH, TRUTH], format="csr")
OWN = Dataset("own", Split(TRAIN, TRAIN), Split(TRUTH, TRUTH), A=0.55, B=1.5)


def test_scores_are_percent_and_coverage_is_over_labels_with_a_test_point():
    found = rules.scores(OWN, xc.decide.top_k(ETA, 1), 1)
    assert found["P"] == 100
    assert found["Cov"] == 50
    w = rules.weights(OWN)
    assert found["PSP"] == pytest.approx(100 * 2 * w[0] / (w[0] + max(w[0], w[1])))
    assert rules.factor(OWN) == pytest.approx(2 / 3)


def test_a_readers_files_are_runs_without_a_tree(tmp_path):
    for name in "ab":
        xc.TopK.from_scores(ETA, 2).save(tmp_path / f"{name}.npz")
    found = rules.runs(OWN, 5, str(tmp_path))
    assert [run.number for run in found] == [0, 1]
    assert all(run.tree is None for run in found)
    table = rules.compared(OWN, found, [0.0])
    assert set(table["rule"]) == {"PLT", "PS-PLT", "COV-PLT", "BRS-PLT"}


@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_search_in_the_tree_chooses_what_the_rules_choose_among_all_labels(twin, run, k):
    w = rules.weights(twin)
    searched = rules.by_search(run, twin.test.X, k, w, BETAS)
    chosen = rules.from_candidates(run.probabilities, k, w, BETAS)
    assert list(searched) == list(chosen) == ["PLT", "PS-PLT", "COV-PLT", "COVβ=0.25"]
    for name in searched:
        # float32 probabilities can turn a tie of the search round, no more
        assert (searched[name].ids == chosen[name].ids).mean() > 0.99


def test_the_rules_differ(twin, run):
    found = rules.from_candidates(run.probabilities, 5, rules.weights(twin), BETAS)
    ids = [top.ids for top in found.values()]
    assert all((a != b).any() for i, a in enumerate(ids) for b in ids[:i])


def test_random_selection_is_drawn_once_for_five(run):
    five, one = rules.at_random(run, 5), rules.at_random(run, 1)
    assert np.array_equal(five.ids[:, :1], one.ids)
    best = xc.decide.top_k(run.probabilities, 10).ids
    assert all(set(row) <= set(ten) for row, ten in zip(five.ids.tolist(), best.tolist(), strict=True))


def test_compared_has_each_rule_metric_k_and_run_once(twin, run):
    found = rules.compared(twin, [run, Run(1, run.probabilities, None)], BETAS)
    assert len(found) == 5 * 3 * 3 * 2
    assert not found[["rule", "run", "metric", "k"]].duplicated().any()
    assert found["metric"].drop_duplicates().tolist() == ["P", "PSP", "Cov"]
    row = found[(found["rule"] == "COV-PLT") & (found["metric"] == "Cov") & (found["k"] == 3)]
    top = xc.decide.greedy_coverage(run.probabilities, 3)
    expected = 100 * xc.metrics.coverage(twin.test.Y, top, 3, over="test")[0]
    assert row["value"].iloc[1] == pytest.approx(expected)


# ---------------------------------------------------------------- means, layout, claims


def table(values: dict[str, list[float]], metric: str = "Cov", ks=(1, 3, 5)) -> pd.DataFrame:
    rows = [(rule, i, metric, k, v) for rule, runs in values.items() for k in ks for i, v in enumerate(runs)]
    return pd.DataFrame(rows, columns=["rule", "run", "metric", "k", "value"])


def test_mean_and_standard_error_by_hand():
    [row] = rules.means(table({"PLT": [1.0, 2.0, 6.0]}, ks=(1,))).to_dict("records")
    assert row["mean"] == 3
    assert row["stderr"] == pytest.approx(math.sqrt((4 + 1 + 9) / 2) / math.sqrt(3))


def test_one_run_has_no_standard_error():
    found = rules.means(table({"PLT": [1.0]}))
    assert found["stderr"].isna().all()
    assert rules.laid_out(found).iloc[0].tolist() == ["PLT", "1.00", "1.00", "1.00"]


def test_the_layout_keeps_rules_and_columns_in_order():
    found = rules.laid_out(rules.means(table({"PS-PLT": [1.0, 2.0], "PLT": [3.0, 5.0]})))
    assert found.columns.tolist() == ["rule", "Cov@1", "Cov@3", "Cov@5"]
    assert found["rule"].tolist() == ["PS-PLT", "PLT"]
    assert found["Cov@1"].tolist() == ["1.50 ± 0.50", "4.00 ± 1.00"]


def test_the_printed_rows_of_the_datasets_own_table(twin):
    found = rules.printed(twin).set_index("rule")
    assert found.index.tolist() == ["PLT", "PS-PLT", "COV-PLT", "BRS-PLT", "COVβ=0.25", "COVβ=0.5", "COVβ=1"]
    assert found.loc["PLT", "P@1"] == 81.70
    assert found.loc["COVβ=0.25", "Cov@5"] == 62.95
    assert found.loc["COVβ=1", "PSP@3"] == 45.32
    assert found.shape == (7, 9)


def test_a_dataset_the_paper_does_not_have_has_no_printed_rows():
    assert len(rules.printed(OWN)) == 0
    assert len(rules.printed(xc.twin("bibtex", scale=0.1, seed=0))) == 0


def full(cov: dict[str, list[float]], p: dict[str, list[float]]) -> pd.DataFrame:
    return pd.concat([table(cov), table(p, "P"), table(p, "PSP")])


STEADY = {
    "PLT": [10.0, 10.1],
    "PS-PLT": [20.0, 20.1],
    "BRS-PLT": [5.0, 5.1],
    "COV-PLT": [40.0, 40.1],
    "COVβ=0.25": [30.0, 30.1],
}
FALLING = {
    "PLT": [90.0, 90.1],
    "PS-PLT": [80.0, 80.1],
    "BRS-PLT": [5.0, 5.1],
    "COV-PLT": [40.0, 40.1],
    "COVβ=0.25": [60.0, 60.1],
}


def claim(found: pd.DataFrame, text: str) -> tuple[int, int, int, int]:
    [row] = found[found["claim"].str.contains(text, regex=False)].to_dict("records")
    return row["cells"], row["holds"], row["reversed"], row["open"]


def test_claims_that_hold_everywhere():
    found = rules.claims(full(STEADY, FALLING), BETAS)
    assert claim(found, "COV-PLT has the highest Cov") == (12, 12, 0, 0)
    assert claim(found, "larger beta lowers Cov") == (6, 6, 0, 0)
    assert claim(found, "larger beta raises P") == (6, 6, 0, 0)
    assert claim(found, "second highest") == (9, 9, 0, 0)
    assert claim(found, "between COV-PLT and PLT") == (6, 6, 0, 0)
    assert claim(found, "PLT has the highest P@k") == (12, 12, 0, 0)
    assert claim(found, "PS-PLT has the highest PSP") == (12, 9, 3, 0)  # here PSP is P, where PLT is higher


def test_a_planted_reversal_and_a_planted_tie_are_seen():
    cov = STEADY | {"COVβ=0.25": [41.0, 41.1]}
    found = rules.claims(full(cov, FALLING | {"COVβ=0.25": [88.0, 92.2]}), BETAS)
    assert claim(found, "COV-PLT has the highest Cov") == (12, 9, 3, 0)
    assert claim(found, "between COV-PLT and PLT") == (6, 3, 0, 3)
    text = found.set_index("claim")["reversed in"]["COV-PLT has the highest Cov@k"]
    assert text.startswith("Cov@1: COV-PLT, COVβ=0.25")


def test_a_single_run_decides_by_sign_alone():
    one = {rule: values[:1] for rule, values in STEADY.items()}
    assert claim(rules.claims(full(one, one), BETAS), "COV-PLT has the highest Cov") == (12, 12, 0, 0)


# ---------------------------------------------------------------- candidates, once or each, times


def test_all_candidates_cost_nothing_and_k_candidates_are_the_top_k(twin, run):
    most = twin.train.Y.shape[1]
    found = rules.cuts(twin, [run], [5, most]).set_index(["candidates", "k"])
    assert found.loc[(str(most), 5), "same"] > 99
    assert found.loc[(str(most), 5), "Cov"] == pytest.approx(found.loc[("all", 5), "Cov"], rel=0.02)
    plain = rules.scores(twin, xc.decide.top_k(run.probabilities, 5), 5)
    assert found.loc[("5", 5), "P"] == pytest.approx(plain["P"])
    assert found.loc[("5", 5), "Cov"] == pytest.approx(plain["Cov"])
    assert found.loc[("5", 5), "Cov"] < found.loc[("all", 5), "Cov"]
    assert found.index.get_level_values("candidates")[:3].tolist() == ["5", str(most), "all"]


def test_without_a_tree_there_is_no_exact_row(run, twin):
    found = rules.cuts(twin, [Run(0, run.probabilities, None)], [5])
    assert found["candidates"].unique().tolist() == ["5"]
    assert found["same"].isna().all()


def test_decided_once_is_the_first_places_of_the_decision_for_five(twin, run):
    found = rules.decided_once(twin, [run]).set_index(["rule", "k"])
    five = xc.decide.greedy_coverage(run.probabilities, 5)
    assert found.loc[("COV-PLT", 1), "Cov, once for 5"] == pytest.approx(rules.scores(twin, five.head(1), 1)["Cov"])
    one = xc.decide.greedy_coverage(run.probabilities, 1)
    assert found.loc[("COV-PLT", 1), "Cov, each k"] == pytest.approx(rules.scores(twin, one, 1)["Cov"])


def test_times_are_ratios_to_the_plain_search_with_the_papers_beside(twin, run):
    found = rules.times(twin, [run], [0.0, 0.25, 0.5]).set_index("rule")
    assert found.loc["PLT", "search / PLT"] == 1
    assert (found["search ms"] > 0).all()
    assert found.loc["COV-PLT", "printed / PLT"] == pytest.approx(6.51 / 3.17)
    assert found.loc["COVβ=0.25", "printed / PLT"] == pytest.approx(4.67 / 3.17)
    assert np.isnan(found.loc["COVβ=0.5", "printed / PLT"])
    assert len(rules.times(twin, [Run(0, run.probabilities, None)], [0.0])) == 0


# ---------------------------------------------------------------- the frontier


def test_sources_are_the_models_the_calibrated_and_for_a_twin_the_true_probabilities(twin, run):
    found = rules.sources(twin, run)
    assert list(found) == ["label tree", "label tree, isotonic", "true probabilities"]
    assert found["true probabilities"] is twin.test.marginals
    before, after = found["label tree"], found["label tree, isotonic"]
    assert before.nnz == after.nnz
    assert abs(before - after).max() > 0
    real = Dataset("own", twin.train, twin.test, A=0.55, B=1.5)
    assert list(rules.sources(real, run, "mine")) == ["given", "given, isotonic"]


def test_isotonic_never_turns_a_row_round(twin, run):
    found = rules.sources(twin, run)
    before, after = found["label tree"].toarray()[0], found["label tree, isotonic"].toarray()[0]
    order = np.argsort(-before, kind="stable")
    stored = order[before[order] > 0]
    assert (np.diff(after[stored]) <= 1e-7).all()


def test_the_path_ends_in_the_plain_top_k_and_expects_what_certain_probabilities_give(twin):
    found = rules.path(twin, {"truth": twin.test.Y}, [0.0])
    assert found["beta"].tolist() == [0.0, math.inf] * 3
    assert np.allclose(found["P"], found["expected P"])
    assert np.allclose(found["Cov"], found["expected Cov"])
    plain = rules.scores(twin, xc.decide.top_k(twin.test.Y, 3), 3)
    assert found["Cov"].iloc[3] == pytest.approx(plain["Cov"])


def test_the_other_rules_beside_the_path(twin, run):
    found = rules.others(twin, run).set_index(["rule", "k"])
    top = xc.decide.weighted(run.probabilities, 3, rules.weights(twin))
    assert found.loc[("PS-PLT", 3), "P"] == pytest.approx(rules.scores(twin, top, 3)["P"])
    assert len(found) == 9


def test_the_constrained_selection_keeps_its_floor_in_expectation(twin):
    # With the truth itself for probabilities, expectation and outcome are one.
    found = rules.constrained(twin, {"truth": twin.test.Y}, 0.9)
    assert (found["P kept"] >= 90 - 1e-9).all()
    assert (found["Cov gain"] >= 0).all()
    strict = rules.constrained(twin, {"true": twin.test.marginals}, 0.99)
    loose = rules.constrained(twin, {"true": twin.test.marginals}, 0.8)
    assert (strict["beta"] > loose["beta"]).all()
    assert (strict["P kept"] > loose["P kept"]).all()


def test_the_title_and_the_figure(twin, run):
    found = rules.sources(twin, run)
    path, chosen = rules.path(twin, found, [0.0, 1.0]), rules.constrained(twin, found, 0.95)
    fig = rules.plot(path, rules.others(twin, run), chosen, 0.95)
    assert len(fig.axes) == 3
    planted = pd.DataFrame({"source": ["tree", "truth"], "k": 5, "Cov": [50.0, 80.0], "Cov gain": [10.0, 5.0]})
    title = rules._title(planted, 0.95)
    assert "For 5 % of the P@5 it expects, the tree goes from 40 to 50 % coverage@5" in title
    assert "with truth: from 75 to 80 %" in title
