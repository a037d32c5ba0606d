"""What a language model's program writes for a row, in whatever shape: one reader, its rules in one table.

Plain lists of labels are read as they are. All else goes through :func:`labels_of`, which notes in the index what it did to how
many answers, for the one line that is said of it, and refuses what could be meant in two ways.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from xcrepro.core.data.lines import json_lines, json_of, shown, text_lines
from xcrepro.core.data.sources import open_source
from xcrepro.core.errors import DataError
from xcrepro.tools.formats.index import Index
from xcrepro.tools.formats.lists import list_a_line

KEYS = ("labels", "answer", "answers", "predictions", "prediction", "tags")
"""Keys that hold a row's labels."""
RULES = {
    "none": "without an answer, a row of misses",
    "split": "of one text, split at line ends, ';', '|' or '#'",
    "commas": "of one text, split at commas, which no name of the list has",
    "fence": "unpacked from a fence of code or a text of JSON",
    "list": "of lines with a number or a bullet before each name",
    "named": "of objects with a name and a score",
    "scored": "of names with a score each, best first",
    "text": "with scores that are texts",
    "bare": "names that were bold, quoted, numbered or ended in a full stop",
    "percent": "with scores in percent, divided by 100",
}
"""What may be done to an answer -> how it is said."""
_NAME, _SCORE = ("name", "label", "tag"), ("confidence", "score", "probability", "prob", "p")
_BULLET = re.compile(r"\s*(?:[-*•–]\s+|\(?\d{1,3}[.):]\s+)")
_FENCE = re.compile(r"\s*```[a-z]*\s*\n(.*?)\n?\s*```\s*", re.DOTALL)

Answer = tuple[list[Any], list[float] | None]


def labels_of(path: str | os.PathLike, line: int | None, value: object, index: Index) -> Answer:
    """The labels of an answer, best first, and their scores if it has some.

    >>> index = Index()
    >>> [labels_of("a.jsonl", 1, value, index) for value in ("1. Law\\n2. **Tax**", {"Law": "90%", "Tax": 0.95}, None)]
    [(['Law', '**Tax**'], None), (['Law', 'Tax'], [0.9, 0.95]), ([], None)]
    """
    done: set[str] = set()
    labels, scores = _read(path, line, value, index, done)
    for rule in done:
        index.done[rule] = index.done.get(rule, 0) + 1
    return labels, scores


def _read(path, line: int | None, value: object, index: Index, done: set[str]) -> Answer:
    if value is None or (isinstance(value, str) and not value.strip()):
        done.add("none")
        return [], None
    if isinstance(value, str):
        return _of_text(path, line, value, index, done)
    if isinstance(value, dict):
        if key := next((key for key in KEYS if key in value), ""):
            return _read(path, line, value[key], index, done)
        if all(type(score) in (int, float, str) for score in value.values()):
            done.add("scored")
            return list(value), [_score(path, line, score, done) for score in value.values()]
    if isinstance(value, list):
        if value and all(isinstance(one, list) and len(one) == 2 for one in value):
            done.add("scored")
            given = [_score(path, line, score, done) for _, score in value]
            return [_label(path, line, one) for one, _ in value], given
        if not any(isinstance(one, dict) for one in value):
            return [_label(path, line, one) for one in value], None
        pairs = [_pair(path, line, one, done) for one in value]
        done.add("named")
        scores = [score for _, score in pairs]
        if all(score is None for score in scores):
            return [label for label, _ in pairs], None
        if any(score is None for score in scores):
            found = f"{shown(value)}, where not all have a score"
            raise DataError(path, found, "a score for each, or for none", line=line)
        return [label for label, _ in pairs], [float(score) for score in scores if score is not None]
    raise DataError(path, f"the answer {shown(value)}", "names of labels, or names with scores", line=line)


def _label(path, line: int | None, one: object) -> str | int:
    if type(one) not in (str, int):
        raise DataError(path, f"the label {shown(one)}", "a whole number or a name", line=line)
    return one  # type: ignore[return-value]


def _pair(path, line: int | None, one: object, done: set[str]) -> tuple[str | int, float | None]:
    names = [key for key in _NAME if isinstance(one, dict) and key in one]
    scores = [key for key in _SCORE if isinstance(one, dict) and key in one]
    if not isinstance(one, dict) or len(names) != 1 or len(scores) > 1:
        expected = f"an object with one of {', '.join(_NAME)}, and perhaps one of {', '.join(_SCORE)}"
        raise DataError(path, f"the label {shown(one)}", expected, line=line)
    return _label(path, line, one[names[0]]), _score(path, line, one[scores[0]], done) if scores else None


