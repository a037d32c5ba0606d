"""xcrepo/certainty: counts against the table behind them, and its sentences."""

from __future__ import annotations

import pytest

from xcrepro.errors import ArgumentError
from xcrepro.papers.xcrepo import certainty


@pytest.fixture(scope="module")
def found():
    return certainty.compute()


def test_places_are_in_the_order_of_print(found):
    for _, part in found.groupby("dataset"):
        numbers = [float(text) for text in part["printed"]]
        assert numbers == sorted(numbers, reverse=True)
        assert part["place"].tolist() == list(range(1, len(part) + 1))
        assert part["next"].tolist()[:-1] == part["method"].tolist()[1:]


def test_counts_and_sentences(found):
    counts = certainty.compute_counts()
    row = counts.set_index("metric").loc["P@1"]
    assert row["pairs"] == len(found) == row[["certain", "open", "no lead"]].sum()
    assert (
        row["first after Holm"]
        <= row["first certain"]
        == (certainty.compute_leaders(found)["verdict"] == "certain").sum()
    )
    # Holm by hand: in order of p, each times how many are left, never below the one before.
    p, left, most, held = sorted(found["p most"]), len(found), 0.0, 0
    for one in p:
        most = max(most, min(1.0, one * left))
        left, held = left - 1, held + (most <= 0.05)
    assert row["certain after Holm"] == held < row["certain"]
    said = certainty.findings(found, counts)
    assert f"({held} after Holm's correction for all pairs" in said[1]
    assert said[0].startswith(f"In P@1 the best row's lead is certain in {row['first certain']} of 21 tables")
    assert f"{row['no lead']} could be no lead" in said[1]
    certain = found[found["verdict"] == "certain"]
    assert len(certainty.findings(certain, counts)) == 2
    assert len(certainty.plot(found).axes) == 1


def test_parameters_are_refused_in_the_notebooks_names():
    with pytest.raises(ArgumentError, match="parameter metric"):
        certainty.check_parameters({"size": "small", "metric": "nDCG", "k": 1})
    with pytest.raises(ArgumentError, match="parameter k"):
        certainty.check_parameters({"size": "small", "metric": "P", "k": 2})
