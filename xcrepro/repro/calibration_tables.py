"""What the items that run tables 2, 4, 5, 6, 7 and 8 of the calibration paper again compute and draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import calibrate
from xcrepro.calibrate import HistogramBinning, Platt
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs import calibrated, datasets
from xcrepro.metrics import ranking
from xcrepro.metrics.calibration import calibration_table, marginal_ece
from xcrepro.predictions import TopK
from xcrepro.repro import calibration, figures

STARTS_ABOVE, FACTOR = 5.0, 5.0
"""The finding: whoever starts above 5 points of ECE@k ends at a fifth of it or less."""
KS = calibrated.KS
ROWS = {"DiSMEC": ("DiSMEC",), "PLT": ("PLT",), "Neural": ("Renee",)}
"""Baseline -> the printed methods it may stand beside. Renee is a one-vs-all network too, on a text encoder."""


# ---------------------------------------------------------------- tables 2, 4, 7 and 8


def errors(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """Table 7 or 8 for our models: k, model, and P, ECE, ACE, Brier (percent), NLL, each before and, marked -I, after."""
    metrics = ("P", *calibrated.METRICS)
    long = calibrated.errors(ds, tops, "isotonic", metrics=metrics)
    wide = long.pivot(index=["k", "model"], columns="metric", values=["before", "after"])
    order = pd.MultiIndex.from_product([KS, list(tops)], names=["k", "model"])
    wide = wide.reindex(order)
    columns = {f"{m}{mark}": wide[when, m] for m in metrics for when, mark in (("before", ""), ("after", "-I"))}
    return pd.DataFrame(columns).reset_index()


def printed(ds: Dataset, models: Sequence[str]) -> pd.DataFrame:
    """The paper's rows for the dataset (of a twin: its original): method, for, k, ECE ... ACE-I as :func:`calibration.cell`
    writes them. No rows where the paper has no table of it."""
    name = datasets.registry_name(ds)
    page = registry.get(name).printed_name if name in registry.names() else ""
    rows = []
    for number in (7, 8):
        table = calibration.table(number)
        table = table[table["dataset"] == page]
        for (k, method), part in table.groupby(["k", "method"], sort=False):
            texts = {
                row.metric + ("-I" if row.variant == "isotonic" else ""): calibration.cell(
                    row.printed, row.value, row.reading
                )
                for row in part.itertuples()
            }
            ours = ", ".join(model for model in models if method in ROWS.get(model, ()))
            rows.append({"k": int(k), "method": method, "for our": ours} | texts)
    columns = ["k", "method", "for our", "ECE", "ECE-I", "ACE", "ACE-I", "Brier", "Brier-I"]
    return pd.DataFrame(rows, columns=columns).fillna("-")


def fall(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """How far ECE@k falls, and how far it could be seen to fall: k, model, and in percent

    - ``ECE``, ``ECE-I``: before and after isotonic regression; ``ratio``: the one over the other, infinite where the other
      is below 0.01 points.
    - ``floor``: what a perfectly calibrated model with the calibrated scores has on average, with this many test points
      (:func:`calibrated.floor`).
    - ``true``, ``true-I``: the same errors against the twin's probabilities in place of hits; NaN on real data.

    Cross-fitted folds lean on each other (a fold's surplus of hits is in the map of all the others), so ``ECE-I`` can lie
    below the floor; ``true-I`` cannot profit from that.
    """
    rows = []
    for k in KS:
        for name, (before, after) in calibrated.before_after(ds, tops, "isotonic", k).items():
            ece = [_ece(ds, top, k) for top in (before, after)]
            true = [calibrated.true_error(ds, top) if isinstance(ds, Twin) else np.nan for top in (before, after)]
            ratio = ece[0] / ece[1] if ece[1] >= 1e-4 else np.inf
            rows.append(
                (k, name, 100 * ece[0], 100 * ece[1], ratio, 100 * calibrated.floor(after), *np.multiply(100, true))
            )
    return pd.DataFrame(rows, columns=["k", "model", "ECE", "ECE-I", "ratio", "floor", "true", "true-I"])


def _ece(ds: Dataset, top: TopK, k: int) -> float:
    return float(calibration_table(ds.test.Y, top, [k], closed=calibrated.CLOSED, metrics=["ECE"])["value"].iloc[0])


def verdicts(fall: pd.DataFrame) -> pd.DataFrame:
    """The finding, one row for each k: how many models start above 5 points, how many of these fall by 5 times or more, the
    least ratio among them, and the models that fall less (texts)."""
    rows = []
    for k, part in fall.groupby("k"):
        high = part[part["ECE"] > STARTS_ABOVE]
        short = high[high["ratio"] < FACTOR]
        least = high["ratio"].min() if len(high) else np.nan
        rows.append((int(k), len(high), len(high) - len(short), least, ", ".join(short["model"]) or "none"))
    columns = ["k", "start above 5 points", "fall 5 times or more", "least ratio", "fall less"]
    return pd.DataFrame(rows, columns=columns)


def solid(table: pd.DataFrame) -> pd.DataFrame:
    """The part of a table that a hit more or less does not move: what the golden file holds.

    P@k, Brier scores, NLL before calibration, means; and errors of 3 points and more, smaller ones as NaN. Errors after
    calibration are the noise of some ten hits, and which hits those are may hang on another processor's last digits.
    """
    errors = ("ECE", "ACE", "true")
    fixed = ("model", "method", "fit", "k", "confidence", "accuracy", "Brier", "Brier-I", "NLL")
    keep = [name for name in table.columns if name in fixed or name.startswith(("P@", *errors)) or name == "P"]
    kept = table[[name for name in keep if not name.endswith(("CE-I", "true-I"))]]
    large = {name: kept[name].where(kept[name] >= 3.0) for name in kept.columns if name.startswith(errors)}
    return kept.assign(**large)


def clear_cases(fall: pd.DataFrame) -> pd.DataFrame:
    """``True`` where ECE@k falls by 5 times or more, for the models that start so high that noise does not decide it (1.5
    times 5 points): k, model, "falls 5 times or more"."""
    high = fall[fall["ECE"] > 1.5 * STARTS_ABOVE].reset_index(drop=True)
    return high[["k", "model"]].assign(**{"falls 5 times or more": high["ratio"] >= FACTOR})


def marginal(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """Equation 6 beside equation 7, for the models whose scores are probabilities: model, marginal ECE (the mean over labels,
    percent; labels beyond a point's stored places count as probability 0), ECE@1, ECE@3, ECE@5."""
    rows = []
    for name, top in tops.items():
        if name in calibrated.NO_PROBABILITIES or not calibrated.is_probability(top):
            continue
        all_labels = 100 * marginal_ece(top.to_csr(), ds.test.Y, reduce="mean", closed=calibrated.CLOSED)
        rows.append((name, all_labels, *(100 * _ece(ds, top.head(k), k) for k in KS)))
    return pd.DataFrame(rows, columns=["model", "marginal ECE", *(f"ECE@{k}" for k in KS)])


def precision_kept(ds: Dataset, tops: Mapping[str, TopK], method: str | object = "isotonic") -> pd.DataFrame:
    """Whether joint calibration left P@1, P@3 and P@5 as they were: model, then for each k "same bits" or the change in
    percent, and ``rows re-ranked``. All of it for one map over the first 5 places."""
    rows = []
    for name, (before, after) in calibrated.before_after(ds, tops, method, max(KS)).items():
        p = [ranking.precision(ds.test.Y, top, KS) for top in (before, after)]
        texts = ["same bits" if a == b else f"{100 * (b - a):+.3f}" for a, b in zip(*p, strict=True)]
        moved = int((before.ids != after.ids).any(axis=1).sum())
        rows.append((name, *texts, moved))
    return pd.DataFrame(rows, columns=["model", *(f"P@{k}" for k in KS), "rows re-ranked"])


def direction(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """Which way the scores err before calibration: k, model, confidence (mean score), accuracy (mean hit), and the over- and
    under-confident halves of ECE, percent."""
    long = pd.concat(
        [
            calibration_table(
                ds.test.Y,
                calibrated.linked(top, k, name),
                [k],
                closed=calibrated.CLOSED,
                metrics=["confidence", "accuracy", "ECE over", "ECE under"],
            ).assign(model=name)
            for k in KS
            for name, top in tops.items()
        ]
    )
    wide = long.assign(value=100 * long["value"]).pivot(index=["k", "model"], columns="metric", values="value")
    order = pd.MultiIndex.from_product([KS, list(tops)], names=["k", "model"])
    found = wide.reindex(order)[["confidence", "accuracy", "ECE over", "ECE under"]].reset_index()
    return found.rename_axis(columns=None)


def in_words(direction: pd.DataFrame) -> pd.DataFrame:
    """``direction`` as words, one row a model, one column a k: "over" or "under" where that half of ECE is at least four
    fifths of it, else "both ways"; "calibrated" where ECE is below 1 point."""

    def word(over: float, under: float) -> str:
        if over + under < 1.0:
            return "calibrated"
        share = over / (over + under)
        return "over" if share >= 0.8 else "under" if share <= 0.2 else "both ways"

    words = [word(row[-2], row[-1]) for row in direction[["ECE over", "ECE under"]].to_numpy()]
    wide = direction.assign(word=words).pivot(index="model", columns="k", values="word")
    wide.columns = [f"k = {k}" for k in wide.columns]
    return wide.loc[list(dict.fromkeys(direction["model"]))].reset_index()


def plot(fall: pd.DataFrame) -> Figure:
    """ECE@k of each model before (hollow) and after (filled) isotonic regression, on a logarithmic axis, with a fifth of the
    start, the noise floor, and the error against the twin's probabilities after it."""
    names = list(dict.fromkeys(fall["model"]))
    at = np.arange(len(names))
    with figures.new(width=8.4, height=3.4, ncols=len(KS), sharey=True, sharex=True) as (fig, axes):
        for axis, (k, part) in zip(axes, fall.groupby("k"), strict=True):
            part = part.set_index("model").loc[names]
            shown = part[["ECE", "ECE-I", "floor", "true-I"]].clip(lower=0.02)
            axis.hlines(at, shown["ECE-I"], shown["ECE"], color="0.75", linewidth=1.0, zorder=1)
            axis.plot(shown["ECE"], at, "o", fillstyle="none", color="C0", label="before", linestyle="none")
            axis.plot(shown["ECE-I"], at, "o", color="C0", label="after", linestyle="none")
            axis.plot(
                part["ECE"] / FACTOR, at, "|", color="C1", markersize=11, label="a fifth of before", linestyle="none"
            )
            axis.plot(shown["floor"], at, "x", color="0.35", label="noise floor", linestyle="none")
            if part["true-I"].notna().any():
                axis.plot(shown["true-I"], at, "^", fillstyle="none", color="C2", label="after, true", linestyle="none")
            axis.set(xscale="log", xlabel=f"ECE@{k} (%)", title=f"k = {k}", xlim=(0.015, 150))
            axis.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        axes[0].set_yticks(at, names)
        axes[0].invert_yaxis()
        fig.suptitle("Isotonic regression takes every model to about the noise floor")
        handles, labels = axes[0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return fig


# ---------------------------------------------------------------- table 5: which method


def log_odds(scores: np.ndarray) -> np.ndarray:
    """log(s / (1 - s)) of scores in [0, 1], which are kept 1e-6 away from its ends; absent places stay minus infinity."""
    present = scores > -np.inf
    inside = np.clip(np.where(present, scores, 0.5).astype(np.float64), 1e-6, 1.0 - 1e-6)
    return np.where(present, np.log(inside / (1.0 - inside)), -np.inf)


METHODS = {
    "isotonic": ("isotonic", None),
    "Platt": ("platt", None),
    "Platt, plain targets": (Platt(targets="plain"), None),
    "Platt of log-odds": ("platt", log_odds),
    "beta": ("beta", None),
    "histogram, equal width": (HistogramBinning(bins=10), None),
    "histogram, equal mass": (HistogramBinning(bins=15, equal="mass"), None),
}
"""Method -> calibrator and link. The paper has the first two; "plain targets" is how its code fits Platt's curve."""


def by_method(
    ds: Dataset, tops: Mapping[str, TopK], methods: Sequence[str] = tuple(METHODS), ks: Sequence[int] = (1, 5)
) -> pd.DataFrame:
    """Every method on every model: model, k, method, and ECE, ACE, Brier (percent), NLL, ``true`` (ECE against the twin's
    probabilities, NaN on real data). The method ``"none"`` comes first."""
    rows = []
    for name, top in tops.items():
        for k in ks:
            before = calibrated.linked(top, k, name)
            for method in ("none", *methods):
                after = before
                if method != "none":
                    calibrator, link = METHODS[method]
                    after = calibrate.cross_fit_top(ds.test.Y, before, calibrator, calibrated.FOLDS, link=link)
                table = calibration_table(
                    ds.test.Y, after, [k], closed=calibrated.CLOSED, metrics=list(calibrated.METRICS)
                )
                value = dict(zip(table["metric"], table["value"], strict=True))
                true = 100 * calibrated.true_error(ds, after) if isinstance(ds, Twin) else np.nan
                percent = [100 * value[metric] for metric in ("ECE", "ACE", "Brier")]
                rows.append((name, int(k), method, *percent, value["NLL"], true))
    return pd.DataFrame(rows, columns=["model", "k", "method", "ECE", "ACE", "Brier", "NLL", "true"])


def wins(found: pd.DataFrame, over: str = "isotonic") -> pd.DataFrame:
    """In how many (model, k) does ``over`` have the lower value than each other method: method, then "13 of 14" for each
    metric. A metric that is NaN throughout gives "-"."""
    rows = []
    metrics = ["ECE", "ACE", "Brier", "NLL", "true"]
    base = found[found["method"] == over].set_index(["model", "k"])
    for method in dict.fromkeys(found["method"]):
        if method == over:
            continue
        other = found[found["method"] == method].set_index(["model", "k"]).loc[base.index]
        known = {m: base[m].notna() & other[m].notna() for m in metrics}
        rows.append(
            (
                method,
                *(
                    f"{int((base[m] < other[m]).sum())} of {int(known[m].sum())}" if known[m].any() else "-"
                    for m in metrics
                ),
            )
        )
    return pd.DataFrame(rows, columns=[f"{over} below", *metrics])


def means(found: pd.DataFrame) -> pd.DataFrame:
    """The mean over models of each metric: k, method, ECE, ACE, Brier, NLL, true."""
    order = list(dict.fromkeys(found["method"]))
    mean = found.groupby(["k", "method"])[["ECE", "ACE", "Brier", "NLL", "true"]].mean()
    ks = list(dict.fromkeys(found["k"]))
    return mean.reindex(pd.MultiIndex.from_product([ks, order], names=["k", "method"])).reset_index()


def plot_methods(found: pd.DataFrame) -> Figure:
    """ECE@k of each model (a dot) by method: measured (left, as the paper has it) and against the twin's probabilities."""
    methods = [method for method in dict.fromkeys(found["method"])]
    panels = ["ECE", "true"] if found["true"].notna().any() else ["ECE"]
    models = list(dict.fromkeys(found["model"]))
    with figures.new(width=8.0, height=3.8, ncols=len(panels), sharey=True, sharex=True, squeeze=False) as (fig, axes):
        for axis, metric in zip(axes[0], panels, strict=True):
            for i, (model, marker) in enumerate(zip(models, "os^Dv<>P", strict=False)):
                part = found[(found["model"] == model) & (found["k"] == found["k"].max())]
                axis.plot(
                    part[metric].clip(lower=0.02), range(len(part)), marker, color=f"C{i % 6}", label=model,
                    linestyle="none", fillstyle="none" if i % 2 else "full", markersize=5,
                )  # fmt: skip
            k = found["k"].max()
            words = {"ECE": f"ECE@{k} measured with hits (%)", "true": f"ECE@{k} against the true probabilities (%)"}
            axis.set(xscale="log", xlabel=words[metric])
            axis.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
        axes[0, 0].set_yticks(range(len(methods)), methods)
        axes[0, 0].invert_yaxis()
        fig.suptitle("Isotonic beats Platt, less so where Platt is given log-odds; histograms shine in their own bins")
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=min(len(models), 7))
    return fig


# ---------------------------------------------------------------- table 6: joint or separate


def joint_separate(ds: Dataset, tops: Mapping[str, TopK], places: int = 10) -> pd.DataFrame:
    """Table 6 for our models: model, fit, and P@1, P@3, P@5, ECE@1, ECE@3, ECE@5, percent.

    fit: ``"none"``; ``"joint, isotonic"``: one map for all ``places``; ``"separate, isotonic"`` and ``"separate, Platt"``: one
    map for each place, after which the row is ranked anew. With ``places`` = 5 the five labels stay the five labels, and P@5
    could not change; the paper's does, so more places were calibrated there.
    """
    rows = []
    for name, top in tops.items():
        before = calibrated.linked(top, places, name)
        fits = {
            "none": before,
            "joint, isotonic": calibrate.cross_fit_top(ds.test.Y, before, "isotonic", calibrated.FOLDS),
            "separate, isotonic": calibrate.cross_fit_top(
                ds.test.Y, before, "isotonic", calibrated.FOLDS, separate=True
            ),
            "separate, Platt": calibrate.cross_fit_top(ds.test.Y, before, "platt", calibrated.FOLDS, separate=True),
        }
        for fit, after in fits.items():
            p = 100 * ranking.precision(ds.test.Y, after, KS)
            table = calibration_table(ds.test.Y, after, KS, closed=calibrated.CLOSED, metrics=["ECE"])
            rows.append((name, fit, *p, *(100 * table["value"])))
    return pd.DataFrame(rows, columns=["model", "fit", *(f"P@{k}" for k in KS), *(f"ECE@{k}" for k in KS)])


def changes(found: pd.DataFrame) -> pd.DataFrame:
    """P@k of each fit less that of the scores as they are, percent: model, fit, P@1, P@3, P@5."""
    columns = [f"P@{k}" for k in KS]
    base = found[found["fit"] == "none"].set_index("model")[columns]
    rest = found[found["fit"] != "none"]
    moved = rest[columns].to_numpy() - base.loc[rest["model"]].to_numpy()
    return pd.concat([rest[["model", "fit"]].reset_index(drop=True), pd.DataFrame(moved, columns=columns)], axis=1)


def printed_changes() -> pd.DataFrame:
    """The paper's table 6 as changes of P@k by separate calibration, percent: dataset, method, fit, P@1, P@3, P@5."""
    table = calibration.table(6)
    wide = table.pivot(index=["dataset", "method", "k"], columns="variant", values="value")
    rows = []
    for fit, words in (("isotonic-separate", "separate, isotonic"), ("platt-separate", "separate, Platt")):
        part = (wide[fit] - wide["none"]).unstack("k")
        part.columns = [f"P@{int(k)}" for k in part.columns]
        rows.append(part.reset_index().assign(fit=words))
    found = pd.concat(rows, ignore_index=True)
    return found[["dataset", "method", "fit", *(f"P@{k}" for k in KS)]]


def losses(changes: pd.DataFrame) -> pd.DataFrame:
    """How often a fit lowers P@k, and the mean change in points: fit, then for each k "5 of 6" and a mean."""
    rows = []
    for fit, part in changes.groupby("fit", sort=False):
        row = {"fit": fit}
        for k in KS:
            moved = part[f"P@{k}"]
            row |= {f"lower P@{k}": f"{int((moved < -1e-9).sum())} of {len(moved)}", f"mean P@{k}": moved.mean()}
        rows.append(row)
    return pd.DataFrame(rows)


def plot_separate(found: pd.DataFrame) -> Figure:
    """Left: the change of P@1, P@3 and P@5 by separate isotonic regression. Right: ECE@1 by fit, on a logarithmic axis."""
    models = list(dict.fromkeys(found["model"]))
    at = np.arange(len(models))
    moved = changes(found)
    moved = moved[moved["fit"] == "separate, isotonic"].set_index("model").loc[models]
    with figures.new(width=8.0, height=3.4, ncols=2, sharey=True) as (fig, (left, right)):
        for k, marker, shift in zip(KS, "os^", (-0.15, 0.0, 0.15), strict=True):
            left.plot(moved[f"P@{k}"], at + shift, marker, label=f"P@{k}", linestyle="none")
        left.axvline(0, color="0.4", linewidth=0.8)
        left.set(xlabel="change of precision (points)", title="separate maps cost precision, a little")
        left.set_yticks(at, models)
        left.invert_yaxis()
        left.legend()
        marks = {"joint, isotonic": "o", "separate, isotonic": "s", "separate, Platt": "^", "none": "x"}
        for fit, marker in marks.items():
            part = found[found["fit"] == fit].set_index("model").loc[models]
            right.plot(part["ECE@1"].clip(lower=0.05), at, marker, label=fit, linestyle="none")
        right.set(xscale="log", xlabel="ECE@1 (%)", title="and know the first place better")
        right.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        right.legend()
    return fig
