"""What a release takes along: made from the manifest, whole, and as committed."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import zipfile

import pytest
import yaml

from docs import pdf, release
from xcrepro.core.errors import DataMissing
from xcrepro.repro.engine import certificate, manifest


def test_codecheck_lists_every_file_that_notebooks_make(root):
    text = release.codecheck(root, manifest.load(root))
    listed = [one["file"] for one in yaml.safe_load(text)["manifest"]]
    made = {path.relative_to(root).as_posix() for path in root.glob("figures/*/*") if path.suffix in {".csv", ".png"}}
    made = {path for path in made if not path.startswith("figures/course/")}  # the lessons' pictures check no number
    assert len(listed) == len(set(listed))
    assert {*listed} == made


def test_the_crate_is_closed_and_says_which_notebook_made_what(root):
    items = manifest.load(root)
    graph = release.crate(root, items)["@graph"]
    entities = {one["@id"]: one for one in graph}
    assert len(entities) == len(graph)

    def references(value):
        if isinstance(value, dict):
            if set(value) == {"@id"}:
                yield value["@id"]
            for each in value.values():
                yield from references(each)
        elif isinstance(value, list):
            for each in value:
                yield from references(each)

    assert {name for one in graph for name in references(one)} - {*entities} == {"https://w3id.org/ro/crate/1.1"}
    files = [one for one in graph if one["@type"] == "File" and "sha256" in one]
    assert len(files) > 200
    for one in files[::20]:
        assert one["sha256"] == hashlib.sha256((root / one["@id"]).read_bytes()).hexdigest()
    runs = {one["instrument"]["@id"]: one for one in graph if one["@id"].startswith("#run-")}
    assert {*runs} == {f"notebooks/{id}.ipynb" for id in items}
    assert {"@id": "figures/jain16/table3_table4.png"} in runs["notebooks/jain16/table3_table4.ipynb"]["result"]
    sworn = [one for one in graph if one["@id"].startswith("#certificate-")]
    assert len(sworn) == len(certificate.all_committed(root))


def test_the_archive_holds_the_commit_and_the_crate(root, tmp_path):
    if subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True).returncode:
        return  # a copy without history has no commit to pack
    archive, described, digests = release.pack(root, tmp_path, manifest.load(root))
    with zipfile.ZipFile(archive) as packed:
        home = f"{archive.stem}/"
        assert packed.testzip() is None
        assert json.loads(packed.read(f"{home}ro-crate-metadata.json"))["@graph"]
        assert yaml.safe_load(packed.read(f"{home}codecheck.yml"))["manifest"]
        listed = subprocess.run(
            ["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True
        ).stdout.split("\n")
        inside = {name.removeprefix(home) for name in packed.namelist()}
        assert {"README.md", "xcrepro/__init__.py", "data/certificates/README.md"} <= inside & {*listed}
    assert digests.read_text() == f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n"
    assert json.loads(described.read_text())["license"] == "MIT"


def test_a_paper_has_no_link_into_the_project(root):
    text = pdf.readable((root / "docs/audit.md").read_text())
    links = re.findall(r"(?<!!)\]\(([^()\s]*)\)", text)
    assert all(link.startswith("http") for link in links)
    assert "the notebook" in text


def test_a_page_becomes_a_pdf_or_it_is_said_why_not(root, tmp_path):
    with pytest.raises(DataMissing, match="gone"):
        pdf.make(root, "gone", tmp_path)
    modules = [name for name in ("sphinx", "myst_parser") if importlib.util.find_spec(name) is None]
    absent = modules or ([] if shutil.which("latexmk") else ["latexmk"])
    if absent:
        with pytest.raises(DataMissing, match=absent[0]):
            pdf.make(root, "audit", tmp_path)
        return
    made = pdf.make(root, "audit", tmp_path / "new")
    assert made == tmp_path / "new/audit.pdf"
    assert made.read_bytes().startswith(b"%PDF-")


def test_a_missing_extra_is_named(root, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "myst_parser" else name)
    with pytest.raises(DataMissing, match=r"myst_parser.*\[docs\]"):
        pdf.make(root, "audit", tmp_path)
