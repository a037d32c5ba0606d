"""The metrics of blocks that no process holds all of: here, or on a Dask cluster, with the same bits.

Each block becomes a State, and States are merged, in pairs as they are there; Dask moves, retries and recomputes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from xcrepro.core import extras, threads
from xcrepro.core.accumulators.block import KS
from xcrepro.core.arguments import one_of, whole_number
from xcrepro.core.errors import ArgumentError, DataError, XCError
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
_SHOWN = 10  # failures that are told in full
_ONCE = "leave one out, or say allow_repeats=True (--allow-repeats)"


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
        Of :class:`xcrepro.State`: ``n_resamples``, ``bins``, ``beta``, ...

    Returns
    -------
    State

    Raises
    ------
    ArgumentError, BlocksFailed, XCError
        As :func:`evaluate` says.
    """
    one_of("engine", engine, ENGINES)
    for name, value in (("client", client), ("workers", workers)):
        if value is not None and engine != "dask":
            raise ArgumentError(name, "goes with the engine dask", engine)
    found = sources(blocks, allow_repeats, resume is not None)
    empty = State(ks, metrics, inverse_propensity, label_counts, allow_repeats=allow_repeats, **options)
    if resume is not None:
        Path(resume).mkdir(parents=True, exist_ok=True)
        resume = os.path.abspath(resume)
    reader = Reader(empty, resume, allow_repeats)
    if engine == "serial":
        part = Part(empty.empty())
        shown = extras.library("tqdm").tqdm(found, unit="block", mininterval=0.5) if progress else found
        for source in shown:
            part.merge(reader.part_of(source))
            if part.failures and resume is None:
                break  # nothing is gained by going on
    else:
        part = _on_dask(reader, found, client, workers, progress)
    if part.failures:
        kept = f"The states of the others are kept in {resume}: the same call goes on from there"
        raise BlocksFailed(part.failures, kept if resume is not None else "")
    return part.state


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
        Where a block is missing, damaged, or breaks a rule, with file, row and label; where it has rows of another
        block. All others are read first; with ``resume`` their States are kept.
    ArgumentError
        For an unknown engine, a block that is given twice, Dask where it is not installed.
    XCError
        Where no scheduler answers.
    """
    return state(blocks, ks, inverse_propensity, label_counts, **options).compute()


class BlocksFailed(XCError):
    """Blocks that could not be used; ``failures`` is block -> cause, and the message has all of them."""

    def __init__(self, failures: Mapping[str, str], kept: str = "") -> None:
        self.failures, n = dict(failures), len(failures)
        lines = [why if name in why else f"{name}: {why}" for name, why in failures.items()]
        lines = [f"  {line}" for line in lines[:_SHOWN]] + [f"  and {n - _SHOWN} more"] * (n > _SHOWN)
        head = f"{n} block{'s' * (n > 1)} could not be used:"
        super().__init__("\n".join([head, *lines, *([kept] if kept else [])]))

    def __reduce__(self):
        return BlocksFailed, (self.failures,)


class Source(NamedTuple):
    """Where a block comes from."""

    name: str
    given: str | Callable

    def read(self) -> Rows:
        """The block's rows."""
        if not callable(self.given):
            return read_block(self.given)
        found = self.given()
        if isinstance(found, Rows):
            return found
        if not isinstance(found, tuple) or not 2 <= len(found) <= 4 or not isinstance(found[1], TopK):
            rule = "must return (Y, top), (Y, top, first_row) or (Y, top, first_row, n_relevant), top a TopK"
            raise ArgumentError("a block's function", rule, type(found).__name__)
        return Rows(*found)

    def stamp(self) -> list:
        """What tells whether the block is the one whose State was kept: a function's name, a file's place, size and time."""
        if callable(self.given):
            return [self.name]
        try:
            stat = os.stat(self.given)
        except FileNotFoundError:
            read_block(self.given)  # which says what is missing
            raise
        return [self.given, stat.st_size, stat.st_mtime_ns]


def sources(blocks, allow_repeats: bool, resume: bool) -> list[Source]:
    """The blocks that a caller gave, each with a name, in order."""
    if isinstance(blocks, (str, os.PathLike)):
        blocks = block_paths(blocks)
    if not isinstance(blocks, Iterable):
        raise ArgumentError("blocks", "must be paths or functions, a list or a dict of them", type(blocks).__name__)
    named = isinstance(blocks, Mapping)
    found: dict[object, Source] = {}
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
            again = f"{source.name} again, after {found[key].name}"
            raise ArgumentError("blocks", "must hold each block once", again, _ONCE)
        if resume and not named and callable(given):
            do = "a dict of names and functions; a name stands for the content"
            raise ArgumentError("resume", "needs blocks with names", "functions in a list", do)
        found[(key, number) if key in found else key] = source
    if not found:
        raise ArgumentError("blocks", "must be one or more", "none")
    return [*found.values()]


