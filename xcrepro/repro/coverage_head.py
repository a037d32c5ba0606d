"""What the items on training without the tail compute and draw: which metric notices? (coverage, section 3.5)

A *model* here is an (n, L) CSR of scores of the test points, the candidates; models that differ only in how many labels
they were trained on are kept as number of labels -> model, the last with all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import matplotlib.ticker
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import decide, metrics, propensity
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.errors import ArgumentError, DataError
from xcrepro.inputs import baselines, trained
from xcrepro.metrics import calibration
from xcrepro.predictions import TopK
from xcrepro.repro import coverage, figures
from xcrepro.truth import Truth

KS = (1, 3, 5)
ALPHA = 0.25
RULES: dict[str, Callable[[sparse.csr_matrix, int], TopK]] = {
    "top k": lambda model, k: TopK.from_scores(model, k),
    "greedy": lambda model, k: decide.greedy_coverage(model, k),
}
"""How k labels are chosen: by score, or by the coverage paper's greedy rule (beta = 0), decided for each k."""

POINTS = ("P", "R", "nDCG", "Abandonment", "micro-F1", "PSP", "PSnDCG")
LABELS = ("coverage", "alpha-coverage", "n'-coverage", "macro-P", "macro-R", "macro-F1", "label entropy")
_NAMES = {"nDCG (ideal k)": "nDCG", "abandonment": "Abandonment"}
_PRINTED = {
    "P": "P", "nDCG": "N", "Abandonment": "Abandonment", "coverage": "Cov",
    "macro-P": "macro_P", "macro-R": "macro_R", "macro-F1": "macro_F1",
}  # fmt: skip

# ---------------------------------------------------------------- models without their tail


def head(label_counts: np.ndarray, n: int) -> np.ndarray:
    """(L,) bool: the n labels with the most train points; of equally frequent ones those of lowest id.

    >>> head(np.array([3, 9, 3, 0]), 2).tolist()
    [True, True, False, False]
    """
    counts = np.asarray(label_counts)
    if not 1 <= n <= counts.size:
        raise ArgumentError("heads", f"must be from 1 to the {counts.size} labels", n)
    keep = np.zeros(counts.size, bool)
    keep[np.argsort(-counts, kind="stable")[:n]] = True
    return keep


def only(matrix: sparse.csr_matrix, keep: np.ndarray) -> sparse.csr_matrix:
    """The entries of the labels in ``keep``, stored zeros among them; the shape stays, and so do rows left empty."""
    matrix = sparse.csr_matrix(matrix)
    stays = keep[matrix.indices]
    indptr = np.concatenate([[0], np.cumsum(stays)])[matrix.indptr]
    return sparse.csr_matrix((matrix.data[stays], matrix.indices[stays], indptr), shape=matrix.shape)


def models(
    ds: Dataset, name: str, heads: Sequence[int], seed: int = 0, given: str = ""
) -> dict[int, sparse.csr_matrix]:
    """Number of labels -> the baseline ``name`` trained on the most frequent labels alone, and last on all of them.

    All train points stay, also those without a label left: they are negatives. 100 candidates a test point.

    given: a folder of saved predictions instead: ``full`` and any of ``head-1000``, ``head-100`` ... with their number of
    labels, each with an ending that :func:`xcrepro.inputs.baselines.saved` reads. Raises DataError for other names.
    """
    n_labels = ds.train.Y.shape[1]
    if given:
        return _given(given, ds, n_labels)
    found = {n: head(ds.label_counts, n) for n in sorted(set(heads))}
    model = baselines.recipe(name, ds, seed)
    tops = {
        n: trained.training(model, ds.train.X, only(ds.train.Y, keep)).predictions(ds.test.X, baselines.PLACES)
        for n, keep in found.items()
    }
    tops[n_labels] = baselines.training(name, ds, seed).predictions(ds.test.X, baselines.PLACES)
    return {n: top.to_csr() for n, top in tops.items()}


