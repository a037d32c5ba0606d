"""What :meth:`xcrepro.TopK.save` writes: the best labels of each row, with their scores and their order."""

from __future__ import annotations

import os

from xcrepro.core.predictions import TopK
from xcrepro.tools.formats.index import Index


def sniff_npz(arrays: set[str]) -> bool:
    """Whether an .npz has the arrays of a TopK."""
    return {"ids", "scores", "n_labels"} <= arrays


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """The predictions as they were saved."""
    return TopK.load(path, k)


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """The only file that keeps everything, the order of what is equal in float32 included."""
    top.save(path)
