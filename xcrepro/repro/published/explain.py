"""Which definition is a printed number of? The variants in use, computed on the same truth and predictions.

A candidate is a metric, a k, and one deviation from how this package counts: another order among tied scores, rows left
out, another truth, or other counts, N, A and B in the propensities. With several deviations at once there would be so
many candidates that some agree with anything.
"""

from __future__ import annotations

import itertools
import math
import numbers
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import numpy as np

from xcrepro.core import arithmetic
from xcrepro.core.arguments import cut_offs
from xcrepro.core.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from xcrepro.core.predictions import TopK
    from xcrepro.core.truth import Truth

COLUMNS = ("definition", "k", "variant", "unit", "value", "difference", "digits", "agrees", "source", "same")
KS = (1, 2, 3, 4, 5, 10, 20, 50, 100)
"""The cut-offs that are tried, as far as there are places, and all places."""
MOST_DECIMALS = 9
"""Digits of a value beyond these are not compared: another order of adding up moves them."""
PROPENSITIES = ((0.55, 1.5), (0.5, 0.4), (0.6, 2.6))
"""A and B of the datasets of the repository."""
BINS = (5, 10, 15, 20, 25, 50, 100)
_NEIGHBOURS = 12
_STANDARD = ""


def explain(
    value: str | float,
    Y,
    top: TopK,
    *,
    metric: str | None = None,
    ks=None,
    Y_train=None,
    A: float = 0.55,
    B: float = 1.5,
    truths: Mapping[str, object] | None = None,
) -> pd.DataFrame:
    """Look for the definition that gives a printed number.

    Parameters
    ----------
    value : str or float
        As printed: ``"39.173"``, ``"0.39173"``, ``"39.2%"``; its decimals say how far rounding reaches, so give the text where
        the last digit is 0, which a float loses. Fractions and percent are both tried; with ``%`` percent only.
    Y : sparse matrix or array_like, shape (n, L), or Truth
    top : TopK
        With more places than the number's k, where scores tie: what stands beyond the places kept cannot be moved up.
    metric : str, optional
        What it is said to be: a metric by a name that documents print (``"N"``, ``"PSP"``), or with its k, ``"nDCG@3"``. Then
        only what goes by this name is tried, and fewer agree by chance.
    ks : int or sequence of int, optional
        The cut-offs to try; by default those of :data:`KS` up to ``top.k``, and ``top.k``.
    Y_train : sparse matrix or array_like, shape (N, L), optional
        For propensities: counts of train, of test and of both are tried, and N alike. Without it only those of test, which are
        not what propensities are of.
    A, B : float
        Of the propensities; those of :data:`PROPENSITIES` are tried besides.
    truths : mapping of str to matrix, optional
        Further truths for the same predictions, by name: another split's, the complete one.

    Returns
    -------
    DataFrame
        A row for each value that some definition gives, the nearest first, those that agree before all others and the standard
        before its variants: definition, k, variant (empty: as this package counts), unit ("fraction" or "percent", as the
        printed number reads then), value (in that unit), difference, digits (how many decimals agree), agrees ("rounded", "cut
        off" or empty), source, same (what else gives the very same value). ``attrs``: ``printed``, ``decimals``,
        ``candidates`` (how many definitions were tried), ``values`` (how many different values they gave), ``by_chance`` (how
        many of these would agree with a number of that many decimals there, had it nothing to do with any of them: how densely
        they lie around it times the width of the rounding).

    Raises
    ------
    ArgumentError
        For what is no finite number, an unknown metric, truth and predictions that cannot belong together.

    Examples
    --------
    >>> from xcrepro import TopK
    >>> Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    >>> top = TopK.from_ids([[0, 1, 2], [3, 1, 0], [3, 0, 1]], n_labels=4)
    >>> found = explain("0.4898", Y, top)
    >>> conclusion(found).partition(". ")[0]
    '0.4898 is nDCG (ideal k)@3: 0.489760, rounded (jain16, table 1; coverage, eq'
    >>> explain("48.97%", Y, top, metric="nDCG@3").loc[0, ["definition", "unit", "agrees"]].tolist()
    ['nDCG (ideal k)', 'percent', 'cut off']
    >>> bool(explain("0.8123", Y, top)["agrees"].any())
    False
    """
    import pandas as pd

    from xcrepro.core.predictions import check_pair
    from xcrepro.core.truth import as_truth

    printed = _Printed.of(value)
    truth = as_truth(Y)
    check_pair(truth, top)
    if truth.n_rows == 0:
        raise ArgumentError("Y", "must have at least one row", "no rows")
    families, only_k = _families(metric)
    tried = [*(k for k in KS if k < top.k), top.k] if ks is None else cut_offs(ks).tolist()
    tried = [only_k] if only_k else sorted(tried)
    if max(tried) > top.k:
        raise ArgumentError("ks", f"must not exceed the {top.k} places top holds", max(tried), "keep more places")
    train = None if Y_train is None else as_truth(Y_train, "Y_train")
    candidates = [
        one
        for one in _candidates(truth, top, tried, train, (A, B), dict(truths or {}), families)
        if (families is None or _family(one.definition) in families) and math.isfinite(one.value)
    ]
    groups: dict[float, list[_Candidate]] = {}
    for one in candidates:
        groups.setdefault(round(one.value, 12), []).append(one)
    rows = [
        (first.definition, first.k, first.variant, unit, scale * first.value, scale * first.value - printed.value,
         printed.digits(scale * first.value), printed.agrees(scale * first.value), first.source,
         "; ".join(one.name for one in others))
        for first, *others in groups.values() for unit, scale in printed.units
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    order = pd.DataFrame({"disagrees": table["agrees"] == "", "far": table["difference"].abs().round(12)})
    # What agrees: the standard definitions first, in the order of the registry; what does not: the nearest first.
    order.loc[~order["disagrees"], "far"] = 0.0
    order["variant"], order["place"] = table["variant"] != _STANDARD, np.arange(len(table))
    table = table.loc[order.sort_values(list(order)).index].reset_index(drop=True)
    table.attrs = {
        "printed": printed.text,
        "decimals": printed.decimals,
        "candidates": len(candidates),
        "values": len(groups),
        "by_chance": _by_chance(table, printed),
    }
    return table


def conclusion(table: pd.DataFrame) -> str:
    """What :func:`explain` found, in a sentence or two."""
    about, agree = table.attrs, table[table["agrees"] != ""]
    tried = f"{about['candidates']:,} definitions with {about['values']:,} different values were tried"
    chance = f"by chance {about['by_chance']:.2g} would agree"
    if not len(table):
        return f"Nothing explains {about['printed']}: no definition could be tried."
    first = table.iloc[0]
    named = _named(first["definition"], first["k"], first["variant"])
    if not len(agree):
        return (
            f"Nothing explains {about['printed']}: {tried}, none agrees to its {about['decimals']} decimals ({chance}). "
            f"The nearest is {named}, {first['value']:.{about['decimals'] + 2}f}."
        )
    how = "rounded" if first["agrees"] == "rounded" else "cut off, not rounded"
    text = f"{about['printed']} is {named}: {first['value']:.{about['decimals'] + 2}f}, {how} ({first['source']})."
    if len(agree) > 1:
        text = f"{len(agree)} values agree with {about['printed']}, the plainest of them {named}."
    weak = about["by_chance"] >= 0.1 * len(agree)
    doubt = " Too many to tell: give more digits, the metric or its k." if weak else ""
    return f"{text} {tried}; {chance}.{doubt}"


@dataclass(frozen=True)
class _Printed:
    """A printed number: what it says and how far rounding reaches."""

    text: str
    value: float
    decimals: int
    units: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, value: str | float) -> _Printed:
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        text = value.strip() if isinstance(value, str) else repr(float(value)) if number else ""
        try:
            number = Decimal(text.removesuffix("%").strip().replace(",", ""))
            finite = number.is_finite()
        except InvalidOperation:
            finite = False
        if not finite:
            do = "as printed, such as '0.39173' or '39.2%'"
            raise ArgumentError("value", "must be a finite number, or its text", repr(value), do)
        decimals = max(0, -int(number.as_tuple().exponent))
        units = (("percent", 100.0),) if text.endswith("%") else (("fraction", 1.0), ("percent", 100.0))
        return cls(text, float(number), min(decimals, MOST_DECIMALS), units)

    def agrees(self, value: float) -> str:
        unit = float(f"1e-{self.decimals}")
        if abs(value - self.value) <= 0.5 * unit + 1e-11:
            return "rounded"
        return "cut off" if 0 <= abs(value) - abs(self.value) < unit and value * self.value >= 0 else ""

    def digits(self, value: float) -> int:
        """Decimals to which both are the same."""
        apart = abs(value - self.value)
        return next((d for d in range(self.decimals, 0, -1) if apart <= float(f"5e-{d + 1}") + 1e-11), 0)


