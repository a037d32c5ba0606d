"""What fuzzing found (``make fuzz``), each with the smallest input: a stranger's file is refused by name, or read right."""

from __future__ import annotations

import gzip
import random
import re
import shutil
import sys
import warnings
import zipfile

import numpy as np
import pytest
import scipy.io
from scipy.sparse import csr_matrix

import xcrepro as xc
from tests.fuzz import __main__ as fuzz
from tests.fuzz import inputs, slow
from tests.fuzz.doors import DOORS, Door, resealed, sealed
from xcrepro import calibrate, formats, propensity, results, scale
from xcrepro.data import download, names, read, registry, splits, stream
from xcrepro.errors import ArgumentError, DataError, DataMissing
from xcrepro.formats.index import Index
from xcrepro.inputs import parameters
from xcrepro.metrics.state import State
from xcrepro.predictions import read_calibration_npz
from xcrepro.published.record import read_printed
from xcrepro.published.results import audit_results
from xcrepro.reports import report as reports
from xcrepro.repro import notebooks, recorded, recording, same

DIGITS = b"1" * 400
MANY = b"1" * 5000
RESULT = (
    b'{"name": "m", "dataset": "d", "values": {"P@1": 0.5}, "options": {}, "version": "0", "note": "", '
    b'"truth": {"fingerprint": "a", "points": 1, "labels": 1, "pairs": 1}}'
)
PRINTED = (
    b"source,row,dataset,method,variant,metric,k,printed,value,reading,stderr,note\n"
    b"me:table1,%s,D,m,,P,%s,54.2,%s,corrected,,a typo\n"
)
ARFF = b"@relation 'x: -C -1'\n@attribute a %s\n@attribute l {0,1}\n@data\n%s,1\n"


def predictions(name):
    return lambda path: formats.read_predictions(path, name, n_labels=12)


def dataset(path):
    return formats.read_dataset(path, "arff")


@pytest.mark.parametrize(
    ("reader", "suffix", "content", "message"),
    [
        (predictions("lists"), ".json", b"[[[1, " + DIGITS + b"]]]", "the score a finite number"),
        (predictions("jsonl"), ".jsonl", b'{"labels": [1], "scores": [' + DIGITS + b"]}\n", "a finite number"),
        (predictions("csv"), ".csv", gzip.compress(b"", mtime=0), "row, label, score once"),
        (predictions("csv"), ".csv", b'row,label,score\n0,1,"0.5\n', "unexpected end of data"),
        (dataset, ".arff", ARFF % (b"{1e300, 2}", b"1e300"), "'1e300' of 'a', expected one that float32 can hold"),
        (dataset, ".arff", ARFF % (b"{inf, 2}", b"inf"), "'inf' of 'a', expected one that float32 can hold"),
        (registry.read, ".toml", b'name = "a"\nsplits = ' + MANY, "no TOML"),
        (registry.read, ".toml", b'name = "' + DIGITS + b'"', "100 at most"),
        (registry.read, ".toml", b'name = "a"\nlabel_names = "' + DIGITS + b'"', "at most 255 bytes"),
        (registry.read, ".toml", b'name = "a"\n[propensity]\nA = 1e9999999999999999999999', "no TOML"),
        (registry.read, ".toml", b"name = " + b"[" * 3000, "no TOML"),
        (registry.read, ".toml", b'name = "a"\n[propensity]\nA = 1e400', r"propensity\.A = 1E\+400"),
        (names.read_label_names, ".txt", b'{"0": "a", "' + MANY + b'": "b"}', "another kind"),
        (audit_results, ".csv", b"metric,k,value\nP," + DIGITS + b",0.5\n", "a whole number from 1"),
        (audit_results, ".csv", b"method,P@" + MANY + b"\nm,0.5\n", "columns such as P@1"),
        (audit_results, ".csv", b"method,P@1\nm," + b"1" * 140_000, "line 2: found field larger"),
        (results.read, ".json", RESULT.replace(b"0.5", DIGITS), "the value 'P@1'"),
        (results.read, ".json", RESULT.replace(b"P@1", b"P@" + MANY), "a metric and k"),
        (read_printed, ".csv", b"a\n1,2\n1,2,3\n", "no table"),
        (read_printed, ".csv", b"\xff", "no table"),
        (read_printed, ".csv", b"a\n1,2\n", "more cells than columns"),
        (read_printed, ".csv", PRINTED % (b"1" * 19, b"1", b"1"), "line 2: found row '1111.*18 digits at most"),
        (read_printed, ".csv", PRINTED % (b"1", b"1" * 19, b"1"), "line 2: found k '1111.*18 digits at most"),
        (
            read_printed,
            ".csv",
            PRINTED % (b"1", b"1", DIGITS),
            "line 2: found value '1111.*a number that float64 can hold",
        ),
        (same.read, ".csv", b"a\n1,2\n", "more cells than columns"),
        (calibrate.load, ".json", b'{"format": ' + b"[" * 100_000, "no whole calibrator"),
        # Once a matter of minutes: each in a time that grew with the square or the cube of the length.
        (predictions("pairs"), ".pred", b"1:" + b"1" * 1_000_000 + b"x\n", "the score '1111"),
        (audit_results, ".csv", b"method,a" + b" " * 100_000 + b"b\nm,0.5\n", "columns method, a   "),
    ],
)
def test_refused_by_name(tmp_path, reader, suffix, content, message):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        reader(path)


