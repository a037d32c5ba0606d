"""Certificates: what a machine makes of the last commit, in a clone, from empty caches."""

from __future__ import annotations

import dataclasses
import os
import platform
import re
import socket
import subprocess

import pytest

from tests import processors
from tests.refused import damaged
from xcrepro.__main__ import main
from xcrepro.core.errors import XCError
from xcrepro.repro.engine import certificate

ITEM = """
import pandas as pd
from xcrepro import repro
item = repro.item("demo/NAME", globals())
item.save_table(pd.DataFrame({"k": [1, 3], "P": [0.5, VALUE]}))
"""


def git(project, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(
        ["git", *who, *arguments], cwd=project.root, check=True, capture_output=True, text=True
    ).stdout


def commit(project) -> str:
    git(project, "add", "-A")
    git(project, "commit", "-qm", "a")
    return git(project, "rev-parse", "HEAD").strip()


@pytest.fixture
def demo(project, in_process):
    """A repository with two items whose committed files are what they make."""
    project.add("one", ITEM.replace("NAME", "one").replace("VALUE", "0.25"))
    project.add("two", ITEM.replace("NAME", "two").replace("VALUE", "1 / 3"))
    (project.root / ".gitignore").write_text("build/\n")
    git(project, "init", "-q")
    assert main(["accept", "--all"]) == 0
    commit(project)
    return project


@pytest.fixture
def some() -> certificate.Certificate:
    """Of a machine that agrees."""
    return certificate.Certificate(
        processor="Processor (R) 7, family 6", level="avx2", system="Linux", c_library="glibc 2.36", python="3.11.7",
        date="2026-11-24", commit="0" * 40, items=[], compared=9, equal=9, differing=[], seconds=5, simulated=False,
        versions={"numpy": "2.0"}, environment={},
    )  # fmt: skip


def test_certify_counts_what_comes_out_the_same(demo, some, capfd, monkeypatch):
    """Of one item as committed, one whose table the machine makes otherwise, one that fails."""
    for name in certificate.SIMULATING:
        monkeypatch.delenv(name, raising=False)
    demo.add("three", ITEM.replace("NAME", "three").replace("VALUE", "0.125"))
    demo.figure("demo/three.csv", "k,P\n1,0.5\n3,0.75\n")
    demo.add("two", "raise ValueError('planted')")
    older = certificate.write(dataclasses.replace(some, **certificate.machine()), demo.root / certificate.FOLDER)
    now = commit(demo)
    assert main(["certify", "--jobs", "2"]) == 1
    said = capfd.readouterr().out
    assert "[3/3] demo/" in said
    assert "2 of 6 files" in said
    assert "README.md is to say: 0 of 1 machine agrees" in said
    assert "figures/demo/three.csv: line 3: '3,0.125' instead of '3,0.75'" in said
    [(name, made)] = certificate.all_committed(demo.root).items()
    assert (name, made.commit, made.compared, made.equal) == (older.stem, now, 6, 2)
    assert {"figures/demo/three.csv", "notebooks/demo/two.ipynb"} < {*made.differing}
    assert not {name for name in made.differing if "one" in name}
    assert certificate.agreement([made]) == "0 of 1 machine agrees"
    assert not made.simulated
    text = older.read_text()
    for private in (socket.gethostname(), str(demo.root), os.path.expanduser("~")):
        assert not re.search(rf"\b{re.escape(private)}\b", text)
    assert made.versions["numpy"]
    assert made.python == platform.python_version()
    # The run had a clone of its own: nothing of the project was written but the certificate, in place of the older one.
    assert git(demo, "status", "--porcelain", "--untracked-files=all").split() == [
        "M",
        f"{certificate.FOLDER}/{name}.toml",
    ]
    assert "3,0.75" in (demo.root / "figures/demo/three.csv").read_text()


def test_a_run_of_some_items_is_no_certificate(some, project, capsys, monkeypatch):
    monkeypatch.setattr(certificate, "make", lambda items, *_: dataclasses.replace(some, items=items))
    assert main(["certify", "demo/one"]) == 0
    assert "9 of 9 files" in capsys.readouterr().out
    assert certificate.all_committed(project.root) == {}


def test_some_items_on_a_simulated_processor(demo, capfd, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.chdir(demo.root)
    assert processors.main(["--only", "Nehalem", "--items", "demo/one"]) == 0
    said = capfd.readouterr().out
    assert re.search(r"^Nehalem +2 +2 +\d+$", said, re.MULTILINE)
    [kept] = (demo.root / "build/processors/Nehalem").iterdir()
    made = certificate.read(kept)
    assert made.simulated
    assert made.environment.keys() == {*certificate.SIMULATING}
    assert made.environment["OPENBLAS_CORETYPE"] == "Nehalem"

    # What this commit has passed is not run again; what a machine cannot simulate is skipped by name.
    def no_run(*_, **__):
        raise AssertionError("it ran")

    monkeypatch.setattr(certificate, "make", no_run)
    monkeypatch.setattr(certificate, "cpu", lambda: {"flags": "sse2 avx2 fma bmi2"})
    assert processors.main(["--only", "Nehalem", "SkylakeX", "--items", "demo/one"]) == 0
    said = capfd.readouterr().out
    assert re.search(r"^Nehalem +2 +2 +\d+\nSkylakeX +skipped: this processor has no avx512f", said, re.MULTILINE)
    with pytest.raises(AssertionError, match="it ran"):
        processors.main(["--only", "Nehalem", "--items", "demo/one", "--again"])
    certificate.write(dataclasses.replace(made, equal=1, differing=["figures/demo/one.csv"]), kept.parent)
    with pytest.raises(AssertionError, match="it ran"):
        processors.main(["--only", "Nehalem", "--items", "demo/one"])
    differs = certificate.read(kept)
    monkeypatch.setattr(certificate, "make", lambda *_, **__: differs)
    assert processors.main(["--only", "Nehalem", "--items", "demo/one"]) == 1
    assert "Nehalem: figures/demo/one.csv differs" in capfd.readouterr().out


def test_a_certificate_is_of_a_commit(project):
    project.add("one", "pass")
    with pytest.raises(XCError, match=r"certificate .* commit"):
        certificate.make()


def test_what_is_written_is_read(some, tmp_path):
    path = certificate.write(some, tmp_path)
    assert path.name == "processor-r-7-family-6-avx2.toml"
    assert certificate.read(path) == some
    unnamed = dataclasses.replace(some, simulated=True)
    assert certificate.write(unnamed, tmp_path).name == "processor-r-7-family-6-avx2-as-another.toml"
    simulated = dataclasses.replace(some, simulated=True, environment={"OPENBLAS_CORETYPE": "Zen"})
    assert certificate.write(simulated, tmp_path).name == "processor-r-7-family-6-avx2-as-zen.toml"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("compared = 9\n", "", "no field compared"),
        ("compared = 9", "host = 'a'\ncompared = 9", "field host"),
        ("compared = 9", "compared = '9'", "compared .* int"),
        ("equal = 9", "equal = 8", "0 .* differing"),
        ("compared = 9", "compared 9", "no TOML"),
    ],
)
def test_a_bad_certificate_is_refused(some, tmp_path, old, new, words):
    path = certificate.write(some, tmp_path)
    path.write_text(path.read_text().replace(old, new))
    with damaged(path, match=words):
        certificate.read(path)


def test_who_agrees(some):
    other = dataclasses.replace(some, equal=8, differing=["figures/a.csv"])
    part = dataclasses.replace(some, items=["a/b"])
    simulated = dataclasses.replace(some, simulated=True)
    for given, said in (
        ([], "0 machines agree"),
        ([some, part, simulated], "1 machine agrees"),
        ([some, some], "2 machines agree"),
        ([some, some, other], "2 of 3 machines agree"),
    ):
        assert certificate.agreement(given) == said


def test_the_readme_counts_the_committed_certificates(root):
    found = certificate.all_committed(root)
    for name, each in found.items():
        assert each.name == name
    assert f"[{certificate.agreement(found.values())}](data/certificates/README.md)" in (root / "README.md").read_text()
    fields = set(re.findall(r"`\[?([a-z_]+)\]?`", (root / certificate.FOLDER / "README.md").read_text()))
    assert {field.name for field in dataclasses.fields(certificate.Certificate)} <= fields
