"""The catalogue of datasets: what is known about each, one ``dataset.toml`` a dataset.

The package's own are ``xcrepro/core/data/catalogue/<name>.toml``: the 27 of the repository's page, and what further
documents print. A reader's own are of the same kind, and once they are there they work by name wherever a dataset is
named: :func:`xcrepro.load`, :func:`xcrepro.twin`, ``xcrepro fetch``, the ``dataset`` parameter of a notebook. They are

- ``$XCREPRO_DATA/<name>/dataset.toml`` (:func:`xcrepro.core.paths.cache_dir`), or
- ``dataset.toml`` beside the data, in the folder that is given as ``path`` or ``folder``.

**How to write one.** All keys but ``name`` may be left out. A key that is not known, a value of the wrong kind and a
file outside the folder are refused, with the file and the key.

- ``name``: letters, digits, ``.``, ``-``, ``_``; in ``$XCREPRO_DATA`` the folder's name; none that the catalogue has.
  ``printed_name``: what figures call it; ``aliases``: further names.  ``licence``, ``citation``, ``note``: text.
- ``label_names``: a file with a name a line, in the order of the label ids.  ``splits``: how many splits the split
  files have.
- ``[files]``: names in the folder, where they are none that :func:`xcrepro.load` finds by itself: ``train`` and
  ``test``; or ``train_X``, ``train_Y``, ``test_X`` and ``test_Y`` (or the two ``_Y``); or ``data``, ``train_rows`` and
  ``test_rows``. With the first two sets also ``validation``, or ``validation_X`` and ``validation_Y`` (as ``train`` is
  given): points of their own to choose and to calibrate on, in neither count below.
- ``[archive]``: where ``xcrepro fetch`` takes the files from: ``url``, or ``file``, a zip archive in the folder, or
  ``key`` and ``format`` of ``napkinxc.datasets``.  ``sha256``: of the archive, 64 hexadecimal digits; any other archive is
  refused. ``xcrepro fetch NAME --pin`` writes it. Without it the first archive that passes the comparison below is trusted.
- ``[propensity]``: ``A`` and ``B`` of jain16, equation 1 (default 0.55 and 1.5), ``from``: where they are from, in
  words.
- ``[expected]``: what a folder is compared with when it is loaded: ``n_train``, ``n_test``, ``n_features``,
  ``n_labels``, ``avg_points_per_label``, ``avg_labels_per_point``, with the digits that are printed (5.30 is not 5.3:
  they say how far rounding reaches), ``bins`` (labels with 1-9, 10-99, 100-999, 1000 and more train points), and
  ``source``: which document says so.  ``points_per_label_basis``: the points that the averages count: ``"train"``,
  ``"all"`` or ``"neither"``. ``row``: the line of the document's table of datasets.
- ``[[published]]``: what a further document prints: the same keys.
- ``[twin]``: the shape of its twin (:class:`TwinShape`) where the default does not do.

Beside it may lie ``printed.csv``: results of others on the dataset, in the columns of :func:`xcrepro.published.table`.
Items that compare with printed results show them.

>>> import pathlib, tempfile
>>> folder = pathlib.Path(tempfile.mkdtemp()) / "letters-40"
>>> folder.mkdir()
>>> _ = (folder / "dataset.toml").write_text('''
... name = "letters-40"
... printed_name = "Letters-40"
... licence = "CC BY 4.0"
... citation = "A. Reader: Letters and their subjects, 2026"
... label_names = "subjects.txt"
...
... [files]
... train = "letters_a.txt"
... test = "letters_b.txt"
...
... [propensity]
... A = 0.6
... B = 2.6
... from = "as for books"
...
... [expected]
... n_train = 900
... n_test = 300
... n_features = 500
... n_labels = 40
... avg_points_per_label = 67.5
... avg_labels_per_point = 3.00
... points_per_label_basis = "train"
...
... [twin]
... head = 0.3
... ''')
>>> entry = read(folder / "dataset.toml")
>>> entry.name, entry.A, entry.n_labels, entry.files["test"], entry.interval("avg_labels_per_point")
('letters-40', 0.6, 40, 'letters_b.txt', (2.995, 3.005))
"""

