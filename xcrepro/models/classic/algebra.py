"""Linear algebra that gives the same bits everywhere: no LAPACK, every product by :func:`xcrepro.core.arithmetic.product`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from xcrepro.core import arithmetic, threads
from xcrepro.models.base import unit_rows
from xcrepro.models.progress import Progress

_OVERSAMPLED = 10  # further directions that a subspace iteration carries, so that those asked for settle sooner
_COLUMNS = 32  # right-hand sides that are solved together


def with_constant(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Rows of length 1, in float64, and a last feature that is 1 in all: its weight is the intercept."""
    return sparse.hstack([unit_rows(X), np.ones((X.shape[0], 1))], format="csr")


def ridge(
    X: sparse.csr_matrix,
    target: np.ndarray,
    penalty,
    steps: int = 200,
    eps: float = 1e-6,
    progress: Progress | None = None,
) -> np.ndarray:
    """The W of least ‖X W - target‖² + penalty ‖W‖², (D, m): conjugate gradients, each column for itself.

    penalty: a number, or one for each column. A column is done when its residual is ``eps`` of what it began with.
    """
    penalties = np.broadcast_to(np.asarray(penalty, np.float64), target.shape[1:])
    out, turned = np.zeros((X.shape[1], target.shape[1])), X.T.tocsr()

    def solve(_: int, stretch: slice) -> None:
        own = penalties[stretch]
        residual = turned @ np.ascontiguousarray(target[:, stretch])
        found, direction = np.zeros_like(residual), residual.copy()
        square = (residual * residual).sum(axis=0)
        enough = eps * eps * square
        for _ in range(steps):
            going = square > enough
            if not going.any():
                break
            image = turned @ (X @ direction) + own * direction
            along = (direction * image).sum(axis=0)
            step = np.divide(square, along, out=np.zeros_like(square), where=going & (along > 0))
            found += step * direction
            residual -= step * image
            before, square = square, (residual * residual).sum(axis=0)
            direction = residual + np.divide(square, before, out=np.zeros_like(square), where=before > 0) * direction
        out[:, stretch] = found
        if progress is not None:
            progress.add(found.shape[1])

    threads.over_stretches(target.shape[1], _COLUMNS, solve)
    return out


def solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of a system whose matrix is symmetric and positive definite, by Cholesky's factors."""
    n, lower = len(matrix), np.array(matrix, np.float64)
    found = np.array(right, np.float64)
    for j in range(n):
        lower[j:, j] /= np.sqrt(lower[j, j])
        lower[j + 1 :, j + 1 :] -= lower[j + 1 :, j, None] * lower[None, j + 1 :, j]
    for j in range(n):
        found[j] /= lower[j, j]
        found[j + 1 :] -= lower[j + 1 :, j, None] * found[j]
    for j in range(n - 1, -1, -1):
        found[j] /= lower[j, j]
        found[:j] -= lower[j, :j, None] * found[j]
    return found


def orthonormal(V: np.ndarray) -> np.ndarray:
    """Columns of length 1 at right angles that span what V's do (Gram and Schmidt, twice); what is left of others is 0."""
    Q = np.zeros_like(V)
    for j in range(V.shape[1]):
        column = V[:, j].copy()
        whole = np.sqrt((column * column).sum())
        for _ in range(2):
            if j:
                column -= arithmetic.product(Q[:, :j], arithmetic.product(Q[:, :j].T, column))
        length = np.sqrt((column * column).sum())
        if length > 1e-10 * whole:
            Q[:, j] = column / length
    return Q


def eigen(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All eigenvalues of a symmetric matrix, the largest first, and its eigenvectors as columns (Jacobi, in pairs)."""
    n = len(S)
    m = n + n % 2
    A, V = np.zeros((m, m)), np.eye(m)
    A[:n, :n] = (S + S.T) / 2
    players, enough = np.arange(m), 1e-28 * (A * A).sum()
    for _ in range(30):
        off = A - np.diag(np.diag(A))
        if (off * off).sum() <= enough:
            break
        for _ in range(m - 1):
            p, q = players[: m // 2], players[m // 2 :][::-1]
            _rotate(A, V, np.minimum(p, q), np.maximum(p, q))
            players = np.concatenate([players[:1], players[-1:], players[1:-1]])
    values, V = np.diag(A)[:n], V[:n, :n]
    order = np.argsort(-values, kind="stable")
    return values[order], V[:, order]


def _rotate(A: np.ndarray, V: np.ndarray, p: np.ndarray, q: np.ndarray) -> None:
    """Turn each pair of axes so that A is 0 between them."""
    off = np.where(np.abs(A[p, q]) > 1e-150, A[p, q], 0.0)
    apart = A[q, q] - A[p, p]
    safe = np.where(off == 0, 1.0, off)
    theta = apart / (2 * safe)
    tangent = np.where(theta >= 0, 1.0, -1.0) / (np.abs(theta) + np.sqrt(theta * theta + 1))
    tangent = np.where(off == 0, 0.0, tangent)
    c = 1 / np.sqrt(tangent * tangent + 1)
    s = tangent * c
    for matrix in (A, V):
        left, right = matrix[:, p], matrix[:, q]
        matrix[:, p], matrix[:, q] = c * left - s * right, s * left + c * right
    above, below = A[p], A[q]
    A[p], A[q] = c[:, None] * above - s[:, None] * below, s[:, None] * above + c[:, None] * below


def leading(
    apply: Callable[[np.ndarray], np.ndarray],
    n: int,
    rank: int,
    seed: int,
    steps: int = 8,
    start: np.ndarray | None = None,
    stream: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The ``rank`` largest eigenvalues of a symmetric operator on n places that has none below 0, and their vectors.

    Subspace iteration from a drawn start and a few more directions (Halko, Martinsson and Tropp, 2011), or from ``start``;
    exact, by :func:`eigen`, where those would be all directions.
    """
    width = min(n, rank + _OVERSAMPLED)
    if width == n:
        Q = np.eye(n)
    else:
        Q = arithmetic.normals(seed, stream, n, width) if start is None else start
        Q = orthonormal(Q)
        for _ in range(steps):
            Q = orthonormal(apply(Q))
    values, turn = eigen(arithmetic.product(Q.T, apply(Q)))
    return values[:rank], arithmetic.product(Q, turn[:, :rank])


def clusters(
    X: sparse.csr_matrix, count: int, seed: int | list[int], steps: int = 20, weights: np.ndarray | None = None
) -> np.ndarray:
    """Centres of k-means over rows of length 1, (count, D), each of length 1 too: the nearest has the largest product."""
    rng = np.random.default_rng(seed)
    weights = np.ones(X.shape[0]) if weights is None else weights
    centres = X[np.sort(rng.choice(X.shape[0], count, replace=False))].toarray()
    before = np.zeros(0)
    for _ in range(steps):
        nearest = np.argmax(X @ centres.T, axis=1)
        if np.array_equal(nearest, before):
            break
        before = nearest
        member = sparse.csr_matrix((weights, nearest, np.arange(len(nearest) + 1)), (len(nearest), count))
        sums = (member.T.tocsr() @ X).toarray()
        lengths = np.sqrt((sums * sums).sum(axis=1))
        centres = np.where(lengths[:, None] > 0, sums / np.where(lengths > 0, lengths, 1)[:, None], centres)
    return centres
