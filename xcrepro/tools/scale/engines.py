"""The engines: blocks one after the other here, or on a Dask cluster, with the same bits.

On a cluster a task reads a block, and a task merges two sums as they are there; Dask moves, retries and recomputes.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from xcrepro.core import extras, threads
from xcrepro.core.arguments import one_of, whole_number
from xcrepro.core.errors import ArgumentError, XCError
from xcrepro.tools.scale.fold import BlocksFailed, Folding, Part, Source

if TYPE_CHECKING:
    from distributed import Client

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
        with connected(client, workers) as found, found.as_current():
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
    about = submit(client, pickle.loads, pickle.dumps(folding), key=f"folding-{os.urandom(8).hex()}")
    waiting, blocks, running, whole, failures = deque(sources), {}, as_completed(), None, {}

    def start() -> None:
        """A block for each place that has none, in order: what was read is merged before more is."""
        while waiting and len(blocks) < max(places(client), 1):
            source = waiting.popleft()
            future = submit(client, _of, about, source)
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
            running.add(submit(client, _merge, about, whole, future, priority=1))
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


# ---------------------------------------------------------------- the cluster

CONNECT_SECONDS = 8
"""How long a scheduler may take to answer, and a new cluster its first worker."""

# What a cluster of this machine is started with.
_LOCAL = {
    "distributed.scheduler.allowed-failures": 1,  # a task whose worker died is tried once more
    "distributed.worker.profile.enabled": False,  # a sample of every thread's stack each 10 ms
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.admin.tick.interval": "1s",  # else each process wakes every 20 ms to see that it does
    "distributed.scheduler.work-stealing": False,  # every task has its worker
    "distributed.worker.memory.target": False,  # what a worker holds is a sum that is written to: nothing to spill
    "distributed.worker.memory.spill": False,
}


def require_dask() -> None:
    """Raise LibraryMissing, with what to install, unless Dask is there."""
    extras.library("distributed", "or take another engine than dask")


@contextlib.contextmanager
def connected(client: Client | str | None = None, workers: int | None = None) -> Iterator[Client]:
    """A Dask client with a worker or more: the caller's, which stays open, a scheduler's, or that of a cluster made here,
    which has one thread per process, listens on 127.0.0.1 only, and ends with the block."""
    require_dask()
    import dask
    from distributed import Client, LocalCluster

    if client is not None and workers is not None:
        raise ArgumentError("workers", "goes with a cluster of this machine", workers, "the scheduler has its own")
    if isinstance(client, Client):
        _await_worker(client)
        yield client
    elif isinstance(client, str):
        # Dask logs what goes wrong with a connection, too; one error is enough.
        try:
            found = Client(client, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            do = "is it running, and is host:port right? `dask scheduler` prints its address"
            raise XCError(f"no Dask scheduler answers at {client} ({type(error).__name__}: {error}): {do}") from None
        with found:
            _await_worker(found)
            yield found
    elif client is None:
        cores = threads.count()
        n = cores if workers is None else whole_number("workers", workers, 1)
        each = str(max(1, cores // n))
        with (
            dask.config.set(_LOCAL),
            LocalCluster(
                n_workers=n,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # None would host its pages, too, on a port that may be taken
                memory_limit=0,
                silence_logs=50,
                # A worker has its share of the cores, so that kernels do not ask for all of them.
                env={"XCREPRO_THREADS": os.environ.get("XCREPRO_THREADS", each)},
            ) as local,
            Client(local, set_as_default=False) as found,
        ):
            yield found
    else:
        rule = "must be a distributed.Client or a scheduler's address"
        raise ArgumentError("client", rule, type(client).__name__)


def _await_worker(client: Client) -> None:
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError:
        raise XCError(f"the Dask scheduler at {client.scheduler.address} has no worker: start one") from None


def places(client: Client) -> int:
    """How many tasks the cluster runs at once."""
    return sum(client.nthreads().values())


def submit(client: Client, function: Callable, *arguments, **options):
    """``client.submit`` of a function that is not pure, without Dask's word on large arguments."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        return client.submit(function, *arguments, pure=False, **options)
