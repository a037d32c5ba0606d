"""Baselines behind one small interface: ``fit(X, Y)``, ``predict(X, k) -> TopK``, ``save``/``load``, ``get_params``.

Beside them :func:`xcrepro.twin`, the model that data are drawn from.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from xcrepro.core import plugins

if TYPE_CHECKING:
    from xcrepro.models.base import Model as Model
    from xcrepro.models.base import NotFitted as NotFitted
    from xcrepro.models.base import load as load
    from xcrepro.models.classic.embedding import CPLST as CPLST
    from xcrepro.models.classic.embedding import CS as CS
    from xcrepro.models.classic.embedding import LEML as LEML
    from xcrepro.models.classic.embedding import MLCSSP as MLCSSP
    from xcrepro.models.classic.embedding import WSABIE as WSABIE
    from xcrepro.models.classic.neighbours import KNN as KNN
    from xcrepro.models.classic.neighbours import LPSR as LPSR
    from xcrepro.models.classic.neighbours import SLEEC as SLEEC
    from xcrepro.models.classic.sparse_linear import PDSparse as PDSparse
    from xcrepro.models.classic.sparse_linear import ProXML as ProXML
    from xcrepro.models.fastxml import FastXML as FastXML
    from xcrepro.models.fastxml import PfastreXML as PfastreXML
    from xcrepro.models.fastxml import PfastXML as PfastXML
    from xcrepro.models.linear import DiSMEC as DiSMEC
    from xcrepro.models.linear import OneVsRest as OneVsRest
    from xcrepro.models.linear import PWDiSMEC as PWDiSMEC
    from xcrepro.models.networks.attention import LabelAttention as LabelAttention
    from xcrepro.models.networks.clustered import ClusterNetwork as ClusterNetwork
    from xcrepro.models.networks.graph import GraphTowers as GraphTowers
    from xcrepro.models.networks.neural import NeuralOneVsAll as NeuralOneVsAll
    from xcrepro.models.networks.two_towers import TwoTowers as TwoTowers
    from xcrepro.models.plt import PLT as PLT
    from xcrepro.models.popularity import Popularity as Popularity

plugins.serve("xcrepro.core.data", "xcrepro.models.twin")

_MODULES = {
    "popularity": ("Popularity",),
    "linear": ("OneVsRest", "DiSMEC", "PWDiSMEC"),
    "plt": ("PLT",),
    "fastxml": ("FastXML", "PfastXML", "PfastreXML"),
    "networks.neural": ("NeuralOneVsAll",),
    "networks.two_towers": ("TwoTowers",),
    "networks.attention": ("LabelAttention",),
    "networks.clustered": ("ClusterNetwork",),
    "networks.graph": ("GraphTowers",),
    "classic.neighbours": ("KNN", "SLEEC", "LPSR"),
    "classic.embedding": ("CPLST", "MLCSSP", "LEML", "WSABIE", "CS"),
    "classic.sparse_linear": ("PDSparse", "ProXML"),
}
CLASSES = {name: module for module, names in _MODULES.items() for name in names}
"""Class -> the module of this package that holds it."""
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
