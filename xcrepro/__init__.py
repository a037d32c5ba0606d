"""xcrepro: reproducible evaluation of extreme multi-label classification.

``import xcrepro as xc`` is quick: names are looked up when they are first used, so that a command which only lists
the datasets does not wait for numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from xcrepro._names import WHERE
from xcrepro.core.version import __version__ as __version__

__all__ = sorted(WHERE)

for _wing in ("models", "repro", "tools"):  # each says what it serves under names of the core
    importlib.import_module(f"xcrepro.{_wing}")

if TYPE_CHECKING:
    from xcrepro import models
    from xcrepro.core import calibrate, data, decide, errors, judged, metrics, propensity
    from xcrepro.core.data.dataset import Dataset, Split
    from xcrepro.core.data.load import load
    from xcrepro.core.data.read import read_xc
    from xcrepro.core.data.write import write_xc
    from xcrepro.core.metrics.compare import compare
    from xcrepro.core.metrics.evaluate import evaluate
    from xcrepro.core.metrics.state import State
    from xcrepro.core.predictions import TopK
    from xcrepro.models.twin import twin
    from xcrepro.repro import published
    from xcrepro.repro.published.claims import claims
    from xcrepro.tools import diagnose, formats, scale
    from xcrepro.tools.reports.report import Report, report


if not TYPE_CHECKING:

    def __getattr__(name: str):
        if name not in WHERE:
            raise AttributeError(f"module 'xcrepro' has no attribute {name!r}")
        module = importlib.import_module(WHERE[name])
        value = getattr(module, name, module)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
