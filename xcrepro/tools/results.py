"""Results that are kept: a folder with one file per model and dataset, shown as one table with the printed rows.

A file says what was computed, by which version, with which options and on which truth (its fingerprint), so that one
sees what does not belong together. What cannot be right (:mod:`xcrepro.repro.published.checks`) does not come in.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.core import paths
from xcrepro.core.arguments import did_you_mean
from xcrepro.core.data import registry as datasets
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.metrics import registry
from xcrepro.core.metrics.evaluate import evaluate
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth
from xcrepro.core.version import __version__
from xcrepro.repro.published import record
from xcrepro.repro.published.results import LARGEST, audit_values
from xcrepro.tools.diagnose import fingerprint

if TYPE_CHECKING:
    import pandas as pd

SHOWN = ("P", "nDCG", "PSP")
"""Metrics that a table shows unasked, where there are any."""
_FORMAT = "xcrepro result 2"
"""What has a digest; results of before have neither."""
_SEAL = {"format": str, "sha256": str}
_FIELDS = {"name": str, "dataset": str, "note": str, "version": str, "options": dict, "truth": dict, "values": dict}
_TRUTH = {"fingerprint": str, "points": int, "labels": int, "pairs": int}
_LONGEST = 80
HISTORY = "history.jsonl"
"""Beside the datasets' folders: a line for each time that a result was added."""
DOUBTS = "doubts"
"""The option that names what :func:`xcrepro.diagnose.check` found, where it found something: a table says it."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What one model reached on one dataset, with all that its numbers depend on."""

    name: str
    dataset: str
    values: dict[str, float]
    truth: dict[str, object]
    options: dict[str, object] = dataclasses.field(default_factory=dict)
    version: str = __version__
    note: str = ""


def of(
    name: str,
    dataset: str,
    Y,
    top: TopK,
    ks=(1, 3, 5),
    inverse_propensity=None,
    label_counts=None,
    *,
    metrics=None,
    options: Mapping[str, object] | None = None,
    note: str = "",
) -> Result:
    """Evaluate predictions as :func:`xcrepro.evaluate` does to a result; a name of the catalogue becomes its key."""
    for argument, text in (("name", name), ("dataset", dataset)):
        if not text.strip() or len(text) > _LONGEST or not text.isprintable():
            raise ArgumentError(argument, f"must be a text of 1 to {_LONGEST} characters in one line", repr(text))
    truth = as_truth(Y)
    table = evaluate(truth, top, ks, inverse_propensity, label_counts, metrics=metrics)
    values = {f"{row.metric}@{row.k}": float(row.value) for row in table.itertuples()}
    about = {
        "fingerprint": fingerprint(truth),
        "points": int(truth.n_rows),
        "labels": int(truth.n_labels),
        "pairs": int(truth.indices.size),
    }
    full = bool((top.ids[:, : int(table["k"].max())] >= 0).all())
    said = {**(options or {}), "every point has k predictions": full}
    return Result(name.strip(), _key(dataset), values, about, said, note=note)


def _key(dataset: str) -> str:
    """A dataset's name in the catalogue, or what it is called."""
    entry = datasets.find(dataset)
    return entry.name if entry else dataset.strip()


def default_folder() -> Path:
    """``results`` of the project in which one is, else of the working folder: never in the cache, nor in the clone."""
    root, here = paths.project_root(), Path.cwd().resolve()
    own = "XCREPRO_ROOT" in os.environ or root in (here, *here.parents)
    return (root if own and (root / "notebooks").is_dir() else here) / "results"


def add(result: Result, folder: Path | None = None, force: bool = False) -> Path:
    """Keep a result, once it has passed the audit, as ``<folder>/<dataset>/<name>.json``; ``force`` replaces one."""
    path = (folder or default_folder()) / _file_name(result.dataset) / f"{_file_name(result.name)}.json"
    _audit(path, result)
    if path.exists() and not force:
        raise ArgumentError(
            "name", "must be new for its dataset", f"{result.name!r}, which is {path}", "or give --force"
        )
    content = dataclasses.asdict(result)
    content["values"] = {name: None if math.isnan(value) else value for name, value in result.values.items()}
    content["format"] = _FORMAT
    content["sha256"] = paths.seal(content)
    past = path.parents[1] / HISTORY
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    paths.write_together({path: text.encode(), past: _remembered(past, content)})
    return path


