"""Inputs: valid ones from small grammars, and what a few random changes make of them. All from one ``random.Random``."""

from __future__ import annotations

import contextlib
import decimal
import gzip
import io
import json
import math
import random
import re
import warnings
import zipfile

import numpy as np
from scipy import sparse

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


def _labels(rng: random.Random) -> list[int]:
    return rng.sample(range(12), rng.randrange(5))


def _score(rng: random.Random) -> float:
    return rng.choice((0.5, 1, round(rng.random(), 3), rng.random(), -2.5, 1e-30))


def _json_lines(records: list[dict]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def jsonl_labels(rng: random.Random) -> bytes:
    """The repository's raw text."""
    records = [{"uid": "r", "title": "t", "target_ind": _labels(rng)} for _ in range(rng.randrange(1, 5))]
    for record in records:
        if rng.randrange(2):
            record["target_rel"] = [rng.choice((1.0, 0, 0.25, 2)) for _ in record["target_ind"]]
    return _json_lines(records)


def jsonl(rng: random.Random) -> bytes:
    """Predictions, an object a row."""
    records = []
    for row in range(rng.randrange(1, 5)):
        pairs = [(label, _score(rng)) for label in _labels(rng)]
        if rng.randrange(3):
            records.append({"labels": [label for label, _ in pairs], "scores": [score for _, score in pairs]})
        else:
            results = [{"uri": f"http://x/{label}", "label": label, "score": score} for label, score in pairs]
            records.append({"document_id": f"d{row}", "results": results})
    return _json_lines(records)


def lists(rng: random.Random) -> bytes:
    """napkinXC's lists."""
    rows = [_labels(rng) for _ in range(rng.randrange(5))]
    if rng.randrange(2):
        return json.dumps([[[label, _score(rng)] for label in row] for row in rows]).encode()
    return json.dumps(rows, separators=(",", ":")).encode()


def pairs(rng: random.Random) -> bytes:
    """``label:score``, no header."""
    rows = [" ".join(f"{label}:{_score(rng)}" for label in _labels(rng)) for _ in range(rng.randrange(1, 5))]
    return ("\n".join(rows) + "\n").encode()


def csv(rng: random.Random) -> bytes:
    """``row,label,score``."""
    separator, note = rng.choice(",\t;"), rng.randrange(2)
    lines = [["label", "row", "score", "note"] if note else ["row", "label", "score"]]
    for row in range(rng.randrange(1, 4)):
        for label in _labels(rng) or [3]:
            cells = [str(label), str(row), str(_score(rng)), rng.choice(("x", '"a b"', ""))]
            lines.append(cells if note else [cells[1], cells[0], cells[2]])
    return ("\n".join(map(separator.join, lines)) + "\n").encode()


def fasttext(rng: random.Random) -> bytes:
    """What fastText prints."""
    rows = [" ".join(f"__label__{label} {_score(rng)}" for label in _labels(rng)) for _ in range(rng.randrange(1, 5))]
    return ("\n".join(rows) + "\n").encode()


def dictionary(rng: random.Random) -> bytes:
    """pytrec_eval's and ranx's objects."""
    table = {str(row): {str(label): _score(rng) for label in _labels(rng)} for row in range(rng.randrange(1, 4))}
    return json.dumps(table, indent=rng.choice((None, 1))).encode()


def wide(rng: random.Random) -> bytes:
    """A column for each of twelve labels, by their ids; perhaps without a header."""
    separator, header = rng.choice(",;\t "), rng.randrange(2)
    names = [str(label) for label in rng.sample(range(12), 12)]
    lines = [["row", *names]] if header and separator != " " else []
    for row in range(rng.randrange(1, 4)):
        lines.append([*([f"r{row}"] if lines else []), *(f"{abs(_score(rng)) + 0.5}" for _ in range(12))])
    return ("\n".join(map(separator.join, lines)) + "\n").encode()


def corpus(rng: random.Random) -> bytes:
    """Annif's short texts, of both kinds."""
    uris = [" ".join(f"<{label}>" for label in _labels(rng)) for _ in range(rng.randrange(1, 5))]
    if rng.randrange(2):
        return ("text,subject_uris\n" + "".join(f"a text,{each}\n" for each in uris)).encode()
    return "".join(f"a text\t{each}\n" for each in uris).encode()


def trec_run(rng: random.Random) -> bytes:
    """A run."""
    lines = [
        (row, place, label) for row in range(rng.randrange(1, 4)) for place, label in enumerate(_labels(rng) or [3])
    ]
    return "".join(f"{row} Q0 {label} {place + 1} {_score(rng)} tag\n" for row, place, label in lines).encode()


def trec_qrels(rng: random.Random) -> bytes:
    """Qrels."""
    lines = [(row, label) for row in range(rng.randrange(1, 4)) for label in _labels(rng) or [3]]
    return "".join(f"{row} 0 {label} {rng.choice((1, 1, 2, 0, -1))}\n" for row, label in lines).encode()


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


def sparse_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """A SciPy matrix as ``save_npz`` has it."""
    file, kind = io.BytesIO(), rng.choice(("csr", "csr", "csc", "csc", "coo", "bsr", "dia"))
    sparse.save_npz(file, _csr(rng, rng.randrange(5), rng.randrange(1, 9)).asformat(kind), compressed=False)
    file.seek(0)
    with np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


def top_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """A saved TopK."""
    n, k, n_labels = rng.randrange(5), rng.randrange(1, 5), rng.randrange(1, 12)
    ids, scores = np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32)
    for row in range(n):
        labels = rng.sample(range(n_labels), rng.randrange(min(k, n_labels) + 1))
        ids[row, : len(labels)] = labels
        scores[row, : len(labels)] = sorted((rng.random() for _ in labels), reverse=True)
    return {"ids": ids, "scores": scores, "n_labels": np.array(n_labels)}


