"""Compare-aggregate: alignment, windows, pooling, columns and the listwise loss, by hand and pair by pair."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_up_questions import (
    WORDS,
    logits_of,
    made_up,
    random_weights,
)
from made_up_questions import WORDS as KNOWN_WORDS

from varitext.answers.networks import network_inputs
from varitext.answers.task import listwise_loss
from varitext.batches.pairs import PairBatch, PairBatches
from varitext.batches.tokens import TokenBatch
from varitext.layers.attention import AttentionPooling, Windows, Words, soft_alignment
from varitext.models.answers.compare_aggregate import POSITION_DROPPED, CompareAggregate, PairColumns
from varitext.models.answers.features.overlap import Overlap
from varitext.runtime.randomness import seeded


def batch_of(labels: list[float], question_of: list[int], weights: list[float] | None = None) -> PairBatch:
    n = len(labels)
    return PairBatch(
        questions=TokenBatch.from_lists([np.array([2])] * (max(question_of) + 1)),
        answers=TokenBatch.from_lists([np.array([2])] * n),
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


def test_listwise_loss_weighs_right_answers_by_their_gains():
    batch = replace(batch_of([1, 1, 0], [0, 0, 0]), gains=torch.tensor([3.0, 1.0, 0.0]))
    logits = torch.tensor([1.0, 0.0, 2.0])
    share = logits.log_softmax(0)
    torch.testing.assert_close(listwise_loss(logits, batch), -(3 * share[0] + share[1]) / 4)


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


@pytest.mark.parametrize("features", [None, "words", "counts,position"])
def test_a_candidate_is_scored_alike_in_any_company(features):
    corpus = made_up(6, seed=3)
    model = CompareAggregate(len(WORDS), 8, 6, 4, features=features).eval()
    overlap = Overlap.learn(corpus, WORDS)
    batches = PairBatches(corpus, WORDS, inputs=network_inputs(model, corpus, overlap))
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


@pytest.mark.parametrize("features", ["words", "words,counts,position", "counts"])
def test_compare_aggregate_pair_by_pair(features):
    asked = made_up(3, seed=3)
    model = random_weights(CompareAggregate(len(KNOWN_WORDS), 5, 4, 3, (1, 3), features=features))
    overlap = Overlap.learn(asked, KNOWN_WORDS)
    inputs = network_inputs(model, asked, overlap)
    columns, words = inputs.columns, inputs.words
    batch = PairBatches(asked, KNOWN_WORDS, inputs=inputs).batch(range(3))
    found = logits_of(model, batch)
    assert found.shape == (2, 15) and torch.equal(found[0], found[1])
    for pair in range(15):
        sides = []
        rows = batch.questions.tokens[batch.question_of[pair]], batch.answers.tokens[pair]
        vectors = [torch.tanh(model.project(model.word_vectors(row[row > 0]))) for row in rows]
        scores = vectors[0] @ vectors[1].T / math.sqrt(4)
        aligned = scores.softmax(1) @ vectors[1], scores.softmax(0).T @ vectors[0]
        for own, other, side, place in zip(
            vectors, aligned, (model.question_side, model.answer_side), (0, 1), strict=True
        ):
            parts = [own, own * other, (own - other) ** 2]
            if words is not None:
                parts.append(torch.from_numpy(words[pair][place]).double())
            compared = torch.relu(side.compare(torch.cat(parts, 1)))
            windows = torch.relu(side.windows(Words(compared, torch.ones(1, len(own), dtype=torch.bool))))
            sides.append(side.pooling.score(windows)[:, 0].softmax(0) @ windows)
        if "position" in features:
            counts, (position, length) = columns[pair, :-2], columns[pair, -2:]
            known = not np.isnan(position)
            place = [position if known else 0, known, known and position == 0, (length - 3) * known]
            sides += [torch.from_numpy(np.log1p(counts)), torch.tensor(place).double()]
        elif "counts" in features:
            sides.append(torch.from_numpy(np.log1p(columns[pair])))
        expected = model.output(torch.relu(model.hidden(torch.cat(sides))))[0]
        if "counts" in features:
            expected = expected + torch.from_numpy(columns[pair, 5:18]) @ model.linear.weights
        torch.testing.assert_close(expected, found[0, pair], rtol=1e-5, atol=1e-6)  # columns: 32 bits


def test_places_are_dropped_for_whole_questions_in_training_alone():
    columns, questions, candidates = PairColumns(position=True), 4000, 2
    positions = torch.tensor([[0.0, 2.0], [1.0, 2.0]]).repeat(questions, 1)
    batch = PairBatch(
        questions=TokenBatch.from_lists([np.array([2])] * questions),
        answers=TokenBatch.from_lists([np.array([2])] * questions * candidates),
        question_of=torch.arange(questions).repeat_interleave(candidates),
        labels=torch.zeros(questions * candidates),
        weights=torch.ones(questions * candidates),
        features=positions,
    )
    place, pairs = columns.eval()(batch), questions * candidates
    assert place.shape == (pairs, 4)
    assert place[:2].tolist() == [[0, 1, 1, -1], [1, 1, 0, -1]] and (place[:, 1] == 1).all()
    with seeded(0):
        known = columns.train()(batch).view(questions, candidates, 4)
    assert torch.equal(known[:, 0, 1], known[:, 1, 1])  # of a question all or none
    assert abs((known[:, 0, 1] == 0).double().mean() - POSITION_DROPPED) < 4 * math.sqrt(0.09 / questions)
    unknown = known[known[:, 0, 1] == 0]
    assert not unknown[..., 0].any() and not unknown[..., 2:].any()
    missing = PairBatch(batch.questions, batch.answers, batch.question_of, batch.labels, batch.weights)
    assert columns(missing).shape == (pairs, 4) and not columns(missing).any()


def test_likeness_counts_and_place_stand_side_by_side():
    columns = PairColumns(likeness=True, counts=True, position=True).eval()
    batch = PairBatch(
        questions=TokenBatch.from_lists([np.array([2])]),
        answers=TokenBatch.from_lists([np.array([2])]),
        question_of=torch.zeros(1, dtype=torch.int64),
        labels=torch.zeros(1),
        weights=torch.ones(1),
        features=torch.tensor([[0.6, 0.85, 0.0, 1.0, 2.0, 3.0, 4.0, math.log(2), math.log(8)]]),
    )
    counts = [math.log(one) for one in (1, 2, 3, 4, 5)]
    wanted = [0, 1, *counts, math.log(2), 1, 0, math.log(8) - 3]
    torch.testing.assert_close(columns(batch), torch.tensor([wanted]))


@pytest.mark.parametrize("features", ["words", "counts", "position", None])
def test_what_compare_aggregate_reads_is_what_is_named(features):
    model = CompareAggregate(10, 5, 4, 3, (1, 3), features=features)
    assert model.reads_word_features == (features in ("words", None)) and len(model.pair_columns) == {
        "words": 0,
        "counts": 18,
        "position": 2,
    }.get(features, 20)
    assert model.counts_shared_words == (features != "position")
    assert model.reads_positions == (features in ("position", None))