from __future__ import annotations

import difflib
import functools
import math
import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.paths import atomic_path, cache_dir, committed, committed_files

if TYPE_CHECKING:
    import pandas as pd

BINS = ("1-9", "10-99", "100-999", "1000+")
"""Names of the label bins, by number of train points (reeval, table 2)."""
PAGE_TABLE = "xcrepo:dataset-table"
"""The table of the repository's page: its 27 datasets are ``names(PAGE_TABLE)``."""
FILE_SETS = (
    ("train", "test"),
    ("train_X", "train_Y", "test_X", "test_Y"),
    ("data", "train_rows", "test_rows"),
    ("train_Y", "test_Y"),
)
"""The files that make a dataset, by the keys of ``[files]``."""
VALIDATION_SETS = {
    ("train", "test"): ("validation",),
    ("train_X", "train_Y", "test_X", "test_Y"): ("validation_X", "validation_Y"),
    ("train_Y", "test_Y"): ("validation_Y",),
}
"""What may stand beside them, for validation points."""
FILE = "dataset.toml"
"""What the file of a reader's dataset is called; also the source of its own numbers."""
SYNTHETIC = " (synthetic)"
"""Behind a dataset's name: this is no dataset of the catalogue but a twin of one."""
COUNTS = ("n_features", "n_labels", "n_train", "n_test")
AVERAGES = ("avg_points_per_label", "avg_labels_per_point")
_OF_A_ROW = (*COUNTS, *AVERAGES, "points_per_label_basis")


@dataclass(frozen=True)
class TwinShape:
    """What a twin needs beyond the printed statistics: the keys of ``[twin]``.

    Attributes
    ----------
    head : float
        The share of train points with the most frequent label, at most.
    tail : float, optional
        Train points of the rarest label, where it has many; None: as few as the published number of labels asks.
    spread : float
        Standard deviation of the number of labels a point has, as a share of their average.
    alpha : float
        How strongly words decide: a label's log-odds are ``alpha`` times the cosine of the point's words and its own, plus what
        its frequency asks.
    told, weak : float
        The share of a point's words that are its labels'; the share of points where only a tenth of these are.
    missing : float
        The odds that a relevant label is missing, as a share of what the propensity model says.
    topic, topics : float, int
        Labels a topic, on average; how many topics a point has, at most.
    follow : float
        How often labels bring their companion along, a more frequent label of the topic: at most; some hardly ever.
    even : int
        How evenly a point writes of its labels: their shares of its words are those of sums of so many exponentials.
    shared : int
        How many of the 10 words of a label are its topic's.
    words : int, optional
        Words a point; None: by its number of labels.
    hierarchy : bool
        Whether labels have parents: see :func:`xcrepro.twin`.

    Notes
    -----
    ``spread`` of EURLex-4K, Bibtex and Delicious is counted in their label sets, the default is in between. ``alpha``,
    ``told``, ``weak``, ``missing`` and ``shared`` were fitted, by trying, to the printed P and PSP of linear models and
    PLT's coverage: EURLex-4K at a fifth of its points, Wiki10-31K at a tenth, AmazonCat-13K at 0.5 %, Delicious at a fifth,
    Bibtex at all; the defaults are near these fits and untried elsewhere.
    """

    head: float = 0.05
    tail: float | None = None
    spread: float = 0.5
    alpha: float = 50.0
    told: float = 0.75
    weak: float = 0.1
    missing: float = 0.03
    topic: float = 50.0
    topics: int = 3
    even: int = 2
    follow: float = 1.0
    shared: int = 5
    words: int | None = None
    hierarchy: bool = False


