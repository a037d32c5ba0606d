"""nbval with the project's conftest: every committed output counts, a planted change of any is found."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from xcrepro.repro.engine import notebooks, tidy

CELLS = [
    ("print('PLT leads by 0.500 points')", "PLT leads by 0.500 points\n"),
    ("import sys; print('training', file=sys.stderr)", ""),
    ("import time; time.time()", ""),
]


@pytest.fixture
def nbval(project, root):
    """``nbval(one={"said": ...}, ...)``: how each item's cells end where the first one's committed output is ``said``."""
    shutil.copy(root / "notebooks/conftest.py", project.root / "notebooks/conftest.py")

    def run(**items: dict[str, str]) -> dict[str, set[str]]:
        for name, keys in items.items():
            said = keys.pop("said")
            path = project.add(name, *(source for source, _ in CELLS), **keys)
            notebook = notebooks.read(path)
            code = notebooks.code_cells(notebook)
            for count, cell in enumerate(code, 1):
                cell["execution_count"] = count
            code[0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": said}] if said else []
            code[2]["metadata"]["tags"] = ["nbval-ignore-output"]
            path.write_text(tidy.tidied(notebook))
        words = f"-m pytest -q -rA -p no:cacheprovider --nbval --nbval-current-env {project.root}/notebooks"
        command = [sys.executable, *words.split()]
        done = subprocess.run(command, capture_output=True, text=True, cwd=project.root)
        ended = re.findall(r"^(PASSED|FAILED|ERROR) \S*?(\w+)\.ipynb", done.stdout, re.MULTILINE)
        return {name: {word for word, of in ended if of == name} for name in items}

    return run


def test_an_output_without_a_tag_is_compared(nbval):
    different = {"PASSED", "FAILED"}
    found = nbval(
        same={"said": CELLS[0][1]},
        number={"said": "PLT leads by 0.501 points\n"},
        nothing={"said": ""},
        takes_long={"said": "planted", "long": "true"},
    )
    assert found == {"same": {"PASSED"}, "number": different, "nothing": different, "takes_long": set()}


def test_what_takes_long_is_compared_where_it_is_asked_for(nbval, monkeypatch):
    monkeypatch.setenv("XCREPRO_LONG", "1")
    assert nbval(takes_long={"said": "planted", "long": "true"}) == {"takes_long": {"PASSED", "FAILED"}}
