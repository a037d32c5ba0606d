"""Notebooks as people run them in JupyterLab: a real server, a session by its REST interface, cells in the kernel of that.

From what a fresh clone has and from an installed wheel; the server serves the notebook's folder, the project, or one that has
nothing to do with the project. Some notebooks in every run, all where ``XCREPRO_LAB`` is set (``make test-lab``).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import os
import random
import secrets
import shutil
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import jupyter_client
import matplotlib
import nbclient
import nbformat
import pytest
import requests

from docs import browser
from xcrepro.core import kernels
from xcrepro.repro.engine import compare_outputs, manifest, notebooks, prose_numbers, tidy

WAYS = ("clone", "wheel")
FOLDERS = ("the notebook's folder", "the project", "an unrelated folder")
QUICK = ("xcrepo/table_datasets", "reeval/fig1_fig4_label_bins")
# As nbval's in notebooks/conftest.py: what trained models come to, rounded to the last digit.
SECONDS_A_CELL = 3600
NOT_THE_RUNS = b"planted in place of the committed picture"


@dataclass(frozen=True)
class Installed:
    """A place that has the project, and a Python that has the package from there alone."""

    python: Path
    project: Path
    environment: dict[str, str]


@pytest.fixture(scope="module")
def installed(request, root, tmp_path_factory):
    """``installed("clone")`` and ``installed("wheel")``, each made once."""
    made: dict[str, Installed] = {}

    def make(way: str) -> Installed:
        if way not in made:
            made[way] = _install(way, root, tmp_path_factory.mktemp(way), request)
        return made[way]

    return make


def _install(way: str, root: Path, room: Path, request: pytest.FixtureRequest) -> Installed:
    project, home = room / "project", room / "home"
    home.mkdir()
    site = _environment(room / "venv")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XCREPRO_", "JUPYTER", "PYTHON"))}
    own = {"HOME": str(home), "IPYTHONDIR": str(home / "ipython")}
    own |= {f"JUPYTER_{what}_DIR": str(home / what.lower()) for what in ("CONFIG", "DATA", "RUNTIME")}
    data = home / "cache"
    data.mkdir()
    own |= {"XCREPRO_DATA": str(data), "NUMBA_CACHE_DIR": str(kernels.cache.home())}
    own |= {"MPLCONFIGDIR": matplotlib.get_cachedir()}
    if "XCREPRO_DATA" in os.environ:  # trained models are the tester's, where there are any; nothing else is touched
        trained = Path(os.environ["XCREPRO_DATA"]).resolve() / "trained"
        trained.mkdir(parents=True, exist_ok=True)
        (data / "trained").symlink_to(trained)
    made = Installed(room / "venv" / "bin" / "python", project, kept | own)
    if way == "clone":
        tracked = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True)
        if tracked.returncode:
            pytest.skip("not a git clone")
        for name in filter(None, tracked.stdout.split("\0")):
            if (root / name).is_file():
                (project / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / name, project / name)
        (site / "a_first.pth").write_text(f"{project}\n")
        return made
    zipfile.ZipFile(request.getfixturevalue("wheel")).extractall(site)
    start = [made.python, "-m", "xcrepro", "start", project]
    subprocess.run(start, cwd=home, env=made.environment, check=True, capture_output=True)
    return made


def _environment(folder: Path) -> Path:
    """An environment with this one's libraries and without its xcrepro; gives its own folder of packages."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # Folders named in a .pth stand behind the environment's own, and their own .pth files, an editable xcrepro's, do nothing.
    libraries = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n")
    return site


class Server:
    """A client that asks for what JupyterLab's page asks for."""

    def __init__(self, url: str, token: str, runtime: Path) -> None:
        self.url, self.token, self.runtime = url, token, runtime
        self.http = requests.Session()
        self.http.headers["Authorization"] = f"token {token}"

    def call(self, method: str, path: str, **given):
        answer = self.http.request(method, f"{self.url}api/{path}", timeout=SECONDS_A_CELL, **given)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def run_all(self, path: str, edit: Callable[[dict], object] = lambda notebook: None, saves: bool = False) -> dict:
        """Open the notebook, ``edit`` it, run its cells from top to bottom, save it; gives what was saved.

        A reader who ``saves`` does so before the run as well.
        """
        notebook = self.call("GET", f"contents/{quote(path)}", params={"type": "notebook"})["content"]
        edit(notebook)
        content = {"type": "notebook", "format": "json", "content": notebook}
        if saves:
            self.call("PUT", f"contents/{quote(path)}", json=content)
        kernel = notebook["metadata"]["kernelspec"]["name"]
        about = {"path": path, "name": Path(path).name, "type": "notebook", "kernel": {"name": kernel}}
        session = self.call("POST", "sessions", json=about)
        assert session["kernel"]["name"] == "python3"
        try:
            self._run(notebook, session["kernel"]["id"])
        finally:
            self.call("DELETE", f"sessions/{session['id']}")
        self.call("PUT", f"contents/{quote(path)}", json=content)
        return self.call("GET", f"contents/{quote(path)}", params={"type": "notebook"})["content"]

    def _run(self, notebook: dict, kernel: str) -> None:
        """By the messages of the kernel that the server started for the notebook."""
        client = jupyter_client.BlockingKernelClient(connection_file=str(self.runtime / f"kernel-{kernel}.json"))
        client.load_connection_file()
        client.start_channels()
        runner = nbclient.NotebookClient(nbformat.from_dict(notebook), timeout=SECONDS_A_CELL)
        runner.kc = client
        try:
            client.wait_for_ready(timeout=SECONDS_A_CELL)
            for number, cell in enumerate(runner.nb.cells):
                runner.execute_cell(cell, number)
        finally:
            client.stop_channels()
        notebook["cells"] = runner.nb.cells