@dataclass(frozen=True)
class Entry:
    """One dataset of the catalogue. Numbers are those of ``[expected]``; None: not printed there.

    Attributes
    ----------
    name, printed_name, aliases : str, str, tuple of str
        The key, as ``napkinxc.datasets`` writes it where it has an archive; the name on the page; further names.
    group : str
        The page's: ``"multi-modal"``, ``"label-features"``, ``"without"`` (label features), ``"legacy"``;
        ``"proprietary"``, statistics only; ``"own"``, a reader's.
    n_features, n_labels, n_train, n_test : int, optional
        D, L, N and the number of test points.
    avg_points_per_label, avg_labels_per_point : float, optional
        As printed; :meth:`interval` gives the range that rounding leaves.
    points_per_label_basis : str, optional
        The points that ``avg_points_per_label`` counts: ``"train"``, ``"all"`` (train and test) or ``"neither"`` (the
        printed averages contradict each other; a note in the published row says by how much). Nobody states it, the
        numbers do: labels per point x points / labels meets the printed average within rounding.
    bins, bins_source : dict, str, optional
        Labels per bin of :data:`BINS`, from whichever document prints them, and which one. A label without a train
        point is in none.
    A, B, propensity_source : float, float, str
        Of the propensity model (jain16, eq. 1), and where they are from, in words.
    archive : dict
        The keys of ``[archive]``: ``url``; or ``file``, its name in ``folder``; or ``key`` and ``format`` in
        ``napkinxc.datasets.DATASETS``, which keeps the download addresses; or ``committed``, the folder of a dataset that
        comes with the package; or nothing. Where napkinXC has both releases of the bag-of-words features, the first one,
        ``"bow-v1"``, is taken for the page's: its feature numbers of AmazonCat-13K, Wiki10-31K and Amazon-670K are those
        that jain16 printed in 2016, when there was only one. And ``sha256``, where it is known.
    published : dict
        Every document's row about it, by source, that of ``[expected]`` first: the fields above that the document
        prints, ``printed_name``, and ``note`` where there is something to say.
    as_printed : dict
        The same rows as the file has them: averages as Decimal with their digits, and ``row``, the line of the
        document's table of datasets.
    folder : Path, optional
        Where the ``dataset.toml`` of a reader lies; None for the package's own.
    files, label_names : dict, str, optional
        File names in the dataset's folder, by the keys of ``[files]``; the file of the labels' names.
    splits : int, optional
        How many splits the split files have.
    licence, citation, note : str
        As the file says.
    twin : TwinShape
        The shape of its twin.
    """

    name: str
    printed_name: str
    group: str
    A: float
    B: float
    propensity_source: str
    published: dict[str, dict] = field(repr=False)
    as_printed: dict[str, dict] = field(repr=False)
    n_features: int | None = None
    n_labels: int | None = None
    n_train: int | None = None
    n_test: int | None = None
    avg_points_per_label: float | None = None
    avg_labels_per_point: float | None = None
    points_per_label_basis: str | None = None
    bins: dict[str, int] | None = None
    bins_source: str | None = None
    aliases: tuple[str, ...] = ()
    note: str = ""
    licence: str = ""
    citation: str = ""
    archive: dict[str, str] = field(default_factory=dict)
    folder: Path | None = None
    files: dict[str, str] = field(default_factory=dict)
    label_names: str | None = None
    splits: int | None = None
    twin: TwinShape = TwinShape()

    @property
    def proprietary(self) -> bool:
        """True where only the statistics are public."""
        return self.group == "proprietary"

    @property
    def source(self) -> str:
        """The document and table that the entry's own numbers are from."""
        return next(iter(self.published))

    def version(self, source: str) -> Entry:
        """The entry of the data that ``source`` prints under this name: with its numbers, its row first."""
        row = self.published[source]
        labels = row.get("n_labels", self.n_labels)
        return replace(
            self,
            printed_name=self.printed_name + (f" ({labels:,} labels)" if labels != self.n_labels else ""),
            published={source: row} | self.published,
            **{number: row.get(number) for number in _OF_A_ROW},  # type: ignore[arg-type]
        )

    def row(self, source: str) -> int | None:
        """The line that ``source`` gives the dataset in its table of datasets, or None."""
        return self.as_printed.get(source, {}).get("row")

    @property
    def all_names(self) -> tuple[str, ...]:
        """Everything it is called: the key, what documents print, the aliases."""
        return self.name, self.printed_name, *self.aliases, *(row["printed_name"] for row in self.published.values())

    def is_called(self, name: str) -> bool:
        """Whether ``name`` is one of its names; case, ``-``, ``_`` and blanks do not matter."""
        return isinstance(name, str) and _plain(name) in map(_plain, self.all_names)

    def printed(self, number: str, source: str | None = None) -> str:
        """:func:`printed` of this entry."""
        return str(self.as_printed[self.resolve_source(source)].get(number, ""))

    def interval(self, number: str, source: str | None = None) -> tuple[float, float] | None:
        """:func:`interval` of this entry."""
        text = self.printed(number, source)
        if not text:
            return None
        printed = Decimal(text)
        half = Decimal(1).scaleb(int(printed.as_tuple().exponent)) / 2 if "." in text else 0
        return float(printed - half), float(printed + half)

    def resolve_source(self, source: str | None) -> str:
        """``source``, or the entry's own where it is None."""
        if source is None:
            return self.source
        if source not in self.published:
            rule = f"must be one of the documents that print {self.printed_name}"
            raise ArgumentError("source", rule, repr(source), f"they are {', '.join(map(repr, self.published))}")
        return source


