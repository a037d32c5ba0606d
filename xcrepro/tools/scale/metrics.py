"""The metrics of blocks that no process holds all of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.core.accumulators.block import KS
from xcrepro.core.metrics.state import State
from xcrepro.tools.scale import engines, fold

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

Blocks = str | os.PathLike | Iterable[str | os.PathLike | Callable] | Mapping[str, str | os.PathLike | Callable]


def state(
    blocks: Blocks,
    ks=KS,
    inverse_propensity=None,
    label_counts=None,
    *,
    metrics=None,
    engine: str = "serial",
    client: Client | str | None = None,
    workers: int | None = None,
    resume: str | os.PathLike | None = None,
    allow_repeats: bool = False,
    progress: bool = False,
    **options,
) -> State:
    """One :class:`xcrepro.State` of all blocks: what :func:`evaluate` reads its table from, intervals and calibration too.

    Parameters
    ----------
    blocks, ks, inverse_propensity, label_counts, metrics, engine, client, workers, resume, allow_repeats, progress
        As for :func:`evaluate`.
    **options
        Of :class:`xcrepro.State`: ``samples``, ``bins``, ``beta``, ...

    Returns
    -------
    State

    Raises
    ------
    ArgumentError, BlocksFailed, XCError
        As :func:`evaluate` says.
    """
    engines.check(engine, client, workers)
    sources = fold.sources(blocks, allow_repeats, resume is not None)
    empty = State(ks, metrics, inverse_propensity, label_counts, allow_repeats=allow_repeats, **options)
    if resume is not None:
        Path(resume).mkdir(parents=True, exist_ok=True)
        resume = os.path.abspath(resume)
    folding = fold.Folding(empty, resume, allow_repeats)
    with fold.progress(len(sources), progress) as told:
        return engines.run(engine, folding, sources, told, client, workers).state


def evaluate(blocks: Blocks, ks=KS, inverse_propensity=None, label_counts=None, **options) -> pd.DataFrame:
    """Every ranking and label-wise metric of blocks of rows, here, in processes, or on a Dask cluster: the same bits.

    Parameters
    ----------
    blocks : path, iterable, or dict of str to path or callable
        Block files (:func:`xcrepro.scale.write_blocks` makes them), a folder of them or a pattern; or functions without
        arguments, which return ``(Y, top)``, ``(Y, top, first_row)`` or ``(Y, top, first_row, n_relevant)``. Workers call and
        read them themselves, so paths are those that workers see. A dict gives names, which messages and ``resume`` use.
    ks, inverse_propensity, label_counts, metrics
        As for :func:`xcrepro.evaluate`.
    engine : {"serial", "dask"}
        In this process, whose kernels take all cores; or a Dask cluster, for which a script needs
        ``if __name__ == "__main__":``.
    client : distributed.Client or str, optional
        Of the engine dask: a client or a scheduler's address; by default a cluster of this machine, for this call.
    workers : int, optional
        Processes of that cluster, by default one a core.
    resume : path_like, optional
        A folder, which all workers see, for one State a block. What it has already, of the same block and the same options, is
        not read again, so that a run that was killed goes on.
    allow_repeats : bool
        Take a block, or a row, that came before.
    progress : bool
        A bar on stderr.
    **options
        Of :class:`xcrepro.State`.

    Returns
    -------
    DataFrame
        metric, k, value, as :func:`xcrepro.evaluate` gives it.

    Raises
    ------
    BlocksFailed
        Where a block is missing, damaged, or breaks a rule, with file, row and label; where it has rows of another block; where
        the worker that has it dies twice. With ``resume`` all others are read first, and their States kept.
    ArgumentError
        For an unknown engine, a block that is given twice, Dask where it is not installed.
    XCError
        Where no scheduler answers.
    """
    return state(blocks, ks, inverse_propensity, label_counts, **options).compute()
