"""The commands of ``xcrepro``, a file a group: ``add(command)`` names each and its arguments, ``_name`` does it.

Importing one imports no library, so that ``xcrepro --help`` is quick.
"""

from xcrepro.commands import conversion, datasets, evaluation, items

GROUPS = (items, datasets, conversion, evaluation)  # the order of ``xcrepro --help``
