"""The tables behind a report, each made when a part of it first asks."""

from __future__ import annotations

from functools import cached_property

import pandas as pd

from xcrepro.core.metrics.evaluate import said_of_ties
from xcrepro.repro.drawing import looks
from xcrepro.tools import diagnose
from xcrepro.tools.reports import compute, sentences
from xcrepro.tools.reports.asked import Asked


class Measured:
    """What is asked of what is given, and all that is computed of it."""

    def __init__(self, asked: Asked) -> None:
        self.asked, self.given = asked, asked.given
        self.ks, self.k = list(asked.ks), max(asked.ks)
        self.wanted = compute.compared(self.given, self.ks, asked.metrics, asked.own)
        n_resamples = asked.n_resamples or (1000 if self.given.truth.n_rows <= compute.LARGE else 200)
        self.drawn = {"n_resamples": n_resamples, "seed": asked.seed, "confidence_level": asked.confidence_level}
        self.few = self.drawn | {"n_resamples": min(n_resamples, 300)}  # more would take longest and tell no more
        self.look = looks.distinct(self.given.models)
        about = self.given, self.ks, asked.metrics, asked.extra, asked.own
        self.values, self.pairs = compute.metrics_and_pairs(*about, **self.drawn)
        self.alive = compute.alive_of(self.given)
        self.percent = [one for one in self.wanted if sentences.unit(one[0]) == "%"]

    @cached_property
    def ranked(self) -> list[str]:
        """The models by the first metric that they are compared in, the best first; who predicts nothing is last."""
        rows, rising = self.rows(*self.wanted[0]), sentences.is_lower(self.wanted[0][0])
        rows = rows.sort_values("value", ascending=rising, kind="stable")
        return sorted(rows["model"], key=lambda model: model not in self.alive)

    @property
    def leader(self) -> str:
        return self.ranked[0]

    @property
    def scored(self) -> str:
        """The best of the models whose scores can be probabilities."""
        return next(model for model in self.ranked if model in self.given.with_probabilities)

    def shown(self, table: pd.DataFrame) -> pd.DataFrame:
        """Of a table what figures show: the best models."""
        return table[table["model"].isin(self.ranked[: compute.MANY])]

    def rows(self, metric: str, k: int) -> pd.DataFrame:
        """The values of a metric at k, a row each model."""
        at = (self.values["metric"] == metric) & (self.values["k"] == k)
        return self.values[at].set_index("model", drop=False).rename_axis(None)

    def ece(self, state: str) -> float:
        """ECE at the last k of the best model that has it, before or after calibration; NaN where there is none."""
        at = (self.errors[["metric", "k", "model", "state"]] == ["ECE", self.k, self.scored, state]).all(axis=1)
        return float(self.errors.loc[at, "value"].max())

    @cached_property
    def couples(self) -> list[tuple[str, str]]:
        return compute.couples_of(self.given, self.leader)

    @cached_property
    def bands(self) -> pd.DataFrame:
        return compute.bands(self.given, self.k)

    @cached_property
    def _calibration(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        return compute.calibration(self.given, self.ks, self.asked.calibrator, **self.few)

    @property
    def errors(self) -> pd.DataFrame:
        return self._calibration[0]

    @property
    def diagrams(self) -> pd.DataFrame:
        return self._calibration[1]

    @cached_property
    def prices(self) -> pd.DataFrame:
        return compute.price(self.given, self.k, **self.few) if self.asked.price else pd.DataFrame()

    @cached_property
    def labels(self) -> pd.DataFrame:
        return compute.by_label(self.given, self.k)

    @cached_property
    def points(self) -> pd.DataFrame:
        return compute.by_point(self.given, self.k, self.asked.per_point)

    @cached_property
    def doubts(self) -> list[str]:
        """Signs that predictions and truth do not belong together, and what equal scores decide, of the best model first."""
        given, found = self.given, []
        for model in self.ranked:
            runs = given.runs[model]
            for seed, top in runs.items():
                name = model if len(runs) == 1 else f"{model}.seed{seed}"
                said = diagnose.check(given.truth, top, Y_train=given.train, exclude=given.exclude)
                found += [f"{name}: {one}" for one in (*said, said_of_ties(given.truth, top, self.ks)) if one]
        return found

    @cached_property
    def recognised(self) -> diagnose.Recognised:
        return diagnose.recognise(self.given.truth, self.given.dataset)

    @cached_property
    def first_look(self) -> list[diagnose.Finding]:
        about = diagnose.of_dataset(self.given.dataset)
        about |= {"texts": self.given.texts, "label_names": self.given.label_names}
        return diagnose.first_look(self.given.truth, Y_train=self.given.train, **about)
