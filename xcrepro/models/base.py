"""What every baseline has in common: parameters, checks of its input, and a folder on disk."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, propensity, threads
from xcrepro.core.arguments import label_values, whole_number
from xcrepro.core.data.sources import npz_arrays, save_npz
from xcrepro.core.errors import ArgumentError, DataError, XCError
from xcrepro.core.matrices import checked_csr, checked_matrix, row_of
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth, as_truth
from xcrepro.core.version import __version__

_ABOUT = "model.json"
_ARRAYS = "arrays.npz"
_SCORES = 2**22  # of a stretch of rows that ranking holds at a time, a thread
_LARGEST = 1e15  # weight that no training comes near: millions of products of two add up to what float32 can hold


class NotFitted(XCError, ValueError):
    """A model was asked to predict or to be saved before ``fit``."""


class Model:
    """A multi-label classifier in scikit-learn's manners.

    A subclass is a ``dataclass(eq=False)`` whose fields are its parameters; ``fit`` never changes them, and what it learns
    ends in an underscore. It writes ``_fit`` and ``_predict``, and names its ``_arrays``; where its state is more than those,
    ``_state``/``_restore`` or ``_write``/``_read``.

    Attributes
    ----------
    n_features_, n_labels_ : int
        D and L of the training data.
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What ``fit`` learns, and what only some models have."""

    # ------------------------------------------------------------------ parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as ``__init__`` takes them. ``deep`` is there for scikit-learn."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters by name; what was fitted stays as it is until ``fit``.

        Raises
        ------
        ArgumentError
            For a name that is no parameter; none is changed then.
        """
        known = self.get_params()
        for name in parameters:
            if name not in known:
                raise ArgumentError(type(self).__name__, f"has the parameters {', '.join(known)}", name)
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    # ------------------------------------------------------------------ fit and predict

    def fit(self, X, Y) -> Self:
        """Learn from points and their labels.

        Parameters
        ----------
        X : sparse matrix or array_like, shape (n, D)
            Features, finite. Not changed.
        Y : sparse matrix or array_like, shape (n, L)
            Truth, any form :class:`xcrepro.core.truth.Truth` takes. Not changed.

        Returns
        -------
        Self
            The model.

        Raises
        ------
        ArgumentError
            Where the rows differ, there is nothing to learn, or a parameter breaks its rule.
        """
        X, truth = check_features(X), as_truth(Y)
        if X.shape[0] != truth.n_rows:
            raise ArgumentError("Y", f"must have a row for each of the {X.shape[0]} rows of X", f"{truth.n_rows} rows")
        if truth.indices.size == 0:
            rule = "must have at least one relevant label to learn from"
            raise ArgumentError("Y", rule, f"none in {truth.n_rows} rows")
        self._fit(X, truth)
        self.n_features_, self.n_labels_ = X.shape[1], truth.n_labels
        return self

    def predict(self, X, k: int = 5) -> TopK:
        """The k best labels of each row.

        Parameters
        ----------
        X : sparse matrix or array_like, shape (n, D)
            With the D of the training data.
        k : int
            1 or more.

        Returns
        -------
        TopK
            Ties to the lowest label id. The scores are the model's own: the class says what they mean.

        Raises
        ------
        NotFitted
            Before ``fit``.
        ArgumentError
            For another D, or a k that is none.
        """
        return self._predict(self._features(X), whole_number("k", k, 1))

    def predict_proba(self, X, k: int = 100) -> sparse.csr_matrix:
        """The probabilities of the k most probable labels of each row.

        Parameters
        ----------
        X, k
            As for :meth:`predict`; with k = L, all labels that the model predicts.

        Returns
        -------
        csr_matrix of float32, shape (n, L)
            A stored probability may be 0: too small for float32.

        Raises
        ------
        NotFitted
            Before ``fit``.
        ArgumentError
            Where the model's scores are no probabilities.
        """
        self._check_fitted()
        self._check_probabilities()
        return self.predict(X, min(whole_number("k", k, 1), self.n_labels_)).to_csr()

    def _features(self, X) -> sparse.csr_matrix:
        self._check_fitted()
        X = check_features(X)
        if X.shape[1] != self.n_features_:
            raise ArgumentError("X", f"must have the {self.n_features_} features of the training data", X.shape[1])
        return X

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_labels_"):
            raise NotFitted(f"{self!r} is not fitted: call fit(X, Y) first")

    def _check_parameters(self) -> None:
        """Raise ArgumentError where a parameter breaks its rule."""

    _probable: ClassVar[bool] = True  # are its scores probabilities?

    def _check_probabilities(self) -> None:
        """Raise ArgumentError where the scores of the fitted model are no probabilities."""
        if not self._probable:
            do = "take predict's scores and calibrate them"
            raise ArgumentError("model", "must have scores that are probabilities", type(self).__name__, do)

    def _fit(self, X: sparse.csr_matrix, truth: Truth) -> None:
        raise NotImplementedError

    def _predict(self, X: sparse.csr_matrix, k: int) -> TopK:
        raise NotImplementedError

    # ------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted model as the folder ``path``, whole or not at all; a model that is there is replaced.

        Raises
        ------
        NotFitted
            Before ``fit``.
        ArgumentError
            Where something else than a saved model is there.
        """
        self._check_fitted()
        path = Path(path)
        if path.exists() and not (path / _ABOUT).is_file():
            rule = f"must be new, or a saved model (a folder with {_ABOUT})"
            raise ArgumentError("path", rule, path, "choose another")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as room:
            new, old = Path(room, "new"), Path(room, "old")
            new.mkdir()
            self._write(new)
            about = {
                "class": type(self).__name__,
                "parameters": self.get_params(),
                "n_features": self.n_features_,
                "n_labels": self.n_labels_,
                "xcrepro": __version__,
                "files": _digests(new),
            }
            text = json.dumps(about, indent=1, default=lambda value: value.item())
            (new / _ABOUT).write_text(_sealed(text), encoding="utf-8")
            if path.exists():
                os.replace(path, old)
            try:
                os.replace(new, path)
            except OSError:
                if old.exists():
                    os.replace(old, path)
                raise

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read a model that :meth:`save` wrote. ``xc.models.load(path)`` finds the class by itself."""
        model = load(path)
        if not isinstance(model, cls):
            raise DataError(path, f"a {type(model).__name__}", f"a {cls.__name__}", do="xcrepro.models.load takes any")
        return model

    _arrays: ClassVar[tuple[str, ...]] = ()  # what fit learns, arrays and sparse matrices: names without the underscore

    def _state(self) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for name in self._arrays:
            value = getattr(self, f"{name}_")
            found |= _parts(name, value) if sparse.issparse(value) else {name: value}
        return found

    def _restore(self, arrays: dict[str, np.ndarray]) -> None:
        for name in self._arrays:
            setattr(self, f"{name}_", _whole(name, arrays) if f"{name}_indptr" in arrays else arrays[name])

    def _write(self, folder: Path) -> None:
        save_npz(folder / _ARRAYS, self._state())

    def _read(self, folder: Path) -> None:
        self._restore(npz_arrays(folder / _ARRAYS))

    def _check_read(self) -> None:
        """Raise ValueError where arrays that were read do not fit each other: kernels trust them."""


