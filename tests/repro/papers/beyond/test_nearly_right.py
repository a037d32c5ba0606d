"""beyond/nearly_right: what its notebook defines, held to numbers known by hand."""

from __future__ import annotations

import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from tests import notebook
from xcrepro.core import paths


def test_what_the_notebook_computes():
    """A near miss, a miss and a hit: of 2 + 1 + 1 nodes on either side 2 are in both."""
    defined = notebook.defined(paths.project_root() / "notebooks/beyond/nearly_right.ipynb")
    names = ["France -- Travel", "France -- Customs", "Spain", "Love"]
    above = xc.Hierarchy.from_paths(names).above
    Y = csr_matrix([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    top = xc.TopK.from_ids([[1, 2], [3, 2], [3, 0]], n_labels=4)
    right, near = defined["kinds"](Y, top, above)
    assert (right.tolist(), near.tolist()) == ([False, False, True], [True, False, False])
    assert defined["hierarchical_f1"](Y, top, 1, above) == pytest.approx(100 * 2 * 2 / (4 + 4))
