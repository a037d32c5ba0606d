"""A sparse matrix whose structure is broken is refused at every door, before anything follows its offsets.

Following them ends the process, so the tries run in a child: a crash fails the test, not the run.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests import naive
from tests.refused import refused
from xcrepro import models
from xcrepro.__main__ import main
from xcrepro.core import matrices
from xcrepro.core.data.read import read_labels, read_sparse, read_xc
from xcrepro.core.data.splits import apply_split
from xcrepro.core.data.write import PAIR_FORMAT, write_sparse, write_xc
from xcrepro.core.errors import DataError, XCError
from xcrepro.core.truth import Truth, as_truth
from xcrepro.models.base import check_features

N, L = 6, 5
FAR = 2**30

# Square blocks of labels: every row has two labels, so that every format stores something everywhere.
DENSE = np.zeros((N, L), np.float32)
DENSE[np.arange(N), np.arange(N) % L] = 1
DENSE[np.arange(N), (np.arange(N) + 2) % L] = 0.5

TOP = xc.TopK.from_ids(np.tile(np.arange(2), (N, 1)), n_labels=L)


def _put(array, place, value):
    array = np.array(array, np.int64)
    array[place] = value
    return array


# What may be wrong with offsets and ids of CSR, CSC and BSR alike: (format's parts) -> changed parts. Numbers that are
# further off, and arrays cut elsewhere, are drawn below.
COMPRESSED = {
    "middle offset too large": lambda p: {"indptr": _put(p["indptr"], 2, 1000)},
    "no offsets": lambda p: {"indptr": p["indptr"][:0]},
    "last offset too large": lambda p: {"indptr": _put(p["indptr"], -1, FAR)},
    "id too large": lambda p: {"indices": _put(p["indices"], 1, 7)},
    "fewer values than ids": lambda p: {"data": p["data"][:-3]},
    "whole ids as floats": lambda p: {"indices": p["indices"] + 0.5},
}
COORDINATES = {
    "row too large": lambda p: {"row": _put(p["row"], 1, N)},
    "fewer values than places": lambda p: {"data": p["data"][:-3]},
}
DIAGONALS = {
    "more offsets than diagonals": lambda p: {"offsets": np.arange(len(p["offsets"]) + 2)},
    "an offset twice": lambda p: {"offsets": _put(p["offsets"], 0, p["offsets"][1])},
    "a diagonal of one dimension": lambda p: {"data": p["data"].ravel()},
}
FAULTS = {**dict.fromkeys(("csr", "csc", "bsr"), COMPRESSED), "coo": COORDINATES, "dia": DIAGONALS}
PARTS = matrices._ARRAYS
CASES = [(kind, fault) for kind, faults in FAULTS.items() for fault in faults]


def sound(kind):
    return sp.bsr_matrix(DENSE, blocksize=(2, 1)) if kind == "bsr" else sp.coo_matrix(DENSE).asformat(kind)


def parts(kind):
    return {name: getattr(sound(kind), name).copy() for name in PARTS[kind]}


def broken_parts(kind, fault):
    right = parts(kind)
    return right | FAULTS[kind][fault](right)


def in_memory(kind, arrays):
    """A matrix with these arrays, past whatever its constructor would say."""
    matrix = sound(kind)
    if kind == "coo":
        matrix.data, matrix.coords = arrays["data"], (arrays["row"], arrays["col"])
        return matrix
    for name, array in arrays.items():
        setattr(matrix, name, array)
    return matrix


def on_disk(kind, fault, folder):
    path = Path(folder) / "broken.npz"
    np.savez(path, format=kind.encode(), shape=np.array([N, L]), **broken_parts(kind, fault))
    return path


def _lil(change):
    matrix = sp.lil_matrix(DENSE)
    change(matrix)
    return matrix


def _dok(change):
    matrix = sp.dok_matrix(DENSE)
    change(matrix._dict)
    return matrix


# The formats that no file holds.
PYTHON_FORMATS = {
    "lil, id too large": lambda: _lil(lambda m: m.rows[2].__setitem__(1, FAR)),
    "lil, an id without a value": lambda: _lil(lambda m: m.rows[2].append(4)),
    "lil, a row that is no list": lambda: _lil(lambda m: m.rows.__setitem__(2, None)),
    "dok, row too large": lambda: _dok(lambda d: d.__setitem__((FAR, 0), 1.0)),
    "dok, negative column": lambda: _dok(lambda d: d.__setitem__((0, -FAR), 1.0)),
    "one dimension": lambda: sp.coo_array(DENSE[0]),
    "three dimensions": lambda: sp.coo_array(np.stack([DENSE, DENSE])),
}

FILE_DOORS = {
    "TopK.load": lambda path: xc.TopK.load(path, 2),
    "read_sparse": read_sparse,
    "read_labels": read_labels,
    "xcrepro evaluate, truth": lambda path: command_line(path, good(path)),
    "xcrepro evaluate, predictions": lambda path: command_line(good(path), path),
}
MEMORY_DOORS = {
    "TopK.from_scores": lambda m: xc.TopK.from_scores(m, 2),
    "TopK.from_scores, exclude": lambda m: xc.TopK.from_scores(m, 2, exclude=(np.array([0]), np.array([1]))),
    "as_truth": as_truth,
    "precision": lambda m: xc.metrics.precision(m, TOP, 1),
    "evaluate": lambda m: xc.evaluate(m, TOP, 1),
    "macro_f1": lambda m: xc.metrics.macro_f1(m, TOP, 1),
    "evaluate, blocks": lambda m: xc.evaluate([(m, TOP)], None, 1),
    "diversity, similarity": lambda m: xc.metrics.diversity(TRUTH, TOP, 2, similarity=m),
    "diversity, label_features": lambda m: xc.metrics.diversity(TRUTH, TOP, 2, label_features=m),
    "reachable": lambda m: xc.metrics.reachable(m, 1),
    "marginal_ece, probabilities": lambda m: xc.metrics.marginal_ece(m, DENSE),
    "marginal_ece, Y": lambda m: xc.metrics.marginal_ece(DENSE, m),
    "cross_fit_top": lambda m: xc.calibrate.cross_fit_top(m, TOP, folds=2),
    "drop_labels": lambda m: xc.propensity.drop_labels(m, np.ones(L), 0),
    "estimate_from_hierarchy": lambda m: xc.propensity.estimate_from_hierarchy(m, [-1, 0, 0, 0, 0], min_descendants=1),
    "decide.top_k": lambda m: xc.decide.top_k(m, 2),
    "decide.greedy_coverage": lambda m: xc.decide.greedy_coverage(m, 2),
    "decide.marginals": lambda m: xc.decide.marginals(m, TOP),
    "check_features": check_features,
    "fit, X": lambda m: models.OneVsRest().fit(m, DENSE),
    "fit, Y": lambda m: models.Popularity().fit(DENSE, m),
    "apply_split, X": lambda m: apply_split(m, sp.csr_matrix(DENSE), [0, 2], [1]),
    "apply_split, Y": lambda m: apply_split(sp.csr_matrix(DENSE), m, [0, 2], [1]),
    "write_sparse": lambda m: write_sparse(Path(tempfile.mkdtemp()) / "a.txt", m),
    "write_xc": lambda m: write_xc(Path(tempfile.mkdtemp()) / "a.npz", sp.csr_matrix(DENSE), m),
}
TRUTH = sp.csr_matrix(DENSE)


def good(path):
    path = path.with_name("good.npz")
    sp.save_npz(path, sp.csr_matrix(DENSE))
    return path


def command_line(truth, predictions):
    """The command catches the kit's errors and nothing else; they name the file."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        code = main(["evaluate", str(truth), str(predictions), "-k", "1"])
    if code and "broken.npz" in said.getvalue():
        raise DataError("broken.npz", "a refusal", "")
    raise RuntimeError(f"the command ended with {code}: {said.getvalue()}")