def _parts(name: str, matrix: sparse.csr_matrix) -> dict[str, np.ndarray]:
    """A sparse matrix as arrays of a file."""
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "columns": matrix.shape[1]}
    return {f"{name}_{part}": np.asarray(value) for part, value in parts.items()}


def _whole(name: str, arrays: dict[str, np.ndarray]) -> sparse.csr_matrix:
    """What :func:`_parts` gave, checked, for the file may be another's."""
    for part, kinds in (("data", "f"), ("indices", "iu"), ("indptr", "iu")):
        check_array(f"{name} {part}", arrays[f"{name}_{part}"], kinds, -1)
    data, indices, indptr = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    shape = indptr.size - 1, int(arrays[f"{name}_columns"])
    return checked_csr(name, sparse.csr_matrix((data, indices, indptr), shape=shape))


class _LabelWeights(tuple):
    """Label weights as plain numbers, so that they can be written to a file; shown by their number."""

    def __repr__(self) -> str:
        return f"'<{len(self)} values>'"


class ByPropensity(Model):
    """What models have in common that weigh labels by inverse propensities, given or those of equation 1 with A and B."""

    A: float
    B: float
    inverse_propensity: tuple[float, ...] | None

    def __setattr__(self, name: str, value) -> None:
        if name == "inverse_propensity" and value is not None:
            value = _LabelWeights(np.asarray(value, np.float64).ravel().tolist())
        super().__setattr__(name, value)

    def _inverse_propensities(self, truth: Truth) -> np.ndarray:
        """1/p of each label, which is kept."""
        if self.inverse_propensity is None:
            found = propensity.inverse(truth.label_counts(), truth.n_rows, self.A, self.B)
        else:
            found = label_values("inverse_propensity", self.inverse_propensity, truth.n_labels, zero=False)
        self.inverse_propensity_ = found
        return found

    def _check_read(self) -> None:
        super()._check_read()
        check_array("inverse propensities", self.inverse_propensity_, "f", self.n_labels_)


