"""What the numbers of a report come to, in sentences made from them with their errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from xcrepro.core.metrics.calibration import is_order
from xcrepro.core.metrics.ranking import precision_ceiling
from xcrepro.tools import diagnose
from xcrepro.tools.reports import compute
from xcrepro.tools.reports.compute import LEVEL


def chance(p: float) -> str:
    """A p-value in words.

    >>> chance(0.00001), chance(0.0312), chance(float("nan"))
    ('p < 0.001', 'p = 0.03', 'p not known')
    """
    if np.isnan(p):
        return "p not known"
    return "p < 0.001" if p < 0.001 else f"p = {p:.1g}"


def unit(metric: str) -> str:
    """``"%"`` for fractions, else the metric's unit."""
    found = compute.metric_of(metric).unit
    return "%" if found == "fraction" else found


def amount(value: float, metric: str) -> str:
    """A value with its unit."""
    return f"{number(value, metric)} {unit(metric)}".rstrip()


def distance(value: float, metric: str) -> str:
    """How far two values are apart: ``1.2 points``."""
    return amount(abs(value), metric).replace("%", "points")


def number(value: float, metric: str, decimals: int = 1, sign: bool = False) -> str:
    """A value as people read it: percent for fractions, two more digits for all else, without its unit.

    >>> number(0.6123, "P"), number(1.23456, "NLL"), number(float("nan"), "P"), number(-0.0001, "P", sign=True)
    ('61.2', '1.235', '-', '0.0')
    """
    if np.isnan(value):
        return "-"
    value, decimals = (100 * value, decimals) if unit(metric) == "%" else (value, decimals + 2)
    text = f"{value:{'+' if sign else ''}.{decimals}f}"
    return text.lstrip("+-") if not text.strip("+-0.") else text


def is_lower(metric: str) -> bool:
    """Whether a lower value is better."""
    return compute.metric_of(metric).better == "lower"


def best_of(metrics: pd.DataFrame, metric: str, k: int) -> str:
    """The model with the best value, the first of equal ones; empty where none is known."""
    part = metrics[(metrics["metric"] == metric) & (metrics["k"] == k)].dropna(subset="value")
    if not len(part):
        return ""
    at = part["value"].idxmin() if is_lower(metric) else part["value"].idxmax()
    return str(part.loc[at, "model"])


def turned(pairs: pd.DataFrame) -> pd.DataFrame:
    """Each difference seen from the other model."""
    sides = {"left": pairs["right"], "right": pairs["left"]}
    return pairs.assign(value=-pairs["value"], low=-pairs["high"], high=-pairs["low"], **sides)


def against(pairs: pd.DataFrame, model: str, metric: str, k: int) -> pd.DataFrame:
    """All others against one model: other, value (model less other), low, high, p, with runs stderr runs."""
    part = pairs[(pairs["metric"] == metric) & (pairs["k"] == k)]
    part = pd.concat([turned(part[part["right"] == model]), part[part["left"] == model]], ignore_index=True)
    found = part.rename(columns={"right": "other"})
    return found[[name for name in ("other", "value", "low", "high", "p", "stderr runs") if name in found]]


def not_clearly_worse(metrics: pd.DataFrame, pairs: pd.DataFrame, metric: str, k: int) -> set[str]:
    """The best model, and those that chance may keep from being it."""
    best = best_of(metrics, metric, k)
    others = against(pairs, best, metric, k)
    unclear = others[~(others["p"] < LEVEL)]["other"]
    return {best, *unclear} - {""}


