"""xcrepro: reproducible evaluation of extreme multi-label classification.

``import xcrepro as xc`` is quick: names are looked up when they are first used, so that a command which only lists
the datasets does not wait for numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# public name -> the module that holds it; None: the name is that module itself
_WHERE = {
    "read_xc": "xcrepro.data.read",
    "write_xc": "xcrepro.data.write",
    "load": "xcrepro.data.load",
    "twin": "xcrepro.data.twin",
    "Dataset": "xcrepro.data.dataset",
    "Split": "xcrepro.data.dataset",
    "TopK": "xcrepro.predictions",
    "evaluate": "xcrepro.metrics.evaluate",
    "compare": "xcrepro.metrics.compare",
    "judged": "xcrepro.metrics",
    "claims": "xcrepro.published.claims",
    "report": "xcrepro.reports.report",
    "Report": "xcrepro.reports.report",
    "State": "xcrepro.metrics.state",
    "calibrate": None,
    "data": None,
    "decide": None,
    "diagnose": None,
    "errors": None,
    "formats": None,
    "metrics": None,
    "models": None,
    "propensity": None,
    "published": None,
    "results": None,
    "scale": None,
}
__all__ = sorted(_WHERE)

if TYPE_CHECKING:
    from xcrepro import (
        calibrate,
        data,
        decide,
        diagnose,
        errors,
        formats,
        metrics,
        models,
        propensity,
        published,
        results,
        scale,
    )
    from xcrepro.data.dataset import Dataset, Split
    from xcrepro.data.load import load
    from xcrepro.data.read import read_xc
    from xcrepro.data.twin import twin
    from xcrepro.data.write import write_xc
    from xcrepro.metrics import judged
    from xcrepro.metrics.compare import compare
    from xcrepro.metrics.evaluate import evaluate
    from xcrepro.metrics.state import State
    from xcrepro.predictions import TopK
    from xcrepro.published.claims import claims
    from xcrepro.reports.report import Report, report


def __getattr__(name: str):
    if name not in _WHERE:
        raise AttributeError(f"module 'xcrepro' has no attribute {name!r}")
    module = _WHERE[name]
    value = (
        importlib.import_module(f"xcrepro.{name}") if module is None else getattr(importlib.import_module(module), name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
