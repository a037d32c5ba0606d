"""Blocks: what goes in comes out, what is broken is named, and every engine gives the same bits, also after a kill."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import xcrepro as xc
from xcrepro.__main__ import main
from xcrepro.core.errors import ArgumentError, DataError, XCError
from xcrepro.core.extras import LibraryMissing
from xcrepro.core.metrics import registry

N_LABELS = 300


def make(n: int, seed: int, n_labels: int = N_LABELS, k: int = 5):
    """Truth and probabilities of a long tail: some rows without labels, some with fewer than k predictions."""
    rng = np.random.default_rng(seed)
    Y = sparse.random(n, n_labels, 0.01, "csr", np.float32, rng)
    Y.data[:] = 1
    known = Y.multiply(rng.random((n, n_labels)) < 0.5)
    scores = sparse.csr_matrix(sparse.random(n, n_labels, 0.03, "csr", np.float32, rng) + 0.4 * known)
    scores.data = np.minimum(scores.data.round(2), 1)  # ties
    return Y, xc.TopK.from_scores(scores, k)


@pytest.fixture(scope="session")
def data():
    return make(700, 0)


@pytest.fixture
def paths(data, tmp_path):
    """The data in blocks of other sizes, an empty one among them."""
    Y, top = data
    edges = [0, 90, 91, 91, 300, 520, 700]
    return [
        xc.scale.write_block(tmp_path / f"part-{lo}-{i}.npz", Y[lo:hi], top.rows(slice(lo, hi)), lo)
        for i, (lo, hi) in enumerate(itertools.pairwise(edges))
    ]


@pytest.fixture(scope="session")
def client():
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'xcrepro[scale]'")
    from xcrepro.tools.scale import evaluation

    with evaluation._connected(None, 2) as found:
        yield found


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
    assert xc.scale.evaluate(f"{tmp_path}/*.npz").equals(xc.evaluate(Y, top))


def test_a_block_that_is_missing_torn_or_breaks_a_rule_is_named(paths):
    """What rules a block must keep is tested with damaged files, in tests/fuzz."""
    with np.load(paths[0]) as stored:
        arrays = dict(stored)
    arrays["scores"][3, 0] = np.nan
    np.savez(paths[0], **arrays)
    paths[1].unlink()
    paths[4].write_bytes(paths[4].read_bytes()[:-200])
    for at, words in ((0, "NaN as score at row 3, place 0"), (1, "there is no such block"), (4, "no readable .npz")):
        with pytest.raises(XCError, match=rf"{paths[at].name}: .*{words}"):
            xc.scale.evaluate(paths[at:])


def test_a_block_twice(paths, data, tmp_path):
    Y, top = data
    with pytest.raises(ArgumentError, match=r"part-0-0.npz again, after .*part-0-0.npz.*allow_repeats"):
        xc.scale.evaluate([*paths, paths[0]])
    again = xc.scale.write_block(tmp_path / "other name.npz", Y[85:95], top.rows(slice(85, 95)), 85)
    for order in ([*paths, again], [again, *paths]):
        with pytest.raises(XCError, match=r"\.npz: .*rows (85 to 94|85 to 89) a second time"):
            xc.scale.evaluate(order)
    twice = xc.scale.evaluate([*paths, again, paths[0]], metrics=["P@1"], allow_repeats=True)
    rows = [*range(700), *range(85, 95), *range(90)]
    assert twice.equals(xc.evaluate(Y[rows], top.rows(rows), metrics=["P@1"]))


def test_rows_twice_are_named_where_workers_have_one_each(client, paths, data, tmp_path):
    more = {"engine": "dask", "client": client}
    Y, top = data
    again = xc.scale.write_block(tmp_path / "again.npz", Y[85:95], top.rows(slice(85, 95)), 85)
    with pytest.raises(XCError, match=r"rows (85 to 89|90 to 90|91 to 94|85 to 94)"):  # whichever worker finds it
        xc.scale.evaluate([*paths, again], **more)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "one or more"),
        (3, "must be paths or functions"),
        ([np.eye(3)], "ndarray at place 0"),
        ({"a": 5}, "int at place 0"),
        ([lambda: 3], r"block 0.*must return \(Y, top\)"),
        ({"mine": lambda: 1 / 0}, "mine: ZeroDivisionError"),
        ("nowhere/*.npz", "no block"),
    ],
)
def test_what_are_no_blocks(blocks, message):
    with pytest.raises(XCError, match=message):
        xc.scale.evaluate(blocks)


def test_another_number_of_labels_and_another_ending(paths, tmp_path):
    other = xc.scale.write_block(tmp_path / "narrow.npz", *make(5, 1, n_labels=200), 700)
    with pytest.raises(XCError, match=r"narrow.npz: .*n_labels 300 here and 200 there"):
        xc.scale.evaluate([*paths, other])
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


# ---------------------------------------------------------------------------------------------- the command line


def test_the_command_line(paths, tmp_path, capsys):
    """docs/scale.md runs the commands that write and evaluate blocks; here what it does not say."""
    assert main(["evaluate", "--blocks", str(tmp_path), "--n-resamples", "50", "--metrics", "P@1"]) == 0
    assert "low" in capsys.readouterr().out
    paths[2].write_bytes(b"PK")
    assert main(["evaluate", "--blocks", str(tmp_path)]) == 2
    assert f"{paths[2].name}: found no readable .npz" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate"], "truth must be given, or --blocks"),
        (["evaluate", "a", "b", "--workers", "2"], "--workers goes with --blocks"),
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


# ---------------------------------------------------------------------------------------------- engines

METRICS = ("P", "nDCG", "PSP", "macro-F1", "coverage", "ECE", "ACE")


def options():
    rng = np.random.default_rng(1)
    return {
        "inverse_propensity": 1 + 9 * rng.random(N_LABELS),
        "label_counts": rng.integers(0, 900, N_LABELS),
        "metrics": [*METRICS, "binned macro-F1", *registry.FAMILIES],
    }


def expected(data):
    """By one State of all rows, whose own tests hold it to slow oracles."""
    state = xc.State(**options())
    return state.update(*data, first_row=0).compute()


def same(found, wanted) -> None:
    assert found.equals(wanted), found.compare(wanted)


def test_blocks_are_found_from_where_the_caller_stands(client, paths, data, tmp_path, monkeypatch):
    """Workers stay in the folder in which they began."""
    other = tmp_path / "other"
    other.mkdir()
    for folder in (other, tmp_path):
        monkeypatch.chdir(folder)
        near = [os.path.relpath(path) for path in paths]
        same(xc.scale.evaluate(near, engine="dask", client=client, **options()), expected(data))


def test_the_same_bits_on_dask_with_two_processes(client, paths, data):
    wanted = expected(data)
    assert len(client.nthreads()) == 2
    for order in (paths, paths[3:] + paths[:3]):
        same(xc.scale.evaluate(order, engine="dask", client=client, **options()), wanted)
    same(xc.scale.evaluate(paths, engine="dask", client=client.scheduler.address, **options()), wanted)
    assert client.status == "running"


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 5), shuffle=st.randoms())
def test_any_cutting_and_order(cuts, seed, shuffle):
    Y, top = make(60, seed)
    edges = [0, *sorted(cuts), 60]

    def part(lo: int, hi: int):
        return Y[lo:hi], top.rows(slice(lo, hi)), lo

    parts = [functools.partial(part, *ends) for ends in itertools.pairwise(edges)]
    shuffle.shuffle(parts)
    same(xc.scale.evaluate(parts, **options()), expected((Y, top)))


# ---------------------------------------------------------------------------------------------- kill -9


def kill_worker(mark, times, path):
    """Reading this block ends the process, so many times."""
    count = len(mark.read_text()) if mark.exists() else 0
    if count < times:
        with open(mark, "a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return xc.scale.read_block(path)


def test_a_killed_worker_is_replaced_and_what_kills_all_ends_the_call(client, paths, data, tmp_path):
    more = {"engine": "dask", "client": client}
    blocks = {path.name: path for path in paths}
    blocks["part-91-3.npz"] = functools.partial(kill_worker, tmp_path / "once", 1, paths[3])
    same(xc.scale.evaluate(blocks, **more, **options()), expected(data))
    assert (tmp_path / "once").read_text() == "x"
    blocks["part-91-3.npz"] = functools.partial(kill_worker, tmp_path / "ever", 99, paths[3])
    with pytest.raises(XCError, match="KilledWorker"):
        xc.scale.evaluate(blocks, **more, **options())
    assert len((tmp_path / "ever").read_text()) > 1


# ---------------------------------------------------------------------------------------------- what is refused


def test_an_unreachable_scheduler_is_an_error(paths):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'xcrepro[scale]'")
    with pytest.raises(XCError, match=r"tcp://127\.0\.0\.1:9"):
        xc.scale.evaluate(paths, engine="dask", client="tcp://127.0.0.1:9")


def test_dask_absent_says_what_to_install(paths, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(LibraryMissing, match=r"pip install 'xcrepro\[scale\]'"):
        xc.scale.evaluate(paths, engine="dask")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "spark"}, "engine must be one of"),
        ({"engine": "serial", "workers": 2}, "workers goes with"),
        ({"engine": "serial", "client": "tcp://127.0.0.1:1"}, "client goes with the engine dask"),
        ({"engine": "dask", "client": 3}, "client must be a distributed.Client or a scheduler"),
        ({"engine": "dask", "workers": 0}, "workers must be a whole number"),
    ],
)
def test_arguments_are_checked(paths, arguments, message):
    if arguments["engine"] == "dask":
        pytest.importorskip("distributed", reason="Dask is not installed: pip install 'xcrepro[scale]'")
    with pytest.raises(xc.errors.ArgumentError, match=message):
        xc.scale.evaluate(paths, **arguments)


def test_importing_takes_no_engine():
    code = "import sys, xcrepro as xc; xc.scale.evaluate; print({'dask', 'distributed'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