def _given(path: str, ds: Dataset, n_labels: int) -> dict[int, sparse.csr_matrix]:
    found = {}
    for name, top in baselines.saved(path, ds).items():
        text = name.removeprefix("head-")
        if name != "full" and (text == name or not text.isdigit() or not 0 < int(text) < n_labels):
            do = "Name the files full and head-<number of labels>"
            raise DataError(path, f"predictions called {name!r}", "what they were trained on in the name", do=do)
        found[n_labels if name == "full" else int(text)] = top.to_csr()
    if n_labels not in found:
        raise DataError(path, "no predictions called 'full'", "a model trained on all labels to compare with")
    return dict(sorted(found.items()))


def perfect(ds: Twin, heads: Sequence[int]) -> dict[int, sparse.csr_matrix]:
    """The same for a model that knows every probability of the twin's most frequent labels, and of no other label."""
    eta, n_labels = ds.test.marginals, ds.train.Y.shape[1]
    return {n: only(eta, head(ds.label_counts, n)) for n in sorted(set(heads))} | {n_labels: eta}


def struck_out(ds: Dataset, found: Mapping[int, sparse.csr_matrix], k: int = 5) -> pd.DataFrame:
    """Is training on the head the same as striking the tail out of what the full model predicts?

    Columns labels, positives (percent of the train positives that these labels have), same labels (percent of the k
    places filled alike), P@k of both ways (percent).
    """
    *heads, n_labels = found
    rows = []
    for n in heads:
        keep = head(ds.label_counts, n)
        tops = [TopK.from_scores(model, k) for model in (found[n], only(found[n_labels], keep))]
        P = [100 * float(metrics.precision(ds.test.Y, top, k)[0]) for top in tops]
        same = 100 * float((tops[0].ids == tops[1].ids).mean())
        rows.append((n, 100 * ds.label_counts[keep].sum() / ds.label_counts.sum(), same, *P))
    return pd.DataFrame(
        rows, columns=["labels", "positives", f"same in top {k}", f"P@{k} trained", f"P@{k} struck out"]
    )


# ---------------------------------------------------------------- the metrics


