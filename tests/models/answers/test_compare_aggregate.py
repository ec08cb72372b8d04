"""Compare-aggregate: alignment, windows, pooling, features of words and the listwise loss, by hand-worked cases."""

import math

import numpy as np
import pytest
import torch
from made_up_questions import WORDS, made_up

from varitext.answers.task import listwise_loss
from varitext.batches.pairs import PairBatch, PairBatches, PairInputs, padded
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers
from varitext.layers.attention import AttentionPooling, Windows, Words, soft_alignment
from varitext.models.answers.compare_aggregate import CompareAggregate
from varitext.models.answers.features.overlap import Overlap
from varitext.models.answers.features.word_features import WORD_FEATURES, word_features
from varitext.text import Vocabulary


def batch_of(labels: list[float], question_of: list[int], weights: list[float] | None = None) -> PairBatch:
    n = len(labels)
    return PairBatch(
        questions=padded([np.array([2])] * (max(question_of) + 1)),
        answers=padded([np.array([2])] * n),
        question_of=torch.tensor(question_of),
        labels=torch.tensor(labels),
        weights=torch.tensor(weights or [1.0] * n),
    )


def test_listwise_loss_of_two_questions_by_hand():
    logits = torch.tensor([1.0, 0.0, 2.0, 2.0, -1.0])
    batch = batch_of([1, 0, 1, 1, 0], [0, 0, 1, 1, 1])
    first = math.log(1 + math.exp(-1))
    second = math.log(2 * math.exp(2) + math.exp(-1)) - 2
    assert listwise_loss(logits, batch).item() == pytest.approx((first + second) / 2, rel=1e-6)


def test_listwise_loss_looks_at_rankings_alone_and_at_answerable_questions_alone():
    batch, generator = batch_of([1, 0, 0, 0], [0, 0, 1, 1]), torch.Generator().manual_seed(0)
    logits = torch.randn(4, generator=generator)
    moved = logits + torch.tensor([5.0, 5.0, -90.0, 7.0])  # the second question has no right answer
    torch.testing.assert_close(listwise_loss(moved, batch), listwise_loss(logits, batch))
    assert listwise_loss(logits[:2], batch_of([0, 0], [0, 0])).item() == 0


def test_a_drawn_wrong_answer_stands_for_those_that_were_not_drawn():
    whole = listwise_loss(torch.tensor([1.0, 0.5, 0.5, 0.5]), batch_of([1, 0, 0, 0], [0, 0, 0, 0]))
    drawn = listwise_loss(torch.tensor([1.0, 0.5]), batch_of([1, 0], [0, 0], [1.0, 3.0]))
    torch.testing.assert_close(drawn, whole)


def test_listwise_loss_of_huge_logits_is_finite():
    assert listwise_loss(torch.tensor([1e4, -1e4]), batch_of([0, 1], [0, 0])).item() == pytest.approx(2e4)


def sentences(*rows: list[list[float]]) -> Words:
    mask = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.bool)
    for number, row in enumerate(rows):
        mask[number, : len(row)] = True
    return Words(torch.tensor([word for row in rows for word in row]), mask)


def test_alignment_by_hand_and_without_words():
    question, answer = sentences([[2.0, 0.0]], [[1.0, 1.0]]), sentences([[1.0, 0.0], [0.0, 1.0]], [])
    of_question, of_answer = soft_alignment(question, answer)
    share = 1 / (1 + math.exp(-2 / math.sqrt(2)))  # inner products 2 and 0, over the root of 2 dimensions
    torch.testing.assert_close(of_question, torch.tensor([[share, 1 - share], [0.0, 0.0]]))
    torch.testing.assert_close(of_answer, torch.tensor([[2.0, 0.0], [2.0, 0.0]]))


