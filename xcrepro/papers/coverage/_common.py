"""What several of the coverage paper's items share: models without their tail, rules to choose labels.

A *model* is an (n, L) CSR of scores of the test points, the candidates; models that differ only in how many labels they
were trained on are kept as number of labels -> model, the last with all. All values are percent.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from xcrepro import decide, formats, metrics
from xcrepro.arguments import whole_number
from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError, DataError
from xcrepro.findings import Measured, agreement, count
from xcrepro.inputs import baselines, parameters, trained
from xcrepro.inputs.datasets import complete, weights
from xcrepro.models import PLT
from xcrepro.predictions import TopK
from xcrepro.repro import tables
from xcrepro.truth import Truth

KS = (1, 3, 5)
PLAIN, WEIGHTED, GREEDY, RANDOM = "PLT", "PS-PLT", "COV-PLT", "BRS-PLT"


def in_order(table: pd.DataFrame, **orders: Sequence | None) -> pd.DataFrame:
    """Rows sorted by the columns named.

    Parameters
    ----------
    table : DataFrame
    **orders : sequence or None
        Column -> its values in their order; None: rising. The first named counts most.

    Returns
    -------
    DataFrame
    """
    place = {name: (lambda value: value) if order is None else list(order).index for name, order in orders.items()}
    return table.sort_values(list(orders), key=lambda column: column.map(place[column.name]), ignore_index=True)


# ---------------------------------------------------------------- models without their tail

Models = dict[int, sparse.csr_matrix]
"""Number of labels -> model."""
ALPHA = 0.25
SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85)
"""Of the labels, where a reader asks for no numbers."""
RULES = {"top k": TopK.from_scores, "greedy": decide.greedy_coverage}
"""How k labels are chosen: by score, or by the coverage paper's greedy rule (beta = 0), decided for each k."""

METRICS = ("P", "R", "nDCG", "Abandonment", "micro-F1", "PSP", "P complete", "PSnDCG", "nDCG complete")
METRICS += ("coverage", "alpha-coverage", "n'-coverage", "macro-P", "macro-R", "macro-F1", "label entropy")
"""Over points, then over labels."""


def head(label_counts: np.ndarray, n: int) -> np.ndarray:
    """The labels with the most train points; of equally frequent ones those of lowest id.

    Parameters
    ----------
    label_counts : ndarray, shape (L,)
        Train points a label.
    n : int
        How many, from 1 to L.

    Returns
    -------
    ndarray of bool, shape (L,)

    Raises
    ------
    ArgumentError
        For no label, or more than there are.

    Examples
    --------
    >>> head(np.array([3, 9, 3, 0]), 2).tolist()
    [True, True, False, False]
    """
    counts = np.asarray(label_counts)
    if not 1 <= n <= counts.size:
        do = "leave the list empty for shares of the labels"
        raise ArgumentError("parameter heads", f"must be from 1 to the {counts.size} labels", n, do)
    keep = np.zeros(counts.size, bool)
    keep[np.argsort(-counts, kind="stable")[:n]] = True
    return keep


def only(matrix: sparse.csr_matrix, keep: np.ndarray) -> sparse.csr_matrix:
    """The entries of some labels, stored zeros among them; the shape stays, and so do rows left empty.

    Parameters
    ----------
    matrix : csr_matrix, shape (n, L)
    keep : ndarray of bool, shape (L,)

    Returns
    -------
    csr_matrix, shape (n, L)
    """
    stays = keep[matrix.indices]
    indptr = np.concatenate([[0], np.cumsum(stays)])[matrix.indptr]
    return sparse.csr_matrix((matrix.data[stays], matrix.indices[stays], indptr), shape=matrix.shape)


