"""Tables 4 and 8, figures 13 to 16, 3 and the third column of 2: models that use the words of labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, published
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.findings import corrected, count
from xcrepro.inputs import baselines, calibrated, datasets
from xcrepro.metrics import ranking
from xcrepro.models.base import unit_rows
from xcrepro.papers.calibration import _common, fig3_fig17_to_19_rerun, fig7_fig10_to_12_rerun
from xcrepro.predictions import TopK
from xcrepro.repro import figures, tables
from xcrepro.truth import Truth

check_parameters = fig3_fig17_to_19_rerun.check_parameters
compute = fig3_fig17_to_19_rerun.compute
compute_bins = _common.compute_bins
plot_reliability = fig7_fig10_to_12_rerun.plot

MODELS = ("PLT", "PLT + labels", "Neural + labels", "Two towers, encoder", "Two towers")
"""Those of a run by default; all but the first use the labels' words."""
METRICS = ("ECE", "Brier", "ACE")
"""What tables 4 and 8 print."""
SOURCES = {"LF-AmazonTitles-131K": "xcrepo:LF-AmazonTitles-131K", "LF-WikiSeeAlso-320K": "xcrepo:LF-WikiSeeAlso-320K"}
"""Dataset of table 8 -> where its models' P@k is printed."""
SEEN = {"1": (1, 1), "2 to 4": (2, 4), "5 and more": (5, np.inf)}
"""How many train points have a label, in three steps."""
COSINE, BEST = "cosine of words", "true probabilities"
"""What a model's precision stands beside: no training at all, and what no model exceeds but by luck."""
MIDDLE = (0.2, 0.8)
"""Where a score counts as one of the mid-range."""


def compute_errors(sets: Mapping[str, tuple[Dataset, calibrated.States]]) -> pd.DataFrame:
    """Tables 4 and 8 for the models of a run: errors before and after isotonic regression.

    Parameters
    ----------
    sets : mapping
        Name -> dataset, and the predictions for it from :func:`xcrepro.inputs.calibrated.before_after`.

    Returns
    -------
    DataFrame
        As :func:`xcrepro.papers.calibration.fig3_fig17_to_19_rerun.compute_errors` has it, ECE, ECE corrected, Brier and ACE.
        Table 4 is its rows of k = 5.
    """
    found = fig3_fig17_to_19_rerun.compute_errors(sets)
    return found[found["metric"] != "NLL"].reset_index(drop=True)


def compute_summary(sets: Mapping[str, tuple[Dataset, calibrated.States]]) -> pd.DataFrame:
    """Which way each model errs, and how many of its scores lie in the middle.

    Parameters
    ----------
    sets : mapping
        As for :func:`compute_errors`.

    Returns
    -------
    DataFrame
        dataset, then :func:`xcrepro.papers.calibration._common.compute_summary` with ``in the middle``: percent of the scores
        before calibration within :data:`MIDDLE`.
    """
    parts = []
    for dataset, (ds, states) in sets.items():
        summary, share = _common.compute_summary(ds, states), []
        for before, _ in states.values():
            scores = before.scores[before.ids >= 0]
            share.append(100 * float(((scores >= MIDDLE[0]) & (scores <= MIDDLE[1])).mean()) if scores.size else np.nan)
        summary.insert(summary.columns.get_loc("ECE"), "in the middle", share)
        summary.insert(0, "dataset", dataset)
        parts.append(summary)
    return pd.concat(parts, ignore_index=True)


def describe_direction(summary: pd.DataFrame) -> pd.DataFrame:
    """Which way each model errs, as words (:func:`xcrepro.papers.calibration._common.describe_direction`).

    Parameters
    ----------
    summary : DataFrame
        From :func:`compute_summary`.

    Returns
    -------
    DataFrame
        dataset, model, then a text a k.
    """
    parts = []
    for dataset, part in summary.groupby("dataset", sort=False):
        words = _common.describe_direction(part)
        words.insert(0, "dataset", dataset)
        parts.append(words)
    return pd.concat(parts, ignore_index=True)


def compute_precision(sets: Mapping[str, tuple[Dataset, Mapping]]) -> pd.DataFrame:
    """P@k of every model, between what words tell without training and what can be told at all.

    Parameters
    ----------
    sets : mapping
        Name -> dataset, and its predictions by model.

    Returns
    -------
    DataFrame
        dataset, model, P@1, P@3, P@5, percent. Further rows: :data:`COSINE`, labels by the cosine of their words and the
        point's, where the dataset has words of labels; :data:`BEST`, by a twin's own probabilities.
    """
    rows = []
    for dataset, (ds, tops) in sets.items():
        further = {}
        if ds.label_features is not None:
            words = (unit_rows(ds.test.X) @ unit_rows(ds.label_features).T).tocsr()
            further[COSINE] = TopK.from_scores(words, max(calibrated.KS))
        if isinstance(ds, Twin):
            further[BEST] = TopK.from_scores(ds.test.observed_marginals, max(calibrated.KS))
        for model, top in {**tops, **further}.items():
            values = 100 * ranking.precision(ds.test.Y, top, calibrated.KS)
            rows.append((dataset, model, *(float(value) for value in values)))
    return pd.DataFrame(rows, columns=["dataset", "model", *(f"P@{k}" for k in calibrated.KS)])


