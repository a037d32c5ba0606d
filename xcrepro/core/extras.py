"""Libraries that only a part of the package needs, and the extra of ``pyproject.toml`` that brings each."""

from __future__ import annotations

import importlib
import importlib.metadata
from types import ModuleType

from xcrepro.core.errors import XCError

BROUGHT_BY = {
    **dict.fromkeys(("gdown", "napkinxc", "requests", "tqdm"), "download"),
    **dict.fromkeys(("dask", "distributed"), "scale"),
    **dict.fromkeys(("nbgrader", "sphinx_revealjs", "latex2mathml"), "course"),
    **dict.fromkeys(("filelock", "IPython", "nbclient", "nbconvert", "nbformat"), "notebooks"),
    **dict.fromkeys(("papermill", "psutil", "sklearn", "yaml"), "notebooks"),
    "matplotlib": "report",
    **dict.fromkeys(("pyarrow", "rdflib"), "formats"),
}
"""Name for ``import`` -> extra."""


class LibraryMissing(XCError, ImportError):
    """A library that is no requirement is not installed; the message has the line that installs it."""


def missing(name: str, instead: str = "") -> LibraryMissing:
    """The error for a library of :data:`BROUGHT_BY`; ``instead`` says what works without it.

    >>> print(missing("pyarrow", "or write CSV"))
    pyarrow is not installed: pip install 'xcrepro[formats]', or write CSV
    """
    line = f"{name} is not installed: pip install 'xcrepro[{BROUGHT_BY[name]}]'"
    return LibraryMissing(", ".join(filter(None, [line, instead])), name=name)


def library(name: str, instead: str = "") -> ModuleType:
    """Import a library of :data:`BROUGHT_BY`, or one of its modules, or raise :class:`LibraryMissing`."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        first = name.partition(".")[0]
        if (error.name or "").partition(".")[0] != first:
            raise
        raise missing(first, instead) from None


def version(name: str) -> str:
    """The installed version of a distribution, "none" where there is none, as of numba in a browser.

    >>> version("no-such-library")
    'none'
    """
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"
