"""The sections of a report: which table, figure, sentences and words belong together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from xcrepro.errors import ArgumentError
from xcrepro.inputs import datasets
from xcrepro.metrics.registry import of_bin
from xcrepro.reports import compute, figures, grid, sentences
from xcrepro.reports.figures import Looks
from xcrepro.reports.given import Given
from xcrepro.reports.grid import Cell, Grid, of_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OWN = {
    "ranking": (*compute.RANKED[:3], *compute.SCORED),
    "labelwise": ("macro-F1", "macro-P", "macro-R", "micro-F1"),
    "coverage": ("coverage", "coverage (test)", "label entropy", "abandonment"),
}
METRIC_PARTS = tuple(_OWN)
"""Those that hold the metrics, each metric in one."""
# Title, and what the section shows.
_ABOUT = {
    "ranking": (
        "Ranking",
        """Means over test points. nDCG at k divides by the most that a point with its number of labels can gain in k places.
        With a train truth, PSP and PSnDCG are the published ratios.""",
    ),
    "labelwise": (
        "Averages over labels",
        """All labels weigh the same, those without a test point too; micro-F1 pools all hits. The CSV file has the bins of
        macro-F1 as well.""",
    ),
    "coverage": (
        "Coverage and its relatives",
        """The share of all labels, and of those with a test point, that are hit at all; the entropy of the hits over labels;
        the share of points without a hit.""",
    ),
    "pairs": (
        "All pairs of models",
        """Model less other, on the same draws or parts of the test points; p is two-sided and corrected over the pairs of a
        metric and k (Holm). The table has the metrics of the figure, the CSV file all.""",
    ),
    "t_test": (
        "Over labels: the macro t-test",
        """It pairs labels (Yang and Liu 1999): would a difference of macro-F1 stand for other labels? It takes labels for
        independent; where shared is above 3 they are not, and the pairs above are to be trusted.""",
    ),
    "bins": (
        "Macro-F1 by train frequency",
        """Labels by their train points (reeval, section 5). The ceiling is the most that any predictions of k labels a point
        could have; where it is too large a programme to solve, the share of labels with a test point, a bound, stands for
        it.""",
    ),
    "bands": (
        "What each band of train frequency contributes",
        """The parts of P and PSP at the last k that the hits on labels of each band make; they add up to both.""",
    ),
    "calibration": (
        "Calibration before and after",
        """The first k places of all points, pooled; percent, NLL in nats. After: the calibrator, cross-fitted over ten
        contiguous folds of the test points, so that no point is calibrated by its own outcome.""",
    ),
    "reliability": (
        "Reliability diagrams",
        """In ten bins of equal width: the share of hits against the mean score, and what chance allows of right scores
        (95 %).""",
    ),
    "price": (
        "The price of coverage",
        """The labels chosen greedily for coverage among the places that were saved (coverage, algorithm 1), with the scores as
        probabilities: beta is the weight of a hit beside that of a new label, infinity the plain top k, 0 coverage alone.""",
    ),
    "differences": (
        "Where models differ",
        """Hits among the first k places, the last k. The lists are of the two models with the highest P; csv/labels.csv and
        csv/points.csv have every label and point.""",
    ),
    "printed": (
        "The dataset's printed rows",
        """What documents print for this dataset, percent: context, never a match. † marks what the audit of the record
        doubts.""",
    ),
    "ranks": ("Over datasets", "1 is the best, equal values share their mean rank; models that all datasets have."),
}


@dataclass(frozen=True, eq=False)
class Part:
    """One section.

    Attributes
    ----------
    name : str
        What :meth:`Report.frame` and the files call it.
    title, about : str
        Its heading, and what it shows, in a sentence or two.
    table : DataFrame
        Tidy.
    grids : tuple of Grid
        Its tables as people read them.
    said : tuple of str
        Sentences computed from the numbers.
    draw : callable or None
        ``draw() -> (Figure, DataFrame)``: the figure and the table that holds what it shows.
    """

    name: str
    title: str
    about: str
    table: pd.DataFrame
    grids: tuple[Grid, ...] = ()
    said: tuple[str, ...] = ()
    draw: Callable[[], tuple[Figure, pd.DataFrame]] | None = None


def _part(name: str, table: pd.DataFrame, grids: Sequence[Grid], said: Sequence[str], draw=None) -> Part:
    title, about = (" ".join(text.split()) for text in _ABOUT[name])
    return Part(name, title, about, table, tuple(grids), tuple(filter(None, said)), draw)


def _drawer(function: Callable, table: pd.DataFrame, columns: Sequence[str], *given) -> Callable:
    """A figure of a table whose fractions become percent, and that table."""

    def draw() -> tuple[Figure, pd.DataFrame]:
        percent = figures.in_percent(table, columns)
        return function(percent, *given), percent

    return draw


def _in_percent(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of metrics that are fractions."""
    return table[table["metric"].map(sentences.unit) == "%"].reset_index(drop=True)


