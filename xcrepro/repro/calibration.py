"""What the items of "Labels in Extremes: How Well Calibrated are Extreme Multi-label Classifiers?" compute and draw.

All of it from the paper's printed numbers. ``printed`` is the text on the page, ``value`` what we read it as; a claim is
counted over both, so that one sees where a reading decides it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from xcrepro import published
from xcrepro.data import registry
from xcrepro.repro import figures

# ---------------------------------------------------------------- tables 1 to 8

TABLES = (1, 2, 3, 4, 5, 6, 7, 8)
_VARIANT = {"none": "", "isotonic": " I", "platt": " P", "isotonic-separate": " I", "platt-separate": " P"}
_MARKERS = ("o", "s", "^", "D", "v", "P")
_COLOURS = ("#1b2a49", "#96301c", "#2f7f79", "#a07fc0", "#e39a2d")


def table(number: int | str) -> pd.DataFrame:
    """One printed table as :func:`xcrepro.published.table` gives it, plus ``on page``: the printed text as a number.

    ``number`` is the table's, or the rest of the source's name: ``"appendixA/fig6"``. ``variant`` is the calibration:
    ``"none"``, ``"isotonic"``, ``"platt"``, or the last two with ``-separate``, fitted for each rank of the top k alone.
    """
    name = f"table{number}" if isinstance(number, int) else number
    found = published.table(f"calibration:{name}")
    return found.assign(
        **{
            "variant": found["variant"].replace("", "none"),
            "on page": pd.to_numeric(found["printed"].str.replace(",", ""), errors="coerce"),
        }
    )


def cell(printed: str, value: float, reading: str) -> str:
    """A cell as the page has it, with our reading in brackets where it differs or is in doubt.

    >>> cell("1.79", 17.9, "corrected"), cell("1.60", 11.6, "uncertain"), cell("9.79", 9.79, "uncertain")
    ('1.79 [17.9]', '1.60 [11.6?]', '9.79 [?]')
    >>> cell("18.45", float("nan"), "uncertain"), cell("12.3", 12.3, "as printed"), cell("", float("nan"), "as printed")
    ('18.45 [unknown]', '12.3', '-')
    """
    if not printed:
        return "-"
    if reading == "as printed":
        return printed
    if pd.isna(value):
        return f"{printed} [unknown]"
    read = "" if float(printed.replace(",", "")) == value else f"{value:,.10g}"
    return f"{printed} [{read}{'?' if reading == 'uncertain' else ''}]"


def laid_out(number: int) -> pd.DataFrame:
    """A table as the page lays it out, in :func:`cell`'s texts; "-I" and "-P" mark isotonic and Platt, as in print."""
    t = table(number)
    text = [cell(*row) for row in zip(t["printed"], t["value"], t["reading"], strict=True)]
    at = [f"@{k}" if pd.notna(k) else "" for k in t["k"]]
    short = t["variant"].map(_VARIANT).fillna("")
    if number in (1, 3):
        rows, columns = {"dataset" if number == 3 else "x": t["dataset"]}, t["metric"]
    elif number in (5, 6):
        rows = {"dataset": t["dataset"], "method": t["method"]}
        columns = t["metric"] + at + short
    else:
        rows = {"k": t["k"].astype(str), "method": t["method"] + short.str.replace(" ", "-")}
        columns = t["dataset"] + " " + t["metric"]
    flat = pd.DataFrame({**rows, "column": columns, "text": text})
    wide = flat.pivot(index=list(rows), columns="column", values="text")
    order = (
        pd.MultiIndex.from_frame(flat[list(rows)].drop_duplicates())
        if len(rows) > 1
        else flat[next(iter(rows))].unique()
    )
    wide = wide.reindex(index=order, columns=flat["column"].unique())
    wide.index.names, wide.columns.name = list(rows), None
    return wide.reset_index()


