"""Signs that predictions and truth do not belong together as they are.

Every number in :mod:`xcrepro.core.metrics` is right for what it was given. Given rows in another order, label ids from 1, or
the training points, it is right and worthless, and nothing stops it. :func:`check` looks for what such faults leave behind and
says it; it refuses nothing, for a bad model is no error.

**What is compared.** A row's hits are the relevant labels among its first places, five at most. A fault that can be undone is
found by undoing it: were the rows one further on, or the ids one lower, would more rows gain a hit than lose one? Under the
hypothesis that the other reading is no better, each row that changes is as likely to lose as to gain, so the number that gain
has a binomial law (the sign test), exactly, whatever the metric's distribution. A finding needs a p-value below
:data:`LEVEL`, one in a million, for each comparison, of which there are a few dozen, **and** half as many hits again
(:data:`GAIN`), so that a difference that is sure but slight is no finding.

**What no reading mends** (rows shuffled, labels renumbered) is found by its effect: the hits are no more than when the same
predictions are dealt out to the rows at random. Here a finding is the *absence* of a difference, so it asks for enough
rows, with predictions that differ enough, to have shown one. Few rows have no sign test below :data:`LEVEL`, so another order
of the rows is also held against such deals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from xcrepro.core import distributions
from xcrepro.core.data import registry as registry_of_data
from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics import registry
from xcrepro.core.metrics.calibration import is_order
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth, as_truth
from xcrepro.repro.inputs.fingerprints import recognise

LEVEL = 1e-6
"""The chance that one comparison gives an alarm where there is nothing."""
GAIN = 1.5
"""How many times as many hits another reading must have."""
PLACES = 5
DEALS = 30
"""How often predictions are dealt out to other rows at random."""
MOST_DEALT = 20_000
"""Rows that are dealt out, at most."""
ENOUGH = 50
"""Rows, relevant pairs, and places at which rows differ, at least, before missing information is a finding."""
FEW = 400
"""Rows of which the first places are looked at by themselves, too: chance hits them least."""
STRETCH = 1e-4
"""The chance that so many rows without predictions stand in a row by accident, from which on they are named."""
STEPS = (-3, -2, -1, 1, 2, 3)
"""Rows by which predictions may have slipped."""


@dataclass(frozen=True)
class Finding:
    """Something that does not fit.

    Attributes
    ----------
    kind : str
        One of :data:`KINDS`.
    message : str
        What was seen, with the numbers; the likely cause; what to do.
    evidence : dict
        The numbers.
    """

    kind: str
    message: str
    evidence: dict = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


KINDS = {
    "exchanged": "the truth is where the predictions should be, and the predictions are where the truth should be",
    "truth as predictions": "the predictions are the truth itself",
    "shape": "predictions and truth are of different sizes",
    "transposed": "rows and columns are exchanged",
    "rows without predictions": "a whole stretch of rows has none: a file that was cut off, a batch that was lost",
    "rows moved": "the predictions fit other rows, by a rule that was found",
    "labels renumbered": "the predictions fit other label ids, by a rule that was found",
    "no information": "the predictions know nothing of their rows: shuffled rows, permuted labels, a model that "
    "learned nothing",
    "below popularity": "naming the most frequent labels for every row is better",
    "training points": "the predictions are for points of the train split",
    "training truth": "the truth is the train split's",
    "filter pairs": "pairs that may not be predicted are among the predictions",
    "no filter": "the truth is of a dataset whose printed results leave pairs out, and none were left out",
    "repeated rows": "a stretch of predictions is there twice",
    "reversed order": "hits are in the last places",
    "constant scores": "all labels of a row have the same score",
    "no probabilities": "the scores are ranks, log-odds or something else, where probabilities are needed",
    "points of both splits": "test points whose features or words a train point has (first_look)",
    "labels unseen in training": "relevant labels without a training point (first_look)",
    "names in texts": "relevant labels whose names are in the text (first_look)",
}
"""Kind -> what it means."""


def check(
    Y,
    top: TopK,
    *,
    Y_train=None,
    exclude=None,
    metrics: str | Sequence[str] | None = None,
    name: str = "these predictions",
) -> list[Finding]:
    """Look for signs that predictions and truth do not belong together. Nothing is refused but what is no truth and no TopK.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L), or Truth
    top : TopK
        It may have other numbers of rows and labels: that is a finding.
    Y_train : sparse matrix or array_like, shape (N, L), optional
        The train split's truth. Without it, predictions for train points, a truth that is the train split's, and labels
        numbered anew by those that occur in train go unnoticed (but for known datasets).
    exclude : tuple of (rows, labels), optional
        Pairs that may not be predicted (:func:`xcrepro.core.data.splits.read_filter`).
    metrics : str or sequence of str, optional
        What is to be computed, as :func:`xcrepro.evaluate` takes it: whether scores must be probabilities depends on it.
    name : str
        What messages call the predictions.

    Returns
    -------
    list of Finding
        The gravest first; empty where nothing was found. Rows without labels are no finding, nor are rows without predictions
        that lie scattered among the others.

    Raises
    ------
    ArgumentError
        For a ``Y`` that is no truth, a ``top`` that is no TopK, an unknown metric.

    Examples
    --------
    >>> import xcrepro as xc
    >>> ds = xc.twin("bibtex", scale=0.1)
    >>> top = TopK.from_scores(ds.test.observed_marginals, k=5)
    >>> check(ds.test.Y, top)
    []
    >>> found = check(ds.test.Y, TopK.from_ids(np.roll(top.ids, 1, axis=0), n_labels=top.n_labels))
    >>> [(finding.kind, finding.evidence["step"]) for finding in found]
    [('rows moved', -1)]
    """
    if not isinstance(top, TopK):
        raise ArgumentError(
            "top", "must be a TopK", type(top).__name__, "TopK.from_scores, from_ids, from_pairs make one"
        )
    case = _Case(as_truth(Y), top, None if Y_train is None else as_truth(Y_train, "Y_train"), name)
    found = [_training_truth(case), _exchanged(case), *_shape(case)]
    if case.rows_fit:
        first = replace(case, top=top.head(1)) if case.n <= FEW and case.k > 1 else None
        moved = _rows_moved(case) or (first and _rows_moved(first))
        moved = moved or _training_points(case) or _labels_renumbered(case) or _transposed_square(case)
        found += [_rows_without(case)]
        found += [moved or _no_information(case) or _below_popularity(case), _repeated(case), _reversed(case)]
    found += [_filter_pairs(case, exclude), _constant(case), _no_probabilities(case, metrics)]
    return [finding for finding in found if finding is not None]


# ---------------------------------------------------------------------- what is compared


@dataclass(eq=False)
class _Case:
    """Truth and predictions, and how many hits each row has, as they are and under other readings."""

    truth: Truth
    top: TopK
    train: Truth | None
    name: str

    @cached_property
    def ids(self) -> np.ndarray:
        deepest = int((self.top.ids[:, :PLACES] >= 0).sum(axis=1).max(initial=0))
        return np.ascontiguousarray(self.top.ids[:, : max(deepest, min(self.top.k, 1))])

    @property
    def n(self) -> int:
        return self.truth.n_rows

    @property
    def k(self) -> int:
        return self.ids.shape[1]

    @property
    def rows_fit(self) -> bool:
        return self.n == len(self.top) and self.n > 0 and self.k > 0

    @cached_property
    def hits(self) -> np.ndarray:
        """(n,) hits of each row as it stands."""
        return self.hits_of(self.ids)

    def hits_of(self, ids: np.ndarray, truth: Truth | None = None) -> np.ndarray:
        truth = self.truth if truth is None else truth
        inside = np.where(ids < truth.n_labels, ids, -1)
        order = np.argsort(inside < 0, axis=1, kind="stable")  # behind an absent place a row has none
        return truth.hits(np.take_along_axis(inside, order, axis=1).astype(np.int32)).sum(axis=1)

    def rate(self, hits: np.ndarray) -> float:
        """P@k of hits a row."""
        return float(hits.sum()) / max(hits.size * self.k, 1)

    @cached_property
    def dealt(self) -> tuple[float, float]:
        """Mean and standard deviation of P@k over deals of the predictions to :data:`MOST_DEALT` rows at most, at random."""
        rng = np.random.default_rng(0)
        rows = np.sort(rng.choice(self.n, MOST_DEALT, replace=False)) if self.n > MOST_DEALT else np.arange(self.n)
        rates = []
        for _ in range(DEALS):
            ids = np.full_like(self.ids, -1)
            ids[rows] = self.ids[rng.permutation(rows)]
            rates.append(self.rate(self.hits_of(ids)[rows]))
        return float(np.mean(rates)), float(np.std(rates, ddof=1))

    @cached_property
    def popular(self) -> np.ndarray:
        """(n,) hits of each row had it the most frequent labels: of train, or of the other half of these rows."""
        if self.train is not None and self.train.n_labels == self.truth.n_labels:
            best = np.argsort(-self.train.label_counts(), kind="stable")[: self.k]
            return self.hits_of(np.tile(best, (self.n, 1)))
        ids = np.full((self.n, self.k), -1)
        rows = np.repeat(np.arange(self.n), self.truth.sizes)
        for half in (0, 1):
            counts = np.bincount(self.truth.indices[rows % 2 != half], minlength=self.truth.n_labels)
            best = np.argsort(-counts, kind="stable")[: self.k]
            ids[half::2, : best.size] = best
        return self.hits_of(ids)

    def is_better(self, other: np.ndarray) -> bool:
        """Whether another reading of the rows is better than this one, and than chance, which any reading may be above that is
        below it; by more than rows that gain or lose may, or in more rows than have a hit when they are dealt out."""
        chance = self.dealt[0]
        if other.sum() <= GAIN * self.hits.sum() or self.rate(other) <= GAIN * chance:
            return False
        hit, most = int((other > 0).sum()), min(self.k * chance + 1.0 / self.n, 1.0)  # one row more than was seen
        return _p_better(other, self.hits) < LEVEL or distributions.beta(hit, self.n - hit + 1, most) < LEVEL

    def better_so(
        self, kind: str, what: str, other: np.ndarray, so: str, do: str, key: str, first=0, **about
    ) -> Finding:
        """What to say of another reading of the rows from ``first`` on, which has more hits; ``key`` calls its P@k."""
        now, then = self.rate(self.hits[first:]), self.rate(other[first:])
        text = f"{what}: P@{self.k} {_percent(now)} as they are, {_percent(then)} {so}. {do}"
        return Finding(kind, text, {**about, "given": now, key: then})


def _p_better(other: np.ndarray, given: np.ndarray) -> float:
    """The sign test's p-value that ``other`` has no more hits, row by row."""
    up, down = int((other > given).sum()), int((other < given).sum())
    return distributions.beta(up, down + 1, 0.5) if up else 1.0


