"""The formats in which truth, predictions and features come and go, and what goes between them.

:data:`FORMATS` is the one list; what a format can is what its module has functions for. ``xcrepro convert --list`` prints it.

>>> import tempfile, pathlib
>>> run = pathlib.Path(tempfile.mkdtemp()) / "mine.run"
>>> _ = run.write_text("0 Q0 3 1 0.9 mine\\n0 Q0 1 2 0.4 mine\\n1 Q0 2 1 0.7 mine\\n")
>>> read_predictions(run, n_labels=4).ids
array([[ 3,  1],
       [ 2, -1]], dtype=int32)
"""

from __future__ import annotations

import importlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcrepro.core.arguments import did_you_mean, one_of
from xcrepro.core.data.sources import npz_names, open_source, require_file
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.tools.formats.hierarchy import read_hierarchy

if TYPE_CHECKING:
    from scipy import sparse

    from xcrepro.core.predictions import TopK
    from xcrepro.tools.formats.index import Index

__all__ = [
    "FORMATS",
    "KINDS",
    "Format",
    "by_ending",
    "contents",
    "detect",
    "get",
    "head_of",
    "model_files",
    "model_name",
    "read_dataset",
    "read_features",
    "read_hierarchy",
    "read_predictions",
    "read_truth",
    "table",
    "write_dataset",
    "write_features",
    "write_predictions",
    "write_truth",
]


def __dir__() -> list[str]:
    return __all__


KINDS = ("truth", "predictions", "features", "dataset")
"""What a file may hold; a dataset is features and labels in one."""
_HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Format:
    """One format: its name, the endings of files, by which what to write is chosen, and the module here that has it, by
    default that of its name; where a module has several, names of functions end in the format's."""

    name: str
    holds: str
    made_by: str
    suffixes: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    names: bool = False
    home: str = ""

    def function(self, what: str) -> Any:
        """One of its functions: ``"read_truth"``, ``"write_predictions"``, ``"sniff"``, ...; None where it has none."""
        module = importlib.import_module(f"{__name__}.{self.home or self.name}")
        return getattr(module, f"{what}_{self.name}" if self.home else what, None)

    def can(self, verb: str) -> tuple[str, ...]:
        """The kinds of content that it can ``"read"`` or ``"write"``."""
        return tuple(kind for kind in KINDS if self.function(f"{verb}_{kind}"))


FORMATS = (
    Format(
        "xc",
        "header, then `id:value id:value`; or `N D L`, then `label,label id:value`",
        "the repository's files and score matrices; omikuji's and napkinXC's data",
        (".txt",),
        ("repository",),
    ),
    Format("topk", "`ids`, `scores`, `n_labels`", "`TopK.save`", (".npz",), home="arrays"),
    Format("npz", "one SciPy sparse matrix", "SciPy, pyxclib, PECOS, Renee, LightXML", (".npz",),
           ("scipy", "pyxclib", "pecos"), home="arrays"),
    Format("npy", "one dense array, `.npz` with a single array too", "NumPy, PECOS", (".npy",), ("dense", "numpy"),
           home="arrays"),
    Format("mat", "one matrix, sparse or dense, up to version 7", "MATLAB, Octave", (".mat",), ("matlab",), home="arrays"),
    Format("calibration", "`scores`, `prediction_ids`, `true_positives`, `labels`", "the calibration@k authors", (".npz",),
           home="arrays"),
    Format("pairs", "`label:score label:score`, no header", "omikuji, napkinXC", (".pred",), ("omikuji", "napkinxc"),
           home="lists"),
    Format("dictionary", "one JSON object of objects: `{row: {label: number}}`", "pytrec_eval, ranx", (".ranx.json",),
           ("ranx", "pytrec_eval"), names=True, home="lists"),
    Format("lists", "one JSON list of lists: labels, or [label, score]", "napkinXC's Python lists", (".json",),
           home="lists"),
    Format(
        "jsonl",
        "an object a row: `labels`, `scores` (or labels alone, or a bare list); `target_ind`; Annif's `subjects`, `results`",
        "the repository's raw text, Annif",
        (".jsonl",), names=True),
    Format("csv", "columns `row`, `label`, `score`", "pandas, spreadsheets, databases", (".csv", ".tsv"), names=True),
    Format("corpus", "`text<TAB><uri> <uri>`; columns `text`, `subject_uris`", "Annif's short-text corpora", (),
           names=True),
    Format("fasttext", "`__label__a __label__b words`; `__label__a 0.9 __label__b 0.1`", "fastText", (".fasttext",),
           names=True),
    Format("parquet", "columns `labels`, `scores` (lists), or `row`, `label`, `score`", "pyarrow, pandas",
           (".parquet",), names=True),
    Format("trec", "`row 0 label relevance`; `row Q0 label rank score tag`", "trec_eval, ir_measures, ranx",
           (".run", ".qrels", ".trec"), names=True),
    Format("annif", "a folder: `NAME.tsv` or `.key`, `NAME.annif`", "Annif", ("/",), names=True),
    Format("arff", "ARFF, labels named in an XML file", "Mulan, MEKA, scikit-multilearn",
           (".arff",), ("mulan", "meka"), names=True),
    Format("wide", "a column for each label, with a header or without", "pandas, Kaggle, spreadsheets, `numpy.savetxt`",
           (), ("savetxt", "table"), names=True),
)  # fmt: skip


