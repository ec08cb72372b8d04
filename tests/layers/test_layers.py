"""Batches and layers: sparse equals dense, gradients equal finite differences, padding and order do not matter."""

import numpy as np
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from varitext.batches.counts import CountBatch, CountBatches
from varitext.latent.gaussian import LOG_STD_RANGE
from varitext.layers.counts import CountEncoder, multinomial_log_likelihood, scaled_log_counts, sparse_times_dense
from varitext.layers.dense import GaussianHead

count_matrices = arrays.arrays(
    np.float32, st.tuples(st.integers(1, 6), st.integers(1, 8)), elements=st.integers(0, 50).map(float)
)


def batch_of(dense: np.ndarray) -> CountBatch:
    return CountBatch.from_rows(scipy.sparse.csr_matrix(dense))


def dense_of(batch: CountBatch, values: torch.Tensor) -> torch.Tensor:
    result = torch.zeros(len(batch), batch.vocabulary_size, dtype=values.dtype)
    result[batch.documents, batch.words] = values
    return result


@given(count_matrices)
def test_a_batch_holds_its_counts(dense):
    batch = batch_of(dense)
    torch.testing.assert_close(dense_of(batch, batch.counts), torch.from_numpy(dense))
    torch.testing.assert_close(batch.lengths, torch.from_numpy(dense).sum(1))
    assert torch.equal(batch.to("cpu").words, batch.words)


@settings(deadline=None)
@given(count_matrices)
def test_sparse_product_and_its_gradient_equal_dense(dense):
    batch = batch_of(dense)
    torch.manual_seed(0)
    weight = torch.randn(dense.shape[1], 3, requires_grad=True)
    values = torch.randn(len(batch.counts))
    upstream = torch.randn(len(batch), 3)
    sparse = sparse_times_dense(batch, values, weight)
    (sparse_gradient,) = torch.autograd.grad(sparse, weight, upstream)
    reference = dense_of(batch, values) @ weight
    (dense_gradient,) = torch.autograd.grad(reference, weight, upstream)
    torch.testing.assert_close(sparse, reference)
    torch.testing.assert_close(sparse_gradient, dense_gradient)


@settings(deadline=None)
@given(count_matrices)
def test_multinomial_equals_the_dense_formula(dense):
    batch = batch_of(dense)
    torch.manual_seed(0)
    logits = torch.randn(2, *dense.shape, dtype=torch.float64)
    expected = (torch.log_softmax(logits, -1) * torch.from_numpy(dense).double()).sum(-1)
    torch.testing.assert_close(multinomial_log_likelihood(logits, batch), expected)


def test_multinomial_gradient_equals_finite_differences():
    batch = batch_of(np.array([[3, 0, 1], [0, 0, 2], [0, 0, 0]], np.float32))
    logits = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda values: multinomial_log_likelihood(values, batch), logits)


def test_multinomial_equals_torch_distributions():
    counts = np.array([[3.0, 0.0, 1.0]], np.float32)
    logits = torch.tensor([[[0.2, -1.0, 0.7]]])
    ours = multinomial_log_likelihood(logits, batch_of(counts))
    multinomial = torch.distributions.Multinomial(4, logits=logits[0])
    orders = torch.lgamma(torch.tensor(5.0)) - torch.lgamma(torch.tensor(4.0))  # 4! / 3!: we score one word order
    torch.testing.assert_close(ours[0], multinomial.log_prob(torch.from_numpy(counts)) - orders)


@settings(deadline=None)
@given(count_matrices)
def test_encoder_input_has_one_length_whatever_the_document(dense):
    batch = batch_of(dense * 1000)
    norms = dense_of(batch, scaled_log_counts(batch)).norm(dim=1)
    empty = batch.lengths == 0
    torch.testing.assert_close(norms[~empty], torch.full_like(norms[~empty], 7.0))
    assert (norms[empty] == 0).all()


def test_documents_are_encoded_independently_of_their_neighbours():
    torch.manual_seed(0)
    dense = np.random.default_rng(0).poisson(0.5, (12, 30)).astype(np.float32)
    encoder = CountEncoder(30, 16)
    together = encoder(batch_of(dense))
    alone = torch.cat([encoder(batch_of(dense[i : i + 1])) for i in range(len(dense))])
    order = torch.randperm(len(dense))
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(encoder(batch_of(dense[order.numpy()])), together[order])


def test_log_std_starts_at_zero_and_stays_in_range():
    head = GaussianHead(4, 3)
    assert (head(torch.randn(5, 4)).log_std == 0).all()
    torch.nn.init.constant_(head.log_std.weight, 100.0)
    extreme = head(torch.tensor([[1e6] * 4, [-1e6] * 4])).log_std
    assert extreme.max() == LOG_STD_RANGE[1] and extreme.min() == LOG_STD_RANGE[0]


def test_every_document_comes_once_per_epoch_in_an_order_set_by_the_seed():
    counts = scipy.sparse.csr_matrix(np.diag(np.arange(1, 24)).astype(np.float32))
    batches = CountBatches(counts)

    def order(passes):
        return [word for batch in passes for word in batch.words.tolist()]

    first = order(batches.shuffled(5, (0, 0)))
    assert sorted(first) == list(range(23))
    assert first == order(batches.shuffled(5, (0, 0)))
    assert first != order(batches.shuffled(5, (0, 1)))
    assert order(batches.in_order(5)) == list(range(23))


def test_equal_blocks_fill_up_with_empty_documents():
    counts = scipy.sparse.csr_matrix(np.eye(5, dtype=np.float32))
    blocks = list(CountBatches(counts).in_equal_blocks(4))
    assert [(len(batch), real) for batch, real in blocks] == [(4, 4), (4, 1)]
    assert blocks[1][0].lengths.tolist() == [1, 0, 0, 0]
