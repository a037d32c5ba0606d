"""A full disk: whatever writes, what was there stays as it was, nothing half-written is left, and the file is named.

The disk is full for files beyond a length (``RLIMIT_FSIZE``: the system refuses the bytes, as it does on a full disk); each
file that a writer makes is in turn the one that has no room.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import xcrepro as xc
from maintenance import open_data
from tests.repro.conftest import Project
from xcrepro import repro
from xcrepro.core.data.names import LabelNames, write_label_names
from xcrepro.core.errors import XCError
from xcrepro.repro.drawing import figures
from xcrepro.repro.engine import manifest, recorded, stamps, tidy
from xcrepro.repro.engine.start import start
from xcrepro.repro.inputs import download, fingerprints, twin_statistics
from xcrepro.tools import formats
from xcrepro.tools.commands import judge
from xcrepro.tools.course import judging, study
from xcrepro.tools.formats.vectorize import vectorize
from xcrepro.tools.reports import report, reproduce

resource = pytest.importorskip("resource", reason="this system has no limits to the size of a file")


@contextlib.contextmanager
def full_disk(room: int):
    """Writing a file beyond ``room`` bytes is refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def data(turn: int):
    """Another truth, features and predictions each turn; those of the second are larger."""
    rng = np.random.default_rng(turn)
    n = 100 * turn
    Y = sparse.csr_matrix((rng.random((n, 6)) < 0.4).astype(np.float32))
    X = sparse.csr_matrix(np.where(rng.random((n, 5)) < 0.5, rng.random((n, 5)), 0).astype(np.float32))
    return X, Y, xc.TopK.from_scores(rng.random((n, 6)).astype(np.float32), 4)


def of_format(format: formats.Format, kind: str):
    suffix = format.suffixes[0].strip("/")

    def write(home: Path, turn: int) -> None:
        if not suffix and turn == 1:
            return  # a folder of files, which must be new
        X, Y, top = data(turn)
        values = {"truth": (Y,), "predictions": (top,), "features": (X,), "dataset": (X, Y)}[kind]
        getattr(formats, f"write_{kind}")(home / f"it{suffix}", *values, format.name)

    return write


def calibrator(home: Path, turn: int) -> None:
    scores = np.linspace(0.01, 0.99, 40 * turn)
    xc.calibrate.Isotonic().fit(scores, scores > 0.5).save(home / "isotonic.json")


def model(home: Path, turn: int) -> None:
    X, Y, _ = data(turn)
    xc.models.Popularity().fit(X, sparse.hstack([Y] * turn).tocsr()).save(home / "model")


def vectorized(home: Path, turn: int) -> None:
    source = home / "source.jsonl"
    texts = [f"words of {word} and others" for word in ("one", "two", "three", "four")] * 5
    if not source.exists():
        source.write_text("".join(json.dumps({"text": text, "labels": [text[9:12]]}) + "\n" for text in texts))
    if turn == 2:
        vectorize(source, home / "deep" / "made", name="made")


def open_dataset(home: Path, turn: int) -> None:
    records, subjects = home / "records.jsonl", home / "subjects.tsv"
    if not records.exists():
        records.write_text('{"title": "cats", "abstract": "", "subjects": ["1"]}\n' * 40)
        (home / "tib").mkdir()
        subjects.write_text("gnd\tname\n1\tcats\n2\tdogs\n")
    if turn == 2:
        open_data.build("tib", records, subjects, out=home / "tib")


def fingerprints_(home: Path, turn: int) -> None:
    table, fingerprints.TABLE = fingerprints.TABLE, home / "fingerprints.csv"
    try:
        if not fingerprints.TABLE.exists():
            shutil.copy(table, fingerprints.TABLE)
        fingerprints.write([fingerprints.known("bibtex", part, data(turn)[1]) for part in ("train", "test")[:turn]])
    finally:
        fingerprints.TABLE = table


def counted(home: Path, turn: int) -> None:
    os.environ["XCREPRO_ROOT"] = str(home)
    twin_statistics.write(pd.DataFrame({"dataset": [f"set {i}" for i in range(20 * turn)], "value": 0.5}))