def of_metrics(metrics: pd.DataFrame, pairs: pd.DataFrame, ks: Sequence[int], look: Looks) -> list[Part]:
    """Ranking, averages over labels, coverage: ``metrics`` and ``pairs`` are those of
    :func:`xcrepro.reports.compute.metrics_and_pairs`."""
    k, parts = ks[-1], []
    led = {
        "ranking": [("P", ks[0]), ("P", k), ("PSP", k)],
        "labelwise": [("macro-F1", k)],
        "coverage": [("coverage", k)],
    }
    bins = metrics["metric"].map(of_bin) != ""
    for name, own in _OWN.items():
        keep = metrics["metric"].isin(own) | (bins if name == "labelwise" else False)
        table = metrics[keep].reset_index(drop=True)
        there = [one for one in dict.fromkeys(led[name]) if one[0] in set(table["metric"])]
        said, draw = [sentences.leader(metrics, pairs, *one) for one in there], None
        title = _ABOUT[name][0]
        grids = [grid.of_metrics(name, f"{title}: value and its interval", table, pairs, own, ks)]
        if name == "ranking":
            said.append(sentences.seeds(metrics, k))
            if metrics["seeds"].max() > 1:
                words = f"{title}: mean over seeds, and Student's interval of it"
                ends = ("seed low", "seed high")
                grids.append(grid.of_metrics("ranking-seeds", words, table, pairs, own, ks, ends))
            shown = _in_percent(metrics)
            draw = _drawer(figures.metrics, shown, ("value", "low", "high"), look, figures.shown_metrics(shown, k))
        parts.append(_part(name, table, grids, said, draw))
    return parts


def of_pairs(metrics: pd.DataFrame, pairs: pd.DataFrame, tests: pd.DataFrame, k: int) -> list[Part]:
    """All pairs of models, over points and over labels."""
    parts, wanted = [], figures.shown_metrics(metrics, k)
    if len(pairs):
        draw = _drawer(figures.pairs, _in_percent(pairs), ("difference", "low", "high"), wanted)
        parts.append(_part("pairs", pairs, [_pair_grid(pairs, wanted)], [sentences.pairs_counted(pairs)], draw))
    shown = tests.assign(difference=100 * tests["difference"]).rename(columns={"difference": "difference, points"})
    for name in ("p", "p adjusted"):
        shown[name] = [sentences.chance(p).removeprefix("p ").removeprefix("= ") for p in shown[name]]
    own = of_table("t_test", "Macro t-test of macro-F1", shown, {"degrees": 0})
    return [*parts, _part("t_test", tests, [own], [sentences.t_tests(tests, k)])]


def _pair_grid(pairs: pd.DataFrame, wanted: Sequence[tuple[str, int]]) -> Grid:
    values = pairs.set_index(["model", "other", "metric", "k"])
    rows = []
    for model, other in pairs[["model", "other"]].drop_duplicates().itertuples(index=False, name=None):
        row = [Cell(model), Cell(other)]
        for metric, k in wanted:
            one = values.loc[(model, other, metric, k)]
            ends = f"{sentences.number(one['low'], metric)} to {sentences.number(one['high'], metric)}, "
            text = sentences.number(one["difference"], metric, 2, sign=True)
            clear = bool(one["p adjusted"] < compute.LEVEL)
            row.append(Cell(text, ends + sentences.chance(one["p adjusted"]), float(one["difference"]), bold=clear))
        rows.append(row)
    columns = ["model", "other", *(f"{metric}@{k}, points" for metric, k in wanted)]
    return Grid("pairs", "Differences, their intervals and p; bold: clear", columns, rows)


def of_frequency(bins: pd.DataFrame, bands: pd.DataFrame, k: int, look: Looks) -> list[Part]:
    """By train frequency: macro-F1 below its ceiling, and contributions."""
    columns = ["value", "low", "high", "ceiling"]
    shown = figures.in_percent(bins[bins["k"] == k].drop(columns="k"), columns).reset_index(drop=True)
    own = of_table("bins", f"Macro-F1@{k} by train frequency, percent", shown)
    first = _part("bins", bins, [own], [sentences.bins(bins, k)], _drawer(figures.bins, bins, columns, look, k))
    columns = ["P", "PSP"]
    own = of_table("bands", f"Contributions at {k}; P and PSP in points", figures.in_percent(bands, columns))
    return [first, _part("bands", bands, [own], [sentences.bands(bands, k)], _drawer(figures.bands, bands, columns, k))]


