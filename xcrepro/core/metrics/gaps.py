"""Which labels a model is too sure of, and of which not sure enough: each label's own calibration gap, shrunk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from xcrepro.core.accumulators.block import Block
from xcrepro.core.arguments import check_rows, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics.calibration import is_probability
from xcrepro.core.predictions import TopK

if TYPE_CHECKING:
    import pandas as pd


def label_gaps(Y, top: TopK, k: int = 5, *, label_names: Sequence[str] = (), most: int | None = None) -> pd.DataFrame:
    """Of each label that is predicted, how far its scores are from its share of hits, and what of that is more than chance.

    A label is predicted n times among the first k places. Its gap is the mean score less the share of hits, with the variance
    of chance v = p (1 - p) / n, where p = (sum of scores + 1/2) / (n + 1). Gaps of rare labels are mostly chance, so each is
    drawn towards the mean m of all: shrunk = m + (gap - m) t / (t + v), where t is how much the labels' true gaps vary, found
    from how much more the gaps vary than chance lets them (DerSimonian and Laird 1986); m weighs each label by 1 / (t + v).

    Parameters
    ----------
    Y, top
        As for :func:`xcrepro.evaluate`; all scores must lie in [0, 1].
    k : int
        Places that count, at most those that are stored.
    label_names : sequence of str
        Of all labels; empty: ids are shown.
    most : int, optional
        How many labels at most.

    Returns
    -------
    pandas.DataFrame
        ``label``; ``predicted`` (n), ``score`` and ``right`` (their means), ``gap``, ``shrunk``, and ``stderr`` of the latter,
        the square root of t v / (t + v). Above 0: too sure. The largest ``shrunk`` in size first, then by id; labels that are
        not predicted are left out. With one label, or gaps that vary no more than chance lets them, t is 0 and all are m.

    Raises
    ------
    ArgumentError
        For scores outside [0, 1], a k above ``top.k``, names of another number, and what :func:`xcrepro.evaluate` refuses.

    Examples
    --------
    >>> Y = np.array([[1, 1]] * 60 + [[0, 1]] * 60)
    >>> top = TopK.from_ids([[0, 1]] * 120, [[0.9, 0.8]] * 120, n_labels=2)
    >>> label_gaps(Y, top, 2, label_names=["cat", "dog"]).round(3)
      label  predicted  score  right  gap  shrunk  stderr
    0   cat        120    0.9    0.5  0.4   0.399   0.028
    1   dog        120    0.8    1.0 -0.2  -0.198   0.037
    """
    import pandas as pd

    block = Block(Y, top, whole_number("k", k, 1))
    check_rows(block.n_rows, "Y")
    if not is_probability(top.head(k)):
        raise ArgumentError("top", "must have scores in [0, 1]", "others", "map them first: xcrepro.calibrate")
    if len(label_names) not in (0, block.n_labels):
        rule = f"must be one for each of {block.n_labels} labels, or none"
        raise ArgumentError("label_names", rule, len(label_names))
    there = block.ids >= 0
    of, scores, hits = block.ids[there], block.scores[there].astype(np.float64), block.found[there]
    n = np.bincount(of, minlength=block.n_labels)
    labels = np.flatnonzero(n)
    n, score, right = (np.bincount(of, what, block.n_labels)[labels] for what in (None, scores, hits))
    p = (score + 0.5) / (n + 1.0)
    score, right = score / n, right / n
    gap, chance = score - right, p * (1.0 - p) / n
    varies = _between(gap, chance)
    middle = _mean(gap, 1.0 / (varies + chance))
    kept = varies / (varies + chance)
    named = [label_names[label] for label in labels] if len(label_names) else labels
    table = {"label": named, "predicted": n, "score": score, "right": right, "gap": gap}
    table |= {"shrunk": middle + kept * (gap - middle), "stderr": np.sqrt(kept * chance)}
    found = pd.DataFrame(table)
    return found.iloc[np.argsort(-found["shrunk"].abs().to_numpy(), kind="stable")][:most].reset_index(drop=True)


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    return math.fsum((weights * values).tolist()) / math.fsum(weights.tolist()) if values.size else 0.0


def _between(gap: np.ndarray, chance: np.ndarray) -> float:
    """The variance of the true gaps, 0 at least."""
    if gap.size < 2:
        return 0.0
    weights = 1.0 / chance
    spread = math.fsum((weights * (gap - _mean(gap, weights)) ** 2).tolist())
    total = math.fsum(weights.tolist())
    return max(spread - (gap.size - 1.0), 0.0) / (total - math.fsum((weights * weights).tolist()) / total)
