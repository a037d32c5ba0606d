"""The sample scores' numbers: the printed ones on the real file, slow loops on a twin."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.errors import ArgumentError, DataMissing
from xcrepro.papers.xcrepo import sample_score


@pytest.fixture(scope="module")
def twin():
    return sample_score.load_sample(scale=0.1)


def test_the_printed_numbers_come_out(real_data):
    found = sample_score.compute(sample_score.load_sample(str(real_data("bibtex"))))
    table = found.merge(sample_score.printed_values(), on=["metric", "k"])
    assert len(table) == len(sample_score.printed_values()) == 13
    assert [f"{value:.6f}" for value in table["value"]] == table["printed"].tolist()


def test_precision_and_ties_by_hand(twin):
    """Of equal scores the lowest id counts first, or the highest."""
    scores, relevant = twin.scores.toarray(), twin.Y.toarray() > 0
    ids = np.arange(scores.shape[1])
    table = sample_score.compute_ties(twin).set_index(["metric", "k"])
    metrics = sample_score.compute(twin).set_index(["metric", "k"])["value"]
    for k in (1, 3, 5):
        for column, order in (("lowest id", ids), ("highest id", -ids)):
            best = [[label for label in np.lexsort((order, -row))[:k] if row[label] > 0] for row in scores]
            hits = sum(truth[labels].sum() for truth, labels in zip(relevant, best, strict=True))
            assert table.loc[("P", k), column] == pytest.approx(hits / k / len(scores))
        assert metrics["P", k] == pytest.approx(table.loc[("P", k), "lowest id"])


def test_edges_are_counted(twin):
    scores, sizes = twin.scores.toarray(), twin.Y.toarray().sum(axis=1)
    best = -np.sort(-scores, axis=1)[:, :6]
    tied = sum(any(row[i] == row[i + 1] > 0 for i in range(5)) for row in best)
    rows = sample_score.compute_shape(twin)["rows"].tolist()
    assert rows == [len(scores), tied, (best[:, 4] == 0).sum(), (sizes < 5).sum(), (sizes == 0).sum()]


def test_a_variant_is_its_definition(twin):
    """The ratio is the bare sum over the best that the truth allows; an ideal of k hits is never below one of fewer."""
    table = sample_score.compute_variants(twin).set_index("variant")
    weights, relevant = twin.inverse_propensity(), twin.Y.toarray() > 0
    for k in (1, 3, 5):
        best = sum(np.sort(weights[row])[::-1][:k].sum() / k for row in relevant) / len(relevant)
        assert table.loc["PSP", f"@{k}"] == pytest.approx(table.loc["PSP (bare)", f"@{k}"] / best)
    assert (table.loc["nDCG"] >= table.loc["nDCG (ideal k)"]).all()


def test_findings_name_what_moves_most(twin):
    ties, variants = sample_score.compute_ties(twin), sample_score.compute_variants(twin)
    ties = ties.assign(difference=np.where((ties["metric"] == "PSP") & (ties["k"] == 3), -0.02, 0.001))
    said = sample_score.findings(twin, ties, variants)
    assert "moves P@1 by +0.10 points" in said[0]
    assert said[0].endswith("PSP@3 moves most, by -2.00 points.")
    value = variants.set_index("variant")["@5"]
    assert f"nDCG@5 = {100 * value['nDCG']:.1f} %" in said[1]


def test_findings_count_what_the_scripts_print():
    table = pd.DataFrame({"ours": [0.1234564, 0.2, 0.3], "printed": ["0.123456", "0.200001", None]})
    assert sample_score.findings_printed(table) == [
        "1 of the 2 numbers that the scripts print come out, to the sixth decimal."
    ]


def test_a_folder_without_the_sample_is_told_before_anything_runs(tmp_path):
    values = {"size": "small", "folder": str(tmp_path), "dataset": "bibtex", "scale": 1.0, "seed": 0}
    with pytest.raises(DataMissing, match=r"parameter folder: .* has no train\.txt"):
        sample_score.check_parameters(values)
    sample_score.check_parameters(values | {"folder": ""})
    with pytest.raises(ArgumentError, match="parameter scale"):
        sample_score.check_parameters(values | {"folder": "", "scale": 0})
