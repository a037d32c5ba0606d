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
"""

from xcrepro.tools.scale.blocks import block_paths, read_block, write_block
from xcrepro.tools.scale.evaluation import evaluate, state
from xcrepro.tools.scale.writing import write_blocks

__all__ = [
    "block_paths",
    "evaluate",
    "read_block",
    "state",
    "write_block",
    "write_blocks",
]
