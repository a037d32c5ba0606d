"""The commands of ``xcrepro``, a file a group: ``add(command)`` names each and its arguments, ``_name`` does it.

Importing one imports no library, so that ``xcrepro --help`` is quick.
"""

from xcrepro.commands import course, datasets, evaluation, items

GROUPS = (items, datasets, evaluation, course)  # the order of ``xcrepro --help``
