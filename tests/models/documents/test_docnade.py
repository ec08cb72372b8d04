"""docNADE's mathematics: probabilities that sum to one, the estimate it learns from, gradients."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse
import torch
from synthetic import batch_of, topic_documents

from varitext import DocumentModel, InputError
from varitext.batches.counts import CountBatch
from varitext.models.documents import model_class
from varitext.models.documents.docnade import DocNADE, in_random_order, stacked
from varitext.runtime.randomness import seeded

WORDS = 5  # a vocabulary small enough to write all documents down
FREQUENCIES = torch.tensor([40.0, 20.0, 5.0, 2.0, 1.0], dtype=torch.double)


def network(words: int = WORDS, **settings) -> DocNADE:
    torch.manual_seed(0)
    model = DocNADE(words, latent_dim=3, **settings).double()
    model.learn_frequencies(FREQUENCIES if words == WORDS else torch.ones(words))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.8)
    return model.eval()


def in_order(model: DocNADE, sequences: list[tuple[int, ...]]) -> torch.Tensor:
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    words = torch.tensor([word for sequence in sequences for word in sequence])
    return model.log_probability_in_order(
        words, torch.arange(len(sequences)).repeat_interleave(lengths), len(sequences)
    )


def by_hand(model: DocNADE, sequence: tuple[int, ...]) -> float:
    """Word by word, as the paper writes it."""
    total, before = 0.0, torch.zeros(3, dtype=torch.double)
    for word in sequence:
        hidden = torch.sigmoid(model.bias + before)
        total += torch.log_softmax(model.output.weight @ hidden + model.output.bias, 0)[word].item()
        before = before + model.embedding[word]
    return total


@pytest.mark.parametrize("length", [1, 2, 4])
def test_the_probabilities_of_all_sequences_sum_to_one(length):
    sequences = list(itertools.product(range(WORDS), repeat=length))
    torch.testing.assert_close(in_order(network(), sequences).logsumexp(0).item(), 0.0, atol=1e-10, rtol=0)


def test_prefix_sums_are_the_formula_word_by_word(monkeypatch):
    model, sequences = network(), [(0, 1, 1, 4), (3,), (2, 2, 0, 1, 4, 4)]
    monkeypatch.setattr("varitext.models.documents.docnade.MAX_LOGITS", 4 * WORDS)  # documents then lie across blocks
    expected = torch.tensor([by_hand(model, sequence) for sequence in sequences], dtype=torch.double)
    torch.testing.assert_close(in_order(model, sequences), expected)


def test_what_it_learns_from_is_the_mean_over_all_orders():
    """The objective's mean over many draws, against all orders of three small documents."""
    model, batch = network(draws=1000), batch_of([[2, 1, 0, 0, 1], [0, 0, 1, 0, 0], [1, 0, 0, 2, 0]])
    expected = []
    for document in ([0, 0, 1, 4], [2], [0, 3, 3]):
        expected.append(in_order(model, list(itertools.permutations(document))).mean().item())
    with torch.no_grad():
        found = torch.stack([model.objective(batch, 1, 1.0).surrogate for _ in range(10)])  # [10, 3]
    error = found.std(0) / math.sqrt(10)
    assert ((found.mean(0) - torch.tensor(expected)).abs() < 4 * error + 1e-9).all()
    assert (error < 0.1).all()


