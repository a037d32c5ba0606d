"""The three lists of dependencies agree: pyproject.toml, environment.yml and constraints.txt."""

from __future__ import annotations

import re

import pytest

from xcrepro.repro import environment


@pytest.fixture(scope="module")
def pyproject(root):
    return root / "pyproject.toml"


def test_environment_yml_is_what_pyproject_makes(root, pyproject):
    made = environment.environment_yml(pyproject)
    assert (root / "environment.yml").read_text() == made, "run `python -m xcrepro.repro.environment`"


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def test_constraints_satisfy_every_dependency(root, pyproject):
    lines = (root / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", line) for line in lines)
    pinned = {environment.normal(name): text for name, _, text in (line.partition("==") for line in lines)}
    assert len(pinned) == len(lines)
    assert "xcrepro" not in pinned
    for name, rule in environment.requirements(pyproject, "test", "bench", "course", "formats").items():
        assert name in pinned, f"{name} is not in constraints.txt; run `make lock`"
        least = re.fullmatch(r">=([0-9.]+)", rule)
        assert least, f"{name}{rule}: this test only knows >="
        assert version(pinned[name]) >= version(least.group(1)), name


def test_every_dependency_is_in_environment_yml_once(root, pyproject):
    text = (root / "environment.yml").read_text()
    for name, rule in environment.requirements(pyproject, "test").items():
        assert text.count(f'- "{name}{rule}"') == 1
    conda, pip = text.split("- pip:")
    assert '"napkinxc' in pip
    assert '"napkinxc' not in conda


def test_a_changed_dependency_shows(tmp_path, pyproject):
    changed = tmp_path / "pyproject.toml"
    changed.write_text(pyproject.read_text().replace('"numpy>=2.0"', '"numpy>=2.1"'))
    assert environment.environment_yml(changed) != environment.environment_yml(pyproject)


def test_constraints_of_this_environment():
    names = [line.partition("==")[0] for line in environment.constraints().splitlines()]
    assert names == sorted(names)
    assert "numpy" in names
    assert not {"xcrepro", "pip"} & set(names)
