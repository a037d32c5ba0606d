"""Fetching a dataset: get its archive, remember the checksum, unpack it safely, compare what it holds with what is printed.

The addresses are napkinXC's, and its gdown knows Google Drive's confirmation page. What this adds: nothing half-done is
left, and a page in place of an archive, a cut or changed archive and one that would write outside its folder are
refused.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from xcrepro.core import extras
from xcrepro.core.data import against_print, load, locate, registry
from xcrepro.core.data.dataset import Split
from xcrepro.core.data.registry import Entry
from xcrepro.core.data.sources import RATIO, byte_limit, is_damage
from xcrepro.core.errors import DataError, DataMissing, XCError
from xcrepro.core.paths import atomic_path, faults_named

RETRIES = 3
"""How often a broken connection is taken up again, after a pause that grows."""
TIMEOUT = 60
"""Seconds without a byte after which a connection counts as broken."""
MEMBERS = 10_000
"""Files and folders that an archive may hold; those of the repository hold fewer than twenty."""
MOST_UNPACKED = 200 << 30
"""How many bytes an archive may unpack to, unless ``$XCREPRO_MAX_UNPACKED`` allows others."""
RATIO_FROM = 1 << 20
"""Members above so many bytes may unpack to ``RATIO`` times their size."""
NAME_PARTS, NAME_LENGTH = 20, 200
"""How deep a member may lie, and how long each name on the way may be, in bytes."""


def fetch(name: str, force: bool = False, *, progress: bool = True) -> Path:
    """Put a dataset into the cache and return its folder; do nothing where it is there already.

    The archive comes from the address that ``napkinxc.datasets`` or the ``dataset.toml`` keeps, or is
    ``<cache>/datasets/<name>.zip`` where somebody put one (the way for a machine without a network). It is downloaded,
    unpacked, read and compared with the published numbers in a hidden folder of the cache, and moved into place whole;
    on any error nothing stays. Two processes may fetch at once: both work apart, the first to finish wins. The archive must
    have the SHA-256 that the catalogue has (``sha256`` in ``[archive]``). Where that has none, the first archive that passes
    the comparison is trusted, which is said, and its sum is kept in ``<cache>/datasets/<name>.sha256``: a later one must have
    the same.

    Parameters
    ----------
    name : str
        A name of the catalogue.
    force : bool
        Fetch again (or unpack your own zip file again) and replace what is there, once the new files are good.
    progress : bool
        A bar on stderr.

    Returns
    -------
    Path
        The folder; of a dataset of your own whose files lie beside its ``dataset.toml``, that one.

    Raises
    ------
    ArgumentError
        An unknown name.
    DataMissing
        With what to put where, when there is no archive or it cannot be downloaded.
    DataError
        When what came is no archive, another one than before, or has another number of points, features or labels.

    Warns
    -----
    UserWarning
        When it has another split or average than printed.
    """
    entry = registry.get(name)
    folder = None if force else locate.available_folder(entry)
    if folder is None:
        into_cache(entry, 0, entry.source, force=force, progress=progress)
        folder = locate.cache_folder(entry)
    return folder


def pin(name: str) -> Path:
    """Write the SHA-256 of a dataset's good archive into its file of the catalogue, whose path it gives."""
    entry = registry.get(name)
    record = _record_of(entry)
    if not record.is_file():
        found = f"no archive of {entry.printed_name} has passed the comparison with what is printed"
        raise DataMissing(f"{record}: {found}; `xcrepro fetch {entry.name} --force --pin` fetches one")
    return registry.pin(entry.name, record.read_text(encoding="utf-8").split()[0])


def _record_of(entry: Entry) -> Path:
    """Where the sum of the first good archive is remembered."""
    return locate.cache_folder(entry).with_name(f"{entry.name}.sha256")


