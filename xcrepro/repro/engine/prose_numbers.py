"""Numbers typed in a notebook's text, each held by an expression in the comment behind it.

``gains 2.9<!-- gain["PfastXML"] --> points`` holds 2.9 by what the expression gives in the notebook after its last cell. A
reader sees no comment, neither on GitHub nor in JupyterLab nor on the site. ``<!-- must: a > b -->`` holds what the words
before it say, and a quoted text in place of an expression says where a number is from that no run computes.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping

from xcrepro.core.errors import XCError
from xcrepro.repro.engine import notebooks, rounding

TAGS = {"answer", "conclusion"}
"""Of the cells whose numbers are held."""
COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_TEN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty"
)
WORDS = {word: str(value) for value, word in enumerate(_TEN.split())} | {
    "no": "0",
    "none": "0",
    "once": "1",
    "both": "2",
    "twice": "2",
    "half": "0.5",
    "third": "0.3",
    "quarter": "0.25",
}
"""Numbers in words, as digits that a value has to round to."""
_DIGITS = r"[+−-]?\d+(?:,\d{3})*(?:\.\d+)?"
_HELD = re.compile(
    rf"(?P<number>(?<![\w.,])(?:{_DIGITS}|(?i:\b(?:{'|'.join(WORDS)}))))(?P<stars>\*{{0,2}})<!--(?P<code>.*?)-->",
    re.DOTALL,
)
_MUST = re.compile(r"<!--\s*must:(?P<code>.*?)-->", re.DOTALL)
_NUMBER = re.compile(rf"(?<![\w@.,/^_-]){_DIGITS}(?![\w-]|\.\d)")
_LIST = r"\d+(?:\.\d+)*[a-d]?(?:(?:,| and| to| or|, and) (?:\d+(?:\.\d+)*[a-d]?|[a-d])\b(?!,\d| %| points))*"
_NAMED = re.compile(
    r"(?i:\b(?:tables?|figures?|sections?|equations?|lessons?|theorems?|corollary|algorithms?|pages?|splits?|seeds?|"
    r"appendix|places?|ranks?|rows?|columns?|cells?|task|versions?|step|definitions?|chapter|lines?|labels?(?= \d+\b)|"
    rf"records?(?= \d+\b))) {_LIST}"
    rf"|\b[kK] *(?:=|≤|≥|<|>|from|up to) *{_LIST}|@{_LIST}"  # places of a ranking
    r"|(?<![\d.,])(?:1[89]|20)\d\d(?![\d.,]\d| %)"  # years
    r"|(?<![\d.,])9[59] %"  # confidence
    r"|\[\d+[a-z]?\]|\b(?:1 to 9|10 to 99|100 to 999)\b"  # words of a link; the bins of binned macro-F1
    r"|\b(?:with|from|per|fitted to|after) \d[\d,]*(?= (?:\w+ )?(?:records|points)\b)"  # sizes
    r"|\b\d+ to [\d,]+(?= (?:training |train |test )?(?:records|points|occurrences)\b)"  # bins
    r"|(?<!\w)[^\W\d_] = \d+(?:\.\d+)?(?:(?:,| and| or) \d+(?:\.\d+)?)*"  # a setting with its name
    r"|\(\d+[a-d]?\)|^ *\d+\. |(?<![\d.,])[01](?![.,]?\d| of | %)|\b100 %",
    re.MULTILINE,
)
"""What has digits and needs no comment: equations and other places of a document, k and further settings by their letter,
bins of training records, sizes that are tried, years, levels of confidence, and the ends of a scale."""
_SEVERAL = "|".join(_TEN.split()[2:])
_IN_WORDS = re.compile(
    rf"(?i)\b(?!one of the)(?:{'|'.join(WORDS)}) (?:out )?of (?:the |its |our |these )?(?:{_SEVERAL}|\d+)\b"
    rf"|\b(?:twice|(?:{_SEVERAL}) times)(?= (?:as|the|its|that|too)\b)"
)
_NO_TEXT = re.compile(r"(?<=\])\([^)\s]*\)|`[^`]*`|\$\$.*?\$\$|\$[^$\n]+\$|<[^>\n]+>", re.DOTALL)


class TypedFault(XCError):
    """What a text says is not what the run came to."""


@dataclasses.dataclass(frozen=True)
class Held:
    """A number or a condition of a text: the cell from 0, the place in its source, what is written, and its expression."""

    cell: int
    start: int
    written: str
    code: str

    @property
    def condition(self) -> bool:
        """Whether it is a ``must:``."""
        return not self.written

    @property
    def quoted(self) -> bool:
        """Whether it is a quoted text, which says where the number is from."""
        return isinstance(self.literal, str)

    @property
    def literal(self) -> object:
        """The value of an expression that is a literal, else None."""
        try:
            return ast.literal_eval(self.code)
        except (ValueError, SyntaxError):
            return None


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is wrong at a place; ``now`` is the number that would be right, empty where no number could mend it, and ``value``
    what the expression gives, None where it fails."""

    held: Held
    why: str
    now: str = ""
    value: float | bool | None = None


