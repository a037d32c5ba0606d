"""Tables 3 and 4 of Jain et al. 2016 with this kit's models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Measured, agreement, corrected, count, numbers, relation
from xcrepro.inputs import datasets, parameters
from xcrepro.inputs.datasets import complete, weights
from xcrepro.metrics import ranking
from xcrepro.metrics.coverage import coverage
from xcrepro.metrics.significance import jackknife_blocks
from xcrepro.papers.jain16._common import KS, MODELS, read_printed
from xcrepro.predictions import TopK
from xcrepro.repro import figures

check_parameters = parameters.check

SCORED = [f"{letter}{k}" for letter in "NP" for k in KS]
COVERED = [f"C{k}" for k in KS]
COMPARED = [column for column in SCORED if column != "N1"]
"""Of :data:`SCORED` those that differ: N1 is P1."""
DRAWN = ("P1", "P5", "C1", "C5")
CLAIMS = [
    ("propensities in the nodes help", "PfastXML", "FastXML"),
    ("re-ranking helps on top", "PfastreXML", "PfastXML"),
    ("PfastreXML beats one-vs-rest", "PfastreXML", "1-vs-All"),
    ("PfastreXML beats what came later", "PfastreXML", "DiSMEC"),
    ("PfastreXML beats what came later", "PfastreXML", "PLT"),
]
"""What the paper says or implies, the method that is to be above, and the one below."""


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


def split(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Table 3's columns and the rest, to be shown one below the other.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    tuple of DataFrame
        model with N and P; model with C and what is printed, without columns of which nothing is.
    """
    first = [name for name in table if name.removesuffix(" complete") in SCORED]
    return table[["model", *first]], table.drop(columns=first).dropna(axis=1, how="all")


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


def measure(ds: Dataset, tops: Mapping[str, TopK]) -> dict[str, Measured]:
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
        From :func:`measure`.

    Returns
    -------
    DataFrame
        model, then a column each of :data:`SCORED`, points; NaN where no error is known.
    """
    errors = {column: [one.error(name) for name in one.values] for column, one in measured.items()}
    return pd.DataFrame({"model": list(measured[SCORED[0]].values)} | errors)


def compute_claims(measured: Mapping[str, Measured], table: pd.DataFrame, paper: pd.DataFrame) -> pd.DataFrame:
    """The paper's order of the methods, over the five columns that differ (N1 is P1).

    Parameters
    ----------
    measured : mapping
        From :func:`measure`; claims about models that are not there are left out.
    table : DataFrame
        Their :func:`compute`.
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


def _best(one: Measured, names: Sequence[str]) -> str:
    return max(names, key=lambda name: one.values[name])


def compute_own(measured: Mapping[str, Measured], models: Sequence[str]) -> pd.DataFrame:
    """A reader's own predictions against the best baseline of each column.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    models : sequence of str
        The baselines; what else is measured is the reader's own.

    Returns
    -------
    DataFrame
        own, column (of :data:`COMPARED`), value, best baseline, difference (points), error, verdict (Holm's correction
        over the rows). No rows without own predictions or without baselines.
    """
    names = list(measured["P1"].values)
    own, others = [n for n in names if n not in models], [n for n in names if n in models]
    found = [
        (column, measured[column].difference(name, _best(measured[column], others)))
        for name in own
        for column in COMPARED
        if others
    ]
    verdicts = corrected(one for _, one in found)
    rows = [
        (one.left, column, measured[column].values[one.left], one.right, one.value, one.error, judged.verdict)
        for (column, one), judged in zip(found, verdicts, strict=True)
    ]
    return pd.DataFrame(rows, columns=["own", "column", "value", "best baseline", "difference", "error", "verdict"])


def read_rows(ds: Dataset) -> pd.DataFrame:
    """All rows of tables 3 and 4 that the paper prints for the dataset, whatever the method.

    Parameters
    ----------
    ds : Dataset

    Returns
    -------
    DataFrame
        method, N1 to P5, C1 to C5 (percent; NaN where nothing is printed). No rows where the paper has not this dataset.
    """
    three, four = map(read_printed, (3, 4))
    rows = three.merge(four, how="left", on=["dataset", "method"])
    return rows[rows["dataset"] == datasets.printed_name(ds)].drop(columns="dataset").reset_index(drop=True)


