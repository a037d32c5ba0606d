"""Plant the faults one by one and see whether the tests catch them: ``python -m tests.mutants [TEXT] [--minutes M]``.

Each is planted in a copy of the tree, ``build/mutants/tree``, and the tests named with it run there until one fails. Tools that
change every operator of the source (mutmut, cosmic-ray) make thousands of changes and run the suite for each, and a change of a
kernel costs its compilation each time; so this is a list of what people get wrong, and a few tests each. What was found is
kept in ``build/mutants/results.json``: a fault is planted again when its text, its file or its tests changed. A test that takes
longer than its limit has caught the fault, too: some are loops without an end. The test that sees a fault must pass without it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

from tests.mutants import faults
from tests.mutants.faults import ROOT, Fault

PLACE = ROOT / "build" / "mutants"
TREE, CACHE, RESULTS = PLACE / "tree", PLACE / "numba", PLACE / "results.json"
LIMIT = 600.0  # seconds a run of tests may take
ENOUGH = 0.95  # of the faults must be caught


def main(arguments: list[str] | None = None) -> int:
    """Run the faults; 1 where one is rotten, tests fail without a fault, or too few faults are caught."""
    parser = argparse.ArgumentParser(
        "python -m tests.mutants", description="planted faults, and whether tests see them"
    )
    parser.add_argument("text", nargs="?", default="", help="only faults with this in their file or words")
    parser.add_argument("--minutes", type=float, help="stop planting after so long; the next run goes on")
    parser.add_argument("--again", action="store_true", help="plant survivors again")
    chosen = parser.parse_args(arguments)

    wanted = [fault for fault in faults.load() if chosen.text in fault.name]
    if rotten := [f"{fault.name}: {said}" for fault in wanted if (said := faults.problem(fault))]:
        print("\n".join(rotten))
        return 1
    copy_tree()
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    until = time.monotonic() + 60 * chosen.minutes if chosen.minutes else float("inf")
    sound: dict[tuple[str, ...], bool] = {}  # tests -> do they pass without a fault?
    for number, fault in enumerate(wanted, start=1):
        key = key_of(fault)
        if key in results and not (chosen.again and results[key] == "survived"):
            continue
        if time.monotonic() > until:
            break
        began = time.monotonic()
        ended, seen_by = plant(fault)
        if ended != "survived":
            if seen_by not in sound and not sound.setdefault(seen_by, run_tests(seen_by) == "passed"):
                print(f"{', '.join(seen_by)} fails without any fault:\n{log()[-2000:]}")
            if not sound[seen_by]:
                continue
        results[key] = ended
        part = RESULTS.with_suffix(".part")
        part.write_text(json.dumps(results, indent=0))
        part.replace(RESULTS)
        print(f"[{number:>3}/{len(wanted)}] {ended:<9} {time.monotonic() - began:6.1f} s  {fault.name}", flush=True)
    return report(wanted, results) or int(not all(sound.values()))


def report(wanted: list[Fault], results: dict[str, str]) -> int:
    """Print what was caught, room by room, and what was not."""
    rooms: dict[str, list[Fault]] = {}
    for fault in wanted:
        if key_of(fault) in results:
            rooms.setdefault(fault.room, []).append(fault)
    print(f"\n{'room':<12}{'planted':>8}{'caught':>8}")
    planted, lost = 0, []
    for room, those in sorted(rooms.items()):
        survivors = [fault for fault in those if results[key_of(fault)] == "survived"]
        print(f"{room:<12}{len(those):>8}{len(those) - len(survivors):>8}")
        planted, lost = planted + len(those), lost + survivors
    print(f"{'all':<12}{planted:>8}{planted - len(lost):>8}  of {len(wanted)} in the list")
    for fault in lost:
        print(f"survived: {fault.name}: {fault.survives or 'NOT EXPLAINED: write the test that sees it'}")
    share = 1 - len(lost) / planted if planted else 0.0
    print(f"{100 * share:.1f} % caught, at least {100 * ENOUGH:.0f} % are to be")
    return int(share < ENOUGH or any(not fault.survives for fault in lost))


# -- one fault ------------------------------------------------------------------------------------------------------


def plant(fault: Fault) -> tuple[str, tuple[str, ...]]:
    """``caught``, ``timed out`` (caught as well) or ``survived``, and the tests that saw it."""
    target = TREE / fault.file
    try:
        target.write_text(faults.changed(fault), encoding="utf-8")
        ended = run_tests(fault.tests)
    finally:
        shutil.copy2(ROOT / fault.file, target)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+\.py::\w+)", log(), re.MULTILINE)
    seen_by = (failed[1],) if failed and ended == "failed" else fault.tests
    return {"passed": "survived", "failed": "caught"}.get(ended, ended), seen_by


def log() -> str:
    """What the last run of tests printed."""
    return (PLACE / "log.txt").read_text(errors="replace")


def run_tests(tests: Iterable[str]) -> str:
    """``passed``, ``failed`` or ``timed out``: the tests in the copy, in a process that leads a group of its own."""
    CACHE.mkdir(parents=True, exist_ok=True)
    ours = {"XCREPRO_ROOT": TREE, "NUMBA_CACHE_DIR": CACHE, "NUMBA_OPT": 1, "PYTHONDONTWRITEBYTECODE": 1}
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutants.quickly", "-n", "0", "-x", "-q"]
    with open(PLACE / "log.txt", "w") as log:
        process = subprocess.Popen(
            [*command, "-p", "no:cacheprovider", *tests], cwd=TREE, env={**os.environ, **{k: str(v) for k, v in ours.items()}},
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        return {0: "passed", 4: "usage error", 5: "no tests"}.get(process.wait(LIMIT), "failed")
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what it started dies with it
        process.wait()


# -- the copy, and what is remembered -------------------------------------------------------------------------------


def copy_tree() -> None:
    """The tracked files and those that will be, as they stand; what is the same stays, with its compiled form."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    wanted = {name for name in names.split("\0") if name and (ROOT / name).is_file()}
    for name in wanted:
        source, target = ROOT / name, TREE / name
        if (
            not target.is_file()
            or target.read_bytes() != source.read_bytes()
            or target.stat().st_mtime_ns != source.stat().st_mtime_ns
        ):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for target in TREE.rglob("*.py"):
        if target.relative_to(TREE).as_posix() not in wanted:
            target.unlink()


def key_of(fault: Fault) -> str:
    """What a result is kept under: the fault, its file and its tests as they are."""
    files = [ROOT / name.partition("::")[0] for name in (fault.file, *fault.tests)]
    texts = [repr(fault), *(path.read_text(encoding="utf-8") for path in files)]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
