"""Where things live: the project, what the package brings, the cache; and writing a file so that nobody sees half of it.

A *project* is a folder with ``notebooks/manifest.toml``: a clone, or what ``xcrepro start`` made. Runs write into it.
For what is committed that it does not have, an installed wheel brings a copy in the same layout; a clone is that copy.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from xcrepro.core.errors import XCError

_CLONE = Path(__file__).resolve().parents[2]
_WHEELS = _CLONE / "xcrepro" / "_project"
_BROUGHT = _WHEELS if _WHEELS.is_dir() else _CLONE
"""What pyproject.toml puts into the wheel; a clone has no such folder, it has the files themselves."""


def project_root() -> Path:
    """The project folder, where runs write.

    ``$XCREPRO_ROOT``, else the nearest parent of the working folder that holds ``notebooks/manifest.toml``, else the
    clone this package was installed from (editable install); of an installed wheel ``project`` in :func:`cache_dir`.
    """
    if root := os.environ.get("XCREPRO_ROOT"):
        return Path(root).resolve()
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if (folder / "notebooks" / "manifest.toml").is_file():
            return folder
    return _CLONE if _BROUGHT == _CLONE else cache_dir() / "project"


def is_clone(root: Path | None = None) -> bool:
    """Whether a project is a clone, with what is committed in it, and not a folder that ``xcrepro start`` made."""
    return ((project_root() if root is None else root) / "constraints.txt").is_file()


def committed(name: str, root: Path | None = None) -> Path:
    """Where a committed file or folder is read: in the project, or, if that has none, in what the installation brings."""
    own = (project_root() if root is None else root) / name
    brought = _BROUGHT / name
    return brought if brought.exists() and not own.exists() else own


def committed_files(folder: str, pattern: str, root: Path | None = None) -> list[Path]:
    """The committed files of a folder by name, the project's own before what the installation brings under the same name."""
    own = (project_root() if root is None else root) / folder
    found = {path.name: path for place in (_BROUGHT / folder, own) for path in place.glob(pattern) if path.is_file()}
    return [found[name] for name in sorted(found)]


def seal(content: Mapping[str, object]) -> str:
    """SHA-256 of what a file of JSON holds besides ``sha256``, however it is laid out: no changed digit goes unseen."""
    rest = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def user_cache() -> Path:
    """Where a system keeps a user's caches: ``$XDG_CACHE_HOME`` or ``~/.cache``, ``~/Library/Caches``, ``%LOCALAPPDATA%``."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData/Local") / "xcrepro/Cache"
    if sys.platform == "darwin":
        return home / "Library/Caches/xcrepro"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "xcrepro"


def cache_dir() -> Path:
    """The folder for downloads and trained models: ``$XCREPRO_DATA``, else the user's cache folder. It is not created here."""
    if folder := os.environ.get("XCREPRO_DATA"):
        return Path(folder).expanduser().resolve()
    return user_cache()


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike) -> Iterator[Path]:
    """An empty file beside ``path``, with its suffix, that is moved there if the block ends well, and removed if not."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with faults_named(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix="".join(path.suffixes[-2:]), dir=path.parent)
        os.close(handle)
        part = Path(name)
        try:
            yield part
            # mkstemp makes files private; give the result what an ordinary open() would have given.
            if hasattr(os, "umask"):  # a browser has none
                umask = os.umask(0)
                os.umask(umask)
                os.chmod(part, 0o666 & ~umask)
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def faults_named(path: Path) -> Iterator[None]:
    """What the system refuses in the block is said of ``path``: a full disk names no file, other faults the temporary one."""
    try:
        yield
    except XCError:
        raise
    except OSError as error:
        if error.errno is None:
            if type(error) is OSError:  # NumPy's "3 requested and 0 written"
                raise OSError(errno.EIO, str(error), os.fspath(path)) from error
            raise
        named = error.filename
        parts = Path(named).parts if isinstance(named, str | os.PathLike) else ()
        if not parts or any(part.startswith(f".{path.name}.") for part in parts):
            error.filename, error.filename2 = os.fspath(path), None
        raise


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write files that only make sense together: none is moved before all are written, the first one last."""
    with contextlib.ExitStack() as stack:
        for path, content in contents.items():
            stack.enter_context(atomic_path(path)).write_bytes(content)


@contextlib.contextmanager
def filling(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary folder in ``path`` whose contents are moved there if the block ends well; if not, ``path`` is as it was."""
    path = Path(path)
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    moved: list[Path] = []
    try:
        path.mkdir(parents=True, exist_ok=True)
        with faults_named(path), tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path) as room:
            part = Path(room)
            yield part
            for made in sorted(part.iterdir()):
                os.replace(made, path / made.name)
                moved.append(path / made.name)
    except BaseException:
        for made in moved:
            shutil.rmtree(made) if made.is_dir() else made.unlink()
        for folder in new:
            if folder.exists():
                folder.rmdir()
        raise