def _is_better(other: np.ndarray, given: np.ndarray, comparisons: int = 1) -> bool:
    return other.sum() > GAIN * given.sum() and _p_better(other, given) < LEVEL / comparisons


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def _as_text(n: int) -> np.ndarray:
    """Whole numbers in the order of their texts: 0, 1, 10, 11, 2, ..."""
    return np.argsort(np.arange(n).astype(str), kind="stable")


# ---------------------------------------------------------------------- sizes


def _exchanged(case: _Case) -> Finding | None:
    """Labels without scores, as many in each row as there happen to be, where predictions are to be."""
    depth, scores = (case.top.ids >= 0).sum(axis=1), case.top.scores[case.top.ids >= 0]
    ragged = depth.max(initial=0) > 1 and np.unique(depth).size > 1
    if not (ragged and case.rows_fit and case.n >= 10 and (scores == scores[0]).all()):
        return None
    sizes = np.minimum(case.truth.sizes, case.top.k)
    if (case.hits_of(case.top.ids) == depth).all() and (sizes == depth).all():
        text = f"{case.name} are the truth itself, label for label: hand over what a model predicted"
        return Finding("truth as predictions", text, {"rows": case.n})
    if np.unique(case.truth.sizes).size == 1 and case.truth.sizes[0] > 1:
        n = int(case.truth.sizes[0])
        text = (
            f"every row of the truth has {n:,} labels, as the best of a model have, and {case.name} have one score for all and "
            "another number of labels in each row, as a truth has: were the two exchanged?"
        )
        return Finding("exchanged", text, {"labels": n})
    return None


