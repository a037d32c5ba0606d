"""What a report is made from: a truth, predictions by model and seed, and what is known of the labels."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from xcrepro.core import propensity
from xcrepro.core.arguments import real_number
from xcrepro.core.data.dataset import Dataset
from xcrepro.core.data.names import read_label_names
from xcrepro.core.errors import ArgumentError, DataError, DataWarning
from xcrepro.core.hierarchy import Hierarchy
from xcrepro.core.metrics.calibration import is_probability
from xcrepro.core.metrics.replicates import has_predictions
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth, as_truth
from xcrepro.tools import formats
from xcrepro.tools.formats import reader

DEFAULT_A, DEFAULT_B = 0.55, 1.5
"""A and B of the propensity model where nothing else is known (jain16, section 5)."""
PLACES = 100
"""Labels a point that are kept of a file of predictions."""

_SEED = re.compile(r"(?P<model>.+)\.seed(?P<seed>\d+)")


@dataclass(frozen=True, eq=False)
class Given:
    """A truth and predictions for its points, checked (:func:`collect`).

    ``origin`` is one line for the foot of figures and tables. ``runs`` is model -> seed -> predictions; a model without
    seeds has the one seed 0. ``label_counts`` and ``train`` are None without a train truth; names and texts may be empty.
    ``said`` is what was said while files were read.
    """

    title: str
    origin: str
    truth: Truth
    runs: dict[str, dict[int, TopK]]
    label_counts: np.ndarray | None = None
    train: Truth | None = field(default=None, repr=False)
    A: float = DEFAULT_A
    B: float = DEFAULT_B
    label_names: tuple[str, ...] = ()
    texts: tuple[str, ...] = field(default=(), repr=False)
    exclude: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)
    dataset: Dataset | None = field(default=None, repr=False)
    said: tuple[str, ...] = field(default=(), repr=False)
    hierarchy: Hierarchy | None = field(default=None, repr=False)

    @property
    def n_train(self) -> int:
        """0 without a train truth."""
        return 0 if self.train is None else self.train.n_rows

    @property
    def models(self) -> list[str]:
        return list(self.runs)

    def first(self, model: str) -> TopK:
        """The predictions that stand for a model where one run has to: those of its first seed."""
        return next(iter(self.runs[model].values()))

    @property
    def counted(self) -> str:
        """Where :attr:`frequency` is counted."""
        return "test" if self.label_counts is None else "training"

    @property
    def frequency(self) -> np.ndarray:
        """(L,), how often each label occurs: in training if that is known, else in the truth."""
        return self.truth.label_counts() if self.label_counts is None else self.label_counts

    @cached_property
    def inverse_propensity(self) -> np.ndarray | None:
        """(L,), None without a train truth."""
        if self.label_counts is None:
            return None
        return propensity.inverse(self.label_counts, self.n_train, self.A, self.B)

    @cached_property
    def with_probabilities(self) -> list[str]:
        """The models all of whose scores lie in [0, 1], so that they can be read as probabilities."""
        return [
            model
            for model, runs in self.runs.items()
            if all(is_probability(top) and has_predictions(top) for top in runs.values())
        ]

    def name(self, label: int) -> str:
        """A label's name, or its number."""
        return self.label_names[label] if self.label_names else str(label)

    def digest(self) -> str:
        """SHA-256 over all numbers that are handed in."""
        found = hashlib.sha256()
        arrays = [self.truth.indptr.astype(np.int64), self.truth.indices.astype(np.int64)]
        arrays += [] if self.label_counts is None else [self.label_counts.astype(np.int64)]
        arrays += [] if self.hierarchy is None else [self.hierarchy.packed()]
        for model, runs in self.runs.items():
            for seed, top in runs.items():
                found.update(f"{model}\0{seed}\0{top.ids.shape}".encode())
                arrays += [top.ids, top.scores]
        for array in arrays:
            found.update(np.ascontiguousarray(array).data)
        found.update(repr((self.truth.n_labels, self.n_train, self.A, self.B)).encode())
        return found.hexdigest()