def models(ds: Dataset, name: str, heads: Sequence[int], seed: int = 0, given: str = "") -> dict[str, Models]:
    """A baseline trained on the most frequent labels alone, for several numbers of labels, and on all of them.

    All train points stay, also those without a label left: they are negatives. 100 candidates a test point.

    Parameters
    ----------
    ds : Dataset
    name : str
        Of :data:`xcrepro.inputs.baselines.RECIPES`; empty: none, beside saved predictions.
    heads : sequence of int
        Numbers of labels, each from 1 to L; none: :data:`SHARES` of the labels.
    seed : int
        Of the training.
    given : str
        Saved predictions, which come first under the file's or folder's name: a folder with ``full`` and any of
        ``head-1000``, ``head-100`` ... with their number of labels, each with an ending that
        :func:`xcrepro.inputs.baselines.saved` reads; or one file, or ``full`` alone, of which the labels outside each of
        ``heads`` are struck out. The baseline then has the same numbers of labels, and is left out where the dataset has no
        features to train on.

    Returns
    -------
    dict of str to dict of int to csr_matrix
        Name -> number of labels -> model, the last with all.

    Raises
    ------
    ArgumentError
        For a number of labels above L.
    DataError
        For files with other names, and without ``full``.
    """
    n_labels = ds.train.Y.shape[1]
    heads = sorted(set(heads)) or _shares(n_labels)
    labels = {n: head(ds.label_counts, n) for n in heads}
    found = {}
    if given:
        own = _given(given, ds, n_labels)
        if len(own) == 1:
            own = {n: only(own[n_labels], keep) for n, keep in labels.items() if n < n_labels} | own
        labels = {n: head(ds.label_counts, n) for n in own if n < n_labels}
        found[_stem(given)] = own
    if name and name not in found and not (given and ds.train.X is None):
        model = baselines.recipe(name, ds, seed)
        trainings = {n: trained.training(model, ds.train.X, only(ds.train.Y, keep)) for n, keep in labels.items()}
        trainings[n_labels] = baselines.training(name, ds, seed)
        found[name] = {n: one.predictions(ds.test.X, baselines.PLACES).to_csr() for n, one in trainings.items()}
    return found


def _shares(n_labels: int) -> list[int]:
    """Numbers of labels for data that nobody gave any for."""
    return sorted({n for share in SHARES if 0 < (n := round(share * n_labels)) < n_labels})


def _stem(given: str) -> str:
    path = Path(given).expanduser()
    return path.name if path.is_dir() else formats.model_name(path)


def _given(path: str, ds: Dataset, n_labels: int) -> Models:
    if Path(path).expanduser().is_file():
        [top] = baselines.saved(path, ds).values()
        return {n_labels: top.to_csr()}
    found = {}
    for name, top in baselines.saved(path, ds).items():
        match = re.fullmatch(r"full|head-(\d+)", name)
        n = int(match[1] or n_labels) if match else 0
        if name != "full" and not 0 < n < n_labels:
            do = "Name the files full and head-<number of labels>"
            raise DataError(path, f"predictions called {name!r}", "what they were trained on in the name", do=do)
        found[n] = top.to_csr()
    if n_labels not in found:
        raise DataError(path, "no predictions called 'full'", "a model trained on all labels to compare with")
    return dict(sorted(found.items()))


def check_heads(values: Mapping[str, object]) -> None:
    """Of the items that take labels out of training: the shared rules, and those of ``heads`` and ``model``.

    Parameters
    ----------
    values : mapping of str to object
        The notebook's parameters.

    Raises
    ------
    ArgumentError, DataMissing
        As :func:`xcrepro.inputs.parameters.check`; for a head below 1 or named twice, and without a model or predictions.
    """
    if not values["model"] and not values["predictions"]:
        raise ArgumentError(
            "parameter model", "must be a baseline where there are no predictions", repr(values["model"])
        )
    parameters.check({name: value for name, value in values.items() if name != "model" or value})
    for n in values["heads"]:
        whole_number("parameter heads", n, 1)
    if len(set(values["heads"])) < len(values["heads"]):
        raise ArgumentError("parameter heads", "must hold nothing twice", values["heads"])


KEPT = {
    "P": metrics.precision,
    "coverage": metrics.coverage,
    "macro-P": metrics.macro_precision,
    "macro-R": metrics.macro_recall,
    "macro-F1": metrics.macro_f1,
}
"""Of these :func:`measure_kept` gives an error."""


def measure_kept(ds: Dataset, found: Models, n: int, k: int) -> Measured:
    """What each of :data:`KEPT` keeps of its value with n of the labels, with a jackknife over the test points.

    Parameters
    ----------
    ds : Dataset
    found : mapping
        Of one model, from :func:`models`.
    n : int
        One of its numbers of labels.
    k : int

    Returns
    -------
    Measured
        By metric, percent. The error is that of the test points alone: the trainings stay as they are.
    """
    full = max(found)
    tops = {size: TopK.from_scores(found[size], k) for size in (n, full)}
    values, replicates = {}, {}
    for name, metric in KEPT.items():
        one = Measured.of_rows(lambda Y, top, metric=metric: metric(Y, top, k)[0], ds.test.Y, tops)
        if one.values[full] > 0:
            values[name] = 100 * one.values[n] / one.values[full]
            with np.errstate(divide="ignore", invalid="ignore"):
                replicates[name] = 100 * one.replicates[n] / one.replicates[full]
    return Measured(values, replicates)


