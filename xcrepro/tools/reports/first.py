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
LEAST_UNSEEN = 0.001
"""A share of relevant labels without a training point below which their number is said."""
POWER = 2.8
"""Standard errors that a difference needs to be found in four of five samples, at 5 %."""


# ---------------------------------------------------------------- what was judged


def about(m: Measured) -> str:
    """Points, labels, the share of rare ones, models."""
    truth, models = m.given.truth, m.given.models
    rare = share(np.count_nonzero(m.given.frequency < 10) / max(truth.n_labels, 1))
    named = f"{len(models)} models" if len(models) > 4 else listed(models)
    sizes = (truth.n_rows, "test point"), (truth.n_labels, "label")
    points, labels = (f"{n:,} {what}{'s' * (n != 1)}" for n, what in sizes)
    mean = f"{truth.sizes.mean():.1f} labels on average"
    text = f"{points} with {mean}; {labels}, {rare} of them with fewer than 10 {m.given.counted} points; {named}"
    known = m.given.dataset is None and m.recognised.name
    return f"{text}; the truth is {m.recognised.text}" if known else text


# ---------------------------------------------------------------- five sentences


def leads(m: Measured) -> str:
    """Who leads in what, and how certain."""
    metric, k = m.wanted[0]
    row = m.rows(metric, k)
    if len(m.given.models) == 1 or len(m.alive) < 2:
        return f"{metric}@{k} of {m.leader} is {sentences.with_interval(row.loc[m.leader], metric)}{_popular(m)}."
    if not len(m.pairs):
        return (
            f"{sentences.lead(m.values, m.pairs, metric, k)}, but of {m.given.truth.n_rows} test points nobody can say "
            "whether by more than chance."
        )
    clear, close, same, first = {}, {}, [], m.wanted[0]
    for one, at in m.wanted:
        best, what = sentences.best_of(m.values, one, at), f"{one}@{at}"
        near = sentences.not_clearly_worse(m.values, m.pairs, one, at)
        if best and (sentences.against(m.pairs, best, one, at)["value"] == 0).all():
            same.append(what)
        elif len(near) == 1:
            first = (one, at) if best == m.leader and m.leader not in clear else first
            clear.setdefault(best, []).append(what)
        elif best:
            close.setdefault(tuple(model for model in m.ranked if model in near), []).append(what)
    said = [f"{best} leads clearly in {listed(metrics, 8)}" for best, metrics in clear.items()]
    for near, metrics in close.items():
        where = listed(metrics, 8)
        some = f"in {where} {listed(near, 3)} are too close to call"
        none = f"in {where} no difference is clear" if clear else f"no model leads clearly in {where}"
        said.append(none if len(near) == len(m.alive) else some)
    text = "; ".join(said + [f"in {listed(same, 8)} all models are equal"] * bool(same)) + _by(m, *first) + "."
    return text if clear else text[0].upper() + text[1:]


def _by(m: Measured, metric: str, k: int) -> str:
    """By how much in a metric, with its interval."""
    best = sentences.best_of(m.values, metric, k)
    others = sentences.against(m.pairs, best, metric, k)
    if not others["value"].all() or not len(others):
        return ""
    near = others.loc[others["value"].abs().idxmin()]
    sign = -1 if near["value"] < 0 else 1
    low, high = (number(end, metric) for end in sorted((sign * near["low"], sign * near["high"])))
    values = m.rows(metric, k)["value"]
    one, other = (sentences.amount(values[model], metric) for model in (best, near["other"]))
    apart = sentences.distance(near["value"], metric)
    sure = f"{100 * m.asked.confidence_level:g} % interval {low} to {high}"
    return f" ({metric}@{k} {one} against {other} of {near['other']}: {apart}, {sure})"


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
    if not len(found):
        return ""
    mine = found[m.leader]
    if not (mine > 0).any():
        return f"{m.leader} finds none of the relevant labels among its first {m.k}."
    worst, best = mine.idxmin(), mine.idxmax()
    if mine[worst] == 1:
        return f"{m.leader} misses nothing: all relevant labels are among its first {m.k}."
    if share(mine[worst]) == share(mine[best]):
        return f"{m.leader} finds {share(mine[best])} of the relevant labels among its first {m.k}."
    text = f"{m.leader} is weakest on labels with {worst} {m.given.counted} points: among its first {m.k} are "
    text += f"{share(mine[worst])} of what is relevant there, but {share(mine[best])} at {best}"
    ahead = [band for band in found.index if found.loc[band].max() > mine[band]]
    if ahead:
        band = max(ahead, key=lambda band: found.loc[band].max() - mine[band])
        text += f"; {found.loc[band].idxmax()} finds more at labels with {band}: {share(found.loc[band].max())}"
        text += "" if band == worst else f", and {m.leader} {share(mine[band])}"
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
    text, off = f"The scores of {m.scored}", f"{number(before, 'ECE')} points"
    if before < OFF or not outside.any():
        text += f" can be read as probabilities, as far as these points can tell (ECE@{m.k} {off})"
    else:
        mean = np.average(own["confidence"] - own["accuracy"], weights=own["count"])
        text += f" are no probabilities: on average they are off by {off}, mostly too {'high' if mean > 0 else 'low'}"
        after = m.ece("after")
        text += f"; {how} would leave {number(after, 'ECE')}" if after < before else ""
    others = f" The scores of {listed(without, 3)} do not lie between 0 and 1, so they have no ECE."
    return f"{text}.{others * bool(without)}"