def collect(
    truth,
    predictions,
    *,
    train_truth=None,
    A: float | None = None,
    B: float | None = None,
    title: str = "",
    label_names: str | os.PathLike | Sequence[str] = (),
    texts: str | os.PathLike | Sequence[str] = (),
    exclude: str | os.PathLike | tuple[np.ndarray, np.ndarray] | None = None,
    split: int | str | None = None,
    points: int | None = None,
    hierarchy: str | os.PathLike | Hierarchy | None = None,
    levels: int | None = None,
    **reading: object,
) -> Given:
    """Read and check what a report is made from; the parameters are those of :func:`xcrepro.report`."""
    if label_names and isinstance(label_names, str | os.PathLike):
        label_names = read_label_names(label_names)
    if texts and isinstance(texts, str | os.PathLike):
        texts = _lines(Path(texts).expanduser())
    named, name = isinstance(truth, str | os.PathLike), ""
    if named or split is not None or points is not None:
        ds = reader.dataset_of(truth, reading.get("truth_format"), split, points)
        truth, name = (Path(truth).expanduser(), Path(truth).name) if ds is None else (ds, "")
    ds = truth if isinstance(truth, Dataset) else None
    if ds is not None and not len(texts):
        texts = list(next(iter(ds.test.texts.values()), ()))  # the field that its features are of, such as the title
    if ds is not None and train_truth is not None:
        raise ArgumentError("train_truth", "goes with a truth that is no dataset", "both", "a dataset has its own")
    in_memory = isinstance(predictions, TopK | Mapping)
    listed = [predictions] if isinstance(predictions, str | os.PathLike) else list(() if in_memory else predictions)
    files = formats.model_files(*(Path(one).expanduser() for one in listed)) if listed else {}
    matrix = ds is None and not isinstance(truth, Path)
    Y = as_truth(truth, "truth") if matrix else None
    read_train = isinstance(train_truth, str | os.PathLike)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", DataWarning)
        reading |= {"exclude": exclude or None, "label_names": label_names or None}
        reading["train_truth"] = Path(train_truth).expanduser() if read_train else None
        found = reader.read(Y.to_csr() if matrix else truth, files, k=PLACES, **reading)
    for one in seen:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    said = (*found.lines, *(str(one.message) for one in seen if issubclass(one.category, DataWarning)))
    said = tuple(without_folders(text, [truth, train_truth, *files.values()]) for text in said)
    # A truth in memory stays what it is, with the names that a table has.
    Y = as_truth(found.truth) if Y is None or found.kept is not None or found.truth.shape[1] != Y.n_labels else Y
    counts = train = None
    if ds is not None:
        counts, train = ds.label_counts, as_truth(ds.train.Y)
        title, origin = title or ds.title, ds.origin
        A, B = (own if asked is None else asked for asked, own in ((A, ds.A), (B, ds.B)))
    else:
        title = title or name or "Your data"
        origin = f"{title}, {Y.n_rows:,} test points"
        if train_truth is not None:
            train = as_truth(found.train if read_train else train_truth, "train_truth")
            if train.n_labels != Y.n_labels:
                raise ArgumentError("train_truth", f"must have the {Y.n_labels} labels of the truth", train.n_labels)
            counts = train.label_counts()
        elif A is not None or B is not None:
            do = "propensities come from training label counts"
            raise ArgumentError("A and B", "go with train_truth", "none", do)
    A = real_number("A", DEFAULT_A if A is None else A, above=0)
    B = real_number("B", DEFAULT_B if B is None else B, at_least=0)
    if Y.n_rows == 0:
        raise ArgumentError("truth", "must have at least one row", "no rows")
    label_names = () if found.label_names is None else found.label_names.names
    if label_names and len(label_names) != Y.n_labels:
        raise ArgumentError("label_names", f"must name each of the {Y.n_labels} labels", len(label_names))
    if found.kept is not None and len(texts) == found.kept.size:
        texts = [texts[row] for row in found.kept.nonzero()[0]]
    texts = texts or found.row_ids
    if texts and len(texts) != Y.n_rows:
        raise ArgumentError("texts", f"must have one for each of the {Y.n_rows} points", len(texts))
    runs = by_seed(_predictions(predictions if in_memory else found.tops, Y, files))
    named = {"label_names": tuple(map(str, label_names)), "texts": tuple(map(str, texts))}
    if hierarchy is not None and not isinstance(hierarchy, Hierarchy):
        hierarchy = formats.read_hierarchy(hierarchy, label_names or [*map(str, range(Y.n_labels))], levels=levels)
    about = {"exclude": found.exclude, "dataset": ds, "said": said, "hierarchy": hierarchy}
    return Given(title, origin, Y, runs, counts, train, A, B, **named, **about)


