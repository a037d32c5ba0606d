"""The engines: blocks one after the other here, or on a Dask cluster, with the same bits.

On a cluster a task reads a block, and a task merges two sums as they are there; Dask moves, retries and recomputes.
"""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable

from xcrepro.core.arguments import one_of
from xcrepro.core.errors import ArgumentError, XCError
from xcrepro.repro.engine import cluster
from xcrepro.tools.scale.fold import BlocksFailed, Folding, Part, Source

ENGINES = ("serial", "dask")
"""What :func:`run` knows."""


def check(engine: str, client=None, workers: int | None = None) -> None:
    """Refuse an engine that is none, and arguments that do not go with it."""
    one_of("engine", engine, ENGINES)
    for name, value in (("client", client), ("workers", workers)):
        if value is not None and engine != "dask":
            raise ArgumentError(name, "goes with the engine dask", engine)


def run(engine: str, folding: Folding, sources: list[Source], told: Callable, client=None, workers=None) -> Part:
    """All blocks through an engine, by its name; BlocksFailed names all that could not be used."""
    check(engine, client, workers)
    if engine == "serial":
        part, failures = _added(folding, sources, told)
    else:
        with cluster.connected(client, workers) as found, found.as_current():
            part, failures = _on_dask(found, folding, sources, told)
    if failures:
        kept = f"The states of the others are kept in {folding.resume}: the same call goes on from there"
        raise BlocksFailed(failures, kept if folding.resume is not None else "")
    return part


def _added(folding: Folding, sources: Iterable[Source], told: Callable) -> tuple[Part, dict[str, str]]:
    """What blocks add up to, and what failed: the first fault ends it, unless the others are kept."""
    part, failures = folding.part(), {}
    for source in sources:
        try:
            part.merge(folding.of(source))
        except BlocksFailed as error:
            failures |= error.failures
            if folding.resume is None:
                break
        told(1)
    return part, failures


def _on_dask(client, folding: Folding, sources: list[Source], told: Callable) -> tuple[Part, dict[str, str]]:
    from distributed import as_completed

    # As the result of a task: it goes to each worker once, and Dask makes it again where all that had it are gone.
    about = cluster.submit(client, pickle.loads, pickle.dumps(folding), key=f"folding-{os.urandom(8).hex()}")
    waiting, blocks, running, whole, failures = deque(sources), {}, as_completed(), None, {}

    def start() -> None:
        """A block for each place that has none, in order: what was read is merged before more is."""
        while waiting and len(blocks) < max(cluster.places(client), 1):
            source = waiting.popleft()
            future = cluster.submit(client, _of, about, source)
            blocks[future] = source
            running.add(future)

    start()
    for future in running:
        source = blocks.pop(future, None)
        told(source is not None)
        if future.status != "finished":
            failures |= _fault(client, folding, future, source)
            if folding.resume is None:
                client.cancel([*blocks])
                break
        elif whole is None:
            whole = future
        else:  # before further blocks are read
            running.add(cluster.submit(client, _merge, about, whole, future, priority=1))
            whole = None
        start()
    return folding.part() if whole is None or failures else whole.result(), failures


def _of(folding: Folding, source: Source) -> Part:
    """A task: a block's sum. Kernels take as many threads as the worker has, where nobody has said how many."""
    from distributed import get_worker

    os.environ.setdefault("XCREPRO_THREADS", str(get_worker().state.nthreads))
    return folding.of(source)


def _merge(folding: Folding, first: Part, second: Part) -> Part:
    """A task; what it is given stays as it is, for Dask may need it again."""
    return folding.part().merge(first).merge(second)


def _fault(client, folding: Folding, future, source: Source | None) -> dict[str, str]:
    """Why a task failed, by block; XCError where the cluster is gone."""
    from distributed import KilledWorker

    if future.cancelled() or client.status != "running":
        kept = f"; what is kept in {folding.resume} is taken up by the same call" if folding.resume else ""
        raise XCError(f"the connection to the Dask scheduler is lost: is it still running?{kept}")
    error, name = future.exception(), "blocks" if source is None else source.name
    if isinstance(error, BlocksFailed):
        return error.failures
    if isinstance(error, KilledWorker):
        return {name: "the worker that had it died, and so did the one that tried it again: memory, or the data"}
    return {name: f"{type(error).__name__}: {error}"}
