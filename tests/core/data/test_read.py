"""Reading: a slow oracle beside the kernel, every kind of fault planted, every decision of the module's table."""

from __future__ import annotations

import gzip
import io
import json
import re
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.fuzz import slow
from tests.refused import damaged, refused
from xcrepro.core.data import parsing, sources
from xcrepro.core.data.lines import text_lines
from xcrepro.core.data.read import read_jsonl_labels, read_labels, read_sparse, read_split, read_xc
from xcrepro.core.data.sources import npz_arrays
from xcrepro.core.errors import DataError, DataMissing

ANY_FILE = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


# -- the oracle: the fuzzer's slow reader ----------------------------------------------------------------------------


def oracle(text: str):
    """Rows as (sorted labels, sorted (id, value)) of the lines below the header."""
    return [slow.row(line, True, 31, 31) for line in slow.lines_of(text.encode()) if not line.startswith(b"#")]


def as_rows(matrix):
    return [
        [(int(i), v) for i, v in zip(matrix.indices[a:b], matrix.data[a:b], strict=True)]
        for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]


def labels_of(Y):
    return [[label for label, _ in row] for row in as_rows(Y)]


def assert_layout(matrix):
    assert isinstance(matrix, sp.csr_matrix)
    assert (matrix.data.dtype, matrix.indices.dtype) == (np.float32, np.int32)
    assert sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), matrix.shape).has_canonical_format
    matrix.check_format(full_check=True)


def bits(matrix):
    return matrix.shape, matrix.data.tobytes(), matrix.indices.tobytes(), matrix.indptr.tobytes()


# -- files as they come ---------------------------------------------------------------------------------------------

numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-3e38, 3e38).map(repr),
    st.floats(0, 10).map(lambda v: f"{v:g}"),
    st.floats(0, 10).map(lambda v: f"{v:f}"),
    st.integers(-(10**12), 10**12).map(str),
    st.sampled_from(["1", "1.", ".5", "+1", "-0", "0.0", "1e3", "1E+2", "00001.50", "16777217", "0." + "3" * 40]),
)
blank = st.sampled_from([" ", " ", " ", "  ", "\t", " \t "])
ids = st.lists(st.integers(0, 30), max_size=6, unique=True)


@st.composite
def bodies(draw):
    lines = []
    for _ in range(draw(st.integers(0, 8))):
        if draw(st.integers(0, 9)) == 0:
            lines.append("# a comment 1:2 nan")
        labels = draw(ids)
        entries = [f"{i}:{draw(numbers)}" for i in draw(ids)]
        line = ",".join(map(str, labels))
        if labels or not entries or draw(st.booleans()):
            line += "".join(draw(blank) + entry for entry in entries)
        else:
            line = draw(blank).join(entries)
        line += draw(st.sampled_from(["", "", " ", "\t", " # 3:4", "#x"]) if line else st.sampled_from(["", " "]))
        lines.append(line + draw(st.sampled_from(["", "\r"])))
    body = "".join(line + "\n" for line in lines)
    # Without its last newline a last blank line would be none.
    return body[:-1] if lines and lines[-1] and draw(st.booleans()) else body