def names(source: str | None = None, *, proprietary: bool = False) -> list[str]:
    """The keys of the catalogue: the page's, then further ones by name, then the reader's (``$XCREPRO_DATA``) by name.

    With ``source``, a table of datasets such as :data:`PAGE_TABLE`, only those it prints, in its order. ``proprietary``
    adds those of which only statistics are public.
    """
    entries = package()
    if source is None:
        own = [path.parent.name for path in _readers().values()]
        return [name for name, entry in entries.items() if proprietary or not entry.proprietary] + own
    found = [name for name, entry in entries.items() if entry.row(source)]
    if not found:
        tables = sorted({table for entry in entries.values() for table in entry.published if entry.row(table)})
        do = f"there are {', '.join(map(repr, tables))}"
        raise ArgumentError("source", "must be a table of datasets", repr(source), do)
    return sorted(found, key=lambda name: entries[name].row(source) or 0)


def get(name: str) -> Entry:
    """The entry of a dataset.

    Parameters
    ----------
    name : str
        Its key, a printed name or an alias; case, ``-``, ``_`` and blanks do not matter.

    Raises
    ------
    ArgumentError
        With the nearest names, where there is none.
    DataError
        Where the ``dataset.toml`` of a reader breaks a rule, or takes a name that the package has.

    Examples
    --------
    >>> entry = get("EURLex-4K")
    >>> entry.name, entry.n_train, entry.n_test, entry.n_features, entry.n_labels
    ('eurlex-4k', 15539, 3809, 5000, 3993)
    >>> entry.avg_points_per_label, entry.points_per_label_basis, entry.bins["1-9"]
    (25.73, 'all', 2413)
    >>> get("Wikipedia-500K").archive
    {'key': 'wikipedialarge-500k', 'format': 'bow'}
    """
    if not isinstance(name, str):
        raise ArgumentError("name", "must be the name of a dataset", repr(name), "registry.names() lists them")
    plain, known = _plain(name), _known_names()
    if plain in known:
        home = cache_dir()
        for folder in (known[plain], name):
            if os.path.isfile(path := os.path.join(home, folder, FILE)):
                read(path)  # raises: a reader's may not take a name of the package
        return package()[known[plain]]
    readers = _readers()
    if plain in readers:
        return read(readers[plain])
    for file in readers.values():
        if (entry := read(file)).is_called(name):
            return entry
    hint = f"did you mean {close}? " if (close := nearest_names(name)) else ""
    do = f"{hint}xcrepro.core.data.registry.names() lists them; help(xcrepro.core.data.registry) says how to add one"
    raise ArgumentError("name", "must be a dataset of the catalogue", repr(name), do)


