"""A Dask cluster to work on: one on this machine, or one that is there already. Dask is imported only when asked for."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from xcrepro.core import extras, threads
from xcrepro.core.arguments import whole_number
from xcrepro.core.errors import ArgumentError, XCError

if TYPE_CHECKING:
    from distributed import Client

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


class Process:
    """A process on a worker, as far as ``subprocess.Popen`` has it: started, looked at, ended. The worker sees the same
    files at the same paths; if it dies, Dask starts the process once more elsewhere."""

    def __init__(self, client: Client, arguments: list[str], environment: dict[str, str], log: os.PathLike) -> None:
        self.log, self.returncode, self.stdin = os.fspath(log), None, None
        self._stop = f"{self.log}.stop"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._stop)
        self._future = submit(client, _run_process, arguments, environment, self.log, self._stop)

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        if self.returncode is None and self._future.done():
            if self._future.status == "finished":
                self.returncode = self._future.result()
            else:
                self.returncode = 1
                error = "cancelled" if self._future.cancelled() else repr(self._future.exception())
                with open(self.log, "a", encoding="utf-8") as file:
                    file.write(f"\nthe worker that ran it is gone: {error}\n")
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired("python", timeout)
            time.sleep(0.05)
        return self.returncode

    def terminate(self) -> None:
        """Ask the worker to end it."""
        if self.poll() is None:
            with open(self._stop, "w", encoding="utf-8"):
                pass

    def kill(self) -> None:
        """Wait no longer; a worker kills what does not end by itself."""
        self._future.cancel()
        self.returncode = -9


def _run_process(arguments: list[str], environment: dict[str, str], log: str, stop: str) -> int:
    """A task of Dask: run a process to its end, or until the file ``stop`` is there."""
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,  # it ends with this worker, should the process wait for that
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    while process.poll() is None:
        if os.path.exists(stop):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            break
        time.sleep(0.05)
    process.stdin.close()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(stop)
    return process.returncode


def submit(client: Client, function: Callable, *arguments, **options):
    """``client.submit`` of a function that is not pure, without Dask's word on large arguments."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        return client.submit(function, *arguments, pure=False, **options)
