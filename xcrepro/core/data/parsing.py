"""The body of an XC text file, read in blocks of whole lines by several threads, into arrays.

Threads take turns reading the next block, so that any stream will do and no more than one block per thread is held. The
pieces are joined in file order at the end.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from io import BufferedIOBase
from typing import Any

import numpy as np

from xcrepro.core import threads as threading_rules
from xcrepro.core.data.sources import byte_limit
from xcrepro.core.errors import DataError
from xcrepro.core.kernels import parse

# Small enough for a core's cache, large enough that a block's fixed costs do not show.
BLOCK_BYTES = 1 << 20

# Kept free at the end of a block: a newline that the file may lack, and what the kernel may look beyond.
_KEPT = 1 + parse.PADDING


@dataclass(frozen=True)
class Layout:
    """What a line may hold: how many labels (None in the new format) and ids, from where they count, and who says so."""

    ids: int
    labels: int | None = None
    first_id: int = 0
    first_label: int = 0
    origin: str = "the header says"
    ones: bool = False


@dataclass
class Fault:
    line: int
    found: str
    expected: str
    do: str = ""


@dataclass
class Piece:
    """What one block held. Lines count from 1 within the block, comments included."""

    lines: int
    label_lens: np.ndarray
    labels: np.ndarray
    lens: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    unsorted_rows: int
    unsorted_line: int
    fault: Fault | None


def max_line_bytes() -> int:
    """How long a line may be: ``$XCREPRO_MAX_LINE`` bytes, 128 MiB by default, ten million labels with their scores."""
    return byte_limit("XCREPRO_MAX_LINE", 128 << 20)


class LongLine(Exception):
    """A line is longer than :func:`max_line_bytes`; it begins behind the last block that was taken."""


def long_line(path: str | os.PathLike, line: int) -> DataError:
    """The error for a line beyond the limit."""
    limit = max_line_bytes()
    found, do = f"a line of more than {limit:,} bytes", "Where it is meant, XCREPRO_MAX_LINE=BYTES allows longer ones"
    return DataError(path, found, f"at most {limit:,}", line=line, do=do)


class Blocks:
    """Consecutive blocks of whole lines, handed out in order to whichever thread asks."""

    def __init__(self, stream: BufferedIOBase, block_bytes: int, begun: bytes = b"") -> None:
        self.stream, self.block_bytes = stream, block_bytes
        self.lock = threading.Lock()
        self.taken = 0
        self.rest = begun
        self.ended = False

    def take(self, buffer: bytearray) -> tuple[int, bytearray, int] | None:
        """Fill ``buffer`` (or a larger one, for a line longer than it): (number of the block, buffer, bytes used)."""
        with self.lock:
            if self.ended:
                return None
            try:
                return self._fill(buffer)
            except BaseException:
                self.ended = True
                raise

    def _fill(self, buffer: bytearray) -> tuple[int, bytearray, int] | None:
        used = len(self.rest)
        if used >= len(buffer) - _KEPT:
            buffer = bytearray(2 * used + 2 * _KEPT)
        buffer[:used] = self.rest
        searched = 0
        while True:
            with memoryview(buffer) as view:
                got = self.stream.readinto(view[used:-_KEPT])
            if not got:
                self.ended = True
                if not used:
                    return None
                if buffer[used - 1] != 10:
                    buffer[used] = 10
                    used += 1
                cut = used
                break
            used += got
            if used < len(buffer) - _KEPT:
                continue
            cut = buffer.rfind(b"\n", searched, used) + 1
            if cut:
                break
            if used > max_line_bytes():
                raise LongLine
            searched = used
            buffer = buffer + bytearray(len(buffer))
        self.rest = bytes(memoryview(buffer)[cut:used])
        self.taken += 1
        return self.taken - 1, buffer, cut


def read_rows(
    path: str | os.PathLike, stream: BufferedIOBase, layout: Layout, *, threads: int = 1, **behind: Any
) -> Joined:
    """Parse the rest of ``stream``; arguments as for :func:`stream_pieces`."""
    pieces = list(stream_pieces(path, stream, layout, threads=threads, **behind))
    return Joined(pieces, layout.labels is not None, threads)


def stream_pieces(
    path: str | os.PathLike,
    stream: BufferedIOBase,
    layout: Layout,
    *,
    begun: bytes = b"",
    lines_before: int = 0,
    threads: int = 1,
) -> Iterator[Piece]:
    """The pieces of the rest of ``stream`` in file order, a few held at a time."""
    blocks, lines, own = Blocks(stream, BLOCK_BYTES, begun), Lines(path, lines_before), threading.local()

    def work() -> tuple[int, Piece] | None:
        if not hasattr(own, "room"):
            own.room, own.buffer = Room(), bytearray(blocks.block_bytes)
        block = blocks.take(own.buffer)
        if block is None:
            return None
        number, own.buffer, end = block
        return number, parse_piece(own.buffer, end, layout, own.room)

    broken: Exception | None = None
    parsed: dict[int, Piece] = {}
    number = 0
    with threading_rules.pool(threads) as pool:
        waiting = deque(pool.submit(work) for _ in range(threads + 1))
        try:
            while waiting:
                try:
                    found = waiting.popleft().result()
                except Exception as error:  # what came before it is looked at first
                    broken, found = broken or error, None
                if found is not None:
                    parsed[found[0]] = found[1]
                while number in parsed:
                    yield lines.check(parsed.pop(number))
                    number += 1
                if found is not None:
                    waiting.append(pool.submit(work))
        finally:
            blocks.ended = True
    lines.end(broken)


class Lines:
    """Counts the lines of the pieces of a file, in order, and says what is wrong with them."""

    def __init__(self, path: str | os.PathLike, before: int) -> None:
        self.path, self.line = path, before
        self.unsorted_rows, self.unsorted_line = 0, 0

    def check(self, piece: Piece) -> Piece:
        """The next piece; raises its fault."""
        if piece.fault:
            fault = piece.fault
            raise DataError(self.path, fault.found, fault.expected, line=self.line + fault.line, do=fault.do)
        if piece.unsorted_rows and not self.unsorted_rows:
            self.unsorted_line = self.line + piece.unsorted_line
        self.unsorted_rows += piece.unsorted_rows
        self.line += piece.lines
        return piece

    def end(self, broken: Exception | None) -> None:
        """No piece follows: raise what ended the reading early, and say once how many rows had to be sorted."""
        if isinstance(broken, LongLine):
            raise long_line(self.path, self.line + 1)
        if broken is not None:
            raise broken
        if self.unsorted_rows:
            rows = "1 row has its ids" if self.unsorted_rows == 1 else f"{self.unsorted_rows} rows have their ids"
            warnings.warn(
                f"{os.fspath(self.path)}: {rows} out of order (first in line {self.unsorted_line}); sorted here",
                stacklevel=_outside(),
            )


def _outside() -> int:
    """The stack level, for a warning of the caller, of the first frame that is not of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("xcrepro."):
        level, frame = level + 1, frame.f_back
    return level


