"""nbval with the project's conftest: every committed output counts, a planted change of any is found."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from xcrepro.repro import notebooks, tidy

CELLS = [
    ("print('PLT leads by 0.500 points')", "PLT leads by 0.500 points\n"),
    ("import sys; print('training', file=sys.stderr)", ""),
    ("import time; time.time()", ""),
]


@pytest.fixture
def committed(project, root):
    """``nbval(said, tolerance)``: the exit status where the first cell's committed output is ``said``."""
    shutil.copy(root / "notebooks/conftest.py", project.root / "notebooks/conftest.py")

    def nbval(said: str, tolerance: str = "", **keys: str) -> int:
        keys |= {"tolerance": f'"{tolerance}"'} if tolerance else {}
        path = project.add("one", *(source for source, _ in CELLS), **keys)
        notebook = notebooks.read(path)
        code = notebooks.code_cells(notebook)
        for count, cell in enumerate(code, 1):
            cell["execution_count"] = count
        code[1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": said}] if said else []
        code[3]["metadata"]["tags"] = ["nbval-ignore-output"]
        path.write_text(tidy.tidied(notebook))
        json.loads(path.read_text())
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", "--nbval-current-env"]
        return subprocess.run(
            [*command, str(project.root / "notebooks")], capture_output=True, cwd=project.root
        ).returncode

    return nbval


def test_an_output_without_a_tag_is_compared(committed):
    assert committed(CELLS[0][1]) == 0
    assert committed("PLT leads by 0.501 points\n") == 1
    assert committed("FastXML leads by 0.500 points\n") == 1
    assert committed("") == 1


def test_numbers_may_differ_within_the_items_tolerance(committed):
    assert committed("PLT leads by 0.503 points\n", "wide") == 0
    assert committed("PLT leads by 0.510 points\n", "wide") == 1


def test_what_takes_long_is_left_out(committed, monkeypatch):
    nothing_collected = 5
    assert committed("planted", long="true") == nothing_collected
    monkeypatch.setenv("XCREPRO_LONG", "1")
    assert committed("planted", long="true") == 1
