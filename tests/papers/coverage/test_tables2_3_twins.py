"""coverage/tables2_3_twins: every cell against the public calls, print beside it by name, claims where they are planted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro import decide, metrics
from xcrepro.errors import ArgumentError
from xcrepro.inputs.datasets import weights
from xcrepro.papers.coverage import tables2_3_twins as twins
from xcrepro.papers.coverage._common import Run


@pytest.fixture(scope="module")
def made(twin, run):
    loaded = {"EURLex-4K": twin}
    other = Run(1, run.probabilities.power(0.5).tocsr(), None)
    runs = twins.compute_runs(loaded, {"EURLex-4K": [run, other]}, [0.0, 0.5])
    return twin, run, other, runs, twins.compute(loaded, runs)


def test_cells_are_the_public_calls(made):
    twin, run, other, runs, table = made
    assert list(dict.fromkeys(table["rule"])) == ["PLT", "PS-PLT", "COV-PLT", "COVβ=0.5", "BRS-PLT"]
    value = runs.set_index(["rule", "run", "metric", "k"])["value"]
    for one in (run, other):
        top = decide.greedy_coverage(one.probabilities, 3, 0.5)
        want = 100 * metrics.coverage(twin.test.Y, top, 3, over="test")[0]
        assert value["COVβ=0.5", one.number, "Cov", 3] == pytest.approx(want)
        top = decide.weighted(one.probabilities, 5, weights(twin))
        assert value["PS-PLT", one.number, "P", 5] == pytest.approx(100 * metrics.precision(twin.test.Y, top, 5)[0])
    for row in table.itertuples():
        two = value[row.rule, :, row.metric, row.k].to_numpy()
        assert row.mean == pytest.approx(two.mean())
        assert row.stderr == pytest.approx(two.std(ddof=1) / np.sqrt(2))


def test_print_stands_beside_the_right_cell(made):
    *_, table = made
    printed = table.set_index(["rule", "metric", "k"])["printed"]
    assert printed["COV-PLT", "Cov", 1] == 44.77
    assert printed["COVβ=0.5", "P", 1] == 79.22
    assert printed["PLT", "P", 1] == 81.7
    share = table.set_index(["rule", "metric", "k"])["printed / PLT"]
    assert share["COVβ=0.5", "P", 1] == pytest.approx(100 * 79.22 / 81.7)
    assert share["PLT", "PSP", 3] == 100


def test_few_hits_are_not_compared(made):
    *_, table = made
    plain = table[(table["rule"] == "PLT") & (table["metric"] == "P") & (table["k"] == 1)].iloc[0]
    assert plain["behind"] == round(2 * plain["mean"] * made[0].test.Y.shape[0] / 100)
    kept = twins.check(table.assign(behind=np.where(table["k"] == 5, twins.STABLE, twins.STABLE - 1)))
    assert kept[kept["k"] == 5]["mean"].notna().all()
    assert kept[kept["k"] < 5]["mean"].isna().all()


def test_claims_where_they_are_planted(made):
    *_, table = made
    draws = np.array([0.0, 0.1, -0.1])
    rows = [
        ("EURLex-4K", rule, number, "Cov", k, level + draws[number] * (1 + 0.1 * level))
        for rule, level in (("PLT", 10.0), ("COV-PLT", 30.0))
        for number in range(3)
        for k in (1, 3, 5)
    ]
    runs = pd.DataFrame(rows, columns=["dataset", "rule", "run", "metric", "k", "value"])
    said = twins.findings(runs, table[table["rule"].isin(["PLT", "COV-PLT"])])
    assert said == [
        "Over datasets and k, COV-PLT covers more than PLT: clearly so in all 3 comparisons; in print 3 of 3."
    ]
    assert len(twins.plot(table).axes) == 1
    assert twins.lay_out(table).shape == (5, 11)


def test_parameters_are_refused_by_their_name():
    good = {"names": ["bibtex"], "scales": [0.1], "repeats": 2, "betas": [0.0]}
    twins.check_parameters(good)
    for name, value in (("repeats", 1), ("betas", [-1.0])):
        with pytest.raises(ArgumentError, match=f"parameter {name} must"):
            twins.check_parameters(good | {name: value})