@pytest.mark.filterwarnings("ignore:.*out of order")
@ANY_FILE
@given(body=bodies(), block=st.integers(12, 90), threads=st.sampled_from([1, 2, 3]))
def test_read_xc_is_what_the_oracle_reads(body, block, threads, tmp_path, monkeypatch):
    monkeypatch.setattr(parsing, "BLOCK_BYTES", block)
    expected = oracle(body)
    path = tmp_path / "a.txt"
    path.write_bytes(f"{len(expected)} 31 31\n{body}".encode())
    X, Y = read_xc(path, threads=threads)
    assert_layout(X)
    assert_layout(Y)
    assert X.shape == Y.shape == (len(expected), 31)
    assert as_rows(Y) == [[(label, 1) for label in labels] for labels, _ in expected]
    assert as_rows(X) == [entries for _, entries in expected]
    assert np.signbit(X.data).tolist() == [bool(np.signbit(v)) for _, row in expected for _, v in row]


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(numbers, st.decimals("-1e37", "1e37").map(str)), min_size=1, max_size=20))
@example(["1.000000059604644775390625"])  # the middle between two float32 numbers: to the even one
@example(["1.00000005960464477539062500000000000001"])  # just above it, which float64 cannot see
@example(["1.00000017881393432617187499999999999999", "1.000000178813934326171875"])
@example(
    ["6.662004232406616", "0.05438374541699886", "5150031364525119e5", "1028758076635225e18"]
)  # float64 meets the middle
@example(["3.4028234663852886e38", "3.4028235677973362e38", "-3.4028235e+38"])
@example(["1e-45", "7e-46", "7.1e-46", "1.17549435e-38", "1.1754942e-38", "1e-400", "-1e-9999"])
@example(["123456789012345678901234567890", "0.000000000000000000000000000001234567890123456789", "0" * 400 + "1.5"])
@example(["9223372036854775807", "9223372036854775808", "922337203685477580.7e1", "99999999999.99999999"])
@example(["16777217", "16777219", "33554434", "2147483647", "8388608.5", "8388609.5", "0.1", "100e-2", "1e22", "1e38"])
def test_values_are_rounded_once(tmp_path, texts):
    path = tmp_path / "v.txt"
    path.write_text(f"1 {len(texts)}\n" + " ".join(f"{i}:{text}" for i, text in enumerate(texts)))
    got = read_sparse(path).data
    expected = np.array([slow.float32(text) for text in texts], np.float32)
    assert got.view(np.uint32).tolist() == expected.view(np.uint32).tolist()


# -- lines that the files above do not have ---------------------------------------------------------------------------


def test_comments_before_the_header_and_between_rows_are_no_rows(file):
    text = "#" + "long " * 2000 + "\n# two\n2 2 2\n# three\n0 0:1\n#\n1 x:1\n"
    with damaged("a.txt", line=7, match="'x'"):
        read_xc(file(text))
    X, _ = read_xc(file(text.replace("x:1", "1:1 # end")))
    assert X.toarray().tolist() == [[1, 0], [0, 1]]


def test_shapes_come_from_the_header_not_from_the_data(file):
    for text, n_rows in (("1 {}\n0 0:1", 1), ("0 {}", 0), ("0 {}\n", 0), ("0 {}\n# nothing\n", 0)):
        for more in ("", " # points features labels"):
            X, Y = read_xc(file("\ufeff" + text.format("100 50" + more)))  # a byte order mark is no part of the header
            assert (X.shape, Y.shape) == ((n_rows, 100), (n_rows, 50))


def test_ids_from_one(file):
    for text, which in (("1,3 1:0.5 3:2", True), ("0,2 1:0.5 3:2", "features"), ("1,3 0:0.5 2:2", "labels")):
        X, Y = read_xc(file(f"1 3 3\n{text}\n"), one_based=which)
        assert (X.indices.tolist(), Y.indices.tolist()) == ([0, 2], [0, 2])
    assert read_sparse(file("1 3\n1:1 3:1\n"), one_based=True).indices.tolist() == [0, 2]
    path = file("1 3 3\n1,3 0:0.5\n")
    with damaged(path, line=2, match="id 3, .*one_based=True"):
        read_xc(path)
    with damaged(path, line=2, match="id 0, .*1 to 3"):
        read_xc(path, one_based=True)


# -- unsorted and repeated ids --------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("block", [12, 1 << 20])
def test_unsorted_rows_are_sorted_and_said_once(file, monkeypatch, threads, block):
    monkeypatch.setattr(parsing, "BLOCK_BYTES", block)
    path = file("5 9 9\n1 0:1\n# a comment\n2 3:3 1:1\n5,4,0 8:1\n\n1,0 7:7 0:1 2:2\n")
    with pytest.warns(UserWarning, match=r"3 rows .*line 4\)") as said:
        X, Y = read_xc(path, threads=threads)
    assert len(said) == 1
    assert as_rows(X) == [[(0, 1)], [(1, 1), (3, 3)], [(8, 1)], [], [(0, 1), (2, 2), (7, 7)]]
    assert labels_of(Y) == [[1], [2], [0, 4, 5], [], [0, 1]]


def test_sorted_files_are_read_without_a_word(file):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_xc(file("2 9 9\n1 0:1 3:1\n1,2 0:1\n"))


