"""The one list of metrics: what ``evaluate``, :class:`xcrepro.State`, the command line, the resampling tests, the audit and the
documentation know of each.

A metric is a formula over a fold (:mod:`xcrepro.core.accumulators`). To add one: a column in
:mod:`xcrepro.core.kernels.ranking` if its row needs a new number, a line here, an oracle and a test.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from xcrepro.core import arithmetic
from xcrepro.core.accumulators.labels import HitLabels
from xcrepro.core.accumulators.rows import RowSums
from xcrepro.core.accumulators.sums import ratio
from xcrepro.core.accumulators.ties import IN_ORDER
from xcrepro.core.arguments import cut_offs, did_you_mean
from xcrepro.core.errors import ArgumentError
from xcrepro.core.kernels import labelwise as label_kernel
from xcrepro.core.kernels import ranking as kernel
from xcrepro.core.metrics import formulas, labelwise

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes
    ----------
    name : str
        What tables call it; ``name@k`` is its value at k.
    fold : {"rows", "labels", "bins", "truths", "predicted", "pairs", "scores", "own"}
        What it is worked out from, and with that what it is asked of: sums over rows; labels that were hit, of all or by bin of
        train frequency; the truth of all rows; labels that were predicted, hit or not; sums over (score, hit) pairs; the
        distribution of their scores; truth and predictions themselves, by a caller's function
        (:mod:`xcrepro.core.metrics.extra`).
    formula : callable
        Of the fold: one value for each of its ks (rows, labels, truths, predicted), a value at one k (pairs, scores), or a
        value for each bin and k (bins).
    source : str
        Document and equation, or paper.
    columns : tuple of int
        Of "rows": the kernel's columns that the formula reads.
    unit : {"fraction", "labels", "nats", "pairs"}
        Fractions lie in [0, 1], but for unbiased estimates, which may leave it.
    better : {"higher", "lower", ""}
    default : bool
        Is it among those that ``evaluate`` gives unasked, as soon as it has what they need?
    printed_as : tuple of str
        Other names in the five documents and their tables, the repository's first.
    averages : {"rows", "labels", ""}
        What it is a mean over; nothing for ratios of sums, entropy and calibration.
    section : {"ranking", "labelwise", "coverage", "calibration", ""}
        The section of :func:`xcrepro.report` that has it unasked.
    """

    name: str
    fold: str
    formula: Callable
    source: str
    columns: tuple[int, ...] = ()
    unit: str = "fraction"
    better: str = "higher"
    default: bool = True
    printed_as: tuple[str, ...] = field(default=())
    averages: str = ""
    section: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Arguments that it cannot do without."""
        if self.fold == "bins":
            return ("label_counts",)
        most = max(self.columns, default=0)
        if kernel.HIERARCHY <= most < kernel.WEIGHTED:
            return ("hierarchy",)
        return ("inverse_propensity", "n_relevant")[: (most >= kernel.WEIGHTED) + (most >= kernel.GIVEN_TRUTH)]

    def __reduce__(self):
        """Pickled by name, so that a State goes to another process."""
        return metric_named, (self.name,)

    @property
    def interval(self) -> str:
        """Which interval holds: "bootstrap" of sums over rows, else "halves" (:func:`xcrepro.evaluate`)."""
        return "bootstrap" if self.fold == "rows" else "halves"

    @property
    def adds_up(self) -> bool:
        """Is it made of sums over places, so that its mean over orders of tied scores has a closed form?"""
        return self.fold == "rows" and IN_ORDER.isdisjoint(self.columns)

    @property
    def is_share(self) -> bool:
        """Of sums over rows: is it from 0 to 1, whatever was predicted? Estimates of what is missing may leave that."""
        weighted = bool(self.averages) and max(self.columns, default=0) >= kernel.WEIGHTED
        return self.fold == "rows" and self.unit == "fraction" and not weighted and kernel.F_PRINTED not in self.columns

    @property
    def probabilities(self) -> bool:
        """Must the scores lie in [0, 1]?"""
        return self.fold in ("pairs", "scores")


def _mean(column: int) -> dict:
    return {"formula": lambda s: s.mean(column), "columns": (column,)}


def _ratio(above: int, below: int) -> dict:
    return {"formula": lambda s: ratio(s[above], s[below]), "columns": (above, below), "averages": ""}


def _rows(name: str, source: str, how: dict | Callable, columns: tuple[int, ...] = (), **about) -> Metric:
    how = how if isinstance(how, dict) else {"formula": how, "columns": columns}
    return Metric(name, "rows", source=source, **{"averages": "rows", **how, **about})


def _labels(name: str, source: str, formula: Callable, **about) -> Metric:
    return Metric(name, "labels", formula, source, **{"averages": "labels", **about})


def _pairs(name: str, source: str, formula: Callable, better: str = "lower", **about) -> Metric:
    return Metric(name, about.pop("fold", "pairs"), formula, source, better=better, default=False, **about)


def perfect_gain(ks: Iterable[int]) -> np.ndarray:
    """I(k), the discounted gain of k hits at places 1..k: the sum of 1/log2(r+1)."""
    ks = np.fromiter(ks, np.int64)
    # One after the other, as the kernel adds them: Python's own sum differs from 3.12 on.
    return np.add.accumulate(1.0 / arithmetic.log2(np.arange(2.0, 2.0 + ks.max(initial=1))))[ks - 1]


def _micro_f1(s: RowSums) -> np.ndarray:
    return ratio(2.0 * s[kernel.HITS], s[kernel.PREDICTED] + s[kernel.RELEVANT])


def _hamming(s: RowSums) -> np.ndarray:
    return (s[kernel.RELEVANT] + s[kernel.PREDICTED] - 2.0 * s[kernel.HITS]) / s.n_rows


def _scored_hamming(s: RowSums) -> np.ndarray:
    return (s[kernel.LABEL_WEIGHTS] + s[kernel.PREDICTED] - 2.0 * s[kernel.PS_HITS]) / s.n_rows


_REACHED = kernel.H_HITS, kernel.H_PREDICTED, kernel.H_RELEVANT
_DECIDED = kernel.HITS, kernel.PREDICTED, kernel.RELEVANT
_DECIDED_PS = kernel.PS_HITS, kernel.PREDICTED, kernel.LABEL_WEIGHTS


def _label_mean(column: int, over: str = "all") -> Callable:
    return lambda hit: labelwise.label_mean(hit, column, over)


def _by_bin(hit: HitLabels, label_counts: np.ndarray) -> dict[str, np.ndarray]:
    names, sizes, values = labelwise.binned_values(hit, label_counts)
    return {f"macro-F1 ({name})": values[b] for b, name in enumerate(names) if sizes[b]}


class _List(dict):
    """Name -> Metric. One of a family, whose name holds a number, is made when it is asked for; it is in no list of all."""

    def __missing__(self, name: str) -> Metric:
        found = family(name)
        if found is None:
            raise KeyError(name)
        return found


METRICS: dict[str, Metric] = _List((metric.name, metric) for metric in (
    # sums over rows
    _rows("P", "xcrepo; coverage, eq. 1", lambda s: s.mean(kernel.HITS) / s.ks, (kernel.HITS,), printed_as=("P", "precision"),
          section="ranking"),
    _rows("R", "coverage, eq. 1", _mean(kernel.RECALL), printed_as=("R", "recall"), section="ranking"),
    _rows("nDCG", "xcrepo; reeval, appendix B", _mean(kernel.NDCG_LABELS), printed_as=("N", "nDCG"), section="ranking"),
    _rows("nDCG (ideal k)", "jain16, table 1; coverage, eq. 2",
          lambda s: s.mean(kernel.DCG) / perfect_gain(s.ks), (kernel.DCG,), printed_as=("N", "nDCG")),
    _rows("DCG", "xcrepo", _mean(kernel.DCG), unit="labels", default=False),
    _rows("MRR", "Voorhees 1999", _mean(kernel.FIRST)),
    _rows("MRR (relevant)", "jain16, table 1 (b)", _mean(kernel.RECIPROCAL), default=False),
    _rows("AP", "Manning, Raghavan and Schütze 2008, section 8.4, cut at k", _mean(kernel.AP), default=False),
    _rows("LRAP", "Schapire and Singer 2000; scikit-learn; labels beyond k at the last place", _mean(kernel.LRAP),
          default=False),
    _rows("LRAP (at most)", "the same with the labels beyond k at the next places", _mean(kernel.LRAP_MOST), default=False),
    _rows("coverage error", "Schapire and Singer 2000; scikit-learn; labels beyond k at the last place", _mean(kernel.DEPTH),
          unit="labels", better="lower", default=False),
    _rows("coverage error (at least)", "the same with the labels beyond k at the next places", _mean(kernel.DEPTH_LEAST),
          unit="labels", better="lower", default=False),
    _rows("LRAP (label-weighted)", "lwlrap of DCASE 2019; labels beyond k at the last place",
          _ratio(kernel.LRAP_LABELS, kernel.RELEVANT), default=False),
    _rows("RP", "R-precision@k, hits over min(k, |y|): Chalkidis et al. 2019", _mean(kernel.R_PRECISION), default=False),
    _rows("exact match", "subset accuracy: scikit-learn, accuracy_score", _mean(kernel.EXACT), default=False),
    _rows("ADG", "jain16, table 1 (b)", _mean(kernel.ADG)),
    _rows("F", "jain16, table 1 (b)", _mean(kernel.F_SET)),
    _rows("F (printed)", "jain16, table 1 (b), as printed", _mean(kernel.F_PRINTED), default=False),
    _rows("micro-F1", "reeval, section 2.3", _micro_f1, _DECIDED, averages="",
          printed_as=("micro_F1",), section="labelwise"),
    _rows("micro-P", "hits over labels predicted", _ratio(kernel.HITS, kernel.PREDICTED), default=False),
    _rows("micro-R", "hits over relevant labels", _ratio(kernel.HITS, kernel.RELEVANT), default=False),
    _rows("P (predicted)", "Tsoumakas, Katakis and Vlahavas 2010, over the labels predicted", _mean(kernel.PRECISION_SET),
          default=False),
    _rows("Hamming", "jain16, theorem 4.4", _hamming, _DECIDED, unit="labels", better="lower"),
    _rows("abandonment", "coverage, section 3.3", lambda s: 1.0 - s.mean(kernel.SERVED), (kernel.SERVED,), better="lower",
          section="coverage"),
    _rows("served", "coverage, eq. 12 and tables, there called abandonment", _mean(kernel.SERVED), default=False,
          printed_as=("Abandonment",)),
    _rows("hit rate", "served, as recommenders call it; success@k of retrieval, Recall@k of metric learning",
          _mean(kernel.SERVED), default=False),
    # sums over rows of labels together with the nodes above them
    _rows("hP", "Kiritchenko, Matwin and Famili 2005, the mean over rows", _mean(kernel.H_PRECISION)),
    _rows("hR", "the same", _mean(kernel.H_RECALL)),
    _rows("hF", "the same", _mean(kernel.H_F), section="ranking"),
    _rows("micro-hP", "Kiritchenko, Matwin and Famili 2005", _ratio(kernel.H_HITS, kernel.H_PREDICTED), section="ranking"),
    _rows("micro-hR", "the same", _ratio(kernel.H_HITS, kernel.H_RELEVANT), section="ranking"),
    _rows("micro-hF1", "the same", lambda s: ratio(2.0 * s[kernel.H_HITS], s[kernel.H_PREDICTED] + s[kernel.H_RELEVANT]),
          _REACHED, averages="", section="ranking"),
    # counts by label
    _labels("macro-P", "coverage, eq. 11", _label_mean(label_kernel.PRECISION), printed_as=("macro_P", "macro-precision"),
          section="labelwise"),
    _labels("macro-R", "coverage, eq. 11", _label_mean(label_kernel.RECALL), printed_as=("macro_R", "macro-recall"),
          section="labelwise"),
    _labels("macro-F1", "reeval, section 2.3; coverage, eq. 11", _label_mean(label_kernel.F_BETA), printed_as=("macro_F1",),
          section="labelwise"),
    _labels("coverage", "coverage, eq. 13", _label_mean(label_kernel.COVERED), printed_as=("Cov", "coverage"),
          section="coverage"),
    _labels("coverage (test)", "napkinXC", _label_mean(label_kernel.COVERED, "test"), section="coverage"),
    _labels("label entropy", "coverage, eq. 15 and 16", labelwise.entropy, unit="nats", averages="", section="coverage"),
    Metric("coverage (reachable)", "truths", formulas.covered_of_reachable, "jain16, table 4 (c)", default=False,
           printed_as=("Cov_norm",)),
    Metric("unique labels", "predicted", lambda n: n.astype(np.float64),
           "jain16, section 7 and table 4; aggregate diversity, Adomavicius and Kwon 2012", unit="labels", default=False,
           printed_as=("Cov_norm",)),
    # sums over rows of weights, inverse propensities
    _rows("PSP", "xcrepo; jain16, section 7", _ratio(kernel.PS_HITS, kernel.BEST_HITS), printed_as=("PSP",),
          section="ranking"),
    _rows("PSnDCG", "xcrepo", _ratio(kernel.PS_NDCG_LABELS, kernel.BEST_NDCG_LABELS), printed_as=("PSN", "PSnDCG"),
          section="ranking"),
    _rows("PSP (bare)", "xcrepo's formula; jain16, table 1 (a)", lambda s: s.mean(kernel.PS_HITS) / s.ks, (kernel.PS_HITS,)),
    _rows("PSnDCG (ideal k)", "jain16, table 1 and section 7", _ratio(kernel.PS_DCG, kernel.BEST_DCG), default=False,
          printed_as=("PSN", "PSnDCG")),
    _rows("PSDCG", "xcrepo", _mean(kernel.PS_DCG), unit="labels", default=False),
    _rows("PSnDCG (bare)", "xcrepo's formula", _mean(kernel.PS_NDCG_LABELS), default=False),
    _rows("PSnDCG (bare, ideal k)", "jain16, table 1 (a)",
          lambda s: s.mean(kernel.PS_DCG) / perfect_gain(s.ks), (kernel.PS_DCG,)),
    _rows("PS-Hamming", "jain16, theorem 4.4", _scored_hamming, _DECIDED_PS, unit="labels", better="lower"),
    _rows("PS-R", "jain16, table 1 (b)", _mean(kernel.PS_RECALL)),
    _rows("PS-MRR (relevant)", "jain16, table 1 (b)", _mean(kernel.PS_RECIPROCAL)),
    _rows("PS-ADG", "jain16, table 1 (b)", _mean(kernel.PS_ADG)),
    _rows("PS-F", "jain16, table 1 (b)", _mean(kernel.PS_F_SET)),
    _rows("PS-F (printed)", "jain16, table 1 (b), as printed", _mean(kernel.PS_F_PRINTED), default=False),
    Metric("binned macro-F1", "bins", _by_bin, "reeval, eq. 2", averages="labels", section="labelwise"),
    # (score, hit) pairs
    _pairs("ECE", "calibration, eqs. 7 and 8", lambda p: formulas.binned_error(p.table), printed_as=("ECE",),
          section="calibration"),
    _pairs("ECE over", "calibration, eq. 8, of the bins whose scores are too high",
           lambda p: formulas.binned_error(p.table, half="over")),
    _pairs("ECE under", "calibration, eq. 8, of the bins whose scores are too low",
           lambda p: formulas.binned_error(p.table, half="under")),
    _pairs("ECE l2", "calibration, footnote 1; Vaicenavicius et al. 2019", lambda p: formulas.binned_error(p.table, "l2")),
    _pairs("ECE l2 debiased", "Kumar, Liang and Ma 2019", lambda p: formulas.binned_error(p.table, "l2", debias=True)),
    _pairs("ECE max", "calibration, footnote 1; Vaicenavicius et al. 2019", lambda p: formulas.binned_error(p.table, "max")),
    _pairs("ECE floor", "the mean ECE of a perfectly calibrated model (corrected_ece)",
           lambda p: formulas.floor_of(p.table), ""),
    _pairs("ECE corrected", "ECE without the noise of its hits (corrected_ece)",
           lambda p: formulas.corrected_of(p.table).corrected),
    *(_pairs(f"ECE corrected {end}", f"the {end} end of its 95 % interval (corrected_ece)",
             lambda p, end=end: getattr(formulas.corrected_of(p.table, 0.95), end))
      for end in ("low", "high")),
    _pairs("ACE", "Nixon et al. 2019", lambda s, p: s.ace(p.bins), fold="scores", printed_as=("ACE",), section="calibration"),
    _pairs("smECE", "Błasiok and Nakkiran 2023", lambda s, p: s.smooth_ece(), fold="scores"),
    _pairs("Brier", "calibration, eq. 11", formulas.brier_of, printed_as=("Brier",), section="calibration"),
    *(_pairs(part.replace("_", " "), "Murphy 1973; Stephenson, Coelho and Jolliffe 2008",
             lambda p, part=part: getattr(formulas.decomposition(p), part), better)
      for part, better in (("uncertainty", ""), ("resolution", "higher"), ("reliability", "lower"),
                           ("within_variance", ""), ("within_covariance", ""))),
    _pairs("NLL", "calibration, figures 17 to 19; log loss", formulas.nll_of, unit="nats", section="calibration"),
    _pairs("confidence", "mean score", lambda p: p.score / p.n, ""),
    _pairs("accuracy", "mean hit", lambda p: p.hits / p.n, "higher"),
    _pairs("pairs", "how many", lambda p: float(p.n), "", unit="pairs"),
))  # fmt: skip
"""Name -> Metric, in the order of tables; and by name the :data:`FAMILIES`."""

FAMILIES: dict[str, tuple[str, str, str, Callable]] = {
    "macro-F2": (r"macro-F((?!1(?:\.0*)?$)(?!0*\.?0*$)\d+(?:\.\d+)?)", "above 0, and not 1", "coverage, eq. 11",
                 lambda beta: lambda hit: labelwise.label_mean(hit, label_kernel.F_BETA, beta=float(beta))),
    "alpha-coverage (0.5)": (r"alpha-coverage \(((?:0(?:\.\d+)?)|1)\)", "from 0 to 1", "coverage, eq. 28",
                             lambda alpha: lambda hit: labelwise.recalled(hit, float(alpha))),
    "n'-coverage (100)": (r"n'-coverage \(([1-9]\d*)\)", "a number of rows, drawn with replacement",
                          "coverage, eq. 24 and 25", lambda size: lambda hit: labelwise.sampled(hit, int(size))),
}  # fmt: skip
"""A member -> the names of its family, with a number in the group; what that must be; the source; the formula of a number."""


@functools.cache
def family(name: str) -> Metric | None:
    """The metric of a family that a name means, such as ``macro-F0.5``: one object for a name; None of another name."""
    for pattern, _, source, formula in FAMILIES.values():
        if found := re.fullmatch(pattern, name):
            return _labels(name, source, formula(found[1]), default=False)
    return None


BINNED = "binned macro-F1"


def of_bin(name: str) -> str:
    """The bin of a line of binned macro-F1, ``1-9`` of ``macro-F1 (1-9)``; empty for another metric."""
    found = re.fullmatch(r"macro-F1 \((\d+|\d+-\d+|\d+\+)\)", name)
    return found[1] if found else ""


def metric_named(name: str) -> Metric:
    """The metric of that very name, macro-F1 for one of its bins; KeyError where there is none."""
    return METRICS["macro-F1" if of_bin(name) else name]


def names(*folds: str) -> list[str]:
    """The metrics of some folds, in the order of tables."""
    return [metric.name for metric in METRICS.values() if metric.fold in folds]


def default(
    inverse_propensity: bool = False,
    label_counts: bool = False,
    n_relevant: bool = False,
    ties: str | None = None,
    hierarchy: bool = False,
) -> list[str]:
    """The metrics that are computed unasked, by what is given: their names, in the order of tables. With ``ties`` other than
    the lowest id those that add up over places."""
    every = ties in (None, "lowest-id")
    given = {"inverse_propensity": inverse_propensity, "n_relevant": n_relevant, "label_counts": label_counts}
    there = {name for name, value in {**given, "hierarchy": hierarchy}.items() if value}
    found = [metric for metric in METRICS.values() if metric.default and there >= {*metric.needs}]
    return [metric.name for metric in found if every or metric.adds_up]


def table() -> pd.DataFrame:
    """The list as a DataFrame: metric, unit, better, needs, probabilities, default, printed as, source; last one member of each
    of the :data:`FAMILIES`, whose names hold a number."""
    import pandas as pd

    rows = [
        (m.name, m.unit, m.better, ", ".join(m.needs), m.probabilities, m.default, ", ".join(m.printed_as), m.source)
        for m in (*METRICS.values(), *(METRICS[name] for name in FAMILIES))
    ]
    columns = ["metric", "unit", "better", "needs", "probabilities", "default", "printed as", "source"]
    return pd.DataFrame(rows, columns=columns)


def printed(name: str) -> list[str]:
    """The metrics that documents print under a name, such as ``N`` or ``Cov``, the repository's definition first; case, ``-``,
    ``_`` and blanks do not matter, and a metric's own name names it."""
    found = [m.name for m in METRICS.values() if plain(name) in {plain(m.name), *map(plain, m.printed_as)}]
    return sorted(found, key=lambda each: plain(each) != plain(name))