def test_gradients_are_those_of_finite_differences():
    model = network().requires_grad_(True)
    batch = batch_of([[2, 1, 0, 0, 1], [0, 0, 1, 3, 0]])

    def value(*_: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(1)
        return model.objective(batch, 1, 1.0).surrogate

    assert torch.autograd.gradcheck(value, tuple(model.parameters()))


def test_random_orders_are_orders_of_the_same_words():
    batch = batch_of([[2, 1, 0, 0, 1], [0, 0, 1, 3, 0]])
    torch.manual_seed(0)
    seen = set()
    for _ in range(200):
        words, documents, size = in_random_order(batch)
        assert (documents.tolist(), size) == ([0] * 4 + [1] * 4, 2)
        assert sorted(words[:4].tolist()) == [0, 0, 1, 4] and sorted(words[4:].tolist()) == [2, 3, 3, 3]
        seen.add((*words[:4].tolist(),))
    assert len(seen) == 12  # 4! / 2!


def test_both_figures_of_a_document_and_their_order():
    model, counts = network(), scipy.sparse.csr_matrix(np.array([[2, 1, 0, 0, 1], [0, 0, 1, 3, 0]], np.float32))
    many = model.evaluate(counts, samples=5000, seed=0)  # 1,000 orders
    orders = in_order(model, list(itertools.permutations([0, 0, 1, 4])))
    assert many.elbo[0] == pytest.approx(orders.mean().item(), abs=0.1)
    assert many.importance_weighted[0] == pytest.approx(orders.logsumexp(0).item() - math.log(24), abs=0.1)
    assert (many.importance_weighted >= many.elbo).all() and not many.kl.any()
    again = model.evaluate(counts, samples=20, seed=3)
    np.testing.assert_array_equal(again.elbo, model.evaluate(counts, samples=20, seed=3).elbo)


def test_a_round_is_chosen_by_an_estimate_of_the_same_value():
    model, counts = network(), scipy.sparse.csr_matrix(np.array([[2, 1, 0, 0, 1], [0, 0, 1, 3, 0]], np.float32))
    found = model.evaluate_round(counts, samples=2000, seed=0)
    np.testing.assert_allclose(found.elbo, model.evaluate(counts, samples=5000, seed=0).elbo, atol=0.1)
    assert found.elbo == pytest.approx(model.evaluate_round(counts, samples=2000, seed=0).elbo)
    assert found.elbo != pytest.approx(model.evaluate_round(counts, samples=2000, seed=1).elbo, abs=1e-6)


def test_it_learns_and_is_kept(tmp_path):
    model = DocumentModel("docnade", 4, epochs=25, learning_rate=2e-2, threads=1, n_topics=4).fit(topic_documents(400))
    held_out = topic_documents(100, seed=1)
    record = model.perplexity_record(held_out)
    assert (record.kind, record.kl_per_document, record.n_samples) == ("exact", 0, 4)
    assert record.ratio_to_unigram < 0.75
    assert record.iwae_per_document_perplexity < record.per_document_perplexity
    model.save(tmp_path / "model")
    again = DocumentModel.load(tmp_path / "model")
    assert again.perplexity_record(held_out) == record
    np.testing.assert_array_equal(again.transform(held_out), model.transform(held_out))
    assert len(again.latent_dimensions()) == 4 and len(again.similar_words(again.fitted_.vocabulary.words[0], 3)) == 3


def test_what_it_cannot_do_is_said():
    with pytest.raises(InputError, match="activation is 'sigmoid' or 'tanh'"):
        DocNADE(10, 2, activation="relu")
    with pytest.raises(InputError, match="docnade needs whole counts"):
        DocumentModel("docnade", 2, fractional_counts=True).fit(topic_documents(20))


# Orders


def test_words_stay_in_their_document_however_many_there_are():
    rows = scipy.sparse.identity(4096, np.float32, "csr") * 60
    with seeded(0):
        words, documents, size = in_random_order(CountBatch.from_rows(rows.tocsr()))
    assert size == 4096 and torch.equal(words, documents)


def test_versions_of_a_batch_are_stacked():
    batch = batch_of([[2, 0, 1], [0, 0, 0], [0, 3, 0]])
    parts = torch.tensor([[1.0, 0.0, 3.0], [2.0, 1.0, 1.0]]).double()
    found = stacked(batch, parts)
    expected = CountBatch.from_rows(
        scipy.sparse.csr_matrix(np.array([[2, 0, 1], [0, 0, 0], [0, 3, 0]] * 2, np.float32))
    )
    for name in ("words", "documents", "starts"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    assert found.counts.tolist() == [1, 0, 3, 2, 1, 1] and found.lengths.tolist() == [1, 0, 3, 3, 0, 1]
    assert len(found) == 6 and found.vocabulary_size == 3


def test_an_order_for_every_five_samples():
    model, counts = model_class("docnade")(12, 3), topic_documents(4, 12, 3, 6)
    assert [model.evaluate(counts, samples, 0).drawn for samples in (1, 9, 10, 25)] == [1, 1, 2, 5]