def get(name: str) -> Format:
    """The format of a name of :data:`FORMATS`, or of a package that writes it."""
    known = {called: format for format in FORMATS for called in (format.name, *format.aliases)}
    return known[one_of("format", name, list(known), "xcrepro convert --list shows them")]


def table() -> list[dict[str, str]]:
    """The formats, a line each: name, other names, what is in the file, who makes it, what is read and written."""

    def line(one: Format) -> dict[str, str]:
        about = {"format": one.name, "also called": ", ".join(one.aliases), "ending": " ".join(one.suffixes)}
        about |= {"in the file": one.holds, "made by": one.made_by}
        return about | {f"{verb}s": ", ".join(one.can(verb)) for verb in ("read", "write")}

    return [line(format) for format in FORMATS]


def detect(path: str | os.PathLike) -> Format:
    """Which format a file, or Annif's folder, has by its content; DataError if it is none of them."""
    if os.path.isdir(path):
        return get("annif")
    if os.fspath(path).endswith(".npz"):
        arrays = npz_names(path)
        found = [format for format in FORMATS if (sniff := format.function("sniff_npz")) and sniff(arrays)]
        if "pair" in arrays:
            found = [get("xc")]
        if not found:
            do = "Save a matrix with scipy.sparse.save_npz, or predictions with TopK.save"
            if any(array in arrays for array in ("ids", "indices", "labels", "preds", "topk")):
                do = "Of labels that are ranked, TopK.from_ids(ids, scores, n_labels=L).save(path) makes a file that is known"
            raise DataError(path, f"the arrays {', '.join(sorted(arrays)) or 'none'}", "those of a known .npz", do=do)
        return found[0]
    head = head_of(path)
    for format in FORMATS:
        if (sniff := format.function("sniff")) and sniff(os.fspath(path), head):
            return format
    from xcrepro.core.data.lines import shown
    from xcrepro.core.data.read import other_format

    if other := other_format(head):
        raise DataError(path, other[0], "one of the known formats", do=other[1])
    if re.match(rb"\s*\d+(\s*,\s*\d+)*\s+\d+:[-+\d.]", head):
        do = "Labels and features without a header, as svmlight has them: --from xc (format='xc') reads it, with --n-labels "
        do += "(n_labels=) and --n-features (n_features=)"
        raise DataError(path, shown(head[:60].decode("utf-8", "replace").split("\n")[0]), "a header", line=1, do=do)
    first = shown(head[:100].decode("utf-8", "backslashreplace").partition("\n")[0])
    do = "xcrepro convert --list shows the formats; --from (format=) says which it is meant to be"
    raise DataError(path, first, "one of the known formats", line=1, do=do)


