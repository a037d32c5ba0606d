"""Tables 3 and 4 (b) to (e) of Jain et al. 2016 on small twins of their datasets, with this kit's models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Measured
from xcrepro.inputs import baselines, parameters
from xcrepro.papers.jain16 import table3_table4_rerun as rerun
from xcrepro.papers.jain16._common import KS
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

check_parameters = parameters.check
DRAWN = ("P5", "C5")


def predict(loaded: Mapping[str, Dataset], models: Sequence[str], seed: int = 0) -> dict[str, dict[str, TopK]]:
    """The models' best labels for the test points of each dataset.

    Parameters
    ----------
    loaded : mapping of str to Dataset
        Printed name -> dataset.
    models : sequence of str
        Baselines.
    seed : int
        Theirs.

    Returns
    -------
    dict of str to dict of str to TopK
        By dataset and model.
    """
    return {name: baselines.predictions(ds, models, seed) for name, ds in loaded.items()}


def measure(loaded: Mapping[str, Dataset], tops: Mapping[str, Mapping[str, TopK]]) -> dict[str, dict[str, Measured]]:
    """:func:`~xcrepro.papers.jain16.table3_table4_rerun.measure` of each dataset."""
    return {name: rerun.measure(ds, tops[name]) for name, ds in loaded.items()}


def compute(
    loaded: Mapping[str, Dataset],
    tops: Mapping[str, Mapping[str, TopK]],
    measured: Mapping[str, Mapping[str, Measured]],
) -> pd.DataFrame:
    """Tables 3 and 4 of each dataset, one below the other.

    Parameters
    ----------
    loaded, tops, measured : mapping
        Datasets, and of them :func:`predict` and :func:`measure`.

    Returns
    -------
    DataFrame
        dataset, points (train), model, hits 1, 3, 5 (in the first places of all test points), N1 to P5, their
        errors (N1 error ...), C1, C3, C5, and P5 printed and C5
        printed; percent and
        points.
    """
    parts = []
    for name, ds in loaded.items():
        part = rerun.compute(ds, tops[name])
        errors = rerun.compute_errors(measured[name]).add_suffix(" error").drop(columns="model error")
        hits = [Truth.of(ds.test.Y).hits(top.ids).cumsum(axis=1).sum(axis=0) for top in tops[name].values()]
        part = part.assign(**{f"hits {k}": [int(one[k - 1]) for one in hits] for k in KS})
        counts = [f"hits {k}" for k in KS]
        kept = part[["model", *counts, *rerun.SCORED, *rerun.COVERED, *(f"{column} printed" for column in DRAWN)]]
        parts.append(pd.concat([kept, errors], axis=1).assign(dataset=name, points=ds.n_train))
    table = pd.concat(parts, ignore_index=True)
    scored = [column for one in rerun.SCORED for column in (one, f"{one} error")]
    hits, printed = [f"hits {k}" for k in KS], [f"{column} printed" for column in DRAWN]
    return table[["dataset", "points", "model", *hits, *scored, *rerun.COVERED, *printed]]


def compute_claims(
    loaded: Mapping[str, Dataset],
    tops: Mapping[str, Mapping[str, TopK]],
    measured: Mapping[str, Mapping[str, Measured]],
) -> pd.DataFrame:
    """The paper's order of the methods on each dataset.

    Parameters
    ----------
    loaded, tops, measured : mapping
        As for :func:`compute`.

    Returns
    -------
    DataFrame
        dataset, then :func:`~xcrepro.papers.jain16.table3_table4_rerun.compute_claims`.
    """
    parts = []
    for name, ds in loaded.items():
        paper = rerun.compute_printed(ds)
        found = rerun.compute_claims(measured[name], rerun.compute(ds, tops[name]), paper)
        parts.append(found.assign(dataset=name)[["dataset", *found.columns]])
    return pd.concat(parts, ignore_index=True)


def findings(claims: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """On how many datasets each claim of the paper comes out.

    Parameters
    ----------
    claims, table : DataFrame
        Of :func:`compute_claims` and :func:`compute`.

    Returns
    -------
    list of str
    """
    said = []
    for (better, than), part in claims.groupby(["better", "than"], sort=False):
        whole = part["above"] + part["below"] + part["not clear"]
        clear, other = part["above"] == whole, part["below"] == whole
        text = f"{better} is clearly above {than} in all five columns on {int(clear.sum())} of {len(part)} datasets"
        text += f", clearly below in all on {int(other.sum())}" if other.any() else ""
        rest = [row["dataset"] for _, row in part[~clear].iterrows()]
        text += f" (not: {', '.join(rest)})" if rest and clear.any() else ""
        known = part[part["printed"] > 0]
        if len(known):
            same = int((known["printed above"] == known["printed"]).sum())
            text += f"; in print it is above in all of them on {same} of {len(known)}"
        said.append(f"{text}.")
    for name, part in table.groupby("dataset", sort=False):
        value = part.set_index("model")["P5"]
        said.append(f"{name}: {value.idxmax()} has the highest P5, {value.max():.1f} %.")
    return said


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """P5 and C5 of each dataset: ours filled, P5 with a bar of two standard errors, and print hollow.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute`.
    ax : array of Axes, optional
        Two rows, a column a dataset.
    """
    names = list(dict.fromkeys(table["dataset"]))
    shape = {"nrows": 2, "ncols": len(names), "squeeze": False}
    with figures.new(looks.WIDE, 4.6, **shape, ax=ax) as (fig, axes):
        for (row, column), axis in np.ndenumerate(axes):
            part, shown = table[table["dataset"] == names[column]], DRAWN[row]
            at = np.arange(len(part))
            if shown in rerun.SCORED:
                bars = {"fmt": "none", "ecolor": looks.INK, "elinewidth": 1.2, "capsize": 2}
                axis.errorbar(part[shown], at, xerr=2 * part[f"{shown} error"], **bars)
            axis.plot(part[shown], at, "o", color=looks.INK, linestyle="none", label="ours (a small twin)")
            hollow = {"color": looks.RUST, "fillstyle": "none", "linestyle": "none", "label": "printed (real data)"}
            axis.plot(part[f"{shown} printed"], at, "s", **hollow)
            axis.set(xlabel=f"{shown}, %", xlim=(0, None), ylim=(len(part) - 0.4, -0.6))
            axis.set_title(names[column] if row == 0 else "", fontsize="small")
            axis.set_yticks(at, part["model"] if column == 0 else [""] * len(part))
            figures.draws(axis, x=(shown, f"{shown} printed"))
        looks.legend(fig, axes[0][0])
        looks.title(fig, "Tables 3 and 4 (b) to (e): precision and coverage on small twins, and in print")
        return fig
