"""Two towers over features that came two hops through the graph of points and labels: the stand-in for GalaXC."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from scipy import sparse

from xcrepro.core.arguments import real_number
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth
from xcrepro.models.base import check_array, unit_rows
from xcrepro.models.networks import two_towers


@dataclass(eq=False)
class GraphTowers(two_towers.TwoTowers):
    """:class:`TwoTowers` over points that also have the words of their neighbours in the graph of points and labels.

    A point's first hop leads to the ``near`` labels whose words are most alike to its own, the second from each of them to its
    training points, of which a point is not its own neighbour. What is found there, the labels' words and the mean of their
    points, is weighted by how alike the label is, scaled to length 1, multiplied with ``mix`` and added to the point's own row.

    **What it stands in for.** GalaXC (Saini et al. 2021) sends features through graph convolutions over several hops, from
    known labels of the training points and from guesses for new ones, and a label attends to the hops. Here the convolution
    has no weights, training and test points find their labels in the same way, and the classifiers of the two towers score.

    Parameters
    ----------
    near : int
        Labels of the first hop.
    words : int
        Words of a label that are passed on, the heaviest; all others are left out, so that rows stay short.
    mix : float
        Weight of the neighbours, 0 for none.
    output, dim, epochs, batch, learning_rate, temperature, shortlist, hard, refresh, strength, seed
        As for :class:`TwoTowers`.

    Notes
    -----
    The three parameters of the graph are our choice. Scores, labels without words and bits are as for :class:`TwoTowers`.

    Examples
    --------
    >>> import xcrepro as xc
    >>> data = xc.twin("lf-amazontitles-131k", scale=0.001, seed=0)
    >>> model = xc.models.GraphTowers(dim=32, epochs=2).fit(data.train.X, data.train.Y, data.label_features)
    >>> model.predict(data.test.X, k=3)
    TopK(n=135, k=3, n_labels=607)
    """

    _: KW_ONLY
    near: int = 5
    words: int = 20
    mix: float = 0.5

    _GRAPH = ("names", "around")

    _LEAST = two_towers.TwoTowers._LEAST | {"near": 1, "words": 1}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        real_number("mix", self.mix, at_least=0, at_most=100)

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        unit, Y = unit_rows(X), truth.to_csr().astype(np.float64)
        names = self._words_of_labels(X, truth).astype(np.float64)
        share = Y @ sparse.diags(1 / np.maximum(truth.label_counts(), 1))
        around = heaviest(names + (share.T @ unit).tocsr(), self.words)
        for name, matrix in zip(self._GRAPH, (names, around), strict=True):
            matrix.sort_indices()
            setattr(self, f"{name}_", matrix)
        super()._fit(propagated(unit, names, around, self.near, self.mix, share), truth)

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        return super()._predict(propagated(unit_rows(X), self.names_, self.around_, self.near, self.mix), k)

    def _state(self) -> dict[str, np.ndarray]:
        parts = ("indptr", "indices", "data")
        return super()._state() | {
            f"{name}_{part}": getattr(getattr(self, f"{name}_"), part) for name in self._GRAPH for part in parts
        }

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        super()._restore(arrays)
        for name in self._GRAPH:
            data, indices, indptr = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
            check_array(f"{name} indptr", indptr, "iu", self.n_labels_ + 1)
            check_array(f"{name} indices", indices, "iu", -1)
            check_array(f"{name} data", data, "f", indices.size)
            matrix = sparse.csr_matrix((data, indices, indptr), (self.n_labels_, self.n_features_))
            matrix.check_format()
            setattr(self, f"{name}_", matrix)


def propagated(
    unit: sparse.csr_matrix,
    names: sparse.csr_matrix,
    around: sparse.csr_matrix,
    near: int,
    mix: float,
    share: sparse.csr_matrix | None = None,
) -> sparse.csr_matrix:
    """Rows with ``mix`` times what lies around the labels nearest to them, scaled to length 1.

    share: (n, L), of training points, how much of what lies around a label is the point itself; that is taken away.
    """
    alike = TopK.from_scores((unit @ names.T).tocsr(), near).to_csr().astype(np.float64)
    found = (alike @ around).tocsr()
    if share is not None:
        own = np.asarray(alike.multiply(share).sum(axis=1)).ravel()
        # Of its own words no more than are there: those that are not among the heaviest were not passed on.
        found = (found - (sparse.diags(own) @ unit).minimum(found)).tocsr()
    return (unit + mix * unit_rows(found)).tocsr()


def heaviest(matrix: sparse.csr_matrix, count: int) -> sparse.csr_matrix:
    """The largest entries of each row."""
    top = TopK.from_scores(matrix.astype(np.float32), min(count, matrix.shape[1]))
    return top.to_csr().astype(np.float64)
