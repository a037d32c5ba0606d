"""Open a file, text or ``.npz``, packed or not, and turn what goes wrong there into errors that name it."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import cast

import numpy as np

from xcrepro.core.errors import ArgumentError, DataError, DataMissing, XCError

_GZIP = b"\x1f\x8b"
_OF_SYSTEMS = (".DS_Store", "Thumbs.db", "desktop.ini")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
RATIO, _RATIO_FROM = 200, 1 << 30
"""How many times its size a packed file may unpack to, above so many bytes; text of XC data comes to 3 to 50."""


def byte_limit(variable: str, usual: int) -> int:
    """A number of bytes that an environment variable may set."""
    given = os.environ.get(variable, str(usual))
    if not given.isdigit() or not int(given):
        raise ArgumentError(f"${variable}", "must be a whole number of bytes, 1 or more", repr(given))
    return int(given)


def most_unpacked(path: str | os.PathLike) -> int:
    """To how many bytes a packed file may unpack, unless ``$XCREPRO_MAX_UNPACKED`` allows others."""
    return byte_limit("XCREPRO_MAX_UNPACKED", max(_RATIO_FROM, RATIO * os.path.getsize(path)))


def _refuse_flood(path: str | os.PathLike, size: int, most: int, more: str = "") -> None:
    """Refuse what would fill the memory: a few megabytes can claim to be many gigabytes."""
    if size > most:
        found = f"{os.path.getsize(path):,} bytes that unpack to {more}{size:,}"
        do = "Where it is meant, XCREPRO_MAX_UNPACKED=BYTES allows more"
        raise DataError(path, found, f"at most {most:,}", do=do)


class _Unpacked(io.RawIOBase):
    """What a stream unpacks to, as far as it may; a gzip file does not say beforehand how much that is."""

    def __init__(self, path: str | os.PathLike, stream: BufferedIOBase) -> None:
        self.path, self.stream, self.size, self.most = path, stream, 0, most_unpacked(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        count = self.stream.readinto1(buffer)  # what there is, so that a fault is found before a damage behind it
        self.size += count
        _refuse_flood(self.path, self.size, self.most, "more than ")
        return count


def require_file(path: str | os.PathLike) -> None:
    """Raise unless ``path`` is there and no folder."""
    if os.path.isdir(path):
        raise DataError(path, "a folder", "a file", do="Name the file inside it")
    if not os.path.exists(path):
        raise DataMissing(f"{os.fspath(path)}: there is no such file; check the name and the folder it is seen from")


@contextlib.contextmanager
def open_source(path: str | os.PathLike) -> Iterator[BufferedIOBase]:
    """The bytes of a file, unpacked: plain, gzip, or a zip archive with one member, as its first bytes say and not its name,
    because browsers and mirrors unpack files and keep their ``.gz``."""
    require_file(path)
    with damage(path), contextlib.ExitStack() as stack:
        file = stack.enter_context(open(path, "rb"))
        magic = file.peek(4)[:4]
        if magic[:2] == _GZIP:
            yield io.BufferedReader(_Unpacked(path, stack.enter_context(gzip.GzipFile(fileobj=file))), 1 << 16)
        elif magic in _ZIP:
            archive = stack.enter_context(zipfile.ZipFile(file))
            members = [member for member in archive.infolist() if not _beside(member)]
            if len(members) != 1:
                names = ", ".join(member.filename for member in members[:5]) or "none"
                found = f"an archive of {len(members)} files ({names})"
                raise DataError(path, found, "an archive of one", do="Unpack it first")
            _refuse_flood(path, members[0].file_size, most_unpacked(path))
            try:
                member = stack.enter_context(archive.open(members[0]))
            except (RuntimeError, NotImplementedError) as error:
                # A password, or a way of packing that Python does not know.
                found = f"an archive that cannot be read ({error})"
                raise DataError(path, found, "a plain zip", do="Unpack it") from None
            yield cast("BufferedIOBase", member)  # zipfile calls it IO[bytes]
        elif not magic:
            raise DataError(path, "an empty file", "data", do="Was the download or the writing cut short?")
        else:
            yield file


def _beside(member: zipfile.ZipInfo) -> bool:
    """Folders, and what macOS and Windows put beside the files that were meant."""
    if member.filename.endswith("/"):  # is_dir() fails for a member without a name
        return True
    name = member.filename.rpartition("/")[2]
    return member.filename.startswith("__MACOSX/") or name.startswith("._") or name in _OF_SYSTEMS


@contextlib.contextmanager
def damage(path: str | os.PathLike) -> Iterator[None]:
    """Turn the exceptions of a broken archive into :class:`DataError`."""
    again = "Fetch or make the file again"
    try:
        yield
    except EOFError:
        raise DataError(path, "the end of the file in the middle of packed data", "a whole archive", do=again) from None
    except Exception as error:
        if not is_damage(error):
            raise
        raise DataError(path, f"damaged packed data ({error})", "a whole archive", do=again) from None


def is_damage(error: Exception) -> bool:
    """Whether an exception is one of those by which Python says that packed data are damaged, or packed as it does not know."""
    if isinstance(error, OSError):
        return error.errno in (None, errno.EINVAL)
    return isinstance(error, _OF_DAMAGE)


_OF_DAMAGE = (
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    NotImplementedError,
    UnicodeDecodeError,
)


def npz_arrays(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """All arrays of an ``.npz`` file."""
    return _npz(path, lambda stored: {name: in_known_types(stored[name]) for name in stored.files})


def in_known_types(array: np.ndarray) -> np.ndarray:
    """A stored array in this machine's order of bytes and in types that kernels know; a ValueError for what has none."""
    if array.dtype.kind == "c":
        raise ValueError("complex numbers")
    if array.dtype == np.uint64:
        if array.size and array.max() > np.iinfo(np.int64).max:
            raise ValueError("whole numbers beyond int64")
        return array.astype(np.int64)
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        with np.errstate(over="ignore"):
            return array.astype(np.float32 if array.dtype.itemsize == 2 else np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def save_npz(path: str | os.PathLike, arrays: dict[str, np.ndarray]) -> None:
    """Write an ``.npz`` with its whole numbers packed: ids and offsets shrink to a tenth in no time, real numbers hardly."""
    with zipfile.ZipFile(path, "w", compresslevel=1) as file:
        for name, array in arrays.items():
            file.compression = zipfile.ZIP_DEFLATED if array.dtype.kind in "iu" else zipfile.ZIP_STORED
            with file.open(f"{name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, array, allow_pickle=False)


def npz_names(path: str | os.PathLike) -> set[str]:
    """The names of the arrays of an ``.npz`` file, which are not read; errors as for :func:`npz_arrays`."""
    return _npz(path, lambda stored: set(stored.files))


def _npz(path: str | os.PathLike, look: Callable):
    require_file(path)
    try:
        with np.load(path, allow_pickle=False) as stored:
            _refuse_flood(path, sum(member.file_size for member in stored.zip.infolist()), most_unpacked(path))
            return look(stored)
    except XCError:
        raise
    except Exception as error:
        # zipfile, zlib and NumPy have more than ten ways to say that a file is damaged.
        expected = "an .npz of NumPy or SciPy, without Python objects"
        raise DataError(path, f"no readable .npz archive ({error})", expected, do="Make or fetch it again") from error
