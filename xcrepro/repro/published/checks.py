"""What must hold between the numbers of one row of results, whatever the method and the data.

Each check takes a :class:`Row` and yields the :class:`Fault` it can prove; its docstring derives it. A printed number
is the interval that rounds to it, so rounding never makes a fault. ``one`` is a perfect result, 1 or 100 (percent).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from xcrepro.core import arithmetic

TINY = 1e-9
RATES = ("P", "N", "PSP", "PSN", "R", "Cov", "Abandonment", "micro_F1", "macro_F1", "macro_P", "macro_R")
ERRORS = ("ECE", "ACE", "Brier")


@dataclass(frozen=True)
class Cell:
    """One printed number: its text and the interval that rounds to it, ends included."""

    printed: str
    low: float
    high: float
    tables: tuple[str, ...] = ()

    @classmethod
    def of(cls, printed: str, tables: tuple[str, ...] = ()) -> Cell:
        """The cell of a printed text; ValueError where it is no finite number."""
        low, high = rounding(printed)
        return cls(printed, low, high, tables)

    @property
    def value(self) -> float:
        return float(self.printed.replace(",", ""))

    def apart(self, other: Cell) -> bool:
        """Can the two numbers not be the same?"""
        return self.low > other.high + TINY or other.low > self.high + TINY


def rounding(printed: str) -> tuple[float, float]:
    """The interval that rounds to ``printed``: half a unit of its last digit on either side. Whole numbers are exact."""
    from decimal import Decimal

    try:
        number = Decimal(printed.strip().replace(",", ""))
        exponent = int(number.as_tuple().exponent) if number.is_finite() else 0
        half = Decimal(1).scaleb(exponent) / 2 if exponent < 0 else Decimal(0)
    except ArithmeticError:  # what is no number, and an exponent that decimal cannot hold
        raise ValueError(f"{printed!r} is not a number") from None
    if not (number.is_finite() and math.isfinite(float(number))):
        raise ValueError(f"{printed!r} is not finite")
    return float(number - half), float(number + half)


@dataclass
class Row:
    """The cells of one method on one dataset by (metric, k); k is 0 where a metric has none."""

    cells: dict[tuple[str, int], Cell]
    one: float = 100.0

    def ks(self, metric: str) -> list[int]:
        """Its k, ascending."""
        return sorted(k for name, k in self.cells if name == metric)

    def both(self, first: str, second: str) -> Iterator[tuple[int, Cell, Cell]]:
        """k and the two cells, where both are printed."""
        for k in self.ks(first):
            if (second, k) in self.cells:
                yield k, self.cells[first, k], self.cells[second, k]

    def text(self, value: float) -> str:
        """A bound as it is shown: with the digits of print."""
        return f"{value:.{2 if self.one > 1 else 4}f}"

    def span(self, low: float, high: float) -> str:
        return f"{self.text(low)} to {self.text(high)}"

    def fault(self, metric: str, k: int, expected: str, why: str) -> Fault:
        """A fault of one of its cells."""
        return Fault((metric, k), self.cells[metric, k].printed, expected, why)


@dataclass(frozen=True)
class Fault:
    """A cell that cannot be true beside the others of its row; ``rivals`` are cells that may be the wrong ones instead."""

    where: tuple[str, int]
    printed: str
    expected: str
    why: str
    check: str = ""
    rivals: tuple[tuple[str, int], ...] = ()

    @property
    def column(self) -> str:
        return column(*self.where)


Check = Callable[[Row], Iterator[Fault]]


def column(metric: str, k: int) -> str:
    """``"P@1"``, or the bare name of a metric without k."""
    return f"{metric}@{k}" if k else metric


def span(low: float, high: float, digits: int = 2) -> str:
    """``"50.14 to 53.07"``."""
    return f"{low:.{digits}f} to {high:.{digits}f}"


def first_place(row: Row) -> Iterator[Fault]:
    """N@1 = P@1, PSN@1 = PSP@1, and abandonment's complement at 1 = P@1.

    At k = 1 there is one place with discount 1/log2(2) = 1, and both normalisers (the sum up to k and the sum up to
    min(k, labels of the point)) are 1: the two averages are the same sum. The same holds for the propensity-scored
    pair, bare or as a ratio. The intervals must meet.
    """
    for name, same in (("N", "P"), ("PSN", "PSP"), ("Abandonment", "P")):
        a, b = row.cells.get((name, 1)), row.cells.get((same, 1))
        if a and b and a.apart(b):
            differ = row.text(abs(a.value - b.value))
            yield row.fault(name, 1, b.printed, f"{name}@1 and {same}@1 are the same average; they differ by {differ}.")


def hits_grow(row: Row) -> Iterator[Fault]:
    """k P@k, k Brier@k, R@k, coverage, abandonment's complement and macro-recall do not fall with k.

    k P@k is the mean number of correct predictions among the first k, and k Brier@k the summed squared error of the
    first k: a further place adds a term that is not negative. Recall, coverage, macro-recall and the share of points
    with a hit only gain from a further place, with the denominator fixed. Brier after a recalibration f_k fitted to
    the first k: k B_k(f_k) >= j B_j(f_k) >= j B_j(f_j) for j < k, because f_j has the least error of all monotone
    maps on the first j; so it holds too (in-sample; cross-fitting moves it by far less than what is reported).
    jain16's normalised coverage (``Cov_norm``) has a denominator that grows with k and is left out.
    """
    for name in ("P", "Brier", "R", "Cov", "Abandonment", "macro_R"):
        for j, k in itertools.pairwise(row.ks(name)):
            before, after = row.cells[name, j], row.cells[name, k]
            a, b, why = 1, 1, f"{name}@{k} = {after.printed} is below {name}@{j} = {before.printed}."
            if name in ("P", "Brier"):
                sums = f"{k * after.value:.2f} < {j} x {before.printed} = {j * before.value:.2f}"
                a, b, why = j, k, f"{k} x {after.printed} = {sums}."
            # Cross-fitting is no exact minimum, so recalibrated Brier scores get one percent of slack.
            slack = 0.01 * a * before.low if name == "Brier" else 0.0
            if b * after.high < a * before.low - slack - TINY:
                yield row.fault(name, k, f"at least {row.text(a * before.low / b)}", why)


def one_hit_a_place(row: Row) -> Iterator[Fault]:
    """k P@k - j P@j <= k - j: a place holds at most one hit, so the places j+1 to k add at most k - j."""
    for j, k in itertools.combinations([0, *row.ks("P")], 2):
        most = (j * row.cells["P", j].high if j else 0.0) + (k - j) * row.one
        if k * row.cells["P", k].low > most + TINY:
            why = f"The places {j + 1} to {k} would hold more than one hit each."
            yield row.fault("P", k, f"at most {row.text(most / k)}", why)


@functools.cache
def _kinds(
    scored: bool, constant: bool = False
) -> tuple[dict[tuple[str, int], np.ndarray], dict[tuple[str, int], np.ndarray]]:
    """Every kind of point up to five places, and what it adds to numerator and denominator of each metric at each k."""
    discount = 1 / arithmetic.log2(np.arange(2, 7))
    kinds = [
        (labels, carry, hits)
        for hits in itertools.product((0, 1), repeat=5)
        for carry in range(max(1, sum(hits)), 6)
        for labels in (range(carry, 6) if scored else (carry,))
        if labels == 5 or not constant
    ]
    labels, carry = (np.array([kind[i] for kind in kinds]) for i in (0, 1))
    hits = np.array([kind[2] for kind in kinds], dtype=float)
    gains = np.cumsum(discount)
    above, below = {}, {}
    for k in range(1, 6):
        norm = gains[np.minimum(labels, k) - 1]
        found, discounted = hits[:, :k].sum(axis=1), (hits[:, :k] * discount[:k]).sum(axis=1) / norm
        if scored:
            above["PSP", k], below["PSP", k] = found, np.minimum(carry, k).astype(float)
            above["PSN", k], below["PSN", k] = discounted, gains[np.minimum(carry, k) - 1] / norm
        else:
            above["P", k], below["P", k] = found, np.full(len(kinds), float(k))
            above["N", k], below["N", k] = discounted, np.ones(len(kinds))
    return above, below


def _mixtures(row: Row, given: list[tuple[str, int]], target: tuple[str, int] | None = None, constant: bool = False):
    """Whether a mixture of kinds of points prints ``given``; with a target, its least and greatest value there, or None."""
    ends = tuple((name, row.cells[name].low / row.one, row.cells[name].high / row.one) for name in given)
    found = _hull(ends, target, constant)
    return tuple(end * row.one for end in found) if isinstance(found, tuple) else found


@functools.lru_cache(maxsize=10_000)  # one row is asked about by several checks, and again when its dataset is
def _hull(given: tuple, target: tuple[str, int] | None, constant: bool) -> bool | tuple[float, float] | None:
    """:func:`_mixtures` of (name, low, high), as fractions."""
    from scipy.optimize import linprog

    above, below = _kinds(given[0][0][0] == "PSP", constant)
    # Limits of rounding, with a hair of room so that the solver's own tolerance finds no fault.
    room = 1e-7
    rules = [above[name] - (high + room) * below[name] for name, _, high in given]
    rules += [(low - room) * below[name] - above[name] for name, low, _ in given]
    unit = below[target or given[0][0]]
    rest = {"A_ub": np.array(rules), "b_ub": np.zeros(len(rules)), "A_eq": unit[None, :], "b_eq": [1.0]}
    if target is None:
        return linprog(np.zeros(len(unit)), **rest).status != 2
    ends = [linprog(sign * above[target], **rest) for sign in (1, -1)]
    if any(end.status != 0 for end in ends):
        return None
    return ends[0].fun, -ends[1].fun


def _discounted(row: Row, plain: str, discounted: str) -> Iterator[Fault]:
    given = [(plain, k) for k in row.ks(plain) if k <= 5]
    asked = [(discounted, k) for k in row.ks(discounted) if 1 < k <= 5]
    if not given or not asked or _mixtures(row, given + asked):
        return
    bounds = {name: _mixtures(row, given, name) for name in asked}
    if None in bounds.values():  # the plain ones contradict each other; another check says so
        return
    said = ", ".join(f"{column(*name)} = {row.cells[name].printed}" for name in given)
    alone = False
    for name, (low, high) in bounds.items():
        if row.cells[name].low > high + 1e-6 or row.cells[name].high < low - 1e-6:
            alone, limits = True, row.span(low, high)
            why = f"With {said}, {column(*name)} lies in {limits}, whichever normaliser is used."
            yield row.fault(*name, limits, why)
    *others, name = asked
    if not alone and (ends := _mixtures(row, given + others, name)):
        first, limits = " and ".join(f"{column(*a)} = {row.cells[a].printed}" for a in others), row.span(*ends)
        why = f"Each is possible alone, not both; with {first}, {column(*name)} lies in {limits}, whichever"
        fault = row.fault(*name, limits, f"{why} normaliser is used. One of them is wrong.")
        yield replace(fault, rivals=tuple(others))


def discounted_bounds(row: Row, target: tuple[str, int], beside: list[tuple[str, int]]) -> tuple[float, float] | None:
    """The least and greatest N@k or PSN@k, k <= 5, that the row's P or PSP and the cells ``beside`` it leave, or None."""
    plain = {"N": "P", "PSN": "PSP"}[target[0]]
    return _mixtures(row, [(plain, k) for k in row.ks(plain) if k <= 5] + beside, target)


