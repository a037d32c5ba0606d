"""schultheis23/frontier: what its notebook defines, held to numbers known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests import notebook
from xcrepro.core import paths


def test_what_the_notebook_computes():
    defined = notebook.defined(paths.project_root() / "notebooks/schultheis23/frontier.ipynb")
    eta = np.array([[0.5, 0.25], [0.5, 0.75]])
    assert defined["utility"](eta, [[0], [0]]) == pytest.approx((2 * 1.0 / (2 + 1.0) + 0) / 2)
    assert defined["utility"](eta, [[0], [1]]) == pytest.approx((2 * 0.5 / (1 + 1.0) + 2 * 0.75 / (1 + 1.0)) / 2)
    found = defined["small_instance"](3)
    assert found["never falls"]
    assert found["no point alone"]
    assert 0.8 < found["ratio"] <= 1 + 1e-12
    assert defined["mix"](0.25) == "0.75 P + 0.25 macro-F1"
