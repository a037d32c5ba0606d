"""What a committed notebook must be, beyond what nbval sees: see ``maintenance/check.py``."""

from __future__ import annotations

import re

import pytest

from maintenance import check
from xcrepro.repro.engine import manifest, notebooks, tidy


@pytest.fixture(scope="module")
def faults(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XCREPRO_ROOT", str(root))
        return check.project()


def test_notebooks_and_figures_have_nothing_to_mend(faults):
    assert faults == {}, "\n".join(f"{name}: {text}" for name, texts in faults.items() for text in texts)


def test_there_is_something_to_look_at(root):
    names = [path.name for path in tidy.find([root / "notebooks"])]
    assert check.MASTER in names
    assert len(names) > len(manifest.load(root)) >= 0


def test_the_computation_stands_in_the_open(root):
    """A public call in nearly every notebook, held to the table; the formula in nearly every one; findings are computed."""
    sources = {id: notebooks.read(entry.notebook)["cells"] for id, entry in manifest.load(root).items()}
    calls, formulas, findings = set(), set(), set()
    for id, cells in sources.items():
        for cell in cells:
            text = notebooks.text(cell["source"])
            if cell["cell_type"] == "markdown":
                formulas |= {id} if "$$" in text else set()
            else:
                calls |= {id} if re.search(r"\bxc\.\w+(\.\w+)*\(", text) else set()
                findings |= {id} if "item.check_text()" in text else set()
    assert len(calls) >= 40, sorted(sources.keys() - calls)
    assert len(formulas) >= 30, sorted(sources.keys() - formulas)
    assert len(findings) >= 45, sorted(sources.keys() - findings)


def test_a_reader_sees_no_comment(root):
    """Of the comments behind numbers, in what nbconvert makes of the text (the site leaves them out before)."""
    filters = pytest.importorskip("nbconvert.filters.markdown_mistune")
    for path in tidy.find([root / "notebooks"]):
        for cell in notebooks.read(path)["cells"]:
            source = notebooks.text(cell["source"])
            if cell["cell_type"] == "markdown" and "<!--" in source:
                page = re.sub(r"<!--.*?-->", "", filters.markdown2html_mistune(source), flags=re.DOTALL)
                assert not re.search(r"&lt;!--|--&gt;|-->|must:", page), (path.name, source[:200])
