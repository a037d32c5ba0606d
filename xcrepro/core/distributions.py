"""The laws of statistics, rounded to ten significant digits: SciPy's differ beyond that from machine to machine.

Their series and fractions call the C library at every step, and 16 digits of a p-value are of no use to anybody.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special


def rounded(values) -> Any:
    """Ten significant digits of each value, the same wherever the values agree to some more; a float of a single number.

    >>> rounded([2 / 3, 1e-20 / 3, np.inf]).tolist()
    [0.6666666667, 3.333333333e-21, inf]
    """
    values = np.asarray(values, np.float64)
    found = np.array([float(f"{value:.9e}") for value in values.ravel().tolist()]).reshape(values.shape)
    return found if values.ndim else float(found)


def normal(z) -> Any:
    """The chance that a standard normal number is at most z."""
    return rounded(special.ndtr(z))


def normal_quantile(p) -> Any:
    """The z with ``normal(z) = p``."""
    return rounded(special.ndtri(p))


def student(dof, t) -> Any:
    """The chance that a number of Student's law is at most t."""
    return rounded(special.stdtr(dof, t))


def student_quantile(dof, p) -> Any:
    """The t with ``student(dof, t) = p``."""
    return rounded(special.stdtrit(dof, p))


def beta(a, b, x) -> Any:
    """The chance that a number of the beta law of a and b is at most x."""
    return rounded(special.betainc(a, b, x))