def of_calibration(
    errors: pd.DataFrame, diagrams: pd.DataFrame, k: int, look: Looks, calibrator: str = "isotonic"
) -> list[Part]:
    """Errors before and after, and the reliability diagrams."""
    how = compute.CALIBRATORS[calibrator]
    columns, shown = ("value", "low", "high"), errors.copy()
    for name in columns:
        shown[name] = shown[name].where(errors["metric"] == "NLL", 100 * shown[name])
    shown = shown[errors["k"] == k].drop(columns="k").reset_index(drop=True)
    own = of_table("calibration", f"Calibration errors at {k}", shown, 3)
    draw = _drawer(functools.partial(figures.calibration, how=how), errors[errors["metric"] == "ECE"], columns, look)
    first = _part("calibration", errors, [own], [sentences.calibration(errors, k, how)], draw)
    own = of_table("reliability", f"Bins of the scores at {k}", diagrams, 3)
    said = [sentences.reliability(diagrams, k)]
    return [
        first,
        _part(
            "reliability", diagrams, [own], said, lambda: (figures.reliability(diagrams, look, k, how=how), diagrams)
        ),
    ]


def calibration_metrics(made: Sequence[Part]) -> tuple[str, ...]:
    """The calibration metrics, where a report has them."""
    return compute.CALIBRATION if any(part.name == "calibration" for part in made) else ()


def of_price(table: pd.DataFrame, look: Looks) -> list[Part]:
    """Precision against coverage; nothing where no model has more places to choose from."""
    if not len(table):
        return []
    columns = ["P", "P low", "P high", "Cov", "Cov low", "Cov high"]
    text = table.assign(beta=[f"{beta:g}".replace("inf", "∞") for beta in table["beta"]])
    own = of_table("price", "P and coverage along beta, percent", figures.in_percent(text, columns))
    return [_part("price", table, [own], [sentences.price(table)], _drawer(figures.price, table, columns, look))]


def of_differences(
    given: Given, metrics: pd.DataFrame, labels: pd.DataFrame, points: pd.DataFrame, k: int
) -> list[Part]:
    """On how many labels and points models differ, and on which the best two do most."""
    table = compute.won_and_lost(given, labels, points, k)
    best = sentences.best_of(metrics, "P", k)
    second = sentences.best_of(metrics[metrics["model"] != best], "P", k)
    of_labels = compute.most_different_labels(given, labels, best, second)
    of_points = compute.most_different_points(given, points, best, second, k)
    grids = [
        of_table("differences", "Labels with a test point, and points, by who has more hits", table),
        of_table("labels", f"The labels whose hits differ most: {best} and {second}", of_labels),
        of_table("points", f"The points whose hits differ most: {best} and {second}", of_points),
    ]
    return [_part("differences", table, grids, [sentences.won_and_lost(table)])]


def of_printed(given: Given) -> list[Part]:
    """The printed rows; nothing where none are."""
    if given.dataset is None or not len(table := datasets.printed_table(given.dataset)):
        return []
    doubted = int(table.apply(lambda column: column.astype(str).str.contains("†")).to_numpy().sum())
    rows = "One row is printed; of its" if len(table) == 1 else f"{len(table)} rows are printed; of their"
    said = f"{rows} values {doubted} {'is' if doubted == 1 else 'are'} in doubt."
    return [_part("printed", table, [of_table("printed", "As printed", table)], [said])]


def of_ranks(
    own: Mapping[str, pd.DataFrame], others: Sequence[tuple[str, pd.DataFrame]], k: int, look: Looks
) -> list[Part]:
    """The models' ranks over this dataset and others: title -> metrics, and title and metrics of each other."""
    collected = dict(own)
    for title, table in others:
        if title in collected:
            raise ArgumentError("others", "must be reports of other datasets, each with its own title", repr(title))
        collected[title] = table
    found, grids, said = [], [], []
    for metric, at in figures.shown_metrics(next(iter(own.values())), k):
        placed = compute.ranks(collected, metric, at)
        if len(placed) > 1 and placed.shape[1] > 3:
            what = f"{metric}@{at}"
            found.append((what, placed))
            grids.append(of_table(f"ranks-{len(grids) + 1}", f"Ranks in {what}", placed))
            said.append(sentences.ranks(placed, what))
    if not found:
        raise ArgumentError("others", "must share two models or more with this report, and a metric", sorted(collected))
    what, placed = found[0]
    table = pd.concat([ranked.assign(metric=name) for name, ranked in found], ignore_index=True)
    return [_part("ranks", table, grids, said, lambda: (figures.ranks(placed, look, what), placed))]
