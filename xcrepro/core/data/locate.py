"""Where a dataset's name leads: its entry in the catalogue, the folder of its files, and which file has which part."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path

from xcrepro.core import extras, paths
from xcrepro.core.data import registry
from xcrepro.core.data.against_print import nearest
from xcrepro.core.data.registry import FILE_SETS, Entry
from xcrepro.core.errors import ArgumentError, DataError, DataMissing, XCError

PAGE = "http://manikvarma.org/downloads/XC/XMLRepository.html"
LAYOUTS = (
    "train.txt and test.txt, or <anything>_train.txt and <anything>_test.txt",
    "trn_X_Xf.txt, trn_X_Y.txt, tst_X_Xf.txt and tst_X_Y.txt",
    "<anything>_data.txt with <anything>_trSplit.txt and <anything>_tstSplit.txt",
)
ENDING = r"\.(?:txt(?:\.gz|\.zip)?|npz)"
FILTER = "filter_labels_test.txt"
"""Of the LF datasets: pairs of a test point and a label that may not be predicted."""
# Key of [files] -> an example of its name, and what it may be. Filter files end in _train.txt too, and are no data.
_EXAMPLES = {
    "train": "*_train.txt", "test": "*_test.txt", "train_X": "trn_X_Xf.txt", "train_Y": "trn_X_Y.txt",
    "test_X": "tst_X_Xf.txt", "test_Y": "tst_X_Y.txt", "data": "*_data.txt", "train_rows": "*_trSplit.txt",
    "test_rows": "*_tstSplit.txt",
}  # fmt: skip
_NAMES = {key: name.replace("*", ".+").replace(".txt", ENDING) for key, name in _EXAMPLES.items()}
_NAMES |= {key: rf"(?!filter_labels)(?:.*_)?{key}{ENDING}" for key in ("train", "test")}
_NAMES |= {"train_rows": r".+_trSplit\.txt", "test_rows": r".+_tstSplit\.txt"}
_HEADERS = {
    "train": ("n_train", "n_features", "n_labels"), "test": ("n_test", "n_features", "n_labels"),
    "data": ("n_points", "n_features", "n_labels"), "train_X": ("n_train", "n_features"),
    "test_X": ("n_test", "n_features"), "train_Y": ("n_train", "n_labels"), "test_Y": ("n_test", "n_labels"),
}  # fmt: skip
"""Role -> what the header of its file counts."""


@dataclass(frozen=True)
class Place:
    """What a name leads to: the entry, what is to be said of it, and the folder; ``archived``: as its archive unpacks."""

    entry: Entry
    notes: tuple[str, ...]
    folder: Path | None
    archived: bool

    @functools.cached_property
    def files(self) -> dict[str, Path]:
        """Role -> file."""
        if self.folder is None:
            raise DataMissing(what_to_do(self.entry, "is not on this machine"))
        return find_named(self.entry, self.folder, self.archived)

    @property
    def home(self) -> Path:
        """The folder that holds the files, which may be below the one that was named."""
        return next(iter(self.files.values())).parent


def locate(name: str, path: str | os.PathLike | None = None) -> Place:
    """The place that :func:`xcrepro.load` reads; without a folder where nothing is on this machine, as in the kit itself."""
    entry, notes = _entry_of(name, path)
    if path is None and "committed" in entry.archive:
        return Place(entry, notes, None, archived=True)
    folder = available_folder(entry) if path is None else Path(path).expanduser()
    return Place(entry, notes, folder, archived=path is None)


def _entry_of(name: str, path: str | os.PathLike | None) -> tuple[Entry, tuple[str, ...]]:
    """The entry that ``name`` means, by the folder's dataset.toml or the catalogue, and what is to be said of it."""
    if isinstance(name, str) and "@" in name:
        do = "a scaled copy is xcrepro.twin(name, scale)"
        raise ArgumentError("name", "must be a dataset's name", repr(name), do)
    file = Path(path).expanduser() / registry.FILE if path is not None else None
    if file is not None and file.is_file():
        entry = registry.read(file)
        if not entry.is_called(name):
            raise ArgumentError("name", f"must be {entry.name!r}, as {file} says", repr(name))
        return entry, ()
    if listed := registry.get(name) if path is None else registry.find(name):
        return listed, ()
    entry = registry.unlisted(name)
    close = registry.nearest_names(name, cutoff=0.8)
    hint = f"; did you mean {close}?" if close else ""
    return entry, (f"{name!r} is not in the catalogue: nothing is printed about it{hint}",)


