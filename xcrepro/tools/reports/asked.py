"""What a report is asked for: one object, the options of :func:`xcrepro.report`, checked."""

from __future__ import annotations

import functools
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import pandas as pd

from xcrepro.core.arguments import cut_offs, one_of, real_number, whole_number
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.metrics import extra
from xcrepro.core.metrics.registry import Metric
from xcrepro.tools.reports import compute
from xcrepro.tools.reports.given import Given


@dataclass(frozen=True, eq=False)
class Asked:
    """What to measure of what is given, and what to say beside it: the options of :func:`xcrepro.report`, checked.

    ``others`` are titles and metrics of reports on other data, ``warnings`` texts.
    """

    given: Given
    ks: Sequence[int] = (1, 3, 5)
    metrics: Sequence[str] = ()
    per_point: Sequence[str] = ()
    calibrator: str = "isotonic"
    price: bool = True
    n_resamples: int | None = None
    seed: int = 0
    confidence_level: float = 0.95
    others: Sequence[tuple[str, pd.DataFrame]] = ()
    warnings: Sequence[object] = ()
    command: str = ""
    about: Mapping[str, Mapping] | str | os.PathLike = field(default_factory=dict)
    extra: Mapping[str, Callable] | None = None

    def __post_init__(self) -> None:
        metrics = [self.metrics] if isinstance(self.metrics, str) else list(self.metrics)
        checked = {
            "ks": _cut_offs(self.ks, self.given),
            "metrics": metrics,
            "per_point": [one_of("per_point", name, compute.over_points()) for name in self.per_point],
            "calibrator": one_of("calibrator", self.calibrator, list(compute.CALIBRATORS)),
            "price": bool(self.price),
            "n_resamples": None if self.n_resamples is None else whole_number("n_resamples", self.n_resamples, 20),
            "seed": whole_number("seed", self.seed),
            "confidence_level": real_number("confidence_level", self.confidence_level, above=0, below=1),
            "others": list(self.others),
            "about": _about(self.about, self.given.models),
            "warnings": [str(getattr(one, "message", one)) for one in self.warnings],
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        wanted = compute.compared(self.given, self.ks, self.metrics, self.own)
        if self.others:
            rows = [(model, *one, 0.0) for model in self.given.models for one in wanted]
            own = pd.DataFrame(rows, columns=["model", "metric", "k", "value"])
            compute.ranks_over({self.given.title: own}, self.others, wanted)  # refuses what cannot be ranked together

    @functools.cached_property
    def own(self) -> dict[str, Metric]:
        """The metrics of the caller's own, by name."""
        return extra.metrics_of(self.extra, self.given.truth, self.given.first(self.given.models[0]))


OPTIONS = frozenset(one.name for one in fields(Asked)) - {"given"}
"""The options of :func:`xcrepro.report` that are not about how the input is read."""


def _about(given, models: Sequence[str]) -> dict[str, dict]:
    """What is said of each model: a mapping, or the file that has it."""
    if isinstance(given, str | os.PathLike):
        try:
            given = tomllib.loads(Path(given).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataMissing(f"{os.fspath(given)}: no such file") from None
        except ValueError as error:
            raise DataError(given, str(error), 'TOML, with a table for each model: ["my model"]') from error
    for model, said in given.items():
        one_of("about", model, models)
        plain = isinstance(said, Mapping) and all(isinstance(each, str | int | float) for each in said.values())
        if not plain:
            do = 'for example {"my model": {"training seconds": 4000, "hardware": "one GPU"}}'
            raise ArgumentError("about", "must have names with numbers or texts for each model", f"{model}: {said}", do)
    return {model: dict(given[model]) for model in models if model in given}


def _cut_offs(ks, given: Given) -> list[int]:
    ks = sorted(cut_offs(ks).tolist())
    for model, k in ((model, top.k) for model, runs in given.runs.items() for top in runs.values()):
        if k < ks[-1]:
            raise ArgumentError("ks", f"must not exceed the {k} places that {model!r} holds", ks[-1])
    return ks