def leader(metrics: pd.DataFrame, pairs: pd.DataFrame, metric: str, k: int) -> str:
    """Who leads a metric at k, with its interval, and whether by more than chance; empty where no value is known."""
    best, what = best_of(metrics, metric, k), f"{metric}@{k}"
    if not best:
        return ""
    row = metrics[(metrics["model"] == best) & (metrics["metric"] == metric) & (metrics["k"] == k)].iloc[0]
    value = with_interval(row, metric)
    if metrics["model"].nunique() == 1:
        return f"{what} of {best} is {value}."
    others = against(pairs, best, metric, k)
    if not len(others):
        return f"{best} has the best {what}, {value}; with so few points nobody can say whether by more than chance."
    # The other that is hardest to tell from the best decides.
    nearest = others.assign(unknown=others["p"].isna(), size=others["value"].abs())
    nearest = nearest.sort_values(["unknown", "p", "size"], ascending=[False, False, True]).iloc[0]
    sign, where = (-1, "below") if is_lower(metric) else (1, "above")
    low, high = sorted((sign * nearest["low"], sign * nearest["high"]))
    away = f"{distance(nearest['value'], metric)} [{number(low, metric)}, {number(high, metric)}]"
    # The reader is told of which errors this is.
    said = chance(nearest["p"]) + ", over test points"
    if "stderr runs" in pairs:
        said += " alone" if np.isnan(nearest["stderr runs"]) else " and seeds"
    if nearest["p"] < LEVEL:
        return f"{best} leads {what} with {value}: {away} {where} {nearest['other']} ({said})."
    why = "which chance may explain" if not np.isnan(nearest["p"]) else "with an error that is not known"
    if low > 0 and not np.isnan(nearest["p"]):
        why = "not clear after Holm's correction"
    return f"No clear leader in {what}: {best} ({value}) is {away} {where} {nearest['other']}, {why} ({said})."


def lead(metrics: pd.DataFrame, pairs: pd.DataFrame, metric: str, k: int) -> str:
    """A heading: who leads a metric at k, and by how much if by more than chance."""
    best, what = best_of(metrics, metric, k), f"{metric}@{k}"
    if not best:
        return f"{what} is not known"
    row = metrics[(metrics["model"] == best) & (metrics["metric"] == metric) & (metrics["k"] == k)].iloc[0]
    value = amount(row["value"], metric)
    if metrics["model"].nunique() == 1:
        return f"{what} is {value}"
    others, near = against(pairs, best, metric, k), not_clearly_worse(metrics, pairs, metric, k)
    if not len(others):
        return f"{best} has the best {what}, {value}, which was not tested"
    if len(near) > 1:
        return f"No clear leader in {what} between {listed(sorted(near), 3)}"
    return f"{best} leads {what} by {distance(others['value'].abs().min(), metric)}"


def with_interval(row: pd.Series, metric: str) -> str:
    """``61.2 % [60.1, 62.3]``; an interval that begins at 0 says only what the value is at most."""
    text = amount(row["value"], metric)
    return text if np.isnan(row["low"]) else f"{text} [{ends(row['low'], row['high'], metric)}]"


def ends(low: float, high: float, metric: str, between: str = ", ") -> str:
    """``60.1, 62.3``; of an interval that begins at 0, which is below what can be told from nothing, ``at most 0.02``."""
    if float(number(low, metric)) == 0 <= low:
        decimals = next((digits for digits in (1, 2, 3) if float(number(high, metric, digits))), 1)
        return f"at most {number(high, metric, decimals)}"
    return f"{number(low, metric)}{' to ' if low < 0 and between == '–' else between}{number(high, metric)}"


def seeds(metrics: pd.DataFrame, k: int) -> str:
    """How much of the error of P@k the seeds make; empty where no model has several."""
    part = metrics[(metrics["metric"] == "P") & (metrics["k"] == k) & (metrics["seeds"] > 1)]
    points, runs = "stderr points", "stderr runs"
    said = [
        f"{row['model']} {with_interval(row, 'P')} over {row['seeds']} seeds, with a standard error of "
        f"{number(row[points], 'P', 2)} points from the test points and {number(row[runs], 'P', 2)} from seeds"
        for _, row in part.iterrows()
        if not np.isnan(row["stderr"])
    ]
    return f"P@{k} of models with several seeds: {'; '.join(said)}." if said else ""


