"""Writing: what is written reads back bit by bit, in few digits, whole or not at all."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.refused import refused
from xcrepro.core.data import write
from xcrepro.core.data.read import read_labels, read_sparse, read_xc
from xcrepro.core.data.sources import npz_arrays, save_npz
from xcrepro.core.data.write import write_sparse, write_xc

ANY = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


def bits(matrix):
    return matrix.shape, matrix.data.tobytes(), matrix.indices.tobytes(), matrix.indptr.tobytes()


def row_of(values) -> sp.csr_matrix:
    values = np.asarray(values, np.float32)
    return sp.csr_matrix((values, np.arange(len(values)), [0, len(values)]), (1, len(values)))


def texts_of(path) -> list[str]:
    return [token.partition(":")[2] for token in path.read_text().split("\n")[1].split()]


@st.composite
def matrices(draw, n_rows, ones=False):
    width = draw(st.integers(1, 40))
    rows = [sorted(draw(st.sets(st.integers(0, width - 1), max_size=5))) for _ in range(n_rows)]
    indptr = np.cumsum([0] + [len(row) for row in rows])
    ids = np.array([i for row in rows for i in row], np.int32)
    value = st.just(1.0) if ones else st.floats(width=32, allow_nan=False, allow_infinity=False)
    values = np.array([draw(value) for _ in ids], np.float32)
    return sp.csr_matrix((values, ids, indptr), (n_rows, width))


@ANY
@given(st.data(), st.sampled_from(["a.txt", "a.txt.gz", "a.npz"]))
def test_write_then_read(tmp_path, data, name):
    n_rows = data.draw(st.integers(0, 6))
    X, Y = data.draw(matrices(n_rows)), data.draw(matrices(n_rows, ones=True))
    path = tmp_path / name
    write_xc(path, X, Y)
    assert [bits(m) for m in read_xc(path)] == [bits(X), bits(Y)]
    write_sparse(path, X)
    assert bits(read_sparse(path)) == bits(X)
    write_sparse(path, Y)
    assert bits(read_labels(path)) == bits(Y)


def test_every_kind_of_float32_reads_back(tmp_path):
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 2**32, 200_000, dtype=np.uint32)
    powers = (np.arange(1, 255, dtype=np.uint32) << 23)[:, None] + np.array([-1, 0, 1]).astype(np.uint32)
    tens = np.array([float(f"{m}e{e}") for e in range(-45, 39) for m in (1, 0.99999994)], np.float32)
    small = np.arange(0, 5000, dtype=np.uint32)
    values = np.concatenate([patterns.view("f4"), powers.ravel().view("f4"), tens, small.view("f4")])
    values = values[np.isfinite(values)]
    path = tmp_path / "v.txt"
    write_sparse(path, row_of(values))
    assert read_sparse(path).data.tobytes() == values.tobytes()
    # Python reads them back, too, rounding twice or not.
    texts = texts_of(path)
    assert np.array([float(text) for text in texts]).astype(np.float32).tobytes() == values.tobytes()
    # As few digits as numpy's shortest representation, which beyond 2^24 may lie in the middle between two numbers.
    for text, value in zip(texts[:50_000], values[:50_000], strict=False):
        if abs(value) >= 2**24:
            continue
        shortest = np.format_float_scientific(value, unique=True, trim="-").partition("e")[0]
        digits = text.partition("e")[0].replace("-", "").replace(".", "").strip("0")
        assert len(digits) <= len(shortest.replace("-", "").replace(".", "").strip("0")), (text, shortest)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"), (1, "1"), (100, "100"), (0, "0"), (-0.0, "-0"), (0.5, "0.5"), (-2.5, "-2.5"), (1e-4, "0.0001"),
        (1e-5, "1e-05"), (1.25e-5, "1.25e-05"), (123456, "123456"), (16777216, "16777216"), (123456792, "123456790"),
        (1e8, "100000000"), (1e9, "1e+09"), (1.5e20, "1.5e+20"), (0.098226, "0.098226"), (3.4028235e38, "3.4028235e+38"),
        (1e-45, "1e-45"), (1 / 3, "0.33333334"), (0.01, "0.01"), (1000, "1000"), (1000.5, "1000.5"),
    ],
)  # fmt: skip
def test_how_values_look(tmp_path, value, text):
    write_sparse(tmp_path / "v.txt", row_of([value]))
    assert texts_of(tmp_path / "v.txt") == [text]


def test_the_text(tmp_path):
    X = sp.csr_matrix((np.array([1, 2, 0.5]), [0, 2, 1], [0, 2, 2, 3, 3]), (4, 3))
    Y = sp.csr_matrix((np.ones(3), [0, 3, 1], [0, 2, 3, 3, 3]), (4, 4))
    write_xc(tmp_path / "a.txt", X, Y)
    assert (tmp_path / "a.txt").read_bytes() == b"4 3 4\n0,3 0:1 2:2\n1\n 1:0.5\n\n"
    write_sparse(tmp_path / "a.txt", X)
    assert (tmp_path / "a.txt").read_bytes() == b"4 3\n0:1 2:2\n\n1:0.5\n\n"


@pytest.mark.parametrize("n_threads", ["1", "3"])
@pytest.mark.parametrize("block", [1, 7, 1000])
def test_blocks_and_threads_do_not_show(tmp_path, monkeypatch, block, n_threads):
    X = sp.random(300, 50, 0.05, format="csr", dtype=np.float32, random_state=0)
    Y = (sp.random(300, 20, 0.1, format="csr", random_state=1) > 0).astype(np.float32)
    write_xc(tmp_path / "a.txt", X, Y)
    monkeypatch.setenv("XCREPRO_THREADS", n_threads)
    monkeypatch.setattr(write, "BLOCK_ENTRIES", block)
    write_xc(tmp_path / "b.txt", X, Y)
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.txt").read_bytes()


def test_the_same_matrices_give_the_same_bytes(tmp_path):
    X = sp.eye(5, format="csr", dtype=np.float32)
    for name in ("a.txt.gz", "a.npz"):
        write_xc(tmp_path / name, X, X)
        (tmp_path / "other").mkdir(exist_ok=True)
        write_xc(tmp_path / "other" / name, X, X)
        assert (tmp_path / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert gzip.decompress((tmp_path / "a.txt.gz").read_bytes()).startswith(b"5 5 5\n0 0:1\n")


def test_unsorted_rows_and_stored_zeros(tmp_path):
    m = sp.csr_matrix((np.array([3.0, 0.0, 1.0]), np.array([2, 1, 0]), np.array([0, 3])), (1, 3))
    write_sparse(tmp_path / "a.txt", m)
    assert (tmp_path / "a.txt").read_text() == "1 3\n0:1 1:0 2:3\n"
    assert m.indices.tolist() == [2, 1, 0]
    assert m.data.tolist() == [3, 0, 1]
    Y = sp.csr_matrix((np.array([1.0, 0.0]), np.array([2, 1]), np.array([0, 2])), (1, 3))
    write_xc(tmp_path / "a.txt", m, Y)
    assert (tmp_path / "a.txt").read_text() == "1 3 3\n2 0:1 1:0 2:3\n"
    assert Y.nnz == 2


def test_what_could_not_be_read_back_is_refused_and_nothing_is_written(tmp_path):
    eye = sp.eye(2, format="csr")
    repeated = sp.csr_matrix((np.ones(3), np.array([0, 0, 1]), np.array([0, 2, 3])), (2, 2))
    path = tmp_path / "a.txt"
    path.write_text("as it was")
    for X, Y, argument, got in (
        (sp.csr_matrix([[1.0, np.nan]]), sp.eye(1), "X", "nan"),
        (sp.csr_matrix([[1.0, np.inf]]), sp.eye(1), "X", "inf"),
        (sp.csr_matrix([[1.0, -1e39]]), sp.eye(1), "X", "-1e+39"),
        (repeated, eye, "X", "1 places stored again"),
        (sp.coo_matrix(([1, 1], ([0, 0], [1, 1])), (2, 2)), eye, "X", "1 places stored again"),
        (repeated.tocsc(), eye, "X", "1 places stored again"),
        (eye, sp.eye(3), "Y", 3),
        (eye, eye * 0.5, "Y", 0.5),
        (eye, -eye, "Y", -1.0),
        (np.eye(2), eye, "X", "ndarray of float64"),
        (eye, eye * 1j, "Y", "csr_matrix of complex128"),
        (sp.csr_matrix((2, 2**31)), eye, "X", "2147483648 columns"),
    ):
        with refused(argument, got):
            write_xc(path, X, Y)
    with refused("path", match="zip"):
        write_sparse(tmp_path / "a.zip", eye)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "as it was"


def test_ids_up_to_the_largest(tmp_path):
    m = sp.csr_matrix((np.ones(2), np.array([0, 2**31 - 2]), np.array([0, 2])), (1, 2**31 - 1))
    write_sparse(tmp_path / "a.txt", m)
    assert bits(read_sparse(tmp_path / "a.txt"))[1:3] == bits(m.astype(np.float32))[1:3]


@pytest.mark.parametrize("name", ["bibtex/train.txt", "bibtex/test.txt"])
def test_real_files_come_out_as_they_were(real_data, tmp_path, name):
    folder, _, file_name = name.partition("/")
    path = real_data(folder) / file_name
    write_xc(tmp_path / "a.txt", *read_xc(path))
    # But for the blank that some writers leave behind the labels of a row without features.
    assert (tmp_path / "a.txt").read_text() == path.read_text().replace(" \n", "\n")


def test_an_npz_with_packed_whole_numbers(tmp_path):
    """Every array comes back to the bit and in its type, in the same bytes each time; offsets and ids take little room."""
    rng = np.random.default_rng(0)
    arrays = {
        "offsets": np.arange(0, 3_000_000, 30),
        "ids": np.sort(rng.integers(0, 4000, 100_000)).astype(np.int32),
        "weights": rng.standard_normal((300, 40)).astype(np.float32),
        "by column": np.asfortranarray(rng.standard_normal((30, 40))),
        "odd": np.array([np.nan, -0.0, np.inf, 5e-324]),
        "empty": np.empty((0, 3), np.int64),
        "one": np.array(7),
        "name": np.array("PLT"),
        "yes": np.array(True),
    }
    save_npz(tmp_path / "a.npz", arrays)
    save_npz(tmp_path / "b.npz", arrays)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    found = npz_arrays(tmp_path / "a.npz")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert found[name].tobytes() == array.tobytes(), name
    plain = sum(arrays[name].nbytes for name in ("offsets", "ids"))
    rest = sum(arrays[name].nbytes for name in arrays if name not in ("offsets", "ids"))
    assert (tmp_path / "a.npz").stat().st_size - rest < plain / 4
