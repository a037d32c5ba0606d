"""Tables 3 and 4, rerun: averages over points and over labels, five models on three datasets."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from xcrepro.inputs import ranked
from xcrepro.papers.reeval import _common as reeval
from xcrepro.papers.reeval._common import BASELINE, COMPLETE, KS, METRICS, Loaded, Tops, pair_signs


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
        dataset, method, P@1 ... macro_F1@5, N@1 ... PSP@5 (percent); of twins, behind each P@k and N@k the same on the
        complete truth (:func:`xcrepro.inputs.ranked.compare`), ``P@1 complete``; NaN for real data beside a twin.
    """
    printed_as, parts = {"model": "method"}, []
    for code, name in METRICS.items():
        printed_as |= {f"{name}@{k}{end}": f"{code}@{k}{end}" for k in KS for end in ("", COMPLETE)}
    for title, models in tops.items():
        part = ranked.compare(loaded[title], models, list(METRICS.values()), KS)
        part = part.rename(columns=printed_as)
        part.insert(0, "dataset", title)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


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
        for column in paper.columns.drop(["dataset", "method"]):
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
            rows.append({"dataset": title, "k": k} | _opposite(part, part[f"macro_F1@{k}"], METRICS, k))
    return pd.DataFrame(rows).drop(columns="macro_F1")


def compute_opposite_to_complete(found: pd.DataFrame) -> pd.DataFrame:
    """Does PSP, made for missing labels, order the models as P on the complete truth does, and better than P?

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        dataset, k, P, PSP: how many pairs of models each puts in the opposite order of P@k on the complete truth; pairs
        (how many there are). A row a twin and k.
    """
    rows = []
    for title, part in found.groupby("dataset", sort=False):
        for k in KS:
            complete = part.get(f"P@{k}{COMPLETE}")
            if complete is not None and complete.notna().all():
                rows.append({"dataset": title, "k": k} | _opposite(part, complete, ("P", "PSP"), k))
    return pd.DataFrame(rows)


def _opposite(part: pd.DataFrame, reference: pd.Series, metrics: Iterable[str], k: int) -> dict[str, int]:
    """How many pairs of models each metric at k puts in the opposite order of ``reference``, and how many there are."""
    signs = pair_signs(reference)
    counts = {metric: (signs * pair_signs(part[f"{metric}@{k}"]) < 0).sum() for metric in metrics}
    return counts | {"pairs": signs.size}