def pairs_counted(pairs: pd.DataFrame) -> str:
    """How many comparisons are clear."""
    clear, n = int((pairs["p"] < LEVEL).sum()), len(pairs[["left", "right"]].drop_duplicates())
    many = "one pair" if n == 1 else f"{n} pairs"
    return f"{clear} of {len(pairs)} differences are more than chance ({many} of models, each metric)"


def t_tests(table: pd.DataFrame, k: int) -> str:
    """What the macro t-test finds at k, and whether its p can be trusted."""
    part = table[table["k"] == k]
    if not len(part):
        return ""
    clear = part[part["p"] < LEVEL]
    sides = [(r["left"], r["right"]) if r["value"] > 0 else (r["right"], r["left"]) for _, r in clear.iterrows()]
    found = "clear for " + listed([f"{one} over {other}" for one, other in sides]) if sides else "no clear difference"
    shared = int((part["shared"] > 3).sum())
    doubt = "labels that occur on the same points differ in the same direction, so p is too small there"
    doubt = f"; in {shared} of {len(part)} pairs of models, {doubt}" if shared else ""
    return f"Macro-F1@{k} over labels: {found}{doubt}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """``a, b and c``; of many the first ones and how many more."""
    names = list(names)
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "none"


def share(value: float) -> str:
    """A share as whole percent."""
    return f"{100 * value:.0f} %"


def bins(table: pd.DataFrame, model: str, k: int) -> str:
    """In which bin of labels that training has seen a model is furthest from the ceiling."""
    part = table[(table["k"] == k) & (table["model"] == model) & (table["ceiling"] > 0) & (table["bin"] != "0")]
    if not len(part):
        return "No label that training has seen has a test point"
    row = part.loc[(part["value"] / part["ceiling"]).idxmin()]
    more = "at least " if row["ceiling is"] == "bound" else ""
    reached = share(row["value"] / row["ceiling"])
    return f"On labels with {row['bin']} training points {model} reaches {more}{reached} of the macro-F1@{k} that is possible"


def bands(table: pd.DataFrame, model: str) -> str:
    """How much of a model's hits, and of what is relevant, is on labels with fewer than 10 train points."""
    own = table[table["model"] == model]
    if not own["hits"].sum():
        return f"{model} has no hit"
    of = own["band"].isin(["0", "1-9"])
    hits, relevant = (share(own[name][of].sum() / own[name].sum()) for name in ("hits", "positives"))
    both = f"{hits} of the hits of {model}, and {relevant} of what is relevant"
    return f"{both}, are on labels with fewer than 10 training points"


def calibration(table: pd.DataFrame, model: str, k: int, how: str = "isotonic regression") -> str:
    """How far a model's scores are off, and what a map leaves."""
    part = table[(table["metric"] == "ECE") & (table["k"] == k) & (table["model"] == model)].set_index("state")
    after = f"; {how} leaves {number(part.loc['after', 'value'], 'ECE')}" if "after" in part.index else ""
    return f"The scores of {model} are off by {number(part.loc['before', 'value'], 'ECE')} points on average{after}"


def ways(table: pd.DataFrame, k: int) -> str:
    """For how many models calibration lowers ECE, and whether it lowers NLL too: a map can do the one and not the other."""
    wide = table[table["k"] == k].pivot_table(index="model", columns=["metric", "state"], values="value", sort=False)
    if ("ECE", "after") not in wide or ("NLL", "after") not in wide:
        return ""
    parts = []
    for metric in ("ECE", "NLL"):
        change = (wide[metric]["after"] - wide[metric]["before"]).dropna()
        lower, higher = change[change < -1e-12].index, change[change > 1e-12].index
        if len(change) == 1:
            before, after = (wide[metric][state].dropna().iloc[0] for state in ("before", "after"))
            changes = f"{metric} of {change.index[0]} {'rises' if after > before else 'falls'}"
            parts.append(f"{changes} from {number(before, metric)} to {number(after, metric)}")
            continue
        text = f"{metric} falls for {len(lower)} of {len(change)} models"
        parts.append(text + (f" and rises for {len(higher)} ({listed(higher, 10)})" if len(higher) else ""))
    return f"Calibrated, {parts[0]}, {'but' if 'rises' in parts[1] else 'and'} {parts[1]}."


