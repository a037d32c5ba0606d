"""The statistics on which conclusions about extreme classification turn: what a twin must share with its dataset.

``python -m xcrepro.repro.inputs.twin_statistics DIR`` counts them in the real data of a folder and puts them on record.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from xcrepro.core import metrics, paths, propensity
from xcrepro.core.data import registry
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.data.load import load
from xcrepro.core.data.read import read_labels
from xcrepro.core.errors import DataMissing
from xcrepro.models.popularity import Popularity

KS = (1, 3, 5)
# A label in fewer points can be beside another one in all of them, or follow a feature, by chance.
_COMPANION_POINTS = 5
_FEATURE_POINTS = 20
RECORD = "data/recorded/twin_statistics.csv"
DECIMALS = 3
# Folders of real data that are loaded by their names.
_LOADED = ("bibtex", "delicious")
_BROUGHT = "tib"  # needs no folder
# EURLex-4K's labels alone, train and test together. Share -> how many of the train and of the test points, in random order.
_LABELS, _LABELS_OF = "eurlex-4k-labels/Y_all_xcids_3993.txt", "eurlex-4k"
_SHARES = {1.0: (15_449, 3_865), 0.2: (3_108, 762)}


def statistics(ds: Dataset) -> dict[str, float]:
    """What is counted in the labels and features of a dataset with 3 labels or more, by default in its train points.

    Of a twin ``Y``, the observed truth, is counted. Without ``X`` what needs features is NaN. ``head share``,
    ``distinct label sets`` and ``points with at most 2 labels`` are shares of points, the Gini and the labels with at
    most 5 points are of the labels with a point. ``always beside another`` is the share of the labels with 5 or more
    points that have one other label in all of them, ``others that share 3 labels`` the mean number of such points, phi
    a feature's correlation with a label of 20 or more points. ``best gain`` is the mean over test points of the largest
    1/p of their labels. ``Popularity`` is percent.
    """
    Y, counts = ds.train.Y.astype(np.float64).tocsr(), ds.label_counts
    sizes, seen = np.diff(Y.indptr), counts > 0
    in_test = np.bincount(ds.test.Y.indices, minlength=counts.size) > 0
    found = {
        "head share": counts.max() / Y.shape[0],
        "labels a point": sizes.mean(),
        "sd of labels a point": sizes.std(),
        "points with at most 2 labels": (sizes <= 2).mean(),
        "Gini of label counts": _gini(counts[seen]),
        "labels with at most 5 points": (counts[seen] <= 5).mean(),
        "test labels without a train point": (~seen[in_test]).mean(),
    }
    found |= _companions(Y[:, seen], counts[seen])
    sets = {Y.indices[lo:hi].tobytes() for lo, hi in zip(Y.indptr, Y.indptr[1:], strict=False)}
    found["distinct label sets"] = len(sets) / Y.shape[0]
    found["others that share 3 labels"] = _alike(Y)
    found |= _features(ds.train.X, Y[:, counts >= _FEATURE_POINTS])
    weight = propensity.inverse(counts, ds.n_train, ds.A, ds.B)
    gains = ds.test.Y.multiply(weight).max(axis=1).toarray().ravel()
    found["best gain"] = gains[np.diff(ds.test.Y.indptr) > 0].mean()
    top = Popularity().fit(sparse.csr_matrix((Y.shape[0], 1)), Y).predict(sparse.csr_matrix((ds.test.Y.shape[0], 1)), 5)
    for name, values in (
        ("P", metrics.precision(ds.test.Y, top, KS)),
        ("PSP", metrics.psp(ds.test.Y, top, KS, inverse_propensity=weight)),
    ):
        found |= {f"Popularity {name}@{k}": 100 * value for k, value in zip(KS, values, strict=True)}
    return {name: float(value) for name, value in found.items()}


def _gini(counts: np.ndarray) -> float:
    """Half the mean difference of two labels' counts, over their mean."""
    rank = np.arange(1, counts.size + 1)
    return 2 * (rank * np.sort(counts)).sum() / (counts.size * counts.sum()) - (counts.size + 1) / counts.size


def _companions(Y: sparse.csr_matrix, counts: np.ndarray) -> dict[str, float]:
    """How labels go together; every column has a point."""
    together = (Y.T @ Y).tocsr()
    together.setdiag(0)
    together.eliminate_zeros()
    often = counts >= _COMPANION_POINTS
    beside = together.max(axis=1).toarray().ravel()
    cosine = sparse.diags(1 / np.sqrt(counts)) @ together @ sparse.diags(1 / np.sqrt(counts))
    return {
        "always beside another": (beside[often] == counts[often]).mean(),
        "nearest label": cosine.max(axis=1).toarray().ravel()[often].mean(),
        "pairs that co-occur": together.nnz / (counts.size * (counts.size - 1)),
    }


