"""Every metric as labels are taken out of training, rarest first: which one notices? (section 3.5, extended)"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import matplotlib.ticker
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.papers.coverage import _common
from xcrepro.papers.coverage._common import RULES, Models, head, only
from xcrepro.repro import figures, tables

models, check_parameters = _common.models, _common.check_heads
PERFECT = "perfect"
"""The model that knows a twin's probabilities."""

METRICS = {
    "P": looks.Look(looks.INK, "o", "-"),
    "nDCG": looks.Look(looks.ROSE, "s", "--"),
    "R": looks.Look(looks.LEAF, "^", "-."),
    "Abandonment": looks.Look(looks.GREY, "D", ":"),
    "PSP": looks.Look(looks.AMBER, "v", (0, (5, 1, 1, 1))),
    "label entropy": looks.Look(looks.VIOLET, "P", "-"),
    "n'-coverage": looks.Look(looks.SKY, "s", "--"),
    "macro-R": looks.Look(looks.LEAF, "^", "-."),
    "coverage": looks.Look(looks.RUST, "D", ":"),
    "macro-F1": looks.Look(looks.TEAL, "v", (0, (5, 1, 1, 1))),
}
"""The averages that the figure draws, each with one look."""


def perfect(ds: Twin, heads: Sequence[int]) -> Models:
    """Models that know every probability to be observed of the twin's most frequent labels, and of no other label.

    Parameters
    ----------
    ds : Twin
    heads : sequence of int
        Numbers of labels, each from 1 to L.

    Returns
    -------
    dict of int to csr_matrix
        Number of labels -> model, the last with all.
    """
    eta, n_labels = ds.test.observed_marginals, ds.train.Y.shape[1]
    return {n: only(eta, head(ds.label_counts, n)) for n in sorted(set(heads))} | {n_labels: eta}


def compute(ds: Dataset, found: Mapping[str, Models], k: int = 5) -> pd.DataFrame:
    """Every metric of the models under each rule of ``RULES``; for a twin also of a perfect model with the same heads.

    Parameters
    ----------
    ds : Dataset
    found : mapping
        Name -> number of labels -> model, from :func:`models`; the scores must be probabilities.
    k : int
        Beside 1, 3 and 5.

    Returns
    -------
    DataFrame
        Column view ("1-vs-All, top k", "1-vs-All, greedy", "perfect, top k", "perfect, greedy"), the columns of
        :func:`xcrepro.papers.coverage._common.measure`, and two yardsticks: labels % and positives %, the share of all
        labels, and of the train positives, that the labels trained are and have.
    """
    sources = dict(found)
    if isinstance(ds, Twin):
        sources[PERFECT] = perfect(ds, list(next(iter(found.values())))[:-1])
    ks = sorted({*_common.KS, k})
    cells = itertools.product(sources, RULES)
    views = {view(name, rule): _common.measure(ds, sources[name], rule, rule == "top k", ks) for name, rule in cells}
    table = pd.concat(views, names=["view"]).reset_index("view").reset_index(drop=True)
    counts = np.sort(ds.label_counts)[::-1]
    table["labels %"] = 100 * table["labels"] / counts.size
    table["positives %"] = 100 * np.cumsum(counts)[table["labels"] - 1] / counts.sum()
    return table


def view(model: str, rule: str = "top k") -> str:
    """The name of a model under a rule."""
    return f"{model}, {rule}"


def of_view(table: pd.DataFrame, name: str = "") -> pd.DataFrame:
    """The rows of one view; of the first by default."""
    return table[table["view"] == (name or table["view"].iloc[0])]


def wide(table: pd.DataFrame, value: str = "value", k: int = 5) -> pd.DataFrame:
    """The first model's values at one k.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    value : {"value", "kept"}
    k : int

    Returns
    -------
    DataFrame
        One row a metric, one column a number of labels.
    """
    return _common.wide(of_view(table), value, k)


def compute_half(table: pd.DataFrame, k: int = 5) -> pd.DataFrame:
    """The share of each metric that is kept with about half of the labels.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    k : int

    Returns
    -------
    DataFrame
        metric, labels, one column a view (percent).
    """
    part = table[(table["labels"] == _nearest(table, 0.5)) & (table["k"] == k)]
    return tables.spread(part, ["metric", "labels"], "view", "kept")


def _nearest(table: pd.DataFrame, share: float) -> int:
    """The number of labels trained that is nearest to this share of all."""
    return int(min(table["labels"].unique(), key=lambda n: abs(n - share * table["labels"].max())))


def compute_labels_needed(table: pd.DataFrame, k: int = 5, view: str = "", level: float = 90.0) -> pd.DataFrame:
    """How many labels a metric needs before it keeps ``level`` percent.

    Going down from all labels, the point where the line between two numbers of labels first goes below the level; the
    smallest number that was tried where it never does. A small share: the metric notices late, or not at all.
    Metrics without a value for all labels are left out, and those that are errors (ECE).

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    k : int
    view : str
        By default the first.
    level : float
        Percent of the value with all labels.

    Returns
    -------
    DataFrame
        Columns metric, labels, share (percent of all labels); smallest first.
    """
    rows, part = [], of_view(table, view)
    part = part[(part["k"] == k) & part["kept"].notna() & ~part["metric"].isin(_common.ERRORS)]
    for name, one in part.groupby("metric", sort=False):
        n, share = one["labels"].to_numpy(float), one["kept"].to_numpy()
        below = np.flatnonzero(share < level)
        at = n[0]
        if below.size:
            i = below[-1]
            at = n[i] + (level - share[i]) / (share[i + 1] - share[i]) * (n[i + 1] - n[i])
        rows.append((name, at, 100 * at / n[-1]))
    found = pd.DataFrame(rows, columns=["metric", "labels", "share"])
    return found.sort_values("share", kind="stable", ignore_index=True)


