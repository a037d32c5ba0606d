"""Inputs: valid ones from small grammars, and what a few random changes make of them. All from one ``random.Random``."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import json
import math
import random
import warnings
import zipfile

import numpy as np

from xcrepro.paths import seal

NUMBERS = [
    "0",
    "1",
    "2",
    "5",
    "11",
    "12",
    "-1",
    "007",
    "1.5",
    ".5",
    "2.",
    "1e3",
    "1E-3",
    "-0",
    "0.0",
    "+1",
    "1e38",
    "3.4028235e38",
    "3.4028236e38",
    "1e39",
    "-1e39",
    "1e-45",
    "7e-46",
    "1e-60",
    "1e400",
    "nan",
    "inf",
    "-inf",
    "1e",
    "1e+",
    "-",
    ".",
    "16777217",
    "0.1",
    "1.00000017881393432617187499",
    "9007199254740993",
    "2147483646",
    "2147483647",
    "2147483648",
    "4294967296",
    "999999999999999999",
    "1000000000000000000",
    "9223372036854775807",
    "18446744073709551616",
    "1e99999",
    "1e999999999999",
    "0x10",
    "1_0",
    "١",
]
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
        elif change == 3:
            text[at:at] = rng.choice(PIECES)
        elif change == 4:
            text[at:to] = rng.choice(PIECES)
        elif change == 5:
            del text[at:]
        elif change == 6 and other:
            begin = rng.randrange(len(other))
            text[at:to] = other[begin : begin + rng.choice((1, 4, 16, 64))]
        elif change == 7:
            number = rng.choice(NUMBERS).encode()
            places = [i for i, byte in enumerate(text) if 48 <= byte <= 57]
            if places:
                begin = rng.choice(places)
                end = begin
                while end < len(text) and 48 <= text[end] <= 57:
                    end += 1
                text[begin:end] = number
        elif change == 8:
            lines = bytes(text).split(b"\n")
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
            text = bytearray(b"\n".join(lines))
    return bytes(text)


def mutated_json(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """JSON of which a value somewhere is another one, is gone or comes twice; or changed bytes, where there is none."""
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        whole = None
    if not isinstance(whole, dict | list) or not whole or rng.randrange(3) == 0:
        return mutated(rng, data, other)
    for _ in range(rng.choice((1, 1, 2))):
        place, key = whole, None
        while isinstance(place, dict | list) and place:
            key = rng.choice(sorted(place)) if isinstance(place, dict) else rng.randrange(len(place))
            if not isinstance(place[key], dict | list) or not place[key] or rng.randrange(4) == 0:
                break
            place = place[key]
        if not place:
            continue
        change = rng.randrange(8)
        if change == 0:
            del place[key]
        elif change == 1 and isinstance(place, dict):
            place[rng.choice((*sorted(place), "x", ""))] = place[key]
        elif change == 1:
            place.append(place[key])
        elif change == 2 and isinstance(place[key], str):
            place[key] = mutated(rng, place[key].encode("utf-8", "replace"), b"").decode("utf-8", "replace")
        else:
            odd = (None, True, False, 0, -1, 1, 3, 2**31, 2**63, 2**64, 0.5, -0.5, 1e300, math.nan, math.inf, "", "x", "3",
                   "\ud800", "\0", "a" * 5000, [], {}, [[]], [0], [None], [1, "x"], {"a": 1}, "lambda", "../x")  # fmt: skip
            place[key] = rng.choice(odd)
        if not whole:
            break
    return json.dumps(whole, indent=rng.choice((None, 1))).encode()


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


def jsonl_labels(rng: random.Random) -> bytes:
    """The repository's raw text."""
    records = []
    for row in range(rng.randrange(1, 5)):
        labels = _labels(rng)
        record = {"uid": f"r{row}", "title": "t", "target_ind": labels}
        if rng.randrange(2):
            record["target_rel"] = [rng.choice((1.0, 0, 0.25, 2)) for _ in labels]
        records.append(record)
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def jsonl(rng: random.Random) -> bytes:
    """Predictions, an object a row."""
    records = []
    for row in range(rng.randrange(1, 5)):
        labels = _labels(rng)
        if rng.randrange(3):
            records.append({"labels": labels, "scores": [_score(rng) for _ in labels]})
        else:
            results = [{"uri": f"http://x/{l}", "label": str(l), "score": _score(rng)} for l in labels]
            records.append({"document_id": f"d{row}", "results": results})
    return "".join(json.dumps(record) + "\n" for record in records).encode()


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
    separator = rng.choice((",", "\t", ";"))
    names = rng.choice((["row", "label", "score"], ["label", "row", "score", "note"]))
    lines = [names]
    for row in range(rng.randrange(1, 4)):
        for label in _labels(rng) or [3]:
            cells = {
                "row": str(row),
                "label": str(label),
                "score": str(_score(rng)),
                "note": rng.choice(("x", '"a b"', "")),
            }
            lines.append([cells[name] for name in names])
    return ("\n".join(map(separator.join, lines)) + "\n").encode()


