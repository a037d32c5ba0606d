"""What each lesson costs: ``python -m tests.tools.course.cost [NAME ...]`` runs each in a kernel of its own, prints a table."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass

from xcrepro.tools.course import lessons
from xcrepro.tools.course.lessons import Lesson

SECONDS, MEGABYTES = 60, 2000
"""The promise of docs/teach.md, on one core and once the kernels are compiled."""
_RUN = "import sys; from xcrepro.tools.course import lessons, slides; slides.run(lessons.read(sys.argv[1]))"


@dataclass(frozen=True)
class Cost:
    """Seconds of processor time, seconds by the clock (which a busy machine lengthens), and the peak memory in megabytes."""

    processor: float
    clock: float
    megabytes: float


def of(lesson: Lesson) -> Cost:
    """The cost of one run from top to bottom, the start of the kernel included."""
    began = time.monotonic()
    run = subprocess.Popen([sys.executable, "-c", _RUN, str(lesson.path)], stderr=subprocess.DEVNULL)
    _, run.returncode, used = os.wait4(run.pid, 0)  # of the process and of the kernel that it waited for
    assert run.returncode == 0, f"{lesson.name} failed"
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss / 1024)


def main(names: list[str]) -> None:
    """Print the table that docs/teach.md has."""
    print("| lesson | seconds on one core | memory at most, MB |\n|---|---|---|")
    for lesson in lessons.find():
        if not names or lesson.name in names:
            cost = of(lesson)
            print(f"| {lesson.number} | {cost.processor:.0f} | {cost.megabytes:.0f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
