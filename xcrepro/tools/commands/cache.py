"""``cache``: what downloads and trainings left on the disk."""

from __future__ import annotations

from xcrepro.tools.commands import shared

_MUCH = 2_000_000_000


def add(command) -> None:
    sub = command("cache", None, "what downloads and trained models take on the disk; remove what is no longer used")
    parts = sub.add_subparsers(required=True, metavar="ls|rm")
    listed = parts.add_parser("ls", help="what is there, its size, when it was used", description="Show the cache.")
    listed.set_defaults(command=_ls)
    listed.add_argument("--sort", choices=("name", "size", "used"), default="name", help="default: name")
    removed = parts.add_parser("rm", help="remove some of it", description="Remove what can be had again.")
    removed.set_defaults(command=_rm)
    removed.add_argument(
        "names", nargs="*", metavar="NAME", help="of `cache ls`, or its last part, or a pattern: 'PLT-*'"
    )
    removed.add_argument("--older", type=float, metavar="DAYS", help="only what was not used for so many days")
    removed.add_argument("--above", type=float, metavar="GB", help="those used longest ago, until so much is left")
    shared.flag(removed, "--all", "everything")
    shared.flag(removed, "--yes", "do it; without this it is only shown")


def _ls(arguments) -> int:
    from xcrepro.core import paths
    from xcrepro.repro.engine import cache

    keys = {"name": lambda e: e.name, "size": lambda e: -e.size, "used": lambda e: -e.used}
    found = sorted(cache.entries(), key=keys[arguments.sort])
    whole = sum(entry.size for entry in found)
    print(f"{paths.cache_dir()}: {len(found)} things, {_size(whole)}")
    for line in _lines(found):
        print(line)
    if whole > _MUCH:
        print("`xcrepro cache rm --above 2 --yes` removes what was used longest ago, until 2 GB are left")
    return 0


def _rm(arguments) -> int:
    from xcrepro.repro.engine import cache

    found = cache.chosen(arguments.names, arguments.older, arguments.all, arguments.above)
    whole = _size(sum(entry.size for entry in found))
    if not arguments.yes:
        for line in _lines(found):
            print(line)
        print(f"nothing removed; --yes removes these {len(found)}, {whole}" if found else "nothing to remove")
        return 0
    for entry in found:
        cache.remove(entry)
        print(f"removed {entry.name}", flush=True)
    print(f"{len(found)} removed, {whole}")
    return 0


def _lines(usage) -> list[str]:
    import time

    names = max((len(entry.name) for entry in usage), default=0)
    return [
        f"{entry.name:<{names}}  {_size(entry.size):>9}  used {time.strftime('%Y-%m-%d', time.localtime(entry.used))}  "
        f"{entry.about or entry.kind}"
        for entry in usage
    ]


def _size(size: float) -> str:
    """Such as ``12.3 MB``.

    >>> _size(999), _size(12_345_678)
    ('999 B', '12.3 MB')
    """
    power = min((len(str(int(size))) - 1) // 3, 3)
    return f"{size / 1000**power:.1f} {('B', 'kB', 'MB', 'GB')[power]}" if power else f"{int(size)} B"
