"""What a run reads and writes, noted by the run itself for the runner: ``$XCREPRO_RECORD`` names the file of notes."""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.errors import DataError


def note(kind: str, text: str) -> None:
    """Add a note; nothing where nobody asked for a record."""
    if target := os.environ.get("XCREPRO_RECORD"):
        with open(target, "a", encoding="utf-8") as file:
            file.write(json.dumps([kind, text]) + "\n")


def note_peak() -> None:
    """Note the most memory that this process has had, in kB, where the system says it."""
    try:
        import resource  # of Unix systems alone
    except ImportError:
        return
    note("peak", str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


def read(path: Path) -> dict[str, list[str]]:
    """The notes of a run."""
    found: dict[str, dict[str, None]] = {}
    content = path.read_bytes() if path.exists() else b""
    for number, line in enumerate(content.splitlines(), 1):
        try:
            kind, text = json.loads(line)
            found.setdefault(kind, {})[text] = None
        except (ValueError, TypeError):
            raise DataError(path, f"{line[:60]!r}", "a note of the run", line=number, do="Run the item again") from None
    return {kind: list(texts) for kind, texts in found.items()}


@functools.cache
def watch() -> None:
    """From now on note every file of the project's ``data`` or of the cache that this process opens for reading."""
    if "XCREPRO_RECORD" not in os.environ:
        return
    cache = str(paths.cache_dir())
    data = paths.project_root() / "data", paths.committed("data")
    places = (*(str(folder) + os.sep for folder in data), cache + os.sep)
    # What is made from code and inputs that the stamp has anyway: models, and compiled kernels, whose index grows with use.
    made = tuple(os.path.join(cache, name) + os.sep for name in ("trained", "numba"))
    seen: set[str] = set()

    def opened(event: str, arguments: tuple) -> None:
        if event != "open" or not isinstance(arguments[0], str):
            return
        path, mode, flags = arguments
        writes = set(mode) & set("wxa+") if isinstance(mode, str) else flags & (os.O_WRONLY | os.O_RDWR)
        if writes or path in seen:
            return
        seen.add(path)
        full = os.path.abspath(path)
        if full.startswith(places) and not full.startswith(made) and not full.endswith(".lock"):
            note("input", full)

    sys.addaudithook(opened)