def _score(path, line: int | None, score: object, done: set[str]) -> float:
    """A number, also as a text or in percent."""
    if isinstance(score, str):
        text = score.strip()
        if re.fullmatch(r"\d+(\.\d*)?\s*%", text):
            done.add("percent")
            return float(text.rstrip("% ")) / 100
        if not re.fullmatch(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", text):
            raise DataError(path, f"the score {shown(score)}", "a number", line=line)
        done.add("text")
        return float(text)
    if type(score) not in (int, float) or not abs(score) < float("inf"):  # type: ignore[operator, arg-type]
        raise DataError(path, f"the score {shown(score)}", "a finite number", line=line)
    return float(score)  # type: ignore[arg-type]


def _of_text(path, line: int | None, text: str, index: Index, done: set[str]) -> Answer:
    if fenced := _FENCE.fullmatch(text):
        done.add("fence")
        return _read(path, line, fenced[1], index, done)
    if text.lstrip().startswith(("[", "{")):
        found = json_of(text)
        if found is None:  # as Python prints a list
            try:
                found = ast.literal_eval(text.strip())
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                found = None
        if isinstance(found, list | dict):
            done.add("fence")
            return _read(path, line, found, index, done)
    lines = [one for one in text.splitlines() if one.strip()]
    if all(map(_BULLET.match, lines)):
        done.add("list")
        return [_BULLET.sub("", one, count=1).strip() for one in lines], None
    names = index.label_names
    if len(lines) == 1 and names is not None and names.id(text.strip()) is not None:
        return [text.strip()], None
    for separator in ("\n", ";", "|", "#"):
        if separator in text.strip():
            done.add("split")
            return [part.strip() for part in text.split(separator) if part.strip()], None
    if "," not in text:
        return [text.strip()], None
    if names is None or any("," in name for name in names.names):
        do = "Write a list, or separate names by ';'; names without commas (--labels, label_names=) tell, too"
        raise DataError(path, f"the answer {shown(text)}", "names that are told apart", line=line, do=do)
    done.add("commas")
    return [part.strip() for part in text.split(",") if part.strip()], None


def records(path: str | os.PathLike) -> Iterator[tuple[int, dict]]:
    """The objects of a file with their lines: JSON lines, an array of objects, ``{id: answer}``, a list a line, a batch
    interface's lines."""
    from xcrepro.tools.formats import head_of

    head = head_of(path).removeprefix(b"\xef\xbb\xbf").lstrip()
    if list_a_line(head):
        for line, text in text_lines(path):
            answer = json_of(text)
            if text.strip() and not isinstance(answer, list) and text.strip() != "null":
                raise DataError(path, shown(text), "one JSON list a line", line=line)
            if text.strip():
                yield line, {"labels": answer}
        return
    whole = json_of(head) if head.startswith(b"{") else None
    if head.startswith(b"[") or (isinstance(whole, dict) and whole and not _is_record(whole)):
        with open_source(path) as stream:
            whole = json_of(stream.read())
        if isinstance(whole, dict):
            whole = [{"id": row, "labels": answer} for row, answer in whole.items()]
        if not isinstance(whole, list) or not all(isinstance(record, dict) for record in whole):
            raise DataError(path, "no JSON", "one array of objects, one for each row", do="Was the file cut?")
        yield from enumerate(whole, 1)
        return
    for line, record in json_lines(path):
        if {"custom_id", "response"} <= set(record):
            record = {"id": record["custom_id"], "labels": _of_batch(path, line, record)}
        yield line, record


def _is_record(record: dict) -> bool:
    known = {*KEYS, "results", "subjects", "target_ind", "scores", "custom_id", "row", "uid", "id", "document_id"}
    return bool(known & set(record)) or not all(
        value is None or isinstance(value, list | str) for value in record.values()
    )


def _of_batch(path, line: int, record: dict) -> object:
    """The text of the first choice of a line of a batch interface; None of a request that failed."""
    try:
        if record.get("error") or record["response"].get("status_code", 200) != 200:
            return None
        return record["response"]["body"]["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError, AttributeError):
        found = shown(json.dumps(record.get("response")))
        raise DataError(path, found, "response.body.choices[0].message.content", line=line) from None


def said(index: Index) -> str:
    """One line on what was done to how many answers; empty where all were plain lists."""
    parts = [f"{n:,} {RULES[rule]}" for rule, n in sorted(index.done.items(), key=lambda one: -one[1])]
    return f"answers: {'; '.join(parts)}" if parts else ""
