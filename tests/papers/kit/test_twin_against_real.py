"""The twin beside real data: what is printed, tolerance and sign, the sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.papers.kit import twin_against_real as item


@pytest.fixture(scope="module")
def ds():
    return xc.twin("bibtex", scale=0.1)


def test_recorded_statistics_are_those_that_are_counted(ds):
    table = item.compute_statistics({1.0: ds})
    assert len(table) >= 12
    assert table["real"].notna().all()
    assert table.set_index("statistic").loc["head share", "real"] == 0.141
    assert item.compute_statistics({0.1: ds})["real"].isna().all()


def test_printed_rows():
    eurlex = xc.twin("eurlex-4k", scale=0.02)
    found = item.printed(eurlex).set_index(["method", "metric", "k"])["value"]
    assert found[("PLT", "Cov", 3)] == 41.85
    assert found[("Popularity", "PSP", 1)] == 1.80
    assert found[("FastXML", "P", 5)] == 52.03
    assert found.index.is_unique


def test_tolerance_and_sign(ds):
    Y = ds.test.Y
    top = xc.TopK.from_scores(ds.test.observed_marginals, 5)
    table = item.compute_baselines(ds, {"OneVsRest": top, "Popularity": top})
    first = table[(table["model"] == "OneVsRest") & (table["metric"] == "P")].set_index("k")
    assert first.loc[1, "printed as"] == "1-vs-All"
    assert first.loc[1, "printed"] == 62.62
    hits = np.mean([Y[i, top.ids[i, 0]] for i in range(Y.shape[0])])
    assert first.loc[1, "twin"] == pytest.approx(100 * hits)
    assert list(first["within"]) == [bool(abs(off) <= 4) for off in first["difference"]]
    gap = table[table["metric"] == "confidence - accuracy"].iloc[0]
    assert gap["within"] == (gap["twin"] < 0)
    planted = table.assign(twin=np.where(table["k"] == 3, 99.0, table["printed"]))
    planted["difference"] = planted["twin"] - planted["printed"]
    planted["within"] = planted["difference"].abs() <= 4
    assert "@3: 99.0 for" in item.summary(planted)
    assert item.summary(table[table["printed"].isna()]).startswith("Nothing is printed")
    assert isinstance(item.plot(table).axes, list)
    pd.testing.assert_frame_equal(table, item.compute_baselines(ds, {"OneVsRest": top, "Popularity": top}))
