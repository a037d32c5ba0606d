"""The planted faults: one small change of the source each, the kind people make, and the tests that are to catch it.

They stand in the TOML files beside this one: ``old`` is found exactly once in ``file`` and becomes ``new``; ``tests`` are the
fault's own, or those that ``[tests]`` names for the file; ``survives`` says why no test can see it.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Fault:
    """One change.

    Attributes
    ----------
    file : str
        From the project's folder.
    old, new : str
        The text that is changed, and into what.
    breaks : str
        What goes wrong then, in words.
    tests : tuple of str
        Files, or tests, as pytest takes them; of a notebook itself, whose outputs nbval compares.
    survives : str
        Why it changes nothing that a test could see; empty where one is to.
    """

    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    survives: str = ""

    @property
    def room(self) -> str:
        """``core/kernels``, ``core/propensity``, ``tools/reports``, ..., and ``notebooks``."""
        top, *rest = Path(self.file).parts
        return "/".join(rest[:2]).removesuffix(".py") if top == "xcrepro" else top

    @property
    def in_file(self) -> tuple[str, str]:
        """``old`` and ``new`` as they are written in the file: a notebook holds its cells as JSON."""
        if not self.file.endswith(".ipynb"):
            return self.old, self.new
        return json.dumps(self.old)[1:-1], json.dumps(self.new)[1:-1]

    @property
    def name(self) -> str:
        """File and what breaks."""
        return f"{self.file.removeprefix('xcrepro/')}: {self.breaks}"


def load() -> list[Fault]:
    """All of them, one of each file in turn, so that a run that is cut short has seen every room."""
    by_file: dict[str, list[Fault]] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        with open(path, "rb") as file:
            text = tomllib.load(file)
        for given in text["fault"]:
            tests = tuple(given.pop("tests", text["tests"][given["file"]]))
            by_file.setdefault(given["file"], []).append(Fault(tests=tests, **given))
    most = max(map(len, by_file.values()), default=0)
    return [faults[i] for i in range(most) for faults in by_file.values() if i < len(faults)]


def problem(fault: Fault, root: Path = ROOT) -> str:
    """What is wrong with a fault itself; empty where nothing is."""
    path = root / fault.file
    found = path.read_text(encoding="utf-8").count(fault.in_file[0]) if path.is_file() else 0
    if found != 1:
        return f"its old text stands {found} times in {fault.file}: rewrite the fault"
    if missing := [test for test in fault.tests if not (root / test.partition("::")[0]).is_file()]:
        return f"there is no {missing[0]}"
    try:
        for source in sources(changed(fault, root), fault.file):
            compile(source, fault.file, "exec")
    except SyntaxError as error:
        return f"its new text is no Python ({error})"
    return "" if fault.new != fault.old else "it changes nothing"


def changed(fault: Fault, root: Path = ROOT) -> str:
    """The file's text with the fault in it."""
    return (root / fault.file).read_text(encoding="utf-8").replace(*fault.in_file)


def sources(text: str, file: str) -> list[str]:
    """The Python in a file: all of it, or each code cell of a notebook."""
    if not file.endswith(".ipynb"):
        return [text]
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