def codes() -> dict[str, str]:
    """Spelling (:func:`plain`) -> the first name under which documents print a metric: ``ndcg`` -> ``N``."""
    first: dict[str, Metric] = {}
    for metric in METRICS.values():
        if metric.printed_as:
            first.setdefault(metric.printed_as[0], metric)
    own = {plain(metric.name) for metric in METRICS.values()}
    found = {plain(metric.name): code for code, metric in first.items()}
    for code, metric in first.items():
        found |= {plain(name): code for name in metric.printed_as if plain(name) not in own | {*found}}
    return found


def plain(name: str) -> str:
    """A name without case, ``-``, ``_`` and blanks."""
    return re.sub(r"[-_ ]", "", name).casefold()


def wanted(
    metrics: str | Sequence[str], ks, own: Mapping[str, Metric] | None = None
) -> list[tuple[Metric, np.ndarray]]:
    """What is asked for: metrics by name, each with its ks.

    Parameters
    ----------
    metrics : str or sequence of str
        ``"nDCG"`` at all of ``ks``; ``"nDCG@5"`` at 5, whatever ``ks`` are. Case and blanks matter; near misses are named.
    ks : int or sequence of int
    own : mapping of str to Metric, optional
        Further metrics; those that ``metrics`` does not name are asked for at all of ``ks``.

    Returns
    -------
    list of (Metric, ndarray of int64)
        In the order of ``metrics``; one that is asked for at several ks one by one stands once.

    Raises
    ------
    ArgumentError
        For an unknown metric, a k that is no whole number from 1, a metric asked for twice at a k, none.

    Examples
    --------
    >>> [(metric.name, at.tolist()) for metric, at in wanted(["P", "nDCG@5", "nDCG@10"], (1, 3))]
    [('P', [1, 3]), ('nDCG', [5, 10])]
    >>> wanted("NDCG@5", 1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    xcrepro.core.errors.ArgumentError: metrics must hold known names, one or more; got 'NDCG@5': did you mean 'nDCG@5'? known:
    P, ...
    """
    names, own = [metrics] if isinstance(metrics, str) else list(metrics), own or {}
    asked_for = {each.rpartition("@")[0] or each for each in names if isinstance(each, str)}
    names += [name for name in own if name not in asked_for]
    if not names:
        raise ArgumentError("metrics", "must hold known names, one or more", "none", f"known: {', '.join(METRICS)}")
    default = cut_offs(ks)
    asked: dict[str, list[int]] = {}
    for given in names:
        name, at, k = given.rpartition("@") if isinstance(given, str) else ("", "", "")
        name = name if at else given
        if not isinstance(name, str) or (name not in own and name not in METRICS and family(name) is None):
            raise ArgumentError(
                "metrics", "must hold known names, one or more", repr(given), _near(given, f"@{k}" if at else "")
            )
        if at and not re.fullmatch(r"[1-9]\d*", k):
            raise ArgumentError("metrics", "must name a k, 1 or more, behind the @", repr(given))
        for each in [int(k)] if at else default.tolist():
            if each in asked.setdefault(name, []):
                raise ArgumentError("metrics", f"must name {name}@{each} once", "it twice")
            asked[name].append(each)
    return [(own.get(name) or METRICS[name], np.array(at, np.int64)) for name, at in asked.items()]


def _near(given, behind: str) -> str:
    """The nearest metric, by the names that documents print too."""
    known = ", ".join([*METRICS, *(f"{name} (the number {rule})" for name, (_, rule, *_) in FAMILIES.items())])
    if not isinstance(given, str):
        return f"known: {known}"
    name = given.removesuffix(behind) if behind else given
    near = [f"did you mean {each + behind!r}?" for each in printed(name)[:1]]
    near = near or [did_you_mean(name.casefold(), {each.casefold(): each + behind for each in METRICS}, 1)]
    return f"{near[0]} known: {known}".strip()
