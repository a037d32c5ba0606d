"""A digest of every number that the package makes, on small data: ``python -m tests.same_bits`` prints one a line, as JSON.

``tests/test_same_bits.py`` runs it on several simulated processors and wants the same digests from each. What is covered
follows the package's own lists: each model, metric, public function and public class of the rooms below has a case here, or a
reason in ``NO_NUMBER``.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

import xcrepro as xc
from xcrepro import models
from xcrepro.core import arithmetic, calibrate, decide, distributions, hierarchy, judged, metrics, propensity
from xcrepro.core.data import tfidf
from xcrepro.models import twin
from xcrepro.tools.formats import vectorize

ROOMS = {
    "arithmetic": "core.arithmetic",
    "calibrate": "core.calibrate",
    "data.twin": "models.twin",
    "data.tfidf": "core.data.tfidf",
    "data.vectorize": "tools.formats.vectorize",
    "decide": "core.decide",
    "distributions": "core.distributions",
    "hierarchy": "core.hierarchy",
    "judged": "core.judged",
    "propensity": "core.propensity",
}
"""Rooms in which each public function and class counts; ``metrics`` and ``models`` have lists of their own."""

_PARTS = "what a function of the same room works with"
_HOLDS = "holds numbers that the function of the same room has made"
NO_NUMBER = {
    "calibrate.Calibrator": "what the calibrators share",
    "calibrate.load": "reads a file",
    "calibrate.check_folds": _PARTS,
    "calibrate.over_folds": _PARTS,
    "calibrate.Room": _PARTS,
    "calibrate.fitted_copy": _PARTS,
    "calibrate.method_of": _PARTS,
    "data.twin.Twin": _HOLDS,
    "data.twin.TwinSplit": _HOLDS,
    "data.twin.columns": _PARTS,
    "data.vectorize.Vectorized": _HOLDS,
    "decide.Constrained": _HOLDS,
    "decide.Randomised": "made and used by randomised",
    "judged.Judged": _PARTS,
    "judged.JudgedWarning": "a warning",
    "judged.Verdicts": _HOLDS,
    "judged.lines_of": "texts and no numbers",
    "judged.texts_of": "texts and no numbers",
    "judged.verdicts": "checks what it is given",
    "propensity.Fit": _HOLDS,
    "propensity.HierarchyEstimate": _HOLDS,
    "metrics.Bootstrap": _HOLDS,
    "metrics.BrierParts": _HOLDS,
    "metrics.CorrectedECE": _HOLDS,
    "metrics.Counts": _HOLDS,
    "metrics.SharedErrorsWarning": "a warning",
    "metrics.TTest": _HOLDS,
    "metrics.METRICS": "each metric counts by itself",
    "metrics.table": "the list of metrics, as a table",
}
"""Public names without a case: why."""

MODELS = {
    "Popularity": [{}],
    "OneVsRest": [{}],
    "DiSMEC": [{}],
    "PWDiSMEC": [{}],
    "PLT": [{"trees": 1, "max_leaf": 20}, {"trees": 1, "max_leaf": 20, "loss": "squared_hinge", "tree": "frequency"}],
    "FastXML": [{"trees": 2}],
    "PfastXML": [{"trees": 2}],
    "PfastreXML": [{"trees": 2}, {"trees": 2, "form": "program"}],
    "NeuralOneVsAll": [
        {"loss": "bce", "dim": 24, "epochs": 2},
        {"loss": "squared_hinge", "dim": 24, "epochs": 1},
        {"loss": "focal", "dim": 24, "epochs": 1},
        {"loss": "focal", "gamma": 1.3, "dim": 24, "epochs": 1},
        {"loss": "asymmetric", "dim": 24, "epochs": 1},
    ],
    "TwoTowers": [{"dim": 24, "epochs": 2}, {"dim": 24, "epochs": 1, "output": "encoder"}],
    "KNN": [{}],
    "SLEEC": [{"dim": 6, "learners": 2, "rounds": 3, "cluster_size": 100}],
    "LPSR": [{"partitions": 4, "labels": 20}],
    "CPLST": [{"components": 8}],
    "MLCSSP": [{"columns": 8}],
    "LEML": [{"rank": 8, "rounds": 3}],
    "WSABIE": [{"dim": 8, "epochs": 3}],
    "CS": [{"measurements": 30}],
    "PDSparse": [{"epochs": 3}],
    "ProXML": [{"C": 10.0, "steps": 40}],
    "LabelAttention": [{"dim": 12, "epochs": 1, "steps": 30}],
    "ClusterNetwork": [
        {"dim": 12, "epochs": 1, "levels": 2},
        {"clusters": "learned", "dim": 12, "epochs": 2},
        {"clusters": "random", "dim": 12, "epochs": 1},
        {"clusters": "none", "soft": 1.0, "dim": 12, "epochs": 1},
    ],
    "GraphTowers": [{"dim": 24, "epochs": 1}],
}
"""Model -> the parameters with which it is trained here: every loss, every kind of tree."""


def public() -> set[str]:
    """Every name that must have a case or a reason."""
    measures = set(metrics.__all__)
    found = {f"models.{name}" for name in models.CLASSES} | {f"metrics.{name}" for name in measures}
    for room, place in ROOMS.items():
        module = importlib.import_module(f"xcrepro.{place}")
        own = {
            name
            for name, value in vars(module).items()
            if callable(value) and f"{value.__module__}.".startswith(f"{module.__name__}.") and not name.startswith("_")
        }
        found |= {f"{room}.{name}" for name in own}
    return found


def covered() -> set[str]:
    """Every name that has a case."""
    calibrators = {f"calibrate.{each.__name__}" for each in calibrate.Calibrator.__subclasses__()}
    return {*CASES} | {f"models.{name}" for name in MODELS} | calibrators


class Data:
    """What the cases compute with: nothing here may differ from processor to processor either."""

    def __init__(self) -> None:
        self.twin = xc.twin("bibtex", scale=0.05, seed=0)
        self.tree = xc.twin("eurlex-4k", scale=0.02, seed=1, hierarchy=True)
        self.train, self.test = self.twin.train, self.twin.test
        self.Y, self.eta = self.test.Y, self.test.observed_marginals
        self.ours, self.theirs = (xc.TopK.from_scores(self.bent(power), 5) for power in (0.6, 1.7))
        rounded = sparse.csr_matrix(self.eta)
        rounded.data = np.floor(20.0 * rounded.data) / 20.0
        self.tied, self.graded = xc.TopK.from_scores(rounded, 9), sparse.csr_matrix(self.Y, dtype=np.float64, copy=True)
        self.graded.data[:] = 0.5 * (1 + np.arange(self.graded.nnz) % 7)
        self.counts, self.n = self.twin.label_counts, self.twin.n_train
        self.weights = propensity.inverse(self.counts, self.n, self.twin.A, self.twin.B)
        self.scores, self.hits = metrics.pairs(self.Y, xc.TopK.from_scores(self.eta, 5))
        rng = np.random.default_rng(0)
        self.x = np.concatenate([rng.random(400), 40.0 * (rng.random(400) - 0.5), [0.0, 1.0, 1e-300, 700.0]])
        self.a, self.b = rng.random((37, 53)) - 0.5, rng.random((53, 41)) - 0.5
        self.hierarchy = hierarchy.Hierarchy.from_pairs(
            [(l, 500 + l // 7) for l in range(self.Y.shape[1])], self.Y.shape[1]
        )
        self.given = {"ks": (1, 3, 5), "inverse_propensity": self.weights, "label_counts": self.counts}

    def bent(self, power: float) -> sparse.csr_matrix:
        """The twin's own probabilities to a power."""
        values = arithmetic.power(self.eta.data.astype(np.float64), power)
        return sparse.csr_matrix((values, self.eta.indices, self.eta.indptr), self.eta.shape)


