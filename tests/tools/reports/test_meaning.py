"""What a report tells: each sentence computed a second time with plain loops, each legend and axis held to what is drawn."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

import xcrepro as xc
from xcrepro.repro.drawing import figures, looks
from xcrepro.tools.reports import compute, sentences
from xcrepro.tools.reports import figures as drawing
from xcrepro.tools.reports.asked import Asked
from xcrepro.tools.reports.given import collect
from xcrepro.tools.reports.measured import Measured

K = 5


@pytest.fixture(scope="module")
def measured(small):
    asked = Asked(collect(small.Y, small.tops, train_truth=small.train), n_resamples=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", xc.errors.DataWarning)
        return Measured(asked)


def said(made, part: str) -> str:
    return " ".join([made.parts[part]["heading"], *made.sentences(part)])


def marks(ax) -> list:
    """The lines with a marker."""
    return [line for line in ax.lines if line.get_marker() not in ("None", None, "")]


# ---------------------------------------------------------------- sentences


@pytest.mark.parametrize(("chance", "words"), [(0.9, "1 are too high, 0 too low"), (0.1, "0 are too high, 1 too low")])
def test_scores_above_the_share_of_hits_are_too_high(chance, words):
    """Half of the predictions are right."""
    Y = np.arange(400)[:, None] % 2 == np.arange(2)
    top = xc.TopK.from_ids(np.zeros((400, 1), int), np.full((400, 1), chance), n_labels=2)
    _, diagrams = compute.calibration(collect(Y.astype(float), top), [1], n_resamples=20)
    assert f"of the 1 bins of model {words}" in sentences.reliability(diagrams, "model")


def test_labels_and_points_with_more_hits_are_the_first_models(made, small):
    Y = small.Y.toarray() > 0
    hits = {model: np.take_along_axis(Y, top.ids[:, :K], axis=1) for model, top in small.tops.items()}
    d = hits["good"].sum(axis=1) - hits["bad"].sum(axis=1)
    of = {m: np.bincount(small.tops[m].ids[:, :K][found], minlength=30) for m, found in hits.items()}
    e = (of["good"] - of["bad"])[np.asarray((small.Y > 0).sum(axis=0)).ravel() > 0]
    points, labels = (f"{(x > 0).sum()} {{}} and fewer on {(x < 0).sum()}" for x in (d, e))
    text = f"good has more hits than bad on {points.format('points')}; on {labels.format('labels')}"
    assert said(made, "differences") == text


def test_a_difference_has_the_other_sign_seen_from_the_other_model(made):
    row = made.frame("pairs").query("metric == 'PSP' and k == @K").iloc[0]
    one, other = (sentences.against(made.frame("pairs"), row[side], "PSP", K).iloc[0] for side in ("left", "right"))
    assert (one["other"], other["other"]) == (row["right"], row["left"])
    assert (one["value"], one["low"], one["high"]) == (-other["value"], -other["high"], -other["low"])
    assert one["value"] == row["value"]


def test_clear_comparisons_are_counted(made):
    pairs = made.frame("pairs")
    clear = [row for row in pairs.to_dict("records") if row["p"] < 0.05]
    assert said(made, "pairs").startswith(f"{len(clear)} of {len(pairs)} differences are more than chance (one pair")


# ---------------------------------------------------------------- figures


def test_bins_and_diagrams_name_the_colours_that_they_draw(measured):
    """A bar's height and a mark's place belong to the model that the legend, or the panel's title, names."""
    ours = drawing.in_percent(compute.bins(measured.values, measured.given), ["value", "low", "high", "ceiling"])
    fig = drawing.bins(ours, measured.look, K)
    handles, names = fig.axes[0].get_legend_handles_labels()
    assert sorted(names) == ["bad", "good"]
    at_k = ours[ours["k"] == K]
    for bars, model in zip(handles, names, strict=True):
        assert [bar.get_height() for bar in bars] == at_k[at_k["model"] == model]["value"].tolist()
        assert to_rgb(measured.look[model].colour) in (bars[0].get_facecolor()[:3], bars[0].get_edgecolor()[:3])
    fig = drawing.reliability(measured.diagrams, measured.look, K)
    for panel in fig.axes:
        own = measured.diagrams[measured.diagrams["model"] == panel.get_title()]
        assert len(own)
        for line, state in zip(marks(panel), ("before", "after"), strict=True):
            part = own[(own["state"] == state) & (own["count"] >= max(1, min(drawing.FEW, own["count"].max())))]
            assert (line.get_markerfacecolor() == "#ffffff") == (state == "after")
            assert {*line.get_xdata()} <= {*part["confidence"]}
            assert len(line.get_xdata())


def test_a_row_of_the_overview_is_its_metric_and_a_mark_its_model(measured):
    """Values of both models, and what the other has less than the leader, filled where they may be the best, or are clear."""
    value = measured.values.set_index(["metric", "k", "model"])
    for part in ("standing", "apart"):
        fig, table = getattr(drawing, part)(measured)
        with pytest.raises(figures.DrawingFault):  # a figure shows the numbers of its table alone
            figures.held(fig, table.iloc[:1])
        ax = fig.axes[0]
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert names == ["P@1", "nDCG@5", "PSP@5", "macro-F1@5", "ECE@5"]
        colours = {look.colour: model for model, look in measured.look.items()}
        assert len(marks(ax)) == (10 if part == "standing" else 5)
        for line in marks(ax):
            hollow = line.get_markerfacecolor() == "#ffffff"
            metric, k = names[round(line.get_ydata()[0])].split("@")
            model = colours[line.get_color()]
            own = value.loc[(metric, int(k), model), "value"]
            pair = measured.pairs[(measured.pairs["metric"] == metric) & (measured.pairs["k"] == int(k))].iloc[0]
            clear, sign = pair["p"] < 0.05, -1 if metric == "ECE" else 1
            if part == "standing":
                best = sentences.best_of(measured.values, metric, int(k))
                assert hollow == (clear and model != best)
            else:
                assert model == "bad"
                own = sign * (own - value.loc[(metric, int(k), "good"), "value"])
                assert hollow == (not clear)
            assert line.get_xdata()[0] == pytest.approx(100 * own)


def test_ranks_stand_beside_their_models():
    placed = pd.DataFrame({"model": ["a", "b"], "x": [1.0, 2.0], "y": [1.0, 2.0], "mean rank": [1.0, 2.0]})
    look = looks.distinct(["a", "b"])
    ax = drawing.ranks(placed, look, "P@5").axes[0]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert {names[int(one.get_ydata()[0])]: one.get_xdata()[0] for one in marks(ax)} == {"a": 1.0, "b": 2.0}
    assert ax.get_xlabel() == "mean rank in P@5 over 2 datasets (1 is best)"
