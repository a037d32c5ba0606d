"""``load``: a dataset by name, from a folder, the cache or its archive, compared with what is expected of it.

There is no binary copy beside the text: the reader runs at the speed of the disk, and a second copy is one more thing
that can differ from what was published.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from xcrepro.core import extras, paths, plugins
from xcrepro.core.arguments import real_number, whole_number
from xcrepro.core.data import registry
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.data.registry import FILE_SETS, Entry
from xcrepro.core.errors import ArgumentError, DataError, DataMissing, XCError

if TYPE_CHECKING:
    import numpy as np
    from scipy.sparse import csr_matrix

PAGE = "http://manikvarma.org/downloads/XC/XMLRepository.html"
LAYOUTS = (
    "train.txt and test.txt, or <anything>_train.txt and <anything>_test.txt",
    "trn_X_Xf.txt, trn_X_Y.txt, tst_X_Xf.txt and tst_X_Y.txt",
    "<anything>_data.txt with <anything>_trSplit.txt and <anything>_tstSplit.txt",
)
WORD_FILE = "words.txt"
"""What the features are called, where a dataset says it."""
LABEL_FILES = ("label_names.txt", "labels.txt", "Y.txt", "lbl.json.gz", "lbl.json", "output-items.txt")
"""Files of label names that are found without a dataset.toml (:mod:`xcrepro.core.data.names` has their forms)."""
_ENDING = r"\.(?:txt(?:\.gz|\.zip)?|npz)"
FILTER = "filter_labels_test.txt"
"""Of the LF datasets: pairs of a test point and a label that may not be predicted."""
_LABEL_FEATURES = rf"lbl_X_Xf{_ENDING}"
# Key of [files] -> the names it may have. Filter files end in _train.txt too, and are no data.
_NAMES = {
    "train": rf"(?!filter_labels)(?:.*_)?train{_ENDING}",
    "test": rf"(?!filter_labels)(?:.*_)?test{_ENDING}",
    "train_X": rf"trn_X_Xf{_ENDING}",
    "train_Y": rf"trn_X_Y{_ENDING}",
    "test_X": rf"tst_X_Xf{_ENDING}",
    "test_Y": rf"tst_X_Y{_ENDING}",
    "data": rf".+_data{_ENDING}",
    "train_rows": r".+_trSplit\.txt",
    "test_rows": r".+_tstSplit\.txt",
}


class Comparison(NamedTuple):
    """One published number beside what the data have, and whether it rounds to the printed digits."""

    quantity: str
    published: float
    found: float
    agrees: bool


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
        the split or an average (see :func:`compare`) is another than printed, ``notes`` say so and ``comparable`` is
        False.

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
    entry, notes = _entry_of(name, path)
    source = _source_of(entry, check)
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
    folder = Path(path).expanduser() if path is not None else available_folder(entry)
    if folder is None:
        folder = cache_folder(entry)
        download = plugins.find("xcrepro.core.data", "download")
        train, test, differences = download.into_cache(entry, number, source, progress=progress)
    else:
        train, test = read_folder(folder, find_named(entry, folder, archived=path is None), number)
        differences = check_published(entry, source, folder, train, test)
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
        label_features=_label_features(entry, folder, train),
        excluded=read_excluded(entry, folder, test),
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
    notes = check_published(asked, source, home, ds.train, ds.test, ds.validation)
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


def at_hand(name: str) -> bool:
    """Whether the real data of a dataset of the catalogue are on this machine, so that :func:`load` downloads nothing."""
    entry = registry.get(name)
    return available_folder(entry) is not None or own_archive(entry).is_file()


def require(name: str) -> None:
    """DataMissing, with the ways to get them, where a dataset's real data are not on this machine."""
    entry = registry.get(name)
    if not at_hand(name):
        raise DataMissing(what_to_do(entry, "is not on this machine"))


def home_of(name: str, path: str | os.PathLike | None = None) -> Path | None:
    """The folder in which :func:`load` finds a dataset's files; None where there is none, and of what comes with the kit."""
    entry, _ = _entry_of(name, path)
    if path is None and "committed" in entry.archive:
        return None
    folder = Path(path).expanduser() if path is not None else available_folder(entry)
    return folder and next(iter(find_named(entry, folder, archived=path is None).values())).parent


