"""What the items on tables 3 and 4 and figure 2 of "Re-evaluating XMTC methods in tail label prediction" compute and draw.

All of it from the published numbers.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import published
from xcrepro.repro import figures

BASELINE, ATTENTION = "SVM", "AttentionXML"
TRANSFORMERS = ["X-Transformer", "APLC-XLNet", "LightXML"]
DATASETS = ["EURLex-4K", "Wiki10-31K", "AmazonCat-13K"]
METRICS = ("micro_F1", "macro_F1")  # the rows of figure 2
FIGURE_K = {"EURLex-4K": 5, "Wiki10-31K": 19, "AmazonCat-13K": 5}  # section 5 of the paper


def table(number: int) -> pd.DataFrame:
    """Table 3 (P, micro-F1, macro-F1) or 4 (nDCG, PSP) as printed: dataset, method, then a column a metric and k, percent."""
    return published.wide(f"reeval:table{number}").reset_index().drop(columns="variant")


def columns(rows: pd.DataFrame) -> list[str]:
    """The number columns of a table of published values."""
    return [name for name in rows.columns if "@" in name]


def leaders(rows: pd.DataFrame) -> pd.DataFrame:
    """The best method of each dataset in each column; a tie names all of them, in print order.

    One row a column of ``rows`` and dataset: dataset, column, best, value, ahead: of the next value below it, in points.
    """
    found = []
    for dataset, part in rows.groupby("dataset", sort=False):
        for name in columns(rows):
            values = part[name]
            top = values.max()
            found.append(
                {
                    "dataset": dataset,
                    "column": name,
                    "best": " = ".join(part.loc[values == top, "method"]),
                    "value": top,
                    "ahead": top - values[values < top].max(),
                }
            )
    return pd.DataFrame(found)


def _value(rows: pd.DataFrame, dataset: str, method: str, name: str) -> float:
    return float(rows.loc[(rows["dataset"] == dataset) & (rows["method"] == method), name].iloc[0])


def _above(
    rows: pd.DataFrame, pairs: list[tuple[str, str]], others: list[str], names: list[str]
) -> tuple[int, int, str]:
    """Each (dataset, method) against each of ``others`` in each column: how many are strictly above, of how many, the rest."""
    held, total, rest = 0, 0, []
    for dataset, method in pairs:
        for other in others:
            for name in names:
                mine, theirs = _value(rows, dataset, method, name), _value(rows, dataset, other, name)
                total += 1
                held += mine > theirs
                if not mine > theirs:
                    rest.append(f"{dataset} {name}: {method} {mine:.2f}, {other} {theirs:.2f}")
    return held, total, "; ".join(rest)


def claims() -> pd.DataFrame:
    """The paper's sentences that tables 3 and 4 can speak to, each counted out: claim, columns, holds, of, where not.

    ``holds`` of ``of`` comparisons of two printed numbers are strictly as the sentence says. Where the sentence is about
    k = 19 on Wiki10-31K, the three k in the tables stand in; the notebook says so.
    """
    t3, t4 = table(3), table(4)
    methods = list(dict.fromkeys(t3["method"]))
    micro, macro, psp = ([f"{metric}@{k}" for k in (1, 3, 5)] for metric in ("micro_F1", "macro_F1", "PSP"))

    def best(rows: pd.DataFrame, dataset: str, method: str, names: list[str]) -> tuple[int, int, str]:
        return _above(rows, [(dataset, method)], [other for other in methods if other != method], names)

    neural = [(dataset, method) for dataset in DATASETS for method in methods if method != BASELINE]
    psp_pairs = [
        ("EURLex-4K", "X-Transformer"),
        ("EURLex-4K", "APLC-XLNet"),
        ("Wiki10-31K", "APLC-XLNet"),
        ("AmazonCat-13K", "X-Transformer"),
    ]
    checks = [
        (
            "5.1: every neural model is above the SVM in micro-F1",
            "micro-F1@1,3,5",
            _above(t3, neural, [BASELINE], micro),
        ),
        ("5.1: APLC-XLNet is best on EURLex-4K (k = 5)", "micro-F1@5", best(t3, "EURLex-4K", "APLC-XLNet", micro[2:])),
        ("5.1: APLC-XLNet is best on Wiki10-31K", "micro-F1@1,3,5", best(t3, "Wiki10-31K", "APLC-XLNet", micro)),
        (
            "5.1: X-Transformer is best on AmazonCat-13K (k = 5)",
            "micro-F1@5",
            best(t3, "AmazonCat-13K", "X-Transformer", micro[2:]),
        ),
        ("5.2: the SVM is best on Wiki10-31K", "macro-F1@1,3,5", best(t3, "Wiki10-31K", BASELINE, macro)),
        (
            "5.2: the SVM beats the transformers on AmazonCat-13K (k = 5)",
            "macro-F1@5",
            _above(t3, [("AmazonCat-13K", BASELINE)], TRANSFORMERS, macro[2:]),
        ),
        ("5.2: AttentionXML is best on EURLex-4K", "macro-F1@1,3,5", best(t3, "EURLex-4K", ATTENTION, macro)),
        ("5.2: AttentionXML is best on AmazonCat-13K", "macro-F1@1,3,5", best(t3, "AmazonCat-13K", ATTENTION, macro)),
        ("D: the transformers it names are above the SVM in PSP", "PSP@1,3,5", _above(t4, psp_pairs, [BASELINE], psp)),
    ]
    rows = [{"claim": c, "columns": n, "holds": h, "of": of, "where not": rest} for c, n, (h, of, rest) in checks]
    return pd.DataFrame(rows)


def same_order(t3: pd.DataFrame | None = None, t4: pd.DataFrame | None = None) -> pd.DataFrame:
    """Do P@k and nDCG@k rank the methods alike? The paper says they are the same measure. None: the printed tables.

    For each dataset and k: best by each, and how many pairs of methods they put in opposite order, and how many
    one of them ties and the other does not.
    """
    t3, t4 = table(3) if t3 is None else t3, table(4) if t4 is None else t4
    found = []
    for dataset in dict.fromkeys(t3["dataset"]):
        for k in (1, 3, 5):
            p = t3.loc[t3["dataset"] == dataset].set_index("method")[f"P@{k}"]
            n = t4.loc[t4["dataset"] == dataset].set_index("method")[f"N@{k}"].loc[p.index]
            i, j = np.triu_indices(len(p), 1)
            signs = [np.sign(np.round(v.to_numpy()[i] - v.to_numpy()[j], 6)) for v in (p, n)]
            found.append(
                {
                    "dataset": dataset,
                    "k": k,
                    "best by P": " = ".join(p.index[p == p.max()]),
                    "best by nDCG": " = ".join(n.index[n == n.max()]),
                    "opposite": int((signs[0] * signs[1] < 0).sum()),
                    "tied in one": int(((signs[0] == 0) != (signs[1] == 0)).sum()),
                }
            )
    return pd.DataFrame(found)


# ---------------------------------------------------------------- fig 2


def bars() -> pd.DataFrame:
    """The thirty bars of figure 2: metric, dataset, k, method, value; NaN for the ten that no table has.

    The figure takes k = 19 on Wiki10-31K; tables 3 and 4 stop at k = 5.
    """
    printed = table(3)
    rows = []
    for metric in METRICS:
        for dataset in DATASETS:
            k = FIGURE_K[dataset]
            for _, row in printed[printed["dataset"] == dataset].iterrows():
                value = row.get(f"{metric}@{k}", np.nan)
                rows.append({"metric": metric, "dataset": dataset, "k": k, "method": row["method"], "value": value})
    return pd.DataFrame(rows)


def best_bars(data: pd.DataFrame, baseline: str = BASELINE) -> pd.DataFrame:
    """The best of each dataset by micro-F1 and by macro-F1, and the baseline's place in each; ``-`` where there are no bars."""
    found = []
    for dataset, part in data.groupby("dataset", sort=False):
        row = {"dataset": dataset, "k": int(part["k"].iloc[0])}
        for metric in METRICS:
            bar = part[part["metric"] == metric].set_index("method")["value"].dropna()
            row[f"best {metric}"] = bar.idxmax() if len(bar) else "-"
            place = f"{int((bar > bar[baseline]).sum()) + 1} of {len(bar)}" if len(bar) else "-"
            row[f"{baseline}'s place, {metric}"] = place
        found.append(row)
    return pd.DataFrame(found)