def compute_tail(sets: Mapping[str, tuple[Dataset, Mapping]], k: int = 5) -> pd.DataFrame:
    """How many of the test points' labels each model finds, by how often the label was seen.

    Parameters
    ----------
    sets : mapping
        Name -> dataset, and its predictions by model.
    k : int

    Returns
    -------
    DataFrame
        dataset, train points (:data:`SEEN`), pairs (of a test point and a label of it), then a column a model: percent of
        the pairs in the model's first k.
    """
    rows = []
    for dataset, (ds, tops) in sets.items():
        truth, counts = Truth.of(ds.test.Y), ds.label_counts
        for name, (least, most) in SEEN.items():
            wanted = (counts >= least) & (counts <= most)
            pairs = int(wanted[truth.indices].sum())
            row = {"dataset": dataset, "train points": name, "pairs": pairs}
            for model, top in tops.items():
                first = top.head(k)
                hits = truth.hits(first.ids) & wanted[np.maximum(first.ids, 0)]
                row[model] = 100 * float(hits.sum()) / pairs if pairs else np.nan
            rows.append(row)
    return pd.DataFrame(rows)


def compute_printed(k: int = 5) -> pd.DataFrame:
    """Table 8 beside the P@k that the repository's page prints for the same method: the printed points of figure 3.

    Parameters
    ----------
    k : int

    Returns
    -------
    DataFrame
        dataset, method, P, metric, variant, value, as :func:`compute_errors` has them, and ``reading``. Methods of which the
        page has no P@k on the dataset are left out.
    """
    table = _common.printed_table(8)
    table = table[(table["k"] == k) & table["metric"].isin(METRICS)].dropna(subset="value")
    page = pd.concat(
        published.find(source=source, metric="P", k=k).assign(dataset=dataset) for dataset, source in SOURCES.items()
    )
    page = page.rename(columns={"value": "P"})[["dataset", "method", "P"]].drop_duplicates(["dataset", "method"])
    found = table.merge(page, on=["dataset", "method"])
    return found[["dataset", "method", "P", "metric", "variant", "value", "reading"]]


def compare_with_printed(sets: Iterable[Dataset]) -> pd.DataFrame:
    """Table 8's rows of the datasets (of a twin: its original).

    Parameters
    ----------
    sets : iterable of Dataset

    Returns
    -------
    DataFrame
        dataset, k, method, ECE, ECE-I, ... in the texts of the page, "†" behind what the audit doubts. No rows where the
        paper prints none.
    """
    found = _common.printed_table(8)
    found = found[found["dataset"].isin([datasets.printed_name(ds) for ds in sets])].astype({"k": int})
    found["text"] += found["doubted"].map({True: "†", False: ""})
    found = found.assign(column=found["metric"] + found["mark"])
    return tables.spread(found, ["dataset", "k", "method"], "column", "text").fillna("-")


def join_points(
    printed: pd.DataFrame, errors: pd.DataFrame, sets: Mapping[str, tuple[Dataset, calibrated.States]], k: int = 5
) -> pd.DataFrame:
    """What figure 3's first row is drawn from.

    Parameters
    ----------
    printed, errors : DataFrame
        Of :func:`compute_printed` and :func:`compute_errors`.
    sets : mapping
        What the latter took.
    k : int

    Returns
    -------
    DataFrame
        Both, with ``row``: ``"printed, LF-AmazonTitles-131K"``, ``"here, synthetic twin of LF-AmazonTitles-131K × 0.01"``.
    """
    here = errors[(errors["k"] == k) & errors["metric"].isin(METRICS)]
    # What it is, without its seed and size, which stand in the figure's foot.
    titles = {name: ds.origin.partition(" (")[0] for name, (ds, _) in sets.items()}
    both = [("printed", printed), ("here", here)]
    parts = [part.assign(row=f"{name}, " + part["dataset"].replace(titles)) for name, part in both if len(part)]
    found = pd.concat(parts, ignore_index=True).drop(columns="k", errors="ignore")
    return found.assign(reading=found["reading"].fillna("as printed")) if "reading" in found else found


