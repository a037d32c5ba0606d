"""The price of coverage: what does the greedy rule cost when probabilities are wrong?.

Source: say here which document, table, figure or equation this computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from xcrepro import looks, metrics
from xcrepro.findings import Measured
from xcrepro.inputs import parameters
from xcrepro.repro import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from xcrepro.data.dataset import Dataset
    from xcrepro.predictions import TopK

# Called with the notebook's parameters before anything runs; a rule of your own goes into a function that calls it.
check_parameters = parameters.check


def measure(ds: Dataset, tops: Mapping[str, TopK], k: int) -> Measured:
    """P@k of each model, in percent, with a jackknife over blocks of test points."""
    return Measured.of_rows(lambda Y, top: 100 * metrics.precision(Y, top, [k])[0], ds.test.Y, tops)


def compute(ds: Dataset, tops: Mapping[str, TopK], ks: Sequence[int]) -> pd.DataFrame:
    """P@k of each model, in percent.

    Parameters
    ----------
    ds : Dataset
        Its test points are what is judged.
    tops : mapping
        Model -> its best labels for the test points.
    ks : sequence of int
        Places.

    Returns
    -------
    DataFrame
        Columns model, k, P, error (its standard error, in points).
    """
    found = {int(k): measure(ds, tops, k) for k in ks}
    rows = [(name, k, one.values[name], one.error(name)) for name in tops for k, one in found.items()]
    return pd.DataFrame(rows, columns=["model", "k", "P", "error"])


def findings(ds: Dataset, tops: Mapping[str, TopK], ks: Sequence[int]) -> list[str]:
    """What came out, as sentences: who leads, where a lead is more than chance.

    Parameters
    ----------
    ds, tops, ks
        As for :func:`compute`.

    Returns
    -------
    list of str
    """
    return [f"{measure(ds, tops, k).leader(f'P@{k}').text}." for k in ks]


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """P@k against k with its standard error, a line a model."""
    with figures.new(looks.NARROW, 3.2, ax=ax) as (fig, axes):
        for name, part in table.groupby("model", sort=False):
            axes.errorbar(part["k"], part["P"], part["error"], label=name, **looks.of(name).line())
        axes.set(xlabel="k", ylabel="P@k, %", xticks=sorted(set(table["k"])), ylim=(0, None))
        figures.draws(axes, x="k", y="P")
        looks.legend(fig)
        looks.title(fig, "P@k against k")
    return fig