def test_a_member_of_an_archive_without_a_name(tmp_path):
    path = tmp_path / "a.txt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "1 2\n0:1\n")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"x1 2", b"\x001 2").replace(b"x" + data[-22:], b"\0" + data[-22:]))
    assert read.read_sparse(path).toarray().tolist() == [[1, 0]]


def test_a_header_that_goes_on_beyond_what_is_looked_at(tmp_path):
    """With a byte order mark before it, the rest of the line was taken for a row."""
    path = tmp_path / "a.txt"
    for mark, rows in ((b"", 0), (b"\xef\xbb\xbf", 0)):
        path.write_bytes(mark + b"0 3".ljust(4094) + b"\n" * (rows + 1))
        assert read.read_sparse(path).shape == (rows, 3)
        path.write_bytes(mark + b"1 3".ljust(4200) + b"\n")
        with pytest.raises(DataError, match="expected a header"):
            read.read_sparse(path)


def test_a_repeated_label_where_rows_are_still_learnt(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"[[1], [2, 2]]")
    with pytest.raises(DataError, match="label '2' twice in row 1"):
        formats.read_truth(path, index=Index(learn_rows=True))


def test_a_saved_score_beyond_float32(tmp_path):
    """Minus infinity stands where no label is; the cast warned."""
    for score, found in ((1e300, np.inf), (-1e300, None), (3.4028235e38, np.finfo(np.float32).max)):
        np.savez(tmp_path / "a.npz", ids=[[3]], scores=np.array([[score]]), n_labels=5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if found is None:
                with pytest.raises(DataError, match=r"score -1e\+300 for label 3 at row 0, place 0"):
                    xc.TopK.load(tmp_path / "a.npz")
            else:
                assert xc.TopK.load(tmp_path / "a.npz").scores.tolist() == [[found]]


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_small_ids_without_a_sign(tmp_path, kind):
    """They were asked for a -1."""
    path = tmp_path / "a.npz"
    ids = np.array([[3]], kind)
    np.savez(path, prediction_ids=ids, scores=[[0.5]], true_positives=[[False]], labels=np.zeros((0, 2), kind))
    assert read_calibration_npz(path)[0].ids.tolist() == [[3]]


MODELS = [
    xc.models.Popularity(),
    xc.models.OneVsRest(),
    xc.models.PLT(trees=2),
    xc.models.PfastreXML(trees=2, max_leaf=2),
    xc.models.NeuralOneVsAll(dim=3, epochs=1),
    xc.models.TwoTowers(dim=3, epochs=1),
    xc.models.LabelAttention(dim=3, epochs=1),
]


def with_arrays(folder, model, **changes):
    """A saved model some of whose arrays another hand changed: name -> what is made of it."""
    model.fit(np.eye(6, 4, dtype=np.float32), np.eye(6, 3, dtype=np.float32)).save(folder)
    with np.load(folder / "arrays.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays |= {name: change(arrays[name]) for name, change in changes.items()}
    files = {"arrays.npz": inputs.npz(arrays), "model.json": (folder / "model.json").read_bytes()}
    for file, data in sealed(files).items():
        (folder / file).write_bytes(data)
    return arrays


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
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
def test_each_array_of_a_model_is_of_the_kind_and_shape_that_was_saved(tmp_path, model, change):
    """They went as far as a kernel's compiler, or into the scores."""
    arrays = with_arrays(tmp_path / "model", model)
    for name in [name for name, array in arrays.items() if array.dtype.kind in "iuf"]:
        with_arrays(tmp_path / "model", model, **{name: change})
        with pytest.raises(DataError, match="an incomplete model"):
            xc.models.load(tmp_path / "model")


@pytest.mark.parametrize(("model", "name"), [(1, "bias"), (2, "weight"), (3, "p_data"), (3, "m_square"), (4, "output")])
def test_weights_of_a_model_are_finite(tmp_path, model, name):
    with_arrays(tmp_path / "model", MODELS[model], **{name: lambda array: np.full_like(array, np.inf)})
    with pytest.raises(DataError, match="that are not all finite"):
        xc.models.load(tmp_path / "model")


def test_weights_of_a_net_are_none_that_overflow(tmp_path):
    with_arrays(tmp_path / "model", MODELS[-1], output=lambda array: np.full_like(array, 1e30))
    with pytest.raises(DataError, match="output that are not float32, 1e\\+15 at most"):
        xc.models.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["features", "labels"])
def test_ids_of_a_net_stand_once_each(tmp_path, name):
    for change in (lambda ids: ids[::-1], lambda ids: np.minimum(ids, 1)):
        with_arrays(tmp_path / "model", MODELS[-1], **{name: change})
        with pytest.raises(DataError, match=f"{name} that are no ids below ., each above the one before"):
            xc.models.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("counts", "sound"), [(np.array([0, 2, 1], np.uint8), True), ([0, 2, -1], False), ([0, 9, 1], False)]
)
def test_counts_of_labels_are_sorted_and_are_counts(tmp_path, counts, sound):
    with_arrays(tmp_path / "model", MODELS[0], label_counts=lambda _: np.asarray(counts))
    if sound:
        assert xc.models.load(tmp_path / "model").predict(np.eye(4), 3).ids[0].tolist() == [1, 2, 0]
    else:
        with pytest.raises(DataError, match="counts of labels are none of 6 points"):
            xc.models.load(tmp_path / "model")


