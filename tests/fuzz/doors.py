"""The doors: every way by which a stranger's file comes in, how inputs for it are made, and who judges what was read."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import io
import itertools
import json
import random
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.io
from scipy import sparse

import xcrepro as xc
from tests.fuzz import inputs, slow
from xcrepro.core import calibrate, propensity
from xcrepro.core.data import names, parsing, read, registry, splits, stream
from xcrepro.core.data.sources import npz_arrays
from xcrepro.core.errors import DataError, XCError
from xcrepro.core.metrics import serialization as states
from xcrepro.core.metrics.state import State
from xcrepro.core.predictions import read_calibration_npz
from xcrepro.core.truth import as_truth
from xcrepro.models import base
from xcrepro.repro.inputs import download
from xcrepro.repro.published.results import audit_results
from xcrepro.tools import formats, scale
from xcrepro.tools.formats.index import Index
from xcrepro.tools.formats.vectorize import vectorize


@dataclass(frozen=True)
class Door:
    """One way in.

    Attributes
    ----------
    name : str
        What reports call it.
    make : callable
        What a valid input says, from a ``random.Random``.
    read : callable
        The package's reader, of a path; what it returns is plain lists where ``judge`` is given.
    judge : callable, optional
        What is to be read: of the bytes of text, or of what was made.
    suffix : str
        How the file's name ends.
    share : int
        How many inputs, in proportion; a door that takes long has few.
    change : callable, optional
        What is changed of what was made, in place of its file's bytes; a judge of that gets what came of it.
    write : callable, optional
        The file's bytes, or a folder's by name, of what is made, where that is something else.
    needs : str
        The package without which the door cannot be tried.
    """

    name: str
    make: Callable[[random.Random], object]
    read: Callable[[Path], object]
    judge: Callable[[object], list] | None = None
    suffix: str = ".txt"
    share: int = 10
    change: Callable | None = None
    write: Callable | None = None
    needs: str = ""

    @property
    def lacks(self) -> str:
        """The package that it needs and that is not there; empty where all is."""
        return self.needs if self.needs and importlib.util.find_spec(self.needs) is None else ""


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


def of_format(kind: str, name: str | None) -> Callable[[Path], list]:
    """A reader of :mod:`xcrepro.tools.formats`, 12 labels."""
    show = {"truth": plain, "features": plain, "predictions": top_of}[kind]
    return lambda path: show(getattr(formats, f"read_{kind}")(path, name, n_labels=12))


def looked_at(kind: str, found) -> None:
    """What nobody judges must at least be sound; a dataset is two matrices."""
    for one in found if kind == "dataset" else [found]:
        (top_of if kind == "predictions" else sound_matrix)(one)


def detected(path: Path) -> None:
    """Whatever it is: as a command takes it, with names learnt from it."""
    format = formats.detect(path)
    for kind in formats.contents(path, format):
        looked_at(kind, getattr(formats, f"read_{kind}")(path, format.name, index=Index(learn_rows=True)))


def dense(path: Path) -> None:
    """An array of NumPy's or MATLAB's, as truth, features and predictions."""
    for kind in ("truth", "features", "predictions"):
        looked_at(kind, getattr(formats, f"read_{kind}")(path))


KNOWN = {
    "predictions": {"jsonl": ".jsonl", "lists": ".json", "pairs": ".pred", "csv": ".csv", "trec": ".run",
                    "fasttext": ".fasttext", "dictionary": ".json", "parquet": ".parquet", "npy": ".npy"},
    "truth": {"jsonl": ".jsonl", "trec": ".qrels", "fasttext": ".fasttext", "npy": ".npy"},
}  # fmt: skip
"""Forms of others that the package writes, too: kind of content -> name and ending of each."""


def known() -> Iterator[Door]:
    """A door for each of :data:`KNOWN`: what was written comes back, and what is changed then is refused in words or sound."""
    for kind, forms in KNOWN.items():
        make, show = {"truth": (inputs.truth, plain), "predictions": (inputs.predictions, top_of)}[kind]
        for name, suffix in forms.items():
            write = functools.partial(of_others, kind, name, suffix)
            needs = "pyarrow" * (name == "parquet")
            yield Door(f"{name}: {kind}", make, of_format(kind, name), show, suffix, 8, write=write, needs=needs)


def of_others(kind: str, name: str, suffix: str, content) -> bytes:
    """The file of a truth or of predictions."""
    return inputs.written(lambda path: getattr(formats, f"write_{kind}")(path, content, name), suffix)


def any_text(rng: random.Random) -> bytes:
    """Of any form."""
    name = rng.choice([*KNOWN["predictions"]][:7])
    written = functools.partial(of_others, "predictions", name, KNOWN["predictions"][name])
    forms = (inputs.xc, inputs.matrix, inputs.jsonl_labels, inputs.arff, inputs.corpus, inputs.wide)
    return rng.choice((*forms, *[lambda rng: written(inputs.predictions(rng))] * 6))(rng)


def arff_and_xml(Y) -> dict[str, bytes]:
    """As Mulan keeps a dataset; the labels are its features, too."""
    with tempfile.TemporaryDirectory() as folder:
        formats.write_dataset(Path(folder, "a.arff"), Y, Y)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def arff(path: Path) -> None:
    """Features and labels."""
    X, Y = formats.read_dataset(path, "arff")
    looked_at("dataset", (X, Y))
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
TRAINED = {"Popularity": {}, "OneVsRest": {}, "PLT": {}, "FastXML": {"trees": 2}, "PfastreXML": {"trees": 2},
            "NeuralOneVsAll": {"dim": 3, "epochs": 1}, "TwoTowers": {"dim": 3, "epochs": 1},
            "ClusterNetwork": {"dim": 3, "epochs": 1, "max_leaf": 2}, "GraphTowers": {"dim": 3, "epochs": 1},
            "LabelAttention": {"dim": 3, "epochs": 1}}  # fmt: skip


def prepare_models(folder: Path) -> None:
    """Train the smallest models once; inputs are their files."""
    rng = np.random.default_rng(0)
    X = np.repeat(_FEATURES, 8, axis=0) * rng.random((24, 4)).astype(np.float32)
    Y = np.repeat(np.eye(3, 6, dtype=np.float32), 8, axis=0)
    Y[::5, 4] = 1
    for name, given in TRAINED.items():
        place = folder / name
        getattr(xc.models, name)(**given).fit(X, Y).save(place)
        files = [path for path in place.rglob("*") if path.is_file()]
        _MODELS.append({path.relative_to(place).as_posix(): path.read_bytes() for path in files})


def model_folder(rng: random.Random) -> dict[str, bytes]:
    """A saved model."""
    return dict(rng.choice(_MODELS))


def model_changed(rng: random.Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """Another description, other bytes or other arrays, mostly behind digests that fit, as a stranger could make them."""
    files, name = dict(files), rng.choice(sorted(files))
    if name.endswith(".npz") and rng.randrange(4):
        with np.load(io.BytesIO(files[name])) as stored:
            files[name] = inputs.npz(inputs.mutated_arrays(rng, {key: stored[key] for key in stored.files}))
    elif name.endswith(".json") and rng.randrange(2):
        files[name] = inputs.mutated_json(rng, files[name])
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
    top = xc.TopK.from_scores(np.linspace(0, 1, 24).reshape(4, 6), k=3)
    metrics = ["P", "PSP", "macro-F1", "ECE", "ACE", "coverage (reachable)"]
    state = State([1, 3], metrics, np.arange(1.0, 7.0), n_resamples=4)
    state.update(np.eye(4, 6), top, first_row=0).save(folder / "state.npz")
    with np.load(folder / "state.npz") as stored:
        _STATE.append({name: stored[name] for name in stored.files})


def resealed(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a State with the digest that fits them, where the header can be read."""
    try:
        return states.sealed(json.loads(arrays["header"].tobytes()), arrays)
    except (KeyError, ValueError, AttributeError):
        return arrays


