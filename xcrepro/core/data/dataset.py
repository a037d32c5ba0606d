"""What a loaded dataset is: two splits, and what the documents publish about it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.sparse import csr_matrix

from xcrepro.core.arguments import did_you_mean, one_of, whole_number
from xcrepro.core.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from xcrepro.core.data.registry import Entry


@dataclass(frozen=True, repr=False)
class Split:
    """One half of a dataset. Rows of ``X`` and ``Y`` are the same points in the same order.

    Attributes
    ----------
    X : csr_matrix of float32, (n, D), or None
        None where a source gives labels only.
    Y : csr_matrix of float32, (n, L)
        Ones, rows sorted by label id, no duplicates, no stored zeros.
    texts : dict of str to ndarray of str, (n,)
        The points' texts by field, such as ``"title"``, where the dataset has them; empty otherwise.
    numbers : ndarray of int64, (n,), optional
        What the points are called elsewhere, such as Project Gutenberg's numbers.
    """

    X: csr_matrix | None
    Y: csr_matrix
    texts: dict[str, np.ndarray] = field(default_factory=dict, kw_only=True)
    numbers: np.ndarray | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return f"Split({self.Y.shape[0]:,} points, {self.Y.shape[1]:,} labels)"

    def rows(self, which) -> Self:
        """Some of the points.

        Parameters
        ----------
        which : slice or array_like
            A mask or indices.

        Returns
        -------
        Split
            With all that is known of these points, in the order of ``which``.
        """
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        texts = {name: values[which] for name, values in own.pop("texts").items()}
        return replace(self, texts=texts, **{name: part if part is None else part[which] for name, part in own.items()})


@dataclass(frozen=True, repr=False)
class Dataset:
    """A train and a test split with one label space.

    Attributes
    ----------
    name : str
        The key in the catalogue, e.g. ``"eurlex-4k"``; a name of its own where it is none of the catalogue's.
    train, test : Split
    A, B : float
        The propensity model's parameters for it (jain16, eq. 1).
    published : dict
        The rows the documents print about it, by source (``"xcrepo:dataset-table"``, ``"reeval:table2"``, ...).
    entry : Entry, optional
        Its entry in the catalogue (of a twin: its original's); None where there is none.
    comparable : bool
        False where these are not the data that the documents print about, so that no printed result stands beside theirs;
        ``notes`` say why. True for a twin, which says that it is one.
    notes : tuple of str
        In what the data differ from what is printed, a split or an average; of a subsample, what was left out.
    label_names : tuple of str
        The names of the L labels, where the dataset has them.
    label_features : csr_matrix of float32, (L, D), optional
        The words of the labels over the features of the points, where the dataset has them (``lbl_X_Xf.txt``).
    validation : Split, optional
        Points that are neither trained nor tested on, where the dataset has them: to calibrate on
        (:func:`xcrepro.calibrate.fit_top`), to choose parameters by. No count has them.
    words : tuple of str
        What the D features are, where they are words and the dataset says which.
    label_codes : tuple of str
        What the L labels are called elsewhere, such as GND numbers, where the dataset says it.
    excluded : tuple of (rows, labels), optional
        Pairs of a test point and a label that may not be predicted, where the dataset has them (``filter_labels_test.txt``):
        the repository's page leaves them out of every prediction before it counts.
    """

    name: str
    train: Split
    test: Split
    A: float
    B: float
    published: dict[str, dict] = field(default_factory=dict)
    entry: Entry | None = None
    comparable: bool = True
    notes: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    validation: Split | None = None
    label_features: csr_matrix | None = None
    words: tuple[str, ...] = ()
    label_codes: tuple[str, ...] = ()
    excluded: tuple[np.ndarray, np.ndarray] | None = None

    def __repr__(self) -> str:
        (n, L), D = self.train.Y.shape, "no" if self.train.X is None else f"{self.train.X.shape[1]:,}"
        return (
            f"Dataset({self.name!r}: {n:,} train and {self.test.Y.shape[0]:,} test points, {D} features, {L:,} labels)"
        )

    def _repr_html_(self) -> str:
        from xcrepro.core import cards  # it brings the kernels along, which loading does without

        return cards.dataset(self)._repr_html_()

    @property
    def label_counts(self) -> np.ndarray:
        """(L,) int64: how many TRAIN points carry each label, the N_l of the propensity model. Zeros are kept."""
        return np.bincount(self.train.Y.indices, minlength=self.train.Y.shape[1]).astype(np.int64)

    @property
    def n_train(self) -> int:
        """N of the propensity model: the number of train points."""
        return self.train.Y.shape[0]

    @property
    def title(self) -> str:
        """What the documents call it; its name where none does. A twin is ``"... (synthetic)"``."""
        return self.entry.printed_name if self.entry else self.name

    @property
    def origin(self) -> str:
        """What it is, for the foot of a figure or table: ``"Bibtex (real data), 2,515 test points"``."""
        printed = any(row.keys() > {"printed_name"} for row in self.published.values())
        kind = "real data, not those that are printed" if printed and not self.comparable else "real data"
        return f"{self.title} ({kind}), {self.test.Y.shape[0]:,} test points"

    def find_label(self, text: str) -> pd.DataFrame:
        """The labels with a name, or with a name like it.

        Parameters
        ----------
        text : str
            A name, its beginning or a part of it, in upper or lower case; or a label's code.

        Returns
        -------
        DataFrame
            Indexed by label: ``name``, ``points`` (train points with it). First the labels that are called so, then those whose
            names begin so, then the others whose names hold it; of each kind the most frequent first.

        Raises
        ------
        ArgumentError
            Where no name fits, with the nearest; where the labels have no names.

        Examples
        --------
        >>> import xcrepro as xc
        >>> ds = xc.load("tib", points=2000)
        >>> ds.find_label("software").head(3)
                               name  points
        label
        505                Software       4
        792    Software development       8
        791    Software engineering       4
        >>> ds.find_label("mathematiks")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        xcrepro.core.errors.ArgumentError: text must be in a label's name; got 'mathematiks': did you mean 'Mathematics' or ...
        """
        import pandas as pd

        if not self.label_names:
            raise ArgumentError("text", f"needs labels with names, {self.title} has none", repr(text))
        plain, wanted = [name.casefold() for name in self.label_names], str(text).casefold()
        rank = [0 if name == wanted else 1 if name.startswith(wanted) else 2 for name in plain]
        found = [label for label, name in enumerate(plain) if wanted in name]
        found += [label for label, code in enumerate(self.label_codes) if code == text and label not in found]
        if not wanted or not found:
            near = did_you_mean(wanted, dict(zip(plain, self.label_names, strict=True)), cutoff=0.5)
            near = near or "label_names of the dataset has all names"
            raise ArgumentError("text", "must be in a label's name", repr(text), near)
        points = self.label_counts
        found.sort(key=lambda label: (rank[label], -points[label]))
        table = {"name": [self.label_names[label] for label in found], "points": points[found]}
        return pd.DataFrame(table, index=pd.Index(found, name="label"))

    @functools.cached_property
    def _common_words(self) -> np.ndarray:
        """(D,) which words more than a tenth of the train points have; none where these have no features."""
        if self.train.X is None:
            return np.zeros(len(self.words), np.bool_)
        return np.bincount(self.train.X.indices, minlength=len(self.words)) > 0.1 * self.train.X.shape[0]

    def telling_words(self, row: int, n: int = 8, part: str = "test") -> tuple[str, ...]:
        """The words that say most of a point: those with the largest feature values, which tf-idf weighs by rarity.

        A word of more than a tenth of the train points, such as *and* or *these*, says nothing of one, so it is left out.
        A point that has no other words keeps them.

        Parameters
        ----------
        row : int
            Of that part.
        n : int
            How many at most.
        part : {"test", "train", "validation"}

        Returns
        -------
        tuple of str
            The largest value first; of equal ones the lower feature.

        Raises
        ------
        ArgumentError
            Where the features have no words; for a row that is not there.

        Examples
        --------
        >>> import xcrepro as xc
        >>> ds = xc.load("tib", points=2000)
        >>> ds.telling_words(0, 3)
        ('java', 'bluej', 'programming')
        """
        split = getattr(self, one_of("part", part, ("test", "train", "validation")))
        if not self.words or split is None or split.X is None:
            raise ArgumentError("part", f"must have features whose words are known, in {self.title}", repr(part))
        row = whole_number("row", row, 0, split.X.shape[0] - 1)
        whole_number("n", n, 1)
        start, end = split.X.indptr[row : row + 2]
        order = np.argsort(-split.X.data[start:end], kind="stable")
        found = split.X.indices[start:end][order]
        telling = found[~self._common_words[found]]
        found = telling if telling.size else found
        return tuple(self.words[word] for word in found[:n])
