"""Kernels that are interpreted have the bits that they have compiled, and a first call on little data compiles nothing."""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numba.core.registry import CPUDispatcher
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.core import arithmetic, kernels
from xcrepro.core.accumulators.block import Block
from xcrepro.core.accumulators.labels import LabelCounts
from xcrepro.core.accumulators.sums import ExactSums
from xcrepro.core.data.read import read_labels, read_sparse
from xcrepro.core.errors import XCError
from xcrepro.core.kernels import elementary, interpreted, random
from xcrepro.core.kernels.insides import CompiledOnce
from xcrepro.core.metrics import registry

HARD = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 5e-324, 1e300, 1.7e308, np.inf, -np.inf, np.nan, 710.0, -746.0, 1.0 + 2**-52]


def same(one, other) -> bool:
    """Of one kind, and the same bits."""
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return type(other) is np.ndarray and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return type(one) is type(other) and np.asarray(one).tobytes() == np.asarray(other).tobytes()


def used(found):
    """A run of scores without the room behind it, as pool.count and pool.merge return them with its length."""
    if isinstance(found, tuple) and len(found) == 4 and isinstance(found[0], np.ndarray) and type(found[3]) is int:
        return (*(array[: found[3]] for array in found[:3]), found[3])
    return found


def copies(args: tuple) -> list:
    return [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]


@contextlib.contextmanager
def both_ways():
    """Every kernel that can be interpreted runs so, too, each time; yields the names of those that ran."""
    ran = set()

    def call(self, *args):
        given = copies(args)
        found = (self.plain or interpreted.interpreted(self.py_func))(*given)
        wanted = CPUDispatcher.__call__(self, *args)
        assert same(used(wanted), used(found)), self.py_func
        assert all(map(same, args, given)), self.py_func
        ran.add(f"{self.py_func.__module__.rpartition('.')[2]}.{self.py_func.__name__}")
        return wanted

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("XCREPRO_THREADS", "1")  # what one thread writes would be in another's copy
        patch.setattr(CompiledOnce, "__call__", call, raising=False)
        warnings.simplefilter("error", RuntimeWarning)
        yield ran


def truth_of(rng: np.random.Generator, n: int, n_labels: int, index=np.int32, value=np.float32) -> csr_matrix:
    Y = csr_matrix((rng.random((n, n_labels)) < rng.choice([0.02, 0.2, 0.6])).astype(value))
    return csr_matrix((Y.data, Y.indices.astype(index), Y.indptr.astype(index)), Y.shape)


def scores_of(rng: np.random.Generator, n: int, n_labels: int, dtype) -> np.ndarray:
    """With ties, with places that are absent, and now and then beyond what float32 has as normal numbers."""
    scores = np.round(rng.random((n, n_labels)), int(rng.integers(1, 9)))
    scores[rng.random((n, n_labels)) < 0.2] = 0.0
    scores[rng.random((n, n_labels)) < 0.1] = -np.inf
    scores[rng.random((n, n_labels)) < 0.05] = 1e-40
    scores[0, 0] = 0.5  # no predictions at all are refused
    return scores.astype(dtype)


