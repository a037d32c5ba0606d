"""Linear one-vs-rest classifiers. What comes near them is napkinXC's ``BR`` (LIBLINEAR's solvers), which tests hold them to."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic
from xcrepro.core import threads as cores
from xcrepro.core.arguments import one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.matrices import checked_csr
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth
from xcrepro.models.base import ByPropensity, Model, by_stretches, check_array, unit_rows
from xcrepro.models.kernels import linear_train

_LOSSES = {"logistic": 10.0, "squared_hinge": 1.0}
"""Loss -> the default of C: napkinXC's for one, DiSMEC's for the other."""
_ALWAYS = (
    10.0  # the margin of a label that is relevant to every training point: there is nothing to separate; as in napkinXC
)
_LANES = 32  # labels that are trained side by side
_AT_ONCE = 256  # labels that are trained in one call: until it returns it has room for all their weights
_DENSE = 1 << 25  # weights up to this many places are multiplied dense (256 MB), larger ones sparse
_INT_MAX = 2**31 - 1
_BLOCK = 1 << 22  # scores held at once while predicting (32 MB)


@dataclass(eq=False)
class OneVsRest(Model):
    """One linear classifier a label, each trained alone on all points: minimises, over weights w and bias b,

        (‖w‖² + b²) / 2 + C Σ loss(y (w·x + b)),     y = ±1, every row x scaled to unit length.

    Parameters
    ----------
    loss : {"logistic", "squared_hinge"}
        log(1 + exp(-m)), scores are probabilities 1 / (1 + exp(-m)); or max(0, 1 - m)², scores are the margins m themselves,
        without bounds (the calibration paper squeezes them by (s - min) / (max - min)).
    C : float, optional
        Weight of the loss against the norm; None: 10 for logistic, 1 for squared hinge.
    eps : float
        A label is trained until its objective is proved, by the duality gap, to be at most this fraction above its minimum.
        Where float32 cannot prove as much, training ends when rounding is all that still moves the objective.
    threshold : float
        Weights smaller than this are set to 0 after training; the bias is kept.
    seed : int
        Of the samples of points from which the solver takes its second derivatives. The same seed gives the same bits for any
        number of threads, and a label's weights do not depend on the other labels.

    Attributes
    ----------
    weights_ : csr_matrix of float32, shape (D, L)
    bias_ : ndarray of float32, shape (L,)
        Minus infinity for labels never seen.
    loss_ : str

    Notes
    -----
    Labels that training never saw are not predicted: a row has fewer than k predictions where k is beyond the others.
    A label relevant to every training point has the margin 10, as in napkinXC. Rows without labels are negatives for every
    label; a row without features is scored by the biases alone. Ranks are those of the margins, so labels whose probabilities
    round to the same float32 keep their order; equal margins go to the lowest label id.

    Training takes 0.4 kB for each point, and 0.8 kB for each feature that a point has, on each thread.

    napkinXC's probabilities for the squared hinge, exp(-max(0, 1 - m)²), are not used: every margin above 1 becomes 1.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(3), np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0]])
    >>> top = OneVsRest().fit(X, Y).predict(X, k=3)
    >>> top.ids.tolist()                                    # label 2 was never seen
    [[0, 1, -1], [1, 0, -1], [0, 1, -1]]
    """

    loss: str = "logistic"
    C: float | None = None
    eps: float = 0.0001
    threshold: float = 0.01
    seed: int = 0

    def _check_probabilities(self) -> None:
        if self.loss_ != "logistic":
            do = "take predict's scores and calibrate them"
            raise ArgumentError("loss", "must be logistic for probabilities", repr(self.loss_), do)

    def _positives_count(self, truth: Truth) -> np.ndarray:
        """How often the loss of each label's positives counts."""
        return np.ones(truth.n_labels)

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        cost = _LOSSES[one_of("loss", self.loss, _LOSSES)]
        whole_number("seed", self.seed, 0, _INT_MAX)
        C = cost if self.C is None else real_number("C", self.C, above=0)
        eps, threshold = real_number("eps", self.eps, above=0), real_number("threshold", self.threshold, at_least=0)
        unit, counts = _training_rows(X), truth.label_counts()
        # A feature that no point has keeps the weight 0, and would take as long as any other.
        n_features, used = unit.shape[1], np.flatnonzero(np.bincount(unit.indices))
        unit = _csr(unit[:, used])
        n = unit.shape[0]
        columns = truth.to_csr().tocsc()
        labels = np.flatnonzero((counts > 0) & (counts < n))
        rows = unit.indptr.astype(np.int64), unit.indices.astype(np.uint32), unit.data
        total = np.bincount(unit.indices, unit.data, used.size)
        draw = np.random.default_rng(self.seed).random(n)
        times = self._positives_count(truth)[labels]

        def train(lo: int, hi: int) -> list:
            return [some(at, min(at + _AT_ONCE, hi)) for at in range(lo, hi, _AT_ONCE)]

        def some(lo: int, hi: int) -> tuple:
            positives = columns[:, labels[lo:hi]]
            return linear_train.train(
                *rows, total, positives.indptr.astype(np.int64), positives.indices, times[lo:hi],
                self.loss == "logistic", C, eps, draw, _LANES, threshold,
            )[:4]  # fmt: skip

        trained = [part for parts in cores.over_rows(labels.size, train, min_rows=_LANES) for part in parts]
        self.bias_ = np.full(truth.n_labels, -np.inf, np.float32)
        self.bias_[counts == n] = _ALWAYS
        self.bias_[labels] = np.concatenate([np.zeros(0, np.float32), *(part[3] for part in trained)])
        sizes = np.zeros(truth.n_labels, np.int64)
        sizes[labels] = np.concatenate([np.zeros(0, np.int64), *(np.diff(part[0]) for part in trained)])
        features = np.concatenate([np.zeros(0, np.int32), *(part[1] for part in trained)])
        weights = np.concatenate([np.zeros(0, np.float32), *(part[2] for part in trained)])
        by_label = sparse.csc_matrix((weights, used[features], np.cumsum([0, *sizes])), (n_features, truth.n_labels))
        self.weights_, self.loss_ = _csr(by_label), self.loss

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        X, n_labels = unit_rows(X), self.bias_.size
        dense = self.weights_.shape[0] * n_labels <= _DENSE
        weights = self.weights_.astype(np.float64)
        weights = weights.toarray() if dense else weights
        bias = self.bias_.astype(np.float64)

        def rank(stretch: slice) -> TopK:
            # Both products add up a row's features in their order, so they give the same bits.
            margins = X[stretch] @ weights
            return TopK.from_scores((margins if dense else margins.toarray()) + bias, k)

        top = by_stretches(rank, X.shape[0], k, n_labels, max(1, _BLOCK // n_labels))
        if self.loss_ != "logistic":
            return top
        scores = np.where(top.ids < 0, -np.inf, arithmetic.sigmoid(top.scores)).astype(np.float32)
        return TopK(top.ids, scores, n_labels)

    def _state(self) -> dict[str, np.ndarray]:
        matrix = self.weights_
        parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
        return {**parts, "bias": self.bias_, "loss": np.str_(self.loss_)}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        for name, kinds in (("data", "f"), ("indices", "iu"), ("indptr", "iu")):
            check_array(name, arrays[name], kinds, -1)
        parts = arrays["data"], arrays["indices"], arrays["indptr"]
        self.bias_, self.loss_ = arrays["bias"], str(arrays["loss"])
        self.weights_ = checked_csr("weights", sparse.csr_matrix(parts, shape=(parts[2].size - 1, self.bias_.size)))

    def _check_read(self) -> None:
        if self.weights_.shape != (self.n_features_, self.n_labels_):
            raise ValueError(f"weights of shape {self.weights_.shape}")
        check_array("bias", self.bias_, "f", self.n_labels_, also=(-np.inf,))


@dataclass(eq=False)
class DiSMEC(OneVsRest):
    """:class:`OneVsRest` with the squared hinge, C = 1, and weights below 0.01 pruned (Babbar and Schölkopf, 2017).

    The scores are margins without bounds; everything else is as there, but that the loss is no parameter.
    """

    loss: str = field(default="squared_hinge", init=False, repr=False)
    C: float = 1.0


@dataclass(eq=False)
class PWDiSMEC(ByPropensity, DiSMEC):
    """:class:`DiSMEC` for labels that go missing: the loss of a label's positives counts 2/p_l - 1 times (Qaraei, Schultheis,
    Gupta and Babbar, TheWebConf 2021; PWXMC on the repository's page).

    If a relevant label is recorded with the chance p, then y/p [f < 0] + (1 - y/p) [f > 0] over recorded y = 0 or 1 has as its
    mean the 0-1 loss on the complete truth (jain16, theorem 4.1). For y = 1 that is (2/p - 1) [f < 0] and a constant, and the
    squared hinge is put in place of [f < 0].

    Parameters
    ----------
    A, B : float
        The propensity model's parameters (jain16, eq. 1); N and N_l are counted on the training data.
    inverse_propensity : array_like of float, shape (L,)
        Values of 1/p_l, 1 or more and finite, in place of the model's; A and B then do nothing.
    C, eps, threshold, seed
        As for :class:`OneVsRest`. Positives that count more also weigh more against the norm.

    Attributes
    ----------
    inverse_propensity_ : ndarray of float64, shape (L,)
        What was used.

    Raises
    ------
    ArgumentError
        For values of 1/p below 1: the loss of a positive would count less than once.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(3), np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0]])
    >>> PWDiSMEC(inverse_propensity=[2.0, 5.0, 1.0]).fit(X, Y).predict(X, k=1).ids.T.tolist()
    [[0, 1, 0]]
    """

    A: float = 0.55
    B: float = 1.5
    inverse_propensity: tuple[float, ...] | None = None

    def _positives_count(self, truth: Truth) -> np.ndarray:
        found = self._inverse_propensities(truth)
        if (least := found.min()) < 1.0:
            raise ArgumentError("inverse_propensity", "must be 1 or more", least, "a propensity is a chance, 1 at most")
        return 2.0 * found - 1.0

    def _state(self) -> dict[str, np.ndarray]:
        return super()._state() | {"inverse_propensity": self.inverse_propensity_}

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        super()._restore(arrays)
        self.inverse_propensity_ = arrays["inverse_propensity"]


def _csr(matrix) -> sparse.csr_matrix:
    result = sparse.csr_matrix(matrix, dtype=np.float32)
    result.sort_indices()
    return result


def _training_rows(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Unit rows, of which one at least has a feature."""
    unit = _csr(unit_rows(X))
    if not unit.nnz:
        raise ArgumentError("X", "must have a feature that is not 0 in at least one row", f"none in {X.shape[0]} rows")
    return unit