def _shape(case: _Case) -> Iterable[Finding]:
    n, n_labels = case.n, case.truth.n_labels
    rows, columns = len(case.top), case.top.n_labels
    evidence = {"truth": (n, n_labels), "predictions": (rows, columns)}
    if (rows, columns) == (n_labels, n) and n != n_labels:
        text = (
            f"{case.name} are for {rows:,} points and {columns:,} labels, the truth has {n:,} points and {n_labels:,} "
            f"labels: the score matrix is transposed. Hand over scores.T"
        )
        yield Finding("transposed", text, evidence)
        return
    if rows != n:
        cause = f"they stop after {rows:,} points, or the truth is another split's"
        if case.train is not None and rows == case.train.n_rows:
            cause = "that is the size of the train split: predict the test points"
        elif abs(rows - n) <= max(STEPS):
            cause = _where_rows_are_missing(case, evidence)
        yield Finding("shape", f"{case.name} have {rows:,} rows, the truth has {n:,}: {cause}", evidence)
    if columns != n_labels:
        cause = "they are over another set of labels"
        if columns == n_labels + 1:
            cause = "one more: are label ids counted from 1?"
        elif case.train is not None and columns == np.count_nonzero(case.train.label_counts()):
            cause = "as many as occur in the train split: labels were numbered anew there; map them back"
        text = f"{case.name} are over {columns:,} labels, the truth over {n_labels:,}: {cause}"
        yield Finding("shape", text, evidence)