def count_splits(name: str, path: str | os.PathLike | None) -> int:
    """How many splits the data in a folder have: columns of the split files, 1 in other layouts."""
    from xcrepro.core.data import splits

    if path is None:
        entry = registry.get(name)
        return entry.splits if entry.splits and "committed" in entry.archive else 1
    folder = Path(path).expanduser()
    files = find_named(_entry_of(name, folder)[0], folder, archived=False)
    return splits.count_columns(files["train_rows"]) if "train_rows" in files else 1


def statistics(train: Split, test: Split, validation: Split | None = None) -> dict[str, float | None]:
    """What the documents print about a dataset, computed from its two splits: counts as int, averages as float.

    ``avg_points_per_label_train`` and ``_all`` divide by L, labels without a point included;
    ``avg_labels_per_point_train``, ``_test`` and ``_all`` count points without a label, too. ``_all`` has the points for
    ``validation`` where they are given. ``n_features`` is None without features.
    """
    n_train, n_labels = train.Y.shape
    every = [part.Y for part in (train, test, validation) if part is not None]
    n_all, pairs_all = sum(Y.shape[0] for Y in every), sum(Y.nnz for Y in every)
    pairs_train = train.Y.nnz
    return {
        "n_features": None if train.X is None else train.X.shape[1],
        "n_labels": n_labels,
        "n_train": n_train,
        "n_test": test.Y.shape[0],
        "avg_points_per_label_train": pairs_train / max(n_labels, 1),
        "avg_points_per_label_all": pairs_all / max(n_labels, 1),
        "avg_labels_per_point_train": pairs_train / max(n_train, 1),
        "avg_labels_per_point_test": test.Y.nnz / max(test.Y.shape[0], 1),
        "avg_labels_per_point_all": pairs_all / max(n_all, 1),
    }


def compare(
    train: Split, test: Split, dataset: str | Entry, source: str | None = None, validation: Split | None = None
) -> list[Comparison]:
    """Every number that a document prints about a dataset, beside these splits'.

    Counts agree when equal. An average agrees when it lies in the range that rounds to the printed digits, taken over
    the points of the row's ``points_per_label_basis``. If that is ``"neither"`` or not known, any of train, all and
    (labels per point) test will do, and for ``"neither"`` what rounds to a neighbour of the last digit as well, because
    an average may have been cut off. What is not printed, or needs features where there are none, is left out. All points
    are those of :func:`statistics`, with those for ``validation`` where they are given.
    """
    entry = registry.get(dataset) if isinstance(dataset, str) else dataset
    row, found = entry.published[entry.resolve_source(source)], statistics(train, test, validation)
    compared = [
        Comparison(number, row[number], value, row[number] == value)
        for number in ("n_train", "n_test", "n_features", "n_labels")
        if number in row and (value := found[number]) is not None
    ]
    basis = row.get("points_per_label_basis")
    for number in registry.AVERAGES:
        if number in row:
            low, high = entry.interval(number, source) or (row[number], row[number])
            slack = (high - low) * (basis == "neither") + 1e-9
            bases = (basis,) if basis in ("train", "all") else ("train", "all", "test")
            values = [value for b in bases if (value := found.get(f"{number}_{b}")) is not None]
            best = min(values, key=lambda value: abs(value - row[number]))
            compared.append(Comparison(number, row[number], best, low - slack <= best <= high + slack))
    return compared


def _entry_of(name: str, path: str | os.PathLike | None) -> tuple[Entry, tuple[str, ...]]:
    """The entry that ``name`` means, by the folder's dataset.toml or the catalogue, and what is to be said of it."""
    if isinstance(name, str) and "@" in name:
        do = "a scaled copy is xcrepro.twin(name, scale)"
        raise ArgumentError("name", "must be a dataset's name", repr(name), do)
    file = Path(path).expanduser() / registry.FILE if path is not None else None
    if file is not None and file.is_file():
        entry = registry.read(file)
        if not entry.is_called(name):
            raise ArgumentError("name", f"must be {entry.name!r}, as {file} says", repr(name))
        return entry, ()
    if listed := registry.get(name) if path is None else registry.find(name):
        return listed, ()
    entry = registry.unlisted(name)
    close = registry.nearest_names(name, cutoff=0.8)
    hint = f"; did you mean {close}?" if close else ""
    return entry, (f"{name!r} is not in the catalogue: nothing is printed about it{hint}",)


def _source_of(entry: Entry, check: str | bool) -> str | None:
    if check is False:
        return None
    if check is True or check == "repository":
        return entry.source
    if not isinstance(check, str) or check not in entry.published:
        rule = "must be 'repository', False, or a document that prints the dataset"
        do = f"for {entry.printed_name} these are {', '.join(map(repr, entry.published))}"
        raise ArgumentError("check", rule, repr(check), do)
    return check


