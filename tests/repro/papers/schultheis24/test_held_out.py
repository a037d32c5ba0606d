"""schultheis24/held_out: its committed tables, held to what must be so whatever the data."""

from __future__ import annotations

import pandas as pd


def table(root, part):
    return pd.read_csv(root / f"figures/schultheis24/held_out-{part}.csv")


def test_the_search_climbs_from_the_most_probable_labels(root):
    """On the points that it learns from; without a step the rule is that of the most probable labels."""
    reached = table(root, "reached").set_index(["rule", "metric"])["value"]
    steps = table(root, "steps")
    for kind in ("labels", "probabilities"):
        own = steps[steps["from"] == kind].sort_values("steps")
        assert own["macro-F1 learned"].is_monotonic_increasing
        assert (own["rules"] <= own["steps"] + 1).all()
        assert own["macro-F1"].iloc[0] == reached["top k", "macro-F1"]
        assert own["macro-F1"].iloc[-1] == reached[f"{kind}, F1", "macro-F1"]


def test_the_spread_of_the_draws_holds_their_mean(root):
    chance = table(root, "draws")
    assert (chance["lowest"] <= chance["mean"]).all()
    assert (chance["mean"] <= chance["highest"]).all()
    assert (chance["sd of draws"] <= chance["highest"] - chance["lowest"]).all()
