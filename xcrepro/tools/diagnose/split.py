"""An honest first look at a split: points that training has seen, labels that it has not, names that the texts give away."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from xcrepro.core.errors import ArgumentError
from xcrepro.core.matrices import checked_csr
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth, as_truth
from xcrepro.tools.diagnose.alignment import Finding

MOST_TEXTS = 20_000
"""Points whose texts are searched for names, at most."""


def first_look(
    Y,
    *,
    Y_train=None,
    X=None,
    X_train=None,
    texts: Sequence[str] = (),
    train_texts: Sequence[str] = (),
    label_names: Sequence[str] = (),
) -> list[Finding]:
    """What makes test points easier or harder than a model's own merit: a finding for each of three, with what to do.

    Parameters
    ----------
    Y : sparse matrix or array_like, shape (n, L), or Truth
        The truth of the test points.
    Y_train : sparse matrix or array_like, shape (N, L), optional
        Tells which labels have no training point.
    X, X_train : sparse matrices, shapes (n, D) and (N, D), optional
        Features. Two points are near-duplicates if the same features are not 0, whatever their values.
    texts, train_texts : sequences of str, of n and of N, optional
        Two points are near-duplicates, too, if their texts have the same set of words; capitals, order, punctuation and
        repetitions do not count.
    label_names : sequence of str, of L, optional
        With ``texts``: how many relevant pairs have the label's name in the text, as whole words. Of more than 20,000 points as
        many are drawn.

    Returns
    -------
    list of Finding
        Of the kinds "points of both splits" (``evidence["rows"]`` are the test points), "labels unseen in training" and "names
        in texts", each only if there is one and what it needs was given. Points without a feature, or a word, are no
        duplicates.

    Raises
    ------
    ArgumentError
        For a truth that is none, and for other numbers of rows, labels, texts or names.

    Examples
    --------
    >>> found = first_look([[1, 0], [0, 1]], Y_train=[[1, 0]], texts=["Cats!", "On dogs"], train_texts=["cats cats"],
    ...                    label_names=["cats", "birds"])
    >>> for finding in found:
    ...     print(finding.kind, finding.evidence)
    points of both splits {'rows': array([0]), 'words': 1}
    labels unseen in training {'pairs': 1, 'labels': 1, 'of': 2}
    names in texts {'named': 1, 'pairs': 2}
    """
    truth = as_truth(Y)
    found = [_points(truth, X, X_train, texts, train_texts)]
    if Y_train is not None:
        counts = as_truth(Y_train, "Y_train").label_counts()
        if counts.size != truth.n_labels:
            raise ArgumentError("Y_train", f"must have the {truth.n_labels} labels of Y", counts.size)
        found.append(_unseen(truth, counts))
    found.append(_names(truth, texts, label_names))
    return [finding for finding in found if finding is not None]


def of_dataset(ds) -> dict:
    """What :func:`first_look` takes of a dataset: features, the texts that they are of, and names; nothing of none."""
    if ds is None:
        return {}
    texts, train_texts = (next(iter(split.texts.values()), ()) for split in (ds.test, ds.train))
    about = {"X": ds.test.X, "X_train": ds.train.X, "label_names": ds.label_names or ()}
    return about | {"texts": texts, "train_texts": train_texts}


def over_seen(Y, top: TopK, label_counts) -> tuple[sparse.csr_matrix, TopK]:
    """Truth and predictions over the labels that training has seen: what a metric is worth where it could be earned.

    Parameters
    ----------
    Y, top
        As for :func:`xcrepro.evaluate`.
    label_counts : array_like, shape (L,)
        Training points of each label; those above 0 stay.

    Returns
    -------
    (csr_matrix, TopK)
        Of as many labels as are seen, in their order. A predicted label that is not seen is left out, and the next one
        takes its place.

    Raises
    ------
    ArgumentError
        For another number of counts than labels, and where no label is seen.

    Examples
    --------
    >>> Y, top = over_seen([[1, 1, 0]], TopK.from_ids([[1, 0, 2]], n_labels=3), [4, 0, 1])
    >>> Y.toarray().tolist(), top.ids.tolist()
    ([[1.0, 0.0]], [[0, 1, -1]])
    """
    truth, seen = as_truth(Y), np.asarray(label_counts) > 0
    if seen.shape != (truth.n_labels,) or top.n_labels != truth.n_labels:
        raise ArgumentError("label_counts", f"must be one for each of the {truth.n_labels} labels", seen.shape)
    if not seen.any():
        raise ArgumentError("label_counts", "must have a label with a training point", "none")
    to = np.where(seen, np.cumsum(seen) - 1, -1)
    kept = (top.ids >= 0) & seen[np.maximum(top.ids, 0)]
    order = np.argsort(~kept, axis=1, kind="stable")
    ids = np.take_along_axis(np.where(kept, to[top.ids], -1), order, 1).astype(np.int32)
    scores = np.take_along_axis(np.where(kept, top.scores, -np.inf), order, 1).astype(np.float32)
    return truth.to_csr()[:, seen], TopK(ids, scores, int(seen.sum()))


def _share(n: int, of: int, what: str) -> str:
    return f"{n:,} of {of:,} {what} ({100 * n / max(of, 1):.1f} %)"


def _points(truth: Truth, X, X_train, texts, train_texts) -> Finding | None:
    """Test points whose features, or words, are those of a train point."""
    same = {}
    if X is not None and X_train is not None:
        X, X_train = checked_csr("X", X), checked_csr("X_train", X_train)
        _check_rows("X", X.shape[0], truth)
        own = _features(X)
        same["features"] = np.isin(own, _features(X_train)) & (own != 0)
    if len(texts) and len(train_texts):
        _check_rows("texts", len(texts), truth)
        known = {_bag(text) for text in train_texts} - {""}
        same["words"] = np.array([_bag(text) in known for text in texts], bool)
    rows = np.flatnonzero(np.any([*same.values()], axis=0)) if same else np.zeros(0, int)
    if not rows.size:
        return None
    first, *more = [
        f"{_share(int(one.sum()), truth.n_rows, 'test points')} have the {name}" for name, one in same.items()
    ]
    text = " and ".join([first, *(one.replace(" test points", "") for one in more)])
    text += (
        " of a train point: what is measured there is memory. Take them out of one of the splits, or split by groups"
    )
    return Finding("points of both splits", text, {"rows": rows} | {name: int(one.sum()) for name, one in same.items()})


def _check_rows(name: str, n: int, truth: Truth) -> None:
    if n != truth.n_rows:
        raise ArgumentError(name, f"must have the {truth.n_rows} rows of Y", n)


def _features(X: sparse.csr_matrix) -> np.ndarray:
    """(n,) uint64: a number for the set of a row's features, 0 for none: sums of one number for each, whatever their order."""
    ids = X.indices.astype(np.uint64) + np.uint64(1)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
        ids = (ids ^ (ids >> np.uint64(shift))) * np.uint64(factor)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(ids * (X.data != 0), dtype=np.uint64)])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _bag(text: str) -> str:
    return " ".join(sorted({*_words(text)}))


