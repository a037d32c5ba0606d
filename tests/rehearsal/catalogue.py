"""The datasets of a rehearsal: a stand-in for each of the catalogue, and three of a kind that no paper has."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

from tests.rehearsal import standins
from tests.rehearsal.standins import Content, Shape
from xcrepro.core.data import against_print, registry
from xcrepro.core.errors import DataError

WHOLE = ("eurlex-4k", "bibtex")
"""At their full size: notebooks set the label counts that come with the kit beside them."""
LABELS, POINTS = 150, 600
"""Of the others, at most so many labels and train points."""
MANY_LABELS = "amazon-670k"
"""With all its labels, so that notebooks run on saved predictions only."""
STRANGERS = ("words", "single", "empty", "labels")
"""Datasets of a reader: labels with words, one label a point, empty rows and labels that no train point has, and no features,
so that there are only saved predictions."""


def shapes() -> dict[str, Shape]:
    """How large the stand-in of each dataset is that has an archive, or comes as a folder."""
    found = {}
    for name, entry in registry.package().items():
        unknown = entry.avg_points_per_label is None and entry.avg_labels_per_point is None
        if entry.proprietary or "committed" in entry.archive or unknown:  # a stand-in needs a size
            continue
        full = standins.published(name)
        found[name] = full if name in WHOLE else standins.smaller(full, LABELS, POINTS)
    few = standins.smaller(standins.published(MANY_LABELS), 10**6, 400)
    found[MANY_LABELS] = Shape(few.n_train, few.n_test, few.n_features, standins.published(MANY_LABELS).n_labels, 2_700)
    return found


def write(file: Path, sizes: dict[str, Shape]) -> Path:
    """Keep the stand-ins' sizes in a file, for :func:`take` in the kernels."""
    file.write_text(json.dumps({name: dataclasses.astuple(shape) for name, shape in sizes.items()}), encoding="utf-8")
    return file


def take(file: Path) -> None:
    """Let ``load`` hold each stand-in to its own size in place of the printed one, in this process."""
    sizes = {name: Shape(*numbers) for name, numbers in json.loads(file.read_text(encoding="utf-8")).items()}

    def check(entry, source, where, train, test) -> tuple[str, ...]:
        shape = None if entry.name in WHOLE else sizes.get(entry.name)
        if shape is None:
            return PRINTED(entry, source, where, train, test)
        found = Shape(train.Y.shape[0], test.Y.shape[0], train.X.shape[1], train.Y.shape[1], train.Y.nnz + test.Y.nnz)
        if found != shape:
            raise DataError(where, str(found), str(shape))
        return ()

    against_print.check_published = check


PRINTED = against_print.check_published
"""What ``load`` does outside of a rehearsal."""


def strangers(folder: Path) -> Iterator[Path]:
    """A folder for each of :data:`STRANGERS`."""
    shape = Shape(600, 200, 400, 120, 3_200)
    for name in STRANGERS:
        plain = name in ("words", "labels")
        made: Content = standins.content(shape) if plain else standins.strange(shape, name)
        kind = {"words": "lf-amazontitles-131k", "labels": "wikititles-500k"}.get(name, "eurlex-4k")
        for path, text in standins.files(kind, made).items():
            if name == "labels" and not path.endswith("_X_Y.txt"):
                continue
            file = folder / name / Path(path).name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        yield folder / name
