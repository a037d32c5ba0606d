"""What the item on tables 3 and 4 of Jain et al. 2016 computes and draws, from the published numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import published
from xcrepro.repro import figures

OURS = ["PfastXML", "PfastreXML"]  # the paper's own methods; the second re-ranks the first
STATE_OF_THE_ART = ["SLEEC", "FastXML"]  # whom the paper compares with by name
PRINTED = {"PSN": "N", "PSP": "P", "Cov_norm": "C"}  # our metric name -> the paper's column


def table(number: int) -> pd.DataFrame:
    """Table 3 (nDCG and precision, propensity-scored) or 4 (coverage): dataset, method, columns named as printed, percent."""
    parts = [published.wide(f"jain16:table{number}{letter}") for letter in "abcdef"]
    rows = pd.concat([part.reset_index().drop(columns="variant") for part in parts], ignore_index=True)
    return rows.rename(columns=_printed_name)


def _printed_name(name: str) -> str:
    metric, _, k = name.partition("@")
    return f"{PRINTED[metric]}{k}" if k else name


def columns(rows: pd.DataFrame) -> list[str]:
    """The number columns of a table."""
    return [name for name in rows.columns if name not in ("dataset", "method")]


def leaders(rows: pd.DataFrame) -> pd.DataFrame:
    """Who leads: for each dataset how many columns PfastreXML leads, the least and largest lead over the next method.

    Columns dataset, methods, columns, led, least lead, least at, largest lead, largest at (points; ``at`` names the column).
    """
    found = []
    for dataset, part in rows.groupby("dataset", sort=False):
        part = part.set_index("method")[columns(rows)]
        lead = part.loc["PfastreXML"] - part.drop(index="PfastreXML").max()
        found.append(
            {
                "dataset": dataset,
                "methods": len(part),
                "columns": lead.size,
                "led": int((lead > 0).sum()),
                "least lead": lead.min(),
                "least at": lead.idxmin(),
                "largest lead": lead.max(),
                "largest at": lead.idxmax(),
            }
        )
    return pd.DataFrame(found)


def gains(rows: pd.DataFrame) -> pd.DataFrame:
    """PfastreXML beside the best of SLEEC and FastXML, and beside the best of all methods but the paper's two.

    One row a dataset and column of table 3: dataset, column, PfastreXML, best named, named (its number), gain (points),
    gain % (relative), best other, gain on other (points).
    """
    found = []
    for dataset, part in rows.groupby("dataset", sort=False):
        part = part.set_index("method")
        named = part.loc[[method for method in STATE_OF_THE_ART if method in part.index]]
        other = part.drop(index=OURS)
        for name in columns(rows):
            ours = part.loc["PfastreXML", name]
            found.append(
                {
                    "dataset": dataset,
                    "column": name,
                    "PfastreXML": ours,
                    "best named": named[name].idxmax(),
                    "named": named[name].max(),
                    "gain": ours - named[name].max(),
                    "gain %": 100 * (ours / named[name].max() - 1),
                    "best other": other[name].idxmax(),
                    "gain on other": ours - other[name].max(),
                }
            )
    return pd.DataFrame(found)


def range_of_gains(data: pd.DataFrame) -> pd.DataFrame:
    """The gains of each dataset over its columns: least, where, largest, where, in points; the relative ones in percent."""
    found = []
    for dataset, part in data.groupby("dataset", sort=False):
        part = part.set_index("column")
        found.append(
            {
                "dataset": dataset,
                "least gain": part["gain"].min(),
                "least at": part["gain"].idxmin(),
                "largest gain": part["gain"].max(),
                "largest at": part["gain"].idxmax(),
                "least %": part["gain %"].min(),
                "largest %": part["gain %"].max(),
            }
        )
    return pd.DataFrame(found)


def claims() -> pd.DataFrame:
    """The paper's sentences on tables 3 and 4, each counted out: claim, holds, of, where not."""
    t3, t4 = table(3), table(4)

    def above(rows: pd.DataFrame, method: str, others: list[str] | None = None) -> tuple[int, int, str]:
        held, total, rest = 0, 0, []
        for dataset, part in rows.groupby("dataset", sort=False):
            part = part.set_index("method")
            rivals = [name for name in part.index if name not in OURS and (others is None or name in others)]
            for name in columns(rows):
                for rival in rivals:
                    total += 1
                    held += part.loc[method, name] > part.loc[rival, name]
                    if not part.loc[method, name] > part.loc[rival, name]:
                        rest.append(
                            f"{dataset} {name}: {part.loc[method, name]:.2f}, {rival} {part.loc[rival, name]:.2f}"
                        )
        return held, total, "; ".join(rest)

    def over_first() -> tuple[int, int, str]:
        sets = [part.set_index("method")[columns(t3)] for _, part in t3.groupby("dataset", sort=False)]
        ahead = np.concatenate([part.loc["PfastreXML"] > part.loc["PfastXML"] for part in sets])
        return int(ahead.sum()), len(ahead), ""

    checks = [
        ("table 3: PfastXML is above every baseline", above(t3, "PfastXML")),
        ("table 3: PfastreXML is above every baseline", above(t3, "PfastreXML")),
        ("table 3: PfastreXML is above PfastXML", over_first()),
        ("table 4: PfastreXML covers more than SLEEC and FastXML", above(t4, "PfastreXML", STATE_OF_THE_ART)),
        ("table 4: and more than 1-vs-All, where it is listed", above(t4, "PfastreXML", ["1-vs-All"])),
    ]
    return pd.DataFrame([{"claim": c, "holds": h, "of": of, "where not": rest} for c, (h, of, rest) in checks])


def falling_coverage() -> pd.DataFrame:
    """Cells of table 4 below the cell to their left: dataset, method, column, value, before (the smaller k's)."""
    found = []
    for _, row in table(4).iterrows():
        for before, name in (("C1", "C3"), ("C3", "C5")):
            if row[name] < row[before]:
                found.append((row["dataset"], row["method"], name, row[name], row[before]))
    return pd.DataFrame(found, columns=["dataset", "method", "column", "value", "before"])


def plot_gains(data: pd.DataFrame) -> Figure:
    """PfastreXML's gain in P1, P3, P5 on the better of SLEEC and FastXML, a line a dataset."""
    shown = data[data["column"].isin(["P1", "P3", "P5"])]
    names = list(dict.fromkeys(shown["dataset"]))[::-1]
    marks = {"P1": ("o", "#1b2a49"), "P3": ("s", "#2f7f79"), "P5": ("^", "#e39a2d")}
    with figures.new(width=6.6, height=3.0) as (fig, ax):
        for place, name in enumerate(names):
            part = shown[shown["dataset"] == name]
            ax.plot([part["gain"].min(), part["gain"].max()], [place, place], color="0.6", linestyle="-", linewidth=1)
        for column, (shape, color) in marks.items():
            part = shown[shown["column"] == column].set_index("dataset").loc[names]
            style = {"linestyle": "none", "markersize": 6, "markeredgecolor": "black", "markeredgewidth": 0.5}
            ax.plot(part["gain"], range(len(names)), shape, color=color, label=column, **style)
        ax.axvline(0, color="black", linewidth=0.8, linestyle="-")
        ax.set_yticks(range(len(names)), names)
        ax.margins(y=0.12)
        ax.set_xlabel("gain on the better of SLEEC and FastXML, points of propensity-scored precision")
        low, high = shown["gain"].min(), shown["gain"].max()
        ax.set_title(
            f"PfastreXML gains everywhere, {low:.1f} to {high:.1f} points, and how many depends on k", loc="left"
        )
        ax.legend(title="column", loc="lower right")
    return fig
