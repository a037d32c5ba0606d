"""What a notebook defines, to be tested."""

from __future__ import annotations

import ast
import os

from xcrepro.repro import notebooks


def defined(path: str | os.PathLike) -> dict:
    """What a notebook's code cells define, to be tested: nothing else of them runs."""
    found: dict = {}
    for cell in notebooks.code_cells(notebooks.read(path)):
        for node in ast.parse(notebooks.text(cell["source"])).body:
            constant = isinstance(node, ast.Assign) and all(
                isinstance(one, ast.Name) and one.id.isupper() for one in node.targets
            )
            constant = constant and not any(isinstance(part, ast.Name) for part in ast.walk(node.value))
            if constant or isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef):
                exec(compile(ast.Module([node], []), str(path), "exec"), found)
    return found