def plot(table: pd.DataFrame, k: int = 5, ax=None) -> Figure:
    """What is kept of each metric of the first model against the share of labels trained, with two yardsticks in grey.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    k : int
    ax : array of four Axes, optional
    """
    drawn = table[(table["k"] == k) & table["kept"].notna()]
    trained, ideal = of_view(drawn, table["view"].iloc[0]), of_view(drawn, view(PERFECT))
    model = table["view"].iloc[0].removesuffix(", top k")
    bins = {name: name[len("macro-F1 (") : -1] for name in table["metric"].unique() if name.startswith("macro-F1 (")}
    panels = [
        ("averages over points", trained, ["P", "R", "nDCG", "Abandonment", "PSP"]),
        ("averages over labels", trained, ["coverage", "n'-coverage", "macro-R", "macro-F1", "label entropy"]),
        ("macro-F1 of labels by their train points", trained, bins),
        ("averages with perfect probabilities", ideal, ["P", "PSP", "coverage", "macro-F1", "label entropy"]),
    ]
    style = METRICS | dict(zip(bins, METRICS.values(), strict=False))
    with figures.new(looks.WIDE, 6.4, nrows=2, ncols=2, sharex=True, sharey=True, ax=ax) as (fig, axes):
        for panel, (title, part, names) in zip(axes.flat, panels, strict=True):
            if part.empty:
                continue
            yardsticks = part[part["metric"] == "P"]
            x, grey = yardsticks["labels %"], {"color": "0.75", "linewidth": 3, "zorder": 0}
            greys = panel.plot(x, yardsticks["positives %"], "--", **grey) + panel.plot(x, x, "-", **grey)
            for name, one in part[part["metric"].isin(list(names))].groupby("metric", sort=False):
                panel.plot(one["labels %"], one["kept"], **style[name].line(), label=bins.get(name, name))
            panel.set(title=title, xscale="log", ylim=(-4, 115))
            panel.legend(loc="lower right", handlelength=2.2, borderaxespad=0.1)
            figures.draws(panel, x="labels %", y=("kept", "labels %", "positives %"))
        marks = [t for t in (1, 2, 5, 10, 20, 50, 100) if t >= 0.8 * x.min()]
        axes[0, 0].set_xticks(marks, map(str, marks))
        axes[0, 0].xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        words = "labels trained, the most frequent first, % (log scale)"
        looks.label_grid(axes, words, f"kept of the metric @{k}, %", shown=len(panels) - ideal.empty)
        texts = ["yardsticks: share of all train positives that these labels have", "share of all labels that they are"]
        fig.legend(greys, texts, loc="outside lower center", ncols=2)
        looks.title(fig, f"What each metric @{k} keeps of its value as the rarest labels leave the training: {model}")
    return fig


def findings(ds: Dataset, found: Mapping[str, Models], table: pd.DataFrame, k: int = 5) -> list[str]:
    """What models keep with about half of the labels, and with a tenth; the first and the last metric to notice.

    Parameters
    ----------
    ds : Dataset
    found : mapping
        From :func:`models`.
    table : DataFrame
        From :func:`compute`.
    k : int

    Returns
    -------
    list of str
    """
    said, sources = [], dict(found)
    if isinstance(ds, Twin):
        sources[PERFECT] = perfect(ds, list(next(iter(found.values())))[:-1])
    full = int(table["labels"].max())
    for name, one in sources.items():
        for n in sorted({_nearest(table, 0.1), _nearest(table, 0.5)} - {full}):
            kept = _common.measure_kept(ds, one, n, k)
            said += [_common.say_kept(kept, name, n, full, k) + f"; {_common.against_precision(kept, k)}."]
    for name in sources:
        needed = compute_labels_needed(table, k, view(name))
        if len(needed) > 1:
            first, last = needed.iloc[0], needed.iloc[-1]
            said.append(
                f"{name}, fewest and most labels to keep 90 % @{k}: {first['metric']} {first['share']:.0f} % of them, "
                f"{last['metric']} {last['share']:.0f} % (one training, no error)."
            )
    return said


def findings_recorded(
    ds: Dataset, found: Mapping[str, Models], table: pd.DataFrame, recorded: Mapping[str, pd.DataFrame], k: int = 5
) -> list[str]:
    """Whether real data say the same of the first model, with about half of the labels.

    Parameters
    ----------
    ds : Dataset
    found, table
        As for :func:`findings`.
    recorded : mapping of str to DataFrame
        Dataset -> its values of the top k, as recorded.
    k : int

    Returns
    -------
    list of str
        Of :func:`xcrepro.papers.coverage._common.kept_recorded`.
    """
    one, n = next(iter(found.values())), _nearest(table, 0.5)
    if n not in one or n == max(one):
        return []
    return [_common.kept_recorded(_common.measure_kept(ds, one, n, k), recorded, k, share=0.5)]
