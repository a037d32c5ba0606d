"""The runner, with papermill for real where it matters and on stamps alone where it does not."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

from tests.refused import damaged, refused
from tests.repro.conftest import Project
from xcrepro.__main__ import main
from xcrepro.core.errors import XCError
from xcrepro.repro.engine import closure, manifest, notebooks, processes, runner, stamps

TRAIN = """
from xcrepro.core import paths
with paths.atomic_path(paths.project_root() / "build/predictions/x.txt") as part:
    part.write_text("predictions")
"""
GOOD = """
import pandas as pd
from xcrepro.core import paths
from xcrepro import repro
item = repro.item("demo/good", globals())
first = float((paths.project_root() / "data/in.csv").read_text())
table = pd.DataFrame({"k": [1, 3], "P": [first + seed, 0.25]})
item.check(table)
item.save_table(table)
"""


def add_good(project):
    project.add("train", TRAIN, parameters="seed = 0")
    project.add("good", GOOD, parameters="seed = 0", needs='["demo/train"]')
    project.figure("demo/good.csv", "k,P\n1,0.7\n3,0.25\n")
    (project.root / "data").mkdir()
    (project.root / "data/in.csv").write_text("0.5")


@pytest.fixture
def demo(project):
    """Five items: one that trains, one that uses it, one that fails, one that needs that, one that forgets its output."""
    add_good(project)
    project.add("bad", "x = 1", "raise ValueError('planted')")
    project.add("after", "pass", needs='["demo/bad"]')
    project.add("forgets", "pass")
    project.figure("demo/forgets.csv", "old")
    return project


@pytest.fixture(scope="module")
def once_accepted(tmp_path_factory):
    """The items demo/train and demo/good, run and accepted with ``--all``."""
    root = tmp_path_factory.mktemp("accepted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XCREPRO_ROOT", str(root))
        project = Project(root)
        add_good(project)
        assert main(["accept", "--all"]) == 0
    return project


@pytest.fixture
def accepted(project, once_accepted):
    """A copy of it, because a kernel for each test that begins there takes seconds."""
    shutil.copytree(once_accepted.root, project.root, dirs_exist_ok=True)
    project.entries = dict(once_accepted.entries)
    return project


EMPTY = 'echo \'{"nbformat": 4, "cells": []}\' > "$4"\n'
"""A papermill that runs nothing, for :func:`fake_python`."""


def outcomes(report):
    return {result.id.removeprefix("demo/"): result.outcome for result in report.results}


def test_the_life_of_a_project(demo, capsys, request):
    report = runner.run()
    expected = {"train": "ok", "good": "differs", "bad": "failed", "after": "not run", "forgets": "failed"}
    assert outcomes(report) == expected
    assert not report.ok
    printed = capsys.readouterr().out
    assert "[1/5] demo/" in printed
    for said in (
        "In [2]: ValueError: planted\n  see build/notebooks/demo/bad.ipynb",
        "demo/after not run: it needs demo/bad",
        "figures/demo/forgets.csv is committed",
        "figures/demo/good.csv: line 2: '1,0.5' instead of '1,0.7'",
    ):
        assert said in printed
    with pytest.raises(runner.RunFailed, match=r"4 of 5[\s\S]*ValueError: planted"):
        report.require()
    assert (demo.root / "figures/demo/good.csv").read_text() == "k,P\n1,0.5\n3,0.25\n"
    assert not (demo.root / "figures/demo/good.md").exists()  # no page links it

    # What differs runs, and says so, until it is accepted: its tables are written, the outputs of its notebook are not.
    request.getfixturevalue("in_process")  # what papermill itself does was seen
    assert main(["run", "demo/good"]) == 1
    printed = capsys.readouterr().out
    assert "notebooks/demo/good.ipynb, code cell 2, line 1: " in printed
    assert "figures/demo/good.csv" not in printed
    assert main(["accept", "demo/good"]) == 0

    # Mended: only what failed, and what waited for it, runs; the rest is recognised.
    demo.add("bad", "x = 1")
    demo.remove("forgets")
    (demo.root / "figures/demo/forgets.csv").unlink()
    assert outcomes(runner.run()) == {"train": "unchanged", "good": "unchanged", "bad": "ok", "after": "ok"}
    capsys.readouterr()

    assert main(["run", "--dry", "--force", "demo/good"]) == 0
    assert "demo/good  would run" in capsys.readouterr().out

    assert main(["run"]) == 0
    assert "4 items: all unchanged" in capsys.readouterr().out

    # A reader's own run: compared with nothing, kept apart, and not in the way of the official one.
    committed = (demo.root / "figures/demo/good.csv").read_bytes()
    capsys.readouterr()
    assert main(["run", "demo/good", "-p", "seed", "5"]) == 0
    said = capsys.readouterr().out
    assert f" {demo.root}/build/notebooks/other/seed=5/demo/good.ipynb\n" in said
    assert f" {demo.root}/build/figures/other/seed=5/demo/good*\n" in said
    assert (demo.root / "build/figures/other/seed=5/demo/good.csv").read_text() == "k,P\n1,5.5\n3,0.25\n"
    assert (demo.root / "figures/demo/good.csv").read_bytes() == committed
    executed = notebooks.read(demo.root / "build/notebooks/other/seed=5/demo/good.ipynb")
    said = "".join(notebooks.text(o.get("text")) for c in notebooks.code_cells(executed) for o in c["outputs"])
    assert "demo/good: not compared" in said
    assert outcomes(runner.run("demo/good")) == {"train": "unchanged", "good": "unchanged"}

    # Outputs into the committed notebook, whose prose may have changed since it ran.
    path = demo.root / "notebooks" / "demo" / "good.ipynb"
    notebook = notebooks.read(path)
    notebook["cells"].insert(0, {"cell_type": "markdown", "id": "new", "metadata": {}, "source": "# New prose"})
    path.write_text(json.dumps(notebook))
    assert main(["accept", "demo/good"]) == 0
    assert main(["tidy", "--check", str(path)]) == 0
    notebook = notebooks.read(path)
    assert notebooks.text(notebook["cells"][0]["source"]) == "# New prose"
    assert [cell["execution_count"] for cell in notebooks.code_cells(notebook)] == [1, 2]
    assert "demo/good: 4 values equal" in notebooks.text(notebooks.code_cells(notebook)[1]["outputs"][0]["text"])


def test_a_notebook_that_an_editor_saved_with_its_own_kernel_runs_here(project):
    """VS Code and conda note a kernel's name; it may be of no kernel, or of one with another Python."""
    path = project.add("saved", f"import sys\n_ = open({str(project.root / 'python')!r}, 'w').write(sys.executable)")
    saved = json.loads(path.read_text())
    kernel = {"display_name": ".venv (3.11.9)", "name": "conda-env-xc-py", "language": "python"}
    saved["metadata"]["kernelspec"] = kernel
    path.write_text(json.dumps(saved))
    assert [one.outcome for one in runner.run("demo/saved").results] == ["ok"]
    assert Path((project.root / "python").read_text()).samefile(sys.executable)