@pytest.mark.parametrize("bias", ["x", [[]], None])
def test_parameters_of_a_model_that_predicts_are_checked(bias):
    model = xc.models.FastXML(trees=1).fit(np.eye(6, 4), np.eye(6, 3)).set_params(bias=bias)
    with pytest.raises(ArgumentError, match="bias must be"):
        model.predict(np.eye(4), 2)


def test_parameters_of_a_model_are_checked_when_it_is_read(tmp_path):
    model = xc.models.ClusterNetwork(dim=3, epochs=1, max_leaf=2).fit(np.eye(8, 4), np.eye(8, 6))
    model.set_params(beam="\0").save(tmp_path / "model")
    with pytest.raises(DataError, match="beam must be"):
        xc.models.load(tmp_path / "model")


def test_a_model_whose_class_is_a_list(tmp_path):
    about = '{"class": [], "parameters": {}, "files": {}, "n_features": 1, "n_labels": 1}'
    (tmp_path / "model.json").write_text(about)
    with pytest.raises(DataError, match=r"class \[\]"):
        xc.models.load(tmp_path)


@pytest.mark.parametrize(("largest", "message"), [(2**64 - 1, "beyond int64"), (3, "")])
def test_ids_without_a_sign(tmp_path, largest, message):
    """They met -1, the absent place: an overflow, or the largest of them taken for it."""
    path = tmp_path / "a.npz"
    ids = np.array([[largest]], np.uint64)
    np.savez(path, prediction_ids=ids, scores=[[0.5]], true_positives=[[False]], labels=np.zeros((0, 2), np.uint64))
    if message:
        with pytest.raises(DataError, match=message):
            read_calibration_npz(path)
    else:
        assert read_calibration_npz(path)[0].ids.tolist() == [[3]]


def test_dense_arrays_of_any_claim(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.array([[0, 1], [2, 0]], np.float16))
    assert formats.read_truth(path).toarray().tolist() == [[0, 1], [1, 0]]
    for rows in (2**31, 2**31 - 2, 2**24 + 1):
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 0)}}".ljust(117) + "\n"
        path.write_bytes(b"\x93NUMPY\x01\x00v\x00" + header.encode())
        for reader in (formats.read_truth, formats.read_predictions, formats.read_features):
            with pytest.raises(DataError, match=rf"shape \({rows}, 0\)"):
                reader(path)
    for dtype in (">f4", ">i2", np.longdouble):
        np.save(path, np.array([[0, 1], [2, 0]], dtype))
        assert formats.read_truth(path).toarray().tolist() == [[0, 1], [1, 0]]
    path.write_bytes(
        path.read_bytes()[:128] + b"\1" + b"\0" * 5 + b"\xf0\x7f" + bytes(24)
    )  # a NaN that warns when it is cast
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00v\x00" + header.encode() + path.read_bytes()[128:])
    with pytest.raises(DataError, match="nan in row 0, column 0"):
        formats.read_features(path)


