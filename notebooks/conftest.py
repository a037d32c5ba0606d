"""How nbval compares: every committed output, words exactly and numbers within the item's tolerance.

nbval runs the cells; what it got and what is committed are brought into the form in which outputs are committed (no pictures,
no stderr, no timings) and compared by :mod:`xcrepro.repro.outputs`. Cells tagged ``nbval-ignore-output`` are run alone.
"""

from __future__ import annotations

from pathlib import Path

from nbval.plugin import IPyNbCell

from xcrepro.repro import golden, manifest, outputs, tidy

# It runs all the others.
collect_ignore = ["00_regenerate_all.ipynb"]
_HERE = Path(__file__).resolve().parent
_TOLERANCE = {entry.notebook.resolve(): entry.tolerance for entry in manifest.load(_HERE.parent).values()}


def _compare(cell: IPyNbCell, test: list[dict], ref: list[dict], skip_compare=None) -> bool:
    rtol = _TOLERANCE.get(Path(cell.path).resolve()) or golden.RTOL
    said = outputs.cell_difference(tidy.outputs(ref), tidy.outputs(test), rtol)
    cell.comparison_traceback = [f"the committed output says something else: {said}"] if said else []
    return not said


# nbval has no hook for how outputs are compared.
IPyNbCell.compare_outputs = _compare