def checksum(home: Path, turn: int) -> None:
    if turn == 2:
        download.remember_sum("0" * 64, "a.zip", home / "a.sha256")


def page(home: Path, turn: int) -> None:
    with report.atomic_folder(home / "report") as part:
        for name in ("report.html", "table.csv"):
            (part / name).write_text(f"{turn} " * 1000)


def project(home: Path) -> Project:
    os.environ["XCREPRO_ROOT"] = str(home)
    return Project(home) if not (home / "notebooks").exists() else Project.__new__(Project)


def item(home: Path, turn: int) -> None:
    """A figure and a table of an item, three files each."""
    (made := project(home)).root = home
    if turn == 1 or not (home / "notebooks/demo/one.ipynb").exists():
        made.add("one", "pass")
    it = repro.item("demo/one", {})
    table = pd.DataFrame({"k": [1, 3, 5], "P": [0.5 * turn, 0.25, 0.125 / 3]})
    with figures.new() as (fig, ax):
        ax.plot(table["k"], table["P"])
        figures.draws(ax, x="k", y="P")
    it.save_figure(fig, table, part="drawn")
    it.save_table(table)


def stamp(home: Path, turn: int) -> None:
    (made := project(home)).root = home
    if not (home / "notebooks/demo/one.ipynb").exists():
        made.entries = {}
        made.add("one", "pass")
    entry = manifest.load()["demo/one"]
    stamps.write_at(stamps.path(entry), stamps.made(entry, {"parameters": {"seed": turn}}, [], []))


def record(home: Path, turn: int) -> None:
    provenance = dict.fromkeys(recorded.FIELDS, str(turn))
    tables = {"": [{"k": ("1", ""), "P": ("0.5", "")}] * 20 * turn}
    recorded.write(home / "bibtex.csv", recorded.Record(provenance, tables))


def tidied(home: Path, turn: int) -> None:
    """Nothing to do the first time: the file is there, untidy."""
    path = home / "a.ipynb"
    if not path.exists():
        path.write_text(json.dumps(Project.notebook(Project.code("x = 1"), Project.markdown("word " * 200))))
    if turn == 2:
        tidy.tidy([path])


def judged_sheet(home: Path, turn: int) -> None:
    if turn == 1:
        X, Y, top = data(1)
        xc.write_xc(home / "truth.npz", X, Y)
        top.save(home / "top.npz")
    about = {"truth": str(home / "truth.npz"), "predictions": [home / "top.npz"], "points": None, "labels": None}
    about |= dict.fromkeys(("rows", "n_labels", "truth_from", "from_format")) | {"unknown": "refuse"}
    about |= dict.fromkeys(("match", "texts", "train_truth", "labels_are"))
    about |= dict.fromkeys(("one_based", "judged_only", "by_rank"), False)
    asked = SimpleNamespace(**about, k=[1], n=3 * turn, seed=0, out=home / "sheet.csv", add=turn > 1)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):  # as full in pytest
        judge._sample(asked)


def studied(home: Path, turn: int) -> None:
    mine = study.Study("02_precision_and_ndcg", folder=home)
    with contextlib.redirect_stdout(io.StringIO()):
        mine.quiz(turn, "b")


def sheets(home: Path, turn: int) -> None:
    if turn == 2:
        truth, top = sparse.csr_matrix(np.eye(6)), xc.TopK.from_ids(np.arange(6)[:, None], n_labels=6)
        judging.sheets(home / "sheets", truth, {"one": top}, ["ann", "bob"], texts=["a record"] * 6, records=3, k=1)


def started(home: Path, turn: int) -> None:
    os.environ.pop("XCREPRO_ROOT", None)
    if turn == 2:
        start(home / "mine")


def costs(home: Path, turn: int) -> None:
    rows = [("toy", 10, 20, f"demo/{i}", "", 0.5, 0.25) for i in range(10 * turn)]
    reproduce.keep_costs(home / "costs.csv", [dict(zip(reproduce.COST_COLUMNS, row, strict=True)) for row in rows])


