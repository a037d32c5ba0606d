"""What the reruns of figures 2 and 3 of "Re-evaluating XMTC methods in tail label prediction" compute and draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import models
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import baselines, datasets, trained
from xcrepro.metrics import labelwise, ranking, significance
from xcrepro.predictions import TopK
from xcrepro.repro import figures, reeval_tables
from xcrepro.repro.reeval_rerun import check_ks, need

BASELINE = "SVM"
LEVEL = 0.01  # of the paper's stars
METRICS = {"micro_F1": "micro-F1", "macro_F1": "macro-F1"}

Loaded = Mapping[str, Dataset]
Tops = Mapping[str, Mapping[str, TopK]]

# ---------------------------------------------------------------- figure 2


def bars(loaded: Loaded, tops: Tops, ks: Sequence[int]) -> pd.DataFrame:
    """The bars of figure 2, percent: metric, dataset, k, method, value."""
    at, rows = check_ks(loaded, ks), []
    for title, methods in tops.items():
        k, Y = at[title], loaded[title].test.Y
        for method, top in methods.items():
            values = {"micro_F1": ranking.micro_f1(Y, top, (k,)), "macro_F1": labelwise.macro_f1(Y, top, (k,))}
            rows += [(metric, title, k, method, 100 * values[metric][0]) for metric in METRICS]
    found = pd.DataFrame(rows, columns=["metric", "dataset", "k", "method", "value"])
    return pd.concat([found[found["metric"] == metric] for metric in METRICS], ignore_index=True)


def leads(
    loaded: Loaded, tops: Tops, ks: Sequence[int], baseline: str = BASELINE, samples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Each model against the baseline in both averages, with a paired bootstrap over the test points; points.

    Columns metric, dataset, k, method, difference (to the baseline), low, high (95 % of the samples), p (two-sided).
    """
    need(baseline, tops)
    at, rows = check_ks(loaded, ks), []
    for title, methods in tops.items():
        for method, top in methods.items():
            if method == baseline:
                continue
            found = significance.paired_bootstrap(
                loaded[title].test.Y, top, methods[baseline], (at[title],), metrics=list(METRICS.values()),
                samples=samples, seed=seed,
            )  # fmt: skip
            for metric, one in zip(METRICS, found, strict=True):
                rows.append((metric, title, one.k, method, 100 * one.difference, 100 * one.low, 100 * one.high, one.p))
    columns = ["metric", "dataset", "k", "method", "difference", "low", "high", "p"]
    return pd.DataFrame(rows, columns=columns)


_FILL = [("#1b2a49", ""), ("#b9cfe8", ""), ("#ffffff", "////"), ("#e39a2d", ""), ("#ffffff", "...."), ("#96301c", "")]


def _fill(place: int) -> tuple[str, str]:
    return _FILL[place % len(_FILL)]


def plot_bars(data: pd.DataFrame, baseline: str = BASELINE, twin: bool = True) -> Figure:
    """Micro-F1 above, macro-F1 below, a panel a dataset; a diamond where the paper prints the SVM's value."""
    titles = {"micro_F1": "micro-F1@k, %", "macro_F1": "macro-F1@k, %"}
    names, methods = list(dict.fromkeys(data["dataset"])), list(dict.fromkeys(data["method"]))
    printed = reeval_tables.bars().set_index(["metric", "dataset", "method"])["value"]
    with figures.new(width=8.6, height=4.8, ncols=len(names), nrows=2, squeeze=False) as (fig, axes):
        for metric, line in zip(titles, axes, strict=True):
            for title, ax in zip(names, line, strict=True):
                part = data[(data["metric"] == metric) & (data["dataset"] == title)]
                ax.set_title(f"{title}{', twin' if twin else ''}, k = {part['k'].iloc[0]}", loc="left")
                ax.set_xticks([])
                ax.grid(axis="x", visible=False)
                ax.margins(y=0.13)
                theirs = np.nan
                if baseline == reeval_tables.BASELINE:
                    theirs = printed.get((metric, title, baseline), np.nan)
                best = part["value"].max()
                for place, row in enumerate(part.itertuples()):
                    color, hatch = _fill(methods.index(row.method))
                    ax.bar(place, row.value, 0.8, color=color, hatch=hatch, edgecolor="black", label=row.method)
                    if row.method == baseline and np.isfinite(theirs):
                        ax.plot(
                            place, theirs, "D", color="white", markeredgecolor="black", linestyle="none",
                            label="SVM as printed, real data",
                        )  # fmt: skip
                    # At the foot of the bars, where no diamond can hide them.
                    ax.annotate(
                        f"{row.value:.1f}", (place, 0), (0, 4), textcoords="offset points", ha="center", fontsize=7,
                        fontweight="bold" if row.value == best else "normal",
                        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                    )  # fmt: skip
            line[0].set_ylabel(titles[metric])
        handles, labels = axes[0, 0].get_legend_handles_labels()
        shown = dict(zip(labels, handles, strict=True))
        shown = {name: shown[name] for name in [*methods, *(label for label in shown if label not in methods)]}
        fig.legend(shown.values(), shown, loc="outside lower center", ncols=len(shown))
        fig.suptitle(_bars_title(reeval_tables.best_bars(data, baseline), baseline), x=0.01, ha="left", fontsize=10)
    return fig