@pytest.fixture(scope="module")
def served():
    """``served(installed, folder)``: a server on that folder, one for both."""
    with contextlib.ExitStack() as stack:
        running: dict[tuple, Server] = {}

        def serve(place: Installed, folder: Path) -> Server:
            key = place.python, folder
            if key not in running:
                running[key] = stack.enter_context(_serving(place, folder))
            return running[key]

        yield serve


@contextlib.contextmanager
def _serving(place: Installed, folder: Path, program: str = "jupyter_server"):
    token = secrets.token_hex()
    runtime = Path(place.environment["HOME"]) / f"runtime-{secrets.token_hex(4)}"
    runtime.mkdir()
    own = {"JUPYTER_RUNTIME_DIR": str(runtime), "JUPYTER_TOKEN": token}
    # Its page is not in the place's own environment.
    environment = place.environment | own | {"JUPYTERLAB_DIR": f"{sys.prefix}/share/jupyter/lab"}
    settings = {"ip": "127.0.0.1", "port": 0, "port_retries": 0, "root_dir": folder, "open_browser": False}
    words = [f"--ServerApp.{name}={value}" for name, value in settings.items()]
    log = runtime / "log.txt"
    # Started from a folder that no notebook is in: it is the kernel's folder that counts.
    command = [place.python, "-m", program, "--allow-root", *words]
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=runtime, env=environment, stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + 3600
        while not (url := _answering(runtime)):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield Server(url, token, runtime)
    finally:
        process.terminate()
        try:
            process.wait(timeout=3600)
        except subprocess.TimeoutExpired:
            process.kill()


def _answering(runtime: Path) -> str:
    """The server's address once it answers; the file that has it is there a little before."""
    try:
        (found,) = runtime.glob("jpserver-*.json")
        url = json.loads(found.read_text())["url"]
        return url if requests.get(f"{url}api", timeout=5).ok else ""
    except (ValueError, requests.RequestException):
        return ""


@pytest.fixture
def opened(installed, served, tmp_path):
    """``opened(way, folder, id)``: run that notebook; gives what was saved and the pictures that it showed."""

    def run(way: str, folder: str, id: str, **edited) -> tuple[dict, list[bytes]]:
        place = installed(way)
        path = place.project / "notebooks" / f"{id}.ipynb"
        if folder == FOLDERS[2]:
            # One notebook, which somebody sent: nothing of the project is around it.
            alone = place.project.parent / "unrelated" / path.name
            alone.parent.mkdir(exist_ok=True)
            path = Path(shutil.copyfile(path, alone))
        home = place.project if folder == FOLDERS[1] else path.parent
        server, name = served(place, home), path.relative_to(home).as_posix()
        saved = server.run_all(name, **edited)
        return saved, _pictures(saved)

    return run


def _pictures(notebook: dict) -> list[bytes]:
    shown = [output.get("data", {}).get("image/png") for c in notebooks.code_cells(notebook) for output in c["outputs"]]
    return [base64.b64decode(notebooks.text(picture)) for picture in shown if picture]


def _check(committed: Path, saved: dict, pictures: list[bytes]) -> None:
    before, after = (notebooks.code_cells(notebook) for notebook in (notebooks.read(committed), saved))
    assert [cell["execution_count"] for cell in after] == list(range(1, len(after) + 1))
    for number, (was, now) in enumerate(zip(before, after, strict=True), start=1):
        if tidy.VOLATILE not in notebooks.tags(was):
            said = compare_outputs.difference(tidy.output_text(was["outputs"]), tidy.output_text(now["outputs"]))
            assert not said, f"code cell {number}: {said}"
    assert all(picture.startswith(b"\x89PNG") and len(picture) > 3000 for picture in pictures)
    digests = [hashlib.sha256(picture).hexdigest() for picture in pictures]
    assert len(set(digests)) == len(digests), "a figure is shown twice"
    assert tidy.tidied(saved) == committed.read_text(encoding="utf-8"), "`xcrepro tidy` does not put it back"