def _where_rows_are_missing(case: _Case, evidence: dict) -> str:
    """A few rows more or fewer: where do they fall out?"""
    rows, n = len(case.top), case.n
    if rows > n and (cause := _of_a_sampler(case, evidence)):
        return cause
    step = n - rows  # of the truth's row, for the same prediction, behind the gap
    ids = np.full((max(rows, n), case.k), -1, np.int32)
    ids[:rows] = case.ids
    first, better = _from_row(*(case.hits_of(part[:n]) for part in (ids, _stepped(ids, step))))
    if not better:
        few = "a few rows too many" if rows > n else "a few rows are missing"
        return f"{few}, nobody knows where"
    evidence |= {"first_row": first, "step": step}
    lacking = "the predictions lack" if step > 0 else "the truth lacks"
    return (
        f"up to row {first} or so they fit, from there on prediction i belongs to row i {step:+}: "
        f"{lacking} about row {first} (a blank line that was skipped?)"
    )


PARTS = range(2, 17)
"""How many processes may have predicted, each its share of the rows."""


def _interleaved(rows: int, parts: int) -> np.ndarray:
    """For each place the row that is there, where rows 0, parts, 2 parts, ... come first, then 1, parts + 1, ..."""
    return np.concatenate([np.arange(part, rows, parts) for part in range(parts)])


def _gathered(parts: int) -> str:
    return (
        f"come in {parts} interleaved parts (0, {parts}, {2 * parts}, ...; 1, {parts + 1}, ...), as {parts} processes "
        "gather them"
    )


def _of_a_sampler(case: _Case, evidence: dict) -> str:
    """Rows that a sampler repeated to fill its last round, behind the others or gathered process by process."""
    rows, more, found = len(case.top), len(case.top) - case.n, {}
    whole = np.column_stack([case.top.ids[:, : case.k], case.top.scores[:, : case.k].view(np.int32)])
    for parts in (1, *(parts for parts in PARTS if rows % parts == 0)):
        back = np.argsort(_interleaved(rows, parts), kind="stable")
        if np.array_equal(whole[back[-more:]], whole[back[:more]]):
            found[parts] = int(case.hits_of(case.ids[back[: case.n]]).sum())
    if not found:
        return ""
    parts = max(found, key=found.__getitem__)  # the fewest of equal ones
    evidence |= {"more": more, "parts": parts}
    again = (
        f"the last {more} are the first {more} once more, as a sampler repeats rows to fill its last round: cut them"
    )
    return f"too many; they {_gathered(parts)}: put them in order, then {again}" if parts > 1 else f"too many; {again}"


# ---------------------------------------------------------------------- rows


def _stepped(ids: np.ndarray, step: int) -> np.ndarray:
    """The ids with row i's at row i + step; rows that get none have none."""
    moved = np.full_like(ids, -1)
    if step > 0:
        moved[step:] = ids[:-step]
    else:
        moved[:step] = ids[-step:]
    return moved


def _from_row(given: np.ndarray, other: np.ndarray) -> tuple[int, bool]:
    """The row from which on the other reading has most to gain, and whether it is better there, beyond chance."""
    gain = np.cumsum((other - given)[::-1])[::-1]
    first = int(np.argmax(gain))
    return first, _is_better(other[first:], given[first:], comparisons=given.size * len(STEPS))


