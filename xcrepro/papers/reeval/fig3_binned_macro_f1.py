"""Figure 3, rerun: binned macro-F1 against the SVM's and against the best there is, with the macro t-test and a
bootstrap."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import optimize, sparse

from xcrepro import looks, metrics, models
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import ranked
from xcrepro.papers.reeval._common import BASELINE, Loaded, Tops, others, panel_title, predict, runs, stable_models
from xcrepro.predictions import TopK
from xcrepro.repro import figures, golden
from xcrepro.truth import Truth

LEVEL = 0.01
"""Of the paper's stars."""
KEYS = ["dataset", "method", "bin"]


def compute(
    loaded: Loaded, tops: Tops, ks: Sequence[int], baseline: str = BASELINE, more_than: int = 10
) -> pd.DataFrame:
    """Binned macro-F1 of each model and of the baseline: what the bars and the stars of figure 3 are made of.

    Parameters
    ----------
    loaded, tops : mapping
        Printed name -> dataset, and -> model -> predictions for its test points.
    ks : sequence of int
        One k for each dataset.
    baseline : str
        The model that the others are compared with.
    more_than : int
        Bins of so many labels or fewer are not tested.

    Returns
    -------
    DataFrame
        dataset, k, method, bin, labels, value and baseline (percent), difference (points), improvement (percent of
        the baseline; NaN where that is 0), t, p: the macro t-test, two-sided; NaN where not tested; ceiling
        (:func:`best_macro_f1` of the bin's labels, percent). The paper's bins begin at one train point; labels never
        trained, and bins without a label, are left out.
    """
    parts = []
    for title, ds, k, methods in runs(loaded, tops, ks):
        bins = {"label_counts": ds.label_counts}
        best = {b: 100 * best_macro_f1(ds.test.Y[:, labels], k) for b, labels in labels_by_bin(ds).items()}
        binned = {method: metrics.binned_macro_f1(ds.test.Y, top, (k,), **bins) for method, top in methods.items()}
        how = {"metrics": "binned macro-F1", "more_than": more_than, **bins}
        for method, top in others(methods, baseline).items():
            with warnings.catch_warnings():
                # Where labels share errors is seen in the table that compares this test with the bootstrap.
                warnings.simplefilter("ignore", metrics.SharedErrorsWarning)
                tests = metrics.macro_t_test(ds.test.Y, top, methods[baseline], (k,), **how)
            found = metrics.relative_improvement(binned[method], binned[baseline])
            found = found[found["labels"] > 0]
            found = found.assign(dataset=title, method=method, t=[t.t for t in tests], p=[t.p for t in tests])
            found["ceiling"] = found["bin"].map(best)
            parts.append(found[found["bin"] != "0"])
    found = pd.concat(parts, ignore_index=True)
    found["difference"] = found["value"] - found["baseline"]
    shares = ["value", "baseline", "difference", "improvement"]
    found[shares] *= 100
    return found[["dataset", "k", "method", "bin", "labels", *shares, "t", "p", "ceiling"]]


def check(table: pd.DataFrame) -> pd.DataFrame:
    """Stable models, without differences and the rarest labels' bin, where one hit is a fifth of the value.

    That bin is held by its hits: :func:`check_hits`.
    """
    kept = stable_models(table[table["bin"] != registry.BINS[0]])
    return kept.drop(columns=["difference", "improvement", "t", "p"])


# ---------------------------------------------------------------- what can be reached, and what is hit


def labels_by_bin(ds: Dataset) -> dict[str, np.ndarray]:
    """The paper's bins of train frequency that have labels, rarest first: name -> label ids, int64."""
    which, names = metrics.labelwise.frequency_bins(ds.label_counts, ds.test.Y.shape[1])
    found = {name: np.flatnonzero(which == b) for b, name in enumerate(names)}
    return {name: labels for name, labels in found.items() if labels.size and name != "0"}


