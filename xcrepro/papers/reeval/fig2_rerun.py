"""Figure 2, rerun: who leads micro-F1, who leads macro-F1, and by more than chance?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from xcrepro.findings import Difference, Measured, agreement, corrected, count, numbers
from xcrepro.metrics import evaluate
from xcrepro.papers.reeval import _common as reeval
from xcrepro.papers.reeval._common import BASELINE, F1, Loaded, Tops

KEYS = ["metric", "dataset", "k", "method"]

check_parameters = reeval.check_parameters


def measure(loaded: Loaded, tops: Tops, ks: Sequence[int]) -> dict[tuple[str, int], dict[str, Measured]]:
    """Both averages of figure 2 for our models, with a jackknife over the test points.

    Parameters
    ----------
    loaded, tops, ks
        As for :func:`xcrepro.papers.reeval._common.runs`.

    Returns
    -------
    dict
        (dataset, k) -> ``micro_F1`` and ``macro_F1`` -> the numbers of all models, percent.
    """

    def averages(k: int):
        names = list(F1.values())
        return lambda Y, top: dict(zip(F1, 100 * evaluate(Y, top, (k,), metrics=names)["value"], strict=True))

    return {
        (title, k): reeval.measure(averages(k), ds.test.Y, models)
        for title, ds, k, models in reeval.runs(loaded, tops, ks)
    }


def compute(measured: Mapping[tuple[str, int], Mapping[str, Measured]]) -> pd.DataFrame:
    """The bars of figure 2 for our models.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.

    Returns
    -------
    DataFrame
        metric, dataset, k, method, value, error (its standard error), printed (percent; NaN where the paper has no such
        number).
    """
    rows = [
        (metric, title, k, method, value, found[metric].error(method))
        for metric in F1
        for (title, k), found in measured.items()
        for method, value in found[metric].values.items()
    ]
    found = pd.DataFrame(rows, columns=[*KEYS, "value", "error"])
    return found.merge(reeval.compute_printed_bars().rename(columns={"value": "printed"}), "left", on=KEYS)


def compute_leads(measured: Mapping[tuple[str, int], Mapping[str, Measured]], baseline: str = BASELINE) -> pd.DataFrame:
    """Each model against the baseline in both averages of figure 2.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    baseline : str
        One of the models.

    Returns
    -------
    DataFrame
        metric, dataset, k, method, difference (to the baseline, points), error, p (two-sided, Holm's correction over all of
        one metric), verdict (``above``, ``below``, ``not clear``). No rows where the baseline is alone.
    """
    rows = []
    for metric in F1:
        places = [(title, k, method) for (title, k), found in measured.items() for method in found[metric].values]
        places = [place for place in places if place[2] != baseline]
        for place, one in zip(places, _against(measured, metric, baseline), strict=True):
            rows.append((metric, *place, one.value, one.error, one.p, one.verdict))
    return pd.DataFrame(rows, columns=[*KEYS, "difference", "error", "p", "verdict"])


def _against(measured, metric: str, baseline: str) -> list[Difference]:
    """Every model minus the baseline, dataset by dataset, corrected together."""
    return corrected(
        found[metric].difference(method, baseline)
        for found in measured.values()
        for method in reeval.others(found[metric].values, baseline)
    )


def findings(measured: Mapping[tuple[str, int], Mapping[str, Measured]], baseline: str = BASELINE) -> list[str]:
    """What came out: who leads each average, whether it is the same model, and the baseline's place; the print beside.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    baseline : str
        One of the models.

    Returns
    -------
    list of str
    """
    said = []
    printed = reeval.compute_best(reeval.compute_printed_bars()).set_index("dataset")
    for (title, k), found in measured.items():
        leads = [found[metric].leader(f"{name}@{k}") for metric, name in F1.items()]
        text = f"{title}: {leads[0].text}; {leads[1].text}."
        if all(lead.clear for lead in leads):
            same = leads[0].name == leads[1].name
            text += f" The two averages name {'the same model' if same else 'two models'}."
        if title in printed.index and (row := printed.loc[title])["k"] == k and row["best micro_F1"] != "-":
            text += f" The paper prints {row['best micro_F1']} as best by micro-F1, {row['best macro_F1']} by macro-F1."
        said.append(text)
    if any(len(found["micro_F1"].values) > 1 for found in measured.values()):
        for metric, name in F1.items():
            said.append(count(_against(measured, metric, baseline), f"A model is above {baseline} in {name}") + ".")
    return said


def findings_recorded(
    measured: Mapping[tuple[str, int], Mapping[str, Measured]],
    recorded: Mapping[str, pd.DataFrame],
    baseline: str = BASELINE,
) -> list[str]:
    """Whether real data say the same, of each model against the baseline.

    Parameters
    ----------
    measured : mapping
        From :func:`measure`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`check`, as recorded.
    baseline : str
        One of the models.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`.
    """
    return [
        agreement(
            _against(measured, metric, baseline),
            numbers({name: table[table["metric"] == metric] for name, table in recorded.items()}, "method", "value"),
            f"{name} at each dataset's own k",
        )
        for metric, name in F1.items()
    ]


plot = reeval.plot_f1_bars
