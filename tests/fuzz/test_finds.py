"""What fuzzing found (``make fuzz``), each with the smallest input: a stranger's file is refused by name, or read right."""

from __future__ import annotations

import functools
import io
import random
import sys
import warnings
import zipfile

import numpy as np
import pytest
import scipy.io
from scipy.sparse import csr_matrix

import xcrepro as xc
from tests.fuzz import doors, inputs, slow
from tests.fuzz.doors import Door, resealed, sealed
from tests.refused import damaged
from xcrepro.core import calibrate
from xcrepro.core.data import names, read, registry, stream
from xcrepro.core.errors import ArgumentError, DataMissing
from xcrepro.core.metrics.state import State
from xcrepro.core.predictions import read_calibration_npz
from xcrepro.repro.engine import notebooks, recorded
from xcrepro.repro.inputs import download, parameters
from xcrepro.repro.published.printed_tables import read_printed
from xcrepro.repro.published.results import audit_results
from xcrepro.tools import formats, scale
from xcrepro.tools.formats.index import Index

DIGITS = b"1" * 400
MANY = b"1" * 5000


ARFF = b"@relation 'x: -C -1'\n@attribute a %s\n@attribute l {0,1}\n@data\n%s,1\n"


RECORD = b"table,row,column,value,sd\n"
CSR = {"format": np.array(b"csr"), "shape": [2, 3], "data": [1.0, 2.0], "indices": [2, 0], "indptr": [0, 2, 2]}
CSC = {"format": np.array(b"csc"), "data": np.zeros(0), "indices": np.zeros(0, np.int32), "indptr": [0, 0]}
PAIR = {"pair": "another", **{f"{part}_{name}": CSR[name] for part in "XY" for name in CSR}}
TOP = {"ids": [[3]], "scores": [[0.5]], "n_labels": 5}
AUTHORS = {
    "prediction_ids": [[3]],
    "scores": [[0.5]],
    "true_positives": [[False]],
    "labels": np.zeros((0, 2), np.uint8),
}
BLOCK = {"truth_indptr": [0, 1], "truth_indices": [2], "ids": [[1]], "scores": [[0.5]], "n_labels": 3, "first_row": 0}
WARNING_NAN = np.array([[0x7FF0000000000001]], np.uint64).view(np.float64)  # it warns when it is cast


def truth(path):
    return formats.read_truth(path, n_labels=12)


def dense(path):
    return formats.read_truth(path, "npy")


def predictions(name=None):
    return lambda path: formats.read_predictions(path, name, n_labels=12 if name else None)


def dataset(path):
    return formats.read_dataset(path, "arff")


def in_blocks(path):
    return list(stream.blocks(path, 2))


def claiming(*shape) -> bytes:
    """An ``.npy`` file that says it has this shape, and has nothing."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00v\x00" + header.encode()


def notebook(cells: bytes) -> bytes:
    return b'{"nbformat": 4, "cells": %s}' % cells


def matlab(folder) -> bytes:
    """A file whose flags are not of unsigned numbers of 32 bits (6) but of float64."""
    file = io.BytesIO()
    scipy.io.savemat(file, {"Y": np.eye(3)})
    content = bytearray(file.getvalue())
    assert content[136] == 6
    content[136] = 9
    return bytes(content)


def parquet(columns, **about):
    """A table's file; the columns may need pyarrow themselves."""

    def make(folder) -> bytes:
        pa = pytest.importorskip("pyarrow", reason="not installed: pip install 'xcrepro[formats]'")
        parquet_file = pytest.importorskip("pyarrow.parquet")
        table = pa.table(columns(pa) if callable(columns) else columns).replace_schema_metadata(about)
        return inputs.written(functools.partial(parquet_file.write_table, table), ".parquet")

    return make


def changed_state(state: State, change):
    """The arrays of a State, changed behind a digest that is right."""

    def make(folder) -> dict[str, np.ndarray]:
        state.save(folder / "sound.npz")
        with np.load(folder / "sound.npz") as stored:
            arrays = {name: stored[name] for name in stored.files}
        change(arrays)
        return resealed(arrays)

    return make


