"""The course starts in one step: the first cell for Colab runs where the package is, and every lesson can stand after it."""

from __future__ import annotations

import ast
import re

import pytest

transform = pytest.importorskip("IPython.core.inputtransformer2", reason="IPython reads cells with %pip")


def first_cell(root) -> str:
    page = (root / "docs/teach.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"```\n(try:\n.*?)```", page, re.DOTALL)
    return found


def test_the_first_cell_for_colab_is_python_and_installs_only_what_is_missing(root):
    cell = transform.TransformerManager().transform_cell(first_cell(root))
    (tried,) = ast.parse(cell).body
    assert "run_line_magic('pip', \"install -q 'xcrepro-0.1.0-py3-none-any.whl[course]'\")" in ast.unparse(tried)
    exec(compile(cell, "first cell", "exec"), {})  # the package is here, so nothing is installed


def test_the_wheel_of_the_first_cell_is_this_version(root):
    version = re.search(r'__version__ = "(.*?)"', (root / "xcrepro/core/version.py").read_text())[1]
    page = (root / "docs/teach.md").read_text(encoding="utf-8")
    assert set(re.findall(r"xcrepro-([\d.]+)-py3", page)) == {version}
