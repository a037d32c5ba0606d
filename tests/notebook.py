"""What a notebook defines, to be tested; and a notebook run without a kernel."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from pathlib import Path
from unittest import mock

import yaml

from xcrepro.repro.engine import notebooks


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


class Here:
    """What papermill does with a notebook, in this process and at once: a kernel takes seconds to start and to end."""

    stdin = None

    def __init__(self, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        source, executed, *options = arguments
        book = notebooks.read(source)
        self.given = yaml.safe_load(options[options.index("-y") + 1]) if "-y" in options else {}
        if self.given:
            (at,) = (place for place, cell in enumerate(book["cells"]) if "parameters" in notebooks.tags(cell))
            lines = "\n".join(f"{name} = {value!r}" for name, value in self.given.items())
            about = {"id": "injected", "metadata": {"tags": ["injected-parameters"]}, "source": lines}
            book["cells"].insert(at + 1, {"cell_type": "code", **about})
        names: dict = {}
        self.returncode = 0
        with mock.patch.dict(os.environ, environment, clear=True):
            for count, cell in enumerate(notebooks.code_cells(book), 1):
                cell["metadata"]["papermill"] = {"status": "completed"}
                cell["execution_count"] = count
                outputs = cell["outputs"] = []
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    try:
                        exec(notebooks.text(cell["source"]), names)
                    except Exception as fault:
                        self.returncode = 1
                        error = {"ename": type(fault).__name__, "evalue": str(fault), "traceback": []}
                        outputs.append({"output_type": "error"} | error)
                if said.getvalue():
                    outputs.insert(0, {"output_type": "stream", "name": "stdout", "text": said.getvalue()})
                if self.returncode and "raises-exception" not in notebooks.tags(cell):
                    break
        log.write_text("")
        Path(executed).write_text(json.dumps(book))

    def poll(self, timeout: float | None = None) -> int:
        return self.returncode

    wait = terminate = kill = poll
