"""The printed plane of P@k and Cov@k: domination by hand, and what the titles say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.papers.coverage import frontier as item


def test_domination_must_be_clear_in_both():
    rules = [
        ("COVbeta-PLT", "0", 50.0, 40.0),
        ("COVbeta-PLT", "1", 80.0, 20.0),
        ("BRS-PLT", "", 40.0, 10.0),
        ("PLT", "", 79.9, 10.0),  # worse in both, but in P by less than an error
        ("PS-PLT", "", 81.0, 30.0),
    ]
    plane = pd.DataFrame(rules, columns=["method", "beta", "P", "Cov"])
    plane = plane.assign(dataset="D", k=1, **{"P stderr": 0.1, "Cov stderr": 0.1})
    found = item.compute_against_path(plane).set_index("method")
    assert found["dominated by"].to_dict() == {"BRS-PLT": "0, 1", "PLT": "-", "PS-PLT": "-"}
    assert found["dominates"].to_dict() == {"BRS-PLT": "-", "PLT": "-", "PS-PLT": "1"}
    assert found.loc["PS-PLT", "P minus path"] == pytest.approx(16.0)
    assert np.isnan(found.loc["PLT", "P minus path"])
    [weighted] = item.compute_claims(plane).query("method == 'PS-PLT'").drop(columns=["method", "k"]).to_numpy()
    assert weighted.tolist() == [1, 0, 1, 1, 1]


def test_the_plane_is_whole_and_the_titles_count_it():
    table = item.compute()
    assert len(table) == 6 * 3 * (4 + 3)
    assert not table.isna().any().any()
    row = table.set_index(["dataset", "method", "beta", "k"]).loc[("EURLex-4K", "PLT", "", 1)]
    assert row.tolist() == [81.70, 0.09, 22.95, 0.16]
    path = table[table["beta"] != ""].pivot(index=["dataset", "k"], columns="beta", values="Cov")
    assert (path[["0", "0.25", "0.5", "1"]].diff(axis=1).iloc[:, 1:] < 0).all().all()
    assert item.plot(table[table["k"] == 5]).get_suptitle() == (
        "P@5 against Cov@5 of the rules in tables 2 and 3, as printed"
    )


def path(P: list[float], Cov: list[float], error: float = 0.1) -> pd.DataFrame:
    rows = [("COVbeta-PLT", beta, p, c) for beta, p, c in zip(("0", "0.5", "1"), P, Cov, strict=True)]
    table = pd.DataFrame(rows, columns=["method", "beta", "P", "Cov"])
    return table.assign(dataset="D", k=1, **{"P stderr": error, "Cov stderr": error})


def test_findings_follow_the_printed_errors():
    rule = pd.DataFrame([{"method": "BRS-PLT", "beta": "", "P": 5.0, "Cov": 5.0}])
    rule = rule.assign(dataset="D", k=1, **{"P stderr": 0.1, "Cov stderr": 0.1})
    clear = item.findings(pd.concat([path([50.0, 60.0, 70.0], [40.0, 30.0, 20.0]), rule]))
    assert clear[0] == "as printed, a larger β lowers Cov@k: clearly so in all 2 comparisons"
    assert clear[1] == "as printed, a larger β raises P@k: clearly so in all 2 comparisons"
    assert clear[2].startswith("BRS-PLT: some β is clearly better in both P@k and Cov@k in 1 of 1 panels")
    unsure = item.findings(pd.concat([path([50.0, 60.0, 70.0], [40.0, 30.0, 20.0], 50.0), rule]))
    assert unsure[0].endswith("clearly so in 0 of 2 comparisons, not clear in 2")
    assert " in 0 of 1 panels" in unsure[2]
    turned = item.findings(pd.concat([path([70.0, 60.0, 50.0], [40.0, 30.0, 20.0]), rule]))
    assert turned[1].endswith("clearly so in 0 of 2 comparisons, clearly the other way round in 2")
