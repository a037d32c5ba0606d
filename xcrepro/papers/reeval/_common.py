"""What the items share: the paper's tables and k, our models in its methods' place, leaders, and the bars of figure 2.

The paper's neural methods need a GPU and a text encoder. What stands here beside the linear SVM are this kit's
baselines: one says what another loss changes, one what a label tree costs, one is made for the tail, one learns its
features, and one attends to words label by label, as AttentionXML does, without its LSTM, its word vectors and its layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import formats, looks, published
from xcrepro.arguments import one_of, real_number, whole_number
from xcrepro.data.dataset import Dataset
from xcrepro.data.registry import find as registry_entry
from xcrepro.errors import ArgumentError, DataMissing
from xcrepro.findings import BLOCKS, Measured
from xcrepro.inputs import baselines, datasets, parameters, trained
from xcrepro.metrics import registry
from xcrepro.metrics.significance import jackknife_blocks
from xcrepro.models import Model
from xcrepro.predictions import TopK
from xcrepro.repro import figures

KS = (1, 3, 5)
TABLES = {
    table: {code: registry.printed(code)[0] for code in codes}
    for table, codes in ((3, ("P", "micro_F1", "macro_F1")), (4, ("N", "PSP")))
}
"""The paper's table -> its metrics as printed -> ours."""
METRICS = TABLES[3] | TABLES[4]
COMPLETE = " complete"
"""What a column of a metric on a twin's complete truth is called behind the metric's own."""
F1 = {code: name for code, name in TABLES[3].items() if code.endswith("F1")}
"""The rows of figure 2 as printed -> ours."""
BASELINE = "SVM"
MODELS = {
    "SVM": "DiSMEC",
    "Logistic": "1-vs-All",
    "PLT": "PLT",
    "PfastreXML": "PfastreXML",
    "Neural": "Neural",
    "Attention": "Attention",
}
"""Name in these items -> baseline. The SVM is linear, on tf-idf, one a label: squared hinge, C = 1; the paper names no
loss and no C. Logistic is the same with the logistic loss, C = 10."""

Loaded = Mapping[str, Dataset]
Tops = Mapping[str, Mapping[str, TopK]]


# ---------------------------------------------------------------- datasets and models


def predictions(
    loaded: Loaded, seed: int = 0, given: str = "", max_leaf: int = 100, models: Sequence[str] = tuple(MODELS)
) -> dict[str, dict[str, TopK]]:
    """The predictions of some of :data:`MODELS`, saved ones before them.

    Parameters
    ----------
    loaded : mapping
        What :func:`xcrepro.inputs.datasets.pick_many` returned.
    seed : int
        Of the trainings.
    given : str
        A folder of saved predictions with one subfolder for each dataset, named by its key (``eurlex-4k``), in which
        every file is a model (see :func:`xcrepro.inputs.baselines.saved`). They come first. A model of the same name is left
        out, and all of them where the dataset has no features to train on.
    max_leaf : int
        Labels in a leaf of the label tree. With as many as a dataset has labels the tree would be Logistic again.
    models : sequence of str
        Of :data:`MODELS`.

    Returns
    -------
    dict
        Printed name of the dataset -> model -> its best labels for the test points.
    """
    found = {}
    for title, ds in loaded.items():
        tops = baselines.saved(str(_home_of(given, datasets.registry_name(ds))), ds) if given else {}
        for name in models:
            if name not in tops and not (given and ds.train.X is None):
                model = baselines.recipe(MODELS[name], ds, seed)
                if name == "PLT":
                    model.max_leaf = max_leaf
                tops[name] = predict(model, ds)
        found[title] = tops
    return found


def _home_of(given: str, key: str) -> Path:
    """Where the saved predictions for one dataset lie."""
    return Path(given).expanduser() / key