def _remembered(path: Path, content: Mapping[str, object]) -> bytes:
    """The history with one line more: also a result that is replaced later stays known."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    kept = {name: content[name] for name in ("dataset", "name", "version", "sha256", "note", "values")}
    line = {"added": now, **kept, "truth": content["truth"]["fingerprint"]}
    before = path.read_bytes() if path.is_file() else b""
    return before + json.dumps(line, ensure_ascii=False).encode() + b"\n"


def history(folder: Path | None = None, dataset: str | None = None, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """What was added to a folder, and when: one row each time, the oldest first, replaced results too.

    Columns: added (UTC), dataset, method, one per metric (percent if it is a fraction), truth and digest: the first 8 digits
    of the fingerprint of the truth and of the SHA-256 of the result. ``folder`` is by default :func:`default_folder`,
    ``metrics`` as for :func:`table`. DataMissing where nothing was added since there is a history, DataError for a line that
    is none.
    """
    import pandas as pd

    path = (folder or default_folder()) / HISTORY
    if not path.is_file():
        raise DataMissing(f"{path}: no history yet; `xcrepro results add` writes one")
    found, wanted = [], None if dataset is None else _key(dataset)
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        try:
            one = json.loads(line)
            values = {name: math.nan if value is None else float(value) for name, value in one["values"].items()}
            texts = [str(one[name]) for name in ("added", "dataset", "name", "truth", "sha256")]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DataError(path, f"line {number} ({type(error).__name__})", "what `results add` writes") from None
        if wanted in (None, texts[1]):
            found.append((texts, values))
    columns = _columns(list(dict.fromkeys(name for _, values in found for name in values)), metrics)
    rows = [(*texts[:3], *_in_percent(values, columns), texts[3][:8], texts[4][:8]) for texts, values in found]
    return pd.DataFrame(rows, columns=["added", "dataset", "method", *columns, "truth", "digest"])


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.+-]", "_", text).lstrip(".") or "_"


def _audit(path: Path, result: Result) -> None:
    if found := audit_values(result.values, bool(result.options.get("every point has k predictions"))):
        raise DataError(path, f"{found[0].column} = {found[0].printed} ({found[0].why})", f"{found[0].expected}")


def read(path: Path) -> Result:
    """One kept result; DataError for content that is not what was kept (it has a digest) or cannot be right."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise DataError(path, f"no JSON ({error})", "a result that `xcrepro results add` wrote") from None
    sealed = isinstance(content, dict) and not _SEAL.keys().isdisjoint(content)
    _require(path, content, _FIELDS | (_SEAL if sealed else {}), "the result")
    _require(path, content["truth"], _TRUTH, "truth")
    values = {}
    for name, value in content["values"].items():
        number = value is None or (type(value) in (int, float) and abs(value) <= LARGEST)
        if not re.fullmatch(r".+@[1-9]\d{0,8}", name) or not number or not registry.is_metric(name.rpartition("@")[0]):
            raise DataError(path, f"the value {name!r}: {value!r}", "a metric and k, such as P@1, and a number or null")
        values[name] = math.nan if value is None else float(value)
    if not values:
        raise DataError(path, "no values", "one metric or more")
    result = Result(**{name: content[name] for name in _FIELDS} | {"values": values})
    _audit(path, result)
    do = "Add it again: `xcrepro results add ... --force`"
    if not sealed:
        warnings.warn(f"{path} was kept before results had digests, so damage would not be seen. {do}", stacklevel=2)
    elif content["format"] != _FORMAT or content["sha256"] != paths.seal(content):
        raise DataError(path, "another content than was kept", f"{_FORMAT} with its digest", do=do)
    return result


def _require(path: Path, content: object, fields: Mapping[str, type], what: str) -> None:
    if not isinstance(content, dict) or set(content) != set(fields):
        found = ", ".join(content) if isinstance(content, dict) else type(content).__name__
        raise DataError(path, f"{what} with {found or 'nothing'}", ", ".join(fields))
    for name, kind in fields.items():
        if type(content[name]) is not kind:
            raise DataError(path, f"{name} {content[name]!r} in {what}", f"one of type {kind.__name__}")


def read_all(folder: Path | None = None, dataset: str | None = None) -> list[Result]:
    """The results of a folder, perhaps only of one dataset, by dataset and name."""
    folder = folder or default_folder()
    found = [read(path) for path in sorted(folder.glob("*/*.json")) if not path.name.startswith(".")]
    if not found:
        raise DataMissing(f"{folder}: no results yet; `xcrepro results add` puts one there")
    if dataset is None:
        return found
    key = _key(dataset)
    if chosen := [result for result in found if result.dataset == key]:
        return chosen
    there = sorted({result.dataset for result in found})
    hint = did_you_mean(key, there, 1) or f"there are {', '.join(there)}"
    raise ArgumentError("dataset", f"must have results in {folder}", repr(dataset), hint)


