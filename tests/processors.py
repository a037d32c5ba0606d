"""Other processors, simulated on this one: what NumPy, OpenBLAS, numba and the C library are told to do without.

This is the one list of them. ``tests/test_same_bits.py`` computes every public number on each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

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

    def missing(self, flags: Iterable[str]) -> str:
        """Why it cannot be simulated on a processor with these flags; empty where it can."""
        lacking = [flag for flag in self.needs if flag not in flags]
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


def flags() -> set[str]:
    """What the processor of this machine can do, as Linux names it; empty on another system."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())
