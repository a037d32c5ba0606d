"""Croissant metadata of the open datasets: ``python -m maintenance.croissant`` writes ``data/<name>/croissant.json``.

Croissant (MLCommons, version 1.0) is the JSON-LD by which search engines and loaders know a dataset. Sizes, digests, licence
and citation are read from the committed files and from the catalogue, so the metadata cannot say something else.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from xcrepro.core.data import open_sets, registry
from xcrepro.core.paths import committed, write_together

LICENCES = {
    "CC BY 4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC0 1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CC BY-SA 3.0": "https://creativecommons.org/licenses/by-sa/3.0/",
}
"""The address of a licence, by the words with which the catalogue's entry begins."""
# What a file holds, and the field of each of its lines: name, data type, and the part of the line that is its value.
_FILES = {
    "records.txt": (
        "label ids with commas between them, number and texts, with tabs between these",
        {"labels": ("sc:Text", r"^([\d,]+)\t"), "number": ("sc:Integer", r"^[\d,]+\t(\d+)\t")},
    ),
    "tib.txt": (
        "after a line with the numbers of records, words and headings: label ids with commas between them, word:count pairs",
        {"labels": ("sc:Text", r"^([\d,]+)(?: \d+:.*)? ?$"), "words": ("sc:Text", r"^[\d,]+ (\d+:.*)$")},
    ),
    "words.txt": ("a word, in the order of their ids", {"word": ("sc:Text", r"^(.*)$")}),
    "label_names.txt": ("the name of a label, in the order of their ids", {"name": ("sc:Text", r"([^\t]+)$")}),
    "splits.txt": (
        "a letter for each split: r train, v validation, t test, - none",
        {"letters": ("sc:Text", r"^([rvt-]+)$")},
    ),
}
# The terms of Croissant 1.0 that are used here, as its specification defines them.
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
} | {
    term: f"cr:{term}"
    for term in (
        "citeAs",
        "extract",
        "field",
        "fileObject",
        "fileProperty",
        "recordSet",
        "regex",
        "source",
        "transform",
    )
}


def metadata(name: str) -> dict:
    """The metadata of an open dataset, from its files as they are committed."""
    home, entry = open_sets.HOMES[name], registry.get(name)
    folder = committed(home.folder)
    title = (folder / "README.md").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": f"{title}. For extreme multi-label classification. {entry.licence}.",
        "license": next(url for words, url in LICENCES.items() if entry.licence.startswith(words)),
        "citeAs": entry.citation,
        "distribution": [_file(folder / f"{file}.gz", _FILES[file][0]) for file in home.files],
        "recordSet": [_records(file, _fields(home, file)) for file in home.files],
    }


def _fields(home: open_sets.Home, file: str) -> dict[str, tuple[str, str]]:
    """The fields of a line; a record's texts stand behind its labels and its number."""
    texts = home.texts if file == "records.txt" else ()
    return _FILES[file][1] | {
        text: ("sc:Text", r"^[\d,]+\t\d+" + r"\t[^\t]*" * place + r"\t([^\t]*)") for place, text in enumerate(texts)
    }


def _file(path: Path, lines: str) -> dict:
    data = path.read_bytes()
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "description": f"Packed with gzip. A line holds {lines}.",
        "contentUrl": path.name,
        "contentSize": f"{len(data)} B",
        "encodingFormat": "text/plain",
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def _records(file: str, fields: dict[str, tuple[str, str]]) -> dict:
    where = {"fileObject": {"@id": f"{file}.gz"}, "extract": {"fileProperty": "lines"}}
    stem = Path(file).stem
    return {
        "@type": "cr:RecordSet",
        "@id": stem,
        "name": stem,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{stem}/{name}",
                "name": name,
                "dataType": kind,
                "source": where | {"transform": {"regex": part}},
            }
            for name, (kind, part) in fields.items()
        ],
    }


def main() -> None:
    """Write the metadata of all open datasets."""
    write_together(
        {
            committed(home.folder) / "croissant.json": (json.dumps(metadata(name), indent=1) + "\n").encode()
            for name, home in open_sets.HOMES.items()
        }
    )


if __name__ == "__main__":
    main()
