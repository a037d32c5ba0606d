"""Run all notebooks on simulated processors, and compare: ``python -m tests.processors [--only Nehalem] [--items ID ...]``.

NumPy, OpenBLAS, numba and the C library can be told what to do without, so that this machine computes as another one would.
For each processor of ``PROCESSORS``, all notebooks of the last commit run in a clone of their own, from empty caches, as for
``xcrepro certify``: every committed table, notebook and picture must come out the same. The certificates are kept in
``build/processors``. One of the same commit is not made again, so an interrupted run goes on with the next processor.

``tests/test_same_bits.py`` takes its processors from the same list.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field

from xcrepro.core import paths, threads
from xcrepro.core.errors import XCError
from xcrepro.repro.engine import certificate, manifest

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
        has = certificate.cpu().get("flags", "").split()
        lacking = [flag for flag in self.needs if flag not in has]
        return f"this processor has no {', '.join(lacking)}" if lacking else ""


# numba takes the features from the host unless it is told (an empty text: those of the processor that is named).
# The Nehalem's C library knows no newer instructions either, as an old one does not.
PROCESSORS = {
    processor.name: processor
    for processor in (
        Processor(
            "Nehalem",
            (),
            1,
            {
                "NUMBA_CPU_NAME": "generic",
                "NUMBA_CPU_FEATURES": "",
                "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-AVX,-AVX512F",
            },
        ),
        Processor(
            "Haswell",
            ("X86_V3",),
            2,
            {
                "NUMBA_CPU_NAME": "haswell",
                "NUMBA_CPU_FEATURES": "",
                "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA4,-AVX512F",
            },
            AVX2,
        ),
        Processor(
            "Zen",
            ("X86_V3",),
            1,
            {
                "NUMBA_CPU_NAME": "znver1",
                "NUMBA_CPU_FEATURES": "-sse4a",  # AMD's alone; no other processor could run it
                "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F",
            },
            AVX2,
        ),
        Processor(
            "SkylakeX",
            ("X86_V3", "X86_V4"),
            2,
            {"NUMBA_CPU_NAME": "skylake-avx512", "NUMBA_CPU_FEATURES": ""},
            (*AVX2, *AVX512),
        ),
    )
}


def settings(processor: Processor) -> tuple[dict[str, str], int]:
    """The variables of a run on it, and how many notebooks run at once: each gets the processor's number of threads."""
    jobs = max(1, threads.count() // processor.threads)
    return processor.environment() | {"XCREPRO_THREADS": str(jobs * processor.threads)}, jobs


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
        commit = certificate.head(root)
        items = manifest.find(manifest.load(root), chosen.items) if chosen.items else []
    except XCError as error:
        print(error, file=sys.stderr)
        return 2
    rows, wrong = [], []
    for name in chosen.only or PROCESSORS:
        processor = PROCESSORS[name]
        if reason := processor.missing():
            rows.append(f"{name:<9} skipped: {reason}")
            continue
        kept = root / "build" / "processors" / name
        made = next((certificate.read(path) for path in kept.glob("*.toml")), None)
        if chosen.again or made is None or (made.commit, made.items) != (commit, items) or made.differing:
            variables, jobs = settings(processor)
            print(f"{name}: {jobs} notebooks at once, threads for each: {processor.threads}", flush=True)
            made = certificate.make(items, jobs, variables=variables)
            certificate.write(made, kept)
        rows.append(f"{name:<9} {made.compared:>14} {made.equal:>6} {made.seconds:>8}")
        wrong += [f"{name}: {file} differs" for file in made.differing]
    print("\n".join([f"{'processor':<9} files compared  equal  seconds", *rows, *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
