"""Progress: when it speaks, and what end it expects."""

from __future__ import annotations

import re

from xcrepro.models import progress


def test_lines_come_late_and_seldom_and_say_when_it_ends(capsys):
    now = [0.0]
    work = progress.Progress(100, "it", clock=lambda: now[0])
    said = []
    for second in range(1, 101):  # a hundredth a second
        now[0] = float(second)
        work.add(1)
        if text := capsys.readouterr().err:
            said.append((second, text))
    assert [second for second, _ in said] == [15, 45, 75]
    for second, text in said:
        assert re.fullmatch(rf"it: {second} %, about {100 - second} s left, until \d\d:\d\d\n", text), text


def test_the_end_follows_the_pace_without_the_first_addition_that_compiles(capsys):
    now = [0.0]
    work = progress.Progress(10, "it", clock=lambda: now[0])
    now[0] = 600.0
    work.add(1)
    assert capsys.readouterr().err == "it: 10 %\n"
    now[0] = 1200.0
    work.add(1)
    assert "20 %, about 80 min left" in capsys.readouterr().err
    now[0] = 7200.0
    work.add(3)
    assert "50 %, about 2.3 h left" in capsys.readouterr().err
    now[0] = 7300.0
    work.add(5)  # done
    assert not capsys.readouterr().err