def test_what_takes_longest_with_all_that_waits_for_it_starts_first(project, capsys, monkeypatch, tmp_path):
    for name, keys in {
        "quick": {},
        "middling": {"seconds": "50"},
        "first_of_chain": {"seconds": "10"},
        "chained": {"seconds": "30", "needs": '["demo/first_of_chain"]'},
        "end_of_chain": {"seconds": "20", "needs": '["demo/chained", "demo/quick"]'},
    }.items():
        project.add(name, "print(1)", **keys)
    entries = manifest.load(project.root)
    ahead = {"quick": 20, "middling": 50, "first_of_chain": 60, "chained": 50, "end_of_chain": 20}
    assert manifest.seconds_ahead(entries) == {f"demo/{name}": seconds for name, seconds in ahead.items()}
    report = runner.run(dry=True)
    assert [result.id for result in report.results] == list(entries)
    capsys.readouterr()
    monkeypatch.setattr(processes.sys, "executable", fake_python(tmp_path, EMPTY))
    runner.run(jobs=1)
    started = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("[")]
    assert started == [f"demo/{name}" for name in ("first_of_chain", "middling", "chained", "quick", "end_of_chain")]


def test_what_takes_long_runs_where_it_is_asked_for(project, capsys):
    """Left out of everything, with a word; run by name, by --long, and where another item needs it."""
    project.add("quick", "pass")
    project.add("slow", "pass", long="true")
    before = {"quick": "would run", "slow": "left out"}
    assert outcomes(runner.run(dry=True)) == before
    printed = capsys.readouterr().out
    assert "demo/slow  left out" in printed
    assert "2 items: 1 would run, 1 left out" in printed
    assert runner.run(dry=True).ok
    assert outcomes(runner.run(dry=True, long=True)) == {"quick": "would run", "slow": "would run"}
    assert main(["run", "--dry", "--long"]) == 0
    assert "2 items: 2 would run" in capsys.readouterr().out
    assert outcomes(runner.run("demo/slow", dry=True)) == {"slow": "would run"}
    assert outcomes(runner.run("demo", dry=True)) == {"quick": "would run", "slow": "would run"}
    report = runner.Report((runner.Result("a", "unchanged", ""), runner.Result("b", "left out", "")), 0)
    assert report.summary() == "2 items: all unchanged, nothing to do; 1 left out (0.0 s)"
    project.add("builds", "pass", needs='["demo/slow"]')
    assert outcomes(runner.run(dry=True)) == {"quick": "would run", "slow": "would run", "builds": "would run"}
    assert main(["list"]) == 0
    assert "(long) Item slow" in capsys.readouterr().out