def _bars_title(best: pd.DataFrame, baseline: str) -> str:
    """The finding, counted out, whatever it is."""
    led = {metric: int((best[f"best {metric}"] == baseline).sum()) for metric in METRICS}
    n = len(best)
    return f"The {baseline} leads macro-F1 on {led['macro_F1']} of {n} datasets, micro-F1 on {led['micro_F1']} (bold: the best)"


# ---------------------------------------------------------------- figure 3


def bins(loaded: Loaded, tops: Tops, ks: Sequence[int], baseline: str = BASELINE, more_than: int = 10) -> pd.DataFrame:
    """Binned macro-F1 of each model beside the baseline's: what the bars and the stars of figure 3 are made of.

    Columns dataset, k, method, bin, labels, value and baseline (percent), difference (points), improvement (percent of the
    baseline; NaN where that is 0), t, p: the macro t-test, two-sided; NaN in bins of ``more_than`` labels or fewer. The
    paper's bins begin at one train point; labels never trained, and bins without a label, are left out.
    """
    need(baseline, tops)
    at, rows = check_ks(loaded, ks), []
    for title, methods in tops.items():
        ds, k = loaded[title], at[title]
        counts = {method: labelwise.confusion(ds.test.Y, top, (k,)) for method, top in methods.items()}
        binned = {
            method: labelwise.binned_macro_f1(one, ks=(k,), label_counts=ds.label_counts)
            for method, one in counts.items()
        }
        for method in methods:
            if method == baseline:
                continue
            tests = significance.macro_t_test(
                counts[method], counts[baseline], label_counts=ds.label_counts, more_than=more_than
            )
            gained = labelwise.relative_improvement(binned[method], binned[baseline])
            for row, test in zip(gained.itertuples(), tests, strict=True):
                if row.bin == "0" or row.labels == 0:
                    continue
                difference = 100 * (row.value - row.baseline)
                rows.append(
                    (title, k, method, row.bin, row.labels, 100 * row.value, 100 * row.baseline, difference,
                     100 * row.improvement, test.t, test.p)
                )  # fmt: skip
    columns = ["dataset", "k", "method", "bin", "labels", "value", "baseline", "difference", "improvement", "t", "p"]
    return pd.DataFrame(rows, columns=columns)