@pytest.mark.parametrize("block", [12, 1 << 20])
@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("1 3:1 3:1", "id 3 twice"),
        ("1 3:1 0:1 3:2", "id 3 twice"),
        ("1,1 3:1", "label 1 twice"),
        ("2,1,2 3:1", "label 2 twice"),
    ],
)
def test_a_repeated_id_is_refused(file, monkeypatch, row, what, block):
    monkeypatch.setattr(parsing, "BLOCK_BYTES", block)
    with damaged("a.txt", line=4, match=what):
        read_xc(file(f"4 9 9\n1 0:1\n# comment\n{row}\n0 1:1\n0 bad\n"))


# -- planted faults -------------------------------------------------------------------------------------------------

TOO_LARGE = (2**31, 99999999999999999999999, 2**64, 2**64 + 1)
NO_NUMBERS = ("abc", "1:2", "0x1", "1,5", "1e", "1e+", "-", ".", "1_0")
FAULTS = [
    *((f"{label} 0:1", f"label id {label}", "0 to 2 (the header says 3 labels)") for label in (3, -1, *TOO_LARGE)),
    *((f"{label} 0:1", f"label id '{label}'", "whole number") for label in ("z", "1.0", "+1")),
    *((f"{labels} 0:1", "comma", "label") for labels in ("1,,2", "1,", ",1")),
    ("1,2:0.5", "'2:0.5'", "blank between"),
    *(
        (f"1 {column}:1", f"feature id {column}", "0 to 3 (the header says 4 features)")
        for column in (4, -1, *TOO_LARGE)
    ),
    *((f"1 {column}:1", f"feature id '{column}'", "whole number") for column in ("x", "1.5")),
    ("1 :1", "':1' without an id", "id:value"),
    ("1 2 3:1", "'2' without a value", "joined by commas"),
    ("1 0:1 3", "'3' without a value", "id:value"),
    *((f"1 {entry}", "'3:' without a value", "id:value") for entry in ("3:", "3: 0.5")),
    *((f"1 3:{value}", f"value '{value}'", "a number") for value in NO_NUMBERS),
    *((f"1 3:{value}", f"value '{value}'", "finite number") for value in ("nan", "-NaN", "inf", "-Infinity")),
    *((f"1 3:{value}", f"value '{value}'", "float32") for value in ("1e39", "-3.5e38", "1e999999999999")),
    ("1 0:1\r2:1", "carriage return", "before a newline"),
    ("1 0:1\0", "value '1\\x00'", "a number"),
    ("\xff 0:1", "label id", "whole number"),
]


@pytest.mark.parametrize(("row", "found", "expected"), FAULTS, ids=[repr(row) for row, *_ in FAULTS])
def test_a_fault_is_named_with_its_line(file, monkeypatch, row, found, expected):
    path = file(f"4 4 3\n0 0:1\n\n{row}\n1 bad later\n")
    for block, threads in ((12, 1), (12, 2), (1 << 20, 1)):
        monkeypatch.setattr(parsing, "BLOCK_BYTES", block)
        with damaged(path, line=4) as error:
            read_xc(path, threads=threads)
        assert found in error.value.found.replace("\0", "\\x00")
        assert expected in str(error.value)


def test_the_first_fault_of_the_file_is_the_one_named(file, monkeypatch):
    rows = ["0 0:1"] * 200
    rows[150], rows[60], rows[40] = "0 bad", "0 1:1 0:1 1:1", "0 1:nan"
    path = file("200 4 3\n" + "\n".join(rows))
    monkeypatch.setattr(parsing, "BLOCK_BYTES", 30)
    for expected in (42, 62, 152):
        for threads in (1, 2, 4):
            with damaged(path, line=expected):
                read_xc(path, threads=threads)
        rows[expected - 2] = "0 0:1"
        path.write_text("200 4 3\n" + "\n".join(rows))