def say_kept(kept: Measured, model: str, n: int, full: int, k: int) -> str:
    """What is kept, in words, with the errors.

    Parameters
    ----------
    kept : Measured
        From :func:`measure_kept`.
    model : str
    n, full : int
        Numbers of labels.
    k : int

    Returns
    -------
    str
    """
    parts = []
    for name, value in kept.values.items():
        error = kept.error(name)
        parts.append(f"{name}@{k} {value:.1f}" + ("" if np.isnan(error) else f" ± {error:.1f}"))
    return f"{model}, with {n:,} of {full:,} labels, keeps of its value (%, ± over test points): {', '.join(parts)}"


def against_precision(kept: Measured, k: int) -> str:
    """How often P keeps more than the averages over labels, tested together.

    Parameters
    ----------
    kept : Measured
        From :func:`measure_kept`.
    k : int

    Returns
    -------
    str
    """
    pairs = [("P", name) for name in kept.values if name != "P"]
    return count(kept.differences(pairs), f"P@{k} keeps a larger share than coverage@{k} and the macro measures")


def kept_recorded(kept: Measured, recorded: Mapping[str, pd.DataFrame], k: int, share: float) -> str:
    """Whether P keeps more than the averages over labels on real data too.

    Parameters
    ----------
    kept : Measured
        From :func:`measure_kept`.
    recorded : mapping of str to DataFrame
        Dataset -> what :func:`measure` found there, a row for each view, metric, k and number of labels, as recorded.
    k : int
    share : float
        Which number of labels is taken of what is recorded: the nearest to this share of all. 0: the smallest.

    Returns
    -------
    str
        Of :func:`xcrepro.findings.agreement`.
    """
    values = {}
    for dataset, table in recorded.items():
        rows = table[(table["k"] == k) & (table["view"] == table["view"].iloc[0])]
        sizes = rows["labels"].unique()
        nearest = min((abs(n - share * max(sizes)), n) for n in sizes)[1]
        rows = rows[rows["labels"] == nearest]
        values[dataset] = dict(zip(rows["metric"], 100 * rows["value"] / rows["full"], strict=True))
    pairs = kept.differences(("P", name) for name in kept.values if name != "P")
    return agreement(pairs, values, f"share kept @{k}", "pairs of P and another metric")


ERRORS = ("ECE", "ECE corrected")
"""Metrics of which less is better; the second is :func:`xcrepro.metrics.corrected_ece`."""