def test_names_may_be_long_numbers(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_bytes(MANY + b"\ta\n")
    assert names.read_label_names(path).names == (f"{MANY.decode()}\ta",)


def test_a_filter_of_one_endless_line(tmp_path, monkeypatch):
    path = tmp_path / "filter.txt.gz"
    path.write_bytes(gzip.compress(b"1 " * 1000, mtime=0))
    monkeypatch.setenv("XCREPRO_MAX_LINE", "100")
    with pytest.raises(DataError, match="line 1: found a line of more than 100 bytes"):
        splits.read_filter(path)


def test_a_small_matrix_that_claims_too_many_rows(tmp_path):
    path = tmp_path / "a.npz"
    empty = np.zeros(0, np.int32)
    stored = {"format": b"csc", "shape": [2**31 - 1, 1], "data": np.zeros(0), "indices": empty, "indptr": [0, 0]}
    np.savez(path, **stored)

    with pytest.raises(DataError, match="2,147,483,647 rows, of which 2 at most hold something"):
        read.read_sparse(path)


def test_a_large_id_costs_no_byte_a_label(tmp_path):
    """The largest id there can be took 2 GB to look whether one stood twice; so did rows whose ids fall."""
    resource = pytest.importorskip("resource", reason="this system does not say how much memory was used")
    path = tmp_path / "a.txt"
    path.write_text("1 2147483647\n2147483646:1\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert formats.read_predictions(path, "xc").n_labels == 2147483647
    for ids in ([2147483646, 0], [5, 2147483646, 5]):
        scores = csr_matrix((np.ones(len(ids)), ids, [0, len(ids)]), shape=(1, 2147483647))
        if len(ids) == 2:
            assert xc.TopK.from_scores(scores, 2).ids.tolist() == [[0, 2147483646]]
        else:
            with pytest.raises(ArgumentError, match="label 5 twice in row 0"):
                xc.TopK.from_scores(scores, 2)
    unit = 1 << (20 if sys.platform == "darwin" else 10)  # of ru_maxrss, per MB
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit < 500


@pytest.mark.parametrize("dtype", [">i4", ">f8", np.float16, np.longdouble, np.complex64])
def test_arrays_come_in_types_that_kernels_know(tmp_path, dtype):
    """A model saved in another order of bytes, or in numbers that numba has not, is read or refused; it does not fail later."""
    model = xc.models.FastXML(trees=1)
    arrays = with_arrays(tmp_path / "model", model)
    name = next(name for name in sorted(arrays) if arrays[name].dtype.kind == ("i" if dtype == ">i4" else "f"))
    with_arrays(tmp_path / "model", model, **{name: lambda array: array.astype(dtype)})
    if dtype is np.complex64:
        with pytest.raises(DataError, match="complex"):
            xc.models.load(tmp_path / "model")
    else:
        assert xc.models.load(tmp_path / "model").predict(np.eye(4), 2).ids.shape == (4, 2)


# -- Parquet, archives, blocks, notebooks and what is kept -----------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"labels": [3]}, "labels 3, scores .* lists of one length"),
        ({"labels": [[3], None]}, "labels None"),
        ({"row": [0.5], "label": [3]}, "a row number or a row id"),
    ],
)
def test_parquet_of_another_form(tmp_path, columns, message):
    pa = pytest.importorskip("pyarrow", reason="not installed: pip install 'xcrepro[formats]'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="not installed: pip install 'xcrepro[formats]'")

    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=message):
        formats.read_truth(tmp_path / "a.parquet", n_labels=12)


def test_parquet_with_a_name_that_is_no_text(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="not installed: pip install 'xcrepro[formats]'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="not installed: pip install 'xcrepro[formats]'")

    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"labels": [[3]]}), path)
    path.write_bytes(path.read_bytes().replace(b"labels", b"label\xec"))
    with pytest.raises(DataError, match="Parquet"):
        formats.read_truth(path, n_labels=12)


