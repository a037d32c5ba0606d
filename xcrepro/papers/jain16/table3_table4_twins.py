"""Tables 3 and 4 (b) to (e) of Jain et al. 2016 on small twins of their datasets, with this kit's models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Measured, corrected
from xcrepro.inputs import baselines, datasets, parameters
from xcrepro.inputs.datasets import weights
from xcrepro.metrics import ranking
from xcrepro.metrics.coverage import coverage
from xcrepro.metrics.significance import jackknife_blocks
from xcrepro.papers.jain16._common import KS, MODELS, read_printed
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

check_parameters = parameters.check
SCORED = [f"{letter}{k}" for letter in "NP" for k in KS]
COVERED = [f"C{k}" for k in KS]
COMPARED = [column for column in SCORED if column != "N1"]
"""Of :data:`SCORED` those that differ: N1 is P1."""
DRAWN = ("P5", "C5")
CLAIMS = [
    ("propensities in the nodes help", "PfastXML", "FastXML"),
    ("re-ranking helps on top", "PfastreXML", "PfastXML"),
    ("PfastreXML beats one-vs-rest", "PfastreXML", "1-vs-All"),
    ("PfastreXML beats what came later", "PfastreXML", "DiSMEC"),
    ("PfastreXML beats what came later", "PfastreXML", "PLT"),
]
"""What the paper says or implies, the method that is to be above, and the one below."""


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


def compute_one(ds: Dataset, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """Tables 3 and 4 of the models on one dataset.

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
        Percent: model, N1, N3, N5 (PSnDCG), P1, P3, P5 (PSP), C1, C3, C5 (coverage), and what is printed for the model of
        :data:`DRAWN`, such as P5 printed; NaN where nothing is.
    """
    paper, rows = compute_printed(ds).set_index(["model", "column"])["printed"], []
    for name, top in tops.items():
        row = {"model": name} | dict(zip(SCORED, _scored(ds.test.Y, top, weights(ds)), strict=True))
        row |= zip(COVERED, 100 * coverage(ds.test.Y, top, KS, over="reachable"), strict=True)
        rows.append(row | {f"{column} printed": paper.get((name, column), np.nan) for column in DRAWN})
    return pd.DataFrame(rows)


def _scored(Y, top: TopK, w: np.ndarray) -> np.ndarray:
    """The columns :data:`SCORED`."""
    return 100 * np.concatenate(list(ranking.values(["PSnDCG (ideal k)", "PSP"], Y, top, KS, w).values()))


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


def measure_one(ds: Dataset, tops: Mapping[str, TopK]) -> dict[str, Measured]:
    """The columns N1 to P5 with replicates that say how far they may be off.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        Model -> its predictions for the test points.

    Returns
    -------
    dict of str to Measured
        Column of :data:`SCORED` -> percent of each model, with a jackknife over 20 blocks of test points; without an
        error where there is one test point alone.
    """
    Y, w = ds.test.Y, weights(ds)
    keeps = list(jackknife_blocks(Y.shape[0])) if Y.shape[0] > 1 else []
    whole = {name: _scored(Y, top, w) for name, top in tops.items()}
    left = {
        name: np.array([_scored(Y[keep], top.rows(keep), w) for keep in keeps]).reshape(len(keeps), len(SCORED))
        for name, top in tops.items()
    }
    return {
        column: Measured({name: values[at] for name, values in whole.items()}, {n: v[:, at] for n, v in left.items()})
        for at, column in enumerate(SCORED)
    }


def compute_errors(measured: Mapping[str, Measured]) -> pd.DataFrame:
    """Standard errors of N1 to P5.

    Parameters
    ----------
    measured : mapping
        From :func:`measure_one`.

    Returns
    -------
    DataFrame
        model, then a column each of :data:`SCORED`, points; NaN where no error is known.
    """
    errors = {column: [one.error(name) for name in one.values] for column, one in measured.items()}
    return pd.DataFrame({"model": list(measured[SCORED[0]].values)} | errors)


def compute_claims_of_one(measured: Mapping[str, Measured], table: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """The paper's order of the methods, over the five columns that differ (N1 is P1).

    Parameters
    ----------
    measured : mapping
        From :func:`measure_one`; claims about models that are not there are left out.
    table : DataFrame
        Their :func:`compute_one`.
    paper : DataFrame
        From :func:`compute_printed`.

    Returns
    -------
    DataFrame
        claim, better, than; above and below (in how many of :data:`COMPARED` clearly so; Holm's correction over all
        columns of the claim), not clear (the rest); least and largest, the differences in points; C1 and C5, those of
        the coverage, which have no error; printed above and printed (in how many of the five the paper prints the claim
        so, and how many it prints).
    """
    value, printed = table.set_index("model"), paper.set_index(["model", "column"])["printed"].to_dict()
    rows = []
    for claim, better, than in CLAIMS:
        if {better, than} <= set(value.index):
            verdicts = [one.verdict for one in _differences(measured, better, than)]
            apart = [value.loc[better, column] - value.loc[than, column] for column in COMPARED]
            covered = [value.loc[better, column] - value.loc[than, column] for column in ("C1", "C5")]
            both = [(printed.get((better, c)), printed.get((than, c))) for c in COMPARED]
            both = [pair for pair in both if None not in pair]
            counts = [verdicts.count(verdict) for verdict in ("above", "below", "not clear")]
            in_print = sum(ours > theirs for ours, theirs in both), len(both)
            rows.append((claim, better, than, *counts, min(apart), max(apart), *covered, *in_print))
    names = ["claim", "better", "than", "above", "below", "not clear", "least", "largest", "C1", "C5"]
    return pd.DataFrame(rows, columns=[*names, "printed above", "printed"])


def _differences(measured: Mapping[str, Measured], left: str, right: str) -> list:
    """Left minus right in each of :data:`COMPARED`, corrected together."""
    return corrected(measured[column].difference(left, right) for column in COMPARED)


def measure(loaded: Mapping[str, Dataset], tops: Mapping[str, Mapping[str, TopK]]) -> dict[str, dict[str, Measured]]:
    """:func:`measure_one` of each dataset."""
    return {name: measure_one(ds, tops[name]) for name, ds in loaded.items()}


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
        part = compute_one(ds, tops[name])
        errors = compute_errors(measured[name]).add_suffix(" error").drop(columns="model error")
        hits = [Truth.of(ds.test.Y).hits(top.ids).cumsum(axis=1).sum(axis=0) for top in tops[name].values()]
        part = part.assign(**{f"hits {k}": [int(one[k - 1]) for one in hits] for k in KS})
        counts = [f"hits {k}" for k in KS]
        kept = part[["model", *counts, *SCORED, *COVERED, *(f"{column} printed" for column in DRAWN)]]
        parts.append(pd.concat([kept, errors], axis=1).assign(dataset=name, points=ds.n_train))
    table = pd.concat(parts, ignore_index=True)
    scored = [column for one in SCORED for column in (one, f"{one} error")]
    hits, printed = [f"hits {k}" for k in KS], [f"{column} printed" for column in DRAWN]
    return table[["dataset", "points", "model", *hits, *scored, *COVERED, *printed]]


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
        dataset, then :func:`compute_claims_of_one`.
    """
    parts = []
    for name, ds in loaded.items():
        paper = compute_printed(ds)
        found = compute_claims_of_one(measured[name], compute_one(ds, tops[name]), paper)
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
            if shown in SCORED:
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
