"""``load``: a dataset by name, from a folder, the cache or its archive, compared with what is expected of it.

There is no binary copy beside the text: the reader runs at the speed of the disk, and a second copy is one more thing
that can differ from what was published.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from xcrepro.core import paths, plugins
from xcrepro.core.arguments import real_number, whole_number
from xcrepro.core.data import against_print, registry
from xcrepro.core.data.against_print import source_of
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.data.locate import ENDING, FILTER, cache_folder, locate
from xcrepro.core.data.registry import Entry
from xcrepro.core.errors import ArgumentError, DataError, DataMissing

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

WORD_FILE = "words.txt"
"""What the features are called, where a dataset says it."""
LABEL_FILES = ("label_names.txt", "labels.txt", "Y.txt", "lbl.json.gz", "lbl.json", "output-items.txt")
"""Files of label names that are found without a dataset.toml (:mod:`xcrepro.core.data.names` has their forms)."""
_LABEL_FEATURES = rf"lbl_X_Xf{ENDING}"


def load(
    name: str,
    path: str | os.PathLike | None = None,
    *,
    split: int | str = 0,
    points: int | None = None,
    fields: Sequence[str] | None = None,
    check: str | bool = "repository",
    A: float | None = None,
    B: float | None = None,
    progress: bool = True,
) -> Dataset:
    """Load a dataset and compare it with what is expected of it.

    Parameters
    ----------
    name : str
        A name of the catalogue (:mod:`xcrepro.core.data.registry` says how to add one), or any other together with ``path``:
        data of your own, of which nothing is known. A name means the real data; ``"synthetic eurlex-4k"`` asks for
        :func:`xcrepro.twin` of them at full scale.
    path : path, optional
        The folder that holds the files; None: that of a ``dataset.toml`` of your own, the folder ``<name>`` where you are,
        or ``<cache>/datasets/<name>`` (:func:`xcrepro.core.paths.cache_dir`), which is filled from the archive first where it
        is not there yet (see ``xcrepro fetch``). A ``dataset.toml`` in it describes the data; else a folder holds ONE of

        - ``train.txt`` and ``test.txt``, or ``*_train.txt`` and ``*_test.txt``
        - ``trn_X_Xf.txt``, ``trn_X_Y.txt``, ``tst_X_Xf.txt``, ``tst_X_Y.txt``; the ``Y`` files alone give a dataset
          without features (``X`` is None)
        - ``*_data.txt`` with ``*_trSplit.txt`` and ``*_tstSplit.txt`` (Bibtex, Delicious, Mediamill)

        and beside them ``lbl_X_Xf.txt``, the labels' words (``label_features``), where there is one, and ``words.txt``, what
        the features are called (``words``), one a line;
        with ``.txt.gz``, ``.txt.zip`` or ``.npz`` allowed for the data files, upper and lower case alike; or one
        subfolder that does. A second candidate for a file is refused rather than guessed at.
    split : int or str
        Which column of the split files, from 0 (they have ten); other layouts have only split 0. ``"time"`` of
        ``"gutenberg"``: its test books were released after its training books. Split 0 of ``"cooking"`` is the fastText
        tutorial's, 1 to 10 are random.
    points : int, optional
        Of the open datasets that come with the package (``"tib"``, ``"gutenberg"``, ``"cooking"``): that many of their
        records, 20 at least, a random subsample whose order is fixed, so that a larger one holds all of a smaller one.
        Labels that are on none of them are left out. Three quarters of them are train points, a fifth test points, the rest
        validation points; of the fastText tutorial's split four fifths are train points. None: all.
    fields : sequence of str, optional
        Of ``"gutenberg"``: whose words are the features, ``("title",)`` by default, or ``("title", "author")``.
    check : str or bool
        The published row to compare with: ``"repository"``, the entry's own (the repository's page, where it has the dataset;
        of an open dataset what the kit says of all its records); another of its sources, e.g. ``"calibration:table3"``,
        whose version of the data ``entry`` then describes; or False for none.
    A, B : float, optional
        The propensity model's parameters; None: the catalogue's, or 0.55 and 1.5, the default of jain16 (section 5).
    progress : bool
        A bar on stderr while downloading.

    Returns
    -------
    Dataset
        ``train`` and ``test`` with ``X`` and ``Y`` as csr_matrix (float32, int32 indices), same widths in both. Where
        the split or an average (:func:`xcrepro.core.data.against_print.compare`) is another than printed, ``notes`` say so
        and ``comparable`` is False.

    Raises
    ------
    ArgumentError
        Unknown name, split, check or parameter; more points than there are.
    DataError
        A file that is not what it should be; another number of points, features or labels than the name has.
    DataMissing
        No such files, and what to put where.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.txt").write_text("2 3 2\\n0 0:1 2:0.5\\n0,1 1:1\\n")
    >>> _ = (folder / "test.txt").write_text("1 3 2\\n1 2:1\\n")
    >>> ds = load("mine", folder)
    >>> ds.train.X.shape, ds.test.Y.shape, ds.label_counts.tolist(), ds.A, ds.B
    ((2, 3), (1, 2), [2, 1], 0.55, 1.5)
    >>> ds.comparable, ds.notes
    (False, ("'mine' is not in the catalogue: nothing is printed about it",))

    The open dataset needs no folder:

    >>> ds = load("tib", points=8000)
    >>> ds.title, ds.n_train, ds.validation.Y.shape[0], ds.test.Y.shape
    ('TIB, 8,000 of 17,740 records', 6000, 400, (1600, 6164))
    >>> ds.label_names[:2]
    ('Hadoop', 'SQL Server 2012')
    """
    if (original := registry.synthetic(name)) is not None:
        return _synthetic(original, {"path": path, "points": points, "split": split or None, "fields": fields}, A, B)
    place = locate(name, path)
    entry, notes = place.entry, place.notes
    source = source_of(entry, check)
    if source not in (None, entry.source):
        entry = entry.version(source)
    is_open = path is None and "committed" in entry.archive
    if not (is_open and isinstance(split, str)):
        split = whole_number("split", split)
    if isinstance(split, int) and entry.splits is not None and split >= entry.splits:
        raise ArgumentError("split", f"must be from 0 to {entry.splits - 1} for {entry.printed_name}", split)
    usual = {"A": (A, entry.A), "B": (B, entry.B)}
    A, B = (own if given is None else real_number(name, given, at_least=0) for name, (given, own) in usual.items())
    if is_open:
        from xcrepro.core.data import open_sets

        ds = open_sets.load(entry, A, B, split, points, fields)
        return _held_to_entry(ds, source, split, fields) if points is None else ds
    for argument, given in (("points", points), ("fields", fields)):
        if given is not None:
            rule = "must be None but for the datasets that come with the package"
            raise ArgumentError(argument, rule, given, f"these are {', '.join(registry.committed_names())}")
    number = int(split)  # only splits of what comes with the package have names
    folder = place.folder or cache_folder(entry)
    if place.folder is None:
        download = plugins.find("xcrepro.core.data", "download")
        train, test, differences = download.into_cache(entry, number, source, progress=progress)
        place = dataclasses.replace(place, folder=folder)
    else:
        train, test = read_folder(folder, place.files, number)
        differences = against_print.check_published(entry, source, folder, train, test)
    if check is False and entry.published[entry.source].keys() > {"printed_name"}:
        notes += (_UNCHECKED,)
    return Dataset(
        name=entry.name,
        train=train,
        test=test,
        A=A,
        B=B,
        published=copy.deepcopy(entry.published),
        entry=entry,
        comparable=not (notes or differences),
        notes=notes + differences,
        label_names=_label_names(entry, folder, train.Y.shape[1]),
        validation=_validation(entry, folder, train),
        label_features=_label_features(place.home, train),
        excluded=read_excluded(place.home, test),
        words=_words(folder, train),
    )


def _held_to_entry(ds: Dataset, source: str | None, split: int | str, fields: Sequence[str] | None) -> Dataset:
    """All of an open dataset, compared with its entry, whose points and features are those of split 0, from the first field.

    A split with a name leaves records out, so of it only the labels are compared.
    """
    entry = cast("Entry", ds.entry)
    home = paths.committed(entry.archive["committed"])
    if source is None:
        return dataclasses.replace(ds, comparable=False, notes=(*ds.notes, _UNCHECKED))
    own = {"n_train", "n_test", "n_features"} if split != 0 else {"n_features"} if fields is not None else set()
    own |= {*registry.AVERAGES} if isinstance(split, str) else set()
    row = {number: value for number, value in entry.published[source].items() if number not in own}
    asked = dataclasses.replace(entry, published={source: row})
    notes = against_print.check_published(asked, source, home, ds.train, ds.test, ds.validation)
    return dataclasses.replace(ds, comparable=not notes, notes=ds.notes + notes)


_UNCHECKED = "not compared with what is printed (check=False)"


def _synthetic(name: str, given: dict, A: float | None, B: float | None) -> Dataset:
    """A twin at full scale, with what is asked of its propensities; refused with what only real data have."""
    for argument, value in given.items():
        if value is not None:
            raise ArgumentError(
                argument, "must be left out for synthetic data", value, f"real data are called {name!r}"
            )
    ds = plugins.find("xcrepro.core.data", "twin").twin(name)
    return dataclasses.replace(ds, A=ds.A if A is None else A, B=ds.B if B is None else B)


def _label_names(entry: Entry, folder: Path, n_labels: int) -> tuple[str, ...]:
    """The names that the dataset.toml promises; else those of a file that is called as such files are."""
    from xcrepro.core.data.names import read_label_names

    promised = entry.label_names is not None
    if entry.label_names is not None:
        places = [home / entry.label_names for home in (entry.folder, folder) if home]
    else:
        places = [folder / name for name in LABEL_FILES]
    path = next((place for place in places if place.is_file()), None)
    if path is None and promised:
        raise DataMissing(f"{places[0]}: no such file; label_names in {registry.FILE} says that it is there")
    try:
        return () if path is None else read_label_names(path, n_labels).names
    except DataError as error:
        if promised:
            raise
        warnings.warn(f"the labels have no names: {error}", stacklevel=3)
        return ()


def read_folder(folder: Path, files: dict[str, Path], split: int) -> tuple[Split, Split]:
    if "data" in files:
        return _read_columns(files, split)
    if split != 0:
        raise ArgumentError("split", "must be 0 for a dataset without split files", split, f"{folder} holds one split")
    train, test = (_points(files, part) for part in ("train", "test"))
    _same_widths(files, train, "test", test)
    return train, test


def _points(files: dict[str, Path], role: str) -> Split:
    """The points of one part: of a file with both, or of its files of features and labels."""
    from xcrepro.core.data import read

    if role in files:
        return Split(*read.read_xc(files[role]))
    if f"{role}_X" in files:
        return Split(*read.read_split(files[f"{role}_X"], files[f"{role}_Y"]))
    return Split(None, read.read_labels(files[f"{role}_Y"]))


def _read_columns(files: dict[str, Path], split: int) -> tuple[Split, Split]:
    import numpy as np

    from xcrepro.core.data import read, splits

    try:
        train, test = (splits.read_split_columns(files[role], split) for role in ("train_rows", "test_rows"))
    except ArgumentError as error:
        raise ArgumentError("split", error.rule, split, error.do) from None
    X, Y = read.read_xc(files["data"])
    for role, rows in (("train_rows", train), ("test_rows", test)):
        if (beyond := rows[rows >= X.shape[0]]).size:
            expected = f"at most {X.shape[0]:,}, the rows of {files['data'].name}"
            raise DataError(files[role], f"row number {beyond[0] + 1:,} in column {split + 1}", expected)
    if (both := np.intersect1d(train, test)).size:
        found = f"row number {both[0] + 1:,} in column {split + 1}, which {files['train_rows'].name} has as well"
        raise DataError(files["test_rows"], found, "each row in one of the two", do="Are both files of the same data?")
    return splits.apply_split(X, Y, train, test)


def _validation(entry: Entry, folder: Path, train: Split) -> Split | None:
    """The validation points that the dataset.toml names, as wide as the train points."""
    files = {role: folder / name for role, name in entry.files.items()}
    if not any(role.startswith("validation") for role in files):
        return None
    found = _points(files, "validation")
    _same_widths(files, train, "validation", found)
    return found


def read_excluded(home: Path, test: Split) -> tuple[np.ndarray, np.ndarray] | None:
    """The pairs that may not be predicted, where a file of them lies beside the data and names some."""
    from xcrepro.core.data import splits

    path = home / FILTER
    if not path.is_file():
        return None
    rows, labels = splits.read_filter(path, shape=test.Y.shape)
    return (rows, labels) if len(rows) else None


def _label_features(home: Path, train: Split) -> csr_matrix | None:
    """The labels' words, where a file of them lies beside the data; one that cannot be theirs is told and left."""
    if train.X is None:
        return None
    from xcrepro.core.data import read

    try:
        found = [path for path in sorted(home.iterdir()) if re.fullmatch(_LABEL_FEATURES, path.name, re.IGNORECASE)]
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise DataError(home, f"the labels' words in {len(found)} files, {names}", "one", do="Leave one there")
        words = read.read_sparse(found[0]) if found else None
        shape = train.Y.shape[1], train.X.shape[1]
        if words is not None and words.shape != shape:
            ours, theirs = (f"{labels:,} labels and {features:,} features" for labels, features in (shape, words.shape))
            raise DataError(found[0], theirs, f"the data's, {ours}", do="All files must come from the same release")
        return words
    except DataError as error:
        warnings.warn(f"the labels have no words: {error}", stacklevel=3)
        return None


def _words(folder: Path, train: Split) -> tuple[str, ...]:
    """What the features are called, where a file of it lies beside the data; one that cannot be theirs is told and left."""
    from xcrepro.core.data.lines import text_lines

    path = folder / WORD_FILE
    if train.X is None or not path.is_file():
        return ()
    words = tuple(text for _, text in text_lines(path))
    if len(words) != train.X.shape[1]:
        told = f"the features have no words: {path} has {len(words):,}, the data have {train.X.shape[1]:,} features"
        warnings.warn(told, stacklevel=3)
        return ()
    return words


def _same_widths(files: dict[str, Path], train: Split, part: str, other: Split) -> None:
    """Refuse points of another part that have more or fewer features or labels than the train points."""
    for matrix, what in (("X", "features"), ("Y", "labels")):
        one, two = getattr(train, matrix), getattr(other, matrix)
        if one is None or two is None or one.shape[1] == two.shape[1]:
            continue
        mine, theirs = (files.get(role) or files[f"{role}_{matrix}"] for role in (part, "train"))
        expected = f"{one.shape[1]:,}, as in {theirs.name}"
        do = "All points must come from the same release"
        raise DataError(mine, f"{two.shape[1]:,} {what}", expected, do=do)