def readings() -> pd.DataFrame:
    """Every cell of the tables that we read otherwise than printed, or doubt.

    Columns table (integer), dataset, k, method, metric, printed, read as (text), reading, why.
    """
    parts = [table(number).assign(table=number) for number in TABLES]
    every = pd.concat(parts, ignore_index=True)
    every = every[every["reading"] != "as printed"]
    every["method"] = every["method"] + every["variant"].map(_VARIANT).fillna("").str.replace(" ", "-")
    every["read as"] = ["unknown" if pd.isna(value) else f"{value:,.10g}" for value in every["value"]]
    columns = ["table", "dataset", "k", "method", "metric", "printed", "read as", "reading", "note"]
    return every[columns].rename(columns={"note": "why"}).reset_index(drop=True)


_SAME = ["dataset", "k", "method", "variant", "metric"]


def repeats() -> pd.DataFrame:
    """Cells that stand in two places: how many, and how many agree as printed (as numbers) and as read.

    Columns places, cells, agree printed, agree read, differ (texts of the cells that differ in print).
    """
    rows = []
    for one, other in ((2, 7), (4, 8), (5, 7), ("sec2.2", 7), ("appendixB", 6), ("appendixC", 5)):
        both = table(one).dropna(subset="on page").merge(table(other), on=_SAME, suffixes=("", " b"))
        off = both[both["on page"] != both["on page b"]]
        words = (
            off["dataset"]
            + " "
            + off["method"]
            + off["variant"].map(_VARIANT).str.replace(" ", "-")
            + (" " + off["metric"] + "@" + off["k"].astype(str) + ": ")
            + (off["printed"] + " / " + off["printed b"])
        )
        rows.append(
            {
                "places": f"{_place(one)} and {_place(other)}",
                "cells": len(both),
                "agree printed": len(both) - len(off),
                "agree read": int((both["value"] == both["value b"]).sum()),
                "differ": "; ".join(words),
            }
        )
    return pd.DataFrame(rows)


def _place(name: int | str) -> str:
    return f"table {name}" if isinstance(name, int) else {"sec2.2": "section 2.2"}.get(name, name.replace("x", "x "))


def effect() -> pd.DataFrame:
    """Medians over all cells, as read, before and after isotonic regression: columns table, metric, k, cells, before, after."""
    rows = []
    for number in (7, 8):
        t = table(number)
        for (metric, k), part in t.groupby(["metric", "k"], sort=False):
            wide = part.pivot(index=["dataset", "method"], columns="variant", values="value").dropna()
            rows.append(
                {
                    "table": number,
                    "metric": metric,
                    "k": int(k),
                    "cells": len(wide),
                    "median before": wide["none"].median(),
                    "median after": wide["isotonic"].median(),
                }
            )
    return pd.DataFrame(rows)


def _wide(numbers: Sequence[int], over: str, column: str, **where: object) -> pd.DataFrame:
    """Cells of some tables side by side by ``over``; ``where`` keeps those with the given values."""
    t = pd.concat([table(number).assign(table=number) for number in numbers])
    for name, wanted in where.items():
        t = t[t[name].isin(wanted if isinstance(wanted, tuple) else (wanted,))]
    rows = [name for name in ("table", *_SAME) if name != over]
    return t.pivot(index=rows, columns=over, values=column)


def _lower(wide: pd.DataFrame, low: str, high: str) -> pd.Series:
    both = wide[[low, high]].dropna()
    return both[low] < both[high]


def _count(which: pd.Series) -> str:
    return f"{int(which.sum())} of {len(which)}"


def claims() -> pd.DataFrame:
    """What the paper says of its tables, counted in them: columns claim, where, as printed, as read ("12 of 14")."""
    counted = {column: _claims(column) for column in ("on page", "value")}
    first, second = counted["on page"], counted["value"]
    return pd.DataFrame(
        {
            "claim": [claim for claim, _, _ in first],
            "where": [where for _, where, _ in first],
            "as printed": [count for _, _, count in first],
            "as read": [count for _, _, count in second],
        }
    )