def check_parameters(values: Mapping[str, object]) -> None:
    """Refuse parameters that the reruns could not use, in the notebook's own names.

    Parameters
    ----------
    values : mapping of str to object

    Raises
    ------
    ArgumentError, DataMissing
        As :func:`xcrepro.inputs.parameters.check`; for a model that is not of :data:`MODELS`, a baseline that is neither
        one of the models nor a saved one, a ``k`` too few, a C that is not above 0; for a dataset without saved predictions.
    """
    parameters.check({name: value for name, value in values.items() if name != "models"})
    names, models, given = values["names"], values["models"], values["predictions"]
    for i, name in enumerate(models):
        one_of("parameter models", name, MODELS)
        if name in models[:i]:
            raise ArgumentError("parameter models", "must hold nothing twice", repr(name))
    if not models and not given:
        raise ArgumentError("parameter models", "must name one at least where no predictions are given", models)
    if "ks" in values and len(values["ks"]) not in (0, len(names)):
        rule = f"must be one for each of names, {len(names)}, or empty"
        raise ArgumentError("parameter ks", rule, values["ks"], "empty: the mean number of labels a point, rounded")
    whole_number("parameter max_leaf", values["max_leaf"], 2)
    for cost in values.get("costs", []):
        real_number("parameter costs", cost, above=0)
    homes = [_home_of(given, getattr(registry_entry(name), "name", name)) for name in names] if given else []
    for home in homes:
        if not home.is_dir():
            raise DataMissing(
                f"parameter predictions: {home} is no folder; this item takes several datasets: give a folder that holds a "
                f"subfolder for each of names, here {home.name}"
            )
    if (baseline := values.get("baseline")) and baseline not in models:
        for home in homes or [None]:
            own = list(formats.model_files(home)) if home else []
            if baseline not in own:
                known = ", ".join([*models, *own])
                raise ArgumentError("parameter baseline", "must be one of the models", repr(baseline), known)


def places(loaded: Loaded, ks: Sequence[int]) -> list[int]:
    """One k for each dataset.

    Parameters
    ----------
    loaded : mapping of str to Dataset
    ks : sequence of int
        Empty: the mean number of labels of a train point, rounded, 1 at least and no more than predictions are kept for. So
        does the paper choose (section 5): 19 where they are 18.64, 5 where they are 5.30 and 5.04.

    Returns
    -------
    list of int
    """
    means = (ds.train.Y.nnz / ds.n_train for ds in loaded.values())
    return list(ks) or [min(max(round(mean), 1), baselines.PLACES) for mean in means]


def predict(model: Model, ds: Dataset) -> TopK:
    """The best labels of ``model``, trained once for all who ask, for the test points.

    Features that no train point has say nothing, yet a small twin has all of its dataset's: where they are the most,
    they are left out, which saves most of the time.
    """
    X, test = ds.train.X, ds.test.X
    used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    if 2 * used.size < X.shape[1]:
        X, test = X[:, used], test[:, used]
    return trained.training(model, X, ds.train.Y).predictions(test, baselines.PLACES)


def runs(loaded: Loaded, tops: Tops, ks: Sequence[int]) -> list[tuple[str, Dataset, int, Mapping[str, TopK]]]:
    """Each dataset with its k and its predictions.

    Parameters
    ----------
    loaded : mapping of str to Dataset
        Name -> dataset.
    tops : mapping of str to mapping of str to TopK
        Name -> model -> predictions for the test points.
    ks : sequence of int
        One for each dataset.

    Returns
    -------
    list of (name, dataset, k, model -> predictions)

    Raises
    ------
    ArgumentError
        Unless there is one k for each.
    """
    if len(ks) != len(loaded):
        raise ArgumentError("ks", f"must be one for each of the {len(loaded)} datasets", list(ks))
    return [(title, ds, k, tops[title]) for (title, ds), k in zip(loaded.items(), ks, strict=True)]


def others(models: Mapping[str, object], baseline: str) -> dict[str, object]:
    """The models without the baseline.

    Parameters
    ----------
    models : mapping
        By name: predictions, or numbers.
    baseline : str

    Returns
    -------
    dict

    Raises
    ------
    ArgumentError
        Unless the baseline is one of them.
    """
    if baseline not in models:
        raise ArgumentError("baseline", "must be one of the models", repr(baseline), ", ".join(models))
    return {name: top for name, top in models.items() if name != baseline}


def measure(
    statistics: Callable[[object, TopK], Mapping[str, float]], Y, tops: Mapping[str, TopK]
) -> dict[str, Measured]:
    """Several statistics of the test points, each with a jackknife over blocks of points (:class:`Measured`).

    Parameters
    ----------
    statistics : callable
        ``statistics(Y, top)`` -> name -> number, the same names for all.
    Y : sparse matrix, shape (n, L)
    tops : mapping of str to TopK
        Model -> predictions.

    Returns
    -------
    dict of str to Measured
        Name of the statistic -> its numbers of all models.
    """
    values = {model: statistics(Y, top) for model, top in tops.items()}
    left: dict[str, list] = {model: [] for model in tops}
    for keep in jackknife_blocks(Y.shape[0], BLOCKS) if Y.shape[0] > 1 else ():
        rest = Y[keep]
        for model, top in tops.items():
            left[model].append(statistics(rest, top.rows(keep)))
    names = next(iter(values.values()), {})
    return {
        name: Measured(
            {model: float(found[name]) for model, found in values.items()},
            {model: np.array([one[name] for one in parts], float) for model, parts in left.items()},
        )
        for name in names
    }