def _rows_without(case: _Case) -> Finding | None:
    """More rows without predictions one after another than chance leaves among as many: in their order, or in that of text."""
    empty = (case.top.ids < 0).all(axis=1)
    lacking = int(empty.sum())
    if lacking in (0, case.n):
        return None

    def chance(length: int) -> float:
        places = np.arange(length)
        return float(np.prod((lacking - places) / (case.n - places))) if length > 1 else 1.0

    ends = np.flatnonzero(np.diff(np.concatenate([[False], empty, [False]])))
    starts, ends = ends[::2], ends[1::2]
    longest = int(np.argmax(ends - starts))
    first, last = int(starts[longest]), int(ends[longest]) - 1
    tails = [int(np.argmin(order[::-1])) for order in (empty, empty[_as_text(case.n)])]
    found = [
        (tails[0], chance(tails[0]), f"the last {tails[0]:,} in a row", "The file was probably cut off"),
        (last - first + 1, case.n * chance(last - first + 1), f"rows {first:,} to {last:,} in a row", "A batch was "
         "probably lost"),
        (tails[1], chance(tails[1]), f"the last {tails[1]:,} where row numbers are sorted as text (0, 1, 10, ...)",
         "A file in that order was probably cut off"),
    ]  # fmt: skip
    # The longest stretch says most, the plainest of equal ones.
    _, p, which, cause = max(found, key=lambda one: one[0])
    if p >= STRETCH:
        return None
    text = (
        f"{lacking:,} of {case.n:,} rows have no prediction, {which}. {cause}; every such row counts as a miss. Predict them "
        "too, or leave them out of the truth"
    )
    return Finding("rows without predictions", text, {"rows": lacking, "of": case.n, "which": which})


def _rows_moved(case: _Case) -> Finding | None:
    found = []
    for step in STEPS if case.n > max(STEPS) else ():
        other = case.hits_of(_stepped(case.ids, step))
        first, better = _from_row(case.hits, other)
        if better and case.rate(other[first:]) > GAIN * case.dealt[0]:
            found.append((int(case.hits[:first].sum() + other[first:].sum()), step, first, other))
    if found:
        _, step, first, other = max(found, key=lambda one: one[0])
        where = "all rows" if first <= 2 * abs(step) + 2 else f"all rows from about {first:,} on"
        where += f" fit the truth {abs(step)} row{'s' * (abs(step) > 1)} {'further on' if step > 0 else 'before'}"
        cause = (
            "A header that was taken for a row, or one that was lost"
            if first <= 8
            else "A row that one side has and the other has not: a blank line skipped, a point without features"
        )
        do = f"{cause}. Line the two up again"
        return case.better_so("rows moved", where, other, "so", do, "moved", first, step=step, first_row=first)
    for key, words, order in _orders(case.n):
        other = case.hits_of(np.where(order[:, None] < 0, -1, case.ids[order]))
        if case.is_better(other):
            what, do = f"{case.name} {words}", "Sort them by the row's number"
            return case.better_so("rows moved", what, other, "put in order", do, "moved", step=key, first_row=0)
    return None


