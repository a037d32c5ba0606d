"""Fig 5 from print: four of five datasets, and in which order their errors rise."""

from __future__ import annotations

import pandas as pd

from xcrepro.papers.calibration import fig5_labels


def test_four_of_five_datasets_are_drawn_and_the_fifth_is_said_to_be_missing():
    table = fig5_labels.compute()
    known = table.dropna(subset="value")
    assert known["dataset"].nunique() == 4
    assert set(table["dataset"]) - set(known["dataset"]) == {"Amazon-3M"}
    assert (known["printed"].astype(float) == known["value"]).all()
    assert (table.set_index("dataset").loc["Amazon-3M", "labels"] == 2_812_281).all()
    texts = [text.get_text() for ax in fig5_labels.plot(table).axes for text in ax.texts]
    assert texts.count("Amazon-3M: in no table") == 2


def test_the_claims_bear_the_title_out():
    claims = fig5_labels.compute_claims(fig5_labels.compute())
    assert (claims["error rises with fewer points per label"] == claims["steps"]).all()
    assert (claims["error rises with more labels"] < claims["steps"]).all()


def test_steps_are_counted_in_the_order_of_the_other_column():
    table = pd.DataFrame({"labels": [10, 30, 20], "points per label": [1.0, 3, 2], "k": 1, "value": [1.0, 3, 2]})
    assert fig5_labels.compute_claims(table).to_numpy().tolist() == [[1, 3, 2, 2, 0]]