def test_matlab_flags_that_are_no_whole_number(tmp_path):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"Y": np.eye(3)})
    content = bytearray(path.read_bytes())
    assert content[136] == 6  # unsigned numbers of 32 bits
    content[136] = 9  # float64
    path.write_bytes(content)
    with pytest.raises(DataError, match="whole number"):
        formats.read_truth(path)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_parquet_of_dates_beyond_those_of_python(tmp_path, unit):
    pa = pytest.importorskip("pyarrow", reason="not installed: pip install 'xcrepro[formats]'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="not installed: pip install 'xcrepro[formats]'")

    for value in (2**62, -(2**62)):
        columns = {"row": [0], "label": pa.array([value], pa.timestamp(unit))}
        parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
        with pytest.raises(DataError, match=r"a damaged Parquet file|a whole number or a name"):
            formats.read_truth(tmp_path / "a.parquet", n_labels=12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda files: [("", b"x", 0, 8)], "a member without a name"),
        (lambda files: [("./", b"", 0, 0), (".", b"x", 0, 8)], "a member without a name"),
    ],
)
def test_an_archive_of_members_without_names(tmp_path, change, message):
    (tmp_path / "a.zip").write_bytes(inputs.zipped(change(None)))
    with pytest.raises(DataError, match=message):
        download.unpack(tmp_path / "a.zip", tmp_path / "files", progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize("packing", [8, 12, 14])
def test_an_archive_damaged_anywhere(tmp_path, packing):
    """Each way of packing has its own words for damage, and a damaged directory points to where no file is."""
    whole = inputs.zipped([("a/train.txt", b"1 2 3\n0 0:1\n" * 40, 0, packing)])
    rng = random.Random(packing)
    for _ in range(400):
        data = bytearray(whole)
        data[rng.randrange(len(data))] = rng.randrange(256)
        (tmp_path / "a.zip").write_bytes(bytes(data[rng.randrange(2) * rng.randrange(60) :]))
        try:
            download.unpack(tmp_path / "a.zip", tmp_path / "files", progress=False)
        except DataError:
            assert not (tmp_path / "files").exists()
        else:
            shutil.rmtree(tmp_path / "files")


def test_an_npz_that_is_said_to_be_dense(tmp_path):
    np.savez(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", x=np.eye(2), y=np.eye(2))
    for name, message in (("a", "found no array"), ("b", "the arrays x, y")):
        with pytest.raises(DataError, match=message):
            formats.read_truth(tmp_path / f"{name}.npz", "npy")


CSR = {"format": b"csr", "shape": [2, 3], "data": [1.0, 2.0], "indices": [2, 0], "indptr": [0, 2, 2]}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (CSR | {"format": np.zeros(0)}, "a matrix in"),
        (CSR | {"format": np.array(["csr"])}, "a matrix in"),
        (CSR | {"shape": [2**63 - 1, 3]}, "a row an offset, and one more"),
        (CSR | {"shape": [[2, 3]]}, "two whole numbers"),
        (CSR | {"shape": [-1, 3], "indptr": np.zeros(0, int)}, "a row an offset, and one more"),
        (CSR | {"indptr": [0.0, 2, 2]}, "offsets float64"),
        (
            CSR | {"shape": [0, -1], "indptr": [0], "data": [], "indices": np.zeros(0, int)},
            "at most 2147483647 columns",
        ),
        (CSR | {"shape": [0, 3], "indptr": [0], "data": [], "indices": []}, "whole numbers in one dimension"),
        (CSR | {"data": np.array(["", ""])}, "real numbers"),
        (CSR | {"indices": np.array([2**63, 0], np.uint64)}, "beyond int64"),
    ],
)
def test_a_matrix_in_blocks_is_checked_as_a_whole_one(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=message):
        list(stream.blocks(tmp_path / "a.npz", 2))
    np.savez(tmp_path / "a.npz", pair="another", **{f"{part}_{name}": CSR[name] for part in "XY" for name in CSR})
    with pytest.raises(DataError, match="a pair of the form 'another'"):
        list(stream.blocks(tmp_path / "a.npz", 2))


@pytest.mark.parametrize("dtype", [">i4", np.uint64, np.int16])
def test_a_matrix_in_blocks_whose_rows_are_in_no_order(tmp_path, dtype):
    """What was read could not be written to, and so not be sorted."""
    np.savez(tmp_path / "a.npz", **CSR | {"indices": np.array([2, 0], dtype), "data": np.array([1, 2], ">f4")})
    (block,) = stream.blocks(tmp_path / "a.npz", 2)
    assert block.toarray().tolist() == [[2, 0, 1], [0, 0, 0]]


BLOCK = {"truth_indptr": [0, 1], "truth_indices": [2], "ids": [[1]], "scores": [[0.5]], "n_labels": 3, "first_row": 0}