@dataclass(frozen=True)
class _Candidate:
    definition: str
    k: int
    variant: str
    value: float
    source: str

    @property
    def name(self) -> str:
        return _named(self.definition, self.k, self.variant)


def _named(definition: str, k: int, variant: str) -> str:
    return f"{definition}@{k}" + (f", {variant}" if variant else "")


def _by_chance(table: pd.DataFrame, printed: _Printed) -> float:
    """How many values would agree with an unrelated number: their density around it times the width of what agrees."""
    apart = np.sort(table.loc[table["agrees"] == "", "difference"].abs().to_numpy())
    m = min(_NEIGHBOURS, apart.size)
    width = 1.5 * float(f"1e-{printed.decimals}")
    around = 2 * apart[m - 1] - width if m else 0.0
    return float(m / max(around, width / 10) * width) if m else 0.0


_ALSO = {
    "P": {"RP", "served", "micro-P"},
    "R": {"RP", "micro-R", "hit rate"},
    "nDCG": {"DCG", "ADG"},
    "F": {"F of means", "micro-F1"},
    "micro-F1": {"F of means"},
    "macro-F1": {"macro-F of means"},
    "ECE": {"ACE"},
}
"""Family -> what else goes by its name."""


def _families(metric: str | None) -> tuple[set[str] | None, int | None]:
    """What may go by a name, as beginnings of definitions, and the k behind its @."""
    from xcrepro.core.metrics import registry

    if metric is None:
        return None, None
    name, k = metric, None
    if found := re.fullmatch(r"\s*(.+?)\s*@\s*([1-9]\d*)\s*", metric):
        name, k = found[1], int(found[2])
    families = {_family(one) for one in registry.printed(name)}
    if not families:
        registry.wanted(metric, 1)  # raises, with the near names
    return families.union(*(_ALSO.get(one, set()) for one in families)), k


