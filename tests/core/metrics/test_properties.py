"""What every metric of the registry promises: it equals its oracle, and its bits are the same for any blocks, order of rows,
tree of merges, number of threads and processes, and through a file. A new metric needs a line in ``ORACLES``, and no more here.
"""

from __future__ import annotations

import functools
import itertools
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests import naive
from xcrepro.core.accumulators.ties import IN_ORDER
from xcrepro.core.data.registry import BINS
from xcrepro.core.metrics import registry

MEMBERS = [*registry.FAMILIES, "macro-F0.5", "alpha-coverage (0)", "alpha-coverage (1)", "n'-coverage (1)"]
EVERYTHING = [*registry.METRICS, *MEMBERS]
KS = (1, 2, 3, 5)

# ---------------------------------------------------------------- oracles


@dataclass
class Case:
    """A few rows: truth and scores, and what metrics take besides."""

    n_labels: int
    truth: list[set[int]]
    scores: list[dict[int, float]]
    weight: list[float]
    n_relevant: list[int]
    trained: list[int]
    pairs_above: list[tuple[int, int]]

    @property
    def ranking(self) -> list[list[int]]:
        return [naive.ranked(row, 5) for row in self.scores]

    def pairs(self, k: int) -> list[tuple[float, bool]]:
        """The scores of the k best of each row, and whether they hit."""
        rows = zip(self.truth, self.scores, self.ranking, strict=True)
        return [(row[label], label in y) for y, row, best in rows for label in best[:k]]

    def evaluate(self, metrics, ks=KS):
        Y, _ = naive.as_matrices(self.n_labels, self.truth, self.ranking)
        top = xc.TopK.from_pairs([[*row.items()] for row in self.scores], n_labels=self.n_labels, k=5)
        given = {"label_counts": self.trained, "n_relevant": self.n_relevant, "metrics": metrics}
        given["hierarchy"] = xc.Hierarchy.from_pairs([(0, -1), *self.pairs_above], self.n_labels)
        return xc.evaluate(Y, top, ks, np.array(self.weight), **given)


@st.composite
def cases(draw):
    """Few labels and rows, for every choice of labels is tried; some rows without truth, some without predictions."""
    n_labels, truth, rows = draw(naive.small_rankings(max_labels=5, max_rows=4))
    score = st.one_of(st.sampled_from([i / 10 for i in range(11)]), st.floats(0, 1, width=32))
    scores = [{label: float(np.float32(draw(score))) for label in row} for row in rows]
    a_number = functools.partial(st.lists, min_size=n_labels, max_size=n_labels)
    weight, trained = draw(a_number(st.floats(1.0, 50.0))), draw(a_number(st.sampled_from([0, 1, 9, 10, 1000])))
    n_relevant = [len(y) + draw(st.integers(0, 3)) for y in truth]
    # A parent's number is higher than its child's, so that there is no cycle; from n_labels on it is no label.
    nodes = st.integers(0, n_labels + 1)
    above = draw(st.lists(st.tuples(nodes, nodes).filter(lambda pair: pair[0] < pair[1]), max_size=8))
    return Case(n_labels, truth, scores, weight, n_relevant, trained, [(0, n_labels), *above])


def ranked(oracle, *own, **options):
    """An oracle of truth, ranking and k."""
    return lambda case, k: oracle(case.truth, case.ranking, k, *own, **options)


def weighed(oracle, *own, complete: bool = False, **options):
    """One that takes the labels' weights as well, and the number of labels of the complete truth."""

    def of(case: Case, k: int) -> float:
        counts = {"n_relevant": case.n_relevant} if complete else {}
        return oracle(case.truth, case.ranking, k, *own, weight=case.weight, **counts, **options)

    return of


def by_label(oracle, *own):
    """One that takes the number of labels."""
    return lambda case, k: oracle(case.truth, case.ranking, k, case.n_labels, *own)


def hierarchical(value, micro: bool = False):
    """Of the nodes that both have, that are predicted and that are true."""
    return lambda case, k: naive.hierarchical(case.truth, case.ranking, k, case.pairs_above, value, micro)


def of_pairs(oracle):
    """One of scores and hits; NaN where there are none."""

    def of(case: Case, k: int) -> float:
        scores, hits = zip(*case.pairs(k), strict=True)
        return float(oracle(scores, hits))

    return of


def recalled(alpha: float):
    return by_label(naive.macro, lambda tp, predicted, true: float(tp > 0 and tp / true >= alpha))