def _all(root: Path) -> list[str]:
    return [entry.id for entry in manifest.load(root).values() if not entry.long or os.environ.get("XCREPRO_LONG")]


def _chosen() -> list[tuple[str, str, str]]:
    """(way, folder, item): inside of a project and outside; or all, each from both, the folders in turn."""
    if not os.environ.get("XCREPRO_LAB"):
        return [("wheel", FOLDERS[0], QUICK[1]), ("clone", FOLDERS[2], QUICK[0])]
    every = [(way, folder, QUICK[0]) for way in WAYS for folder in FOLDERS]
    items = _all(Path(__file__).resolve().parent.parent)
    return every + [(way, FOLDERS[(i + j) % 3], id) for j, way in enumerate(WAYS) for i, id in enumerate(items)]


@pytest.mark.parametrize(("way", "folder", "id"), _chosen())
def test_an_item_runs_from_top_to_bottom(opened, installed, root, way, folder, id):
    entry = manifest.load(root)[id]
    place = installed(way)
    committed = [place.project / "figures" / path.relative_to(root / "figures") for path in entry.figures()]
    committed = [path for path in committed if path.suffix == ".png"]
    for path in committed:
        if way == "clone":
            path.write_bytes(NOT_THE_RUNS)  # were it this that is shown, it would not be a picture
        else:
            path.unlink(missing_ok=True)  # a started folder has no figures before a run
    saved, pictures = opened(way, folder, id)
    _check(root / "notebooks" / f"{id}.ipynb", saved, pictures)
    assert len(pictures) == len(committed), f"{len(pictures)} pictures shown, {len(committed)} made"
    if way == "clone":
        written = [path for path in committed if path.read_bytes() != NOT_THE_RUNS]
        assert not written, "what agrees with the committed was written"
    elif folder != FOLDERS[2]:
        assert {path.read_bytes() for path in committed} == set(pictures)
    else:
        home = Path(place.environment["XCREPRO_DATA"]) / "project"  # outside of a project a run writes into the cache
        written = [home / "figures" / path.relative_to(place.project / "figures") for path in committed]
        assert {path.read_bytes() for path in written} == set(pictures)


# ---------------------------------------------------------------- one edit

HOWS = ("server", "saved", "nbclient", "papermill")
"""How a reader runs what was edited: in JupyterLab, with the edit saved before or not; as VS Code does; by papermill."""
OTHER = {"dataset": "cooking", "seed": 1, "points": 4000, "k": 2, "draws": 40, "metric": "R"}
OTHER |= {"since": 2015, "model": "DiSMEC"}
"""What a reader sets parameters to."""
REFUSED = {("beyond/nearly_right", "dataset")}
"""No other open dataset has names with levels, which is said in words."""
FEW = (
    *("jain16/fig1_label_frequency", "reeval/fig1_fig4_label_bins", "jain16/fig2_propensity", "xcrepo/code_list"),
    *("beyond/certainty", "beyond/audit", "calibration/tables2_to_8", "reeval/equations"),
)
"""Notebooks that train nothing, whatever is edited."""


def edits(kind: str, values: dict) -> Callable[[dict], None]:
    """What a reader changes: ``values`` of parameters, the code of the cell in the middle, or a number of the text."""

    def edit(notebook: dict) -> None:
        code = notebooks.code_cells(notebook)
        if kind == "text":
            held = next(one for one in prose_numbers.held(notebook) if not one.condition)
            text = notebooks.text(notebook["cells"][held.cell]["source"])
            notebook["cells"][held.cell]["source"] = f"{text[: held.start]}9{text[held.start :]}"
        elif kind == "code":
            cell = code[len(code) // 2]
            cell["source"] = f"mine = 1  # a reader's line\n{notebooks.text(cell['source'])}"
        else:
            (cell,) = (cell for cell in code if "parameters" in notebooks.tags(cell))
            lines = notebooks.text(cell["source"]).splitlines()
            for name, value in values.items():
                lines = [f"{name} = {value!r}" if line.startswith(f"{name} = ") else line for line in lines]
            cell["source"] = "\n".join(lines)

    return edit


def _edited() -> list[tuple[str, str, str, str, dict]]:
    """(way, how, item, kind, values): each notebook from both ways, or three, each with one edit that the commit chooses."""
    root = Path(__file__).resolve().parent.parent
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True).stdout
    found = []
    for at, way in itertools.product(_all(root) if os.environ.get("XCREPRO_LAB") else FEW, WAYS):
        pick = random.Random(f"{told} {at} {way}")
        entry = manifest.load(root)[at]
        official = entry.official()
        other = [(name, value) for name, value in OTHER.items() if official.get(name, value) != value]
        other = [one for one in other if (at, one[0]) not in REFUSED]
        kinds = [*(("parameter", dict([one])) for one in other), ("code", {})]
        kinds += [("text", {})] if prose_numbers.held(notebooks.read(entry.notebook)) else []
        kind, values = pick.choice(kinds)
        # A text that is not saved is no part of the run.
        how = pick.choice(HOWS[1:] if kind == "text" else HOWS)
        found.append((way, how, at, kind, values))
    return found if os.environ.get("XCREPRO_LAB") else random.Random(told).sample(found, 3)


