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
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro import paths
from xcrepro.errors import ArgumentError, XCError, system_fault
from xcrepro.repro import children, items, manifest, notebooks, runner, stamps, tables

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

    Parameters
    ----------
    text : str
    value : callable
        What makes a value of a text.

    Returns
    -------
    list

    Examples
    --------
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
    waiting, outcomes = list(runs), dict.fromkeys(runs, "")
    versions = stamps.versions()
    with runner.alone(root), children.places(engine, scheduler, jobs, len(runs)) as (at_once, threads_each, start):
        environment = children.environment_of(root, threads_each)

        def start_next() -> children.Child | None:
            while waiting:
                name = waiting.pop(0)
                fingerprint = stamps.fingerprint(entry, runs[name], versions, {})
                why = stamps.reason(entry, stamps.read_at(home / name / _STAMP), fingerprint)
                if why is None and not force:
                    _say(outcomes, name, "unchanged")
                    continue
                try:
                    return _start(
                        root, home / name, entry, runs[name], fingerprint, why or "asked for", environment, start
                    )
                except OSError as error:
                    _say(outcomes, name, system_fault(error))
            return None

        for child in children.finished(start_next, at_once):
            name = child.executed.parent.name
            try:
                fault = child.fault()
                if not fault:
                    stamp = stamps.made(entry, child.fingerprint, child.notes().get("input", []), [])
                    stamps.write_at(home / name / _STAMP, stamp)
            except (OSError, XCError) as error:
                fault = system_fault(error) if isinstance(error, OSError) else str(error)
            _say(outcomes, name, fault or "ok", time.monotonic() - child.began, child.why)
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


def _say(outcomes: dict[str, str], name: str, said: str, seconds: float = 0.0, why: str = "") -> None:
    outcomes[name] = said
    number = sum(bool(outcome) for outcome in outcomes.values())
    word = said if said in ("ok", "unchanged") else "failed"
    reason = f"  ({why})" if why and word == "ok" else ""
    print(f"[{number:>{len(str(len(outcomes)))}}/{len(outcomes)}] {name}  {word} {seconds:.1f} s{reason}", flush=True)


def _runs(entry: manifest.Entry, official: dict, grid: Mapping[str, Sequence]) -> dict[str, dict]:
    """Name -> all parameters, for each combination; everything is checked."""
    defaults = entry.official("small")
    runs = {}
    if "size" in grid:
        raise ArgumentError("grid", "must not hold size", "size", "it has its own argument")
    for name, values in grid.items():
        if not values:
            raise ArgumentError(f"grid[{name!r}]", "must be one value or more", "none")
    for combination in itertools.product(*grid.values()):
        own = dict(zip(grid, combination, strict=True))
        notebooks.check_values(entry.notebook.name, defaults, own)
        values = {**official, **{key: notebooks.plain(value) for key, value in own.items()}}
        items.check_parameters(entry, values)
        name = items.own_name(entry, values)
        if name in runs:
            raise ArgumentError("grid", "must hold each combination once", name)
        runs[name] = values
    return runs


def _start(root, home: Path, entry, values, fingerprint: dict, why: str, environment: dict, start) -> children.Child:
    (home / _STAMP).unlink(missing_ok=True)
    figures = home / "figures"
    for old in figures.rglob("*.*"):
        old.unlink()
    job = children.Job(entry, values, official=False, inject=True, force=True, label=f"sweeps/{entry.id}/{home.name}")
    variables = {**environment, "XCREPRO_FIGURES": stamps.short(root, figures), "XCREPRO_OWN": "1"}
    executed = home / f"{entry.id.replace('/', '-')}.ipynb"
    return children.Child(root, job, fingerprint, why, executed, variables, start)


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

    Parameters
    ----------
    means : DataFrame
        From :func:`mean_over`.
    over : str

    Returns
    -------
    str

    Examples
    --------
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

    Parameters
    ----------
    table : DataFrame
        A row a run and whatever else it says; columns of floats are values, all others say which they are.
    over : str
        The column that is averaged over.
    varied : sequence of str
        Columns that say which, even where they hold floats.
    confidence : float

    Returns
    -------
    DataFrame
        The other columns, ``column``, ``n``, ``mean``, ``low``, ``high``; the ends are NaN of one run. Missing values are left
        out, and n says how many were there.

    Examples
    --------
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
