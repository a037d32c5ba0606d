"""The first screen of a report: at most five sentences, the scoreboard, one picture; and five test points."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from xcrepro.core.metrics.calibration import is_order
from xcrepro.tools.reports import compute, figures, grid, sentences
from xcrepro.tools.reports.compute import LEVEL
from xcrepro.tools.reports.given import labels_of
from xcrepro.tools.reports.measured import Measured
from xcrepro.tools.reports.sentences import listed, number, share

MOST_APART = 6
"""Models whose differences fit in one frame; of more their ranking is drawn."""
OFF = 0.01
"""Scores whose ECE is smaller are called probabilities."""
POWER = 2.8
"""Standard errors that a difference needs to be found in four of five samples, at 5 %."""


# ---------------------------------------------------------------- what was judged


def about(m: Measured) -> str:
    """Points, labels, the share of rare ones, models."""
    truth, counts = m.given.truth, m.given.frequency
    what = "test" if m.given.label_counts is None else "training"
    rare = np.count_nonzero(counts < 10) / max(counts.size, 1)
    points, labels = (
        f"{n:,} {name}{'s' * (n != 1)}" for n, name in ((truth.n_rows, "test point"), (truth.n_labels, "label"))
    )
    parts = [
        f"{points} with {truth.sizes.mean():.1f} labels on average",
        f"{labels}, {share(rare)} of them with fewer than 10 {what} points",
    ]
    models = m.given.models
    return "; ".join([*parts, f"{len(models)} models" if len(models) > 4 else sentences.listed(models)])


# ---------------------------------------------------------------- five sentences


def leads(m: Measured) -> str:
    """Who leads in what, and how certain."""
    metric, k = m.wanted[0]
    row = m.rows(metric, k)
    if len(m.given.models) == 1 or len(m.alive) < 2:
        return f"{metric}@{k} of {m.leader} is {sentences.with_interval(row.loc[m.leader], metric)}{_popular(m)}."
    if not len(m.pairs):
        return (
            f"{m.leader} has the best {metric}@{k}, {number(row.loc[m.leader, 'value'], metric)} {sentences.unit(metric)}, but of "
            f"{m.given.truth.n_rows} test points nobody can say whether by more than chance."
        )
    clear: dict[str, list[str]] = {}
    open_: dict[tuple[str, ...], list[str]] = {}
    same = []
    for one, at in m.wanted:
        best, what = sentences.best_of(m.values, one, at), f"{one}@{at}"
        others = sentences.against(m.pairs, best, one, at)
        near = sentences.not_clearly_worse(m.values, m.pairs, one, at)
        if len(others) and (others["value"] == 0).all():
            same.append(what)
        elif best and len(near) == 1:
            clear.setdefault(best, []).append(what)
        elif best:
            open_.setdefault(tuple(model for model in m.ranked if model in near), []).append(what)
    said = [f"{best} leads clearly in {listed(metrics, 8)}" for best, metrics in clear.items()]
    for near, metrics in open_.items():
        if len(near) == len(m.alive):
            said.append(
                f"in {listed(metrics, 8)} no difference is clear"
                if clear
                else f"no model leads clearly in {listed(metrics, 8)}"
            )
        else:
            said.append(f"in {listed(metrics, 8)} {listed(near, 3)} are too close to call")
    said += [f"in {listed(same, 8)} all models are equal"] if same else []
    first = next((one for one in m.wanted if "@".join(map(str, one)) in {*clear.get(m.leader, ())}), m.wanted[0])
    text = "; ".join(said) + _by(m, *first) + "."
    return text[0].upper() + text[1:] if not clear else text


def _by(m: Measured, metric: str, k: int) -> str:
    """By how much in the first metric, with its interval."""
    best = sentences.best_of(m.values, metric, k)
    others = sentences.against(m.pairs, best, metric, k)
    if not len(others) or (others["value"] == 0).all():
        return ""
    near = others.loc[others["value"].abs().idxmin()]
    low, high = sorted(
        abs(near[end]) if near["low"] * near["high"] > 0 else near[end] * np.sign(near["value"] or 1)
        for end in ("low", "high")
    )
    values = m.rows(metric, k)["value"]
    unit = sentences.unit(metric)
    return (
        f" ({metric}@{k} {number(values[best], metric)} {unit} against {number(values[near['other']], metric)} {unit} of {near['other']}: "
        f"{number(abs(near['value']), metric)} {unit.replace('%', 'points')}, {100 * m.asked.confidence:g} % interval {number(low, metric)} to {number(high, metric)})"
    )


def _popular(m: Measured) -> str:
    """What naming the most frequent labels would be worth, beside P at the first k."""
    (metric, k), counts = m.wanted[0], m.given.label_counts
    if metric != "P" or counts is None or not len(m.alive):
        return ""
    often = np.argsort(-counts, kind="stable")[:k]
    hits = np.isin(m.given.truth.indices, often).sum() / (k * m.given.truth.n_rows)
    return f", where naming the most frequent labels for every point has {number(hits, 'P')} %"


def loses(m: Measured) -> str:
    """Where the best model misses most: by the frequency of labels."""
    own = m.bands[(m.bands["positives"] > 0) & ((m.bands["band"] != "0") | (m.given.label_counts is None))]
    found = own.assign(share=own["hits"] / own["positives"]).pivot(index="band", columns="model", values="share")
    found = found.reindex(own["band"].unique())
    what = "test points" if m.given.label_counts is None else "training points"
    if not len(found):
        return ""
    mine = found[m.leader]
    if not (mine > 0).any():
        return f"{m.leader} finds none of the relevant labels among its first {m.k}."
    worst, best = mine.idxmin(), mine.idxmax()
    if mine[worst] == 1:
        return f"{m.leader} misses nothing: all relevant labels are among its first {m.k}."
    if len(mine) == 1 or mine[worst] == mine[best]:
        return f"{m.leader} finds {share(mine[best])} of the relevant labels among its first {m.k}."
    text = f"{m.leader} is weakest on labels with {worst} {what}: it finds {share(mine[worst])} of them, but {share(mine[best])} of those with {best}"
    rival = found.loc[worst].idxmax()
    if found.loc[worst, rival] > mine[worst]:
        text += f"; {rival} finds {share(found.loc[worst, rival])} there"
    return f"{text}."


def scores(m: Measured) -> str:
    """Whether scores are probabilities, and what a map would give."""
    without = [model for model in m.given.models if model not in m.given.with_probabilities]
    if len(without) == len(m.given.models):
        if all(is_order(m.given.first(model)) for model in m.alive):
            return "Only the order of labels was given and no scores, so nothing can be said about probabilities."
        return "The scores do not lie between 0 and 1, so they are no probabilities; xcrepro.calibrate has links that map them."
    before, how = m.ece("before"), compute.CALIBRATORS[m.asked.calibrator]
    own = m.diagrams[(m.diagrams["model"] == m.scored) & (m.diagrams["state"] == "before") & (m.diagrams["count"] > 0)]
    outside = (own["accuracy"] < own["low"]) | (own["accuracy"] > own["high"])
    if before < OFF or not outside.any():
        text = f"The scores of {m.scored} can be read as probabilities, as far as these points can tell (ECE@{m.k} {number(before, 'ECE')} points)"
    else:
        mean = np.average(own["confidence"] - own["accuracy"], weights=own["count"])
        text = f"The scores of {m.scored} are no probabilities: on average they are off by {number(before, 'ECE')} points, mostly too {'high' if mean > 0 else 'low'}"
        after = m.ece("after")
        text += f"; {how} would leave {number(after, 'ECE')}" if after < before else ""
    return f"{text}." + (
        f" Those of {listed(without, 3)} {'are' if len(without) > 1 else 'is'} not within 0 and 1." if without else ""
    )


def suspicious(m: Measured) -> str:
    """The first sign that something is wrong, or that none was found."""
    if m.doubts:
        more = len(m.doubts) - 1
        return f"Look at this first: {m.doubts[0]}" + (f" ({more} more below)" * bool(more)) + "."
    said = []
    for finding in m.first_look:
        if finding.kind == "points of both splits":
            n = len(finding.evidence["rows"])
            said.append(f"{n:,} test {'point is' if n == 1 else 'points are'} in training as well")
        if finding.kind == "labels unseen in training":
            share = finding.evidence["pairs"] / finding.evidence["of"]
            said.append(
                f"{100 * share:.1f} % of the relevant labels have no training point, so no model can learn them"
            )
    checked = "Nothing looks wrong: predictions and truth fit each other, and ties decide little"
    return f"{checked}; but {' and '.join(said)}." if said else f"{checked}."


def next_step(m: Measured) -> str:
    """What to try next: the first that applies."""
    if m.doubts:
        return "Next: settle that sign, because every number here depends on it."
    if m.given.truth.n_rows < compute.LEAST_ROWS:
        return "Next: judge more test points; so few have no intervals."
    if not any((m.given.first(model).ids >= 0).any() for model in m.given.models):
        return "Next: save predictions; there are none."
    open_ = m.pairs[(m.pairs[["left", "right"]] == m.leader).any(axis=1)]
    open_ = open_ if not (open_["p"] < LEVEL).any() else open_.iloc[:0]
    open_ = open_[(open_["value"] != 0) & (open_["stderr"] > 0)]
    if len(open_):
        near = open_.loc[(open_["value"] / open_["stderr"]).abs().idxmax()]
        needed = m.given.truth.n_rows * (POWER * near["stderr"] / near["value"]) ** 2
        rival = near["right"] if near["left"] == m.leader else near["left"]
        digits = max(0, math.floor(math.log10(needed)) - 1)
        return (
            f"Next: about {round(needed, -digits):,.0f} test points could tell {m.leader} and {rival} apart in "
            f"{near['metric']}@{near['k']}, if their difference is as it seems; here are {m.given.truth.n_rows:,}."
        )
    if m.given.with_probabilities and m.ece("before") >= 2 * OFF and m.ece("after") < m.ece("before") / 2:
        how = compute.CALIBRATORS[m.asked.calibrator]
        return (
            f"Next: before you cut the labels of {m.scored} at a threshold, put {how} behind it, fitted on validation points "
            "(xc.calibrate)."
        )
    if len(m.prices) and (m.prices["model"] == m.leader).any():
        rows = m.prices[m.prices["model"] == m.leader]
        both = rows[(rows[["P", "Cov"]] > rows[["P", "Cov"]].iloc[0]).all(axis=1)]
        if len(both):
            return (
                f"Next: choose the labels of {m.leader} for coverage (xc.decide.greedy_coverage, beta = {both['beta'].iloc[0]:g}): "
                "precision and coverage both rise."
            )
    if all(is_order(m.given.first(model)) for model in m.alive):
        return "Next: save the scores beside the labels; then calibration, thresholds and coverage can be judged, too."
    return "Next: read the test points below, and ask of each wrong label whether it is only missing in the truth."


SENTENCES = {"leads": leads, "loses": loses, "scores": scores, "suspicious": suspicious, "next": next_step}


# ---------------------------------------------------------------- scoreboard and picture


def board(m: Measured) -> grid.Grid:
    """The models by what they are compared in, and ECE where only some have scores for it."""
    values, wanted = m.values, [*m.wanted]
    if ("ECE", m.k) not in wanted and not m.asked.metrics and m.given.with_probabilities:
        own = m.errors[(m.errors[["metric", "k", "state"]] == ["ECE", m.k, "before"]).all(axis=1)]
        values, wanted = pd.concat([values, own], ignore_index=True), [*wanted, ("ECE", m.k)]
    return grid.scoreboard(values, m.pairs, wanted, m.ranked, m.alive, m.asked.confidence)


def picture(m: Measured):
    """All differences from the best model in one frame; of one model or many their values. None where none is in percent."""
    few = 1 < len(m.alive) <= MOST_APART and len(m.pairs)
    return (figures.apart if few else figures.standing)(m) if m.percent else None


# ---------------------------------------------------------------- five test points


def examples(m: Measured) -> list[dict]:
    """Five points by a fixed rule: rule, point, text, relevant labels, and of up to three models the first k labels with their
    scores and hits. No point twice; ties go to the first point."""
    truth, k, top = m.given.truth, m.k, m.given.first(m.leader).head(m.k)
    hits = truth.hits(np.ascontiguousarray(top.ids)) > 0
    n, counts, scored = hits.sum(axis=1), m.given.frequency, not is_order(top)
    first = np.where(top.ids[:, 0] >= 0, top.scores[:, 0], -np.inf) if scored else np.zeros(len(top))
    rows = np.repeat(np.arange(truth.n_rows), truth.sizes)
    own = np.where(top.ids >= 0, top.ids, -1)
    missed = ~(own[rows] == truth.indices[:, None]).any(axis=1) & (counts[truth.indices] > 0)
    at, place = np.nonzero(hits)
    found = top.ids[at, place]
    wrong = np.flatnonzero((top.ids[:, 0] >= 0) & ~hits[:, 0])
    right = np.flatnonzero((n > 0) & (n == np.minimum(truth.sizes, k)))
    frequency = "training" if m.given.label_counts is not None else "test"
    rules = [
        (
            f"Clearly right: all that {m.leader} could find, the most labels",
            right[np.lexsort((-first[right], -n[right]))],
            None,
        ),
        (
            "Confidently wrong: its first label is no hit" + (", at the highest score" if scored else ""),
            wrong[np.lexsort((n[wrong], -first[wrong]))],
            None,
        ),
        (f"A rare label found: the one with the fewest {frequency} points", *_rarest(at, found, counts)),
        (
            f"A rare label missed: the one with the fewest {frequency} points",
            *_rarest(rows[missed], truth.indices[missed], counts),
        ),
    ]
    shown = [m.leader]
    others = [model for model in m.ranked if model in m.alive and model != m.leader]
    if others:
        hits_of = truth.hits(np.ascontiguousarray(m.given.first(others[0]).head(k).ids)).sum(axis=1)
        apart = np.abs(n - hits_of)
        rules.append(
            (
                f"{m.leader} and {others[0]} differ most",
                np.flatnonzero(apart > 0)[np.argsort(-apart[apart > 0], kind="stable")],
                None,
            )
        )
        shown += others[:2]
    used, made = set(), []
    for rule, points, labels in rules:
        free = [i for i, point in enumerate(points) if point not in used]
        if free:
            point = int(points[free[0]])
            used.add(point)
            what = rule if labels is None else f"{rule}, {m.given.name(labels[free[0]])} ({counts[labels[free[0]]]:,})"
            made.append({"rule": what, **_point(m, point, shown)})
    return made


def _rarest(rows: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((rows, counts[labels]))
    return rows[order], labels[order]


def _point(m: Measured, point: int, models: list[str]) -> dict:
    relevant, found = labels_of(m.given.truth, point), {}
    for model in models:
        top = m.given.first(model)
        scores = [None] * m.k if is_order(top) else [float(score) for score in top.scores[point, : m.k]]
        pairs = zip(top.ids[point, : m.k].tolist(), scores, strict=False)
        found[model] = [(m.given.name(label), score, label in relevant) for label, score in pairs if label >= 0]
    text = m.given.texts[point] if m.given.texts else ""
    return {"point": point, "text": text, "relevant": [m.given.name(label) for label in relevant], "models": found}
