"""What students get back: nbgrader's page of feedback without the hidden tests, and with each check's message.

nbgrader's own page prints a check as it ran, hidden cases included, and a traceback that quotes them. ``nbgrader_config.py``
of the teacher's folder therefore names :data:`PREPROCESSORS`, which nbgrader and its formgrader then use.
"""

from __future__ import annotations

from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbgrader.preprocessors import GetGrades, NbGraderPreprocessor

from xcrepro.tools.course import lessons

_LONGEST = 400


class HideTests(NbGraderPreprocessor):
    """Takes the hidden tests out of every check, and everything that a run of them printed but the message."""

    def preprocess_cell(self, cell, resources, cell_index):
        """The cell as a student may see it; only checks change."""
        marks = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and marks.get("grade") and not marks.get("solution"):
            cell.source = lessons.without_hidden(cell.source)
            cell.outputs = [_said(output) for output in cell.outputs if output.output_type == "error"][:1]
        return cell, resources


def _said(error):
    """The error without its traceback, whose frames quote the hidden tests: what went wrong, and the check's message."""
    said = f"{error.ename}: {error.evalue}"[:_LONGEST]
    return error | {"evalue": error.evalue[:_LONGEST], "traceback": [said]}


PREPROCESSORS = [GetGrades, HideTests, CSSHTMLHeaderPreprocessor]
"""nbgrader's for its page of feedback, with ours between."""
