"""What several commands share: options as parameters, options that go together, and how a table is printed."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from xcrepro.core.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from xcrepro.core.data.dataset import Dataset
    from xcrepro.core.data.registry import Entry


class Listing(argparse.Action):
    """Print the table that ``const`` makes and leave, as ``--help`` does."""

    def __call__(self, parser, *_) -> None:
        from xcrepro.repro import tables

        print(tables.show(self.const()))
        parser.exit()


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


def refuse_existing(option: str, path: str | os.PathLike, force: bool = False) -> None:
    """Refuse to write over a file, which people may have made."""
    if not force and os.path.isfile(path):
        raise ArgumentError(option, "must not be there yet", os.fspath(path), "take another name, or give --force")


def print_table(table, csv: bool, decimals: int = 2) -> None:
    """As CSV at full precision, or rounded as people read it."""
    from xcrepro.repro import tables

    print(tables.csv_text(table).rstrip() if csv else tables.show(table, decimals=decimals))


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
