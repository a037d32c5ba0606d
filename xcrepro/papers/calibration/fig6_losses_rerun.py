"""Fig 6 on the neural baseline: what four training losses do to precision and calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import calibrate, looks
from xcrepro.arguments import whole_number
from xcrepro.data.dataset import Dataset
from xcrepro.findings import Difference, Measured, agreement, count, numbers
from xcrepro.inputs import baselines, calibrated, parameters, trained
from xcrepro.models import NeuralOneVsAll
from xcrepro.papers.calibration import _common, fig6_losses
from xcrepro.predictions import TopK
from xcrepro.repro import figures


def check_parameters(values: Mapping[str, object]) -> None:
    """:func:`xcrepro.inputs.parameters.check`, and ``trainings``: a whole number, 1 at least."""
    parameters.check(values)
    whole_number("parameter trainings", values["trainings"], 1)


def invert_loss(model: NeuralOneVsAll, scores: np.ndarray) -> np.ndarray:
    """The probability that a score stands for where the model's loss is at its least: the loss's own link.

    A label that is relevant with probability q is best scored by the p at which q l1'(p) + (1 - q) l0'(p) = 0, l1 and
    l0 the loss of a relevant and of another label. Solved for q:

    - bce: q = p. squared hinge: q = (1 + z) / 2, within [0, 1].
    - focal: p lies between q and 1/2, so scores have to be spread.
    - asymmetric: the loss of a label that is not relevant counts so little that p is far above q.

    Parameters
    ----------
    model : NeuralOneVsAll
        Whose loss, with its parameters.
    scores : ndarray
        Sigmoids p in [0, 1], of the squared hinge margins z; absent places, minus infinity, stay so.

    Returns
    -------
    ndarray
        float64, of the shape of ``scores``.

    Examples
    --------
    >>> nets = [NeuralOneVsAll(loss) for loss in ("bce", "focal", "asymmetric")]
    >>> [float(invert_loss(net, np.array([0.3]))[0].round(3)) for net in nets]
    [0.3, 0.094, 0.007]
    """
    s = np.asarray(scores, np.float64)
    if model.loss == "squared_hinge":
        return calibrate.margin(s, "squared_hinge")
    plus, minus, shift = {
        "bce": (0.0, 0.0, 0.0),
        "focal": (model.gamma, model.gamma, 0.0),
        "asymmetric": (model.gamma_positive, model.gamma_negative, model.shift),
    }[model.loss]
    present = s != -np.inf
    p = np.clip(s[present], 1e-12, 1 - 1e-12)
    q = np.clip(p - shift, 1e-12, None)
    # Both slopes times p (1 - q) > 0, which keeps them finite at the ends.
    rise = (1 - p) ** plus * (1 - q) - plus * (1 - p) ** (plus - 1) * p * np.log(p) * (1 - q)
    fall = q**minus * p - minus * q ** (minus - 1) * np.log1p(-q) * p * (1 - q)
    fall = np.where(p > shift, fall, 0.0)  # below the shift another label costs nothing
    out = np.full(s.shape, -np.inf)
    out[present] = fall / (fall + rise)
    return out


def predict(ds: Dataset, seed: int = 0, k: int = 5) -> dict[str, TopK]:
    """The neural baseline's predictions by training loss.

    Parameters
    ----------
    ds : Dataset
    seed : int
        Of the trainings.
    k : int

    Returns
    -------
    dict of str to TopK
        Loss -> k places, scores as the model gives them.
    """
    models = {loss: baselines.recipe(f"Neural, {loss}", ds, seed) for loss in baselines.LOSSES}
    return {
        loss: trained.training(model, ds.train.X, ds.train.Y).predictions(ds.test.X, baselines.PLACES).head(k)
        for loss, model in models.items()
    }


def before_after(ds: Dataset, tops: Mapping[str, TopK]) -> dict[tuple[str, int], tuple[TopK, TopK]]:
    """Of each loss the scores as the paper takes them, and after isotonic regression.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        From :func:`predict`.

    Returns
    -------
    dict
        As :func:`xcrepro.inputs.calibrated.before_after`, by loss; squared hinge squeezed through
        (s - min) / (max - min).
    """
    found = {}
    for loss, top in tops.items():
        ((key, pair),) = calibrated.before_after(ds, {f"Neural, {loss}": top}, (top.k,)).items()
        found[loss, key[1]] = pair
    return found


def compute(ds: Dataset, tops: Mapping[str, TopK], states: calibrated.States) -> pd.DataFrame:
    """Fig 6 with the neural baseline: precision and calibration by training loss.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
        From :func:`predict`.
    states : mapping
        From :func:`before_after`.

    Returns
    -------
    DataFrame
        One row a loss, all at k and in percent: loss, P@k; ECE@k, over, under, Brier@k of the scores as the paper
        takes them, squared hinge squeezed through (s - min) / (max - min); own link (ECE behind :func:`invert_loss`),
        isotonic (ECE after isotonic regression); behind each ECE itself without the noise of its hits (corrected, low, high);
        then the standard errors over test points of P@k and ECE@k.
    """
    rows = []
    ((k, error),) = calibrated.measured_states(ds, states).items()
    precision = calibrated.measure_precision(ds, tops)
    for (loss, _), (before, after) in states.items():
        model = baselines.recipe(f"Neural, {loss}", ds)
        scores = invert_loss(model, tops[loss].scores).astype(np.float32)
        linked = TopK(before.ids, scores, before.n_labels)
        row = {"loss": loss, f"P@{k}": precision.values[loss]}
        for column, each in ((f"ECE@{k}", before), ("own link", linked), ("isotonic", after)):
            found = calibrated.measure(ds, each, k, ("ECE", *calibrated.CORRECTED))
            row |= {name.replace("ECE", column): value for name, value in found.items()}
            if each is before:
                found = calibrated.measure(ds, before, k, ("ECE over", "ECE under", "Brier"))
                row |= {"over": found["ECE over"], "under": found["ECE under"], f"Brier@{k}": found["Brier"]}
        rows.append(row | {f"± P@{k}": precision.error(loss), f"± ECE@{k}": error.error(f"{loss}, before")})
    return pd.DataFrame(rows)


def measure_trainings(ds: Dataset, runs: Sequence[Mapping[str, TopK]]) -> dict[str, Measured]:
    """P@k and ECE@k of every loss over trainings of other seeds, each before calibration on the same test points.

    Parameters
    ----------
    ds : Dataset
    runs : sequence of mapping of str to TopK
        From :func:`predict`, one a seed.

    Returns
    -------
    dict of str to Measured
        ``"P"`` and ``"ECE"``, percent, with the trainings as replicates.
    """
    found: dict[str, dict[str, list[float]]] = {metric: {loss: [] for loss in runs[0]} for metric in ("P", "ECE")}
    for tops in runs:
        for loss, top in tops.items():
            values = calibrated.measure(ds, calibrated.linked(top, top.k, f"Neural, {loss}"), top.k, ("P", "ECE"))
            for metric, of_loss in found.items():
                of_loss[loss].append(values[metric])
    return {metric: Measured.of_runs(of_loss) for metric, of_loss in found.items()}


def compute_trainings(measured: Mapping[str, Measured], k: int) -> pd.DataFrame:
    """The mean over trainings, and how far one training lies from another.

    Parameters
    ----------
    measured : mapping
        From :func:`measure_trainings`.
    k : int

    Returns
    -------
    DataFrame
        A row a loss: loss, trainings; P@k and ECE@k, the means, percent; sd of each, over trainings (NaN of one training).
    """
    rows = []
    for loss in measured["P"].values:
        row = {"loss": loss, "trainings": max(1, measured["P"].replicates[loss].size)}
        for metric, found in measured.items():
            runs = found.replicates[loss]
            row |= {f"{metric}@{k}": found.values[loss], f"sd {metric}@{k}": runs.std(ddof=1) if runs.size else np.nan}
        rows.append(row)
    return pd.DataFrame(rows)


def add_deviations(table: pd.DataFrame, trainings: pd.DataFrame) -> pd.DataFrame:
    """The errors of :func:`compute` with the choice of the training's seed in them.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`, of one training.
    trainings : DataFrame
        From :func:`compute_trainings`.

    Returns
    -------
    DataFrame
        ± is the root of the squared standard error over test points plus the squared deviation over trainings, which is
        0 where there was one training.
    """
    deviations = trainings.set_index("loss")
    both = {}
    for name in (column for column in table if column.startswith("±")):
        sd = table["loss"].map(deviations[name.replace("±", "sd")]).fillna(0)
        both[name] = np.sqrt(table[name] ** 2 + sd**2)
    return table.assign(**both)


def findings_trainings(measured: Mapping[str, Measured], k: int) -> list[str]:
    """What another seed of the training changes: each loss beside BCE, over trainings.

    Parameters
    ----------
    measured : mapping
        From :func:`measure_trainings`.
    k : int

    Returns
    -------
    list of str
        None for one training.
    """
    n = measured["P"].replicates["BCE"].size
    if not n:
        return []
    others = [(loss, "BCE") for loss in measured["P"].values if loss != "BCE"]
    said = []
    for metric, found in measured.items():
        each = [
            _common.describe_difference(one, f"{metric}@{k} with {one.left} loss") for one in found.differences(others)
        ]
        said.append(f"Over {n} trainings of each loss, on the same test points: {'; '.join(each)}.")
    return said


def findings(ds: Dataset, tops: Mapping[str, TopK], states: calibrated.States) -> list[str]:
    """What the losses do to precision and calibration, each beside BCE, and beside what the paper finds.

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
        f"{_sentence(precision.leader(f'P@{k}').text)}.",
    ]
    printed = fig6_losses.compute_claims(fig6_losses.compute()).replace({"loss": PRINTED}).set_index("loss")
    pairs = [(loss, "BCE") for loss in tops if loss != "BCE"]
    for one, metric in [
        *((one, "ECE@5") for one in error.differences(pairs)),
        *((one, "P@5") for one in precision.differences(pairs)),
    ]:
        value = printed[f"{metric} minus BCE"].get(one.left, np.nan)
        here = _common.describe_difference(one, f"{metric.partition('@')[0]}@{k} with {one.left} loss")
        said.append(f"{here}; {_beside(one, value)}.")
    fall = count(calibrated.before_minus_after(both), f"ECE@{k} falls through isotonic regression")
    largest = max(calibrated.in_state(both, "after").values.values())
    said.append(f"{fall}; after it no loss is above {largest:.1f} %.")
    return said