def trec_run(rng: random.Random) -> bytes:
    """A run."""
    return "".join(
        f"{row} Q0 {label} {rank} {_score(rng)} tag\n"
        for row in range(rng.randrange(1, 4)) for rank, label in enumerate(_labels(rng) or [3], 1)
    ).encode()  # fmt: skip


def trec_qrels(rng: random.Random) -> bytes:
    """Qrels."""
    return "".join(
        f"{row} 0 {label} {rng.choice((1, 1, 2, 0, -1))}\n"
        for row in range(rng.randrange(1, 4)) for label in _labels(rng) or [3]
    ).encode()  # fmt: skip


def arff(rng: random.Random) -> bytes:
    """Two features, a nominal one, three labels at the end."""
    head = "@relation 'x: -C -3'\n@attribute a numeric\n@attribute 'b c' real\n@attribute n {low,high}\n"
    head += rng.choice(("", "@attribute m {1,2.5}\n"))
    n = 4 if "m {" in head else 3
    head += "".join(f"@attribute label{l} {{0,1}}\n" for l in range(3)) + "\n@data\n"
    rows = []
    for _ in range(rng.randrange(4)):
        cells = [number(rng), number(rng), rng.choice(("low", "high")), "2.5"][:n] + [
            str(rng.randrange(2)) for _ in range(3)
        ]
        if rng.randrange(2):
            rows.append(",".join(cells))
        else:
            rows.append("{" + ", ".join(f"{i} {cell}" for i, cell in enumerate(cells) if rng.randrange(2)) + "}")
    return (head + "".join(row + "\n" for row in rows)).encode()


def label_names(rng: random.Random) -> bytes:
    """Names, in one of the forms that are known."""
    names = rng.sample(["cat", "dog", "tree", "Straße", "[x]", "12", "a b", "x,y"], rng.randrange(1, 6))
    form = rng.randrange(7)
    if form == 0:
        return json.dumps(names).encode()
    if form == 1:
        return json.dumps({name: label for label, name in enumerate(names)}).encode()
    if form == 2:
        return json.dumps({str(label): name for label, name in enumerate(names)}).encode()
    if form == 3:
        return "".join(json.dumps({"uid": f"u{i}", "title": name}) + "\n" for i, name in enumerate(names)).encode()
    line = {4: "<http://x/{i}>\t{name}\n", 5: "u{i}->{name}\n", 6: "{name}\n"}[form]
    return "".join(line.format(i=i, name=name) for i, name in enumerate(names)).encode()


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
        rows = "".join(
            f"m{i},{rng.randrange(99)}.{rng.randrange(100):02},{rng.randrange(60)}.5,{rng.randrange(50)}\n"
            for i in range(3)
        )
        return ("method,P@1,P@3,nDCG@5\n" + rows).encode()
    rows = "".join(
        f"d,m,{name},{k},0.{rng.randrange(1000):03}\n"
        for name in ("P", "nDCG", "PSP", "micro-F1", "Brier")
        for k in (1, 3)
    )
    return ("dataset,method,metric,k,value\n" + rows + "d,m,avg labels,,2.4\n").encode()


def printed_csv(rng: random.Random) -> bytes:
    """Printed numbers."""
    rows = "".join(
        f"me:table1,{i},D,m{i},,P,{k},{v},{v},as printed,,\n"
        for i in (1, 2)
        for k, v in ((1, "54.2"), (3, "1,204"[2:]))
    )
    return ("source,row,dataset,method,variant,metric,k,printed,value,reading,stderr,note\n" + rows).encode()


