"""The datasets of the field: what the documents print about each, its A and B, and where its archive is.

The numbers live in ``registry.toml`` beside this file; its head says what each field means.
"""

from __future__ import annotations

import difflib
import functools
import tomllib
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.errors import ArgumentError, DataMissing
from xcrepro.paths import project_root

if TYPE_CHECKING:
    import pandas as pd

BINS = ("1-9", "10-99", "100-999", "1000+")
"""Names of the label bins, by number of train points (reeval, table 2)."""


@dataclass(frozen=True)
class Entry:
    """One dataset of the registry. Numbers are those of its first published row; None: not printed there.

    name: the key, as ``napkinxc.datasets`` writes it where it has an archive.  printed_name: as the page writes it.
    group: the page's: ``"multi-modal"``, ``"label-features"``, ``"without"`` (label features), ``"legacy"``; or
    ``"proprietary"``, statistics only.
    n_features, n_labels, n_train, n_test: D, L, N and the number of test points.
    avg_points_per_label, avg_labels_per_point: as printed; :func:`interval` gives the range that rounding leaves.
    points_per_label_basis: the points that ``avg_points_per_label`` counts: ``"train"``, ``"all"`` (train and test) or
    ``"neither"`` (the printed averages contradict each other; a note in the published row says by how much).
    bins: labels per bin of :data:`BINS`, from whichever document prints them, else None.  bins_source: which one.
    A, B: of the propensity model (jain16, eq. 1).  propensity_source: where they are from, in words.
    archive, archive_format: key and format in ``napkinxc.datasets.DATASETS``, or None where it has no archive.
    published: every document's row about it, by source, the default one first: the fields above that the document
    prints, ``printed_name``, and ``note`` where there is something to say.
    """

    name: str
    printed_name: str
    group: str
    n_features: int | None
    n_labels: int
    n_train: int
    n_test: int
    avg_points_per_label: float | None
    avg_labels_per_point: float | None
    points_per_label_basis: str | None
    bins: dict[str, int] | None
    bins_source: str | None
    A: float
    B: float
    propensity_source: str
    archive: str | None
    archive_format: str | None
    published: dict[str, dict] = field(repr=False)
    aliases: tuple[str, ...] = ()
    note: str = ""

    @property
    def proprietary(self) -> bool:
        """True where only the statistics are public."""
        return self.group == "proprietary"

    @property
    def source(self) -> str:
        """The document and table that the entry's own numbers are from."""
        return next(iter(self.published))


def names(*, proprietary: bool = False) -> list[str]:
    """The keys of the repository's 27 datasets in the order of its page; with ``proprietary``, Ads-9M of jain16 too.

    >>> len(names()), names()[-2:], names(proprietary=True)[-1]
    (27, ['deliciouslarge-200k', 'wikilshtc-325k'], 'ads-9m')
    """
    return [name for name, entry in _entries().items() if proprietary or not entry.proprietary]


def get(name: str) -> Entry:
    """The entry called ``name``: its key, printed name or an alias; case, ``-``, ``_`` and blanks do not matter.

    Raises ArgumentError, with the nearest names, where there is none.

    >>> entry = get("EURLex-4K")
    >>> entry.name, entry.n_train, entry.n_test, entry.n_features, entry.n_labels
    ('eurlex-4k', 15539, 3809, 5000, 3993)
    >>> entry.avg_points_per_label, entry.points_per_label_basis, entry.bins["1-9"]
    (25.73, 'all', 2413)
    >>> get("Wikipedia-500K").archive
    'wikipedialarge-500k'
    """
    if not isinstance(name, str):
        raise ArgumentError("name", "must be the name of a dataset", repr(name), "registry.names() lists them")
    known = _known_names()
    if key := known.get(_plain(name)):
        return _entries()[key]
    near = dict.fromkeys(known[text] for text in difflib.get_close_matches(_plain(name), known, n=5, cutoff=0.5))
    hint = f"did you mean {' or '.join(map(repr, list(near)[:3]))}? " if near else ""
    raise ArgumentError(
        "name", "must be a dataset of the registry", repr(name), hint + "xcrepro.data.registry.names() lists them"
    )


def published(name: str, source: str | None = None) -> dict:
    """The row that ``source`` prints about dataset ``name``; None: the entry's own. A copy.

    Raises ArgumentError where the dataset or its row is unknown.

    >>> published("wiki10-31k", "jain16:table2")["n_labels"]
    30935
    """
    entry = get(name)
    return dict(entry.published[_source(entry, source)])


def printed(name: str, number: str, source: str | None = None) -> str:
    """A number of a published row with its digits as they stand in print; an empty text where it is not printed.

    >>> printed("bibtex", "avg_labels_per_point"), printed("amazoncat-14k", "avg_points_per_label")
    ('2.40', '1330.1')
    """
    entry = get(name)
    value = _printed()[entry.name, _source(entry, source)].get(number)
    return "" if value is None else str(value)