def cache_folder(entry: Entry) -> Path:
    """Where the dataset lies in the cache, or would."""
    return paths.cache_dir() / "datasets" / entry.name


def available_folder(entry: Entry) -> Path | None:
    """The folder that holds the dataset: the package's, that of its own dataset.toml, or the cache's; None where none does."""
    if "committed" in entry.archive:
        return paths.committed(entry.archive["committed"])
    if lies_beside(entry):
        return entry.folder
    here = Path.cwd() / entry.name
    with contextlib.suppress(DataMissing):  # any other folder of this name is none of ours
        _find(here)
        return here
    return home if (home := cache_folder(entry)).is_dir() else None


def own_archive(entry: Entry) -> Path:
    """Where an archive lies that somebody saved by hand, whether it is there or not."""
    saved = cache_folder(entry).with_name(f"{entry.name}.zip")
    beside = entry.folder / entry.archive["file"] if entry.folder and "file" in entry.archive else saved
    return beside if not saved.is_file() else saved


def lies_beside(entry: Entry) -> bool:
    """Whether the files of a reader's dataset are in the folder of its ``dataset.toml``."""
    try:
        return entry.folder is not None and bool(find_named(entry, entry.folder))
    except DataMissing:
        return False


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


def _find(folder: Path) -> dict[str, Path]:
    """The files of the one layout in ``folder``, or in the one subfolder that has one: role -> path."""
    if not folder.is_dir():
        found = "is a file, not a folder" if folder.exists() else "no such folder"
        raise DataMissing(f"{folder}: {found}; path= takes the folder that holds the files: {'; or '.join(LAYOUTS)}")
    if files := _find_here(folder):
        return files
    below = {
        sub: files
        for sub in sorted(folder.iterdir())
        if sub.is_dir() and not sub.name.startswith((".", "__")) and (files := _find_here(sub))
    }
    if len(below) > 1:
        found = f"data in {len(below)} subfolders, {', '.join(sub.name for sub in below)}"
        raise DataError(folder, found, "one", do="Pass that one")
    if not below:
        names = sorted(p.name for p in folder.iterdir())
        there = ", ".join(names[:12]) + (" ..." if len(names) > 12 else "") if names else "nothing"
        wanted = f"Wanted: {'; or '.join(LAYOUTS)}"
        raise DataMissing(f"{folder}: no train and test files there, only {there}. {wanted}{_incomplete(folder)}")
    return next(iter(below.values()))


def find_named(entry: Entry, folder: Path, archived: bool = False) -> dict[str, Path]:
    """The files that the entry names, or napkinXC for its archive where that was unpacked here; else as in any folder."""
    if entry.files:
        named = {role: folder / name for role, name in entry.files.items()}
        if missing := [path.name for path in named.values() if not path.is_file()]:
            raise DataMissing(f"{folder}: no {', '.join(missing)} there, which [files] of {entry.name} names")
        return named
    if archived and "key" in entry.archive:
        known = extras.library("napkinxc.datasets").DATASETS
        table = known.get(entry.archive["key"], {}).get(entry.archive["format"], {})
        named = {}
        for half in ("train", "test"):
            what = table.get(half, {})
            what = {f"{half}_{part}": name for part, name in what.items()} if isinstance(what, dict) else {half: what}
            named |= {role: folder / table["dir"] / name for role, name in what.items()}
        if named and all(path.is_file() for path in named.values()):
            return named
    return _find(folder)


def _fits(folder: Path) -> dict[str, list[Path]]:
    """Role -> the files of a folder that have one of its names."""
    files = [p for p in sorted(folder.iterdir()) if p.is_file()]
    return {role: [p for p in files if re.fullmatch(regex, p.name, re.IGNORECASE)] for role, regex in _NAMES.items()}


def _incomplete(folder: Path) -> str:
    """Which files are missing beside those of a layout that lie in a folder or below it, and of which dataset these may be."""
    for home in (folder, *(sub for sub in sorted(folder.iterdir()) if sub.is_dir())):
        fits = _fits(home)
        for roles in sorted(FILE_SETS, key=lambda roles: -sum(bool(fits[role]) for role in roles)):
            there = [role for role in roles if fits[role]]
            if there:
                lacks = " and ".join(_EXAMPLES[role] for role in roles if not fits[role])
                return f". Beside {fits[there[0]][0].name} there is no {lacks}{_like(fits[there[0]][0], there[0])}"
        if texts := [p.name for p in sorted(home.iterdir()) if re.fullmatch(r".*\.json(?:\.gz)?", p.name)]:
            return f". {texts[0]} is raw text, of which `xcrepro vectorize` makes features"
    return ""