@dataclass
class Part:
    """A State of some blocks; (first row, last row and one, name) of each; and of those that could not be used, why."""

    state: State
    rows: list[tuple[int, int, str]] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def merge(self, other: Part) -> Part:
        """Take the other's blocks, too; it stays as it is. Of rows that come twice the first stay."""
        self.failures |= other.failures
        try:
            self.state.merge(other.state)
            self.rows += other.rows
        except ArgumentError as error:
            twice = {
                name: f"{name}: found rows {max(low, first)} to {min(high, last) - 1}, which {before} has too, "
                f"expected each row once. {_ONCE}"
                for low, high, name in other.rows
                for first, last, before in sorted(self.rows, reverse=True)
                if first < high and low < last
            }
            self.failures |= twice or {other.rows[0][2]: str(error)}
        return self


@dataclass
class Reader:
    """How a block becomes a State: what every worker needs to know, with the folder of the blocks' States (``resume``)."""

    empty: State
    resume: str | None = None
    allow_repeats: bool = False

    def part_of(self, source: Source) -> Part:
        """A block's State, kept or made; or why it cannot be."""
        try:
            state = self._state(source)
        except XCError as error:
            return Part(self.empty.empty(), failures={source.name: str(error)})
        except Exception as error:  # a reader of the caller's own may raise anything
            return Part(self.empty.empty(), failures={source.name: f"{type(error).__name__}: {error}"})
        return Part(state, [(low, high, source.name) for low, high in state.row_ranges or [(0, 0)]])

    def _state(self, source: Source) -> State:
        """The block's State; kept under the block's name, and all that its numbers depend on."""
        stored = None
        if self.resume is not None:
            about = json.dumps([source.stamp(), self._fingerprint], default=str).encode()
            stem = "".join(c if c.isalnum() or c in "._-" else "-" for c in Path(source.name).name)[:80]
            stored = Path(self.resume) / f"{stem}.{hashlib.sha256(about).hexdigest()[:16]}.npz"
        if stored is not None and stored.exists():
            try:
                return State.load(stored, allow_repeats=self.allow_repeats, like=self.empty)
            except DataError as error:
                warnings.warn(f"{error}: the block is read again", stacklevel=2)
        rows = source.read()
        state = self.empty.empty().update(rows.Y, rows.top, rows.first_row, rows.n_relevant)
        if stored is not None:
            state.save(stored, weights=False, compress=False)
        return state

    @functools.cached_property
    def _fingerprint(self) -> dict:
        return self.empty.fingerprint()


# ---------------------------------------------------------------- on Dask


def _on_dask(reader: Reader, found: list[Source], client, workers: int | None, progress: bool) -> Part:
    """All blocks through a cluster: a bag of blocks, each read by a task, and Parts merged in pairs by further ones."""
    extras.library("distributed", "or take another engine than dask")
    import dask
    from dask import bag
    from distributed import progress as bar

    with _connected(client, workers) as cluster:
        blocks = bag.from_sequence(found, partition_size=1).map(_read, dask.delayed(reader, pure=False))
        future = cluster.compute(blocks.reduction(_merged, _merged, split_every=2))
        if progress:
            bar(future, notebook=False)
        try:
            return future.result()
        except Exception as error:  # a worker that died with its block, a scheduler that is gone: Dask's own words
            kept = f"; what is kept in {reader.resume} is taken up by the same call" if reader.resume else ""
            raise XCError(f"Dask gave up ({type(error).__name__}: {error}){kept}") from None


def _read(source: Source, reader: Reader) -> Part:
    """A task. Kernels take as many threads as the worker has, where nobody has said how many."""
    from distributed import get_worker

    os.environ.setdefault("XCREPRO_THREADS", str(get_worker().state.nthreads))
    return reader.part_of(source)


def _merged(parts: Iterable[Part]) -> Part:
    """A task; what it is given stays as it is, for Dask may need it again."""
    first, *others = parts
    return functools.reduce(Part.merge, others, Part(first.state.empty()).merge(first)) if others else first


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
