"""The list of planted faults does not rot, and its runner tells what tests see from what they do not."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.mutants import __main__ as runner
from tests.mutants import faults

ROOMS = (
    "core/calibrate",
    "core/data",
    "core/decide",
    "core/kernels",
    "core/metrics",
    "core/propensity",
    "models/kernels",
    "repro/published",
    "tools/formats",
)
"""Of these there are two or more; others may have some."""


def test_every_fault_can_be_planted():
    listed = faults.load()
    assert [f"{fault.name}: {said}" for fault in listed if (said := faults.problem(fault))] == []
    assert len({(fault.file, fault.function, fault.old, fault.new) for fault in listed}) == len(listed)
    counts = Counter(fault.room for fault in listed)
    assert min(counts[room] for room in ROOMS) >= 2
    assert len(listed) >= 90


@pytest.mark.parametrize(
    ("old", "new", "tests", "said"),
    [
        ("no such text", "x", ("tests/naive.py",), "its old text stands 0 times"),
        ("def ", "x", ("tests/naive.py",), "times in xcrepro/core/threads.py"),
        ("return [work(0, n_rows)]", "return [", ("tests/naive.py",), "its new text is no Python"),
        ("return [work(0, n_rows)]", "return []", ("tests/none.py::test_x",), "there is no tests/none.py::test_x"),
        ("return [work(0, n_rows)]", "return [work(0, n_rows)]", ("tests/naive.py",), "it changes nothing"),
    ],
)
def test_a_rotten_fault_is_named(old, new, tests, said):
    assert said in faults.problem(faults.Fault("xcrepro/core/threads.py", old, new, "all", tests))


def test_a_fault_is_found_by_its_function_and_expression_however_lines_are_broken():
    text = "def f(a):\n    return max(a, 1)\n\n\nclass C:\n    def f(self, a):\n        return max(\n a, 1\n )\n"
    for function, times in (("f", 1), ("C.f", 1), ("", 2), ("g", 0)):
        fault = faults.Fault("x.py", "max(a, 1)", "a", "all", (), function)
        assert [text[i:j].replace(" ", "").replace("\n", "") for i, j in faults.places(fault, text)] == [
            "max(a,1)"
        ] * times


def test_what_survives_unexplained_fails(monkeypatch, capsys):
    listed = [
        faults.Fault("xcrepro/core/threads.py", str(i), "x", f"fault {i}", (), "", "" if i else "it is equivalent")
        for i in range(40)
    ]
    monkeypatch.setattr(runner, "key_of", lambda fault: fault.old)
    results = {fault.old: "caught" for fault in listed}
    assert runner.report(listed, results) == 0
    assert runner.report(listed, results | {"0": "survived"}) == 0
    assert "97.5 % caught" in capsys.readouterr().out
    assert runner.report(listed, results | {"1": "survived"}) == 1
    assert "fault 1: NOT EXPLAINED" in capsys.readouterr().out
    assert runner.report([*listed[:1]] * 3, {"0": "survived"}) == 1  # explained, but too few are caught
