"""Fitted models and their predictions, kept in the cache so that all notebooks share one training.

A training is known by all that decides its outcome: the model's class and parameters, the training data's content, the
code that it runs through (:mod:`xcrepro.repro.engine.closure`), and the versions of the libraries that train. Predictions
that the repository has (:mod:`xcrepro.repro.inputs.stored`) are read there, others in the cache. What is in neither is
trained and kept in the cache, whole or not at all, while other processes that want the same one wait for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import inspect
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from xcrepro.core import extras, paths
from xcrepro.core.errors import ArgumentError, DataError, system_fault
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth, as_truth
from xcrepro.models import base
from xcrepro.models.base import Model
from xcrepro.models.progress import Progress
from xcrepro.repro.engine import closure, run_log
from xcrepro.repro.inputs import stored

_LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn")
_ABOUT = "training.json"
STRETCH = 2_000_000_000
"""Rows times labels that are predicted between two looks at the clock: about a minute of a label tree's search."""


@dataclasses.dataclass(frozen=True)
class Training:
    """A model's training on one set of data, by :func:`training`; ``folder`` holds, or will hold, what comes of it.

    ``key`` and ``code`` are digests of parameters and data, and of the code that trains; ``of`` is the dataset's name.
    """

    prototype: Model
    X: object
    truth: Truth
    folder: Path
    key: str
    code: str
    of: str = ""
    further: dict = dataclasses.field(default_factory=dict)

    def model(self) -> Model:
        """The fitted model, read where it is stored, and trained and stored otherwise."""
        with _locked(self.folder) as writable:
            return self._model(writable)

    def predictions(self, X, k: int = 100) -> TopK:
        """The fitted model's k best labels of each row, all of them where there are fewer; read or made likewise."""
        k = min(k, self.truth.n_labels)
        features = base.check_features(X)
        rows = _content(features.indptr, features.indices, features.data)[:16]
        entry = stored.find(self.key, self.code, rows, k)
        confirms = entry is not None and stored.to_confirm(entry)
        if entry and not confirms and (top := stored.read(entry, _libraries())):
            return top.head(k)
        top = self._predictions(features, rows, k)
        if confirms:
            stored.confirm(entry, top, _libraries())
        stored.note(self._described() | {"rows_of": rows}, top)
        return top

    def _predictions(self, features, rows: str, k: int) -> TopK:
        path = self.folder / f"top{k}-{rows}.npz"
        with _locked(self.folder) as writable:
            if top := _loaded(path, writable):
                self._used(False)
                return top
            model = self._model(writable)
            start = time.perf_counter()
            top = self._predicted(model, features, path, k) if writable else model.predict(features, k)
            seconds = time.perf_counter() - start
            if writable:
                with _kept_if_possible():
                    top.save(path)
                    self._note({"predicted points": len(top), "predict seconds": seconds})
                    shutil.rmtree(_parts(path), ignore_errors=True)
            return top

    def _predicted(self, model: Model, features, path: Path, k: int) -> TopK:
        """The predictions of many rows and labels stretch by stretch, each kept: a stopped run goes on with the next."""
        n, size = features.shape[0], max(1, STRETCH // self.truth.n_labels)
        if n <= size:
            return model.predict(features, k)
        found: list[TopK] = []
        progress = Progress(n, f"{type(model).__name__}, predicting {n:,} points")
        for first in range(0, n, size):
            part = _parts(path) / f"{first}-{size}.npz"
            top = _loaded(part, True)
            if top is None:
                top = model.predict(features[first : first + size], k)
                with _kept_if_possible():
                    part.parent.mkdir(exist_ok=True)
                    top.save(part)
            found.append(top)
            progress.add(len(top))
        ids, scores = (np.concatenate([getattr(one, name) for one in found]) for name in ("ids", "scores"))
        return TopK(ids, scores, top.n_labels)

    def about(self) -> dict:
        """What was trained, on what, and in how many seconds, as it was noted then.

        Returns
        -------
        dict
            Empty where nothing is stored.
        """
        try:
            found = json.loads((self.folder / _ABOUT).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        seconds = found.get("train seconds", 0.0) if isinstance(found, dict) else None
        return found if isinstance(seconds, int | float) else {}

    def _used(self, fresh: bool) -> None:
        """Note for the runner that this training was read, or made just now, and how long it took then."""
        seconds = round(self.about().get("train seconds", 0.0), 2)
        run_log.note("training", json.dumps([self.folder.name, repr(self.prototype), seconds, fresh]))

    def _described(self) -> dict:
        """What the index of stored predictions says of it."""
        usual = {field.name: field.default for field in dataclasses.fields(self.prototype)}
        own = {name: value for name, value in self.prototype.get_params().items() if value != usual[name]}
        told = ", ".join(f"{name}={value!r}" for name, value in own.items())
        return {
            "dataset": self.of or "data",
            "model": f"{type(self.prototype).__name__}({told})",
            "points": self.truth.n_rows,
            "labels": self.truth.n_labels,
            "seconds": round(self.about().get("train seconds", 0.0), 2),
            "training": self.key,
            "code": self.code,
            "libraries": _libraries(),
        }

    def _note(self, more: dict) -> None:
        text = json.dumps(self.about() | more, indent=1)
        with paths.atomic_path(self.folder / _ABOUT) as part:
            part.write_text(text, encoding="utf-8")

    def _model(self, writable: bool) -> Model:
        stored = self.folder / "model"
        if stored.exists():
            try:
                model = base.load(stored)
                self._used(False)
                return model
            except (OSError, DataError) as error:
                _set_aside(self.folder, error, "trained", writable)
        shape = f"{self.truth.n_rows:,} points, {self.truth.n_labels:,} labels"
        print(f"training {self.prototype!r} on {shape}", file=sys.stderr, flush=True)
        start = time.perf_counter()
        model = type(self.prototype)(**self.prototype.get_params())
        half_way = self.folder / "unfinished"  # where a killed training goes on
        if writable and "checkpoint" in inspect.signature(model.fit).parameters:
            self._fit_from(half_way, model)
        else:
            model.fit(self.X, self.truth, **self.further)
        seconds = time.perf_counter() - start
        print(f"trained in {seconds:.1f} s", file=sys.stderr, flush=True)
        if not writable:
            do = "set XCREPRO_DATA to a folder that can be"
            print(f"it is not kept: {self.folder.parent} cannot be written; {do}", file=sys.stderr)
            return model
        about = {"model": repr(self.prototype), "points": self.truth.n_rows, "labels": self.truth.n_labels}
        with _kept_if_possible():
            for half in self.folder.glob(f".{stored.name}.*"):  # of a process that was killed while it wrote
                shutil.rmtree(half)
            model.save(stored)
            shutil.rmtree(half_way, ignore_errors=True)
            self._note(about | {"train seconds": seconds})
        self._used(True)
        return model

    def _fit_from(self, folder: Path, model: Model) -> None:
        """Train, going on from what an earlier process left; where that is damaged, from the beginning."""
        try:
            model.fit(self.X, self.truth, checkpoint=folder, **self.further)
        except (OSError, DataError, ArgumentError) as error:
            if not folder.exists():  # the training's own
                raise
            _set_aside(folder, error, "trained", True)
            model.fit(self.X, self.truth, checkpoint=folder, **self.further)


def training(prototype: Model, X, Y, *, of: str = "", **further) -> Training:
    """The training of a model, in ``trained/<class>-<key>`` of the cache folder (``$XCREPRO_DATA``); nothing is trained yet.

    ``of`` is the dataset's name, by which files are called. ``further`` is what the model's ``fit`` takes besides, such as
    ``label_features`` of :class:`xcrepro.models.TwoTowers`. ArgumentError where X, Y or one of these is none that it takes.
    """
    name = type(prototype).__name__
    if X is None:
        rule = "must have features, because this trains a model on them"
        raise ArgumentError("dataset", rule, f"{of or 'data'} with labels only", "name data that have features")
    features, relevant = base.check_features(X), as_truth(Y)
    text = json.dumps({"class": name, "parameters": prototype.get_params()}, sort_keys=True, default=_plain)
    shapes = np.array([*features.shape, relevant.n_rows, relevant.n_labels])
    points = features.indptr, features.indices, features.data
    checked = {one: base.check_features(matrix) for one, matrix in sorted(further.items())}
    besides = []
    for one, matrix in checked.items():
        besides += [_bytes(one), np.array(matrix.shape), matrix.indptr, matrix.indices, matrix.data]
    key = _content(_bytes(text), shapes, *points, relevant.indptr, relevant.indices, *besides)[:20]
    code = code_of(type(prototype))
    whole = hashlib.sha256(f"{key} {code} {_libraries()}".encode()).hexdigest()[:20]
    folder = stored.apart(key) or paths.cache_dir() / "trained"
    return Training(prototype, features, relevant, folder / f"{name}-{whole}", key, code, of, checked)


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Others that want the same training wait; gives whether the cache can be written."""
    # A shared cache that only its owner writes is read without a lock: what stands in it was moved there whole.
    lock = extras.library("filelock").FileLock(folder.with_name(folder.name + ".lock"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _loaded(path: Path, writable: bool) -> TopK | None:
    """The predictions in a file of the cache, if it is there; a damaged one is set aside."""
    try:
        return TopK.load(path) if path.is_file() else None
    except (OSError, DataError) as error:
        return _set_aside(path, error, "predicted", writable)


def _parts(path: Path) -> Path:
    """Where the stretches of predictions are kept until all are there."""
    return path.with_suffix(".parts")


@contextlib.contextmanager
def _kept_if_possible() -> Iterator[None]:
    """What was trained or predicted is used also where the cache does not take it."""
    try:
        yield
    except OSError as error:
        print(f"it is not kept: {system_fault(error)}", file=sys.stderr, flush=True)


def _set_aside(path: Path, error: Exception, done: str, writable: bool) -> None:
    """Say what is damaged in the cache, and move it out of the way, in the place of what was moved there before."""
    where = path.with_name(f"{path.name}.damaged")
    print(f"{error}: it is {done} anew{f', and kept as {where}' if writable else ''}", file=sys.stderr, flush=True)
    if writable:
        with _kept_if_possible():
            if where.is_dir():
                shutil.rmtree(where)
            os.replace(path, where)


def _content(*arrays: np.ndarray) -> str:
    """SHA-256 over values, with integer arrays as int64 so that SciPy's choice of index type does not matter."""
    digest = hashlib.sha256()
    for array in arrays:
        if array.dtype.kind in "iu" and array.dtype.itemsize > 1:
            array = array.astype(np.int64, copy=False)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@cache
def _sources(kind: type[Model]) -> dict[str, str]:
    """What a training of this class runs through: the code of its modules and of all that they import."""
    modules = [Path(sys.modules[cls.__module__].__file__) for cls in kind.__mro__ if cls is not object]
    return {"/".join(path.parts[-2:]): digest for path, digest in closure.digests(modules).items()}


def code_of(kind: type[Model]) -> str:
    """A digest of the code that a training of this class runs through."""
    return hashlib.sha256(json.dumps(_sources(kind), sort_keys=True).encode()).hexdigest()[:12]


@cache
def _libraries() -> str:
    """The libraries that train, with their versions."""
    return ", ".join(f"{name} {extras.version(name)}" for name in _LIBRARIES)


def _plain(value):
    if isinstance(value, np.ndarray):
        return _content(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a model's parameter must be plain data or an array; got {type(value).__name__}")
