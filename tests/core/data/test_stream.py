"""Files in blocks of rows: the same matrices as read whole, the same faults; within less memory than they take."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import xcrepro as xc
from tests.refused import damaged, refused
from xcrepro.core.data import parsing, read, write
from xcrepro.core.errors import DataError, DataMissing


def matrix(n: int, width: int, seed: int) -> sparse.csr_matrix:
    return sparse.random(n, width, 0.2, "csr", np.float32, np.random.default_rng(seed))


def together(blocks):
    blocks = list(blocks)
    if isinstance(blocks[0], tuple):
        return [sparse.vstack(parts, "csr") for parts in zip(*blocks, strict=True)]
    return sparse.vstack(blocks, "csr")


def same(found, expected):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert (found != expected).nnz == 0
    assert found.nnz == expected.nnz


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(1, 60), rows=st.integers(1, 70), seed=st.integers(0, 9), size=st.sampled_from([64, 200, 1 << 20]),
    threads=st.integers(1, 3), ending=st.sampled_from(["txt", "txt.gz", "npz"]),
)  # fmt: skip
def test_blocks_are_the_whole(n, rows, seed, size, threads, ending, tmp_path_factory):
    folder, before = tmp_path_factory.mktemp("s"), parsing.BLOCK_BYTES
    scores, X, Y = matrix(n, 30, seed), matrix(n, 20, seed + 1), matrix(n, 9, seed + 2)
    Y.data[:] = 1
    write.write_sparse(folder / f"scores.{ending}", scores)
    write.write_xc(folder / f"pair.{ending}", X, Y)
    try:
        parsing.BLOCK_BYTES = size
        found = list(xc.data.blocks(folder / f"scores.{ending}", rows, threads=threads))
        pairs = list(xc.data.blocks(folder / f"pair.{ending}", rows, threads=threads))
    finally:
        parsing.BLOCK_BYTES = before
    assert [len(part.indptr) - 1 for part in found] == [rows] * (n // rows) + [n % rows] * (n % rows > 0)
    same(together(found), read.read_sparse(folder / f"scores.{ending}"))
    for part, whole in zip(together(pairs), read.read_xc(folder / f"pair.{ending}"), strict=True):
        same(part, whole)


def test_a_packed_npz_of_scipy(tmp_path):
    scores = matrix(50, 40, 1)
    sparse.save_npz(tmp_path / "a.npz", scores)
    same(together(xc.data.blocks(tmp_path / "a.npz", 7)), scores)
    sparse.save_npz(tmp_path / "b.npz", scores.tocsc())
    with damaged("b.npz", match="csc, expected CSR"):
        list(xc.data.blocks(tmp_path / "b.npz", 7))
    np.savez(tmp_path / "c.npz", a=np.arange(3))
    with damaged("c.npz", match="SciPy matrix"):
        list(xc.data.blocks(tmp_path / "c.npz"))


def test_without_a_header(tmp_path):
    (tmp_path / "a.txt").write_text("0:1\n2:3\n\n1:1\n")
    same(
        together(xc.data.blocks(tmp_path / "a.txt", 3, n_columns=4)), read.read_sparse(tmp_path / "a.txt", n_columns=4)
    )
    with damaged("a.txt", line=1, match="header"):
        list(xc.data.blocks(tmp_path / "a.txt"))


def test_faults_have_the_line_of_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr(parsing, "BLOCK_BYTES", 40)
    lines = [f"0:{i}" for i in range(100)]
    lines[70] = "0:1 9:1"
    path = tmp_path / "a.txt"
    path.write_text("100 5\n" + "\n".join(lines) + "\n")
    for threads in (1, 2, 3):
        came = []
        with damaged(path, line=72, match="id 9"):
            came.extend(xc.data.blocks(path, 10, threads=threads))
        assert 5 <= len(came) <= 7  # rows of the piece that has the fault are held back


@pytest.mark.parametrize(("promised", "found"), [(9, "than 9 rows"), (12, "10 rows")])
def test_another_number_of_rows_than_promised(tmp_path, promised, found):
    (tmp_path / "a.txt").write_text(f"{promised} 5\n" + "0:1\n" * 10)
    with pytest.raises(DataError, match=found):
        list(xc.data.blocks(tmp_path / "a.txt", 4))


def test_a_damaged_npz(tmp_path):
    scores = matrix(500, 40, 1)
    sparse.save_npz(tmp_path / "a.npz", scores, compressed=False)
    whole = (tmp_path / "a.npz").read_bytes()
    place = whole.index(scores.data.tobytes()[:400])
    (tmp_path / "b.npz").write_bytes(whole[:place] + b"\xff" * 400 + whole[place + 400 :])
    with pytest.raises(DataError):
        list(xc.data.blocks(tmp_path / "b.npz", 100))
    bad = scores.copy()
    bad.data[bad.indptr[321]] = np.nan
    sparse.save_npz(tmp_path / "c.npz", bad)
    with pytest.raises(DataError, match=r"row 21.*row 300"):
        list(xc.data.blocks(tmp_path / "c.npz", 100))


def test_arguments(tmp_path):
    with pytest.raises(DataMissing):
        xc.data.blocks(tmp_path / "nothing.txt")
    (tmp_path / "a.txt").write_text("1 1\n\n")
    with refused("rows", 0):
        xc.data.blocks(tmp_path / "a.txt", 0)


@pytest.mark.parametrize("ending", ["txt", "npz"])
def test_memory_stays_below_the_data(ending, tmp_path):
    """120 MB as a matrix, in blocks, under a cap that the whole does not fit; reading it whole is stopped by the same cap."""
    n, per_row = 150_000, 100
    rng = np.random.default_rng(0)
    indices = (rng.integers(0, 20, (n, per_row)) + 20 * np.arange(per_row)).astype(np.int32).ravel()
    scores = sparse.csr_matrix(
        (rng.random(indices.size, np.float32).round(2), indices, per_row * np.arange(n + 1)), (n, 2000)
    )
    write.write_sparse(tmp_path / f"scores.{ending}", scores)
    code = textwrap.dedent(f"""
        import resource, sys
        import xcrepro as xc
        first = next(xc.data.blocks({str(tmp_path)!r} + "/scores.{ending}", 1000, threads=1))
        xc.data.read_sparse({str(tmp_path)!r} + "/small.txt", threads=1)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 100_000_000, used + 100_000_000))
        if "whole" in sys.argv:
            print(xc.data.read_sparse({str(tmp_path)!r} + "/scores.{ending}", threads=1).nnz)
        else:
            print(sum(part.nnz for part in xc.data.blocks({str(tmp_path)!r} + "/scores.{ending}", 5000, threads=1)))
    """)
    (tmp_path / "small.txt").write_text("1 1\n0:1\n")
    run = [sys.executable, "-c", code]
    found = subprocess.run(run, capture_output=True, text=True)
    assert found.stdout.strip() == str(n * per_row), found.stderr[-2000:]
    assert subprocess.run([*run, "whole"], capture_output=True).returncode != 0