def _orders(n: int) -> Iterable[tuple[str, str, np.ndarray]]:
    """(key, words, for each row the place where its prediction may be, -1: nowhere)."""
    for parts in PARTS if n > 16 else ():
        rows = _interleaved(-(-n // parts) * parts, parts)[:n]
        order = np.full(n, -1)
        order[rows[rows < n]] = np.flatnonzero(rows < n)
        yield f"{parts} parts", _gathered(parts), order
    as_text = _as_text(n)
    yield "reversed", "are in reverse order", np.arange(n)[::-1]
    words = "are sorted by their numbers as text (0, 1, 10, 100, ...), as file names are"
    yield "text order", words, np.argsort(as_text)
    yield "truth in text order", "are where the truth is sorted by row numbers as text (0, 1, 10, 100, ...)", as_text


def _training_points(case: _Case) -> Finding | None:
    if case.train is None or case.train.n_rows < case.n or case.train.n_rows == 0:
        return None
    other = case.hits_of(case.ids, Truth(case.train.indptr[: case.n + 1], case.train.indices, case.train.n_labels))
    if not _is_better(other, case.hits):
        return None
    what = (
        f"{case.name} fit the first {case.n:,} points of the train split, for which they were made, and not the truth's"
    )
    return case.better_so("training points", what, other, "there", "Predict the test points", "train")


def _training_truth(case: _Case) -> Finding | None:
    train, text = case.train, ""
    if train is not None and case.n and train.n_labels == case.truth.n_labels:
        rows = min(case.n, train.n_rows)
        ends, other = case.truth.indptr[: rows + 1], train.indptr[: rows + 1]
        same = np.array_equal(ends, other) and np.array_equal(
            case.truth.indices[: ends[-1]], train.indices[: other[-1]]
        )
        if same and ends[-1] > 0:
            text = f"the first {rows:,} rows of the truth are those of the train split, label for label"
    if not text:
        known = recognise(case.truth, twins=False)
        text = f"the truth is {known.text}" if known.part == "train" and known.match in ("exact", "other order") else ""
    if not text:
        return None
    return Finding("training truth", f"{text}: what is measured is memory. Take the test split's labels", {})


# ---------------------------------------------------------------------- labels


def _renumberings(case: _Case) -> Iterable[tuple[str, str, np.ndarray]]:
    """(key, words, for each id the one that it should be, -1: none)."""
    splits = {"test": case.truth} if case.train is None else {"train": case.train, "test": case.truth}
    n_labels = max(case.top.n_labels, *(truth.n_labels for truth in splits.values()))
    ids, as_text = np.arange(n_labels), _as_text(n_labels)
    yield "-1", "counted from 1, and the truth's from 0", ids - 1
    yield "+1", "one too low", ids + 1
    yield "text order", "numbered in the order of the ids as text (0, 1, 10, 100, ...)", as_text
    yield "truth in text order", "the ids, where the truth's are in the order of ids as text", np.argsort(as_text)
    for split, truth in splits.items():
        counts = truth.label_counts()
        seen, ranks = np.flatnonzero(counts), np.argsort(-counts, kind="stable")
        ways = [("ranks", f"by falling frequency in {split}", ranks)]
        if seen.size < truth.n_labels:
            ways.insert(0, ("labels", f"anew over the {seen.size:,} labels that occur in {split}", seen))
        for key, words, new in ways:
            yield f"{split} {key}", f"numbered {words}", np.pad(new, (0, n_labels - new.size), constant_values=-1)


def _labels_renumbered(case: _Case) -> Finding | None:
    found = []
    for key, words, new in _renumberings(case):
        ids = np.where(case.ids >= 0, new[case.ids], -1)
        other = case.hits_of(ids)
        if _is_better(other, case.hits):
            found.append((key, words, ids, other))
    if not found:
        return None
    key, words, ids, other = max(found, key=lambda one: one[-1].sum())
    # Labels go together, so a numbering can do better than another by accident: it must know the rows, and much of them.
    dealt = case.hits_of(ids[np.random.default_rng(2).permutation(case.n)])
    much = other.sum() >= min(case.popular.sum(), 2 * GAIN * max(case.hits.sum(), dealt.sum()))
    if not (much and _is_better(other, dealt)):
        return None
    what, do = f"label ids of {case.name} seem to be {words}", "Map them to the truth's ids"
    return case.better_so("labels renumbered", what, other, "with ids put right", do, "renumbered", rule=key)


def _transposed_square(case: _Case) -> Finding | None:
    """As many points as labels: the shape does not tell."""
    if not case.n == case.truth.n_labels == case.top.n_labels:
        return None
    other = case.hits_of(TopK.from_scores(case.top.to_csr().T.tocsr(), case.k).ids)
    if not _is_better(other, case.hits):
        return None
    what = f"rows and columns of {case.name} seem to be exchanged"
    return case.better_so("transposed", what, other, "turned round", "Hand over scores.T", "transposed")


def _no_information(case: _Case) -> Finding | None:
    ids = case.ids
    rng = np.random.default_rng(1)
    partner = ids[rng.permutation(case.n)]
    differing = int(((ids >= 0) & ~(ids[:, :, None] == partner[:, None, :]).any(axis=2)).sum())
    pairs = int(case.truth.indices.size)
    if min(case.n, pairs, differing) < ENOUGH or differing < 0.05 * (ids >= 0).sum():
        return None
    mean, scatter = case.dealt
    rate = case.rate(case.hits)
    z = (rate - mean) / max(scatter, 1.0 / (min(case.n, MOST_DEALT) * case.k))
    if z >= 3.0:
        return None
    # Shuffled rows leave the labels as frequent as they are in the truth; permuted labels do not.
    predicted = np.bincount(ids[ids >= 0], minlength=case.truth.n_labels)[: case.truth.n_labels]
    both = [pd.Series(counts).rank().to_numpy() for counts in (predicted, case.truth.label_counts())]
    one, other = (ranks - ranks.mean() for ranks in both)
    scale = np.sqrt((one * one).sum() * (other * other).sum())
    alike = (one * other).sum() / scale if scale > 0 else 0.0
    if alike > 0.2:
        cause = "Labels are predicted as often as they occur, so the rows are in another order: write both in one order"
    elif alike < -0.2:
        cause = "Frequent labels are left out: scores may be distances, where lower is better: hand over -scores"
    else:
        cause = "Nor are frequent labels predicted often, so ids mean other labels: compare the two lists of labels"
    text = (
        f"P@{case.k} is {_percent(rate)}, and {_percent(mean)} ± {100 * scatter:.1g} when {case.name} are dealt out "
        f"to the rows at random; the most frequent labels alone have {_percent(case.rate(case.popular))}. {cause}. "
        "Otherwise the model learned nothing"
    )
    evidence = {"given": rate, "dealt": mean, "scatter": scatter, "z": z, "frequency_correlation": alike}
    return Finding("no information", text, evidence | {"popular": case.rate(case.popular)})


def _below_popularity(case: _Case) -> Finding | None:
    """Worse than naming the most frequent labels, by far, and hardly better than chance, or not a twentieth of it."""
    if case.n < ENOUGH or not _is_better(case.popular, case.hits):
        return None
    rate, mean, popular = case.rate(case.hits), case.dealt[0], case.rate(case.popular)
    if rate > 2.0 * mean and popular < 20.0 * rate:
        return None
    text = (
        f"P@{case.k} is {_percent(rate)}; naming the same {case.k} most frequent label{'s' * (case.k > 1)} for every row gives "
        f"{_percent(popular)}. Label ids may mean other labels, or the model has not learned yet"
    )
    return Finding("below popularity", text, {"given": rate, "popular": popular, "dealt": mean})


# ---------------------------------------------------------------------- predictions by themselves


def _filter_pairs(case: _Case, exclude) -> Finding | None:
    if exclude is None:
        return _no_filter(case)
    rows, labels = (np.asarray(part, np.int64) for part in exclude)
    n_labels = case.top.n_labels
    present = case.top.ids >= 0
    keys = np.nonzero(present)[0] * n_labels + case.top.ids[present]
    inside = (labels >= 0) & (labels < n_labels)
    left = np.isin(keys, rows[inside] * n_labels + labels[inside])
    if not left.any():
        return None
    row, label = divmod(int(keys[np.argmax(left)]), n_labels)
    text = (
        f"{int(left.sum()):,} of the {rows.size:,} pairs of the filter file are among the predictions, the first at "
        f"row {row}, label {label}: they take places and are never right. Filter the scores before the top k is taken: "
        "TopK.from_scores(..., exclude=)"
    )
    return Finding("filter pairs", text, {"left": int(left.sum()), "pairs": int(rows.size), "row": row, "label": label})


def _no_filter(case: _Case) -> Finding | None:
    known = recognise(case.truth, twins=False)
    entry = registry_of_data.find(known.name) if known.part == "test" else None
    if entry is None or entry.group != "label-features":
        return None
    text = (
        f"the truth is that of {entry.printed_name}'s test split, or of its shape: results that are printed of it leave out "
        "the pairs of filter_labels_test.txt, and here nothing was left out. --filter FILE does it (TopK.from_scores(..., "
        "exclude=))"
    )
    return Finding("no filter", text, {"dataset": entry.name})


def _repeated(case: _Case, least: int = 20) -> Finding | None:
    """A stretch of rows that stands there again some rows later, or every row so many times over."""
    whole = np.column_stack([case.ids.astype(np.int64), case.top.scores[:, : case.k].view(np.int32).astype(np.int64)])
    _, group = np.unique(whole, axis=0, return_inverse=True)
    group = group.ravel()
    order = np.argsort(group, kind="stable")
    same = np.flatnonzero(group[order][1:] == group[order][:-1])
    few = np.bincount(group)[group[order][1:][same]] <= 3  # rows that are alike by accident come in any number
    steps = order[1:][same][few] - order[:-1][same][few]
    votes = np.bincount(steps) if steps.size else np.zeros(1, np.int64)
    step = int(np.argmax(votes))
    if step > 1 and votes[step] >= least // 2:
        alike = np.concatenate([[0], group[step:] == group[:-step], [0]])
        starts, ends = (np.flatnonzero(np.diff(alike) == change) + step for change in (1, -1))
        longest = int(np.argmax(ends - starts))
        lo, hi = int(starts[longest]), int(ends[longest])
        if hi - lo >= least and np.unique(group[lo:hi]).size >= least // 2:
            text = (
                f"rows {lo:,} to {hi - 1:,} are those from {lo - step:,} on once more, to the last score: a batch was "
                f"written twice. Predict again, and count the rows"
            )
            return Finding("repeated rows", text, {"first_row": lo, "last_row": hi - 1, "step": step})
    for times in (2, 3, 4, 5):
        runs = group[: case.n - case.n % times].reshape(-1, times)
        if len(runs) >= least and (runs == runs[:, :1]).all() and np.unique(runs[:, 0]).size >= 0.5 * len(runs):
            text = f"every row stands there {times} times in a row. Take every {times}th"
            return Finding("repeated rows", text, {"first_row": 0, "last_row": case.n - 1, "step": 1, "times": times})
    return None


def _reversed(case: _Case) -> Finding | None:
    """More hits at a row's last place than at its first."""
    depth = (case.top.ids >= 0).sum(axis=1)
    rows = np.flatnonzero(depth > 1)
    if rows.size < ENOUGH:
        return None
    ends = np.full((case.n, 1), -1, np.int64)
    ends[rows, 0] = case.top.ids[rows, 0]
    first = case.hits_of(ends)
    ends[rows, 0] = case.top.ids[rows, depth[rows] - 1]
    last = case.hits_of(ends)
    if not _is_better(last, first):
        return None
    at_first, at_last = float(first.sum() / rows.size), float(last.sum() / rows.size)
    text = (
        f"{_percent(at_first)} of the first places are right and {_percent(at_last)} of the last: the order is "
        "reversed. Scores may be distances or ranks, where lower is better: hand over -scores"
    )
    return Finding("reversed order", text, {"first": at_first, "last": at_last})


def _constant(case: _Case) -> Finding | None:
    ids, scores = case.top.ids, case.top.scores
    depth = (ids >= 0).sum(axis=1)
    rows = np.flatnonzero(depth > 1)
    if rows.size == 0:
        return None
    flat = scores[rows, 0] == scores[rows, depth[rows] - 1]
    if flat.mean() < 0.9:
        return None
    text = (
        f"{_percent(flat.mean())} of the rows have one score for all their labels, so that label ids alone decide the "
        "order. Scores may have been rounded, cut to 0 and 1, or lost: hand over what the model ranks by"
    )
    return Finding("constant scores", text, {"share": float(flat.mean())})


def _no_probabilities(case: _Case, metrics) -> Finding | None:
    """Only where a metric takes the scores for probabilities."""
    if metrics is None:
        return None
    needing = [metric.name for metric, _ in registry.wanted(metrics, 1) if metric.probabilities]
    present = case.top.ids >= 0
    scores = case.top.scores[present]
    scores = scores[np.isfinite(scores)]
    if not needing or scores.size == 0:
        return None
    low, high = float(scores.min()), float(scores.max())
    evidence = {"lowest": low, "highest": high, "metrics": needing}
    first = case.top.scores[np.argmax(present.all(axis=1))]
    by_place = bool((case.top.scores == first)[present].all()) and len(case.top) > 1 and case.k > 1
    places = np.arange(1, first.size + 1, dtype=np.float32)
    if is_order(case.top):
        cause = "they are ranks, an order and no scores, as a language model answers or TopK.from_ids without scores makes. "
        cause += "P, nDCG and all that counts places is right for it; this is not: give it the model's scores"
    elif by_place and any(np.array_equal(first, ranks) for ranks in (places[::-1], 1 - places, 1 / places)):
        cause = "they are ranks, the same at a place in every row. TopK.from_ids without scores makes such: give it the model's"
    elif low < 0 < high:
        cause = "they are below and above 0, as log-odds are: 1 / (1 + exp(-score)) makes probabilities of these, if they are"
    elif low < 0:
        cause = "they are below 0, as logarithms of probabilities are (exp(score) mends that), or negative distances"
    elif high > 1:
        whole = bool((scores == np.round(scores)).all())
        what = "votes" if whole else "percent, inner products or distances"
        cause = f"they are above 1, as {what} are. Divide them, or fit a map: xcrepro.calibrate"
    else:
        return None
    asks = f"{', '.join(needing)} take{'s' * (len(needing) == 1)} scores for probabilities"
    return Finding("no probabilities", f"{asks}; those of {case.name} go from {low:g} to {high:g}: {cause}", evidence)
