"""Dense products, the same bits on every machine: each output is one sum of products, from 0 on, in rising order of its terms.

Libraries of matrix products cut a sum by the width of the processor's registers, and fuse products with sums. Here a tile of
outputs lies in registers while its terms go by one after the other: vector instructions run over outputs, never along a sum,
so that their width cannot matter.
"""

from __future__ import annotations

import numpy as np

from xcrepro.core.kernels import kernel

try:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
except ImportError:  # then what is made of it is never called

    def intrinsic(function):  # type: ignore[no-redef]
        return function


_ROWS, _BYTES = 4, 64  # a tile's rows, and the bytes of each: half the registers that most processors have
_TERMS, _COLUMNS = 256, 256  # of a panel of B, which stays in the cache while all rows of A pass


@intrinsic
def _tile(typing, A, i, j, strip, fresh, out, row, column):
    """out[row + r, column:] += A[i + r, j + t] * strip[t], t after t, for each row r of a tile.

    A row beyond A's last is its last. strip: (terms, lanes), contiguous. fresh: the sums start at 0. out: of contiguous rows.
    """

    def generate(context, builder, signature, arguments):
        def array(at):
            return context.make_array(signature.args[at])(context, builder, arguments[at])

        def address(array, row, column, typ):
            down, along = cgutils.unpack_tuple(builder, array.strides, 2)
            offset = builder.add(builder.mul(row, down), builder.mul(column, along))
            return builder.bitcast(cgutils.pointer_add(builder, array.data, offset), typ.as_pointer())

        def load(place, typ):
            value = builder.load(place, typ=typ)
            value.align = size  # that of a number, whatever is loaded
            return value

        matrix, strip, out = array(0), array(3), array(5)
        i, j, fresh, row, column = (arguments[at] for at in (1, 2, 4, 6, 7))
        whole, number, size = i.type, context.get_data_type(A.dtype), A.dtype.bitwidth // 8
        vector = ir.VectorType(number, _BYTES // size)
        all_lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
        last = builder.sub(cgutils.unpack_tuple(builder, matrix.shape, 2)[0], whole(1))
        rows, ends, sums = [], [], []
        for r in range(_ROWS):
            at = builder.add(i, whole(r))
            rows.append(builder.select(builder.icmp_signed("<", at, last), at, last))
            ends.append(address(out, builder.add(row, whole(r)), column, vector))
            start = builder.select(fresh, ir.Constant(vector, None), load(ends[r], vector))
            sums.append(cgutils.alloca_once_value(builder, start))  # which the compiler makes a register
        with cgutils.for_range(builder, cgutils.unpack_tuple(builder, strip.shape, 2)[0]) as loop:
            terms = load(address(strip, loop.index, whole(0), vector), vector)
            for at, total in zip(rows, sums, strict=True):
                factor = load(address(matrix, at, builder.add(j, loop.index), number), number)
                factor = builder.insert_element(ir.Constant(vector, ir.Undefined), factor, ir.IntType(32)(0))
                product = builder.fmul(builder.shuffle_vector(factor, factor, all_lanes), terms)
                builder.store(builder.fadd(builder.load(total, typ=vector), product), total)
        for end, total in zip(ends, sums, strict=True):
            builder.store(builder.load(total, typ=vector), end).align = size
        return context.get_dummy_value()

    return types.void(A, i, j, strip, fresh, out, row, column), generate


def _plain(A, B, out):
    """The same in NumPy's terms: term after term, for all outputs at once."""
    out[:] = 0
    for t in range(A.shape[1]):
        out += A[:, t, None] * B[t]


@kernel(plain=_plain)
def product(A, B, out):
    """out = A @ B, of one type, float32 or float64, and any strides."""
    n, width, n_terms = A.shape[0], B.shape[1], A.shape[1]
    lanes = _BYTES // A.itemsize
    # A panel's strips of columns lie one after the other, the last filled up.
    panel = np.zeros((-(-min(width, _COLUMNS) // lanes), min(n_terms, _TERMS), lanes), A.dtype)
    edge = np.empty((_ROWS, lanes), A.dtype)  # a tile that reaches beyond ``out``
    direct = out.strides[1] == out.itemsize
    for i in range(0 if n_terms else n):
        for c in range(width):
            out[i, c] = 0
    for left in range(0, width, _COLUMNS):
        right = min(left + _COLUMNS, width)
        for j in range(0, n_terms, _TERMS):
            terms = min(_TERMS, n_terms - j)
            for t in range(terms):
                for c in range(left, right, lanes):
                    part, strip = B[j + t, c : min(c + lanes, right)], panel[(c - left) // lanes, t]
                    for lane in range(part.size):
                        strip[lane] = part[lane]
            for c in range(left, right, lanes):
                strip, used = panel[(c - left) // lanes, :terms], min(lanes, right - c)
                for i in range(0, n, _ROWS):
                    rows = min(_ROWS, n - i)
                    if direct and used == lanes and rows == _ROWS:
                        _tile(A, i, j, strip, j == 0, out, i, c)
                    else:
                        for r in range(rows):
                            for lane in range(used):
                                edge[r, lane] = out[i + r, c + lane]
                        _tile(A, i, j, strip, j == 0, edge, 0, 0)
                        for r in range(rows):
                            for lane in range(used):
                                out[i + r, c + lane] = edge[r, lane]