def result_json(rng: random.Random) -> bytes:
    """A kept result."""
    values = {"P@1": 0.5, "P@3": 0.4, "nDCG@3": 0.42, "macro-F1@5": None}
    truth = {"fingerprint": "ab" * 8, "points": 10, "labels": 12, "pairs": 30}
    content = {
        "name": "m",
        "dataset": "d",
        "values": values,
        "truth": truth,
        "options": {"A": 0.5},
        "version": "0.1.0",
        "note": "",
    }
    if rng.randrange(2):
        content |= {"format": "xcrepro result 2"}
        content |= {"sha256": hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}
    return json.dumps(content, indent=1).encode()


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

_WHOLE = (np.int8, np.int32, np.int64, np.uint8, np.uint64, np.dtype(">i4"))
_ANY = (
    *_WHOLE,
    np.float16,
    np.float32,
    np.float64,
    np.longdouble,
    np.bool_,
    np.dtype(">f4"),
    np.complex64,
    np.dtype("U3"),
    np.dtype("M8[s]"),
)
_ODD = (-1, 0, 1, 2, 7, 100, 2**15, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, -(2**63), 2**63 - 1)


def sparse_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """A SciPy matrix as ``save_npz`` has it."""
    n, width = rng.randrange(5), rng.randrange(1, 9)
    rows = [sorted(rng.sample(range(width), rng.randrange(min(width, 4) + 1))) for _ in range(n)]
    kind = rng.choice(("csr", "csr", "csc", "csc", "coo", "bsr", "dia"))
    size = sum(map(len, rows))
    data = np.array(
        [rng.choice((1.0, 0.5, 2.0, 0.0)) for _ in range(size)], rng.choice((np.float32, np.float64, np.int64))
    )
    arrays = {"format": np.array(kind.encode()), "shape": np.array([n, width]), "data": data}
    which = np.repeat(np.arange(n), [len(row) for row in rows]) if n else np.zeros(0, np.int64)
    columns = np.array([column for row in rows for column in row], np.int32)
    if kind == "coo":
        return arrays | {"row": which.astype(np.int32), "col": columns}
    if kind == "dia":
        return arrays | {"data": np.ones((2, width)), "offsets": np.array([0, -1 if n else 1])}
    if kind == "bsr":
        return arrays | {"data": data.reshape(-1, 1, 1), "indices": columns, "indptr": np.cumsum([0, *map(len, rows)])}
    if kind == "csc":
        order = np.lexsort((which, columns))
        lens = np.bincount(columns, minlength=width)
        return arrays | {
            "indices": which[order].astype(np.int32),
            "indptr": np.append(0, np.cumsum(lens)),
            "data": data[order],
        }
    return arrays | {"indices": columns, "indptr": np.cumsum([0, *map(len, rows)]).astype(np.int32)}


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
    n = rng.randrange(4)
    arrays = {"pair": np.array("xcrepro pair 1")}
    for name in ("X_", "Y_"):
        lens = [rng.randrange(3) for _ in range(n)]
        ids = np.array([i for size in lens for i in range(size)], np.int32)
        own = {
            "data": np.ones(len(ids), np.float32),
            "indices": ids,
            "indptr": np.cumsum([0, *lens]),
            "shape": np.array([n, 3]),
        }
        arrays |= {name + part: array for part, array in own.items()}
    return arrays


def dense_arrays(rng: random.Random) -> dict[str, np.ndarray]:
    """One array of two dimensions."""
    shape = rng.randrange(4), rng.randrange(5)
    return {
        "arr_0": np.array([rng.choice((0.0, 1.0, -np.inf, 0.25)) for _ in range(shape[0] * shape[1])]).reshape(shape)
    }


