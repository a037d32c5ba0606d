"""The parts of a report in the order of its page: each a finding, its figure, two sentences, and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from xcrepro.repro.inputs import datasets
from xcrepro.tools.reports import compute, figures, grid, sentences
from xcrepro.tools.reports.grid import Grid, of_table
from xcrepro.tools.reports.measured import Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Found:
    """What a part comes to: its heading is the finding; ``note`` says how to read it; ``table`` is its CSV file, ``more`` other
    files; ``figure`` is drawn from the table beside it."""

    heading: str
    said: Sequence[str]
    note: str
    table: pd.DataFrame
    grids: Sequence[Grid] = ()
    figure: tuple[Figure, pd.DataFrame] | None = None
    more: Mapping[str, pd.DataFrame] = field(default_factory=dict)


PARTS: dict[str, tuple[str, Callable[[Measured], Found | None]]] = {}
"""Name of a part, and of its files -> what the navigation calls it, and what makes it; None where there is nothing to say."""


def _part(title: str):
    def add(make):
        PARTS[make.__name__.strip("_")] = title, make
        return make

    return add


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _of_metrics(m: Measured, name: str, note: str, *more: str, draw: bool = False) -> Found:
    """The metrics of a section, and who leads the one that models are compared in."""
    own = m.values["metric"].isin(compute.OWN[name]) | (
        m.values["metric"].str.startswith("macro-F1 (") & (name == "labelwise")
    )
    table, there = m.values[own].reset_index(drop=True), {*m.values["metric"]}
    compared = [one for one in m.wanted if one[0] in compute.OWN[name]]
    first = compared[0] if compared else (compute.OWN[name][0], m.k)
    said = [sentences.leader(m.values, m.pairs, *one) for one in compared]
    shown = [(metric, k) for metric in compute.OWN[name] if metric in there for k in m.ks]
    shown = shown if len(m.given.models) <= 4 else [one for one in shown if one[1] == m.k]
    called = "metrics" if name == grid.SCOREBOARD else name
    board = grid.of_metrics(
        called, "Value and interval; bold: the best; ▲ clear lead, ≈ too close to call", m.values, m.pairs, shown
    )
    percent = [one for one in m.wanted if sentences.unit(one[0]) == "%"]
    ours = figures.in_percent(m.values[m.values["model"].isin(m.shown)], ["value", "low", "high"])
    figure = (figures.metrics(ours, m.look, percent), ours) if draw and percent else None
    return Found(sentences.lead(m.values, m.pairs, *first), [*said, *more], note, table, [board], figure)


@_part("Ranking")
def ranking(m: Measured) -> Found:
    note = (
        "P@k is the share of the first k labels that are relevant. nDCG@k also weighs their order. PSP@k and PSnDCG@k count a rare "
        "label more than a frequent one. All are means over test points; intervals are for the value on other test points."
    )
    more = sentences.seeds(m.values, m.k), sentences.ceiling(m.given, m.k)
    return _of_metrics(m, "ranking", note, *more, draw=True)


@_part("Averages over labels")
def labelwise(m: Measured) -> Found:
    note = "Macro averages weigh all labels the same, those without a test point too; micro-F1 pools all hits."
    return _of_metrics(m, "labelwise", note)


@_part("Coverage")
def coverage(m: Measured) -> Found:
    note = (
        "Coverage is the share of all labels, or of those with a test point, that are right for at least one point. Label entropy "
        "says how evenly the hits are spread over the labels, and abandonment is the share of points without a hit."
    )
    return _of_metrics(m, "coverage", note)


@_part("Better by more than chance?")
def pairs(m: Measured) -> Found | None:
    if not len(m.pairs):
        return None
    among = m.pairs[m.pairs[["left", "right"]].isin(m.shown).all(axis=1)]
    ours, clear = figures.in_percent(among, ["value", "low", "high"]), int((m.pairs["p"] < compute.LEVEL).sum())
    note = (
        "The same test points judge all models, so an interval of a difference is narrower than those of two values suggest. All "
        "p-values are corrected together (Holm) over every pair of models and metric, so compare few metrics (--metrics)."
    )
    is_are, percent = "is" if clear == 1 else "are", [one for one in m.wanted if sentences.unit(one[0]) == "%"]
    # Those of two models are the first picture.
    figure = (figures.pairs(ours, percent), ours) if len(m.alive) > 2 and percent else None
    return Found(f"{clear} of {len(m.pairs)} differences {is_are} more than chance", [sentences.pairs_counted(m.pairs)], note,
                 m.pairs, [grid.of_pairs(m.pairs)], figure)  # fmt: skip


@_part("On other labels")
def t_test(m: Measured) -> Found | None:
    if not m.couples:
        return None
    tests = compute.t_tests(m.given, m.couples, m.ks, m.asked.seed)
    part = tests[(tests["k"] == m.k) & (tests["p"] < compute.LEVEL)]
    heading = "Over labels no difference of macro-F1 is clear"
    for row in part[:1].to_dict("records"):
        one, other = (row[side] for side in (("left", "right") if row["value"] > 0 else ("right", "left")))
        heading = f"Over labels, too, {one} is better than {other} in macro-F1@{m.k}"
    note = (
        "The macro t-test pairs labels (Yang and Liu 1999): would a difference of macro-F1 be there for other labels, too? It takes "
        "labels as independent. If shared, in standard deviations, is above 3 they are not: trust the comparison over points."
    )
    board = of_table("t_test", "Macro t-test of macro-F1, p corrected together", tests, 3)
    return Found(heading, [sentences.t_tests(tests, m.k)], note, tests, [board])


@_part("Rare labels and what is possible")
def bins(m: Measured) -> Found | None:
    if m.given.label_counts is None:
        return None
    table = compute.bins(m.values, m.given)
    ours = figures.in_percent(table, ["value", "low", "high", "ceiling"])
    last = ours[ours["k"] == m.k].drop(columns="k").reset_index(drop=True)
    own = last[(last["model"] == m.leader) & (last["ceiling"] > 0)]
    worst = own.assign(share=own["value"] / own["ceiling"])[own["bin"] != "0"].nsmallest(1, "share")
    heading = "No label with a training point has a test point"
    for row in worst.to_dict("records"):
        heading = (
            f"On labels with {row['bin']} training points {m.leader} reaches {_share(row['share'])} of what is possible"
        )
    note = (
        "Labels by their training points, and macro-F1 of each group (Schultheis and others, section 5). The ceiling is the most that "
        "any predictions of k labels per point could have, or where that is too large a programme an upper bound of it."
    )
    board = of_table("bins", f"Macro-F1@{m.k} by train frequency, percent", last)
    some = ours[ours["model"].isin(m.shown)]
    return Found(heading, [sentences.bins(table, m.k)], note, table, [board], (figures.bins(some, m.look, m.k), some))


@_part("Where hits come from")
def bands(m: Measured) -> Found | None:
    if m.given.label_counts is None:
        return None
    ours = figures.in_percent(m.bands, ["P", "PSP"])
    own = ours[ours["model"] == m.leader]
    rare, hits = own[own["band"].isin(["0", "1-9"])], own["hits"].sum()
    heading = f"{m.leader} has no hit"
    if hits:
        heading = f"{_share(rare['hits'].sum() / hits)} of the hits of {m.leader}, and {_share(rare['positives'].sum() / own['positives'].sum())} "
        heading += "of what is relevant, are on labels with fewer than 10 training points"
    note = "The same groups of labels, and what the hits on each contribute to P and PSP. The parts of a model add up to both."
    board = of_table("bands", f"Contributions at {m.k}; P and PSP in points", ours)
    some = ours[ours["model"].isin(m.shown)]
    return Found(heading, [sentences.bands(m.bands, m.k)], note, m.bands, [board], (figures.bands(some, m.k), some))


@_part("Labels that training has seen")
def seen(m: Measured) -> Found | None:
    known = compute.seen(m.given, m.ks)
    if not len(known):
        return None
    last = figures.in_percent(known[known["k"] == m.k], ["value", "seen"])
    last = last.pivot(index="metric", columns="model", values=["value", "seen"]).reindex(last["metric"].unique())
    last.columns = [f"{model}, {'all' if what == 'value' else 'seen'}" for what, model in last.columns]
    unseen = (m.given.label_counts == 0)[m.given.truth.indices].mean()
    note = (
        "No model finds a label that none of its training points has, unless it reads the label's name. So these are the metrics over "
        "the labels that training has seen; all others are taken out of the truth and of the predictions."
    )
    board = of_table("seen", f"Metrics at {m.k} over all labels and over seen ones, percent", last.reset_index())
    return Found(
        f"{100 * unseen:.1f} % of the relevant labels have no training point",
        [sentences.seen(known, m.k)],
        note,
        known,
        [board],
    )


@_part("Are scores probabilities?")
def calibration(m: Measured) -> Found | None:
    if not m.given.with_probabilities:
        return None
    how, errors = compute.CALIBRATORS[m.asked.calibrator], m.errors
    ours = figures.in_percent(errors[errors["metric"] != "NLL"], ["value", "low", "high"])
    last = pd.concat([ours, errors[errors["metric"] == "NLL"]]).sort_index()
    last = last[last["k"] == m.k].drop(columns="k").reset_index(drop=True)
    note = (
        "A score of 0.7 is a probability if 70 % of the predictions with this score are right. ECE@k is the mean distance between the "
        "scores and the share of hits in ten bins of scores (calibration, equations 7 and 8). After: a rising map, learned on nine "
        "tenths of the points for the other tenth. A map that lowers ECE can raise the log loss (NLL), so look at both."
    )
    own = ours[ours["metric"].eq("ECE") & ours["model"].isin(m.shown)]
    board = of_table("calibration", f"Errors at {m.k}, percent; NLL in nats", last)
    figure = figures.calibration(own, m.look, how=how), own
    return Found(
        sentences.off(errors, m.scored, m.k, how),
        [sentences.calibration(errors, m.k, how)],
        note,
        errors,
        [board],
        figure,
    )


@_part("In which scores")
def reliability(m: Measured) -> Found | None:
    if not m.given.with_probabilities:
        return None
    filled = m.diagrams[m.diagrams["count"] > 0].reset_index(drop=True)
    own = filled[(filled["model"] == m.scored) & (filled["state"] == "before")]
    over, under = int((own["accuracy"] < own["low"]).sum()), int((own["accuracy"] > own["high"]).sum())
    off = [f"too {way} in {n} of {len(own)} bins" for way, n in (("high", over), ("low", under)) if n]
    note = (
        "Each mark is one of ten bins of scores of equal width: the share of hits against the mean score. Bins with fewer than 20 "
        "predictions are not drawn. Pale bars are what chance allows of right scores in 95 % of draws, for the filled marks."
    )
    some = m.diagrams[m.diagrams["model"].isin(m.shown)]
    heading = f"Scores of {m.scored} are {' and '.join(off) or 'within what chance allows'}"
    figure = figures.reliability(some, m.look, m.k, compute.CALIBRATORS[m.asked.calibrator]), some
    board = of_table("reliability", f"Bins of the scores at {m.k}", filled, 3)
    return Found(heading, [sentences.reliability(m.diagrams, m.k)], note, m.diagrams, [board], figure)


@_part("Labels with wrong scores")
def gaps(m: Measured) -> Found | None:
    if not m.given.with_probabilities:
        return None
    worst = compute.gaps(m.given, m.k)
    ours = figures.in_percent(worst, ["score", "right", "gap", "shrunk", "stderr"])
    note = (
        "A label's gap is the mean of its scores less its share of hits. Rare labels have large gaps by chance alone, so each is drawn "
        "towards the mean of all labels, the more the fewer predictions there are (empirical Bayes). The twenty largest of each model."
    )
    own = worst[worst["model"] == m.scored]
    way = "too sure" if len(own) and own["shrunk"].iloc[0] > 0 else "not sure enough"
    heading = f"{m.scored} is {way} of {own['label'].iloc[0]}" if len(own) else f"{m.scored} predicts nothing"
    board = of_table("gaps", f"Labels with the largest calibration gaps at {m.k}, percent and points", ours, 1)
    return Found(heading, [sentences.gaps(worst)], note, worst, [board])


@_part("The price of coverage")
def price(m: Measured) -> Found | None:
    if not len(m.prices):
        return None
    ours = figures.in_percent(m.prices, ["P", "P low", "P high", "Cov", "Cov low", "Cov high"])
    rise = (ours[["P", "Cov"]] > ours.groupby("model")[["P", "Cov"]].transform("first")).all(axis=1)
    named = ours.assign(beta=[f"{beta:g}".replace("inf", "∞") for beta in ours["beta"]])
    named["both rise"] = np.where(rise, "yes", "")
    first = ours[ours["model"] == (m.leader if (ours["model"] == m.leader).any() else ours["model"].iloc[0])]
    best = first[rise[first.index]].nlargest(1, "Cov") if rise[first.index].any() else first.iloc[-1:]
    cov, p = (best[name].iloc[0] - first[name].iloc[0] for name in ("Cov", "P"))
    gives = f"gains {p:.1f}" if p > 0 else f"loses {-p:.1f}"
    heading = f"With beta = {best['beta'].iloc[0]:g} {first['model'].iloc[0]} covers {cov:.1f} points more, and {gives} points of precision"
    note = (
        "Labels chosen greedily for coverage among the places that were saved (Schultheis and others, algorithm 1), with the scores as "
        "probabilities. Beta is the weight of a hit beside that of a label not hit before: infinity is the plain top k."
    )
    some = ours[ours["model"].isin(m.shown)]
    board = of_table("price", "P and coverage along beta, percent", named)
    return Found(heading, [sentences.price(m.prices)], note, m.prices, [board], (figures.price(some, m.look), some))


@_part("What two models share")
def overlaps(m: Measured) -> Found | None:
    if not m.couples:
        return None
    alike, moved = compute.overlaps(m.given, m.couples, m.ks), compute.changed(m.given, m.couples, m.k)
    ours = figures.in_percent(alike, alike.columns[2:])
    one = alike.loc[alike[f"overlap@{m.k}"].idxmax()]
    heading = f"{one['left']} and {one['right']} share {_share(one[f'overlap@{m.k}'])} of their predictions"
    note = (
        "This needs no truth. Overlap@k is the share of the first k labels that both models give a point. Rank-biased overlap (RBO) "
        "also looks at the order. The second table: predictions that only one model has, by the training points of their labels."
    )
    boards = [
        of_table("overlaps", "Shared predictions of two models, percent", ours),
        of_table("changed", f"Predictions among the first {m.k}, by the label's training points", moved),
    ]
    return Found(heading, [sentences.overlaps(alike, m.k)], note, alike, boards, more={"changed": moved})


@_part("Where two models differ")
def differences(m: Measured) -> Found | None:
    more = {"labels": m.labels, "points": m.points}
    if not m.couples:
        return Found("", (), "", pd.DataFrame(), more=more)
    best, second = [model for model in m.ranked if model in m.alive][:2]
    counted = compute.won_and_lost(m.couples, m.labels, m.points, m.k)
    of_points = m.points[f"{best} hits"] - m.points[f"{second} hits"]
    heading = f"{best} has more hits than {second} on {(of_points > 0).sum():,} points, and fewer on {(of_points < 0).sum():,}"
    which = compute.with_labels(m.given, compute.most_different(m.points, best, second, 500), best, second, m.k)
    note = "On how many labels and points one model has more hits among its first k labels than the other."
    boards = [
        of_table("differences", "Labels with a test point, and points, by who has more hits", counted),
        of_table("labels", f"Labels: {best} and {second}", compute.most_different(m.labels, best, second, 500)),
        of_table("points", f"Points: {best} and {second}", which),
    ]
    return Found(heading, [sentences.won_and_lost(counted)], note, counted, boards, more=more)


@_part("Beside print")
def printed(m: Measured) -> Found | None:
    rows = datasets.printed_table(m.given.dataset) if m.given.dataset is not None else pd.DataFrame()
    if not len(rows):
        return None
    note = (
        "The printed rows of the dataset, percent, as context: they come from other machines, features and sometimes other versions "
        "of the data. † marks what our audit of the documents doubts."
    )
    heading = f"Papers print {len(rows)} rows of {m.given.title}"
    return Found(heading, [sentences.printed(rows)], note, rows, [of_table("printed", "As printed", rows)])


@_part("Over several datasets")
def ranks(m: Measured) -> Found | None:
    if not m.asked.others:
        return None
    found = compute.ranks_over({m.given.title: m.values}, m.asked.others, m.wanted)
    what, one = next(iter(found.items()))
    mean = one["mean rank"]
    heading = (
        f"{sentences.listed(one['model'][mean == mean.min()])} ranks best in {what} over {one.shape[1] - 2} datasets"
    )
    note = "1 is the best, and equal values share their mean rank. Only models that all datasets have are ranked."
    table = pd.concat([one.assign(metric=what) for what, one in found.items()], ignore_index=True)
    boards = [of_table(f"ranks-{i}", f"Ranks in {what}", one) for i, (what, one) in enumerate(found.items(), 1)]
    said = [sentences.ranks(one, what) for what, one in found.items()]
    return Found(heading, said, note, table, boards, (figures.ranks(one, m.look, what), one))