def _claims(column: str) -> list[tuple[str, str, str]]:
    found = []
    for metric in ("ECE", "ACE", "Brier"):
        wide = _wide((7, 8), "variant", column, metric=metric)
        found.append((f"isotonic lowers {metric}", "tables 7, 8", _count(_lower(wide, "isotonic", "none"))))
    platt = _wide((5,), "variant", column)
    found.append(("isotonic has the lower ECE than Platt", "table 5", _count(_lower(platt, "isotonic", "platt"))))
    ratio = (platt["platt"] / platt["isotonic"]).unstack("dataset")
    found.append(
        (
            "Platt over isotonic is larger on Amazon-670K than on EURLex-4K",
            "table 5",
            _count(ratio["Amazon-670K"] > ratio["EURLex-4K"]),
        )
    )
    separate = _wide((6,), "variant", column)
    for name, words in (("isotonic-separate", "isotonic"), ("platt-separate", "Platt")):
        found.append((f"separate {words} calibration lowers P@k", "table 6", _count(_lower(separate, name, "none"))))
    for k in (1, 3, 5):
        wide = _wide((8,), "method", column, metric="ECE", variant="none", k=k)
        pairs = [_lower(wide, a, b) for a in ("Renee", "Gandalf") for b in ("GalaXC", "NGAME")]
        found.append(
            (f"label augmentation has the lower ECE than two towers, k = {k}", "table 8", _count(pd.concat(pairs)))
        )
    for number, k in ((4, 5), (8, 5), (8, 3), (8, 1)):
        wide = _wide((number,), "method", column, metric="ECE", variant="none", k=k)
        found.append(
            (
                f"Gandalf has the lower ECE than Renee, k = {k}",
                f"table {number}",
                _count(_lower(wide, "Gandalf", "Renee")),
            )
        )
    ece = _wide((7,), "method", column, metric="ECE", variant="none")
    found.append(
        ("CascadeXML has the higher ECE than LightXML", "table 7", _count(_lower(ece, "LightXML", "CascadeXML")))
    )
    amazon = ece.xs("Amazon-670K", level="dataset")
    found.append(
        (
            "Renee has the higher ECE than LightXML on Amazon-670K",
            "table 7",
            _count(_lower(amazon, "LightXML", "Renee")),
        )
    )
    for variant, words in (("none", "before"), ("isotonic", "after")):
        pair = _wide((7, 8), "metric", column, variant=variant, metric=("ECE", "ACE")).dropna()
        off = (pair["ACE"] - pair["ECE"]).abs() / pair["ECE"]
        found.append((f"ACE is within a tenth of ECE {words} isotonic", "tables 7, 8", _count(off <= 0.1)))
    return found


# ---------------------------------------------------------------- fig 5: Renee's error against the number of labels


def label_scaling() -> pd.DataFrame:
    """Fig 5 from tables 3 and 7: Renee's ECE@k before calibration on four of five data sets, and Amazon-3M without one.

    Columns dataset, labels, points per label (both of table 3), k, printed, value; 15 rows, those of Amazon-3M empty.
    """
    t = table(7)
    t = t[(t["method"] == "Renee") & (t["variant"] == "none") & (t["metric"] == "ECE")]
    rows = []
    for dataset in ("EURLex-4K", "AmazonCat-13K", "Wikipedia-500K", "Amazon-670K", "Amazon-3M"):
        size = registry.published(dataset, "calibration:table3")
        for k in (1, 3, 5):
            found = t[(t["dataset"] == dataset) & (t["k"] == k)]
            rows.append(
                {
                    "dataset": dataset,
                    "labels": size["n_labels"],
                    "points per label": size["avg_points_per_label"],
                    "k": k,
                    "printed": found["printed"].iloc[0] if len(found) else "",
                    "value": float(found["value"].iloc[0]) if len(found) else float("nan"),
                }
            )
    return pd.DataFrame(rows)


