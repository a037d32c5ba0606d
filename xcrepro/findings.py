"""Sentences about numbers, made from the numbers and their errors: what notebooks and titles say of a run.

Three rules, in one place. A lead that chance explains is "no clear leader". An error from n runs, or from a jackknife of n
blocks, has Student's law with n - 1 degrees of freedom: two standard errors of five runs are a test at 11.6 %, not at 5.
Several comparisons of one claim are corrected together (Holm).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from xcrepro import distributions
from xcrepro.arguments import one_of
from xcrepro.errors import ArgumentError
from xcrepro.metrics.significance import holm, jackknife_blocks, jackknife_error, t_p_value, t_reach
from xcrepro.predictions import TopK

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05
"""A p-value below it is no longer chance, here."""
BLOCKS = 20
_ROUNDING = 1e-12
"""Of a number, what adding it up in another order may move."""
KINDS = ("blocks", "runs")


@dataclass(frozen=True)
class Difference:
    """How far one system is from another.

    Attributes
    ----------
    left, right : str
    value : float
        Left minus right.
    error : float
        Its standard error; NaN where it is not known.
    dof : int
        Degrees of freedom of Student's law.
    p : float
        Two-sided, corrected where several were asked for together; NaN where the error is not known.
    """

    left: str
    right: str
    value: float
    error: float
    dof: int
    p: float

    def interval(self, confidence: float = 1 - LEVEL) -> tuple[float, float]:
        """The ends of its two-sided interval by Student's law, for itself alone; NaN where the error is not known.

        >>> tuple(round(end, 2) for end in Difference("a", "b", 2.0, 0.5, 19, 0.001).interval())
        (0.95, 3.05)
        """
        reach = self.error * float(t_reach(confidence, self.dof)) if self.dof > 0 else np.nan
        return self.value - reach, self.value + reach

    @property
    def clear(self) -> bool:
        """Whether chance does not explain it (p below :data:`LEVEL`)."""
        return bool(self.p < LEVEL)

    @property
    def verdict(self) -> str:
        """``"above"``, ``"below"`` or ``"not clear"``."""
        return ("above" if self.value > 0 else "below") if self.clear else "not clear"


@dataclass(frozen=True)
class Measured:
    """One number of several systems, and replicates of it that say how far it may be off.

    Attributes
    ----------
    values : mapping of str to float
    replicates : mapping of str to ndarray, (n,)
        Of each system, taken together: the i-th of all systems has the same blocks left out, or the same seed. Two at
        least; with none (empty arrays) no error is known, and nothing is clear.
    kind : {"blocks", "runs"}
        Of a jackknife, each the number without one block of rows; or independent runs, of which ``values`` are the means.

    Examples
    --------
    >>> two = Measured.of_runs({"PLT": [61.0, 62.0, 63.0], "FastXML": [60.0, 61.5, 61.0]})
    >>> two.leader("P@1").text
    'no clear leader in P@1: PLT is 1.2 ± 0.4 points above FastXML, which chance explains'
    """

    values: Mapping[str, float]
    replicates: Mapping[str, np.ndarray]
    kind: str = "blocks"

    def __post_init__(self) -> None:
        one_of("kind", self.kind, KINDS)
        if set(self.values) != set(self.replicates):
            raise ArgumentError("replicates", f"must be of the systems {', '.join(self.values)}", list(self.replicates))
        sizes = {np.shape(part) for part in self.replicates.values()}
        if len(sizes) > 1 or any(len(size) != 1 or size[0] == 1 for size in sizes):
            raise ArgumentError("replicates", "must be as many for each system: none, or two at least", sorted(sizes))

    @classmethod
    def of_rows(cls, statistic: Callable, Y, tops: Mapping[str, TopK], blocks: int = BLOCKS) -> Measured:
        """A statistic of the test points, with a jackknife over blocks of consecutive rows.

        Parameters
        ----------
        statistic : callable
            ``statistic(Y, top)`` -> float, whatever it averages.
        Y : array or sparse matrix, shape (n, L)
        tops : mapping of str to TopK
        blocks : int
            2 or more; with fewer rows than two there is no error.

        Returns
        -------
        Measured
        """
        keeps = list(jackknife_blocks(Y.shape[0], blocks)) if Y.shape[0] >= 2 else []
        values = {name: float(statistic(Y, top)) for name, top in tops.items()}
        left = {
            name: np.array([statistic(Y[keep], top.rows(keep)) for keep in keeps], float) for name, top in tops.items()
        }
        return cls(values, left, "blocks")

    @classmethod
    def of_runs(cls, runs: Mapping[str, Sequence[float]]) -> Measured:
        """The means over runs.

        Parameters
        ----------
        runs : mapping of str to sequence of float
            A number a run, the i-th of all systems with the same seed. Of one run no error is known.

        Returns
        -------
        Measured
        """
        found = {name: np.asarray(values, float) for name, values in runs.items()}
        kept = {name: values if values.size > 1 else values[:0] for name, values in found.items()}
        return cls({name: float(values.mean()) for name, values in found.items()}, kept, "runs")

    def _error(self, replicates: np.ndarray) -> float:
        if replicates.size < 2:
            return np.nan
        if self.kind == "runs":
            return float(replicates.std(ddof=1) / np.sqrt(replicates.size))
        return float(jackknife_error(replicates))

    def error(self, name: str) -> float:
        """The standard error of one system's number; NaN where it is not known."""
        return self._error(np.asarray(self.replicates[name], float))

    def interval(self, name: str, confidence: float = 1 - LEVEL) -> tuple[float, float]:
        """The ends of one system's two-sided interval by Student's law; NaN where the error is not known."""
        dof = np.size(self.replicates[name]) - 1
        return Difference(name, "", self.values[name], self.error(name), dof, np.nan).interval(confidence)

    def difference(self, left: str, right: str) -> Difference:
        """Left minus right, with the error of the paired difference.

        Parameters
        ----------
        left, right : str

        Returns
        -------
        Difference
            Where no replicate differs its error is 0, and p is 1 where the difference is 0 as well, or so small that it comes
            from the order of a sum; such a difference is given as 0. Else it is 0 of a
            jackknife; of n independent runs, which may come to the same number of hits by chance, the sign test's
            2^(1 - n).
        """
        ours, theirs = (np.asarray(self.replicates[name], float) for name in (left, right))
        value, error, dof = self.values[left] - self.values[right], self._error(ours - theirs), ours.size - 1
        told = _ROUNDING * max(abs(self.values[left]), abs(self.values[right]))
        if error <= told:
            error = 0.0
            # A sum in another order moves both as much: what is left between them is no difference.
            value = 0.0 if abs(value) <= told else value
        if np.isnan(error) or np.isnan(value):
            p = np.nan
        elif error == 0:
            p = 1.0 if not value else 2.0 ** (1 - ours.size) if self.kind == "runs" else 0.0
        else:
            p = float(t_p_value(value / error, dof))
        return Difference(left, right, float(value), error, dof, p)

    def differences(self, pairs: Iterable[tuple[str, str]]) -> list[Difference]:
        """Several of one claim, corrected together (Holm); pairs with a system that is not there are left out.

        Parameters
        ----------
        pairs : iterable of (left, right)

        Returns
        -------
        list of Difference
        """
        return corrected(self.difference(left, right) for left, right in pairs if {left, right} <= self.values.keys())

    def pairs(self) -> list[Difference]:
        """Every system against every other, corrected together.

        Returns
        -------
        list of Difference
        """
        return self.differences(itertools.combinations(self.values, 2))

    def leader(self, what: str, better: str = "higher", unit: str = "points", decimals: int = 1) -> Leader:
        """Who leads, and whether the lead is more than chance: over each other system by itself.

        Parameters
        ----------
        what : str
            What the number is, for the sentence.
        better : {"higher", "lower"}
        unit : str
        decimals : int

        Returns
        -------
        Leader
        """
        sign = 1 if one_of("better", better, ("higher", "lower")) == "higher" else -1
        known = {name: value for name, value in self.values.items() if not np.isnan(value)}
        if not known:
            return Leader("", False, None, f"{what} is not known of any")
        best = max(known, key=lambda name: sign * known[name])
        others = [self.difference(best, name) for name in known if name != best]
        if not others:
            of_one = _plus_minus(known[best], self.error(best), decimals)
            return Leader(best, False, None, f"{what} of {best} alone: {of_one}{_of(unit)}")
        # A lead is clear where it is over each of the others: the one that is hardest to tell from the leader decides.
        nearest = max(others, key=lambda other: (np.isnan(other.p), other.p, -abs(other.value)))
        apart = _plus_minus(abs(nearest.value), nearest.error, decimals)
        where = ("above" if nearest.value > 0 else "below") if nearest.value else "away from"
        if nearest.clear:
            return Leader(best, True, nearest, f"{best} leads {what}, by {apart} {unit} over {nearest.right}")
        why = "which chance explains" if not np.isnan(nearest.p) else "with an error that is not known"
        text = f"no clear leader in {what}: {best} is {apart} {unit} {where} {nearest.right}, {why}"
        return Leader(best, False, nearest, text)


