"""Figures 3 (first row) and 17 to 19: calibration errors against P@k, before and after isotonic regression."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError
from xcrepro.findings import agreement, corrected, count
from xcrepro.inputs import calibrated, parameters
from xcrepro.papers.calibration import _common
from xcrepro.repro import figures

VARIANTS = {"none": "before", "isotonic": "after"}
"""How the paper's tables name the two states."""


METRICS = ("ECE", "Brier", "NLL", "ACE")
"""What is drawn; beside ECE the table has it without the noise of its hits."""


def check_parameters(values: Mapping[str, object]) -> None:
    """The rules that items share, and of the second dataset.

    Parameters
    ----------
    values : mapping of str to object
        The notebook's parameters.

    Raises
    ------
    ArgumentError
    """
    parameters.check(values)
    if values["second"]:
        for name, shared in (("second", "dataset"), ("second_scale", "scale")):
            _as(name, shared, values[name])


def _as(name: str, shared: str, value: object) -> None:
    """The rule of a shared parameter, told under the name that it has here."""
    try:
        parameters.check({shared: value})
    except ArgumentError as error:
        raise ArgumentError(f"parameter {name}", "must be one that it could be", value, str(error)) from error


def compute_errors(sets: Mapping[str, tuple[Dataset, calibrated.States]]) -> pd.DataFrame:
    """Errors and precision of every model on several datasets.

    Parameters
    ----------
    sets : mapping
        Name -> dataset, and the predictions for it from :func:`xcrepro.inputs.calibrated.before_after`.

    Returns
    -------
    DataFrame
        k, dataset, method, P (percent), metric (ECE, ECE corrected, Brier, NLL, ACE), variant ("none", "isotonic"), value
        (percent; NLL in nats), ± (its standard error over test points; of ECE and Brier, else NaN), by k first. P is that of
        its own variant; a joint monotone map leaves it as it is, to the last bit.
    """
    parts = []
    names = {"model": "method"} | {state: variant for variant, state in VARIANTS.items()}
    for dataset, (ds, states) in sets.items():
        found = calibrated.errors(ds, states, ("P", "ECE", "ECE corrected", *METRICS[1:])).rename(columns=names)
        found = found.melt(["method", "metric", "k"], var_name="variant").assign(dataset=dataset)
        precision = found[found["metric"] == "P"].drop(columns="metric").rename(columns={"value": "P"})
        found = found[found["metric"] != "P"].merge(precision)
        parts.append(found.merge(_standard_errors(ds, states), how="left"))
    columns = ["k", "dataset", "method", "P", "metric", "variant", "value", "±"]
    return pd.concat(parts)[columns].sort_values("k", kind="stable", ignore_index=True)


def _standard_errors(ds: Dataset, states: calibrated.States) -> pd.DataFrame:
    rows = []
    for metric in ("ECE", "Brier"):
        found = calibrated.measured_states(ds, states, metric)
        rows += [
            (name, k, metric, variant, found[k].error(f"{name}, {state}"))
            for name, k in states
            for variant, state in VARIANTS.items()
        ]
    return pd.DataFrame(rows, columns=["method", "k", "metric", "variant", "±"])


def compute(errors: pd.DataFrame) -> pd.DataFrame:
    """:func:`compute_errors` for people.

    Parameters
    ----------
    errors : DataFrame
        From :func:`compute_errors`.

    Returns
    -------
    DataFrame
        dataset, method, k, P (before), then each error before and after, in the units of ``errors``, and behind those of
        ECE their standard errors.
    """
    keys = ["dataset", "method", "k"]
    column = errors["metric"] + " " + errors["variant"].map(VARIANTS)
    wide = errors.assign(column=column).pivot(index=keys, columns="column", values="value")
    wide = wide[[f"{metric} {state}" for metric in errors["metric"].unique() for state in VARIANTS.values()]]
    if "±" in errors:
        spread = errors[errors["metric"] == "ECE"].pivot(index=keys, columns="variant", values="±")
        for place, variant in ((1, "none"), (3, "isotonic")):
            wide.insert(place, f"± {VARIANTS[variant]}", spread[variant])
    return errors[errors["variant"] == "none"].drop_duplicates(keys)[[*keys, "P"]].merge(wide, on=keys)


def largest_change_of_precision(errors: pd.DataFrame) -> float:
    """The largest change of any P@k from before to after, percentage points."""
    wide = errors.pivot(index=["dataset", "method", "k", "metric"], columns="variant", values="P")
    return float((wide["isotonic"] - wide["none"]).abs().max())


