"""What every engine does with a block: read it, add it to the State of its worker, keep its own State on disk."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from xcrepro.core import extras
from xcrepro.core.errors import ArgumentError, DataError, DataMissing, XCError
from xcrepro.core.metrics.state import State
from xcrepro.core.predictions import TopK
from xcrepro.tools.scale.blocks import Rows, content_stamp, read_block

_SHOWN = 10  # failures that are told in full


class BlocksFailed(XCError):
    """Blocks that could not be used; ``failures`` is block -> cause, and the message has all of them."""

    def __init__(self, failures: Mapping[str, str], kept: str = "") -> None:
        self.failures, self.kept = dict(failures), kept
        lines = [f"  {_line(name, why)}" for name, why in [*self.failures.items()][:_SHOWN]]
        more = len(self.failures) - len(lines)
        number = "1 block" if len(self.failures) == 1 else f"{len(self.failures)} blocks"
        text = "\n".join([f"{number} could not be used:", *lines, *([f"  and {more} more"] if more else [])])
        super().__init__(f"{text}\n{kept}" if kept else text)

    def __reduce__(self):
        return BlocksFailed, (self.failures, self.kept)


def _line(name: str, why: str) -> str:
    return why if name in why else f"{name}: {why}"


@dataclass(frozen=True)
class Source:
    """Where a block comes from; ``named`` says whether the caller named it, so that its State may be kept under that name."""

    name: str
    given: object
    named: bool = False

    def read(self) -> Rows:
        """The block's rows."""
        if not callable(self.given):
            return read_block(self.given)
        found = self.given()
        if isinstance(found, Rows):
            return found
        if not isinstance(found, tuple) or not 2 <= len(found) <= 4 or not isinstance(found[1], TopK):
            rule = "must return (Y, top), (Y, top, first_row) or (Y, top, first_row, n_relevant), top a TopK"
            raise ArgumentError("a block's function", rule, type(found).__name__)
        return Rows(*found)

    def stamp(self) -> list | None:
        """What tells whether the block is the one whose State was kept; None where nothing does."""
        if not callable(self.given):
            return content_stamp(Path(self.given))
        return [self.name] if self.named else None


def sources(blocks, allow_repeats: bool, resume: bool) -> list[Source]:
    """The blocks that a caller gave, each with a name, in order."""
    if isinstance(blocks, (str, os.PathLike)):
        from xcrepro.tools.scale.blocks import block_paths

        blocks = block_paths(blocks)
    named = isinstance(blocks, Mapping)
    if not named and not isinstance(blocks, Iterable):
        raise ArgumentError("blocks", "must be paths or functions, a list or a dict of them", type(blocks).__name__)
    found, seen = [], {}
    for number, item in enumerate(blocks.items() if named else blocks):
        name, given = item if named else (None, item)
        if isinstance(given, (str, os.PathLike)):
            name, key = name or os.fspath(given), os.path.realpath(given)
            given = os.path.abspath(given)  # processes that are used again, and other machines, stand in other folders
        elif callable(given):
            name, key = name or f"block {number}", id(given)
        else:
            do = "for a truth and its predictions in memory there is xcrepro.evaluate"
            rule = "must be paths or functions that return (Y, top)"
            raise ArgumentError("blocks", rule, f"{type(given).__name__} at place {number}", do)
        if key in seen and not allow_repeats:
            do = "leave one out, or say allow_repeats=True (--allow-repeats)"
            raise ArgumentError("blocks", "must hold each block once", f"{name} again, after {seen[key]}", do)
        seen[key] = name
        found.append(Source(str(name), given, named))
    if not found:
        raise ArgumentError("blocks", "must be one or more", "none")
    if resume and any(callable(source.given) and not source.named for source in found):
        do = "a dict of names and functions; a name stands for the content"
        raise ArgumentError("resume", "needs blocks with names", "functions in a list", do)
    return found


@dataclass
class Part:
    """A State of some blocks, and (first row, last row and one, name) of each; of a block without numbers (0, 0, name)."""

    state: State
    rows: list[tuple[int, int, str]] = field(default_factory=list)

    def merge(self, other: Part) -> Part:
        """Take the other's blocks, too; it stays as it is, and so does this where rows come twice."""
        try:
            self.state.merge(other.state)
        except ArgumentError as error:
            raise BlocksFailed(self._twice(other) or {other.rows[0][2]: str(error)}) from None
        self.rows += other.rows
        return self

    def _twice(self, other: Part) -> dict[str, str]:
        """Which blocks have rows that another has."""
        do = "leave one out, or say allow_repeats=True (--allow-repeats)"
        return {
            name: f"{name}: found rows {max(low, first)} to {min(high, last) - 1}, which {before} has too, "
            f"expected each row once. {do}"
            for low, high, name in other.rows
            for first, last, before in sorted(self.rows, reverse=True)
            if first < high and low < last
        }


@dataclass
class Folding:
    """How a block becomes a State: what every worker needs to know, with the folder of the blocks' States (``resume``)."""

    empty: State
    resume: str | None = None
    allow_repeats: bool = False

    def part(self) -> Part:
        """Nothing added up yet."""
        return Part(self.empty.empty())

    def of(self, source: Source) -> Part:
        """A block's State, kept or made; BlocksFailed where it cannot be."""
        try:
            stored = self._stored(source)
            state = None if stored is None else self._kept(stored)
            if state is None:
                rows = source.read()
                state = self.empty.empty().update(rows.Y, rows.top, rows.first_row, rows.n_relevant)
                if stored is not None:
                    state.save(stored, weights=False, compress=False)
        except XCError as error:
            raise BlocksFailed({source.name: str(error)}) from None
        except Exception as error:  # a reader of the caller's own may raise anything
            raise BlocksFailed({source.name: f"{type(error).__name__}: {error}"}) from None
        return Part(state, [(low, high, source.name) for low, high in state.row_ranges or [(0, 0)]])

    def _stored(self, source: Source) -> Path | None:
        """Where the block's State is kept: under the block's name, and all that its numbers depend on."""
        if self.resume is None:
            return None
        try:
            about = [source.stamp(), self._fingerprint]
        except FileNotFoundError:
            raise DataMissing(
                f"{source.name}: there is no such block; was it moved, or is it not written yet?"
            ) from None
        digest = hashlib.sha256(json.dumps(about, default=str).encode()).hexdigest()[:16]
        stem = "".join(c if c.isalnum() or c in "._-" else "-" for c in Path(source.name).name)[:80]
        return Path(self.resume) / f"{stem}.{digest}.npz"

    @functools.cached_property
    def _fingerprint(self) -> dict:
        return self.empty.fingerprint()

    def _kept(self, stored: Path) -> State | None:
        if not stored.exists():
            return None
        try:
            return State.load(stored, allow_repeats=self.allow_repeats, like=self.empty)
        except DataError as error:
            warnings.warn(f"{error}: the block is read again", stacklevel=2)
            return None


@contextlib.contextmanager
def progress(total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """What is said of a run under way, on stderr."""
    if not shown:
        yield lambda blocks=1: None
        return
    with extras.library("tqdm").tqdm(total=total, unit="block", mininterval=0.5) as bar:
        yield bar.update
