"""FastXML, PfastXML and PfastreXML (jain16, section 6; FastXML itself: Prabhu and Varma 2014): trees for a ranking loss.

A node's rows are split so that each side, ranking the labels in an order of its own, ranks its rows' labels as high as it
can. Rows start on a side by chance; then, until nothing improves, each side sorts the labels by their summed gain and
each row goes to the side that ranks its own labels higher. An l1-regularised logistic separator learns the outcome and
sends the rows on. A leaf keeps the shares of its labels.

The trees take X as it comes, with a bias feature behind it. So the scale of X and C act together: C = 1, the published
default, suits tf-idf rows of unit length and binary rows that are not scaled. On Bibtex scaled to unit rows it leaves
leaves of 25 rows and costs 3 points of P@1 (C = 5 makes up for it).

A row without labels goes where its features send it, and counts among the rows of its leaf. A row without features is its
bias. A node is a leaf where it is small enough, where all its rows carry the same labels (no split could change a
prediction), or where the partition or its separator leaves a side empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, threads
from xcrepro.core.arguments import one_of, real_number, whole_number
from xcrepro.core.matrices import checked_csr
from xcrepro.core.predictions import TopK, empty_places
from xcrepro.core.truth import Truth
from xcrepro.models.base import ByPropensity, Model, check_array
from xcrepro.models.kernels import fastxml as kernel


@dataclass(eq=False)
class FastXML(Model):
    """An ensemble of trees whose nodes maximise nDCG: jain16, eq. 3, and eq. 4 with every propensity 1.

    **Scores**: the mean over the trees of the share of the reached leaf's train rows that carry the label. They are in
    [0, 1] and estimate the probability that the label is relevant, as observed: calibration takes them as they are. A
    label that no reached leaf holds is not predicted, so a row may have fewer than k labels.

    Parameters
    ----------
    trees : int
        How many, 1 or more.
    max_leaf : int
        A node of at most so many rows is a leaf; 1 or more.
    C : float
        C_delta of eq. 4, the weight of the logistic loss against the separator's l1 norm, positive. The two sides of a
        partition have equal shares in that loss, whatever their sizes.
    bias : float
        The constant feature's value, 0 for none.
    labels_per_leaf : int
        How many labels a leaf keeps, its best; 1 or more.
    ideal : {"labels", "L"}
        What a row's gain is divided by, with I(m) = sum over r = 1..m of 1/log2(r + 1): I(|y|), as in FastXML; or I(L), as
        eq. 4 is printed.
    tol : float
        How exactly a separator is optimised; liblinear's ``-e``, positive.
    seed : int
        0 or more. Each tree has a random stream of its own: a smaller ensemble is the beginning of a larger one, and the
        number of threads changes nothing.

    Notes
    -----
    A separator is solved to ``tol``. The authors' program stops after ten Newton steps of ten sweeps each. On Bibtex, as the
    mean of seeds 0 to 3 with 50 trees, that changes no number by more than 0.5 points. Percent, P@1, 3, 5 and PSP@1, 3, 5:

    ==========================  ==================  ==================
    printed                     63.4   39.2   28.9  48.5   52.3   58.3
    solved to ``tol``           63.5   38.9   28.3  48.8   52.3   57.8
    ten steps of ten sweeps     63.1   38.8   28.5  48.4   52.0   58.1
    ==========================  ==================  ==================

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.eye(4), 5, axis=0)
    >>> Y = np.repeat([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 1]], 5, axis=0)
    >>> top = FastXML(trees=9, max_leaf=5, C=10).fit(X, Y).predict(np.eye(4), k=1)
    >>> top.ids.ravel()
    array([0, 0, 1, 1], dtype=int32)
    """

    trees: int = 50
    max_leaf: int = 10
    C: float = 1.0
    bias: float = 1.0
    labels_per_leaf: int = 100
    ideal: str = "labels"
    tol: float = 0.01
    seed: int = 0

    # ------------------------------------------------------------------ fit

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        self._check_parameters()
        rows = _with_bias(X, self.bias)
        gains = self._label_gains(truth)
        discount = 1.0 / arithmetic.log2(np.arange(truth.n_labels) + 2.0)
        perfect = np.append(1.0, np.cumsum(discount))  # a row without labels has no gain to divide
        ideal = perfect[truth.sizes] if self.ideal == "labels" else np.full(truth.n_rows, perfect[-1])
        seeds = np.random.default_rng(self.seed).integers(2**63, size=self.trees)
        indptr, indices = truth.indptr.astype(np.int64), truth.indices.astype(np.int32)

        data = *rows, X.shape[1] + 1, indptr, indices, gains, ideal, discount
        settings = int(self.max_leaf), float(self.C), float(self.tol), int(self.labels_per_leaf)

        def grow(lo: int, hi: int) -> list[list[np.ndarray]]:
            return [_cut(*kernel.grow(*data, seed, *settings)) for seed in seeds[lo:hi]]

        trees = [tree for block in threads.over_rows(self.trees, grow, min_rows=1) for tree in block]
        left, w_indptr, w_indices, w_data, p_indptr, p_indices, p_data = zip(*trees, strict=True)
        # One forest: node ids and offsets go on from tree to tree.
        self.roots_ = np.cumsum([0, *(nodes.size for nodes in left[:-1])])
        nodes, root = np.concatenate(left), np.repeat(self.roots_, [part.size for part in left])
        self.left_ = np.where(nodes == kernel.LEAF, nodes, nodes + root).astype(np.int32)
        self.w_indptr_, self.p_indptr_ = _chain(w_indptr), _chain(p_indptr)
        self.w_indices_, self.w_data_ = np.concatenate(w_indices), np.concatenate(w_data)
        self.p_indices_, self.p_data_ = np.concatenate(p_indices), np.concatenate(p_data)

    def _check_parameters(self) -> None:
        for name, least in (("trees", 1), ("max_leaf", 1), ("labels_per_leaf", 1), ("seed", 0)):
            whole_number(name, getattr(self, name), least)
        for name in ("C", "tol"):
            real_number(name, getattr(self, name), above=0)
        real_number("bias", self.bias)
        one_of("ideal", self.ideal, ("labels", "L"))

    def _label_gains(self, truth: Truth) -> np.ndarray:
        """(L,) float64: what a label is worth at the first rank, and a row of a leaf to its label's share."""
        return np.ones(truth.n_labels)

    # ------------------------------------------------------------------ predict

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        self._check_parameters()  # they may have changed since fit, or come from a file
        rows, n_features, n_labels = _with_bias(X, self.bias), X.shape[1] + 1, self.n_labels_
        forest = [getattr(self, f"{name}_") for name in FastXML._arrays]
        tail = self._tail()
        ids, scores = empty_places(X.shape[0], k)

        def walk(lo: int, hi: int) -> None:
            kernel.predict(*rows, n_features, n_labels, *forest, *tail, lo, hi, ids, scores)

        threads.over_rows(X.shape[0], walk, min_rows=256)
        return TopK(ids, scores, n_labels)

    def _tail(self) -> tuple:
        """The labels' means (CSR rows, squared lengths), alpha and gamma; alpha 1 is: no re-ranking."""
        return np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0), False, 1.0, 0.0

    # ------------------------------------------------------------------ files

    _arrays: ClassVar[tuple[str, ...]] = (
        "roots", "left", "w_indptr", "w_indices", "w_data", "p_indptr", "p_indices", "p_data"
    )  # fmt: skip

    def _check_read(self) -> None:
        """Refuses trees that the walk down would leave, whoever wrote them."""
        nodes, at = self.left_.size, np.arange(self.left_.size)
        check_array("nodes", self.left_, "iu", nodes)
        check_array("roots", self.roots_, "iu", -1)
        check_array("weights", self.w_data_, "f", -1)
        check_array("shares", self.p_data_, "f", -1)
        inner = self.left_ != kernel.LEAF
        _check_rows("the classifiers", (nodes, self.n_features_ + 1), self.w_indptr_, self.w_indices_, self.w_data_)
        _check_rows("the leaves", (nodes, self.n_labels_), self.p_indptr_, self.p_indices_, self.p_data_)
        if not (self.roots_.size and (self.roots_ >= 0).all() and (self.roots_ < nodes).all()):
            raise ValueError("its roots are no nodes")
        # Children stand behind their parent, so that every walk ends.
        if not ((self.left_ > at) & (self.left_ < nodes - 1))[inner].all():
            raise ValueError("its nodes do not fit each other")
        if not (self.p_data_ > 0).all():
            raise ValueError("its leaves hold a label without a share")