def vectorized(d: Data) -> dict[str, bytes]:
    """What ``xcrepro vectorize`` writes for some invented texts."""
    words = [f"word{number % 97}" for number in range(7, 40_000, 7)]
    rows = [
        {
            "title": " ".join(words[at : at + 9]),
            "content": " ".join(words[2 * at : 2 * at + 25]),
            "labels": [at % 13, at % 5],
        }
        for at in range(0, 240)
    ]
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "raw.jsonl"), Path(folder, "out")
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        vectorize.vectorize(source, out, ngrams=2, seed=3)
        return {path.name: path.read_bytes() for path in sorted(out.iterdir()) if path.suffix == ".txt"}


def said(d: Data) -> list[tuple[int, int, int, str]]:
    """Two judges on all labels of some test rows, who do not agree everywhere."""
    complete, rows = d.test.Y_complete.tocsr(), judged.sample(d.Y.shape[0], 30, 3)
    return [
        (row, label, int(complete[row, label] > 0 or (by == "two" and label % 11 == 0)), by)
        for by, some in (("one", rows), ("two", rows[:20]))
        for row in some.tolist()
        for label in range(complete.shape[1])
    ]


def fitted(d: Data) -> propensity.Fit:
    """A and B found from propensities."""
    return propensity.fit(d.counts, 1.0 / d.weights, d.n)


