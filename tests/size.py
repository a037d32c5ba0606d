"""`python -m tests.size`: lines of code and of docstrings by wing and room, and in tests, notebooks, docs and benchmarks.

All that is counted is in one number: Python, and the non-blank lines of planted faults and of own JavaScript.
"""

import ast
import io
import json
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines(source: str) -> tuple[int, int, int]:
    """Lines of code (no blank ones, comments, docstrings), lines of docstrings, and functions of Python source."""
    docstrings, functions = set(), 0
    for node in ast.walk(ast.parse(source)):
        functions += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node) is not None
        ):
            docstrings |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    code = {line for token in tokens if token.type not in NO_CODE for line in range(token.start[0], token.end[0] + 1)}
    return len(code - docstrings), len(docstrings), functions


def notebook(path: Path) -> str:
    """The code of a notebook's cells, without their magics."""
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    code = "\n".join("".join(cell["source"]) for cell in cells)
    return "\n".join(line for line in code.splitlines() if not line.lstrip().startswith(("%", "!")))


def sizes(root: Path = ROOT) -> dict[str, Counter]:
    """Code, docstrings and functions of everything in Python: by folder, of the package also by wing and by room of a wing."""
    rooms: dict[str, Counter] = {}
    for top, deep in (
        ("xcrepro", 3),
        ("tests", 2),
        ("notebooks", 2),
        ("docs", 1),
        ("benchmarks", 1),
        ("maintenance", 1),
    ):
        for path in sorted((root / top).rglob("*.ipynb" if top == "notebooks" else "*.py")):
            parts = path.relative_to(root).parts[:deep]
            code, docstrings, functions = lines(notebook(path) if top == "notebooks" else path.read_text())
            counted = Counter(code=code, docstrings=docstrings, functions=functions)
            for name in {"all Python", *("/".join(parts[: n + 1]) for n in range(len(parts)))}:
                rooms.setdefault(name, Counter()).update(counted)
        others = [*(root / top).rglob("*.js"), *(root / top).glob("mutants/*.toml")]
        for path in sorted(others):
            found = sum(bool(line.strip()) for line in path.read_text(encoding="utf-8").splitlines())
            kind = "planted faults" if path.suffix == ".toml" else "JavaScript"
            for name in ("all", kind):
                rooms.setdefault(name, Counter()).update(code=found)
    rooms.setdefault("all", Counter()).update(rooms["all Python"])
    return rooms


if __name__ == "__main__":
    print(f"{'room':34} {'code':>7} {'docstrings':>11} {'functions':>10}")
    for name, size in sorted(sizes().items()):
        print(f"{name:34} {size['code']:7,} {size['docstrings']:11,} {size['functions']:10,}")