@dataclass(eq=False)
class PfastXML(ByPropensity, FastXML):
    """FastXML for propensity-scored nDCG (jain16, eq. 4): a label's gain is its inverse propensity 1/p_l, not 1.

    The weights enter the nodes' objective, and the leaves too: eq. 4 comes out of FastXML's by putting y_l / p_l in
    place of y_l everywhere, and then a leaf's shares estimate those of the complete truth (theorem 4.1).

    **Scores**: the mean over the trees of the sum of 1/p_l over the leaf's rows that carry the label, by the leaf's rows.
    Unbiased for the complete truth's share where the propensities are right, but in [0, max 1/p]: not a probability.

    Parameters
    ----------
    A, B : float
        The propensity model's parameters (eq. 1); N and N_l are counted on the training data.
    inverse_propensity : array_like of float, shape (L,)
        Values of 1/p_l, positive and finite, in place of the model's; A and B then do nothing.
    trees, max_leaf, C, bias, labels_per_leaf, ideal, tol, seed
        As for :class:`FastXML`; ``ideal`` is as eq. 4 is printed, a constant, without which theorem 4.1 does not hold.

    Attributes
    ----------
    inverse_propensity_ : ndarray of float64, shape (L,)
        What was used.

    Examples
    --------
    >>> import xcrepro as xc
    >>> data = xc.twin("eurlex-4k", scale=0.02, seed=0)
    >>> model = PfastXML(trees=3, A=0.55, B=1.5).fit(data.train.X, data.train.Y)
    >>> model.predict(data.test.X, k=3)
    TopK(n=76, k=3, n_labels=816)
    """

    ideal: str = "L"
    A: float = 0.55
    B: float = 1.5
    inverse_propensity: tuple[float, ...] | None = None

    _probable = False

    def _label_gains(self, truth: Truth) -> np.ndarray:
        return self._inverse_propensities(truth)

    _arrays: ClassVar[tuple[str, ...]] = (*FastXML._arrays, "inverse_propensity")


