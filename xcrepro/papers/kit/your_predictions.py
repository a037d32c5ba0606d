"""Anybody's saved predictions: how they are written and read, how they compare with our baselines, how calibrated they are."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import findings as said
from xcrepro import formats, looks, metrics, published
from xcrepro.arguments import one_of
from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError
from xcrepro.findings import Difference, Measured
from xcrepro.inputs import baselines, calibrated, datasets, parameters
from xcrepro.predictions import TopK
from xcrepro.repro import figures, tables

printed_rows = datasets.printed_table
METRICS = ("P", "ECE", *calibrated.CORRECTED, *calibrated.METRICS[1:])
RANKED = ("P", "nDCG", "PSP")


def check_parameters(values: Mapping[str, object]) -> None:
    """The shared rules, and that ``baseline`` is one of ``models``.

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
    if not values["models"]:
        raise ArgumentError("parameter models", "must name one baseline at least", values["models"])
    if values["baseline"]:
        one_of("parameter baseline", values["baseline"], values["models"])


def write_by_hand(path: str | os.PathLike, scores: np.ndarray, ids: np.ndarray, pairs: np.ndarray) -> None:
    """The calibration@k interchange file in plain NumPy, as a program that knows nothing of this package can write it.

    Parameters
    ----------
    path : str or path
    scores : ndarray, shape (n, k)
        Best first.
    ids : ndarray of int, shape (n, k)
        The labels.
    pairs : ndarray of int, shape (m, 2)
        Row and label of every relevant label of the test split.
    """
    relevant = {(int(row), int(label)) for row, label in pairs}
    hits = np.array([[(row, int(label)) in relevant for label in line] for row, line in enumerate(ids)])
    np.savez(path, scores=scores, prediction_ids=ids, true_positives=hits, labels=pairs)


def write_example(folder: str | os.PathLike, ds: Dataset, tops: Mapping[str, TopK], k: int = 5) -> list[str]:
    """Save the first places of each model under its name, in the three ways there are, in turn.

    By hand in plain NumPy, ``TopK.to_calibration_npz``, ``TopK.save``.

    Parameters
    ----------
    folder : str or path
        One that exists.
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    k : int
        How many places.

    Returns
    -------
    list of str
        The file names.
    """
    Y = ds.test.Y.tocoo()
    for place, (name, top) in enumerate(tops.items()):
        path, top = Path(folder) / f"{name}.npz", top.head(k)
        if place % 3 == 0:
            write_by_hand(path, top.scores, top.ids, np.column_stack([Y.row, Y.col]))
        elif place % 3 == 1:
            top.to_calibration_npz(path, ds.test.Y)
        else:
            top.save(path)
    return sorted(path.name for path in Path(folder).iterdir())


def read(ds: Dataset, tops: Mapping[str, TopK], k: int = 5) -> dict[str, TopK]:
    """Predictions after a way through files: saved by :func:`write_example` and read back.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Name -> predictions.
    k : int
        How many places.

    Returns
    -------
    dict of str to TopK
    """
    with tempfile.TemporaryDirectory() as folder:
        print("written and read back:", ", ".join(write_example(folder, ds, tops, k)))
        found = baselines.saved(folder, ds, k)
    return {name: found[name] for name in tops}


def load(ds: Dataset, models: Sequence[str], seed: int, given: str, k: int = 5) -> tuple[dict[str, TopK], list[str]]:
    """A reader's predictions and, behind them, the baselines.

    Parameters
    ----------
    ds : Dataset
    models : sequence of str
        Baselines.
    seed : int
        Theirs.
    given : str
        A file or folder of saved predictions; empty: the baselines alone.
    k : int
        How many places each file must have.

    Returns
    -------
    tops : dict of str to TopK
        Name -> predictions.
    own : list of str
        Which of them are the reader's.

    Raises
    ------
    ArgumentError
        For a file of fewer than ``k`` places.
    """
    own = list(formats.model_files(given)) if given else []
    tops = baselines.predictions(ds, models, seed, given)
    for name in own:
        if tops[name].k < k:
            raise ArgumentError("parameter k", f"must be at most {tops[name].k}, the places of {name}", k)
    return tops, own


def compare(ds: Dataset, tops: Mapping[str, TopK], k: int = 5) -> dict[str, Measured]:
    """How well they rank, with the error that a jackknife over test points gives.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    k : int

    Returns
    -------
    dict of str to Measured
        P@1, then P@k, nDCG@k, PSP@k (as published, a ratio), percent.
    """
    weights = datasets.weights(ds)
    functions = {
        "P": metrics.precision,
        "nDCG": metrics.ndcg,
        "PSP": lambda Y, top, ks: metrics.psp(Y, top, ks, inverse_propensity=weights),
    }
    wanted = dict.fromkeys([("P", 1), *((metric, k) for metric in RANKED)])
    return {
        f"{metric}@{place}": Measured.of_rows(
            lambda Y, top, f=functions[metric], at=place: 100 * float(f(Y, top, [at])[0]), ds.test.Y, tops
        )
        for metric, place in wanted
    }


