"""How often does the rule for claims err, and how often does it find what is there? By simulation; this measures no speed.

The differences of a claim's cells (models, ks) are drawn around true ones, normal, with the errors that our notebooks measure
and a correlation, because the same test points judge all cells. *Size* is how often a claim that is not true holds, and how
often one that is true does not hold. *Power* is how often a claim holds if the true differences are those that a paper prints.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

import xcrepro as xc
from xcrepro.core import paths
from xcrepro.core.distributions import normal
from xcrepro.repro.published import evidence
from xcrepro.repro.published.audit import doubted

NEVER = 8.0
"""Errors from 0: so far that a cell is always clear."""


def outcomes(needs: str, effects, errors, correlation: float, repetitions: int, seed: int = 0) -> pd.Series:
    """How often each outcome comes, in percent; effects and errors of the cells in one unit."""
    id = "t3-psp-pfastxml-fastxml"
    document = xc.claims("jain16")
    table = document.table[document.table["id"] == id].assign(needs=needs, metric="", k="", left="", right="")
    document = dataclasses.replace(document, table=table.reset_index(drop=True))
    effects, errors, rng = np.asarray(effects, float), np.asarray(errors, float), np.random.default_rng(seed)
    parts = []
    for repetition in range(repetitions):
        own, shared = rng.normal(size=effects.size), rng.normal()
        z = np.sqrt(1 - correlation) * own + np.sqrt(correlation) * shared
        found, sure = effects + errors * z, errors
        if needs == "mean":  # of the cells, with the error that drawing the test points once for all of them finds
            both = (1 - correlation) * (errors**2).sum() + correlation * errors.sum() ** 2
            found, sure = found.mean(keepdims=True), np.sqrt([both]) / errors.size
        # A thousandth of it is far from 1, where no difference of fractions lies.
        cells = pd.DataFrame({"model": np.arange(len(found)), "metric": "P", "k": 1, "stderr": sure / 1000})
        cells["value"] = found / 1000
        cells["p raw"] = 2 * normal(-np.abs(cells["value"] / cells["stderr"]).to_numpy())
        parts.append(evidence.cells({id: cells}).assign(source="real, live", dataset=f"draw {repetition}"))
    drawn = pd.concat(parts, ignore_index=True)
    row = document.verdicts(drawn, datasets=drawn["dataset"].unique().tolist()).iloc[0]
    return 100 * row[["holds", "never against", "cannot tell", "does not hold"]].astype(float) / repetitions


def size(repetitions: int) -> list[dict]:
    """With errors of 1: the worst that can be true or untrue of a claim."""
    cases = [
        ("", "one cell is 0, all others far above", lambda m: [0.0] + [NEVER] * (m - 1)),
        ("", "all cells are 0", lambda m: [0.0] * m),
        ("mean", "the mean is 0, half of the cells 2 above, half 2 below", lambda m: [2.0, -2.0] * (m // 2)),
        ("mean", "all cells are 0", lambda m: [0.0] * m),
    ]
    job = f"Claims that are not true, {repetitions} draws: how often each outcome, %"
    return [
        {"job": job, "asserts": needs or "each", "truth": truth, "cells": m}
        | {"correlation": correlation, **outcomes(needs, effects(m), np.ones(m), correlation, repetitions)}
        for needs, truth, effects in cases
        for m in (4, 12)
        for correlation in (0.0, 0.5, 0.9)
    ]


def power(repetitions: int) -> list[dict]:
    """With the differences that table 5 and table 6 of *calibration* print, and the errors of our 1,600 test points."""
    rows = []
    for number, metric, ways, needs, file in (
        (5, "ECE", ("isotonic", "platt"), "", "table5_isotonic_platt-differences"),
        (6, "P", ("isotonic-separate", "none"), "mean", "table6_joint_separate-changes"),
    ):
        printed = xc.published.table(f"calibration:table{number}")
        printed = printed[(printed["metric"] == metric) & (doubted(printed) == "")]
        wide = printed.pivot_table(index=["dataset", "method", "k"], columns="variant", values="value")
        gaps = (wide[ways[1]] - wide[ways[0]]).dropna()
        ours = pd.read_csv(paths.committed(f"figures/calibration/{file}.csv"))
        ours = ours[ours["metric"] == metric] if number == 5 else ours[ours["way"] == "separate, isotonic"]
        errors = 100 * (ours["high"] - ours["low"]).to_numpy() / 2 / 1.96
        for name, part in gaps.groupby("dataset"):
            some = np.resize(errors, part.size)
            row = {"job": f"Claims at printed differences, {repetitions} draws: how often each outcome, %"}
            row |= {"asserts": needs or "each", "printed": f"table {number}, {name}", "cells": part.size}
            row |= {
                "points": f"{part.min():.2f} to {part.max():.2f}",
                "errors": f"{some.min():.2f} to {some.max():.2f}",
            }
            rows += [row | {"correlation": c, **outcomes(needs, part, some, c, repetitions)} for c in (0.0, 0.5)]
    return rows


def run(quick: bool = False) -> list[dict]:
    """Both."""
    repetitions = 20 if quick else 1000
    return size(repetitions) + power(repetitions)
