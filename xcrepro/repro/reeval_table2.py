"""Table 2 of "Re-evaluating XMTC methods in tail label prediction": the datasets' statistics, column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xcrepro import published
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.data.twin import Twin
from xcrepro.inputs.longtail import Tail
from xcrepro.repro.reeval import EDGES

BINS = registry.BINS
COLUMNS = {
    "N_train": "n_train",
    "N_test": "n_test",
    "F": "n_features",
    "labels a point": "avg_labels_per_point",
    "L": "n_labels",
    **{f"L {name}": f"labels_{name}" for name in BINS},
}
"""Our name of each column of table 2 -> the published record's."""


def tails(loaded: Mapping[str, Dataset]) -> list[Tail]:
    """The train label counts of each dataset, under the names of the figure."""
    return [
        Tail(f"{title}, twin" if isinstance(ds, Twin) else title, ds.label_counts, not isinstance(ds, Twin))
        for title, ds in loaded.items()
    ]


def statistics(ds: Dataset) -> dict[str, float]:
    """The columns of table 2: points and features are counted; the bins are of train points; labels a point are the mean
    over the train points."""
    binned = np.bincount(np.digitize(ds.label_counts, EDGES), minlength=len(BINS) + 1)
    values = {
        "N_train": ds.n_train,
        "N_test": ds.test.Y.shape[0],
        "F": ds.train.X.shape[1],
        "labels a point": ds.label_counts.sum() / ds.n_train,
        "L": ds.label_counts.size,
    }
    return values | {f"L {name}": int(binned[b + 1]) for b, name in enumerate(BINS)}


def compared(loaded: Mapping[str, Dataset], scales: Sequence[float]) -> pd.DataFrame:
    """Every column of table 2 for every dataset: dataset, column, scale, ours, printed (text), expected: printed times the
    twin's scale (labels a point do not scale; for real data the scale is 1). Datasets that table 2 lacks are left out, and the
    printed numbers' thousands commas.
    """
    record, rows = published.table("reeval:table2"), []
    for (title, ds), size in zip(loaded.items(), scales, strict=True):
        paper = record[record["dataset"] == title].set_index("metric")
        if paper.empty:
            continue
        scale = size if isinstance(ds, Twin) else 1.0
        ours = statistics(ds)
        for column, metric in COLUMNS.items():
            expected = paper.loc[metric, "value"] * (1.0 if column == "labels a point" else scale)
            rows.append(
                (title, column, scale, float(ours[column]), paper.loc[metric, "printed"].replace(",", ""), expected)
            )
    return pd.DataFrame(rows, columns=["dataset", "column", "scale", "ours", "printed", "expected"])


def arithmetic() -> pd.DataFrame:
    """What table 2's own numbers add up to: dataset, L, binned (the four bins together), unbinned (the rest), ours and
    printed: the share of the rarest bin that section 4 states, percent, of the binned labels."""
    table, shares, rows = published.table("reeval:table2"), published.table("reeval:sec4"), []
    for title, part in table.groupby("dataset", sort=False):
        value = part.set_index("metric")["value"]
        binned = sum(value[f"labels_{name}"] for name in BINS)
        total = value["n_labels"]
        printed = shares.loc[shares["dataset"] == title, "printed"].iloc[0]
        share = 100 * value[f"labels_{BINS[0]}"] / binned
        rows.append((title, int(total), int(binned), int(total - binned), share, printed))
    return pd.DataFrame(rows, columns=["dataset", "L", "binned", "unbinned", "ours", "printed"])