def into_cache(
    entry: Entry, split: int, source: str | None, *, force: bool = False, progress: bool = True
) -> tuple[Split, Split, tuple[str, ...]]:
    """Fill the cache; return the data and in what they differ from what ``source`` prints (None: not compared)."""
    home = locate.cache_folder(entry)
    record = _record_of(entry)
    own = locate.own_archive(entry)
    if not own.is_file() and entry.proprietary:
        raise DataMissing(f"{entry.printed_name} is proprietary: only its statistics are public. Load it with path=")
    if not own.is_file() and not entry.archive.keys() & {"key", "url"}:
        raise DataMissing(locate.what_to_do(entry, "has no archive that could be downloaded"))
    home.parent.mkdir(parents=True, exist_ok=True)
    # Beside the final place: a move within one disk is atomic, and whatever goes wrong is removed with the folder.
    inside = tempfile.TemporaryDirectory(prefix=f".{entry.name}.", dir=home.parent)
    with faults_named(home), inside as temporary:
        archive, files = own, Path(temporary, "files")
        if not own.is_file():
            archive = Path(temporary, own.name)
            url = entry.archive.get("url") or archive_url(entry.archive["key"], entry.archive["format"])
            try:
                download(url, archive, progress=progress)
            except DataMissing as error:
                raise DataMissing(locate.what_to_do(entry, f"did not arrive: {error}", url)) from error
        pinned = entry.archive.get("sha256", "")
        digest = check_sum(archive, record, pinned)
        try:
            unpack(archive, files, progress=progress)
            place = locate.Place(entry, (), files, archived=True)
            train, test = load.read_folder(files, place.files, split)
            load.read_excluded(place.home, test)  # the whole archive is good before it is trusted
            differences = against_print.check_published(entry, source, archive.name, train, test)
        except XCError as error:
            raise _without_temporary(error, files, archive.name) from error
        _install(files, home, Path(temporary, "old"), force)
        for difference in differences:
            warnings.warn(f"{archive.name}: {difference}", stacklevel=3)
        if source is not None and not differences:
            if progress and not pinned and not record.is_file():
                trusted = "the catalogue has no SHA-256 of it, so this first one is trusted"
                print(f"{archive.name}: {trusted}: {digest}, remembered in {record}", file=sys.stderr)
            remember_sum(digest, own.name, record)
    return train, test, differences


def _install(files: Path, home: Path, old: Path, force: bool) -> None:
    if force and home.is_dir():
        os.rename(home, old)
    try:
        os.rename(files, home)
    except OSError:
        if home.is_dir():
            return  # another process finished first, and its files passed the same checks
        if old.is_dir():
            os.rename(old, home)
        raise


def _without_temporary(error: XCError, files: Path, archive: str) -> XCError:
    """The same error with the archive's name in place of the temporary folder, which is gone when it is read."""
    if isinstance(error, DataError):
        said = [text.replace(str(files), archive) for text in (error.path, error.found, error.expected)]
        do = f"{error.do}. Nothing was put into the cache".lstrip(". ").replace("?.", "?")
        return DataError(*said, line=error.line, do=do)
    if isinstance(error, DataMissing):
        return DataMissing(str(error).replace(str(files), archive))
    return error


def archive_url(key: str, archive_format: str) -> str:
    """The address that napkinXC keeps for an archive, such as ``"eurlex-4k"`` in the format ``"bow"``."""
    DATASETS = extras.library("napkinxc.datasets").DATASETS
    try:
        return DATASETS[key][archive_format]["url"]
    except KeyError:
        raise XCError(
            f"napkinxc.datasets has no archive {key!r} in format {archive_format!r}: install napkinxc 0.7.2 or newer"
        ) from None


def download(url: str, target: str | os.PathLike, *, progress: bool = True) -> None:
    """Save what ``url`` serves as ``target``, whole or not at all; DataMissing says why it cannot be had."""
    gdown, requests, tqdm = (extras.library(name) for name in ("gdown", "requests", "tqdm"))
    target = Path(target)
    with faults_named(target), tqdm.tqdm(unit="B", unit_scale=True, desc="downloading", disable=not progress) as bar:

        def arrived(so_far: int, total: int | None) -> None:
            bar.total = total
            bar.update(so_far - bar.n)

        try:
            # gdown's own bar comes with lines about each attempt; what failed is said once, in the end.
            gdown.download(
                url, str(target), quiet=True, use_cookies=False, timeout=TIMEOUT, retries=RETRIES, progress=arrived
            )
        except (requests.RequestException, gdown.exceptions.DownloadError) as error:
            bar.leave = False
            raise DataMissing(f"{url} could not be downloaded: {_reason(error)}") from error
        finally:
            for part in target.parent.glob(f"{target.name}*.part"):
                part.unlink()


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


def check_sum(archive: str | os.PathLike, record: str | os.PathLike, pinned: str = "") -> str:
    """The SHA-256 of ``archive``, held to the one that is known."""
    found, record = sha256(archive), Path(record)
    known, origin = pinned, "as the catalogue has it"
    do = "It is another archive than the catalogue was made for, or did not arrive well: do not use it unread. "
    do += "Where it is meant, its sha256 in [archive] has to change"
    if not pinned and record.is_file():
        known = next(iter(record.read_text(encoding="utf-8").split()), "a sum")
        origin = f"remembered in {record} from the first good download"
        do = f"The archive was replaced since, or did not arrive well. To accept the new one, delete {record} "
        do += "and fetch again"
    if known and found != known:
        raise DataError(Path(archive).name, f"an archive with SHA-256 {found}", f"{known}, {origin}", do=do)
    return found


