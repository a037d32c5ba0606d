"""xcrepro: reproducible evaluation of extreme multi-label classification.

``import xcrepro as xc`` is quick: names are looked up when they are first used, so that a command which only lists
the datasets does not wait for numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# public name -> the module that it is, or that holds it
_WHERE = {
    "read_xc": "xcrepro.core.data.read",
    "write_xc": "xcrepro.core.data.write",
    "load": "xcrepro.core.data.load",
    "twin": "xcrepro.core.data.twin",
    "Dataset": "xcrepro.core.data.dataset",
    "Split": "xcrepro.core.data.dataset",
    "TopK": "xcrepro.core.predictions",
    "evaluate": "xcrepro.core.metrics.evaluate",
    "compare": "xcrepro.core.metrics.compare",
    "judged": "xcrepro.tools.judged",
    "claims": "xcrepro.repro.published.claims",
    "report": "xcrepro.tools.reports.report",
    "Report": "xcrepro.tools.reports.report",
    "State": "xcrepro.core.metrics.state",
    "calibrate": "xcrepro.core.calibrate",
    "data": "xcrepro.core.data",
    "decide": "xcrepro.core.decide",
    "diagnose": "xcrepro.tools.diagnose",
    "errors": "xcrepro.core.errors",
    "formats": "xcrepro.core.formats",
    "metrics": "xcrepro.core.metrics",
    "models": "xcrepro.models",
    "propensity": "xcrepro.core.propensity",
    "published": "xcrepro.repro.published",
    "results": "xcrepro.tools.results",
    "scale": "xcrepro.tools.scale",
}
__all__ = sorted(_WHERE)

if TYPE_CHECKING:
    from xcrepro import models
    from xcrepro.core import calibrate, data, decide, errors, formats, metrics, propensity
    from xcrepro.core.data.dataset import Dataset, Split
    from xcrepro.core.data.load import load
    from xcrepro.core.data.read import read_xc
    from xcrepro.core.data.twin import twin
    from xcrepro.core.data.write import write_xc
    from xcrepro.core.metrics.compare import compare
    from xcrepro.core.metrics.evaluate import evaluate
    from xcrepro.core.metrics.state import State
    from xcrepro.core.predictions import TopK
    from xcrepro.repro import published
    from xcrepro.repro.published.claims import claims
    from xcrepro.tools import diagnose, judged, results, scale
    from xcrepro.tools.reports.report import Report, report


def __getattr__(name: str):
    if name not in _WHERE:
        raise AttributeError(f"module 'xcrepro' has no attribute {name!r}")
    module = importlib.import_module(_WHERE[name])
    value = getattr(module, name, module)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
