"""The report of a reader's models in a notebook: what ``xcrepro report`` writes, part by part, with parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError, DataMissing
from xcrepro.inputs import baselines, datasets, parameters
from xcrepro.metrics.registry import METRICS
from xcrepro.reports import sentences
from xcrepro.reports.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from xcrepro.predictions import TopK


def check_parameters(values: Mapping[str, object]) -> None:
    """The shared rules; that a file of labels comes with predictions, and ``train_truth`` with ``truth``.

    Parameters
    ----------
    values : mapping of str to object
        The notebook's parameters.

    Raises
    ------
    ArgumentError, DataMissing
        As :func:`xcrepro.inputs.parameters.check`.
    """
    parameters.check(values)
    if values["train_truth"] and not Path(values["train_truth"]).expanduser().is_file():
        what = values["train_truth"]
        raise DataMissing(f"parameter train_truth: {what} is not there; give a file of labels, or leave it empty")
    if values["truth"] and not values["predictions"]:
        do = "baselines are trained on datasets alone"
        raise ArgumentError("parameter predictions", "must be given with truth", values["predictions"], do)
    if values["train_truth"] and not values["truth"]:
        raise ArgumentError(
            "parameter truth", "must be given with train_truth", values["truth"], "a dataset has its own"
        )
    if not values["truth"] and not values["models"] and not values["predictions"]:
        raise ArgumentError(
            "parameter models", "must name one baseline at least where no predictions are given", "none"
        )


def load(
    truth: str, ds: Dataset | None, models: Sequence[str], seed: int, given: str
) -> tuple[Dataset | str, dict[str, TopK] | str]:
    """What the report takes: a truth, and predictions.

    Parameters
    ----------
    truth : str
        A file of labels; empty: the dataset's.
    ds : Dataset or None
        None with a file.
    models : sequence of str
        Baselines, beside the reader's predictions; empty: none.
    seed : int
        Theirs.
    given : str
        A file or folder of saved predictions; empty: baselines alone.

    Returns
    -------
    truth : Dataset or str
    predictions : dict of str to TopK, or str
    """
    if ds is None:
        return truth, given
    if not models:
        return ds, baselines.saved(given, ds)
    return ds, baselines.predictions(ds, list(models), seed, given)


def pick(truth: str, *given) -> Dataset | None:
    """:func:`xcrepro.inputs.datasets.pick` of ``given``; None where the truth is a file or another dataset's name."""
    return None if truth else datasets.pick(*given)


def compute(report: Report) -> pd.DataFrame:
    """Every metric of every model with its interval: what the notebook's main table holds.

    Parameters
    ----------
    report : Report

    Returns
    -------
    DataFrame
        model, metric, k, value, low, high; percent, entropy in nats.
    """
    table = report.frame()[["model", "metric", "k", "value", "low", "high"]]
    scale = [100.0 if name not in METRICS or sentences.unit(name) == "%" else 1.0 for name in table["metric"]]
    return table.assign(**{name: table[name] * scale for name in ("value", "low", "high")})


def drawn_parts(report: Report) -> list[str]:
    """The parts of a report that have a figure."""
    return [name for name, part in report.parts.items() if part.draw]


def plot(report: Report, part: str = "ranking") -> Figure:
    """The figure of a part.

    Parameters
    ----------
    report : Report
    part : str
        One of :func:`drawn_parts`.

    Returns
    -------
    Figure
    """
    return report.plot(part)


def findings(report: Report) -> list[str]:
    """What came out: the sentences of all parts.

    Parameters
    ----------
    report : Report

    Returns
    -------
    list of str
    """
    return report.sentences()
