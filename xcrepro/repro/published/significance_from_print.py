"""Which leads between two printed numbers are certain without anybody's predictions.

Two models are scored on the same n test points. Whether the lead of one is more than the luck of the points depends on how
many points they disagree about, which no table prints; but the two numbers bound it from above and below.

The test is the paired sign-flip (randomisation) test: were the two models alike, the sign of each point's difference D_i would
be a coin's. Its two-sided p falls with z = sum D_i / sqrt(sum D_i^2), read as normal; for P@1 it is McNemar's and exact, a
binomial's over the points where just one of the two is right. Given the two printed numbers, sum D_i is known, and sum D_i^2 is

- at most n min(a + b, 2 - a - b) for values a and b of P@k as fractions: |D_i| <= 1, and |D_i| is at most what the two models
  hit together, and at most what they miss together. With that the p is largest: below alpha, **the lead is certain**.
- least where all differences have one sign and the smallest size, 1 / k: m = n k (a - b) of them give p = 2^(1 - m). Above
  alpha, **no predictions could make it a lead**.

PSP weighs hits: with weights between w and W (those of labels that every, and of labels that no train point has), and the
mean over points of the best sum of k weights, M, D_i^2 <= k W |D_i| gives z >= (a - b) sqrt(n M / (k W min(a + b, 2 - a - b))).
M is not printed, but k P@k w <= PSP@k M for every row. No lower bound follows: differences of weights may be arbitrarily small.

What is certain here is certain of the test points alone, as if they had been drawn at random: not of another training run, a
better tuned rival, or two versions of a dataset under one name.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xcrepro.core import distributions
from xcrepro.core.arguments import one_of, real_number, whole_number
from xcrepro.core.data import registry
from xcrepro.core.errors import ArgumentError
from xcrepro.core.metrics.significance import holm
from xcrepro.repro.published.checks import Cell

if TYPE_CHECKING:
    import pandas as pd

VERDICTS = ("certain", "open", "no lead")


@dataclass(frozen=True)
class Lead:
    """What two printed numbers say of a lead: the p with the most and with the least disagreement of the two models.

    ``agree_for`` is the most sum D_i^2 / n that still makes it a lead (for P@1 the share of points where just one of
    the two is right), and ``bound`` the most that it can be. ``p_least`` is 0 for PSP, where nothing bounds it.
    """

    first: Cell
    second: Cell
    p_most: float
    p_least: float
    agree_for: float
    bound: float
    alpha: float

    @property
    def verdict(self) -> str:
        """``"certain"``: p is below alpha whatever the predictions; ``"no lead"``: above it whatever they are; ``"open"``."""
        return "certain" if self.p_most <= self.alpha else "no lead" if self.p_least > self.alpha else "open"

    def __str__(self) -> str:
        gap = self.first.value - self.second.value
        said = {
            "certain": f"certain: p is at most {self.p_most:.2g} whatever the two predicted",
            "no lead": f"no lead: p is at least {self.p_least:.2g} whatever the two predicted",
            "open": f"open: a lead if the mean squared difference of a point is at most {self.agree_for:.4g}, of at most "
            f"{self.bound:.4g} possible",
        }
        return f"{self.first.printed} against {self.second.printed}, {gap:.2f} points: {said[self.verdict]}."


@dataclass(frozen=True)
class Weights:
    """PSP's least and greatest weight of a label on a dataset, and the least mean over points of the best sum of k weights."""

    low: float
    high: float
    mean_best: float

    @classmethod
    def of(cls, n_train: int, A: float, B: float, k: int = 1, rows: Iterable[tuple[float, float]] = ()) -> Weights:
        """The weights from the propensity model and pairs (P@k, PSP@k) printed for the dataset, else a mean of ``low``."""
        from xcrepro.core import propensity

        high, low = propensity.inverse([0, n_train], n_train, A, B)
        best = max((low * k * p / psp for p, psp in rows if psp > 0), default=low)
        return cls(float(low), float(high), min(max(best, float(low)), k * float(high)))


