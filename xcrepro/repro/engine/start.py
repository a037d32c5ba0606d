"""A folder of one's own to work in: the notebooks, copied."""

from __future__ import annotations

import shutil
from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.engine import manifest, tidy


def start(folder: str | Path) -> list[Path]:
    """Copy the notebooks and their manifest into ``folder``, which is then a project, where runs write figures and build."""
    folder = Path(folder).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise ArgumentError("folder", "must be a folder", folder, "name one that is not there yet")
    if folder.is_dir() and (there := next(folder.iterdir(), None)):
        raise ArgumentError("folder", "must be empty or not there yet", f"{folder}, with {there.name} in it")
    manifest.load()  # a project with a fault is not handed on
    home = paths.committed("notebooks")
    files = [*tidy.find([home]), *(path for path in sorted(home.iterdir()) if path.suffix in {".toml", ".md", ".py"})]
    names = [Path("notebooks") / path.relative_to(home) for path in files]
    with paths.filling(folder) as part:
        for path, name in zip(files, names, strict=True):
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, part / name)  # contents alone: what is installed may be read-only
    return [folder / name for name in names]
