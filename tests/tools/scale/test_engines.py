"""Blocks through every engine: the same bits, whatever their order; and what goes on after a kill."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.tools.scale.conftest import N_LABELS, make
from xcrepro.core.errors import XCError
from xcrepro.core.extras import LibraryMissing
from xcrepro.core.metrics import registry

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


def test_the_same_bits(paths, data):
    for order in (paths, paths[::-1]):
        same(xc.scale.evaluate(order, **options()), expected(data))


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
    parts = [
        functools.partial(lambda lo, hi: (Y[lo:hi], top.rows(slice(lo, hi)), lo), lo, hi)
        for lo, hi in itertools.pairwise(edges)
    ]
    shuffle.shuffle(parts)
    same(xc.scale.evaluate(parts, metrics=METRICS[:2]), xc.evaluate(Y, top, metrics=METRICS[:2]))


# ---------------------------------------------------------------------------------------------- resuming


def read_log(log, path):
    """A block that leaves word that it was read."""
    with open(log, "a") as file:
        file.write(f"{os.path.basename(path)}\n")
    return xc.scale.read_block(path)


def logged(paths, log):
    return {path.name: functools.partial(read_log, log, path) for path in paths}


@pytest.mark.parametrize("engine", ["serial", "dask"])
def test_what_is_kept_is_not_read_again(engine, paths, data, tmp_path, request):
    more = {} if engine == "serial" else {"client": request.getfixturevalue("client")}
    log, kept = tmp_path / "log", tmp_path / "states"
    call = functools.partial(xc.scale.evaluate, engine=engine, resume=kept, **more, **options())
    same(call(logged(paths, log)), expected(data))
    assert sorted(log.read_text().split()) == sorted(path.name for path in paths)
    assert len([*kept.glob("*.npz")]) == len(paths)
    log.unlink()
    next(iter(kept.glob("part-300*"))).unlink()
    same(call(logged(paths, log)), expected(data))
    assert log.read_text().split() == ["part-300-4.npz"]


def test_another_block_or_option_is_not_taken_for_it(paths, data, tmp_path):
    Y, top = data
    xc.scale.evaluate(paths, metrics=["P@1"], resume=tmp_path / "states")
    found = xc.scale.evaluate(paths, metrics=["P@1", "R@1"], resume=tmp_path / "states")
    same(found, xc.evaluate(Y, top, metrics=["P@1", "R@1"]))
    time.sleep(0.02)  # another time of change, on any file system
    xc.scale.write_block(paths[0], Y[:90], top.rows(np.arange(90)[::-1]), 0)
    changed = xc.scale.evaluate(paths, metrics=["P@1"], resume=tmp_path / "states")
    other = xc.TopK(np.concatenate([top.ids[89::-1], top.ids[90:]]), top.scores, N_LABELS)
    same(changed, xc.evaluate(Y, other, metrics=["P@1"]))


def test_a_damaged_state_is_made_again(paths, data, tmp_path):
    wanted = xc.scale.evaluate(paths, metrics=["P@1"], resume=tmp_path / "states")
    state = next((tmp_path / "states").glob("*.npz"))
    state.write_bytes(state.read_bytes()[:100])
    with pytest.warns(UserWarning, match="is read again"):
        same(xc.scale.evaluate(paths, metrics=["P@1"], resume=tmp_path / "states"), wanted)
    same(xc.scale.evaluate(paths, metrics=["P@1"], resume=tmp_path / "states"), wanted)


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