def lead(
    first: str,
    second: str,
    n: int,
    metric: str = "P",
    k: int = 1,
    *,
    weights: Weights | None = None,
    alpha: float = 0.05,
    one: float = 100.0,
) -> Lead:
    """Is the difference of two printed numbers of the same n test points more than their luck, whatever the predictions?

    The metric is P@k (nDCG@1 is P@1), or PSP@k as a ratio to the best, which needs ``weights``. ``one`` is a perfect
    score: 100 for percent, 1 for fractions.
    """
    whole_number("n", n, 1)
    whole_number("k", k, 1)
    one_of("metric", metric, ("P", "PSP"))
    real_number("alpha", alpha, above=0, below=1)
    if metric == "PSP" and weights is None:
        raise ArgumentError("weights", "must be given for PSP", None, "take Weights.of(n_train, A, B, k, rows)")
    cells = [_cell(name, text, one) for name, text in (("first", first), ("second", second))]
    high, low = sorted(cells, key=lambda cell: -cell.value)
    least = max(0.0, (high.low - low.high) / one)  # of the difference: rounding may have made the lead
    most = (high.high - low.low) / one
    # The bound on sum D^2 / n is greatest where a + b is nearest to 1.
    sums = (high.low + low.low) / one, (high.high + low.high) / one
    share = min(1.0, sums[1] if sums[1] <= 1 else 2 - sums[0] if sums[0] >= 1 else 1.0)
    unit = 1.0 if metric == "P" else k * weights.high / weights.mean_best
    bound = unit * share
    z = least * math.sqrt(n / bound) if bound > 0 else (math.inf if least > 0 else 0.0)
    flips = math.floor(n * k * most + 1e-9)
    p_least = min(1.0, 2.0 ** (1 - flips)) if metric == "P" else 0.0
    quantile = distributions.normal_quantile(1 - alpha / 2)
    if metric == "P" and k == 1:
        ahead, apart = math.ceil(n * least - 1e-9), math.floor(n * bound + 1e-9)
        return Lead(high, low, _exact(ahead, apart), p_least, _apart(ahead, alpha, quantile) / n, bound, alpha)
    certain = n * (least / quantile) ** 2
    return Lead(high, low, max(2.0 * distributions.normal(-z), p_least), p_least, certain, bound, alpha)


def _exact(ahead: int, apart: int) -> float:
    """McNemar's two-sided p with at most ``apart`` points where just one is right, of which one has ``ahead`` more."""
    more = ahead + (max(apart, ahead) - ahead) // 2
    return min(1.0, 2.0 * distributions.beta(more, more - ahead + 1, 0.5)) if more else 1.0


def _apart(ahead: int, alpha: float, quantile: float) -> int:
    """The most points where just one is right that leave a lead of ``ahead`` a p of at most alpha; 0 where none do."""
    # Where the normal law puts it, up to a few.
    apart = ahead + 2 * max(0, math.floor((((ahead - 1) / quantile) ** 2 - ahead) / 2))
    while _exact(ahead, apart + 2) <= alpha:
        apart += 2
    while apart >= ahead and _exact(ahead, apart) > alpha:
        apart -= 2
    return apart if apart >= ahead else 0


def in_order(printed: Sequence[str], n: int, *about, **named) -> list[tuple[Lead, float]]:
    """Printed numbers of one metric, best first: each :class:`Lead` over the next, and Holm's of its ``p_most``."""
    if len(printed) < 2:
        raise ArgumentError("printed", "must hold two numbers or more", list(printed))
    one = named.get("one", 100.0)
    if one == 100.0 and all(re.fullmatch(r"0?\.\d+", str(text)) for text in printed):
        do = "0.54 would be 0.54 percent: write 54, or say that these are fractions with one=1"
        raise ArgumentError("printed", "must be percent", ", ".join(map(str, printed)), do)
    cells = sorted((_cell("printed", text, one) for text in printed), key=lambda cell: -cell.value)
    found = [lead(high.printed, low.printed, n, *about, **named) for high, low in itertools.pairwise(cells)]
    return list(zip(found, holm([each.p_most for each in found]), strict=True))