def a_state_changed(rng: random.Random, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Changed arrays, mostly behind a digest that is right."""
    changed = inputs.mutated_arrays(rng, arrays)
    return resealed(changed) if rng.randrange(5) else changed


def state(path: Path) -> None:
    """Load it and look at its values, merge it with itself."""
    found = State.load(path, allow_repeats=True)
    if found.n_rows:
        found.values()
        found.merge(State.load(path, allow_repeats=True)).values()


def mat_bytes(rng: random.Random) -> bytes:
    """A ``.mat`` file, sparse or dense, packed or not."""
    rows, columns = rng.randint(1, 6), rng.randint(1, 6)
    values = np.array([rng.choice((0, 0, 0.5, 1, 2)) for _ in range(rows * columns)]).reshape(rows, columns)
    file = io.BytesIO()
    scipy.io.savemat(file, {"Y": rng.choice((values, sparse.csc_matrix(values)))}, do_compression=rng.random() < 0.5)
    return file.getvalue()


def read_block(path: Path) -> list:
    """A block file, once its truth is one."""
    rows = scale.read_block(path)
    width, ids, values = top_of(rows.top)
    complete = None if rows.n_relevant is None else rows.n_relevant.tolist()
    first = -1 if rows.first_row is None else rows.first_row
    return [width, rows_of(as_truth(rows.Y).to_csr()), ids, values, first, complete]


def streamed(path: Path) -> list | None:
    """A file in blocks of two rows, put together again."""
    blocks = list(stream.blocks(path, 2, threads=1))
    if not blocks:
        return None
    if isinstance(blocks[0], tuple):
        return both(*(sparse.vstack(parts, "csr") for parts in zip(*blocks, strict=True)))
    return plain(sparse.vstack(blocks, "csr"))


def unpacked(path: Path) -> None:
    """Nothing of an archive may be anywhere but in its folder, nor be left where it is refused, nor be a link."""
    home = path.parent / "unpacked"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    try:
        download.unpack(path, home / "files", progress=False)
    finally:
        if stray := [each.name for each in home.iterdir() if each.name != "files"]:
            raise AssertionError(f"written outside the folder: {stray}")
    for each in (home / "files").rglob("*"):
        if each.is_symlink() or not (each.is_file() or each.is_dir()):
            raise AssertionError(f"a link or a special file: {each.name}")


def dataset_folder(rng: random.Random) -> dict[str, bytes]:
    """Somebody's dataset, with what says how it lies there."""
    said = 'name = "mine"\n[files]\ntrain = "train.txt"\ntest = "test.txt"\n'
    if rng.randrange(2):
        said += "[expected]\nn_features = 4\nn_labels = 3\nn_train = 4\nn_test = 2\n"
    files = {"dataset.toml": said.encode()}
    for part, n in (("train", 4), ("test", 2)):
        files[f"{part}.txt"] = b"%d 4 3\n" % n + b"".join(_row(rng) for _ in range(n))
    if rng.randrange(3) == 0:
        files["labels.txt"] = b"a\nb\nc\n"
    if rng.randrange(4) == 0:
        files["bow_Yf.txt"] = b"3 4\n0:1\n\n2:0.5\n"
    return files


def _row(rng: random.Random) -> bytes:
    labels = ",".join(map(str, sorted(rng.sample(range(3), rng.randrange(3)))))
    return f"{labels} {' '.join(inputs.entries(rng, 4, lambda r: str(r.randrange(1, 4))))}\n".encode()


def load_folder(path: Path) -> None:
    """As a notebook with a folder does."""
    found = xc.load("mine", path=path)
    for part in (found.train, found.test):
        looked_at("dataset", (part.X, part.Y))


def raw_text(rng: random.Random) -> bytes:
    """Texts with labels, an object a line."""
    words = ("cat", "dog", "tree", "the", "Straße", "42", "a")
    records = []
    for row in range(rng.randrange(2, 7)):
        record = {"uid": f"u{row}", "title": " ".join(rng.choices(words, k=4))}
        record["labels"] = rng.choice((rng.sample(words[:4], 2), [{"uri": "http://x/1", "label": "x"}], ["cat"]))
        records.append(record)
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def vectorized(path: Path) -> None:
    """Raw text made into a dataset; where it is refused no folder is left."""
    home = path.parent / "vectorized"
    shutil.rmtree(home, ignore_errors=True)
    try:
        vectorize(path, home, min_df=1, name="mine")
    except XCError:
        if home.exists():
            raise AssertionError("a folder is left") from None
        raise
    load_folder(home)


def hierarchy_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """A truth and who stands above whom."""
    arrays = inputs.sparse_arrays(rng)
    width = int(arrays["shape"][1])
    above = [rng.randrange(-1, label) if label else -1 for label in range(width)]
    pairs = [(label, up) for label, up in enumerate(above) if up >= 0]
    shown = above if rng.randrange(2) else np.array(pairs, np.int64).reshape(-1, 2)
    return {**arrays, "parents": np.array(shown)}


def hierarchy(path: Path) -> None:
    """All that stand above each label, and the propensities that come of it."""
    Y, stored = read.read_labels(path), npz_arrays(path)
    if "parents" not in stored or Y.shape[1] > 10**6:  # memory goes with the number of labels
        raise DataError(path, "no parents, or labels beyond number", "some")
    sound_matrix(propensity.ancestors(stored["parents"], Y.shape[1]))
    propensity.estimate_from_hierarchy(Y, stored["parents"], min_descendants=1, labels_per_bin=2)


def arrays(name: str, make: Callable, reader: Callable, judge: Callable | None, share: int) -> Door:
    """A door for an ``.npz`` of such arrays."""
    return Door(name, make, reader, judge, ".npz", share, inputs.mutated_arrays, inputs.npz)


DOORS = (
    Door("XC text", inputs.xc, lambda p: both(*read.read_xc(p, threads=1)), slow.xc, share=24),
    Door("XC text in small blocks", inputs.xc, small_blocks, slow.xc, share=4),
    Door("matrix text", inputs.matrix, lambda p: plain(read.read_sparse(p, threads=1)), slow.matrix, share=24),
    Door("label text", inputs.label_matrix, lambda p: plain(read.read_labels(p, threads=1)), slow.labels, share=16),
    Door("score text", inputs.matrix, lambda p: top_of(xc.TopK.load(p, 3)), slow.scores, share=16),
    Door("filter", inputs.filter_pairs,
         lambda p: [part.tolist() for part in splits.read_filter(p)], slow.filter_pairs, share=16),
    Door("split", inputs.split_columns, lambda p: splits.read_split_columns(p, 0).tolist(), slow.split, share=10),
    Door("JSON lines of labels", inputs.jsonl_labels,
         lambda p: sound_matrix(read.read_jsonl_labels(p, n_labels=12, relevance=True)), None, ".json", 8),
    *known(),
    Door("wide table", inputs.wide, of_format("predictions", "wide"), None, ".csv", 12),
    Door("short texts", inputs.corpus, of_format("truth", "corpus"), None, ".tsv", 6),
    Door("ARFF", inputs.arff, arff, None, ".arff", 12),
    Door("ARFF with XML", inputs.truth, lambda p: both(*formats.read_dataset(p / "a.arff", "arff")),
         lambda made: both(made, made), "", 6, write=arff_and_xml),
    Door("Parquet of any types", inputs.parquet, detected, None, ".parquet", 3, needs="pyarrow"),
    Door("archive unpacked", inputs.members, unpacked, None, ".zip", 6, inputs.mutated_members, inputs.zipped),
    Door("Annif folder", annif_folder, annif, None, "", 3),
    Door("any text, detected", any_text, detected, None, ".data", 24),
    Door("label names", inputs.label_names, names.read_label_names, share=12),
    Door("row ids", inputs.label_names, names.read_row_ids, share=6),
    Door("dataset.toml", inputs.dataset_toml, registry.read, None, ".toml", 8),
    Door("audit CSV", inputs.audit_csv, audit_results, None, ".csv", 4),
    Door("dataset folder", dataset_folder, load_folder, None, "", 3),
    Door("raw text", raw_text, vectorized, None, ".jsonl", 1),
    Door("calibrator", inputs.calibrator_json, calibrator, None, ".json", 8),
    arrays("npz: sparse", inputs.sparse_arrays, lambda p: plain(read.read_sparse(p)), slow.stored_matrix, 12),
    arrays("npz: TopK", inputs.top_arrays, lambda p: top_of(xc.TopK.load(p)), slow.saved_top, 8),
    arrays("npz: calibration@k", inputs.calibration_arrays, lambda p: top_of(read_calibration_npz(p)[0]), None, 4),
    arrays("npz: X and Y", inputs.pair_arrays, lambda p: both(*read.read_xc(p)), slow.saved_pair, 3),
    arrays("npz, detected", inputs.dense_arrays, detected, None, 4),
    arrays("npz in blocks", inputs.sparse_arrays, streamed, slow.streamed_matrix, 4),
    arrays("npz: X and Y in blocks", inputs.pair_arrays, streamed, None, 2),
    Door("matrix text in blocks", inputs.matrix, streamed, None, ".txt", 4),
    arrays("hierarchy of labels", hierarchy_arrays, hierarchy, None, 1),
    arrays("block", inputs.block_arrays, read_block, slow.block, 4),
    Door("npy", inputs.dense_arrays, dense, None, ".npy", 4, inputs.mutated_arrays, inputs.npy),
    Door("mat", mat_bytes, dense, None, ".mat", 2),
    Door("State", lambda rng: dict(_STATE[0]), state, None, ".npz", 1, a_state_changed, inputs.npz),
    Door("saved model", model_folder, model, None, "", 1, model_changed),
)  # fmt: skip
"""All of them."""


def prepare(folder: Path) -> None:
    """What some inputs are made from."""
    prepare_models(folder)
    prepare_state(folder)


# -- one input ----------------------------------------------------------------------------------------------------------


def made(door: Door, rng: random.Random) -> tuple[object, object]:
    """What is written (bytes, or a folder's bytes by name), and what the judge gets (None: nobody knows)."""
    given = door.make(rng)
    changed = rng.randrange(6) > 0
    if changed and door.change:
        given = door.change(rng, given)
    content = given if door.write is None else door.write(given)
    if is_folder(content):
        other = inputs.one_file_changed(rng, content) if changed and not door.change else content
        return other, given if other is content else None
    if changed and (not door.change or rng.randrange(8) == 0):
        content = inputs.mutated(rng, content, content if door.change else as_bytes(door, door.make(rng)))
        given = content if door.write is None else None
    if content[:2] in (b"\x1f\x8b", b"PK") and door.write is None:
        given = None
    elif content and door.write is None and rng.randrange(16) == 0:
        content = inputs.packed(rng, content)
        if rng.randrange(2):
            content, given = inputs.mutated(rng, content, content), None
    return content, given


def as_bytes(door: Door, made: object) -> bytes:
    """Its file."""
    return made if door.write is None else door.write(made)


def is_folder(content: object) -> bool:
    """Whether it is files by name."""
    return isinstance(content, dict) and isinstance(next(iter(content.values()), None), bytes)


def put(content: object, door: Door, folder: Path) -> Path:
    """Write an input, in place of the last one."""
    path = folder / f"input{door.suffix}"
    if isinstance(content, bytes):
        path.write_bytes(content)
        return path
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, data in content.items():
        file = path / name
        if "/" in name:
            file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return path


def examine(door: Door, rng: random.Random, folder: Path) -> tuple[str, str, bool]:
    """One input, made, written, read, judged: what is wrong with it ("" if nothing is), whether it was "read" or "refused", and
    whether the slow reader had an opinion.

    Wrong is an exception that is not the package's (:mod:`xcrepro.core.errors`), a ``RuntimeWarning``, an endless message, and
    what was read although the slow reader refuses it or reads something else, and the other way round.
    """
    content, given = made(door, rng)
    path = put(content, door, folder)
    found, refusal = None, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            found = door.read(path)
    except XCError as error:
        refusal = error
    done = "read" if refusal is None else "refused"
    if len(str(refusal)) > 2000:
        return f"a message of {len(str(refusal))} characters", done, False
    if door.judge is None or given is None:
        return "", done, False
    try:
        expected = door.judge(given)
    except slow.Refused:
        expected = None
    except slow.NoJudgement:
        return "", done, False
    if refusal is None and expected is None:
        return f"read, though it is to be refused: {str(found)[:200]}", done, True
    if refusal is not None and expected is not None:
        return f"refused, though it is to be read: {str(refusal)[:200]}", done, True
    if refusal is None and found != expected and json.dumps(found) != json.dumps(expected):  # lists and tuples are one
        return f"read {str(found)[:300]}, to be {str(expected)[:300]}", done, True
    return "", done, True
