"""What the coverage items compute from printed numbers: counts, readings, and the sentences of titles.

The tables are planted where a count has to be able to come out otherwise, and the committed ones where a title or a
notebook states what they show.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro import published
from xcrepro.repro import coverage


@pytest.fixture
def altered(monkeypatch):
    """``altered(source, change)``: the tables are the committed ones, that of ``source`` after ``change(table)``."""
    true, changes = published.table, {}

    def table(source):
        found = true(source)
        return changes[source](found.copy()) if source in changes else found

    monkeypatch.setattr(published, "table", table)
    return changes.__setitem__


def put(value: float, **where):
    """A change that sets the cells where all the columns have the given values; there must be some."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        keep = np.logical_and.reduce([table[name] == wanted for name, wanted in where.items()])
        assert keep.any()
        table.loc[keep, ["printed", "value", "reading"]] = [str(value), value, "as printed"]
        return table

    return change


def holds(claims: pd.DataFrame, claim: str, where: str = "", column: str = "as read") -> str:
    found = claims[(claims["claim"] == claim) & claims["where"].str.startswith(where)]
    assert len(found) == 1
    return found[column].iloc[0]


# ---------------------------------------------------------------- coverage


@pytest.mark.parametrize("number", [1, 2, 3])
def test_coverage_tables_are_laid_out_whole_with_their_errors(number):
    table, wide = coverage.table(number), coverage.laid_out(number)
    cells = wide.drop(columns=[name for name in ("metric", "method", "dataset") if name in wide]).to_numpy().ravel()
    wanted = [p if s == "" else f"{p} ± {s}" for p, s in zip(table["printed"], table["stderr"], strict=True)]
    assert sorted(text for text in cells if isinstance(text, str)) == sorted(wanted)


def test_the_cell_that_cannot_be_is_the_one_that_breaks_the_sentence(altered):
    claim = "training on head labels costs P, nDCG, Abandonment under 10 %"
    assert holds(coverage.claims(), claim, column="holds in") == "8 of 9"
    altered("coverage:table1", put(93.0, metric="N", variant="head-1000", k=1))
    assert holds(coverage.claims(), claim, column="holds in") == "9 of 9"


def test_highest_and_second_highest_coverage_are_counted(altered):
    claims = coverage.claims()
    assert holds(claims, "COV-PLT has the highest Cov@k", column="holds in") == "18 of 18"
    assert holds(claims, "COVbeta-PLT has the second highest Cov@k", column="holds in") == "13 of 18"
    altered("coverage:table2", put(99.0, metric="Cov", method="PS-PLT", dataset="EURLex-4K", k=1))
    claims = coverage.claims()
    assert holds(claims, "COV-PLT has the highest Cov@k", column="holds in") == "17 of 18"
    assert holds(claims, "COVbeta-PLT has the second highest Cov@k", column="holds in") == "12 of 18"


def test_a_cell_that_differs_between_tables_2_and_3_is_seen(altered):
    altered("coverage:table3", put(1.0, metric="P", variant="beta=0", dataset="EURLex-4K", k=1))
    claim = "a cell that tables 2 and 3 share is the same in both"
    assert holds(coverage.claims(), claim, column="holds in") == "107 of 108"


def plane(*rows) -> pd.DataFrame:
    columns = ["method", "beta", "P", "P stderr", "Cov", "Cov stderr"]
    data = pd.DataFrame(rows, columns=columns)
    data.insert(0, "dataset", "D")
    data.insert(3, "k", 1)
    return data


def test_domination_needs_two_standard_errors_in_both():
    path = [("COVbeta-PLT", "0", 50.0, 0.1, 40.0, 0.1), ("COVbeta-PLT", "1", 80.0, 0.1, 20.0, 0.1)]
    beaten = ("BRS-PLT", "", 40.0, 0.1, 10.0, 0.1)
    near = ("PLT", "", 79.9, 0.1, 10.0, 0.1)  # worse in both, but in P by less than an error
    better = ("PS-PLT", "", 81.0, 0.1, 30.0, 0.1)
    found = coverage.against_path(plane(*path, beaten, near, better)).set_index("method")
    assert found["dominated by"].to_dict() == {"BRS-PLT": "0, 1", "PLT": "-", "PS-PLT": "-"}
    assert found["dominates"].to_dict() == {"BRS-PLT": "-", "PLT": "-", "PS-PLT": "1"}
    assert found.loc["PS-PLT", "P minus path"] == pytest.approx(16.0)
    assert np.isnan(found.loc["PLT", "P minus path"])


def test_titles_of_the_frontier():
    data = coverage.frontier()
    assert len(data) == 6 * 3 * (4 + 3)
    assert not data.isna().any().any()
    claims = coverage.frontier_claims(data).set_index(["method", "k"])
    assert (claims.loc["BRS-PLT", "dominated"] == 6).all()
    for k in (1, 3, 5):
        title = coverage.plot_frontier(data, k).get_suptitle()
        assert "beats BRS-PLT on both in 6 of 6 sets" in title
        weighted = claims.loc[("PS-PLT", k)]
        assert f"so beaten in {weighted['dominated'] or 'none'}," in title
        assert f"on both in {weighted['dominates'] or 'none'}." in title
    path = data[data["beta"] != ""].pivot(index=["dataset", "k"], columns="beta", values="Cov")
    assert (path[list(coverage.BETAS)].diff(axis=1).iloc[:, 1:] < 0).all().all()