def tries(folder):
    """(name, the error that is due, the call) of every case at every door."""
    made = [(case, on_disk(*case, tempfile.mkdtemp(dir=folder))) for case in CASES]
    for door, enter in FILE_DOORS.items():
        for case, path in made:
            yield f"{door}: {case}", DataError, functools.partial(enter, path)
    for fault in COMPRESSED:
        path = Path(tempfile.mkdtemp(dir=folder)) / "broken.npz"
        pair = {f"X_{name}": array for name, array in parts("csr").items()}
        pair |= {f"Y_{name}": array for name, array in broken_parts("csr", fault).items()}
        np.savez(path, pair=np.array(PAIR_FORMAT), X_shape=np.array([N, L]), Y_shape=np.array([N, L]), **pair)
        yield f"read_xc: {fault}", DataError, functools.partial(read_xc, path)
    for door, enter in MEMORY_DOORS.items():
        for case in CASES:
            call = functools.partial(lambda enter, case: enter(in_memory(case[0], broken_parts(*case))), enter, case)
            yield f"{door}: {case}", XCError, call
        for name, make in PYTHON_FORMATS.items():
            yield f"{door}: {name}", XCError, lambda enter=enter, make=make: enter(make())


def try_all():
    """Print each case that does not end in the kit's error, and before each, on stderr, its name: a crash ends there."""
    with tempfile.TemporaryDirectory() as folder:
        for name, due, call in tries(folder):
            print(name, file=sys.stderr, flush=True)
            try:
                print(f"{name}: no error but {str(call())[:60]!r}")
            except due as error:
                if due is DataError and "broken.npz" not in str(error):
                    print(f"{name}: no file in {error}")
            except (Exception, SystemExit) as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                print(f"{name}: {type(error).__name__} {str(error)[:70]} ({where.name})")