def nearest_names(name: str, cutoff: float = 0.5) -> str:
    """The names of the catalogue that are nearest to ``name``."""
    known = _known_names() | {plain: path.parent.name for plain, path in _readers().items()}
    close = dict.fromkeys(known[text] for text in difflib.get_close_matches(_plain(name), known, n=5, cutoff=cutoff))
    return " or ".join(map(repr, list(close)[:3]))


def synthetic(name: object) -> str | None:
    """Of which dataset a name asks for synthetic data, ``"synthetic eurlex-4k"``; None of a name that means real data."""
    first, blank, rest = name.strip().partition(" ") if isinstance(name, str) else ("", "", "")
    return rest.strip() if blank and first.lower() == "synthetic" else None


def committed_names() -> list[str]:
    """The datasets that come with the package, in full."""
    return [name for name, entry in package().items() if "committed" in entry.archive]


def is_name(name: str) -> bool:
    """Whether ``name`` is a dataset's of the catalogue, or asks for synthetic data of one."""
    original = synthetic(name)
    return find(name if original is None else original) is not None


def find(name: str) -> Entry | None:
    """As :func:`get`, but None for a name that the catalogue does not have."""
    try:
        return get(name)
    except ArgumentError:
        return None


def title(name: str) -> str:
    """What the documents call a dataset; its own name where the catalogue does not have it. ``"delicious, split 0"`` is one of
    its splits, ``"Delicious, split 0"``."""
    whole, of, split = name.partition(", split ")
    entry = find(whole)
    return f"{entry.printed_name}{of}{split}" if entry else name


def read(path: str | os.PathLike) -> Entry:
    """The entry that a ``dataset.toml`` describes, checked whole; DataError names file and key."""
    path = Path(path)
    entry = _read(path, path.stat().st_mtime_ns)
    if path.parent.parent == cache_dir() and entry.name != path.parent.name:
        raise DataError(path, f"name = {entry.name!r}", f"the folder's name, {path.parent.name!r}")
    taken = {known for text in entry.all_names if (known := _known_names().get(_plain(text)))}
    if taken:
        found, do = f"a name of {' and '.join(sorted(taken))}, which xcrepro has already", f'Such as "my-{entry.name}"'
        raise DataError(path, found, "a name of its own (name, printed_name, aliases)", do=do)
    return entry


def pin(name: str, sha256: str) -> Path:
    """Write an archive's SHA-256 into ``[archive]`` of a dataset's file, all else as it is, and give its path."""
    if not _SHA256.test(sha256):
        raise ArgumentError("sha256", f"must be {_SHA256.words}", repr(sha256))
    entry = get(name)
    path = entry.folder / FILE if entry.folder else _FOLDER / f"{entry.name}.toml"
    if (known := entry.archive.get("sha256")) == sha256:
        return path
    if known:
        do = "Take that line out where the new archive is meant, and pin it again"
        raise DataError(path, f"archive.sha256 = {known}", f"none, or {sha256}", do=do)
    text, line = path.read_text(encoding="utf-8"), f'sha256 = "{sha256}"'
    new = _with_line(text, "[archive]", line)
    was, now = (tomllib.loads(content, parse_float=Decimal) for content in (text, new))
    if now != {**was, "archive": {**was.get("archive", {}), "sha256": sha256}}:
        found = "an [archive] that is written in an unusual way"
        raise DataError(path, found, "a table of its own", do=f"Put in {line}")
    with atomic_path(path) as part:
        part.write_text(new, encoding="utf-8", newline="\n")
    for cached in (_read, package, _known_names):
        cached.cache_clear()
    return path


def _with_line(text: str, table: str, line: str) -> str:
    """A TOML text with one more line behind the last key of a table, which is made where it is not there."""
    lines = text.splitlines()
    begin = next((at for at, found in enumerate(lines) if found.partition("#")[0].strip() == table), None)
    if begin is None:
        return "\n".join([*lines, "", table, line, ""])
    rest = range(begin + 1, len(lines))
    end = next((at for at in rest if lines[at].lstrip().startswith("[")), len(lines))
    last = max(at for at in range(begin, end) if lines[at].strip() and not lines[at].lstrip().startswith("#"))
    return "\n".join([*lines[: last + 1], line, *lines[last + 1 :], ""])