def findings(
    found: pd.DataFrame,
    measured: Mapping[str, Measured],
    claims: pd.DataFrame,
    compared: pd.DataFrame,
    own: pd.DataFrame,
) -> list[str]:
    """What the run says.

    Parameters
    ----------
    found, measured, claims, compared, own
        From :func:`compute`, :func:`measure`, :func:`compute_claims`, :func:`compare_with_printed` and
        :func:`compute_own`.

    Returns
    -------
    list of str
    """
    said = [f"{measured[column].leader(f'{column} (PSP@{column[1]})').text}." for column in ("P1", "P5")]
    said += [_say_own(part) for _, part in own.groupby("own", sort=False)]
    for row in claims.itertuples(index=False):
        order = count(_differences(measured, row.better, row.than), f"{row.better} is above {row.than}")
        paper = f"; in print it is above in {row[-2]} of {row[-1]}" if row[-1] else ""
        said.append(f"{order} (N3 to P5){paper}.")
    if len(compared):
        apart = compared[compared["column"] != "N1"]["difference"]
        said.append(
            f"Ours minus print, over the methods that both have: {_range(apart)} points; {int((apart < 0).sum())} of "
            f"{len(apart)} cells lie below print."
        )
    if "P5 complete" in found and len(found) > 2:
        pair = found["P5"], found["P5 complete"]
        said.append(f"Over the models here, {relation(*pair, 'P5 and precision@5 on the complete truth')}.")
    most = found.loc[found["C1"].idxmax()]
    said.append(
        f"The largest coverage at one place is {most['model']}'s, C1 = {most['C1']:.1f} %; of coverage no error is known."
    )
    return [f"{one[0].upper()}{one[1:]}" if not one.startswith(tuple(found["model"])) else one for one in said]


def findings_recorded(measured: Mapping[str, Measured], recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same, by P1 and by P5.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    recorded : mapping of str to DataFrame
        Dataset -> what is recorded of it (the first table).

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    return [agreement(measured[column].pairs(), numbers(recorded, "model", column), column) for column in ("P1", "P5")]


def _range(values: pd.Series) -> str:
    return f"{values.min():+.1f} to {values.max():+.1f}"


def _say_own(part: pd.DataFrame) -> str:
    """One sentence on one model of the reader's."""
    verdicts = part["verdict"].tolist()
    above, below = verdicts.count("above"), verdicts.count("below")
    name, total = part["own"].iloc[0], len(part)
    first = part[part["column"] == "P1"].iloc[0]
    error = "" if np.isnan(first["error"]) else f" ± {first['error']:.1f}"
    return (
        f"{name} against the best baseline of each column: clearly above in {above} of {total}, clearly below in {below}; "
        f"P1 is {first['difference']:+.1f}{error} points from {first['best baseline']}'s."
    )


def plot(table: pd.DataFrame, measured: Mapping[str, Measured], twin: bool, ax=None) -> Figure:
    """Ours (filled, P with a bar of two standard errors) and the printed value (hollow), for P1, P5, C1 and C5.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    measured : mapping
        From :func:`measure`.
    twin : bool
        Whether ours are of a twin; the legend says so.
    ax : array of Axes, optional
        Four.
    """
    at = np.arange(len(table))
    printed = "printed (real data; ours is a twin)" if twin else "printed"
    with figures.new(looks.MEDIUM, 1.7 + 0.23 * len(table), ncols=4, sharey=True, ax=ax) as (fig, axes):
        for axis, column in zip(axes, DRAWN, strict=True):
            errors = (
                2 * np.array([measured[column].error(name) for name in table["model"]]) if column in measured else None
            )
            if errors is not None and not np.isnan(errors).any():
                axis.errorbar(table[column], at, xerr=errors, fmt="none", ecolor=looks.INK, elinewidth=1.2, capsize=2)
            axis.plot(table[column], at, "o", color=looks.INK, linestyle="none", label="ours")
            if table[f"{column} printed"].notna().any():
                hollow = {"color": looks.RUST, "fillstyle": "none", "linestyle": "none", "label": printed}
                axis.plot(table[f"{column} printed"], at, "s", **hollow)
            axis.set(title=column, xlabel="%", xlim=(0, None), ylim=(-0.6, len(table) - 0.4))
            axis.grid(axis="y", linewidth=0.4)
            figures.draws(axis, x=(column, f"{column} printed"))
        axes[0].set_yticks(at, table["model"])
        axes[0].invert_yaxis()
        looks.legend(fig)
        looks.title(fig, "; ".join(_lead(measured[column], column) for column in ("P1", "P5")))
    return fig


def _lead(one: Measured, column: str) -> str:
    leader = one.leader(column)
    if not leader.nearest:
        return f"{column} of {leader.name}"
    return f"{column}: {leader.name} leads clearly" if leader.clear else f"{column}: no clear leader"