def _cell(name: str, text: str, whole: float) -> Cell:
    if re.fullmatch(r"\d{1,3},\d{1,2}", str(text)):
        do = f"a point, not a comma: {text.replace(',', '.')}"
        raise ArgumentError(name, "must be a printed number", repr(text), do)
    try:
        cell = Cell.of(str(text))
    except ValueError as error:
        raise ArgumentError(name, "must be a printed number", repr(text), str(error)) from None
    if not 0 <= cell.value <= whole:
        raise ArgumentError(name, f"must lie in 0 to {whole:g}", repr(text), "percent, or fractions with one=1")
    return cell


def leads(metric: str = "P", k: int = 1, dataset: str | None = None, alpha: float = 0.05) -> pd.DataFrame:
    """Every row of the page's benchmark tables (or of one) against the next one: which leads are certain.

    Columns: dataset, place (1: the best against the second), method, next, printed, next printed, gap (points), p most,
    p Holm (corrected for all rows returned), p least, open at, bound, verdict. Numbers that cannot be right are left
    out before.
    """
    import pandas as pd

    wanted = registry.get(dataset).printed_name if dataset else ""
    rows = []
    for name, printed in _page().groupby("dataset", sort=False):
        if wanted not in ("", name):
            continue
        printed = printed[printed["k"] == k]
        entry = registry.get(name)
        mine = printed[printed["metric"] == metric].sort_values("value", ascending=False, kind="stable")
        weights = weights_of(entry.name, k) if metric == "PSP" else None
        lines = list(mine[["method", "printed"]].itertuples(index=False, name=None))
        for place, ((method, text), (following, other)) in enumerate(itertools.pairwise(lines), start=1):
            found = lead(text, other, entry.n_test, metric, k, weights=weights, alpha=alpha)
            gap = round(found.first.value - found.second.value, 6)
            p = found.p_most, found.p_least, found.agree_for, found.bound
            rows.append((entry.printed_name, place, method, following, text, other, gap, *p, found.verdict))
    table = pd.DataFrame(rows, columns=_COLUMNS)
    table.insert(table.columns.get_loc("p most") + 1, "p Holm", holm(table["p most"]) if len(table) else [])
    return table


_COLUMNS = ["dataset", "place", "method", "next", "printed", "next printed", "gap", "p most", "p least", "open at", "bound",
            "verdict"]  # fmt: skip


@functools.cache
def _page() -> pd.DataFrame:
    """The numbers of the page's benchmark tables that the audit does not find impossible; kept, for the audit takes seconds."""
    from xcrepro.repro.published.audit import doubted
    from xcrepro.repro.published.printed_tables import find

    printed = find(source="xcrepo", metric=["P", "N", "PSP", "PSN"])
    printed = printed[printed["printed"] != ""]
    return printed[doubted(printed) == ""]


def weights_of(dataset: str, k: int = 1) -> Weights:
    """PSP's weights on a dataset of the catalogue, from its propensity model and the page's P@k and PSP@k."""
    entry = registry.get(dataset)
    if entry.n_train is None or entry.A is None or entry.B is None:
        raise ArgumentError("dataset", "must have train points and a propensity model in the catalogue", repr(dataset))
    printed = _page()
    printed = printed[(printed["dataset"] == entry.printed_name) & (printed["k"] == k)]
    table = printed.pivot_table(index="row", columns="metric", values="value").reindex(columns=["P", "PSP"]).dropna()
    pairs = list(table.itertuples(index=False, name=None))
    return Weights.of(entry.n_train, entry.A, entry.B, k, pairs)