def unlisted(name: str) -> Entry:
    """An entry for data of which nothing is known but what they are called."""
    if not isinstance(name, str) or not _NAME.test(name):
        raise ArgumentError("name", f"must be {_NAME.words}", repr(name))
    return _entry({"name": name}, None)


def published(name: str, source: str | None = None) -> dict:
    """The row that a document (by default the entry's own) prints about a dataset: field -> number or text."""
    entry = get(name)
    return dict(entry.published[entry.resolve_source(source)])


def printed(name: str, number: str, source: str | None = None) -> str:
    """A number of a published row, such as ``"avg_points_per_label"``, with its digits as printed; empty if it is not."""
    return get(name).printed(number, source)


def interval(name: str, number: str, source: str | None = None) -> tuple[float, float] | None:
    """The least and the largest value that round to what a document prints for a number; None if it is not printed.

    They are equal for what is printed without a decimal point.
    """
    return get(name).interval(number, source)


def label_counts(name: str) -> pd.DataFrame:
    """How many points carry each label of a dataset, by its id, from the small tables committed in ``data/label_counts``.

    ``train`` and ``test`` for Bibtex (one of its ten splits); ``count`` for EURLex-4K, over 19,314 of its 19,348
    points, train and test together: the source has neither the split nor the other 34, which the printed averages leave
    almost no labels.
    """
    import pandas as pd

    entry = get(name)
    path = committed(f"data/label_counts/{entry.name}.csv")
    if not path.is_file():
        there = ", ".join(p.stem for p in committed_files("data/label_counts", "*.csv")) or "none"
        do = "Load the dataset and use .label_counts, or put a table 'label,count' there"
        raise DataMissing(f"{path}: no label counts of {entry.printed_name} there (there are: {there}). {do}")
    return pd.read_csv(path, index_col="label", dtype="int64")


# ---------------------------------------------------------------- the format


class _Rule(NamedTuple):
    """What a value must be, in words, and a test for it."""

    words: str
    test: Callable[[object], bool]


def _whole(least: int) -> _Rule:
    return _Rule(f"a whole number, {least} or more", lambda v: type(v) is int and v >= least)


def _number(test: Callable[[Decimal], bool], words: str) -> _Rule:
    return _Rule(
        words, lambda v: isinstance(v, int | Decimal) and type(v) is not bool and _is_float(v) and test(Decimal(v))
    )


def _is_float(value: int | Decimal) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:  # a whole number beyond float64
        return False


def _one_of(*values: str) -> _Rule:
    return _Rule("one of " + ", ".join(map(repr, values)), lambda v: v in values)


_LONGEST = 255  # bytes of a file's name that systems take


def _inside(value: object) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value.encode("utf-8", "replace")) <= _LONGEST
        and not ({"..", "/"} & set(PurePosixPath(value).parts) or "\\" in value)
    )


def _like(words: str, pattern: str) -> _Rule:
    return _Rule(words, lambda v: isinstance(v, str) and re.fullmatch(pattern, v, re.ASCII) is not None)


