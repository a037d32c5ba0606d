"""Filter files of the LF datasets: what leaving out reciprocal pairs and the point itself is worth."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse

from xcrepro import looks
from xcrepro.arguments import real_number
from xcrepro.data import read_filter
from xcrepro.data.dataset import Dataset, Split
from xcrepro.errors import ArgumentError, DataMissing
from xcrepro.findings import corrected, count
from xcrepro.inputs import calibrated, parameters
from xcrepro.predictions import TopK
from xcrepro.repro import figures

MODELS = ("PLT", "PLT + labels", "Two towers")
"""Those of a run by default."""
KS = (1, 3, 5)
FILE = "filter_labels_test.txt"
"""Of a real dataset's folder."""
KEPT = "pairs kept in the truth"
NONE, FULL = "no filter", "filter"
"""The truth without the pairs, and what is done to the predictions."""
PARTS = {"itself": "filter, the point itself", "reciprocal": "filter, reciprocal pairs"}


@dataclasses.dataclass(frozen=True)
class Pairs:
    """A dataset with pairs that may not be predicted.

    Attributes
    ----------
    ds : Dataset
        Its test truth has none of the reciprocal pairs.
    itself, reciprocal : tuple of (rows, labels)
        Test points, and the label that is the point itself; test points, and the labels of which a train point has the test
        point for a label. Of real data all pairs of the filter file are in ``reciprocal``: the file does not tell them
        apart.
    kept : csr_matrix of float32, or None
        The test truth with the reciprocal pairs, where it is known.
    origin : str
        What the data are.
    """

    ds: Dataset
    itself: tuple[np.ndarray, np.ndarray]
    reciprocal: tuple[np.ndarray, np.ndarray]
    kept: sparse.csr_matrix | None
    origin: str

    def filters(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Name -> pairs that leave the predictions."""
        every = tuple(np.concatenate(pair) for pair in zip(self.itself, self.reciprocal, strict=True))
        parts = {text: getattr(self, name) for name, text in PARTS.items()} if self.itself[0].size else {}
        nothing = np.empty(0, np.int64), np.empty(0, np.int64)
        return {NONE: nothing, **parts, FULL: every}


def check_parameters(values: Mapping[str, object]) -> None:
    """The rules that items share, and of the share of pairs.

    Parameters
    ----------
    values : mapping of str to object
        The notebook's parameters.

    Raises
    ------
    ArgumentError
    """
    parameters.check(values)
    real_number("parameter share", values["share"], above=0, at_most=1)


def add_pairs(ds: Dataset, share: float, seed: int = 0) -> Pairs:
    """A dataset in which test points are labels too, and labels are train points.

    Parameters
    ----------
    ds : Dataset
        With words of its labels.
    share : float
        Of the pairs of a test point and a label of it, how many are given a reciprocal, in (0, 1]; fewer where that would
        leave a point without a label, as real data have no such test points.
    seed : int
        Which.

    Returns
    -------
    Pairs
        For each drawn pair (i, l), point i becomes a label with the point's words, label l a train point with the label's
        words, which has the label i; (i, l) leaves the test truth.

    Raises
    ------
    ArgumentError
        Where the labels have no words, or nothing can be drawn.
    """
    real_number("share", share, above=0, at_most=1)
    if ds.label_features is None:
        raise ArgumentError("dataset", "must have words of its labels", ds.name, "take one of the group label-features")
    Y = ds.test.Y.tocoo()
    remaining, chosen = np.diff(ds.test.Y.indptr), []
    for place in np.random.default_rng(seed).permutation(Y.nnz):
        if len(chosen) < round(share * Y.nnz) and remaining[Y.row[place]] > 1:
            remaining[Y.row[place]] -= 1
            chosen.append(place)
    if not chosen:
        raise ArgumentError("dataset", "must have test points with two labels", ds.name, "take a larger scale or share")
    order = np.sort(chosen)
    points, labels = Y.row[order].astype(np.int64), Y.col[order].astype(np.int64)
    (n_test, n_labels), (items, item_of) = ds.test.Y.shape, np.unique(points, return_inverse=True)
    works, work_of = np.unique(labels, return_inverse=True)
    wide = n_labels + items.size

    def widened(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
        return sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], wide))

    ones = np.ones(points.size, np.float32)
    back = sparse.csr_matrix((ones, (work_of, n_labels + item_of)), shape=(works.size, wide))
    back.data[:] = 1
    removed = sparse.csr_matrix((ones, (points, labels)), shape=(n_test, wide))
    kept = widened(ds.test.Y)
    test = (kept - removed).tocsr()
    test.eliminate_zeros()
    made = Dataset(
        name=f"{ds.name}-reciprocal{share:g}-seed{seed}",
        train=Split(
            sparse.vstack([ds.train.X, ds.label_features[works]], format="csr"),
            sparse.vstack([widened(ds.train.Y), back], format="csr"),
        ),
        test=Split(ds.test.X, test),
        A=ds.A,
        B=ds.B,
        published=ds.published,
        entry=ds.entry,
        comparable=ds.comparable,
        label_features=sparse.vstack([ds.label_features, ds.test.X[items]], format="csr"),
    )
    return Pairs(
        made, (items, n_labels + np.arange(items.size)), (points, labels), kept, f"{ds.origin}, with reciprocal pairs"
    )


def read_pairs(ds: Dataset, folder: str) -> Pairs:
    """A real dataset with the pairs of its filter file.

    Parameters
    ----------
    ds : Dataset
    folder : str
        Holds :data:`FILE`.

    Returns
    -------
    Pairs

    Raises
    ------
    DataMissing
        Where it does not.
    DataError
        For a pair that is none of the data.
    """
    path = Path(folder).expanduser() / FILE
    if not path.is_file():
        raise DataMissing(f"{path}: no such file; the LF datasets' archives have it, and this item is about it")
    nothing = np.empty(0, np.int64), np.empty(0, np.int64)
    return Pairs(ds, nothing, read_filter(path, shape=ds.test.Y.shape), None, ds.origin)


def leave_out(top: TopK, pairs: tuple[np.ndarray, np.ndarray], k: int) -> TopK:
    """The first k places once these pairs are out.

    Parameters
    ----------
    top : TopK
        With k places more than any row has pairs, or all that the model predicts.
    pairs : tuple of (rows, labels)
    k : int

    Returns
    -------
    TopK

    Examples
    --------
    >>> top = TopK(np.array([[2, 0, 1]], np.int32), np.array([[0.9, 0.5, 0.1]], np.float32), 3)
    >>> leave_out(top, (np.array([0]), np.array([2])), 2).ids.tolist()
    [[0, 1]]
    """
    return TopK.from_scores(top.to_csr(), k, exclude=pairs) if pairs[0].size else top.head(k)


def compute_counts(pairs: Pairs) -> pd.DataFrame:
    """How many pairs there are.

    Parameters
    ----------
    pairs : Pairs

    Returns
    -------
    DataFrame
        what, number.
    """
    points = np.unique(np.concatenate([pairs.itself[0], pairs.reciprocal[0]]))
    rows = [
        ("test points", pairs.ds.test.Y.shape[0]),
        ("test points with a pair in the filter", points.size),
        ("pairs: the point itself", pairs.itself[0].size),
        ("pairs: reciprocal", pairs.reciprocal[0].size),
        ("relevant pairs left in the test truth", pairs.ds.test.Y.nnz),
    ]
    return pd.DataFrame(rows, columns=["what", "number"])


def filtered(pairs: Pairs, tops: Mapping[str, TopK]) -> dict[tuple[str, str], TopK]:
    """Every model under every filter.

    Parameters
    ----------
    pairs : Pairs
    tops : mapping of str to TopK

    Returns
    -------
    dict
        (model, name of the filter) -> the first places.
    """
    most = max(KS)
    return {
        (name, text): leave_out(top, out, most) for name, top in tops.items() for text, out in pairs.filters().items()
    }


def compute(pairs: Pairs, tops: Mapping[str, TopK]) -> pd.DataFrame:
    """P@k of every model with each filter, and as it would be with the pairs in the truth.

    Parameters
    ----------
    pairs : Pairs
    tops : mapping of str to TopK
        Model -> its predictions for the test points, some places more than a row has pairs.

    Returns
    -------
    DataFrame
        model, what (:data:`KEPT`, :data:`NONE`, parts of the filter, :data:`FULL`), k, P (percent), ± (standard error over
        test points, a jackknife of 20 blocks).
    """
    truths = {"": pairs.ds}
    if pairs.kept is not None:
        truths[KEPT] = dataclasses.replace(pairs.ds, test=Split(pairs.ds.test.X, pairs.kept))
    rows = []
    for text, ds in truths.items():
        these = {(name, text): top.head(max(KS)) for name, top in tops.items()} if text else filtered(pairs, tops)
        for k in KS:
            found = calibrated.measured(ds, these, k, ("P",))["P"]
            rows += [(*key, k, value, found.error(key)) for key, value in found.values.items()]
    table = pd.DataFrame(rows, columns=["model", "what", "k", "P", "±"])
    places = {text: place for place, text in enumerate([KEPT, *pairs.filters()])}
    names = {name: place for place, name in enumerate(tops)}
    keys = [table["model"].map(names), table["what"].map(places), table["k"]]
    return table.iloc[np.lexsort(keys[::-1])].reset_index(drop=True)


def findings(pairs: Pairs, tops: Mapping[str, TopK], table: pd.DataFrame) -> list[str]:
    """What the filter is worth.

    Parameters
    ----------
    pairs : Pairs
    tops : mapping of str to TopK
    table : DataFrame
        Of :func:`compute`.

    Returns
    -------
    list of str
    """
    found = {f"{name}, {text}": top for (name, text), top in filtered(pairs, tops).items() if text in (NONE, FULL)}
    values = table.set_index(["model", "what", "k"])["P"]
    said = []
    gains = []
    for k in KS:
        measured = calibrated.measured(pairs.ds, found, k, ("P",))["P"]
        gains += [measured.difference(f"{name}, {FULL}", f"{name}, {NONE}") for name in tops]
    said.append(f"Over models and k, {count(corrected(gains), 'the filter raises P@k')}.")
    parts = [f"{name} {values[name, NONE, 1]:.1f} to {values[name, FULL, 1]:.1f} %" for name in tops]
    said.append(f"P@1 without and with the filter: {'; '.join(parts)}.")
    if pairs.itself[0].size:
        for name, text in PARTS.items():
            part = [f"{model} {values[model, text, 1] - values[model, NONE, 1]:+.1f}" for model in tops]
            of = "the point itself" if name == "itself" else "reciprocal pairs"
            said.append(f"To leave out {of} alone changes P@1 by points: {'; '.join(part)}.")
    if pairs.kept is not None:
        parts = [f"{name} {values[name, KEPT, 1]:.1f} %" for name in tops]
        said.append(f"Had the pairs stayed in the truth and no filter been asked for, P@1 would be {'; '.join(parts)}.")
    if len(tops) > 1:
        for text, where in ((NONE, "Without the filter"), (FULL, "With it")):
            one = {name: found[f"{name}, {text}"] for name in tops}
            lead = calibrated.measured(pairs.ds, one, 1, ("P",))["P"].leader("P@1").text
            said.append(f"{where}: {lead}.")
    return said


def plot(table: pd.DataFrame, ax=None) -> Figure:
    """P@k of each model, with each filter.

    Parameters
    ----------
    table : DataFrame
        Of :func:`compute`.
    ax : array of Axes, optional
        One a k.
    """
    texts = list(dict.fromkeys(table["what"]))
    names = looks.distinct(dict.fromkeys(table["model"]))
    height = 1.9 + 0.33 * len(texts)
    shape = {"ncols": len(KS), "sharey": True, "squeeze": False}
    with figures.new(looks.WIDE, height, ax=ax, **shape) as (fig, axes):
        for panel, k in zip(axes[0], KS, strict=True):
            for shift, (name, look) in zip(np.linspace(-0.18, 0.18, len(names)), names.items(), strict=True):
                part = table[(table["model"] == name) & (table["k"] == k)]
                at = np.array([texts.index(text) for text in part["what"]]) + shift
                panel.errorbar(
                    part["P"],
                    at,
                    xerr=2 * part["±"],
                    color=look.colour,
                    marker=look.marker,
                    linestyle="none",
                    label=name,
                )
            figures.draws(panel, x="P")
            panel.set(xlabel=f"P@{k}, %", yticks=range(len(texts)))
            panel.set_xlim(0, None)
        axes[0, 0].set_yticks(range(len(texts)), texts)
        axes[0, 0].invert_yaxis()
        looks.legend(fig, title="lines: two standard errors either way")
        looks.title(fig, "Precision with and without the filter of reciprocal pairs")
    return fig