@dataclass(eq=False)
class PfastreXML(PfastXML):
    """PfastXML, its labels re-ranked by classifiers for the tail (jain16, eq. 5, 7 and 8).

    mu_l is the mean of the label's train rows (eq. 7), P(y_l | x) = 1 / (1 + exp(gamma/2 |x - mu_l|^2)) (eq. 5); here x is
    scaled to unit length, which gamma = 30 supposes. Eq. 8 adds logarithms: without them the second term, e^-9 and less,
    moves no label.

    **Scores**: exp of eq. 8, P_trees^alpha P(y_l | x)^(1 - alpha), falling as eq. 8 does. In [0, max 1/p], and small: an
    order more than a probability.

    Parameters
    ----------
    alpha : float
        The trees' share in eq. 8, 0 to 1; 1 is PfastXML exactly.
    gamma : float
        The tail classifiers' sharpness in eq. 5, 0 or more.
    form : {"paper", "program"}
        What the tail classifiers see. ``"paper"``: x of unit length, and exp(gamma/2 |x - mu_l|^2). ``"program"``: the authors'
        program, which scales each row together with its constant feature to unit length and leaves out the half. On rows of
        unit length both are the same with bias 1, because that halves the squared distance; on longer rows, as Bibtex's and
        Delicious's, the program's gamma of 30 is nearly 60 here.
    trees, max_leaf, C, bias, labels_per_leaf, ideal, tol, seed, A, B, inverse_propensity
        As for :class:`PfastXML`.

    Notes
    -----
    alpha and gamma act in ``predict``: ``set_params`` changes them without a new ``fit``, and :meth:`pfastxml` is the
    PfastXML of the same trees.

    Otherwise the program does what is done here: 1/p_l in the nodes and in the leaves, a constant ideal, 100 labels a leaf.

    **Printed results.** On Bibtex the repository's row is met in either form. On Delicious (split 0, 50 trees) it is met by
    neither, and not by the authors' program itself at its defaults, which ``form="program"`` follows to 0.2 points. Percent,
    P@1, 3, 5 and PSP@1, 3, 5:

    =====================================  ==================  ==================
    printed                                67.1   62.3   58.6  34.6   34.8   35.9
    the authors' program                   61.5   56.9   54.3  36.6   36.9   37.7
    form="program"                         61.4   56.9   54.5  36.6   36.8   37.8
    form="paper"                           65.0   59.9   56.9  37.4   37.7   38.6
    alpha = 0.9                            66.9   62.2   58.8  37.2   38.0   39.0
    10 labels a leaf                       65.4   60.7   57.4  37.3   37.9   38.8
    no weights: all 1/p_l = 1              68.8   63.4   59.3  36.1   37.0   37.8
    C = 0.1 and alpha = 0.95               68.4   62.6   57.8  35.2   35.9   36.3
    =====================================  ==================  ==================

    The last is within 1.3 points of the printed row, but misses Bibtex's by up to 5.6. What made the printed row is not known.

    Examples
    --------
    >>> import xcrepro as xc
    >>> data = xc.twin("eurlex-4k", scale=0.02, seed=0)
    >>> model = PfastreXML(trees=3).fit(data.train.X, data.train.Y)
    >>> plain = model.pfastxml().predict(data.test.X, k=3)
    >>> bool((model.set_params(alpha=1.0).predict(data.test.X, k=3).ids == plain.ids).all())
    True
    """

    alpha: float = 0.8
    gamma: float = 30.0
    form: str = "paper"

    def pfastxml(self) -> PfastXML:
        """The fitted PfastXML inside: the same trees, shared, without re-ranking."""
        self._check_fitted()
        model = PfastXML(
            **{name: value for name, value in self.get_params().items() if name not in ("alpha", "gamma", "form")}
        )
        model.n_features_, model.n_labels_ = self.n_features_, self.n_labels_
        model._restore(self._state())
        return model

    def _check_parameters(self) -> None:
        super()._check_parameters()
        real_number("alpha", self.alpha, at_least=0, at_most=1)
        real_number("gamma", self.gamma, at_least=0)
        one_of("form", self.form, ("paper", "program"))

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        super()._fit(X, truth)
        unit = self._tail_rows(X).astype(np.float64)
        length = np.sqrt(np.asarray(unit.multiply(unit).sum(axis=1)).ravel())
        unit = sparse.diags_array(1.0 / np.where(length > 0, length, 1.0)) @ unit
        counts = np.maximum(truth.label_counts(), 1)  # a label never seen has no row to divide
        means = sparse.csr_matrix(sparse.diags_array(1.0 / counts) @ (truth.to_csr().T @ unit), dtype=np.float32)
        means.sort_indices()
        self.m_indptr_, self.m_indices_ = means.indptr.astype(np.int64), means.indices.astype(np.int32)
        self.m_data_ = means.data
        self.m_square_ = np.asarray(means.astype(np.float64).power(2).sum(axis=1)).ravel()
        self.m_whole_ = np.bool_(self.form == "program")

    def _tail_rows(self, X: sparse.csr_matrix) -> sparse.csr_matrix:
        """What the tail classifiers see of each row, before it is scaled to unit length."""
        if self.form == "paper":
            return X
        indptr, indices, data = _with_bias(X, self.bias)
        return sparse.csr_matrix((data, indices, indptr), shape=(X.shape[0], X.shape[1] + 1))

    def _tail(self) -> tuple:
        means = (self.m_indptr_, self.m_indices_, self.m_data_, self.m_square_, bool(self.m_whole_))
        return *means, float(self.alpha), float(self.gamma) * (2 if self.m_whole_ else 1)

    _arrays: ClassVar[tuple[str, ...]] = (*PfastXML._arrays, "m_indptr", "m_indices", "m_data", "m_square", "m_whole")

    def _check_read(self) -> None:
        super()._check_read()
        rows = self.m_indptr_, self.m_indices_, self.m_data_
        _check_rows("the means of the labels", (self.n_labels_, self.n_features_ + 1), *rows)
        check_array("means", self.m_data_, "f", -1)
        check_array("lengths of means", self.m_square_, "f", self.n_labels_)
        if np.shape(self.m_whole_) or np.asarray(self.m_whole_).dtype != bool:
            raise ValueError("no word on which form its means have")