def drawn(size: int):
    """A label is missed by so many rows, drawn with replacement, as often as each misses it."""

    def of(case: Case, k: int) -> float:
        n = len(case.truth)
        share = [Fraction(tp, n) for tp, *_ in naive.per_label(case.truth, case.ranking, k, case.n_labels)]
        return float(naive.mean([1 - (1 - each) ** size for each in share]))

    return of


def share_covered(case: Case, k: int, of: int) -> float:
    return len(naive.covered(case.truth, case.ranking, k)) / max(1, of)


def mean_of(f):
    return of_pairs(
        lambda scores, hits: naive.mean([f(Fraction(p), int(y)) for p, y in zip(scores, hits, strict=True)])
    )


def binned(norm: str = "l1", half: str | None = None, debias: bool = False):
    return of_pairs(lambda scores, hits: naive.error_of(naive.bins_of(scores, hits, 10), norm, half, debias))


def part(name: str):
    return of_pairs(lambda scores, hits: naive.brier_parts(scores, naive.bins_of(scores, hits, 10))[name])


ORACLES = {
    "P": ranked(naive.precision),
    "R": ranked(naive.recall),
    "nDCG": ranked(naive.ndcg),
    "nDCG (ideal k)": ranked(naive.ndcg, "k"),
    "DCG": lambda case, k: naive.mean([naive.gain(y, r, k) for y, r in zip(case.truth, case.ranking, strict=True)]),
    "MRR": ranked(naive.mrr),
    "MRR (relevant)": ranked(naive.table1b, lambda rank: 1.0 / rank),
    "AP": ranked(naive.average_precision),
    "LRAP": by_label(naive.lrap),
    "LRAP (at most)": by_label(naive.lrap, "next"),
    "coverage error": by_label(naive.coverage_error),
    "coverage error (at least)": by_label(naive.coverage_error, "next"),
    "LRAP (label-weighted)": by_label(naive.label_weighted_lrap),
    "RP": lambda case, k: naive.mean(
        [len(y & {*r[:k]}) / max(1, min(k, len(y))) for y, r in zip(case.truth, case.ranking, strict=True)]
    ),
    "exact match": lambda case, k: naive.mean([y == {*r[:k]} for y, r in zip(case.truth, case.ranking, strict=True)]),
    "hit rate": lambda case, k: naive.mean([not y.isdisjoint(r[:k]) for y, r in zip(case.truth, case.ranking, strict=True)]),
    **{
        f"{'micro-' * micro}{name}{'1' * (micro and name == 'hF')}": hierarchical(value, micro)
        for micro in (False, True)
        for name, value in (
            ("hP", lambda both, predicted, true: both / max(1, predicted)),
            ("hR", lambda both, predicted, true: both / max(1, true)),
            ("hF", lambda both, predicted, true: 2 * both / max(1, predicted + true)),
        )
    },
    "ADG": ranked(naive.table1b, lambda rank: 1.0 / np.log2(rank + 1)),
    "F": ranked(naive.f_beta),
    "F (printed)": ranked(naive.f_beta, denominator="printed"),
    "micro-F1": ranked(naive.micro_f1),
    "micro-P": ranked(naive.micro_precision),
    "micro-R": ranked(naive.micro_recall),
    "P (predicted)": ranked(naive.set_precision),
    "Hamming": by_label(naive.hamming_loss),
    "abandonment": ranked(naive.abandonment),
    "served": lambda case, k: 1.0 - naive.abandonment(case.truth, case.ranking, k),
    "macro-P": by_label(naive.macro, naive.label_precision),
    "macro-R": by_label(naive.macro, naive.label_recall),
    "macro-F1": by_label(naive.macro, naive.label_f(1.0)),
    "coverage": lambda case, k: share_covered(case, k, case.n_labels),
    "coverage (test)": lambda case, k: share_covered(case, k, len(set().union(*case.truth))),
    "coverage (reachable)": lambda case, k: share_covered(case, k, naive.reach(case.truth, k)),
    "unique labels": lambda case, k: float(len({label for best in case.ranking for label in best[:k]})),
    "label entropy": ranked(naive.entropy),
    "PSP": weighed(naive.psp),
    "PSnDCG": weighed(naive.psndcg),
    "PSP (bare)": weighed(naive.psp, normalize=False),
    "PSDCG": lambda case, k: naive.mean(
        [naive.gain(y, r, k, case.weight) for y, r in zip(case.truth, case.ranking, strict=True)]
    ),
    "PSnDCG (ideal k)": weighed(naive.psndcg, ideal="k"),
    "PSnDCG (bare)": weighed(naive.psndcg, normalize=False),
    "PSnDCG (bare, ideal k)": weighed(naive.psndcg, normalize=False, ideal="k"),
    "PS-Hamming": lambda case, k: naive.hamming_loss(case.truth, case.ranking, k, case.n_labels, case.weight),
    "PS-R": weighed(naive.table1b, lambda rank: 1.0, complete=True),
    "PS-MRR (relevant)": weighed(naive.table1b, lambda rank: 1.0 / rank, complete=True),
    "PS-ADG": weighed(naive.table1b, lambda rank: 1.0 / np.log2(rank + 1), complete=True),
    "PS-F": weighed(naive.f_beta, complete=True),
    "PS-F (printed)": weighed(naive.f_beta, denominator="printed", complete=True),
    **{
        f"macro-F1 ({name})": lambda case, k, low=low, high=high: naive.macro(
            case.truth,
            case.ranking,
            k,
            case.n_labels,
            naive.label_f(1.0),
            labels={label for label, count in enumerate(case.trained) if low <= count < high},
        )
        for name, low, high in zip(("0", *BINS), (0, 1, 10, 100, 1000), (1, 10, 100, 1000, math.inf), strict=True)
    },
    **{f"macro-F{beta}": by_label(naive.macro, naive.label_f(beta)) for beta in (2, 0.5)},
    **{f"alpha-coverage ({alpha})": recalled(alpha) for alpha in (0.5, 0, 1)},
    **{f"n'-coverage ({size})": drawn(size) for size in (100, 1)},
    "ECE": binned(),
    "ECE over": binned(half="over"),
    "ECE under": binned(half="under"),
    "ECE l2": binned("l2"),
    "ECE l2 debiased": binned("l2", debias=True),
    "ECE max": binned("max"),
    "ACE": of_pairs(lambda scores, hits: naive.error_of(naive.mass_groups(scores, hits, 10), "l1", None)),
    "Brier": mean_of(lambda p, y: (p - y) ** 2),
    **{name: part(name) for name in ("uncertainty", "resolution", "reliability", "within variance", "within covariance")},
    "NLL": of_pairs(lambda scores, hits: naive.loss_of(scores, hits, 100.0)),
    "confidence": mean_of(lambda p, y: p),
    "accuracy": mean_of(lambda p, y: Fraction(y)),
    "pairs": lambda case, k: float(len(case.pairs(k))),
}  # fmt: skip
BY_SIMULATION = {"ECE floor", "ECE corrected", "ECE corrected low", "ECE corrected high", "smECE"}
"""What has no short definition: test_calibration compares these with draws, and smECE with a fine grid."""


