"""Data in and out: reading and writing XC files, datasets, the synthetic twin. Names load their module when first used."""

from __future__ import annotations

import importlib

_WHERE = {
    "read_xc": "read",
    "read_sparse": "read",
    "read_labels": "read",
    "read_split": "read",
    "read_jsonl_labels": "read",
    "write_xc": "write",
    "write_sparse": "write",
    "read_split_columns": "splits",
    "apply_split": "splits",
    "read_filter": "splits",
    "make_filter": "filters",
    "read_texts": "filters",
    "write_filter": "filters",
    "blocks": "stream",
}
_MODULES = ("dataset", "download", "filters", "load", "read", "registry", "splits", "twin", "write")


def __getattr__(name: str):
    if name in _WHERE:
        return getattr(importlib.import_module(f"xcrepro.data.{_WHERE[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"xcrepro.data.{name}")
    raise AttributeError(f"module 'xcrepro.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_MODULES})