def table(
    results: Sequence[Result], metrics: Sequence[str] = (), sort: str = "", printed: bool = True
) -> tuple[pd.DataFrame, list[str]]:
    """Results of any datasets as one table with the benchmark rows printed of them, and what must be said of it, in sentences.

    Columns: dataset, method, from, one per metric (percent if it is a fraction), truth (the first 8 digits of its
    fingerprint). ``metrics`` are ``"PSP@5"``, or ``"PSP"`` for all its k. ``sort`` is the column for the order within a
    dataset, best first.
    """
    import pandas as pd

    there = list(dict.fromkeys(name for result in results for name in result.values))
    columns = _columns(there, metrics)
    rows, notes = [], []
    for dataset in dict.fromkeys(result.dataset for result in results):
        of_it = [result for result in results if result.dataset == dataset]
        for result in of_it:
            mark = result.truth["fingerprint"][:8]
            rows.append((dataset, result.name, f"kit {result.version}", *_in_percent(result.values, columns), mark))
        notes += _apart(dataset, of_it)
        if printed:
            beside, note = _printed(dataset, of_it, columns)
            rows += beside
            notes += [note] if note else []
    found = pd.DataFrame(rows, columns=["dataset", "method", "from", *columns, "truth"])
    sort = sort or columns[0]
    if sort not in columns:
        raise ArgumentError("sort", f"must be one of {', '.join(columns)}", repr(sort), did_you_mean(sort, columns, 1))
    up = _metric(sort).better == "lower"
    parts = [part.sort_values(sort, ascending=up, kind="stable") for _, part in found.groupby("dataset", sort=False)]
    return pd.concat(parts, ignore_index=True), notes


def _metric(column: str) -> registry.Metric:
    return registry.metric_named(column.rpartition("@")[0])


def _columns(there: list[str], asked: Sequence[str]) -> list[str]:
    chosen: list[str] = []
    for name in asked or SHOWN:
        found = [column for column in there if name in (column, column.rpartition("@")[0])]
        if not found and asked:
            hint = did_you_mean(name, there) or f"there are {', '.join(there)}"
            raise ArgumentError("metrics", "must be among those of the results", repr(name), hint)
        chosen += [column for column in found if column not in chosen]
    return chosen or there


def _in_percent(values: Mapping[str, float], columns: list[str]) -> list[float]:
    units = (100 if _metric(name).unit == "fraction" else 1 for name in columns)
    return [values.get(name, math.nan) * unit for name, unit in zip(columns, units, strict=True)]


def _apart(dataset: str, results: list[Result]) -> list[str]:
    """Why results of a dataset may not be ranked among each other."""
    notes = [
        f"{dataset}: the predictions of {result.name} may not belong to this truth ({', '.join(map(str, kinds))}), so "
        "its numbers may mean nothing"
        for result in results
        if isinstance(kinds := result.options.get(DOUBTS), list) and kinds
    ]
    marks: dict[str, list[str]] = {}
    for result in results:
        marks.setdefault(result.truth["fingerprint"][:8], []).append(result.name)
    if len(marks) > 1:
        which = "; ".join(f"{mark}: {', '.join(names)}" for mark, names in marks.items())
        notes.append(f"{dataset}: these are on different test truths and no ranking of each other ({which})")
    weights: dict[str, list[str]] = {}
    for result in results:
        if any(name.startswith("PS") for name in result.values):
            said = {name: result.options.get(name) for name in ("A", "B", "train points")}
            weights.setdefault(", ".join(f"{k} {v}" for k, v in said.items()), []).append(result.name)
    if len(weights) > 1:
        which = "; ".join(f"{said}: {', '.join(names)}" for said, names in weights.items())
        notes.append(f"{dataset}: propensities differ ({which})")
    return notes


def _printed(dataset: str, results: list[Result], columns: list[str]) -> tuple[list[tuple], str]:
    """The page's rows in the table's columns; or why there are none."""
    entry = datasets.find(dataset)
    source = f"xcrepo:{entry.printed_name}" if entry else ""
    if source not in record.sources():
        return [], ""
    page = entry.published.get("xcrepo:dataset-table", {})
    sizes = page.get("n_test"), page.get("n_labels")
    if other := [r.name for r in results if (r.truth["points"], r.truth["labels"]) != sizes]:
        return [], (
            f"{dataset}: no printed rows, which are on {sizes[0]:,} points and {sizes[1]:,} labels; {', '.join(other)} "
            f"{'is' if len(other) == 1 else 'are'} not"
        )
    rows = record.table(source)
    places = {(code, k): i for i, (code, k) in enumerate(map(_printed_as, columns)) if code}
    found = []
    for (_, method, variant), cells in rows.groupby(["row", "method", "variant"], sort=False):
        values = [math.nan] * len(columns)
        for cell in cells.itertuples():
            if (cell.metric, cell.k) in places:
                values[places[cell.metric, cell.k]] = cell.value
        if not all(map(math.isnan, values)):
            found.append((dataset, f"{method} {variant}".strip(), source, *values, ""))
    return found, ""


def _printed_as(column: str) -> tuple[str, int]:
    name, _, k = column.rpartition("@")
    return registry.codes().get(registry.plain(name), ""), int(k)