def measure(
    ds: Dataset, found: Models, rule: str = "top k", calibrated: bool = False, ks: Sequence[int] = KS
) -> pd.DataFrame:
    """Every metric of each model, and what is kept of it.

    ``Abandonment`` as the paper prints it: the share of points with a hit. nDCG has the paper's ideal of k hits;
    coverage and macro averages are over all labels; alpha-coverage has alpha = 0.25, n'-coverage n' = a tenth of the
    points; macro-F1 is also given by bin of train frequency, bins without labels left out. All are of the observed truth;
    ``P complete`` and ``nDCG complete``, what PSP and PSnDCG estimate but for their normaliser, are of a twin's complete
    truth, and left out of real data.

    Parameters
    ----------
    ds : Dataset
    found : mapping
        Number of labels -> model, as from :func:`models`.
    rule : str
        Of :data:`RULES`.
    calibrated : bool
        Also ECE of the k scores, which must be probabilities, and it without the noise of its hits; for ``"top k"`` only.
    ks : sequence of int

    Returns
    -------
    DataFrame
        Columns metric, k, labels, value (percent; label entropy in nats), full (the value with all labels) and kept
        (percent of it; NaN where that is 0), in this order of metrics and rising k and labels.
    """
    truth, counts = Truth.of(ds.test.Y), ds.label_counts
    names = ["P", "R", "nDCG (ideal k)", "served", "micro-F1", "PSP", "PSnDCG"]
    names += ["coverage", "macro-P", "macro-R", "macro-F1", "label entropy", "binned macro-F1"]
    rows = []
    for (n, model), k in itertools.product(found.items(), ks):
        top = RULES[rule](model, k)
        table = metrics.evaluate(truth, top, k, inverse_propensity=weights(ds), label_counts=counts, metrics=names)
        value = dict(zip(table["metric"], table["value"], strict=True))
        value["nDCG"], value["Abandonment"] = value.pop("nDCG (ideal k)"), value.pop("served")
        if complete(ds) is not None:
            there = metrics.evaluate(complete(ds), top, k, metrics=["P", "nDCG (ideal k)"])["value"]
            value["P complete"], value["nDCG complete"] = there
        value["alpha-coverage"] = metrics.alpha_coverage(truth, top, k, alpha=ALPHA)[0]
        value["n'-coverage"] = metrics.sampled_coverage(truth, top, k, sample_size=max(len(top) // 10, 1))[0]
        if calibrated:
            error = metrics.corrected_ece(truth, top)
            value |= dict(zip(ERRORS, (error.ece, error.corrected), strict=True))
        rows += [(name, k, n, float(v) * (1 if name == "label entropy" else 100)) for name, v in value.items()]
    table = pd.DataFrame(rows, columns=["metric", "k", "labels", "value"])
    return kept(in_order(table, metric=dict.fromkeys([*METRICS, *table["metric"]]), k=None, labels=None))


def kept(table: pd.DataFrame) -> pd.DataFrame:
    """Add to values for rising numbers of labels what :func:`measure` says of them: columns full and kept."""
    full = table.groupby(["metric", "k"])["value"].transform("last")
    return table.assign(full=full, kept=100 * table["value"] / full.where(full > 0))


def wide(table: pd.DataFrame, value: str = "value", k: int | None = None) -> pd.DataFrame:
    """One row a metric and k, one column a number of labels; of several models, under ``model``.

    Parameters
    ----------
    table : DataFrame
        From :func:`measure`, with a column model where there are several.
    value : {"value", "kept"}
    k : int, optional
        This k alone.

    Returns
    -------
    DataFrame
        model (where the table has it), metric, k, then the numbers of labels, in the unit of ``value``.
    """
    rows = [name for name in ("model", "metric", "k") if name in table]
    return tables.spread(table if k is None else table[table["k"] == k], rows, "labels", value)


# ---------------------------------------------------------------- rules to choose k labels


@dataclass(frozen=True, eq=False)
class Run:
    """One training to choose from: its number, the probabilities of its candidates, and the tree where there is one."""

    number: int
    probabilities: sparse.csr_matrix
    tree: PLT | None


TREE = "label tree"


def runs(ds: Dataset, repeats: int, given: str = "", candidates: int = baselines.PLACES) -> dict[str, list[Run]]:
    """Label trees trained with seeds 0, 1, ..., and saved predictions before them.

    Parameters
    ----------
    ds : Dataset
    repeats : int
        Number of trees.
    given : str
        Saved predictions that :func:`xcrepro.inputs.baselines.saved` reads, of which each file is a run of one model; they
        come first, under the file's or folder's name. Scores must be probabilities. The trees are left out where the
        dataset has no features to train on.
    candidates : int
        A test point.

    Returns
    -------
    dict of str to list of Run
        Model -> its runs.
    """
    found = {}
    if given:
        tops = baselines.saved(given, ds, candidates)
        found[_stem(given)] = [Run(number, top.to_csr(), None) for number, top in enumerate(tops.values())]
    if not (given and ds.train.X is None):
        trainings = [baselines.training("PLT", ds, seed) for seed in range(repeats)]
        tops = [training.predictions(ds.test.X, candidates) for training in trainings]
        trees = [Run(i, top.to_csr(), one.model()) for i, (top, one) in enumerate(zip(tops, trainings, strict=True))]
        found[TREE] = trees
    return found


SCORES = ("P", "PSP", "P complete", "Cov")


def scores(ds: Dataset, top: TopK, k: int) -> dict[str, float]:
    """P@k, PSP@k and Cov@k of a selection.

    Parameters
    ----------
    ds : Dataset
    top : TopK
        k labels for each test point.
    k : int

    Returns
    -------
    dict of str to float
        P, PSP, P complete, Cov, percent. Cov is over the labels with a test point, as in the code the paper builds on.
        P complete is P of a twin's complete truth, what PSP estimates but for its normaliser; real data have none.
    """
    names = ["P", "PSP", "coverage (test)"]
    found = metrics.evaluate(ds.test.Y, top, k, inverse_propensity=weights(ds), metrics=names)["value"]
    value = dict(zip(("P", "PSP", "Cov"), 100 * found, strict=True))
    if complete(ds) is not None:
        value["P complete"] = 100 * float(metrics.precision(complete(ds), top, k)[0])
    return {name: value[name] for name in SCORES if name in value}
