"""What `python -m tests.size` counts."""

from tests.size import lines, sizes

SOURCE = '''"""Of the module,
two lines."""
import os  # a comment beside code


# a comment
def f(x):
    """One."""
    return (x,
            "a string\\
")


VALUE = """no
docstring"""
'''


def test_code_docstrings_and_functions_are_counted_apart():
    assert lines(SOURCE) == (7, 3, 1)


def test_a_room_is_counted_in_its_folder_and_in_the_whole(tmp_path):
    for name in (
        "xcrepro/core/kernels/a.py",
        "xcrepro/core/kernels/deep/b.py",
        "xcrepro/c.py",
        "tests/core/kernels/d.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("A = 1\n")
    assert {room: size["code"] for room, size in sizes(tmp_path).items()} == {
        "all": 4, "all Python": 4, "xcrepro": 3, "xcrepro/core": 2, "xcrepro/core/kernels": 2, "xcrepro/c.py": 1,
        "tests": 1, "tests/core": 1,
    }  # fmt: skip
