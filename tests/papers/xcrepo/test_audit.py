"""How the audit's findings are shown; the findings themselves have their tests in tests/published."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.papers.xcrepo import audit


@pytest.fixture(scope="module")
def found():
    return audit.compute()


def test_counts_are_of_rows_and_of_distinct_cells(found):
    twice = pd.concat([found, found.head(1)])
    table, more = audit.compute_counts(found), audit.compute_counts(twice)
    judgements = table.columns[1:-1]
    assert table[judgements].to_numpy().sum() == len(found)
    assert more[judgements].to_numpy().sum() == len(found) + 1
    assert more["cells"].tolist() == table["cells"].tolist()


def test_a_description_has_every_finding_of_its_checks(found):
    shown = audit.describe(found, "owners", "same_cell")
    lines = shown.text.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert len(heads) == found["check"].isin(["owners", "same_cell"]).sum()
    assert all(len(line) <= 110 for line in lines if line.startswith(" "))
    assert shown.summary == f"{len(heads)} findings in xcrepo, calibration"
    assert audit.describe(found, "no such check").summary == "0 findings"


def test_findings_are_counted(found):
    part = found[found["check"].isin(["owners", "same_cell"])]
    said = audit.findings(part)
    assert said[0].startswith(f"{len(part)} findings; {(part['judgement'] == 'typo').sum()} of them cannot be right")
    owners = (part["check"] == "owners").sum()
    nine = f"{owners - 1} rows of the table of EURLex-4K stand under other methods' names"
    assert said[1] == f"{nine}; AnnexML likely too, which rests on elimination alone."
    assert "within 3 tables of the page" in audit.findings(found)[2]
    assert audit.findings(found)[0].startswith(f"{len(found)} findings;")


def test_a_displaced_row_is_nearest_to_its_owner(found):
    """All but AnnexML, whose owner is what the other nine leave."""
    matrix = audit.compute_displaced(found)
    methods = list(matrix.columns[1:])
    values = matrix[methods].to_numpy()
    assert (values.argmin(axis=1) == np.arange(len(matrix)))[1:].all()
    assert matrix["page"][0] == "AnnexML"
    assert not any(name == methods[row] for row, name in enumerate(matrix["page"]))


def test_what_two_documents_print_apart():
    table, cells = audit.compute_shared(), xc.published.shared()
    apart = cells[cells["difference"].abs() > 1]
    assert table["k"].str.split().map(len).sum() == len(apart)
    assert table["most"].is_monotonic_decreasing
    assert f", {len(apart)} differ by more than a point" in audit.shared_findings()[0]


def test_how_far_two_rows_are_apart():
    a, b = pd.Series({"x": 10.0, "y": 4.0}), pd.Series({"y": 5.0, "x": 9.0})
    assert audit._largest_difference(a, b) == pytest.approx(20.0)  # 1 of 5
