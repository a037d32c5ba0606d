"""Typical wrong programs for every exercise, a student's or a language model's, and the message that each must get.

``wrong_programs.txt`` has them by lesson (``#``) and exercise (``##``): what is wrong (``-``), the body that stands between the
solution's markers (of two solutions, divided by ``---``), and how the message of the check begins that students see (``>``).
"""

from pathlib import Path

WRONG: dict[str, dict[str, list[tuple[str, str, str]]]] = {}
for _line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
    _mark, _, _text = _line.partition(" ")
    if _mark == "#":
        _lesson = WRONG.setdefault(_text, {})
    elif _mark == "##":
        _programs = _lesson.setdefault(_text, [])
    elif _mark == "-":
        _what, _body = _text, ""
    elif _mark == ">":
        _programs.append((_what, _body, _text))
        _body = ""
    else:
        _body += f"{_line}\n"
