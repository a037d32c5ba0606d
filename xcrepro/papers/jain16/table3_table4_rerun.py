"""Tables 3 and 4 of Jain et al. 2016 with this kit's models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.inputs import datasets
from xcrepro.inputs.datasets import complete, weights
from xcrepro.metrics import ranking
from xcrepro.metrics.coverage import coverage
from xcrepro.metrics.significance import jackknife_blocks, jackknife_error
from xcrepro.papers.jain16._common import KS, MODELS, read_printed
from xcrepro.predictions import TopK
from xcrepro.repro import figures

SCORED = [f"{letter}{k}" for letter in "NP" for k in KS]
COVERED = [f"C{k}" for k in KS]
DRAWN = ("P1", "P5", "C1", "C5")
CLAIMS = [
    ("propensities in the nodes help", "PfastXML", "FastXML"),
    ("re-ranking helps on top", "PfastreXML", "PfastXML"),
    ("PfastreXML beats one-vs-rest", "PfastreXML", "1-vs-All"),
    ("PfastreXML beats what came later", "PfastreXML", "DiSMEC"),
    ("PfastreXML beats what came later", "PfastreXML", "PLT"),
]


def compute(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """Tables 3 and 4 of the models.

    As jain16, section 7: N and P are 100 G(prediction) / G(truth), with the propensities from the train counts and
    the dataset's A and B; nDCG's normaliser runs over k places whatever the point has and cancels in the ratio. C is
    the number of labels rightly predicted somewhere over the most that k places a point can show.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.

    Returns
    -------
    DataFrame
        Percent: model, N1, N3, N5 (PSnDCG), P1, P3, P5 (PSP), C1, C3, C5 (coverage), and of :data:`DRAWN` what is
        printed for the model, such as P1 printed; NaN where nothing is. Of a twin, behind each N and P, what
        propensity scoring is meant to estimate: nDCG and precision, without weights, on its complete truth, such as P1
        complete.
    """
    paper = compute_printed(ds).set_index(["model", "column"])["printed"]
    truth, rows = complete(ds), []
    for name, top in tops.items():
        row = {"model": name}
        there = [] if truth is None else _values(["nDCG (ideal k)", "P"], truth, top)
        for place, value in enumerate(_scored(ds.test.Y, top, weights(ds))):
            row[SCORED[place]] = value
            if truth is not None:
                row[f"{SCORED[place]} complete"] = there[place]
        row |= zip(COVERED, 100 * coverage(ds.test.Y, top, KS, over="reachable"), strict=True)
        rows.append(row | {f"{column} printed": paper.get((name, column), np.nan) for column in DRAWN})
    return pd.DataFrame(rows)


def _scored(Y, top: TopK, w: np.ndarray) -> np.ndarray:
    """The columns :data:`SCORED`."""
    return _values(["PSnDCG (ideal k)", "PSP"], Y, top, w)


def _values(metrics: Sequence[str], Y, top: TopK, w: np.ndarray | None = None) -> np.ndarray:
    return 100 * np.concatenate(list(ranking.values(metrics, Y, top, KS, w).values()))


def check(table: pd.DataFrame) -> pd.DataFrame:
    """Without what is printed."""
    return table.drop(columns=[f"{column} printed" for column in DRAWN])


def split(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Table 3's columns and the rest, to be shown one below the other.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    tuple of DataFrame
        model with N and P; model with C and what is printed.
    """
    first = [name for name in table if name.removesuffix(" complete") in SCORED]
    return table[["model", *first]], table.drop(columns=first)


def compute_printed(ds: Dataset) -> pd.DataFrame:
    """The cells of tables 3 and 4 for the methods of :data:`MODELS` on this dataset.

    Parameters
    ----------
    ds : Dataset
        One that the paper has, or its twin.

    Returns
    -------
    DataFrame
        model, column, printed (percent). No rows where the paper has not this dataset.
    """
    rows = pd.concat(map(read_printed, (3, 4)), ignore_index=True).rename(columns={"method": "model"})
    rows = rows[(rows["dataset"] == datasets.printed_name(ds)) & rows["model"].isin(MODELS)].drop(columns="dataset")
    return rows.set_index("model").rename_axis(columns="column").stack().dropna().rename("printed").reset_index()