def of_rows(fold: str, n: int):
    """A State one of whose parts has another number of rows."""
    state = State([1], ["P", "macro-F1"]).update(np.eye(3), xc.TopK.from_scores(np.eye(3), 1))
    return changed_state(state, lambda arrays: arrays[f"{fold}.n_rows"].fill(n))


def of_pairs(place: int, n: int):
    """A State one of whose bins counts so many pairs."""
    state = State([1, 3], ["ACE"]).update(np.eye(3), xc.TopK.from_scores(np.eye(3) / 2, 3))
    return changed_state(state, lambda arrays: arrays["scores.n"].put(place, n))


def put(folder, suffix: str, content):
    """The input's file, or its folder: bytes, the arrays of an ``.npz``, or a folder's files."""
    content = content(folder) if callable(content) else content
    content = content if isinstance(content, bytes) or doors.is_folder(content) else inputs.npz(content)
    return doors.put(content, Door("", None, None, suffix=suffix), folder)


REFUSED = [
    (predictions("lists"), ".json", b"[[[1, " + DIGITS + b"]]]", None, "finite"),
    (predictions("csv"), ".csv", b'row,label,score\n0,1,"0.5\n', 2, "unexpected end"),
    (dataset, ".arff", ARFF % (b"{1e300, 2}", b"1e300"), 2, "'1e300' of 'a'"),
    (dataset, ".arff", (ARFF % (b"real", b"1")).replace(b"-C -1", b"-C 3"), None, "which of 2 attributes"),
    (dataset, ".arff", (ARFF % (b"real", b"1")).replace(b"-C -1", b"-C -3"), None, "which of 2 attributes"),
    (registry.read, ".toml", b'name = "a"\nsplits = ' + MANY, None, "no TOML"),
    (names.read_label_names, ".txt", b'{"0": "a", "' + MANY + b'": "b"}', None, "another kind"),
    (audit_results, ".csv", b"method,P@1\nm," + b"1" * 140_000, 2, "field larger"),
    (read_printed, ".csv", b"a\n1,2\n1,2,3\n", None, "no table"),
    (calibrate.load, ".json", b'{"format": ' + b"[" * 100_000, None, "calibrator"),
    # Once a matter of minutes: each in a time that grew with the square or the cube of the length.
    (predictions("pairs"), ".pred", b"1:" + b"1" * 1_000_000 + b"x\n", 1, "'1111"),
    (audit_results, ".csv", b"method,a" + b" " * 100_000 + b"b\nm,0.5\n", 1, "method, a   "),
    # With a byte order mark before it, the rest of a header beyond what is looked at was taken for a row.
    (read.read_sparse, ".txt", b"\xef\xbb\xbf" + b"1 3".ljust(4200) + b"\n", 1, "header"),
    (lambda path: formats.read_truth(path, index=Index(learn_rows=True)), ".json", b"[[1], [2, 2]]", None, "'2' twice"),
    # Minus infinity stands where no label is; the cast warned.
    (xc.TopK.load, ".npz", TOP | {"scores": [[-1e300]]}, None, r"-1e\+300 for label 3"),
    # Ids without a sign met -1, the absent place: an overflow, or the largest of them was taken for it.
    (read_calibration_npz, ".npz", AUTHORS | {"prediction_ids": np.array([[2**64 - 1]], np.uint64)}, None, "beyond int64"),
    *(
        (reader, ".npy", claiming(rows, 0), None, rf"\({rows}, 0\)")
        for rows, reader in ((2**31, formats.read_truth), (2**24 + 1, formats.read_predictions))
    ),
    (formats.read_features, ".npy", inputs.npy({"x": WARNING_NAN}), None, "nan in row 0, column 0"),
    (dense, ".npz", {}, None, "no array"),
    (read.read_sparse, ".npz", CSC | {"shape": [2**31 - 1, 1]}, None, "2,147,483,647 rows"),
    (formats.read_truth, ".mat", matlab, None, "whole number"),
    (truth, ".parquet", lambda folder: parquet({"labels": [[3]]})(folder).replace(b"labels", b"label\xec"), None, "Parquet"),
    (in_blocks, ".npz", CSR | {"format": np.zeros(0)}, None, "matrix in"),
    (in_blocks, ".npz", CSR | {"shape": [2**63 - 1, 3]}, None, "one more"),
    (in_blocks, ".npz", CSR | {"shape": [0, -1], "indptr": [0], "data": [], "indices": np.zeros(0, int)}, None, "2147483647"),
    (in_blocks, ".npz", PAIR, None, "'another'"),
    *(
        (scale.read_block, ".npz", BLOCK | {"n_relevant": complete}, None, "n_relevant")
        for complete in ([1.0, 1.0], [np.nan], ["1"])
    ),
    (notebooks.parameters, ".ipynb", notebook(b"[" * 100_000), None, "JSON"),
    (notebooks.parameters, ".ipynb", notebook(b'[{"metadata": {}}]'), None, "no source"),
    (recorded.read, ".csv", RECORD + b"provenance,0,dataset,x,\n", 2, "'0'"),
    # A mean over no rows was divided by 0; over others than there were it was another number.
    (State.load, ".npz", of_rows("rows", 6), None, "6 rows"),
    # Their sum was below nothing, and a kernel walked out of its bins: the process was gone.
    *(
        (State.load, ".npz", of_pairs(place, count), None, "4,503,599,627,370,496")
        for place, count in ((0, 2**63 - 1), (1, 2**52 + 1))
    ),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "suffix", "content", "line", "match"), REFUSED)