@pytest.mark.parametrize("complete", [[1.0, 1.0], [np.nan], [-1.0], ["1"], 1.0, [[1.0]], [True]])
def test_label_counts_of_a_block_are_checked(tmp_path, complete):
    np.savez(tmp_path / "a.npz", **BLOCK, n_relevant=complete)
    with pytest.raises(DataError, match="n_relevant"):
        scale.read_block(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("columns", "about", "message"),
    [
        ({}, {"k": "4294967296"}, "k = 4,294,967,296 of 1 rows"),
        ({}, {"k": "16777217"}, "k = 16,777,217 of 1 rows"),
        ({}, {"k": "-1"}, "k = -1|at most k = -1"),
        ({}, {"n_labels": "1" * 30}, "n_labels of shape"),
        ({}, {"first_row": "9" * 5000}, "three whole numbers"),
        ({"scores": [[-1e300]]}, {}, "minus infinity where the label is -1"),
        ({"labels": [[2**32 + 1]]}, {}, "label 4294967297 in column labels"),
        ({"labels": [[-1]]}, {}, "label -1 in column labels"),
        ({"labels": [[1.5]]}, {}, "lists of whole numbers"),
        ({"scores": [["0.5"]]}, {}, "lists of whole numbers"),
        ({"truth": [[None]]}, {}, "lists of whole numbers"),
        ({"labels": [[1, None]]}, {}, "nulls in column labels"),
        ({"n_relevant": [None]}, {}, "column n_relevant"),
        ({"n_relevant": ["1"]}, {}, "column n_relevant"),
    ],
)
def test_a_block_of_parquet_of_another_form(tmp_path, columns, about, message):
    pa = pytest.importorskip("pyarrow", reason="not installed: pip install 'xcrepro[scale]'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="not installed: pip install 'xcrepro[scale]'")

    def write(columns, about):
        about = {"xcrepro": "xcrepro block 1", "k": "1", "n_labels": "3", "first_row": "0"} | about
        table = pa.table({"truth": [[2]], "labels": [[1]], "scores": [[0.5]]} | columns)
        parquet.write_table(table.replace_schema_metadata(about), tmp_path / "a.parquet")

    write({}, {})
    assert scale.read_block(tmp_path / "a.parquet").top.ids.tolist() == [[1]]
    write(columns, about)
    with pytest.raises(DataError, match=message):
        scale.read_block(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["n_labels", "first_row"])
def test_a_block_of_zarr_whose_numbers_are_none(tmp_path, name):
    pytest.importorskip("zarr", reason="not installed: pip install 'xcrepro[scale]'")
    about = {"format": "xcrepro block 1", **BLOCK}
    for value in (3.7, "3", None, 2**70, 2**63):
        files = inputs.zarr_block({part: np.array(held) for part, held in about.items()} | {name: np.array(value)})
        fuzz.put(files, Door("zarr", None, None, suffix=".zarr"), tmp_path)
        with pytest.raises(DataError, match=name):
            scale.read_block(tmp_path / "input.zarr")


def test_a_block_with_a_nan_that_warns(tmp_path):
    scores = np.array([[0x7FF0000000000001]], np.uint64).view(np.float64)
    np.savez(tmp_path / "a.npz", **BLOCK | {"scores": scores})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match="NaN"):
            scale.read_block(tmp_path / "a.npz")


def test_a_block_of_zarr_claims_no_places(tmp_path):
    """Chunks that are not there are looked for, one by one, and filled in."""
    pytest.importorskip("zarr", reason="not installed: pip install 'xcrepro[scale]'")
    about = {"format": "xcrepro block 1", **BLOCK}
    files = inputs.zarr_block({part: np.array(held) for part, held in about.items()})
    for width in (b"99999999", b"2147483647"):
        changed = re.sub(rb'("shape": \[\s*1,\s*)1\b', rb"\g<1>" + width, files["ids/zarr.json"], count=1)
        fuzz.put(files | {"ids/zarr.json": changed}, Door("zarr", None, None, suffix=".zarr"), tmp_path)
        with pytest.raises(DataError, match=rf"ids of shape \(1, {width.decode()}\) in \d+ bytes"):
            scale.read_block(tmp_path / "input.zarr")
    fuzz.put(files, Door("zarr", None, None, suffix=".zarr"), tmp_path)
    assert scale.read_block(tmp_path / "input.zarr").top.ids.tolist() == [[1]]