def test_windows_of_a_sentence_are_those_of_the_sentence_alone():
    windows = Windows(2, 3, (1, 3, 5))
    rows = [[[1.0, 2.0]], [[0.5, -1.0], [2.0, 0.0], [1.0, 1.0]], [[3.0, 1.0], [0.0, 1.0]]]
    together = windows(sentences(*rows))
    torch.testing.assert_close(together, torch.cat([windows(sentences(row)) for row in rows]))
    alone = torch.tensor([[1.0, 2.0]])
    centre = torch.cat([alone @ weight[len(weight) // 2] for weight in windows.weights], 1) + windows.bias
    torch.testing.assert_close(together[:1], centre)


def test_pooling_weighs_by_a_softmax_over_the_sentence():
    pooling = AttentionPooling(2)
    with torch.no_grad():
        pooling.score.weight.copy_(torch.tensor([[1.0, 0.0]]))
    words = sentences([[0.0, 1.0], [math.log(3.0), 5.0]], [[9.0, 2.0]])
    torch.testing.assert_close(pooling.weights(words), torch.tensor([[0.25, 0.75], [1.0, 0.0]]))
    torch.testing.assert_close(
        pooling(words, pooling.weights(words)), torch.tensor([[0.75 * math.log(3.0), 4.0], [9.0, 2.0]])
    )


def test_features_of_words_by_hand():
    candidate = Candidate("0", ("He", "wrote", "3", "books", "."), "", 1)
    corpus = QuestionAnswers("one", "test", (), (Question("0", ("who", "writes", "Books", "."), "", (candidate,)),))
    overlap = Overlap(Vocabulary(("books",)), np.array([3]), n_answers=7)
    (found,) = word_features(corpus, overlap)
    rare = math.log(8 / 4) / math.log(8)
    columns = dict(zip(WORD_FEATURES, found.answer.T.tolist(), strict=True))
    assert columns["same_word"] == [0, 0, 0, 1, 0] and columns["same_stem"] == [0, 0, 0, 1, 0]
    assert columns["idf"] == pytest.approx([1, 1, 1, rare, 1]) and columns["same_idf"] == pytest.approx(
        [0, 0, 0, rare, 0]
    )
    assert columns["stop_word"] == [1, 0, 0, 0, 0] and columns["number"] == [0, 0, 1, 0, 0]
    assert columns["capital"] == [1, 0, 0, 0, 0] and columns["punctuation"] == [0, 0, 0, 0, 1]
    assert found.question[:, 0].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("features", [None, "words", "counts,position"])
def test_a_candidate_is_scored_alike_in_any_company(features):
    corpus = made_up(6, seed=3)
    model = CompareAggregate(len(WORDS), 8, 6, 4, features=features).eval()
    overlap = Overlap.learn(corpus, WORDS)
    columns = overlap.features(corpus).only(model.pair_columns).values if model.pair_columns else None
    inputs = PairInputs(columns, word_features(corpus, overlap) if model.reads_word_features else None)
    batches = PairBatches(corpus, WORDS, inputs=inputs)
    with torch.no_grad():
        h = torch.zeros(1, corpus.n_pairs, 0)
        together = model.logits(h, model.encode(batches.batch(range(6))))[0]
        alone = torch.cat([model.logits(h, model.encode(batches.batch([one])))[0] for one in range(6)])
    torch.testing.assert_close(together, alone)


def test_attention_sums_to_one_and_every_weight_learns():
    corpus = made_up(4, seed=5)
    model, batch = CompareAggregate(len(WORDS), 8, 6, 4), PairBatches(corpus, WORDS).batch(range(4))
    encoding = model.encode(batch)
    attention = model.attention_given(torch.zeros(2, len(batch), 0), encoding)
    torch.testing.assert_close(attention.sum(2), torch.ones(2, len(batch)))
    listwise_loss(model.logits(torch.zeros(1, len(batch), 0), encoding)[0], batch).backward()
    idle = {name for name, one in model.named_parameters() if one.grad is None}
    assert not idle
