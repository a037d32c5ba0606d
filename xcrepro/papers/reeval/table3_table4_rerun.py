"""Tables 3 and 4, rerun: averages over points and over labels, five models on three datasets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from xcrepro.findings import Measured, agreement, corrected, numbers
from xcrepro.inputs import datasets, ranked
from xcrepro.metrics import evaluate
from xcrepro.papers.reeval import _common as reeval
from xcrepro.papers.reeval._common import BASELINE, COMPLETE, KS, METRICS, Loaded, Tops, pair_signs

check_parameters = reeval.check_parameters

ByColumn = Mapping[str, Mapping[str, Measured]]
"""Dataset -> column of the tables (``macro_F1@5``) -> the numbers of all models, percent."""


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


def measure(loaded: Loaded, tops: Tops) -> ByColumn:
    """The columns of :func:`compute` with a jackknife over the test points.

    Parameters
    ----------
    loaded, tops : mapping
        As for :func:`compute`.

    Returns
    -------
    dict of str to dict of str to Measured
        Those on a twin's complete truth among them, of P alone.
    """
    found = {}
    for title, models in tops.items():
        ds, inverse = loaded[title], datasets.weights(loaded[title])
        names = [f"{code}@{k}" for code in METRICS for k in KS]
        found[title] = reeval.measure(
            lambda Y, top, i=inverse, n=names: _columns(Y, top, i, METRICS, n), ds.test.Y, models
        )
        if (truth := datasets.complete(ds)) is not None:
            names = [f"P@{k}{COMPLETE}" for k in KS]
            found[title] |= reeval.measure(lambda Y, top, n=names: _columns(Y, top, None, {"P": "P"}, n), truth, models)
    return found


def _columns(Y, top, inverse, metrics: Mapping[str, str], names: list[str]) -> dict[str, float]:
    values = 100 * evaluate(Y, top, KS, inverse, metrics=list(metrics.values()))["value"]
    return dict(zip(names, values, strict=True))


def compute_errors(measured: ByColumn) -> pd.DataFrame:
    """The standard errors of the columns of tables 3 and 4, in points.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.

    Returns
    -------
    DataFrame
        dataset, method, P@1 ... PSP@5.
    """
    rows = [
        {"dataset": title, "method": method}
        | {name: one.error(method) for name, one in found.items() if not name.endswith(COMPLETE)}
        for title, found in measured.items()
        for method in next(iter(found.values())).values
    ]
    return pd.DataFrame(rows)


def with_printed(found: pd.DataFrame, number: int) -> pd.DataFrame:
    """One of the two tables with all printed rows of the same datasets behind ours.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.
    number : {3, 4}

    Returns
    -------
    DataFrame
        dataset, from (``here`` or ``printed``), method, then the columns of the table as the paper has them.
    """
    paper, parts = reeval.compute_printed(), []
    for title, part in found.groupby("dataset", sort=False):
        parts += [part.assign(**{"from": "here"}), paper[paper["dataset"] == title].assign(**{"from": "printed"})]
    both = reeval.only_table(pd.concat(parts, ignore_index=True), number).filter(regex=f"^(?!.*{COMPLETE})")
    both.insert(1, "from", pd.concat(parts, ignore_index=True)["from"])
    return both


def compute_opposite_pairs(measured: ByColumn, reference: str = "macro_F1") -> pd.DataFrame:
    """How many pairs of models each metric puts in the opposite order of another at the same k, and how many clearly.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    reference : str
        A metric of the two tables, as they print it (``macro_F1``, ``P``), or ``"P complete"``: of twins alone.

    Returns
    -------
    DataFrame
        dataset, k, pairs (how many there are), then two columns a metric, its name and its name and ``clearly``: pairs in the
        opposite order, and those of them that both metrics tell apart by more than chance (Holm's correction over the pairs).
        A pair that either metric ties is not counted as opposite. No rows where there is one model.
    """
    base, end = (reference.removesuffix(COMPLETE), COMPLETE) if reference.endswith(COMPLETE) else (reference, "")
    metrics = [code for code in METRICS if code != reference] if not end else ["P", "PSP"]
    rows = []
    for title, found in measured.items():
        for k in KS:
            if f"{base}@{k}{end}" not in found or len(found[f"P@{k}"].values) < 2:
                continue
            truth = _verdicts(found[f"{base}@{k}{end}"])
            row = {"dataset": title, "k": k, "pairs": truth[0].size}
            for code in metrics:
                signs, clear = _verdicts(found[f"{code}@{k}"])
                opposite = signs * truth[0] < 0
                row |= {code: int(opposite.sum()), f"{code} clearly": int((opposite & clear & truth[1]).sum())}
            rows.append(row)
    return pd.DataFrame(rows)


def _verdicts(one: Measured) -> tuple[np.ndarray, np.ndarray]:
    """Of every pair of models which has more, and whether by more than chance."""
    pairs = corrected(one.difference(a, b) for a, b in itertools.combinations(one.values, 2))
    return pair_signs(pd.Series(one.values)), np.array([pair.clear for pair in pairs])


def findings(measured: ByColumn) -> list[str]:
    """What came out: the leaders at k = 5 by P, macro-F1 and PSP, and which metrics order the models clearly otherwise.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.

    Returns
    -------
    list of str
    """
    said, k = [], KS[-1]
    for title, found in measured.items():
        leads = [found[f"{code}@{k}"].leader(f"{METRICS[code]}@{k}").text for code in ("P", "macro_F1", "PSP")]
        said.append(f"{title}: {'; '.join(leads)}.")
    against = compute_opposite_pairs(measured)
    if len(against):
        total = against["pairs"].sum()
        said.append(
            f"Of {total} pairs of models (datasets and k together) P puts {against['P'].sum()} in the opposite order of "
            f"macro-F1, {against['P clearly'].sum()} of them clearly by both; PSP {against['PSP'].sum()}, "
            f"{against['PSP clearly'].sum()} clearly."
        )
        order = compute_opposite_pairs(measured, "P")
        said.append(
            f"nDCG puts {order['N'].sum()} of these pairs in the opposite order of P, {order['N clearly'].sum()} of them "
            f"clearly by both. The paper calls the two equivalent; they are equal by definition at k = 1 alone."
        )
    complete = compute_opposite_pairs(measured, f"P{COMPLETE}")
    if len(complete):
        said.append(
            f"Against P on the twins' complete truth, {complete['pairs'].sum()} pairs: P on the observed truth has "
            f"{complete['P'].sum()} in the opposite order ({complete['P clearly'].sum()} clearly), PSP {complete['PSP'].sum()} "
            f"({complete['PSP clearly'].sum()} clearly)."
        )
    return said


def findings_recorded(measured: ByColumn, recorded: Mapping[str, pd.DataFrame]) -> list[str]:
    """Whether real data say the same, by P@5 and by macro-F1@5.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    recorded : mapping of str to DataFrame
        Dataset -> what is recorded of it (the first table).

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    return [
        agreement(
            [pair for found in measured.values() for pair in found[f"{code}@{KS[-1]}"].pairs()],
            numbers(recorded, "method", f"{code}@{KS[-1]}"),
            f"{METRICS[code]}@{KS[-1]}",
        )
        for code in ("P", "macro_F1")
    ]


def compare_with_printed(found: pd.DataFrame) -> list[str]:
    """The one method that the paper's tables and we may both have, the SVM: a sentence a dataset.

    Parameters
    ----------
    found : DataFrame
        From :func:`compute`.

    Returns
    -------
    list of str
        None for a dataset that the paper does not have, or where we have no SVM.
    """
    paper, said = reeval.compute_printed().set_index(["dataset", "method"]), []
    for row in found[found["method"] == BASELINE].to_dict("records"):
        if (row["dataset"], BASELINE) in paper.index:
            there = paper.loc[(row["dataset"], BASELINE)]
            numbers = [
                f"{name}@5 {row[code + '@5']:.1f} here, {there[code + '@5']:.1f} printed"
                for code, name in METRICS.items()
            ]
            said.append(f"{row['dataset']}, {BASELINE}: {'; '.join(numbers)}.")
    return said
