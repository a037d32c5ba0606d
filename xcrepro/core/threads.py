"""Run a kernel over blocks of rows on all cores.

Kernels are plain ``njit(nogil=True)`` functions over a range of rows ``[lo, hi)`` that write only their own rows'
slots. Python threads call them on blocks. Compared with ``parallel=True`` this compiles several times faster, has no
threading layer to fork or to nest wrongly, and makes the result independent of the number of threads by construction.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor

from xcrepro.core.arguments import whole_number


def count() -> int:
    """Threads to use: ``$XCREPRO_THREADS`` if set, else the cores this process may run on."""
    if text := os.environ.get("XCREPRO_THREADS"):
        return whole_number("XCREPRO_THREADS", int(text) if text.isdigit() else text, 1, do="unset or mend it")
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _InTurn(Executor):
    """Does what it is given at once, in the calling thread: where there are no others."""

    def submit(self, work, /, *args, **named):
        done: Future = Future()
        try:
            done.set_result(work(*args, **named))
        except Exception as error:  # raised where the result is asked for, as from a thread
            done.set_exception(error)
        return done


def pool(threads: int) -> Executor:
    """So many threads; none on a machine that has none, such as a browser's."""
    return _InTurn() if sys.platform in ("emscripten", "wasi") else ThreadPoolExecutor(threads)


def over_stretches(n_rows: int, size: int, work: Callable[[int, slice], object]) -> None:
    """Call ``work(number, slice)`` for each stretch of ``size`` rows: the stretches are the same for any number of threads."""

    def some(first: int, last: int) -> None:
        for number in range(first, last):
            work(number, slice(number * size, min((number + 1) * size, n_rows)))

    over_rows(-(-n_rows // size), some, min_rows=1)


def over_rows(n_rows: int, work: Callable[[int, int], object], *, min_rows: int = 8192) -> list:
    """The results of ``work(lo, hi)`` for consecutive blocks that cover ``range(n_rows)``, in row order.

    Fewer than twice ``min_rows`` run in the calling thread: there a thread costs more than it gains.

    >>> over_rows(5, lambda lo, hi: (lo, hi))
    [(0, 5)]
    """
    threads = min(count(), n_rows // min_rows)
    if threads < 2:
        return [work(0, n_rows)]
    # A few blocks a thread, so that one slow block does not leave the other cores idle.
    blocks = min(4 * threads, n_rows // min_rows)
    edges = [n_rows * b // blocks for b in range(blocks + 1)]
    with pool(threads) as workers:
        return list(workers.map(work, edges[:-1], edges[1:]))
