"""Figures 1 and 4: what share of the labels and of the instances each frequency bin has; table 2, column by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, published
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs import longtail, parameters
from xcrepro.inputs.datasets import registry_name
from xcrepro.inputs.longtail import Tail
from xcrepro.metrics import labelwise
from xcrepro.papers.reeval._common import Loaded
from xcrepro.repro import figures

check_parameters = parameters.check

BINS = registry.BINS
PRINTED = "% labels, table 2"
COLUMNS = {
    "N_train": "n_train", "N_test": "n_test", "F": "n_features", "labels a point": "avg_labels_per_point", "L": "n_labels",
    **{f"L {name}": f"labels_{name}" for name in BINS},
}  # fmt: skip
"""Our name of each column of table 2 -> the published record's."""
COUNTED = ("eurlex-4k", "bibtex")
"""The datasets whose real counts come with the project."""


def tails(loaded: Loaded) -> list[Tail]:
    """The label counts of each dataset; before a twin's the real ones, where they come with the project.

    Parameters
    ----------
    loaded : mapping
        What :func:`xcrepro.inputs.datasets.pick_many` returned.

    Returns
    -------
    list of Tail
    """
    found = []
    for ds in loaded.values():
        if isinstance(ds, Twin) and registry_name(ds) in COUNTED:
            found.append(longtail.counted(registry_name(ds)))
        found.append(longtail.from_dataset(ds))
    return found


def compute(tails: Sequence[Tail]) -> pd.DataFrame:
    """Share of labels and of training instances in each frequency bin: the bars of figures 1 and 4.

    A label's instances are the points that carry it, so a point counts once for each of its labels. Percent of the
    labels that occur at all, as in the paper, whose bins start at 1; labels without a point are stated apart.

    Parameters
    ----------
    tails : sequence of Tail
        The label counts of each dataset.

    Returns
    -------
    DataFrame
        dataset, real, bin, labels, instances (integers), % labels, % instances, unseen, and the share of the labels
        that table 2 puts into the bin (NaN for a dataset that it does not have, and for a twin with fewer points, whose
        counts are smaller and labels fewer).
    """
    parts = []
    for tail in tails:
        which, _ = labelwise.frequency_bins(tail.counts, tail.counts.size)
        unseen, *labels = np.bincount(which, minlength=len(BINS) + 1)
        _, *instances = np.bincount(which, weights=tail.counts, minlength=len(BINS) + 1).astype(np.int64)
        about = {"dataset": tail.name, "real": tail.real, "bin": BINS}
        part = pd.DataFrame(about | {"labels": labels, "instances": instances})
        for column in ("labels", "instances"):
            part[f"% {column}"] = 100 * part[column] / part[column].sum()
        printed = _printed_shares(tail.name.removesuffix(", twin")) if tail.whole else np.nan
        parts.append(part.assign(unseen=unseen, **{PRINTED: printed}))
    return pd.concat(parts, ignore_index=True)


def _printed_shares(dataset: str) -> np.ndarray:
    table = published.table("reeval:table2")
    labels = table[table["dataset"] == dataset].set_index("metric")["value"]
    labels = labels.reindex([COLUMNS[f"L {name}"] for name in BINS]).to_numpy()
    return 100 * labels / labels.sum()


def compute_claims(table: pd.DataFrame) -> pd.DataFrame:
    """The introduction's sentences on Wiki10-31K, for every dataset: labels with 100 points or more, and with under 10.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.

    Returns
    -------
    DataFrame
        dataset, % labels >= 100, % instances >= 100, % labels < 10, % instances < 10.
    """
    shares, by_bin = ["% labels", "% instances"], table.set_index("bin")
    many, few = (by_bin.loc[list(bins)].groupby("dataset", sort=False)[shares].sum() for bins in (BINS[2:], BINS[:1]))
    found = many.add_suffix(" >= 100").join(few.add_suffix(" < 10"))
    return found.loc[table["dataset"].unique()].reset_index()