def ndcg_bounds(row: Row) -> Iterator[Fault]:
    """nDCG@k within the sharp bounds that P@1, P@3, P@5 (whichever are printed, k <= 5) leave, both normalisers.

    A point is one of finitely many kinds: how many labels it has (1, 2, 3, 4, five or more) and which of its first five
    places are hits (at most as many as labels). P@k and N@k of a kind are fixed numbers, those of a dataset are their
    average, weighted with the share of each kind: what a table can print is the convex hull of the kinds, and whether a
    printed row, within its rounding, lies in it is a linear programme. Its least and greatest N@k are attained by a
    mixture, so no sharper bounds follow from these numbers. The hull is for the normaliser of min(k, labels); with the
    sum up to k for every point, all points count as having five labels or more, which is one of the mixtures: a row
    outside is impossible under either. A point without labels counts 0 in every place, as a point without hits does.
    """
    yield from _discounted(row, "P", "N")


def psndcg_bounds(row: Row) -> Iterator[Fault]:
    """PSN@k within the sharp bounds that PSP@1, PSP@3, PSP@5 leave (ratios to the best reachable), both normalisers.

    PSP@k is a ratio of two sums over points: the weights of the hits, and the k largest weights of the point's labels;
    PSN@k likewise, discounted and divided by the point's normaliser above and below. All four are linear in the sorted
    weights of a point, and sorted weights are a cone whose edges are "the first c labels weigh the same, the rest
    nothing". So every table is a mixture, with free masses, of finitely many kinds: labels of the point (which set its
    normaliser), labels that carry weight (at most as many), places of the weighty hits. A ratio within an interval is
    linear in the masses, hence a linear programme as in :func:`ndcg_bounds`, and its bounds are sharp over all
    weights; real propensities can only be narrower. A sum up to k for every point is the case of five labels or more.
    """
    yield from _discounted(row, "PSP", "PSN")


