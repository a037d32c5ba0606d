"""A report of models whose predictions no process holds: what follows from States alone, by any engine.

What needs all points beside each other (t-tests over labels, the price of coverage, points on which models differ) is in
:func:`xcrepro.report` alone.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from xcrepro.core.arguments import cut_offs, real_number, whole_number
from xcrepro.core.errors import ArgumentError, XCError
from xcrepro.core.metrics import registry
from xcrepro.repro.drawing import tables
from xcrepro.tools import diagnose
from xcrepro.tools.reports import compute, grid, html
from xcrepro.tools.reports.report import FILE, FORMAT, Report
from xcrepro.tools.scale import evaluation
from xcrepro.tools.scale import state as state_of

LOOKED_AT = 8
"""Blocks of a model in which rows are held to their predictions, the first and the last among them."""


_CAPTIONS = {"metrics": "Metrics, with intervals where a metric has them", "pairs": "Differences of models, paired"}


def report(
    models: Mapping[str, object],
    ks=(1, 3, 5),
    inverse_propensity=None,
    label_counts=None,
    *,
    calibration: bool = False,
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    title: str = "",
    resume: str | os.PathLike | None = None,
    **engine,
) -> Report:
    """Metrics of several models over blocks of the same rows: the tables ``metrics`` (NaN where a metric has no interval
    here) and ``pairs``.

    ``models`` is model -> what :func:`xcrepro.scale.evaluate` takes; blocks say their first row. ``calibration`` adds
    calibration errors, for which scores must be probabilities. ``resume`` is a folder for the States of blocks, one folder a
    model in it; ``engine`` the further arguments of :func:`xcrepro.scale.evaluate`, whose errors are raised, as for models
    over other rows.
    """
    whole_number("samples", samples, 20)
    real_number("confidence", confidence, above=0, below=1)
    if not models:
        raise ArgumentError("models", "must be one or more", "none")
    ks = tuple(sorted(cut_offs(ks).tolist()))
    metrics = [*registry.default(inverse_propensity is not None, label_counts is not None)]
    metrics += [f"{name}@{k}" for name in compute.CALIBRATION for k in ks] if calibration else []
    states, doubts = {}, []
    for name, blocks in models.items():
        doubts += [f"{name}: {doubt}" for doubt in alignment(blocks)]
        kept = None if resume is None else Path(resume) / name
        about = {"metrics": metrics, "samples": samples, "seed": seed, "resume": kept, **engine}
        states[name] = state_of(blocks, ks, inverse_propensity, label_counts, **about)
    first, *others = states
    for name in others:
        ours, theirs = ((states[each].row_ranges, states[each].n_rows) for each in (first, name))
        if ours != theirs:
            raise ArgumentError(f"models[{name!r}]", f"must have the rows of {first!r}, {ours}", theirs)
    tail = (1 - confidence) / 2
    made = {"metrics": _metrics(states, confidence), "pairs": _pairs(states, tail)}
    rows = states[first].n_rows
    digest = json.dumps([rows, states[first].fingerprint(), [*states]], default=str)
    about = {"format": FORMAT, "title": title or "Report over blocks", "rows": rows, "models": [*states]}
    about |= {"samples": samples, "seed": seed, "confidence": confidence}
    about |= {"warnings": doubts, "digest": digest, "parts": {}}
    files = {f"csv/{name}.csv": tables.csv_text(table).encode() for name, table in made.items()}
    files |= {FILE: json.dumps(about, indent=1).encode(), "report.html": _page(about, made).encode()}
    return Report(about, files)


def _page(about: Mapping[str, object], made: Mapping[str, pd.DataFrame]) -> str:
    of = f"{about['rows']:,} points, {about['samples']} samples of a Poisson bootstrap, from blocks."
    what = "Intervals are for means and ratios of sums over points; pairs are compared on the same samples."
    said = [*(f"Warning: {doubt}" for doubt in about["warnings"]), f"{of} {what}"]
    parts = [(name, caption, made[name]) for name, caption in _CAPTIONS.items() if len(made[name])]
    own = [grid.of_table(name, caption, table, 4, f"csv/{name}.csv") for name, caption, table in parts]
    return html.titled(about["title"], *(f"<p>{html.escape(text)}</p>" for text in said), *(one.html() for one in own))


def alignment(blocks) -> list[str]:
    """What says that predictions and truth do not belong together, in up to eight of the blocks (:func:`diagnose.check`).

    A kind of finding is said once, with the message of the first block that has it and how many have.
    """
    found, sources = {}, evaluation.sources(blocks, True, False)
    chosen = {round(at) for at in np.linspace(0, len(sources) - 1, min(LOOKED_AT, len(sources))).tolist()}
    for at in sorted(chosen):
        try:
            rows = sources[at].read()
        except (XCError, OSError):
            continue  # the engine reads it too, and names every block that fails
        for finding in diagnose.check(rows.Y, rows.top):
            found.setdefault(finding.kind, []).append((sources[at].name, finding))
    return [
        f"in {len(seen)} of {len(chosen)} blocks, first in {Path(seen[0][0]).name}: {seen[0][1]}"
        for seen in found.values()
    ]


def _metrics(states, confidence: float) -> pd.DataFrame:
    ends = {name: state.intervals(confidence).drop(columns="value") for name, state in states.items()}
    parts = {name: state.compute().merge(ends[name], "left", ["metric", "k"]) for name, state in states.items()}
    return pd.concat(parts, names=["model", None]).reset_index("model").reset_index(drop=True)


def _pairs(states, tail: float) -> pd.DataFrame:
    rows = []
    drawn = {name: state.drawn() for name, state in states.items()}
    for first, second in itertools.combinations(states, 2):
        for metric, (at, values, samples) in drawn[first].items():
            _, other, others = drawn[second][metric]
            differences = samples - others
            low, high = np.nanquantile(differences, [tail, 1 - tail], axis=0)
            for k, *each in zip(at.tolist(), values - other, low, high, strict=True):
                rows.append((metric, k, first, second, *map(float, each)))
    return pd.DataFrame(rows, columns=["metric", "k", "left", "right", "value", "low", "high"])
