"""Whether a run made what is committed: equality, and how far apart two texts are where they are not equal.

Everything that is committed as a run's result is compared here and nowhere else, without a tolerance: numbers have six
significant digits, and what computes them gives the same bits on every x86-64 Linux with the versions of
``constraints.txt``. :func:`elsewhere` a difference is reported with both versions and fails nothing.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import itertools
import math
import platform
import re

from xcrepro.core import extras, paths
from xcrepro.core.errors import XCError

PINNED = ("numpy", "scipy", "pandas", "matplotlib", "numba", "llvmlite")
"""What has to be installed in the version of ``constraints.txt`` for equality to be promised."""
# A number by itself: not the digits of a name such as fig3 or Wiki10-31K.
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*[A-Za-z_])")


class NotTheSame(XCError):
    """A run made something else than what is committed."""


@functools.cache
def elsewhere() -> tuple[str, ...]:
    """Why this environment cannot promise the committed bits: ``numpy 2.3.1, committed with 2.4.6``; empty where it can."""
    try:
        lines = paths.committed("constraints.txt").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ("no constraints.txt says with which versions what is committed was made",)
    wanted = dict(line.split("==") for line in lines if "==" in line)
    found = []
    for name in PINNED:
        installed = extras.version(name)
        if installed != wanted.get(name):
            found.append(f"{name} {installed}, committed with {wanted.get(name, 'another')}")
    here = f"{platform.machine()} {platform.system()}"
    if here != "x86_64 Linux":
        found.append(f"{here}, committed on x86_64 Linux")
    return tuple(found)


@dataclasses.dataclass(frozen=True)
class Difference:
    """The first difference of two texts in words, and the largest relative one; infinite if more than numbers differ."""

    text: str
    relative: float

    def __str__(self) -> str:
        """With, where this environment promises nothing, its size and the versions."""
        if not elsewhere():
            return self.text
        size = f"numbers differ by {self.relative:.1g} of themselves at most"
        size = size if self.relative < math.inf else "words differ"
        return f"{self.text}; {size} ({'; '.join(elsewhere())})"


def difference(committed: str, now: str) -> Difference | None:
    """How the text ``now`` differs from what is committed; None where they are equal."""
    if committed == now:
        return None
    text, relative = "", 0.0
    lines = itertools.zip_longest(committed.split("\n"), now.split("\n"))
    for number, (old, new) in enumerate(lines, 1):
        if old == new:
            continue
        text = text or f"line {number}: {_shown(new)} instead of {_shown(old)}"
        relative = max(relative, _apart(old, new))
    return Difference(text, relative)


def _shown(line: str | None) -> str:
    return "nothing" if line is None else repr(line if len(line) <= 200 else f"{line[:200]}...")


def _apart(old: str | None, new: str | None) -> float:
    """The largest relative difference of two lines' numbers; infinite where anything else differs."""
    if old is None or new is None or _NUMBER.sub("0", old).split() != _NUMBER.sub("0", new).split():
        return math.inf
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    return max((_relative(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs), default=0.0)


def _relative(a: float, b: float) -> float:
    return 0.0 if a == b else abs(a - b) / max(abs(a), abs(b))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def counted(text: str) -> int:
    """How many values a CSV has: cells that are numbers, or all cells if there is none."""
    _, *rows = list(csv.reader(io.StringIO(text))) or [[]]
    cells = [cell for row in rows for cell in row]
    return sum(_number(cell) is not None for cell in cells) or len(cells)