@pytest.fixture
def stamped(demo, monkeypatch):
    """The item demo/good as if it had just run."""
    demo.figure("demo/good.csv", "1\n")
    entry = manifest.load()["demo/good"]
    state = {"versions": {"numpy": "2.0"}, "need": "n", "sources": {"xcrepro/a.py": "1"}, "seed": 0}
    monkeypatch.setattr(stamps, "sources", lambda entry: state["sources"])

    def look():
        values = {"seed": state["seed"]}
        return stamps.fingerprint(entry, values, state["versions"], {"demo/train": state["need"]})

    def reason(**changes):
        before = dict(state)
        state.update(changes)
        said = stamps.reason(entry, stamps.read(entry), look())
        state.update(before)
        return said

    assert reason().startswith("no finished run")
    files = [str(demo.root / name) for name in ("data/in.csv", "figures/demo/good.csv")]
    stamps.write_at(stamps.path(entry), stamps.made(entry, look(), files[:1], files[1:]))
    assert reason() is None
    return demo, reason


def test_every_reason_is_told(stamped):
    demo, reason = stamped
    root = demo.root
    assert reason(seed=1) == "parameter seed 0 -> 1"
    assert reason(sources={"xcrepro/a.py": "2", "xcrepro/b.py": "1"}) == "source xcrepro/a.py changed (and 1 more)"
    assert reason(versions={"numpy": "2.1"}) == "installed numpy 2.0 -> 2.1"
    assert reason(need="m").startswith("demo/train changed")

    for words, name, changed in (
        ("output", "figures/demo/good.csv", "is not as it was written"),
        ("input", "data/in.csv", "changed"),
    ):
        text = (root / name).read_text()
        (root / name).write_text("2.5")
        assert reason() == f"{words} {name} {changed}"
        (root / name).unlink()
        assert reason() == f"{words} {name} is not there"
        (root / name).write_text(text)
        assert reason() is None

    path = root / "notebooks/demo/good.ipynb"
    path.write_text(path.read_text().replace("0.25", "0.26"))
    assert "code changed" in reason()


