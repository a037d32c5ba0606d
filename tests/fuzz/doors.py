"""The doors: every way by which a stranger's file comes in, how inputs for it are made, and who judges what was read."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import xcrepro as xc
from tests.fuzz import inputs, slow
from xcrepro import calibrate, formats, results
from xcrepro.data import names, parsing, read, registry, splits
from xcrepro.formats.index import Index
from xcrepro.metrics.state import State
from xcrepro.models import base
from xcrepro.predictions import read_calibration_npz
from xcrepro.published.record import read_printed
from xcrepro.published.results import audit_results
from xcrepro.repro import differences


@dataclass(frozen=True)
class Door:
    """One way in.

    Attributes
    ----------
    name : str
        What reports call it.
    make : callable
        A valid input from a ``random.Random``: bytes, or a dict of arrays (an ``.npz``), or of bytes (a folder).
    read : callable
        The package's reader, of a path; what it returns is plain lists where ``judge`` is given.
    judge : callable, optional
        The slow reader of the same bytes or arrays.
    suffix : str
        How the file's name ends.
    share : int
        How many inputs, in proportion; a door that takes long has few.
    packs : bool
        Whether the file may be packed.
    """

    name: str
    make: Callable[[random.Random], object]
    read: Callable[[Path], object]
    judge: Callable[[object], list] | None = None
    suffix: str = ".txt"
    share: int = 10
    packs: bool = True


# -- what was read, as plain lists ----------------------------------------------------------------------------------


def rows_of(matrix) -> list:
    """(column, value) pairs of each row, as stored."""
    ends, ids, values = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    return [list(zip(ids[low:high], values[low:high], strict=True)) for low, high in itertools.pairwise(ends)]


def plain(matrix) -> list:
    """Shape and rows."""
    return [[*matrix.shape], rows_of(matrix)]


def both(X, Y) -> list:
    """Shapes and rows of two."""
    return [[*X.shape], [*Y.shape], rows_of(X), rows_of(Y)]


def top_of(top) -> list:
    """A TopK, once it is seen to be sound: whoever gets it trusts it."""
    ids, scores = top.ids.tolist(), top.scores.tolist()
    sound = top.ids.dtype == np.int32 and top.scores.dtype == np.float32 and top.ids.shape == top.scores.shape
    for labels, values in zip(ids, scores, strict=True):
        present = [label for label in labels if label >= 0]
        sound &= labels == present + [-1] * (len(labels) - len(present)) and len({*present}) == len(present)
        sound &= all(label < top.n_labels for label in labels)
        sound &= all(low <= high for high, low in itertools.pairwise(values))
    if not sound:
        raise AssertionError(f"an unsound TopK: {ids}, {scores}, {top.n_labels} labels")
    return [top.n_labels, ids, scores]


def sound_matrix(matrix) -> list:
    """A matrix without a judge: its ids must at least be within."""
    ends, ids = matrix.indptr, matrix.indices
    if not ((np.diff(ends) >= 0).all() and ends[0] == 0 and ends[-1] == len(ids) == len(matrix.data)):
        raise AssertionError("unsound offsets")
    if len(ids) and not (ids.min() >= 0 and ids.max() < matrix.shape[1]):
        raise AssertionError("ids out of range")
    return [*matrix.shape]


def small_blocks(path: Path) -> list:
    """The old format in blocks of a few bytes, by two threads."""
    before, parsing.BLOCK_BYTES = parsing.BLOCK_BYTES, 64
    try:
        return both(*read.read_xc(path, threads=2))
    finally:
        parsing.BLOCK_BYTES = before


def of_format(kind: str, name: str) -> Callable[[Path], list]:
    """A reader of :mod:`xcrepro.formats`, 12 labels."""
    if kind == "truth":
        return lambda path: plain(formats.read_truth(path, name, n_labels=12))
    return lambda path: top_of(formats.read_predictions(path, name, n_labels=12))


def detected(path: Path) -> None:
    """Whatever it is: as a command takes it, with names learnt from it."""
    format = formats.detect(path)
    for kind in formats.contents(path, format):
        index = Index(learn_rows=True)
        found = {"truth": formats.read_truth, "predictions": formats.read_predictions, "features": formats.read_features,
                 "dataset": formats.read_dataset}[kind](path, format.name, index=index)  # fmt: skip
        for one in found if kind == "dataset" else [found]:
            if kind == "predictions":
                top_of(one)
            else:
                sound_matrix(one)


def any_form(rng: random.Random) -> bytes:
    """Text of any of the forms."""
    makers = (inputs.xc, inputs.matrix, inputs.jsonl, inputs.jsonl_labels, inputs.lists, inputs.pairs, inputs.csv,
              inputs.trec_run, inputs.trec_qrels, inputs.arff)  # fmt: skip
    return rng.choice(makers)(rng)


def arff(path: Path) -> None:
    """Features and labels."""
    X, Y = formats.read_dataset(path, "arff")
    sound_matrix(X)
    sound_matrix(Y)
    if not np.isfinite(X.data).all():
        raise AssertionError("features that are not finite")


def calibrator(path: Path) -> None:
    """Load and use it."""
    found = calibrate.load(path).predict(np.linspace(0, 1, 7))
    if not ((found >= 0) & (found <= 1)).all():
        raise AssertionError(f"no probabilities: {found}")


def annif_folder(rng: random.Random) -> dict[str, bytes]:
    """Two documents, their subjects or their suggestions."""
    if rng.randrange(2):
        return {"a.txt": b"text", "a.key": b"3\n1\n", "b.tsv": b"<http://x/1>\t2\n5\n"}
    return {"a.annif": b"3\t0.5\n<http://x/1>\t4\t0.25\n", "b.annif": b"7\t1\n", "b.txt": b"x"}


def annif(path: Path) -> None:
    """Truth and predictions, as far as it holds them."""
    for kind in formats.contents(path, formats.get("annif")):
        of_format(kind, "annif")(path)


_MODELS: list[dict[str, bytes]] = []
_FEATURES = np.array([[0.5, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 3.0]], np.float32)


def prepare_models(folder: Path) -> None:
    """Train the smallest models once; inputs are their files."""
    rng = np.random.default_rng(0)
    X = np.repeat(_FEATURES, 8, axis=0) * rng.random((24, 4)).astype(np.float32)
    Y = np.repeat(np.eye(3, 6, dtype=np.float32), 8, axis=0)
    Y[::5, 4] = 1
    for model in (
        xc.models.Popularity(),
        xc.models.OneVsRest(),
        xc.models.PLT(),
        xc.models.FastXML(trees=2),
        xc.models.PfastreXML(trees=2),
    ):
        place = folder / type(model).__name__
        model.fit(X, Y).save(place)
        _MODELS.append(
            {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        )


def model_folder(rng: random.Random) -> dict[str, bytes]:
    """A saved model."""
    return dict(rng.choice(_MODELS))


def damaged_model(rng: random.Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """Changed bytes, or changed arrays behind digests that are right, as a stranger could make them."""
    files, name = dict(files), rng.choice(sorted(files))
    if name.endswith(".npz") and rng.randrange(4):
        with np.load(io.BytesIO(files[name])) as stored:
            files[name] = inputs.npz(inputs.mutated_arrays(rng, {key: stored[key] for key in stored.files}))
    else:
        files[name] = inputs.mutated(rng, files[name], rng.choice([*files.values()]))
    return sealed(files) if rng.randrange(5) else files


def sealed(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files of a model with digests that fit them, as far as its description can be read."""
    about = next(name for name in files if name.endswith(".json") and "/" not in name)
    try:
        said = json.loads(files[about])
        said["files"] = {name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name != about}
        said.pop("sha256", None)
        return {**files, about: base._sealed(json.dumps(said, indent=1)).encode()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return files


def model(path: Path) -> None:
    """Load it and predict."""
    top_of(xc.models.load(path).predict(_FEATURES, 3))


_STATE: list[dict[str, np.ndarray]] = []


def prepare_state(folder: Path) -> None:
    """A State with every fold once."""
    Y = np.eye(4, 6)
    top = xc.TopK.from_scores(np.linspace(0, 1, 24).reshape(4, 6), k=3)
    state = State(
        [1, 3], ["P", "PSP", "macro-F1", "ECE", "ACE", "coverage (reachable)"], np.arange(1.0, 7.0), samples=4
    )
    state.add(Y, top, first_row=0).save(folder / "state.npz")
    with np.load(folder / "state.npz") as stored:
        _STATE.append({name: stored[name] for name in stored.files})


def state(path: Path) -> None:
    """Load it and look at its values, merge it with itself."""
    found = State.load(path, allow_repeats=True)
    if found.n_rows:
        found.values()
        found.merge(State.load(path, allow_repeats=True)).values()


def npy(path: Path) -> None:
    """A dense array, as truth, predictions and features."""
    for kind in (formats.read_truth, formats.read_features):
        sound_matrix(kind(path))
    top_of(formats.read_predictions(path))


def npy_bytes(rng: random.Random) -> bytes:
    """An ``.npy`` file."""
    out = io.BytesIO()
    np.save(out, next(iter(inputs.dense_arrays(rng).values())))
    return out.getvalue()


def quietly(function: Callable[[Path], object]) -> Callable[[Path], None]:
    """A reader whose result nobody looks at."""

    def look(path: Path) -> None:
        function(path)

    return look


DOORS = (
    Door("XC text", inputs.xc, lambda p: both(*read.read_xc(p, threads=1)), slow.xc, share=24),
    Door("XC text in small blocks", inputs.xc, small_blocks, slow.xc, share=4),
    Door("matrix text", inputs.matrix, lambda p: plain(read.read_sparse(p, threads=1)), slow.matrix, share=24),
    Door("label text", inputs.label_matrix, lambda p: plain(read.read_labels(p, threads=1)), slow.labels, share=16),
    Door("score text", inputs.matrix, lambda p: top_of(xc.TopK.load(p, 3)), slow.scores, share=16),
    Door("filter", inputs.filter_pairs,
         lambda p: [part.tolist() for part in splits.read_filter(p)], slow.filter_pairs, share=16),
    Door("split", inputs.split_columns, lambda p: splits.read_split_columns(p, 0).tolist(), share=10),
    Door("JSON lines of labels", inputs.jsonl_labels,
         lambda p: plain(read.read_jsonl_labels(p, n_labels=12, relevance=True)), slow.jsonl_labels, ".json", 16),
    Door("JSON lines", inputs.jsonl, of_format("predictions", "jsonl"), slow.jsonl, ".jsonl", 16),
    Door("JSON lists", inputs.lists, of_format("predictions", "lists"), slow.lists, ".json", 16),
    Door("label:score", inputs.pairs, of_format("predictions", "pairs"), slow.pairs, ".pred", 16),
    Door("CSV", inputs.csv, of_format("predictions", "csv"), slow.csv, ".csv", 16),
    Door("TREC run", inputs.trec_run, of_format("predictions", "trec"), slow.trec_run, ".run", 12),
    Door("TREC qrels", inputs.trec_qrels, of_format("truth", "trec"), slow.trec_qrels, ".qrels", 12),
    Door("ARFF", inputs.arff, arff, None, ".arff", 12),
    Door("Annif folder", annif_folder, annif, None, "", 3, packs=False),
    Door("any text, detected", any_form, detected, None, ".data", 24),
    Door("label names", inputs.label_names, quietly(names.read_label_names), share=12),
    Door("row ids", inputs.label_names, quietly(names.read_row_ids), share=6),
    Door("dataset.toml", inputs.dataset_toml, quietly(registry.read), None, ".toml", 8, packs=False),
    Door("audit CSV", inputs.audit_csv, quietly(audit_results), None, ".csv", 6, packs=False),
    Door("printed CSV", inputs.printed_csv, quietly(read_printed), None, ".csv", 1, packs=False),
    Door("result JSON", inputs.result_json, quietly(results.read), None, ".json", 6, packs=False),
    Door("tables compared", inputs.audit_csv, quietly(differences.read), None, ".csv", 2, packs=False),
    Door("calibrator", inputs.calibrator_json, calibrator, None, ".json", 8, packs=False),
    Door("npz: sparse", inputs.sparse_arrays, lambda p: plain(read.read_sparse(p)), slow.stored_matrix, ".npz", 12),
    Door("npz: TopK", inputs.top_arrays, lambda p: top_of(xc.TopK.load(p)), slow.saved_top, ".npz", 8),
    Door("npz: calibration@k", inputs.calibration_arrays, lambda p: top_of(read_calibration_npz(p)[0]), None, ".npz", 4),
    Door("npz: X and Y", inputs.pair_arrays, lambda p: both(*read.read_xc(p)), None, ".npz", 3),
    Door("npz, detected", inputs.dense_arrays, detected, None, ".npz", 4),
    Door("npy", npy_bytes, npy, None, ".npy", 4, packs=False),
    Door("State", lambda rng: dict(_STATE[0]), state, None, ".npz", 1),
    Door("saved model", model_folder, model, None, "", 1, packs=False),
)  # fmt: skip
"""All of them. Parquet files are pyarrow's to read; ``xcrepro[formats]`` brings it where it is wanted."""


def prepare(folder: Path) -> None:
    """What some inputs are made from."""
    prepare_models(folder)
    prepare_state(folder)
