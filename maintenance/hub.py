"""The open datasets as repositories for a dataset hub: ``python -m maintenance.hub DIR``.

For each dataset a folder with a Parquet file per part of split 0, label names, a card (``README.md`` with the front matter that
the Hugging Face Hub reads) and ``croissant.json`` (MLCommons, version 1.0), which describes the Parquet files. Sizes, digests,
licence and citation are read from the files and from the catalogue. A person uploads them. Needs pyarrow.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

import xcrepro as xc
from xcrepro.core.data import open_sets, registry
from xcrepro.core.data.dataset import Dataset, Split
from xcrepro.core.paths import committed, filling

LICENCES = {
    "CC BY 4.0": ("cc-by-4.0", "https://creativecommons.org/licenses/by/4.0/"),
    "CC0 1.0": ("cc0-1.0", "https://creativecommons.org/publicdomain/zero/1.0/"),
    "CC BY-SA 3.0": ("cc-by-sa-3.0", "https://creativecommons.org/licenses/by-sa/3.0/"),
}
"""A licence as the Hub calls it and its address, by the words with which the catalogue's entry begins."""
PUBLISHED = "2026-11-20"
_LANGUAGES = {"tib": ["en", "de"], "gutenberg": ["en", "mul"], "cooking": ["en"]}
# Terms of Croissant 1.0 as its specification defines them; the reference loader warns of any that is missing.
_PLAIN = (
    "citeAs", "column", "extract", "field", "fileObject", "fileProperty", "fileSet", "format", "includes",
    "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
    "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform", "equivalentProperty"
)  # fmt: skip
_CONTEXT = {
    **{
        "@language": "en",
        "@vocab": "https://schema.org/",
        "sc": "https://schema.org/",
        "dct": "http://purl.org/dc/terms/",
    },
    **{"cr": "http://mlcommons.org/croissant/", "rai": "http://mlcommons.org/croissant/RAI/"},
    **{"conformsTo": "dct:conformsTo", "dataType": {"@id": "cr:dataType", "@type": "@vocab"}},
    **{name: {"@id": f"cr:{name}", "@type": "@json"} for name in ("data", "examples")},
    **{name: f"cr:{name}" for name in _PLAIN},
}
_KINDS = {"text": "sc:Text", "words": "sc:Text", "labels": "sc:Text", "label_ids": "sc:Integer", "number": "sc:Integer",
          "weights": "sc:Float"}  # fmt: skip
"""The columns, and what one of their values is; those that end in s are lists."""


_EVAL = """\
name: {title}
description: Labels of each test point, ranked; P@5, nDCG@5, PSP@5 and macro-F1@5 by `xcrepro report`.
evaluation_framework: xcrepro
tasks: [{{id: ranked-labels, config: default, split: test}}]
"""
"""What the Hub reads to list a benchmark; its people have to add the framework to their list first."""


def table(ds: Dataset, part: Split) -> pa.Table:
    """A part of a dataset: texts where there are any, else words with their tf-idf weights; labels by id and by name."""
    rows = [part.Y.indices[low:high].tolist() for low, high in zip(part.Y.indptr, part.Y.indptr[1:], strict=False)]
    columns: dict = {}
    if part.texts:
        columns["text"] = [" / ".join(map(str, fields)) for fields in zip(*part.texts.values(), strict=True)]
    else:
        ends = list(zip(part.X.indptr, part.X.indptr[1:], strict=False))
        columns["words"] = [[ds.words[word] for word in part.X.indices[low:high]] for low, high in ends]
        columns["weights"] = pa.array([part.X.data[low:high] for low, high in ends], pa.list_(pa.float32()))
    columns["labels"] = [[ds.label_names[label] for label in row] for row in rows]
    columns["label_ids"] = pa.array(rows, pa.list_(pa.int32()))
    if part.numbers is not None:
        columns["number"] = part.numbers
    return pa.table(columns)


