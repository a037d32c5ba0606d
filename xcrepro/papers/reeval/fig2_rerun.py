"""Figure 2, rerun: who leads micro-F1, who leads macro-F1, and by more than chance?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from xcrepro.metrics import evaluate, paired_bootstrap
from xcrepro.papers.reeval import _common as reeval
from xcrepro.papers.reeval._common import BASELINE, F1, Loaded, Tops

KEYS = ["metric", "dataset", "k", "method"]


def compute(loaded: Loaded, tops: Tops, ks: Sequence[int]) -> pd.DataFrame:
    """The bars of figure 2 for our models.

    Parameters
    ----------
    loaded, tops, ks
        As for :func:`xcrepro.papers.reeval._common.runs`.

    Returns
    -------
    DataFrame
        metric, dataset, k, method, value, printed (percent; NaN where the paper has no such number).
    """
    rows = []
    for title, ds, k, models in reeval.runs(loaded, tops, ks):
        for method, top in models.items():
            values = 100 * evaluate(ds.test.Y, top, (k,), metrics=list(F1.values()))["value"]
            rows += [(metric, title, k, method, value) for metric, value in zip(F1, values, strict=True)]
    found = pd.DataFrame(rows, columns=[*KEYS, "value"])
    found = pd.concat([found[found["metric"] == metric] for metric in F1])
    return found.merge(reeval.compute_printed_bars().rename(columns={"value": "printed"}), "left", on=KEYS)


def check(table: pd.DataFrame) -> pd.DataFrame:
    """:func:`xcrepro.papers.reeval._common.stable_models`, without the printed numbers, which are no result."""
    return reeval.stable_models(table).drop(columns="printed")


def compute_leads(
    loaded: Loaded, tops: Tops, ks: Sequence[int], baseline: str = BASELINE, samples: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Each model against the baseline in both averages of figure 2, with a paired bootstrap over the test points.

    Parameters
    ----------
    loaded, tops, ks
        As for :func:`xcrepro.papers.reeval._common.runs`.
    baseline : str
        One of the models.
    samples, seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        metric, dataset, k, method, difference (to the baseline, points), low, high (95 % of the samples, points), p
        (two-sided).
    """
    # Drawn with replacement, as the committed numbers were; the kit's own choice for macro-F1 is `halves`.
    rows, how = [], {"metrics": list(F1.values()), "samples": samples, "seed": seed, "method": "bootstrap"}
    for title, ds, k, models in reeval.runs(loaded, tops, ks):
        for method, top in reeval.others(models, baseline).items():
            found = paired_bootstrap(ds.test.Y, top, models[baseline], (k,), **how)
            for metric, one in zip(F1, found, strict=True):
                rows.append((metric, title, k, method, 100 * one.difference, 100 * one.low, 100 * one.high, one.p))
    return pd.DataFrame(rows, columns=[*KEYS, "difference", "low", "high", "p"])


plot = reeval.plot_f1_bars
