"""A blind leaderboard: a hidden test set, checked submissions, a page that ranks them, at the end the complete truth.

A board is a folder. ``public/`` is for the students, ``hidden/`` for nobody, ``submissions/STUDENT/`` takes files of
predictions in any format. :func:`rank` takes in every new file: it keeps a copy under ``kept/`` and notes its digest, and when
it was taken in, in ``log.csv``. That order, and not the date that a file has, says what is in time and what is the latest. Then
it checks all files and writes ``index.html`` and ``ranking.csv``. :func:`open_truth` does so on the complete truth.

The test records are in no file that students have: see :func:`make` for what each kind of data protects from.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from xcrepro.core import extras, paths, propensity
from xcrepro.core.arguments import one_of, real_number, whole_number
from xcrepro.core.data import registry
from xcrepro.core.data.load import WORD_FILE, load
from xcrepro.core.data.names import LabelNames, read_label_names, write_label_names
from xcrepro.core.data.read import read_xc
from xcrepro.core.data.write import write_sparse, write_xc
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.judged import lines_of
from xcrepro.core.metrics.compare import compare
from xcrepro.core.metrics.evaluate import evaluate
from xcrepro.core.metrics.registry import wanted as metrics_at
from xcrepro.core.predictions import TopK
from xcrepro.models.twin import twin
from xcrepro.tools import diagnose, formats
from xcrepro.tools.formats.csv import without_formulas
from xcrepro.tools.reports import html
from xcrepro.tools.reports.grid import Cell, Grid

RULES = {
    "uniform": "every relevant label goes missing with the probability of the strength",
    "rare": "rare labels go missing most: one stays with its propensity (jain16, eq. 1) to the power of the strength",
}
"""How labels go missing."""
DEFAULT_METRICS = ("P@5", "nDCG@5", "PSP@5")
TEXTS = "test_texts.txt"
"""Of the students' part: a line for each test record that says what it is, where the data have texts."""
OPEN = ("tib", "gutenberg")
"""Data of the package that a board is made of; :func:`make` says what of them can be looked up."""
REFUSED = (
    *("shape", "transposed", "rows without predictions", "rows moved", "labels renumbered", "no information"),
    *("training points", "repeated rows"),
)
"""Findings of ``xc.diagnose`` with which a submission is not ranked; others are said beside its place."""
_LOG = ["student", "file", "digest", "received", "dated"]
_LEAST = 4
"""Records that a heading needs so that words of others can be given to each of them."""
_AT_CEILING = 0.9
"""A share of what can be reached at all that no honest model reaches."""
_REACH, _EIGHT_OF_TEN = 1.959964, 0.841621
"""The normal distribution's quantiles of 97.5 and of 80 %."""
_TOO_SURE = 4.0
"""Standard errors by which the labels that were left may be hit more often than those that were taken out."""


@dataclass(frozen=True)
class Submission:
    """One file of a student: where its copy is, when it was taken in, and why it does not count (or what was noticed)."""

    student: str
    file: str
    digest: str
    received: str
    dated: str
    status: str
    reason: str
    top: TopK | None
    noticed: tuple[str, ...] = ()


# ---------------------------------------------------------------------- make