# -- headers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reader", "text", "line", "words"),
    [
        (read_xc, "1 2\n0:1\n", 1, "'1 2', .*features labels.*read_sparse.*split"),
        (read_xc, "1,2 0:1\n", 1, "'1,2 0:1', .*n_features= and n_labels="),
        *((read_xc, f"{text}\n", 1, f"'{text}'") for text in ("-1 2 3", "1 2.0 3", "n d l", "1 2 3 4")),
        (read_xc, "\n1 2 3\n", 1, "'', .*header"),
        (read_xc, "1 99999999999 3\n\n", 1, "99999999999 features .*2147483647"),
        (read_xc, "# only\n", None, "comments"),
        (read_xc, "x" * 10000, 1, r"'x{57}\.\.\.'"),
        (read_sparse, "1 2 3\n0 1:1\n", 1, "'1 2 3', .*rows columns.*read_xc"),
        # rows that are not as many as it says
        (read_xc, "# c\n1 2 2\n0 0:1\n\n1 1:1\n", None, "3 rows, expected 1 .*line 2.*Mend"),
        (read_xc, "# c\n9 2 2\n0 0:1\n\n1 1:1\n", None, "3 rows, expected 9 .*line 2.*cut"),
        (read_xc, "1 2 2\n0 0:1\n\n\n", None, "3 rows, expected 1 .*blank lines"),
        # what the new format calls its ids
        (read_sparse, "1 3\n3:1\n", 2, "column id 3, .*0 to 2 .*3 columns"),
        (read_labels, "1 3\n3:1\n", 2, "label id 3, .*0 to 2 .*3 labels"),
    ],
)
def test_headers_and_what_does_not_fit_them(file, reader, text, line, words):
    with damaged("a.txt", line, match=words):
        reader(file(text))


def test_a_file_without_a_header_needs_both_widths(file):
    path = file("1 0:1\n1,2 3:1\n")
    X, Y = read_xc(path, n_features=4, n_labels=3)
    assert as_rows(X) == [[(0, 1)], [(3, 1)]]
    assert as_rows(Y) == [[(1, 1)], [(1, 1), (2, 1)]]
    for given_one in ({"n_features": 4}, {"n_labels": 3}):
        with damaged(path, line=1, match="header"):
            read_xc(path, **given_one)
    with damaged(path, line=2, match="feature id 3"):
        read_xc(path, n_features=3, n_labels=3)


def test_a_data_line_is_never_taken_for_a_header(file):
    # napkinXC takes the first line of this for a header and drops it.
    X, _ = read_xc(file("1 0:1 2:1\n2 1:1\n"), n_features=4, n_labels=3)
    assert X.shape == (2, 4)
    with damaged("a.txt", line=1, match="'7' without"):
        read_xc(file("1 7\n2 1:1\n"), n_features=9, n_labels=9)


def test_a_first_line_longer_than_any_header_is_data(file):
    entries = {i: i / 8 for i in range(3000)}
    line = "1 " + " ".join(f"{i}:{v}" for i, v in entries.items())
    X, _ = read_xc(file(line + "\n2 5:1\n"), n_features=3000, n_labels=3)
    assert X.shape == (2, 3000)
    assert X[0].toarray().ravel().tolist() == list(entries.values())
    with damaged("a.txt", line=1, match=r"'1 0:0.0 .*\.\.\.', .*header"):
        read_xc(file(line + "\n"))


def test_widths_may_widen_a_header_but_not_narrow_it_and_arguments_are_checked(file):
    path = file("1 4 3\n1 0:1\n")
    X, Y = read_xc(path, n_features=40, n_labels=30)
    assert (X.shape, Y.shape) == ((1, 40), (1, 30))
    assert read_xc(path, n_labels=30)[0].shape == (1, 4)
    assert read_labels(file("1 3\n0:1\n", "y.txt"), n_labels=5).shape == (1, 5)
    with refused("n_labels", 2):
        read_labels(file("1 3\n0:1\n", "y.txt"), n_labels=2)
    wrong = {"n_features": (3, -1, 2**31), "n_labels": (1.5,), "threads": (0, "2"), "one_based": ("both",)}
    for name, value in ((name, value) for name, values in wrong.items() for value in values):
        with refused(name, repr(value)):
            read_xc(path, **{name: value})


# -- what a file may be ---------------------------------------------------------------------------------------------

TEXT = "2 4 3\n0,1 0:0.5 3:2\n 1:1\n"
SYSTEM = ("__MACOSX/._a.txt", ".DS_Store", "._a.txt", "desktop.ini")