def test_a_stamp_is_there_whole_or_not_at_all(stamped, monkeypatch):
    _, reason = stamped
    entry = manifest.load()["demo/good"]
    path = stamps.path(entry)
    whole = path.read_text()
    fingerprint = json.loads(whole)["fingerprint"]

    def full(self, *_, **__):
        with self.open("w") as file:
            file.write("{")
        raise OSError("no space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="no space"):
            stamps.write_at(path, stamps.made(entry, fingerprint, [], []))
    assert path.read_text() == whole
    assert [file.name for file in path.parent.iterdir()] == ["good.json"]
    odd = [{part: value} for part in ("fingerprint", "inputs", "outputs") for value in ([], None, "x")]
    odd += [{"fingerprint": value} for value in ({"code": 1}, {"needs": {}})]
    odd += [{"fingerprint": fingerprint | {part: [1]}} for part in ("needs", "versions")]
    foreign = [json.dumps(json.loads(whole) | parts) for parts in odd]
    for cut in ("", whole[: len(whole) // 2], "[]", "{}", "[" * 100_000, "\0", *foreign):
        path.write_text(cut)
        assert reason().startswith("no finished run"), cut[:200]


def test_prose_and_outputs_of_a_notebook_are_no_reason(stamped):
    demo, reason = stamped
    path = demo.root / "notebooks/demo/good.ipynb"
    notebook = notebooks.read(path)
    notebook["cells"].append({"cell_type": "markdown", "id": "p", "metadata": {}, "source": "More words."})
    notebook["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "hello"}]
    path.write_text(json.dumps(notebook))
    assert reason() is None


def test_what_was_read_is_known_from_the_run(accepted, capsys, in_process):
    """Inputs are recorded, not declared: the next run starts anew when one of them changes."""
    stamp = stamps.read(manifest.load()["demo/good"])
    assert list(stamp.inputs) == ["data/in.csv"]
    assert set(stamp.outputs) == {"figures/demo/good.csv"}
    # Accepting wrote the table, and what it wrote is no reason for another run.
    assert (accepted.root / "figures/demo/good.csv").read_text() == "k,P\n1,0.5\n3,0.25\n"
    assert main(["run"]) == 0
    assert "all unchanged" in capsys.readouterr().out
    (accepted.root / "data/in.csv").write_text("0.6")
    report = runner.run("demo/good")
    assert outcomes(report)["good"] == "differs"
    assert "'1,0.6' instead of '1,0.5'" in report.failures()


def test_a_run_that_fails_leaves_no_stamp(accepted, monkeypatch, tmp_path):
    path = manifest.load()["demo/train"].notebook
    text = path.read_text()
    path.write_text(text.replace("from xcrepro", "raise ValueError\\nfrom xcrepro"))
    with monkeypatch.context() as broken:
        broken.setattr(processes.sys, "executable", fake_python(tmp_path, EMPTY + "exit 1\n"))
        assert not runner.run("demo/train").ok
    path.write_text(text)
    assert outcomes(runner.run("demo/train", dry=True)) == {"train": "would run"}


@pytest.mark.parametrize(
    ("room", "last", "steps"),
    [
        (5.0, None, "begin begin end end"),  # two of the usual 1 GB
        (1.5, None, "begin end begin end"),
        (0.1, None, "begin end begin end"),  # one by itself runs whatever it takes
        (5.0, 3_000_000, "begin end begin end"),  # each took 3 GB the last time
    ],
)
def test_no_more_start_than_memory_allows(project, in_process, monkeypatch, room, last, steps):
    for name in ("one", "two"):
        project.add(name, "x = 1")
        if last:
            notes = project.root / f"build/notebooks/demo/{name}.notes"
            notes.parent.mkdir(parents=True, exist_ok=True)
            notes.write_text(f'["peak", "{last}"]\n')
    monkeypatch.setattr(runner, "room", lambda: room)
    monkeypatch.setattr(processes.threads, "count", lambda: 2)
    seen, begin, end = [], runner._Scheduler._begin, runner._Scheduler._end
    monkeypatch.setattr(runner._Scheduler, "_begin", lambda *of: (seen.append("begin"), begin(*of))[1])
    monkeypatch.setattr(runner._Scheduler, "_end", lambda *of: (seen.append("end"), end(*of))[1])
    assert runner.run().ok
    assert " ".join(seen) == steps


def test_what_others_need_is_the_outcome_and_not_the_code(accepted, in_process):
    """A word in the code of what an item needs reruns that alone; other parameters of it rerun both."""
    path = accepted.root / "notebooks/demo/train.ipynb"
    path.write_text(path.read_text().replace("from xcrepro", "# a word\\nfrom xcrepro"))
    assert outcomes(runner.run("demo/good")) == {"train": "ok", "good": "unchanged"}
    path.write_text(path.read_text().replace("seed = 0", "seed = 1"))
    assert outcomes(runner.run("demo/good")) == {"train": "ok", "good": "ok"}


def test_what_is_accepted_is_named_or_all(project, capsys):
    project.add("one", "pass")
    assert main(["accept"]) == 2
    assert main(["accept", "--all", "demo/one"]) == 2
    assert "--all" in capsys.readouterr().err


def test_sources_are_whole_rooms_and_what_is_opened_of_tools(root):
    """Core, models and what reproduces count whole; of the engine, what decides what is written; of tools, what is imported."""
    for entry in manifest.load(root).values():
        found = set(stamps.sources(entry))
        for room in stamps.ROOMS:
            files = (root / "xcrepro" / room).rglob("*")
            assert {path.relative_to(root).as_posix() for path in files if path.suffix in closure.SOURCES} <= found
        engine = {name.rpartition("/")[2] for name in found if name.startswith("xcrepro/repro/engine/")}
        assert engine == {*stamps.ENGINE}
        opened = {name.split("/")[2] for name in found if name.startswith("xcrepro/tools/")}
        reads = "xcrepro.tools.reports" in entry.notebook.read_text(encoding="utf-8")
        assert ("reports" in opened) == reads or entry.id.startswith(("kit/", "beyond/")), (entry.id, opened)


def test_versions_are_those_of_the_dependencies():
    found = stamps.versions()
    assert {"python", "numpy", "llvmlite", "papermill"} <= set(found)
    assert "hypothesis" not in found


@pytest.mark.parametrize(
    ("arguments", "argument", "words"),
    [
        ({"parameters": {"sede": 1}}, "parameters", "did you mean 'seed'"),
        ({"parameters": {"seed": "one"}}, "parameter seed", "int"),
        ({"parameters": {"seed": True}}, "parameter seed", "int"),
        ({"items": "demo/god"}, "items", "did you mean 'demo/good'"),
        ({"items": "demo/bad", "parameters": {"seed": 1}}, "parameters", "nothing can be set in bad.ipynb"),
        ({"jobs": 0}, "jobs", "whole"),
    ],
)
def test_refused_before_anything_starts(demo, monkeypatch, arguments, argument, words):
    monkeypatch.setattr(runner, "Child", None)
    with refused(argument, match=words):
        runner.run(**{"items": "demo/good", **arguments})
    assert not (demo.root / "build").exists()


def test_refused_notebooks(project, monkeypatch):
    monkeypatch.setattr(runner, "Child", None)
    for cell in ("size = pick()", "pass  # nothing"):
        project.add("one", parameters=cell)
        with damaged("one.ipynb", match="parameters"):
            runner.run()


OWN = """
import pandas as pd
import matplotlib.pyplot as plt
from xcrepro import repro
item = repro.item("demo/own", globals())
fig, ax = plt.subplots()
item.made_from("simulated")
if seed < 2:
    item.save_figure(fig, pd.DataFrame({"x": [seed]}))
"""


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_executed_copy_speaks_for_itself(project, seed, in_process):
    """Its links lead somewhere; one with other parameters says so first, and shows its own picture, if it has drawn one."""
    linked = "![A](../../figures/demo/own.png) [b](../words.md#part), [c](https://x.org/y.md), <img src='no.png'>"
    project.add("own", project.markdown(linked), OWN, parameters="seed = 0")
    project.figure("demo/own.png", "committed")
    (project.root / "notebooks/words.md").write_text("# part")
    assert runner.run("demo/own", parameters={"seed": seed} if seed else None).results[0].outcome in ("ok", "differs")
    home = "" if seed == 0 else f"other/seed={seed}"
    executed = project.root / "build/notebooks" / home / "demo/own.ipynb"
    cells = [notebooks.text(cell["source"]) for cell in notebooks.read(executed)["cells"]]
    first = cells.pop(0) if seed else ""
    assert first == "" or (f"`seed = {seed}`" in first and "`seed = 0`" in first)
    text = next(cell for cell in cells if cell.startswith("![A]"))
    links = [link.partition("#") for link in re.findall(r"(?:\]\(|src=')([^)']+)", text)]
    assert [link[1:] for link in links] == [("", ""), ("#", "part"), ("", ""), ("", "")]
    picture, words, *others = (link[0] for link in links)
    wanted = "build/figures/other/seed=1/demo/own.png" if seed == 1 else "figures/demo/own.png"
    assert (executed.parent / picture).resolve() == (project.root / wanted).resolve()
    assert ("picture on this screen is this run's" in first) == (seed == 1)
    assert (executed.parent / words).resolve() == (project.root / "notebooks/words.md").resolve()
    assert others == ["https://x.org/y.md", "no.png"]


OTHERS = """
import types
import pandas as pd
import matplotlib.pyplot as plt
from xcrepro import repro
from xcrepro.repro.published import evidence
item = repro.item("demo/own", globals())
item.made_from(types.SimpleNamespace(name="toy", title="Toy", origin="Toy (real data)", notes=(), comparable=True))
drawn = pd.DataFrame({"dataset": ["Toy" if seed in (0, 1) else "Bibtex"], "x": [seed]})
fig, ax = plt.subplots()
item.save_figure(fig, drawn)
found = {"source": ["real, live"], "dataset": ["Toy" if seed in (0, 2) else ""], "id": ["a"], "outcome": ["holds"]}
evidence.gather(item, pd.DataFrame(found | {"effect": [""]}))
"""


@pytest.mark.parametrize(("seed", "picture", "verdicts"), [(1, True, False), (2, False, True), (3, False, False)])
def test_a_run_says_what_has_nothing_of_it(project, seed, picture, verdicts, in_process):
    """A run without the models of a claim: its picture, or its verdicts, show recorded and printed results alone."""
    project.add("own", project.markdown("![A](../../figures/demo/own.png)"), OTHERS, parameters="seed = 0")
    assert runner.run("demo/own", parameters={"seed": seed}).ok
    cells = notebooks.read(project.root / f"build/notebooks/other/seed={seed}/demo/own.ipynb")["cells"]
    first = notebooks.text(cells[0]["source"])
    assert ("picture on this screen is this run's" in first) == picture
    assert ("verdicts below are this run's" in first) == verdicts
    assert ("verdicts rest on recorded" in first) != verdicts


def test_one_run_at_a_time(demo, monkeypatch):
    monkeypatch.setattr(runner, "UNTIL_UP", 0.1)
    (demo.root / "build").mkdir(exist_ok=True)
    with FileLock(demo.root / "build" / "run.lock"), pytest.raises(XCError, match="another run"):
        runner.run()
    assert not (demo.root / "build" / "stamps").exists()


def fake_python(folder: Path, script: str) -> str:
    path = folder / "python"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return str(path)


def test_a_kernel_that_does_not_start_is_tried_twice(project, monkeypatch, tmp_path):
    project.add("one", "pass")
    count = tmp_path / "count"
    # Notes the call and the thread limits, and fails the first time as a dead kernel does: without a notebook.
    script = f'echo "$XCREPRO_THREADS $OMP_NUM_THREADS" >> {count}\n'
    script += f"test $(wc -l < {count}) -gt 1 || {{ echo Kernel died >&2; exit 1; }}\n"
    monkeypatch.setattr(processes.sys, "executable", fake_python(tmp_path, script + EMPTY))
    monkeypatch.setenv("XCREPRO_THREADS", "3")
    assert outcomes(runner.run()) == {"one": "ok"}
    assert count.read_text() == "3 3\n3 3\n"

    count.write_text("")
    dies = fake_python(tmp_path, f"echo >> {count}\necho Kernel died; exit 1\n")
    monkeypatch.setattr(processes.sys, "executable", dies)
    report = runner.run(force=True)
    assert "1: Kernel died" in report.failures()
    assert len(count.read_text()) == 2
    # What failed is not taken for done, though nothing changed since it last was.
    assert runner.run().results[0].why.startswith("papermill ended")


def test_interrupt_ends_the_children_and_their_kernels(project, tmp_path):
    pid_file = tmp_path / "pid"
    project.add("slow", f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    # A shell starts what runs in the background with interrupts ignored, and these tests may run there.
    process = subprocess.Popen(
        [sys.executable, "-m", "xcrepro", "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until = time.monotonic() + 1200
    while not (pid_file.exists() and pid_file.read_text()):
        assert time.monotonic() < until, "the kernel did not start"
        time.sleep(0.1)
    kernel = int(pid_file.read_text())
    # To this process alone, as an interrupted notebook server would.
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=3600)
    assert process.returncode == 130, output
    assert "interrupted" in output
    until = time.monotonic() + 600
    while _alive(kernel):
        assert time.monotonic() < until, "the kernel is still there"
        time.sleep(0.1)


def test_an_interrupted_run_has_stopped_its_children(project, monkeypatch):
    """In a process that goes on, as a notebook's does: nothing but the run ends them there."""
    project.add("slow", "import time\ntime.sleep(600)")
    started, sleep, interrupts = [], time.sleep, iter([True])

    def start(*arguments, **options):
        started.append(papermill(*arguments, **options))
        return started[-1]

    def interrupted(seconds):
        if next(interrupts, False):
            raise KeyboardInterrupt
        sleep(seconds)

    papermill = processes.papermill
    monkeypatch.setattr(processes, "papermill", start)
    monkeypatch.setattr(time, "sleep", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            runner.run()
        assert [process.poll() is None for process in started] == [False]
    finally:
        processes.stop(started)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie that nobody has waited for yet is not alive.
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def test_the_master_notebook(project, root, tmp_path, monkeypatch, capsys):
    """Its cells, in this process; tests/test_jupyter_server.py opens it in a kernel."""
    project.add("one", "pass")
    monkeypatch.setattr(processes.sys, "executable", fake_python(tmp_path, EMPTY))
    names: dict = {}
    for cell in notebooks.code_cells(notebooks.read(root / "notebooks/00_regenerate_all.ipynb")):
        exec(notebooks.text(cell["source"]), names)
    said = capsys.readouterr().out
    assert "[1/1] demo/one  ok" in said
    assert "all items are as committed" in said
