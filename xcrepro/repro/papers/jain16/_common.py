"""What several items of Jain et al. 2016 share: constants, counts along a logarithm, tables 3 and 4 as printed."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from xcrepro.core.errors import ArgumentError
from xcrepro.repro import looks, published

KS = (1, 3, 5)
K = 3
"""The place of fig. 3 and theorem 4.3."""
REFERENCE, B = 0.55, 1.5
"""A of fig. 3a's reference curve; the paper does not say which B its curves have, this is its default beside A = 0.55."""
MIDDLE = (0.025, 0.975)
"""The quantiles around the middle 95 % of draws."""
MODELS = ("Popularity", "1-vs-All", "DiSMEC", "PLT", "FastXML", "PfastXML", "PfastreXML")
"""The baselines shown: all five of the paper's that this kit has, and two that came later (DiSMEC, PLT)."""
PAPER = {"Wikipedia": "wikilshtc-325k", "Amazon": "amazon-670k"}
"""What the paper calls a dataset in figs. 1 and 2 -> the registry's name of the dataset of table 2 that it stands for."""
DOCUMENTS = 19_314
"""How many points the committed counts of EURLex-4K's labels are of: all of them, train and test."""
PRINTED = {"PSN": "N", "PSP": "P", "Cov_norm": "C"}
"""The record's name of a metric -> the paper's column."""
LOOKS = {
    "scored": ("propensity-scored, observed truth", looks.Look(looks.INK, "o", "-")),
    "plain": ("plain, observed truth", looks.Look(looks.AMBER, "s", "--")),
}
"""Estimate -> its name in a legend and its look."""


def log_spaced(top: int, per_decade: int) -> np.ndarray:
    """Whole numbers from 1 to ``top``, rising, about ``per_decade`` to a factor of ten, each once."""
    return np.unique(np.round(np.geomspace(1, top, round(per_decade * math.log10(top)) + 1)).astype(np.int64))


def check_draws(draws: int) -> None:
    """ArgumentError for too few draws to have :data:`MIDDLE` in them."""
    if draws < 40:
        raise ArgumentError("draws", "must be 40 or more, for 2.5 % on either side", draws)


def read_printed(number: int) -> pd.DataFrame:
    """Printed table 3 or 4, all parts, percent: dataset, method, then the columns as printed (N1 ... P5, C1 to C5)."""
    parts = [published.wide(f"jain16:table{number}{letter}").droplevel("variant").reset_index() for letter in "abcdef"]
    names = {f"{ours}@{k}": f"{theirs}{k}" for ours, theirs in PRINTED.items() for k in KS}
    return pd.concat(parts, ignore_index=True).rename(columns=names)
