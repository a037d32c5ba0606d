"""Tables 3 and 4: what the notebook defines, against cells read off the paper, numbers by hand, and planted orders."""

from __future__ import annotations

import numpy as np
import pytest

import xcrepro as xc
from tests import notebook
from xcrepro.core.propensity import inverse


@pytest.fixture(scope="module")
def defined(root):
    return notebook.defined(root / "notebooks/jain16/table3_table4.ipynb")


def test_psp_is_the_papers_ratio(defined, small, tops):
    w = inverse([5, 3, 1, 0], 6, 0.55, 1.5)
    # Place 1. The best rankings show label 1, label 2 and label 0.
    best = w[1] + w[2] + w[0]
    assert defined["psp"](small.test.Y, tops["head"], 1, w) == pytest.approx(100 * 2 * w[0] / best)
    assert defined["psp"](small.test.Y, tops["tail"], 1, w) == pytest.approx(100 * (w[1] + w[2]) / best)
    for name, top in tops.items():
        for k in (1, 3, 5):
            call = 100 * xc.metrics.psp(small.test.Y, top, k, inverse_propensity=w)[0]
            assert defined["psp"](small.test.Y, top, k, w) == pytest.approx(call), (name, k)


def test_first_predictions_are_counted_by_frequency(defined, small, tops):
    found = defined["by_frequency"](small.test.Y, tops["head"], np.array([5, 3, 1, 0]), edges=(1, 5))
    assert found == {"1 to 4: predicted": 0, "1 to 4: right": 0, "5 or more: predicted": 3, "5 or more: right": 2}


def test_the_tables_as_printed(defined):
    table3, table4 = defined["read_printed"](3), defined["read_printed"](4)
    names = [f"{metric}@{k}" for metric in ("PSnDCG", "PSP") for k in (1, 3, 5)]
    assert (list(table3), list(table4)) == (names, ["Cov@1", "Cov@3", "Cov@5"])
    assert (table3.shape, table4.shape) == ((36, 6), (18, 3))
    assert table3.iloc[-1].tolist() == [13.52, 16.43, 17.79, 13.52, 17.95, 20.50]
    assert table4.iloc[-1].tolist() == [6.04, 7.45, 8.09]


def test_leads_see_a_turned_cell(defined):
    table3 = defined["read_printed"](3)
    found = defined["leads"](table3).set_index("dataset")
    assert set(found["columns led"]) == {"6 of 6"}
    assert found.loc["Ads-9M", "largest gain"] == pytest.approx(20.50 - 17.26)
    assert found.loc["AmazonCat-13K", "largest gain"] == pytest.approx(69.05 - 46.75)
    assert found.loc["EURLex-4K", "least lead"] == pytest.approx(48.08 - 46.17)  # P5, over 1-vs-All
    table3.loc[("EURLex-4K", "SLEEC"), "PSP@1"] = 99.0
    assert defined["leads"](table3).set_index("dataset").loc["EURLex-4K", "columns led"] == "5 of 6"