def make(
    folder: str | os.PathLike,
    dataset: str = "tib",
    *,
    deadline: str,
    data: str | os.PathLike | None = None,
    points: int | None = None,
    scale: float = 0.1,
    rule: str = "rare",
    strength: float = 0.5,
    metrics: Sequence[str] = DEFAULT_METRICS,
    seed: int | None = None,
) -> Path:
    """Make a board in a new or empty folder: a split with labels taken out of it, the students' part, and the hidden one.

    The records come from one of

    - ``"tib"``: library records of which none exists. Each has the headings of a real one, and words of *other* records with
      these headings. Looking a test record up finds none; headings of less than four records are left out.
    - ``"gutenberg"``: a secret draw of real titles. They can be looked up, so such a board is for a class that judges the
      predictions itself.
    - ``"synthetic eurlex-4k"`` and the like, drawn at this ``scale``: no names.
    - ``data``, a folder of your own that :func:`xcrepro.load` reads; ``dataset`` is then what it is called.

    ``points`` are how many of all records are drawn; they are split anew. Labels go missing in train and test alike, by a
    ``rule`` (:data:`RULES`) of a ``strength`` from 0 to 1. ``deadline`` is ISO 8601, local time where it names no zone. The
    first of the ``metrics``, each with its k, decides the order. Without a ``seed`` one is drawn, and kept in ``board.json``.
    Nothing is written where an argument is refused.

    >>> import tempfile
    >>> board = make(tempfile.mkdtemp(), points=400, deadline="2030-01-31T18:00+00:00", seed=1)
    >>> sorted(path.name for path in board.iterdir())
    ['board.json', 'hidden', 'public', 'submissions']
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArgumentError("DIR", "must be new or an empty folder", folder, "nothing was written")
    one_of("rule", rule, list(RULES))
    real_number("strength", strength, at_least=0, at_most=1)
    seed = secrets.randbits(64) if seed is None else whole_number("seed", seed, 0)
    settings = {"deadline": _time("deadline", deadline), "rule": rule, "strength": strength}
    settings |= {"metrics": [_metric(name) for name in metrics or [""]], "seed": seed}
    ds, settings["data"] = _source(dataset, data, points, scale, seed)
    n_train, X, complete = ds.n_train, ds.X, ds.Y
    counts = np.asarray(complete[:n_train].sum(axis=0)).ravel()
    stays = np.full(counts.size, 1.0 - strength)
    if rule == "rare":
        stays = propensity.inverse(counts, n_train) ** -strength  # as lessons 3, 4 and 10 let them go missing
    observed = propensity.drop_labels(complete, stays, np.random.default_rng([seed, 1]))
    settings["removed"] = 1 - observed[n_train:].nnz / max(complete[n_train:].nnz, 1)
    if not observed[n_train:].nnz:
        raise ArgumentError(
            "strength", "must leave test labels to judge by", strength, "take a smaller one or more points"
        )
    _values(
        settings,
        observed[n_train:],
        {"truth": TopK.from_scores(observed[n_train:], deepest(settings["metrics"]))},
        observed[:n_train],
    )
    with paths.filling(folder) as part:
        for name in ("public", "hidden", "submissions"):
            (part / name).mkdir()
        write_xc(part / "public" / "train.txt", X[:n_train], observed[:n_train])
        nothing = sparse.csr_matrix(complete[n_train:].shape, dtype=np.float32)
        write_xc(part / "public" / "test.txt", X[n_train:], nothing)
        if ds.label_names:
            write_label_names(part / "public" / "label_names.txt", LabelNames(tuple(ds.label_names)))
        if ds.words:
            (part / "public" / WORD_FILE).write_text("\n".join(ds.words) + "\n", encoding="utf-8")
        for name, texts in (("train_texts.txt", ds.texts[:n_train]), (TEXTS, ds.texts[n_train:])):
            if len(texts):
                (part / "public" / name).write_text("\n".join(texts) + "\n", encoding="utf-8")
        if ds.label_features is not None:
            write_sparse(part / "public" / "lbl_X_Xf.txt", ds.label_features)
        (part / "public" / "README.md").write_text(_readme(settings, nothing.shape), encoding="utf-8")
        formats.write_truth(part / "hidden" / "observed.npz", observed[n_train:])
        formats.write_truth(part / "hidden" / "complete.npz", complete[n_train:])
        np.save(part / "hidden" / "stays.npy", stays)
        (part / "board.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    return folder


class _Records(NamedTuple):
    """All records of a board, train first: features, complete labels, and what both are called."""

    X: sparse.csr_matrix
    Y: sparse.csr_matrix
    n_train: int
    label_names: Sequence[str] = ()
    words: Sequence[str] = ()
    label_features: sparse.csr_matrix | None = None
    texts: Sequence[str] = ()


def _source(dataset: str, data, points: int | None, scale: float, seed: int) -> tuple[_Records, str]:
    """The records, split anew by the seed, and what they are."""
    if data is None and registry.synthetic(dataset) is not None:
        ds = twin(dataset, scale=scale, seed=seed)
        X = sparse.vstack([ds.train.X, ds.test.X], format="csr")
        Y = sparse.vstack([ds.train.Y_complete, ds.test.Y_complete], format="csr")
        return _Records(X, Y, ds.n_train, ds.label_names), f"synthetic data like {ds.entry.printed_name}"
    if data is not None:
        ds = load(dataset, data, check=False)
    elif dataset in OPEN:
        ds = load(dataset)
    else:
        do = f'--data FOLDER takes your own, and "synthetic {dataset}" asks for synthetic data of its shape'
        rule = f"must be {' or '.join(map(repr, OPEN))}, or synthetic: the complete truth must be known"
        raise ArgumentError("dataset", rule, repr(dataset), do)
    parts = [part for part in (ds.train, ds.test, ds.validation) if part is not None and part.Y.shape[0]]
    if any(part.X is None for part in parts):
        raise ArgumentError("data", "must have features", data, "students train on them")
    X, Y = (sparse.vstack([getattr(part, of) for part in parts], format="csr") for of in "XY")
    called = f"{ds.title}, split anew"
    if data is None and dataset == "tib":
        X, Y = _recombined(X, Y, np.random.default_rng([seed, 2]))
        called = f"{ds.title}, words recombined, split anew"
    points = Y.shape[0] if points is None else whole_number("points", points, 20, Y.shape[0])
    order = np.random.default_rng([seed, 0]).permutation(Y.shape[0])[:points]
    X, Y = X[order], Y[order]
    lines = [text for part in parts for text in lines_of(part.texts)]
    texts = [lines[row] for row in order] if len(lines) == sum(part.Y.shape[0] for part in parts) else ()
    used = np.flatnonzero(np.asarray(Y.sum(axis=0)).ravel())
    names = [ds.label_names[label] for label in used] if ds.label_names else ()
    features = None if ds.label_features is None else ds.label_features[used]
    return _Records(X, Y[:, used], Y.shape[0] * 3 // 4, names, ds.words, features, texts), called


def _recombined(X: sparse.csr_matrix, Y: sparse.csr_matrix, random: np.random.Generator):
    """Records that nobody has: the headings of a record, and as many words, each drawn from another record with one of them.

    Headings of fewer records than :data:`_LEAST` are taken out, and records that then have none. So no record brings most of
    the words of another, and looking one up finds records that share a heading with it, as any neighbour does. Headings
    keep their columns, by which they are named.
    """
    Y = Y.copy()
    Y.data[(np.asarray(Y.sum(axis=0)).ravel() < _LEAST)[Y.indices]] = 0
    Y.eliminate_zeros()
    rows = np.flatnonzero(np.diff(Y.indptr))
    X, Y = X[rows], Y[rows]
    of, wanted = Y.tocsc(), np.diff(X.indptr)

    def one_of_each(indptr: np.ndarray, which: np.ndarray) -> np.ndarray:
        """A random place of each row that is asked for."""
        return indptr[which] + (random.random(which.size) * np.diff(indptr)[which]).astype(np.int64)

    row = np.repeat(np.arange(rows.size), 3 * wanted)  # some draws are the record's own, or a word that it has by then
    donor = of.indices[one_of_each(of.indptr, Y.indices[one_of_each(Y.indptr, row)])]
    fair = (donor != row) & (wanted[donor] > 0)
    row, place = row[fair], one_of_each(X.indptr, donor[fair])
    word, value = X.indices[place], X.data[place]
    first = np.sort(np.unique(row * np.int64(X.shape[1]) + word, return_index=True)[1])
    row, word, value = row[first], word[first], value[first]
    kept = np.arange(row.size) - np.searchsorted(row, row) < wanted[row]
    made = sparse.csr_matrix((value[kept], (row[kept], word[kept])), shape=X.shape)
    length = np.sqrt(np.asarray(made.multiply(made).sum(axis=1)).ravel())
    scaled = sparse.diags(1 / np.where(length > 0, length, 1)) @ made
    return scaled.tocsr().astype(np.float32), Y


def _metric(name: str) -> str:
    """A metric with its k, of which more is better."""
    if "@" not in name or metrics_at(name, 1)[0][0].better != "higher":
        raise ArgumentError("metrics", "must be metrics with their k, of which more is better", name, "for example P@5")
    return name


def _time(name: str, text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="seconds")
    except ValueError:
        raise ArgumentError(name, "must be a time in ISO 8601", repr(text), "for example 2027-01-31T18:00") from None


def _now() -> datetime:
    return datetime.now(UTC)


def _shown(time: str) -> str:
    """A time of the board as a person reads it: ``2027-01-31 18:00 UTC``."""
    return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def deepest(metrics: Sequence[str]) -> int:
    """The largest k of some metrics."""
    return max(int(name.partition("@")[2]) for name in metrics)


def _readme(settings: dict, shape: tuple[int, int]) -> str:
    (first, *others), (points, labels) = settings["metrics"], shape
    also = f" ({', '.join(others)} are shown as well)" if others else ""
    return f"""# A blind leaderboard

