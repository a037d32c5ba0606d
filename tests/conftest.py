"""Fixtures every test may use."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest
from scipy.sparse import csr_matrix

# Compiled kernels, of which little data would see nothing; tests/core/kernels/test_interpreted.py has the other ones.
os.environ.setdefault("XCREPRO_INTERPRET", "0")

import xcrepro as xc

ROOT = Path(__file__).resolve().parent.parent

# No test is timed: hypothesis would fail an example that takes over 0.2 s, as kernels that compile on a busy machine do.
hypothesis.settings.register_profile("untimed", hypothesis.settings.default, deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session")
def root() -> Path:
    """The project folder."""
    return ROOT


@pytest.fixture(scope="session")
def real_data():
    """``real_data("bibtex")``: that folder of the optional local data, or a skip that says where it was looked for."""

    def folder(name: str) -> Path:
        base = Path(os.environ.get("XCREPRO_TEST_DATA", ROOT.parent / "shared" / "data"))
        path = base / name
        if not path.exists():
            pytest.skip(f"real data {name!r} is not in {base} (set XCREPRO_TEST_DATA)")
        return path

    return folder


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from this tree."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling builds the wheel: pip install -e '.[test]'")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture
def in_process(monkeypatch) -> list[dict]:
    """Notebooks run by :class:`tests.notebook.Here`, which notes no inputs; the parameters that each run was given."""
    from tests.notebook import Here
    from xcrepro.repro.engine import processes, run_log

    ran: list[dict] = []

    def start(*arguments):
        process = Here(*arguments)
        ran.append(process.given)
        return process

    monkeypatch.setattr(processes, "start_here", start)
    monkeypatch.setattr(run_log, "watch", lambda: None)
    return ran


@pytest.fixture
def file(tmp_path):
    """``file(text, name)``: the path of a file of that text or those bytes."""

    def write(text, name="a.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture(scope="session")
def twin():
    return xc.twin("bibtex", scale=0.2, seed=0)


@pytest.fixture(scope="session")
def misjudged():
    """``misjudged(twin, k, power)``: the twin's own probabilities to a power as predictions, too high below 1."""

    def make(ds, k: int, power: float = 1.0) -> xc.TopK:
        chance = ds.test.observed_marginals
        return xc.TopK.from_scores(
            csr_matrix((chance.data.astype(float) ** power, chance.indices, chance.indptr), chance.shape), k
        )

    return make