def plot(points: pd.DataFrame, k: int = 5, ax=None) -> Figure:
    """Figure 3, row 1: ECE, Brier and ACE against P@k, a row a dataset, printed and here.

    Parameters
    ----------
    points : DataFrame
        Of :func:`join_points`.
    k : int
    ax : array of Axes, optional
        Three a row.
    """
    lines = list(points["row"].unique())
    shape = {"nrows": len(lines), "ncols": 3, "squeeze": False}
    with figures.new(looks.WIDE, 1.2 + 2.3 * len(lines), ax=ax, **shape) as (fig, axes):
        for line, name in zip(axes, lines, strict=True):
            for panel, metric in zip(line, METRICS, strict=True):
                part = points[(points["row"] == name) & (points["metric"] == metric)]
                _common.draw_before_after(panel, part, _drawn_with(points, name))
                panel.set(ylabel=f"{metric}@{k}, %")
                panel.set_ylim(0, None)
                for drawn in panel.get_lines():  # an error of 0.1 % is a whole marker, not the upper half of one
                    drawn.set_clip_on(False)
            line[0].set_title(name, loc="left")
            for panel in line:
                panel.set_xlabel(f"P@{k}, %")
        words = "filled: before, hollow: after isotonic regression; lines: two standard errors"
        looks.legend(fig, *axes[:, 0], ncols=4, title=words)
        looks.title(fig, f"Calibration errors at k = {k} against P@{k}, models with words of labels and PLT")
    return fig


def _drawn_with(points: pd.DataFrame, row: str) -> np.ndarray:
    """The methods among which those of a row must be told apart: all printed ones, or all of here, for which there are looks
    enough; of both where one stands in both under one name, and has one look."""
    is_printed = points["row"].str.startswith("printed, ")
    printed, here = (points.loc[part, "method"].unique() for part in (is_printed, ~is_printed))
    if set(printed) & set(here):
        return points["method"].unique()
    return printed if row.startswith("printed, ") else here


def findings(
    sets: Mapping[str, tuple[Dataset, calibrated.States]],
    summary: pd.DataFrame,
    precision: pd.DataFrame,
    tail: pd.DataFrame,
) -> list[str]:
    """What the words of labels do to precision and to calibration.

    Parameters
    ----------
    sets : mapping
        What :func:`compute_errors` took.
    summary : DataFrame
        Of :func:`compute_summary`.
    precision, tail : DataFrame
        Of :func:`compute_precision` and :func:`compute_tail`.

    Returns
    -------
    list of str
    """
    said = []
    for dataset, (ds, states) in sets.items():
        part = precision[precision["dataset"] == dataset].set_index("model")["P@1"]
        said.append(f"{dataset}, P@1: {'; '.join(f'{model} {value:.1f} %' for model, value in part.items())}.")
        names = list(dict.fromkeys(name for name, _ in states))
        with_words = [name for name in names if baselines.needs_label_features(name)]
        k = max(k for _, k in states)
        if "PLT" in names and with_words:
            tops = {name: states[name, k][0] for name in names}
            measured = calibrated.measured(ds, tops, k, ("P", "ECE"))
            for metric, claim in (
                ("P", "a model that knows the labels' words has the higher P"),
                ("ECE", "the one with them has the larger ECE"),
            ):
                pairs = measured[metric].differences((name, "PLT") for name in with_words)
                said.append(f"{dataset}, against PLT without them: {count(pairs, f'{claim}@{k}')}.")
        fall = [
            one
            for found in calibrated.measured_states(ds, states).values()
            for one in calibrated.before_minus_after(found)
        ]
        last = summary[(summary["dataset"] == dataset) & (summary["k"] == k)]
        said.append(
            f"{dataset}, over models and k, {count(corrected(fall), 'ECE@k is lower after isotonic regression')}; the "
            f"largest ECE@{k} goes from {last['ECE'].max():.1f} to {last['after'].max():.1f} %."
        )
        shares = last.set_index("model")["in the middle"].sort_values(ascending=False)
        said.append(
            f"{dataset}: of the scores in the top {k}, between {MIDDLE[0]:g} and {MIDDLE[1]:g} lie "
            + "; ".join(f"{share:.0f} % of {name}'s" for name, share in shares.items())
            + "."
        )
        once = tail[(tail["dataset"] == dataset) & (tail["train points"] == "1") & (tail["pairs"] > 0)]
        if len(once):
            row = once.iloc[0]
            texts = [f"{name} {row[name]:.0f} %" for name in names]
            pairs = f"{row['pairs']:,} pairs of a test point and a label with one train point"
            said.append(f"{dataset}: of {pairs}, the first {k} places have: {'; '.join(texts)}.")
    return said