def head_of(path: str | os.PathLike) -> bytes:
    """The first bytes of a file, unpacked; as many whole lines as fit, or what there is of the first."""
    require_file(path)
    with open_source(path) as stream:
        head = stream.read(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf")
    whole, newline, _ = head.rpartition(b"\n")
    return whole + newline if newline and len(head) > _HEAD_BYTES - 4 else head


def contents(path: str | os.PathLike, format: Format) -> tuple[str, ...]:
    """What kinds of content a file of a format may hold, as far as a look into it tells."""
    found = readable = format.can("read")
    if os.path.isdir(path) and (holds := format.function("holds_folder")):
        found = holds(Path(path))
    elif os.fspath(path).endswith(".npz") and format.name == "xc":
        found = ("dataset", "truth", "features")
    elif holds := format.function("holds_file"):
        found = holds(path)
    elif holds := format.function("holds"):
        found = holds(head_of(path))
    return tuple(kind for kind in found if kind in readable)


def read_truth(
    path: str | os.PathLike, format: str | None = None, *, index: Index | None = None, **named
) -> sparse.csr_matrix:
    """Read ground truth.

    Parameters
    ----------
    path : path_like
    format : str, optional
        A name of :data:`FORMATS`; None: by the content.
    index, **named
        ``n_labels``, ``label_names``, ``row_ids``, ``n_rows``, as for :class:`~xcrepro.tools.formats.index.Index`, or an Index.

    Returns
    -------
    csr_matrix of float32, shape (n, L)
        Ones.

    Raises
    ------
    DataMissing, DataError
        For the file: what is wrong, in which line, and what to do.
    ArgumentError
        For a format that holds no truth, and other arguments.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "truth.json"
    >>> _ = file.write_text("[[1, 5], [], [2]]")
    >>> read_truth(file, n_labels=6).nonzero()[1].tolist()
    [1, 5, 2]
    """
    return _read("truth", path, format, index, named)


def read_predictions(
    path: str | os.PathLike,
    format: str | None = None,
    k: int | None = None,
    *,
    exclude: tuple | None = None,
    index: Index | None = None,
    **named,
) -> TopK:
    """Read predictions.

    Parameters
    ----------
    path, format, index, **named
        As for :func:`read_truth`.
    k : int, optional
        Places to keep; None: all that the longest row has.
    exclude : tuple of (rows, labels), optional
        Pairs that may not be predicted, as a filter file has them: left out of a score matrix in one of the kit's own forms
        (:meth:`~xcrepro.TopK.load`), where the next label takes the place. A ranking stays as it is.

    Returns
    -------
    TopK
        Best first, ties to the lowest label id.

    Raises
    ------
    DataMissing, DataError, ArgumentError
        As :func:`read_truth`.
    """
    reader = detect(path) if format is None else get(format)
    if exclude is None or reader.name not in ("xc", "npz"):
        return _read("predictions", path, reader.name, index, named, k)
    from xcrepro.core.predictions import TopK

    return TopK.load(path, k, exclude=exclude)


def model_name(path: str | os.PathLike) -> str:
    """The model whose predictions a file holds: its name without the ending, and without ``.gz`` behind that."""
    name = os.path.basename(path)
    return name.removesuffix(".gz").rpartition(".")[0] or name


def model_files(*paths: str | os.PathLike) -> dict[str, Path]:
    """:func:`model_name` -> file of saved predictions, unread; of a folder all its files by name, but the hidden ones; a folder
    of Annif's documents is one model's."""
    found: dict[str, Path] = {}
    for path in (Path(one).expanduser() for one in paths):
        files = [path]
        if path.is_dir() and not get("annif").function("sniff_folder")(path):
            files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        if not files or not files[0].exists():
            raise DataMissing(f"{path} holds no predictions: give a file, or a folder with a file a model")
        for file in files:
            name = model_name(file)
            if name in found:
                twice = f"a second file for the name {name!r}"
                raise DataError(file, twice, "one file a model", do="Rename one of them")
            found[name] = file
    return found


def read_features(
    path: str | os.PathLike, format: str | None = None, *, index: Index | None = None, **named
) -> sparse.csr_matrix:
    """Read features, as :func:`read_truth` reads labels; the matrix is float32, (n, D)."""
    return _read("features", path, format, index, named)


def read_dataset(path: str | os.PathLike, format: str | None = None, *, index: Index | None = None, **named):
    """Read features and labels of one file, ``(X, Y)``, as :func:`read_truth` reads labels."""
    return _read("dataset", path, format, index, named)


def _read(kind: str, path: str | os.PathLike, format: str | None, index: Index | None, named: dict, *more):
    from xcrepro.core.predictions import TopK, without_rounding

    function = _function("read", kind, detect(path) if format is None else get(format), path)
    found = function(path, _index(index, named), *more)
    return without_rounding(found, os.fspath(path)) if isinstance(found, TopK) else found


def write_truth(path: str | os.PathLike, Y, format: str | None = None, *, index: Index | None = None, **named) -> None:
    """Write ground truth.

    Parameters
    ----------
    path : path_like
    Y : sparse matrix, array_like or tensor, shape (n, L), or label lists with ``n_labels``
    format : str, optional
        A name of :data:`FORMATS`; None: by the ending of ``path``.
    index, **named
        As for :func:`read_truth`: with names, labels and rows are written by name where the format has room for them.

    Raises
    ------
    ArgumentError
        For what the format cannot hold; no file is there then.
    """
    _write("truth", path, format, index, named, Y)


def write_predictions(
    path: str | os.PathLike, top: TopK, format: str | None = None, *, index: Index | None = None, **named
) -> None:
    """Write predictions, as :func:`write_truth` writes labels; text gives the same float32 scores back, ties by label id."""
    _write("predictions", path, format, index, named, top)


def write_features(
    path: str | os.PathLike, X, format: str | None = None, *, index: Index | None = None, **named
) -> None:
    """Write features, as :func:`write_truth` writes labels."""
    _write("features", path, format, index, named, X)


def write_dataset(
    path: str | os.PathLike, X, Y, format: str | None = None, *, index: Index | None = None, **named
) -> None:
    """Write features and labels into one file, as :func:`write_truth` writes labels."""
    _write("dataset", path, format, index, named, X, Y)


def _write(kind: str, path: str | os.PathLike, format: str | None, index: Index | None, named: dict, *values) -> None:
    from xcrepro.core.tensors import labels_as_matrix
    from xcrepro.core.truth import as_truth

    function = _function("write", kind, by_ending(path, kind) if format is None else get(format), path)
    index = _index(index, named)
    if kind == "predictions":
        index.check_shape(len(values[0]), values[0].n_labels)
    elif kind != "features":
        *features, Y = values
        truth = as_truth(labels_as_matrix("Y", Y, index.n_labels))
        index.check_shape(truth.n_rows, truth.n_labels)
        values = (*features, truth.to_csr())
    function(path, *values, index)


def by_ending(path: str | os.PathLike, kind: str) -> Format:
    """The format in which a kind of content is written under a name."""
    path = os.fspath(path)
    for format in FORMATS:
        if path.removesuffix(".gz").endswith(format.suffixes) and kind in format.can("write"):
            return format
    endings = sorted({suffix for format in FORMATS if kind in format.can("write") for suffix in format.suffixes})
    rule = f"must end in one of {' '.join(endings)} ('/': a folder) to hold {kind}"
    raise ArgumentError("path", rule, repr(path), "or say the format (--to, format=)")


def _function(verb: str, kind: str, format: Format, path: str | os.PathLike):
    if kind not in format.can(verb):
        able = [other.name for other in FORMATS if kind in other.can(verb)]
        got = f"{format.name} ({os.fspath(path)}), which {verb}s {', '.join(format.can(verb)) or 'nothing'}"
        raise ArgumentError("format", f"must be one that {verb}s {kind}", got, f"these do: {', '.join(able)}")
    return format.function(f"{verb}_{kind}")


def _index(index: Index | None, named: dict) -> Index:
    from xcrepro.tools.formats.index import Index

    options = ("n_labels", "label_names", "row_ids", "n_rows", "n_features", "unknown", "match", "by_rank", "one_based")
    if unknown := [name for name in named if name not in options]:
        hint = did_you_mean(unknown[0], options, 1)
        raise ArgumentError(unknown[0], f"must be one of {', '.join(options)}", "another name", hint)
    if index is not None and named:
        raise ArgumentError("index", "goes without its parts", ", ".join(named))
    return index if index is not None else Index(**named)
