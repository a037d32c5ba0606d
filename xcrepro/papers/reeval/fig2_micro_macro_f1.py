"""Figure 2 as far as the printed tables go: micro-F1 and macro-F1 of five methods."""

from __future__ import annotations

import functools

import pandas as pd

from xcrepro.papers.reeval._common import BASELINE, F1, compute_best, compute_printed_bars, leaders, plot_f1_bars

compute = compute_printed_bars
plot = functools.partial(plot_f1_bars, twin=False)


def findings(table: pd.DataFrame, baseline: str = BASELINE) -> list[str]:
    """What the printed bars say: of each dataset the best by either average and the baseline's place; what is not printed.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    baseline : str

    Returns
    -------
    list of str
    """
    drawn = table["value"].notna()
    said = [f"{drawn.sum()} of the figure's {len(table)} bars are printed in table 3."]
    for row in compute_best(table, baseline).to_dict("records"):
        if row["best micro_F1"] == "-":
            said.append(f"{row['dataset']}: no table has k = {row['k']}, so this part of the claim cannot be checked.")
            continue
        part = table[table["dataset"] == row["dataset"]]
        texts = []
        for metric, name in F1.items():
            values = part[part["metric"] == metric].set_index("method")["value"].sort_values(ascending=False)
            ahead = values.iloc[0] - values[values < values.iloc[0]].max()
            texts.append(
                f"by {name} {leaders(values)} is first by {ahead:.2f} points and {baseline} "
                f"{row[f'''{baseline}'s place, {metric}''']}"
            )
        same = "the same best" if row["best micro_F1"] == row["best macro_F1"] else "two different best"
        said.append(f"{row['dataset']}: {'; '.join(texts)}: {same}.")
    return said
