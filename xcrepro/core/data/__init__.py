"""Data in and out: reading and writing XC files, datasets, the synthetic twin. Names load their module when first used."""

from __future__ import annotations

import importlib

from xcrepro.core import served

_NAMES = {
    "read": ("read_xc", "read_sparse", "read_labels", "read_split", "read_jsonl_labels"),
    "write": ("write_xc", "write_sparse"),
    "splits": ("read_split_columns", "apply_split", "read_filter"),
    "stream": ("blocks",),
}
_WHERE = {name: f"xcrepro.core.data.{module}" for module, names in _NAMES.items() for name in names}
_MODULES = ("dataset", "load", "read", "registry", "splits", "twin", "write")


def __getattr__(name: str):
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"xcrepro.core.data.{name}")
    return served.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_MODULES, *served.names(__name__)})
