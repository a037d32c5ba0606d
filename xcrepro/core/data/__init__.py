"""Data in and out: reading and writing XC files, datasets. Names load their module when first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from xcrepro.core import plugins

if TYPE_CHECKING:
    from xcrepro.core.data import dataset as dataset
    from xcrepro.core.data import load as load
    from xcrepro.core.data import read as read
    from xcrepro.core.data import registry as registry
    from xcrepro.core.data import splits as splits
    from xcrepro.core.data import write as write
    from xcrepro.core.data.read import read_jsonl_labels as read_jsonl_labels
    from xcrepro.core.data.read import read_labels as read_labels
    from xcrepro.core.data.read import read_sparse as read_sparse
    from xcrepro.core.data.read import read_split as read_split
    from xcrepro.core.data.read import read_xc as read_xc
    from xcrepro.core.data.splits import apply_split as apply_split
    from xcrepro.core.data.splits import read_filter as read_filter
    from xcrepro.core.data.splits import read_split_columns as read_split_columns
    from xcrepro.core.data.stream import blocks as blocks
    from xcrepro.core.data.write import write_sparse as write_sparse
    from xcrepro.core.data.write import write_xc as write_xc

_NAMES = {
    "read": ("read_xc", "read_sparse", "read_labels", "read_split", "read_jsonl_labels"),
    "write": ("write_xc", "write_sparse"),
    "splits": ("read_split_columns", "apply_split", "read_filter"),
    "stream": ("blocks",),
}
_WHERE = {name: f"xcrepro.core.data.{module}" for module, names in _NAMES.items() for name in names}
_MODULES = ("dataset", "load", "read", "registry", "splits", "write")


def __getattr__(name: str):
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"xcrepro.core.data.{name}")
    return plugins.find(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_MODULES, *plugins.names(__name__)})