def _family(definition: str) -> str:
    """``nDCG`` of ``nDCG (ideal k)``."""
    return definition.partition(" (")[0]


# ---------------------------------------------------------------------- candidates


def _candidates(
    truth: Truth,
    top: TopK,
    ks: list[int],
    train: Truth | None,
    AB: tuple[float, float],
    truths: dict,
    families: set[str] | None,
) -> Iterator[_Candidate]:
    """Those of other families may be among them."""
    readings = list(_readings(truth, top, truths))
    for reading in readings:
        yield from _registered(reading, ks)
        yield from _by_rows(reading, ks)
        yield from _by_labels(reading, ks, train)
    yield from _by_batches(truth, top, ks)
    yield from _ties_averaged(truth, top, ks)
    yield from _lrap_of_all_places(truth, top, ks)
    yield from _calibration(truth, top, ks)
    if families is not None and not any(family.startswith("PS") for family in families):
        return
    for words, source, weights in _weights(truth, train, AB):
        for reading in readings if words == _STANDARD else readings[:1]:
            yield from _scored(reading, ks, words, source, weights)


@dataclass(frozen=True)
class _Reading:
    """Truth and predictions as one program reads them."""

    variant: str
    source: str
    truth: Truth
    top: TopK

    @property
    def sizes(self) -> np.ndarray:
        return self.truth.sizes

    def hits(self) -> np.ndarray:
        return self.truth.hits(self.top.ids)