def label_scaling_claims(data: pd.DataFrame) -> pd.DataFrame:
    """Does the error rise with the labels, or fall with the points per label? By k.

    Columns k, datasets, steps up by labels (from one set to the next larger: in how many does the error rise),
    steps up by points per label (from one set to that with the next fewer points per label), steps.
    """
    rows = []
    for k, part in data.dropna(subset="value").groupby("k"):
        by_labels = part.sort_values("labels")["value"].diff().dropna() > 0
        by_points = part.sort_values("points per label", ascending=False)["value"].diff().dropna() > 0
        rows.append(
            {
                "k": k,
                "datasets": len(part),
                "steps": len(by_labels),
                "error rises with more labels": int(by_labels.sum()),
                "error rises with fewer points per label": int(by_points.sum()),
            }
        )
    return pd.DataFrame(rows)


# where a name would lie on a line if it stood centred above its points
_BELOW = {("labels", "AmazonCat-13K")} | {
    ("points per label", name) for name in ("AmazonCat-13K", "EURLex-4K", "Wikipedia-500K")
}
_SIDE = {
    ("labels", "Wikipedia-500K"): "right",
    ("points per label", "Wikipedia-500K"): "left",
    ("points per label", "EURLex-4K"): "left",
}


def plot_label_scaling(data: pd.DataFrame) -> Figure:
    """Fig 5, and the same numbers against the points per label; a line where Amazon-3M would stand."""
    panels = (("labels", "number of labels"), ("points per label", "training points per label (fewer to the right)"))
    with figures.new(width=8.4, height=3.6, ncols=2, sharey=True) as (fig, axes):
        for ax, (x, words) in zip(axes, panels, strict=True):
            known = data.dropna(subset="value")
            for (k, part), marker in zip(known.groupby("k"), _MARKERS, strict=False):
                part = part.sort_values(x)
                ax.plot(part[x], part["value"], marker=marker, markersize=6, label=f"ECE@{k}")
            for name, part in known.groupby("dataset", sort=False):
                # beside the points, where no line runs
                up, side = (part["value"].max(), "above") if (x, name) not in _BELOW else (part["value"].min(), "below")
                ax.annotate(
                    name,
                    (part[x].iloc[0], up),
                    (0, 7 if side == "above" else -8),
                    textcoords="offset points",
                    ha=_SIDE.get((x, name), "center"),
                    va="bottom" if side == "above" else "top",
                    fontsize=8,
                )
            for name, place in data[data["value"].isna()].groupby("dataset")[x].first().items():
                ax.axvline(place, color="0.45", linewidth=0.8, linestyle=":")
                ax.annotate(
                    f"{name}: in no table",
                    (place, 19),
                    (-3, 0),
                    textcoords="offset points",
                    rotation=90,
                    ha="right",
                    va="top",
                    color="0.35",
                    fontsize=8,
                )
            ax.set(xscale="log", xlabel=words, ylim=(0, 19.5))
            ax.margins(x=0.16)
        axes[1].invert_xaxis()
        axes[0].set_ylabel("ECE@k before calibration, %")
        axes[0].legend(loc="upper left")
        fig.suptitle(
            "Renee's calibration error: the points per label put the four sets in order, the number of labels does not",
            x=0.01,
            ha="left",
            fontsize=10,
        )
    return fig


# ---------------------------------------------------------------- fig 6: losses