@pytest.mark.parametrize(("way", "how", "id", "kind", "values"), _edited())
def test_a_notebook_with_one_edit_runs_to_its_end(opened, installed, root, tmp_path, way, how, id, kind, values):
    place = installed(way)
    path = place.project / "notebooks" / f"{id}.ipynb"
    committed = path.read_bytes()
    figures = {file: file.read_bytes() for file in (place.project / "figures").rglob("*.*")}
    edit = edits(kind, values)
    try:
        if how in ("server", "saved"):
            ran, _ = opened(way, FOLDERS[1], id, edit=edit, saves=how == "saved")
        else:
            ran = notebooks.read(path)
            edit(ran)
            path.write_text(json.dumps(ran))
            converted = ("nbconvert", "--to", "notebook", "--execute", path, "--output", tmp_path / "ran.ipynb")
            words = converted if how == "nbclient" else ("papermill", path, tmp_path / "ran.ipynb")
            command = [place.python, "-m", *words]
            done = subprocess.run(command, cwd=path.parent, env=place.environment, capture_output=True, text=True)
            assert not done.returncode, done.stderr
            ran = notebooks.read(tmp_path / "ran.ipynb")
    finally:
        path.write_bytes(committed)
    shown = "\n".join(tidy.output_text(cell["outputs"]) for cell in notebooks.code_cells(ran))
    assert f"{id}: the text describes the committed run" in shown
    assert "**A run of your own**" in shown
    assert all(f"`{name} = {value!r}`" in shown for name, value in values.items())
    # The cells before one that was edited and not saved are those of the committed run: what they write is the same.
    for file in (place.project / "figures").rglob("*.*"):
        same = root / file.relative_to(place.project)
        assert file.read_bytes() == figures.get(file, same.read_bytes() if same.is_file() else b""), file


@pytest.mark.skipif(not os.environ.get("XCREPRO_LAB"), reason="opens JupyterLab itself: make test-lab")
@pytest.mark.skipif(browser.find() is None, reason="Playwright or Chromium is not installed")
def test_a_reader_edits_the_parameters_in_jupyterlab_itself_and_runs_all(installed):
    from playwright.sync_api import sync_playwright

    place = installed("clone")
    path = place.project / "notebooks" / f"{QUICK[1]}.ipynb"
    committed, wanted = path.read_bytes(), notebooks.read(path)
    edits("parameter", {"points": 4000})(wanted)
    (cell,) = (one for one in notebooks.code_cells(wanted) if "parameters" in notebooks.tags(one))
    with _serving(place, path.parent, "jupyterlab") as server, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.find(), args=["--no-sandbox"])
        page = chromium.new_page()
        page.set_default_timeout(1000 * SECONDS_A_CELL)
        page.goto(f"{server.url}lab/tree/{path.name}?token={server.token}")
        page.get_by_text("| Idle").wait_for()  # what is run before there is a kernel is not run
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.press("Control+A")
        page.keyboard.insert_text(cell["source"])
        for name in ("Run", "Run All Cells"):
            page.get_by_role("menuitem", name=name, exact=True).click()
        done, deadline = False, time.monotonic() + SECONDS_A_CELL
        while not done and time.monotonic() < deadline:
            page.wait_for_timeout(1000)
            page.keyboard.press("Control+S")
            code = notebooks.code_cells(notebooks.read(path))
            shown = "\n".join(tidy.output_text(one["outputs"]) for one in code)
            assert not any(output["output_type"] == "error" for one in code for output in one["outputs"]), shown
            done = "`points = 4000`" in shown and code[-1]["execution_count"] == len(code)
        chromium.close()
    path.write_bytes(committed)
    assert [one["execution_count"] for one in code] == list(range(1, len(code) + 1))
    assert f"{QUICK[1]}: the text describes the committed run" in shown
    assert "**A run of your own**" in shown