def test_refused_by_name(tmp_path, reader, suffix, content, line, match):
    path = put(tmp_path, suffix, content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with damaged(path, line, match):
            reader(path)


def named_by_nothing() -> bytes:
    """An archive whose member has no name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x", "1 2\n0:1\n")
    data = file.getvalue()
    return data.replace(b"x1 2", b"\x001 2").replace(b"x" + data[-22:], b"\0" + data[-22:])


def as_lists(reader):
    return lambda path: reader(path).toarray().tolist()


def best(reader):
    return lambda path: reader(path).ids.tolist()


def authors(path):
    return read_calibration_npz(path)[0].ids.tolist()


SOUND = [
    (as_lists(read.read_sparse), ".txt", named_by_nothing(), [[1, 0]]),
    *(
        (lambda path: [*read.read_sparse(path).shape], ".txt", mark + b"0 3".ljust(4094) + b"\n", [0, 3])
        for mark in (b"", b"\xef\xbb\xbf")
    ),
    (lambda path: xc.TopK.load(path).scores.tolist(), ".npz", TOP | {"scores": [[1e300]]}, [[np.inf]]),
    (lambda path: xc.TopK.load(path).scores.tolist(), ".npz", TOP | {"scores": [[3.4028235e38]]}, [[2.0**128 - 2.0**104]]),
    *(
        (authors, ".npz", AUTHORS | {name: np.array(AUTHORS[name], kind) for name in ("prediction_ids", "labels")}, [[3]])
        for kind in (np.uint8, np.uint16, np.uint32, np.uint64)
    ),
    *(
        (as_lists(formats.read_truth), ".npy", inputs.npy({"x": np.array([[0, 1], [2, 0]], dtype)}), [[0, 1], [1, 0]])
        for dtype in (np.float16, ">f4", ">i2", np.longdouble)
    ),
    (best(predictions()), ".npy", claiming(0, 2147483647), []),
    (best(predictions()), ".npy", inputs.npy({"x": np.array([[5, -np.inf, 2], [-np.inf, -np.inf, 1]])}), [[0, 2], [2, -1]]),
    (lambda path: names.read_label_names(path).names, ".txt", MANY + b"\ta\n", (f"{MANY.decode()}\ta",)),
    # What was read in blocks could not be written to, and so its rows not be sorted.
    *(
        (lambda path: in_blocks(path)[0].toarray().tolist(), ".npz", CSR | {"indices": np.array([2, 0], dtype),
         "data": np.array([1, 2], ">f4")}, [[2, 0, 1], [0, 0, 0]])
        for dtype in (">i4", np.uint64, np.int16)
    ),
    # P@3 of 0.08 beside a micro-F1@3 of 0.25 implies -1 labels a point, and with k = 1 that was divided by.
    (lambda path: {*audit_results(path)["column"]} >= {"micro_F1@1"}, ".csv",
     b"metric,k,value\nP,1,0.798\nP,3,0.083\nmicro-F1,1,0.461\nmicro-F1,3,0.247\n", True),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "suffix", "content", "found"), SOUND)
def test_read_right(tmp_path, reader, suffix, content, found):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reader(put(tmp_path, suffix, content)) == found


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("value", [2**62, -(2**62)])
def test_parquet_of_dates_beyond_those_of_python(tmp_path, unit, value):
    content = parquet(lambda pa: {"row": [0], "label": pa.array([value], pa.timestamp(unit))})
    path = put(tmp_path, ".parquet", content)
    with damaged(path, match="damaged|a name"):
        truth(path)


# -- saved models ---------------------------------------------------------------------------------------------------


MODELS = doors.TRAINED | {"PLT": {"trees": 2}, "PfastreXML": {"trees": 2, "max_leaf": 2}}
OTHERS = {"FastXML", "ClusterNetwork", "GraphTowers"}
"""Whose arrays have the kinds and checks of those that are tried."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """``trained(name)``: the folder of a small model, its arrays by name."""

    @functools.cache
    def train(name: str):
        folder = tmp_path_factory.mktemp("models") / name
        model = getattr(xc.models, name)(**MODELS[name])
        model.fit(np.eye(6, 4, dtype=np.float32), np.eye(6, 3, dtype=np.float32)).save(folder)
        with np.load(folder / "arrays.npz") as stored:
            return folder, {name: stored[name] for name in stored.files}

    return train


@pytest.fixture
def load(trained, tmp_path):
    """``load(model, array=change, ...)``: what is read of a model some of whose arrays another hand changed."""

    def changed(model: str, **changes):
        folder, arrays = trained(model)
        arrays = arrays | {name: change(arrays[name]) for name, change in changes.items()}
        files = {"arrays.npz": inputs.npz(arrays), "model.json": (folder / "model.json").read_bytes()}
        return xc.models.load(doors.put(sealed(files), Door("", None, None, suffix=""), tmp_path))

    return changed


@pytest.mark.parametrize("model", sorted(MODELS.keys() - OTHERS))
@pytest.mark.parametrize(
    "change",
    [
        lambda array: array[None],
        lambda array: array.astype("U"),
        lambda array: array.astype("i8").astype("M8[s]"),
        lambda array: array.astype("f8" if array.dtype.kind in "iu" else "i8"),
        lambda array: array * (np.nan if array.dtype.kind == "f" else 0.5),
    ],
    ids=["one more dimension", "texts", "dates", "another kind", "no numbers"],
)
def test_each_array_of_a_model_is_of_the_kind_and_shape_that_was_saved(load, trained, model, change):
    """They went as far as a kernel's compiler, or into the scores."""
    for name, array in trained(model)[1].items():
        if array.dtype.kind in "iuf":
            with damaged("input", match="incomplete"):
                load(model, **{name: change})


@pytest.mark.parametrize(
    ("model", "name", "change", "match"),
    [
        *(
            (model, name, lambda array: np.full_like(array, np.inf), "finite")
            for model, name in (("OneVsRest", "bias"), ("PLT", "weight"), ("PfastreXML", "p_data"),
                                ("PfastreXML", "m_square"), ("NeuralOneVsAll", "output"))
        ),
        ("LabelAttention", "output", lambda array: np.full_like(array, 1e30), r"output .*1e\+15"),
        ("LabelAttention", "features", lambda ids: np.minimum(ids, 1), "features that"),
        ("LabelAttention", "labels", lambda ids: np.minimum(ids, 1), "labels that"),
        ("Popularity", "label_counts", lambda _: np.array([0, 2, -1]), "counts"),
        ("FastXML", "p_data", lambda array: array.astype(np.complex64), "complex"),
    ],
)  # fmt: skip
def test_arrays_of_a_model_are_what_a_model_has(load, model, name, change, match):
    with damaged("input", match=match):
        load(model, **{name: change})


@pytest.mark.parametrize("dtype", [">i4", ">f8", np.float16, np.longdouble])
def test_arrays_come_in_types_that_kernels_know(load, trained, dtype):
    """A model saved in another order of bytes, or in numbers that numba has not, is read; it does not fail later."""
    arrays = trained("FastXML")[1]
    name = next(name for name in sorted(arrays) if arrays[name].dtype.kind == ("i" if dtype == ">i4" else "f"))
    assert load("FastXML", **{name: lambda array: array.astype(dtype)}).predict(np.eye(4), 2).ids.shape == (4, 2)


def test_parameters_of_a_model_are_checked_when_it_is_read(tmp_path):
    model = xc.models.ClusterNetwork(dim=3, epochs=1, max_leaf=2).fit(np.eye(8, 4), np.eye(8, 6))
    model.set_params(beam="\0").save(tmp_path / "model")
    with damaged("model", match="beam must"):
        xc.models.load(tmp_path / "model")


# -- files that claim or are more than they hold, archives, parameters -------------------------------------------------


def test_a_large_id_costs_no_byte_a_label(tmp_path):
    """The largest id there can be took 2 GB to look whether one stood twice; so did rows whose ids fall."""
    resource = pytest.importorskip("resource", reason="this system does not say how much memory was used")
    path = put(tmp_path, ".txt", b"1 2147483647\n2147483646:1\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert formats.read_predictions(path, "xc").n_labels == 2147483647

    def ranked(*ids):
        return xc.TopK.from_scores(csr_matrix((np.ones(len(ids)), ids, [0, len(ids)]), shape=(1, 2147483647)), 2)

    assert ranked(2147483646, 0).ids.tolist() == [[0, 2147483646]]
    with pytest.raises(ArgumentError, match="5 twice"):
        ranked(5, 2147483646, 5)
    unit = 1 << (20 if sys.platform == "darwin" else 10)  # of ru_maxrss, per MB
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit < 500


@pytest.mark.parametrize("members", [[("", b"x", 0, 8)], [("./", b"", 0, 0), (".", b"x", 0, 8)]])
def test_an_archive_of_members_without_names(tmp_path, members):
    (tmp_path / "a.zip").write_bytes(inputs.zipped(members))
    with damaged("a.zip", match="without a name"):
        download.unpack(tmp_path / "a.zip", tmp_path / "files", progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("name", ["folder", "predictions"])
@pytest.mark.parametrize("value", ["[" * 5000, "~nobody/at/all", "a\0b", [1], 3.5])
def test_a_parameter_that_no_path_can_be(name, value):
    with pytest.raises(DataMissing, match=f"parameter {name}") as caught:
        parameters.check({name: value})
    assert len(str(caught.value)) < 300


def test_no_message_is_endless():
    with pytest.raises(ArgumentError, match=r"got '1{996}\.\.\.$"):
        parameters.check({"scale": "1" * 5000})


# -- the slow reader itself ----------------------------------------------------------------------------------------------


def test_the_slow_reader_rounds_as_the_standard_does():
    rng = random.Random(0)
    for _ in range(300):
        text = inputs.number(rng)
        try:
            found = slow.float32(text)
        except slow.Refused:
            assert abs(float(text)) > 3.4e38
            continue
        assert found == float(np.float32(float(text))), text  # texts this short lie beside no middle of two float32