def losses() -> pd.DataFrame:
    """Fig 6 from appendix A and tables 6 and 7: Amazon-670K, k = 5.

    Columns loss or model, kind ("loss of Renee", "other model", "Renee after isotonic"), P@5, ECE@5, from. Squared hinge
    has neither number: the paper only plots it.
    """
    parts = []
    a = table("appendixA/fig6")
    for name, part in a.groupby("method", sort=False):
        value = part.set_index("metric")["value"]
        loss = name.removeprefix("Renee (").removesuffix(" loss)")
        parts.append((loss, "loss of Renee", value.get("P"), value.get("ECE"), "appendix A"))
    after = _at5(table(7), "isotonic")
    bce = next(part for part in parts if part[0] == "BCE")
    parts.append(("BCE, isotonic", "Renee after isotonic", bce[2], after["Renee"], "appendix A, table 7"))
    precision, error = _at5(table(6), "none", "P"), _at5(table(7), "none")
    parts += [(name, "other model", precision[name], error[name], "tables 6, 7") for name in precision.index]
    return pd.DataFrame(parts, columns=["name", "kind", "P@5", "ECE@5", "from"])


def _at5(t: pd.DataFrame, variant: str, metric: str = "ECE") -> pd.Series:
    keep = (t["dataset"] == "Amazon-670K") & (t["k"] == 5) & (t["metric"] == metric) & (t["variant"] == variant)
    return t[keep].set_index("method")["value"]


def loss_claims(data: pd.DataFrame) -> pd.DataFrame:
    """Each loss beside BCE: columns loss, P@5 minus BCE's, ECE@5 minus BCE's (percentage points), worse in both."""
    of = data[data["kind"] == "loss of Renee"].set_index("name")
    p, e = of["P@5"] - of.at["BCE", "P@5"], of["ECE@5"] - of.at["BCE", "ECE@5"]
    worse = ["not stated" if pd.isna(a) else "yes" if a < 0 < b else "no" for a, b in zip(p, e, strict=True)]
    out = pd.DataFrame({"loss": of.index, "P@5 minus BCE": p.to_numpy(), "ECE@5 minus BCE": e.to_numpy()})
    return out.assign(**{"worse in both": worse})[out["loss"].to_numpy() != "BCE"].reset_index(drop=True)


def plot_losses(data: pd.DataFrame) -> Figure:
    """Fig 6: three of its four points, the other models of the paper behind them, and BCE after isotonic regression."""
    with figures.new(width=6.4, height=3.8) as (fig, ax):
        ax.plot([], [], "s", color="0.65", markersize=5, label="other models, tables 6 and 7")
        ax.plot([], [], "o", color=_COLOURS[0], markersize=7, label="Renee by loss, appendix A")
        ax.plot(
            [], [], "o", markerfacecolor="white", color=_COLOURS[0], markersize=7, label="Renee after isotonic, table 7"
        )
        for row in data.dropna().itertuples(index=False):
            other, after = row.kind == "other model", row.kind == "Renee after isotonic"
            colour = "0.65" if other else _COLOURS[0]
            ax.plot(row[2], row[3], "s" if other else "o", color=colour, markersize=5 if other else 7,
                    markerfacecolor="white" if after else colour)  # fmt: skip
            ax.annotate(
                row.name,
                (row[2], row[3]),
                (0, -11) if other else (0, 7),
                textcoords="offset points",
                ha="center",
                fontsize=7 if other else 9,
                color="0.4" if other else "black",
            )
        ax.set(xlim=(27, 43), ylim=(-1, 31))
        ax.set_xlabel("P@5, %  (right is better)")
        ax.set_ylabel("ECE@5, %  (down is better)")
        ax.set_title(
            "Of three losses focal calibrates best, for 11.7 points of P@5; ASY loses to BCE on both", loc="left"
        )
        ax.annotate(
            "Squared hinge is missing: plotted in the paper, stated nowhere.",
            (0.01, 0.06),
            xycoords="axes fraction",
            fontsize=7,
            color="0.35",
        )
        ax.legend(loc="upper left")
    return fig


# ---------------------------------------------------------------- figs 17 to 19: errors against precision

COLUMNS = ("EURLex-4K", "Amazon-670K")
ROWS = ("ECE", "Brier", "ACE")