def _check_rows(name: str, shape: tuple[int, int], indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> None:
    """Refuse the CSR rows of a saved model that do not fit each other or ``shape``."""
    matrix = sparse.csr_matrix(shape, dtype=np.float32)
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, data
    checked_csr(name, matrix)


def _with_bias(X: sparse.csr_matrix, bias: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """indptr, indices, data of X with a constant feature behind the last, in the kernels' types."""
    both = sparse.hstack([X, sparse.csr_matrix(np.full((X.shape[0], 1), bias, np.float32))], format="csr")
    return both.indptr.astype(np.int64), both.indices.astype(np.int32), both.data.astype(np.float32)


def _cut(n_nodes, left, w_indptr, w_indices, w_data, p_indptr, p_indices, p_data) -> list[np.ndarray]:
    """A grown tree's arrays, copied to the length in use."""
    w, p = w_indptr[n_nodes], p_indptr[n_nodes]
    ends = (n_nodes, n_nodes + 1, w, w, n_nodes + 1, p, p)
    arrays = (left, w_indptr, w_indices, w_data, p_indptr, p_indices, p_data)
    return [array[:end].copy() for array, end in zip(arrays, ends, strict=True)]


def _chain(indptrs: tuple[np.ndarray, ...]) -> np.ndarray:
    """The indptr of CSR matrices one below the other."""
    return np.append(0, np.cumsum(np.concatenate([np.diff(indptr) for indptr in indptrs])))