# fmt: off
OTHER_WRITERS = (
    calibrator, model, vectorized, open_dataset, fingerprints_,
    checksum, counted, page, item, stamp, record, tidied, started, judged_sheet, sheets, costs,
    studied,
)
# fmt: on
OF_DATA = {
    "npz": lambda home, X, Y, top: top.save(home / "top.npz"),
    "pair": lambda home, X, Y, top: xc.write_xc(home / "pair.npz", X, Y),
    "packed": lambda home, X, Y, top: xc.write_xc(home / "train.txt.gz", X, Y),
    "state": lambda home, X, Y, top: xc.State(ks=(1, 3)).update(Y, top).save(home / "state.npz"),
    "names": lambda home, X, Y, top: write_label_names(home / "a.txt", LabelNames(tuple(map(str, X.indices)))),
    "filter_file": lambda home, X, Y, top: xc.data.write_filter(home / "filter_labels_test.txt", *Y.nonzero()),
}
WRITERS = {
    **{name: lambda home, turn, write=write: write(home, *data(turn)) for name, write in OF_DATA.items()},
    **{f"{format.name} {kind}": of_format(format, kind) for format in formats.FORMATS for kind in format.can("write")},
    **{function.__name__: function for function in OTHER_WRITERS},
}


def everything(home: Path) -> dict[str, bytes | None]:
    """Every file and folder below ``home``, hidden ones too, with its content."""
    return {
        path.relative_to(home).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(home.rglob("*"))
    }


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_what_was_there(name, tmp_path, monkeypatch):
    if name.startswith("parquet"):
        pytest.importorskip("pyarrow")
    for variable in ("XCREPRO_ROOT", "XCREPRO_ACCEPT", "XCREPRO_RECORD", "XCREPRO_FIGURES"):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)
    write, other, home = WRITERS[name], tmp_path / "other", tmp_path / "home"
    for place in (other, home):
        place.mkdir()
        write(place, 1)
    before = everything(home)
    first = everything(other)
    write(other, 2)
    sizes = {len(content) for file, content in everything(other).items() if content and first.get(file) != content}
    assert sizes
    limits = sorted({0, *(size - 1 for size in sizes)})
    # Of many files a few are enough.
    for limit in {limits[0], *limits[-3:]}:
        with full_disk(limit), pytest.raises((OSError, XCError)) as caught:
            write(home, 2)
        assert everything(home) == before, f"room for {limit} bytes"
        if name != "model":
            assert str(home) in str(caught.value), f"{caught.value!r} names no file of {home}"
    write(home, 2)
    assert everything(home).keys() == everything(other).keys()


# ---------------------------------------------------------------- the n-th rename fails


OF_SEVERAL_FILES = ("npz", "csv predictions", "annif truth", "npy truth", "arff dataset", "model", "counted", "checksum",
                    "page", "stamp")  # fmt: skip


@pytest.mark.parametrize("name", OF_SEVERAL_FILES)
def test_whatever_rename_fails_nothing_is_lost_or_half_written(tmp_path, name, monkeypatch):
    """The first rename fails, then the second, and so on until all pass; writes that fail are those of the full disk above."""
    monkeypatch.setenv("XCREPRO_ROOT", "")
    monkeypatch.delenv("XCREPRO_ROOT")
    folder, moved, write = tmp_path / "here", os.replace, WRITERS[name]
    folder.mkdir()
    write(folder, 1)
    before, at, calls = everything(folder), 0, [0]

    def replace(source, target, **named):
        calls[0] += 1
        if calls[0] == at:
            raise OSError(28, "No space left on device", os.fspath(target))
        moved(source, target, **named)

    while calls[0] >= at:
        at, calls[0] = at + 1, 0
        assert everything(folder) == before, f"rename {at - 1} failed, and the folder is not as it was"
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(OSError):
            patch.setattr(os, "replace", replace)
            write(folder, 2)
    assert at > 1  # something was made to fail
    assert everything(folder) != before
