"""The course: ten lessons in ``notebooks/course``, and what ``xcrepro course`` makes of them for students and teachers.

A lesson is one notebook with its solutions in it, marked with nbgrader's metadata; :mod:`xcrepro.tools.course.lessons` reads
and checks it. :mod:`xcrepro.tools.course.copies` makes the students' copies and the teacher's folder,
:mod:`xcrepro.tools.course.slides` the slides. Nothing here knows of XC.
"""

from xcrepro.tools.course.copies import write
from xcrepro.tools.course.lessons import Lesson, find, read

__all__ = ["Lesson", "find", "read", "write"]