def zipped(*members) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members:
            archive.writestr(name, text)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt.gz", gzip.compress(TEXT.encode(), mtime=0)),
        ("a.txt", gzip.compress(TEXT.encode(), mtime=0)),  # the content decides
        ("a.txt.gz", TEXT.encode()),
        ("two.gz", gzip.compress(TEXT[:9].encode(), mtime=0) + gzip.compress(TEXT[9:].encode(), mtime=0)),
        ("a.zip", zipped(("folder/a.txt", TEXT))),
        ("a.zip", zipped(("folder/", ""), ("folder/a.txt", TEXT))),
        # what a system puts into archives is no second file
        ("a.zip", zipped(*[(junk, "x") for junk in SYSTEM], ("a.txt", TEXT))),
    ],
)
def test_packed_files(file, name, content):
    plain = read_xc(str(file(TEXT, "plain.txt")))
    packed = read_xc(file(content, name))
    assert [bits(m) for m in plain] == [bits(m) for m in packed]


def big_text() -> bytes:
    rng = np.random.default_rng(1)
    rows = "".join(f"{i % 7} {i % 90}:{value:.6g}\n" for i, value in enumerate(rng.random(4000)))
    return f"4000 90 7\n{rows}".encode()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("keep", [3, 12, 0.5, 0.99])
def test_a_truncated_gzip(file, keep, threads):
    packed = gzip.compress(big_text())
    kept = packed[: keep if keep > 1 else int(len(packed) * keep)]
    with damaged("a.gz", match="the end"):
        read_xc(file(kept, "a.gz"), threads=threads)


def test_a_fault_before_the_damage_is_named_first(file, monkeypatch):
    monkeypatch.setattr(parsing, "BLOCK_BYTES", 64)
    packed = gzip.compress(big_text().replace(b"\n3 ", b"\nx ", 1))
    with damaged("a.gz", line=5, match="'x'"):
        read_xc(file(packed[:-100], "a.gz"))


def damaged_archives():
    packed = bytearray(gzip.compress(big_text()))
    packed[-6] ^= 1
    yield packed, r"damaged .*\(CRC"
    packed = bytearray(zipped(("a.txt", big_text())))
    packed[2000] ^= 0xFF
    yield packed, "damaged"
    yield packed[:1000], "damaged"
    yield zipped(("a", TEXT), ("b", TEXT)), r"2 files \(a, b\)"
    yield zipped(), r"0 files \(none\)"
    locked = bytearray(zipped(("a", TEXT)))
    locked[6] |= 1
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    yield locked, "cannot be read"


def test_damaged_archives(file):
    for content, message in damaged_archives():
        with damaged("a.zip", match=message):
            read_xc(file(bytes(content), "a.zip"))


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked(file, monkeypatch):
    """Files of some kilobytes that claim 10 MB, where 1 MB is allowed: no more than that is ever held."""
    zeros, held = np.zeros(1_250_000), {}
    claims = io.BytesIO()
    np.savez_compressed(claims, ids=zeros)
    line = b"1 1:1\n"
    text = b"1700000 3 3\n" + line * 1_700_000
    monkeypatch.setattr(sources, "_RATIO_FROM", 1 << 20)
    packed = {"a.npz": claims.getvalue(), "a.gz": gzip.compress(text), "a.zip": zipped(("a.txt", text))}
    for name, content in packed.items():
        path = file(content, name)
        tracemalloc.start()
        with damaged(name, match=f"{len(content):,} bytes that unpack to .*XCREPRO_MAX_UNPACKED"):
            npz_arrays(path) if name == "a.npz" else sum(map(len, text_lines(path)))
        held[name] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert max(held.values()) < 2**21, held
    monkeypatch.setenv("XCREPRO_MAX_UNPACKED", "11000000")
    assert npz_arrays(path.with_name("a.npz"))["ids"].sum() == 0
    assert sum(1 for _ in text_lines(path.with_name("a.gz"))) == sum(1 for _ in text_lines(path)) == 1_700_001


