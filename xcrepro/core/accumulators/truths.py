"""The truth of all rows: what the largest number of labels that a ranking could cover is worked out from."""

from __future__ import annotations

import numpy as np

from xcrepro.core.accumulators.block import Block
from xcrepro.core.truth import Truth, as_truth


class TruthRows:
    """Every row's relevant labels; see :mod:`xcrepro.core.accumulators` for what every fold has.

    It grows with the rows: which labels can be shown beside each other depends on all of them. The order of the rows does not
    matter to that, and none is kept: rows stand by falling content.

    Parameters
    ----------
    n_labels : int
    """

    def __init__(self, n_labels: int) -> None:
        self._n_labels = n_labels
        self._parts: list[Truth] = []

    def add(self, block: Block, weights: np.ndarray | None = None) -> None:
        """Fold in a block. A row that counts several times shows no more labels than once; one of weight 0 is left out."""
        truth = block.truth
        if weights is not None:
            truth = as_truth(truth.to_csr()[np.asarray(weights) > 0])
        self._parts.append(truth)

    def merge(self, other: TruthRows) -> None:
        """Take another's rows, too."""
        self._parts = [*self._parts, *other._parts]

    def truths(self) -> list[Truth]:
        """The rows, in parts."""
        return list(self._parts)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything it holds."""
        rows = [
            part.indices[start:stop].astype(">i4").tobytes()
            for part in self._parts
            for start, stop in zip(part.indptr[:-1], part.indptr[1:], strict=True)
        ]
        rows.sort()
        ends = np.cumsum([0, *(len(row) // 4 for row in rows)], dtype=np.int64)
        return {"indptr": ends, "indices": np.frombuffer(b"".join(rows), ">i4").astype(np.int32)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back what :meth:`arrays` gave."""
        indptr, indices = arrays["indptr"], arrays["indices"]
        if indptr.dtype != np.int64 or indices.dtype != np.int32 or indptr.ndim != 1 or indices.ndim != 1:
            raise ValueError(f"indptr is {indptr.dtype} {indptr.shape}, indices is {indices.dtype} {indices.shape}")
        if indptr.size < 1 or indptr[0] != 0 or indptr[-1] != indices.size or (np.diff(indptr) < 0).any():
            raise ValueError("indptr does not part the indices")
        rising = np.diff(indices) > 0
        starts = indptr[1:-1]
        rising[starts[(starts > 0) & (starts < indices.size)] - 1] = True
        if indices.size and (indices.min() < 0 or indices.max() >= self._n_labels or not rising.all()):
            raise ValueError(f"labels do not rise in a row, or are not below {self._n_labels}")
        self._parts = [Truth(indptr, indices, self._n_labels)]