def lay_out(measured: Mapping[str, Measured]) -> pd.DataFrame:
    """A row a model: each number and its standard error (±)."""
    names = list(next(iter(measured.values())).values)
    columns: dict[str, list] = {"model": names}
    for metric, one in measured.items():
        columns |= {metric: [one.values[name] for name in names], f"{metric} ±": [one.error(name) for name in names]}
    return pd.DataFrame(columns)


def choose_baseline(measured: Measured, models: Sequence[str], own: Sequence[str], asked: str = "") -> str:
    """The baseline that own predictions are held to.

    Parameters
    ----------
    measured : Measured
        P@k.
    models : sequence of str
        The baselines.
    own : sequence of str
        Names of the reader's predictions, which are no baselines.
    asked : str
        The one asked for; empty: the one with the highest P@k.

    Returns
    -------
    str
        Empty where none is there.
    """
    there = [name for name in models if name in measured.values and name not in own]
    if asked:
        return asked if asked in there else ""
    return max(there, key=measured.values.get, default="")


def compute_differences(measured: Mapping[str, Measured], own: Sequence[str], baseline: str) -> pd.DataFrame:
    """Own predictions less the baseline.

    Parameters
    ----------
    measured : mapping of str to Measured
        From :func:`compare`.
    own : sequence of str
    baseline : str
        Empty: no rows.

    Returns
    -------
    DataFrame
        model, metric, baseline, difference, ± (points), p (corrected over all rows), verdict.
    """
    pairs = [(metric, one.difference(name, baseline)) for name in own for metric, one in measured.items() if baseline]
    found = said.corrected(one for _, one in pairs)
    rows = [
        (one.left, metric, baseline, one.value, one.error, one.p, one.verdict)
        for (metric, _), one in zip(pairs, found, strict=True)
    ]
    return pd.DataFrame(rows, columns=["model", "metric", "baseline", "difference", "±", "p", "verdict"])


def compute_table(ds: Dataset, tops: Mapping[str, TopK], k: int = 5) -> pd.DataFrame:
    """All calibration numbers at 1 to ``k``.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.
    k : int

    Returns
    -------
    DataFrame
        model, metric (P, ECE, then without the noise of its hits and that number's 95 % interval, ACE, Brier, NLL), k, before,
        after isotonic regression; percent, NLL in nats.
    """
    return calibrated.errors(ds, calibrated.before_after(ds, tops, range(1, k + 1)), METRICS)


def measure(ds: Dataset, tops: Mapping[str, TopK], k: int = 5) -> dict[int, Measured]:
    """ECE at 1 to ``k`` before and after isotonic regression, with its error.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
    k : int

    Returns
    -------
    dict of int to Measured
        By k; the systems are (model, state) as ``"PLT, before"``, ``"PLT, after"``; percent.
    """
    return calibrated.measured_states(ds, calibrated.before_after(ds, tops, range(1, k + 1)))


def compute(measured: Mapping[int, Measured]) -> pd.DataFrame:
    """ECE@k against k, what the figure shows.

    Parameters
    ----------
    measured : mapping of int to Measured
        From :func:`measure`.

    Returns
    -------
    DataFrame
        model, k, before, before ±, after, after ± (ECE, percent).
    """
    rows = []
    for k, one in measured.items():
        for name in calibrated.in_state(one).values:
            row = {"model": name, "k": k}
            for state in calibrated.STATES:
                row |= {state: one.values[f"{name}, {state}"], f"{state} ±": one.error(f"{name}, {state}")}
            rows.append(row)
    return pd.DataFrame(rows)


def largest_difference(table: pd.DataFrame, ds: Dataset, memory: Mapping[str, TopK], k: int = 5) -> float:
    """The largest difference between the errors of predictions read from files, and those of the same ones in memory.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_table`, of the files.
    ds : Dataset
    memory : mapping of str to TopK
        The same predictions.
    k : int
        As given to :func:`compute_table`.

    Returns
    -------
    float
        NaN where there are none in memory.
    """
    if not memory:
        return float("nan")
    here, there = (one.set_index(["model", "metric", "k"]) for one in (table, compute_table(ds, memory, k)))
    return float((here - there).abs().fillna(np.inf).max(axis=None))


