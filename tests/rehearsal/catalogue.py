"""The datasets of a rehearsal: a stand-in for each of the catalogue, and three of a kind that no paper has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.rehearsal import standins
from tests.rehearsal.standins import Content, Shape
from xcrepro.core.data import registry

WHOLE = ("eurlex-4k", "bibtex")
"""At their full size: notebooks set the label counts that come with the kit beside them."""
LABELS, POINTS = 150, 600
"""Of the others, at most so many labels and train points."""
MANY_LABELS = "amazon-670k"
"""With all its labels, so that notebooks run on saved predictions only."""
STRANGERS = ("words", "single", "empty")
"""Datasets of a reader: labels with words, one label a point, and empty rows and labels that no train point has."""


def shapes() -> dict[str, Shape]:
    """How large the stand-in of each dataset is that has an archive, or comes as a folder."""
    found = {}
    for name, entry in registry.package().items():
        if entry.proprietary or "committed" in entry.archive:
            continue
        full = standins.published(name)
        found[name] = full if name in WHOLE else standins.smaller(full, LABELS, POINTS)
    few = standins.smaller(standins.published(MANY_LABELS), 10**6, 400)
    found[MANY_LABELS] = Shape(few.n_train, few.n_test, few.n_features, standins.published(MANY_LABELS).n_labels, 2_700)
    return found


def write(folder: Path, sizes: dict[str, Shape]) -> Path:
    """The catalogue with the stand-ins' sizes in place of the published ones, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(Path(registry.__file__).with_name("catalogue").iterdir()):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml" and path.stem in sizes and path.stem not in WHOLE:
            text = "".join(_sized(part, sizes[path.stem]) for part in re.split(r"(?m)^(?=\[)", text))
        (folder / path.name).write_text(text, encoding="utf-8")
    return folder


def _sized(table: str, shape: Shape) -> str:
    """A table of a dataset's file; that of the numbers that are expected with other ones."""
    if not table.startswith("[expected]"):
        return table
    numbers = {
        "n_features": shape.n_features,
        "n_labels": shape.n_labels,
        "n_train": shape.n_train,
        "n_test": shape.n_test,
        "avg_points_per_label": f"{shape.pairs / shape.n_labels:.2f}",
        "avg_labels_per_point": f"{shape.pairs / shape.n_points:.2f}",
        "points_per_label_basis": '"all"',
    }
    for key, value in numbers.items():
        table = re.sub(rf"(?m)^{key} = .*$", f"{key} = {value}", table)
    return table


def strangers(folder: Path) -> Iterator[Path]:
    """A folder for each of :data:`STRANGERS`."""
    shape = Shape(600, 200, 400, 120, 3_200)
    for name in STRANGERS:
        made: Content = standins.content(shape) if name == "words" else standins.strange(shape, name)
        kind = "lf-amazontitles-131k" if name == "words" else "eurlex-4k"
        for path, text in standins.files(kind, made).items():
            file = folder / name / Path(path).name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        yield folder / name