# ---------------------------------------------------------------- orders of methods


def leaders(values: pd.Series) -> str:
    """The name of the largest value, all of them (``A = B``) where they tie, ``-`` of none."""
    return " = ".join(values.index[values == values.max()]) or "-"


def pair_signs(values: pd.Series) -> np.ndarray:
    """For every pair of methods which has more.

    Parameters
    ----------
    values : Series
        A value a method. Two metrics computed another way may differ in the last digit of what is equal, so
        differences are rounded.

    Returns
    -------
    ndarray, shape (pairs,)
        1, -1 or 0.
    """
    one, other = np.triu_indices(len(values), 1)
    return np.sign(np.round(values.to_numpy()[one] - values.to_numpy()[other], 9))


def only_table(found: pd.DataFrame, number: int) -> pd.DataFrame:
    """One of tables 3 and 4 of both side by side.

    Parameters
    ----------
    found : DataFrame
        With the columns of both.
    number : {3, 4}

    Returns
    -------
    DataFrame
        dataset, method, then the columns of table 3 (P, micro-F1, macro-F1) or 4 (nDCG, PSP), those on the complete
        truth (:data:`COMPLETE`) among them.
    """
    columns = [f"{metric}@{k}{end}" for metric in TABLES[number] for k in KS for end in ("", COMPLETE)]
    return found[["dataset", "method", *[name for name in columns if name in found]]]


def compute_order(found: pd.DataFrame) -> pd.DataFrame:
    """Do P@k and nDCG@k rank the methods alike? The paper says they are the same measure.

    Parameters
    ----------
    found : DataFrame
        Tables 3 and 4 side by side.

    Returns
    -------
    DataFrame
        A row a dataset and k: best by each, how many pairs of methods they put in opposite order, and how many one of
        them ties and the other does not.
    """
    rows = []
    for dataset, part in found.set_index("method").groupby("dataset", sort=False):
        for k in KS:
            p, n = part[f"P@{k}"], part[f"N@{k}"]
            by_p, by_n = pair_signs(p), pair_signs(n)
            opposite, tied = (by_p * by_n < 0).sum(), ((by_p == 0) != (by_n == 0)).sum()
            rows.append((dataset, k, leaders(p), leaders(n), opposite, tied))
    return pd.DataFrame(rows, columns=["dataset", "k", "best by P", "best by nDCG", "opposite", "tied in one"])


def compute_best(table: pd.DataFrame, baseline: str = BASELINE) -> pd.DataFrame:
    """The best of each dataset by micro-F1 and by macro-F1, and the baseline's place; ``-`` where there are no bars.

    Parameters
    ----------
    table : DataFrame
        The bars of figure 2: metric, dataset, k, method, value.
    baseline : str
        The method whose place is asked for.

    Returns
    -------
    DataFrame
        A row a dataset: dataset, k, then for each average the best (texts) and the place (``2 of 5``).
    """
    found = []
    for dataset, part in table.groupby("dataset", sort=False):
        row = {"dataset": dataset, "k": part["k"].iloc[0]}
        for metric in F1:
            bars = part[part["metric"] == metric].set_index("method")["value"].dropna()
            place = f"{(bars > bars[baseline]).sum() + 1} of {len(bars)}" if len(bars) else "-"
            row |= {f"best {metric}": leaders(bars), f"{baseline}'s place, {metric}": place}
        found.append(row)
    return pd.DataFrame(found)


# ---------------------------------------------------------------- figures


def panel_title(title: str, k: int, twin: bool) -> str:
    """A panel's title: whose data, and at which k."""
    return f"{title}{', twin' if twin else ''}, k = {k}"


