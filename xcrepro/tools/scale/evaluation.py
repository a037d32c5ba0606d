"""The metrics of blocks that no process holds all of: here, or on a Dask cluster, with the same bits.

Each block becomes a State, and States are merged, in pairs as they are there; Dask moves, retries and recomputes.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from xcrepro.core import extras, threads
from xcrepro.core.accumulators.block import KS
from xcrepro.core.arguments import one_of, whole_number
from xcrepro.core.errors import ArgumentError, XCError
from xcrepro.core.metrics.state import State
from xcrepro.core.predictions import TopK
from xcrepro.tools.scale.blocks import Rows, block_paths, read_block

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

Blocks = str | os.PathLike | Iterable[str | os.PathLike | Callable] | Mapping[str, str | os.PathLike | Callable]
ENGINES = ("serial", "dask")
CONNECT_SECONDS = 8
"""How long a scheduler may take to answer."""


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
    allow_repeats: bool = False,
    progress: bool = False,
    **options,
) -> State:
    """One :class:`xcrepro.State` of all blocks: what :func:`evaluate` reads its table from, intervals and calibration too.

    Parameters
    ----------
    blocks, ks, inverse_propensity, label_counts, metrics, engine, client, workers, allow_repeats, progress
        As for :func:`evaluate`.
    **options
        Of :class:`xcrepro.State`: ``n_resamples``, ``bins``, ``beta``, ...

    Returns
    -------
    State

    Raises
    ------
    ArgumentError, XCError
        As :func:`evaluate` says.
    """
    one_of("engine", engine, ENGINES)
    for name, value in (("client", client), ("workers", workers)):
        if value is not None and engine != "dask":
            raise ArgumentError(name, "goes with the engine dask", engine)
    found = sources(blocks, allow_repeats)
    empty = State(ks, metrics, inverse_propensity, label_counts, allow_repeats=allow_repeats, **options)
    if engine == "dask":
        return _on_dask(empty, found, client, workers, progress)
    whole = empty.empty()
    for source in extras.library("tqdm").tqdm(found, unit="block", mininterval=0.5) if progress else found:
        with source.named():
            whole.merge(source.state(empty))
    return whole


def evaluate(blocks: Blocks, ks=KS, inverse_propensity=None, label_counts=None, **options) -> pd.DataFrame:
    """Every ranking and label-wise metric of blocks of rows, here, in processes, or on a Dask cluster: the same bits.

    Parameters
    ----------
    blocks : path, iterable, or dict of str to path or callable
        Block files (:func:`xcrepro.scale.write_blocks` makes them), a folder of them or a pattern; or functions without
        arguments, which return ``(Y, top)``, ``(Y, top, first_row)`` or ``(Y, top, first_row, n_relevant)``. Workers call and
        read them themselves, so paths are those that workers see. A dict gives names, which messages use.
    ks, inverse_propensity, label_counts, metrics
        As for :func:`xcrepro.evaluate`.
    engine : {"serial", "dask"}
        In this process, whose kernels take all cores; or a Dask cluster, for which a script needs
        ``if __name__ == "__main__":``.
    client : distributed.Client or str, optional
        Of the engine dask: a client or a scheduler's address; by default a cluster of this machine, for this call.
    workers : int, optional
        Processes of that cluster, by default one a core.
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
    XCError
        Where a block is missing, damaged, or breaks a rule, with file, row and label; where it has rows of another block;
        where no scheduler answers.
    ArgumentError
        For an unknown engine, a block that is given twice, Dask where it is not installed.
    """
    return state(blocks, ks, inverse_propensity, label_counts, **options).compute()


class Source(NamedTuple):
    """Where a block comes from."""

    name: str
    given: str | Callable

    def state(self, empty: State) -> State:
        """The State of its rows."""
        with self.named():
            rows = self._rows()
            return empty.empty().update(rows.Y, rows.top, rows.first_row, rows.n_relevant)

    def _rows(self) -> Rows:
        if not callable(self.given):
            return read_block(self.given)
        found = self.given()
        if isinstance(found, Rows):
            return found
        if not isinstance(found, tuple) or not 2 <= len(found) <= 4 or not isinstance(found[1], TopK):
            rule = "must return (Y, top), (Y, top, first_row) or (Y, top, first_row, n_relevant), top a TopK"
            raise ArgumentError("a block's function", rule, type(found).__name__)
        return Rows(*found)

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Say of what is wrong inside of which block it is."""
        try:
            yield
        except Exception as error:  # a reader of the caller's own may raise anything
            if isinstance(error, XCError) and self.name in str(error):
                raise
            said = str(error) if isinstance(error, XCError) else f"{type(error).__name__}: {error}"
            raise XCError(f"{self.name}: {said}") from error


