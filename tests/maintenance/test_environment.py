"""The three lists of dependencies agree: pyproject.toml, environment.yml and constraints.txt."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml

from maintenance import environment


@pytest.fixture(scope="module")
def pyproject(root):
    return root / "pyproject.toml"


def test_environment_yml_is_what_pyproject_makes(root, pyproject):
    made = environment.environment_yml(pyproject)
    assert (root / "environment.yml").read_text() == made, "run `python -m maintenance.environment`"


def test_the_recipe_asks_for_what_pyproject_has(root, pyproject):
    """And, where rattler-build is installed, it is one that it takes."""
    text = (root / "maintenance/recipe.yaml").read_text()
    asked = dict(one.split() for one in yaml.safe_load(text)["requirements"]["run"])
    assert asked.pop("python") == tomllib.loads(pyproject.read_text())["project"]["requires-python"]
    assert asked == environment.requirements(pyproject)
    rattler = pytest.importorskip("rattler_build", reason="not installed: pip install py-rattler-build")
    rattler.Stage0Recipe.from_yaml(text)


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def test_constraints_satisfy_every_dependency(root, pyproject):
    lines = (root / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+", line) for line in lines)
    pinned = {environment.normal(name): text for name, _, text in (line.partition("==") for line in lines)}
    assert len(pinned) == len(lines)
    assert "xcrepro" not in pinned
    for name, rule in environment.requirements(
        pyproject, "test", "bench", "course", "formats", "docs", "scale"
    ).items():
        assert name in pinned, f"{name} is not in constraints.txt; run `make lock`"
        least = re.fullmatch(r">=([0-9.]+)", rule)
        assert least, f"{name}{rule}: this test only knows >="
        assert version(pinned[name]) >= version(least.group(1)), name


def test_constraints_of_this_environment():
    names = [line.partition("==")[0] for line in environment.constraints().splitlines()]
    assert names == sorted(names)
    assert "numpy" in names
    assert not {"xcrepro", "pip"} & set(names)


def test_every_make_target_that_is_named_is_there(root):
    makefile = (root / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in ("CONTRIBUTING.md", "README.md"):
        named = set(re.findall(r"`make ([a-z-]+)", (root / page).read_text()))
        assert named <= targets, f"{page} names {named - targets}"
    assert "holes" in set(re.findall(r"`make ([a-z-]+)", (root / "CONTRIBUTING.md").read_text()))


def test_known_holes_are_asked_for_with_arguments_that_pip_audit_has(root):
    """What `make holes` runs; without a network, and without pip-audit, the command itself is all that can be held."""
    (command,) = re.findall(r"^\tbuild/holes/bin/pip-audit (.*)$", (root / "Makefile").read_text(), re.MULTILINE)
    assert command == "--requirement constraints.txt --no-deps --disable-pip"
    cli = pytest.importorskip("pip_audit._cli", reason="pip-audit is not installed")
    given = cli._parser().parse_args(command.split())
    assert (given.no_deps, given.disable_pip) == (True, True)
