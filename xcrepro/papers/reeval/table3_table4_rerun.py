"""Tables 3 and 4, rerun: averages over points and over labels, five models on three datasets."""

from __future__ import annotations

import pandas as pd

from xcrepro.inputs import datasets
from xcrepro.metrics import evaluate
from xcrepro.papers.reeval import _common as reeval
from xcrepro.papers.reeval._common import BASELINE, KS, METRICS, Loaded, Tops, pair_signs


def compute(loaded: Loaded, tops: Tops) -> pd.DataFrame:
    """The columns of tables 3 and 4 of each model.

    As the paper defines them: macro-F1 over all labels of the dataset, 0 for one never predicted; nDCG with the ideal
    of min(k, labels of the point); PSP as the published ratio, with propensities from the train counts.

    Parameters
    ----------
    loaded : mapping of str to Dataset
        Name -> dataset.
    tops : mapping of str to mapping of str to TopK
        Name -> model -> predictions for the test points.

    Returns
    -------
    DataFrame
        dataset, method, P@1 ... macro_F1@5, N@1 ... PSP@5 (percent).
    """
    rows = []
    for title, models in tops.items():
        ds = loaded[title]
        for method, top in models.items():
            found = evaluate(ds.test.Y, top, KS, datasets.weights(ds), metrics=list(METRICS.values()))
            names = [f"{printed}@{k}" for printed in METRICS for k in KS]
            rows.append({"dataset": title, "method": method, **dict(zip(names, 100 * found["value"], strict=True))})
    return pd.DataFrame(rows)


check = reeval.stable_models


def compare_with_printed(found: pd.DataFrame) -> pd.DataFrame:
    """The one method that the paper's tables 3 and 4 and we have, and the best of each.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        dataset, column, then of ours (``here``) and of the paper (``printed``): the SVM's value (percent), best
        (text), ahead (points before the SVM; 0 where that is the best). Datasets that the paper does not have, or
        where we have no SVM, are left out.
    """
    paper, rows = reeval.compute_printed(), []
    for title, part in found.groupby("dataset", sort=False):
        sides = {"here": part.set_index("method"), "printed": paper[paper["dataset"] == title].set_index("method")}
        if any(BASELINE not in side.index for side in sides.values()):
            continue
        for column in found.columns.drop(["dataset", "method"]):
            row = {"dataset": title, "column": column}
            for word, side in sides.items():
                values, base = side[column], side.at[BASELINE, column]
                row |= {f"{BASELINE} {word}": base, f"best {word}": reeval.leaders(values)}
                row[f"ahead {word}"] = values.max() - base
            rows.append(row)
    return pd.DataFrame(rows)


def compute_opposite_pairs(found: pd.DataFrame) -> pd.DataFrame:
    """How many pairs of models each metric puts in the opposite order of macro-F1 at the same k.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        dataset, k, a count a metric, pairs (how many there are). A pair that either metric ties is not counted as
        opposite.
    """
    rows = []
    for title, part in found.groupby("dataset", sort=False):
        for k in KS:
            reference = pair_signs(part[f"macro_F1@{k}"])
            counts = {metric: (reference * pair_signs(part[f"{metric}@{k}"]) < 0).sum() for metric in METRICS}
            rows.append({"dataset": title, "k": k, **counts, "pairs": reference.size})
    return pd.DataFrame(rows).drop(columns="macro_F1")
