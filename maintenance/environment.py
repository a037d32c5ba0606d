"""``environment.yml`` and ``constraints.txt``, made from ``pyproject.toml`` and what is installed (``make lock``)."""

from __future__ import annotations

import importlib.metadata
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


def constraints() -> str:
    """Name and version of every installed distribution, one a line, sorted; the project itself left out."""
    installed = {normal(found.name): found.version for found in importlib.metadata.distributions()}
    return "".join(f"{name}=={version}\n" for name, version in sorted(installed.items()) if name not in _NOT_PINNED)


def main() -> None:
    root = paths.project_root()
    made = {"environment.yml": environment_yml(root / "pyproject.toml"), "constraints.txt": constraints()}
    paths.write_together({root / name: text.encode() for name, text in made.items()})
    print(f"wrote {' and '.join(made)}")


if __name__ == "__main__":
    main()