def cache_folder(entry: Entry) -> Path:
    """Where the dataset lies in the cache, or would."""
    return paths.cache_dir() / "datasets" / entry.name


def available_folder(entry: Entry) -> Path | None:
    """The folder that holds the dataset: the package's, that of its own dataset.toml, or the cache's; None where none does."""
    if "committed" in entry.archive:
        return paths.committed(entry.archive["committed"])
    if lies_beside(entry):
        return entry.folder
    here = Path.cwd() / entry.name
    with contextlib.suppress(DataMissing):  # any other folder of this name is none of ours
        _find(here)
        return here
    return home if (home := cache_folder(entry)).is_dir() else None


def own_archive(entry: Entry) -> Path:
    """Where an archive lies that somebody saved by hand, whether it is there or not."""
    saved = cache_folder(entry).with_name(f"{entry.name}.zip")
    beside = entry.folder / entry.archive["file"] if entry.folder and "file" in entry.archive else saved
    return beside if not saved.is_file() else saved


def lies_beside(entry: Entry) -> bool:
    """Whether the files of a reader's dataset are in the folder of its ``dataset.toml``."""
    try:
        return entry.folder is not None and bool(find_named(entry, entry.folder))
    except DataMissing:
        return False


def at_hand(name: str) -> bool:
    """Whether the real data of a dataset of the catalogue are on this machine, so that nothing is downloaded."""
    entry = registry.get(name)
    return available_folder(entry) is not None or own_archive(entry).is_file()


def require(name: str) -> None:
    """DataMissing, with the ways to get them, where a dataset's real data are not on this machine."""
    entry = registry.get(name)
    if not at_hand(name):
        raise DataMissing(what_to_do(entry, "is not on this machine"))


def home_of(name: str, path: str | os.PathLike | None = None) -> Path | None:
    """The folder in which a dataset's files are found; None where there is none, and of what comes with the kit."""
    place = locate(name, path)
    return place.folder and place.home


def count_splits(name: str, path: str | os.PathLike | None) -> int:
    """How many splits the data in a folder have: columns of the split files, 1 in other layouts."""
    from xcrepro.core.data import splits

    if path is None:
        entry = registry.get(name)
        return entry.splits if entry.splits and "committed" in entry.archive else 1
    files = locate(name, path).files
    return splits.count_columns(files["train_rows"]) if "train_rows" in files else 1


def find_named(entry: Entry, folder: Path, archived: bool = False) -> dict[str, Path]:
    """The files that the entry names, or napkinXC for its archive where that was unpacked here; else as in any folder."""
    if entry.files:
        named = {role: folder / name for role, name in entry.files.items()}
        if missing := [path.name for path in named.values() if not path.is_file()]:
            raise DataMissing(f"{folder}: no {', '.join(missing)} there, which [files] of {entry.name} names")
        return named
    if archived and "key" in entry.archive:
        known = extras.library("napkinxc.datasets").DATASETS
        table = known.get(entry.archive["key"], {}).get(entry.archive["format"], {})
        named = {}
        for half in ("train", "test"):
            what = table.get(half, {})
            what = {f"{half}_{part}": name for part, name in what.items()} if isinstance(what, dict) else {half: what}
            named |= {role: folder / table["dir"] / name for role, name in what.items()}
        if named and all(path.is_file() for path in named.values()):
            return named
    return _find(folder)


def _find(folder: Path) -> dict[str, Path]:
    """The files of the one layout in ``folder``, or in the one subfolder that has one: role -> path."""
    if not folder.is_dir():
        found = "is a file, not a folder" if folder.exists() else "no such folder"
        raise DataMissing(f"{folder}: {found}; path= takes the folder that holds the files: {'; or '.join(LAYOUTS)}")
    if files := _find_here(folder):
        return files
    below = {
        sub: files
        for sub in sorted(folder.iterdir())
        if sub.is_dir() and not sub.name.startswith((".", "__")) and (files := _find_here(sub))
    }
    if len(below) > 1:
        found = f"data in {len(below)} subfolders, {', '.join(sub.name for sub in below)}"
        raise DataError(folder, found, "one", do="Pass that one")
    if not below:
        names = sorted(p.name for p in folder.iterdir())
        there = ", ".join(names[:12]) + (" ..." if len(names) > 12 else "") if names else "nothing"
        wanted = f"Wanted: {'; or '.join(LAYOUTS)}"
        raise DataMissing(f"{folder}: no train and test files there, only {there}. {wanted}{_incomplete(folder)}")
    return next(iter(below.values()))