def findings(claims: pd.DataFrame) -> list[str]:
    """The introduction's two sentences, with the numbers of each dataset.

    Parameters
    ----------
    claims : DataFrame
        From :func:`compute_claims`.

    Returns
    -------
    list of str
        Counts of all labels and instances, so without an error.
    """
    return [
        f"{row['dataset']}: {row['% labels >= 100']:.1f} % of the labels have 100 train points or more and hold "
        f"{row['% instances >= 100']:.0f} % of the instances; {row['% labels < 10']:.0f} % have fewer than 10 and hold "
        f"{row['% instances < 10']:.0f} %."
        for row in claims.to_dict("records")
    ]


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """Figures 1 and 4: a panel a dataset; bars for labels and instances, a mark where table 2 puts the labels.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    ax : array of Axes, shape (1, datasets), optional
    """
    names, place = table["dataset"].unique(), np.arange(len(BINS))
    hatched = {"color": looks.AMBER, "hatch": "//", "edgecolor": looks.WHITE, "label": "instances"}
    diamond = {"color": looks.WHITE, "markeredgecolor": looks.INK, "label": "labels, table 2"}
    # Panels keep their width: one or two do not fill a page.
    width = min(max(1.9 * len(names) + 0.8, 4.0), looks.PAGE)
    with figures.new(width, 3.1, ncols=len(names), ax=ax, sharey=True, squeeze=False) as (fig, axes):
        for panel, name in zip(axes[0], names, strict=True):
            part = table[table["dataset"] == name]
            panel.bar(place - 0.2, part["% labels"], 0.4, color=looks.INK, label="labels")
            panel.bar(place + 0.2, part["% instances"], 0.4, **hatched)
            if part[PRINTED].notna().any():
                panel.plot(place - 0.2, part[PRINTED], "D", **diamond)
            figures.draws(panel, y=["% labels", "% instances", PRINTED])
            panel.set_title(name, loc="left")
            panel.set_xticks(place, BINS, rotation=25)
            panel.set_xlabel("training points")
            panel.grid(axis="x", visible=False)
        axes[0, 0].set_ylabel("%")
        looks.title(fig, "Labels and their instances, by train points")
        looks.legend(fig)
    return fig


# ---------------------------------------------------------------- table 2


def statistics(ds: Dataset) -> dict[str, float]:
    """The columns of table 2 for one dataset.

    Parameters
    ----------
    ds : Dataset

    Returns
    -------
    dict of str to float
        The names of :data:`COLUMNS`: points and features are counted; the bins are of train points; labels a point
        are the mean over the train points.
    """
    counts = ds.label_counts
    which, _ = labelwise.frequency_bins(counts, counts.size)
    features = np.nan if ds.train.X is None else ds.train.X.shape[1]
    sizes = ds.n_train, ds.test.Y.shape[0], features, counts.sum() / ds.n_train, counts.size
    return dict(zip(COLUMNS, (*sizes, *np.bincount(which, minlength=len(BINS) + 1)[1:]), strict=True))


def compute_table2(loaded: Loaded, scales: Sequence[float] = ()) -> pd.DataFrame:
    """Every column of table 2 for every dataset.

    Parameters
    ----------
    loaded : mapping
        Printed name -> dataset.
    scales : sequence of float
        Of the twins, one for each dataset; empty: 1. Real data have 1.

    Returns
    -------
    DataFrame
        dataset, column, scale, ours, printed (text, without thousands commas; empty for a dataset that table 2 does not
        have), expected: N times the scale, features and labels a point as printed; labels and bins as printed at scale 1,
        and NaN below, where labels are as rare as a random subsample of the points has them, and some fall out.
    """
    record, rows = published.table("reeval:table2").set_index(["dataset", "metric"]), []
    for (title, ds), size in zip(loaded.items(), list(scales) or [1.0] * len(loaded), strict=True):
        scale = float(size) if isinstance(ds, Twin) else 1.0
        for column, ours in statistics(ds).items():
            there = title in record.index.get_level_values(0)
            value, printed = record.loc[(title, COLUMNS[column]), ["value", "printed"]] if there else (np.nan, "")
            expected = value * scale if column.startswith("N_") else value
            if scale < 1 and column.startswith("L"):
                expected = np.nan
            rows.append((title, column, scale, float(ours), printed.replace(",", ""), float(expected)))
    return pd.DataFrame(rows, columns=["dataset", "column", "scale", "ours", "printed", "expected"])


def compute_sums() -> pd.DataFrame:
    """What table 2's own numbers add up to.

    Returns
    -------
    DataFrame
        dataset, L, binned (the four bins together), unbinned (the rest), ours and printed: the share of the rarest
        bin that section 4 states, percent, of the binned labels.
    """
    shares, rows = published.table("reeval:sec4").set_index("dataset")["printed"], []
    for title, part in published.table("reeval:table2").groupby("dataset", sort=False):
        value = part.set_index("metric")["value"]
        bins = value[[COLUMNS[f"L {name}"] for name in BINS]]
        total, binned = int(value["n_labels"]), int(bins.sum())
        rows.append((title, total, binned, total - binned, 100 * bins.iloc[0] / binned, shares[title]))
    return pd.DataFrame(rows, columns=["dataset", "L", "binned", "unbinned", "ours", "printed"])
