"""coverage/tables2_3_twins: every cell against the public calls, print beside it by name, claims where they are planted."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro import decide, metrics
from xcrepro.errors import ArgumentError
from xcrepro.findings import Measured
from xcrepro.inputs.datasets import weights
from xcrepro.papers.coverage import tables2_3_twins as twins


@pytest.fixture(scope="module")
def made(twin, run):
    loaded = {"EURLex-4K": twin}
    chosen = twins.choose(twin, run, [0.0, 0.5])
    measured = twins.measure(loaded, {"EURLex-4K": chosen})
    return twin, run, measured, twins.compute(loaded, measured)


def test_cells_are_the_public_calls(made):
    twin, run, measured, table = made
    assert list(dict.fromkeys(table["rule"])) == ["PLT", "PS-PLT", "COV-PLT", "COVβ=0.5", "BRS-PLT"]
    value = table.set_index(["rule", "metric", "k"])["value"]
    top = decide.greedy_coverage(run.probabilities, 3, 0.5)
    assert value["COVβ=0.5", "Cov", 3] == pytest.approx(100 * metrics.coverage(twin.test.Y, top, 3, over="test")[0])
    top = decide.weighted(run.probabilities, 5, weights(twin))
    assert value["PS-PLT", "P", 5] == pytest.approx(100 * metrics.precision(twin.test.Y, top, 5)[0])
    want = 100 * metrics.psp(twin.test.Y, top, 5, inverse_propensity=weights(twin))[0]
    assert value["PS-PLT", "PSP", 5] == pytest.approx(want)
    error = table.set_index(["rule", "metric", "k"])["error"]["PLT", "P", 1]
    assert error == measured["EURLex-4K", "P", 1].error("PLT") > 0


def test_print_stands_beside_the_right_cell(made):
    *_, table = made
    printed = table.set_index(["rule", "metric", "k"])["printed"]
    assert printed["COV-PLT", "Cov", 1] == 44.77
    assert printed["COVβ=0.5", "P", 1] == 79.22
    assert printed["PLT", "P", 1] == 81.7
    share = table.set_index(["rule", "metric", "k"])["printed / PLT"]
    assert share["COVβ=0.5", "P", 1] == pytest.approx(100 * 79.22 / 81.7)
    assert share["PLT", "PSP", 3] == 100


def test_times_are_those_of_table_2_for_each_dataset(twin, run):
    found = twins.compute_times({"EURLex-4K": twin, "again": twin}, {"EURLex-4K": run, "again": run})
    rules = ["PLT", "PS-PLT", "COV-PLT", "COVβ=0.25", "BRS-PLT"]
    assert list(zip(found["dataset"], found["rule"], strict=True)) == [
        (name, rule) for name in ("EURLex-4K", "again") for rule in rules
    ]
    found = found[found["dataset"] == "again"].set_index("rule")
    assert found.loc["PLT", "search / PLT"] == 1
    assert (found["search ms"] > 0).all()
    assert found.loc["PS-PLT", "printed / PLT"] == pytest.approx(6.03 / 3.17)
    assert found.loc["COV-PLT", "printed / PLT"] == pytest.approx(6.51 / 3.17)
    assert found.loc["COVβ=0.25", "printed / PLT"] == pytest.approx(4.67 / 3.17)
    assert found.loc["BRS-PLT", "printed / PLT"] == pytest.approx(4.63 / 3.17)
    assert found.loc["BRS-PLT", "search / PLT"] == found.loc["BRS-PLT", "search ms"] / found.loc["PLT", "search ms"]


def test_the_hits_behind_a_value(made):
    *_, table = made
    plain = table[(table["rule"] == "PLT") & (table["metric"] == "P") & (table["k"] == 1)].iloc[0]
    assert plain["behind"] == round(plain["value"] * made[0].test.Y.shape[0] / 100)


def test_claims_where_they_are_planted(made):
    *_, table = made
    draws = np.array([0.0, 0.1, -0.1])
    one = Measured.of_runs({"PLT": 10 + draws, "COV-PLT": 30 + 1.1 * draws})
    measured = {("EURLex-4K", "Cov", k): one for k in (1, 3, 5)}
    said = twins.findings(measured, table[table["rule"].isin(["PLT", "COV-PLT"])])
    assert said == [
        "Over datasets and k, COV-PLT covers more than PLT: clearly so in all 3 comparisons; in print 3 of 3."
    ]
    assert len(twins.plot(table).axes) == 1
    assert twins.lay_out(table).shape == (5, 11)


def test_parameters_are_refused_by_their_name():
    good = {"names": ["bibtex"], "scales": [0.1], "betas": [0.0]}
    twins.check_parameters(good)
    with pytest.raises(ArgumentError, match="betas"):
        twins.check_parameters(good | {"betas": [-1.0]})
