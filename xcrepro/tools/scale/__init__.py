"""Evaluation beyond one machine: blocks of rows that workers read themselves, and States that are merged.

>>> import tempfile
>>> import numpy as np, xcrepro as xc
>>> Y, folder = np.eye(4), tempfile.mkdtemp()
>>> top = xc.TopK.from_ids([[0, 1], [1, 2], [3, 2], [0, 1]], n_labels=4)
>>> paths = xc.scale.write_blocks(Y, top, folder, rows=3)
>>> [path.name for path in paths]
['block-000000000000.npz', 'block-000000000003.npz']
>>> xc.scale.evaluate(paths, metrics=["P@1", "coverage@2"])
     metric  k  value
0         P  1   0.50
1  coverage  2   0.75

Names load their module when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xcrepro.tools.scale.blocks import block_paths as block_paths
    from xcrepro.tools.scale.blocks import read_block as read_block
    from xcrepro.tools.scale.blocks import write_block as write_block
    from xcrepro.tools.scale.fold import BlocksFailed as BlocksFailed
    from xcrepro.tools.scale.metrics import evaluate as evaluate
    from xcrepro.tools.scale.metrics import state as state
    from xcrepro.tools.scale.writing import predict_blocks as predict_blocks
    from xcrepro.tools.scale.writing import write_blocks as write_blocks

_WHERE = {
    "evaluate": "metrics",
    "state": "metrics",
    "BlocksFailed": "fold",
    "block_paths": "blocks",
    "read_block": "blocks",
    "write_block": "blocks",
    "write_blocks": "writing",
    "predict_blocks": "writing",
}
__all__ = sorted(_WHERE)


def __getattr__(name: str):
    if name in _WHERE:
        return getattr(importlib.import_module(f"xcrepro.tools.scale.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'xcrepro.scale' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
