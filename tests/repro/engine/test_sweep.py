"""A sweep: every combination once, one table, means; here and on a Dask cluster."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tests.refused import refused
from xcrepro.__main__ import main
from xcrepro.repro.engine import manifest, recording, runner, stamps, sweep

NOTEBOOK = """
import os
import pandas as pd
from xcrepro.core import paths
from xcrepro import repro
item = repro.item("demo/swept", globals())
offset = float((paths.project_root() / "data/in.csv").read_text())
if seed == 2: raise ValueError("planted")
table = pd.DataFrame({"k": [1, 3], "P": [offset + seed, 0.25], "threads": [os.environ["XCREPRO_THREADS"]] * 2})
item.save_table(table)
"""


@pytest.fixture
def demo(project):
    project.add("swept", NOTEBOOK, parameters='dataset = "a"\nseed = 0')
    (project.root / "data").mkdir()
    (project.root / "data/in.csv").write_text("0.5")
    return project


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_a_sweep(demo, engine, capsys):
    if engine == "dask":
        pytest.importorskip("distributed", reason="Dask is not installed: pip install 'xcrepro[scale]'")
    about = ["demo/swept", "-p", "dataset", "a", "-p", "seed", "0..2", "--jobs", "2", "--engine", engine]
    assert main(["sweep", *about]) == 1
    said = capsys.readouterr().out
    assert "seed=2 failed" in said
    assert "planted" in said
    assert "seed changes nothing in 1 of 2 means (P)" in said
    home = demo.root / "build/sweeps/demo/swept"
    table = pd.read_csv(home / "table.csv")
    wanted = [[0, 1, 0.5], [0, 3, 0.25], [1, 1, 1.5], [1, 3, 0.25]]
    assert table[["seed", "k", "P"]].values.tolist() == wanted
    means = pd.read_csv(home / "table-means.csv")
    assert means[means["k"] == 1][["n", "mean"]].values.tolist() == [[2, 1.0]]
    assert not (demo.root / "figures").exists()  # the combination that is the item's own, too
    # What has ended is kept; what failed runs again; another input runs anew.
    swept = sweep._runs(manifest.load()["demo/swept"], {"seed": [0, 1, 2]})
    entry, versions = manifest.load()["demo/swept"], stamps.versions()

    def reasons() -> dict:
        now = {name: stamps.fingerprint(entry, values, versions, {}) for name, values in swept.items()}
        return {name: stamps.reason(entry, stamps.read_at(home / name / "done.json"), now[name]) for name in swept}

    assert reasons() == {"own": None, "seed=1": None, "seed=2": "no finished run here yet"}
    (demo.root / "data/in.csv").write_text("0.75")
    assert set(reasons().values()) == {"input data/in.csv changed", "no finished run here yet"}


def test_run_on_dask_writes_what_the_local_runner_writes(demo):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'xcrepro[scale]'")
    runner.run("demo/swept")
    [stamp] = [path for path in (demo.root / "build/stamps").rglob("*") if path.is_file()]
    figure, before = demo.root / "figures/demo/swept.csv", stamp.read_bytes()
    local = figure.read_bytes()
    assert runner.run("demo/swept", force=True, engine="dask").ok
    assert figure.read_bytes() == local
    assert stamp.read_bytes() == before
    assert runner.run("demo/swept", engine="local").results[0].outcome == "unchanged"


def test_everything_is_checked_before_anything_runs(demo, monkeypatch):
    monkeypatch.setattr(runner, "Child", None)
    for grid, argument in (
        ({"sed": [0]}, "parameters"),
        ({"seed": ["x"]}, "parameter seed"),
        ({"seed": []}, "grid['seed']"),
        ({"seed": [0, 0]}, "grid"),
    ):
        with refused(argument):
            sweep.sweep("demo/swept", grid)
    with refused("engine", match="slurm"):
        sweep.sweep("demo/swept", {"seed": [0]}, engine="slurm")
    with refused("scheduler", match="dask"):
        sweep.sweep("demo/swept", {"seed": [0]}, scheduler="tcp://127.0.0.1:1")


def test_values():
    def literal(text):
        return int(text) if text.isdigit() else text

    assert sweep.values_of("0..2", literal) == [0, 1, 2]
    assert sweep.values_of("-1..1", literal) == [-1, 0, 1]
    assert sweep.values_of("a, b,3", literal) == ["a", "b", 3]
    assert sweep.values_of("../data", literal) == ["../data"]
    assert sweep.values_of('["PLT", "FastXML"],["PLT"]', literal) == ['["PLT", "FastXML"]', '["PLT"]']
    assert sweep.values_of("[1,2], [3]", recording.value) == [[1, 2], [3]]
    with refused("-p", "'3..1'"):
        sweep.values_of("3..1", literal)


def test_a_seed_that_changes_nothing_is_said():
    table = pd.DataFrame({"seed": [0, 1, 2], "P": [0.1 + 0.2] * 3, "R": [0.1, 0.2, 0.3]})
    means = sweep.mean_over(table, "seed").set_index("column")
    assert means.loc["P", "low"] == means.loc["P", "high"] == 0.1 + 0.2
    assert sweep.unmoved(means.reset_index(), "seed").startswith("seed changes nothing in 1 of 2 means (P)")
    assert sweep.unmoved(sweep.mean_over(table.drop(columns="P"), "seed"), "seed") == ""
    assert sweep.unmoved(sweep.mean_over(table[:1], "seed"), "seed") == ""  # one run has no interval
    every = sweep.unmoved(sweep.mean_over(table.drop(columns="R"), "seed"), "seed")
    assert every.startswith("seed changes nothing in any of 1 means (P)")


def test_means_against_slow_arithmetic():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"seed": np.repeat(np.arange(5), 2), "k": [1, 3] * 5, "beta": 0.5, "P": rng.random(10)})
    table.loc[0, "P"] = np.nan
    found = sweep.mean_over(table, "seed", ["beta"], 0.9)
    assert found[["k", "beta", "column", "n"]].values.tolist() == [[1, 0.5, "P", 4], [3, 0.5, "P", 5]]
    for row, t in zip(found.itertuples(), (2.353363, 2.131847), strict=True):  # tables of Student's t, 3 and 4 degrees
        values = [v for k, v in zip(table["k"], table["P"], strict=True) if k == row.k and not math.isnan(v)]
        mean = sum(values) / len(values)
        sd = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
        assert row.mean == pytest.approx(mean)
        assert row.high - row.mean == pytest.approx(t * sd / math.sqrt(len(values)), rel=1e-6)
        assert row.mean - row.low == pytest.approx(row.high - row.mean)