def load(path: str | os.PathLike) -> Model:
    """Read a model that :meth:`Model.save` wrote.

    Parameters
    ----------
    path : path_like
        The folder.

    Returns
    -------
    Model
        Of whatever class was saved, fitted.

    Raises
    ------
    DataError
        Where the folder is not a whole saved model: a file is missing or holds another content than was saved, or what it
        holds breaks the model's rules.
    """
    from xcrepro import models

    path = Path(path)
    try:
        text = (path / _ABOUT).read_text(encoding="utf-8")
        about = json.loads(text)
        kind, parameters, files = about["class"], about["parameters"], about["files"]
        n_features = whole_number("n_features", about["n_features"], 1)
        n_labels = whole_number("n_labels", about["n_labels"], 1)
    except FileNotFoundError:
        raise DataError(path, f"no {_ABOUT}", "the folder of a saved model", do="Model.save makes one") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        found = f"no readable description ({type(error).__name__}: {error})"
        raise DataError(path / _ABOUT, found, "what Model.save wrote", do="Train it again") from None
    if not isinstance(kind, str) or kind not in models.CLASSES:
        raise DataError(path / _ABOUT, f"class {kind!r}", f"one of {', '.join(models.CLASSES)}")
    try:
        if text != _sealed(text):
            raise ValueError(f"{_ABOUT} is not what was saved")
        for name, digest in _digests(path).items():
            if files.get(name) != digest:
                raise ValueError(f"{name} is not what was saved")
        if missing := sorted(files.keys() - _digests(path).keys()):
            raise ValueError(f"{missing[0]} is missing")
        model = getattr(models, kind)(**parameters)
        model._check_parameters()
        model.n_features_, model.n_labels_ = n_features, n_labels
        model._read(path)
        model._check_read()
    except Exception as error:
        # Whatever a file may hold that another hand wrote: nothing of it may go further.
        raise DataError(path, f"an incomplete model ({error})", "what Model.save wrote", do="Train it again") from error
    return model


_SEAL = re.compile(r'"sha256": "[0-9a-f]*"')