class Room:
    """One thread's arrays to parse into, each large enough for any block of the given size."""

    # ids and values stay where they are parsed until they are joined: in large arrays, which the system backs with large
    # pages, cut into pieces. The rest is copied out of arrays used again.
    ENTRIES = 1 << 21

    def __init__(self) -> None:
        self.size = 0
        self.used = 0
        self.ids = np.empty(0, np.int32)
        self.values = np.empty(0, np.float32)
        self.out = np.zeros(parse.OUT_SLOTS, np.int64)

    def make(self, size: int) -> None:
        """Make room for ``size`` bytes of text."""
        entries = size // 4 + 1
        if self.used + entries > len(self.ids):
            self.used = 0
            self.ids = np.empty(max(self.ENTRIES, entries), np.int32)
            self.values = np.empty(max(self.ENTRIES, entries), np.float32)
        if size > self.size:
            self.size = size
            self.labels = np.empty(size // 2 + 1, np.int32)
            self.label_lens = np.empty(size, np.int32)
            self.lens = np.empty(size, np.int32)
            self.odd = np.empty(entries, np.int64)

    def take(self, entries: int) -> tuple[np.ndarray, np.ndarray]:
        """The ids and values parsed last, which are now the caller's."""
        taken = slice(self.used, self.used + entries)
        self.used += entries
        return self.ids[taken], self.values[taken]


def parse_piece(buffer: bytearray, end: int, layout: Layout, room: Room) -> Piece:
    """Parse the lines ``buffer[:end]``."""
    room.make(end)
    text, out = np.frombuffer(buffer, np.uint8, end + parse.PADDING), room.out
    free = slice(room.used, room.used + end // 4 + 1)
    about = layout.labels is not None, layout.labels or 0, layout.first_label, layout.ids, layout.first_id
    into = room.labels, room.label_lens, room.ids[free], room.values[free], room.lens, room.odd, out
    parse.parse_block(text, end, *about, *into)
    n_rows, n_labels, n_entries = int(out[parse.ROWS]), int(out[parse.LABELS]), int(out[parse.ENTRIES])
    ids, values = room.take(n_entries)
    piece = Piece(
        lines=int(out[parse.LINES]),
        label_lens=room.label_lens[:n_rows].copy() if layout.labels is not None else np.empty(0, np.int32),
        labels=room.labels[:n_labels].copy(),
        lens=room.lens[:n_rows].copy(),
        ids=ids,
        values=values,
        unsorted_rows=int(out[parse.UNSORTED_ROWS]),
        unsorted_line=0,
        fault=None,
    )
    # The checks below look at whole rows before the line the kernel stopped at, so each may name an earlier fault.
    faults = []
    if out[parse.FAULT]:
        found, expected, do = explain(buffer, end, int(out[parse.FAULT]), int(out[parse.FAULT_AT]), layout)
        faults.append(Fault(piece.lines + 1, found, expected, do))
    if out[parse.ODD]:
        faults += _odd_values(buffer, room.odd[: out[parse.ODD]], piece)
    if layout.ones and n_entries and piece.values.min() < 0:
        low = int(np.flatnonzero(piece.values < 0)[0])
        found = f"{piece.values[low]:g} for label {piece.ids[low] + layout.first_id}"
        faults.append(Fault(_line(buffer, _row(piece.lens, low)), found, "1, or another value above 0"))
    if piece.unsorted_rows:
        piece.unsorted_line = _line(buffer, int(out[parse.UNSORTED_ROW]))
        parts: tuple[tuple[np.ndarray, np.ndarray, np.ndarray | None, str, int], ...] = (
            (piece.label_lens, piece.labels, None, "label", layout.first_label),
            (piece.lens, piece.ids, piece.values, "label" if layout.ones else "id", layout.first_id),
        )
        for lens, ids, beside, name, first in parts:
            if (at := sort_rows(lens, ids, beside)) is not None:
                row = _row(lens, at)
                found = f"{name} {ids[at] + first} twice"
                faults.append(Fault(_line(buffer, row), found, "each id once in a row", "Remove one of the two"))
    if faults:
        piece.fault = min(faults, key=lambda fault: fault.line)
    return piece


def sort_rows(lens: np.ndarray, ids: np.ndarray, values: np.ndarray | None) -> int | None:
    """Sort each row's ids, values along, in place; return where the first repeated id of a row is, or None."""
    if len(ids) < 2:
        return None
    keys = np.repeat(np.arange(len(lens), dtype=np.int64) << 32, lens) | ids
    order = np.argsort(keys)
    keys = keys[order]
    ids[:] = ids[order]
    if values is not None:
        values[:] = values[order]
    repeated = np.flatnonzero(keys[1:] == keys[:-1])
    return int(repeated[0]) + 1 if len(repeated) else None


def _row(lens: np.ndarray, entry: int) -> int:
    """The row that holds entry ``entry``."""
    return int(np.searchsorted(np.cumsum(lens, dtype=np.int64), entry, side="right"))


def _line(buffer: bytearray, row: int) -> int:
    """The line (from 1) of a row (from 0): comment lines are no rows."""
    start = 0
    line = 0
    while True:
        line += 1
        if buffer[start] != 35:
            if row == 0:
                return line
            row -= 1
        start = buffer.find(b"\n", start) + 1


# -- values that float64 cannot decide ------------------------------------------------------------------------------


def _odd_values(buffer: bytearray, positions: np.ndarray, piece: Piece) -> list[Fault]:
    """Fill in the values that the kernel left NaN; those of a line with a fault come last and have no place."""
    for at, position in zip(np.flatnonzero(np.isnan(piece.values)).tolist(), positions.tolist(), strict=False):
        text = _token(buffer, position)
        value = exact_float32(text)
        if not np.isfinite(value):
            line = _line(buffer, _row(piece.lens, at))
            return [Fault(line, f"the value {_show(text)}", "a value that float32 can hold (below 3.4e38)")]
        piece.values[at] = value
    return []


FIRST_TOO_LARGE = (2 - 2**-24) * 2.0**127
"""From here on a number rounds to a float32 infinity."""


def exact_float32(text: str) -> np.float32:
    """The float32 nearest to a decimal number, ties to the even one; infinite where it is too large."""
    # np.float32(float(text)) rounds twice, and the second time may see a tie that is none: "1.00000005960464477540".
    double = float(text)
    with np.errstate(over="ignore", under="ignore"):
        nearest = np.float32(double)
        other = np.nextafter(nearest, np.float32(np.inf if double > float(nearest) else -np.inf))
    if abs(double) == FIRST_TOO_LARGE and Decimal(text).copy_abs() < Decimal(FIRST_TOO_LARGE):
        # float(text) went up to the middle between the largest float32 and what would follow it; the digits did not.
        return np.copysign(np.finfo(np.float32).max, np.float32(np.sign(double)))
    if not np.isfinite(nearest) or double == float(nearest):
        return nearest
    if not np.isfinite(other) or abs(double - float(nearest)) != abs(float(other) - double):
        return nearest
    # float(text) is the exact middle: the digits themselves decide on which side the number lies.
    number, middle = Decimal(text), Decimal(double)
    if number == middle:
        return nearest
    low, high = sorted((nearest, other))
    return high if number > middle else low


# -- what to say about a fault --------------------------------------------------------------------------------------

_BLANK = b" \t\r\n#"


def _token(buffer: bytearray, start: int, stops: bytes = _BLANK) -> str:
    end = start
    while buffer[end] not in stops:
        end += 1
    return bytes(buffer[start:end]).decode("utf-8", "backslashreplace")


def _show(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _ids(count: int, first: int, origin: str, what: str) -> str:
    return f"ids {first} to {count - 1 + first} ({origin} {count} {what}s)" if count else f"none ({origin} 0 {what}s)"


def explain(buffer: bytearray, end: int, kind: int, place: int, layout: Layout) -> tuple[str, str, str]:
    """Found, expected, what to do: about the text the kernel stopped at."""
    if kind == parse.IN_LINE_END:
        return "a carriage return inside a line", "one only before a newline", "Convert the line ends"
    if kind == parse.IN_LABEL:
        token = _token(buffer, place, _BLANK + b",")
        blank_before = place > 0 and bytes(buffer[place - 1 : place]) in (b" ", b"\t")
        if not token or (":" in token and blank_before):
            return "a comma without a label after it", "label,label,...", ""
        if ":" in token:
            return f"{_show(token)} in the label list", "a blank between labels and features", ""
        return _bad_id(token, layout.labels or 0, layout.first_label, layout.origin, "label")
    token = _token(buffer, place)
    name, colon, value = token.partition(":")
    what = "label" if layout.ones else "feature" if layout.labels is not None else "column"
    if kind == parse.IN_ID:
        if not colon and re.fullmatch(r"[0-9]+", name):
            do = "Labels are joined by commas, without blanks" if layout.labels is not None else ""
            return f"{_show(token)} without a value", "id:value", do
        if not name:
            return f"{_show(token)} without an id", "id:value", ""
        return _bad_id(name, layout.ids, layout.first_id, layout.origin, what)
    if not value:
        return f"{_show(token)} without a value", "id:value", "A line cut short ends like this, too"
    if value.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return f"the value {_show(value)}", "a finite number", ""
    return f"the value {_show(value)}", "a number", ""


def _bad_id(token: str, count: int, first: int, origin: str, what: str) -> tuple[str, str, str]:
    if re.fullmatch(r"-?[0-9]+", token):
        digits = token if len(token) <= 40 else token[:37] + "..."
        do = "Do ids start from 1 in this file? Then say one_based=True" if token == str(count) and not first else ""
        return f"{what} id {digits}", _ids(count, first, origin, what), do
    return f"the {what} id {_show(token)}", "a whole number", ""


# -- joining --------------------------------------------------------------------------------------------------------


class Joined:
    """The pieces in file order: ``lens`` and, array by array, the joined contents."""

    def __init__(self, pieces: list[Piece], labelled: bool, threads: int) -> None:
        self.pieces, self.threads = pieces, threads
        self.n_rows = sum(len(piece.lens) for piece in pieces)
        self.length_names = ("label_lens", "lens") if labelled else ("lens",)

    def indptr(self, name: str) -> np.ndarray:
        """(n_rows + 1,) offsets from the row lengths ``name``."""
        return offsets([getattr(piece, name) for piece in self.pieces])

    def array(self, name: str, dtype: type) -> np.ndarray:
        """The joined array ``name``. Each piece lets go of its part, so that no more than one array is held twice."""
        sizes = [len(getattr(piece, name)) for piece in self.pieces]
        starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).tolist()
        whole = np.empty(starts[-1], dtype)

        def copy(piece: Piece, start: int, size: int) -> None:
            whole[start : start + size] = getattr(piece, name)
            setattr(piece, name, None)

        if self.threads == 1 or len(self.pieces) < 2:
            for piece, start, size in zip(self.pieces, starts, sizes, strict=False):
                copy(piece, start, size)
        else:
            with threading_rules.pool(self.threads) as pool:
                list(pool.map(copy, self.pieces, starts, sizes))
        return whole


def offsets(lens: list[np.ndarray]) -> np.ndarray:
    """CSR offsets, int64, of rows whose lengths come in several arrays."""
    out = np.zeros(1 + sum(len(part) for part in lens), np.int64)
    start = 1
    for part in lens:
        out[start : start + len(part)] = part
        start += len(part)
    return np.cumsum(out, out=out)
