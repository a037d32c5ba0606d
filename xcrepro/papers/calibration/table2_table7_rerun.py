"""Tables 2 and 7: calibration errors before and after isotonic regression, and how far they fall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import findings as said
from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Difference, Measured
from xcrepro.inputs import calibrated, datasets, parameters
from xcrepro.inputs.calibrated import KS, STATES
from xcrepro.metrics import ranking
from xcrepro.metrics.calibration import marginal_ece
from xcrepro.papers.calibration import _common
from xcrepro.repro import figures, tables

check_parameters = parameters.check

STARTS_ABOVE, FACTOR = 5.0, 5.0
"""What is asked of a fall: whoever starts above 5 points of ECE@k ends at a fifth of it or less."""
PRINTED = {"DiSMEC": "DiSMEC", "PLT": "PLT", "Renee": "Neural"}
"""Printed method -> the baseline it is compared with. Renee is a one-vs-all network too, on a text encoder."""


measure = calibrated.measured_states


def compute(ds: Dataset, states: calibrated.States, measured: Mapping[int, Measured]) -> pd.DataFrame:
    """How far ECE@k falls, and how far it could be seen to fall.

    Parameters
    ----------
    ds : Dataset
    states : mapping
        From :func:`xcrepro.inputs.calibrated.before_after`.
    measured : mapping
        From :func:`measure`, of the same.

    Returns
    -------
    DataFrame
        k, model, and in percent ECE, ECE-I: before and after calibration, each with its standard error (±), and without the
        noise of its hits (ECE corrected, ECE corrected-I, each with low and high, :func:`xcrepro.metrics.corrected_ece`);
        ratio: the one over the other, infinite where the other is below 0.01 points; floor: what chance leaves of the
        calibrated scores; true, true-I: the same errors against the twin's probabilities in place of hits, NaN on real data.

        Cross-fitted folds lean on each other (a fold's surplus of hits is in the map of all the others), so ECE-I can
        lie below the floor; true-I cannot profit from that.
    """
    rows = []
    for (name, k), pair in states.items():
        row = {"k": k, "model": name}
        for state, top, mark in zip(STATES, pair, ("", "-I"), strict=True):
            system = f"{name}, {state}"
            row |= {f"ECE{mark}": measured[k].values[system], f"ECE{mark} ±": measured[k].error(system)}
            found = calibrated.measure(ds, top, k, (*calibrated.CORRECTED, "ECE floor"))
            floor = found.pop("ECE floor")
            row |= {one.replace("corrected", f"corrected{mark}"): value for one, value in found.items()}
        row["ratio"] = row["ECE"] / row["ECE-I"] if row["ECE-I"] >= 0.01 else np.inf
        row["floor"] = floor
        row |= {f"true{mark}": 100 * calibrated.true_error(ds, top) for top, mark in zip(pair, ("", "-I"), strict=True)}
        rows.append(row)
    return _by_k(pd.DataFrame(rows))


def compare_falls(fall: pd.DataFrame, measured: Mapping[int, Measured]) -> list[Difference]:
    """Of each error that starts above 5 points, a fifth of it less what is left: positive where it falls so far.

    Parameters
    ----------
    fall : DataFrame
        From :func:`compute`.
    measured : mapping
        From :func:`measure`.

    Returns
    -------
    list of Difference
        Corrected together.
    """
    found = []
    for row in fall[fall["ECE"] > STARTS_ABOVE].to_dict("records"):
        one, (before, after) = measured[row["k"]], (f"{row['model']}, {state}" for state in STATES)
        pair = Measured(
            {"a fifth": one.values[before] / FACTOR, "after": one.values[after]},
            {"a fifth": one.replicates[before] / FACTOR, "after": one.replicates[after]},
        )
        found.append(pair.difference("a fifth", "after"))
    return said.corrected(found)


def compute_table(ds: Dataset, states: calibrated.States) -> pd.DataFrame:
    """Table 7 for our models (its rows of k = 5 are table 2).

    Parameters
    ----------
    ds : Dataset
    states : mapping
        (model, k) -> predictions before and after calibration (:func:`xcrepro.inputs.calibrated.before_after`).

    Returns
    -------
    DataFrame
        k, model, then P, ECE, ECE corrected, ACE, Brier (percent), NLL (nats), each before and, marked -I, after.
    """
    metrics = ["P", "ECE", "ECE corrected", *calibrated.METRICS[1:]]
    before, after = (calibrated.measure_all(ds, states, metrics, state) for state in calibrated.STATES)
    table = _by_k(before.join(after[metrics].add_suffix("-I")))
    return table[["k", "model", *(name + mark for name in metrics for mark in ("", "-I"))]]


def _by_k(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values("k", kind="stable", ignore_index=True)


def compare_with_printed(ds: Dataset, models: Sequence[str]) -> pd.DataFrame:
    """The paper's rows for the dataset (of a twin: its original), for the reader to compare.

    Parameters
    ----------
    ds : Dataset
    models : sequence of str
        Ours.

    Returns
    -------
    DataFrame
        k, method, for our (the model of ``models`` like it), ECE ... Brier-I in the texts of the page, "†" behind what
        the audit doubts. No rows where the paper has no table of the dataset.
    """
    found = pd.concat([_common.printed_table(7), _common.printed_table(8)])
    found = found[found["dataset"] == datasets.printed_name(ds)].astype({"k": int})
    found["text"] += found["doubted"].map({True: "†", False: ""})
    wide = tables.spread(found.assign(column=found["metric"] + found["mark"]), ["k", "method"], "column", "text")
    wide["for our"] = wide["method"].map(PRINTED).where(lambda model: model.isin(list(models)), "")
    columns = ["k", "method", "for our", "ECE", "ECE-I", "ACE", "ACE-I", "Brier", "Brier-I"]
    return wide.reindex(columns=columns).fillna("-")


def compute_marginal(ds: Dataset, tops: calibrated.Tops) -> pd.DataFrame:
    """Equations 6 and 7 for the models whose scores are probabilities.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.

    Returns
    -------
    DataFrame
        model, marginal ECE (the mean over labels; labels beyond a point's stored places count as probability 0),
        ECE@1, ECE@3, ECE@5, percent.
    """
    rows = []
    for name, top in tops.items():
        if name not in calibrated.NO_PROBABILITIES and calibrated.is_probability(top):
            all_labels = 100 * marginal_ece(top.to_csr(), ds.test.Y, reduce="mean", closed=calibrated.CLOSED)
            at_k = {f"ECE@{k}": calibrated.measure(ds, top, k, ("ECE",))["ECE"] for k in KS}
            rows.append({"model": name, "marginal ECE": all_labels, **at_k})
    return pd.DataFrame(rows, columns=["model", "marginal ECE", *(f"ECE@{k}" for k in KS)])


def compute_precision(ds: Dataset, states: calibrated.States) -> pd.DataFrame:
    """Whether calibration left P@1, P@3 and P@5 as they were, all for the one map over the first 5 places.

    Parameters
    ----------
    ds, states
        As for :func:`compute_table`.

    Returns
    -------
    DataFrame
        model, then for each k a text, "same bits" or the change (percentage points), and ``rows re-ranked``.
    """
    rows = []
    for (name, k), (before, after) in states.items():
        if k == max(KS):
            change = 100 * (ranking.precision(ds.test.Y, after, KS) - ranking.precision(ds.test.Y, before, KS))
            texts = [f"{each:+.3f}" if each else "same bits" for each in change]
            rows.append((name, *texts, int((before.ids != after.ids).any(axis=1).sum())))
    return pd.DataFrame(rows, columns=["model", *(f"P@{k}" for k in KS), "rows re-ranked"])


def compute_direction(ds: Dataset, states: calibrated.States) -> pd.DataFrame:
    """Which way the scores err before calibration.

    Parameters
    ----------
    ds, states
        As for :func:`compute_table`.

    Returns
    -------
    DataFrame
        k, model, confidence (mean score), accuracy (mean hit), and the over- and under-confident halves of ECE,
        percent.
    """
    metrics = ["confidence", "accuracy", "ECE over", "ECE under"]
    return _by_k(calibrated.measure_all(ds, states, metrics))[["k", "model", *metrics]]


def describe_direction(direction: pd.DataFrame) -> pd.DataFrame:
    """Which way the scores err, as words.

    Parameters
    ----------
    direction : DataFrame
        From :func:`compute_direction`.

    Returns
    -------
    DataFrame
        A row a model, a column a k: "over" or "under" where that half of ECE is at least four fifths of it, else
        "both ways"; "calibrated" where ECE is below 1 point.
    """
    over, under = direction["ECE over"], direction["ECE under"]
    rules = {"calibrated": over + under < 1, "over": over >= 4 * under, "under": under >= 4 * over}
    return _common.spread_words(direction, rules, "both ways")


def describe_printed() -> str:
    """The range of ECE@5 in table 7 before and after, over all datasets, doubted cells left out."""
    t = _common.printed_table(7)
    t = t[(t["metric"] == "ECE") & (t["k"] == max(KS)) & ~t["doubted"]].dropna(subset="value")
    low, high = t.groupby("variant")["value"].min(), t.groupby("variant")["value"].max()
    parts = [f"{low[v]:.2f} to {high[v]:.2f} % {state}" for v, state in zip(("none", "isotonic"), STATES, strict=True)]
    return " and ".join(parts)


def findings(
    fall: pd.DataFrame, measured: Mapping[int, Measured], precision: pd.DataFrame, marginal: pd.DataFrame
) -> list[str]:
    """What came out.

    Parameters
    ----------
    fall : DataFrame
        From :func:`compute`.
    measured : mapping
        From :func:`measure`.
    precision : DataFrame
        From :func:`compute_precision`.
    marginal : DataFrame
        From :func:`compute_marginal`.

    Returns
    -------
    list of str
    """
    lower = said.corrected(
        measured[row.k].difference(*(f"{row.model}, {state}" for state in STATES)) for row in fall.itertuples()
    )
    far = compare_falls(fall, measured)
    claim = f"an error above {STARTS_ABOVE:.0f} points falls to a fifth or less"
    none = _common.describe_count(fall["ECE corrected-I low"] == 0)
    kept = _common.describe_count((precision[[f"P@{k}" for k in KS]] == "same bits").all(axis=1))
    last = fall[fall["k"] == max(KS)]
    ours = [
        f"{_common.describe_range(last[name])} % {state}" for name, state in (("ECE", "before"), ("ECE-I", "after"))
    ]
    sentences = [
        f"Over pairs of a model and a k, {said.count(lower, 'ECE@k is lower after isotonic regression')}.",
        f"Over these, {said.count(far, claim)}." if far else f"No error here starts above {STARTS_ABOVE:.0f} points.",
        f"After it, {none} intervals of the corrected error hold 0: these test points do not tell those from none.",
        f"P@1, P@3 and P@5 are the same to the last bit for {kept} models.",
        f"Table 7 prints ECE@{max(KS)} of {describe_printed()}, other models and data; here it is {' and '.join(ours)}.",
    ]
    if fall["true-I"].notna().any():
        largest = fall["true-I"].max()
        sentences.insert(3, f"Against the twin's own probabilities the largest error left is {largest:.1f} points.")
    if len(marginal):
        high = marginal["marginal ECE"].max()
        at_k = marginal[[f"ECE@{k}" for k in KS]].max(axis=None)
        sentences.append(
            f"Over all labels (equation 6, the mean over labels) no error is above {high:.2f} %; "
            f"at k it goes up to {at_k:.1f} %."
        )
    return sentences


def findings_recorded(measured: Mapping[int, Measured], recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same of the order of the models by ECE before calibration, at the largest k.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`check_table`, as recorded.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    k = max(measured)
    there = {dataset: table[table["k"] == k] for dataset, table in recorded.items()}
    found = calibrated.in_state(measured[k]).pairs()
    values = _common.recorded_pairs(there, {"ECE": ""})
    return [said.agreement(found, values, f"ECE@{k}")]


def plot(fall: pd.DataFrame, ax=None) -> Figure:
    """ECE@k of each model before (hollow) and after (filled) isotonic regression, with two standard errors.

    With a fifth of the start, the noise floor, and the error against the twin's probabilities after it.

    Parameters
    ----------
    fall : DataFrame
        From :func:`compute`.
    ax : array of Axes, optional
        One a k.
    """
    names = fall["model"].unique()
    at = np.arange(len(names))
    marks = {
        "ECE": {"label": "before", "marker": "o", "color": looks.INK, "fillstyle": "none"},
        "ECE-I": {"label": "after (± 2 standard errors)", "marker": "o", "color": looks.INK},
        "floor": {"label": "noise floor", "marker": "x", "color": "0.45"},
        "true-I": {"label": "after, true", "marker": "^", "color": looks.TEAL, "fillstyle": "none"},
    }
    error = {"ecolor": looks.SKY, "elinewidth": 4}
    fifth = {"marker": "|", "color": looks.RUST, "markersize": 11, "linestyle": "none"}
    shape = {"ncols": fall["k"].nunique(), "sharex": True, "sharey": True, "squeeze": False}
    with figures.new(width=looks.WIDE, height=1.6 + 0.28 * len(names), ax=ax, **shape) as (fig, axes):
        for panel, (k, part) in zip(axes[0], fall.groupby("k"), strict=True):
            part = part.set_index("model").loc[names]
            panel.hlines(at, part["ECE-I"], part["ECE"], color="0.75", linewidth=1.0, zorder=0.9)
            for column, style in marks.items():
                if part[column].notna().any():
                    bars = 2 * part[f"{column} ±"] if f"{column} ±" in part else None
                    panel.errorbar(part[column], at, xerr=bars, linestyle="none", **error, **style)
            panel.plot(part["ECE"] / FACTOR, at, label="_guide", **fifth)
            panel.plot([], [], label="a fifth of before", **fifth)
            panel.set(xlabel=f"ECE@{k} (%)", title=f"k = {k}")
            _common.scale_errors(panel)
            figures.draws(panel, x=tuple(marks))
        axes[0, 0].set_xlim(right=min(1.4 * fall["ECE"].max() + 1, 150))
        axes[0, 0].set_yticks(at, names)
        axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
        looks.title(fig, "ECE@k before and after isotonic regression")
        looks.legend(fig, axes[0, 0])
    return fig