@pytest.mark.parametrize("reader", [read_xc, read_sparse, read_labels, read_jsonl_labels])
def test_no_file_a_folder_an_empty_file(file, tmp_path, reader):
    for name in ("missing.txt", "missing.npz"):
        with pytest.raises(DataMissing, match=name):
            reader(tmp_path / name)
    (tmp_path / "folder.npz").mkdir()
    for folder in (tmp_path, tmp_path / "folder.npz"):
        with damaged(folder, match="folder"):
            reader(folder)
    for content in (b"", gzip.compress(b"")):
        if content and reader is read_jsonl_labels:
            continue
        with damaged("a.txt", match="empty"):
            reader(file(content))


# -- large files ----------------------------------------------------------------------------------------------------


class Endless(io.RawIOBase):
    """Rows, then comment lines up to ``size`` bytes, then rows again, made while they are read."""

    def __init__(self, head: bytes, size: int, tail: bytes) -> None:
        self.head, self.tail, self.left = head, tail, size
        self.filler = (b"#" + b" " * (1 << 18) + b"\n") * 4

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        if self.head:
            text, self.head = self.head, b""
        elif self.left > 0:
            text = self.filler
            self.left -= len(text)
        else:
            text, self.tail = self.tail, b""
        size = min(len(text), len(buffer))
        buffer[:size] = text[:size]
        self.head = text[size:]
        return size


def test_more_than_two_gigabytes_of_text(monkeypatch):
    monkeypatch.setattr(parsing, "BLOCK_BYTES", 3 << 20)
    stream = Endless(b"0:1\n", 2**31 + 2**28, b"1:2\n2:3\n")
    rows = parsing.read_rows("big", stream, parsing.Layout(ids=3), threads=2)
    assert rows.array("ids", np.int32).tolist() == [0, 1, 2]
    with damaged("big", line=6, match="'x'"):
        parsing.read_rows("big", Endless(b"0:1\n", 1, b"x:1\n"), parsing.Layout(ids=3), threads=1)


def test_offsets_pass_two_to_the_31():
    lens = [np.array([2**31 - 1, 2**31 - 1], np.int32), np.array([], np.int32), np.array([0, 5], np.int32)]
    assert parsing.offsets(lens).tolist() == [0, 2**31 - 1, 2**32 - 2, 2**32 - 2, 2**32 + 3]
    assert parsing.offsets(lens).dtype == np.int64


# -- labels ---------------------------------------------------------------------------------------------------------


def test_a_negative_label_value_is_refused(file, monkeypatch):
    for block in (12, 1 << 20):
        monkeypatch.setattr(parsing, "BLOCK_BYTES", block)
        with damaged("a.txt", line=5, match="-1 for label 2"):
            read_labels(file("3 5\n0:1\n# c\n\n1:1 2:-1\n"))


def test_a_pair_of_files(file):
    X, Y = read_split(file("2 3\n0:0.5\n\n", "x.txt"), file("2 4\n\n3:1\n", "y.txt"))
    assert (X.shape, Y.shape) == ((2, 3), (2, 4))
    with damaged("y.txt", match="1 rows, .*x.txt"):
        read_split(file("2 3\n0:0.5\n\n", "x.txt"), file("1 4\n3:1\n", "y.txt"))


# -- npz ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
def test_npz_of_any_layout(tmp_path, layout, kind, dtype):
    dense = np.array([[0, 1, 0], [0, 0, 0], [1, 0, 1]], dtype)
    path = tmp_path / "m.npz"
    sp.save_npz(path, kind(dense).asformat(layout))
    matrix = read_sparse(path)
    assert_layout(matrix)
    assert (matrix.toarray() == dense).all()
    assert read_sparse(path, n_columns=7).shape == (3, 7)


NPZ_FAULTS = [
    (read_sparse, ([1, 2], [1, 1], [0, 0, 2]), "id 1 twice"),
    (read_sparse, ([1, np.nan], [1, 2], [0, 0, 2]), "nan in row 1"),
    (read_labels, ([1, -1], [1, 2], [0, 1, 2]), "-1 in row 1"),
    (read_sparse, ([1j, 1], [1, 2], [0, 1, 2]), "complex numbers"),
]


def save_npz(path, data, ids, indptr):
    np.savez(path, format="csr", shape=(len(indptr) - 1, 3), data=np.array(data), indices=ids, indptr=indptr)