compute_claims = _common.correlate_with_precision


def findings(errors: pd.DataFrame, sets: Mapping[str, tuple[Dataset, calibrated.States]]) -> list[str]:
    """Do the errors fall, does P@k stay, and do precision and error go together?

    Parameters
    ----------
    errors : DataFrame
        From :func:`compute_errors`.
    sets : mapping
        What that took.

    Returns
    -------
    list of str
    """
    said = []
    for dataset, (ds, states) in sets.items():
        for k, found in calibrated.measured_states(ds, states).items():
            fall = count(calibrated.before_minus_after(found), "ECE falls through isotonic regression")
            part = errors[(errors["dataset"] == dataset) & (errors["k"] == k) & (errors["metric"] == "ECE")]
            ends = part.groupby("variant")["value"].max()
            largest = f"{ends['none']:.1f} % before, {ends['isotonic']:.1f} % after"
            said.append(f"{dataset}, k = {k}, {fall}; the largest ECE@{k} is {largest}.")
    everything = []
    for ds, states in sets.values():
        found = calibrated.measured_states(ds, states, "NLL")
        everything += [found[k].difference(f"{name}, before", f"{name}, after") for name, k in states]
    said.append(f"{count(corrected(everything), 'NLL falls too, over all datasets and k')}.")
    change = largest_change_of_precision(errors)
    kept = "as it is, for every model and k" if change == 0 else f"changed by up to {change:.2g} points"
    said.append(f"Isotonic regression leaves P@k {kept}.")
    return [*said, _common.describe_relations(errors), _common.describe_relations(errors, variant="isotonic")]


def findings_recorded(
    sets: Mapping[str, tuple[Dataset, calibrated.States]], recorded: Mapping[str, pd.DataFrame]
) -> list[str]:
    """Whether real data say the same of what isotonic regression does to ECE on the first dataset, at the largest k.

    Parameters
    ----------
    sets : mapping
        As for :func:`compute_errors`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`check_errors`, as recorded.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    ds, states = next(iter(sets.values()))
    k = max(k for _, k in states)
    last = {key: pair for key, pair in states.items() if key[1] == k}
    found = calibrated.before_minus_after(calibrated.measured_states(ds, last)[k])
    there = {
        dataset: table[(table["metric"] == "ECE") & (table["k"] == k)]
        .pivot(index="method", columns="variant", values="value")
        .reset_index()
        for dataset, table in recorded.items()
    }
    columns = {variant: f", {state}" for variant, state in VARIANTS.items()}
    return [
        agreement(found, _common.recorded_pairs(there, columns, "method"), f"ECE@{k}", "changes by isotonic regression")
    ]


def plot(errors: pd.DataFrame, k: int, ax=None) -> Figure:
    """Figures 17 (k = 1), 18 (3) and 19 (5): four errors against P@k, a column a dataset.

    Parameters
    ----------
    errors : DataFrame
        From :func:`compute_errors`.
    k : int
        One of its k.
    ax : array of Axes, optional
        As for :func:`xcrepro.papers.calibration._common.plot_against_precision`.
    """
    errors = errors[errors["metric"].isin(METRICS)]
    return _common.plot_against_precision(errors, k, f"Calibration errors at k = {k} against P@{k}", ax=ax)


def plot_fig3(errors: pd.DataFrame, dataset: str, k: int = 5, ax=None) -> Figure:
    """Figure 3, row 1: ECE, Brier and ACE against P@k on one dataset; bars are two standard errors long either way.

    Parameters
    ----------
    errors : DataFrame
        From :func:`compute_errors`.
    dataset : str
        One of its datasets.
    k : int
        One of its k.
    ax : array of Axes, optional
        Three.
    """
    errors = errors[(errors["k"] == k) & (errors["dataset"] == dataset)]
    with figures.new(width=looks.WIDE, height=3.4, ncols=3, ax=ax) as (fig, axes):
        for panel, metric in zip(axes, ("ECE", "Brier", "ACE"), strict=True):
            _common.draw_before_after(panel, errors[errors["metric"] == metric], errors["method"].unique())
            panel.set(xlabel=f"P@{k}, %", ylabel=f"{metric}@{k}, %")
        words = "filled: before, hollow: after isotonic regression; lines: two standard errors"
        looks.legend(fig, axes[0], ncols=4, title=words)
        looks.title(fig, f"Calibration errors at k = {k} against P@{k}, {dataset}")
    return fig