def without_comments(text: str) -> str:
    """A text as a reader sees it."""
    return COMMENT.sub("", text)


def cells(notebook: dict) -> Iterator[tuple[int, str]]:
    """Number, from 0, and source of each cell whose numbers are held."""
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "markdown" and TAGS & set(notebooks.tags(cell)):
            yield number, notebooks.text(cell["source"])


def held(notebook: dict) -> list[Held]:
    """Everything that a comment holds, in the order of the text."""
    found = []
    for cell, text in cells(notebook):
        numbers = [Held(cell, one.start(), one["number"], one["code"].strip()) for one in _HELD.finditer(text)]
        numbers = [one for one in numbers if not one.code.startswith("must:")]
        found += numbers + [Held(cell, one.start(), "", one["code"].strip()) for one in _MUST.finditer(text)]
    return sorted(found, key=lambda one: (one.cell, one.start))


def digest(notebook: dict) -> str:
    """SHA-256 over the numbers that are held and their expressions: a run has to be compared with them."""
    return hashlib.sha256(json.dumps([(one.written, one.code) for one in held(notebook)]).encode()).hexdigest()


def note(notebook: dict) -> dict:
    """What :func:`notebooks.accepted` is to find of a notebook as it is now."""
    code, text = notebooks.code_hash(notebook)[:16], digest(notebook)[:16]
    return {"parameters": notebooks.parameters("notebook", notebook), "code": code, "text": text}


def unheld(notebook: dict) -> list[str]:
    """Numbers of the text that no comment holds, comments that hold nothing, and expressions that are only a number."""
    found = []
    for cell, text in cells(notebook):
        where = f"markdown cell {cell + 1}"
        rest = _MUST.sub("", _HELD.sub(lambda one: one[0] if one["code"].strip().startswith("must:") else " ", text))
        found += [f"{where}: the comment {one[0]!r} is behind no number" for one in COMMENT.finditer(rest)]
        rest = _NAMED.sub(lambda one: "\n" * one[0].count("\n"), _NO_TEXT.sub(" ", COMMENT.sub("", rest)))
        for pattern in (_NUMBER, _IN_WORDS):
            for one in pattern.finditer(rest):
                around = " ".join(rest[max(0, one.start() - 40) : one.end() + 25].split())
                found.append(f"{where}: no comment holds {one[0]!r} in {around!r}")
    for one in held(notebook):
        if one.literal is not None and not one.quoted:
            found.append(f"markdown cell {one.cell + 1}: {one.written or 'must:'} is held by the literal {one.code}")
    return found


def faults(notebook: dict, namespace: Mapping[str, object]) -> list[Fault]:
    """What of a text is not so, by the names of the notebook after its run."""
    names, found = dict(namespace), []
    for one in held(notebook):
        try:
            value = eval(compile(one.code, "<text>", "eval"), names)  # the notebook's own code, as its cells are
            value = value if one.condition or one.quoted else float(value)
        except Exception as error:
            found.append(Fault(one, f"its expression `{one.code}` fails: {type(error).__name__}: {error}"))
            continue
        if one.condition:
            if not bool(value):
                found.append(Fault(one, f"`{one.code}` is not so", value=False))
        elif not one.quoted and not rounds_to(value, one.written):
            now = "" if one.written.lower() in WORDS else written_like(value, one.written)
            found.append(Fault(one, f"{one.written} is {value:.6g}, by `{one.code}`", now, value))
    return found