def _alike(Y: sparse.csr_matrix, labels: int = 3, block: int = 500) -> float:
    """Other points that share so many labels with a point, mean: block by block, as all pairs would not fit in memory."""
    turned, rows = Y.T.tocsr(), Y.shape[0]
    pairs = sum(int(((Y[at : at + block] @ turned).data >= labels).sum()) for at in range(0, rows, block))
    alone = int((np.diff(Y.indptr) >= labels).sum())
    return (pairs - alone) / rows


def _features(X: sparse.csr_matrix | None, Y: sparse.csr_matrix) -> dict[str, float]:
    """How much single features tell of single labels (phi), and how many a point has."""
    names = "features a point", "features with phi > 0.1 a label", "best phi", "second to best phi"
    if X is None or Y.shape[1] == 0:
        return dict.fromkeys(names, np.nan)
    present = X.astype(bool).astype(np.float64).tocsr()
    n, with_feature = X.shape[0], np.bincount(present.indices, minlength=X.shape[1]).astype(float)
    with_label = np.bincount(Y.indices, minlength=Y.shape[1]).astype(float)
    both = (Y.T @ present).tocsr()
    informative, best, second = [], [], []
    for label, (lo, hi) in enumerate(zip(both.indptr, both.indptr[1:], strict=False)):
        f, m = with_feature[both.indices[lo:hi]], with_label[label]
        phi = (n * both.data[lo:hi] - f * m) / np.sqrt(np.maximum(f * (n - f) * m * (n - m), 1.0))
        informative.append((phi > 0.1).sum())
        top = np.sort(np.append(phi, [0.0, 0.0]))[-2:]
        best.append(top[1])
        second.append(top[0] / top[1] if top[1] > 0 else 0.0)
    values = np.diff(present.indptr).mean(), np.mean(informative), np.mean(best), np.mean(second)
    return dict(zip(names, values, strict=True))


# ---------------------------------------------------------------- on record


def real(data: Path) -> Iterator[tuple[str, float, Dataset]]:
    """Key, share of the points and dataset of the real data that are counted: those of a folder and those of the kit."""
    homes = {name: data / name for name in _LOADED} | {_LABELS_OF: data / _LABELS, _BROUGHT: None}
    for name, home in sorted(homes.items()):
        if home is not None and not home.exists():
            continue
        if name != _LABELS_OF:
            yield name, 1.0, load(name, home)
            continue
        Y, entry = read_labels(home), registry.get(name)
        order = np.random.default_rng(0).permutation(Y.shape[0])
        train, test = np.split(order, [_SHARES[1.0][0]])
        for share, (n_train, n_test) in _SHARES.items():
            parts = Y[train[:n_train]], Y[test[:n_test]]
            yield name, share, Dataset(name, *(Split(None, part) for part in parts), A=entry.A, B=entry.B)


def count(data: Path) -> pd.DataFrame:
    """The statistics of the real data in a folder: dataset, share, statistic, value (rounded to :data:`DECIMALS`)."""
    if not data.is_dir():
        raise DataMissing(f"{data}: no such folder; it should hold {', '.join((*_LOADED, _LABELS))}, or some of them")
    rows = [
        (name, share, statistic, round(value, DECIMALS))
        for name, share, ds in real(data)
        for statistic, value in statistics(ds).items()
        if not np.isnan(value)
    ]
    return pd.DataFrame(rows, columns=["dataset", "share", "statistic", "value"])


def write(statistics: pd.DataFrame) -> Path:
    """Put statistics on record, in :data:`RECORD`; those of other datasets stay there as they are."""
    path = paths.project_root() / RECORD
    if path.is_file():
        old = pd.read_csv(path)
        statistics = pd.concat([old[~old["dataset"].isin(statistics["dataset"])], statistics])
    statistics = statistics.sort_values("dataset", kind="stable")
    with paths.atomic_path(path) as part:
        statistics.to_csv(part, index=False, lineterminator="\n")
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count the statistics of real data and put them on record.")
    parser.add_argument("data", type=Path, metavar="DIR", help="holds a folder for each dataset")
    print(f"wrote {write(count(parser.parse_args().data.expanduser()))}")
