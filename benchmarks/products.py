"""Dense products in a fixed order of sums beside NumPy's ``@``, whose bits change with the processor, on one thread.

The sizes are those of a step of the networks: a batch of 64 points, 256 hidden values, blocks of 512 labels; float32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.metrics import installed, race, row, without_number
from xcrepro.core import arithmetic

BATCH, HIDDEN, LABELS, BLOCK = 64, 256, 4000, 512
PEER = "NumPy, one BLAS thread"


def cases(n_labels: int) -> dict[str, Callable[[Callable, slice], np.ndarray]]:
    """By name: the product of one block of labels, by the function that is given."""
    rng = np.random.default_rng(0)
    shapes = (BATCH, HIDDEN), (n_labels, HIDDEN), (n_labels, BATCH)
    hidden, output, errors = (rng.standard_normal(shape, np.float32) for shape in shapes)
    return {
        "outputs by hidden values": lambda product, block: product(output[block], hidden.T),
        "errors by outputs": lambda product, block: product(errors[block].T, output[block]),
        "errors by hidden values": lambda product, block: product(errors[block], hidden),
    }


def compare(name: str, case: Callable, n_labels: int, rounds: int) -> list[dict]:
    blocks = [slice(lo, min(lo + BLOCK, n_labels)) for lo in range(0, n_labels, BLOCK)]
    products = {"xcrepro": arithmetic.product, PEER: np.matmul}
    calls = {who: lambda by=by: [case(by, block) for block in blocks] for who, by in products.items()}
    for ours, theirs in zip(calls["xcrepro"](), calls[PEER](), strict=True):
        if not np.allclose(ours, theirs, rtol=1e-3, atol=1e-3):
            raise RuntimeError(f"{name}: the two differ")
    found, work = race(calls, rounds, 0.001), 2e-9 * BATCH * HIDDEN * n_labels
    return [
        row(f"Product, {name}", who, seconds, found["xcrepro"], f"{work / seconds:.0f} GFLOP/s")
        for who, seconds in found.items()
    ]


def run(quick: bool = False) -> list[dict]:
    """Each product over all blocks of labels; ``quick`` takes one small block, to see that everything runs."""
    n_labels, rounds = (70, 3) if quick else (LABELS, 100)
    if not installed("threadpoolctl"):
        return [without_number("Product", PEER, "threadpoolctl is not installed")]
    import threadpoolctl

    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        return [entry for name, case in cases(n_labels).items() for entry in compare(name, case, n_labels, rounds)]
