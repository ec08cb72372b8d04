"""LSTMs in chunks and side by side: neither changes what is read, or what is learned."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from varitext.batches.tokens import TokenBatch
from varitext.layers import lstm as sentence_lstm
from varitext.layers.lstm import SentenceLSTM, chunk_bounds, read
from varitext.layers.words import WordEmbedding
from varitext.runtime.devices import running_on, workers
from varitext.runtime.randomness import seeded

EMBEDDING = WordEmbedding(18, 8, fixed_words=6).double()


def sentences_of(lengths, seed=0):
    generator = np.random.default_rng(seed)
    return TokenBatch.from_lists([generator.integers(2, 20, length) for length in lengths])


MANY = np.random.default_rng(0).integers(0, 30, 200).tolist()
MANY[3] = 0


@pytest.mark.parametrize("call", [0, 200, 10**9])
def test_the_last_state_is_the_unbatched_one(monkeypatch, call):
    monkeypatch.setattr(sentence_lstm, "CALL", call)
    lstm, batch = SentenceLSTM(8, 6, 3).double().eval(), sentences_of(MANY)
    found = lstm(batch, EMBEDDING)
    assert not found.states[~batch.mask].any() and not found.last[3].any()
    for row in (0, 50, 199):
        words = batch.tokens[row][batch.mask[row]]
        alone, _ = lstm.lstm(EMBEDDING(words)[None])
        torch.testing.assert_close(found.states[row][batch.mask[row]], alone[0])
        torch.testing.assert_close(found.last[row], alone[0, -1])


@pytest.mark.parametrize("lengths", [(0,), (0, 0, 0), (0, 3)])
@pytest.mark.parametrize("fixed_words", [0, 6, 18])
def test_sentences_of_no_words_are_read_as_zeros(lengths, fixed_words):
    lstm, embedding = SentenceLSTM(8, 6), WordEmbedding(18, 8, fixed_words)
    found = lstm(sentences_of(lengths), embedding)
    assert found.states.shape == (len(lengths), max(1, *lengths), 6) and not found.last[0].any()
    found.states.sum().backward()


@pytest.mark.parametrize("grad", [True, False])
def test_chunks_and_workers_change_nothing(monkeypatch, grad):
    """The same random state drops the same numbers, and states and gradients agree."""
    lstms = [SentenceLSTM(8, 6).double(), SentenceLSTM(8, 6).double()]
    batches = [sentences_of(MANY[:40], seed=1), sentences_of(MANY, seed=2)]
    found = []
    for call, threads in ((10**9, 1), (10, 1), (10, 2), (10, 3)):
        monkeypatch.setattr(sentence_lstm, "CALL", call)
        torch.manual_seed(5)
        with running_on(threads, parallel_jobs=True), torch.set_grad_enabled(grad):
            states = [part for one in read(lstms, batches, EMBEDDING) for part in (one.states, one.last)]
            assert all(part.requires_grad == grad for part in states)
            parameters = [*EMBEDDING.parameters(), *lstms[0].parameters(), *lstms[1].parameters()]
            loss = sum(part.square().sum() for part in states)
            gradients = torch.autograd.grad(loss, parameters) if grad else []
        found.append([*states, *gradients])
    for other in found[1:]:
        torch.testing.assert_close(other, found[0])
    if grad:
        assert not found[2][4][0].any() and found[2][4].any()  # padding does not move, words do


def test_workers_take_the_jobs(monkeypatch):
    """Two jobs are taken by two of them, and backwards too."""
    monkeypatch.setattr(sentence_lstm, "CALL", 10)
    names = set()
    together = threading.Barrier(2, timeout=30)  # broken if one worker does both
    run, walk_back = sentence_lstm.Job.run, sentence_lstm._walk_back

    def seen(work):
        def wrapped(*arguments):
            names.add((work.__name__, threading.current_thread().name))
            together.wait()
            return work(*arguments)

        return wrapped

    monkeypatch.setattr(sentence_lstm.Job, "run", seen(run))
    monkeypatch.setattr(sentence_lstm, "_walk_back", seen(walk_back))
    with running_on(2, parallel_jobs=True):
        SentenceLSTM(8, 6).double()(sentences_of([9, 5, 1]), EMBEDDING).states.sum().backward()
    assert {name for name, _ in names} == {"run", "_walk_back"}
    assert len(names) == 4 and not any(thread == threading.current_thread().name for _, thread in names)


def test_weights_that_stay_need_no_gradient(monkeypatch):
    """Words may learn while the LSTM does not."""
    monkeypatch.setattr(sentence_lstm, "CALL", 10)
    lstm, gradients = SentenceLSTM(8, 6, dropout=0.0).double().requires_grad_(False), []
    for threads in (1, 2):
        with running_on(threads, parallel_jobs=True):
            states = lstm(sentences_of(MANY), EMBEDDING).states
            gradients.append(torch.autograd.grad(states.square().sum(), EMBEDDING.weight))
    torch.testing.assert_close(*gradients)


def test_workers_are_gone_when_the_block_ends():
    before, threads = torch.get_num_threads(), threading.active_count()
    with running_on(2, parallel_jobs=True):
        assert torch.get_num_threads() == 1
        SentenceLSTM(8, 6).double()(sentences_of(MANY), EMBEDDING)
        with running_on(2):
            assert torch.get_num_threads() == 2 and workers() is None
        assert workers() is not None
    assert workers() is None
    assert torch.get_num_threads() == before and threading.active_count() == threads


def test_an_error_in_a_worker_is_the_callers():
    with running_on(2, parallel_jobs=True), pytest.raises(RuntimeError, match=r"input\.size"):
        SentenceLSTM(9, 6).double()(sentences_of(MANY), EMBEDDING)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=80))
def test_every_sentence_is_in_one_chunk(lengths):
    lengths.sort(reverse=True)
    bounds = chunk_bounds(lengths)
    assert [place for start, end in bounds for place in range(start, end)] == list(range(len(lengths)))
    for start, end in bounds:
        assert sum(lengths[start] - length for length in lengths[start:end]) <= sentence_lstm.CALL
        if end < len(lengths):  # one more sentence would wait too long
            assert sum(lengths[start] - length for length in lengths[start : end + 1]) > sentence_lstm.CALL


def test_a_forget_bias_is_that_of_the_forget_gates_alone():
    made = []
    for forget_bias in (0.0, 1.5):
        with seeded(0):
            made.append(SentenceLSTM(3, 4, layers=2, forget_bias=forget_bias).lstm)
    for name, weight in made[0].named_parameters():
        added = torch.zeros(16).index_fill(0, torch.arange(4, 8), 1.5 if "bias_ih" in name else 0.0)
        torch.testing.assert_close(made[1].get_parameter(name), weight + added if weight.dim() == 1 else weight)
