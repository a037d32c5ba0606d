"""The printed plane of P@k and Cov@k: domination by hand, and what the titles say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.papers.coverage import frontier as item


def test_domination_needs_two_standard_errors_in_both():
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
    titles = [item.plot(table[table["k"] == k]).get_suptitle() for k in (1, 3, 5)]
    assert all("beats BRS-PLT on both in 6 of 6 sets" in title for title in titles)
    assert "so beaten in none, and itself beats some β on both in 2." in titles[2]
