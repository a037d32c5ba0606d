"""Inputs: valid ones from small grammars and from the package's own writers, and what a few random changes make of them. All
from one ``random.Random``.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import random
import re
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

import xcrepro
from xcrepro.core.paths import seal

NUMBERS = [
    "0", "1", "2", "5", "11", "12", "-1", "007", "1.5", ".5", "2.", "1e3", "1E-3", "-0", "0.0", "+1", "1e38",
    "3.4028235e38", "3.4028236e38", "1e39", "-1e39", "1e-45", "7e-46", "1e-60", "1e400", "nan", "inf", "-inf", "1e", "1e+",
    "-", ".", "16777217", "0.1", "1.00000017881393432617187499", "9007199254740993", "2147483646", "2147483647",
    "2147483648", "4294967296", "999999999999999999", "1000000000000000000", "9223372036854775807", "18446744073709551616",
    "1e99999", "1e999999999999", "0x10", "1_0", "١",
]  # fmt: skip
PIECES = [
    *(text.encode() for text in NUMBERS),
    *(bytes([byte]) for byte in (0, 9, 10, 11, 12, 13, 32, 34, 35, 39, 44, 58, 59, 64, 91, 92, 93, 123, 125, 127, 128, 255)),
    b"\r\n", b"\n\n", b": ", b"::", b",,", b"# a\n", b"\n#", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc2\xa0",
    b"\xe2\x80\xa8", b"\xc2\x85", b"\xed\xa0\x80",
    b"1:1", b" 1:1", b"0:0", b"null", b"true", b"NaN", b"Infinity", b"1" * 400, b"1" * 5000, b"[" * 3000, b'{"a":' * 2000,
    b"'''", b'"""',
    b"\\u0000", b"\\ud800", b"\\", b"%", b"@data\n", b"{0 1}", b"<1>\t", b"->", b"--", b"..", b"/", b"~",
    b"\x1f\x8b", b"PK\x03\x04", b" " * 5000,
]  # fmt: skip


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """``data`` after one to five changes; ``other`` is another valid input to take pieces from."""
    text = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.choice((1, 1, 2, 3, 8, 40)))
        change = rng.randrange(9)
        if change == 0 and text:
            text[min(at, len(text) - 1)] ^= 1 << rng.randrange(8)
        elif change == 1:
            del text[at:to]
        elif change == 2:
            text[at:at] = text[at:to]
        elif change <= 4:
            text[at : (at, to)[change == 4]] = rng.choice(PIECES)
        elif change == 5:
            del text[at:]
        elif change == 6 and other:
            begin = rng.randrange(len(other))
            text[at:to] = other[begin : begin + rng.choice((1, 4, 16, 64))]
        elif change == 7 and (digits := [place for place, byte in enumerate(text) if 48 <= byte <= 57]):
            number = re.compile(rb"[0-9]+").match(text, rng.choice(digits))
            text[number.start() : number.end()] = rng.choice(NUMBERS).encode()
        elif change == 8:
            lines = bytes(text).split(b"\n")
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
            text = bytearray(b"\n".join(lines))
    return bytes(text)


def mutated_json(rng: random.Random, data: bytes) -> bytes:
    """A JSON object of which a value, at the top or one below, is another one or is gone."""
    whole = place = json.loads(data)
    key = rng.choice(sorted(place))
    if isinstance(place[key], dict) and place[key] and rng.randrange(4):
        place = place[key]
        key = rng.choice(sorted(place))
    odd = (None, True, False, 0, -1, 1, 3, 2**31, 2**63, 2**64, 0.5, -0.5, 1e300, math.nan, math.inf, "", "x", "3",
           "\ud800", "\0", "a" * 5000, [], {}, [[]], [0], [None], [1, "x"], {"a": 1}, "lambda", "../x")  # fmt: skip
    place[key] = rng.choice(odd)
    if rng.randrange(8) == 0:
        del place[key]
    return json.dumps(whole).encode()


def packed(rng: random.Random, data: bytes) -> bytes:
    """In gzip or in a zip archive."""
    if rng.randrange(2):
        return gzip.compress(data, 1, mtime=0)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        if rng.randrange(4) == 0:
            archive.writestr("__MACOSX/x", b"mac")
        archive.writestr("a/data.txt", data)
    return out.getvalue()


# -- valid text -----------------------------------------------------------------------------------------------------