def of_any_width(values, out):
    total = 0
    for i in range(values.size):
        out[i] = values[i] * 3 + 0.1
        total += values[i]
    return total


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "?", "f4", "f8"])
def test_numbers_are_as_wide_as_compiled_ones(kind):
    dtype = np.dtype(kind)
    top = np.iinfo(dtype).max if dtype.kind in "iu" else 1
    values = np.array([top, top // 2, 1, 0, top] if dtype.kind in "iu?" else [0.1, 1e30, -1e-30, 0.0, 1e30], dtype)
    outs = np.zeros((2, values.size))
    with np.errstate(all="raise"):
        found = interpreted.interpreted(of_any_width)(values, outs[0])
    assert same(numba.njit(of_any_width)(values, outs[1]), found)
    assert same(*outs)


WHOLE = st.integers(0, 2**32 - 1)


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(WHOLE, st.integers(1, 12), st.integers(1, 20), st.integers(1, 8), st.sampled_from([np.int32, np.int64]),
       st.sampled_from([np.float16, np.float32, np.float64]))  # fmt: skip
def test_what_evaluate_computes(seed, n, n_labels, k, index, dtype):
    rng = np.random.default_rng(seed)
    Y, scores = truth_of(rng, n, n_labels, index), scores_of(rng, n, n_labels, dtype)
    k, weights = min(k, n_labels), rng.exponential(3.0, n_labels) ** rng.integers(1, 30)
    ks = sorted({1, (k + 1) // 2, k})
    with both_ways():
        dense = xc.TopK.from_scores(scores, k)
        stored = csr_matrix(np.where(np.isfinite(scores), scores, 0).astype(np.promote_types(dtype, np.float32)))
        shuffled = csr_matrix(stored[:, ::-1])
        xc.TopK.from_scores(shuffled, k)
        xc.evaluate(Y, dense, ks, inverse_propensity=weights, label_counts=rng.integers(1, 2**31 - 1, n_labels))
        above = xc.Hierarchy.from_pairs([(label, n_labels + label // 3) for label in range(n_labels)], n_labels)
        given = {"inverse_propensity": weights, "n_relevant": Y.getnnz(axis=1) + 1.0, "hierarchy": above}
        xc.evaluate(Y, dense, ks, metrics=registry.names("rows"), **given)
        every = xc.TopK.from_scores(scores, n_labels)
        chance = xc.TopK(every.ids, np.where(every.ids < 0, -np.inf, np.clip(every.scores, 0, 1)), n_labels)
        for ties in ("bounds", "expected"):
            xc.evaluate(Y, chance, ks, metrics=["P", "nDCG", "PSP"], inverse_propensity=weights, ties=ties)
        # Smooth ECE takes 400,000 exponentials a call, which test_elementary_functions compares by themselves.
        names = [name for name in registry.names("pairs", "scores") if name != "smECE"]
        xc.metrics.calibration_table(Y, chance, k, metrics=names)
        chance.above(0.5), chance.above(rng.random(n_labels).astype(np.float32))


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(st.one_of(st.sampled_from(HARD), st.floats()), min_size=3, max_size=3), max_size=12))
def test_sums_of_numbers_of_any_size(rows):
    values = np.array(rows, np.float64).reshape(-1, 3)
    with both_ways(), contextlib.suppress(XCError):  # infinity, NaN
        sums = ExactSums((3,))
        sums.add_rows(values)


@settings(max_examples=200)
@given(st.lists(st.one_of(st.sampled_from(HARD), st.floats()), max_size=20))
def test_elementary_functions(values):
    with both_ways():
        for name in ("exp", "log", "log1p", "log2", "expm1", "sigmoid", "softplus"):
            getattr(arithmetic, name)(np.array(values, np.float64))


AT_EDGES = [*map(str, (2**63 - 1, 2**63)), "922337203685477580.7e1", "1e-45", "3.4e38", "3.5e38", "-0", "nan"]
NUMBER = st.one_of(
    st.from_regex(r"\A[+-]?[0-9]{0,25}\.?[0-9]{0,25}(e[+-]?[0-9]{1,6})?\Z"),
    st.sampled_from(AT_EDGES),
    st.floats(width=32).map(repr),
)
ENTRY = st.tuples(st.one_of(st.integers(0, 30), st.integers(2**31 - 3, 2**70)), NUMBER).map(lambda e: f"{e[0]}:{e[1]}")
ENDS = st.sampled_from(["", " ", "\t", " #", "\r", "x"])
LINE = st.tuples(st.lists(st.integers(0, 12), max_size=4), st.lists(ENTRY, max_size=4), ENDS)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.lists(LINE, max_size=6))
@example(
    [
        ([1, 2], ["0:0.5", "3:12.25", "4:0.1234567891"], ""),
        ([], ["7:3"], " "),
        ([], [], ""),
        ([5, 2], ["2:.5", "1:1."], ""),
    ]
)
def test_text_that_is_read(tmp_path_factory, lines):
    body = [f"{','.join(map(str, labels))} {' '.join(entries)}{end}" for labels, entries, end in lines]
    path = tmp_path_factory.getbasetemp() / "interpreted.txt"
    with both_ways(), warnings.catch_warnings(action="ignore", category=UserWarning):
        for head, read in (
            (f"{len(lines)} 30 13", xc.read_xc),
            (f"{len(lines)} 30", read_sparse),
            (f"{len(lines)} 30", read_labels),
        ):
            path.write_text("\n".join([head, *body]) + "\n", newline="")
            with contextlib.suppress(XCError):
                read(path)


def what_decides_calibrates_and_draws(rng: np.random.Generator, folder: Path) -> None:
    """Calls of the kernels that reading and evaluating do without; small, since each is interpreted as well."""
    chance = rng.random((12, 9)).astype(np.float32) * (rng.random((12, 9)) < 0.6)
    Y, top = csr_matrix((rng.random((12, 9)) < chance).astype(np.float32)), xc.TopK.from_scores(chance, 4)
    for update in ("probability", "gain"):
        xc.decide.greedy_coverage(chance, 3, 0.25, update=update)
    xc.decide.greedy_coverage(chance, 3, 0.25, passes=2)
    one_pass = xc.decide.OnePass(9, 3, "macro-F1")
    one_pass.choose(chance[:2])
    for metric in ("macro-F1", "macro-R"):
        best = xc.decide.maximise(chance, 3, metric, passes=2)
        xc.decide.expected_utility(chance, best, metric, exact=True)
        xc.decide.randomised(chance, 3, metric)
    xc.decide.expected_coverage(chance, best, 3)
    for how in ("isotonic", "platt", "beta", "venn-abers"):
        xc.calibrate.cross_fit_top(Y, top, how, folds=2)
    hits = rng.integers(0, 2, 40)
    score = np.round(rng.random(40), 1).astype(np.float32)
    xc.metrics.ace(score, hits, bins=4)
    halves = [(i, xc.TopK(top.ids[i : i + 6], top.scores[i : i + 6], 9)) for i in (0, 6)]
    halves = [xc.State((1,), metrics=["ECE", "ACE", "smECE"]).update(Y[i : i + 6], part) for i, part in halves]
    halves[0].merge(halves[1]).compute()
    xc.write_xc(folder / "b.txt", csr_matrix(chance), Y)
    xc.evaluate(Y, top, (1, 3), metrics=["P", "ECE", "NLL"], confidence_level=0.95)
    arithmetic.normals(1, 2, 5)
    random.mixes(np.arange(5, dtype=np.uint64), np.empty(5, np.uint64))
    random.poissons(1, 2, np.array([0.5, 700.0]), np.empty(2, np.int64))
    for dtype in (np.float32, np.float64):
        arithmetic.product(rng.random((7, 5)).astype(dtype), rng.random((5, 9)).astype(dtype))
    for name in ("exps32", "sigmoids32", "tanhs32"):
        kernel = getattr(elementary, name)
        kernel(rng.normal(size=50).astype(np.float32) * 40, np.empty(50, np.float32))


def test_every_kernel_has_been_compared(tmp_path):
    """And those of larger numbers: ids beyond what a byte for each could hold, counts that are added in ranges."""
    rng = np.random.default_rng(7)
    Y, scores = truth_of(rng, 60, 40), rng.random((60, 40)).astype(np.float32)
    top, wide = xc.TopK.from_scores(scores, 5), 2**31 - 1
    number = rng.permutation(wide - 1 - np.arange(40)).astype(np.int32)
    far = csr_matrix((rng.random(40).astype(np.float32), number, [0, 40]), (1, wide))
    with both_ways() as ran:
        xc.TopK.from_scores(far, 5)
        xc.TopK.from_ids(np.array([[wide - 1, 3], [2, -1]], np.int32), n_labels=wide)
        given = {"inverse_propensity": np.linspace(1, 9, 40), "label_counts": np.arange(40) + 1}
        above = xc.Hierarchy.from_pairs([(label, 40 + label // 5) for label in range(40)], 40)
        xc.evaluate(Y, top, (1, 3, 5), **given, hierarchy=above)
        xc.metrics.macro_f1(Y, top)
        xc.metrics.reachable(Y)
        xc.metrics.paired_bootstrap(Y, top, top, metrics=("P", "macro-F1", "ECE"), n_resamples=20)
        xc.metrics.marginal_ece(csr_matrix(scores), Y)
        xc.metrics.smooth_ece(top.scores, Y.toarray()[np.arange(60)[:, None], top.ids], bandwidth=0.1)
        xc.metrics.cross_fit_sets(Y, top, per="label", folds=2, at_least=0)
        xc.metrics.ndcg(csr_matrix(Y * 2), top, gains="linear")
        xc.metrics.confused_labels(Y, top)
        xc.metrics.psp(Y, top, 5, inverse_propensity=np.linspace(1, 9, 40))
        xc.evaluate(Y, xc.TopK.from_scores(np.round(scores, 1), 40), (1, 5), metrics=["P", "nDCG"], ties="bounds")
        xc.State((1, 5), metrics=["P", "nDCG"], n_resamples=3).update(Y, top, first_row=0)
        xc.metrics.aurc(Y, top)
        xc.metrics.best_threshold(Y, top)
        for n_labels in (40, 40_000):  # a table, and lists
            few = csr_matrix((Y.data, Y.indices, Y.indptr), (60, n_labels))
            kept = xc.TopK(top.ids, top.scores, n_labels)
            counts = [LabelCounts(n_labels, (1, 3)).add(Block(few, kept, 3)) for _ in range(2)]
            counts[0].arrays()
            found = counts[0].merge(counts[1])
            found.hit_labels(), found.arrays(), found.tables(), found.first_ks(), found.predicted(np.arange(3))
        path = tmp_path / "a.txt"
        path.write_text("2 3\n2:1 0:0.25\n1:1\n")
        with pytest.warns(UserWarning, match="out of order"):
            read_sparse(path)
        for name in ("exp", "log", "log1p", "log2", "expm1", "sigmoid", "softplus"):
            getattr(arithmetic, name)(scores)
        what_decides_calibrates_and_draws(rng, tmp_path)
    wanted = {
        f"{file}.{name}"
        for file in (path.stem for path in Path(kernels.__file__).parent.glob("*.py"))
        for name, kernel in vars(importlib.import_module(f"xcrepro.core.kernels.{file}")).items()
        if isinstance(kernel, CompiledOnce) and not name.startswith("_") and kernel.py_func.__module__.endswith(file)
    }
    within = {f"elementary.{name}" for name in elementary.ERRORS} | {"random.mix", "random.uniform"}  # what others call
    assert sorted(wanted - ran - within) == []


# ---------------------------------------------------------------------- in a process of its own

FIRST = """
import sys
import numpy as np
from numba.core import event
from scipy.sparse import csr_matrix

class Seen(event.Listener):
    def on_start(self, happened):
        compiled.append(happened.data["dispatcher"].py_func.__qualname__)
    def on_end(self, happened):
        pass

compiled = []
event.register("numba:compile", Seen())
import xcrepro as xc
n, *metrics = sys.argv[1:]
scores = np.random.default_rng(0).random((int(n), 40)).astype(np.float32)
truth = csr_matrix(scores > 0.9)
table = xc.evaluate(truth, xc.TopK.from_scores(scores, 5), label_counts=np.arange(1, 41), metrics=metrics or None)
from xcrepro.core.kernels import ranking
print(len(compiled), len(ranking.rows.overloads), table["value"].sum().hex())
"""


def first_call(cache, *given) -> tuple[int, int, str, str]:
    """How many functions a process compiled; how many kernels of ``ranking.rows`` it has; what it found, and said."""
    kept = {name: value for name, value in os.environ.items() if name not in ("XCREPRO_INTERPRET", "NUMBA_CACHE_DIR")}
    environment = {**kept, "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-c", FIRST, *map(str, given)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    compiled, rows, value = done.stdout.split()
    return int(compiled), int(rows), value, done.stderr


def test_little_data_compiles_nothing_and_has_the_same_value(tmp_path):
    compiled, rows, value, said = first_call(tmp_path, 300)
    assert (compiled, rows, said) == (0, 0, "")
    assert not [*tmp_path.rglob("*.nbc")]
    compiled, rows, _, said = first_call(tmp_path, 20_000, "P@5")  # much data is compiled
    assert compiled > 0
    assert rows == 1
    assert said.count("compiling") == 1  # a pipe's reader is told as well
    assert first_call(tmp_path, 300) == (0, 1, value, "")  # what is kept is loaded


def test_tests_compile_everything():
    """``XCREPRO_INTERPRET=0``, which conftest sets: otherwise the comparisons above would be of one thing with itself."""
    assert interpreted.MOST == 0


def test_many_calls_on_little_data_are_compiled_in_the_end(monkeypatch):
    """Each kernel is interpreted so long as compiling it would take longer."""
    from xcrepro.core.kernels import exact

    made = kernels.kernel(exact.add.py_func)
    monkeypatch.setattr(made, "unkept", True)
    monkeypatch.setattr(interpreted, "MOST", 100)
    values, sums = np.ones((10, 2)), np.zeros((2, 2), np.int64)
    for call in range(4):  # 26 numbers each
        assert made(values, 10, np.zeros(2, np.int64), *sums) == exact.DONE
        assert len(made.overloads) == (call == 3)
    assert (sums[0] == 40 * 2**40).all()
