"""Block files: what goes in comes out, and what is broken is named with file, row and label."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.tools.scale.conftest import N_LABELS, make
from xcrepro.__main__ import main
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.tools.scale import BlocksFailed


@pytest.mark.parametrize("n", [0, 1, 40])
def test_a_block_comes_back(n, tmp_path):
    Y, top = make(max(n, 1), 3)
    Y, top = Y[:n], top.rows(slice(n))
    path = xc.scale.write_block(tmp_path / "b.npz", Y, top, 7, np.arange(n))
    found = xc.scale.read_block(path)
    assert (found.Y != Y).nnz == 0
    assert found.Y.shape == (n, N_LABELS)
    assert found.first_row == 7
    assert found.top.ids.tobytes() == top.ids.tobytes()
    assert found.top.scores.tobytes() == top.scores.tobytes()
    assert found.n_relevant.tolist() == list(range(n))
    xc.scale.write_block(path, Y, top)  # written anew
    assert xc.scale.read_block(path).first_row is None
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_the_same_bits_from_files(data, tmp_path):
    Y, top = data
    paths = xc.scale.write_blocks(Y, top, tmp_path, rows=300)
    assert [path.name for path in paths] == [f"block-{row:012d}.npz" for row in (0, 300, 600)]
    assert xc.scale.evaluate(tmp_path).equals(xc.evaluate(Y, top))
    assert xc.scale.evaluate(f"{tmp_path}/*.npz", resume=tmp_path / "states").equals(xc.evaluate(Y, top))


def test_blocks_that_are_missing_torn_or_break_a_rule_are_named_and_the_others_kept(paths, tmp_path):
    """What rules a block must keep is tested with damaged files, in tests/fuzz."""
    with np.load(paths[0]) as stored:
        arrays = dict(stored)
    arrays["scores"][3, 0] = np.nan
    np.savez(paths[0], **arrays)
    paths[1].unlink()
    paths[4].write_bytes(paths[4].read_bytes()[:-200])
    message = r"(?s)3 blocks.*part-0-0.npz.*NaN as score at row 3, place 0.*part-90-1.npz: there is no such block.*"
    message += r"part-300-4.npz: found no readable .npz.*kept in"
    with pytest.raises(BlocksFailed, match=message):
        xc.scale.evaluate(paths, resume=tmp_path / "states")
    assert len([*(tmp_path / "states").glob("*.npz")]) == len(paths) - 3
    with pytest.raises(BlocksFailed, match="1 block could"):  # without --resume nothing is gained by going on
        xc.scale.evaluate(paths)


def test_a_block_twice(paths, data, tmp_path):
    Y, top = data
    with pytest.raises(ArgumentError, match=r"part-0-0.npz again, after .*part-0-0.npz.*allow_repeats"):
        xc.scale.evaluate([*paths, paths[0]])
    again = xc.scale.write_block(tmp_path / "other name.npz", Y[85:95], top.rows(slice(85, 95)), 85)
    for order in ([*paths, again], [again, *paths]):
        with pytest.raises(BlocksFailed, match=r"rows 85 to 89.*has too") as error:
            xc.scale.evaluate(order)
        assert "other name.npz" in str(error.value)
        assert "part-0-0.npz" in str(error.value)
    twice = xc.scale.evaluate([*paths, again, paths[0]], metrics=["P@1"], allow_repeats=True)
    rows = [*range(700), *range(85, 95), *range(90)]
    assert twice.equals(xc.evaluate(Y[rows], top.rows(rows), metrics=["P@1"]))


def test_rows_twice_are_named_where_workers_have_one_each(client, paths, data, tmp_path):
    more = {"engine": "dask", "client": client}
    Y, top = data
    again = xc.scale.write_block(tmp_path / "again.npz", Y[85:95], top.rows(slice(85, 95)), 85)
    with pytest.raises(BlocksFailed, match=r"rows (85 to 89|90 to 90|91 to 94)"):  # whichever worker finds it
        xc.scale.evaluate([*paths, again], **more)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "one or more"),
        (3, "must be paths or functions"),
        ([np.eye(3)], "ndarray at place 0"),
        ({"a": 5}, "int at place 0"),
    ],
)
def test_what_are_no_blocks(blocks, message):
    with pytest.raises(ArgumentError, match=message):
        xc.scale.evaluate(blocks)


def test_functions_must_return_pairs_and_have_names_to_be_resumed(tmp_path):
    with pytest.raises(BlocksFailed, match=r"block 0.*must return \(Y, top\)"):
        xc.scale.evaluate([lambda: 3])
    with pytest.raises(BlocksFailed, match=r"mine: ZeroDivisionError"):
        xc.scale.evaluate({"mine": lambda: 1 / 0})
    with pytest.raises(ArgumentError, match="resume needs"):
        xc.scale.evaluate([lambda: 3], resume=tmp_path)


def test_another_number_of_labels(paths, tmp_path):
    Y, top = make(5, 1, n_labels=200)
    other = xc.scale.write_block(tmp_path / "narrow.npz", Y, top, 700)
    with pytest.raises(BlocksFailed, match=r"narrow.npz: .*n_labels 300 here and 200 there"):
        xc.scale.evaluate([*paths, other])


def test_no_pattern_matches(tmp_path):
    with pytest.raises(DataMissing, match="no block"):
        xc.scale.evaluate(tmp_path / "*.npz")
    with pytest.raises(ArgumentError, match=r"must end in \.npz"):
        xc.scale.write_block(tmp_path / "a.csv", *make(3, 0))


# ---------------------------------------------------------------------------------------------- cutting


@pytest.mark.parametrize("ending", ["txt", "txt.gz", "npz"])
@settings(max_examples=8, deadline=None)
@given(rows=st.integers(1, 70), seed=st.integers(0, 3))
def test_a_score_matrix_is_cut(ending, rows, seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut")
    Y, top = make(60, seed, k=20)
    xc.data.write.write_sparse(folder / f"truth.{ending}", Y)
    xc.data.write.write_sparse(folder / f"scores.{ending}", top.to_csr())
    paths = xc.scale.write_blocks(folder / f"truth.{ending}", folder / f"scores.{ending}", folder / "b", rows, k=7)
    assert len(paths) == -(-60 // rows)
    assert xc.scale.evaluate(paths).equals(xc.evaluate(Y, xc.TopK.from_scores(top.to_csr(), 7)))


def test_files_that_do_not_belong_together(tmp_path):
    Y, top = make(60, 0)
    xc.data.write.write_sparse(tmp_path / "truth.txt", Y[:50])
    xc.data.write.write_sparse(tmp_path / "scores.txt", top.to_csr())
    with pytest.raises(DataError, match=r"truth.txt: .*50 rows"):
        xc.scale.write_blocks(tmp_path / "truth.txt", tmp_path / "scores.txt", tmp_path / "b", rows=20)


def test_models_predict_into_blocks(twin, tmp_path):
    model = xc.models.PLT(seed=0).fit(twin.train.X, twin.train.Y)
    paths = xc.scale.predict_blocks(model, twin.test.X, twin.test.Y, tmp_path / "a", rows=200, k=5)
    expected = xc.evaluate(twin.test.Y, model.predict(twin.test.X, 5))
    assert len(paths) > 1
    assert xc.scale.evaluate(paths).equals(expected)
    xc.write_xc(tmp_path / "test.txt", twin.test.X, twin.test.Y)
    xc.scale.predict_blocks(model, tmp_path / "test.txt", None, tmp_path / "b", rows=150, k=5)
    assert xc.scale.evaluate(tmp_path / "b").equals(expected)
    weights = np.linspace(1, 9, twin.train.Y.shape[1])
    xc.scale.predict_blocks(model, twin.test.X, twin.test.Y, tmp_path / "c", rows=150, k=5, weights=weights)
    weighted = xc.evaluate(twin.test.Y, model.predict(twin.test.X, 5, weights=weights))
    assert xc.scale.evaluate(tmp_path / "c").equals(weighted)


# ---------------------------------------------------------------------------------------------- the command line


def test_the_command_line(paths, tmp_path, capsys):
    """docs/scale.md runs the commands that write and evaluate blocks; here what it does not say."""
    assert main(["evaluate", "--blocks", str(tmp_path), "--samples", "50", "--metrics", "P@1"]) == 0
    assert "low" in capsys.readouterr().out
    paths[2].write_bytes(b"PK")
    assert main(["evaluate", "--blocks", str(tmp_path)]) == 2
    assert f"{paths[2].name}: found no readable .npz" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate"], "truth must be given, or --blocks"),
        (["evaluate", "a", "b", "--resume", "c"], "--resume goes with --blocks"),
        (["evaluate", "a", "--blocks", "c"], "truth must not be given with --blocks"),
        (["evaluate", "--blocks", "nothing/*.npz"], "no block file"),
        (["evaluate", "--blocks", ".", "--filter", "f"], "--filter does not"),
        (["evaluate", "--blocks", ".", "--from", "csv"], "--from does not"),
        (["evaluate", "--blocks", ".", "--scheduler", "tcp://127.0.0.1:1"], "--scheduler goes with --engine dask"),
    ],
)
def test_the_command_line_refuses(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