def remember_sum(digest: str, name: str, record: str | os.PathLike) -> None:
    """Write the checksum of an archive, unless one is remembered already."""
    if not Path(record).is_file():
        with atomic_path(record) as part:
            part.write_text(f"{digest}  {name}\n", encoding="utf-8")


def unpack(archive: str | os.PathLike, folder: str | os.PathLike, *, progress: bool = True) -> None:
    """Unpack a zip archive into ``folder``, every member's checksum verified; on an error the folder is removed.

    Refused before a byte is written: what is no zip, more than the free space or ``$XCREPRO_MAX_UNPACKED`` bytes
    (default 200 GiB), too many members, one that unpacks to more than ``RATIO`` times its size, a name twice or too
    long, a link, and what would land outside ``folder``.
    """
    archive, folder = Path(archive), Path(folder)
    if not zipfile.is_zipfile(archive):
        raise DataError(archive.name, _what_is(archive), "a whole zip archive", do="Fetch it again later, or by hand")
    folder.mkdir(parents=True)
    try:
        with zipfile.ZipFile(archive) as bundle:
            members = bundle.infolist()
            for found, expected in _faults(members):
                do = "This archive is not what it claims to be: do not use it"
                raise DataError(archive.name, found, expected, do=do)
            most = byte_limit("XCREPRO_MAX_UNPACKED", MOST_UNPACKED)
            size, free = sum(member.file_size for member in members), shutil.disk_usage(folder).free
            if size > most:
                do = "Where it is meant, XCREPRO_MAX_UNPACKED=BYTES allows more"
                raise DataError(archive.name, f"{size:,} bytes of files in it", f"at most {most:,}", do=do)
            if size > free:
                expected = f"at most the {free:,} bytes free in {folder.parent}"
                do = "Make room, or set XCREPRO_DATA to a folder on a larger disk"
                raise DataError(archive.name, f"{size:,} bytes of files in it", expected, do=do)
            _extract(bundle, members, folder, progress)
    except BaseException as error:
        shutil.rmtree(folder)
        if is_damage(error) or isinstance(error, RuntimeError):  # of a password
            found = f"a damaged zip archive ({error})"
            raise DataError(archive.name, found, "a whole one", do="Fetch it again") from error
        raise


def _extract(bundle: zipfile.ZipFile, members: list[zipfile.ZipInfo], folder: Path, progress: bool) -> None:
    tqdm = extras.library("tqdm").tqdm
    total = sum(member.file_size for member in members)
    with tqdm(total=total, unit="B", unit_scale=True, desc="unpacking", disable=not progress) as bar:
        for member in members:
            bundle.extract(member, folder)
            bar.update(member.file_size)


def _faults(members: Sequence[zipfile.ZipInfo]) -> Iterator[tuple[str, str]]:
    """What of an archive would fill a disk or a folder or land outside of it, or stands there twice; and what is expected."""
    if len(members) > MEMBERS:
        yield f"{len(members):,} members", f"at most {MEMBERS:,}"
    files: set[str] = set()
    folders: set[str] = set()
    for member in members:
        name, size = PurePosixPath(member.filename.replace("\\", "/")), member.file_size
        shown = repr(str(name) if len(str(name)) <= 60 else f"{str(name)[:57]}...")
        if size > max(RATIO_FROM, RATIO * member.compress_size):
            found = f"the member {shown}, {member.compress_size:,} bytes that unpack to {size:,}"
            yield found, f"at most {RATIO} times as many"
        if not name.parts and not member.filename.endswith("/"):
            yield "a member without a name", "a name for each file"
        plain = stat.S_IFMT(member.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)
        if name.is_absolute() or ".." in name.parts or ":" in "".join(name.parts[:1]) or not plain:
            yield (
                f"the member {shown}, a link, a special file or outside the archive's own folder",
                "only files below it",
            )
        longest = max((len(part.encode("utf-8", "surrogateescape")) for part in name.parts), default=0)
        if len(name.parts) > NAME_PARTS or longest > NAME_LENGTH or not str(name).isprintable():
            expected = f"names that can be printed, of at most {NAME_LENGTH} bytes a part and {NAME_PARTS} parts"
            yield f"the member {shown}", expected
        # Upper and lower case are one, as on some systems.
        lower = PurePosixPath(str(name).lower())
        above, known = {str(folder) for folder in lower.parents}, files if member.is_dir() else files | folders
        if str(lower) in known or above & files:
            yield f"the member {shown} twice", "each name once"
        folders |= above
        (folders if member.is_dir() else files).add(str(lower))


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
