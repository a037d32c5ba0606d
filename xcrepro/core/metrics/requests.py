"""What a State is asked for: metrics at their ks, weights and options, checked once, and the folds that they need."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from xcrepro.core.accumulators.labels import LabelCounts
from xcrepro.core.accumulators.pairs import BINS, CAP, PairSums
from xcrepro.core.accumulators.rows import RowSums
from xcrepro.core.accumulators.scores import ScoreCounts
from xcrepro.core.accumulators.ties import TiedSums
from xcrepro.core.accumulators.truths import TruthRows
from xcrepro.core.arguments import label_values, one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.hierarchy import Hierarchy
from xcrepro.core.metrics import labelwise, registry, serialization
from xcrepro.core.version import __version__


@dataclass(frozen=True)
class Options:
    """The options of :class:`xcrepro.State`, which says what they are."""

    bins: int = BINS
    closed: str = "left"
    cap: float = CAP
    beta: float = 1.0
    n_resamples: int = 0
    seed: int = 0
    ties: str = "lowest-id"

    def __post_init__(self) -> None:
        one_of("ties", self.ties, ("lowest-id", "expected", "bounds"))
        if not (self.bins is BINS and self.closed == "left" and self.cap is CAP):  # the defaults
            PairSums([1], **self.calibration)  # checks them
        checked = {
            "beta": real_number("beta", self.beta, above=0),
            "n_resamples": whole_number("n_resamples", self.n_resamples),
        }
        for name, value in (checked | {"seed": whole_number("seed", self.seed, 0, 2**63 - 1)}).items():
            object.__setattr__(self, name, value)

    @property
    def calibration(self) -> dict[str, Any]:
        """Those of the calibration metrics."""
        return {"bins": self.bins, "closed": self.closed, "cap": self.cap}


class Asked:
    """Metrics at their ks, in the order asked for, with the labels' weights and train counts; none of it ever changes."""

    def __init__(self, ks, metrics, inverse_propensity, label_counts, options: Options, hierarchy) -> None:
        self.options = options
        if metrics is None:
            there = inverse_propensity is not None, label_counts is not None
            metrics = registry.default(*there, ties=options.ties, hierarchy=hierarchy is not None)
        self.wanted = registry.wanted(metrics, ks)
        if options.ties != "lowest-id":
            self._check_ties()
        for metric, _ in self.wanted:
            if "label_counts" in metric.needs and label_counts is None:
                do = "the train rows of each label"
                raise ArgumentError("label_counts", f"must be given for {metric.name}", None, do)
        self.k_max = int(max(at.max() for _, at in self.wanted))
        self.weights = None
        if inverse_propensity is not None:
            self.weights = label_values("inverse_propensity", inverse_propensity, zero=False)
        self.counts = None if label_counts is None else labelwise.checked_counts(label_counts)
        if not (hierarchy is None or isinstance(hierarchy, Hierarchy)):
            do = "xcrepro.Hierarchy.from_pairs(pairs, label_names), or from_paths"
            raise ArgumentError("hierarchy", "must be a Hierarchy", type(hierarchy).__name__, do)
        self.hierarchy = hierarchy
        if options.n_resamples and not any(metric.interval == "bootstrap" for metric, _ in self.wanted):
            do = (
                "drawn rows cover fewer labels and fill bins more roughly: take xc.evaluate(..., confidence_level=0.95)"
            )
            raise ArgumentError("n_resamples", "must go with a metric that is made of sums over rows", "none", do)
        self.folds(0)  # what a metric lacks is said at once

    def _check_ties(self) -> None:
        """Refuse what other orders of tied scores have no short form for."""
        if odd := [metric.name for metric, _ in self.wanted if not metric.adds_up]:
            known = [name for name, metric in registry.METRICS.items() if metric.adds_up]
            rule = f"must add up over places with ties={self.options.ties!r}"
            raise ArgumentError("metrics", rule, odd[0], f"these do: {', '.join(known)}")
        if self.options.n_resamples:
            raise ArgumentError("ties", "must be 'lowest-id' with n_resamples", repr(self.options.ties))

    @property
    def given(self) -> dict[str, np.ndarray | None]:
        """Weights, counts and hierarchy by the names of their arguments, as they are kept in a file."""
        hierarchy = None if self.hierarchy is None else self.hierarchy.packed()
        return {"inverse_propensity": self.weights, "label_counts": self.counts, "hierarchy": hierarchy}

    def check_labels(self, n_labels: int) -> None:
        """Refuse weights and counts of another number of labels."""
        for name, given in (("inverse_propensity", self.weights), ("label_counts", self.counts)):
            if given is not None and given.size != n_labels:
                rule = f"must hold one value for each of the {n_labels} labels"
                raise ArgumentError(name, rule, f"an array of shape {given.shape}")
        if self.hierarchy is not None and self.hierarchy.n_labels != n_labels:
            raise ArgumentError("hierarchy", f"must be of the {n_labels} labels", self.hierarchy.n_labels)

    def folds(self, n_labels: int) -> dict[str, Any]:
        """The folds that the metrics need, empty."""
        metrics, options = [metric for metric, _ in self.wanted], self.options
        kinds = {metric.fold for metric in metrics}
        found: dict[str, Any] = {}
        if kinds & {"pairs", "scores"}:
            loss = any(metric.name == "NLL" for metric in metrics)
            found["pairs"] = PairSums(self._at("pairs", "scores"), **options.calibration, loss=loss)
        if "scores" in kinds:
            found["scores"] = ScoreCounts(self._at("pairs", "scores"))
        if "rows" in kinds:
            columns = {column for metric in metrics if metric.fold == "rows" for column in metric.columns}
            about = self._at("rows"), columns, self.weights, options.beta
            alike = options.ties == "lowest-id"
            found["rows"] = RowSums(*about, hierarchy=self.hierarchy) if alike else TiedSums(*about)
            if options.n_resamples:
                found["drawn"] = RowSums(*about, options.n_resamples, hierarchy=self.hierarchy)
        if kinds & {*(of_labels := ("labels", "bins", "truths", "predicted"))}:
            found["labels"] = LabelCounts(n_labels, self._at(*of_labels))
        if "truths" in kinds:
            found["truths"] = TruthRows(n_labels)
        return found

    def _at(self, *folds: str) -> np.ndarray:
        """The ks, rising, of all metrics on some folds."""
        found = [k for metric, at in self.wanted if metric.fold in folds for k in at.tolist()]
        return np.array(sorted({*found}), np.int64)

    def fingerprint(self, n_labels: int | None) -> dict[str, Any]:
        """What two states must share to be merged."""
        return {
            "format": serialization.FORMAT,
            "version": __version__,
            "metrics": [f"{metric.name}@{k}" for metric, at in self.wanted for k in at.tolist()],
            "n_labels": n_labels,
            **asdict(self.options),
            **self._hashes,
        }

    @functools.cached_property
    def _hashes(self) -> dict[str, str | None]:
        """Of the weights, which may be millions and are never changed."""
        return {name: serialization.digest(array) for name, array in self.given.items()}