def number(rng: random.Random) -> str:
    """A value as files spell it."""
    if rng.randrange(4):
        return str(rng.randrange(4)) if rng.randrange(2) else f"{rng.random():.{rng.randrange(1, 10)}g}"
    return f"{rng.choice('+- ').strip()}{rng.random() * 10 ** rng.randrange(-30, 30):.{rng.randrange(1, 20)}{rng.choice('eg')}}"


def entries(rng: random.Random, width: int, value=number) -> list[str]:
    """``id:value`` of a row, mostly in order."""
    ids = rng.sample(range(width), rng.randrange(min(width, 5) + 1))
    ids = ids if rng.randrange(8) == 0 else sorted(ids)
    return [f"{id}:{value(rng)}" for id in ids]


def _text(rng: random.Random, header: str, lines: list[str]) -> bytes:
    if rng.randrange(6) == 0:
        lines.insert(rng.randrange(len(lines) + 1), "# note 1:1")
    end = rng.choice(("\n", "\n", "\n", "\r\n"))
    text = end.join([header, *lines]) + (end if rng.randrange(8) else "")
    return (rng.choice(("", "", "", "\ufeff", "# first\n")) + text).encode()


def xc(rng: random.Random) -> bytes:
    """The old format."""
    n, n_features, n_labels = rng.randrange(5), rng.randrange(1, 12), rng.randrange(1, 9)
    lines = []
    for _ in range(n):
        labels = rng.sample(range(n_labels), rng.randrange(min(3, n_labels) + 1))
        lines.append(",".join(map(str, labels)) + rng.choice((" ", "  ", "\t")) + " ".join(entries(rng, n_features)))
    return _text(rng, f"{n} {n_features} {n_labels}", lines)


def matrix(rng: random.Random) -> bytes:
    """The new format."""
    n, width = rng.randrange(5), rng.randrange(1, 12)
    return _text(rng, f"{n} {width}", [rng.choice(" \t").join(entries(rng, width)) for _ in range(n)])


def label_matrix(rng: random.Random) -> bytes:
    """The new format, values 1 and 0."""
    n, width = rng.randrange(5), rng.randrange(1, 12)
    rows = [" ".join(entries(rng, width, lambda r: r.choice(("1", "1", "1.0", "0", "0.5")))) for _ in range(n)]
    return _text(rng, f"{n} {width}", rows)


def filter_pairs(rng: random.Random) -> bytes:
    """Pairs."""
    return "".join(f"{rng.randrange(9)} {rng.randrange(9)}\n" for _ in range(rng.randrange(6))).encode()


def split_columns(rng: random.Random) -> bytes:
    """Row numbers, two splits."""
    rows = list(range(1, rng.randrange(2, 8)))
    return "".join(f"{a} {b}\n" for a, b in zip(rows, rng.sample(rows, len(rows)), strict=True)).encode()


def jsonl_labels(rng: random.Random) -> bytes:
    """The repository's raw text."""
    records = [{"uid": "r", "title": "t", "target_ind": rng.sample(range(12), 3)} for _ in range(rng.randrange(1, 5))]
    for record in records[1:]:
        record["target_rel"] = [rng.choice((1.0, 0, 0.25, 2)) for _ in record["target_ind"]]
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def wide(rng: random.Random) -> bytes:
    """A column for each of twelve labels, by their ids; perhaps without a header."""
    separator = rng.choice(",;\t ")
    lines = [[f"{rng.random():.3g}" for _ in range(12)] for _ in range(rng.randrange(1, 4))]
    if separator != " " and rng.randrange(2):
        lines = [["row", *map(str, rng.sample(range(12), 12))], *([f"r{row}", *line] for row, line in enumerate(lines))]
    return ("\n".join(map(separator.join, lines)) + "\n").encode()


def corpus(rng: random.Random) -> bytes:
    """Annif's short texts, of both kinds."""
    uris = [
        " ".join(f"<{label}>" for label in rng.sample(range(12), rng.randrange(4))) for _ in range(rng.randrange(1, 5))
    ]
    if rng.randrange(2):
        return ("text,subject_uris\n" + "".join(f"a text,{each}\n" for each in uris)).encode()
    return "".join(f"a text\t{each}\n" for each in uris).encode()


def arff(rng: random.Random) -> bytes:
    """Two features, a nominal one or two, three labels at the end."""
    more = rng.randrange(2)
    head = "@relation 'x: -C -3'\n@attribute a numeric\n@attribute 'b c' real\n@attribute n {low,high}\n"
    head += "@attribute m {1,2.5}\n" * more + "".join(f"@attribute label{l} {{0,1}}\n" for l in range(3)) + "\n@data\n"
    for _ in range(rng.randrange(4)):
        cells = [number(rng), number(rng), rng.choice(("low", "high")), *["2.5"] * more, *rng.choices("01", k=3)]
        sparse = ", ".join(f"{i} {cell}" for i, cell in enumerate(cells) if rng.randrange(2))
        head += (",".join(cells) if rng.randrange(2) else f"{{{sparse}}}") + "\n"
    return head.encode()