def suspicious(m: Measured) -> str:
    """The first sign that something is wrong, or that none was found."""
    if m.doubts:
        more = f" ({len(m.doubts) - 1} more above)" if len(m.doubts) > 1 else ""
        return f"Look at this first: {m.doubts[0].partition('. ')[0].rstrip('.')}{more}."
    said = []
    for finding in m.first_look:
        if finding.kind == "points of both splits":
            n = len(finding.evidence["rows"])
            said.append(f"{n:,} test {'point has' if n == 1 else 'points have'} the features of a training point")
        if finding.kind == "labels unseen in training":
            pairs, of = finding.evidence["pairs"], finding.evidence["of"]
            some = f"{number(pairs / of, 'P')} % of the" if pairs / of >= LEAST_UNSEEN else f"{pairs:,} of {of:,}"
            said.append(f"{some} relevant labels have no training point, so no model can learn them")
    checked = "No sign that rows or labels are mixed up, and equal scores decide little"
    return (
        f"{checked}. But {' and '.join(said)}." if said else f"Nothing looks wrong: {checked[0].lower()}{checked[1:]}."
    )


def next_step(m: Measured) -> str:
    """What to try next: the first that applies."""
    if m.doubts and m.doubts[0].startswith((f"{m.leader}:", f"{m.leader}.seed")):
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
            f"Next: if you need probabilities or a threshold, map the scores of {m.scored} by {how} first, fitted on "
            "validation points (xc.calibrate)."
        )
    if len(m.prices) and (m.prices["model"] == m.leader).any():
        rows = m.prices[m.prices["model"] == m.leader]
        both = rows[(rows[["P", "Cov"]] > rows[["P", "Cov"]].iloc[0]).all(axis=1)]
        if len(both):
            how = f"xc.decide.greedy_coverage, beta = {both['beta'].iloc[0]:g}"
            return f"Next: choose the labels of {m.leader} for coverage ({how}): precision and coverage both rise."
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
    return grid.scoreboard(values, m.pairs, wanted, m.ranked, m.alive, m.asked.confidence_level)


def picture(m: Measured):
    """All differences from the best model in one frame; of one model or many their values. None where none is in percent."""
    few = 1 < len(m.alive) <= MOST_APART and len(m.pairs)
    return (figures.apart if few else figures.standing)(m) if m.percent else None


# ---------------------------------------------------------------- five test points


def examples(m: Measured) -> list[dict]:
    """Five points by a fixed rule: rule, point, text, relevant labels, and of up to three models the first k labels with their
    scores and hits. No point twice; ties go to the first point."""
    truth, k, top = m.given.truth, m.k, m.given.first(m.leader).head(m.k)
    hits, counts = truth.hits(np.ascontiguousarray(top.ids)) > 0, m.given.frequency
    n, (at, place), rows = hits.sum(axis=1), np.nonzero(hits), np.repeat(np.arange(truth.n_rows), truth.sizes)
    sure = np.zeros(len(top)) if is_order(top) else top.scores[:, 0]
    right = np.flatnonzero((n > 0) & (n == np.minimum(truth.sizes, k)))
    wrong = np.flatnonzero((top.ids[:, 0] >= 0) & ~hits[:, 0])
    missed = ~(top.ids[rows] == truth.indices[:, None]).any(axis=1) & (counts[truth.indices] > 0)
    found, lost, fewest = top.ids[at, place], truth.indices[missed], f"the one with the fewest {m.given.counted} points"
    confident = f"Confidently wrong: its first label{', at the highest score' * bool(sure.any())}"
    rules = [
        (f"Clearly right: all that {m.leader} could find, the most labels", right, [-n[right], -sure[right]], None),
        (confident, wrong, [-sure[wrong], n[wrong]], None),
        (f"A rare label found: {fewest}", at, [counts[found]], found),
        (f"A rare label missed: {fewest}", rows[missed], [counts[lost]], lost),
    ]
    others = [model for model in m.ranked if model in m.alive and model != m.leader][:2]
    if others:
        theirs = truth.hits(np.ascontiguousarray(m.given.first(others[0]).head(k).ids)).sum(axis=1)
        apart = np.flatnonzero(n != theirs)
        rules.append((f"{m.leader} and {others[0]} differ most", apart, [-np.abs(n - theirs)[apart]], None))
    made = {}
    for rule, points, keys, labels in rules:
        order = np.lexsort((points, *keys[::-1]))
        place = next((int(i) for i in order if int(points[i]) not in made), None)
        if place is not None:
            label = "" if labels is None else f", {m.given.name(labels[place])} ({counts[labels[place]]:,})"
            made[int(points[place])] = {"rule": rule + label, **_point(m, int(points[place]), [m.leader, *others])}
    return [*made.values()]


def _point(m: Measured, point: int, models: list[str]) -> dict:
    relevant, found = labels_of(m.given.truth, point), {}
    for model in models:
        top = m.given.first(model)
        scores = [None] * m.k if is_order(top) else [float(score) for score in top.scores[point, : m.k]]
        pairs = zip(top.ids[point, : m.k].tolist(), scores, strict=False)
        found[model] = [(m.given.name(label), score, label in relevant) for label, score in pairs if label >= 0]
    text = m.given.texts[point] if m.given.texts else ""
    return {"point": point, "text": text, "relevant": [m.given.name(label) for label in relevant], "models": found}