def compute_printed(ds: Dataset) -> pd.DataFrame:
    """ECE@k of the methods that the calibration paper has on this dataset (tables 7 and 8).

    Parameters
    ----------
    ds : Dataset

    Returns
    -------
    DataFrame
        method ("-I": after isotonic regression), then ECE@1, ECE@3, ECE@5 (texts, percent; "†" behind what the audit
        doubts). No rows where it has none.
    """
    rows = pd.concat([published.table("calibration:table7"), published.table("calibration:table8")], ignore_index=True)
    rows = rows[(rows["dataset"] == datasets.printed_name(ds)) & (rows["metric"] == "ECE") & (rows["printed"] != "")]
    if not len(rows):
        return pd.DataFrame(columns=["method"])
    text = rows["printed"] + (published.doubted(rows) != "").map({True: "†", False: ""})
    names = rows["method"] + rows["variant"].map({"none": "", "isotonic": "-I"})
    columns = "ECE@" + rows["k"].astype(int).astype(str)
    return tables.spread(rows.assign(method=names, column=columns, text=text), ["method"], "column", "text")


def findings(
    ranked: Mapping[str, Measured], differences: pd.DataFrame, measured: Mapping[int, Measured], own: Sequence[str]
) -> list[str]:
    """What came out.

    Parameters
    ----------
    ranked : mapping of str to Measured
        From :func:`compare`.
    differences : DataFrame
        From :func:`compute_differences`.
    measured : mapping of int to Measured
        From :func:`measure`.
    own : sequence of str
        Names of the reader's predictions.

    Returns
    -------
    list of str
    """
    sentences = []
    for (name, baseline), part in differences.groupby(["model", "baseline"], sort=False):
        shown = [
            f"{row['metric']} {row['difference']:+.1f} ± {row['±']:.1f} ({row['verdict']}, {said.chance(row['p'])})"
            for row in part.to_dict("records")
        ]
        sentences.append(f"{name} against {baseline}, points: {'; '.join(shown)}.")
    if own and not len(differences):
        sentences.append("No baseline stands here to hold your predictions to.")
    last = max(measured)
    if not own:
        metric = list(ranked)[-3]
        sentences.append(f"Of the example's models: {ranked[metric].leader(metric).text}.")
    before = calibrated.in_state(measured[last])
    sentences.append(f"Before calibration: {before.leader(f'ECE@{last} (lower is better)', 'lower').text}.")
    fall = calibrated.before_minus_after(measured[last])
    sentences.append(f"Over models, {said.count(fall, f'isotonic regression lowers ECE@{last}')}.")
    if last > 1:
        rises = said.corrected(_rise(measured, name) for name in before.values)
        claim = f"ECE@k before calibration is higher at k = {last} than at k = 1"
        sentences.append(f"Over models, {said.count(rises, claim)}.")
    return sentences


def findings_recorded(measured: Mapping[int, Measured], recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same of what isotonic regression does to ECE, at the largest k.

    Parameters
    ----------
    measured : mapping of int to Measured
        From :func:`measure`.
    recorded : mapping of str to DataFrame
        Dataset -> its calibration numbers, as recorded.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    k = max(measured)
    values = {
        dataset: {
            f"{row['model']}, {state}": row[state]
            for row in table[(table["metric"] == "ECE") & (table["k"] == k)].to_dict("records")
            for state in ("before", "after")
        }
        for dataset, table in recorded.items()
    }
    found = calibrated.before_minus_after(measured[k])
    return [said.agreement(found, values, f"ECE@{k}", "changes by isotonic regression")]


def _rise(measured: Mapping[int, Measured], name: str) -> Difference:
    """ECE at the last k less that at the first, before calibration."""
    ends = {str(k): calibrated.in_state(measured[k]) for k in (max(measured), min(measured))}
    both = ({k: part.values[name] for k, part in ends.items()}, {k: part.replicates[name] for k, part in ends.items()})
    return Measured(*both).difference(*ends)


def plot(errors: pd.DataFrame, ax=None) -> Figure:
    """ECE@k against k, before (filled, with two standard errors) and after isotonic regression (hollow).

    Parameters
    ----------
    errors : DataFrame
        From :func:`compute`.
    ax : Axes, optional
    """
    ks, styles = errors["k"].unique(), looks.distinct(errors["model"].unique())
    with figures.new(width=looks.NARROW, height=3.9, ax=ax) as (fig, panel):
        for name, part in errors.groupby("model", sort=False):
            style = styles[name].line()
            panel.errorbar(part["k"], part["before"], 2 * part["before ±"], label=name, elinewidth=0.8, **style)
            panel.plot(part["k"], part["after"], markerfacecolor=looks.WHITE, linewidth=0.8, **style)
        panel.set(xlabel="k", ylabel="ECE@k, %", ylim=(0, None), xlim=(ks.min() - 0.3, ks.max() + 0.3))
        panel.set_xticks(ks if ks.size <= 12 else ks[:: -(-ks.size // 10)])
        figures.draws(panel, x="k", y=calibrated.STATES)
        looks.title(fig, "ECE@k against k")
        count = errors["model"].nunique()
        words = "filled: before (bars: two standard errors), hollow: after isotonic regression"
        looks.legend(fig, panel, ncols=min(count, 5), title=words)
    return fig
