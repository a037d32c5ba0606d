"""What metrics are made of, in parts that merge to the same bits in any order.

A fold is fed blocks of rows (:class:`xcrepro.core.accumulators.block.Block`) and holds whole numbers only: counts, and sums
of real numbers in exact integers that are rounded once, when a result is asked for. Adding whole numbers depends on no order,
so the bits of every result are the same for any cutting of the rows into blocks, any order of the blocks, any tree of merges
and any number of threads or processes. :class:`xcrepro.State` holds the folds that its metrics need.

Each fold has

- ``add(block)``: fold in a block. Of rows and of labels also with ``weights`` for resampling: row i counts ``weights[i]`` times
  (whole numbers, 0 allowed);
- ``merge(other)``: fold in another fold of the same options (the State compares those);
- ``arrays()`` -> dict of str to ndarray: everything it holds, in a canonical form, so that equal folds have equal bytes;
- ``restore(arrays)``: the inverse, on a fresh fold of the same options; a ``ValueError`` that says what is wrong where arrays
  from a file cannot be right (a missing name, another dtype or shape, negative counts).
"""
