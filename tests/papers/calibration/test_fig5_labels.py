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


def test_findings_follow_the_table():
    table = fig5_labels.compute()
    said = fig5_labels.findings(table)
    assert said[0].startswith("At k = 1, 3, 5 ECE@k rises in 2 of 3 steps to more labels, and in 3 of 3 steps to fewer")
    assert "With 4 datasets neither order is more than chance could give" in said[1]
    assert "4 of the other 4 have fewer labels" in said[2]
    assert "1 of 4 have more points per label" in said[2]
    # Amazon-670K's ECE@1 below all others: at k = 1 it is another count.
    changed = table.assign(value=table["value"].where((table["dataset"] != "Amazon-670K") | (table["k"] != 1), 0.1))
    said = fig5_labels.findings(changed)
    assert said[0].startswith("At k = 1 ECE@k rises in 1 of 3 steps to more labels, and in 2 of 3")
    assert said[1].startswith("At k = 3, 5 ")


def test_steps_are_counted_in_the_order_of_the_other_column():
    table = pd.DataFrame({"labels": [10, 30, 20], "points per label": [1.0, 3, 2], "k": 1, "value": [1.0, 3, 2]})
    assert fig5_labels.compute_claims(table).to_numpy().tolist() == [[1, 3, 2, 2, 0]]