_EXAMPLES = {
    "train": "*_train.txt", "test": "*_test.txt", "train_X": "trn_X_Xf.txt", "train_Y": "trn_X_Y.txt",
    "test_X": "tst_X_Xf.txt", "test_Y": "tst_X_Y.txt", "data": "*_data.txt", "train_rows": "*_trSplit.txt",
    "test_rows": "*_tstSplit.txt",
}  # fmt: skip
_HEADERS = {
    "train": ("n_train", "n_features", "n_labels"), "test": ("n_test", "n_features", "n_labels"),
    "data": ("n_points", "n_features", "n_labels"), "train_X": ("n_train", "n_features"),
    "test_X": ("n_test", "n_features"), "train_Y": ("n_train", "n_labels"), "test_Y": ("n_test", "n_labels"),
}  # fmt: skip
"""Role -> what the header of its file counts."""


def _like(file: Path, role: str) -> str:
    """Of which dataset a file may be by its header, in words; empty where it has none or is like no dataset."""
    from xcrepro.core.data.sources import open_source

    try:
        with open_source(file) as stream:
            numbers = [int(word) for word in stream.readline(200).split()]
    except (XCError, OSError, ValueError):
        return ""
    counts = _HEADERS.get(role, ())
    nearest = _nearest(dict(zip(counts, numbers, strict=True))) if len(numbers) == len(counts) else ""
    return f"; by its header {file.name} is {nearest}" if nearest else ""


def _nearest(counts: Mapping[str, int | None]) -> str:
    """The dataset of the catalogue, as a document prints it, with the most equal counts, in words; empty where none is near."""
    best = (0, 0.0, "")
    for entry in registry.package().values():
        for source, row in entry.published.items():
            printed = row | {"n_points": row["n_train"] + row["n_test"]} if {"n_train", "n_test"} <= row.keys() else row
            both = [(number, printed[name]) for name, number in counts.items() if number and name in printed]
            equal = sum(one == two for one, two in both)
            far = sum(max(one / two, two / one) - 1 for one, two in both)
            if equal >= 2 or (len(both) > 1 and far < _NEAR * len(both)):
                words = f"nearest to {entry.name!r} as {source} has it ({equal} of {len(both)} counts are equal)"
                best = (-equal, far, words) if not best[2] or (-equal, far) < best[:2] else best
    return best[2]


_NEAR = 0.1
"""How far counts may be from printed ones: the larger over the smaller, less 1."""


def _find_here(folder: Path) -> dict[str, Path] | None:
    fits = _fits(folder)
    whole = [roles for roles in FILE_SETS if all(fits[role] for role in roles)]
    if fits["train_X"] or fits["test_X"]:  # then labels alone are half of what is there
        whole = [roles for roles in whole if roles != ("train_Y", "test_Y")]
    if not whole:
        return None
    candidates = {role: fits[role] for roles in whole for role in roles}
    if len(whole) > 1 or any(len(found) > 1 for found in candidates.values()):
        listed = "; ".join(f"{role}: {', '.join(p.name for p in found)}" for role, found in candidates.items())
        like = "".join(dict.fromkeys(_like(found[0], role) for role, found in candidates.items()))
        do = f"Move the others out of the folder{like}"
        raise DataError(folder, f"more than one dataset ({listed})", "one file for each", do=do)
    return {role: found[0] for role, found in candidates.items()}


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


def read_excluded(entry: Entry, folder: Path, test: Split) -> tuple[np.ndarray, np.ndarray] | None:
    """The pairs that may not be predicted, where a file of them lies beside the data and names some."""
    from xcrepro.core.data import splits

    path = next(iter(find_named(entry, folder, archived=True).values())).parent / FILTER
    if not path.is_file():
        return None
    rows, labels = splits.read_filter(path, shape=test.Y.shape)
    return (rows, labels) if len(rows) else None


def _label_features(entry: Entry, folder: Path, train: Split) -> csr_matrix | None:
    """The labels' words, where a file of them lies beside the data; one that cannot be theirs is told and left."""
    if train.X is None:
        return None
    from xcrepro.core.data import read

    try:
        home = next(iter(find_named(entry, folder, archived=True).values())).parent
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