def write(name: str, folder: Path) -> None:
    """One repository."""
    ds, entry = xc.load(name), registry.get(name)
    with filling(folder) as home:
        parts = {"train": ds.train, "validation": ds.validation, "test": ds.test}
        tables = {part: table(ds, split) for part, split in parts.items() if split is not None and split.Y.shape[0]}
        (home / "data").mkdir()
        for part, one in tables.items():
            pa.parquet.write_table(one, home / "data" / f"{part}.parquet", compression="zstd")
        (home / "label_names.txt").write_text("\n".join(ds.label_names) + "\n", encoding="utf-8")
        about = json.dumps(croissant(name, home, tables), indent=1, ensure_ascii=False) + "\n"
        (home / "croissant.json").write_text(about, encoding="utf-8")
        (home / "README.md").write_text(card(name, entry, tables), encoding="utf-8")
        (home / "eval.yaml").write_text(_EVAL.format(title=entry.printed_name), encoding="utf-8")


def card(name: str, entry: registry.Entry, tables: dict[str, pa.Table]) -> str:
    """The card: front matter, the dataset's own page, what the columns are."""
    licence = next(short for words, (short, _) in LICENCES.items() if entry.licence.startswith(words))
    n = sum(map(len, tables.values()))
    size = "10K<n<100K" if n < 100_000 else "100K<n<1M"
    files = "".join(f"\n  - split: {part}\n    path: data/{part}.parquet" for part in tables)
    front = {"license": licence, "pretty_name": entry.printed_name, "task_categories": ["text-classification"],
             "task_ids": ["multi-label-classification"], "language": _LANGUAGES[name], "size_categories": [size],
             "tags": ["extreme-multi-label-classification", "long-tail"]}  # fmt: skip
    lines = "\n".join(f"{key}: {json.dumps(value)}" for key, value in front.items())
    columns = ", ".join(f"`{column}`" for column in next(iter(tables.values())).column_names)
    page = committed(open_sets.HOMES[name].folder) / "README.md"
    title, _, rest = page.read_text(encoding="utf-8").partition("\n")
    first = rest.strip().partition(". ")[0].partition("\n")[0].rstrip(".:") + "."
    return (
        f"---\n{lines}\nconfigs:\n- config_name: default\n  data_files:{files}\n---\n\n{title}\n\n{first}\n\n"
        f"Columns: {columns}. `label_ids` are lines of `label_names.txt`, from 0.\n\n"
        f"Licence: {entry.licence}. Cite: {entry.citation}.\n"
    )


def croissant(name: str, home: Path, tables: dict[str, pa.Table]) -> dict:
    """The metadata of the files that are in ``home``."""
    entry = registry.get(name)
    title = (committed(open_sets.HOMES[name].folder) / "README.md").read_text(encoding="utf-8").partition("\n")[0]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": f"{title.removeprefix('# ')}. For extreme multi-label classification. {entry.licence}.",
        "license": next(url for words, (_, url) in LICENCES.items() if entry.licence.startswith(words)),
        "citeAs": entry.citation,
        "version": f"{xc.__version__}",
        "datePublished": PUBLISHED,
        "distribution": [_file(home / "data" / f"{part}.parquet", home) for part in tables],
        "recordSet": [_records(part, one) for part, one in tables.items()],
    }


def _file(path: Path, home: Path) -> dict:
    data, where = path.read_bytes(), path.relative_to(home).as_posix()
    kind = {"@type": "cr:FileObject", "@id": path.name, "name": path.name, "encodingFormat": "application/x-parquet"}
    return kind | {"contentUrl": where, "contentSize": f"{len(data)} B", "sha256": hashlib.sha256(data).hexdigest()}


def _records(part: str, one: pa.Table) -> dict:
    fields = [
        {"@type": "cr:Field", "@id": f"{part}/{column}", "name": column, "dataType": _KINDS[column],
         "source": {"fileObject": {"@id": f"{part}.parquet"}, "extract": {"column": column}}}
        | ({"repeated": True} if pa.types.is_list(one.schema.field(column).type) else {})
        for column in one.column_names
    ]  # fmt: skip
    return {"@type": "cr:RecordSet", "@id": part, "name": part, "field": fields}


def main() -> None:
    """Write all repositories."""
    about = "the open datasets as repositories for a hub"
    parser = argparse.ArgumentParser("python -m maintenance.hub", description=about)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder for each dataset goes there")
    folder = parser.parse_args().folder
    for name in open_sets.HOMES:
        write(name, folder / name)
        print(folder / name)


if __name__ == "__main__":
    main()