def without_folders(text: str, paths: Sequence[object]) -> str:
    """A text without the folders of those files that are given by their paths, which say where they are on somebody's machine
    and nothing about them.

    >>> without_folders("/home/me/t.csv, line 2: found 3", ["/home/me/t.csv"])
    't.csv, line 2: found 3'
    """
    folders = {os.path.dirname(os.path.normpath(path)) for path in paths if isinstance(path, str | os.PathLike)}
    for folder in sorted(folders, key=len, reverse=True):
        text = text.replace(folder + os.sep, "") if folder.strip("./\\") else text
    return text


def _lines(path: Path) -> list[str]:
    """The lines of a file of texts."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(path, f"no text ({error})", "a line for each test point, in UTF-8") from None


def _predictions(predictions: TopK | Mapping, truth: Truth, files: Mapping[str, Path]) -> dict[str, TopK]:
    """Predictions by model, which fit the truth; ``files`` are those that they came from."""
    found = {}
    for name, top in ({"model": predictions} if isinstance(predictions, TopK) else predictions).items():
        if not isinstance(top, TopK):
            do = "TopK.from_scores, from_ids and load make one"
            raise ArgumentError(f"predictions[{name!r}]", "must be a TopK", type(top).__name__, do)
        found[str(name)] = top
        if (len(top), top.n_labels) == (truth.n_rows, truth.n_labels):
            continue
        if name in files:
            there = f"predictions for {len(top):,} points and {top.n_labels:,} labels"
            wanted = f"the truth's {truth.n_rows:,} points and {truth.n_labels:,} labels"
            do = "Predict every test point and label, in the order of the truth"
            raise DataError(files[name], there, wanted, do=do)
        rule = f"must be for the truth's {truth.n_rows} points and {truth.n_labels} labels"
        raise ArgumentError(f"predictions[{name!r}]", rule, f"{len(top)} and {top.n_labels}")
    if not found:
        raise ArgumentError("predictions", "must be those of one model or more", "none")
    if len(found) != len({name.strip() for name in found} - {""}):
        raise ArgumentError("predictions", "must have distinct names that are not blank", list(found))
    return found


def by_seed(tops: Mapping[str, TopK]) -> dict[str, dict[int, TopK]]:
    """Seeds of one model together, rising: ``MODEL.seed0``, ``MODEL.seed1``, ...; any other name is a model's own.

    >>> top = TopK.from_ids([[0]], n_labels=2)
    >>> {name: list(runs) for name, runs in by_seed({"PLT.seed1": top, "PLT.seed0": top, "mine": top}).items()}
    {'PLT': [0, 1], 'mine': [0]}
    """
    found: dict[str, dict[int, TopK]] = {}
    for name, top in tops.items():
        match = _SEED.fullmatch(name)
        model, seed = (match["model"], int(match["seed"])) if match else (name, 0)
        if seed in found.get(model, {}) or (not match and model in found) or (match and model in tops):
            rule = f"must have each seed of {model!r} once, and no file without"
            raise ArgumentError("predictions", rule, sorted(tops))
        found.setdefault(model, {})[seed] = top
    return {model: dict(sorted(runs.items())) for model, runs in found.items()}


def labels_of(truth: Truth, row: int) -> np.ndarray:
    """The relevant labels of a point."""
    return truth.indices[truth.indptr[row] : truth.indptr[row + 1]]