def abandonment(row: Row) -> Iterator[Fault]:
    """P@k <= share of points with a hit in the first k <= k P@k.

    A point with h hits adds h/k <= [h > 0] <= h.
    """
    for k, share, precision in row.both("Abandonment", "P"):
        low, high = precision.low, min(row.one, k * precision.high)
        if share.high < low - TINY or share.low > high + TINY:
            why = f"The share of points with a hit lies between P@{k} and {k} P@{k}."
            yield row.fault("Abandonment", k, row.span(low, high), why)


def implied_average(precision: Cell, f1: Cell, k: int) -> tuple[float, float]:
    """The average number of labels per point that P@k and micro-F1@k imply: F1 = 2 k P / (k + avg), solved for avg."""
    return 2 * k * precision.low / f1.high - k, 2 * k * precision.high / f1.low - k


def implied_f1(precision: Cell, average: tuple[float, float], k: int) -> tuple[float, float]:
    """The other way round: the micro-F1@k that P@k and an average number of labels a point imply; below 0 none can be."""
    fewest, most = (max(end, 0.0) for end in average)
    return 2 * k * precision.low / (k + most), 2 * k * precision.high / (k + fewest)


def shared(intervals: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """What intervals have in common; where they have nothing, the first number is above the second."""
    lows, highs = zip((-np.inf, np.inf), *intervals, strict=True)
    return max(lows), min(highs)


def micro_f1(row: Row) -> Iterator[Fault]:
    """micro-F1@k = 2 k P@k / (k + average labels): all k of a row must imply the same average.

    See :func:`implied_average`. It takes for granted that every point has k predictions.
    """
    found = {k: implied_average(p, f1, k) for k, f1, p in row.both("micro_F1", "P") if f1.low > 0}
    low, high = shared(found.values())
    if low <= high + TINY:
        return
    middle = float(np.median([sum(ends) / 2 for ends in found.values()]))
    k = max(found, key=lambda k: abs(sum(found[k]) / 2 - middle))
    others = shared(ends for other, ends in found.items() if other != k)
    implied = "; ".join(f"k = {k}: {span(*ends, 3)}" for k, ends in found.items())
    why = f"If every point has k predictions, the k of this row imply different averages of labels a point: {implied}."
    yield row.fault("micro_F1", k, row.span(*implied_f1(row.cells["P", k], others, k)), why)


def average_labels(row: Row) -> Iterator[Fault]:
    """P@k <= average labels / k: hits are at most the labels there are.

    The average is that of the points scored, not of train or of all points.
    """
    average = row.cells.get(("avg_labels", 0))
    for k in row.ks("P") if average else ():
        if row.cells["P", k].low / row.one > average.high / k + TINY:
            why = f"{k} P@{k} is more than the {average.printed} labels of an average point."
            yield row.fault("P", k, f"at most {row.text(row.one * average.high / k)}", why)


def macro(row: Row) -> Iterator[Fault]:
    """Macro-recall <= coverage, macro-precision <= coverage, macro-F1 <= 2 P R / (P + R) of the macro-averages.

    A label counts for coverage when it has a hit; its precision and recall are 0 without one and at most 1 with one.
    The F1 of a label is the harmonic mean of its P and R, which is concave in the pair, so by Jensen's inequality the
    average F1 is at most the harmonic mean of the averages. All are averages over the same labels.
    """
    for name in ("macro_R", "macro_P", "macro_F1"):
        for k, cell, coverage in row.both(name, "Cov"):
            if cell.low > coverage.high + TINY:
                why = f"{name}@{k} is above Cov@{k} = {coverage.printed}."
                yield row.fault(name, k, f"at most {row.text(coverage.high)}", why)
    for k, f1, precision in row.both("macro_F1", "macro_P"):
        recall = row.cells.get(("macro_R", k))
        if recall and precision.high + recall.high > 0:
            most = 2 * precision.high * recall.high / (precision.high + recall.high)
            if f1.low > most + TINY:
                given = f"macro_P@{k} = {precision.printed} and macro_R@{k} = {recall.printed}"
                yield row.fault("macro_F1", k, f"at most {row.text(most)}", f"{given} leave at most {most:.2f}.")


def brier_and_error(row: Row) -> Iterator[Fault]:
    """Brier@k >= ECE@k^2 and >= ACE@k^2 (all as fractions), whatever the bins.

    Within a bin the mean of (confidence - hit)^2 is at least the square of its mean gap, and the weighted mean of the
    squared gaps is at least the square of the weighted mean of their sizes, which is the calibration error.
    """
    for name in ("ECE", "ACE"):
        for k, error, brier in row.both(name, "Brier"):
            least = error.low**2 / row.one
            if brier.high < least - TINY:
                square = f"({error.printed} %)^2 = {error.value**2 / row.one:.2f}" if row.one > 1 else "its square"
                why = f"{name}@{k} = {error.printed} alone costs {square} of Brier score: the two cells cannot both stand."
                yield row.fault("Brier", k, f"at least {row.text(least)}", why)


def possible(row: Row) -> Iterator[Fault]:
    """Every rate lies between 0 and 1 (100 %), and an average number of labels is not below 0.

    P, R, coverage, abandonment and Brier are means of shares; F1, nDCG, PSP and PSnDCG are shares of the best there can be (PSP
    in its published form, a ratio); calibration errors are means of differences of two shares.
    """
    for (name, k), cell in row.cells.items():
        if name not in (*RATES, *ERRORS, "avg_labels"):
            continue  # a time or a size
        most = math.inf if name == "avg_labels" else row.one
        if cell.low > most + TINY or cell.high < -TINY:
            bound = "at least 0" if most == math.inf else row.span(0.0, most)
            yield row.fault(name, k, bound, f"{column(name, k)} is a share, or a mean of shares, of what there is.")


IDENTITIES: dict[str, Check] = {
    check.__name__: check
    for check in (possible, first_place, hits_grow, one_hit_a_place, ndcg_bounds, psndcg_bounds, abandonment, micro_f1,
                  average_labels, macro, brier_and_error)
}  # fmt: skip
"""The checks of one row, by name; what ``xcrepro audit`` runs on anybody's results."""


def faults(row: Row) -> list[Fault]:
    """Everything the identities find in a row."""
    return [replace(fault, check=name) for name, check in IDENTITIES.items() for fault in check(row)]