CELL = '{"cell_type": "code", "source": "%s", "metadata": {"tags": ["parameters"]}}'


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("[" * 100_000, "not JSON"),
        ("[1]", "cell 1: a int"),
        ('[{"metadata": {}}]', "cell 1: no source"),
        ('[{"source": [1]}]', "cell 1: no source"),
        ('[{"source": ""}]', "cell 1: metadata"),
        ('[{"source": "", "metadata": "x"}]', "cell 1: metadata"),
        ('[{"source": "", "metadata": {"tags": 3}}]', "cell 1: metadata"),
        ('[{"source": "", "metadata": {"nbgrader": "x"}}]', "cell 1: metadata.nbgrader"),
        ('[{"source": "", "metadata": {}, "outputs": ["x"]}]', "cell 1: outputs"),
        (f"[{CELL % 'a = {[]: 1}'}]", "only lines `name = literal`"),
        (f"[{CELL % ('a = ' + '(' * 5000)}]", "not Python"),
        (f"[{CELL % ('a = 1' + chr(92) + 'u0000')}]", "not Python"),
    ],
)
def test_a_notebook_of_another_form(tmp_path, cells, message):
    path = tmp_path / "01_one.ipynb"
    path.write_text(f'{{"nbformat": 4, "cells": {cells}}}')
    with pytest.raises(DataError, match=message):
        notebooks.parameters(path)


@pytest.mark.parametrize(
    ("about", "table", "message"),
    [
        (b"[" * 100_000, b"", "no JSON"),
        (b'{"format": "xcrepro report 1"}', b"", "no title"),
        (b'{"format": "xcrepro report 1", "title": "a"}', b"", "no table"),
        (b'{"format": "xcrepro report 1", "title": "a"}', b"\xff", "no table"),
        (b'{"format": "xcrepro report 1", "title": "a"}', b"model,metric,k\n", "the columns model, metric, k"),
        (b'{"format": "xcrepro report 1", "title": "a"}', b"model,metric,k,value\na,P,1,x\n", "with numbers"),
    ],
)
def test_a_report_of_before_that_is_damaged(tmp_path, about, table, message):
    (tmp_path / "csv").mkdir()
    (tmp_path / "report.json").write_bytes(about)
    (tmp_path / "csv" / "metrics.csv").write_bytes(table)
    with pytest.raises(DataError, match=message):
        reports.read(tmp_path)


@pytest.mark.parametrize("name", ["folder", "predictions"])
@pytest.mark.parametrize("value", ["[" * 5000, "~nobody/at/all", "a\0b", [1], 3.5])
def test_a_parameter_that_no_path_can_be(name, value):
    with pytest.raises(DataMissing, match=f"parameter {name}") as caught:
        parameters.check({name: value})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", ["ks", "scales", "names", "models"])
def test_a_parameter_that_is_to_be_a_list(name):
    with pytest.raises(ArgumentError, match=f"parameter {name} must be a list"):
        parameters.check({name: 3})


@pytest.mark.parametrize(
    "text", ["[" * 5000, '{"a":' * 2000, "m" + '{"a":' * 2000, "(" * 150 + "1", "-" * 100_000 + "1"]
)
def test_a_parameter_of_endless_brackets_is_a_text(text):
    assert recording.value(text) == text


def test_an_empty_hierarchy_may_be_of_any_type():
    for dtype in ("M8[s]", "U3", float, object):
        assert propensity.ancestors(np.zeros((0, 2), dtype), 3).nnz == 0
    with pytest.raises(ArgumentError, match="whole numbers"):
        propensity.ancestors(np.zeros((1, 2), "M8[s]"), 3)


def test_an_implied_average_below_nothing(tmp_path):
    """P@3 of 0.08 beside a micro-F1@3 of 0.25 implies -1 labels a point, and with k = 1 that was divided by."""
    (tmp_path / "a.csv").write_text("metric,k,value\nP,1,0.798\nP,3,0.083\nmicro-F1,1,0.461\nmicro-F1,3,0.247\n")
    assert "micro_F1@1" in audit_results(tmp_path / "a.csv")["column"].tolist()


def test_a_record_whose_rows_begin_with_0(tmp_path):
    (tmp_path / "a.csv").write_text("table,row,column,value,sd\nprovenance,0,dataset,x,\n")
    with pytest.raises(DataError, match="row '0'"):
        recorded.read(tmp_path / "a.csv")


