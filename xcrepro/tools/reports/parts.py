"""The parts of a report in the order of its page: a finding, a figure, tables; ``notes.toml`` says how to read them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from xcrepro.repro.inputs import datasets
from xcrepro.tools.reports import compute, figures, grid, sentences
from xcrepro.tools.reports.grid import Grid, of_table
from xcrepro.tools.reports.measured import Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTES = tomllib.loads(Path(__file__).with_name("notes.toml").read_text(encoding="utf-8"))
"""Name of a part, and of its files -> its title, and how to read it."""
MOST_LISTED = 500


@dataclass(frozen=True)
class Found:
    """What a part comes to: the heading is the finding, ``table`` its CSV file, ``more`` are other files; ``figure`` draws
    it, and gives the table behind it. Without a heading the page does not show it."""

    heading: str
    table: pd.DataFrame
    grids: Sequence[Grid] = ()
    figure: Callable[[], tuple[Figure, pd.DataFrame]] | None = None
    said: Sequence[str] = ()
    more: Mapping[str, pd.DataFrame] = field(default_factory=dict)


PARTS: dict[str, Callable[[Measured], Found | None]] = {}
"""What makes each part; None where there is nothing to say."""


def _part(make):
    PARTS[make.__name__] = make
    return make


def _of_metrics(m: Measured, name: str, called: str = "", draw: bool = False, more: Sequence[str] = ()) -> Found:
    """The metrics of a section, and who leads those that models are compared in."""
    names = [*m.asked.own] if name == "own" else compute.metrics_in(name)
    names.sort(key=lambda one: compute.metric_of(one).averages != "labels")  # what a section is about comes first
    own, there = m.values["metric"].isin(names), {*m.values["metric"]}
    own |= m.values["metric"].str.startswith("macro-F1 (") & (name == "labelwise")
    compared = [one for one in m.wanted if one[0] in names]
    ks = m.ks if len(m.given.models) <= grid.SIDE_BY_SIDE else [m.k]
    shown = [(metric, k) for metric in names if metric in there for k in ks]
    caption = f"Values and intervals{', percent' * (name != 'own')}"
    board = grid.of_metrics(called or name, caption, m.values, m.pairs, shown)
    heading = sentences.lead(m.values, m.pairs, *(compared or [(names[0], m.k)])[0])
    said = [sentences.leader(m.values, m.pairs, *one) for one in compared]
    figure = (lambda: figures.standing(m)) if draw and m.percent else None
    return Found(heading, m.values[own].reset_index(drop=True), [board], figure, [*said, *more])


@_part
def ranking(m: Measured) -> Found:
    more = sentences.seeds(m.values, m.k), sentences.ceiling(m.given, m.k)
    return _of_metrics(m, "ranking", "metrics", True, more)


@_part
def labelwise(m: Measured) -> Found:
    return _of_metrics(m, "labelwise")


@_part
def coverage(m: Measured) -> Found:
    return _of_metrics(m, "coverage")


@_part
def own(m: Measured) -> Found | None:
    return _of_metrics(m, "own") if m.asked.own else None


@_part
def pairs(m: Measured) -> Found | None:
    return Found(sentences.pairs_counted(m.pairs), m.pairs, [grid.of_pairs(m.pairs)]) if len(m.pairs) else None


@_part
def t_test(m: Measured) -> Found | None:
    if not m.couples:
        return None
    tests = compute.t_tests(m.given, m.couples, m.ks, m.asked.seed)
    board = of_table("t_test", "Macro t-test of macro-F1, p corrected together", tests, 3)
    return Found(sentences.t_tests(tests, m.k), tests, [board])


@_part
def bins(m: Measured) -> Found | None:
    if m.given.label_counts is None:
        return None
    table = compute.bins(m.values, m.given)
    ours = figures.in_percent(table, ["value", "low", "high", "ceiling"])
    last = ours[ours["k"] == m.k].drop(columns="k").reset_index(drop=True)
    board = of_table("bins", f"Macro-F1@{m.k} by train frequency, percent", last)
    draw = lambda: (figures.bins(m.shown(ours), m.look, m.k), ours)  # noqa: E731
    return Found(sentences.bins(table, m.leader, m.k), table, [board], draw)


@_part
def bands(m: Measured) -> Found | None:
    if m.given.label_counts is None:
        return None
    ours = figures.in_percent(m.bands, ["P", "PSP"])
    board = of_table("bands", f"Contributions at {m.k}; P and PSP in points", ours)
    heading = sentences.bands(m.bands, m.leader)
    return Found(heading, m.bands, [board], lambda: (figures.bands(m.shown(ours), m.k), ours))


@_part
def seen(m: Measured) -> Found | None:
    known = compute.seen(m.given, m.ks)
    if not len(known):
        return None
    last = figures.in_percent(known[known["k"] == m.k], ["value", "seen"])
    last = last.pivot(index="metric", columns="model", values=["value", "seen"]).reindex(last["metric"].unique())
    last.columns = [f"{model}, {'all' if what == 'value' else 'seen'}" for what, model in last.columns]
    board = of_table("seen", f"Metrics at {m.k} over all labels and over seen ones, percent", last.reset_index())
    return Found(sentences.seen(known, m.leader, m.k), known, [board])


@_part
def calibration(m: Measured) -> Found | None:
    if not m.given.with_probabilities:
        return None
    how, errors = compute.CALIBRATORS[m.asked.calibrator], m.errors
    ours = figures.in_percent(errors[errors["metric"] != "NLL"], ["value", "low", "high"])
    last = pd.concat([ours, errors[errors["metric"] == "NLL"]]).sort_index()
    last = last[last["k"] == m.k].drop(columns="k").reset_index(drop=True)
    filled = m.diagrams[m.diagrams["count"] > 0].reset_index(drop=True)
    boards = [of_table("calibration", f"Errors at {m.k}, percent; NLL in nats", last)]
    boards += [of_table("reliability", f"Bins of the scores at {m.k}", filled, 3)]
    said = sentences.reliability(m.diagrams, m.scored), sentences.ways(errors, m.k)
    some, more = m.shown(m.diagrams), {"reliability": m.diagrams}
    heading = sentences.calibration(errors, m.scored, m.k, how)
    return Found(heading, errors, boards, lambda: (figures.reliability(some, m.look, m.k, how), some), said, more)


@_part
def gaps(m: Measured) -> Found | None:
    if not m.given.with_probabilities:
        return None
    worst = compute.gaps(m.given, m.k)
    ours = figures.in_percent(worst, ["score", "right", "gap", "shrunk", "stderr"])
    board = of_table("gaps", f"Labels with the largest calibration gaps at {m.k}, percent and points", ours, 1)
    return Found(sentences.gaps(worst, m.scored), worst, [board])


@_part
def price(m: Measured) -> Found | None:
    if not len(m.prices):
        return None
    ours = figures.in_percent(m.prices, ["P", "P low", "P high", "Cov", "Cov low", "Cov high"])
    rise = (ours[["P", "Cov"]] > ours.groupby("model")[["P", "Cov"]].transform("first")).all(axis=1)
    named = ours.assign(beta=[f"{beta:g}".replace("inf", "∞") for beta in ours["beta"]])
    named["both rise"] = np.where(rise, "yes", "")
    board = of_table("price", "P and coverage along beta, percent", named)
    model = next(model for model in m.ranked if (m.prices["model"] == model).any())
    heading = sentences.price(m.prices, model)
    return Found(heading, m.prices, [board], lambda: (figures.price(m.shown(ours), m.look), ours))


@_part
def overlaps(m: Measured) -> Found | None:
    if not m.couples:
        return None
    alike, moved = compute.overlaps(m.given, m.couples, m.ks), compute.changed(m.given, m.couples, m.k)
    ours = figures.in_percent(alike, alike.columns[2:])
    boards = [of_table("overlaps", "Shared predictions of two models, percent", ours)]
    boards += [of_table("changed", f"Predictions among the first {m.k}, by the label's training points", moved)]
    return Found(sentences.overlaps(alike, m.k), alike, boards, more={"changed": moved})


@_part
def differences(m: Measured) -> Found:
    more = {"labels": m.labels, "points": m.points}
    if not m.couples:
        return Found("", m.points, more=more)
    best, second = [model for model in m.ranked if model in m.alive][:2]
    couples = sorted(m.couples, key=lambda pair: {*pair} != {best, second})
    couples[0] = best, second
    counted = compute.won_and_lost(couples, m.labels, m.points, m.k)
    points = compute.most_different(m.points, best, second, MOST_LISTED)
    boards = [
        of_table("differences", "Labels with a test point, and points, by who has more hits", counted),
        of_table("labels", f"Labels: {best} and {second}", compute.most_different(m.labels, best, second, MOST_LISTED)),
        of_table("points", f"Points: {best} and {second}", compute.with_labels(m.given, points, best, second, m.k)),
    ]
    return Found(sentences.won_and_lost(counted, best, second), counted, boards, more=more)


@_part
def printed(m: Measured) -> Found | None:
    rows = datasets.printed_table(m.given.dataset) if m.given.dataset is not None else pd.DataFrame()
    return Found(sentences.printed(rows), rows, [of_table("printed", "As printed", rows)]) if len(rows) else None


@_part
def ranks(m: Measured) -> Found | None:
    if not m.asked.others:
        return None
    found = compute.ranks_over({m.given.title: m.values}, m.asked.others, m.wanted)
    what, one = next(iter(found.items()))
    table = pd.concat([one.assign(metric=what) for what, one in found.items()], ignore_index=True)
    boards = [of_table(f"ranks-{i}", f"Ranks in {what}", one) for i, (what, one) in enumerate(found.items(), 1)]
    best = sentences.listed(one["model"][one["mean rank"] == one["mean rank"].min()], len(one))
    heading, said = f"First by mean rank in {what}: {best}", [sentences.ranks(one, what) for what, one in found.items()]
    return Found(heading, table, boards, lambda: (figures.ranks(one, m.look, what), one), said)
