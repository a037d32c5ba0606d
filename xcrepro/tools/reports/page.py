"""What the notebook ``kit/your_predictions`` shows and writes, section by section."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from xcrepro.core.accumulators.block import KS
from xcrepro.core.metrics.evaluate import said_of_ties
from xcrepro.core.metrics.registry import METRICS, family
from xcrepro.core.version import __version__
from xcrepro.repro.drawing import figures
from xcrepro.tools import diagnose
from xcrepro.tools.formats.csv import without_formulas
from xcrepro.tools.reports import html
from xcrepro.tools.reports.given import Given
from xcrepro.tools.reports.grid import Grid, of_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "xcrepro report 1"
FILE = "report.json"
LIBRARIES = ("numpy", "scipy", "numba", "pandas", "matplotlib")


class Said(tuple):
    """Sentences, as people read them in a notebook."""

    def __repr__(self) -> str:
        return "\n".join(self)

    def _repr_html_(self) -> str:
        return "\n".join(f'<p class="said">{html.escape(text)}</p>' for text in self)


class Page:
    """The sections of one report: shown where there is a notebook, and written to the folder ``out`` if there is one."""

    def __init__(self, given: Given, out: str = "") -> None:
        self.given, self.out = given, Path(out) if out else None
        self.parts: dict[str, dict[str, object]] = {}
        self.tables: dict[str, pd.DataFrame] = {}

    def part(
        self,
        name: str,
        table: pd.DataFrame,
        *grids: Grid,
        said: Sequence[str] = (),
        figure: tuple[Figure, pd.DataFrame] | None = None,
    ) -> None:
        """A section: its tidy table, tables as people read them, sentences computed from it, its figure and what that shows."""
        said = [text for text in said if text]
        self.tables[name] = table
        self.write(f"csv/{name}.csv", table)
        if figure:
            drawn = figures.render(*figure, origin=self.given.origin, suffixes=(".svg", ".pdf"))
            picture = drawn[".svg"]
            for suffix in (".svg", ".pdf"):
                self.write(f"figures/{name}{suffix}", drawn[suffix])
            _show(picture, " ".join([" ".join(figure[0].get_suptitle().split()), *said]))
        show(*said)
        for grid in grids:
            self.write(f"latex/{grid.name}.tex", grid.latex(self.given.origin).encode())
            file = next((file for file in (f"csv/{grid.name}.csv", f"csv/{name}.csv") if self._has(file)), "")
            _show(dataclasses.replace(grid, file=file))
        # Last, so that a part that failed is not said to be there.
        self.parts[name] = {"said": said, "tables": [grid.name for grid in grids], "figure": figure is not None}

    def _has(self, file: str) -> bool:
        return self.out is not None and (self.out / file).is_file()

    def write(self, file: str, content: bytes | pd.DataFrame) -> None:
        """A file of the folder, if there is one."""
        if self.out is None:
            return
        (self.out / file).parent.mkdir(exist_ok=True)
        if isinstance(content, pd.DataFrame):
            if "train points" in content:
                content = content.assign(**{"train points": content["train points"].replace(-1, "not known")})
            without_formulas(content).to_csv(self.out / file, index=False, lineterminator="\n")
        else:
            (self.out / file).write_bytes(content)

    def end(self, options: dict[str, object], doubts: Sequence[str], notes: Sequence[str], command: str = "") -> None:
        """What the report was made from and with: shown, and kept beside it."""
        given = self.given
        found = {name for one in self.tables.values() if "metric" in one for name in one["metric"]}
        used = [METRICS[name] for name in (*METRICS, *sorted(filter(family, found))) if name in found]
        versions = {"xcrepro": __version__, "Python": platform.python_version()}
        versions |= {name: importlib.metadata.version(name) for name in LIBRARIES}
        truth, digest = diagnose.recognise(given.truth, given.dataset).text, given.digest()
        about = {"format": FORMAT, "title": given.title, "origin": given.origin, "models": given.models}
        about |= {"metrics": [metric.name for metric in used], "truth": truth, "digest": digest, "options": options}
        about |= {"versions": versions, "command": command, "notes": notes, "warnings": doubts, "parts": self.parts}
        self.write(FILE, (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode())
        rows = [(m.name, m.unit, m.better or "-", m.averages or "-", m.source) for m in used]
        defined = pd.DataFrame(rows, columns=["metric", "unit", "better", "mean over", "source"])
        _show(of_table("definitions", "The metrics; xcrepro.metrics has their definitions", defined))
        said = [f"Options: {', '.join(f'{key} = {value}' for key, value in options.items())}."]
        said += [f"Versions: {', '.join(f'{key} {value}' for key, value in versions.items())}."]
        said += [f"The truth is {truth}.", f"Input: SHA-256 {digest}.", *([f"Command: {command}"] if command else [])]
        show(*said)


def alignment(given: Given, ks: Sequence[int] = KS) -> list[str]:
    """What says that a model's predictions and the truth do not belong together (:func:`xcrepro.diagnose.check`), and what
    equal scores across one of the ``ks`` decide."""
    found = []
    for model, runs in given.runs.items():
        for seed, top in runs.items():
            name = model if len(runs) == 1 else f"{model}.seed{seed}"
            said = diagnose.check(given.truth, top, Y_train=given.train, exclude=given.exclude)
            found += [f"{name}: {one}" for one in (*said, said_of_ties(given.truth, top, ks)) if one]
    return found


def show(*said: str) -> None:
    """Sentences, if there are any."""
    if said:
        _show(Said(said))


def _show(what: object, alt: str = "") -> None:
    from IPython.display import display

    if isinstance(what, bytes):
        kind = "image/svg+xml"
        display({kind: what.decode(), "text/plain": alt}, raw=True, metadata={kind: {"alt": alt}})
    else:
        display(what)