@pytest.mark.parametrize(("reader", "parts", "message"), NPZ_FAULTS)
def test_npz_is_checked_as_text_is(tmp_path, reader, parts, message):
    save_npz(tmp_path / "m.npz", *parts)
    with damaged("m.npz", match=message):
        reader(tmp_path / "m.npz")


def test_npz_that_is_none(tmp_path, file):
    path = tmp_path / "m.npz"
    for content in (b"", b"text", zipped(("a.txt", TEXT)), zipped(("format.npy", "x"))):
        path.write_bytes(content)
        for reader in (read_sparse, read_labels, read_xc):
            with damaged(path):
                reader(path)
    sp.save_npz(path, sp.eye(300, format="csr"))
    with damaged(path, match="or read_labels"):
        read_xc(path)
    content = bytearray(path.read_bytes())
    path.write_bytes(content[: len(content) // 2])
    with damaged(path, match="no readable"):
        read_sparse(path)
    np.savez(path, data=np.array([{}], dtype=object))
    with damaged(path, match="no readable"):
        read_xc(path)


# -- JSON lines -----------------------------------------------------------------------------------------------------


def jsonl(*rows) -> str:
    return "".join(json.dumps({"uid": "u", "title": "t", "content": "c", **row}) + "\n" for row in rows)


def test_jsonl_labels(file):
    text = jsonl({"target_ind": [3, 1], "target_rel": [1.0, 0.5]}, {"target_ind": []}, {"target_ind": [0]})
    for path in (file(text, "trn.json"), file(gzip.compress(text.encode()), "trn.json.gz")):
        Y = read_jsonl_labels(path)
        assert_layout(Y)
        assert Y.toarray().tolist() == [[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]]
        assert read_jsonl_labels(path, n_labels=9).shape == (3, 9)
        assert read_jsonl_labels(path, relevance=True).data.tolist() == [0.5, 1, 1]
    path = file(jsonl({"target_ind": [3, 1], "target_rel": [0, 2]}))
    assert read_jsonl_labels(path).indices.tolist() == [1]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ('{"target_ind": [1', "whole JSON"),
        ('{"uid": 1}', "list 'target_ind'"),
        ('{"target_ind": ' + "[" * 100_000, "whole JSON"),
        ('{"target_ind": [5]}', "label id 5, .*0 to 4"),
        ('{"target_ind": [1.0]}', "label id 1.0"),
        ('{"target_ind": [true]}', "label id True"),
        ('{"target_ind": [1, 1]}', "label 1 twice"),
        ('{"target_ind": [1], "target_rel": [-1]}', "relevance -1"),
        ('{"target_ind": [1], "target_rel": [1e39]}', "relevance 1e\\+39"),
    ],
    ids=lambda text: text[:50],
)
def test_jsonl_faults(file, bad, message):
    with damaged("a.txt", line=2, match=message):
        read_jsonl_labels(file(jsonl({"target_ind": [0]}) + bad + "\n" + "bad later\n"), n_labels=5)