def best_macro_f1(Y: sparse.csr_matrix, k: int) -> float:
    """The ceiling: the largest macro-F1@k that any predictions of at most k labels a point can have.

    A perfect predictor names relevant labels only, for a wrong one lowers its label's F1 and takes a place. A label
    without a point has F1 = 0 whatever is predicted. Points with at most k labels have all of them named. Of the others
    it is chosen which: F1 of a label with n points, t of them hit, is 2t / (t + n), so the t-th hit adds
    2n / ((t + n)(t - 1 + n)), less than the one before, and the best choice is the solution of a linear programme (a
    flow from labels to points, so it is whole).

    Parameters
    ----------
    Y : csr_matrix, shape (n, L)
        The truth of the labels that are averaged; of a bin, its columns: each bin has a ceiling of its own.
    k : int

    Returns
    -------
    float
        In [0, 1]; 0 without labels.

    Examples
    --------
    >>> Y = sparse.csr_matrix([[1, 1, 0], [1, 0, 0]])                     # the third label has no point
    >>> round(best_macro_f1(Y, 2), 4), round(best_macro_f1(Y, 1), 4)       # (1 + 1 + 0) / 3, (2/3 + 1 + 0) / 3
    (0.6667, 0.5556)
    """
    crowded = np.diff(Y.indptr) > k
    points, sure = (np.bincount(part.indices, minlength=Y.shape[1]) for part in (Y, Y[~crowded]))
    total = (2 * sure / np.maximum(sure + points, 1)).sum()
    pairs = Y[crowded].tocsc()
    if pairs.nnz:
        # One unknown a pair, whether it is hit, and one for each hit of a label, the first one first.
        label = np.repeat(np.arange(Y.shape[1]), np.diff(pairs.indptr))
        n, t = points[label], sure[label] + 1 + np.arange(pairs.nnz) - pairs.indptr[label]
        at, one = np.arange(pairs.nnz), np.ones(pairs.nnz)
        places = sparse.csr_matrix((one, (pairs.indices, at)), shape=(pairs.shape[0], 2 * pairs.nnz))
        ends = np.concatenate([label, label]), np.arange(2 * pairs.nnz)
        counted = sparse.csr_matrix((np.concatenate([-one, one]), ends), shape=(Y.shape[1], 2 * pairs.nnz))
        gain = np.concatenate([np.zeros(pairs.nnz), 2 * n / ((t + n) * (t - 1 + n))])
        limit = np.concatenate([np.full(pairs.shape[0], k), np.zeros(Y.shape[1])])
        found = optimize.linprog(
            -gain, A_ub=sparse.vstack([places, counted]), b_ub=limit, bounds=(0, 1), method="highs"
        )
        total -= found.fun
    return float(total / max(Y.shape[1], 1))


def compute_hits(loaded: Loaded, tops: Tops, ks: Sequence[int]) -> pd.DataFrame:
    """How many relevant labels each model finds in each bin: what binned macro-F1 stands on.

    Parameters
    ----------
    loaded, tops, ks
        As for :func:`xcrepro.papers.reeval._common.runs`.

    Returns
    -------
    DataFrame
        dataset, k, bin, labels, with a test point (of the labels), pairs (of a test point and a label of the bin
        relevant to it), then a column a model: how many of the pairs are among its first k. Whole numbers.
    """
    rows = []
    for title, ds, k, methods in runs(loaded, tops, ks):
        points = np.bincount(ds.test.Y.indices, minlength=ds.test.Y.shape[1])
        hits = {method: hits_by_label(ds.test.Y, top, k) for method, top in methods.items()}
        for name, labels in labels_by_bin(ds).items():
            row = {"dataset": title, "k": k, "bin": name, "labels": labels.size}
            row |= {"with a test point": int((points[labels] > 0).sum()), "pairs": int(points[labels].sum())}
            rows.append(row | {method: int(found[labels].sum()) for method, found in hits.items()})
    return pd.DataFrame(rows)


def hits_by_label(Y, top: TopK, k: int) -> np.ndarray:
    """How often each label is relevant and among the first k: int64, (L,)."""
    first = top.head(k).ids
    return np.bincount(first[Truth.of(Y).hits(np.ascontiguousarray(first))], minlength=Y.shape[1])


HITS = 4
"""Hits that a bin may have more or fewer than accepted: another processor's rounding turns some close rankings. Inputs changed
in the seventh digit moved PfastreXML's by one, on a twin of a quarter of the points, and the SVM's and PLT's by none."""