def against_precision() -> pd.DataFrame:
    """Figs 17 to 19 from tables 6 and 7: two of four columns, three of four rows, five of six models.

    Columns k, dataset, method, P (%, of the uncalibrated model: a joint monotone map leaves it as it is), metric, variant,
    printed, value (%), reading.
    """
    p = table(6)
    p = p[p["variant"] == "none"][["dataset", "k", "method", "value"]].rename(columns={"value": "P"})
    t = table(7)
    joined = p.merge(t[["dataset", "k", "method", "metric", "variant", "printed", "value", "reading"]])
    columns = ["k", "dataset", "method", "P", "metric", "variant", "printed", "value", "reading"]
    return joined[columns].sort_values("k", kind="stable").reset_index(drop=True)


def precision_claims(data: pd.DataFrame) -> pd.DataFrame:
    """How precision and error go together over the models: columns dataset, metric, k, models, rank correlation before,
    after, and the largest value before and after, percent.

    Spearman's; with five models only 1 and -1 lie outside what chance gives one time in twenty.
    """
    rows = []
    for (dataset, metric, k), part in data.groupby(["dataset", "metric", "k"], sort=False):
        wide = part.pivot(index=["method", "P"], columns="variant", values="value").reset_index("P")
        # ranks by hand: pandas asks scipy for method="spearman" otherwise
        rank = wide.rank()
        rows.append(
            {
                "dataset": dataset,
                "metric": metric,
                "k": k,
                "models": len(wide),
                "rank corr. before": rank["P"].corr(rank["none"]),
                "rank corr. after": rank["P"].corr(rank["isotonic"]),
                "largest before": wide["none"].max(),
                "largest after": wide["isotonic"].max(),
            }
        )
    return pd.DataFrame(rows)


_KEY = (
    "filled: before, hollow: after isotonic regression; c: drawn at our reading of the cell\n"
    "in no table, so not here: NLL, P@k on AmazonCat-13K and Wikipedia-500K, P@k of Renee"
)


def plot_against_precision(data: pd.DataFrame, k: int) -> Figure:
    """Figs 17 (k = 1), 18 (3) and 19 (5); "c" marks a cell that is drawn at our reading, not as printed."""
    data = data[data["k"] == k]
    methods = list(dict.fromkeys(data["method"]))
    with figures.new(width=7.6, height=6.6, nrows=len(ROWS), ncols=len(COLUMNS), sharex="col", sharey="row") as (
        fig,
        axes,
    ):
        for line, metric in zip(axes, ROWS, strict=True):
            for ax, dataset in zip(line, COLUMNS, strict=True):
                part = data[(data["dataset"] == dataset) & (data["metric"] == metric)]
                for row in part.itertuples(index=False):
                    place = methods.index(row.method)
                    before = row.variant == "none"
                    ax.plot(
                        row.P,
                        row.value,
                        _MARKERS[place],
                        color=_COLOURS[place],
                        markersize=7,
                        markerfacecolor=_COLOURS[place] if before else "white",
                        label=row.method if before else None,
                    )
                    if row.reading != "as printed":
                        ax.annotate("c", (row.P, row.value), (6, -2), textcoords="offset points", fontsize=8)
                if metric != "Brier":
                    ax.set_yscale("log")
                    ax.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
                ax.margins(0.12)
            line[0].set_ylabel(f"{metric}@{k}, %")
        for ax, dataset in zip(axes[0], COLUMNS, strict=True):
            ax.set_title(dataset, loc="left")
        for ax in axes[-1]:
            ax.set_xlabel(f"P@{k}, %")
        handles, texts = axes[0][0].get_legend_handles_labels()
        fig.legend(handles, texts, loc="outside lower center", ncols=len(methods), title=_KEY)
        after = data[(data["metric"] == "ECE") & (data["variant"] == "isotonic")]["value"].max()
        fig.suptitle(
            f"After isotonic regression no ECE@{k} is above {after:.2f} %. Before it, precision and error rise together\n"
            "on EURLex-4K and go against each other on Amazon-670K, loosely: five models are few.",
            x=0.01,
            ha="left",
            fontsize=10,
        )
    return fig
