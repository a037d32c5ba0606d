"""One item at every combination of some parameters: its tables in one tidy table, and their means over seeds.

Each combination is a run of its own, here or on a Dask cluster, with its executed notebook and its tables under
``build/sweeps/<item>/<name>``. A run that has ended is kept until its notebook, parameters, sources, inputs or a version
change, so that a sweep that was interrupted goes on.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro import paths
from xcrepro.errors import ArgumentError
from xcrepro.repro import children, items, manifest, runner, stamps, tables

if TYPE_CHECKING:
    import pandas as pd

SEED = "seed"
_STAMP = "done.json"


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What a sweep came to.

    Attributes
    ----------
    folder : Path
        Where ``<part>.csv``, all runs, and ``<part>-means.csv`` stand; the main table is called ``table``.
    tables : dict of str to DataFrame
        Part -> the rows of all runs, behind the parameters that differ.
    means : dict of str to DataFrame
        Part -> over seeds: the columns that are no floats, ``column``, ``n``, ``mean``, ``low``, ``high``. Empty where there
        was one seed.
    outcomes : dict of str to str
        Run -> ``ok``, ``unchanged``, or what went wrong.
    """

    folder: Path
    tables: dict[str, pd.DataFrame]
    means: dict[str, pd.DataFrame]
    outcomes: dict[str, str]

    @property
    def failures(self) -> dict[str, str]:
        """Run -> what went wrong."""
        return {name: said for name, said in self.outcomes.items() if said not in ("ok", "unchanged")}


def values_of(text: str, value) -> list:
    """The values of one parameter: ``a,b,c`` or, of whole numbers, ``0..9``, both ends taken.

    >>> values_of("0..3", int), values_of("a,b", str)
    ([0, 1, 2, 3], ['a', 'b'])
    >>> values_of('["PLT", "FastXML"], ["PLT"]', str)  # of a parameter that is a list
    ['["PLT", "FastXML"]', '["PLT"]']
    """
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
    size: str = "small",
    engine: str = "local",
    scheduler: str | None = None,
    jobs: int | None = None,
    force: bool = False,
    over: str = SEED,
    confidence: float = 0.95,
) -> Sweep:
    """Run an item at every combination; print a line for each run.

    Parameters
    ----------
    item : str
        Of the manifest.
    grid : mapping of str to sequence
        Parameter -> its values.
    size, engine, scheduler, jobs
        As for :func:`xcrepro.repro.runner.run`.
    force : bool
        Also run what is unchanged.
    over : str
        The parameter over which means are taken, where it is one of ``grid`` and has more than one value.
    confidence : float
        Of their t intervals.

    Returns
    -------
    Sweep
        A run that failed is in :attr:`Sweep.failures`, the others are in the tables.

    Raises
    ------
    ArgumentError
        For an unknown item or parameter, a value of another type, no values; before anything runs.
    """
    root = paths.project_root()
    entries = manifest.load(root)
    names = manifest.find(entries, item)
    if len(names) != 1:
        raise ArgumentError("item", "must be one item", ", ".join(names), "a sweep each")
    entry = entries[names[0]]
    official = entry.official(size)
    if official is None:
        raise ArgumentError("size", f"must be one that {entry.id} offers", repr(size))
    runs = _runs(entry, official, grid)
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


def _runs(entry: manifest.Entry, official: dict, grid: Mapping[str, Sequence]) -> dict[str, dict]:
    """Name -> all parameters, for each combination; everything is checked."""
    runs = {}
    for name, values in grid.items():
        if not values:
            raise ArgumentError(f"grid[{name!r}]", "must be one value or more", "none")
    for combination in itertools.product(*grid.values()):
        values = runner.with_own(entry, official, dict(zip(grid, combination, strict=True)))
        items.check_parameters(entry, values)
        name = items.own_name(entry, values)
        if name in runs:
            raise ArgumentError("grid", "must hold each combination once", name)
        runs[name] = values
    return runs


def _job(root: Path, home: Path, entry: manifest.Entry, values: dict, force: bool) -> children.Job:
    figures = home / "figures"
    variables = {"XCREPRO_FIGURES": stamps.short(root, figures), "XCREPRO_OWN": "1"}
    about = {"stamp": home / _STAMP, "name": home.name, "keeps": figures, "variables": variables}
    return children.Job(entry, values, False, True, force, home / f"{entry.id.replace('/', '-')}.ipynb", **about)


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
    """Which means have an interval of width 0, because no value of the parameter changed them; empty where all moved.

    >>> import pandas as pd
    >>> runs = pd.DataFrame({"seed": [0, 1, 0, 1], "k": [1, 1, 3, 3], "P": [0.5, 0.7, 0.4, 0.4]})
    >>> unmoved(mean_over(runs, "seed"), "seed")[:42]
    'seed changes nothing in 1 of 2 means (P): '
    """
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
    """Means of a table's float columns over a parameter, with t intervals.

    >>> import pandas as pd
    >>> runs = pd.DataFrame({"seed": [0, 1, 0, 1], "k": [1, 1, 3, 3], "P": [0.5, 0.7, 0.4, 0.4]})
    >>> mean_over(runs, "seed").round(2)
       k column  n  mean   low  high
    0  1      P  2   0.6 -0.67  1.87
    1  3      P  2   0.4  0.40  0.40
    """
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