@dataclass(frozen=True)
class Leader:
    """Who leads.

    Attributes
    ----------
    name : str
        With the best number, whether its lead is clear or not; empty where no number is known.
    clear : bool
    nearest : Difference or None
        From the system that is hardest to tell from the leader; None where there is no other.
    text : str
    """

    name: str
    clear: bool
    nearest: Difference | None
    text: str

    @property
    def sentence(self) -> str:
        """The text as a sentence of its own; a name at its beginning, a model's or a metric's, keeps its letters."""
        named = self.clear or self.nearest is None
        return f"{self.text if named else self.text[0].upper() + self.text[1:]}."


def corrected(differences: Iterable[Difference]) -> list[Difference]:
    """The same with Holm's correction over all of them; those without an error stay without.

    Parameters
    ----------
    differences : iterable of Difference

    Returns
    -------
    list of Difference
    """
    found = list(differences)
    known = [i for i, one in enumerate(found) if not np.isnan(one.p)]
    for i, p in zip(known, holm([found[i].p for i in known]) if known else [], strict=True):
        found[i] = replace(found[i], p=float(p))
    return found


def count(differences: Sequence[Difference], claim: str) -> str:
    """How often a claim holds, as a sentence.

    Parameters
    ----------
    differences : sequence of Difference
        Each left minus right, the claim being that left is above; already corrected.
    claim : str
        Such as ``"PfastXML is above FastXML"``.

    Returns
    -------
    str

    Examples
    --------
    >>> one = Measured.of_runs({"a": [3.0, 3.1, 2.9], "b": [1.0, 1.2, 0.9]}).differences([("a", "b")])
    >>> count(one, "a is above b")
    'a is above b: clearly so in the one comparison'
    """
    if not differences:
        return f"{claim}: nothing here to compare"
    verdicts = [one.verdict for one in differences]
    above, below, unclear = (verdicts.count(name) for name in ("above", "below", "not clear"))
    if len(verdicts) == 1:
        said = {"above": "clearly so", "below": "clearly the other way round", "not clear": "not clear"}[verdicts[0]]
        return f"{claim}: {said} in the one comparison"
    if above == len(verdicts):
        return f"{claim}: clearly so in all {above} comparisons"
    parts = [f"clearly so in {above} of {len(verdicts)} comparisons"]
    parts += [f"clearly the other way round in {below}"] if below else []
    parts += [f"not clear in {unclear}"] if unclear else []
    return f"{claim}: {', '.join(parts)}"


