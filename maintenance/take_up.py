"""``python -m maintenance.take_up BUNDLE``: results that somebody sent (:mod:`xcrepro.tools.bundle`) become the project's own.

What is refused is said, and nothing is written then. Otherwise the records go to ``data/recorded``, their commands to its
README and to the manifest, the truth on record, and the listing of what is reproduced and the README's counts follow.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.data import fingerprints, registry
from xcrepro.core.errors import XCError
from xcrepro.repro import manifest, recorded, recording, reproduced
from xcrepro.tools import bundle, reproduce


def main(arguments: list[str] | None = None) -> int:
    """Take up the results that somebody sent, or say why not."""
    parser = argparse.ArgumentParser("python -m maintenance.take_up", description=main.__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument(
        "--other-sizes", action="store_true", help="also if sizes are not as printed, and the bundle says so"
    )
    chosen = parser.parse_args(arguments)
    root = paths.project_root()
    try:
        manifest.require_project(manifest.load(root), "taking up results")
        sent = bundle.read(chosen.bundle)
        if found := bundle.problems(sent, root, other_sizes=chosen.other_sizes):
            print("\n".join([f"{chosen.bundle} is not taken up:", *(f"  {one}" for one in found)]))
            return 1
        lines = take(root, sent)
    except XCError as error:
        print(error)
        return 2
    machine = sent.about["machine"]
    print(
        f"from {machine['processor']}, {machine['system']}; {'with' if sent.about['certificate'] else 'without'} a certificate"
    )
    print("\n".join([*sent.about["data"]["notes"], *lines]))
    print(f"now: xcrepro run {' '.join(sent.records)}; look (git diff); xcrepro accept {' '.join(sent.records)}")
    return 0


def take(root: Path, sent: bundle.Bundle) -> list[str]:
    """Write a bundle's records and all that follows from them; what was written, in words."""
    said = []
    for item, made in sent.records.items():
        path = recorded.folder(item, root) / f"{sent.dataset}.csv"
        said.append(f"{path.relative_to(root).as_posix()} {'replaced' if path.is_file() else 'is new'}")
        recorded.write(path, made)
    _into_manifest(root / "notebooks" / "manifest.toml", sent)
    _into_readme(root / "data" / "recorded" / "README.md", sent)
    known = {line.fingerprint for line in fingerprints.table()}
    lines = [fingerprints.Known(**line) for line in sent.about["data"]["truths"]]
    if new := [line for line in lines if line.fingerprint not in known]:
        fingerprints.write(new)
        said.append(f"{len(new)} truths of {sent.dataset} are on record")
    return [*said, *_lift(root, sent.dataset)]


def _into_manifest(path: Path, sent: bundle.Bundle) -> None:
    """Each record's parameters, besides dataset and folder, under its item."""
    text = path.read_text(encoding="utf-8")
    for item, made in sent.records.items():
        given = recording.parse(made.provenance["command"])[1]
        own = {name: value for name, value in given.items() if name not in ("dataset", "folder")}
        line = f"recorded.{_key(sent.dataset)} = {_inline(own)}"
        head, rest = re.split(rf'(?m)^(?=\["{re.escape(item)}"\]$)', text, maxsplit=1)
        table, gap, below = rest.partition("\n\n")
        lines = [one for one in table.splitlines() if not one.startswith(f"recorded.{_key(sent.dataset)} ")]
        text = head + "\n".join([*lines, line]) + (gap or "\n") + below
    with paths.atomic_path(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _inline(own: dict) -> str:
    """An inline table of TOML; JSON writes its texts, numbers, lists and truth values alike."""
    return (
        f"{{ {', '.join(f'{name} = {json.dumps(value, ensure_ascii=False)}' for name, value in own.items())} }}"
        if own
        else "{}"
    )


def _into_readme(path: Path, sent: bundle.Bundle) -> None:
    """The commands of the records, at the end of the list."""
    text = path.read_text(encoding="utf-8")
    last = [*re.finditer(r"(?m)^xcrepro run .*--record$", text)][-1]
    entries = manifest.load(path.parents[2])
    commands = [
        recording.command(entries[item], recording.planned(entries[item], sent.dataset, "DIR")) for item in sent.records
    ]
    more = [one for one in commands if f"{one}\n" not in text]
    with paths.atomic_path(path) as part:
        part.write_text("\n".join([text[: last.end()], *more]) + text[last.end() :], encoding="utf-8", newline="\n")


def _lift(root: Path, dataset: str) -> list[str]:
    """The listing's rows of tables of which a printed number is now computed on its own data, and the README's counts."""
    path, readme = root / reproduced.LISTING, root / "README.md"
    rows, said = reproduced.read(path), []
    before, title = reproduced.sentence(rows), registry.get(dataset).printed_name
    found = {
        f"{file.parent.parent.name}/{file.parent.name}": [
            *reproduce.cells(f"{file.parent.parent.name}/{file.parent.name}", recorded.read(file).tables)
        ]
        for file in sorted((root / "data" / "recorded").glob(f"*/*/{dataset}.csv"))
    }
    for id, row in reproduce.tables().items():
        document = id.partition(":")[0]
        if (
            row.extent not in reproduced.OPEN
            or dataset not in reproduce.datasets_of(id)
            or reproduce.other_version(dataset, document)
        ):
            continue
        ours, missing = reproduce.beside(dataset, id, row.items, found, {}, registry.get(dataset).n_test or 1)
        if ours:
            every = len(ours) + sum(missing.values())
            why = f"{len(ours)} of the {every} numbers that it prints of {title} are computed on these data"
            rows[rows.index(row)] = dataclasses.replace(row, extent="in part", why=f"{why}; before: {row.why}")
            said.append(f"{row.document}, {row.name}: {row.extent} -> in part ({why})")
    reproduced.write(path, rows)
    text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    if before in text:
        with paths.atomic_path(readme) as part:
            part.write_text(text.replace(before, reproduced.sentence(rows)), encoding="utf-8", newline="\n")
    return said


if __name__ == "__main__":
    raise SystemExit(main())
