"""What each lesson costs: ``python -m tests.tools.course.cost [NAME ...]`` runs each in a kernel of its own, prints a table.

With ``--minutes`` it prints how long the talk of each unit is, estimated from its slides.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass

from xcrepro.repro.engine import notebooks
from xcrepro.tools.course import lessons
from xcrepro.tools.course.lessons import Lesson

SECONDS, MEGABYTES = 60, 2000
"""The promise of docs/teach.md, on one core and once the kernels are compiled."""
_RUN = "import sys; from xcrepro.tools.course import lessons, slides; slides.run(lessons.read(sys.argv[1]))"
UNIT, WORDS = 15, 130
"""Minutes of a unit, and words that a lecturer says in a minute."""
_UNIT = re.compile(r"\*\*Unit (\d) ")
_FORMULA = re.compile(r"\$\$.+?\$\$", re.DOTALL)
_ONE_WORD = re.compile(r"\$.+?\$|\]\(.+?\)|`.+?`", re.DOTALL)


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


def minutes(lesson: Lesson) -> dict[int, float]:
    """Unit -> minutes of talk: what is on its slides read aloud, and a minute for each cell that is run, formula and guess."""
    found, unit = Counter(), 1
    for cell in lesson.notebook["cells"]:
        text = notebooks.text(cell["source"])
        if begins := _UNIT.match(text):
            unit = int(begins[1])
        if cell["metadata"]["slideshow"]["slide_type"] in {"skip", "notes"}:
            continue
        if cell["cell_type"] == "code":
            found[unit] += 1
        else:
            found[unit] += len(_FORMULA.findall(text)) + text.count("**Guess:**")
            found[unit] += len(re.findall(r"\w[\w'’-]*", _ONE_WORD.sub(" x ", _FORMULA.sub("", text)))) / WORDS
    return dict(found)


def main(names: list[str]) -> None:
    """Print the table that docs/teach.md has, or the minutes of the talks."""
    if "--minutes" in names:
        for lesson in lessons.find():
            print(f"lesson {lesson.number:2}:", ", ".join(f"unit {u} {m:.1f}" for u, m in minutes(lesson).items()))
        return
    print("| lesson | seconds on one core | memory at most, MB |\n|---|---|---|")
    for lesson in lessons.find():
        if not names or lesson.name in names:
            cost = of(lesson)
            print(f"| {lesson.number} | {cost.processor:.0f} | {cost.megabytes:.0f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
