"""``environment.yml``, ``constraints.txt`` and conda's ``recipe.yaml``, made from ``pyproject.toml`` and what is installed
(``make lock``)."""

from __future__ import annotations

import importlib.metadata
import json
import re
import tomllib
from pathlib import Path

from xcrepro.core import paths

# Not on conda-forge: pip installs these inside the conda environment.
_BY_PIP = {"napkinxc"}
# What a virtual environment brings by itself, and what installing the project there leaves behind.
_NOT_PINNED = {"pip", "setuptools", "wheel", "xcrepro"}


def normal(name: str) -> str:
    """A distribution's name as package indexes compare it, such as ``jupyter-client`` for ``Jupyter_Client``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(pyproject: Path, *extras: str) -> dict[str, str]:
    """Name -> version rule (such as ``>=2.0``) of the dependencies in ``pyproject``, and of the extras named."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    texts, waiting = [*project["dependencies"]], [*extras]
    for extra in waiting:  # which grows: an extra may name others of the project
        for text in project["optional-dependencies"][extra]:
            if own := re.fullmatch(rf"{project['name']}\[(.*)\]", text):
                waiting += own[1].split(",")
            else:
                texts.append(text)
    found = {re.fullmatch(r"([A-Za-z0-9._-]+)\s*(.*)", text.partition(";")[0]).groups() for text in texts}
    return {normal(name): rule.replace(" ", "") for name, rule in sorted(found, key=lambda pair: normal(pair[0]))}


def environment_yml(pyproject: Path) -> str:
    """The conda environment: everything from conda-forge that is there, the rest and the project by pip."""
    python = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["requires-python"]
    rules = requirements(pyproject, "test")
    conda = [f"{name}{rule}" for name, rule in rules.items() if name not in _BY_PIP]
    pip = [f"{name}{rule}" for name, rule in rules.items() if name in _BY_PIP]
    lines = [
        "# Generated from pyproject.toml by `python -m maintenance.environment`; change that file, not this one.",
        "name: xcrepro",
        "channels: [conda-forge, nodefaults]",
        "dependencies:",
        f'  - "python{python}"',
        *(f'  - "{text}"' for text in conda),
        "  - pip",
        "  - pip:",
        *(f'      - "{text}"' for text in pip),
        '      - "-e ."',
    ]
    return "\n".join(lines) + "\n"


_RECIPE = """\
# Generated from pyproject.toml by `python -m maintenance.environment`. For rattler-build, format 1; nobody has built it:
# before a release a person puts the archive's `url` and `sha256` in place of the path, and names who maintains it.
schema_version: 1
package:
  name: {name}
  version: "{version}"
source:
  path: ..
build:
  number: 0
  noarch: python
  script: python -m pip install . --no-deps --no-build-isolation -vv
  python:
    entry_points:
{entry_points}
requirements:
  host:
{host}
  run:
{run}
tests:
  - python:
      imports: [xcrepro]
about:
  license: {license}
  license_file: {license_files}
  summary: "{description}"
extra:
  recipe-maintainers: []
"""


def recipe(pyproject: Path) -> str:
    """The conda package of the library alone, as a recipe for rattler-build."""
    read = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project = read["project"]
    python = f"python {project['requires-python']}"
    host = [python, "pip", *(re.sub(r"(?=[<>=])", " ", one, count=1) for one in read["build-system"]["requires"])]
    run = [python, *(f"{name} {rule}" for name, rule in requirements(pyproject).items())]
    lists = {"host": host, "run": run, "entry_points": [f"{a} = {b}" for a, b in project["scripts"].items()]}
    shown = {name: "\n".join(f"{' ' * (6 if name == 'entry_points' else 4)}- {one}" for one in all_)
             for name, all_ in lists.items()}  # fmt: skip
    return _RECIPE.format(**project | {"license_files": json.dumps(project["license-files"])} | shown)


def constraints() -> str:
    """Name and version of every installed distribution, one a line, sorted; the project itself left out."""
    installed = {normal(found.name): found.version for found in importlib.metadata.distributions()}
    return "".join(f"{name}=={version}\n" for name, version in sorted(installed.items()) if name not in _NOT_PINNED)


def main() -> None:
    root = paths.project_root()
    project = root / "pyproject.toml"
    made = {"environment.yml": environment_yml(project), "constraints.txt": constraints()}
    made["maintenance/recipe.yaml"] = recipe(project)
    paths.write_together({root / name: text.encode() for name, text in made.items()})
    print(f"wrote {', '.join(made)}")


if __name__ == "__main__":
    main()