def _sealed(text: str) -> str:
    """The description with the digest of all the rest of it, so that no changed digit goes unseen."""
    if not _SEAL.search(text):
        text = text.rstrip().removesuffix("}").rstrip() + ',\n "sha256": ""\n}\n'
    digest = hashlib.sha256(_SEAL.sub("", text).encode()).hexdigest()
    return _SEAL.sub(f'"sha256": "{digest}"', text)


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a saved model but its description, by its place in the folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _ABOUT)
    found = {}
    for path in files:
        with path.open("rb") as file:
            found[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def check_array(name: str, array: np.ndarray, kinds: str, *shape: int, also: tuple[float, ...] = ()) -> None:
    """Raise ValueError where an array that was read is of another kind or shape than what was saved, or not finite.

    kinds: ``"iu"`` or ``"f"``, of the dtype. shape: -1 stands for any length. also: what is allowed though it is not
    finite, such as the bias of what never is so.
    """
    fits = array.ndim == len(shape) and all(want in (-1, have) for have, want in zip(array.shape, shape, strict=True))
    if not fits or array.dtype.kind not in kinds:
        words = {"iu": "whole numbers", "f": "real numbers"}[kinds]
        raise ValueError(f"{name} of {array.dtype} and shape {array.shape}, not {words} and {shape}")
    if not (np.isfinite(array) | np.isin(array, also)).all():
        raise ValueError(f"{name} that are not all finite")


def check_ids(name: str, array: np.ndarray, size: int, limit: int, rising: bool = True) -> None:
    """The same for ids below a limit, each above the one before."""
    check_array(name, array, "iu", size)
    if ((array < 0) | (array >= limit)).any() or (rising and (array[1:] <= array[:-1]).any()):
        raise ValueError(f"{name} that are no ids below {limit}" + ", each above the one before" * rising)


def check_weights(name: str, array: np.ndarray, *shape: int) -> None:
    """The same for a net's weights, float32, which are multiplied with each other."""
    check_array(name, array, "f", *shape)
    if array.dtype != np.float32 or (np.abs(array) > _LARGEST).any():
        raise ValueError(f"{name} that are not float32, {_LARGEST:g} at most in size")


def check_features(X) -> sparse.csr_matrix:
    """``X`` as CSR float32 with sorted int32 columns; shared with the caller where it is that already."""
    result = sparse.csr_matrix(checked_matrix("X", X, "features"), dtype=np.float32)
    if not result.has_canonical_format:
        result = result.copy()  # the caller's arrays are never written to
        result.sum_duplicates()
    if not np.isfinite(result.data).all():
        place = int(np.argmin(np.isfinite(result.data)))
        row, feature = row_of(result.indptr, place), result.indices[place]
        raise ArgumentError("X", "must be finite", f"{result.data[place]} at row {row}, feature {feature}")
    return result


def drawn_weights(seed: int, stream: int, deviation: float, *shape: int) -> np.ndarray:
    """Normal numbers of this standard deviation, float32: those of one stream of a seed."""
    weights = arithmetic.normals(seed, stream, *shape)
    weights *= deviation
    return weights.astype(np.float32)


def rank_by_products(
    rows: Callable[[slice], np.ndarray], n: int, weights: np.ndarray, bias: np.ndarray, k: int
) -> TopK:
    """The k labels of largest inner product and bias of each of n rows, of which ``rows`` gives a stretch, float32."""
    by_term = np.ascontiguousarray(weights.T)

    def rank(stretch: slice) -> TopK:
        z = arithmetic.product(rows(stretch), by_term)
        z += bias
        return TopK.from_scores(z, k)

    return by_stretches(rank, n, k, bias.size, max(1, min(256, _SCORES // bias.size)))


def by_stretches(predict: Callable[[slice], TopK], n: int, k: int, n_labels: int, size: int) -> TopK:
    """The predictions of n rows, of which ``predict`` makes a stretch of ``size``, in threads."""
    ids, scores = np.empty((n, k), np.int32), np.empty((n, k), np.float32)

    def fill(_: int, stretch: slice) -> None:
        top = predict(stretch)
        ids[stretch], scores[stretch] = top.ids, top.scores

    threads.over_stretches(n, size, fill)
    return TopK(ids, scores, n_labels)


def unit_rows(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """X with rows of length 1, in float64; a row without features stays empty."""
    X = X.astype(np.float64)
    X.eliminate_zeros()
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(lengths, np.diff(X.indptr))
    return X
