"""``python -m maintenance.take_up BUNDLE``: results that somebody sent (:mod:`xcrepro.tools.bundle`) become the project's own.

What is refused is said, and nothing is written then. Otherwise the records go to ``data/recorded``, their commands to its
README and to the manifest, the truth on record, and the listing of what is reproduced and the README's counts follow. Then the
notebooks that show the records, and their papers' pages, run and are accepted, so that ``git diff`` has all that changes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from xcrepro.core import paths
from xcrepro.core.data import registry
from xcrepro.core.errors import DataError, XCError
from xcrepro.repro.engine import manifest, recorded, recording, runner
from xcrepro.repro.inputs import fingerprints
from xcrepro.repro.published import compare_with_print, reproduced
from xcrepro.tools import bundle
from xcrepro.tools.reports import reproduce


def main(arguments: list[str] | None = None) -> int:
    """Take up the results that somebody sent, or say why not."""
    parser = argparse.ArgumentParser("python -m maintenance.take_up", description=main.__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument(
        "--other-sizes", action="store_true", help="also if sizes are not as printed, and the bundle says so"
    )
    parser.add_argument("--no-run", action="store_true", help="leave the notebooks that show the records as they are")
    parser.add_argument("--jobs", type=int, help="notebooks at once, default one a core")
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
    items = followers(manifest.load(root), sent.records)
    if chosen.no_run:
        print(f"now: xcrepro accept {' '.join(items)}")
        return 0
    try:
        report = runner.run(items, accept=True, jobs=chosen.jobs)
    except XCError as error:
        print(error)
        return 2
    print("now: look (git diff)" if report.ok else "now: mend these texts; xcrepro accept them; look (git diff)")
    return 0 if report.ok else 1


def followers(entries: dict[str, manifest.Entry], items: Iterable[str]) -> list[str]:
    """Items, and those that need them: the papers' pages with their claims."""
    found = {*items}
    for name, entry in entries.items():  # what one needs stands before it
        found |= {name} if found & {*entry.needs} and name.endswith("/claims") else set()
    return [name for name in entries if name in found]


def take(root: Path, sent: bundle.Bundle) -> list[str]:
    """Write a bundle's records and all that follows from them, all or nothing; what was written, in words."""
    known = {line.fingerprint for line in fingerprints.table()}
    new = [fingerprints.Known(**line) for line in sent.about["data"]["truths"] if line["fingerprint"] not in known]
    files = {recorded.folder(item, root) / f"{sent.dataset}.csv": sent.content[item] for item in sent.records}
    said = [f"{path.relative_to(root).as_posix()} {'replaced' if path.is_file() else 'is new'}" for path in files]
    texts, more = _lifted(root, sent)
    for path, change in (("notebooks/manifest.toml", _with_parameters), ("data/recorded/README.md", _with_commands)):
        texts[root / path] = change((root / path).read_text(encoding="utf-8"), sent)
    try:
        tomllib.loads(texts[root / "notebooks/manifest.toml"])
    except tomllib.TOMLDecodeError as error:
        said = f"parameters that the manifest cannot hold ({error})"
        raise DataError(root / "notebooks/manifest.toml", said, "texts, numbers, lists and truth values") from None
    if new:
        fingerprints.write(new)
        said.append(f"{len(new)} truths of {sent.dataset} are on record")
    paths.write_together(files | {path: text.encode() for path, text in texts.items()})
    return [*said, *more]


def _with_parameters(text: str, sent: bundle.Bundle) -> str:
    """The manifest with each record's parameters, besides dataset and folder, under its item."""
    for item, made in sent.records.items():
        given = recording.parse(made.provenance["command"])[1]
        own = {name: value for name, value in given.items() if name not in ("dataset", "names", "folder")}
        start = f"recorded.{_key(sent.dataset)} = "
        head, rest = re.split(rf'(?m)^(?=\["{re.escape(item)}"\]$)', text, maxsplit=1)
        table, gap, below = rest.partition("\n\n")
        lines = [one for one in table.splitlines() if not one.startswith(start)]
        text = head + "\n".join([*lines, start + _inline(own)]) + (gap or "\n") + below
    return text


def _with_commands(text: str, sent: bundle.Bundle) -> str:
    """The README of recorded results with the records' commands at the end of its list, in place of other ones for them."""
    commands = {made.provenance["command"]: bundle.made_by(made) for made in sent.records.values()}
    kept, last = [], 0
    for line in text.splitlines(keepends=True):
        if re.fullmatch(r"xcrepro run .*--record\n?", line):
            if line.strip() not in commands and bundle.named_by(line) in commands.values():
                continue
            last = len(kept) + 1
        kept.append(line)
    new = [f"{one}\n" for one in commands if f"{one}\n" not in kept]
    return "".join([*kept[:last], *new, *kept[last:]])


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _inline(own: dict) -> str:
    """An inline table of TOML; JSON writes its texts, numbers, lists and truth values alike."""
    return (
        f"{{ {', '.join(f'{name} = {json.dumps(value, ensure_ascii=False)}' for name, value in own.items())} }}"
        if own
        else "{}"
    )


def _lift(rows: list[reproduced.Row], row: reproduced.Row, what: str, title: str) -> list[str]:
    """Put into the listing that a figure or table is now computed on its own data; what changed, in words."""
    computed = "are computed on these data"
    why, before = f"{what} {title} {computed}", row.why.split("; ")
    if row.extent in reproduced.OPEN:
        new = f"{why}; before: {row.why}"
    elif any(one.endswith(computed) for one in before):  # of an earlier bundle, perhaps of another dataset
        new = "; ".join([why, *(one for one in before if not one.endswith(f" {title} {computed}"))])
    else:
        return []
    if sorted(new.split("; ")) == sorted(before):
        return []
    rows[rows.index(row)] = dataclasses.replace(row, extent="in part", why=new)
    return [f"{row.document}, {row.name}: {row.extent} -> in part ({why})"]


def _lifted(root: Path, sent: bundle.Bundle) -> tuple[dict[Path, str], list[str]]:
    """The listing, where a printed number of a table is now computed on its own data, and the README with its counts."""
    path, readme = root / reproduced.LISTING, root / "README.md"
    rows, said, entry = reproduced.read(path), [], registry.get(sent.dataset)
    before, records = reproduced.sentence(rows), {}
    for file in sorted((root / "data" / "recorded").glob(f"*/*/{sent.dataset}.csv")):
        records[f"{file.parent.parent.name}/{file.parent.name}"] = recorded.read(file)
    found = {item: [*compare_with_print.cells(item, made.tables)] for item, made in (records | sent.records).items()}
    for id, row in reproduce.tables().items():
        if sent.dataset not in reproduce.datasets_of(id) or compare_with_print.other_version(entry, row.document):
            continue
        ours, missing = reproduce.beside(sent.dataset, id, row.items, found, {}, entry.n_test or 1)
        if ours:
            what = f"{len(ours)} of the {len(ours) + sum(missing.values())} numbers that it prints of"
            said += _lift(rows, row, what, entry.printed_name)
    for row in reproduce.figures(sent.dataset, rows):
        own = {*found} & {*row.items} and not compare_with_print.other_version(entry, row.document)
        if own and row.extent != "stand-in":  # there the method is another one, whatever the data
            said += _lift(rows, row, "our curves of", entry.printed_name)
    texts = {path: reproduced.text(rows)}
    if readme.is_file():
        texts[readme] = readme.read_text(encoding="utf-8").replace(before, reproduced.sentence(rows))
    return texts, said


if __name__ == "__main__":
    raise SystemExit(main())