def calibration_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """The calibration authors' file."""
    top = top_arrays(rng)
    ids = top["ids"]
    marked = (ids >= 0) & np.array([[rng.randrange(2) for _ in row] for row in ids], bool).reshape(ids.shape)
    labels = np.argwhere(marked)
    labels[:, 1] = ids[marked] if len(labels) else labels[:, 1]
    return {"scores": top["scores"], "prediction_ids": ids, "true_positives": marked, "labels": labels}


def pair_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """What ``write_xc`` makes of an .npz name."""
    n, arrays = rng.randrange(4), {"pair": np.array("xcrepro pair 1")}
    for part in ("X", "Y"):
        matrix = _csr(rng, n, 3)
        arrays |= {
            f"{part}_{name}": np.asarray(getattr(matrix, name)) for name in ("data", "indices", "indptr", "shape")
        }
    return arrays


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
    """A folder of which one file has changed bytes."""
    name = rng.choice(sorted(files))
    return {**files, name: mutated(rng, files[name], files[name])}


def one_or_two_files_changed(rng: random.Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """A small folder of which one file has changed bytes, or two have, or one has the other's, or is gone."""
    change = rng.randrange(12)
    if change == 0:
        name = rng.choice(sorted(files))
        return {other: data for other, data in files.items() if other != name}
    if change == 1:
        return {**files, rng.choice(sorted(files)): files[rng.choice(sorted(files))]}
    files = one_file_changed(rng, files)
    return one_file_changed(rng, files) if change < 4 else files


def arff_and_xml(rng: random.Random) -> dict[str, bytes]:
    """As Mulan keeps a dataset; sometimes the relation's name has to say which attributes are labels."""
    table = arff(rng)
    if rng.randrange(4) == 0:
        return {"a.arff": table.replace(b"-C -3", rng.choice((b"-C 3", b"-C -3", b"-C -1", b"-D 3")))}
    names = [f"label{l}" for l in rng.sample(range(3), rng.randrange(1, 4))]
    if rng.randrange(6) == 0:
        names[0] = rng.choice(("b c", "a", "n", "none"))
    lines = [rng.choice(('<label name="{}"></label>', '<label name="{}"/>')).format(name) for name in names]
    head = rng.choice(('<?xml version="1.0" encoding="utf-8"?>\n', ""))
    text = f'{head}<labels xmlns="http://mulan.sourceforge.net/labels">\n' + "\n".join(lines) + "\n</labels>\n"
    return {"a.arff": table, "a.xml": text.encode()}


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
    for _ in range(rng.choice((1, 1, 2, 3))):
        name, data, kind, packing = rng.choice(found) if found else ("x", b"1 1 1\n0 0:1\n", 0, 8)
        change = rng.randrange(7)
        if change == 0:
            name = rng.choice(_MEMBERS)
        elif change == 1:
            name = rng.choice(_STRANGE)
        elif change == 2:
            kind = rng.choice(_KINDS)
        elif change == 3:
            packing = rng.choice((0, 8, 12, 14))
        elif change == 4:
            data = rng.choice((b"", b"0" * 200, b"0" * (1 << 20), b"0" * ((1 << 20) + 1)))
        elif change == 5:
            name += rng.choice(("/", "/x", " ", "."))
        found.insert(rng.randrange(len(found) + 1), (name, data, kind, packing))
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


def block_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """A block file's arrays."""
    top = top_arrays(rng)
    n, n_labels = len(top["ids"]), int(top["n_labels"])
    rows = [sorted(rng.sample(range(n_labels), rng.randrange(min(n_labels, 3) + 1))) for _ in range(n)]
    arrays = {"format": np.array("xcrepro block 1"), "first_row": np.array(rng.choice((-1, 0, 7))), **top}
    arrays["truth_indptr"] = np.cumsum([0, *map(len, rows)])
    arrays["truth_indices"] = np.array([label for row in rows for label in row], np.int32)
    if rng.randrange(3) == 0:
        arrays["n_relevant"] = np.array([len(row) + rng.randrange(2) for row in rows], np.float64)
    return arrays


def parquet_table(rng: random.Random):
    """Truth or predictions as a table: a row a row, or a row a pair."""
    import pyarrow as pa

    rows = [_labels(rng) for _ in range(rng.randrange(5))]
    scored, kind = rng.randrange(2), pa.int32()
    if rng.randrange(4) == 0:
        rows, kind = [[*map(str, labels)] for labels in rows], pa.string()
    if rng.randrange(2):
        columns = {"labels": pa.array(rows, pa.list_(kind))}
        if scored:
            columns["scores"] = pa.array([[_score(rng) for _ in labels] for labels in rows], pa.list_(pa.float64()))
        if rng.randrange(4) == 0:
            columns["row"] = [f"r{row}" for row in range(len(rows))]
        return pa.table(columns)
    pairs = [(row, label) for row, labels in enumerate(rows) for label in labels]
    columns = {"row": pa.array([row for row, _ in pairs], "i8"), "label": pa.array([label for _, label in pairs], kind)}
    if scored:
        columns["score"] = pa.array([_score(rng) for _ in pairs], pa.float32())
    return pa.table(columns)


def mutated_table(rng: random.Random, table):
    """A table of which a value, a type, a column or what is said about it is another; the same where no file can hold that."""
    import pyarrow as pa

    columns, change = table.to_pydict(), rng.randrange(6)
    name = rng.choice(sorted(columns))
    with contextlib.suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
        if change == 0:
            return table.drop_columns([name])
        if change == 1:
            other = rng.choice(("row", "label", "labels", "score", "scores", "truth", "x", name))
            return table.append_column(other, table.column(name))
        if change == 2:
            flat = (pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float64(), pa.string(), pa.bool_(), pa.binary(),
                    pa.large_string(), pa.decimal128(12, 2), pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.date64(),
                    pa.null(), pa.time32("s"), pa.duration("s"), pa.dictionary(pa.int32(), pa.string()))  # fmt: skip
            kind = rng.choice(flat)
            kind = pa.list_(kind) if pa.types.is_nested(table.column(name).type) else kind
            place, changed = table.column_names.index(name), table.column(name).cast(kind, safe=False)
            return _written(table.set_column(place, name, changed))
        if values := columns[name]:
            row = rng.randrange(len(values))
            inside = isinstance(values[row], list) and values[row] and rng.randrange(4)
            place, where = (values[row], rng.randrange(len(values[row]))) if inside else (values, row)
            odd = (None, -1, 2**31, 2**31 - 1, 2**63 - 1, 2**64 - 1, 0.5, math.nan, math.inf, -math.inf, 1e300,
                   1e39, "3", "x", "", True, b"\xff", decimal.Decimal("3"), [3], [[3]], [], [None], 11, 12)  # fmt: skip
            place[where] = rng.choice(odd)
            return _written(pa.table(columns))
    return table


def _written(table):
    """The table, if a file can hold it."""
    parquet(table)
    return table


def parquet(table) -> bytes:
    """The table's file."""
    import pyarrow as pa
    import pyarrow.parquet

    out = pa.BufferOutputStream()
    pa.parquet.write_table(table, out)
    return out.getvalue().to_pybytes()
