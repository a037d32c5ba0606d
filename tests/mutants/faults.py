"""The planted faults: one small change of the source each, the kind people make, and the tests that are to catch it.

They stand in ``faults.toml`` under their file and function (``""``: the whole file): there the expression ``old`` is found
exactly once, however its lines are broken, and becomes ``new``; ``tests`` are the fault's own, those that ``[tests]`` names for
the file, or the one that is called as the file is;
``survives`` says why no test can see it.
"""

from __future__ import annotations

import ast
import itertools
import re
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
        The expression that is changed, and into what.
    breaks : str
        What goes wrong then, in words.
    tests : tuple of str
        Files, or tests, as pytest takes them.
    function : str
        Its name in the file, a method's with its class; empty: the whole file.
    survives : str
        Why it changes nothing that a test could see; empty where one is to.
    """

    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    function: str = ""
    survives: str = ""

    @property
    def room(self) -> str:
        """``core/kernels``, ``core/propensity``, ``tools/reports``, ..., and ``notebooks``."""
        top, *rest = Path(self.file).parts
        return "/".join(rest[:2]).removesuffix(".py") if top == "xcrepro" else top

    @property
    def name(self) -> str:
        """File and what breaks."""
        return f"{self.file.removeprefix('xcrepro/')}: {self.breaks}"


def load() -> list[Fault]:
    """All of them, one of each file in turn, so that a run that is cut short has seen every room."""
    text = tomllib.loads((FOLDER / "faults.toml").read_text(encoding="utf-8"))
    tests, by_file = text.pop("tests"), {}
    for file, functions in text.items():
        by_file[file] = [
            Fault(file, function=function, tests=tuple(one.pop("tests", tests.get(file, [test_of(file)]))), **one)
            for function, those in functions.items()
            for one in those
        ]
    most = max(map(len, by_file.values()), default=0)
    return [faults[i] for i in range(most) for faults in by_file.values() if i < len(faults)]


def test_of(file: str) -> str:
    """The file of tests that is called as a module is."""
    path = Path(file)
    return Path("tests", *path.parts[1:-1], f"test_{path.name}").as_posix()


def problem(fault: Fault, root: Path = ROOT) -> str:
    """What is wrong with a fault itself; empty where nothing is."""
    found = len(places(fault, (root / fault.file).read_text(encoding="utf-8"))) if (root / fault.file).is_file() else 0
    if found != 1:
        return f"its old text stands {found} times in {fault.function or fault.file}: rewrite the fault"
    if missing := [test for test in fault.tests if not (root / test.partition("::")[0]).is_file()]:
        return f"there is no {missing[0]}"
    try:
        compile(changed(fault, root), fault.file, "exec")
    except SyntaxError as error:
        return f"its new text is no Python ({error})"
    return "" if fault.new != fault.old else "it changes nothing"


def changed(fault: Fault, root: Path = ROOT) -> str:
    """The file's text with the fault in it."""
    text = (root / fault.file).read_text(encoding="utf-8")
    (first, last), *_ = places(fault, text)
    return text[:first] + fault.new + text[last:]


def places(fault: Fault, text: str) -> list[tuple[int, int]]:
    """Where the old expression stands in the function: from which character to which."""
    first, last = span(text, fault.function)
    words = re.findall(r"\w+|[^\w\s]", fault.old)
    between = [r"\s+" if one[-1].isalnum() and two[0].isalnum() else r"\s*" for one, two in itertools.pairwise(words)]
    pattern = "".join(part for pair in zip(map(re.escape, words), [*between, ""], strict=True) for part in pair)
    found = re.compile(rf"(?<!\w){pattern}" if words[0][0].isalnum() else pattern).finditer(text, first, last)
    return [match.span() for match in found]


def span(text: str, function: str) -> tuple[int, int]:
    """Where a function stands in the text of a file; nowhere if there is none of the name."""
    node: ast.AST = ast.parse(text)
    for name in function.split(".") if function else ():
        inside = (one for one in ast.walk(node) if isinstance(one, ast.FunctionDef | ast.ClassDef))
        node = next((one for one in inside if one.name == name and one is not node), None)
        if node is None:
            return 0, 0
    if not function:
        return 0, len(text)
    starts = [0, *itertools.accumulate(map(len, text.splitlines(keepends=True)))]
    return starts[node.lineno - 1], starts[node.end_lineno]
