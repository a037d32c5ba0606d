"""The commands of ``xcrepro``, a file a group: ``add(command)`` names each and its arguments, ``_name`` does it.

Importing one imports no library, so that ``xcrepro --help`` is quick.
"""

from xcrepro.tools.commands import (
    blocks,
    cache,
    conversion,
    course,
    datasets,
    evaluation,
    items,
    judge,
    report,
)

GROUPS = (items, datasets, conversion, evaluation, blocks, judge, report, cache, course)
"""In the order of ``xcrepro --help``."""