def compare_with_printed(table: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """Ours and the paper's cells of tables 3 and 4.

    Parameters
    ----------
    table : DataFrame
        Ours, from :func:`compute`.
    paper : DataFrame
        The paper's, from :func:`compute_printed`.

    Returns
    -------
    DataFrame
        model, column, ours, printed (percent), difference (points); the models that both have.
    """
    ours = table.melt("model", var_name="column", value_name="ours")
    found = paper.merge(ours, on=["model", "column"])[["model", "column", "ours", "printed"]]
    return found.assign(difference=found["ours"] - found["printed"])


def compute_claims(ds: Dataset, tops: Mapping[str, TopK], table: pd.DataFrame) -> pd.DataFrame:
    """The paper's order of the methods, counted out over the columns N1 to P5.

    Parameters
    ----------
    ds : Dataset
    tops : mapping
        Model -> its predictions; claims about others are left out.
    table : DataFrame
        Their :func:`compute`.

    Returns
    -------
    DataFrame
        claim, better, than; above and below (how many of the six columns, each of them by more than twice its
        standard error), unclear (the rest); least and largest, the differences in points; C1 and C5, those of the
        coverage, which have no standard error here. The standard error is that of a paired difference by a jackknife
        over 20 blocks of test points.
    """
    value, w, Y = table.set_index("model"), weights(ds), ds.test.Y
    left = {
        name: np.array([_scored(Y[keep], top.rows(keep), w) for keep in jackknife_blocks(Y.shape[0])])
        for name, top in tops.items()
    }
    rows = []
    for claim, better, than in CLAIMS:
        if better in tops and than in tops:
            apart = value.loc[better, [*SCORED, *COVERED]] - value.loc[than, [*SCORED, *COVERED]]
            scored = apart[SCORED].to_numpy(float)
            clear = np.abs(scored) > 2 * jackknife_error(left[better] - left[than])
            above, below = int((clear & (scored > 0)).sum()), int((clear & (scored < 0)).sum())
            counts = above, below, len(SCORED) - above - below
            rows.append((claim, better, than, *counts, scored.min(), scored.max(), apart["C1"], apart["C5"]))
    names = ["claim", "better", "than", "above", "below", "unclear", "least", "largest", "C1", "C5"]
    return pd.DataFrame(rows, columns=names)


def plot(table: pd.DataFrame, twin: bool, ax=None) -> Figure:
    """Ours (filled) and the printed value (hollow), for P1, P5, C1 and C5.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    twin : bool
        Whether ours are of a twin; the legend says so.
    ax : array of Axes, optional
        Four.
    """
    at = np.arange(len(table))
    printed = "printed (real data; ours is a twin)" if twin else "printed"
    with figures.new(looks.MEDIUM, 3.3, ncols=4, sharey=True, ax=ax) as (fig, axes):
        for axis, column in zip(axes, DRAWN, strict=True):
            axis.plot(table[column], at, "o", color=looks.INK, linestyle="none", label="ours")
            hollow = {"color": looks.RUST, "fillstyle": "none", "linestyle": "none", "label": printed}
            axis.plot(table[f"{column} printed"], at, "s", **hollow)
            axis.set(title=column, xlabel="%", xlim=(0, None))
            axis.grid(axis="y", linewidth=0.4)
            figures.draws(axis, x=(column, f"{column} printed"))
        axes[0].set_yticks(at, table["model"])
        axes[0].invert_yaxis()
        looks.legend(fig)
        best = table.set_index("model")[list(DRAWN)].idxmax()
        looks.title(fig, "Who leads: " + ", ".join(f"{name} in {column}" for column, name in best.items()))
    return fig
