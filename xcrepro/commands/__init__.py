"""The commands of ``xcrepro``, a file a group: ``add(command)`` names each and its arguments, ``_name`` does it.

Importing one imports no library, so that ``xcrepro --help`` is quick.
"""

from xcrepro.commands import datasets, evaluation, items, report

GROUPS = (items, datasets, evaluation, report)  # the order of ``xcrepro --help``
