"""What several commands share: options as parameters, options that go together, and how a table is printed."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.core.errors import ArgumentError, in_shell

if TYPE_CHECKING:
    import numpy as np

    from xcrepro.core.data.dataset import Dataset
    from xcrepro.core.data.registry import Entry


class Listing(argparse.Action):
    """Print the table that ``const`` makes and leave, as ``--help`` does."""

    def __call__(self, parser, *_) -> None:
        from xcrepro.repro.drawing import tables

        print(tables.show(self.const()))
        parser.exit()


def add_listing(sub, table, what: str) -> None:
    """``--list``, which shows a table and stops."""
    sub.add_argument("--list", action=Listing, nargs=0, const=table, help=f"show the {what}, and stop")


def flag(sub, name: str, says: str) -> None:
    """An option without a value."""
    sub.add_argument(name, action="store_true", help=says)


def taken(arguments, *names: str) -> dict:
    """Arguments by name, for a function whose parameters are called the same."""
    return {name: getattr(arguments, name) for name in names}


def split_of(text: str) -> int | str:
    """A split's number or name, as it is typed."""
    return int(text) if text.isascii() and text.removeprefix("-").isdigit() else text


_SPELT = {"others": "--with", "from_format": "--from"}
"""Options that are called otherwise where they are typed."""


def refuse(arguments, names, rule: str, do: str = "") -> None:
    """Refuse the first of these options that was given."""
    for name, value in taken(arguments, *names).items():
        if value is not None and value is not False and value != []:
            raise ArgumentError(_SPELT.get(name, f"--{name.replace('_', '-')}"), rule, value, do)


def add_names(sub) -> None:
    """The arguments that say what labels and rows are called."""
    sub.add_argument("--labels", type=Path, metavar="FILE", help="label names, one per line, or a label map")
    sub.add_argument("--rows", type=Path, metavar="FILE", help="row ids, one per line, if files call rows by names")
    sub.add_argument("--n-labels", type=int, metavar="L", help="how many labels there are, if no file says so")


def names_of(arguments) -> dict:
    """What labels and rows are called, by the files of :func:`add_names`."""
    from xcrepro.core.data.names import read_label_names, read_row_ids

    return {
        "label_names": None if arguments.labels is None else read_label_names(arguments.labels),
        "row_ids": None if arguments.rows is None else read_row_ids(arguments.rows),
    }


def add_propensities(sub) -> None:
    """Training labels, and A and B of the propensity model."""
    sub.add_argument(
        "--train-truth",
        type=Path,
        help="training labels, as for truth: adds propensity-scored metrics and what depends on train frequency; a dataset "
        "has its own",
    )
    sub.add_argument("--A", type=float, help="of the propensity model, default the dataset's or 0.55")
    sub.add_argument("--B", type=float, help="of the propensity model, default the dataset's or 1.5")
    sub.add_argument(
        "--filter",
        type=Path,
        help="the test split's filter file (LF datasets): pairs that may not be predicted; taken out of a score matrix, looked "
        "for in a ranking",
    )


def add_part(sub) -> None:
    """Which part of a dataset is meant."""
    sub.add_argument(
        "--split", type=split_of, help="of a dataset given by its name: which split, default 0; time (gutenberg)"
    )
    sub.add_argument("--points", type=int, help="of tib: how many of its records, default all")


def add_reading(sub, predictions: bool = True) -> None:
    """The arguments that say how truth and predictions are read: the same words in every command that reads them."""
    add_names(sub)
    sub.add_argument("--truth-from", metavar="FORMAT", help="the truth's format, if its content does not tell")
    sub.add_argument(
        "--unknown",
        choices=("refuse", "drop", "count"),
        default="refuse",
        help="labels that are none of the names, or that a row names again: refuse the file (the default), leave them out, or "
        "count them, in a truth as labels that nobody can predict, in predictions as misses that keep their place",
    )
    add_match(sub)
    sub.add_argument(
        "--labels-are",
        choices=("ids", "names"),
        help="what whole numbers in text files are that no list of names goes with: ids, or names such as the codes of ICD. "
        "Default: ids if --n-labels or a matrix says how many labels there are and all are below, else names",
    )
    flag(sub, "--one-based", "ids in the repository's text files are counted from 1")
    if predictions:
        sub.add_argument(
            "--from",
            dest="from_format",
            metavar="FORMAT",
            help="the predictions' format, if their content does not tell",
        )
        flag(
            sub,
            "--judged-only",
            "leave out rows that have nothing in the truth, as trec_eval does; default: they are refused where rows have "
            "names, and count 0 where they are numbers",
        )
        flag(sub, "--by-rank", "take a file's column of ranks for the order, in place of its scores")


def add_hierarchy(sub) -> None:
    """The arguments that say what is above each label."""
    sub.add_argument(
        "--hierarchy",
        metavar="FILE",
        help="what is above each label: SKOS (Turtle, RDF/XML), OBO, or a table of children and parents; or what separates the "
        "levels in the labels' names, such as ' -- '. Adds hierarchical precision, recall and F: credit for a label near the "
        "right one",
    )
    sub.add_argument("--levels", type=int, help="of --hierarchy: how many levels above a label count, default all")