def measured(
    ds: Dataset, found: Mapping[int, sparse.csr_matrix], rule: str = "top k", ks=KS, calibrated: bool = False
) -> pd.DataFrame:
    """Every metric of each model: columns metric, k, labels, value, in this order of metrics and rising k and labels.

    Percent, except label entropy (nats). ``Abandonment`` as the paper prints it: the share of points with a hit.
    nDCG has the paper's ideal of k hits; coverage and macro averages are over all labels; alpha-coverage has alpha = 0.25,
    n'-coverage n' = a tenth of the points; macro-F1 is also given by bin of train frequency, bins without labels left out.

    rule: of :data:`RULES`. calibrated: also ECE of the k scores, which must be probabilities; for ``"top k"`` only.
    """
    truth, counts = Truth.of(ds.test.Y), ds.label_counts
    weights = propensity.inverse(counts, ds.n_train, ds.A, ds.B)
    names = ["P", "R", "nDCG (ideal k)", "abandonment", "micro-F1", "PSP", "PSnDCG"]
    names += ["coverage", "macro-P", "macro-R", "macro-F1", "label entropy", "binned macro-F1"]
    rows = []
    for n, model in found.items():
        for k in ks:
            top = RULES[rule](model, k)
            table = metrics.evaluate(truth, top, k, inverse_propensity=weights, label_counts=counts, metrics=names)
            value = dict(zip(table["metric"], table["value"], strict=True))
            value["abandonment"] = 1 - value["abandonment"]
            value["alpha-coverage"] = metrics.alpha_coverage(truth, top, k, alpha=ALPHA)[0]
            value["n'-coverage"] = metrics.sampled_coverage(truth, top, k, sample_size=max(len(top) // 10, 1))[0]
            if calibrated:
                value["ECE"] = calibration.ece(*calibration.pairs(truth, top))
            for name, v in value.items():
                rows.append((_NAMES.get(name, name), k, n, float(v) * (1 if name == "label entropy" else 100)))
    table = pd.DataFrame(rows, columns=["metric", "k", "labels", "value"])
    known = [*POINTS, *LABELS]
    order = [*known, *(name for name in table["metric"].unique() if name not in known)]
    place = table["metric"].map(order.index)
    return table.assign(place=place).sort_values(["place", "k", "labels"], ignore_index=True).drop(columns="place")


def kept(table: pd.DataFrame) -> pd.DataFrame:
    """What is kept of each metric: the columns of :func:`measured`, then full (the value with all labels) and kept (percent
    of it; NaN where that is 0)."""
    full = table.loc[table["labels"] == table["labels"].max()].set_index(["metric", "k"])["value"]
    full = full.loc[list(zip(table["metric"], table["k"], strict=True))].to_numpy()
    share = np.divide(100 * table["value"].to_numpy(), full, out=np.full(len(table), np.nan), where=full > 0)
    return table.assign(full=full, kept=share)


def wide(table: pd.DataFrame, value: str = "value", k: int | None = None) -> pd.DataFrame:
    """One row a metric and k (or this k alone), one column a number of labels: ``value`` or ``kept``."""
    table = table if k is None else table[table["k"] == k]
    found = table.pivot(index=["metric", "k"], columns="labels", values=value)
    found = found.reindex(pd.MultiIndex.from_frame(table[["metric", "k"]].drop_duplicates()))
    found.columns = [str(n) for n in found.columns]
    return found.reset_index()


def steady(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that another run of the training leaves as they are but for a percent or so, for comparison: without ECE, and
    without alpha-coverage, where a single label among few weighs much."""
    return table[~table["metric"].isin(["ECE", "alpha-coverage"])].reset_index(drop=True)


def printed() -> pd.DataFrame:
    """Table 1 under the names used here: metric, k, printed full, printed head-1000, printed kept (percent of full)."""
    table = coverage.head_only()
    names = {theirs: ours for ours, theirs in _PRINTED.items()}
    columns = ["metric", "k", "printed full", "printed head", "printed kept"]
    share = 100 * table["head-1000"] / table["full"]
    rows = zip(table["metric"].map(names), table["k"], table["full"], table["head-1000"], share, strict=True)
    return pd.DataFrame(rows, columns=columns)


def table1(table: pd.DataFrame, labels: int) -> pd.DataFrame:
    """Table 1 anew: metric, k, full, head (``labels`` of them), kept, and the printed columns (NaN for metrics that the
    paper's table does not have). ``table``: from :func:`kept`."""
    names = [*POINTS, *LABELS]
    part = table[(table["labels"] == labels) & table["metric"].isin(names)]
    part = part.rename(columns={"value": "head"})[["metric", "k", "full", "head", "kept"]]
    part = part[part["metric"].isin([*_PRINTED, "PSP", "PSnDCG"])]
    return part.merge(printed(), on=["metric", "k"], how="left", validate="one_to_one")


def untouched(table: pd.DataFrame, labels: int) -> pd.DataFrame:
    """What is kept with ``labels`` trained, on average over k: metric, then ours and printed (percent); smallest loss first.

    ``table``: from :func:`kept`. The printed nDCG@1 is left out: 58.1 where P@1 is 93.0 cannot be.
    """
    found = table1(table, labels)
    found.loc[(found["metric"] == "nDCG") & (found["k"] == 1), "printed kept"] = np.nan
    means = found.groupby("metric", sort=False)[["kept", "printed kept"]].mean()
    return means.sort_values("kept", ascending=False, kind="stable").reset_index()


def views(ds: Dataset, found: Mapping[int, sparse.csr_matrix]) -> dict[str, pd.DataFrame]:
    """Name -> :func:`kept` of the models in ``found`` under each rule of :data:`RULES`; for a twin also of the perfect model
    with the same heads. The scores must be probabilities."""
    sources = {"trained": found}
    if isinstance(ds, Twin):
        sources["perfect"] = perfect(ds, list(found)[:-1])
    return {
        f"{source}, {rule}": kept(measured(ds, by_labels, rule, calibrated=rule == "top k"))
        for source, by_labels in sources.items()
        for rule in RULES
    }


def without_half(tables: Mapping[str, pd.DataFrame], k: int = 5) -> pd.DataFrame:
    """The share of each metric that is kept with about half of the labels: metric, labels, one column for each of ``tables``,
    which are from :func:`kept`."""
    first = next(iter(tables.values()))
    labels = _nearest(first, 0.5)
    parts = {
        name: t[(t["labels"] == labels) & (t["k"] == k)].set_index(["metric", "labels"])["kept"]
        for name, t in tables.items()
    }
    first = next(iter(parts.values()))
    return pd.DataFrame({name: part.reindex(first.index) for name, part in parts.items()}).reset_index()


def _nearest(table: pd.DataFrame, share: float) -> int:
    """The number of labels trained that is nearest to this share of all."""
    most = int(table["labels"].max())
    return int(min(table["labels"].unique(), key=lambda n: abs(n - share * most)))


def falls(table: pd.DataFrame, k: int = 5, level: float = 90.0) -> pd.DataFrame:
    """How many labels a metric needs before it keeps ``level`` percent: metric, labels, share (percent of all labels).

    Going down from all labels, the point where the line between two numbers of labels first goes below the level; the
    smallest number that was tried where it never does. A small share: the metric notices late, or not at all.
    ``table``: from :func:`kept`. Metrics without a value for all labels are left out, and ECE, which is an error.
    """
    rows, most = [], int(table["labels"].max())
    part = table[(table["k"] == k) & table["kept"].notna()]
    for name, one in part[part["metric"] != "ECE"].groupby("metric", sort=False):
        n, share = one["labels"].to_numpy(float), one["kept"].to_numpy()
        below = np.flatnonzero(share < level)
        at = n[0]
        if below.size:
            i = below[-1]
            at = n[i] + (level - share[i]) / (share[i + 1] - share[i]) * (n[i + 1] - n[i])
        rows.append((name, at, 100 * at / most))
    found = pd.DataFrame(rows, columns=["metric", "labels", "share"])
    return found.sort_values("share", kind="stable").reset_index(drop=True)


# ---------------------------------------------------------------- figures


def plot_table1(table: pd.DataFrame) -> Figure:
    """What is kept of each metric with a head of labels: a panel a k, filled marks ours, hollow ones the printed table 1.

    ``table``: from :func:`kept`.
    """
    order = ["P", "nDCG", "Abandonment", "PSnDCG", "PSP", "coverage", "macro-P", "macro-R", "macro-F1"]
    height = {name: i for i, name in enumerate(order)}
    most = int(table["labels"].max())
    heads = [n for n in sorted(table["labels"].unique()) if n < most]
    theirs = printed()
    with figures.new(width=8.0, height=3.7, ncols=len(KS), sharey=True, sharex=True) as (fig, axes):
        for ax, k in zip(axes, KS, strict=True):
            ax.axvline(100, color="0.5", linewidth=0.8)
            for n, mark, colour in zip(heads, "osD^v", ("C0", "C2", "C4", "C3", "C5"), strict=False):
                part = table[(table["labels"] == n) & (table["k"] == k) & table["metric"].isin(order)]
                label = f"{n:,} of {most:,} labels"
                ax.plot(part["kept"], part["metric"].map(height), mark, color=colour, linestyle="none", label=label)
            part = theirs[theirs["k"] == k]
            ax.plot(
                part["printed kept"], part["metric"].map(height), "s", color="C1", fillstyle="none", markersize=7,
                linestyle="none", label="printed: AmazonCat-13K, 1,000 of 13,330",
            )  # fmt: skip
            ax.set(xlabel=f"kept of the metric @{k}, %", title=f"k = {k}")
        axes[0].set_yticks(list(height.values()), order)
        axes[0].invert_yaxis()
        handles, texts = axes[0].get_legend_handles_labels()
        fig.legend(handles, texts, loc="outside lower center", ncols=4)
        fig.suptitle(_title(table, heads[0]), x=0.01, ha="left", fontsize=10)
    return fig


def _title(table: pd.DataFrame, labels: int) -> str:
    one = table[(table["labels"] == labels) & (table["k"] == 5)].set_index("metric")["kept"]
    return (
        f"Trained on {labels:,} of {table['labels'].max():,} labels, P@5 keeps {one['P']:.0f} % of its value, "
        f"coverage@5 {one['coverage']:.0f} %, macro-F1@5 {one['macro-F1']:.0f} %"
    )


def plot_tail(ds: Dataset, plain: pd.DataFrame, ideal: pd.DataFrame | None = None, k: int = 5) -> Figure:
    """What is kept of each metric against the share of labels trained, with two yardsticks in grey: those labels' share of all
    labels and of the train positives. ``plain``, ``ideal``: from :func:`kept`, of the trained and the perfect model."""
    bins = [name for name in plain["metric"].unique() if name.startswith("macro-F1 (")]
    over_labels = ["label entropy", "n'-coverage", "macro-R", "coverage", "macro-F1"]
    panels = [
        ("averages over points", plain, ["P", "nDCG", "R", "Abandonment", "PSP"]),
        ("averages over labels", plain, over_labels),
        ("macro-F1 of labels by their train points", plain, bins),
    ]
    if ideal is not None:
        names = ["P", "PSP", "label entropy", "coverage", "macro-F1"]
        panels.append(("averages with perfect probabilities", ideal, names))
    most = int(plain["labels"].max())
    counts = np.sort(ds.label_counts)[::-1]
    n = np.sort(plain["labels"].unique())
    x, positives = 100 * n / most, 100 * np.cumsum(counts)[n - 1] / counts.sum()
    with figures.new(width=8.4, height=6.4, nrows=2, ncols=2, sharex=True, sharey=True) as (fig, axes):
        for ax, (title, table, names) in zip(axes.flat, panels, strict=False):
            greys = [
                *ax.plot(x, positives, color="0.75", linestyle="--", linewidth=3, zorder=0),
                *ax.plot(x, x, color="0.75", linestyle="-", linewidth=3, zorder=0),
            ]
            part = table[table["k"] == k]
            for name, mark in zip(names, "os^Dv", strict=False):
                one = part[(part["metric"] == name) & part["kept"].notna()].sort_values("labels")
                if len(one):
                    label = name.removeprefix("macro-F1 (").rstrip(")") if name in bins else name
                    ax.plot(100 * one["labels"] / most, one["kept"], marker=mark, label=label)
            ax.set(title=title, xscale="log", ylim=(-4, 115))
            ax.legend(loc="lower right", handlelength=2.2, borderaxespad=0.1)
        marks = [t for t in (1, 2, 5, 10, 20, 50, 100) if t >= 0.8 * x[0]]
        axes[0, 0].set_xticks(marks, map(str, marks))
        axes[0, 0].xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        for ax in axes[:, 0]:
            ax.set_ylabel(f"kept of the metric @{k}, %")
        for ax in axes[-1]:
            ax.set_xlabel("labels trained, the most frequent first, % (log scale)")
        for ax in axes.flat[len(panels) :]:
            ax.set_visible(False)
        texts = ["yardsticks: share of all train positives that these labels have", "share of all labels that they are"]
        fig.legend(greys, texts, loc="outside lower center", ncols=2)
        fig.suptitle(_tail_title(plain, ideal, k), x=0.01, ha="left", fontsize=10)
    return fig


def _tail_title(plain: pd.DataFrame, ideal: pd.DataFrame | None, k: int) -> str:
    names = ["P", "coverage", "macro-F1"]

    def kept_at(table: pd.DataFrame, share: float) -> tuple[str, str]:
        n = _nearest(table, share)
        one = table[(table["k"] == k) & (table["labels"] == n)].set_index("metric")["kept"]
        return f"{100 * n / table['labels'].max():.0f} %", ", ".join(f"{one[name]:.0f}" for name in names) + " %"

    (few, low), (some, high) = kept_at(plain, 0.1), kept_at(plain, 0.5)
    metrics_at = ", ".join(f"{name}@{k}" for name in names)
    text = f"With {few} of the labels trained, {metrics_at} keep {low} of their values;\nwith {some}, {high}"
    return text + (f", and with perfect probabilities {kept_at(ideal, 0.5)[1]}." if ideal is not None else ".")
