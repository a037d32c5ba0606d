"""Fig 6 from printed numbers: Renee trained with four losses, its calibration error against its precision."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks
from xcrepro.papers.calibration._common import printed_table
from xcrepro.repro import figures


def compute() -> pd.DataFrame:
    """Amazon-670K at k = 5, from appendix A and tables 6 and 7.

    Returns
    -------
    DataFrame
        name (loss or model), kind ("loss of Renee", "other model", "Renee after isotonic"), P@5, ECE@5 (percent), from.
        Squared hinge has neither number: the paper only plots it.
    """
    t = printed_table("appendixA/fig6")
    t["loss"] = t["method"].str.removeprefix("Renee (").str.removesuffix(" loss)")
    losses = t.pivot(index="loss", columns="metric", values="value").loc[t["loss"].unique(), ["P", "ECE"]]
    rows = [(name, "loss of Renee", p, ece, "appendix A") for name, p, ece in losses.itertuples()]
    after, before = (_at_5(7, "ECE", variant) for variant in ("isotonic", "none"))
    bce = losses.at["BCE", "P"]
    rows.append(("BCE, isotonic", "Renee after isotonic", bce, after["Renee"], "appendix A, table 7"))
    rows += [(name, "other model", p, before[name], "tables 6, 7") for name, p in _at_5(6, "P", "none").items()]
    return pd.DataFrame(rows, columns=["name", "kind", "P@5", "ECE@5", "from"])


def _at_5(number: int, metric: str, variant: str) -> pd.Series:
    t = printed_table(number)
    keep = (t["dataset"] == "Amazon-670K") & (t["k"] == 5) & (t["metric"] == metric) & (t["variant"] == variant)
    return t[keep].set_index("method")["value"]


def compute_claims(table: pd.DataFrame) -> pd.DataFrame:
    """Each loss against BCE.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        loss, P@5 minus BCE, ECE@5 minus BCE (percentage points), worse in both (``yes``, ``no`` or ``not stated``).
    """
    losses = table[table["kind"] == "loss of Renee"].set_index("name")[["P@5", "ECE@5"]]
    found = (losses - losses.loc["BCE"]).drop("BCE").add_suffix(" minus BCE")
    worse = ["not stated" if pd.isna(p) else "yes" if p < 0 < ece else "no" for p, ece in found.itertuples(index=False)]
    return found.assign(**{"worse in both": worse}).rename_axis("loss").reset_index()


def findings(table: pd.DataFrame) -> list[str]:
    """Each loss beside BCE, what isotonic regression does, and how far the printed numbers can be trusted.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    list of str
    """
    kinds = {kind: part.set_index("name") for kind, part in table.groupby("kind")}
    losses, others = kinds["loss of Renee"], kinds["other model"]
    stated, said = losses.dropna(), []
    best = stated["ECE@5"].idxmin(), stated["P@5"].idxmax()
    said.append(
        f"Of {len(stated)} losses with printed numbers, {best[0]} has the lowest ECE@5 ({stated.at[best[0], 'ECE@5']:.2f} %),"
        f" {best[1]} the highest P@5 ({stated.at[best[1], 'P@5']:.2f} %)."
    )
    for row in compute_claims(table).to_dict("records"):
        if row["worse in both"] == "not stated":
            said.append(f"{row['loss'].capitalize()}: plotted in the paper, its numbers stated nowhere.")
            continue
        verdict = "worse than BCE in both" if row["worse in both"] == "yes" else "not worse than BCE in both"
        changes = f"P@5 {row['P@5 minus BCE']:+.2f}, ECE@5 {row['ECE@5 minus BCE']:+.2f} points"
        said.append(f"{row['loss']} beside BCE: {changes}; {verdict}.")
    after = kinds["Renee after isotonic"].iloc[0]
    said.append(f"Isotonic regression, by table 7, takes Renee's ECE@5 to {after['ECE@5']:.2f} %.")
    low = losses["P@5"].idxmin()
    higher = others[others["P@5"] > losses.at[low, "P@5"]]
    if len(higher):
        name = higher["ECE@5"].idxmin()
        value = f"{name}'s, {higher.at[name, 'ECE@5']:.2f} % with P@5 {higher.at[name, 'P@5']:.2f} %"
        many = f"{len(higher)} of the {len(others)} other models have a higher P@5 than {low}"
        said.append(f"{many}; the lowest ECE@5 of them is {value}.")
    again, first = _at_5(7, "ECE", "none")["Renee"], losses.at["BCE", "ECE@5"]
    apart = f"Renee with BCE has ECE@5 {first:.2f} % in appendix A and {again:.2f} % in table 7"
    said.append(f"{apart}: of differences below {abs(first - again):.2f} points these numbers say nothing.")
    return said


_OTHERS = {"marker": "s", "color": "0.65", "markersize": 5}
_RENEE = {"marker": "o", "color": looks.INK, "markersize": 7}
_STYLES = {  # kind -> its marks, their words, where the names stand
    "other model": (_OTHERS, "other models, tables 6 and 7", (0, -11)),
    "loss of Renee": (_RENEE, "Renee by loss, appendix A", (0, 7)),
    "Renee after isotonic": (_RENEE | {"markerfacecolor": "white"}, "Renee after isotonic, table 7", (0, 7)),
}


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Fig 6: three of its four points, the other models of the paper behind them, and BCE after isotonic regression.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : Axes, optional
    """
    with figures.new(width=looks.NARROW, height=3.8, ax=ax) as (fig, ax):
        for kind, (style, words, shift) in _STYLES.items():
            part = table[table["kind"] == kind].dropna()
            ax.plot(part["P@5"], part["ECE@5"], linestyle="none", **style, label=words)
            for name, *at in part[["name", "P@5", "ECE@5"]].itertuples(index=False):
                looks.name(ax, name, at, shift, ha="center", color="0.4" if kind == "other model" else "black")
        ax.set(xlim=(27, 43), ylim=(-1, 31), xlabel="P@5, %  (right is better)", ylabel="ECE@5, %  (down is better)")
        looks.name(ax, "Squared hinge is missing: plotted in the paper, stated nowhere.", (27, 2), (4, 0), color="0.35")
        ax.legend(loc="upper left")
        looks.title(fig, "ECE@5 against P@5 by training loss, Amazon-670K (printed)")
        figures.draws(ax, x="P@5", y="ECE@5")
    return fig