def test_every_metric_has_an_oracle():
    lines = {name for name in ORACLES if not registry.of_bin(name)} | {registry.BINNED}
    assert lines | BY_SIMULATION == {*EVERYTHING}


@settings(max_examples=100, deadline=None)
@given(cases())
def test_every_metric_equals_its_oracle(case):
    some = any(case.scores)
    compared = [name for name in EVERYTHING if name not in BY_SIMULATION]
    wanted = [name for name in compared if some or registry.METRICS[name].fold not in ("pairs", "scores")]
    for metric, k, value in case.evaluate(wanted).itertuples(index=False):
        # The root of 0 is only as near to 0 as the root of the rounding.
        tolerance = 1e-7 if "l2" in metric else 1e-12
        assert value == pytest.approx(ORACLES[metric](case, k), rel=tolerance, abs=tolerance), (metric, k)


# ---------------------------------------------------------------- the same bits

N_LABELS = 40
HIERARCHY = xc.Hierarchy.from_pairs([(label, label // 3 + 40) for label in range(40)] + [(40, 60), (41, 60)], 40)
SCORES = {
    "spread": lambda rng, shape: rng.random(shape),
    "equal": lambda rng, shape: np.full(shape, 0.3),
    "one cell": lambda rng, shape: 0.5 + rng.integers(0, 9, shape) * 2.0**-24,
    "subnormal": lambda rng, shape: rng.integers(0, 5, shape) * 1e-45,
    "0 and 1": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
}


def rows(seed: int, n: int = 60, scores: str = "spread", k: int = 5):
    """Truth, predictions with probabilities and absent places, weights, train counts, complete counts."""
    rng = np.random.default_rng(seed)
    Y = sp.csr_matrix(rng.random((n, N_LABELS)) < 0.1)
    said = SCORES[scores](rng, (n, N_LABELS)).astype(np.float32)
    said[rng.random(said.shape) < 0.3] = -np.inf
    top = xc.TopK.from_scores(said, k)
    return Y, top, 1 + 20 * rng.random(N_LABELS), rng.integers(0, 1200, N_LABELS), np.diff(Y.indptr) + 1.5


def empty(w, counts, metrics=None, ks=(1, 3, 5), **options) -> xc.State:
    return xc.State(ks, EVERYTHING if metrics is None else metrics, w, counts, hierarchy=HIERARCHY, **options)


def bits(found: xc.State, tmp_path) -> tuple[bytes, bytes]:
    found.save(tmp_path / "state.npz")
    return found.compute()["value"].to_numpy().tobytes(), (tmp_path / "state.npz").read_bytes()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), kind=st.sampled_from([*SCORES]), ties=st.sampled_from(["lowest-id", "bounds"]))
def test_any_cutting_order_and_tree_of_merges_gives_the_same_bits(seed, kind, ties, tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("state")
    Y, top, w, counts, n_relevant = rows(seed, scores=kind, k=4 if ties == "bounds" else 5)
    rng = np.random.default_rng(seed)
    metrics = [  # smECE is slow, and made of the pool of scores that ACE is made of: the tests below have it
        name
        for name, metric in registry.METRICS.items()
        if (ties == "lowest-id" or (metric.fold == "rows" and IN_ORDER.isdisjoint(metric.columns))) and name != "smECE"
    ]
    new = functools.partial(empty, w, counts, metrics, (1, 2, 4), ties=ties)
    whole = new().update(Y, top, 0, n_relevant)
    cuts = [0, *np.sort(rng.integers(0, 61, rng.integers(0, 9))).tolist(), 60]
    parts = []
    for low, high in itertools.pairwise(cuts):
        some = slice(low, high)
        target = parts[0] if parts and rng.random() < 0.3 else new()
        target.update(Y[some], top.rows(some), low, n_relevant[some])
        parts += [target] if target not in parts else []
    while len(parts) > 1:
        one = parts.pop(int(rng.integers(len(parts))))
        parts[int(rng.integers(len(parts)))].merge(one)
    merged, wanted = bits(parts[0], tmp_path), bits(whole, tmp_path)
    assert merged == wanted
    again, values = xc.State.load(tmp_path / "state.npz"), whole.compute()
    assert bits(again, tmp_path) == wanted
    # Nor does the order of rows show in a value, or whether they stream.
    order = rng.permutation(60)
    shuffled = new().update(Y[order], top.rows(order), None, n_relevant[order])
    assert shuffled.compute().equals(values)
    given = {"inverse_propensity": w, "label_counts": counts, "metrics": metrics, "ties": ties, "hierarchy": HIERARCHY}
    blocks = ((Y[low : low + 7], top.rows(slice(low, low + 7))) for low in range(0, 60, 7))
    streamed = xc.evaluate(blocks, None, (1, 2, 4), **given, n_relevant=n_relevant)
    assert streamed.equals(values)


def _block(low: int) -> xc.State:
    Y, top, w, counts, n_relevant = rows(3)
    some = slice(low, low + 15)
    return empty(w, counts).update(Y[some], top.rows(some), low, n_relevant[some])


def test_states_of_other_processes_merge_to_the_same_bits(tmp_path):
    Y, top, w, counts, n_relevant = rows(3)
    whole = empty(w, counts).update(Y, top, 0, n_relevant)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        parts = [*pool.map(_block, [45, 0, 30, 15])]
    merged = empty(w, counts)
    for part in parts:
        merged.merge(part)
    assert bits(merged, tmp_path) == bits(whole, tmp_path)


def test_any_number_of_threads(monkeypatch):
    """Enough rows for several threads and several blocks of them."""
    Y, top, w, counts, n_relevant = rows(4, 60)
    Y, n_relevant = sp.vstack([Y] * 700).tocsr(), np.tile(n_relevant, 700)
    top = xc.TopK(np.tile(top.ids, (700, 1)), np.tile(top.scores, (700, 1)), N_LABELS)
    metrics = [name for name in EVERYTHING if name != "coverage (reachable)"]
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("XCREPRO_THREADS", threads)
        found.append(empty(w, counts, metrics).update(Y, top, 0, n_relevant).compute())
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])
