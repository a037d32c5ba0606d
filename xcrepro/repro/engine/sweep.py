"""One item at every combination of some parameters: its tables in one tidy table, and their means over seeds.

Each run is kept under ``build/sweeps/<item>/<name>`` until something that it rests on changes, so a sweep can be interrupted.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.core import paths
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.drawing import tables
from xcrepro.repro.engine import items, manifest, processes, runner, stamps

if TYPE_CHECKING:
    import pandas as pd

SEED = "seed"
_STAMP = "done.json"


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What a sweep found, part -> table: all runs behind the parameters that differ, and the means over seeds if there
    are several."""

    folder: Path
    tables: dict[str, pd.DataFrame]
    means: dict[str, pd.DataFrame]
    outcomes: dict[str, str]

    @property
    def failures(self) -> dict[str, str]:
        """Run -> what went wrong."""
        return {name: said for name, said in self.outcomes.items() if said not in ("ok", "unchanged")}


def values_of(text: str, value) -> list:
    """The values of one parameter: ``a,b,c`` or, of whole numbers, ``0..9`` with both ends; of lists, ``["a", "b"], ["a"]``."""
    first, dots, last = text.partition("..")
    if dots and first.strip().lstrip("-").isdigit() and last.strip().lstrip("-").isdigit():
        low, high = int(first), int(last)
        if low > high:
            raise ArgumentError("-p", "must rise in a range", repr(text))
        return list(range(low, high + 1))
    # A comma within brackets is part of a value that is a list.
    return [value(part.strip()) for part in re.split(r",(?![^\[]*\])", text)]


def sweep(
    item: str,
    grid: Mapping[str, Sequence],
    *,
    engine: str = "local",
    scheduler: str | None = None,
    jobs: int | None = None,
    force: bool = False,
    over: str = SEED,
    confidence: float = 0.95,
) -> Sweep:
    """Run an item at every combination of ``grid`` (parameter -> values), a line for each; means are taken over ``over``."""
    root = paths.project_root()
    entries = manifest.load(root)
    names = manifest.find(entries, item)
    if len(names) != 1:
        raise ArgumentError("item", "must be one item", ", ".join(names), "a sweep each")
    entry = entries[names[0]]
    runs = _runs(entry, grid)
    home = root / "build" / "sweeps" / entry.id
    jobs_ = [_job(root, home / name, entry, values, force) for name, values in runs.items()]
    with runner.alone(root):
        results = runner.run_jobs(root, jobs_, engine, scheduler, jobs)
    outcomes = {name: results[name].why if results[name].bad else results[name].outcome for name in runs}
    done = {name: runs[name] for name, said in outcomes.items() if said in ("ok", "unchanged")}
    varied = [name for name, values in grid.items() if len(values) > 1] or list(grid)
    found = _gather(entry, home, done, varied)
    means = {}
    if over in varied:
        means = {part: mean_over(table, over, varied, confidence) for part, table in found.items()}
    for part, table in found.items():
        for suffix, content in (("", table), ("-means", means.get(part))):
            if content is not None and len(content):
                with paths.atomic_path(home / f"{part or 'table'}{suffix}.csv") as temporary:
                    temporary.write_text(tables.csv_text(content), encoding="utf-8")
    return Sweep(home, found, means, outcomes)


def _runs(entry: manifest.Entry, grid: Mapping[str, Sequence]) -> dict[str, dict]:
    """Name -> all parameters, for each combination; everything is checked."""
    runs = {}
    for name, values in grid.items():
        if not values:
            raise ArgumentError(f"grid[{name!r}]", "must be one value or more", "none")
    for combination in itertools.product(*grid.values()):
        values = runner.with_own(entry, dict(zip(grid, combination, strict=True)))
        items.check_parameters(entry, values)
        name = items.own_name(entry, values)
        if name in runs:
            raise ArgumentError("grid", "must hold each combination once", name)
        runs[name] = values
    return runs


def _job(root: Path, home: Path, entry: manifest.Entry, values: dict, force: bool) -> processes.Job:
    figures = home / "figures"
    variables = {"XCREPRO_FIGURES": stamps.short(root, figures), "XCREPRO_OWN": "1"}
    about = {"stamp": home / _STAMP, "name": home.name, "keeps": figures, "variables": variables}
    return processes.Job(entry, values, False, True, force, home / f"{entry.id.replace('/', '-')}.ipynb", **about)


# ---------------------------------------------------------------------------------------------- tables


def _gather(entry: manifest.Entry, home: Path, runs: Mapping[str, dict], varied: list[str]) -> dict[str, pd.DataFrame]:
    """Part -> the rows of every run's table, behind its parameters."""
    import pandas as pd

    found: dict[str, list] = {}
    for name, values in runs.items():
        stem = home / name / "figures" / entry.id
        for path in sorted(stem.parent.glob(f"{stem.name}*.csv")):
            part = path.stem.removeprefix(stem.name).removeprefix("-")
            table = pd.read_csv(path, keep_default_na=False, na_values=["", "nan", "NaN"])
            table = table.drop(columns=tables.ORIGIN, errors="ignore")
            for place, parameter in enumerate(varied):
                label = parameter if parameter not in table.columns else f"{parameter} (swept)"
                table.insert(place, label, _plain(values[parameter]))
            found.setdefault(part, []).append(table)
    return {part: pd.concat(several, ignore_index=True) for part, several in found.items()}


def _plain(value):
    return "+".join(map(str, value)) if isinstance(value, list) else value


def unmoved(means: pd.DataFrame, over: str) -> str:
    """Which means have an interval of width 0, because no value of the parameter changed them; empty where all moved."""
    several = means[means["n"] > 1]
    still = several[several["low"] == several["high"]]
    if not len(still):
        return ""
    columns = ", ".join(dict.fromkeys(still["column"]))
    what = f"any of {len(several)} means" if len(still) == len(several) else f"{len(still)} of {len(several)} means"
    return (
        f"{over} changes nothing in {what} ({columns}): their intervals have no width because all runs gave the same number, "
        "which says nothing of how certain it is."
    )


def mean_over(table: pd.DataFrame, over: str, varied: Sequence[str] = (), confidence: float = 0.95) -> pd.DataFrame:
    """Means of a table's float columns over a parameter, with t intervals."""
    import numpy as np
    import pandas as pd
    from scipy import special

    label = over if over in table.columns else f"{over} (swept)"
    values = [name for name in table.columns if table[name].dtype.kind == "f" and name not in (*varied, label)]
    keys = [name for name in table.columns if name not in (*values, label)]
    rows = []
    groups = table.groupby(keys, sort=False, dropna=False) if keys else [((), table)]
    for key, group in groups:
        for name in values:
            given = group[name].dropna().to_numpy()
            n, mean = given.size, float(given.mean()) if given.size else math.nan
            half = math.nan
            if n > 1 and (given == given[0]).all():
                mean, half = float(given[0]), 0.0
            elif n > 1:
                half = float(special.stdtrit(n - 1, 0.5 + confidence / 2) * np.std(given, ddof=1) / math.sqrt(n))
            rows.append((*(key if isinstance(key, tuple) else (key,)), name, n, mean, mean - half, mean + half))
    return pd.DataFrame(rows, columns=[*keys, "column", "n", "mean", "low", "high"])