def names_of(notebook: dict, namespace: Mapping[str, object]) -> dict:
    """The names of a reader's own run, and those that its expressions use and only the committed run defines.

    The cells that define them begin with ``if item.official:``, because on other data they may fail. What can be defined is.
    """
    names = dict(namespace)
    for cell in notebooks.code_cells(notebook):
        try:
            body = ast.parse(notebooks.text(cell["source"])).body
        except (SyntaxError, ValueError):  # a magic of IPython's
            continue
        for guarded in body:
            if isinstance(guarded, ast.If) and ast.unparse(guarded.test) == "item.official":
                for line in guarded.body:
                    with contextlib.suppress(Exception):
                        exec(compile(ast.Module([line], []), "<text>", "exec"), names)
    return names


def moved(notebook: dict, namespace: Mapping[str, object]) -> str:
    """Which numbers of the text a reader's own run has otherwise, as Markdown: a line for each sentence, then how many could
    not be compared, because the run has not what they are about."""
    by_sentence: dict[str, list[str]] = {}
    unknown = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is computed only to be compared
        found = faults(notebook, names_of(notebook, namespace))
    for one in found:
        if one.value is None or one.value != one.value:
            unknown += 1
            continue
        text = notebooks.text(notebook["cells"][one.held.cell]["source"])
        said = "not so here" if one.held.condition else f"{one.held.written} is {one.now or f'{one.value:.3g}'}"
        by_sentence.setdefault(sentence(text, one.held.start), []).append(said)
    lines = [f"- {', '.join(dict.fromkeys(said))}: {words}" for words, said in by_sentence.items()]
    if unknown:
        of = f"{unknown} of the {len(held(notebook))} numbers and statements"
        lines.append(f"- {of} cannot be compared, because this run has not what they are about.")
    return "\n".join(lines)


def rounds_to(value: float, written: str) -> bool:
    """Whether a value rounds to a number as it is typed, in digits or in one of :data:`WORDS`."""
    return rounding.within(value, WORDS.get(written.lower(), written).replace(",", "").replace("−", "-"))


def written_like(value: float, written: str) -> str:
    """A value with the decimals, the sign and the minus of a number as it is typed."""
    decimals = len(written.partition(".")[2])
    text = f"{value:{'+' if written[0] == '+' else ''},.{decimals}f}"
    return text.replace("-", "−") if "−" in written else text


def sentence(text: str, place: int) -> str:
    """The sentence around a place of a text, as a reader sees it."""
    start = max(text.rfind(". ", 0, place) + 2 if ". " in text[:place] else 0, text.rfind("\n\n", 0, place) + 1)
    ends = [end for end in (text.find(". ", place), text.find("\n\n", place)) if end >= 0]
    return " ".join(without_comments(text[start : min(ends, default=len(text)) + 1]).split())


def rewritten(notebook: dict, changes: Iterable[tuple[int, int, str, str]]) -> list[str]:
    """Put numbers into a notebook's text, (cell, place, old, new) each; the sentences that changed, before and after."""
    said = []
    by_cell: dict[int, list[tuple[int, str, str]]] = {}
    for cell, start, old, new in changes:
        by_cell.setdefault(cell, []).append((start, old, new))
    for cell, several in by_cell.items():
        text = before = notebooks.text(notebook["cells"][cell]["source"])
        for start, old, new in sorted(several, reverse=True):
            if text[start : start + len(old)] != old:
                raise XCError(f"cell {cell + 1}: the text was edited while it ran; accept it again")
            text = text[:start] + new + text[start + len(old) :]
        notebook["cells"][cell]["source"] = text
        shift = 0
        for start, old, new in sorted(several):
            was, is_ = sentence(before, start), sentence(text, start + shift)
            shift += len(new) - len(old)
            said += [f"{was} -> {is_}"] if f"{was} -> {is_}" not in said else []
    return said
