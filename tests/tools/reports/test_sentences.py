"""What a report says of its tables: each sentence of a small table, word for word."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from xcrepro.tools.reports import compute, sentences

K = 5


def of(columns: str, *rows: tuple, **same) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split()).assign(**same)


def bins(value: float = 5.0, kind: str = "exact") -> pd.DataFrame:
    rows = [("a", "0", 0.0), ("a", "1-9", value), ("a", "10-99", 40.0), ("b", "1-9", 50.0)]
    return of("model bin value", *rows, k=K, ceiling=50.0, **{"ceiling is": kind})


def calibrated(states=compute.STATES, **models: tuple) -> pd.DataFrame:
    """ECE before and after, NLL before and after."""
    both = [*itertools.product(("ECE", "NLL"), compute.STATES)]
    rows = [(model, *one, value) for model, four in models.items() for one, value in zip(both, four, strict=True)]
    table = of("model metric state value", *rows, k=K, low=np.nan, high=np.nan)
    return table[table["state"].isin(states)]


def placed(*ranks: list) -> pd.DataFrame:
    """A table of ranks: of each model those on all datasets."""
    table = pd.DataFrame(ranks).assign(model=list("abcdefgh")[: len(ranks)], **{"mean rank": np.mean(ranks, axis=1)})
    return table.sort_values("mean rank", kind="stable")


def led(metric: str, values: dict[str, float], *pairs: tuple, **runs) -> tuple:
    """Values of models, 0.01 to either side, and pairs: left, right, difference, half its interval, p."""
    table = of("model value", *values.items(), metric=metric, k=1)
    table = table.assign(low=table["value"] - 0.01, high=table["value"] + 0.01)
    apart = of("left right value half p", *pairs, metric=metric, k=1)
    apart = apart.astype({"value": float, "half": float, "p": float})
    apart = apart.assign(low=apart["value"] - apart["half"], high=apart["value"] + apart["half"], **runs)
    return table, apart, metric, 1


def two(difference: float, p: float, metric: str = "P") -> tuple:
    return led(metric, {"a": 0.5, "b": 0.5 - difference}, ("a", "b", difference, 0.02, p))


def three(error: float) -> tuple:
    """Of models with several seeds."""
    pairs = ("a", "b", 0.1, 0.05, 0.01), ("a", "c", 0.4, 0.1, 0.001)
    return led("P", {"a": 0.5, "b": 0.4, "c": 0.1}, *pairs, **{"stderr runs": [error, 0.02]})


def prices(*without: float) -> pd.DataFrame:
    rows = [(np.inf, 0.5, 0.2), (1.0, 0.48, 0.3), (0.25, 0.52, 0.4), (0.0625, 0.51, 0.5), (0.0, 0.4, 0.6)]
    return of("beta P Cov", *(row for row in rows if row[0] not in without), model="a", k=K)


MAPPED = {"a": (0.12, 0.01, 0.3, 0.4), "b": (0.10, 0.02, 0.5, 0.4), "c": (0.10, 0.02, 0.5, 0.5)}
BANDS = of("band positives hits", ("1-9", 5, 1), ("10-99", 5, 3), model="PLT")
GAPS = of("model label shrunk predicted", ("b", "y", 0.5, 9), ("a", "x", 0.1, 1200))
SHARED = of("left right overlap@5", ("a", "b", 0.5), ("a", "c", 0.9), ("b", "c", 0.1))
REACHES = "On labels with 1-9 training points a reaches {} of the macro-F1@5 that is possible"
UNCLEAR = "No clear leader in P@1: a (50.0 % [49.0, 51.0]) is {} above b, {}, over test points)."
SURE = "a leads P@1 with 50.0 % [49.0, 51.0]: 10.0 points [5.0, 15.0] above b (p = 0.01, over test points {})."
RARE = "25 % of the hits of PLT, and 50 % of what is relevant, are on labels with fewer than 10 training points"


def seen(value: float) -> pd.DataFrame:
    return of("model metric k value seen", ("a", "R", 5, 0.4, value), ("b", "R", 5, 0.1, 0.9), ("a", "P", 5, 0.2, 0.9))


def t_tested(difference: float) -> pd.DataFrame:
    return of("left right value p shared", ("a", "b", difference, 0.001, 1.0), metric="macro-F1", k=K)


SAID = [
    # The bin that is furthest from its ceiling.
    (sentences.bins, (bins(), "a", K), REACHES.format("10 %")),
    (sentences.bins, (bins(0.0), "a", K), REACHES.format("0 %")),
    (sentences.bins, (bins(kind="bound"), "a", K), REACHES.format("at least 10 %")),
    (sentences.bins, (bins()[:1], "a", K), "No label that training has seen has a test point"),
    # A map may lower ECE and raise NLL.
    (sentences.ways, (calibrated(**MAPPED), K),
     "Calibrated, ECE falls for 3 of 3 models, but NLL falls for 1 of 3 models and rises for 1 (a)."),
    (sentences.ways, (calibrated(["before"], **MAPPED), K), ""),
    (sentences.ways, (calibrated(a=MAPPED["a"]), K),
     "Calibrated, ECE of a falls from 12.0 to 1.0, but NLL of a rises from 0.300 to 0.400."),
    # Ranks: few datasets have no critical difference, and a tie has no best.
    (sentences.ranks, (placed([1, 1], [2, 2]), "P@5"),
     "Over 2 datasets a has the best mean rank in P@5, 1.00; b is 1.00 away. Datasets are too few for a critical "
     "difference, which needs 6. Ranks leave out by how much models differ."),
    (sentences.ranks, (placed([1, 2], [2, 1]), "P@5"),
     "Over 2 datasets all models have the same mean rank in P@5, 1.50, so none is the best."),
    (sentences.ranks, (placed([1, 2], [2, 1], [3, 3]), "P@5"),
     "a and b share the best mean rank in P@5, 1.50; c is 1.50 away."),
    (sentences.ranks, (placed([1] * 6, [2] * 6, [3] * 6), "P@5"),
     "c is 2.00 away, more than the critical difference of 1.35 (Nemenyi, 5 %)."),
    # A lead is said with its errors and in the metric's direction.
    (sentences.leader, two(0.05, 0.001),
     "a leads P@1 with 50.0 % [49.0, 51.0]: 5.0 points [3.0, 7.0] above b (p = 0.001, over test points)."),
    (sentences.leader, two(-0.05, 0.001),
     "b leads P@1 with 55.0 % [54.0, 56.0]: 5.0 points [3.0, 7.0] above a (p = 0.001, over test points)."),
    (sentences.leader, two(-0.05, 0.001, "abandonment"),
     "a leads abandonment@1 with 50.0 % [49.0, 51.0]: 5.0 points [3.0, 7.0] below b (p = 0.001, over test points)."),
    (sentences.leader, two(0.01, 0.4), UNCLEAR.format("1.0 points [-1.0, 3.0]", "which chance may explain (p = 0.4")),
    (sentences.leader, two(0.05, 0.1), UNCLEAR.format("5.0 points [3.0, 7.0]", "not clear after Holm's correction (p = 0.1")),
    (sentences.leader, two(0.05, np.nan),
     UNCLEAR.format("5.0 points [3.0, 7.0]", "with an error that is not known (p not known")),
    (sentences.leader, three(np.nan), SURE.format("alone")),
    (sentences.leader, three(0.01), SURE.format("and seeds")),
    # A heading says no more than is known.
    (sentences.lead, two(0.05, 0.01), "a leads P@1 by 5.0 points"),
    (sentences.lead, two(-0.05, 0.01, "abandonment"), "a leads abandonment@1 by 5.0 points"),
    (sentences.lead, two(0.05, 0.2), "No clear leader in P@1 between a and b"),
    (sentences.lead, led("P", {"a": 0.5, "b": 0.45}), "a has the best P@1, 50.0 %, which was not tested"),
    (sentences.lead, led("P", {"a": 0.5}), "P@1 is 50.0 %"),
    (sentences.lead, led("P", {"a": np.nan, "b": np.nan}), "P@1 is not known"),
    # Directions, and what costs nothing.
    (sentences.gaps, (GAPS, "a"), "The scores of a for x are too high, by 10.0 points in 1,200 predictions"),
    (sentences.gaps, (GAPS.assign(shrunk=-0.2), "a"), "The scores of a for x are too low"),
    (sentences.bands, (BANDS, "PLT"), RARE),
    (sentences.bands, (BANDS.assign(hits=0), "PLT"), "PLT has no hit"),
    (sentences.price, (prices(), "a"), "(beta = 0.0625): +30.0 points of coverage, +1.0 points of precision"),
    (sentences.price, (prices(0.25, 0.0625), "a"), "(beta = 0): +40.0 points of coverage, -10.0 points of precision"),
    (sentences.t_tests, (t_tested(0.2), K), "Macro-F1@5 over labels: clear for a over b"),
    (sentences.t_tests, (t_tested(-0.2), K), "Macro-F1@5 over labels: clear for b over a"),
    (sentences.seen, (seen(0.5), "a", K), "Over the labels that training has seen R@5 of a is 50.0 %, over all 40.0 %"),
    (sentences.seen, (seen(0.4), "a", K), "R@5 of a is 40.0 %, with and without the labels that training has not seen"),
    (sentences.overlaps, (SHARED[:0], K), ""),
    (sentences.overlaps, (SHARED[:1], K), "a and b share 50.0 % of their first 5 labels"),
    (sentences.overlaps, (SHARED, K),
     "a and c share 90.0 % of their first 5 labels, the most of all pairs; b and c share 10.0 %, the least"),
    # An interval that begins at nothing says what it is at most.
    (sentences.ends, (0.0, 0.0002, "P"), "at most 0.02"),
    (sentences.ends, (0.0002, 0.3, "P"), "at most 30.0"),
    (sentences.ends, (0.01, 0.3, "P"), "1.0, 30.0"),
]  # fmt: skip
PARTS = (sentences.ranks, sentences.gaps, sentences.price)
"""Of which a sentence is looked for in what is said, and the others are all that is."""


@pytest.mark.parametrize(("say", "given", "said"), SAID)
def test_what_is_said_of_a_table(say, given, said):
    found = say(*given)
    assert said in found if say in PARTS else said == found