# ---------------------------------------------------------------------- any change of any matrix


@st.composite
def mutated(draw):
    """A valid matrix of few rows, and its arrays with up to three changes; the change may leave it valid."""
    kind = draw(st.sampled_from(["csr", "csc", "coo", "bsr"]))
    arrays = parts(kind)
    number = st.one_of(st.integers(-2, 8), st.sampled_from([-(2**31), 2**20, 2**31 - 1, 2**31, 2**62]))
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from(PARTS[kind]))
        array = arrays[name]
        change = draw(st.sampled_from(["set", "cut", "swap"]))
        if change == "cut":
            array = array[: draw(st.integers(0, len(array)))]
        elif len(array) and change == "swap":
            array = array.copy()
            here, there = (draw(st.integers(0, len(array) - 1)) for _ in range(2))
            array[[here, there]] = array[[there, here]]
        elif len(array):
            place = draw(st.integers(0, len(array) - 1))
            if name == "data":
                array = array.copy()
                array[place] = draw(st.sampled_from([0.0, -1.0, 2.0, np.nan]))
            else:
                array = _put(array, place, draw(number))
        arrays[name] = array
    return kind, arrays


def dense_entries(kind, arrays):
    """{(row, label): [values]} by the formats' definitions, or None where they do not say; slow and plain."""
    data = arrays["data"]
    if kind == "coo":
        row, col = arrays["row"].tolist(), arrays["col"].tolist()
        if not len(row) == len(col) == len(data):
            return None
        triples = list(zip(row, col, data.tolist(), strict=True))
    else:
        indices, indptr = arrays["indices"].tolist(), arrays["indptr"].tolist()
        height, breadth = data.shape[1:] if kind == "bsr" else (1, 1)
        lines = L if kind == "csc" else N // height
        if len(indptr) != lines + 1 or len(indices) != len(data) or indptr[0] != 0 or indptr[-1] != len(data):
            return None
        triples = []
        for line in range(lines):
            if not 0 <= indptr[line] <= indptr[line + 1] <= len(data):
                return None
            for place in range(indptr[line], indptr[line + 1]):
                block = data[place].reshape(height, breadth).tolist()
                for down, values in enumerate(block):
                    for right, value in enumerate(values):
                        at = (line * height + down, indices[place] * breadth + right)
                        triples.append((*(at if kind != "csc" else at[::-1]), value))
    found = {}
    for row, label, value in triples:
        if not (0 <= row < N and 0 <= label < L):
            return None
        found.setdefault((row, label), []).append(value)
    return found