_NAME = _like("a name of letters, digits, '.', '-' and '_', 100 at most", r"[A-Za-z0-9][\w.-]{0,99}")
_SHA256 = _like("64 hexadecimal digits in lower case", r"[0-9a-f]{64}")
_TEXT = _Rule("a text", lambda v: isinstance(v, str))
_TEXTS = _Rule("a list of texts", lambda v: isinstance(v, list) and all(isinstance(text, str) for text in v))
_IN_FOLDER = _Rule(f"a file in the folder, by its relative path with '/', of at most {_LONGEST} bytes", _inside)
_ANY = _number(lambda v: v >= 0, "a number, 0 or more")
_ABOVE = _number(lambda v: v > 0, "a number above 0")
_SHARE = _number(lambda v: 0 < v <= 1, "a share, above 0 and at most 1")
_BINS = _Rule(
    f"{len(BINS)} whole numbers, one for each of {', '.join(BINS)}",
    lambda v: isinstance(v, list) and len(v) == len(BINS) and all(_whole(0).test(count) for count in v),
)
_ROW = {
    "source": _TEXT, "row": _whole(1), "printed_name": _TEXT, "note": _TEXT, "n_features": _whole(1),
    "n_labels": _whole(1), "n_train": _whole(1), "n_test": _whole(1), "avg_points_per_label": _ANY,
    "avg_labels_per_point": _ANY, "points_per_label_basis": _one_of("train", "all", "neither"), "bins": _BINS,
}  # fmt: skip
_FORMAT = {
    "name": _NAME, "printed_name": _TEXT, "aliases": _TEXTS, "note": _TEXT, "licence": _TEXT, "citation": _TEXT,
    "group": _one_of("multi-modal", "label-features", "without", "legacy", "proprietary", "own"),
    "label_names": _IN_FOLDER, "splits": _whole(1),
    "propensity": {"A": _ANY, "B": _ANY, "from": _TEXT},
    "archive": {"key": _TEXT, "format": _TEXT, "url": _TEXT, "file": _IN_FOLDER, "sha256": _SHA256, "committed": _TEXT},
    "files": {key: _IN_FOLDER for keys in (*FILE_SETS, *VALIDATION_SETS.values()) for key in keys},
    "expected": _ROW,
    "published": [_ROW],
    "twin": {
        "head": _SHARE, "follow": _SHARE, "told": _SHARE, "weak": _SHARE, "missing": _SHARE,
        "words": _whole(1), "topics": _whole(1), "even": _whole(1),
        "shared": _Rule("a whole number from 0 to 10", lambda v: type(v) is int and 0 <= v <= 10),
        **dict.fromkeys(("tail", "spread", "alpha", "topic"), _ABOVE),
        "hierarchy": _Rule("true or false", lambda v: type(v) is bool),
    },
}  # fmt: skip
"""Key -> rule; a dict: a table of these; a list: tables of these, any number."""


def _check(path: Path, table: object, rules: dict, where: str = "") -> None:
    """Raise a DataError for the first key of ``table`` that breaks its rule."""
    if not isinstance(table, dict):
        raise DataError(path, f"{where.rstrip('.')} = {table!r}", "a table of keys")
    for key, value in table.items():
        rule, full = rules.get(key), where + key
        if rule is None:
            near = difflib.get_close_matches(key, rules, n=1)
            hint = f"Did you mean {where}{near[0]}" if near else ""
            raise DataError(path, f"the key {full}", "one of " + ", ".join(rules), do=hint)
        if isinstance(rule, dict):
            _check(path, value, rule, full + ".")
        elif isinstance(rule, list):
            if not isinstance(value, list):
                raise DataError(path, f"{full} = {value!r}", "a list of tables", do=f"Write [[{full}]]")
            for i, part in enumerate(value):
                _check(path, part, rule[0], f"{full}[{i}].")
        elif not rule.test(value):
            raise DataError(path, f"{full} = {value if isinstance(value, Decimal) else repr(value)}", rule.words)


