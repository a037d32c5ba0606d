"""Typed conclusions: each way in which a text and a run may part is found, and what is no number is left alone."""

from __future__ import annotations

import json

import pytest

from tests import notebook
from tests.refused import refused
from xcrepro.repro import items, manifest, notebooks, statements

TEXT = """**PfastXML** gains 2.9 points of PSP@1 on EURLex-4K, [6,000 records](a-1.5.md) say (1.9 to 4.0),
`x = 0.5` and $p = 0.12$; it trails by −1.5 in table 4."""
SAID = [
    ("gains 2.9 points of PSP@1", 2.91),
    ("6,000 records say (1.9 to 4.0)", (6000, 1.94, 4.0), True),
    ("trails by −1.5 in table 4", -1.52, True),
]


def cells(project, *more):
    answer = project.markdown(TEXT)
    answer["metadata"] = {"tags": ["answer"]}
    return project.notebook(answer, project.markdown("By the way: 7.7"), *more)


def test_a_text_that_is_so(project):
    assert statements.faults(statements.text_of(cells(project)), SAID) == []


@pytest.mark.parametrize(
    ("at", "said", "fault"),
    [
        (0, ("gains 2.9 points of PSP@1", 2.96), "2.9 is 2.96"),
        (1, ("6,000 records say (1.9 to 4.0)", (6000, 1.94, 4.0), False), "is not so"),
        (1, ("6,000 records say (1.9 to 4.0)", (6000, 1.94)), "6,000, 1.9, 4.0, and 2"),
        (2, ("trails by −1.5", 1.5), "−1.5 is 1.5"),
        (2, ("trails by 1.5", 1.5), "not in a cell"),
        (2, ("7.7", 7.7), "not in a cell"),
        (2, ("trails by", (), True), "no statement has the number −1.5"),
    ],
)
def test_planted_faults(project, at, said, fault):
    given = [*SAID]
    given[at] = said
    found = statements.faults(statements.text_of(cells(project)), given)
    assert any(fault in one for one in found), found


def test_a_run_is_held_to_its_text_only_with_the_committed_parameters(project, capsys):
    project.add("one")
    path = project.root / "notebooks/demo/one.ipynb"
    path.write_text(json.dumps(cells(project, project.code("seed = 0", "parameters", count=1))))
    values = notebooks.parameters(path)
    items.item("demo/one", values).statements(lambda: SAID)
    assert "; 3 statements" in capsys.readouterr().out
    with pytest.raises(statements.StatementFault, match=r"2\.9"):
        items.item("demo/one", values).statements(lambda: SAID[1:])
    items.item("demo/one", values | {"seed": 1}).statements(lambda: 1 / 0)
    assert "committed run" in capsys.readouterr().out


def test_functions_of_a_notebook(project, tmp_path):
    source = "import math\nKS = (1, 3)\nruns = 1 / 0\ndef half(x):\n    return x / 2 * KS[0]\nhalf(0)"
    (tmp_path / "one.ipynb").write_text(json.dumps(project.notebook(project.code(source, count=1))))
    found = notebook.defined(tmp_path / "one.ipynb")
    assert found["half"](3) == 1.5
    assert "runs" not in found


def test_an_item_without_a_module_has_the_rules_of_its_data(root, monkeypatch):
    monkeypatch.setenv("XCREPRO_ROOT", str(root))
    entry = manifest.load()["jain16/table3_table4"]
    items.check_parameters(entry, entry.official())
    with refused("parameter scale", 2.0):
        items.check_parameters(entry, entry.official() | {"scale": 2.0})