def add_match(sub) -> None:
    """The argument that says how a text is taken for a name that it is not."""
    sub.add_argument(
        "--match",
        choices=("case", "plural", "nearest"),
        help="read a text that is no name as the name that differs from it only by capitals, blanks, hyphens and typography "
        "(case), also "
        "by English plurals (plural), or else shares most pieces of three letters with it, at least half (nearest); a note has "
        "P@1 with and without it",
    )


def reading(arguments) -> dict:
    """What :func:`add_reading` was given, as :func:`xcrepro.tools.formats.reader.read` takes it."""
    return {
        **names_of(arguments),
        "truth_format": arguments.truth_from,
        "predictions_format": getattr(arguments, "from_format", None),
        **taken(arguments, "n_labels", "unknown", "match", "labels_are", "one_based"),
        **{name: getattr(arguments, name, False) for name in ("judged_only", "by_rank")},
    }


def names_dataset(arguments) -> bool:
    """Whether the truth is a dataset, by its name or its folder, which has training labels of its own."""
    from xcrepro.core.data import registry
    from xcrepro.tools.formats import annif

    path = Path(arguments.truth)
    if path.is_dir():
        return arguments.truth_from is None and not annif.sniff_folder(path)
    return not path.exists() and arguments.truth_from is None and registry.is_name(str(path))


def read(arguments, files, k: int | None = None):
    """Truth, where there is one, and predictions of a command; what was left out is said on stderr.

    A truth may be a dataset's name or folder.
    """
    from xcrepro.tools.formats import reader

    asked = {name: getattr(arguments, name, None) for name in ("split", "points")}
    ds = None if arguments.truth is None else reader.dataset_of(arguments.truth, arguments.truth_from, **asked)
    train = getattr(arguments, "train_truth", None)
    if ds is not None and train is not None:
        raise ArgumentError("--train-truth", "goes with a truth that is a file", train, "a dataset has its own")
    about = reading(arguments) | {"train_truth": train, "exclude": getattr(arguments, "filter", None)}
    found = reader.read(arguments.truth if ds is None else ds, files, k=k, **about)
    for line in found.lines:
        print(f"note: {in_shell(line)}", file=sys.stderr)
    return found


def hierarchy(arguments, found):
    """What --hierarchy says of the labels that were read, which is said on stderr; None without it."""
    import numpy as np

    from xcrepro.core.data.names import LabelNames
    from xcrepro.tools.formats.hierarchy import read_hierarchy

    if arguments.hierarchy is None:
        if arguments.levels is not None:
            raise ArgumentError("--levels", "goes with --hierarchy", arguments.levels)
        return None
    names = found.label_names or LabelNames(tuple(map(str, range(found.truth.shape[1]))))
    read_as = read_hierarchy(arguments.hierarchy, names, levels=arguments.levels)
    below, ids = np.diff(read_as.above.indptr) > 1, np.unique(read_as.above.indices)
    said = f"{below.sum():,} of {below.size:,} labels have something above them, "
    said += f"{(ids >= len(names)).sum():,} nodes are no labels"
    said += f"; {read_as.root!r} is above all and counts for nothing" * bool(read_as.root)
    print(f"note: hierarchy: {said}", file=sys.stderr)
    return read_as


def refuse_existing(option: str, path: str | os.PathLike, force: bool = False) -> None:
    """Refuse to write over a file, which people may have made."""
    if not force and os.path.isfile(path):
        raise ArgumentError(option, "must not be there yet", os.fspath(path), "take another name, or give --force")


def print_table(table, csv: bool, decimals: int = 2) -> None:
    """As CSV at full precision, or rounded as people read it."""
    from xcrepro.repro.drawing import tables
    from xcrepro.tools.formats.csv import without_formulas

    print(tables.csv_text(without_formulas(table)).rstrip() if csv else tables.show(table, decimals=decimals))


def with_train_truth(arguments) -> None:
    """Refuse A and B without training labels."""
    if arguments.train_truth is None and (arguments.A is not None or arguments.B is not None):
        do = "propensities come from training label counts"
        raise ArgumentError("--A and --B", "go with --train-truth", "none", do)


def weights(arguments, train, entry: Entry | Dataset | None = None) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Inverse propensities, train counts, and the A and B used: as given, else the dataset's, else the usual ones."""
    import numpy as np

    from xcrepro.core import propensity
    from xcrepro.tools.reports.given import DEFAULT_A, DEFAULT_B

    usual = (DEFAULT_A, DEFAULT_B) if entry is None else (entry.A, entry.B)
    A, B = (own if given is None else given for given, own in zip((arguments.A, arguments.B), usual, strict=True))
    counts = np.bincount(train.indices, minlength=train.shape[1])
    return propensity.inverse(counts, train.shape[0], A, B), counts, A, B
