"""What a release takes along, made from the manifest: ``codecheck.yml``, an RO-Crate, and Zenodo's description.

``python -m docs.release DIR`` writes into DIR what is uploaded: the last commit as a zip file with ``codecheck.yml`` and the
crate in it, ``.zenodo.json`` and the digests. It uploads nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from docs import generated
from xcrepro.core.errors import XCError
from xcrepro.core.paths import atomic_path, project_root
from xcrepro.repro.engine import certificate, manifest
from xcrepro.repro.engine.manifest import Entry

_KINDS = {
    ".csv": "text/csv",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".md": "text/markdown",
}


def codecheck(root: Path, items: Mapping[str, Entry]) -> str:
    """``codecheck.yml``: which files the two commands make, what each shows, and which certificates there are.

    Parameters
    ----------
    root : Path
        The project folder.
    items : mapping of str to Entry
        Of the manifest.

    Returns
    -------
    str
        YAML by version 1.0 of the specification. Who checks is left to whoever does.
    """
    cited = _cited(root)
    made = [
        {"file": path.relative_to(root).as_posix(), "comment": f"{entry.title} (xcrepro run {id})"}
        for id, entry in items.items()
        for path in _results(entry)
        if path.suffix in {".csv", ".png"}  # the others are these, in another form
    ]
    found = {
        "version": "https://codecheck.org.uk/spec/config/1.0/",
        "paper": {"title": cited["title"], "authors": [{"name": one["name"]} for one in cited["authors"]]},
        "summary": f"`make figures` makes every file of the manifest again, `make test` compares them. "
        f"{certificate.agreement(certificate.all_committed(root).values())} to the byte (data/certificates).",
        "manifest": made,
    }
    head = "# Made by `python -m docs.release` from notebooks/manifest.toml; no codechecker has signed it.\n"
    return head + yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=160)


def crate(root: Path, items: Mapping[str, Entry]) -> dict:
    """The content of ``ro-crate-metadata.json`` (RO-Crate 1.1): notebooks, what they make, and certificates.

    Parameters
    ----------
    root : Path
        The project folder.
    items : mapping of str to Entry
        Of the manifest.

    Returns
    -------
    dict
        JSON-LD.
    """
    cited, parts, actions = _cited(root), [], []
    for id, entry in items.items():
        notebook, made = f"notebooks/{id}.ipynb", [_file(root, path) for path in _results(entry)]
        parts += [
            {
                "@id": notebook,
                "@type": ["File", "SoftwareSourceCode"],
                "name": entry.title,
                "encodingFormat": "application/x-ipynb+json",
                "programmingLanguage": {"@id": "https://www.python.org"},
                "description": f"rests on {', '.join(generated.rests_on(entry))}",
            },
            *made,
        ]
        actions.append(
            {
                "@id": f"#run-{id.replace('/', '-')}",
                "@type": "CreateAction",
                "name": f"xcrepro run {id}",
                "instrument": {"@id": notebook},
                "result": [{"@id": one["@id"]} for one in made],
            }
        )
    for name, one in certificate.all_committed(root).items():
        file = f"data/certificates/{name}.toml"
        parts.append(
            {
                "@id": file,
                "@type": "File",
                "name": f"certificate of {one.processor}",
                "encodingFormat": "application/toml",
            }
        )
        actions.append(
            {
                "@id": f"#certificate-{name}",
                "@type": "CreateAction",
                "name": f"all notebooks from empty caches on {one.processor}: {one.equal} of {one.compared} files equal",
                "endTime": one.date,
                "instrument": {"@id": "./"},
                "result": {"@id": file},
            }
        )
    whole = {
        "@id": "./",
        "@type": "Dataset",
        "name": cited["title"],
        "version": str(cited["version"]),
        "datePublished": str(cited["date-released"]),
        "license": {"@id": f"https://spdx.org/licenses/{cited['license']}"},
        "author": [{"@id": f"#author-{i}"} for i, _ in enumerate(cited["authors"])],
        "keywords": ", ".join(cited["keywords"]),
        "hasPart": [{"@id": one["@id"]} for one in parts],
        "mentions": [{"@id": one["@id"]} for one in actions],
    }
    about = {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    others = [
        {"@id": whole["license"]["@id"], "@type": "CreativeWork", "name": cited["license"]},
        {"@id": "https://www.python.org", "@type": "ComputerLanguage", "name": "Python"},
        *(
            {"@id": f"#author-{i}", "@type": "Organization", "name": one["name"]}
            for i, one in enumerate(cited["authors"])
        ),
    ]
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": [about, whole, *others, *parts, *actions]}


def zenodo(root: Path) -> dict:
    """The content of ``.zenodo.json``, from ``CITATION.cff``."""
    cited = _cited(root)
    return {
        "title": cited["title"],
        "upload_type": "software",
        "version": str(cited["version"]),
        "publication_date": str(cited["date-released"]),
        "license": cited["license"],
        "keywords": cited["keywords"],
        "creators": [{"name": one["name"]} for one in cited["authors"]],
    }


def pack(root: Path, out: Path, items: Mapping[str, Entry]) -> list[Path]:
    """Write what is uploaded.

    Parameters
    ----------
    root : Path
        The project folder, a git repository: its last commit is packed.
    out : Path
        An existing or new folder.
    items : mapping of str to Entry
        Of the manifest.

    Returns
    -------
    list of Path
        The zip file, Zenodo's description, the digests.
    """
    out.mkdir(parents=True, exist_ok=True)
    name = f"xcrepro-{_cited(root)['version']}"
    archive, described, digests = out / f"{name}.zip", out / ".zenodo.json", out / "SHA256SUMS"
    archive.unlink(missing_ok=True)
    subprocess.run(
        ["git", "-C", root, "archive", "--format=zip", f"--prefix={name}/", "-o", archive.resolve(), "HEAD"], check=True
    )
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(
            zipfile.ZipInfo(f"{name}/ro-crate-metadata.json"),
            json.dumps(crate(root, items), ensure_ascii=False, indent=1),
        )
        packed.writestr(zipfile.ZipInfo(f"{name}/codecheck.yml"), codecheck(root, items))
    _write(described, json.dumps(zenodo(root), ensure_ascii=False, indent=1) + "\n")
    _write(digests, f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n")
    return [archive, described, digests]


def _write(path: Path, text: str) -> None:
    with atomic_path(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def _results(entry: Entry) -> list[Path]:
    return [path for path in entry.figures() if path.suffix in _KINDS]


def _file(root: Path, path: Path) -> dict:
    """An entity of the crate for a file under ``figures``."""
    content = path.read_bytes()
    return {
        "@id": path.relative_to(root).as_posix(),
        "@type": "File",
        "encodingFormat": _KINDS[path.suffix],
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _cited(root: Path) -> dict:
    return yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))


def main(argv: list[str] | None = None) -> int:
    """0, or 2 where a file is damaged or git fails."""
    parser = argparse.ArgumentParser(
        prog="python -m docs.release", description="Make what a release takes along; nothing is uploaded."
    )
    parser.add_argument("out", type=Path, help="write the archive with its crate here")
    arguments = parser.parse_args(argv)
    root = project_root()
    try:
        items = manifest.load(root)
        print("\n".join(map(str, pack(root, arguments.out, items))))
    except (XCError, OSError, subprocess.CalledProcessError) as error:
        print(f"docs.release: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
