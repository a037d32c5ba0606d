"""Damaged files at every door, by hypothesis: refused in the package's words, or read as the slow reader reads them.

``make test`` gives each door some, ``make fuzz`` as many as ``FUZZ`` says. Memory has a limit. hypothesis keeps what it finds
and runs it first the next time; where a process dies, its last input is the file in pytest's folder.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import inputs, slow
from tests.fuzz.doors import DOORS, Door, examine, made, prepare
from xcrepro.core.data import read

INPUTS = int(os.environ.get("XCREPRO_FUZZ", 0))
MEMORY = 4 << 30
"""Bytes that a door may take beyond what its process has."""
SEEDS = st.integers(0, 2**63)


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A folder for inputs; while it is in use, memory is limited."""
    folder = tmp_path_factory.mktemp("doors")
    prepare(folder)
    with contextlib.suppress(ImportError):
        import resource

        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, before[1]))
        yield folder
        resource.setrlimit(resource.RLIMIT_AS, before)
        return
    yield folder


def thrown(door: Door, folder, n: int) -> Counter:
    """``n`` inputs at a door; what came of them."""
    came = Counter()

    @settings(max_examples=n, deadline=None, database=None if not INPUTS else settings.default.database,
              suppress_health_check=[*HealthCheck], derandomize=not INPUTS)  # fmt: skip
    @given(seed=SEEDS)
    def every(seed):
        fault, done, judged = examine(door, random.Random(seed), folder)
        came.update((done, *["judged"] * judged))
        assert not fault, f"{door.name}, random.Random({seed}): {fault}"

    every()
    return came


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_what_comes_in_is_refused_in_words_or_read_right(door, room):
    if door.lacks:
        pytest.skip(f"{door.lacks} is not installed: pip install 'xcrepro[formats,scale]'")
    compared = door.judge is not None and (door.write is None or door.change is not None)
    n = INPUTS * door.share // 10 or (200 if compared and door.share >= 3 else 30 if door.judge else 10)
    came = thrown(door, room, n)
    if compared and n >= 200:
        assert min(came["read"], came["refused"]) > n / 14
        assert came["judged"] > n / 3


@pytest.mark.parametrize(
    ("reader", "found"),
    [
        (lambda path: 1 / 0, ZeroDivisionError),
        (lambda path: [[0, 0], []], AssertionError),
        (lambda path: read.read_sparse(path, n_columns=0), AssertionError),
        (lambda path: bytearray(1 << 34), MemoryError),
    ],
)
def test_a_wrong_reader_is_found(room, reader, found):
    with pytest.raises(found):
        thrown(Door("broken", inputs.matrix, reader, slow.matrix), room, 60)


def test_an_input_is_made_again_from_its_seed(room):
    for door in DOORS:
        if not door.lacks:
            first, again, *others = (made(door, random.Random(seed))[0] for seed in (3, 3, 4, 5, 6))
            assert first == again
            assert any(first != other for other in others), door.name
