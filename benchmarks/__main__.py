"""Run the benchmarks: ``python -m benchmarks [JOB] [--quick]``."""

from __future__ import annotations

import argparse
import importlib
import math
import os
import platform
from importlib import metadata

from xcrepro.core.paths import atomic_path, project_root

JOBS = (
    *("loader", "formats", "metrics", "auc", "sets", "trees", "gutenberg", "intervals", "claims", "judged", "times"),
    "browser",
)
PACKAGES = ("xcrepro", "numpy", "scipy", "numba", "napkinxc", "omikuji", "xcolumns", "scikit-learn", "ranx")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description="xcrepro's kernels beside its peers', as ratios"
    )
    parser.add_argument("job", nargs="?", choices=JOBS, help="only this one")
    parser.add_argument(
        "--quick", action="store_true", help="tiny inputs, to see that everything runs; no real numbers"
    )
    chosen = parser.parse_args(arguments)

    jobs = [chosen.job] if chosen.job else list(JOBS)
    text = [f"# Benchmarks: {', '.join(jobs)}", machine()]
    if chosen.quick:
        text.append("**Tiny inputs (`--quick`): these numbers say nothing but that everything ran.**")
    print("\n\n".join(text), flush=True)
    for name in jobs:
        for part in tables(rows_of(name, chosen.quick)):
            print(f"\n{part}", flush=True)
            text.append(part)
    target = project_root() / "build" / "benchmarks.md"
    with atomic_path(target) as part:
        part.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    print(f"\nwritten to {target}")
    return 0


def rows_of(name: str, quick: bool) -> list[dict]:
    return importlib.import_module(f"benchmarks.{name}").run(quick=quick)


def machine() -> str:
    """What the numbers depend on."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    versions = ", ".join(f"{name} {version}" for name, version in found.items())
    return f"{cores} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}; {versions}"


def tables(rows: list[dict]) -> list[str]:
    """One markdown table a job, in the order in which the jobs came."""
    return [table(job, [row for row in rows if row["job"] == job]) for job in dict.fromkeys(row["job"] for row in rows)]


def table(job: str, rows: list[dict]) -> str:
    """A column for each key but ``job``: numbers to the right, text to the left."""
    columns = [key for key in dict.fromkeys(key for row in rows for key in row) if key != "job"]
    lines = []
    for name in columns:
        values = [row.get(name) for row in rows]
        is_text = any(isinstance(value, str) for value in values)
        cells = [value or "" for value in values] if is_text else [number(value) for value in values]
        # Text in the last column may be long: padding it would only make the lines longer.
        width = 0 if is_text and name == columns[-1] else max(len(cell) for cell in [name, "---:", *cells])
        pad = str.ljust if is_text else str.rjust
        lines.append([pad(cell, width) for cell in [name, "---" if is_text else "---:", *cells]])
    return f"## {job}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in zip(*lines, strict=True))


def number(value: float | None) -> str:
    """Three digits that count, never in powers of ten; nothing for what was not measured."""
    if value is None or not math.isfinite(value):
        return ""
    if value == 0:
        return "0"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


if __name__ == "__main__":
    raise SystemExit(main())