_FILL = {
    "SVM": ("#1b2a49", ""),
    "X-Transformer": ("#ffffff", "////"),
    "APLC-XLNet": ("#b9cfe8", ""),
    "LightXML": ("#ffffff", "...."),
    "AttentionXML": ("#e39a2d", ""),
}


def plot_bars(data: pd.DataFrame) -> Figure:
    """Figure 2 as far as the tables go: micro-F1 above, macro-F1 below; an empty panel says what is missing."""
    titles = {"micro_F1": "micro-F1@k, %", "macro_F1": "macro-F1@k, %"}
    with figures.new(width=8.6, height=4.6, ncols=3, nrows=2, sharey="row") as (fig, axes):
        for metric, line in zip(titles, axes, strict=True):
            for dataset, ax in zip(DATASETS, line, strict=True):
                part = data[(data["metric"] == metric) & (data["dataset"] == dataset)].reset_index(drop=True)
                ax.set_title(f"{dataset}, k = {part['k'].iloc[0]}", loc="left")
                ax.set_xticks([])
                ax.grid(axis="x", visible=False)
                ax.margins(y=0.13)
                if part["value"].isna().all():
                    ax.text(
                        0.5,
                        0.5,
                        "not tabulated:\nthe paper's tables\nstop at k = 5",
                        transform=ax.transAxes,
                        ha="center",
                        va="center",
                        color="0.35",
                    )
                    continue
                for place, row in part.iterrows():
                    color, hatch = _FILL[row["method"]]
                    ax.bar(place, row["value"], 0.8, color=color, hatch=hatch, edgecolor="black", label=row["method"])
                    ax.text(place, row["value"], f"{row['value']:.1f}", ha="center", va="bottom", fontsize=7)
            line[0].set_ylabel(titles[metric])
        handles, names = axes[0, 0].get_legend_handles_labels()
        fig.legend(handles, names, loc="outside lower center", ncols=len(names))
        fig.suptitle(_title(best_bars(data)), x=0.01, ha="left", fontsize=10)
    return fig


def _title(best: pd.DataFrame) -> str:
    """The finding, where it is one; the bare name of the figure otherwise."""
    seen = best[best["best micro_F1"] != "-"]
    places = {metric: [text.split(" of ") for text in seen[f"SVM's place, {metric}"]] for metric in METRICS}
    last = {metric: [place == total for place, total in pairs] for metric, pairs in places.items()}
    winners = set(seen["best macro_F1"])
    if set(seen["best micro_F1"]) <= set(TRANSFORMERS) and len(winners) == 1 and not winners & set(TRANSFORMERS):
        ending = "; the SVM is last only by micro-F1" if all(last["micro_F1"]) and not any(last["macro_F1"]) else ""
        return f"Transformers lead by micro-F1, {winners.pop()} by macro-F1{ending}"
    return "Micro-F1 and macro-F1 of the five methods"
