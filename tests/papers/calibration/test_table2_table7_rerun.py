"""Tables 2 and 7: planted falls, an error that vanishes, a map that turns orders round, the printed rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.data.dataset import Dataset, Split
from xcrepro.findings import Measured
from xcrepro.inputs import calibrated
from xcrepro.metrics import calibration as metric
from xcrepro.papers.calibration import table2_table7_rerun as item
from xcrepro.predictions import TopK


def spread(values: dict[str, float], error: float = 0.1) -> Measured:
    """Numbers with replicates that give all of them about this error, not the same for any two."""
    rng = np.random.default_rng(0)
    return Measured(values, {name: value + error * rng.normal(size=20) / 19**0.5 for name, value in values.items()})


def planted() -> tuple[pd.DataFrame, dict[int, Measured]]:
    """a falls far, b too little, c does not start above 5, d falls by 5 times and a little, less than its error."""
    values = {
        "ECE": [50, 8, 4, 6.0],
        "ECE ±": 0.1,
        "ECE-I": [1, 3, 3.9, 1.19],
        "ECE-I ±": 0.1,
        "ratio": [50, 2.7, 1, 5.04],
    }
    values["ECE corrected-I low"] = [0.0, 1.2, 2.0, 0.0]
    fall = pd.DataFrame({"k": 5, "model": list("abcd"), **values, "floor": 0.6, "true-I": np.nan})
    states = {"before": "ECE", "after": "ECE-I"}
    numbers = {f"{row['model']}, {state}": row[name] for _, row in fall.iterrows() for state, name in states.items()}
    return fall, {5: spread(numbers)}


PRECISION = pd.DataFrame({"model": list("ab"), "P@1": "same bits", "P@3": ["same bits", "-0.010"], "P@5": "same bits"})


def test_the_finding_is_tested_and_not_counted():
    fall, measured = planted()
    assert [one.verdict for one in item.compare_falls(fall, measured)] == ["above", "below", "not clear"]
    sentences = item.findings(fall, measured, PRECISION, pd.DataFrame())
    assert sentences[0] == (
        "Over pairs of a model and a k, ECE@k is lower after isotonic regression: clearly so in 3 of 4 comparisons, "
        "not clear in 1."
    )
    assert sentences[1] == (
        "Over these, an error above 5 points falls to a fifth or less: clearly so in 1 of 3 comparisons, "
        "clearly the other way round in 1, not clear in 1."
    )
    assert sentences[2].startswith("After it, 2 of 4 intervals of the corrected error hold 0")
    assert "for 1 of 2 models" in sentences[3]
    assert "here it is 4.0 to 50.0 % before and 1.0 to 3.9 % after" in sentences[4]
    assert len(sentences) == 5  # no truth is known, and no model has probabilities


def test_one_model_that_starts_low_has_a_figure_and_no_fall():
    fall, measured = planted()
    low = fall[fall["model"] == "c"]
    assert "No error here starts above 5 points." in item.findings(low, measured, PRECISION, pd.DataFrame())
    fig = item.plot(low)
    assert fig.get_suptitle() == "ECE@k before and after isotonic regression"
    assert [text.get_text() for text in fig.legends[0].get_texts()].count("after, true") == 0


def test_fall_and_direction_of_a_planted_overconfidence(twin, misjudged):
    tops = {"right": misjudged(twin, 5), "over": misjudged(twin, 5, 0.4), "under": misjudged(twin, 5, 3.0)}
    states = calibrated.before_after(twin, tops)
    fall = item.compute(twin, states, item.measure(twin, states)).set_index(["model", "k"])
    assert fall.loc[("right", 5), "true"] < 1e-4
    words = item.describe_direction(item.compute_direction(twin, states)).set_index("model")
    for name in ("over", "under"):
        row = fall.loc[(name, 5)]
        assert min(row["ECE"], row["true"]) > 10
        assert row["ratio"] == pytest.approx(row["ECE"] / row["ECE-I"])
        assert row["true-I"] < row["true"] / 3
        assert words.loc[name, "k = 5"] == name


def test_words_for_the_direction_by_hand():
    rows = [("a", 8.0, 2.0), ("b", 7.9, 2.1), ("c", 1.0, 4.0), ("d", 0.9, 0.0)]
    table = pd.DataFrame(rows, columns=["model", "ECE over", "ECE under"]).assign(k=3)
    assert item.describe_direction(table)["k = 3"].tolist() == ["over", "both ways", "under", "calibrated"]


def test_a_vanished_error_has_an_infinite_ratio():
    # one score for everybody, right on average: after calibration nothing is left to divide by
    n = 1000
    split = Split(None, csr_matrix((np.arange(n) % 10 < 3).astype(np.float32)[:, None]))
    ds = Dataset("own", split, split, 0.55, 1.5)
    first = np.broadcast_to(np.arange(5) == 0, (n, 5))
    top = TopK(np.where(first, 0, -1).astype(np.int32), np.where(first, np.float32(0.9), -np.float32(np.inf)), 1)
    states = calibrated.before_after(ds, {"constant": top})
    fall = item.compute(ds, states, item.measure(ds, states))
    assert fall["ECE"].tolist() == pytest.approx([60.0] * 3)
    assert (fall["ratio"] == np.inf).all()


def test_joint_isotonic_keeps_precision_and_a_turning_map_is_seen(twin, misjudged):
    tops = {"a": misjudged(twin, 5, 0.4)}
    kept = item.compute_precision(twin, calibrated.before_after(twin, tops))
    assert kept.iloc[0].tolist() == ["a", "same bits", "same bits", "same bits", 0]

    class Upside:
        def fit(self, scores, hits):
            return self

        def predict(self, scores):
            return 1.0 - scores

    turned = item.compute_precision(twin, calibrated.before_after(twin, tops, (5,), Upside())).iloc[0]
    assert turned["rows re-ranked"] > 0
    assert turned["P@1"].startswith("-")
    assert turned["P@5"] == "same bits"


def test_the_table_holds_the_metrics_before_and_after(twin, misjudged):
    states = calibrated.before_after(twin, {"b": misjudged(twin, 5, 0.5), "a": misjudged(twin, 5)})
    table = item.compute_table(twin, states)
    assert table["model"].tolist() == ["b", "a"] * 3
    assert table["k"].tolist() == [1, 1, 3, 3, 5, 5]
    wide = table.set_index(["model", "k"])
    for row in calibrated.errors(twin, states).itertuples():
        assert wide.loc[(row.model, row.k), [row.metric, f"{row.metric}-I"]].tolist() == [row.before, row.after]


def test_printed_rows_of_a_twins_original_with_readings():
    ds = calibrated.data("amazoncat-13k", "small", 0.002, 0, "")
    rows = item.compare_with_printed(ds, ["DiSMEC", "PLT", "Neural"])
    first = rows[(rows["k"] == 5) & (rows["method"] == "DiSMEC")].iloc[0]
    assert first[["ECE", "ECE-I", "for our", "Brier-I"]].tolist() == ["58.38", "0.05", "DiSMEC", "1.24 [12.4]†"]
    assert len(rows) == 18
    assert set(rows["for our"]) == {"DiSMEC", "PLT", "Neural", ""}
    assert len(item.compare_with_printed(xc.twin("bibtex", scale=0.1), ["PLT"])) == 0


def test_marginal_error_is_small_where_that_at_k_is_large(misjudged):
    ds = xc.twin("eurlex-4k", scale=0.1, seed=0)
    under = misjudged(ds, 100, 3.0)
    table = item.compute_marginal(ds, {"under": under, "DiSMEC": misjudged(ds, 100)})
    assert table["model"].tolist() == ["under"]
    assert table["ECE@1"][0] > 15
    assert table["marginal ECE"][0] < 3
    whole = csr_matrix(under.to_csr())
    slow = [metric.ece(whole[:, j].toarray(), ds.test.Y[:, j].toarray() > 0) for j in range(whole.shape[1])]
    assert table["marginal ECE"][0] == pytest.approx(100 * np.mean(slow), rel=1e-4)
