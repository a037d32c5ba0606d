"""The engines: blocks one after the other here, in processes of joblib, or on a Dask cluster, with the same bits.

A worker holds one sum, to which it adds block after block, and the block's own; at the end sums are merged in a tree.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import pickle
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from xcrepro.core import threads
from xcrepro.core.arguments import one_of, whole_number
from xcrepro.core.errors import ArgumentError, XCError
from xcrepro.repro import cluster
from xcrepro.tools.scale.fold import BlocksFailed, Folding, Part, Source

_Told = Callable[[int], None]


def serial(folding: Folding, sources: list[Source], told: _Told) -> Part:
    """Block after block in this process, whose kernels take all cores."""
    return _whole(folding, *_added(folding, sources, told))


def _added(folding: Folding, sources: Iterable[Source], told: _Told) -> tuple[Part, dict[str, str]]:
    """What blocks add up to, and what failed: the first fault ends it, unless the others are kept."""
    part, failures = folding.part(), {}
    for source in sources:
        try:
            folding.add(part, source)
        except BlocksFailed as error:
            failures |= error.failures
            if folding.resume is None:
                break
        told(1)
    return part, failures


def _whole(folding: Folding, part: Part | None, failures: dict[str, str]) -> Part:
    """What came out, or the error that names all that failed."""
    if failures:
        kept = f"The states of the others are kept in {folding.resume}: the same call goes on from there"
        raise BlocksFailed(failures, kept if folding.resume is not None else "")
    return part


# ---------------------------------------------------------------------------------------------- joblib


def joblib(folding: Folding, sources: list[Source], told: _Told, workers: int | None = None) -> Part:
    """Runs of blocks in processes of this machine, by joblib."""
    n = threads.count() if workers is None else whole_number("workers", workers, 1)
    with tempfile.TemporaryDirectory() as folder:
        # By a file, for it may hold weights of millions of labels, and every task would carry them.
        about = Path(folder) / "folding.pickle"
        about.write_bytes(pickle.dumps(folding))
        size = max(1, math.ceil(len(sources) / (4 * n)))
        groups = [list(range(lo, min(lo + size, len(sources)))) for lo in range(0, len(sources), size)]
        part, failures, done = folding.part(), {}, set()
        for attempt in (1, 2):
            left = [group for group in groups if group[0] not in done]
            if attempt == 2:  # a worker died: one block a task, so that no other shares its fate
                left = [[number] for group in left for number in group]
                for mark in Path(folder).glob("*.mark"):
                    mark.unlink()
            died = None
            for given in _run(str(about), [[(i, sources[i]) for i in group] for group in left], n, folder):
                if isinstance(given, BaseException):
                    died = given
                    break
                group, found, faults = given
                done |= set(group)
                failures |= faults
                if failures and folding.resume is None:
                    raise BlocksFailed(failures)
                try:
                    part.merge(found)
                except BlocksFailed as error:
                    failures |= error.failures
                told(len(group))
            if died is None:
                return _whole(folding, part, failures)
        under_way = [sources[int(mark.stem)] for mark in Path(folder).glob("*.mark") if int(mark.stem) not in done]
        why = f"it was under way when a process died, for the second time ({died})"
        failures |= {source.name: why for source in under_way} or {"joblib": why}
        return _whole(folding, None, failures)


def _run(about: str, groups: list, n: int, folder: str):
    """Yield what each group comes to as it is done; the exception where a process died."""
    from concurrent.futures.process import BrokenProcessPool

    from joblib import Parallel, delayed

    each, parent = max(1, threads.count() // n), os.getpid()
    run = Parallel(n_jobs=n, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
    results = run(delayed(_add_group)(about, group, folder, each, parent) for group in groups)
    try:
        yield from results
    except BrokenProcessPool as error:
        yield error


@functools.lru_cache(maxsize=1)  # processes are used again; what they held of an earlier call may be large
def _folding(about: str) -> Folding:
    return pickle.loads(Path(about).read_bytes())


def _add_group(about: str, group: list, folder: str, each: int, parent: int):
    """A task of joblib: the numbers of its blocks, what they add up to, and what failed."""
    if os.getpid() != parent:
        os.environ["XCREPRO_THREADS"] = str(each)
    return [number for number, _ in group], *_added(_folding(about), _marked(group, folder), lambda _: None)


def _marked(group: list, folder: str) -> Iterator[Source]:
    """The blocks, each with a mark in the folder while it is under way."""
    for number, source in group:
        mark = Path(folder) / f"{number}.mark"
        mark.touch()
        try:
            yield source
        finally:
            mark.unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------------- Dask

_LOOK = 1.0  # seconds between two looks at which workers there are
_PATIENCE = 60.0  # seconds without any worker


def dask(folding: Folding, sources: list[Source], told: _Told, client=None, workers: int | None = None) -> Part:
    """A chain of blocks a worker on a Dask cluster: Dask moves, recomputes and retries, here is decided who takes what next."""
    with cluster.connected(client, workers) as found, found.as_current():
        return _Chains(found, folding, sources, told).run()


class _Chains:
    """The blocks on a cluster: each worker's sum is a future of the sum before it and the next block, so it survives a
    death."""

    def __init__(self, client, folding: Folding, sources: list[Source], told: _Told) -> None:
        self.client, self.folding, self.told = client, folding, told
        self.waiting = deque(sources)
        self.there: set[str] = set()  # the workers' addresses
        self.sums: dict[str, object] = {}  # of workers that have no block, by address; None: nothing yet
        self.left: list = []  # sums of workers that are gone
        self.running: dict[object, tuple[str, object, Source]] = {}  # by future: worker, the sum before it, block
        self.failures: dict[str, str] = {}
        self.looked, self.seen = 0.0, time.monotonic()
        # As the result of a task: it goes to each worker once, and Dask makes it again where all that had it are gone.
        self.about = cluster.submit(client, pickle.loads, pickle.dumps(folding), key=f"folding-{os.urandom(8).hex()}")

    def run(self) -> Part:
        from concurrent.futures import CancelledError

        from distributed import wait

        self._look()
        while self.running or self.waiting:
            finished = []
            if self.running:
                try:
                    finished = wait([*self.running], timeout=_LOOK, return_when="FIRST_COMPLETED").done
                except TimeoutError:
                    pass
                except CancelledError:  # as all are where the scheduler is gone
                    raise self._lost() from None
            else:
                time.sleep(0.1)
            for future in finished:
                self._finish(future)
            if self.failures and self.folding.resume is None:
                raise BlocksFailed(self.failures)
            if time.monotonic() - self.looked > _LOOK or self.failures or not self.running:
                self._look()
            else:
                self._start()
        return _whole(self.folding, None if self.failures else self._tree(), self.failures)

    def _look(self) -> None:
        """Which workers there are now: the sums of those that are gone are merged at the end, new ones begin."""
        self.looked = time.monotonic()
        if self.client.status != "running":
            raise self._lost()
        self.there = {*self.client.nthreads()}
        if self.there or self.running:
            self.seen = self.looked
        elif self.looked - self.seen > _PATIENCE:
            raise XCError(f"the Dask cluster has had no worker for {_PATIENCE:.0f} seconds: start one, then run again")
        self.left += [self.sums.pop(address) for address in [*self.sums] if address not in self.there]
        busy = {address for address, _, _ in self.running.values()}
        for address in sorted(self.there - busy):
            self.sums.setdefault(address, None)
        self._start()

    def _lost(self) -> XCError:
        kept = f"; what is kept in {self.folding.resume} is taken up by the same call" if self.folding.resume else ""
        return XCError(f"the connection to the Dask scheduler is lost: is it still running?{kept}")

    def _start(self) -> None:
        """A block for each worker that has none."""
        for address in [*self.sums][: len(self.waiting)]:
            before, source = self.sums.pop(address), self.waiting.popleft()
            # Where the worker dies, another may take it.
            where = {"workers": [address], "allow_other_workers": True}
            future = cluster.submit(self.client, _add, self.about, before, source, **where)
            self.running[future] = address, before, source

    def _finish(self, future) -> None:
        address, before, source = self.running.pop(future)
        if future.status != "finished":
            self.failures |= _fault(future, source)
            future = before
        if address in self.there:
            self.sums[address] = future
        else:
            self.left.append(future)
        self.told(1)

    def _tree(self) -> Part:
        """All sums in one: each step takes two, on a worker that has one of them."""
        sums = [future for future in [*self.sums.values(), *self.left] if future is not None]
        while len(sums) > 1:
            pairs = [sums[i : i + 2] for i in range(0, len(sums), 2)]
            sums = [cluster.submit(self.client, _merge, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return sums[0].result()


def _fault(future, source: Source) -> dict[str, str]:
    """Why a block's task failed, by block."""
    from distributed import KilledWorker

    try:
        error = future.exception()
    except Exception as other:  # a cancelled future has none
        error = other
    if isinstance(error, BlocksFailed):
        return error.failures
    if isinstance(error, KilledWorker):
        return {source.name: "the worker that had it died, and so did the one that tried it again: memory, or the data"}
    return {source.name: f"{type(error).__name__}: {error}"}


