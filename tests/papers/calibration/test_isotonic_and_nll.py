"""calibration/isotonic_and_nll: the price of being sure by hand, regret where it is known, sentences where they are planted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro import metrics
from xcrepro.papers.calibration import isotonic_and_nll as item


def test_the_price_is_what_nll_loses_to_sure_scores(twin, misjudged):
    fits = item.calibrate_all(twin, {"over": misjudged(twin, 5, 0.4)}, ks=(5,))
    found = item.compute(twin, fits).set_index("method")
    assert list(found.index) == ["none", *item.METHODS]
    scores, hits = metrics.pairs(twin.test.Y, fits["over", 5]["isotonic"])
    wrong = sum((s == 0 and h) or (s == 1 and not h) for s, h in zip(scores, hits, strict=True))
    assert found.loc["isotonic", "wrong"] == wrong
    rest = [
        -np.log(s if h else 1 - s) for s, h in zip(scores.astype(float), hits, strict=True) if (s if h else 1 - s) > 0
    ]
    total = (sum(rest) + 100 * wrong) / scores.size
    assert found.loc["isotonic", "NLL"] == pytest.approx(total, rel=1e-6)
    assert found.loc["isotonic", "price"] == pytest.approx(100 * wrong / scores.size)
    assert (found.loc[["isotonic, smoothed", "Venn-Abers"], "sure"] == 0).all()
    assert found.loc["isotonic", "rest"] == pytest.approx(sum(rest) / scores.size, rel=1e-6)


def test_regret_falls_with_points_and_is_least_without_sure_scores():
    sizes = item.compute_sizes((100, 3000), repeats=8)
    wide = sizes.pivot(index="points", columns="method", values="regret")
    assert (wide.loc[100, ["isotonic, smoothed", "Venn-Abers", "beta"]] < wide.loc[100, "isotonic"]).all()
    assert wide.loc[3000, "Venn-Abers"] < wide.loc[100, "Venn-Abers"]
    assert wide.loc[3000, "Venn-Abers"] < wide.loc[3000, "none"]
    assert len(item.plot(sizes).axes) == 1


def test_the_record_is_counted(twin, misjudged):
    recorded = item.compute_recorded()
    assert {"bibtex", "delicious"} <= set(recorded["dataset"])
    assert (recorded["isotonic raised"] <= recorded["cases"]).all()
    fits = item.calibrate_all(twin, {"over": misjudged(twin, 5, 0.4)}, ks=(1,))
    sizes = pd.DataFrame(
        {"points": [10, 10, 20, 20], "method": ["none", "isotonic"] * 2, "regret": [0.1, 1.25, 0.1, 0.5]}
    )
    table = item.compute(twin, fits)
    said = item.findings(table, item.measure(twin, fits), sizes, recorded)
    nll = table.set_index("method")["NLL"]
    assert said[1].startswith(f"As measured it rises in {int(nll['isotonic'] > nll['none'])} of 1")
    # A rise that three decimals do not show is said to be below them.
    for rise, words in ((0.0002, "by less than 0.001 nats;"), (0.0123, "by up to 0.012 nats;")):
        lifted = table.assign(NLL=table["NLL"].where(table["method"] != "isotonic", nll["none"] + rise))
        assert words in item.findings(lifted, item.measure(twin, fits), sizes, recorded)[1]
    assert f"in {recorded['isotonic raised'].sum()} of {recorded['cases'].sum()} cases" in said[-2]
    assert "loses 1.25 nats to the right probabilities on 10 points" in said[-1]
