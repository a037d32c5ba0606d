"""When two texts of a run say the same: words exactly, numbers within the item's tolerance."""

from __future__ import annotations

import itertools
import re

from xcrepro.repro import notebooks

# A number by itself: not the digits of a name such as fig3 or Wiki10-31K.
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*[A-Za-z_])")
_SEEN = ("text/plain", "text/html", "text/markdown", "text/latex")


def difference(old: str, new: str, rtol: float) -> str:
    """Where ``new`` differs from ``old``, in words.

    Blanks and dashes of a ruled line count as one, since a longer number moves the columns. A whole number is exact;
    any other may differ by ``rtol`` of itself (or of 0.001, if that is more), and by one in the last place shown where
    the tolerance is wider than 1e-6.

    Parameters
    ----------
    old, new : str
    rtol : float
        At least 0; from 1 on whole numbers are not exact either, infinity looks at the words alone.

    Returns
    -------
    str
        The first difference; empty where ``new`` says the same.

    Examples
    --------
    >>> difference("PLT leads by 0.52 points", "PLT  leads by 0.53 points", 0.02)
    ''
    >>> difference("PLT leads by 0.52 points", "PLT leads by 0.53 points", 1e-9)
    "'0.53' instead of '0.52' in 'PLT leads by 0.53 points'"
    >>> difference("PLT leads", "FastXML leads", 0.02)
    "'FastXML' instead of 'PLT' in 'FastXML leads'"
    """
    for before, after in itertools.zip_longest(_lines(old), _lines(new), fillvalue=""):
        if before == after:
            continue
        pairs = list(itertools.zip_longest(_parts(before), _parts(after), fillvalue=""))
        for was, now in pairs:
            if was != now and not _close(was, now, rtol):
                return f"{now!r} instead of {was!r} in {after.strip()!r}"
    return ""


def _lines(text: str) -> list[str]:
    return [line for line in (" ".join(line.split()) for line in text.splitlines()) if line]


def _parts(line: str) -> list[str]:
    parts, at = [], 0
    for match in _NUMBER.finditer(line):
        parts += [*line[at : match.start()].split(), match.group()]
        at = match.end()
    return [*parts, *line[at:].split()]


def _close(was: str, now: str, rtol: float) -> bool:
    if not (_NUMBER.fullmatch(was) and _NUMBER.fullmatch(now)):
        return False
    a, b = (float(text.replace(",", "")) for text in (was, now))
    if rtol < 1 and not any(sign in was + now for sign in ".e"):
        return a == b
    last = max(_last_place(was), _last_place(now)) if rtol > 1e-6 else 0.0
    return abs(a - b) <= rtol * max(abs(a), abs(b), 0.001) + last * 1.000001


def _last_place(text: str) -> float:
    digits, _, exponent = text.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def cell_difference(old: list[dict], new: list[dict], rtol: float) -> str:
    """:func:`difference` of two cells' outputs.

    Parameters
    ----------
    old, new : list of dict
        In the form of :func:`xcrepro.repro.tidy.outputs`.
    rtol : float
        As for :func:`difference`.

    Returns
    -------
    str
        The first difference, that of the outputs' kinds before those of their texts; empty where there is none.
    """
    if [output["output_type"] for output in old] != [output["output_type"] for output in new]:
        return f"outputs {[o['output_type'] for o in new]} instead of {[o['output_type'] for o in old]}"
    for was, now in zip(old, new, strict=True):
        before, after = _texts(was), _texts(now)
        if set(before) != set(after):
            return f"output as {', '.join(after)} instead of {', '.join(before)}"
        for kind, text in before.items():
            if said := difference(text, after[kind], rtol):
                return said
    return ""


def _texts(output: dict) -> dict[str, str]:
    if output["output_type"] == "stream":
        return {"stdout": notebooks.text(output["text"])}
    if output["output_type"] == "error":
        return {"error": f"{output['ename']}: {output['evalue']}"}
    return {kind: notebooks.text(output["data"][kind]) for kind in _SEEN if kind in output["data"]}
