"""What the greedy rule costs in P@k by how well the probabilities are calibrated, and by what lowers a chosen label's f."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import calibrate, decide, looks, metrics
from xcrepro.arguments import real_number
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.errors import ArgumentError
from xcrepro.findings import Measured
from xcrepro.inputs import parameters
from xcrepro.papers.coverage._common import Run, scores
from xcrepro.papers.coverage._common import runs as runs  # what the notebook calls
from xcrepro.predictions import TopK
from xcrepro.repro import figures, recorded

TRUE = "true"
Chosen = Mapping[tuple[str, str], TopK]
"""(source, rule) -> the k labels of every point."""
_LOOKS = {"probability": looks.Look(looks.RUST, "o", "-"), "gain": looks.Look(looks.TEAL, "s", "--")}


def check_parameters(values: Mapping[str, object]) -> None:
    """The shared rules, and factors above 0, at most 1, each once."""
    parameters.check(values)
    factors = list(values["factors"])
    for factor in factors:
        real_number("parameter factors", factor, above=0, at_most=1)
    if not factors or len(set(factors)) < len(factors):
        raise ArgumentError("parameter factors", "must hold numbers, each once", factors)


def sources(ds: Dataset, run: Run, factors: Sequence[float]) -> dict[str, sparse.csr_matrix]:
    """The same candidates with several probabilities.

    Parameters
    ----------
    ds : Dataset
    run : Run
        Of :func:`runs`.
    factors : sequence of float
        By which all probabilities are multiplied; the order of a point's labels stays, and so does the plain top k.

    Returns
    -------
    dict of str to csr_matrix
        ``"x 0.1"`` and its like, ``"isotonic"`` (cross-fitted on the test points), and for a twin ``"true"``: its own
        probabilities of the observed truth.
    """
    eta = run.probabilities
    found = {f"x {factor:g}": (eta * factor).tocsr() for factor in sorted(map(float, factors))}
    top = TopK.from_scores(eta, int(np.diff(eta.indptr).max()))
    found["isotonic"] = calibrate.cross_fit_top(ds.test.Y, top).to_csr()
    if isinstance(ds, Twin):
        found[TRUE] = ds.test.observed_marginals
    return found


def choose(found: Mapping[str, sparse.csr_matrix], k: int) -> dict[tuple[str, str], TopK]:
    """The k labels of every point.

    Parameters
    ----------
    found : mapping
        Of :func:`sources`.
    k : int

    Returns
    -------
    dict
        (source, rule): the rules are ``"top k"``, and the greedy one with each of :data:`xcrepro.decide.UPDATES`.
    """
    chosen = {(name, "top k"): decide.top_k(eta, k) for name, eta in found.items()}
    return chosen | {
        (name, update): decide.greedy_coverage(eta, k, update=update)
        for name, eta in found.items()
        for update in decide.UPDATES
    }


def compute(ds: Dataset, found: Mapping[str, sparse.csr_matrix], chosen: Chosen, k: int) -> pd.DataFrame:
    """P@k and Cov@k of each choice, and how far the probabilities are off.

    Parameters
    ----------
    ds : Dataset
    found, chosen : mapping
        Of :func:`sources`, :func:`choose`.
    k : int

    Returns
    -------
    DataFrame
        source, said (the mean probability of the top k, percent: what P@k would be if they were right), P top k; then for each
        update of f: P, price (P of the plain top k less P), Cov (over labels with a test point); percent.
    """
    rows = []
    for name, eta in found.items():
        plain = scores(ds, chosen[name, "top k"], k)
        row = {
            "source": name,
            "said": 100 * decide.expected_precision(eta, chosen[name, "top k"], k)[0],
            "P top k": plain["P"],
        }
        for update in decide.UPDATES:
            value = scores(ds, chosen[name, update], k)
            row |= {
                f"P {update}": value["P"],
                f"price {update}": plain["P"] - value["P"],
                f"Cov {update}": value["Cov"],
            }
        rows.append(row)
    return pd.DataFrame(rows)


def measure(ds: Dataset, chosen: Chosen, k: int) -> Measured:
    """P@k of every choice with a jackknife over test points; a choice is held as it is.

    Parameters
    ----------
    ds : Dataset
    chosen : mapping
        Of :func:`choose`.
    k : int

    Returns
    -------
    Measured
        By ``"source, rule"``.
    """
    tops = {f"{name}, {rule}": top for (name, rule), top in chosen.items()}
    return Measured.of_rows(lambda Y, top: 100 * metrics.precision(Y, top, [k])[0], ds.test.Y, tops)


def plot(table: pd.DataFrame, k: int, ax=None) -> Figure:
    """P@k and Cov@k of the greedy rule by the factor, a line an update; dotted: the plain top k.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute`.
    k : int
    ax : Axes, optional
        Two of the caller's own.
    """
    part = table[table["source"].str.startswith("x ")]
    factors = part["source"].str.removeprefix("x ").astype(float)
    with figures.new(looks.WIDE, 3.6, 2, ax=ax) as (fig, axes):
        for (update, look), (panel, metric) in itertools.product(_LOOKS.items(), zip(axes, ("P", "Cov"), strict=True)):
            panel.plot(factors, part[f"{metric} {update}"], label=f"f falls by the {update}", **look.line())
        axes[0].plot(factors, part["P top k"], color=looks.GREY, linestyle=":", label="top k")
        for panel, metric in zip(axes, ("P", "Cov"), strict=True):
            panel.set_xscale("log")
            panel.set(xlabel="all probabilities multiplied by", ylabel=f"{metric}@{k} (%)")
            figures.draws(panel, y=[f"{metric} {update}" for update in _LOOKS] + (["P top k"] if metric == "P" else []))
        looks.title(fig, "The greedy rule by the scale of the probabilities")
        looks.legend(fig, axes[0])
        return fig


def compute_recorded() -> pd.DataFrame:
    """:func:`compute` on real data, as recorded, with the column dataset; empty where nothing is."""
    return recorded.frames("coverage/price_of_calibration")


def findings(table: pd.DataFrame, measured: Measured, k: int, real: pd.DataFrame) -> list[str]:
    """What comes out: on real data as recorded, then here.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute`.
    measured : Measured
        Of :func:`measure`.
    k : int
    real : DataFrame
        Of :func:`compute_recorded`.

    Returns
    -------
    list of str
    """
    rows = table.set_index("source")
    scaled = [name for name in rows.index if name.startswith("x ")]
    low, full = scaled[0], scaled[-1]
    said = _recorded(real)
    for update in decide.UPDATES if low != full else ():
        change = measured.difference(f"{low}, {update}", f"{full}, {update}")
        words = f"from {rows.loc[full, f'P {update}']:.1f} to {rows.loc[low, f'P {update}']:.1f} %"
        clear = f"by {_points(change.value, change.error)} points" + ("" if change.clear else ", which is not clear")
        cov = f"Cov@{k} from {rows.loc[full, f'Cov {update}']:.1f} to {rows.loc[low, f'Cov {update}']:.1f} %"
        said.append(
            f"Where f falls by the {update}, probabilities {low} in place of {full} bring P@{k} {words}, {clear}, and {cov}; "
            f"the plain top {k} has {rows.loc[full, 'P top k']:.1f} %."
        )
    costs = {
        (name, update): measured.difference(f"{name}, top k", f"{name}, {update}")
        for name in rows.index
        for update in decide.UPDATES
    }
    price = {key: _points(one.value, one.error) for key, one in costs.items()}
    rest = "; ".join(f"{name}: {price[name, 'probability']}" for name in rows.index)
    said.append(f"Points of P@{k} that algorithm 1 costs, by the probabilities: {rest}.")
    if TRUE in rows.index:
        at = rows.loc[TRUE]
        said.append(
            f"With the true probabilities it costs {price[TRUE, 'probability']} points by the probability and "
            f"{price[TRUE, 'gain']} by the gain, for Cov@{k} of {at['Cov probability']:.1f} and {at['Cov gain']:.1f} %."
        )
    return said


def _recorded(real: pd.DataFrame) -> list[str]:
    if not len(real):
        return []
    at = real.set_index(["dataset", "source"])["price probability"].unstack()
    of = real.set_index(["dataset", "source"])["P top k"].unstack()["x 1"]
    each = [
        f"{name} {row['x 1']:.1f} of {of[name]:.1f} as they are, {row['x 0.1']:.1f} times 0.1, {row['isotonic']:.1f} after "
        f"isotonic regression"
        for name, row in at.iterrows()
    ]
    return [f"Points of P@k that algorithm 1 costs on real data, as recorded, by the probabilities: {'; '.join(each)}."]


def _points(value: float, error: float) -> str:
    return f"{value:.1f}" + ("" if np.isnan(error) else f" ± {error:.1f}")