def _readings(truth: Truth, top: TopK, truths: dict) -> Iterator[_Reading]:
    from xcrepro.core.truth import as_truth

    yield _Reading(_STANDARD, "", truth, top)
    if _ties(top).any():
        hits = truth.hits(top.ids)
        for words, first, source in (
            ("ties to the highest label id", -top.ids, "pyxclib with numba"),
            ("ties: hits first", ~hits, "the best case of an order left open"),
            ("ties: hits last", hits, "the worst case of an order left open"),
        ):
            yield _Reading(words, source, truth, _ordered(top, first))
    labelled, predicted = truth.sizes > 0, (top.ids >= 0).any(axis=1)
    for words, rows, source in (
        ("rows without labels left out", labelled, "pyxclib, remove_invalid=True; pytrec_eval"),
        ("rows without predictions left out", predicted, "pytrec_eval"),
    ):
        if rows.any() and not rows.all():
            yield _Reading(words, source, as_truth(truth.to_csr()[rows]), top.rows(rows))
    for name, Y in truths.items():
        other = as_truth(Y, f"truths[{name!r}]")
        if (other.n_rows, other.n_labels) != (truth.n_rows, truth.n_labels):
            got = f"{other.n_rows} x {other.n_labels}"
            raise ArgumentError(
                f"truths[{name!r}]", f"must have the shape of Y, {truth.n_rows} x {truth.n_labels}", got
            )
        yield _Reading(f"truth: {name}", "", other, top)


def _ties(top: TopK) -> np.ndarray:
    """(n, k - 1) is a place tied with the next?"""
    return (top.scores[:, 1:] == top.scores[:, :-1]) & (top.ids[:, 1:] >= 0)


def _ordered(top: TopK, first: np.ndarray) -> TopK:
    """Ties by another rule: the lowest of ``first`` first, then the lowest id."""
    from xcrepro.core.predictions import TopK

    absent = top.ids < 0
    order = np.lexsort((top.ids, first, -top.scores, absent), axis=1)
    ids, scores = (np.take_along_axis(array, order, axis=1) for array in (top.ids, top.scores))
    return TopK(np.ascontiguousarray(ids), np.ascontiguousarray(scores), top.n_labels)


def _registered(reading: _Reading, ks: list[int]) -> Iterator[_Candidate]:
    """The package's own, which need no weights and no probabilities."""
    from xcrepro.core.metrics import registry, state

    names = [one.name for one in registry.METRICS.values() if one.fold in ("rows", "labels") and not one.needs]
    if reading.variant == _STANDARD and reading.truth.n_rows <= 20_000:
        names.append("coverage (reachable)")
    found = state.of(reading.truth, reading.top, ks, names).compute()
    yield from _of_table(found, reading.variant, reading.source)


def _of_table(found: pd.DataFrame, variant: str, source: str = "") -> Iterator[_Candidate]:
    """Of metric, k and value; where no source is given it is that of the registry."""
    from xcrepro.core.metrics import registry

    for name, k, value in found.itertuples(index=False):
        yield _Candidate(name, int(k), variant, value, source or registry.METRICS[name].source)


