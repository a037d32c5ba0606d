"""How far a long training is, and when it may end: a line on stderr now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from xcrepro.core import threads

FIRST, THEN = 15.0, 30.0
"""Seconds until the first line, and between two: what is over sooner says nothing."""


class Progress:
    """Counts work that is done, in any unit, and prints how far it is. Threads may call :meth:`add`.

    The first addition is left out of the estimate, because the kernels are compiled in it. ``clock`` is for tests.
    """

    def __init__(self, total: float, what: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.what = total, what
        self._clock, self._done, self._lock = clock, 0.0, threading.Lock()
        self._first = 0.0, 0.0  # when the first addition ended, and how much it was
        self._next = clock() + FIRST

    def add(self, amount: float) -> None:
        """Some more is done."""
        with self._lock:
            self._done += amount
            now = self._clock()
            if not self._first[1]:
                self._first = now, self._done
            if now < self._next or not 0 < self._done < self.total:
                return
            self._next = now + THEN
            text = f"{self.what}: {100 * self._done / self.total:.0f} %"
            since, before = self._first
            if self._done > before:
                left = (now - since) * (self.total - self._done) / (self._done - before)
                end = time.strftime("%H:%M", time.localtime(time.time() + left))
                text += f", about {_span(left)} left, until {end}"
            print(text, file=sys.stderr, flush=True)


def warn(what: str, operations: float) -> None:
    """Say before it starts that something takes minutes: about so many multiplications, at 4e8 a second and thread."""
    seconds = operations / 4e8 / threads.count()
    if seconds > 2 * FIRST:
        print(f"{what}: this takes about {_span(seconds)}", file=sys.stderr, flush=True)


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