def resampled(
    loaded: Loaded, tops: Tops, ks: Sequence[int], baseline: str = BASELINE, samples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """The same differences with the paired bootstrap over test points: dataset, method, bin, low, high (points), p.

    Macro-F1 of a bin is macro-F1 with the other labels taken out of the truth, times all labels over the bin's: a label
    without a test positive adds 0 to the mean, and what is predicted of one label touches no other label's F1.
    """
    need(baseline, tops)
    at, rows = check_ks(loaded, ks), []
    for title, methods in tops.items():
        ds, k = loaded[title], at[title]
        which, names = labelwise.frequency_bins(ds.label_counts, ds.test.Y.shape[1])
        for b, name in enumerate(names):
            labels = np.flatnonzero(which == b)
            if name == "0" or labels.size == 0:
                continue
            Y, share = only(ds.test.Y, labels), ds.test.Y.shape[1] / labels.size
            for method in methods:
                if method == baseline:
                    continue
                [one] = significance.paired_bootstrap(
                    Y, methods[method], methods[baseline], (k,), metrics=["macro-F1"], samples=samples, seed=seed
                )
                rows.append((title, method, name, 100 * share * one.low, 100 * share * one.high, one.p))
    found = pd.DataFrame(rows, columns=["dataset", "method", "bin", "low", "high", "p"])
    order = {key: i for i, key in enumerate((title, method) for title in tops for method in tops[title])}
    place = [order[key] for key in zip(found["dataset"], found["method"], strict=True)]
    return found.assign(place=place).sort_values("place", kind="stable").drop(columns="place").reset_index(drop=True)


def only(Y, labels: np.ndarray):
    """Y, (n, L), with nothing relevant but the given labels; the shape stays."""
    keep = np.zeros(Y.shape[1], np.float32)
    keep[labels] = 1
    masked = Y.multiply(keep[None, :]).tocsr()
    masked.eliminate_zeros()
    return masked


def verdicts(binned: pd.DataFrame, bootstrap: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """What the two tests say of each bar: dataset, method, bin, labels, difference, t-test, bootstrap (texts: ``better``,
    ``worse``, ``-`` where p is not below ``level``, ``untested``), agree.
    """
    both = binned.merge(bootstrap, on=["dataset", "method", "bin"], suffixes=("", " rows"), validate="one_to_one")
    tests = {
        "t-test": [_verdict(r.p, r.difference, level) for r in both.itertuples()],
        # The samples' differences, and not the one on all points, say which side is meant.
        "bootstrap": [
            _verdict(p, low + high, level)
            for p, low, high in zip(both["p rows"], both["low"], both["high"], strict=True)
        ],
    }
    found = both[["dataset", "method", "bin", "labels", "difference"]].assign(**tests)
    agree = np.where(found["t-test"] == "untested", "", np.where(found["t-test"] == found["bootstrap"], "yes", "no"))
    return found.assign(agree=agree)


def _verdict(p: float, difference: float, level: float) -> str:
    if np.isnan(p):
        return "untested"
    if not p < level:
        return "-"
    return "better" if difference > 0 else "worse"


def disagreements(found: pd.DataFrame, binned: pd.DataFrame, bootstrap: pd.DataFrame) -> pd.DataFrame:
    """The bars of :func:`verdicts` that one test alone calls a difference, with p of the t-test, and low, high and p of the
    bootstrap."""
    keys = ["dataset", "method", "bin"]
    both = found.merge(binned[[*keys, "p"]], on=keys).merge(bootstrap, on=keys, suffixes=("", " (points)"))
    return both[both["agree"] == "no"].drop(columns="agree").reset_index(drop=True)


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """How many bars of each bin lie above and below the baseline, and for how many each test says so: bin, bars, above,
    below, starred above, starred below, agree (of those tested by both), tested."""
    rows = []
    for name in sorted(set(found["bin"]), key=lambda text: int(text.split("-")[0].rstrip("+"))):
        part = found[found["bin"] == name]
        rows.append(
            {
                "bin": name,
                "bars": len(part),
                "above": int((part["difference"] > 0).sum()),
                "below": int((part["difference"] < 0).sum()),
                "* above": int((part["t-test"] == "better").sum()),
                "* below": int((part["t-test"] == "worse").sum()),
                "rows above": int((part["bootstrap"] == "better").sum()),
                "rows below": int((part["bootstrap"] == "worse").sum()),
                "tested by both": int((part["agree"] != "").sum()),
                "agree": int((part["agree"] == "yes").sum()),
            }
        )
    return pd.DataFrame(rows)


def psp_and_tail(loaded: Loaded, tops: Tops, binned: pd.DataFrame, baseline: str = BASELINE) -> pd.DataFrame:
    """Appendix D's point: does a gain in PSP mean a gain on tail labels? Differences to the baseline in points.

    Columns dataset, method, k, P, PSP, macro-F1, first bin (the macro-F1 of the rarest labels), all at the dataset's k.
    """
    need(baseline, tops)
    rows = []
    for title, methods in tops.items():
        ds, part = loaded[title], binned[binned["dataset"] == title]
        k = int(part["k"].iloc[0])
        weights, values = datasets.weights(ds), {}
        for method, top in methods.items():
            found = ranking.values(["P", "PSP"], ds.test.Y, top, (k,), weights)
            found |= labelwise.values(["macro-F1"], ds.test.Y, top, (k,))
            values[method] = {name: 100 * value[0] for name, value in found.items()}
        first = part["bin"].iloc[0]
        for method in methods:
            if method == baseline:
                continue
            tail = part[(part["method"] == method) & (part["bin"] == first)]["difference"].iloc[0]
            gains = {name: values[method][name] - values[baseline][name] for name in ("P", "PSP", "macro-F1")}
            rows.append({"dataset": title, "method": method, "k": k, **gains, "rarest bin": tail})
    return pd.DataFrame(rows)


def costs(ds: Dataset, k: int, values: Sequence[float], seed: int = 0) -> pd.DataFrame:
    """The same one-vs-rest on the same features with other losses and other C: what of the tail is the model's, and what is
    its regularisation's?

    Columns loss, C, micro_F1, macro_F1, then binned macro-F1, a column a bin that has labels; percent at k. No rows for no
    values.
    """
    rows = []
    for loss in ("squared_hinge", "logistic"):
        for C in values:
            model = models.OneVsRest(loss=loss, C=C, seed=seed)
            top = trained.training(model, ds.train.X, ds.train.Y).predictions(ds.test.X, baselines.PLACES)
            binned = labelwise.binned_macro_f1(ds.test.Y, top, (k,), label_counts=ds.label_counts)
            binned = binned[(binned["bin"] != "0") & (binned["labels"] > 0)]
            row = {"loss": loss, "C": float(C), "micro_F1": 100 * ranking.micro_f1(ds.test.Y, top, (k,))[0]}
            row["macro_F1"] = 100 * labelwise.macro_f1(ds.test.Y, top, (k,))[0]
            rows.append(row | {bin: 100 * value for bin, value in zip(binned["bin"], binned["value"], strict=True)})
    return pd.DataFrame(rows)


def plot_bins(data: pd.DataFrame, baseline: str = BASELINE, twin: bool = True, level: float = LEVEL) -> Figure:
    """Relative improvement over the baseline by bin, a panel a dataset; a star where the macro t-test has p < 0.01."""
    names, methods = list(dict.fromkeys(data["dataset"])), list(dict.fromkeys(data["method"]))
    with figures.new(width=8.8, height=3.5, ncols=len(names), squeeze=False, sharey=True) as (fig, axes):
        for title, ax in zip(names, axes[0], strict=True):
            part = data[data["dataset"] == title]
            shown = list(dict.fromkeys(part["bin"]))
            labels = part.groupby("bin")["labels"].first()
            width = 0.8 / len(methods)
            for m, method in enumerate(methods):
                color, hatch = _fill(m + 1)
                mine = part[part["method"] == method].set_index("bin").loc[shown]
                place = np.arange(len(shown)) + (m - (len(methods) - 1) / 2) * width
                gain = mine["improvement"].to_numpy()
                ax.bar(
                    place, np.nan_to_num(gain), width, color=color, hatch=hatch, edgecolor="black", linewidth=0.6,
                    label=method,
                )  # fmt: skip
                for x, y, p in zip(place, gain, mine["p"], strict=True):
                    if p < level and np.isfinite(y):
                        ax.annotate(
                            "*", (x, y), (0, 2 if y > 0 else -3), textcoords="offset points", ha="center",
                            va="baseline" if y > 0 else "top", fontsize=9,
                        )  # fmt: skip
            for b, name in enumerate(shown):
                here = part[part["bin"] == name]
                note = "" if here["p"].notna().any() else "not tested"
                note = f"{baseline}: 0" if here["improvement"].isna().all() else note
                if note:
                    ax.annotate(
                        note, (b, 0), (0, 14), textcoords="offset points", ha="center", fontsize=7, color="0.35"
                    )
            ax.axhline(0, color="black", linewidth=0.8)
            ax.set_title(f"{title}{', twin' if twin else ''}, k = {part['k'].iloc[0]}", loc="left")
            ax.set_xticks(range(len(shown)), [f"{name}\n{labels[name]:,} labels" for name in shown])
            ax.grid(axis="x", visible=False)
            ax.margins(y=0.12)
        axes[0, 0].set_ylabel(f"binned macro-F1@k,\nchange from the {baseline}'s, %")
        axes[0, len(names) // 2].set_xlabel("training points that carry the label")
        handles, texts = axes[0, 0].get_legend_handles_labels()
        star = axes[0, 0].plot([], [], marker="$*$", color="black", linestyle="none")
        texts = [*texts, f"macro t-test, p < {level:g}"]
        fig.legend([*handles, *star], texts, loc="outside lower center", ncols=len(texts))
        fig.suptitle(_bins_title(data, baseline), x=0.01, ha="left", fontsize=10)
    return fig


def _bins_title(data: pd.DataFrame, baseline: str) -> str:
    """The finding, counted out, whatever it is."""
    first = data["bin"] == data["bin"].iloc[0]
    bars = int(first.sum())
    below = int((data.loc[first, "difference"] < 0).sum())
    above = int((data.loc[~first, "difference"] > 0).sum())
    return (
        f"On the rarest labels {below} of {bars} bars lie below the {baseline}; on the others {above} of "
        f"{int((~first).sum())} lie above it"
    )
