"""How nbval compares: every committed output has to come out equal.

nbval runs the cells; what it got and what is committed are brought into the form in which outputs are committed (no pictures,
no stderr, no timings) and compared by :mod:`xcrepro.repro.engine.compare_outputs`. Where the installed versions promise no
equality, a difference is a warning that says its size. Cells tagged ``nbval-ignore-output`` are only run. Items that the
manifest marks as long are left out unless ``$XCREPRO_LONG`` is set.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import nbval.kernel
from nbval.plugin import IPyNbCell

from xcrepro.repro.engine import compare_outputs, manifest, tidy

_HERE = Path(__file__).resolve().parent
_ENTRIES = manifest.load(_HERE.parent).values()
# The first runs all the others; those that take long run where XCREPRO_LONG is set.
collect_ignore = ["00_regenerate_all.ipynb"]
if not os.environ.get("XCREPRO_LONG"):
    collect_ignore += [f"{entry.id}.ipynb" for entry in _ENTRIES if entry.long]


def _compare(cell: IPyNbCell, test: list[dict], ref: list[dict], skip_compare=None) -> bool:
    differs = compare_outputs.difference(tidy.output_text(ref), tidy.output_text(test))
    if differs and compare_outputs.elsewhere():
        warnings.warn(f"{cell.path}: {differs}", stacklevel=1)
        return True
    cell.comparison_traceback = [f"the committed output says something else: {differs}"] if differs else []
    return not differs


_start = nbval.kernel.start_new_kernel
_ATTEMPTS = 3


def _start_again(*args, **named):
    """A kernel that does not answer is started anew, as the runner does: kernels choose their ports before they bind them,
    so that two that start together can meet on one, and on a busy machine an answer takes more than nbval's minute."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _start(*args, **named)
        except RuntimeError:
            if attempt == _ATTEMPTS:
                raise


# nbval has no hook for how outputs are compared, nor for how kernels are started.
IPyNbCell.compare_outputs = _compare
nbval.kernel.start_new_kernel = _start_again
