"""Twenty of thirty bars, read off tables 3 and 4."""

from __future__ import annotations

import pandas as pd

from xcrepro.papers.reeval import _common
from xcrepro.papers.reeval import fig2_micro_macro_f1 as fig2


def test_twenty_of_thirty_bars():
    bars = fig2.compute()
    assert len(bars) == 30
    assert set(bars.loc[bars["value"].isna(), "dataset"]) == {"Wiki10-31K"}
    value = bars.set_index(["metric", "dataset", "method"])["value"]
    assert value.notna().sum() == 20
    assert value["micro_F1", "EURLex-4K", "SVM"] == 57.37
    assert value["macro_F1", "EURLex-4K", "SVM"] == 17.89
    best = _common.compute_best(bars).set_index("dataset")
    assert best.loc["AmazonCat-13K", ["best micro_F1", "best macro_F1"]].tolist() == ["X-Transformer", "AttentionXML"]
    assert best.loc["AmazonCat-13K", "SVM's place, macro_F1"] == "2 of 5"
    assert best.loc["Wiki10-31K", "best micro_F1"] == "-"


def test_findings_name_the_best_and_what_is_not_printed():
    said = fig2.findings(fig2.compute())
    assert said[0].startswith("20 of the figure's 30 bars")
    assert "APLC-XLNet is first by 0.71 points and SVM 5 of 5" in said[1]
    assert said[2].startswith("Wiki10-31K: no table has k = 19")
    rows = [("micro_F1", "SVM", 1.0), ("micro_F1", "A", 2.0), ("macro_F1", "SVM", 1.0), ("macro_F1", "A", 2.5)]
    table = pd.DataFrame(rows, columns=["metric", "method", "value"]).assign(dataset="D", k=5)
    assert fig2.findings(table)[1].endswith("the same best.")
