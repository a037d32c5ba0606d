"""Anybody's predictions: the interchange file by hand, the detour through files, a planted other order, figure 4."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from xcrepro.errors import DataError
from xcrepro.papers.kit import your_predictions as item
from xcrepro.predictions import TopK, read_calibration_npz


def test_a_file_written_by_hand_is_the_interchange_format(overconfident, tmp_path):
    ds, top = overconfident
    Y = ds.test.Y.tocoo()
    item.write_by_hand(tmp_path / "a.npz", top.scores, top.ids, np.column_stack([Y.row, Y.col]))
    back, truth = read_calibration_npz(tmp_path / "a.npz", 6)
    assert np.array_equal(back.ids, top.ids)
    assert np.array_equal(back.scores, top.scores)
    assert (truth != ds.test.Y).nnz == 0


def test_files_of_all_three_kinds_give_the_numbers_from_memory(overconfident, capsys):
    ds, top = overconfident
    tops = {"by hand": top, "theirs": top, "ours": top}
    back = item.read(ds, tops, k=3)
    assert "by hand.npz" in capsys.readouterr().out
    assert list(back) == list(tops)
    table = item.compute_table(ds, back, 3)
    assert item.largest_difference(table, ds, tops, 3) == 0.0
    assert np.isnan(item.largest_difference(table, ds, {}, 3))
    table.loc[4, "after"] += 1e-6
    assert item.largest_difference(table, ds, tops, 3) == pytest.approx(1e-6)
    assert item.largest_difference(table, ds, tops | {"more": top}, 3) == np.inf


def test_a_file_in_another_order_is_refused(overconfident, tmp_path):
    ds, top = overconfident
    TopK(top.ids[::-1], top.scores[::-1], 6).to_calibration_npz(tmp_path / "a.npz", ds.test.Y[::-1])
    with pytest.raises(DataError, match="other labels for test row"):
        item.read(ds, {}, str(tmp_path), 3)


def test_the_printed_numbers():
    found = item.compute_printed().set_index(["dataset", "method"])
    assert found.loc[("EURLex-4K", "LightXML")].tolist() == [10.59, 13.79, 13.28]
    assert found.loc[("Amazon-670K", "CascadeXML")].tolist() == [15.63, 15.06, 14.54]
    assert len(found) == 8


def test_the_figure_counts_rising_curves():
    table = pd.DataFrame({"model": list("aabb"), "k": [1, 2, 1, 2], "before": [1.0, 2.0, 3.0, 1.0], "after": 0.1})
    assert "rises in 1 of 2 models" in item.plot(table).get_suptitle()
