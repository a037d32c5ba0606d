"""Fig 4 on label trees: what the way labels are put into clusters does to calibration and precision."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.arguments import whole_number
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Difference, agreement, count, numbers
from xcrepro.inputs import calibrated, parameters, trained
from xcrepro.models import PLT
from xcrepro.papers.calibration import _common
from xcrepro.predictions import TopK
from xcrepro.repro import figures

FLAT, LEVEL, MEANS = "flat", "k-means, one level", "2-means"
RANDOM_LEVEL, RANDOM, FREQUENCY = "random, one level", "random", "by frequency"

CLAIMS = (
    (RANDOM_LEVEL, LEVEL, "random clusters err more than learned ones"),
    (RANDOM, MEANS, "random clusters err more than learned ones"),
    (MEANS, LEVEL, "several levels of clusters err more than one"),
    (LEVEL, FLAT, ""),
    (FREQUENCY, MEANS, ""),
)
"""Two shapes, and what the paper says of what they stand for, in words, where it says which is worse calibrated."""


def check_parameters(values: Mapping[str, object]) -> None:
    """The rules that items share, and of ``max_leaf``: a whole number, 1 or more.

    Parameters
    ----------
    values : mapping of str to object
        The notebook's parameters.

    Raises
    ------
    ArgumentError
    """
    parameters.check(values)
    whole_number("parameter max_leaf", values["max_leaf"], 1)


def shapes(ds: Dataset, seed: int = 0, max_leaf: int = 10) -> dict[str, PLT]:
    """One tree of each shape, all else as in the baseline PLT.

    Parameters
    ----------
    ds : Dataset
        Whose number of labels gives the clusters of one level.
    seed : int
    max_leaf : int
        Labels in a cluster at most.

    Returns
    -------
    dict of str to PLT
        Not fitted.
    """
    wide = max(2, -(-ds.train.Y.shape[1] // max_leaf))
    options = {
        FLAT: {"tree": "flat"},
        LEVEL: {"arity": wide},
        MEANS: {},
        FREQUENCY: {"tree": "frequency"},
        RANDOM_LEVEL: {"tree": "random", "arity": wide},
        RANDOM: {"tree": "random"},
    }
    return {name: PLT(trees=1, max_leaf=max_leaf, seed=seed, **more) for name, more in options.items()}


def predict(ds: Dataset, models: Mapping[str, PLT], k: int = 5) -> dict[str, TopK]:
    """The predictions of each shape's tree for the test points, from the cache where they are there.

    Parameters
    ----------
    ds : Dataset
    models : mapping of str to PLT
        From :func:`shapes`.
    k : int

    Returns
    -------
    dict of str to TopK
    """
    return {
        name: trained.training(model, ds.train.X, ds.train.Y).predictions(ds.test.X, k)
        for name, model in models.items()
    }


def measure_depth(ds: Dataset, models: Mapping[str, PLT]) -> dict[str, float]:
    """Nodes on the path of an observed label, root left out: the mean over the train points' labels.

    Parameters
    ----------
    ds : Dataset
    models : mapping of str to PLT
        From :func:`shapes`.

    Returns
    -------
    dict of str to float
    """
    found = {}
    for name, model in models.items():
        table = trained.training(model, ds.train.X, ds.train.Y).model().structure()
        leaves = table[table["label"] >= 0]
        found[name] = float(np.average(leaves["depth"], weights=ds.label_counts[leaves["label"]]))
    return found


def compute(
    ds: Dataset, tops: Mapping[str, TopK], states: calibrated.States, depths: Mapping[str, float]
) -> pd.DataFrame:
    """Precision and calibration error of every shape.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        From :func:`predict`.
    states : mapping
        Of ``tops``, from :func:`xcrepro.inputs.calibrated.before_after` at one k.
    depths : mapping of str to float
        From :func:`measure_depth`.

    Returns
    -------
    DataFrame
        One row a shape, in percent but the depth: shape, depth, P@k, ECE@k, over, under, Brier@k, isotonic (ECE after isotonic
        regression); behind both ECE itself without the noise of its hits (corrected, low, high); then the standard errors over
        test points of P@k and ECE@k.
    """
    ((k, error),) = calibrated.measured_states(ds, states).items()
    precision = calibrated.measure_precision(ds, tops)
    rows = []
    for (shape, _), (before, after) in states.items():
        row = {"shape": shape, "depth": depths[shape], f"P@{k}": precision.values[shape]}
        for column, each in ((f"ECE@{k}", before), ("isotonic", after)):
            found = calibrated.measure(ds, each, k, ("ECE", *calibrated.CORRECTED))
            row |= {name.replace("ECE", column): value for name, value in found.items()}
            if each is before:
                found = calibrated.measure(ds, before, k, ("ECE over", "ECE under", "Brier"))
                row |= {"over": found["ECE over"], "under": found["ECE under"], f"Brier@{k}": found["Brier"]}
        rows.append(row | {f"± P@{k}": precision.error(shape), f"± ECE@{k}": error.error(f"{shape}, before")})
    return pd.DataFrame(rows)


def findings(ds: Dataset, tops: Mapping[str, TopK], states: calibrated.States) -> list[str]:
    """What the shapes do to calibration and precision, beside what the paper finds.

    Parameters
    ----------
    ds, tops, states
        As for :func:`compute`.

    Returns
    -------
    list of str
    """
    ((k, both),) = calibrated.measured_states(ds, states).items()
    error, precision = calibrated.in_state(both), calibrated.measure_precision(ds, tops)
    said = [
        f"Before calibration: {error.leader(f'ECE@{k} (lower is better)', better='lower').text}.",
        f"Precision: {precision.leader(f'P@{k}').text}.",
    ]
    pairs = [claim[:2] for claim in CLAIMS]
    words = {claim[:2]: claim[2] for claim in CLAIMS}
    for one in error.differences(pairs):
        here = _common.describe_difference(one, f"ECE@{k} of the tree {one.left!r}")
        said.append(f"{here}{_beside(one, words[one.left, one.right])}.")
    said += [
        f"{_common.describe_difference(one, f'P@{k} of the tree {one.left!r}')}."
        for one in precision.differences(pairs)
    ]
    fall = count(calibrated.before_minus_after(both), f"ECE@{k} falls through isotonic regression")
    largest = max(calibrated.in_state(both, "after").values.values())
    return [*said, f"{fall}; after it no shape is above {largest:.1f} %."]


def findings_recorded(ds: Dataset, states: calibrated.States, recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same of ECE where the paper compares.

    Parameters
    ----------
    ds, states
        As for :func:`compute`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`check`, as recorded.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    ((k, both),) = calibrated.measured_states(ds, states).items()
    found = calibrated.in_state(both).differences([claim[:2] for claim in CLAIMS])
    return [agreement(found, numbers(recorded, "shape", f"ECE@{k}"), f"ECE@{k}", "pairs of shapes")]


def _beside(one: Difference, claim: str) -> str:
    """How a difference stands to the paper's claim, that the left one errs more."""
    if not claim:
        return ""
    if not one.clear:
        return f"; the paper: {claim}, which this run does not tell"
    return f"; the paper: {claim}, {'as here' if one.value > 0 else 'the other way round here'}"


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """ECE against precision of every shape, filled before and hollow after isotonic regression; bars: two standard errors.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : Axes, optional
    """
    precision, error = (next(name for name in table if name.startswith(start)) for start in ("P@", "ECE@"))
    with figures.new(width=looks.WIDE, height=4.0, ax=ax) as (fig, panel):
        for row in table.to_dict("records"):
            look = looks.of(f"PLT, {row['shape']}")
            mark = {"marker": look.marker, "color": look.colour, "linestyle": "none"}
            x, y, dx, dy = row[precision], row[error], 2 * row[f"± {precision}"], 2 * row[f"± {error}"]
            line = {"color": look.colour, "linewidth": 1.0, "label": "_guide error", "zorder": 1.5}
            panel.plot([x, x], [row["isotonic"], y], ":", color="0.8", linewidth=0.8, zorder=1)
            panel.plot([x - dx, x + dx], [y, y], "-", **line)
            panel.plot([x, x], [y - dy, y + dy], "-", **line)
            panel.plot(x, y, label=row["shape"], markersize=7, **mark)
            panel.plot(x, row["isotonic"], markersize=6, markerfacecolor="white", **mark)
        panel.set(xlabel=f"{precision}, %  (right is better)", ylabel=f"{error}, %  (down is better)")
        panel.margins(0.1)
        panel.set_ylim(0, None)
        looks.legend(
            fig, panel, ncols=3, title="filled: before, hollow: after isotonic regression; lines: two standard errors"
        )
        looks.title(fig, "Calibration error against precision by shape of the label tree")
        figures.draws(panel, x=precision, y=(error, "isotonic"))
    return fig