@settings(max_examples=600, deadline=None, derandomize=True, database=None)
@given(mutated())
def check_mutations(case):
    kind, arrays = case
    entries = dense_entries(kind, arrays)
    print(kind, arrays, file=sys.stderr, flush=True)
    matrix = in_memory(kind, arrays)
    for call, read in ((lambda: as_truth(matrix), relevant), (lambda: xc.TopK.from_scores(matrix, L), ranked)):
        wanted = None if entries is None else read(entries)
        try:
            found = call()
        except XCError:
            assert wanted is None, (kind, arrays)
            continue
        assert wanted is not None, (kind, arrays)
        if isinstance(found, Truth):
            bounds = found.indptr.tolist()
            assert [found.indices[a:b].tolist() for a, b in itertools.pairwise(bounds)] == wanted
        else:
            assert [[label for label in row if label >= 0] for row in found.ids.tolist()] == wanted


def relevant(entries):
    """The sorted labels of each row with a positive value; None where a value is negative or NaN."""
    if any(not value >= 0 for values in entries.values() for value in values):
        return None
    return [
        sorted(label for (of, label), values in entries.items() if of == row and max(values) > 0) for row in range(N)
    ]


def ranked(entries):
    """The labels of each row, best first; None where one is stored twice or a value is NaN."""
    if any(len(values) > 1 or np.isnan(values[0]) for values in entries.values()):
        return None
    return [naive.ranked({label: v[0] for (of, label), v in entries.items() if of == row}, L) for row in range(N)]


def test_a_broken_matrix_is_refused_and_a_changed_one_gives_an_error_or_what_the_definition_says(root):
    """In a process of its own, where a crash is an answer as well."""
    code = "from tests.core import test_matrices; test_matrices.try_all(); test_matrices.check_mutations()"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=3600)
    crash = f"ended with {done.returncode} in {done.stderr[-2000:]}" if done.returncode else ""
    assert done.stdout + crash == ""


# ---------------------------------------------------------------------- what is not broken


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble, np.int8, np.uint64, bool, ">f8"])
def test_every_format_and_number_is_read(kind, dtype):
    dense = (DENSE * 2).astype(dtype)
    matrix = sp.coo_matrix(dense.astype(np.float64)).asformat(kind)
    if kind != "lil" and kind != "dok":
        matrix.data = matrix.data.astype(dtype)
    assert (matrices.checked_csr("Y", matrix).toarray() == dense).all()
    assert matrices.checked_csr("Y", matrix).format == "csr"


def test_a_csr_is_not_copied_and_keeps_its_flags():
    matrix = sp.csr_matrix(DENSE)
    found = matrices.checked_csr("Y", matrix)
    assert all(np.shares_memory(getattr(found, name), getattr(matrix, name)) for name in PARTS["csr"])
    assert (found.indices == matrix.indices).all()
    # A flag that its owner set wrongly is not believed.
    matrix.has_canonical_format = True
    matrix.indices[:2] = matrix.indices[1::-1].copy()
    assert not matrices.checked_csr("Y", matrix).has_sorted_indices


def test_what_coo_holds_twice_stays_and_keeps_its_order():
    coo = sp.coo_matrix(([1.0, 2.0, 3.0, 4.0], ([1, 0, 1, 1], [2, 0, 2, 1])), (2, 3))
    found = matrices.checked_csr("Y", coo)
    assert found.indptr.tolist() == [0, 1, 4]
    assert (found.indices.tolist(), found.data.tolist()) == ([0, 2, 2, 1], [2, 1, 3, 4])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 2)])
def test_empty_matrices_are_sound(kind, shape):
    if kind in ("bsr", "dia") and 0 in shape:
        return
    assert matrices.checked_csr("Y", sp.csr_matrix(shape).asformat(kind)).shape == shape


def test_the_message_says_what_and_where():
    matrix = sp.csc_matrix(DENSE)
    matrix.indices[3] = N
    with refused("probabilities", "row 6 in column 1", match="0 to 5"):
        matrices.checked_csr("probabilities", matrix)


@pytest.mark.parametrize("value", [[1, 2], [["a"]]])
def test_what_is_no_matrix_is_refused(value):
    with refused("X"):
        matrices.checked_matrix("X", value)
