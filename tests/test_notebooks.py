"""What a committed notebook must be, beyond what nbval sees: see :mod:`xcrepro.repro.guard`."""

from __future__ import annotations

import pytest

from xcrepro.repro import guard, manifest, tidy


@pytest.fixture(scope="module")
def faults(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XCREPRO_ROOT", str(root))
        return guard.project()


def test_notebooks_and_golden_files_have_nothing_to_mend(faults):
    assert faults == {}, "\n".join(f"{name}: {text}" for name, texts in faults.items() for text in texts)


def test_there_is_something_to_look_at(root):
    names = [path.name for path in tidy.find([root / "notebooks"])]
    assert guard.MASTER in names
    assert len(names) > len(manifest.load(root)) >= 0
