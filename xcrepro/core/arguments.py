"""The rules that arguments share, each in one place: what is taken, what is refused, and how the error reads.

A function returns the argument in its plain type, or raises :class:`xcrepro.errors.ArgumentError`, which names it.
"""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from xcrepro.core.errors import ArgumentError

if TYPE_CHECKING:  # NumPy only where an array comes: a command that lists does not wait for it
    import numpy as np


def whole_number(name: str, value: Any, at_least: int = 0, at_most: int | None = None, do: str = "") -> int:
    """An integer, NumPy's included, within bounds that are both allowed; ``do`` ends the error. A bool is none, nor is 3.0."""
    most = math.inf if at_most is None else at_most
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not at_least <= int(value) <= most:
        bounds = f", {at_least} or more" if at_most is None else f" from {at_least} to {at_most:,}"
        raise ArgumentError(name, f"must be a whole number{bounds}", repr(value), do)
    return int(value)


def real_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    finite: bool = True,
    do: str = "",
) -> float:
    """A real number, NumPy's included, within bounds. A bool is none, NaN is never taken, infinity only if not ``finite``."""
    inside = (
        not isinstance(value, bool)
        and isinstance(value, numbers.Real)
        and (math.isfinite(value) if finite else not math.isnan(value))
        and (above is None or float(value) > above)
        and (at_least is None or float(value) >= at_least)
        and (below is None or float(value) < below)
        and (at_most is None or float(value) <= at_most)
    )
    if not inside:
        named = {"above": above, "at least": at_least, "below": below, "at most": at_most}
        bounds = " and ".join(f"{word} {bound}" for word, bound in named.items() if bound is not None)
        kind = "a finite number" if finite else "a number (infinity allowed)"
        raise ArgumentError(name, f"must be {kind}" + (f", {bounds}" if bounds else ""), repr(value), do)
    return float(value)


def one_of(name: str, value: Any, choices: Collection, do: str = "") -> Any:
    """One of several names (None may be among them), as it came; the error names the nearest one."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        hint = did_you_mean(value, choices, 1) or do
        raise ArgumentError(name, f"must be one of {', '.join(map(repr, choices))}", repr(value), hint)
    return value


def some_of(name: str, values: str | Iterable[str], choices: Collection[str]) -> list[str]:
    """One or more of several names, as a list; a single name may be given without one."""
    given = [values] if isinstance(values, str) else list(values)
    unknown = [value for value in given if value not in choices]
    if unknown or not given:
        hints = filter(None, (did_you_mean(value, choices, 1) for value in unknown))
        raise ArgumentError(
            name,
            "must hold known names, one or more",
            unknown or "none",
            " ".join([*hints, f"known: {', '.join(choices)}"]),
        )
    return given


def did_you_mean(value: Any, choices: Iterable | Mapping[str, str], most: int = 3, cutoff: float = 0.4) -> str:
    """``"did you mean 'a' or 'b'?"`` for choices like ``value``, or empty. A mapping says of each spelling what is shown."""
    shown = choices if isinstance(choices, Mapping) else {name: name for name in choices if isinstance(name, str)}
    near = difflib.get_close_matches(value, shown, most, cutoff) if isinstance(value, str) else []
    names = dict.fromkeys(shown[spelling] for spelling in near)
    return f"did you mean {' or '.join(map(repr, names))}?" if names else ""


def cut_offs(ks: Any) -> np.ndarray:
    """The ks of a metric at k, int64 in the order given: one or more whole numbers, 1 or more, none twice."""
    import numpy as np

    values = np.atleast_1d(np.asarray(ks))
    if values.ndim != 1 or values.size == 0 or values.dtype.kind not in "iu" or values.min() < 1:
        raise ArgumentError("ks", "must be whole numbers, 1 or more", repr(ks))
    if np.unique(values).size != values.size:
        raise ArgumentError("ks", "must not repeat a k", repr(ks))
    return values.astype(np.int64)


def label_values(
    name: str, values: Any, n_labels: int | None = None, *, zero: bool = True, at_most: float = math.inf
) -> np.ndarray:
    """A number (L,) for each label, such as a weight: float64, finite, 0 or more. The error names the first wrong label."""
    import numpy as np

    given = np.ascontiguousarray(values, np.float64)
    if given.ndim != 1 or (given.size == 0 if n_labels is None else given.size != n_labels):
        each = "each label" if n_labels is None else f"each of the {n_labels} labels"
        raise ArgumentError(name, f"must hold one value for {each}", f"an array of shape {given.shape}")
    good = np.isfinite(given) & (given >= 0 if zero else given > 0) & (given <= at_most)
    if not good.all():
        label = int(np.argmin(good))
        rule = "must be finite, 0 or more" if zero else "must be positive and finite"
        rule += "" if at_most == math.inf else f", at most {at_most:g}"
        raise ArgumentError(name, rule, f"{given[label]} for label {label}")
    return given


def check_rows(n_rows: int, name: str = "Y") -> None:
    """Refuse what has no rows to take a mean of."""
    if n_rows == 0:
        raise ArgumentError(name, "must have at least one row", "no rows")


def check_places(name: str, k: int, kept: int) -> None:
    """Refuse a k beyond the places that a TopK kept."""
    if k > kept:
        do = "keep more places when making the TopK"
        raise ArgumentError(name, f"must not exceed the {kept} places top holds", f"k = {k}", do)
