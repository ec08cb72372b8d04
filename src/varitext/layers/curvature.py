"""What word vectors say of the curvature of log p(h, X), and Gaussians with that curvature.

Symmetric matrices go by their lower triangles, row by row: K (K + 1) / 2 rows, and a column for each matrix. In C where
that can be, else in torch; no gradient runs through this.
"""

import torch
from torch import Tensor

from varitext import compiled
from varitext.latent.gaussian import JITTER, inverse_cholesky


@torch.no_grad()
def outer_squares(vectors: Tensor, added: Tensor) -> Tensor:
    """v v^T + `added` [K, K] for each of M vectors, [M, K]: [K (K + 1) / 2, M]."""
    if compiled.usable(vectors, added):
        return compiled.outer_squares(vectors.T, added)
    rows, columns = torch.tril_indices(*added.shape, device=added.device)
    squares = vectors.T.index_select(0, rows) * vectors.T.index_select(0, columns)
    return squares.add_(added[rows, columns][:, None])


@torch.no_grad()
def covariance_root(squares: Tensor, sums: Tensor, weights: Tensor) -> Tensor:
    """M with M^T M the inverse of I + curvature, lower triangular, [B, K, K]; NaN where there is none.

    The curvature is that of word vectors r with weights of sum n, [B]: n times their covariance, or S - m m^T / n with
    S the sum of r r^T, as lower triangles [K (K + 1) / 2, B], and m that of r, [B, K].
    """
    weights = weights.clamp(min=1e-12)
    if compiled.usable(squares, sums, weights):
        return compiled.inverse_cholesky(squares, sums, weights, JITTER)
    curvature = _whole(squares, sums.shape[1])
    return inverse_cholesky(curvature.addcmul_(sums[:, :, None], (sums / weights[:, None])[:, None, :], value=-1))


@torch.no_grad()
def covariance_times(root: Tensor, vectors: Tensor) -> Tensor:
    """M^T M v, [B, K], with M = root."""
    if compiled.usable(root, vectors):
        return compiled.covariance_times(root, vectors)
    return (vectors[:, None] @ root.mT @ root)[:, 0]


def _whole(triangles: Tensor, size: int) -> Tensor:
    """The matrices themselves: [B, K, K]."""
    rows, columns = torch.tril_indices(size, size, device=triangles.device)
    places = torch.empty(size, size, dtype=torch.long, device=triangles.device)
    places[rows, columns] = places[columns, rows] = torch.arange(len(rows), device=triangles.device)
    return triangles.T.index_select(1, places.flatten()).view(-1, size, size)