def findings_recorded(ds: Dataset, states: calibrated.States, recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same of ECE with each loss beside BCE.

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
    error = calibrated.in_state(both)
    found = error.differences((loss, "BCE") for loss in error.values if loss != "BCE")
    return [agreement(found, numbers(recorded, "loss", f"ECE@{k}"), f"ECE@{k}", "pairs of a loss and BCE")]


PRINTED = {"ASY": "asymmetric"}
"""The paper's name of a loss -> ours."""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _beside(one: Difference, printed: float) -> str:
    """How a difference of ours stands to the printed one."""
    if np.isnan(printed):
        return "the paper plots this loss and states no number"
    where = f"{abs(printed):.1f} points {'above' if printed > 0 else 'below'}"
    if not one.clear:
        return f"printed: {where}"
    return f"printed: {where}, {'as here' if (printed > 0) == (one.value > 0) else 'the other way round'}"


def compare_with_printed(table: pd.DataFrame) -> pd.DataFrame:
    """Ours at k = 5 and appendix A's (Renee, Amazon-670K).

    Parameters
    ----------
    table : DataFrame
        From :func:`compute` at k = 5.

    Returns
    -------
    DataFrame
        loss, P@5, ECE@5, printed P@5, printed ECE@5 (percent), and the distance of ECE@5 from BCE's in both (points):
        "ours, from BCE", "printed, from BCE".
    """
    losses = fig6_losses.compute().query("kind == 'loss of Renee'").set_index("name").rename(PRINTED)
    found = table[["loss", "P@5", "ECE@5"]].join(losses[["P@5", "ECE@5"]].add_prefix("printed "), on="loss")
    bce = found.set_index("loss").loc["BCE"]
    found["ours, from BCE"] = found["ECE@5"] - bce["ECE@5"]
    found["printed, from BCE"] = found["printed ECE@5"] - bce["printed ECE@5"]
    return found


_SCORES = {  # column -> words, and what tells the marks apart
    "ECE@5": ("scores as the paper takes them", {"markersize": 7}),
    "own link": ("large: through the loss's own link", {"markersize": 12, "markerfacecolor": "none"}),
    "isotonic": ("small: after isotonic regression", {"markersize": 4, "markerfacecolor": "white"}),
}


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Fig 6: ECE@5 against P@5 of the four losses, and behind their own links and after isotonic regression.

    Left ours, right the paper's points. Lines reach two standard errors from ours, over test points and trainings where the
    table has both (:func:`add_deviations`).

    Parameters
    ----------
    table : DataFrame
        With the columns of :func:`compute` and of :func:`compare_with_printed`.
    ax : array of Axes, optional
        Two.
    """
    shape = {"sharey": True, "gridspec_kw": {"width_ratios": [1.5, 1]}}
    with figures.new(width=looks.WIDE, height=4.4, ncols=2, ax=ax, **shape) as (fig, axes):
        ours, paper = axes
        for row in table.to_dict("records"):
            look = looks.of(f"Neural, {row['loss']}")
            mark = {"marker": look.marker, "color": look.colour, "linestyle": "none"}
            ours.plot([row["P@5"]] * 2, [row["isotonic"], row["ECE@5"]], "-", color="0.8", linewidth=0.8, zorder=1)
            _draw_error(ours, row, look.colour)
            for column, (_, style) in _SCORES.items():
                ours.plot(row["P@5"], row[column], label=row["loss"] if column == "ECE@5" else None, **mark, **style)
            if pd.notna(row["printed P@5"]):
                paper.plot(row["printed P@5"], row["printed ECE@5"], markersize=7, **mark)
        for words, style in _SCORES.values():
            ours.plot([], [], "o", color="0.3", label=words, **style)
        ours.set(xlabel="P@5, %  (right is better)", ylabel="ECE@5, %  (down is better)", ylim=(-0.5, None))
        paper.set(xlabel="P@5, %")
        ours.set_title("the neural baseline", loc="left")
        paper.set_title("Renee, Amazon-670K (printed)", loc="left")
        for panel in axes:
            panel.margins(0.12)
        looks.legend(fig, ours, ncols=3, title="lines: two standard errors, over test points and trainings")
        looks.title(fig, "Calibration error against precision by training loss")
        figures.draws(ours, x="P@5", y=tuple(_SCORES))
        figures.draws(paper, x="printed P@5", y="printed ECE@5")
    return fig


def _draw_error(ax, row: dict, colour: str) -> None:
    """Two standard errors along both axes."""
    line = {"color": colour, "linewidth": 1.2, "label": "_guide error", "zorder": 1.5}
    x, y, dx, dy = row["P@5"], row["ECE@5"], 2 * row["± P@5"], 2 * row["± ECE@5"]
    ax.plot([x - dx, x + dx], [y, y], "-", **line)
    ax.plot([x, x], [y - dy, y + dy], "-", **line)