def _add(folding: Folding, part: Part | None, source: Source) -> Part:
    """A task of Dask: one more block in a worker's sum, which is written to."""
    _take_threads()
    return folding.add(folding.part() if part is None else part, source)


def _merge(part: Part, other: Part) -> Part:
    return part.merge(other)


def _take_threads() -> None:
    """Kernels take as many threads as the worker has, where nobody has said how many."""
    if "XCREPRO_THREADS" not in os.environ:
        from distributed import get_worker

        os.environ["XCREPRO_THREADS"] = str(get_worker().state.nthreads)


@contextlib.contextmanager
def mapped(engine: str, client=None, workers: int | None = None) -> Iterator[Callable]:
    """``run(function, calls)`` of an engine: what ``function(*arguments)`` gives, for each of the calls, in their order."""
    check(engine, client, workers)
    if engine == "serial":
        yield lambda function, calls: [function(*arguments) for arguments in calls]
    elif engine == "joblib":
        from joblib import Parallel, delayed

        n = threads.count() if workers is None else whole_number("workers", workers, 1)
        with Parallel(n_jobs=n, batch_size=1) as parallel:
            yield lambda function, calls: parallel(delayed(function)(*arguments) for arguments in calls)
    else:
        with cluster.connected(client, workers) as found:

            def run(function: Callable, calls: list) -> list:
                futures = [cluster.submit(found, function, *arguments) for arguments in calls]
                return [future.result() for future in futures]

            yield run


ENGINES = ("serial", "joblib", "dask")
"""What :func:`run` knows."""


def check(engine: str, client=None, workers: int | None = None) -> None:
    """Refuse an engine that is none, and arguments that do not go with it."""
    one_of("engine", engine, ENGINES)
    if client is not None and engine != "dask":
        raise ArgumentError("client", "goes with the engine dask", engine)
    if workers is not None and engine == "serial":
        raise ArgumentError("workers", "goes with the engines joblib and dask", workers)


def run(engine: str, folding: Folding, sources: list[Source], told: _Told, client=None, workers=None) -> Part:
    """All blocks through an engine, by its name."""
    check(engine, client, workers)
    if engine == "serial":
        return serial(folding, sources, told)
    if engine == "joblib":
        return joblib(folding, sources, told, workers)
    return dask(folding, sources, told, client, workers)