CASES: dict[str, Callable[[Data], object]] = {
    **{
        f"arithmetic.{name}": lambda d, name=name: getattr(arithmetic, name)(d.x)
        for name in ("exp", "log", "log1p", "log2", "expm1", "sigmoid", "softplus", "exp32", "tanh32", "sigmoid32")
    },
    "arithmetic.power": lambda d: [arithmetic.power(d.x[:400], p) for p in (0.3, -1.7, 13.0)],
    "arithmetic.product": lambda d: [
        arithmetic.product(d.a, d.b),
        arithmetic.product(d.a.astype(np.float32), d.b.astype(np.float32)),
    ],
    "arithmetic.normals": lambda d: arithmetic.normals(3, 1, 500),
    "arithmetic.poissons": lambda d: arithmetic.poissons(3, 30.0 * d.x[:400]),
    "arithmetic.betas": lambda d: arithmetic.betas(0.7, 1.6, 300, np.random.default_rng(2)),
    "calibrate.fold_edges": lambda d: calibrate.fold_edges(103, 10),
    "calibrate.cross_fit": lambda d: [
        calibrate.cross_fit(d.scores[:600].reshape(-1, 5), d.hits[:600].reshape(-1, 5), method, separate=separate)
        for method in ("isotonic", "platt")
        for separate in (False, True)
    ],
    "calibrate.cross_fit_top": lambda d: calibrate.cross_fit_top(d.Y, d.ours),
    "calibrate.fit_top": lambda d: calibrate.fit_top(d.Y, d.ours, "platt").predict(d.x[:400]),
    "calibrate.transform": lambda d: calibrate.transform(calibrate.fit_top(d.Y, d.ours), d.theirs),
    "calibrate.min_max": lambda d: calibrate.min_max(d.x),
    "calibrate.margin": lambda d: [calibrate.margin(d.x, loss) for loss in ("logistic", "squared_hinge")],
    "data.twin.twin": lambda d: [
        [each.train, each.test, each.propensities, each.expected_counts, each.parents] for each in (d.twin, d.tree)
    ],
    "data.twin.expected_observed_counts": lambda d: twin.expected_observed_counts("wiki10-31k", 0.1),
    "data.vectorize.vectorize": vectorized,
    "data.tfidf.rarity": lambda d: tfidf.rarity(d.train.X),
    "data.tfidf.weighed": lambda d: [
        tfidf.weighed(abs(d.train.X.tocsr()) + d.train.X.tocsr().sign(), vectorize.rarity(d.train.X), sublinear)
        for sublinear in (True, False)
    ],
    "decide.top_k": lambda d: decide.top_k(d.eta, 5),
    "decide.weighted": lambda d: decide.weighted(d.eta, 5, d.weights),
    "decide.bounded_random": lambda d: decide.bounded_random(d.eta, 5, seed=4),
    "decide.greedy_coverage": lambda d: [
        decide.greedy_coverage(d.eta, 5, 0.1, passes=2),
        decide.greedy_coverage(d.eta, 5, 0.1, update="gain"),
    ],
    "decide.maximise": lambda d: [
        decide.maximise(d.eta, 5, mix) for mix in ("0.5 P + 0.5 macro-F1", "0.5 macro-P + 0.5 coverage", "macro-R")
    ],
    "decide.expected_utility": lambda d: [
        decide.expected_utility(d.eta, d.ours, "0.5 macro-P + 0.5 coverage"),
        decide.expected_utility(d.eta, d.ours, "0.5 macro-R + 0.5 macro-F1", exact=True),
    ],
    "decide.randomised": lambda d: [
        (rule := decide.randomised(d.eta, 5, "0.5 macro-P + 0.5 macro-F1", iterations=5)).terms,
        rule.weights,
        rule.predict(d.eta, seed=3),
    ],
    "decide.for_precision": lambda d: decide.for_precision(d.eta, 3, 0.2),
    "decide.marginals": lambda d: decide.marginals(d.eta, d.ours),
    "decide.expected_coverage": lambda d: decide.expected_coverage(d.eta, d.ours),
    "decide.expected_precision": lambda d: decide.expected_precision(d.eta, d.ours),
    "distributions.rounded": lambda d: distributions.rounded(d.x),
    "distributions.normal": lambda d: distributions.normal(d.x / 4.0),
    "distributions.normal_quantile": lambda d: distributions.normal_quantile(d.x[:400]),
    "distributions.student": lambda d: distributions.student(7, d.x / 4.0),
    "distributions.student_quantile": lambda d: distributions.student_quantile(7, d.x[:400]),
    "distributions.beta": lambda d: distributions.beta(2.5, 4.0, d.x[:400]),
    "propensity.inverse": lambda d: [propensity.inverse(d.counts, d.n, A, B) for A, B in ((0.5, 0.4), (0.6, 2.6))],
    "propensity.fit": fitted,
    "propensity.estimate_from_hierarchy": lambda d: propensity.estimate_from_hierarchy(
        d.tree.train.Y, d.tree.parents, min_descendants=2, labels_per_bin=5
    ),
    "hierarchy.ancestors": lambda d: hierarchy.ancestors(d.tree.parents, d.tree.parents.size),
    "hierarchy.Hierarchy": lambda d: d.hierarchy.packed(),
    "propensity.drop_labels": lambda d: propensity.drop_labels(d.test.Y_complete, 1.0 / d.weights, 5),
    **{
        f"metrics.{name}": lambda d, name=name: getattr(metrics, name)(d.Y, d.ours)
        for name in (
            "abandonment", "adg", "average_precision", "calibration_table", "confusion", "coverage", "f_beta", "hamming_loss",
            "coverage_error", "exact_match", "hit_rate", "label_entropy", "lrap", "macro_f1", "macro_precision", "macro_recall",
            "micro_f1", "micro_precision", "micro_recall", "mrr", "ndcg", "pairs", "precision", "r_precision", "recall",
            "unique_labels",
        )
    },
    **{
        f"metrics.{name}": lambda d, name=name: getattr(metrics, name)(d.scores, d.hits)
        for name in ("ace", "brier", "brier_decomposition", "corrected_ece", "ece", "nll", "reliability", "smooth_ece")
    },
    "metrics.ThresholdCurve": lambda d: metrics.ThresholdCurve().update(d.Y, d.ours).table(2.0),
    "metrics.threshold_curve": lambda d: metrics.threshold_curve(d.Y, d.theirs),
    "metrics.best_threshold": lambda d: [metrics.best_threshold(d.Y, d.ours, per=per, at_least=2) for per in ("all", "label")],
    "metrics.cross_fit_sets": lambda d: [metrics.cross_fit_sets(d.Y, d.ours, per=per, at_least=2) for per in ("all", "label")],
    "metrics.conformal_threshold": lambda d: [
        metrics.conformal_threshold(d.Y, d.ours, 0.99),
        metrics.conformal_threshold(d.Y, d.ours, 0.99, of="wrong"),
    ],
    "metrics.risk_coverage": lambda d: [metrics.risk_coverage(d.Y, d.ours, 5, of=of) for of in ("rows", "pairs")],
    "metrics.auc": lambda d: [metrics.auc(d.Y, d.eta, average=average) for average in ("macro", "micro", None)],
    "metrics.aurc": lambda d: [metrics.aurc(d.Y, d.ours, 5, of=of) for of in ("rows", "pairs")],
    "metrics.Confused": lambda d: metrics.Confused(3).update(d.Y, d.ours).table(),
    "metrics.confused_labels": lambda d: metrics.confused_labels(d.Y, d.theirs, 5),
    "metrics.overlap": lambda d: metrics.overlap(d.ours, d.theirs),
    "metrics.rank_biased_overlap": lambda d: metrics.rank_biased_overlap(d.ours, d.theirs),
    "metrics.label_gaps": lambda d: metrics.label_gaps(d.Y, d.ours, 5),
    "metrics.hierarchical": lambda d: [
        metrics.hierarchical(d.Y, d.ours, hierarchy=d.hierarchy, of=of, average=average)
        for of in "PRF"
        for average in ("micro", "rows")
    ],
    "metrics.precision_ceiling": lambda d: metrics.precision_ceiling(d.Y, d.ours, (1, 3)),
    "metrics.changed_labels": lambda d: metrics.changed_labels(d.ours, d.theirs, 5, label_counts=d.counts),
    "metrics.alpha_coverage": lambda d: metrics.alpha_coverage(d.Y, d.ours, alpha=0.3),
    "metrics.best_macro_f1": lambda d: metrics.best_macro_f1(d.Y, 1),
    "metrics.binned_macro_f1": lambda d: metrics.binned_macro_f1(d.Y, d.ours, label_counts=d.counts),
    "metrics.diversity": lambda d: metrics.diversity(d.Y, d.ours, label_features=d.train.Y.T.tocsr()),
    "metrics.macro_f_beta": lambda d: metrics.macro_f_beta(d.Y, d.ours, beta=2.0),
    "metrics.marginal_ece": lambda d: metrics.marginal_ece(d.eta, d.Y),
    "metrics.psndcg": lambda d: metrics.psndcg(d.Y, d.ours, inverse_propensity=d.weights),
    "metrics.psp": lambda d: metrics.psp(d.Y, d.ours, inverse_propensity=d.weights),
    "metrics.reachable": lambda d: metrics.reachable(d.Y),
    "metrics.sampled_coverage": lambda d: [
        metrics.sampled_coverage(d.Y, d.ours, sample_size=40, replace=replace) for replace in (True, False)
    ],
    "metrics.evaluate": lambda d: [
        metrics.evaluate(d.Y, d.ours, **d.given),
        metrics.evaluate(d.Y, d.tied, (1, 3, 5), d.weights, ties="bounds"),
        metrics.evaluate(d.Y, d.tied, (1, 3, 5), d.weights, ties="expected"),
        [metrics.ndcg(d.graded, d.ours, gains=gains) for gains in ("linear", "exponential")],
        metrics.evaluate(
            d.Y, {"one": d.ours, "two": [d.ours, d.theirs]}, 5, d.weights, d.counts, confidence_level=0.95, n_resamples=40,
            metrics=["P", "PSP", "macro-F1", "coverage", "binned macro-F1", "ECE", "smECE"],
        ),
    ],
    "judged.agreement": lambda d: judged.agreement(said(d)),
    "judged.bounds": lambda d: judged.bounds(d.Y, d.ours, said(d), (1, 5), ["P", "R", "coverage"]),
    "judged.compare": lambda d: judged.compare(
        d.Y, {"ours": d.ours, "theirs": d.theirs}, said(d), (1, 5), ["P", "nDCG", "coverage"], complete=True
    ),
    "judged.estimate": lambda d: [
        judged.estimate(d.Y, d.ours, said(d), (1, 5), ["P", "R", "nDCG", "coverage"], complete=True),
        judged.estimate(d.Y, d.ours, said(d), method="ppi", target="fresh rows"),
    ],
    "judged.estimated": lambda d: judged.estimated(0.1, d.x[:40] / 50, d.x[400:440] / 50, 300),
    "judged.next_rows": lambda d: judged.next_rows(
        judged.estimate(d.Y, d.ours, said(d)), said(d), 0.01, d.Y.shape[0]
    ),
    "judged.sample": lambda d: judged.sample(1000, 30, 5),
    "judged.sheet": lambda d: judged.sheet(d.Y, d.ours, judged.sample(d.Y.shape[0], 30)),
    "metrics.compare": lambda d: metrics.compare(
        d.Y, {"ours": d.ours, "theirs": [d.theirs, d.ours]}, ["P", "PSP", "macro-F1", "ECE@5"], n_resamples=40,
        inverse_propensity=d.weights,
    ),
    "metrics.paired_bootstrap": lambda d: metrics.paired_bootstrap(
        d.Y, d.ours, d.theirs, metrics=["P", "nDCG", "macro-F1", "ECE"], n_resamples=40
    ),
    "metrics.macro_t_test": lambda d: metrics.macro_t_test(
        d.Y, d.ours, d.theirs, metrics=["macro-F1", "ECE"], n_resamples=40, more_than=1
    ),
    "metrics.holm": lambda d: metrics.holm(d.x[:20]),
}  # fmt: skip
"""Public name -> the numbers that it makes here. Models and calibrators have none: they are all trained, as they are listed."""