def _find_here(folder: Path) -> dict[str, Path] | None:
    fits = _fits(folder)
    whole = [roles for roles in FILE_SETS if all(fits[role] for role in roles)]
    if fits["train_X"] or fits["test_X"]:  # then labels alone are half of what is there
        whole = [roles for roles in whole if roles != ("train_Y", "test_Y")]
    if not whole:
        return None
    candidates = {role: fits[role] for roles in whole for role in roles}
    if len(whole) > 1 or any(len(found) > 1 for found in candidates.values()):
        listed = "; ".join(f"{role}: {', '.join(p.name for p in found)}" for role, found in candidates.items())
        like = "".join(dict.fromkeys(_like(found[0], role) for role, found in candidates.items()))
        do = f"Move the others out of the folder{like}"
        raise DataError(folder, f"more than one dataset ({listed})", "one file for each", do=do)
    return {role: found[0] for role, found in candidates.items()}


def _fits(folder: Path) -> dict[str, list[Path]]:
    """Role -> the files of a folder that have one of its names."""
    files = [p for p in sorted(folder.iterdir()) if p.is_file()]
    return {role: [p for p in files if re.fullmatch(regex, p.name, re.IGNORECASE)] for role, regex in _NAMES.items()}


def _incomplete(folder: Path) -> str:
    """Which files are missing beside those of a layout that lie in a folder or below it, and of which dataset these may be."""
    for home in (folder, *(sub for sub in sorted(folder.iterdir()) if sub.is_dir())):
        fits = _fits(home)
        for roles in sorted(FILE_SETS, key=lambda roles: -sum(bool(fits[role]) for role in roles)):
            there = [role for role in roles if fits[role]]
            if there:
                lacks = " and ".join(_EXAMPLES[role] for role in roles if not fits[role])
                return f". Beside {fits[there[0]][0].name} there is no {lacks}{_like(fits[there[0]][0], there[0])}"
        if texts := [p.name for p in sorted(home.iterdir()) if re.fullmatch(r".*\.json(?:\.gz)?", p.name)]:
            return f". {texts[0]} is raw text, of which `xcrepro vectorize` makes features"
    return ""


def _like(file: Path, role: str) -> str:
    """Of which dataset a file may be by its header, in words; empty where it has none or is like no dataset."""
    from xcrepro.core.data.sources import open_source

    try:
        with open_source(file) as stream:
            numbers = [int(word) for word in stream.readline(200).split()]
    except (XCError, OSError, ValueError):
        return ""
    counts = _HEADERS.get(role, ())
    like = nearest(dict(zip(counts, numbers, strict=True))) if len(numbers) == len(counts) else ""
    return f"; by its header {file.name} is {like}" if like else ""


def what_to_do(entry: Entry, reason: str, url: str = "") -> str:
    home, toml = cache_folder(entry), entry.folder and entry.folder / registry.FILE
    wanted = ", ".join(entry.files.values()) or "; or ".join(LAYOUTS)
    page = PAGE if registry.PAGE_TABLE in entry.published or entry.archive else "those who made it"
    archive = f"save the archive from {url or page}\n    as {home}.zip\n    and run: xcrepro fetch {entry.name}"
    if not url and entry.archive.keys() & {"key", "url"}:
        archive = f"run: xcrepro fetch {entry.name}\n    which downloads it; without a network, {archive}"
    if toml and "url" not in entry.archive:
        archive = f"name the archive in {toml}: [archive] with url or file"
    return (
        f"{entry.printed_name} {reason}. Do one of these:\n"
        f"  - {archive}\n"
        f"  - put the files ({wanted})\n    into {entry.folder or home}{os.sep}\n"
        f'  - name the folder that holds them: xcrepro.load("{entry.name}", path="..."), or -p folder DIR of a notebook\n'
        f"XCREPRO_DATA sets the cache folder. Nothing is replaced by synthetic data; "
        f'the name "synthetic {entry.name}" asks for those.'
    )
