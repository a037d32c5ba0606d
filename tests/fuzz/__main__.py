"""Throw damaged files at every door: ``python -m tests.fuzz [DOOR ...] [--seconds S] [--inputs N] [--seed SEED]``.

An input is made from the seed, its door and its number alone, so that any one can be made again (``--only NUMBER``). Inputs run
in batches in a forked child with a limit on its memory; the parent sees which input it is at, and how long. A find is

- a crash of the process, or an input that takes longer than a deadline;
- an exception that is not the package's (``xcrepro.errors``), a ``RuntimeWarning``, or memory beyond the limit;
- what was read without complaint, though the slow reader (:mod:`tests.fuzz.slow`) refuses it or reads something else, and the
  other way round.

Finds are printed once a place, with the shortest input seen, and kept under ``build/fuzz``. Status 1 where there is one.
"""

from __future__ import annotations

import argparse
import gc
import json
import mmap
import os
import random
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz import inputs, slow
from tests.fuzz.doors import DOORS, Door, prepare
from xcrepro.core.errors import XCError

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / "build" / "fuzz"
DEADLINE = 20.0  # seconds an input may take on a busy machine
MEMORY = 4 << 30  # bytes a child may take beyond what it has
BATCH = 2000  # inputs of a share of 10: a child takes about as long to start as some tens of inputs


@dataclass
class Tally:
    """What came of a door's inputs; seconds are the processor's, whatever else the machine does."""

    accepted: int = 0
    refused: int = 0
    judged: int = 0
    seconds: float = 0.0
    finds: dict[str, tuple[str, object]] = field(default_factory=dict)  # where and what -> input's number, its content
    again: Counter = field(default_factory=Counter)