def _unseen(truth: Truth, counts: np.ndarray) -> Finding | None:
    unseen = counts == 0
    pairs = int(unseen[truth.indices].sum())
    if not pairs:
        return None
    labels = int((unseen & (truth.label_counts() > 0)).sum())
    text = (
        f"{_share(pairs, truth.indices.size, 'relevant pairs')} are of {labels:,} labels without a training point: no model "
        "that learns from these points alone can find them. Read metrics over seen labels too (xc.diagnose.over_seen)"
    )
    return Finding("labels unseen in training", text, {"pairs": pairs, "labels": labels, "of": truth.indices.size})


def _names(truth: Truth, texts, label_names) -> Finding | None:
    """How often a relevant label's name is in the text."""
    if not len(texts) or not len(label_names):
        return None
    _check_rows("texts", len(texts), truth)
    if len(label_names) != truth.n_labels:
        raise ArgumentError("label_names", f"must name each of the {truth.n_labels} labels", len(label_names))
    rows = np.arange(truth.n_rows)
    if rows.size > MOST_TEXTS:
        rows = np.sort(np.random.default_rng(0).choice(rows.size, MOST_TEXTS, replace=False))
    named = pairs = 0
    for row in rows.tolist():
        labels = truth.indices[truth.indptr[row] : truth.indptr[row + 1]].tolist()
        text = f" {' '.join(_words(texts[row]))} "
        pairs += len(labels)
        named += sum(f" {' '.join(_words(label_names[label]))} " in text for label in labels)
    if not named:
        return None
    text = (
        f"{_share(named, pairs, 'relevant pairs')} have the label's name in the text: a model that only looks names up finds "
        "them. Compare with one, and if names were copied into the texts, take them out"
    )
    return Finding("names in texts", text, {"named": named, "pairs": pairs})