def label_names(rng: random.Random) -> bytes:
    """Names, in one of the forms that are known."""
    names = rng.sample(["cat", "dog", "tree", "Straße", "[x]", "12", "a b", "x,y"], rng.randrange(1, 6))
    whole = (
        names,
        {name: label for label, name in enumerate(names)},
        {str(label): name for label, name in enumerate(names)},
    )
    lines = ('{{"uid": "u{i}", "title": "{name}"}}', "<http://x/{i}>\t{name}", "u{i}->{name}", "{name}")
    form = rng.randrange(7)
    if form < 3:
        return json.dumps(whole[form]).encode()
    return "".join(lines[form - 3].format(i=i, name=name) + "\n" for i, name in enumerate(names)).encode()


def dataset_toml(rng: random.Random) -> bytes:
    """A reader's dataset."""
    return rng.choice((
        'name = "mine"\n[propensity]\nA = 0.55\nB = 1.5\n[files]\ntrain = "train.txt"\ntest = "test.txt"\n',
        'name = "my-own"\nprinted_name = "My-Own"\naliases = ["mo"]\nsplits = 3\n[files]\ntrain_X = "a/x.txt"\n'
        'train_Y = "y.txt"\n'
        'test_X = "tx.txt"\ntest_Y = "ty.txt"\n[expected]\nn_features = 12\nn_labels = 7\nn_train = 30\nn_test = 9\n'
        'avg_labels_per_point = 2.40\nbins = [1, 2, 3, 4]\n[twin]\nhead = 0.5\ntail = 1.1\nhierarchy = true\n',
        'name = "p"\n[archive]\nurl = "https://example.org/x.zip"\n[[published]]\nsource = "me:table1"\nrow = 1\n'
        'n_labels = 3993\navg_points_per_label = 25.73\n',
    )).encode()  # fmt: skip


def audit_csv(rng: random.Random) -> bytes:
    """Somebody's results."""
    if rng.randrange(2):
        cells = [(i, rng.uniform(0, 99), rng.randrange(60), rng.randrange(50)) for i in range(3)]
        return ("method,P@1,P@3,nDCG@5\n" + "".join(f"m{i},{a:.2f},{b}.5,{c}\n" for i, a, b, c in cells)).encode()
    metrics = [(name, k) for name in ("P", "nDCG", "PSP", "micro-F1", "Brier") for k in (1, 3)]
    rows = "".join(f"d,m,{name},{k},0.{rng.randrange(1000):03}\n" for name, k in metrics)
    return ("dataset,method,metric,k,value\n" + rows + "d,m,avg labels,,2.4\n").encode()


def calibrator_json(rng: random.Random) -> bytes:
    """A saved calibrator."""
    kind, parameters, learned = rng.choice((
        ("Isotonic", {"smooth": 0}, {"knots_": [0.1, 0.5, 0.9], "values_": [0.0, 0.5, 1.0]}),
        ("Platt", {"targets": "platt", "C": None}, {"a_": -1.5, "b_": 0.5}),
        ("Beta", {}, {"a_": 1.0, "b_": 1.0, "c_": 0.0}),
        ("HistogramBinning", {"bins": 3, "equal": "width"}, {"edges_": [0.3, 0.6], "values_": [0.1, 0.5, 0.9]}),
        ("VennAbers", {}, {"knots_": [0.5], "misses_": [0.0, 0.2, 0.3], "hits_": [0.5, 0.6, 0.7]}),
    ))  # fmt: skip
    content = {"format": "xcrepro calibrator 2", "calibrator": kind, "parameters": parameters, "learned": learned}
    return json.dumps(content | {"sha256": seal(content)}).encode()


# -- arrays ---------------------------------------------------------------------------------------------------------

_ANY = tuple(
    map(np.dtype, ["i1", "i4", "i8", "u1", "u8", ">i4", "f2", "f4", "f8", "g", "?", ">f4", "c8", "U3", "M8[s]"])
)
_ODD = (-1, 0, 1, 2, 7, 100, 2**15, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, -(2**63), 2**63 - 1)