def check_published(
    entry: Entry,
    source: str | None,
    where: str | os.PathLike,
    train: Split,
    test: Split,
    validation: Split | None = None,
) -> tuple[str, ...]:
    """In what the data differ from what ``source`` prints (None: nothing), a split or an average, in words."""
    if source is None:
        return ()
    compared = compare(train, test, entry, source, validation)
    differ = {line.quantity: line for line in compared if not line.agrees}
    row, found = entry.published[source], statistics(train, test, validation)
    if not _same_size(row, found):
        other = f"other data than {entry.printed_name}: {len(differ)} of {len(compared)} numbers differ"
        raise DataError(where, other, f"what {source} prints", do=_ways_out(entry, source, compared, found))
    notes = []
    if halves := [n for n in ("n_train", "n_test") if n in differ]:
        ours, printed = (" and ".join(f"{numbers[n]:,} ({n})" for n in halves) for numbers in (found, row))
        notes.append(f"another split: {ours} points, {source} prints {printed}")
    for number in registry.AVERAGES:
        if number in differ:
            printed = entry.printed(number, source)
            notes.append(f"{number} is {differ[number].found:.4f}, {source} prints {printed}")
    return tuple(notes)


def _same_size(row: dict, counts: dict) -> bool:
    """Whether points, features and labels are as many as a published row says, as far as it does."""
    points = "n_train" in row and "n_test" in row
    return (not points or row["n_train"] + row["n_test"] == counts["n_train"] + counts["n_test"]) and all(
        row.get(width, counts[width]) == counts[width]
        for width in ("n_features", "n_labels")
        if counts[width] is not None
    )


def _ways_out(entry: Entry, source: str, compared: list[Comparison], counts: dict) -> str:
    """All numbers side by side, and what to do."""
    lines = [("", source, "found", "")]
    for quantity, printed, ours, agrees in compared:
        digits = "," if isinstance(printed, int) else ",.4f"
        lines.append((quantity, f"{printed:,}", f"{ours:{digits}}", "" if agrees else "differs"))
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    table = "\n".join(
        f"  {quantity:<{widths[0]}}  {printed:>{widths[1]}}  {ours:>{widths[2]}}  {mark}".rstrip()
        for quantity, printed, ours, mark in lines
    )
    if "committed" in entry.archive:
        do = f"xcrepro/core/data/catalogue/{entry.name}.toml, and run: xcrepro fingerprint --dataset {entry.name} --record"
        return f"Side by side:\n{table}\nThe files are whole, so they were built anew. Write their numbers into {do}"
    right = []
    for other in registry.package().values():
        own = other.name == entry.name
        # An entry of which too little is known is like no data.
        known = {document: row for document, row in other.published.items() if {"n_labels", "n_features"} & row.keys()}
        for document in (document for document, row in known.items() if _same_size(row, counts)):
            right.append(
                f"another version, which {document} prints: check={document!r}, in notebooks {entry.name + ' as ' + document!r}"
                if own
                else f"{document} prints these numbers of {other.name!r}"
            )
    if not right and (nearest := _nearest(counts)):
        right.append(f"these data are {nearest}")
    return (
        f"Side by side:\n{table}\nThere are two ways out:\n"
        f"  - the right name or version{' (' + '; '.join(right) + ')' if right else ''}\n"
        f'  - a name of its own, such as "my-{entry.name}"; a {registry.FILE} beside the files says what is known about it'
    )


def what_to_do(entry: Entry, reason: str, url: str = "") -> str:
    home, toml = cache_folder(entry), entry.folder and entry.folder / registry.FILE
    wanted = ", ".join(entry.files.values()) or "; or ".join(LAYOUTS)
    page = PAGE if registry.PAGE_TABLE in entry.published or entry.archive else "those who made it"
    archive = f"save the archive from {url or page}\n    as {home}.zip\n    and run: xcrepro fetch {entry.name}"
    if not url and entry.archive.keys() & {"key", "url"}:
        archive = f"run: xcrepro fetch {entry.name}\n    which downloads it; without a network, {archive}"
    if toml and "url" not in entry.archive:
        archive = f"name the archive in {toml}: [archive] with url or file"
    return (
        f"{entry.printed_name} {reason}. Do one of these:\n"
        f"  - {archive}\n"
        f"  - put the files ({wanted})\n    into {entry.folder or home}{os.sep}\n"
        f'  - name the folder that holds them: xcrepro.load("{entry.name}", path="..."), or -p folder DIR of a notebook\n'
        f"XCREPRO_DATA sets the cache folder. Nothing is replaced by synthetic data; "
        f'the name "synthetic {entry.name}" asks for those.'
    )
