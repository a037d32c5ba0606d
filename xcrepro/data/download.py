"""Fetching an archive: get the file, remember its checksum, unpack it safely.

The addresses are napkinXC's (``napkinxc.datasets.DATASETS``), and gdown, which napkinXC uses, knows how to get past
Google Drive's confirmation page. What this adds: nothing half-done is ever left behind, and a page that came instead of
an archive, a cut archive, a changed archive and one that would write outside its folder are refused.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from xcrepro.errors import DataError, DataMissing, XCError
from xcrepro.paths import atomic_path

RETRIES = 3
"""How often a broken connection is taken up again, after a pause that grows."""
TIMEOUT = 60
"""Seconds without a byte after which a connection counts as broken."""


def archive_url(key: str, archive_format: str) -> str:
    """The address that napkinXC keeps for an archive.

    Parameters
    ----------
    key, archive_format : str
        As ``napkinxc.datasets.DATASETS`` has them, e.g. ``"eurlex-4k"`` and ``"bow"``.

    Returns
    -------
    str

    Raises
    ------
    XCError
        Where the installed napkinXC does not know it (any more).

    Examples
    --------
    >>> archive_url("eurlex-4k", "bow").startswith("https://drive.google.com/")
    True
    """
    from napkinxc.datasets import DATASETS

    try:
        return DATASETS[key][archive_format]["url"]
    except KeyError:
        raise XCError(
            f"napkinxc.datasets has no archive {key!r} in format {archive_format!r}: install napkinxc 0.7.2 or newer"
        ) from None


def download(url: str, target: str | os.PathLike, *, progress: bool = True) -> None:
    """Save what ``url`` serves as ``target``, whole or not at all.

    Parameters
    ----------
    url : str
        The address; on Google Drive also that of its confirmation page.
    target : path
        The file to be; its folder must exist.
    progress : bool
        A bar on stderr.

    Raises
    ------
    DataMissing
        With the reason, when the address cannot be reached, refuses (a Google Drive quota, an HTTP error), or stops
        before the announced end.
    """
    import gdown
    import requests

    target = Path(target)
    try:
        gdown.download(
            url=url, output=str(target), quiet=not progress, use_cookies=False, timeout=TIMEOUT, retries=RETRIES
        )
    except (requests.RequestException, gdown.exceptions.DownloadError) as error:
        for part in target.parent.glob(f"{target.name}*.part"):
            part.unlink()
        raise DataMissing(f"{url} could not be downloaded: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What went wrong, without the layers of libraries that it came through."""
    import requests

    for broken in (error, error.__cause__):
        if isinstance(broken, requests.ConnectionError) and broken.args:
            inner = getattr(broken.args[0], "reason", None)
            if inner is not None:
                return f"no connection ({str(inner).rpartition(': ')[2]})"
    # gdown keeps the bytes that came, and says so; here they go, so only what it says before is true.
    text = " ".join(str(error).partition("The received bytes are kept")[0].split())
    return text.rstrip(". ") or type(error).__name__


def sha256(path: str | os.PathLike) -> str:
    """The SHA-256 of a file, as 64 hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sum(archive: str | os.PathLike, record: str | os.PathLike) -> str:
    """The SHA-256 of ``archive``, held to the one that is remembered.

    Nothing is written: :func:`remember_sum` does that, once the contents are known to be good.

    Parameters
    ----------
    archive : path
    record : path
        The file that :func:`remember_sum` wrote; it need not be there.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    DataError
        If ``record`` remembers another one from an earlier download.
    """
    found, record = sha256(archive), Path(record)
    if not record.is_file():
        return found
    known = record.read_text(encoding="utf-8").split()[:1]
    if known != [found]:
        raise DataError(
            Path(archive).name,
            f"an archive with SHA-256 {found}",
            f"{known[0] if known else 'a sum'}, remembered in {record} from the first good download",
            do=f"The archive was replaced since, or did not arrive well. To accept the new one, delete {record} "
            f"and fetch again",
        )
    return found


def remember_sum(digest: str, name: str, record: str | os.PathLike) -> None:
    """Write the checksum of an archive, unless one is remembered already.

    Parameters
    ----------
    digest : str
        From :func:`check_sum`.
    name : str
        The archive's file name.
    record : path
        The file to be, in the format of ``sha256sum``: the sum, two blanks, the name.
    """
    if not Path(record).is_file():
        with atomic_path(record) as part:
            part.write_text(f"{digest}  {name}\n", encoding="utf-8")


def unpack(archive: str | os.PathLike, folder: str | os.PathLike, *, progress: bool = True) -> None:
    """Unpack a zip archive into ``folder``; every member's checksum is verified.

    Parameters
    ----------
    archive : path
    folder : path
        Is created; on an error it is removed.
    progress : bool
        A bar on stderr.

    Raises
    ------
    DataError
        For what is no zip (a web page is called that), for a cut or damaged one, for one that is larger than the free
        space, and for one with a member that would land outside ``folder`` or is a link; the last three before a byte
        is written, except damage inside a member.
    """
    archive, folder = Path(archive), Path(folder)
    if not zipfile.is_zipfile(archive):
        raise DataError(archive.name, _what_is(archive), "a whole zip archive", do="Fetch it again later, or by hand")
    folder.mkdir(parents=True)
    try:
        with zipfile.ZipFile(archive) as bundle:
            members = bundle.infolist()
            for member in members:
                _refuse_escape(archive, member)
            size, free = sum(member.file_size for member in members), shutil.disk_usage(folder).free
            if size > free:
                raise DataError(
                    archive.name,
                    f"{size:,} bytes of files in it",
                    f"at most the {free:,} bytes free in {folder.parent}",
                    do="Make room, or set XCREPRO_DATA to a folder on a larger disk",
                )
            _extract(bundle, members, folder, progress)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        shutil.rmtree(folder)
        raise DataError(archive.name, f"a damaged zip archive ({error})", "a whole one", do="Fetch it again") from error
    except BaseException:
        shutil.rmtree(folder)
        raise


def _extract(bundle: zipfile.ZipFile, members: list[zipfile.ZipInfo], folder: Path, progress: bool) -> None:
    from tqdm import tqdm

    total = sum(member.file_size for member in members)
    with tqdm(total=total, unit="B", unit_scale=True, desc="unpacking", disable=not progress) as bar:
        for member in members:
            bundle.extract(member, folder)
            bar.update(member.file_size)


def _refuse_escape(archive: Path, member: zipfile.ZipInfo) -> None:
    name = PurePosixPath(member.filename.replace("\\", "/"))
    if (
        name.is_absolute()
        or ".." in name.parts
        or ":" in "".join(name.parts[:1])
        or stat.S_ISLNK(member.external_attr >> 16)
    ):
        raise DataError(
            archive.name,
            f"the member {member.filename!r}, a link or outside the archive's own folder",
            "only files below it",
            do="This archive is not what it claims to be: do not use it",
        )


def _what_is(path: Path) -> str:
    with open(path, "rb") as file:
        head = file.read(1024)
    size = f"{path.stat().st_size:,} bytes"
    if not head:
        return "an empty file"
    if head.lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return f"a web page of {size} (a download quota or a sign-in page, perhaps)"
    if head.startswith(b"PK"):
        return f"the beginning of a zip archive, {size}, without its end"
    return f"{size} that begin {head[:16]!r}"
