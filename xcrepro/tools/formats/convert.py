"""From one format to another, label names included."""

from __future__ import annotations

import os
from typing import NamedTuple

from xcrepro.core.data.lines import shown
from xcrepro.core.data.names import LabelNames, write_label_names
from xcrepro.core.data.sources import require_file
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.tools import formats
from xcrepro.tools.formats.index import Index


class Converted(NamedTuple):
    """What was converted: kind, formats, shapes in words, and the file of label names written beside a target without room."""

    kind: str
    source: str
    target: str
    shapes: tuple[str, ...]
    labels: str | None


def convert(
    source: str | os.PathLike,
    target: str | os.PathLike,
    from_format: str | None = None,
    to_format: str | None = None,
    kind: str | None = None,
    k: int | None = None,
    *,
    label_names: LabelNames | None = None,
    row_ids: tuple[str, ...] | None = None,
    replace: bool = True,
    **options: object,
) -> Converted:
    """Write a file anew in another format.

    Parameters
    ----------
    source, target : path_like
    from_format, to_format : str, optional
        None: by the content of ``source``, by the ending of ``target``.
    kind : str, optional
        What to take from ``source`` where it may be more than one: a matrix may be a truth, scores or features.
    k : int, optional
        How many predictions to keep; None: all.
    label_names, row_ids
        As for :class:`~xcrepro.tools.formats.index.Index`.
    replace : bool
        Whether files that are there may be written over: the target and what is written beside it.
    **options
        ``n_labels``, ``n_rows``, ``n_features``, where neither file nor names say them; ``unknown``, ``by_rank``, ...

    Raises
    ------
    DataMissing, DataError
        For the source.
    ArgumentError
        Where nothing says what ``source`` holds, or a format cannot hold it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "mine.pred").write_text("3:0.5 0:0.25\\n\\n")
    >>> convert(folder / "mine.pred", folder / "mine.json", n_labels=4)[:3]
    ('predictions', 'pairs', 'lists')
    >>> (folder / "mine.json").read_text()
    '[[[3, 0.5], [0, 0.25]],\\n []]\\n'
    """
    if not os.path.isdir(source):
        require_file(source)
    reader = formats.detect(source) if from_format is None else formats.get(from_format)
    kind = _kind(source, target, reader, to_format, kind)
    writer = formats.by_ending(target, kind) if to_format is None else formats.get(to_format)
    if k is not None and kind != "predictions":
        raise ArgumentError("k", f"goes with predictions, not with {kind}", k)
    if os.path.exists(target) and not os.path.isdir(target) and os.path.samefile(source, target):
        raise ArgumentError("target", "must be another file than the source", os.fspath(target))
    if not replace:
        also = writer.function("beside")
        beside = also(target) if also else ()
        for file in (target, _labels_beside(target), *beside):
            if os.path.isfile(file):
                do = "take another name, or give --force (replace=True)"
                raise ArgumentError("target", "must not be there yet", os.fspath(file), do)
    index = Index(label_names=label_names, row_ids=row_ids, **options)
    how = {"k": k} if kind == "predictions" else {}
    found = getattr(formats, f"read_{kind}")(source, reader.name, **how, index=index)
    if index.more:
        index.label_names, index.n_labels = index.all_names(), index.width(0)
        index.more = {}
    values = found if kind == "dataset" else (found,)
    getattr(formats, f"write_{kind}")(target, *values, writer.name, index=index)
    labels = None
    if index.label_names is not None and kind != "features" and not writer.names:
        labels = _labels_beside(target)
        write_label_names(labels, index.label_names)
    shapes = {"truth": ("labels",), "features": ("features",), "dataset": ("features", "labels")}
    if kind == "predictions":
        words = (f"{len(found):,} rows, up to {found.k} of {found.n_labels:,} labels each",)
    else:
        parts = [(*part.shape, what, part.nnz) for part, what in zip(values, shapes[kind], strict=True)]
        words = tuple(f"{n:,} x {width:,} {what}, {stored:,} stored" for n, width, what, stored in parts)
    return Converted(kind, reader.name, writer.name, words, labels)


def _labels_beside(target: str | os.PathLike) -> str:
    """Where label names go that the target's format has no room for."""
    return os.fspath(target).rstrip("/") + ".labels.txt"


def _kind(source, target, reader: formats.Format, to_format: str | None, kind: str | None) -> str:
    """What is to go over: as asked, or the one thing that the source may hold and the target can."""
    if kind is not None:
        if kind not in formats.KINDS:
            raise ArgumentError("kind", f"must be one of {', '.join(formats.KINDS)}", repr(kind))
        return kind
    held = formats.contents(source, reader)
    if to_format is not None:
        able = [kind for kind in held if kind in formats.get(to_format).can("write")]
    else:
        able = [kind for kind in held if _can_end_so(target, kind)]
    if not held:
        raise DataError(source, "nothing that could be converted", f"a file of the format {reader.name}")
    if not able:
        where = to_format or f"the ending of {shown(os.fspath(target))}"
        raise ArgumentError("target", f"must be of a format that holds {' or '.join(held)}", where, "see --list")
    if len(able) > 1 and able[0] != "dataset":
        do = "say which it is: --as (kind=)"
        raise ArgumentError("kind", "must be given where a file may be more than one thing", " or ".join(able), do)
    return able[0]


def _can_end_so(target: str | os.PathLike, kind: str) -> bool:
    try:
        return bool(formats.by_ending(target, kind))
    except ArgumentError:
        return False