def signed(value: float, decimals: int) -> str:
    """A number with its sign, and none where it is rounded to zero.

    Parameters
    ----------
    value : float
    decimals : int

    Returns
    -------
    str

    Examples
    --------
    >>> signed(1.26, 1), signed(-0.01, 1)
    ('+1.3', '0.0')
    """
    text = f"{value:+.{decimals}f}"
    return text if text.strip("+-0.") else text[1:]


def chance(p: float) -> str:
    """A p-value in words.

    >>> chance(0.00001), chance(0.0312), chance(float("nan"))
    ('p < 0.001', 'p = 0.03', 'p not known')
    """
    if np.isnan(p):
        return "p not known"
    return "p < 0.001" if p < 0.001 else f"p = {p:.1g}"


def agreement(
    differences: Iterable[Difference],
    recorded: Mapping[str, Mapping[str, float]],
    what: str,
    things: str = "pairs of models",
) -> str:
    """Whether recorded results on real data have the order that this run tells apart, as a sentence.

    Parameters
    ----------
    differences : iterable of Difference
        Of this run, corrected together. Those that are clear are looked at, and no others: where a run tells two apart by
        chance alone, real data can neither agree nor disagree.
    recorded : mapping of str to mapping
        Dataset -> left or right of ``differences`` -> the recorded number. They are taken as they are: of most no error is
        recorded.
    what : str
        What the numbers are.
    things : str
        What ``differences`` are, in the plural.

    Returns
    -------
    str
        Empty where nothing is recorded of what is compared. Equal recorded numbers are not in the same order.

    Examples
    --------
    >>> here = Measured.of_runs({"PLT": [61.0, 61.1, 60.9], "FastXML": [50.0, 50.2, 49.9]})
    >>> pairs = here.differences([("PLT", "FastXML")])
    >>> agreement(pairs, {"bibtex": {"PLT": 60.0, "FastXML": 64.0}}, "P@1")
    'Real data first, P@1: of the pairs of models that are clear in this run, recorded in the same order: on bibtex 0 of 1 \
(not PLT above FastXML).'
    """
    found = list(differences)
    held = {
        dataset: [one for one in found if not np.isnan(values.get(one.left, np.nan) - values.get(one.right, np.nan))]
        for dataset, values in recorded.items()
    }
    held = {dataset: here for dataset, here in held.items() if here}
    if not held:
        return ""
    said = []
    for dataset, here in held.items():
        if clear := [one for one in here if one.clear]:
            values = recorded[dataset]
            other = [one for one in clear if (values[one.left] - values[one.right]) * one.value <= 0]
            said.append(f"on {dataset} {len(clear) - len(other)} of {len(clear)}{_not(other)}")
    start = f"Real data first, {what}: "
    if not said:
        return f"{start}none of the {things} recorded on {_and(list(held))} is clear in this run."
    return f"{start}of the {things} that are clear in this run, recorded in the same order: {', '.join(said)}."


