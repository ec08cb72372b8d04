"""The Gaussian with any covariance, against torch's own."""

import pytest
import torch
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from varitext.latent import DiagonalGaussian, FullGaussian, kl
from varitext.layers.curvature import LEAF, inverse_cholesky


def gaussian(documents: int = 3, dimensions: int = 4) -> FullGaussian:
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(documents, dimensions, generator=generator, dtype=torch.double)
    stretch = torch.rand(documents, dimensions, generator=generator, dtype=torch.double) + 0.5
    root = torch.randn(documents, dimensions, dimensions, generator=generator, dtype=torch.double).tril()
    root.diagonal(dim1=1, dim2=2).abs_().add_(0.1)
    return FullGaussian(mean, stretch, root)


def as_torch(q: FullGaussian) -> MultivariateNormal:
    return MultivariateNormal(q.mean, q.covariance)


def test_density_and_spread():
    q = gaussian()
    h = q.rsample(7)
    torch.testing.assert_close(q.log_prob(h), as_torch(q).log_prob(h))
    torch.testing.assert_close(q.std, as_torch(q).variance.sqrt())


def test_draws_have_its_mean_and_covariance():
    torch.manual_seed(0)
    q = gaussian()
    draws = q.rsample(200_000)
    torch.testing.assert_close(draws.mean(0), q.mean, atol=0.03, rtol=0)
    torch.testing.assert_close(draws[:, 1].T.cov(), q.covariance[1], atol=0.1, rtol=0.02)


def test_divergence_from_a_diagonal_gaussian_has_no_part_below_zero():
    q = gaussian()
    p = DiagonalGaussian(torch.randn_like(q.mean), 0.3 * torch.randn_like(q.mean))
    parts = kl(q, p)
    diagonal = MultivariateNormal(p.mean, torch.diag_embed(p.std.square()))
    torch.testing.assert_close(parts.sum(1), kl_divergence(as_torch(q), diagonal))
    assert (parts >= 0).all()


def test_without_correlations_it_is_the_diagonal_gaussian():
    p = DiagonalGaussian(torch.tensor([[0.3, -1.0]]), torch.tensor([[0.5, -0.2]]))
    q = FullGaussian(p.mean, p.std, torch.eye(2)[None])
    standard = DiagonalGaussian.standard(p.mean)
    torch.testing.assert_close(kl(q, standard), kl(p, standard))
    torch.testing.assert_close(q.log_prob(p.mean[None] + 1), Normal(p.mean, p.std).log_prob(p.mean + 1).sum(-1)[None])


def test_a_curvature_that_is_none_leaves_its_neighbours_alone():
    good = torch.eye(3)
    curvatures = torch.stack([good, torch.full((3, 3), torch.nan), -5 * good, good])
    inverses = inverse_cholesky(curvatures)
    assert torch.allclose(inverses[[0, 3]], (2 + 3e-6) ** -0.5 * good)
    assert not torch.isfinite(inverses[1:3]).any()


@pytest.mark.parametrize("size", [1, LEAF, LEAF + 1, 50])
def test_a_covariance_found_by_halves_is_the_inverse(size):
    spread = torch.randn(3, 2 * size, size, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    curvature = spread.mT @ spread
    inverse = inverse_cholesky(curvature.clone())
    expected = torch.linalg.inv(torch.eye(size) + curvature)
    torch.testing.assert_close(inverse.mT @ inverse, expected, rtol=1e-3, atol=1e-6)  # but for the jitter
    assert torch.equal(inverse, inverse.tril())


def test_a_fault_in_the_second_half_is_seen():
    curvature = torch.zeros(2, 2 * LEAF, 2 * LEAF)
    curvature[1, -1, -1] = -3
    inverse = inverse_cholesky(curvature)
    assert torch.isfinite(inverse[0]).all() and torch.isnan(inverse[1]).all()