The data are {settings["data"]}. `xc.load("board", "public")` reads them (`public` is this folder). The test points
have no labels here: predict them.

- **Hand in** one file with the {deepest(settings["metrics"])} best of {labels:,} labels for each of the {points:,} test
  points, in their order, for example with `top.save("mine.npz")`. Every format that `xcrepro convert --list` names is read.
- **Until** {_shown(settings["deadline"])}. You may hand in as often as you like: the sound file that was taken in last counts,
  also if it is one that you had handed in before. When a file was taken in decides, not the date that it has.
- **Judged by** {first}{also}, on labels of which some are missing, as in real data.
  At the end the complete labels are opened.
"""


# ---------------------------------------------------------------------- submissions


def _read_board(folder: Path) -> dict:
    try:
        return json.loads((folder / "board.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataMissing(f"{folder} is no board: `xcrepro course-board make {folder}` makes one") from None
    except json.JSONDecodeError:
        raise DataError(folder / "board.json", "no JSON", "the settings that `course-board make` wrote") from None


def _take_in(folder: Path) -> pd.DataFrame:
    """The log with what is new in ``submissions``: its copy is in ``kept`` before the log names it. Nothing is ever removed.

    New is a file of a name that the student had not used, one whose content is another than that of the last file of this
    name, and one that was put there again: its own date, which decides nothing else, is another.
    """
    path = folder / "log.csv"
    # As text: a student may be called 007 or NA.
    log = (
        pd.read_csv(path, dtype=str, keep_default_na=False) if path.exists() else pd.DataFrame(columns=_LOG, dtype=str)
    )
    last = {(line["student"], line["file"]): (line["digest"], line["dated"]) for line in log.to_dict("records")}
    new, now = [], _now().isoformat(timespec="seconds")
    for student, file in _handed_in(folder / "submissions"):
        inside = sorted(one for one in file.rglob("*") if one.is_file()) if file.is_dir() else [file]
        digest = hashlib.sha256(b"".join(hashlib.sha256(one.read_bytes()).digest() for one in inside)).hexdigest()
        time = max((one.stat().st_mtime for one in inside), default=file.stat().st_mtime)
        dated = datetime.fromtimestamp(time, UTC).isoformat(timespec="microseconds")
        if last.get((student, file.name)) == (digest, dated):
            continue
        kept = folder / "kept" / digest
        if not (kept / file.name).exists():
            with paths.filling(kept) as part:
                (shutil.copytree if file.is_dir() else shutil.copy2)(file, part / file.name)
        new.append([student, file.name, digest, now, dated])
    if new:
        new.sort(key=lambda line: (line[0], line[-1], line[1]))  # taken in together: the files' own dates order them
        log = pd.concat([log, pd.DataFrame(new, columns=_LOG)], ignore_index=True)
        with paths.atomic_path(path) as part:
            log.to_csv(part, index=False, lineterminator="\n")
    return log


def _handed_in(folder: Path) -> Iterator[tuple[str, Path]]:
    for student in sorted(folder.iterdir()):
        files = sorted(student.iterdir()) if student.is_dir() and not student.is_symlink() else []
        yield from ((student.name, file) for file in files if not file.name.startswith(".") and not file.is_symlink())


def _judge(folder: Path, settings: dict, log: pd.DataFrame, hidden: _Hidden, train) -> list[Submission]:
    """Every submission in the order of taking in: late, refused with its reason, or sound; the last sound one counts."""
    names = folder / "public" / "label_names.txt"
    names = read_label_names(names) if names.exists() else None
    found, latest = [], {}
    for number, line in enumerate(log.to_dict("records")):
        top, status, noticed = None, "late", ()
        reason = f"taken in after the deadline, {_shown(settings['deadline'])}"
        if line["received"] <= settings["deadline"] or line["student"] in settings.get("excused", ()):
            path = folder / "kept" / line["digest"] / line["file"]
            top, status, reason = _check(
                path, line["file"], deepest(settings["metrics"]), hidden.observed, train, names
            )
        if status == "sound":
            latest[line["student"]] = number
            noticed = tuple(_noticed(top, hidden))
        reason = " ".join(part for part in (*noticed, reason) if part)
        found.append(Submission(**line, status=status, reason=reason, top=top, noticed=noticed))
    return [
        one if one.status != "sound" else replace(one, status="counts" if latest[one.student] == number else "replaced")
        for number, one in enumerate(found)
    ]


class _Hidden(NamedTuple):
    """What nobody gets: the test labels that are left, all of them, and the chance of each label to be left."""

    observed: sparse.csr_matrix
    complete: sparse.csr_matrix
    stays: np.ndarray

    @classmethod
    def read(cls, folder: Path) -> _Hidden:
        observed, complete = (formats.read_truth(folder / f"{name}.npz") for name in ("observed", "complete"))
        return cls(observed, complete, np.load(folder / "stays.npy"))


def _noticed(top: TopK, hidden: _Hidden) -> Iterator[str]:
    """What no honest model does: to reach nearly all that can be reached, or to know which labels were taken out."""
    there = top.ids >= 0
    rows, ids = np.repeat(np.arange(there.shape[0]), there.sum(axis=1)), top.ids[there]
    right = np.asarray(hidden.complete[rows, ids]).ravel() > 0
    reached, best = right.sum(), np.minimum(np.diff(hidden.complete.indptr), top.k).sum()
    if reached >= _AT_CEILING * best:
        yield f"At the ceiling: {reached:,} of the {best:,} hits that are possible at all. No model knows so much; ask how."
    left = np.asarray(hidden.observed[rows[right], ids[right]]).ravel() > 0
    chance = hidden.stays[ids[right]]
    error = np.sqrt((chance * (1 - chance)).sum())
    if error and left.sum() - chance.sum() > _TOO_SURE * error:
        yield (
            f"Above the noise of labels: {left.sum():,} of its {right.sum():,} right answers are among the labels that were "
            f"left, where chance leaves {chance.sum():,.0f} ± {error:.0f}. Who has not seen them cannot tell; ask how."
        )


def _check(path: Path, file: str, k: int, observed, train, names) -> tuple[TopK | None, str, str]:
    try:
        top = formats.read_predictions(
            path, k=k, n_labels=observed.shape[1], n_rows=observed.shape[0], label_names=names
        )
        found = diagnose.check(observed, top, Y_train=train, name="the predictions")
    except Exception as error:  # whatever a student's file does to a reader, the others are ranked
        return None, "damaged", str(error).replace(str(path), file) or type(error).__name__
    refused = [finding for finding in found if finding.kind in REFUSED]
    reason = " ".join(map(str, refused or found))
    return (None, "misaligned", reason) if refused else (top, "sound", reason)


# ---------------------------------------------------------------------- rank and open


def rank(folder: str | os.PathLike, *, excuse: str | None = None) -> pd.DataFrame:
    """Take in what is new, check it, rank it on the observed labels, and write ``index.html`` and ``ranking.csv``.

    A file is in time if it was taken in by the deadline, so run this when the deadline comes. ``excuse`` names a student whose
    late files count all the same, from now on. One row per student whose submission counts, the best first, equal values
    sharing a rank: rank, student, digest, and for each metric its value and the ends of its interval of 95 %; ``p`` is that of
    the difference to the first, after Holm's correction; ``records`` is how many test records would tell the student from the
    next one in 8 of 10 such boards.
    """
    folder = Path(folder)
    if excuse is not None:
        settings = _read_board(folder)
        one_of("excuse", excuse, students(folder))
        settings["excused"] = sorted({*settings.get("excused", ()), excuse})
        with paths.atomic_path(folder / "board.json") as part:
            part.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    return _write(folder, opened=False)


def open_truth(folder: str | os.PathLike) -> pd.DataFrame:
    """Rank once more after the deadline, and judge the ranking by the complete truth: the page and the table of :func:`rank`
    then also have ``complete``, its ends and ``complete rank`` of the first metric."""
    folder = Path(folder)
    deadline = _read_board(folder)["deadline"]
    if _now() <= datetime.fromisoformat(deadline):
        raise ArgumentError("DIR", "must be a board whose deadline is over", f"the deadline {deadline}")
    return _write(folder, opened=True)


class State(NamedTuple):
    """A board now: what was handed in, what of it counts by student, the test's labels that are left and all, the train's."""

    judged: list[Submission]
    tops: dict[str, TopK]
    observed: sparse.csr_matrix
    complete: sparse.csr_matrix
    train: sparse.csr_matrix


def students(folder: Path) -> list[str]:
    """Who has a folder in ``submissions``."""
    return sorted(path.name for path in (folder / "submissions").iterdir() if path.is_dir())


def submitted(folder: Path) -> tuple[dict, State]:
    """The settings of a board, and its state after what is new was taken in."""
    settings = _read_board(folder)
    with extras.library("filelock").FileLock(folder / ".lock"):
        return settings, _state(folder, settings)


def _state(folder: Path, settings: dict) -> State:
    log = _take_in(folder)
    train, hidden = read_xc(folder / "public" / "train.txt")[1], _Hidden.read(folder / "hidden")
    judged = _judge(folder, settings, log, hidden, train)
    tops = {one.student: one.top for one in judged if one.status == "counts"}
    return State(judged, tops, hidden.observed, hidden.complete, train)


def _write(folder: Path, opened: bool) -> pd.DataFrame:
    settings = _read_board(folder)
    with extras.library("filelock").FileLock(folder / ".lock"):  # a second run waits, and finds all taken in
        judged, tops, observed, complete, train = _state(folder, settings)
        opened = opened or (folder / "pairs.csv").exists()  # once opened, it stays open
        table = _ranking(settings, observed, tops, train)
        table.insert(
            2,
            "digest",
            [next(o.digest for o in judged if (o.student, o.status) == (s, "counts")) for s in table["student"]],
        )
        pairs = None
        if opened:
            table, pairs = _opened(settings, table, observed, complete, tops, train)
        best = _first(
            _values(settings, observed, {"": TopK.from_scores(observed, deepest(settings["metrics"]))}, train), settings
        ).iloc[0]
        page = html.page("Leaderboard", _body(settings, table, judged, pairs, best, observed.shape[0]))
        written = {folder / "index.html": page.encode(), folder / "ranking.csv": _csv(table)}
        paths.write_together(written | ({} if pairs is None else {folder / "pairs.csv": _csv(pairs)}))
    return table


def _csv(table: pd.DataFrame) -> bytes:
    return without_formulas(table).to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()


def _weights(train) -> dict:
    counts = np.asarray(train.sum(axis=0)).ravel()
    return {"inverse_propensity": propensity.inverse(counts, train.shape[0]), "label_counts": counts.astype(np.int64)}


def _values(settings: dict, truth, tops: dict, train) -> pd.DataFrame:
    return evaluate(truth, tops, metrics=settings["metrics"], interval=0.95, **_weights(train))


def _first(values: pd.DataFrame, settings: dict, column: str = "value") -> pd.Series:
    name, _, k = settings["metrics"][0].partition("@")
    return values[(values["metric"] == name) & (values["k"] == int(k))].set_index("model")[column]


def _ranking(settings: dict, truth, tops: dict, train) -> pd.DataFrame:
    columns = {"rank": [], "student": []}
    if not tops:
        return pd.DataFrame(columns)
    values = _values(settings, truth, tops, train)
    order = _first(values, settings).sort_values(ascending=False, kind="stable")
    table = pd.DataFrame({"rank": order.rank(ascending=False, method="min").astype(int), "student": order.index})
    for (metric, k), part in values.groupby(["metric", "k"], sort=False):
        part = part.set_index("model").loc[order.index]
        for column in ("value", "low", "high"):
            table[f"{metric}@{k} {column}".removesuffix(" value")] = part[column]
    if len(tops) > 1:
        found = compare(truth, tops, settings["metrics"][0], against=order.index[0], **_weights(train))
        table["p"] = found.set_index("left")["p"].reindex(order.index)
        table["records"] = [*map(_records_needed, _to_next(settings, truth, tops, order.index, train)), np.nan]
    return table.reset_index(drop=True)


def _to_next(settings: dict, truth, tops: dict, order: Sequence[str], train) -> Iterator[tuple[float, float, int]]:
    """For each student but the last: the lead over the next one, its standard error, on how many records."""
    for one, other in itertools.pairwise(order):
        (found,) = compare(
            truth, {one: tops[one], other: tops[other]}, settings["metrics"][0], **_weights(train)
        ).itertuples()
        yield found.value, (found.high - found.low) / (2 * _REACH), truth.shape[0]


def _records_needed(lead: tuple[float, float, int]) -> float:
    """On how many records an interval of 95 % leaves out 0 in 8 of 10 boards, if the lead is as large as it is here.

    The power of a test of a mean, by the normal distribution; NaN where there is no lead.

    >>> _records_needed((0.01, 0.005, 1000))
    1963.0
    """
    value, error, n = lead
    return float(np.ceil(n * ((_REACH + _EIGHT_OF_TEN) * error / value) ** 2)) if value else np.nan


def _opened(settings: dict, table: pd.DataFrame, observed, complete, tops: dict, train):
    """The ranking with what the complete truth says, and every pair of students before and after."""
    if not tops:
        return table, pd.DataFrame({"left": [], "right": [], "held": []})
    values = _values(settings, complete, tops, train)
    for column, name in (("value", "complete"), ("low", "complete low"), ("high", "complete high")):
        table[name] = _first(values, settings, column).loc[table["student"]].to_numpy()
    table["complete rank"] = table["complete"].rank(ascending=False, method="min").astype(int)
    if len(tops) < 2:
        return table, pd.DataFrame({"left": [], "right": [], "held": []})
    in_order = {student: tops[student] for student in table["student"]}
    both = [compare(truth, in_order, settings["metrics"][0], **_weights(train)) for truth in (observed, complete)]
    pairs = both[0][["left", "right", "value", "low", "high"]].copy()
    pairs[["complete", "complete low", "complete high"]] = both[1][["value", "low", "high"]]
    held = np.sign(pairs["value"]) == np.sign(pairs["complete"])
    pairs["held"] = held.astype("boolean").mask(pairs["value"] == 0)  # a tie is no order that could hold
    return table, pairs


# ---------------------------------------------------------------------- the page


def _body(
    settings: dict, table: pd.DataFrame, judged: list[Submission], pairs: pd.DataFrame | None, best: float, n: int
) -> str:
    first = settings["metrics"][0]
    parts = [
        '<main class="xcrepro-report"><h1>Leaderboard</h1>',
        f"<p>{html.escape(settings['data'])}. Deadline: {_shown(settings['deadline'])}. Ranked by {html.escape(first)} on "
        "the observed labels, of which some are missing. Percent, with intervals of 95 %. p: the difference to the first, "
        "corrected after Holm; from 0.05 on the test points do not tell the two apart. Records: how many test points would "
        f"tell a student from the next one in 8 of 10 boards such as this one, which has {n:,}.</p>",
        f"<p>No predictions can have a higher {html.escape(first)} here than {100 * best:.2f}.</p>",
    ]
    named = [f"{one.student}: {text}" for one in judged if one.status == "counts" for text in one.noticed]
    if named:
        items = "".join(f"<li>{html.escape(text)}</li>" for text in named)
        parts.append(f"<h2>To be looked at</h2><ul>{items}</ul>")
    if pairs is not None:
        parts.append(f"<h2>The complete truth</h2>{_verdict(settings, pairs)}")
    parts += ["<h2>Ranking</h2>", _ranked(settings, table).html()]
    if pairs is not None and len(pairs):
        parts += ["<h2>Every pair</h2>", _paired(settings, pairs).html()]
    rows = [
        [
            Cell(one.student),
            Cell(one.file),
            Cell(one.status),
            Cell(one.reason),
            Cell(_shown(one.received)),
            Cell(one.digest[:12]),
        ]
        for one in judged
    ]
    columns = ["student", "file", "status", "reason, or what was noticed", "taken in", "SHA-256"]
    parts += [
        "<h2>Submissions</h2>",
        Grid(
            "submissions", "All files, in the order in which they were taken in. None is removed.", columns, rows
        ).html(),
    ]
    return "\n".join([*parts, "</main>"])


def _verdict(settings: dict, pairs: pd.DataFrame) -> str:
    """Did the ranking hold? In one paragraph."""
    if not len(pairs):
        return "<p>There is nothing to compare.</p>"
    pairs = pairs[pairs["held"].notna()]
    sure = (pairs["low"] > 0) | (pairs["high"] < 0)
    against = (pairs["value"] > 0) & (pairs["complete high"] < 0) | (pairs["value"] < 0) & (pairs["complete low"] > 0)
    return (
        f"<p>{100 * settings['removed']:.1f} % of the test labels had been taken out (rule: {html.escape(settings['rule'])}, "
        f"strength {settings['strength']:g}): {html.escape(RULES[settings['rule']])}.</p>"
        f"<p>{pairs['held'].sum()} of {len(pairs)} pairs of students whose observed values differ are in the same order on the "
        "complete labels. Among them "
        f"are {(pairs['held'] & sure).sum()} of the {sure.sum()} pairs whose observed interval leaves out 0. In "
        f"{against.sum()} of all pairs the complete labels show a difference of the opposite sign whose interval leaves out 0."
        "</p>"
    )


def _percent(row: dict, name: str, sign: str = "") -> Cell:
    value, low, high = (100 * row[f"{name}{end}"] for end in ("", " low", " high"))
    return Cell(f"{value:{sign}.2f}", f"{low:{sign}.2f} to {high:{sign}.2f}", float(value))


def _ranked(settings: dict, table: pd.DataFrame) -> Grid:
    shown = [*settings["metrics"], *(["complete"] if "complete" in table else [])]
    whole = [name for name in ("complete rank",) if name in table]
    rows = []
    for row in table.to_dict("records"):
        cells = [Cell(row["student"]), Cell(str(row["rank"]), number=row["rank"])]
        cells += [_percent(row, name) for name in shown] + [Cell(str(row[name]), number=row[name]) for name in whole]
        p = row.get("p", np.nan)
        cells.append(Cell("" if np.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"))
        needed = row.get("records", np.nan)
        rows.append(
            [*cells, Cell("" if np.isnan(needed) else f"{needed:,.0f}", number=None if np.isnan(needed) else needed)]
        )
    named = [f"{settings['metrics'][0]}, complete labels" if name == "complete" else name for name in shown]
    return Grid("ranking", "One row per student", ["student", "rank", *named, *whole, "p", "records"], rows)


def _paired(settings: dict, pairs: pd.DataFrame) -> Grid:
    rows = []
    for left, right, *numbers, held in pairs.itertuples(index=False):
        row = dict(zip(("o", "o low", "o high", "c", "c low", "c high"), numbers, strict=True))
        said = "tie" if pd.isna(held) else "yes" if held else "no"
        rows.append([Cell(left), Cell(right), _percent(row, "o", "+"), _percent(row, "c", "+"), Cell(said)])
    title = f"{settings['metrics'][0]} of left minus right, in percentage points"
    return Grid("pairs", title, ["left", "right", "observed", "complete", "same order"], rows)
