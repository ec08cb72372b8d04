"""The curvature of log p(h, X) from word vectors, and the covariance of Gaussians with that curvature.

Symmetric matrices are stored as lower triangles, row by row: K (K + 1) / 2 rows, and a column for each matrix. The
work is done in C if possible, otherwise in torch; autograd does not see any of it.
"""

import math

import torch
from torch import Tensor

from varitext import compiled
from varitext.compiled import dcm as compiled_dcm

JITTER = 1e-6  # share of the trace added to the diagonal, against rounding in very long documents
LEAF = 16  # rows of a matrix that LAPACK factorises in one call


@torch.no_grad()
def outer_squares(vectors: Tensor, added: Tensor) -> Tensor:
    """v v^T + `added` [K, K] for each of M vectors, [M, K]: [K (K + 1) / 2, M]."""
    if compiled.usable(vectors, added):
        return compiled_dcm.outer_squares(vectors.T, added)
    rows, columns = torch.tril_indices(*added.shape, device=added.device)
    squares = vectors.T.index_select(0, rows) * vectors.T.index_select(0, columns)
    return squares.add_(added[rows, columns][:, None])


@torch.no_grad()
def covariance_root(squares: Tensor, sums: Tensor, weights: Tensor) -> Tensor:
    """M with M^T M the inverse of I + curvature, lower triangular, [B, K, K]; NaN if there is none.

    The curvature is n times the covariance of word vectors r, whose weights sum to n, [B]: S - m m^T / n, with S the
    sum of r r^T, as lower triangles [K (K + 1) / 2, B], and m the sum of r, [B, K].
    """
    weights = weights.clamp(min=1e-12)
    if compiled.usable(squares, sums, weights):
        return compiled_dcm.inverse_cholesky(squares, sums, weights, JITTER)
    curvature = _whole(squares, sums.shape[1])
    return inverse_cholesky(curvature.addcmul_(sums[:, :, None], (sums / weights[:, None])[:, None, :], value=-1))


@torch.no_grad()
def covariance_times(root: Tensor, vectors: Tensor) -> Tensor:
    """M^T M v, [B, K], with M = root."""
    if compiled.usable(root, vectors):
        return compiled_dcm.covariance_times(root, vectors)
    return (vectors[:, None] @ root.mT @ root)[:, 0]


def _whole(triangles: Tensor, size: int) -> Tensor:
    rows, columns = torch.tril_indices(size, size, device=triangles.device)
    places = torch.empty(size, size, dtype=torch.long, device=triangles.device)
    places[rows, columns] = places[columns, rows] = torch.arange(len(rows), device=triangles.device)
    return triangles.T.index_select(1, places.flatten()).view(-1, size, size)


def inverse_cholesky(curvature: Tensor) -> Tensor:
    """The inverse M of the lower Cholesky factor of I + curvature, [B, K, K], so that M^T M is its inverse.

    Overwrites `curvature`. Gives NaN if there is no factor: if training has diverged, the loss shows it.
    """
    diagonal = curvature.diagonal(dim1=1, dim2=2)
    diagonal += 1 + JITTER * diagonal.sum(1, keepdim=True)
    inverse = torch.zeros_like(curvature)
    fault = _invert_into(inverse, curvature)
    return inverse.masked_fill_(fault[:, None, None], math.nan) if fault.any() else inverse


def _invert_into(inverse: Tensor, matrix: Tensor) -> Tensor:
    """Write the inverse of the lower Cholesky factor into `inverse`; return which matrices have none, [B].

    Works by halves: LAPACK factorises one small matrix at a time, while a product of small matrices is one call for
    the whole batch. At K = 50 this is twice as fast as a factorisation followed by an inversion.
    """
    size = matrix.shape[-1]
    if size <= LEAF:
        factor, fault = torch.linalg.cholesky_ex(matrix)
        identity = torch.eye(size).to(matrix).expand_as(matrix)
        torch.linalg.solve_triangular(factor, identity, upper=False, left=False, out=inverse)
        return torch.as_tensor(fault, dtype=torch.bool)
    half = size // 2
    first, below, second = inverse[:, :half, :half], inverse[:, half:, :half], inverse[:, half:, half:]
    fault = _invert_into(first, matrix[:, :half, :half])
    lower = matrix[:, half:, :half] @ first.mT
    rest = torch.baddbmm(matrix[:, half:, half:], lower, lower.mT, alpha=-1)
    fault |= _invert_into(second, rest)
    below.copy_(second @ (lower @ first)).neg_()
    return fault
