"""Every model, metric, calibrator, decision, draw and interval has the same bits on other processors and on any threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests import processors, same_bits
from xcrepro.repro.engine import certificate
from xcrepro.repro.inputs import stored

SIMULATED = ("Nehalem", "Haswell") if os.environ.get("XCREPRO_LONG") else ("Nehalem",)
"""The least of what x86-64 has; with LONG=1 also what most machines have. `make processors` takes all."""


PARTS = 1 if os.environ.get("XCREPRO_LONG") else 4
"""A run compiles all kernels for the other processor, most of its time; so a commit draws a part, and they come round."""


def digests(root, settings: dict[str, str], *part: int) -> dict[str, str]:
    """Name -> digest, computed by a process with these variables, and none that simulates another processor besides."""
    environment = {key: value for key, value in os.environ.items() if key not in certificate.SIMULATING} | settings
    command = [sys.executable, "-m", "tests.same_bits", *map(str, part)]
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def here(root):
    return digests(root, {"XCREPRO_THREADS": "2"})


@pytest.mark.parametrize("name", SIMULATED)
def test_every_number_has_the_same_bits_on_another_processor(root, here, name):
    processor = processors.PROCESSORS[name]
    if reason := processor.missing():
        pytest.skip(f"{name} cannot be simulated: {reason}")
    # In the usual cache of kernels, which keeps those of each processor: only the first run compiles them.
    part = int(stored.commit(root) or "0", 16) % PARTS
    there = digests(root, processor.environment() | {"XCREPRO_THREADS": str(processor.threads)}, part, PARTS)
    expected = {found: digest for found, digest in here.items() if same_bits.drawn(found, part, PARTS)}
    assert len(there) > 30
    assert same_bits.differing(expected, there) == []


def test_every_public_name_is_computed_or_has_a_reason():
    covered, excused = same_bits.covered(), set(same_bits.NO_NUMBER)
    assert sorted(same_bits.public() - covered - excused) == [], "write a case in tests/same_bits.py, or a reason"
    assert sorted((covered | excused) - same_bits.public()) == [], "these are no public names any more"
    assert covered & excused == set()


def test_no_two_digests_are_equal_by_oversight(here):
    """One that holds nothing, or leaves out what differs, would be the digest of another."""
    assert len(here) > 150
    shared = {name for name, digest in here.items() if list(here.values()).count(digest) > 1}
    assert shared == set()


def test_differences_are_named():
    first = {"exp": "1", "log": "2", "old": "3"}
    assert same_bits.differing(first, {"exp": "1", "log": "5", "new": "3"}) == ["log", "new", "old"]
    assert same_bits.differing(first, dict(first)) == []