def gaps(table: pd.DataFrame, model: str) -> str:
    """The label that a model is most wrong about."""
    worst = table[table["model"] == model].iloc[0]
    way, apart = "high" if worst["shrunk"] > 0 else "low", number(abs(worst["shrunk"]), "P")
    drawn = f"{apart} points in {worst['predicted']:,} predictions, drawn towards the mean"
    return f"The scores of {model} for {worst['label']} are too {way}, by {drawn}"


def reliability(table: pd.DataFrame, model: str) -> str:
    """In which direction scores are off beyond chance, before calibration."""
    own = table[(table["model"] == model) & (table["state"] == "before") & (table["count"] > 0)]
    over, under = (own["accuracy"] < own["low"]).sum(), (own["accuracy"] > own["high"]).sum()
    return f"Beyond what chance explains, of the {len(own)} bins of {model} {over} are too high, {under} too low."


def price(table: pd.DataFrame, model: str) -> str:
    """What coverage costs a model in precision: at the beta with the most coverage that raises both, else of coverage alone."""
    rows = table[table["model"] == model]
    plain = rows[rows["beta"] == np.inf].iloc[0]
    both = rows[(rows["P"] > plain["P"]) & (rows["Cov"] > plain["Cov"])]
    row = both.loc[both["Cov"].idxmax()] if len(both) else rows[rows["beta"] == 0].iloc[0]
    cov, p = (number(row[name] - plain[name], "P", sign=True) for name in ("Cov", "P"))
    return f"Labels of {model} chosen for coverage (beta = {row['beta']:g}): {cov} points of coverage, {p} points of precision"


def won_and_lost(table: pd.DataFrame, one: str, other: str) -> str:
    """On how many labels and points two models differ."""
    rows = table[(table["left"] == one) & (table["right"] == other)].set_index("counted")
    parts = [
        f"{rows.loc[what, 'more']:,} {what} and fewer on {rows.loc[what, 'fewer']:,}" for what in ("points", "labels")
    ]
    return f"{one} has more hits than {other} on {'; on '.join(parts)}"


def ranks(placed: pd.DataFrame, what: str) -> str:
    """Whether ranks over datasets tell the models apart."""
    m, n = len(placed), placed.shape[1] - 2
    if m < 2 or n < 2:
        return ""
    apart, mean = compute.critical_difference(m, n), placed["mean rank"]
    best, last = placed[mean == mean.min()]["model"], placed[mean == mean.max()]["model"]
    if len(best) == m:
        return f"Over {n} datasets all models have the same mean rank in {what}, {mean.min():.2f}, so none is the best."
    text = f"Over {n} datasets {listed(best, m)} {'share' if len(best) > 1 else 'has'} the best mean rank in {what}, "
    text += f"{mean.min():.2f}; {listed(last, m)} {'are' if len(last) > 1 else 'is'} {mean.max() - mean.min():.2f} away"
    if np.isnan(apart):
        text += f". Datasets are too few for a critical difference, which needs {compute.LEAST_DATASETS}."
    else:
        verdict = "more than" if mean.max() - mean.min() > apart else "within"
        text += f", {verdict} the critical difference of {apart:.2f} (Nemenyi, 5 %)."
    return f"{text} Ranks leave out by how much models differ."