def interval(name: str, number: str, source: str | None = None) -> tuple[float, float] | None:
    """The values that round to what ``source`` (None: the entry's own) prints for ``number``: ends included.

    ``number`` is a field of a published row, e.g. ``"avg_points_per_label"``. None where it is not printed.

    >>> interval("amazoncat-14k", "avg_points_per_label")
    (1330.05, 1330.15)
    >>> interval("orcas-800k", "n_features") is None
    True
    """
    entry = get(name)
    printed = _printed()[entry.name, _source(entry, source)].get(number)
    if printed is None:
        return None
    if not isinstance(printed, Decimal):
        return float(printed), float(printed)
    half = Decimal(1).scaleb(int(printed.as_tuple().exponent)) / 2
    return float(printed - half), float(printed + half)


def label_counts(name: str) -> pd.DataFrame:
    """How many points carry each label of a dataset, from the small tables committed in ``data/label_counts``.

    Returns int64 columns, one row a label, indexed by the label's id: ``train`` and ``test`` for Bibtex (one of its ten
    splits); ``count`` for EURLex-4K, over 19,314 of its 19,348 points, train and test together: the source has neither
    the split nor the other 34, which the printed averages leave almost no labels. The README in that folder says how
    the tables were made.

    Raises DataMissing where there is no table.

    >>> counts = label_counts("eurlex-4k")["count"]
    >>> len(counts), int(counts.sum()), round(float(counts.mean()), 2)
    (3993, 102741, 25.73)
    """
    import pandas as pd

    entry = get(name)
    folder = project_root() / "data" / "label_counts"
    path = folder / f"{entry.name}.csv"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob("*.csv"))) or "none"
        raise DataMissing(
            f"{path}: no label counts of {entry.printed_name} there (there are: {there}). "
            f"Load the dataset and use .label_counts, or put a table 'label,count' there"
        )
    return pd.read_csv(path, index_col="label", dtype="int64")


def _plain(text: str) -> str:
    return "".join(c for c in text.lower() if c not in "-_ ")


def _source(entry: Entry, source: str | None) -> str:
    if source is None:
        return entry.source
    if source not in entry.published:
        raise ArgumentError(
            "source", f"must be one of the documents that print {entry.printed_name}", repr(source),
            "they are " + ", ".join(map(repr, entry.published)),
        )  # fmt: skip
    return source


@functools.cache
def _read() -> list[dict]:
    text = Path(__file__).with_name("registry.toml").read_text(encoding="utf-8")
    # Decimal keeps the digits as printed; everything else reads floats.
    return tomllib.loads(text, parse_float=Decimal)["dataset"]


@functools.cache
def _printed() -> dict[tuple[str, str], dict]:
    return {(dataset["name"], row["source"]): row for dataset in _read() for row in dataset["published"]}


@functools.cache
def _entries() -> dict[str, Entry]:
    return {dataset["name"]: _entry(dataset) for dataset in _read()}


@functools.cache
def _known_names() -> dict[str, str]:
    known: dict[str, str] = {}
    # Keys first, so that no other name can hide one.
    for entry in _entries().values():
        known[_plain(entry.name)] = entry.name
    for entry in _entries().values():
        for text in (entry.printed_name, *entry.aliases, *(row["printed_name"] for row in entry.published.values())):
            known.setdefault(_plain(text), entry.name)
    return known


def _entry(dataset: dict) -> Entry:
    rows = {row["source"]: _row(dataset, row) for row in dataset["published"]}
    first = next(iter(rows.values()))
    bins_source = next((source for source, row in rows.items() if "bins" in row), None)
    archive = dataset.get("archive", {})
    return Entry(
        name=dataset["name"],
        printed_name=dataset["printed_name"],
        group=dataset["group"],
        **{
            number: first.get(number)
            for number in ("n_features", "n_labels", "n_train", "n_test", "avg_points_per_label",
                           "avg_labels_per_point", "points_per_label_basis")
        },
        bins=dict(rows[bins_source]["bins"]) if bins_source else None,
        bins_source=bins_source,
        A=float(dataset["propensity"]["A"]),
        B=float(dataset["propensity"]["B"]),
        propensity_source=dataset["propensity"]["from"],
        archive=archive.get("key"),
        archive_format=archive.get("format"),
        published=rows,
        aliases=tuple(dataset.get("aliases", ())),
        note=dataset.get("note", ""),
    )  # fmt: skip


def _row(dataset: dict, row: dict) -> dict:
    plain = {
        key: float(value) if isinstance(value, Decimal) else value for key, value in row.items() if key != "source"
    }
    plain.setdefault("printed_name", dataset["printed_name"])
    if "bins" in plain:
        plain["bins"] = dict(zip(BINS, plain["bins"], strict=True))
    return plain