def main(arguments: list[str] | None = None) -> int:
    """Fuzz; 1 where something was found."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description="damaged files at every door")
    parser.add_argument("door", nargs="*", help="only doors whose names begin so")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long, all doors together")
    parser.add_argument("--inputs", type=int, help="how many, all doors together; then --seconds does not count")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="only the input of this number, here and now, with its traceback")
    chosen = parser.parse_args(arguments)

    doors = [door for door in DOORS if not chosen.door or door.name.startswith(tuple(chosen.door))]
    for door in [door for door in doors if door.lacks]:
        print(f"{door.name}: not tried, {door.lacks} is not installed: pip install 'xcrepro[formats,scale]'")
        doors.remove(door)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    tallies = {door.name: Tally() for door in doors}
    began = time.monotonic()
    try:
        prepare(folder)
        if chosen.only is not None:
            return alone(doors[0], chosen.seed, chosen.only, folder)
        for door in doors:  # compiled once, here, for all children
            for number in range(20):
                examine(door, chosen.seed, number, folder, Tally())
        gc.freeze()
        for door, first, count in batches(doors, chosen.inputs, began + chosen.seconds):
            before = set(tallies[door.name].finds)
            batch(door, chosen.seed, first, count, folder, tallies[door.name])
            print(f"{time.monotonic() - began:6.0f} s  {door.name}, {first + count:,} inputs", flush=True)
            for what in tallies[door.name].finds.keys() - before:
                print(f"          FOUND input {tallies[door.name].finds[what][0]}: {what}", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report(tallies, chosen.seed, time.monotonic() - began)


def batches(doors: list[Door], inputs: int | None, until: float) -> Iterator[tuple[Door, int, int]]:
    """(door, number of its first input, how many): door after door, round after round, until it is enough or late."""
    done, shares = Counter(), sum(door.share for door in doors)
    while True:
        for door in doors:
            count = max(1, BATCH * door.share // 10)
            if inputs is not None:
                count = min(count, max(1, inputs * door.share // shares) - done[door.name])
            elif time.monotonic() > until:
                return
            if count > 0:
                yield door, done[door.name], count
                done[door.name] += count
        if inputs is not None and all(done[door.name] >= inputs * door.share // shares for door in doors):
            return


def report(tallies: dict[str, Tally], seed: int, seconds: float) -> int:
    """The table, and the finds."""
    print(f"\n{'door':<26}{'inputs':>10}{'accepted':>10}{'refused':>10}{'judged':>10}{'us each':>9}{'finds':>7}")
    for name, tally in tallies.items():
        n = tally.accepted + tally.refused + sum(tally.again.values())
        each = 1e6 * tally.seconds / max(n, 1)
        print(
            f"{name:<26}{n:>10,}{tally.accepted:>10,}{tally.refused:>10,}{tally.judged:>10,}{each:>9.0f}{len(tally.finds):>7}"
        )
    every = [sum(getattr(tally, part) for tally in tallies.values()) for part in ("accepted", "refused", "judged")]
    finds = sum(len(tally.finds) for tally in tallies.values())
    n = every[0] + every[1] + sum(sum(tally.again.values()) for tally in tallies.values())
    print(
        f"{'all':<26}{n:>10,}{every[0]:>10,}{every[1]:>10,}{every[2]:>10,}{'':>9}{finds:>7}   seed {seed}, {seconds:.0f} s"
    )
    for name, tally in tallies.items():
        for what, (number, content) in tally.finds.items():
            place = KEPT / f"{name}-{number}".replace(" ", "_").replace("/", "_").replace(":", "_")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content if isinstance(content, str) else repr(content))
            print(f"\n{name}, input {number} ({tally.again[what]} such): {what}\n    {str(content)[:400]}")
    return int(finds > 0)


# -- one input ------------------------------------------------------------------------------------------------------


def made(door: Door, seed: int, number: int) -> tuple[object, object]:
    """What is written (bytes, or a folder's bytes by name), and what the judge gets (None: nobody knows)."""
    rng = random.Random(f"{seed} {door.name} {number}")
    content = door.make(rng)
    changed = rng.randrange(6) > 0
    if isinstance(content, bytes):
        if changed:
            content = (door.change or inputs.mutated)(rng, content, door.make(rng))
        given = content
        if door.packs and content and rng.randrange(16) == 0:
            content = inputs.packed(rng, content)
            if rng.randrange(2):
                content, given = inputs.mutated(rng, content, content), None
        elif content[:2] == b"\x1f\x8b" or content[:2] == b"PK":
            given = None
        return content, given
    if is_folder(content):
        content = (door.change or inputs.one_file_changed)(rng, content) if changed else content
        return content, content
    given = (door.change or inputs.mutated_arrays)(rng, content) if changed else content
    content = (door.write or inputs.npz)(given)
    if rng.randrange(8) == 0:
        return inputs.one_file_changed(rng, content) if is_folder(content) else inputs.mutated(
            rng, content, content
        ), None
    return content, given


def is_folder(content: object) -> bool:
    """Whether it is files by name."""
    return isinstance(content, dict) and isinstance(next(iter(content.values()), None), bytes)


def put(content: object, door: Door, folder: Path) -> Path:
    """Write an input, in place of the last one."""
    path = folder / f"input{door.suffix}"
    if isinstance(content, bytes):
        path.write_bytes(content)
        return path
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, data in content.items():
        file = path / name
        if "/" in name:
            file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return path


def examine(door: Door, seed: int, number: int, folder: Path, tally: Tally) -> None:
    """One input: made, written, read, judged."""
    content, given = made(door, seed, number)
    path = put(content, door, folder)
    fault, found = "", None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            found, refusal = door.read(path), None
    except XCError as error:
        refusal = error
        if len(str(error)) > 2000:
            fault = f"a message of {len(str(error))} characters"
    except Exception as error:
        fault, refusal = where(error), error
    expected = None
    if not fault and door.judge is not None and given is not None:
        try:
            expected, judged = door.judge(given), True
        except slow.Refused:
            judged = True
        except slow.NoJudgement:
            judged = False
        except Exception as error:
            fault, judged = f"the slow reader itself, {where(error)}", False
        tally.judged += judged
        if judged and refusal is None and expected is None:
            fault = f"read, though it is to be refused: {str(found)[:200]}"
        elif judged and refusal is not None and expected is not None:
            fault = f"refused, though it is to be read: {str(refusal).replace(str(path), 'FILE')[:200]}"
        elif judged and refusal is None and not same(found, expected):
            fault = f"read {str(found)[:300]}, to be {str(expected)[:300]}"
    if fault:
        note(tally, fault, number, content)
    elif refusal is None:
        tally.accepted += 1
    else:
        tally.refused += 1


def same(found: object, expected: object) -> bool:
    """Whether two readings agree; lists and tuples are one."""
    return found == expected or json.dumps(found) == json.dumps(expected)


def where(error: BaseException) -> str:
    """An exception and the place of this project that it came through last."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "xcrepro" in frame.filename or "fuzz" in frame.filename
    ]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {place}: {str(error)[:200]}"


def note(tally: Tally, fault: str, number: int, content: object) -> None:
    """Keep a find; of several at one place the shortest."""
    key = fault.partition(": ")[0][:120]
    tally.again[key] += 1
    known = tally.finds.get(key)
    if known is None or len(repr(content)) < len(known[1]):
        tally.finds[key] = str(number), f"{fault}\n    {content!r}"


def alone(door: Door, seed: int, number: int, folder: Path) -> int:
    """One input, with everything about it."""
    content, given = made(door, seed, number)
    print(f"{door.name}, input {number}: {content!r}")
    if door.judge is not None and given is not None:
        try:
            print("judge:", door.judge(given))
        except (slow.Refused, slow.NoJudgement) as error:
            print("judge:", type(error).__name__)
    print("read:", door.read(put(content, door, folder)))
    return 0


# -- batches --------------------------------------------------------------------------------------------------------


def batch(door: Door, seed: int, first: int, count: int, folder: Path, tally: Tally) -> None:
    """Inputs ``first`` to ``first + count - 1`` in a child; where it dies or hangs, the rest in another one."""
    stop = first + count
    progress = mmap.mmap(-1, 16)
    while first < stop:
        progress[:] = struct.pack("qd", first, time.monotonic())
        receiver, sender = os.pipe()
        if not (child := os.fork()):
            child_main(door, seed, first, stop, folder, progress, sender)
        os.close(sender)
        text, fault = b"", ""
        while True:
            if select.select([receiver], [], [], 0.5)[0]:
                part = os.read(receiver, 1 << 20)
                if not part:
                    break
                text += part
            elif time.monotonic() - struct.unpack("qd", progress[:])[1] > DEADLINE:
                os.kill(child, signal.SIGKILL)
                fault = f"a hang: longer than {DEADLINE:.0f} s"
        os.close(receiver)
        _, status, used = os.wait4(child, 0)
        tally.seconds += used.ru_utime + used.ru_stime
        reached = struct.unpack("qd", progress[:])[0]
        for line in text.decode().splitlines():
            take(json.loads(line), tally)
        if status == 0:
            break
        note(tally, fault or f"a crash: status {status}", reached, made(door, seed, reached)[0])
        first = reached + 1


def child_main(door: Door, seed: int, first: int, stop: int, folder: Path, progress: mmap.mmap, sender: int) -> None:
    """The child: never returns."""
    code = 1
    try:
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        tally = Tally()
        for number in range(first, stop):
            progress[:] = struct.pack("qd", number, time.monotonic())
            examine(door, seed, number, folder, tally)
            if number % 500 == 499 or number + 1 == stop:  # what dies with the child is at most this much
                said = [tally.accepted, tally.refused, tally.judged, tally.finds, tally.again]
                os.write(sender, json.dumps(said).encode() + b"\n")
                tally = Tally()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def take(said: list, tally: Tally) -> None:
    """What a child reported."""
    tally.accepted, tally.refused, tally.judged = (
        have + more for have, more in zip((tally.accepted, tally.refused, tally.judged), said[:3], strict=True)
    )
    for key, (number, content) in said[3].items():
        known = tally.finds.get(key)
        if known is None or len(content) < len(known[1]):
            tally.finds[key] = number, content
    tally.again.update(said[4])


if __name__ == "__main__":
    sys.exit(main())