def numbers(tables: Mapping[str, pd.DataFrame], key: str, column: str) -> dict[str, dict[str, float]]:
    """A column of recorded tables, for :func:`agreement`.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Dataset -> table.
    key, column : str
        Of the names, and of the numbers.

    Returns
    -------
    dict of str to dict
        Dataset -> name -> number. Without tables that have no such column.
    """
    return {
        dataset: dict(zip(table[key], table[column], strict=True))
        for dataset, table in tables.items()
        if {key, column} <= set(table)
    }


def _not(differences: Sequence[Difference], most: int = 3) -> str:
    """Those that are in another order, the first few by name."""
    pairs = [(one.left, one.right) if one.value > 0 else (one.right, one.left) for one in differences]
    names = list(dict.fromkeys(f"{above} above {below}".replace(", ", " ") for above, below in pairs))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f" (not {', '.join(names[:most])}{more})" if names else ""


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def relation(x: Sequence[float], y: Sequence[float], what: str) -> str:
    """Whether two numbers rise together over a few points: Kendall's tau, with its exact p.

    Parameters
    ----------
    x, y : sequence of float
        NaN on either side leaves the point out.
    what : str
        Such as ``"ECE@5 and P@5"``.

    Returns
    -------
    str

    Examples
    --------
    >>> relation([1, 2, 3, 4, 5], [1, 2, 3, 5, 4], "ECE@5 and P@5")
    'ECE@5 and P@5: no clear relation (Kendall tau 0.80 over 5 points, p = 0.083)'
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    if x.size < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return f"{what}: too few different points for a relation ({x.size})"
    from scipy import stats  # only here: it takes a second to import

    tau, p = distributions.rounded(stats.kendalltau(x, y))
    found = f"(Kendall tau {tau:.2f} over {x.size} points, p = {p:.2g})"
    if p >= LEVEL:
        return f"{what}: no clear relation {found}"
    return f"{what} {'rise together' if tau > 0 else 'go in opposite directions'} {found}"


def _plus_minus(value: float, error: float, decimals: int) -> str:
    if np.isnan(error):
        return f"{value:.{decimals}f}"
    # A small difference keeps a digit of its error, so that it does not read 0.0 ± 0.0.
    if error > 0:
        decimals = max(decimals, min(4, -int(f"{error:.17e}".partition("e")[2])))
    return f"{value:.{decimals}f} ± {error:.{decimals}f}"


def _of(unit: str) -> str:
    return f" {unit}" if unit else ""
