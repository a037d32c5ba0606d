"""errors, paths, threads, propensity, and what importing costs."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import xcrepro as xc
from tests import naive
from tests.refused import refused
from xcrepro.core import errors, paths, threads


def test_errors_are_also_value_errors_and_carry_their_parts():
    error = errors.DataError("a.txt", "x", "y", line=3, do="Mend it")
    assert isinstance(error, ValueError)
    assert isinstance(error, errors.XCError)
    assert (error.path, error.line) == ("a.txt", 3)
    assert str(error) == "a.txt, line 3: found x, expected y. Mend it"
    assert isinstance(errors.DataMissing("nowhere"), FileNotFoundError)


def test_atomic_path_leaves_no_trace_of_a_failure(tmp_path):
    target = tmp_path / "a.npz"
    target.write_text("old")

    def fail():
        with paths.atomic_path(target) as part:
            assert part.suffix == ".npz"
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
    with paths.atomic_path(tmp_path / "new" / "b.txt") as part:
        part.write_text("whole")
    assert (tmp_path / "new" / "b.txt").read_text() == "whole"
    assert (tmp_path / "new" / "b.txt").stat().st_mode & 0o444 == 0o444


def test_project_root_and_cache_follow_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    assert paths.cache_dir() == tmp_path / "cache"
    monkeypatch.setenv("XCREPRO_ROOT", str(tmp_path))
    assert paths.project_root() == tmp_path
    monkeypatch.delenv("XCREPRO_ROOT")
    (tmp_path / "notebooks" / "deep").mkdir(parents=True)
    (tmp_path / "notebooks" / "manifest.toml").write_text("")
    monkeypatch.chdir(tmp_path / "notebooks" / "deep")
    assert paths.project_root() == tmp_path


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 100, 1001])
def test_blocks_cover_all_rows_in_order(n, monkeypatch):
    for number in ("1", "2", "7"):
        monkeypatch.setenv("XCREPRO_THREADS", number)
        blocks = threads.over_rows(n, lambda lo, hi: (lo, hi), min_rows=4)
        assert [row for lo, hi in blocks for row in range(lo, hi)] == list(range(n))


def test_a_failing_block_fails_the_whole(monkeypatch):
    monkeypatch.setenv("XCREPRO_THREADS", "3")

    def work(lo, hi):
        if lo:
            raise KeyError(lo)

    with pytest.raises(KeyError):
        threads.over_rows(100, work, min_rows=4)


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_thread_count_is_checked(text, monkeypatch):
    monkeypatch.setenv("XCREPRO_THREADS", text)
    with refused("XCREPRO_THREADS", match=text):
        threads.count()


@pytest.mark.parametrize(("A", "B", "n"), [(0.55, 1.5, 15539), (0.5, 0.4, 1778351), (0.6, 2.6, 490449)])
def test_inverse_propensity_equals_the_printed_formula(A, B, n):
    counts = [0, 1, 2, 9, 100, 5000]
    np.testing.assert_allclose(
        xc.propensity.inverse(counts, n, A, B), naive.inverse_propensity(counts, n, A, B), rtol=1e-13
    )


@pytest.mark.parametrize(
    ("counts", "n", "A", "B", "argument"),
    [
        ([-1], 10, 0.55, 1.5, "label_counts"),
        ([11], 10, 0.55, 1.5, "label_counts"),
        ([0], 10, 0.55, 0.0, "label_counts"),
        ([1], 2, 0.55, 1.5, "n_points"),
        ([1], 10, 0.55, -1.0, "B"),
    ],
)
def test_inverse_propensity_refuses(counts, n, A, B, argument):
    with refused(argument):
        xc.propensity.inverse(counts, n, A, B)


def test_imports_bring_in_only_what_is_needed():
    """`import xcrepro` must stay far below half a second; what would break that is an import of one of these."""
    code = (
        "import sys, xcrepro as xc; loaded = lambda *heavy: print([m for m in heavy if m in sys.modules]);"
        "loaded('numba', 'pandas', 'scipy', 'matplotlib', 'sklearn'); import numpy as np;"
        "xc.metrics.precision(np.eye(3), xc.TopK.from_scores(np.eye(3), 1), 1);"
        "loaded('pandas', 'matplotlib', 'sklearn', 'napkinxc')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"


def test_public_names_exist():
    for name in xc.__all__:
        assert getattr(xc, name) is not None
    assert set(xc.__all__) <= set(dir(xc))
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = xc.nothing


def test_package_code_does_not_assert(root):
    """`python -O` drops assertions, so a check written as one is no check."""
    for path in (root / "xcrepro").rglob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not line.lstrip().startswith("assert "), f"{path}:{number}"


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_extra_memory_of_a_large_call():
    """The top 5 and four metrics of 50,000 x 100 scores need little beyond the 40 MB of the scores themselves."""
    code = """
import resource, numpy as np, scipy.sparse as sp, xcrepro as xc
n, m, L = 50_000, 100, 100_000
start = np.random.default_rng(0).integers(0, L - 7 * m, n)[:, None]
ids = (start + 7 * np.arange(m)[None, ::-1]).astype(np.int32)
S = sp.csr_matrix((np.random.default_rng(1).random(n * m, np.float32), ids.ravel(), np.arange(0, n * m + 1, m)), (n, L))
labels = np.ascontiguousarray(ids[:, [9, 5, 1]]).ravel()
Y = sp.csr_matrix((np.ones(3 * n, np.float32), labels, np.arange(0, 3 * n + 1, 3)), (n, L))
w = np.ones(L)
def call(S, Y):
    xc.evaluate(Y, xc.TopK.from_scores(S, 5), inverse_propensity=w, metrics=["P", "nDCG", "PSP", "PSnDCG"])
call(S[:9], Y[:9])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
call(S, Y)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(out) < 60


def test_a_folder_is_filled_whole_or_not_at_all(tmp_path):
    with paths.filling(tmp_path) as part:
        (part / "a.txt").write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]

    def fail():
        with paths.filling(tmp_path / "of/two") as part:
            (part / "b.txt").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
