"""Fig. 2 of Jain et al. 2016: the paper's estimate of propensities from a hierarchy, where its outcome can be judged."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from xcrepro.core import paths, propensity
from xcrepro.core.data import registry
from xcrepro.core.errors import ArgumentError
from xcrepro.core.truth import as_truth
from xcrepro.models.twin import Twin
from xcrepro.repro.drawing import figures, looks
from xcrepro.repro.inputs import parameters

PER_BIN = 20  # labels a bin
MIN_DESCENDANTS = 5  # "more than 4"
ESTIMATES = ("true", "procedure", "complete descendants", "among descendants")

MIDDLE = (0.025, 0.975)  # the quantiles around the middle 95 % of draws
PAPER = {"Wikipedia": "wikilshtc-325k", "Amazon": "amazon-670k"}
"""What the paper calls a dataset in figs. 1 and 2 -> the catalogue's name of the dataset of table 2 that it stands for."""
DOCUMENTS = 19_314
"""How many points the committed counts of EURLex-4K's labels are of: all of them, train and test."""
PRINTED = "eq. 1 with the A and B that jain16 prints, and N of its table 2"
EUROVOC = "EuroVoc over the labels of EURLex-4K (real data), 19,314 documents"
"""What the figures are made from, beside a twin."""


def check_parameters(values: Mapping[str, object]) -> None:
    """:func:`xcrepro.repro.inputs.parameters.check`, and the rule of ``draws``."""
    parameters.check(values)
    check_draws(values["draws"])


def check_draws(draws: int) -> None:
    """ArgumentError for too few draws to have :data:`MIDDLE` in them."""
    if draws < 40:
        raise ArgumentError("draws", "must be 40 or more, for 2.5 % on either side", draws)


# ---------------------------------------------------------------- estimates from a hierarchy


def _columns(matrix) -> np.ndarray:
    """Entries of each column of a sparse matrix."""
    return np.bincount(matrix.tocsr().indices, minlength=matrix.shape[1])


def count_overlaps(Y, parents: np.ndarray) -> pd.DataFrame:
    """A row per label with any below it: label, descendants, count (N_l), below (points with a descendant), both. So N_l*,
    the points that carry the label or a descendant, is count + below - both."""
    truth = as_truth(Y)
    up = propensity.ancestors(parents, truth.n_labels)
    carried = truth.to_csr().astype(bool)
    implied = (carried @ up).tocsr()
    columns = {"descendants": up, "count": carried, "below": implied, "both": implied.multiply(carried)}
    table = pd.DataFrame({name: _columns(matrix) for name, matrix in columns.items()}).rename_axis("label")
    return table[table["descendants"] > 0].reset_index()


def read_eurovoc() -> pd.DataFrame:
    """The committed counts of EURLex-4K's labels that EuroVoc has others below, as :func:`count_overlaps`, with codes."""
    path = paths.committed("data/label_counts/hierarchy/eurlex-4k.csv")
    return pd.read_csv(path, dtype={"codes": "str"})


def compute_labels(overlaps: pd.DataFrame) -> pd.DataFrame:
    """The paper's estimate of p_l from a hierarchy, and another one, of labels with more than 4 descendants, by rising count.

    ``procedure`` is the paper's, count / (count + below - both). ``among descendants`` is both / below: of the points
    that carry a descendant, the share that carry the label too. It is unbiased if labels go missing independently.
    """
    table = overlaps[(overlaps["descendants"] >= MIN_DESCENDANTS) & (overlaps["count"] > 0)]
    table = table.sort_values(["count", "label"], ignore_index=True)
    procedure = table["count"] / (table["count"] + table["below"] - table["both"])
    among = table["both"] / table["below"].where(table["below"] > 0)
    return table.assign(procedure=procedure, **{"among descendants": among})


def compute_twin_labels(ds: Twin) -> pd.DataFrame:
    """:func:`compute_labels` on a twin's observed train labels, with what only a twin knows.

    ``true`` is p_l, ``complete descendants`` the procedure where only the label itself went missing. ``seen``,
    ``implied``, ``lost`` and ``lost alone`` are shares of the points that the label is relevant to: it is observed;
    only a descendant is; neither is, though a descendant is relevant; neither is, and no descendant is relevant.
    """
    found = compute_labels(count_overlaps(ds.train.Y, ds.parents))
    if found.empty:
        rule = f"must have a twin with a label that has {MIN_DESCENDANTS} descendants or more and a train point"
        raise ArgumentError("dataset", rule, f"none in {ds.name}", "raise scale, or take a dataset with more labels")
    label, count = found["label"], found["count"]
    up = propensity.ancestors(ds.parents, ds.parents.size)
    complete, observed = ds.train.Y_complete.astype(bool), ds.train.Y.astype(bool)
    unseen = (complete > observed).tocsr()
    size, hidden = _columns(complete)[label], _columns(unseen)[label]
    implied = _columns(unseen.multiply(observed @ up))[label]  # a descendant is observed
    helped = _columns(unseen.multiply(complete @ up))[label]  # a descendant is relevant
    found["true"], found["complete descendants"] = ds.propensities[label], count / (count + helped)
    parts = {"seen": count, "implied": implied, "lost": helped - implied, "lost alone": hidden - helped}
    return found.assign(**{name: points / size for name, points in parts.items()})


