"""``fetch``: datasets."""

from __future__ import annotations


def add(command) -> None:
    sub = command("fetch", _fetch, "download a dataset into the cache and check it")
    sub.add_argument("name", help="a dataset of the registry, such as eurlex-4k")
    sub.add_argument("--force", action="store_true", help="download again")


def _fetch(arguments) -> int:
    from xcrepro.data import registry
    from xcrepro.data.load import fetch

    print(fetch(arguments.name, force=arguments.force))
    entry = registry.get(arguments.name)
    for key in ("licence", "citation"):
        if text := getattr(entry, key):
            print(f"{key}: {text}")
    return 0