def _per_row(values: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Row by row, 0 / 0 is 0."""
    return np.divide(values, by, out=np.zeros(np.broadcast(values, by).shape), where=np.asarray(by) > 0)


def _gain(places: np.ndarray) -> np.ndarray:
    """I(m): the discounted gain of m hits at the first m places."""
    most = int(places.max(initial=0))
    return np.concatenate([[0.0], np.cumsum(1.0 / arithmetic.log2(np.arange(most) + 2.0))])[places]


def _by_rows(reading: _Reading, ks: list[int]) -> Iterator[_Candidate]:
    """Other normalisers and means over rows."""
    found, sizes = reading.hits().astype(float), reading.sizes
    present = reading.top.ids >= 0
    discount = 1.0 / arithmetic.log2(np.arange(found.shape[1]) + 2.0)
    late = 1.0 / arithmetic.log2(np.maximum(np.arange(found.shape[1]) + 1.0, 2.0))
    for k in ks:
        hits, m = found[:, :k].sum(axis=1), present[:, :k].sum(axis=1)
        most = np.minimum(sizes, k)
        dcg, dcg_late = (found[:, :k] * discount[:k]).sum(axis=1), (found[:, :k] * late[:k]).sum(axis=1)
        ideal_late = np.concatenate([[0.0], np.cumsum(late)])[most]
        rising = (np.cumsum(found[:, :k], axis=1) / np.arange(1, k + 1) * found[:, :k]).sum(axis=1)
        P, R = hits.mean() / k, _per_row(hits, sizes).mean()
        for definition, value, source in (
            ("nDCG (retrieved)", _per_row(dcg, _gain(hits.astype(int))).mean(),
             "torchmetrics: the ideal order of the labels retrieved"),
            ("nDCG (ideal all)", _per_row(dcg, _gain(sizes)).mean(), "the ideal of all |y| labels, not cut at k"),
            ("nDCG (ratio of means)", dcg.sum() / max(_gain(most).sum(), 1e-300), "mean gain over mean ideal gain"),
            ("nDCG (late discount)", _per_row(dcg_late, ideal_late).mean(),
             "Järvelin and Kekäläinen 2002: no discount at place 2"),
            ("DCG", dcg.mean(), "not normalised"),
            ("AP (of |y|)", _per_row(rising, sizes).mean(), "divides by |y|: trec_eval's map_cut"),
            ("AP (of hits)", _per_row(rising, hits).mean(), "divides by the hits found"),
            ("Jaccard", _per_row(hits, sizes + m - hits).mean(), "scikit-learn, jaccard_score(average='samples')"),
            ("F of means", 2 * P * R / max(P + R, 1e-300), "of mean P and mean R, instead of the mean of rows' F"),
            ("Hamming (of L)", (sizes + m - 2 * hits).mean() / reading.truth.n_labels, "scikit-learn, hamming_loss"),
        ):  # fmt: skip
            yield _Candidate(definition, k, reading.variant, float(value), source)


def _by_labels(reading: _Reading, ks: list[int], train: Truth | None) -> Iterator[_Candidate]:
    """Macro-averages over other sets of labels."""
    from xcrepro.core.metrics.labelwise import confusion

    counts = confusion(reading.truth, reading.top, ks)
    true, n, n_labels = counts.true, max(reading.truth.n_rows, 1), reading.truth.n_labels
    seen = None if train is None or train.n_labels != n_labels else train.label_counts() > 0
    for i, k in enumerate(ks):
        tp, predicted = counts.tp[i], counts.predicted[i]
        P, R, F = _per_row(tp, predicted), _per_row(tp, true), _per_row(2.0 * tp, predicted + true)
        either = (predicted > 0) | (true > 0)
        largest = int(np.flatnonzero(either)[-1]) + 1 if either.any() else 1
        sets = {
            "of test": (true > 0, "labels with a test positive"),
            "of test or predicted": (either, "scikit-learn on the labels that occur"),
            "up to the largest": (np.arange(n_labels) < largest, "napkinXC: divides by the largest id seen + 1"),
        }
        if seen is not None:
            sets["of train"] = seen, "labels with a train point"
            sets["of test and train"] = seen & (true > 0), "labels with a point in both"
        for words, (labels, source) in sets.items():
            for name, values in (("macro-P", P), ("macro-R", R), ("macro-F1", F)):
                if 0 < labels.sum() < n_labels:
                    definition, value = f"{name} (over labels {words})", float(values[labels].mean())
                    yield _Candidate(definition, k, reading.variant, value, source)
        value, source = float(_per_row(P.sum(), (predicted > 0).sum())), "labels never predicted left out"
        yield _Candidate("macro-P (over labels predicted)", k, reading.variant, value, source)
        both = P.mean() + R.mean()
        value = float(2 * P.mean() * R.mean() / max(both, 1e-300))
        source = "of macro-P and macro-R, instead of the mean of labels' F1 (Opitz and Burst 2019)"
        yield _Candidate("macro-F of means", k, reading.variant, value, source)
        for epsilon, release in ((1e-6, "0.0.2"), (1e-9, "later")):
            value = float((2.0 * tp / (predicted + true + epsilon * n)).mean())
            source = f"xCOLUMNs {release}: {epsilon:g} added to the rates below the line"
            yield _Candidate(f"macro-F1 (epsilon {epsilon:g})", k, reading.variant, value, source)


_BATCHES = (8, 16, 32, 64, 100, 128, 256, 512)


def _by_batches(truth: Truth, top: TopK, ks: list[int]) -> Iterator[_Candidate]:
    """Averages of each batch of rows, and their mean, as a training log prints them."""
    from xcrepro.core.metrics.labelwise import confusion

    n, Y = truth.n_rows, truth.to_csr()
    hits = truth.hits(top.ids).cumsum(axis=1)
    for size in _BATCHES if n <= _ROWS_IN_BATCHES else ():
        if size >= n:
            return
        starts = np.arange(0, n, size)
        sizes = np.diff(starts, append=n)
        parts = [confusion(Y[at : at + size], top.rows(slice(at, at + size)), ks) for at in starts]
        for i, k in enumerate(ks):
            found = hits[:, min(k, top.k) - 1]
            for name, values in (
                ("P", np.add.reduceat(found / k, starts) / sizes),
                ("R", np.add.reduceat(found / np.maximum(np.diff(Y.indptr), 1), starts) / sizes),
                ("macro-F1", [part.f_beta()[i].mean() for part in parts]),
                ("macro-P", [part.precision()[i].mean() for part in parts]),
                ("macro-R", [part.recall()[i].mean() for part in parts]),
            ):
                source = f"each batch of {size} rows by itself, the last one too, as a training loop adds them up"
                yield _Candidate(f"{name} (mean over batches)", k, f"batches of {size}", float(np.mean(values)), source)
                if name.startswith("macro") and sizes[-1] != size:
                    value, source = float(np.average(values, weights=sizes)), f"{source}, each weighed by its rows"
                    yield _Candidate(f"{name} (mean over batches)", k, f"batches of {size}, by rows", value, source)


_ROWS_IN_BATCHES = 20_000


def _ties_averaged(truth: Truth, top: TopK, ks: list[int]) -> Iterator[_Candidate]:
    """The expected value over all orders of tied places, of what is linear in the hits."""
    from xcrepro.core.metrics import evaluate

    if not _ties(top).any():
        return
    words, source = "ties averaged", "the mean over all orders of tied places, as scikit-learn's ndcg_score"
    found = evaluate(truth, top, ks, metrics=["P", "R", "nDCG", "nDCG (ideal k)"], ties="expected")
    yield from _of_table(found.sort_values("k", kind="stable"), words, source)


def _lrap_of_all_places(truth: Truth, top: TopK, ks: list[int]) -> Iterator[_Candidate]:
    """scikit-learn's: a tie stands at its last place, as do all labels without a place, and a row without labels has 1."""
    top = top.head(max(int((top.ids >= 0).sum(axis=1).max(initial=0)), 1))
    if top.k not in ks:
        return
    found, end = truth.hits(top.ids), np.tile(np.arange(top.k), (len(top), 1))
    ties = _ties(top)
    for place in range(top.k - 2, -1, -1):
        end[:, place] = np.where(ties[:, place], end[:, place + 1], place)
    above = np.take_along_axis(np.cumsum(found, axis=1), end, axis=1)
    listed, sizes = (found * (above / (end + 1.0))).sum(axis=1), truth.sizes
    values = _per_row(listed + (sizes - found.sum(axis=1)) * sizes / top.n_labels, sizes) + (sizes == 0)
    source = "label_ranking_average_precision_score: ties at their last place, 1 for a row without labels"
    yield _Candidate("LRAP (scikit-learn)", top.k, _STANDARD, float(values.mean()), source)


def _calibration(truth: Truth, top: TopK, ks: list[int]) -> Iterator[_Candidate]:
    """Where scores can be probabilities."""
    from xcrepro.core.metrics import calibration, registry

    if not ((top.ids >= 0).any() and calibration.is_probability(top)):
        return
    names = [name for name in registry.names("pairs", "scores") if name not in ("pairs", "smECE")]
    found = calibration.calibration_table(truth, top, ks, metrics=names)
    yield from _of_table(found, _STANDARD)
    for k in ks:
        pairs = calibration.pairs(truth, top, k)
        if pairs[0].size == 0:
            continue
        for bins in BINS:
            for closed in ("left", "right", "torchmetrics"):
                if (bins, closed) != (calibration.BINS, "left"):
                    words = f"{bins} bins, " + ("as torchmetrics" if closed == "torchmetrics" else f"closed {closed}")
                    yield _Candidate("ECE", k, words, calibration.ece(*pairs, bins=bins, closed=closed), "other bins")
            if bins != calibration.BINS:
                yield _Candidate("ACE", k, f"{bins} bins", calibration.ace(*pairs, bins=bins), "other bins")
            filled = calibration.reliability(*pairs, bins=bins, band=None).query("count > 0")
            value = float((filled["confidence"] - filled["accuracy"]).abs().mean())
            source = "netcal: all bins of equal width weigh the same"
            yield _Candidate("ACE (average)", k, f"{bins} bins", value, source)


# ---------------------------------------------------------------------- propensities


def _weights(truth: Truth, train: Truth | None, AB: tuple[float, float]) -> Iterator[tuple[str, str, np.ndarray]]:
    """(words, source, inverse propensities): first those of train, or of test where train is not there."""
    from xcrepro.core import propensity

    counted = {"test": (truth.label_counts(), truth.n_rows)}
    if train is not None:
        if train.n_labels != truth.n_labels:
            raise ArgumentError("Y_train", f"must have the {truth.n_labels} labels of Y", train.n_labels)
        both = truth.label_counts() + train.label_counts(), truth.n_rows + train.n_rows
        counted = {"train": (train.label_counts(), train.n_rows)} | counted | {"train and test": both}
    own = next(iter(counted))
    for A, B in dict.fromkeys([AB, *PROPENSITIES]):
        for (counts_of, (counts, _)), (n_of, (_, n)) in itertools.product(counted.items(), repeat=2):
            if n < 3 or counts.max(initial=0) > n or (B <= 0 and not counts.all()):
                continue
            if (A, B) != AB and n_of != counts_of:
                continue
            words = [f"A {A:g}, B {B:g}"] * ((A, B) != AB)
            words += [f"propensities from {counts_of} counts"] * (counts_of != own)
            words += [f"N of {n_of}"] * (n_of != counts_of)
            source = "counts or N of another matrix" if (counts_of, n_of) != (own, own) else ""
            source = source or ("A and B of other datasets" if words else "")
            yield ", ".join(words), source, propensity.inverse(counts, n, A, B)


def _scored(reading: _Reading, ks: list[int], words: str, source: str, weights: np.ndarray) -> Iterator[_Candidate]:
    from xcrepro.core.metrics import registry, state

    needing = ("inverse_propensity",)
    names = [one.name for one in registry.METRICS.values() if one.fold == "rows" and one.needs == needing]
    variant = ", ".join(part for part in (reading.variant, words) if part)
    of_weights = state.of(reading.truth, reading.top, ks, names, weights).compute()
    yield from _of_table(of_weights, variant, source or reading.source)
    found = reading.hits() * weights[np.maximum(reading.top.ids, 0)]
    best = _best(reading.truth, weights, max(ks))
    discount = 1.0 / arithmetic.log2(np.arange(max(ks)) + 2.0)
    for k in ks:
        for name, factor in (("PSP", np.ones(k)), ("PSnDCG", discount[:k])):
            ratios = _per_row((found[:, :k] * factor).sum(axis=1), (best[:, :k] * factor).sum(axis=1))
            origin = source or reading.source or "the mean of rows' own ratios, instead of the ratio of means"
            yield _Candidate(f"{name} (mean of ratios)", k, variant, float(ratios.mean()), origin)


def _best(truth: Truth, weights: np.ndarray, k: int) -> np.ndarray:
    """(n, k) the largest weights of each row's labels, falling, 0 behind them."""
    rows = np.repeat(np.arange(truth.n_rows), truth.sizes)
    values = weights[truth.indices]
    order = np.lexsort((-values, rows))
    place = np.arange(rows.size) - np.repeat(np.cumsum(truth.sizes) - truth.sizes, truth.sizes)
    best = np.zeros((truth.n_rows, k))
    kept = place < k
    best[rows[kept], place[kept]] = values[order][kept]
    return best
