"""Baselines behind one small interface: ``fit(X, Y)``, ``predict(X, k) -> TopK``, ``save``/``load``, ``get_params``."""

from __future__ import annotations

import importlib

# class -> the module of this package that holds it
CLASSES = {
    "Popularity": "popularity",
    "OneVsRest": "linear",
    "DiSMEC": "linear",
    "PLT": "plt",
    "FastXML": "fastxml",
    "PfastXML": "fastxml",
    "PfastreXML": "fastxml",
    "NeuralOneVsAll": "networks.neural",
    "TwoTowers": "networks.two_towers",
    "LabelAttention": "networks.attention",
    "ClusterNetwork": "networks.clustered",
    "GraphTowers": "networks.graph",
    "KNN": "classic.neighbours",
    "SLEEC": "classic.neighbours",
    "LPSR": "classic.neighbours",
    "CPLST": "classic.embedding",
    "MLCSSP": "classic.embedding",
    "LEML": "classic.embedding",
    "WSABIE": "classic.embedding",
    "CS": "classic.embedding",
    "PDSparse": "classic.sparse_linear",
    "ProXML": "classic.sparse_linear",
}
_WHERE = {**CLASSES, "Model": "base", "NotFitted": "base", "load": "base"}
__all__ = sorted(_WHERE)


def __getattr__(name: str):
    if name not in _WHERE:
        raise AttributeError(f"module 'xcrepro.models' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"xcrepro.models.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
