"""Where things live: the project, the cache, and writing a file so that nobody ever sees half of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def project_root() -> Path:
    """The project folder.

    ``$XCREPRO_ROOT``, else the nearest parent of the working folder that holds ``notebooks/manifest.toml``, else the
    folder this package was installed from (editable install).

    Returns
    -------
    Path
        Absolute.
    """
    if root := os.environ.get("XCREPRO_ROOT"):
        return Path(root).resolve()
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if (folder / "notebooks" / "manifest.toml").is_file():
            return folder
    return Path(__file__).resolve().parent.parent


def cache_dir() -> Path:
    """The folder for downloads and trained models: ``$XCREPRO_DATA``, else the user's cache folder.

    It is not created here: whoever writes creates what it needs.

    Returns
    -------
    Path
    """
    if folder := os.environ.get("XCREPRO_DATA"):
        return Path(folder).expanduser().resolve()
    import platformdirs

    return Path(platformdirs.user_cache_dir("xcrepro"))


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike) -> Iterator[Path]:
    """A temporary path beside ``path`` that is moved there when the block ends well.

    On an error the temporary file is removed and ``path`` is as it was.

    Parameters
    ----------
    path : path
        The file to be, replaced if it is there; its folder is created.

    Yields
    ------
    Path
        Of an empty file; it keeps the suffix, because writers such as ``np.savez`` look at it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> with atomic_path(target) as part:
    ...     _ = part.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix="".join(path.suffixes[-2:]), dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        # mkstemp makes files private; give the result what an ordinary open() would have given.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(part, 0o666 & ~umask)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