def _csr(rng: random.Random, n: int, width: int) -> sparse.csr_matrix:
    """Some stored values are 0."""
    places = np.array([rng.randrange(3) == 0 for _ in range(n * width)], bool).reshape(n, width)
    matrix = sparse.csr_matrix(places.astype(rng.choice((np.float32, np.float64, np.int64))))
    matrix.data[:] = [rng.choice((1.0, 0.5, 2.0, 0.0)) for _ in matrix.data]
    return matrix


def written(save: Callable[[Path], object], suffix: str = ".npz") -> bytes:
    """What a writer makes of a path."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        save(path)
        return path.read_bytes()


def _arrays(save: Callable[[Path], object]) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(written(save))) as stored:
        return {name: stored[name] for name in stored.files}


def sparse_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """A SciPy matrix as ``save_npz`` has it."""
    kind = rng.choice(("csr", "csr", "csc", "csc", "coo", "bsr", "dia"))
    matrix = _csr(rng, rng.randrange(5), rng.randrange(1, 9)).asformat(kind)
    return _arrays(lambda path: sparse.save_npz(path, matrix, compressed=False))


def truth(rng: random.Random) -> sparse.csr_matrix:
    """Rows of twelve labels, none of them empty, since some forms have no room for one."""
    return sparse.csr_matrix(np.eye(12)[rng.sample(range(12), rng.randrange(1, 5))] + np.eye(12)[rng.randrange(12)] > 0)


def predictions(rng: random.Random) -> xcrepro.TopK:
    """Rows of twelve labels, the later ones with fewer places."""
    scores = [
        rng.sample([1.0, 0.5, 1e-30, -2.5, *(rng.random() for _ in range(8))], 12) for _ in range(rng.randrange(1, 5))
    ]
    for row, values in enumerate(scores):
        values[: 3 * row] = [-math.inf] * 3 * row
    return xcrepro.TopK.from_scores(np.array(scores), rng.randrange(1, 6))


def top_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """A saved TopK."""
    return _arrays(predictions(rng).save)


def pair_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """What ``write_xc`` makes of an .npz name."""
    n = rng.randrange(4)
    X, Y = _csr(rng, n, 3), _csr(rng, n, 3) > 0
    return _arrays(lambda path: xcrepro.write_xc(path, X, Y))


def block_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """A block file's arrays."""
    top = predictions(rng)
    Y = _csr(rng, len(top), top.n_labels) > 0
    complete, first = rng.choice((None, np.diff(Y.indptr) + 1.0)), rng.choice((None, 0, 7))
    return _arrays(lambda path: xcrepro.scale.write_block(path, Y, top, first, complete))


def calibration_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """The calibration authors' file."""
    top = predictions(rng)
    marked = (top.ids >= 0) & (top.ids % 2 == 0)
    labels = np.stack([np.nonzero(marked)[0], top.ids[marked]], 1)
    return {"scores": top.scores, "prediction_ids": top.ids, "true_positives": marked, "labels": labels}


def dense_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """One array of two dimensions."""
    n, width = rng.randrange(4), rng.randrange(5)
    return {"arr_0": np.array([rng.choice((0.0, 1.0, -np.inf, 0.25)) for _ in range(n * width)]).reshape(n, width)}