def plot_f1_bars(table: pd.DataFrame, twin: bool = True, ax=None) -> Figure:
    """Figure 2: micro-F1 above, macro-F1 below, a panel a dataset; a panel without numbers says so.

    Parameters
    ----------
    table : DataFrame
        metric, dataset, k, method, value (percent); optional ``error``: its standard error, and ``printed``: the paper's
        value, drawn as a diamond.
    twin : bool
        Whether the values are of twins; panels are named so.
    ax : array of Axes, optional
        Two rows, a column a dataset.
    """
    names = table["dataset"].unique()
    width = looks.WIDE if len(names) > 1 else looks.NARROW
    with figures.new(width, 4.8, ncols=len(names), nrows=2, ax=ax, squeeze=False) as (fig, axes):
        for metric, line in zip(F1, axes, strict=True):
            for name, panel in zip(names, line, strict=True):
                part = table[(table["metric"] == metric) & (table["dataset"] == name)].reset_index(drop=True)
                panel.set_title(panel_title(name, part["k"].iloc[0], twin), loc="left")
                panel.set_xticks([])
                # Few bars stand in the middle, no wider than they would be of three.
                middle, half = (len(part) - 1) / 2, max(len(part), 3) / 2 + 0.2
                panel.set_xlim(middle - half, middle + half)
                panel.grid(axis="x", visible=False)
                panel.margins(y=0.13)
                _draw_f1_bars(panel, part)
            line[0].set_ylabel(f"{F1[metric]}@k, %")
        looks.legend(fig, ncols=min(4 if len(names) == 1 else 7, table["method"].nunique() + 1))
        several = table.groupby(["metric", "dataset"])["method"].nunique().max() > 1
        notes = ["bold: the highest"] if several else []
        notes += ["whiskers: two standard errors"] if "error" in table and table["error"].notna().any() else []
        looks.title(fig, "Micro-F1 above, macro-F1 below" + (f" ({'; '.join(notes)})" if notes else ""))
    return fig


def _draw_f1_bars(panel, part: pd.DataFrame) -> None:
    figures.draws(panel, y=[name for name in ("value", "printed") if name in part])
    if part["value"].isna().all():
        panel.set_yticks([])
        words = "not tabulated:\nthe paper's tables\nstop at k = 5"
        panel.text(0.5, 0.5, words, transform=panel.transAxes, ha="center", va="center", color="0.35")
        return
    box = {"facecolor": looks.WHITE, "edgecolor": "none", "pad": 1}
    whiskers = {"capsize": 3, "ecolor": "0.45", "elinewidth": 1.2}
    errors = part["error"] if "error" in part else pd.Series(np.nan, part.index)
    styles = looks.distinct(part["method"])
    for place, (method, value, error) in enumerate(zip(part["method"], part["value"], errors, strict=True)):
        yerr = 2 * error if error > 0 else None
        panel.bar(place, value, 0.8, label=method, yerr=yerr, error_kw=whiskers, **styles[method].bar())
        # At the foot of the bars, where no diamond can hide them.
        weight = "bold" if value == part["value"].max() else "normal"
        style = {"ha": "center", "fontsize": looks.TINY, "fontweight": weight, "bbox": box}
        panel.annotate(f"{value:.1f}", (place, 0), (0, 4), textcoords="offset points", **style)
    if "printed" in part and part["printed"].notna().any():
        diamond = {"color": looks.WHITE, "markeredgecolor": looks.INK, "label": "as printed, real data"}
        panel.plot(part.index, part["printed"], "D", **diamond)


# ---------------------------------------------------------------- printed


def compute_printed() -> pd.DataFrame:
    """Tables 3 and 4 as printed, side by side.

    Returns
    -------
    DataFrame
        dataset, method, then a column a metric and k, percent.
    """
    both = published.wide("reeval:table3").join(published.wide("reeval:table4"))
    return both.droplevel("variant").reset_index()


FIGURE_K = {"EURLex-4K": 5, "Wiki10-31K": 19, "AmazonCat-13K": 5}
"""Section 5 of the paper."""


def compute_printed_bars() -> pd.DataFrame:
    """The thirty bars of figure 2, from tables 3 and 4.

    The figure takes k = 19 on Wiki10-31K; the tables stop at k = 5.

    Returns
    -------
    DataFrame
        metric, dataset, k, method, value (percent); NaN for the ten that no table has.
    """
    rows = [
        (metric, row["dataset"], k := FIGURE_K[row["dataset"]], row["method"], row.get(f"{metric}@{k}", np.nan))
        for metric in F1
        for _, row in compute_printed().iterrows()
    ]
    return pd.DataFrame(rows, columns=["metric", "dataset", "k", "method", "value"])
