"""The engine, which knows no XC: items, whether they still make what is committed, figures, tables, and the runner.

``repro.item("jain16/table3", globals())`` is the one door for a notebook; the modules are its parts.
"""

from __future__ import annotations

import importlib

from xcrepro.core import plugins

plugins.serve("xcrepro.core.data", "xcrepro.repro.inputs.download")

_WHERE = {"Item": "xcrepro.repro.engine.items", "item": "xcrepro.repro.engine.items"}


def __getattr__(name: str):
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
        globals()[name] = value
        return value
    try:
        return importlib.import_module(f"xcrepro.repro.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"xcrepro.repro.{name}":
            raise
        raise AttributeError(f"module 'xcrepro.repro' has no attribute {name!r}") from None