def sources(blocks, allow_repeats: bool) -> list[Source]:
    """The blocks that a caller gave, each with a name, in order."""
    if isinstance(blocks, (str, os.PathLike)):
        blocks = block_paths(blocks)
    if not isinstance(blocks, Iterable):
        raise ArgumentError("blocks", "must be paths or functions, a list or a dict of them", type(blocks).__name__)
    named, found = isinstance(blocks, Mapping), {}
    for number, item in enumerate(blocks.items() if named else blocks):
        name, given = item if named else (None, item)
        if isinstance(given, (str, os.PathLike)):
            # Processes that are used again, and other machines, stand in other folders.
            key, source = os.path.realpath(given), Source(str(name or os.fspath(given)), os.path.abspath(given))
        elif callable(given):
            key, source = id(given), Source(str(name or f"block {number}"), given)
        else:
            do = "for a truth and its predictions in memory there is xcrepro.evaluate"
            rule = "must be paths or functions that return (Y, top)"
            raise ArgumentError("blocks", rule, f"{type(given).__name__} at place {number}", do)
        if key in found and not allow_repeats:
            do = "leave one out, or say allow_repeats=True (--allow-repeats)"
            raise ArgumentError(
                "blocks", "must hold each block once", f"{source.name} again, after {found[key].name}", do
            )
        found[(key, number) if key in found else key] = source
    if not found:
        raise ArgumentError("blocks", "must be one or more", "none")
    return [*found.values()]


# ---------------------------------------------------------------- on Dask


def _on_dask(empty: State, found: list[Source], client, workers: int | None, progress: bool) -> State:
    """All blocks through a cluster: a bag of blocks, each read by a task, and States merged in pairs by further ones."""
    extras.library("distributed", "or take another engine than dask")
    import dask
    from dask import bag
    from distributed import progress as bar

    with _connected(client, workers) as cluster:
        blocks = bag.from_sequence(found, partition_size=1).map(_read, dask.delayed(empty, pure=False))
        future = cluster.compute(blocks.reduction(_merged, _merged, split_every=2))
        if progress:
            bar(future, notebook=False)
        try:
            return future.result()
        except XCError:
            raise
        except Exception as error:  # a worker that died with its block, a scheduler that is gone: Dask's own words
            raise XCError(f"Dask gave up ({type(error).__name__}: {error})") from None


def _read(source: Source, empty: State) -> State:
    """A task. Kernels take as many threads as the worker has, where nobody has said how many."""
    from distributed import get_worker

    os.environ.setdefault("XCREPRO_THREADS", str(get_worker().state.nthreads))
    return source.state(empty)


def _merged(states: Iterable[State]) -> State:
    """A task; what it is given stays as it is, for Dask may need it again."""
    first, *others = states
    return functools.reduce(State.merge, others, first.empty().merge(first)) if others else first


@contextlib.contextmanager
def _connected(client: Client | str | None, workers: int | None) -> Iterator[Client]:
    """The caller's client, a scheduler's, or that of a cluster made here: one thread per process, on 127.0.0.1 only."""
    from distributed import Client, LocalCluster

    if client is not None and workers is not None:
        raise ArgumentError("workers", "goes with a cluster of this machine", workers, "the scheduler has its own")
    if isinstance(client, Client):
        yield client
    elif isinstance(client, str):
        try:
            found = Client(client, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            do = "is it running, and is host:port right? `dask scheduler` prints its address"
            raise XCError(f"no Dask scheduler answers at {client} ({type(error).__name__}: {error}): {do}") from None
        with found:
            yield found
    elif client is None:
        cores = threads.count()
        n = cores if workers is None else whole_number("workers", workers, 1)
        own = {"XCREPRO_THREADS": os.environ.get("XCREPRO_THREADS", str(max(1, cores // n)))}
        where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": 0, "silence_logs": 50}
        with (
            LocalCluster(n_workers=n, threads_per_worker=1, processes=True, env=own, **where) as local,
            Client(local, set_as_default=False) as found,
        ):
            yield found
    else:
        rule = "must be a distributed.Client or a scheduler's address"
        raise ArgumentError("client", rule, type(client).__name__)