@pytest.mark.parametrize("fold", ["rows", "labels"])
def test_a_state_whose_parts_have_other_numbers_of_rows(tmp_path, fold):
    """A mean over no rows was divided by 0; over others than there were it was another number."""
    path = tmp_path / "a.npz"
    State([1], ["P", "macro-F1"]).add(np.eye(3), xc.TopK.from_scores(np.eye(3), 1)).save(path)
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    for n_rows in (0, 6) if fold == "rows" else (6,):  # fewer rows than labels are seen before
        np.savez(path, **resealed(arrays | {f"{fold}.n_rows": np.full_like(arrays[f"{fold}.n_rows"], n_rows)}))
        with pytest.raises(DataError, match=f"{fold} of {n_rows} rows, 3 in its header"):
            State.load(path)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("count", [2**63 - 1, 2**62, 2**52 + 1])
def test_counts_of_a_state_that_no_sum_can_hold(tmp_path, exact, count):
    """Their sum was below nothing, and a kernel walked out of its bins: the process was gone."""
    path = tmp_path / "a.npz"
    State([1, 3], ["ACE"], exact=exact).add(np.eye(3), xc.TopK.from_scores(np.eye(3) / 2, 3)).save(path)
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    for place in range(arrays["scores.n"].size):
        counts = arrays["scores.n"].copy()
        counts[place] = count
        np.savez(path, **resealed(arrays | {"scores.n": counts}))
        with pytest.raises(DataError, match="counts of more than 4,503,599,627,370,496 pairs"):
            State.load(path)


def test_no_message_is_endless():
    with pytest.raises(ArgumentError, match=r"got '1{996}\.\.\.$"):
        parameters.check({"scale": "1" * 5000})


def test_a_dense_array_without_rows_claims_no_places(tmp_path):
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 2147483647)}".ljust(117) + "\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + header.encode())
    assert formats.read_predictions(tmp_path / "a.npy").ids.shape == (0, 1)
    np.save(tmp_path / "a.npy", np.array([[0.5, -np.inf, 0.25], [-np.inf, -np.inf, 1]]))
    assert formats.read_predictions(tmp_path / "a.npy").ids.tolist() == [[0, 2], [2, -1]]


def test_a_record_that_is_no_text(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"table,row,column,value,sd\n\xff")
    with pytest.raises(DataError, match="no table"):
        recorded.read(tmp_path / "a.csv")


# -- the fuzzer itself ----------------------------------------------------------------------------------------------


QUICK = [door for door in DOORS if door.judge is not None and door.share >= 3]


@pytest.mark.parametrize("door", QUICK, ids=lambda door: door.name)
def test_readers_agree_with_the_slow_ones(door, tmp_path):
    if door.lacks:
        pytest.skip(f"{door.lacks} is not installed: pip install 'xcrepro[formats,scale]'")
    tally = fuzz.Tally()
    for number in range(200):
        fuzz.examine(door, 1, number, tmp_path, tally)
    assert not tally.finds, tally.finds
    assert tally.accepted > 15
    assert tally.refused > 15
    assert tally.judged > 75


@pytest.mark.parametrize(
    ("reader", "finds"),
    [
        (lambda path: 1 / 0, "ZeroDivisionError"),
        (lambda path: [[0, 0], []], "read"),
        (lambda path: read.read_sparse(path, n_columns=0), "refused, though it is to be read"),
    ],
)
def test_a_wrong_reader_is_found(tmp_path, reader, finds):
    door, tally = Door("broken", inputs.matrix, reader, slow.matrix), fuzz.Tally()
    for number in range(60):
        fuzz.examine(door, 0, number, tmp_path, tally)
    assert any(what.startswith(finds) for what in tally.finds), tally.finds


@pytest.mark.parametrize(
    ("reader", "finds"),
    [
        (lambda path: __import__("signal").raise_signal(9), "a crash"),
        (lambda path: __import__("time").sleep(60), "a hang"),
        (lambda path: bytearray(1 << 34), "MemoryError"),
    ],
)
def test_what_a_child_does_not_survive_is_found(tmp_path, monkeypatch, reader, finds):
    monkeypatch.setattr(fuzz, "DEADLINE", 0.6)
    tally = fuzz.Tally()
    fuzz.batch(Door("broken", inputs.filter_pairs, reader), 0, 0, 2, tmp_path, tally)
    assert any(what.startswith(finds) for what in tally.finds), tally.finds
    assert sum(tally.again.values()) == 2


def test_an_input_is_made_again_from_its_number():
    for door in DOORS:
        if door.name not in ("State", "saved model") and not door.lacks:
            first, again, *others = (fuzz.made(door, 0, number)[0] for number in (3, 3, 4, 5, 6))
            assert first == again
            assert any(first != other for other in others), door.name


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