def mutated_arrays(rng: random.Random, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One to three changes of values, types, lengths, shapes, names."""
    arrays = dict(arrays)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not arrays:
            break
        name, change = rng.choice(sorted(arrays)), rng.randrange(10)
        array = np.array(arrays[name])
        with np.errstate(all="ignore"):
            if change <= 3 and array.size and array.dtype.kind in "iufb":
                value = rng.choice((np.nan, np.inf, -np.inf, -1, 1e300, 0))
                if array.dtype.kind != "f":
                    value = rng.choice((*_ODD, rng.randrange(12)))
                    limits = np.iinfo("i8" if array.dtype.kind == "b" else array.dtype)
                    value = min(max(value, limits.min), limits.max)
                array.flat[rng.randrange(array.size)] = value
                arrays[name] = array
            elif change == 4 and array.dtype.kind in "iufb":
                arrays[name] = array.astype(rng.choice(_ANY))
            elif change == 5 and array.ndim:
                arrays[name] = array[: rng.randrange(len(array) + 1)]
            elif change == 6 and array.ndim:
                arrays[name] = np.concatenate([array, array[:1]])
            elif change == 7:
                del arrays[name]
            elif change == 8:
                arrays[name] = rng.choice((array.reshape(-1), array[None], np.array(rng.choice(_ODD)), array.T))
            elif change == 9:
                arrays[rng.choice(("format", "data", "x", "ids", "coords"))] = array
    return arrays


def npy(arrays: dict[str, np.ndarray]) -> bytes:
    """The first array, as ``numpy.save`` writes it."""
    out = io.BytesIO()
    for array in list(arrays.values())[:1]:
        np.save(out, array)
    return out.getvalue()


def npz(arrays: dict[str, np.ndarray]) -> bytes:
    """As ``numpy.savez`` writes them."""
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


# -- several files, or parts that a library puts into one ---------------------------------------------------------------


def one_file_changed(rng: random.Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """A folder of which one file has changed bytes, or another file's, or is gone."""
    name, other = rng.choice(sorted(files)), rng.choice(sorted(files))
    change = rng.randrange(12)
    if change == 0:
        return {each: data for each, data in files.items() if each != name}
    return {**files, name: files[other] if change == 1 else mutated(rng, files[name], files[other])}


_MEMBERS = (*(f"{folder}{part}.txt" for folder in ("", "a/") for part in ("train", "test")),
            "a/", "a/b/", "a", "A/Train.txt", "./a", "a//b", "é.txt")  # fmt: skip
_STRANGE = ("../x", "/x", "a/../../x", "C:\\x", "C:x", "..\\x", "a\\b", "", ".", "..", "./", "/", "~/x", "a\nb", "a\x1b[m",
            "x" * 199, "x" * 201, "x" * 300, "é" * 101, "d/" * 19 + "x", "d/" * 20 + "x", "con", "a b", " ", "\u202ex",
            "__MACOSX/a", ".hidden", "a\x00b")  # fmt: skip
_KINDS = (0o100644, 0o100644, 0o040755, 0o120777, 0o010644, 0o020644, 0o060644, 0o140755, 0o104755)


def members(rng: random.Random) -> list[tuple]:
    """What an archive holds: (name, content, kind as Unix has it, way of packing)."""
    names = rng.sample(_MEMBERS[:4], rng.randrange(4))
    return [(name, xc(rng), 0o100644 * rng.randrange(2), rng.choice((0, 8, 8))) for name in names]


def mutated_members(rng: random.Random, found: list[tuple]) -> list[tuple]:
    """One to three members more, changed, or twice."""
    found = list(found)
    sizes = (b"", b"0" * 200, b"0" * (1 << 20), b"0" * ((1 << 20) + 1))
    for _ in range(rng.choice((1, 1, 2, 3))):
        member = [*(rng.choice(found) if found else ("x", b"1 1 1\n0 0:1\n", 0, 8))]
        longer = [member[0] + end for end in ("/", "/x", " ", ".")]
        names, at = rng.choice((_MEMBERS, _STRANGE, longer, member[:1])), rng.choice((0, 0, 0, 1, 2, 3))
        member[at] = rng.choice((names, sizes, _KINDS, (0, 8, 12, 14))[at])
        found.insert(rng.randrange(len(found) + 1), tuple(member))
    return found


def zipped(found: list[tuple]) -> bytes:
    """The archive of these members, whatever they are called."""
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as archive:
        warnings.simplefilter("ignore")  # of names that come twice
        for name, data, kind, packing in found:
            about = zipfile.ZipInfo("x")
            about.filename, about.external_attr, about.compress_type = name, kind << 16, packing
            with archive.open(about, "w") as member:  # writestr makes a folder of what ends in a slash
                member.write(data)
    return out.getvalue()


def parquet(rng: random.Random) -> bytes:
    """A table of lists or of pairs, whose columns are of any types, at times of those that they should be of."""
    import pyarrow as pa
    import pyarrow.parquet

    kinds = (pa.int32(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.bool_(),
             pa.binary(), pa.large_string(), pa.decimal128(12, 2), pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.date64(),
             pa.null(), pa.time32("s"), pa.duration("s"), pa.dictionary(pa.int32(), pa.string()))  # fmt: skip

    def column(values, listed: bool):
        kind = rng.choice(kinds)
        try:
            cells = pa.array(values).cast(kind)
        except pa.ArrowException:
            cells = pa.array([rng.choice((None, *values)) for _ in values])
        return pa.ListArray.from_arrays([*range(len(cells) + 1)], cells) if listed else cells

    listed, values = rng.randrange(2), [3, 0, rng.choice((11, 12, -1, 2**31, 2**63 - 1))]
    names = ("labels", "scores", "truth") if listed else ("row", "label", "score")
    held = {rng.choice((*[name] * 5, "x", "row")): column(values, bool(listed)) for name in names}
    return written(lambda path: pa.parquet.write_table(pa.table(held), path), ".parquet")
