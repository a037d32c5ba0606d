"""Run all notebooks on simulated processors, and compare: ``python -m tests.processors [--only Nehalem] [--items ID ...]``.

NumPy, OpenBLAS, numba and the C library can be told what to do without, so that this machine computes as another one would.
For each processor of ``PROCESSORS``, all notebooks of the last commit run in a clone of their own, from empty caches: every
committed table, notebook and picture must come out the same. What came out is kept in ``build/processors``; of the same commit
it is not made again, so an interrupted run goes on with the next processor.

``tests/test_same_bits.py`` takes its processors from the same list.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from xcrepro.core import paths, threads
from xcrepro.core.errors import XCError
from xcrepro.repro.engine import manifest

SIMULATING = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "GLIBC_TUNABLES")
"""Environment variables that make a processor pass for another one."""
AVX2 = ("avx2", "bmi2", "fma")
AVX512 = ("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")


@dataclass(frozen=True)
class Processor:
    """A processor to be simulated.

    Attributes
    ----------
    name : str
        As OpenBLAS calls it.
    levels : tuple of str
        Those levels of NumPy's own kernels that it has, beyond the least that NumPy is built for.
    threads : int
        How many threads a notebook gets on it.
    variables : dict
        Environment variables besides those of NumPy and OpenBLAS.
    needs : tuple of str
        Flags of ``/proc/cpuinfo`` without which this machine cannot simulate it.
    """

    name: str
    levels: tuple[str, ...]
    threads: int
    variables: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()

    def environment(self) -> dict[str, str]:
        """The variables that make this machine such a processor, threads left out."""
        # NumPy warns of a feature that the machine or the build does not have.
        from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

        without = [name for name in __cpu_dispatch__ if __cpu_features__.get(name) and name not in self.levels]
        return {"OPENBLAS_CORETYPE": self.name, "NPY_DISABLE_CPU_FEATURES": " ".join(without), **self.variables}

    def missing(self) -> str:
        """Why this machine cannot simulate it; empty where it can."""
        has = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].split()
        lacking = [flag for flag in self.needs if flag not in has]
        return f"this processor has no {', '.join(lacking)}" if lacking else ""


# numba takes the features from the host unless it is told (an empty text: those of the processor that is named).
# The Nehalem's C library knows no newer instructions either, as an old one does not.
PROCESSORS = {
    name: Processor(
        name,
        levels,
        threads_each,
        {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features}
        | ({"GLIBC_TUNABLES": f"glibc.cpu.hwcaps={without}"} if without else {}),
        needs,
    )
    for name, levels, threads_each, cpu, features, without, needs in (
        ("Nehalem", (), 1, "generic", "", "-FMA,-FMA4,-AVX2,-AVX,-AVX512F", ()),
        ("Haswell", ("X86_V3",), 2, "haswell", "", "-FMA4,-AVX512F", AVX2),
        ("Zen", ("X86_V3",), 1, "znver1", "-sse4a", "-AVX512F", AVX2),  # sse4a: AMD's alone; no other could run it
        ("SkylakeX", ("X86_V3", "X86_V4"), 2, "skylake-avx512", "", "", (*AVX2, *AVX512)),
    )
}


def settings(processor: Processor) -> tuple[dict[str, str], int]:
    """The variables of a run on it, and how many notebooks run at once: each gets the processor's number of threads."""
    jobs = max(1, threads.count() // processor.threads)
    return processor.environment() | {"XCREPRO_THREADS": str(jobs * processor.threads)}, jobs


def differing(root: Path, commit: str, items: list[str], jobs: int, variables: dict[str, str]) -> list[str]:
    """The committed files that a run of the commit, from empty caches, makes otherwise, or not at all."""
    with tempfile.TemporaryDirectory(prefix="xcrepro-processor-") as folder:
        room = Path(folder).resolve()
        clone = room / "project"
        subprocess.run(["git", "clone", "--quiet", "--shared", str(root), str(clone)], check=True)
        subprocess.run(["git", "checkout", "--quiet", commit], cwd=clone, check=True)
        own = {"XCREPRO_ROOT": clone, "PYTHONPATH": clone, "XCREPRO_DATA": room / "cache"}
        own |= {"NUMBA_CACHE_DIR": room / "numba"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("XCREPRO_")}
        environment = {name: value for name, value in kept.items() if name not in SIMULATING} | variables
        environment |= {name: str(path) for name, path in own.items()}
        command = [sys.executable, "-m", "xcrepro", "accept", *(items or ["--all"]), "--jobs", str(jobs)]
        done = subprocess.run(command, cwd=clone, env=environment, check=False)
        command = ["git", "status", "--porcelain"]
        listed = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=True).stdout.splitlines()
        failed = ["a notebook did not run to its end"] if done.returncode else []
        return sorted(line[3:] for line in listed) or failed


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 where a file differs, 2 where nothing can be run."""
    parser = argparse.ArgumentParser("python -m tests.processors", description="all notebooks on simulated processors")
    parser.add_argument("--only", nargs="+", choices=[*PROCESSORS], metavar="NAME", help=f"of {', '.join(PROCESSORS)}")
    parser.add_argument(
        "--items", nargs="+", default=[], metavar="ITEM", help="ids or paper names; default all notebooks"
    )
    parser.add_argument("--again", action="store_true", help="also those that this commit has passed")
    chosen = parser.parse_args(arguments)
    root = paths.project_root()
    try:
        items = manifest.find(manifest.load(root), chosen.items) if chosen.items else []
    except XCError as error:
        print(error, file=sys.stderr)
        return 2
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()
    wrong = []
    for name in chosen.only or PROCESSORS:
        processor, kept = PROCESSORS[name], root / "build" / "processors" / f"{name}.json"
        if reason := processor.missing():
            print(f"{name}: skipped, {reason}")
            continue
        if not chosen.again and kept.is_file() and json.loads(kept.read_text()) == [commit, items]:
            print(f"{name}: as committed, by an earlier run")
            continue
        variables, jobs = settings(processor)
        print(f"{name}: {jobs} notebooks at once, threads for each: {processor.threads}", flush=True)
        off = differing(root, commit, items, jobs, variables)
        print(f"{name}: {len(off)} files differ" if off else f"{name}: all as committed", *off, sep="\n  ", flush=True)
        wrong += off
        if not off:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps([commit, items]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