def ceiling(given, k: int) -> str:
    """What a re-ranker could reach that gets the stored places; empty where no more than k are stored."""
    tops = {model: given.first(model) for model in given.models}
    found = [
        f"{model} {number(float(precision_ceiling(given.truth, top, k)[0]), 'P')} % ({int((top.ids >= 0).sum(axis=1).max())})"
        for model, top in tops.items()
        if (top.ids[:, k:] >= 0).any()
    ]
    what = f"P@{k} if the best {k} of the stored places (how many) were chosen, the ceiling of a re-ranker"
    return f"{what}: {'; '.join(found)}." if found else ""


def seen(table: pd.DataFrame, model: str, k: int) -> str:
    """What R@k is over all labels and over those that training has seen: the missing ones lower it most."""
    row = table[(table["metric"] == "R") & (table["k"] == k) & (table["model"] == model)].iloc[0]
    both = number(row["seen"], "R"), number(row["value"], "R")
    if both[0] == both[1]:
        return f"R@{k} of {model} is {both[0]} %, with and without the labels that training has not seen"
    return f"Over the labels that training has seen R@{k} of {model} is {both[0]} %, over all {both[1]} %"


def overlaps(table: pd.DataFrame, k: int) -> str:
    """Which two models predict most alike, and which least."""
    if not len(table):
        return ""
    column = f"overlap@{k}"
    least, most = (table.loc[at] for at in (table[column].idxmin(), table[column].idxmax()))
    text = f"{most['left']} and {most['right']} share {number(most[column], 'P')} % of their first {k} labels"
    if len(table) > 1:
        text += f", the most of all pairs; {least['left']} and {least['right']} share {number(least[column], 'P')} %, the least"
    return text


def printed(table: pd.DataFrame) -> str:
    """How many of the printed values are in doubt."""
    doubted = int(table.apply(lambda column: column.astype(str).str.contains("†")).to_numpy().sum())
    rows = "One row is printed; of its" if len(table) == 1 else f"{len(table)} rows are printed; of their"
    return f"{rows} values {doubted} {'is' if doubted == 1 else 'are'} in doubt"


def reports_without(given, ks: Sequence[int], first_look: Sequence[object] = ()) -> list[str]:
    """What the report lacks, and why."""
    ds = given.dataset
    own = [(model, top) for model, runs in given.runs.items() for top in runs.values()]
    counted = {line: model for model, top in own for line in diagnose.counted(given.truth, top, ks, f"P@{min(ks)}")}
    before = "The data are " if ds is not None and ds.comparable else "No printed results beside these: "
    said = [] if ds is None else [f"{before}{note}." for note in ds.notes]
    said += given.said
    said += map(str, first_look)
    said += [line if "relevant label" in line else f"{model}: {line}" for line, model in counted.items()]
    if given.label_counts is None:
        said.append("No train truth was given: no propensity-scored metrics, no bins of train frequency.")
    if given.truth.n_rows < compute.LEAST_ROWS:
        few = f"with fewer than {compute.LEAST_ROWS} no interval or test is given"
        said.append(f"{given.truth.n_rows} test points: {few}.")
    with_scores = given.with_probabilities
    orders = [model for model in given.models if is_order(given.first(model))]
    if orders:
        said.append(f"{listed(orders)}: an order and no scores, so no calibration, which needs them.")
    without = [model for model in given.models if model not in [*with_scores, *orders]]
    if without:
        of = " of those" if with_scores else ""
        whose = f"The scores of {listed(without)} do not" if with_scores else "No model's scores"
        said.append(f"{whose} all lie in [0, 1]: no calibration and no price of coverage{of}.")
    few = [model for model in with_scores if given.first(model).k <= max(ks)]
    if few:
        why = f"{max(ks)} places or fewer were saved, so that there is nothing else to choose"
        said.append(f"No price of coverage of {listed(few)}: {why}.")
    several = [model for model, runs in given.runs.items() if len(runs) > 1]
    if several:
        what = "contributions, labels, points, calibration, coverage's price and the t-test show the first"
        said.append(f"Of {listed(several)}, which has several seeds, {what}.")
    return said