def check_hits(table: pd.DataFrame) -> pd.DataFrame:
    """All counts; those of models within :data:`HITS`."""
    models = table.columns[list(table.columns).index("pairs") + 1 :]
    return golden.within(table, dict.fromkeys(models, HITS))


# ---------------------------------------------------------------- two tests


def compute_bootstrap(
    loaded: Loaded, tops: Tops, ks: Sequence[int], baseline: str = BASELINE, samples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """The same differences with the paired bootstrap over test points.

    Macro-F1 of a bin is macro-F1 with the other labels taken out of the truth, times all labels over the bin's: a label
    without a test positive adds 0 to the mean, and what is predicted of one label touches no other label's F1.

    Parameters
    ----------
    loaded, tops, ks
        As for :func:`xcrepro.papers.reeval._common.runs`.
    baseline : str
        One of the models.
    samples, seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        dataset, method, bin, low, high (points), p.
    """
    # Drawn with replacement, as the committed numbers were; the kit's own choice for macro-F1 is `halves`.
    rows, how = [], {"metrics": ["macro-F1"], "samples": samples, "seed": seed, "method": "bootstrap"}
    for title, ds, k, methods in runs(loaded, tops, ks):
        n_labels, bins = ds.test.Y.shape[1], labels_by_bin(ds)
        truths = {name: only_labels(ds.test.Y, np.isin(np.arange(n_labels), bins[name])) for name in bins}
        for method, top in others(methods, baseline).items():
            for name, Y in truths.items():
                [one] = metrics.paired_bootstrap(Y, top, methods[baseline], (k,), **how)
                share = 100 * n_labels / bins[name].size
                rows.append((title, method, name, share * one.low, share * one.high, one.p))
    return pd.DataFrame(rows, columns=[*KEYS, "low", "high", "p"])


def only_labels(Y, wanted: np.ndarray):
    """The truth with nothing relevant but some labels; the shape stays.

    Parameters
    ----------
    Y : sparse matrix, shape (n, L)
    wanted : ndarray of bool, shape (L,)

    Returns
    -------
    csr_matrix, shape (n, L)
    """
    masked = Y.multiply(wanted[None, :]).tocsr()
    masked.eliminate_zeros()
    return masked


def compute_verdicts(table: pd.DataFrame, bootstrap: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """What the two tests say of each bar.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    bootstrap : DataFrame
        From :func:`compute_bootstrap`, of the same bars.
    level : float
        Of both tests.

    Returns
    -------
    DataFrame
        dataset, method, bin, labels, difference, then t-test and bootstrap (texts: ``better``, ``worse``, ``-`` where
        p is not below ``level``, ``untested``), agree (``yes``, ``no``, empty where the t-test was not made), and p
        of the t-test, low, high and p of the bootstrap, which are p (points).
    """
    bars = table[[*KEYS, "labels", "difference", "p"]]
    both = bars.merge(bootstrap, on=KEYS, suffixes=("", " (points)"), validate="one_to_one")
    both.insert(5, "t-test", _verdicts(both["p"], both["difference"], level))
    # The samples' differences, and not the one on all points, say which side is meant.
    both.insert(6, "bootstrap", _verdicts(both["p (points)"], both["low"] + both["high"], level))
    same = np.where(both["t-test"] == both["bootstrap"], "yes", "no")
    both.insert(7, "agree", np.where(both["t-test"] == "untested", "", same))
    return both


def _verdicts(p: pd.Series, difference: pd.Series, level: float) -> np.ndarray:
    return np.select([p.isna(), ~(p < level), difference > 0], ["untested", "-", "better"], "worse")


def compute_summary(verdicts: pd.DataFrame) -> pd.DataFrame:
    """How many bars of each bin lie above and below the baseline, and for how many each test says so.

    Parameters
    ----------
    verdicts : DataFrame
        From :func:`compute_verdicts`.

    Returns
    -------
    DataFrame
        bin, bars, above, below, * above, * below (the t-test), rows above, rows below (the bootstrap), tested by
        both, and agree (of those).
    """
    counted = verdicts[["bin"]].assign(bars=1, above=verdicts["difference"] > 0, below=verdicts["difference"] < 0)
    for mark, test in (("*", "t-test"), ("rows", "bootstrap")):
        for side, word in (("above", "better"), ("below", "worse")):
            counted[f"{mark} {side}"] = verdicts[test] == word
    counted["tested by both"], counted["agree"] = verdicts["agree"] != "", verdicts["agree"] == "yes"
    counts = counted.groupby("bin").sum().astype(int)
    return counts.loc[[name for name in registry.BINS if name in counts.index]].reset_index()


# ---------------------------------------------------------------- PSP, and the weight of the loss


def compute_psp(
    loaded: Loaded, tops: Tops, ks: Sequence[int], table: pd.DataFrame, baseline: str = BASELINE
) -> pd.DataFrame:
    """Appendix D's point: does a gain in PSP mean a gain on tail labels?

    Parameters
    ----------
    loaded, tops, ks
        As for :func:`xcrepro.papers.reeval._common.runs`.
    table : DataFrame
        From :func:`compute`, of the same.
    baseline : str
        One of the models.

    Returns
    -------
    DataFrame
        dataset, method, k, and differences to the baseline in points at the dataset's k: P, of twins P complete (on
        the complete truth, what PSP estimates), PSP, macro-F1, rarest bin (the macro-F1 of the rarest labels).
    """
    parts = []
    for title, ds, k, methods in runs(loaded, tops, ks):
        bars = table[table["dataset"] == title]
        rarest = bars[bars["bin"] == bars["bin"].iloc[0]].set_index("method")["difference"]
        values = ranked.compare(ds, methods, ["P", "PSP", "macro-F1"], [k]).set_index("model")
        differences = (values - values.loc[baseline]).loc[list(others(methods, baseline))]
        differences.columns = differences.columns.str.replace(f"@{k}", "")
        differences = differences.assign(**{"rarest bin": rarest}).rename_axis("method").reset_index()
        differences.insert(0, "dataset", title)
        differences.insert(2, "k", k)
        parts.append(differences)
    return pd.concat(parts, ignore_index=True)


def compute_costs(ds: Dataset, k: int, costs: Sequence[float], seed: int = 0) -> pd.DataFrame:
    """The same one-vs-rest on the same features with other losses and other C.

    What of the tail is the model's, and what is its regularisation's?

    Parameters
    ----------
    ds : Dataset
    k : int
    costs : sequence of float
        The C.
    seed : int
        Of the trainings.

    Returns
    -------
    DataFrame
        loss, C, micro_F1, macro_F1, then binned macro-F1, a column a bin that has labels; percent at k. No rows for no
        ``costs``.
    """
    rows = []
    for loss in ("squared_hinge", "logistic"):
        for C in costs:
            top = predict(models.OneVsRest(loss=loss, C=C, seed=seed), ds)
            values = 100 * metrics.evaluate(ds.test.Y, top, (k,), metrics=["micro-F1", "macro-F1"])["value"]
            binned = metrics.binned_macro_f1(ds.test.Y, top, (k,), label_counts=ds.label_counts)
            binned = binned[(binned["bin"] != "0") & (binned["labels"] > 0)].set_index("bin")["value"]
            rows.append({"loss": loss, "C": float(C), "micro_F1": values[0], "macro_F1": values[1], **(100 * binned)})
    return pd.DataFrame(rows)


def check_costs(table: pd.DataFrame) -> pd.DataFrame:
    """Without the bins, where few hits decide."""
    return table[["loss", "C", "micro_F1", "macro_F1"]]


# ---------------------------------------------------------------- the figure


def plot(table: pd.DataFrame, baseline: str = BASELINE, twin: bool = True, level: float = LEVEL, ax=None) -> Figure:
    """Figure 3: above, relative improvement over the baseline by bin, starred by the macro t-test; below, the values.

    Below, a bar across each bin is its ceiling: no predictions whatever have more (:func:`best_macro_f1`).

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    baseline : str
        As given to it.
    twin : bool
        Whether the values are of twins; panels are named so.
    level : float
        A star stands where p is below it.
    ax : array of Axes, shape (2, datasets), optional
    """
    names, methods = table["dataset"].unique(), table["method"].unique()
    shape = {"nrows": 2, "ncols": len(names), "squeeze": False, "sharex": "col", "sharey": "row"}
    with figures.new(looks.WIDE, 5.6, ax=ax, **shape) as (fig, axes):
        for title, upper, lower in zip(names, *axes, strict=True):
            part = table[table["dataset"] == title]
            bins = part.drop_duplicates("bin").set_index("bin")
            _draw_improvements(upper, part, bins.index, methods, baseline, level)
            _draw_values(lower, part, bins, methods, baseline)
            upper.set_title(panel_title(title, part["k"].iloc[0], twin), loc="left")
            lower.set_xticks(range(len(bins)), [f"{name}\n{n:,} labels" for name, n in bins["labels"].items()])
        axes[0, 0].set_ylabel(f"change from\nthe {baseline}'s, %")
        axes[1, 0].set_ylabel("binned macro-F1@k, %")
        axes[1, len(names) // 2].set_xlabel("training points that carry the label")
        axes[0, -1].plot([], [], marker="$*$", color=looks.INK, linestyle="none", label=f"macro t-test, p < {level:g}")
        looks.legend(fig, ncols=4)
        looks.title(fig, describe_bars(table, baseline))
    return fig


def _draw_improvements(panel, part: pd.DataFrame, bins: pd.Index, methods, baseline: str, level: float) -> None:
    width, small = 0.8 / len(methods), {"ha": "center", "fontsize": looks.TINY, "color": "0.35"}
    for m, method in enumerate(methods):
        mine = part[part["method"] == method].set_index("bin").loc[bins]
        place = np.arange(len(mine)) + (m - (len(methods) - 1) / 2) * width
        panel.bar(place, mine["improvement"], width, label=method, **looks.of(method).bar())
        for x, y, p in zip(place, mine["improvement"], mine["p"], strict=True):
            if p < level and np.isfinite(y):
                up, va = (2, "baseline") if y > 0 else (-3, "top")
                panel.annotate("*", (x, y), (0, up), textcoords="offset points", ha="center", va=va)
    figures.draws(panel, y="improvement")
    for b, (_, here) in enumerate(part.groupby("bin", sort=False)):
        note = "" if here["p"].notna().any() else "not tested"
        note = f"{baseline}: 0" if here["improvement"].isna().all() else note
        panel.annotate(note, (b, 0), (0, 14), textcoords="offset points", **small)
    panel.axhline(0, color=looks.INK, linewidth=0.8)
    panel.grid(axis="x", visible=False)
    panel.margins(y=0.12)


def _draw_values(panel, part: pd.DataFrame, bins: pd.DataFrame, methods, baseline: str) -> None:
    width = 0.8 / (len(methods) + 1)
    series = {baseline: bins["baseline"]}
    series |= {m: part[part["method"] == m].set_index("bin").loc[bins.index, "value"] for m in methods}
    for m, (name, values) in enumerate(series.items()):
        panel.bar(
            np.arange(len(bins)) + (m - len(methods) / 2) * width, values, width, label=name, **looks.of(name).bar()
        )
    for b, ceiling in enumerate(bins["ceiling"]):
        line = {
            "color": looks.RUST,
            "linestyle": "-",
            "marker": "",
            "linewidth": 2,
            "label": "ceiling: no predictions have more",
        }
        panel.plot([b - 0.42, b + 0.42], [ceiling, ceiling], **line)
        looks.name(panel, f"{ceiling:.1f}", (b, ceiling), (0, 3), ha="center")
    figures.draws(panel, y=("baseline", "value", "ceiling"))
    panel.grid(axis="x", visible=False)
    panel.margins(y=0.12)


def describe_bars(table: pd.DataFrame, baseline: str = BASELINE) -> str:
    """The finding of figure 3, counted out, whatever it is.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    baseline : str
        As given to it.

    Returns
    -------
    str
    """
    rarest = table["bin"] == table["bin"].iloc[0]
    low, high = table.loc[rarest, "difference"] < 0, table.loc[~rarest, "difference"] > 0
    low, high = f"{low.sum()} of {low.size} bars lie below", f"{high.sum()} of {high.size} lie above it"
    return f"On the rarest labels {low} the {baseline}; on the others {high}"