@functools.lru_cache(maxsize=256)
def _read(path: Path, changed: int, package: bool = False) -> Entry:
    """The entry in ``path`` as it was at ``changed`` (nanoseconds), whatever its name."""
    try:
        # Decimal keeps the digits as printed; everything else reads floats.
        table = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        # Of a number of very many digits Python says ValueError, of an exponent of very many decimal has its own errors.
        raise DataError(path, f"no TOML ({error})", "a dataset.toml") from None
    _check(path, table, _FORMAT)
    expected, files, archive = (table.get(key, {}) for key in ("expected", "files", "archive"))
    sources = [row.get("source") for row in (expected, *table.get("published", ()))]
    archives = [{"key", "format"}, {"url"}, {"file"}, set(), *([{"committed"}] if package else [])]
    for broken, key, found, rule in (
        ("name" not in table, "name", "nothing", "the dataset's name"),
        (files and not any(set(files) in (set(keys), {*keys, *VALIDATION_SETS.get(keys, ())}) for keys in FILE_SETS),
         "files", ", ".join(files), " or ".join(", ".join(keys) for keys in FILE_SETS)
         + "; validation, or validation_X and validation_Y, beside train, or train_X and train_Y"),
        (archive and set(archive) - {"sha256"} not in archives, "archive",
         ", ".join(archive), "url, or file, or key and format; and sha256"),
        (None in sources[1:] or len(set(sources)) < len(sources), "published", f"the sources {sources}",
         "one for each row, and each once"),
        (expected.get("avg_labels_per_point", 0) > expected.get("n_labels", math.inf),
         "expected.avg_labels_per_point", "more labels a point", "no more than n_labels"),
    ):  # fmt: skip
        if broken:
            raise DataError(path, f"{key}: {found}", rule)
    return _entry(table, None if package else path.parent)


def _entry(table: dict, folder: Path | None) -> Entry:
    printed_name = table.get("printed_name", table["name"])
    printed = {row.get("source", FILE): row for row in (table.get("expected", {}), *table.get("published", ()))}
    rows = {source: _row(row, printed_name) for source, row in printed.items()}
    first = next(iter(rows.values()))
    bins_source = next((source for source, row in rows.items() if "bins" in row), None)
    propensity = table.get("propensity", {})
    return Entry(
        name=table["name"],
        printed_name=printed_name,
        group=table.get("group", "own"),
        A=float(propensity.get("A", Decimal("0.55"))),
        B=float(propensity.get("B", Decimal("1.5"))),
        propensity_source=propensity.get("from", "the default of jain16, section 5"),
        published=rows,
        as_printed=printed,
        bins=dict(rows[bins_source]["bins"]) if bins_source else None,
        bins_source=bins_source,
        aliases=tuple(table.get("aliases", ())),
        folder=folder,
        twin=TwinShape(**_plain_numbers(table.get("twin", {}))),
        **{number: first.get(number) for number in _OF_A_ROW},  # type: ignore[arg-type]
        **{key: table[key] for key in ("note", "licence", "citation", "archive", "files", "label_names", "splits")
           if key in table},
    )  # fmt: skip


def _plain_numbers(table: dict) -> dict:
    """With floats in place of decimal numbers."""
    return {key: float(value) if isinstance(value, Decimal) else value for key, value in table.items()}


def _row(row: dict, printed_name: str) -> dict:
    plain = {"printed_name": printed_name} | _plain_numbers(row)
    plain = {key: value for key, value in plain.items() if key not in ("source", "row")}
    if "bins" in plain:
        plain["bins"] = dict(zip(BINS, plain["bins"], strict=True))
    return plain


# ---------------------------------------------------------------- where the files lie

_FOLDER = Path(__file__).with_name("catalogue")


@functools.cache
def package() -> dict[str, Entry]:
    """The package's entries by key: those of the page in its order, then the others by name."""
    entries = [_read(path, 0, package=True) for path in sorted(_FOLDER.glob("*.toml"))]
    return {e.name: e for e in sorted(entries, key=lambda e: e.row(PAGE_TABLE) or math.inf)}


@functools.cache
def _known_names() -> dict[str, str]:
    """Plain spelling -> key, of the package's entries; keys first, so that no other name can hide one."""
    known = {_plain(name): name for name in package()}
    for entry in package().values():
        for text in entry.all_names:
            known.setdefault(_plain(text), entry.name)
    return known


def _readers() -> dict[str, Path]:
    """Plain name -> dataset.toml, of the reader's datasets in ``$XCREPRO_DATA``."""
    return {_plain(path.parent.name): path for path in sorted(cache_dir().glob(f"*/{FILE}"))}


def _plain(text: str) -> str:
    return "".join(c for c in text.lower() if c not in "-_ ")
