"""What `python -m tests.size` counts."""

from tests.size import lines

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