# -- real data ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bibtex/train.txt", "bibtex/test.txt"])
def test_real_files_as_scikit_learn_and_napkinxc_read_them(real_data, name):
    from napkinxc.datasets import load_libsvm_file
    from sklearn.datasets import load_svmlight_file

    folder, _, file_name = name.partition("/")
    path = real_data(folder) / file_name
    X, Y = read_xc(path)
    n_rows, n_features, n_labels = (int(t) for t in path.open().readline().split())
    assert (X.shape, Y.shape) == ((n_rows, n_features), (n_rows, n_labels))
    body = io.BytesIO(path.read_bytes().partition(b"\n")[2])
    theirs, labels = load_svmlight_file(body, n_features=n_features, multilabel=True, zero_based=True)
    # scikit-learn drops lines that are blank once their trailing blanks are gone.
    kept = np.diff(X.indptr) + np.diff(Y.indptr) > 0
    assert bits(X[kept])[1:3] == (theirs.data.astype(np.float32).tobytes(), theirs.indices.astype(np.int32).tobytes())
    assert labels_of(Y[kept]) == [sorted(map(int, row)) for row in labels]
    theirs, labels = load_libsvm_file(str(path), labels_format="list")
    assert labels_of(Y) == [sorted(row) for row in labels]
    assert X.indices.tobytes() == theirs.indices.tobytes()
    # napkinXC adds digits up in float32, which may be off in the last place.
    np.testing.assert_allclose(X.data, theirs.data, rtol=3e-7)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'}", "NumPy array .*xcrepro convert"),
        (b"\x80\x04\x95\x00\x00", "pickle, .*trust"),
        (b"\xfd7zXZ\x00\x00", "xz, .*Unpack"),
        (b"PAR1" + bytes(40), "Parquet"),
        (b"\x89HDF\r\n\x1a\n" + bytes(9), "HDF5"),
        (b"\x07\x00\x01" + bytes(40), "binary data, .*save_npz"),
        (b"point,label,score\n0,1,0.5\n", "a CSV table"),
        (b"BZh91AY&SY", "bzip2"),
        ("2 3\n0:1\n\n".encode("utf-16"), "UTF-16"),
        (b"% made by hand\n@relation bibtex\n", "ARFF .*xcrepro convert"),
        (b"@RELATION bibtex\n@ATTRIBUTE a {0,1}\n", "ARFF"),
        (b"%%MatrixMarket matrix coordinate real general\n2 3 1\n", "Matrix Market"),
        (b'{"uid": "a", "target_ind": []}\n', "read_jsonl_labels"),
    ],
)
def test_another_format_is_called_by_its_name(tmp_path, content, said):
    (tmp_path / "a.txt").write_bytes(content)
    for read in (read_sparse, read_xc):
        with pytest.raises(DataError, match=said) as error:
            read(tmp_path / "a.txt")
        message = str(error.value).partition("a.txt")[2]
        assert "n_columns=" not in message
        assert "n_features=" not in message
        assert not re.search(r"\\x|[0-9a-f]{2} [0-9a-f]{2} [0-9a-f]{2}", message), "bytes tell nobody anything"


@pytest.mark.parametrize("blank", ["\v", "\f", "\r", "\x1c"])
def test_what_is_no_blank_in_a_line_is_none_in_the_header(tmp_path, blank):
    (tmp_path / "a.txt").write_text(f"1{blank}3\n0:1\n", newline="")
    with damaged("a.txt", line=1, match="header"):
        read_sparse(tmp_path / "a.txt")


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_beyond_the_limit(tmp_path, monkeypatch, packed):
    content = b"2 9\n0:1\n" + b"1:0.5 " + b" " * 3_000_000 + b"2:1\n"
    (tmp_path / "a.txt").write_bytes(gzip.compress(content) if packed else content)
    assert read_sparse(tmp_path / "a.txt").nnz == 3
    monkeypatch.setenv("XCREPRO_MAX_LINE", "2000000")
    with damaged("a.txt", line=3, match=r"2,000,000 bytes.*XCREPRO_MAX_LINE"):
        read_sparse(tmp_path / "a.txt")
    (tmp_path / "a.json").write_bytes(b'{"target_ind": [1]}\n{"target_ind": []' + b" " * 3_000_000 + b"}\n")
    with damaged("a.json", line=2, match="2,000,000"):
        read_jsonl_labels(tmp_path / "a.json")
    monkeypatch.setenv("XCREPRO_MAX_LINE", "much")
    with refused("$XCREPRO_MAX_LINE", "'much'"):
        read_jsonl_labels(tmp_path / "a.json")


def test_a_whole_relevance_is_rounded_once(tmp_path):
    """The largest whole number that rounds to a finite float32 came out infinite: float64 rounds it up first."""
    largest = 340282356779733661637539395458142568447
    path = tmp_path / "a.json"
    for value, rounded in ((largest, np.finfo(np.float32).max), (largest + 1, None), (2**24 + 1, 2**24), (7, 7)):
        path.write_text(json.dumps({"target_ind": [0], "target_rel": [value]}) + "\n")
        if rounded is not None:
            assert read_jsonl_labels(path, relevance=True).data[0] == np.float32(rounded)
        else:
            with damaged(path, line=1, match="finite number"):
                read_jsonl_labels(path, relevance=True)
