"""coverage/price_of_calibration: the choices one label at a time, what a factor leaves, sentences where they are planted."""

from __future__ import annotations

import numpy as np
import pytest

from xcrepro import decide
from xcrepro.errors import ArgumentError
from xcrepro.inputs import datasets
from xcrepro.papers.coverage import price_of_calibration as item
from xcrepro.papers.coverage._common import Run
from xcrepro.predictions import TopK


@pytest.fixture(scope="module")
def chosen_from():
    ds = datasets.pick("bibtex", scale=0.1)
    eta = TopK.from_scores(ds.test.observed_marginals, 20).to_csr()
    found = item.sources(ds, Run(0, eta, None), [1.0, 0.1])
    return ds, found, item.choose(found, 3)


def greedy(eta: np.ndarray, k: int, by_gain: bool) -> np.ndarray:
    """Algorithm 1, a label at a time."""
    f, rows = np.ones(eta.shape[1]), []
    for row in eta:
        gain = f * row
        best = np.lexsort((np.arange(gain.size), -gain))[:k]
        f[best] *= 1 - (gain if by_gain else row)[best]
        rows.append(best)
    return np.array(rows)


def test_the_choices_are_algorithm_1s(chosen_from):
    _, found, chosen = chosen_from
    for name in ("x 0.1", "x 1"):
        eta = found[name].toarray().astype(np.float64)
        for rule, by_gain in (("probability", False), ("gain", True)):
            assert (
                np.sort(greedy(eta, 3, by_gain)) == np.sort(chosen[name, rule].ids)
            ).mean() > 0.99  # equal gains apart


def test_a_factor_leaves_the_top_k_and_lowers_the_price(chosen_from):
    ds, found, chosen = chosen_from
    assert (chosen["x 1", "top k"].ids == chosen["x 0.1", "top k"].ids).all()
    table = item.compute(ds, found, chosen, 3).set_index("source")
    assert table.loc["x 0.1", "said"] == pytest.approx(table.loc["x 1", "said"] / 10, rel=1e-5)
    assert table.loc["x 0.1", "price probability"] < table.loc["x 1", "price probability"]
    assert (table["price gain"] <= table["price probability"] + 1e-9).all()
    assert list(table.index) == ["x 0.1", "x 1", "isotonic", "true"]
    for name in table.index:
        assert table.loc[name, "price gain"] == pytest.approx(table.loc[name, "P top k"] - table.loc[name, "P gain"])


def test_sentences(chosen_from):
    ds, found, chosen = chosen_from
    table = item.compute(ds, found, chosen, 3)
    measured = item.measure(ds, chosen, 3)
    said = item.findings(table, measured, 3, item.compute_recorded().iloc[:0])
    assert len(said) == len(decide.UPDATES) + 2
    real = table.assign(dataset="toy")
    at = table.set_index("source")["price probability"]
    first = item.findings(table, measured, 3, real)[0]
    assert f"toy {at['x 1']:.1f} of " in first
    assert f"{at['x 0.1']:.1f} times 0.1, {at['isotonic']:.1f} after isotonic" in first
    assert said[0].startswith("Where f falls by the probability, probabilities x 0.1 in place of x 1 bring P@3 from")
    assert len(item.plot(table, 3).axes) == 2


def test_parameters_are_refused_in_the_notebooks_names():
    for factors in ([], [1.0, 1.0], [0.0], [2.0]):
        with pytest.raises(ArgumentError, match="parameter factors"):
            item.check_parameters({"size": "small", "factors": factors})