def mutated_arrays(rng: random.Random, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One to three changes of values, types, lengths, shapes, names."""
    arrays = dict(arrays)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not arrays:
            break
        name = rng.choice(sorted(arrays))
        array = np.array(arrays[name])
        change = rng.randrange(10)
        with np.errstate(all="ignore"):
            if change <= 3 and array.size and array.dtype.kind in "iufb":
                value = (
                    rng.choice((*_ODD, rng.randrange(12)))
                    if array.dtype.kind in "iub"
                    else rng.choice((np.nan, np.inf, -np.inf, -1, 1e300, 0))
                )
                info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
                value = min(max(value, info.min), info.max) if info else value
                array.reshape(-1)[rng.randrange(array.size)] = value
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
                arrays[name] = rng.choice(
                    (array.reshape(-1), array.reshape(1, *array.shape), np.array(rng.choice(_ODD)), array.T)
                )
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


_MEMBERS = (
    "train.txt",
    "test.txt",
    "a/train.txt",
    "a/test.txt",
    "a/",
    "a/b/",
    "a",
    "A/Train.txt",
    "./a",
    "a//b",
    "é.txt",
)
_STRANGE = ("../x", "/x", "a/../../x", "C:\\x", "C:x", "..\\x", "a\\b", "", ".", "..", "./", "/", "~/x", "a\nb", "a\x1b[m",
            "x" * 199, "x" * 201, "x" * 300, "é" * 101, "d/" * 19 + "x", "d/" * 20 + "x", "con", "a b", " ", "\u202ex",
            "__MACOSX/a", ".hidden", "a\x00b")  # fmt: skip
_KINDS = (0o100644, 0o100644, 0o040755, 0o120777, 0o010644, 0o020644, 0o060644, 0o140755, 0o104755)


def members(rng: random.Random) -> list[tuple]:
    """What an archive holds: (name, content, kind as Unix has it, way of packing)."""
    found = []
    for name in rng.sample(_MEMBERS[:4], rng.randrange(4)):
        found.append((name, xc(rng), 0o100644 * rng.randrange(2), rng.choice((0, 8, 8))))
    return found


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
    arrays = {
        "format": np.array("xcrepro block 1"),
        "truth_indptr": np.cumsum([0, *map(len, rows)]),
        "truth_indices": np.array([label for row in rows for label in row], np.int32),
        **top,
        "first_row": np.array(rng.choice((-1, 0, 7))),
    }
    if rng.randrange(3) == 0:
        arrays["n_relevant"] = np.array([len(row) + rng.randrange(2) for row in rows], np.float64)
    return arrays


def parquet_block(rng: random.Random):
    """A block as a table."""
    import pyarrow as pa

    arrays = block_arrays(rng)
    ids, ends = arrays["ids"].tolist(), arrays["truth_indptr"].tolist()
    present = [[label for label in row if label >= 0] for row in ids]
    scores = [row[: len(labels)] for row, labels in zip(arrays["scores"].tolist(), present, strict=True)]
    truth = [arrays["truth_indices"].tolist()[low:high] for low, high in itertools.pairwise(ends)]
    columns = {
        "truth": pa.array(truth, pa.list_(pa.int32())),
        "labels": pa.array(present, pa.list_(pa.int32())),
        "scores": pa.array(scores, pa.list_(pa.float32())),
    }
    if "n_relevant" in arrays:
        columns["n_relevant"] = pa.array(arrays["n_relevant"])
    about = {"xcrepro": "xcrepro block 1", "k": str(arrays["ids"].shape[1])}
    about |= {name: str(int(arrays[name])) for name in ("n_labels", "first_row")}
    return pa.table(columns).replace_schema_metadata(about)


def parquet_table(rng: random.Random):
    """Truth or predictions as a table: a row a row, or a row a pair."""
    import pyarrow as pa

    rows = [_labels(rng) for _ in range(rng.randrange(5))]
    scored = rng.randrange(2)
    text = rng.randrange(4) == 0
    label = pa.string() if text else pa.int32()
    rows = [list(map(str, labels)) if text else labels for labels in rows]
    if rng.randrange(2):
        columns = {"labels": pa.array(rows, pa.list_(label))}
        if scored:
            columns["scores"] = pa.array([[_score(rng) for _ in labels] for labels in rows], pa.list_(pa.float64()))
        if rng.randrange(4) == 0:
            columns["row"] = pa.array([f"r{row}" for row in range(len(rows))], pa.string())
        return pa.table(columns)
    pairs = [(row, one) for row, labels in enumerate(rows) for one in labels]
    columns = {
        "row": pa.array([row for row, _ in pairs], pa.int64()),
        "label": pa.array([one for _, one in pairs], label),
    }
    if scored:
        columns["score"] = pa.array([_score(rng) for _ in pairs], pa.float32())
    return pa.table(columns)


def mutated_table(rng: random.Random, table):
    """One to three changes of a table's values, types, columns, rows and what is said about it."""
    import decimal

    import pyarrow as pa

    flat = (pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float64(), pa.string(), pa.bool_(), pa.binary(),
            pa.large_string(), pa.decimal128(12, 2), pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.date64(), pa.null(),
            pa.time32("s"), pa.duration("s"), pa.dictionary(pa.int32(), pa.string()))  # fmt: skip
    odd = (None, -1, 2**31, 2**31 - 1, 2**40, 2**63 - 1, -(2**63), 2**64 - 1, 0.5, math.nan, math.inf, -math.inf, 1e300, 1e39,
           "3", "x", "007", "", "١", True, b"3", b"\xff", decimal.Decimal("3"), [3], [[3]], [], [None], [1, 1], [0.5],
           {"a": 1}, 11, 12, 3)  # fmt: skip
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice([*table.column_names, ""])
        if name not in table.column_names or table.column_names.count(name) > 1:
            about = {
                key.decode(): value.decode("utf-8", "replace") for key, value in (table.schema.metadata or {}).items()
            }
            if about and rng.randrange(4):
                key = rng.choice(sorted(about))
                about[key] = rng.choice((*NUMBERS, "", "xcrepro block 1", "1" * 5000))
                if rng.randrange(8) == 0:
                    del about[key]
                table = table.replace_schema_metadata(about)
            continue
        at, column, changed = table.column_names.index(name), table.column(name), table
        change = rng.randrange(9)
        try:
            if change <= 3 and len(column):
                values, row = column.to_pylist(), rng.randrange(len(column))
                if isinstance(values[row], list) and values[row] and rng.randrange(4):
                    values[row][rng.randrange(len(values[row]))] = rng.choice(odd)
                else:
                    values[row] = rng.choice(odd)
                kind = column.type if rng.randrange(2) else None
                changed = table.set_column(at, name, pa.array(values, kind))
            elif change == 4:
                kind = rng.choice(flat)
                kind = rng.choice((pa.list_(kind), pa.large_list(kind))) if pa.types.is_nested(column.type) else kind
                changed = table.set_column(at, name, column.cast(kind, safe=False))
            elif change == 5:
                changed = table.drop_columns([name])
            elif change == 6:
                other = rng.choice(("row", "label", "labels", "score", "scores", "truth", "x", name))
                changed = table.append_column(other, column)
            elif change == 7 and len(table):
                row = rng.randrange(len(table))
                changed = pa.concat_tables([table[:row], table[row + rng.randrange(2) :], table[: rng.randrange(2)]])
            elif change == 8:
                kind = pa.list_(column.type, 1) if rng.randrange(2) else pa.list_(column.type)
                changed = table.set_column(at, name, pa.array([[value] for value in column.to_pylist()], kind))
            parquet(changed)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue  # values that no column can hold together, or that no file can
        table = changed
    return table


def parquet(table) -> bytes:
    """The table's file."""
    import pyarrow as pa
    import pyarrow.parquet

    out = pa.BufferOutputStream()
    pa.parquet.write_table(table, out)
    return out.getvalue().to_pybytes()


def mutated_for_zarr(rng: random.Random, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Changed arrays, as far as a Zarr group has room for them."""
    numbers = {name: array for name, array in mutated_arrays(rng, arrays).items() if array.dtype.kind in "biuf"}
    numbers = {name: array for name, array in numbers.items() if array.dtype.itemsize <= 8}
    numbers = {
        name: array for name, array in numbers.items() if (array.ndim == 0) == (name in ("n_labels", "first_row"))
    }
    return {**numbers, "format": np.array("xcrepro block 1")}


def zarr_block(arrays: dict[str, np.ndarray]) -> dict[str, bytes]:
    """The files of a block as a Zarr group."""
    import zarr

    store: dict = {}
    group = zarr.open_group(zarr.storage.MemoryStore(store), mode="w")
    for name, array in arrays.items():
        if array.ndim:
            group.create_array(name, data=array)
    group.attrs.update({name: array.tolist() for name, array in arrays.items() if not array.ndim})
    return {name: data.to_bytes() for name, data in store.items()}