def drawn(name: str, part: int, parts: int) -> bool:
    """Whether a name belongs to this part of all, which are of about one size."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % parts == part


def cases() -> dict[str, Callable]:
    """Name -> what computes every case, the open dataset, every metric, every calibrator, every model."""
    d = Data()

    @functools.cache
    def table():
        relevant = d.test.Y_complete.getnnz(axis=1)
        further = {"n_relevant": relevant, "hierarchy": d.hierarchy}
        return metrics.evaluate(d.Y, d.ours, metrics=[*metrics.METRICS], **further, **d.given)

    def metric(name):
        line = "macro-F1 (" if name == "binned macro-F1" else name
        all_of = table()
        rows = all_of[all_of.metric.str.startswith(line)] if line != name else all_of[all_of.metric == name]
        if rows.empty:
            raise LookupError(f"no value of the metric {name}")
        return rows

    def calibrated(kind):
        calibrator = kind().fit(d.scores, d.hits)
        return [vars(calibrator), calibrator.predict(d.scores)]

    def trained(name, parameters):
        model = getattr(models, name)(**parameters).fit(d.train.X, d.train.Y)
        return [model._state(), model.predict(d.test.X, 5)]

    def open_dataset():
        tib = xc.load("tib", points=400)
        return [tib.train.X, tib.train.Y, tib.test.X, tib.label_features]

    todo: dict[str, Callable] = {name: functools.partial(case, d) for name, case in CASES.items()}
    todo |= {"the open dataset": open_dataset}
    todo |= {f"metric {name}": functools.partial(metric, name) for name in metrics.METRICS}
    kinds = calibrate.Calibrator.__subclasses__()
    todo |= {f"calibrate.{kind.__name__}": functools.partial(calibrated, kind) for kind in kinds}
    for name, settings in MODELS.items():
        for parameters in settings:
            shown = ", ".join(f"{key}={value}" for key, value in parameters.items())
            todo[f"models.{name}({shown})"] = functools.partial(trained, name, parameters)
    return todo


def results(part: int = 0, parts: int = 1) -> Iterator[tuple[str, object]]:
    """(name, what it computes) of every case; or of a part."""
    for name, compute in cases().items():
        if drawn(name, part, parts):
            yield name, compute()


def digest(value: object) -> str:
    """SHA-256 of every array, number and text in a value, whatever holds them."""
    found = hashlib.sha256()
    _feed(found, value)
    return found.hexdigest()


def _feed(found, value: object) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        if value.dtype.kind in "iu":
            value = value.astype(np.int64)  # an index is narrower on a 32-bit machine
        found.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif sparse.issparse(value):
        _feed(found, [value.shape, value.indptr, value.indices, value.data])
    elif isinstance(value, xc.TopK):
        _feed(found, [value.ids, value.scores])
    elif isinstance(value, pd.DataFrame):
        _feed(found, {column: value[column].tolist() for column in value})
    elif dataclasses.is_dataclass(value):
        _feed(found, {field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    elif isinstance(value, Mapping):
        _feed(found, [[key, part] for key, part in value.items()])
    elif isinstance(value, list | tuple | np.ndarray):
        found.update(f"[{len(value)}".encode())
        for part in value:
            _feed(found, part)
    elif isinstance(value, bytes):
        found.update(value)
    elif isinstance(value, np.integer):
        _feed(found, int(value))
    elif isinstance(value, str | int | float | np.generic) or value is None:
        found.update(f"{type(value).__name__} {value!r};".encode())
    else:
        raise TypeError(f"no digest of {type(value)}")


def differing(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """The names whose digests are not the same, or that only one of them has."""
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


if __name__ == "__main__":
    print(json.dumps({name: digest(value) for name, value in results(*map(int, sys.argv[1:]))}))
