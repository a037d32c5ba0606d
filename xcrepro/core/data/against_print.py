"""A dataset beside what documents print about it: its numbers, in what they differ, and what to do where it is another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from xcrepro.core.data import registry
from xcrepro.core.data.dataset import Split
from xcrepro.core.data.registry import Entry
from xcrepro.core.errors import ArgumentError, DataError

_NEAR = 0.1
"""How far counts may be from printed ones: the larger over the smaller, less 1."""


class Comparison(NamedTuple):
    """One published number beside what the data have, and whether it rounds to the printed digits."""

    quantity: str
    published: float
    found: float
    agrees: bool


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


def source_of(entry: Entry, check: str | bool) -> str | None:
    if check is False:
        return None
    if check is True or check == "repository":
        return entry.source
    if not isinstance(check, str) or check not in entry.published:
        rule = "must be 'repository', False, or a document that prints the dataset"
        do = f"for {entry.printed_name} these are {', '.join(map(repr, entry.published))}"
        raise ArgumentError("check", rule, repr(check), do)
    return check


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
    if not right and (near := nearest(counts)):
        right.append(f"these data are {near}")
    return (
        f"Side by side:\n{table}\nThere are two ways out:\n"
        f"  - the right name or version{' (' + '; '.join(right) + ')' if right else ''}\n"
        f'  - a name of its own, such as "my-{entry.name}"; a {registry.FILE} beside the files says what is known about it'
    )


def nearest(counts: Mapping[str, int | None]) -> str:
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