def compute_bins(labels: pd.DataFrame, per_bin: int = PER_BIN) -> pd.DataFrame:
    """Bins of labels by rising count, as in the paper: labels, count (mean), lowest, highest, means of the shares."""
    groups = labels.groupby(np.arange(len(labels)) // per_bin)
    counts = groups["count"].agg(labels="size", count="mean", lowest="min", highest="max")
    shares = [name for name in labels if labels[name].dtype == np.float64]
    return counts.join(groups[shares].mean()).reset_index(drop=True)


def compute_eurovoc(labels: pd.DataFrame, draws: int = 1000, seed: int = 0, per_bin: int = PER_BIN) -> pd.DataFrame:
    """The procedure's bins, and what they would be (mean, and middle 95 % of the draws) when what lies below a label is
    dealt out to the labels at random: N_l orders the bins and is in the numerator of N_l / N_l*, so the estimate rises
    with N_l even then."""
    check_draws(draws)
    rng = np.random.default_rng(seed)
    counts = labels["count"].to_numpy()
    extra = (labels["below"] - labels["both"]).to_numpy()
    bin_of = np.arange(counts.size) // per_bin
    sums = [np.bincount(bin_of, counts / (counts + rng.permutation(extra))) for _ in range(draws)]
    drawn = sums / np.bincount(bin_of)
    low, high = np.quantile(drawn, MIDDLE, axis=0)
    table = compute_bins(labels, per_bin)[["labels", "count", "procedure"]]
    return table.assign(chance=drawn.mean(axis=0), low=low, high=high)


def compute_fits(twin: pd.DataFrame, n_train: int, eurovoc: pd.DataFrame) -> pd.DataFrame:
    """A and B by least squares over the bins of a twin and of EuroVoc, after the printed pairs (section 5), with errors; a
    bin counts as often as it has labels. Where no pair is found, ``fits`` says why and A and B are NaN."""
    rows = [
        ("paper", f"printed for {name}", registry.get(key).A, registry.get(key).B, *[np.nan] * 3, "")
        for name, key in PAPER.items()
    ]
    for source, n_points, bins in (("twin", n_train, twin), ("EuroVoc", DOCUMENTS, eurovoc)):
        for name in (name for name in ESTIMATES if name in bins):
            known = bins[bins[name].notna()]
            if len(known) < 2:
                rows.append((source, name, *[np.nan] * 5, "fewer than two bins"))
                continue
            found = propensity.fit(known["count"], known[name], n_points, weights=known["labels"])
            pair = (found.A, found.B, found.A_stderr, found.B_stderr) if found.identifiable else (np.nan,) * 4
            rows.append((source, name, *pair, found.rms, "yes" if found.identifiable else found.why))
    return pd.DataFrame(rows, columns=["source", "estimate", "A", "B", "A error", "B error", "rms", "fits"])


def compute_hierarchy(twin: pd.DataFrame, labels: pd.DataFrame, eurovoc: pd.DataFrame) -> pd.DataFrame:
    """The data behind the second figure, from bins and EuroVoc's labels, with eq. 1 at EURLex-4K's A and B."""
    entry = registry.get("eurlex-4k")
    top = int(labels["count"].max())
    at = np.unique(np.round(np.geomspace(1, top, round(12 * math.log10(top)) + 1)).astype(np.int64))
    model = pd.DataFrame({"count": at, "true": 1 / propensity.inverse(at, entry.n_train, entry.A, entry.B)})
    parts = {"twin, bins": twin, "EuroVoc, labels": labels, "EuroVoc, bins": eurovoc, "eq. 1": model}
    table = pd.concat([part.assign(source=name) for name, part in parts.items()], ignore_index=True)
    return table[["source", "count", *ESTIMATES, "chance", "low", "high"]]


def plot_hierarchy(table: pd.DataFrame, name: str, ax=None) -> Figure:
    """The procedure's points: on the twin (bins) with the truth, and in EuroVoc (labels) with chance; ``ax`` are two Axes."""
    twin, labels, bins, model = (part for _, part in table.groupby("source", sort=False))
    curve = {"color": looks.INK, "linestyle": "-"}
    procedure = {"color": looks.RUST, "marker": "s", "linestyle": "--"}
    among = {"color": looks.TEAL, "marker": "o", "fillstyle": "none", "linestyle": "none", "markersize": 6}
    with figures.new(looks.WIDE, 3.8, ncols=2, ax=ax) as (fig, (left, right)):
        for estimate, label, style in (
            ("true", "true $p_l$", curve | {"linewidth": 2.2, "marker": "_" if len(twin) == 1 else ""}),
            ("procedure", "the paper's procedure", procedure),
            ("complete descendants", "... with all descendants observed", looks.Look(looks.AMBER, "^", ":").line()),
            ("among descendants", "among points with a descendant", among),
        ):
            left.plot(twin["count"], twin[estimate], label=label, **style)
        left.set_ylabel("propensity $p_l$")
        left.set_title(f"{name}: bins of {PER_BIN} labels at most", loc="left")
        figures.draws(left, x="count", y=ESTIMATES)

        right.plot(
            labels["count"], labels["procedure"], ".", color="0.6", linestyle="none", label="the procedure, a label"
        )
        right.plot(bins["count"], bins["procedure"], label=f"the same, bins of {PER_BIN}", **procedure)
        band = {"color": looks.SKY, "alpha": 0.6, "linewidth": 0, "label": "bins, dealt at random, 95 %"}
        right.fill_between(bins["count"], bins["low"], bins["high"], **band)
        right.plot(model["count"], model["true"], label="eq. 1, A = 0.55, B = 1.5", **curve)
        right.set_title("EURLex-4K under EuroVoc", loc="left")
        figures.draws(right, x="count", y=("true", "procedure", "low", "high"))
        least = twin[list(ESTIMATES)].min(axis=None)
        for panel, lowest in ((left, max(0, least - 0.15 * (1 - least))), (right, 0)):
            panel.set(xscale="log", ylim=(lowest, 1), xlabel="points with the label, $N_l$")
            panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
        left.xaxis.set(major_locator=LogLocator(subs=(1, 3)), major_formatter="{x:,.0f}", minor_locator=NullLocator())
    return fig
