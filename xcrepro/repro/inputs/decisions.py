"""Rules that choose k labels from probabilities, judged on test points with errors for which each rule is run anew.

A rule for coverage looks at the other test points, so an error that keeps its choices is not that of the rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xcrepro.core import distributions, metrics
from xcrepro.core.arguments import whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics import state
from xcrepro.core.metrics.replicates import HALVES, LEAST_ROWS, ROUNDING, error_of_parts
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth

Rule = Callable[[np.ndarray, int], TopK]
"""Row numbers of test points, and k -> k labels for each of these points."""


@dataclass(frozen=True, eq=False)
class Judged:
    """What rules reach: (rule, metric, k) -> the value on all test points, then those on parts of them (:func:`judge`).

    An array has 1 + 10 * partitions values: of each partition the four quarters and the six halves that they make.
    """

    numbers: Mapping[tuple[str, str, int], np.ndarray]

    def of(self, statistic: Callable, confidence_level: float = 0.95) -> dict[str, float]:
        """Any statistic of ``numbers``, such as a difference, with its error for fresh test points (``method="halves"``).

        Gives value, stderr, low, high and p raw (of a value of 0); low to high holds it with the probability
        ``confidence_level``.
        """
        value, parts = (found := np.asarray(statistic(self.numbers), np.float64))[0], found[1:].reshape(-1, 10)
        quarters = parts[:, :4].var(axis=1, ddof=1).mean()
        halves = ((parts[:, 4::2] - parts[:, 5::2]) ** 2).mean() / 2.0
        error = float(error_of_parts(quarters, halves, 2.0))
        reach = float(distributions.normal_quantile((1.0 + confidence_level) / 2.0)) * error
        p = float(2 * distributions.normal(-abs(value) / error)) if error > 0 else float(value == 0)
        return {"value": float(value), "stderr": error, "low": value - reach, "high": value + reach, "p raw": p}

    def table(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Every value: rule, metric, k, value, stderr, low, high."""
        rows = []
        for key in self.numbers:
            named = dict(zip(("rule", "metric", "k"), key, strict=True))
            rows.append(named | self.of(lambda at, key=key: at[key], confidence_level))
        return pd.DataFrame(rows).drop(columns="p raw")

    def compare(self, pairs: Iterable[tuple[str, str]], confidence_level: float = 0.95) -> pd.DataFrame:
        """Left minus right, paired: the columns of :func:`xcrepro.compare`, of which ``p`` is Holm's over the table."""
        rows = []
        measures = dict.fromkeys((metric, k) for _, metric, k in self.numbers)
        for (metric, k), (left, right) in itertools.product(measures, pairs):
            gap = self.of(lambda at, a=(left, metric, k), b=(right, metric, k): at[a] - at[b], confidence_level)
            told = ROUNDING * max(abs(self.numbers[side, metric, k][0]) for side in (left, right))
            # What adding up in another order leaves is no difference.
            if max(abs(gap["value"]), gap["stderr"]) <= told:
                gap = {"value": 0.0, "stderr": 0.0, "low": 0.0, "high": 0.0, "p raw": 1.0}
            rows.append({"metric": metric, "k": k, "left": left, "right": right} | gap)
        found = pd.DataFrame(rows)
        found.insert(found.columns.get_loc("p raw"), "p", metrics.holm(found["p raw"]))
        return found


def judge(
    Y, rules: Mapping[str, Rule], ks: Sequence[int], names: Sequence[str], partitions: int = 20, **options: object
) -> Judged:
    """Each rule on all test points, and on quarters and halves of them, drawn at random ``partitions`` times.

    A rule that looks at a point only may choose once and give the rows asked for, which rise. One that looks at the
    other points must choose anew. ``options`` are those of :class:`xcrepro.State`.
    """
    n, size = Y.shape[0], Y.shape[0] // 4
    if n < LEAST_ROWS:
        raise ArgumentError("Y", f"must have {LEAST_ROWS} test points or more to be cut into quarters", n)
    parts = [np.arange(n)]
    for partition in range(whole_number("partitions", partitions, 1)):
        quarters = np.random.default_rng([0, partition]).permutation(n)[: 4 * size].reshape(4, size)
        parts += [np.sort(rows) for rows in (*quarters, *quarters[HALVES].reshape(6, -1))]
    found: dict[tuple[str, str, int], list[float]] = {}
    for rows in parts:
        truth = as_truth(Y[rows])
        for (name, choose), k in itertools.product(rules.items(), ks):
            top = choose(rows, k)
            if len(top) != rows.size:
                rule = f"must give the {rows.size} points that it is asked for"
                raise ArgumentError(f"rules[{name!r}]", rule, len(top))
            for metric, values in state.of(truth, top, k, names, **options).values().items():
                found.setdefault((name, metric, k), []).append(float(values[0]))
    return Judged({key: np.array(values) for key, values in found.items()})
