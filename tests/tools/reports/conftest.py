"""A small dataset with every kind of label, predictions of its points, and its report: the notebook, run once."""

from __future__ import annotations

import contextlib
import io

import nbformat
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from xcrepro import TopK
from xcrepro.core import paths
from xcrepro.tools.reports import report as reports


class Small:
    """120 points and 30 labels of falling frequency; a good and a worse model with probabilities."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        chance = rng.random((120, 30)) * np.linspace(0.5, 0.02, 30)
        self.Y = csr_matrix((rng.random((120, 30)) < chance).astype(np.float32))
        self.train = csr_matrix((rng.random((400, 30)) < np.linspace(0.4, 0.001, 30)).astype(np.float32))
        self.good = TopK.from_scores(chance, 10)
        self.bad = TopK.from_scores(chance * rng.random((120, 30)), 10)
        self.tops = {"good": self.good, "bad": self.bad}

    def drawn(self, seed: int) -> TopK:
        rng = np.random.default_rng(seed)
        return TopK.from_scores(rng.random((120, 30)) * np.linspace(0.9, 0.1, 30), 10)


@pytest.fixture(scope="package")
def small() -> Small:
    return Small()


@pytest.fixture(scope="package")
def made(small):
    import xcrepro as xc

    return xc.report(small.Y, small.tops, train_truth=small.train, title="Small", samples=60, per_point=["nDCG"])


def run_here(values, home):
    """The notebook's cells, run in this process: no kernel has to start."""
    notebook, names, shown = reports.for_readers(paths.committed(reports.NOTEBOOK)), {}, []

    def show(what, raw=False, metadata=None, **_) -> None:
        data = what if raw else {"text/html": what._repr_html_()}
        # Nbformat's own function compares each output with its schema, which takes longer than most cells.
        shown.append(nbformat.from_dict({"output_type": "display_data", "data": data, "metadata": metadata or {}}))

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr("IPython.display.display", show)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                shown.clear()
                fault = []
                try:
                    exec(compile(cell.source, cell.id, "exec"), names)
                except Exception as error:
                    if "raises-exception" not in cell.metadata.get("tags", []):
                        raise
                    words = {"ename": type(error).__name__, "evalue": str(error), "traceback": []}
                    fault.append(nbformat.v4.new_output("error", **words))
                cell.outputs = [*shown, *fault]
                if "parameters" in cell.metadata.get("tags", []):
                    names |= values
    return notebook


@pytest.fixture
def here(monkeypatch) -> None:
    monkeypatch.setattr(reports, "execute", run_here)


@pytest.fixture
def no_figures(here, monkeypatch) -> None:
    """Where a test is about something else: to draw takes longest. What is drawn is held to its table all the same."""
    from xcrepro.repro.drawing import figures

    def held(fig, table, **_) -> dict[str, bytes]:
        figures.held(fig, table)
        return {".svg": b"<svg></svg>", ".pdf": b"%PDF"}

    monkeypatch.setattr(figures, "render", held)
