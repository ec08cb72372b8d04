"""Answer models pair by pair, as their formulas are written: networks, columns, WordNet's relations, pieces."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch
from made_up_questions import WORDS as KNOWN_WORDS
from made_up_questions import made_up

from varitext.batches.pairs import PairBatch, PairBatches, PairInputs, padded
from varitext.batches.tokens import PairPieces
from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers
from varitext.layers.attention import Words
from varitext.layers.transformer import Encoder
from varitext.layers.words import Dropout
from varitext.models.answers import cross_encoder, minilm, model_class, paragraph_vectors, pretrained
from varitext.models.answers.compare_aggregate import POSITION_DROPPED, CompareAggregate, PairColumns
from varitext.models.answers.convolutional import BigramCNN, DeepCNN
from varitext.models.answers.cross_encoder import CrossEncoder
from varitext.models.answers.features.alignment import AlignedCorpus, unit_vectors
from varitext.models.answers.features.overlap import COLUMNS, COUNTS, Overlap
from varitext.models.answers.features.word_features import WORD_FEATURES, word_features
from varitext.models.answers.features.wordnet import WordNet, WordSenses
from varitext.models.answers.lclr import (
    LCLR,
    MAX_CHOICES,
    UNRELATED,
    AlignmentChoices,
    _answer_types,
    _relations,
    learn,
    loss_and_gradient,
)
from varitext.models.answers.minilm import SCALE, SHIFT, Likeness, _likeness, _real_words
from varitext.models.answers.overlap_regression import OverlapRegression
from varitext.models.answers.paragraph_vectors import NEGATIVE, NOISE_POWER, SAMPLE, _kept_share, _spread
from varitext.models.answers.pretrained import PretrainedEncoder, _by_word
from varitext.models.answers.vocabulary import AnswerWords
from varitext.models.answers.word_alignment import FAR, WordAlignment, _share
from varitext.runtime.randomness import seeded
from varitext.text import Vocabulary


def question(asked: str, *answers: str, positions: list[int | None] | None = None) -> Question:
    places = positions or [None] * len(answers)
    candidates = [
        Candidate(str(n), tuple(text.split()), text, int(n == 0), place)
        for n, (text, place) in enumerate(zip(answers, places, strict=True))
    ]
    return Question("1", tuple(asked.split()), asked, tuple(candidates))


def corpus(*questions: Question) -> QuestionAnswers:
    return QuestionAnswers("by hand", "train", (), questions)


def away_from_start(model: torch.nn.Module) -> torch.nn.Module:
    """In double precision, in prediction, every weight and bias of a size that shows."""
    with seeded(1):
        model = model.double()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    return model.eval().requires_grad_(False)


def logits_of(model: torch.nn.Module, batch: PairBatch) -> torch.Tensor:
    return model.logits(torch.zeros(2, len(batch), 0), model.encode(batch))


# Networks


@pytest.mark.parametrize("features", ["words", "words,counts,position", "counts"])
def test_compare_aggregate_pair_by_pair(features):
    asked = made_up(3, seed=3)
    model = away_from_start(CompareAggregate(len(KNOWN_WORDS), 5, 4, 3, (1, 3), features=features))
    overlap = Overlap.learn(asked, KNOWN_WORDS)
    columns = overlap.features(asked).only(model.pair_columns).values if model.pair_columns else None
    words = word_features(asked, overlap) if model.reads_word_features else None
    batch = PairBatches(asked, KNOWN_WORDS, inputs=PairInputs(columns, words)).batch(range(3))
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
            place = [position if known else 0, known, known and position == 0, length - 3]
            sides += [torch.from_numpy(np.log1p(counts)), torch.tensor(place).double()]
        elif "counts" in features:
            sides.append(torch.from_numpy(np.log1p(columns[pair])))
        hidden = torch.relu(model.hidden(torch.cat(sides)))
        torch.testing.assert_close(model.output(hidden)[0], found[0, pair], rtol=1e-5, atol=1e-6)  # columns: 32 bits


def test_places_are_dropped_for_whole_questions_in_training_alone():
    columns, questions, candidates = PairColumns(position=True), 4000, 2
    positions = torch.tensor([[0.0, 2.0], [1.0, 2.0]]).repeat(questions, 1)
    batch = PairBatch(
        questions=padded([np.array([2])] * questions),
        answers=padded([np.array([2])] * questions * candidates),
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
    assert not unknown[..., 0].any() and not unknown[..., 2].any() and (unknown[..., 3] == -1).all()
    missing = PairBatch(batch.questions, batch.answers, batch.question_of, batch.labels, batch.weights)
    assert columns(missing).shape == (pairs, 4) and not columns(missing).any()


def test_likeness_counts_and_place_stand_side_by_side():
    columns = PairColumns(likeness=True, counts=True, position=True).eval()
    batch = PairBatch(
        questions=padded([np.array([2])]),
        answers=padded([np.array([2])]),
        question_of=torch.zeros(1, dtype=torch.int64),
        labels=torch.zeros(1),
        weights=torch.ones(1),
        features=torch.tensor([[0.6, 0.85, 0.0, 1.0, 2.0, 3.0, 4.0, math.log(2), math.log(8)]]),
    )
    counts = [math.log(one) for one in (1, 2, 3, 4, 5)]
    wanted = [0, 1, *counts, math.log(2), 1, 0, math.log(8) - 3]
    torch.testing.assert_close(columns(batch), torch.tensor([wanted]))


def test_what_compare_aggregate_reads_is_what_is_named():
    for features, read in (("words", (8, 0)), ("counts", (0, 5)), ("position", (0, 4)), (None, (8, 9))):
        model = CompareAggregate(10, 5, 4, 3, (1, 3), features=features)
        words, columns = read
        for side in (model.question_side, model.answer_side):
            assert side.compare.in_features == 3 * 4 + words and side.windows.bias.shape == (6,)
        assert model.hidden.in_features == 2 * 6 + columns
        assert model.counts_shared_words == (features != "position")
        assert model.reads_positions == (features in ("position", None))


def convolved(row: torch.Tensor, convolution, words, before: int) -> torch.Tensor:
    """All windows of a sentence, [W, H]."""
    vectors, width = words(row[row > 0]), len(convolution.weight)
    line = torch.nn.functional.pad(vectors, (0, 0, before, width - 1))
    starts = range(len(vectors) + before)
    return torch.stack(
        [
            torch.tanh(torch.einsum("wem,we->m", convolution.weight, line[at : at + width]) + convolution.bias)
            for at in starts
        ]
    )


def test_convolutional_networks_pair_by_pair():
    asked = made_up(3, seed=4)
    overlap = Overlap.learn(asked, KNOWN_WORDS)
    columns = overlap.features(asked).only(COUNTS).values
    batch = PairBatches(asked, KNOWN_WORDS, inputs=PairInputs(columns)).batch(range(3))
    bigram = away_from_start(BigramCNN(len(KNOWN_WORDS), 4))
    deep = away_from_start(DeepCNN(len(KNOWN_WORDS), 4, 3, features="overlap"))
    assert DeepCNN(9, 4, 3).output.in_features == 2 * 3 + 1 and deep.output.in_features == 2 * 3 + 1 + len(COUNTS)
    of_bigram, of_deep = logits_of(bigram, batch), logits_of(deep, batch)
    assert of_bigram.shape == of_deep.shape == (2, 15)
    for pair in range(15):
        rows = batch.questions.tokens[batch.question_of[pair]], batch.answers.tokens[pair]
        q, a = (convolved(row, bigram.convolution, bigram.word_vectors, 0).mean(0) for row in rows)
        torch.testing.assert_close(of_bigram[1, pair], q @ bigram.match.weight @ a + bigram.match.bias)
        convolutions = deep.question_convolution, deep.answer_convolution
        q, a = (convolved(row, one, deep.word_vectors, 4).amax(0) for row, one in zip(rows, convolutions, strict=True))
        counts = torch.from_numpy(np.log1p(columns[pair]))
        joint = torch.cat([q, (q @ deep.match.weight @ a + deep.match.bias)[None], a, counts])
        expected = deep.output(torch.tanh(deep.hidden[0](joint)))[0]
        torch.testing.assert_close(of_deep[1, pair], expected, rtol=1e-5, atol=1e-6)


def test_the_cross_encoder_pair_by_pair(monkeypatch):
    asked, generator = made_up(4, 0), np.random.default_rng(0)
    monkeypatch.setattr(cross_encoder, "new_encoder", lambda: Encoder(40, 8, 2, 2, 12))
    model = away_from_start(CrossEncoder(len(KNOWN_WORDS)))
    model.fixed[0].double()
    pieces = []
    for length in generator.integers(2, 9, asked.n_pairs):
        tokens, cut = generator.integers(1, 40, length), generator.integers(1, length)
        pieces.append(PairPieces(tokens, (np.arange(length) >= cut).astype(np.int8)))
    batch = PairBatches(asked, KNOWN_WORDS, inputs=PairInputs(pieces=pieces)).batch(range(4))
    found = logits_of(model, batch)
    for pair, one in enumerate(pieces):
        states = model.fixed[0](*(torch.from_numpy(part.astype(np.int64))[None] for part in one))
        for layer in model.layers:
            states = layer(states, None)
        judged = model.judge(
            torch.relu(model.read_columns(model.columns(batch)[pair].double()))
        )  # of no columns: zeros
        torch.testing.assert_close(found[1, pair], (model.output(states[0].mean(0)) + judged)[0])


DROPPING = ("lstm", "lstm_attention", "nasm", "compare", "bigram_cnn", "deep_cnn")


@pytest.mark.parametrize("name", DROPPING)
def test_every_part_drops_the_share_that_is_asked_for(name):
    model = model_class(name)(30, dropout=0.15)
    layers = [one for one in model.modules() if isinstance(one, Dropout | torch.nn.Dropout)]
    shares = [one.share if isinstance(one, Dropout) else one.p for one in layers]
    assert len(shares) == {"compare": 3, "bigram_cnn": 1, "deep_cnn": 3}.get(name, 2) and set(shares) == {0.15}
    model.train()
    batch = PairBatches(made_up(4, 0), KNOWN_WORDS).batch(range(4))
    h = torch.zeros(1, len(batch), 50 if name == "nasm" else 0)
    with torch.no_grad():
        first, second = (model.logits(h, model.encode(batch)) for _ in range(2))
        assert not torch.allclose(first, second)
        model.eval()
        torch.testing.assert_close(*(model.logits(h, model.encode(batch)) for _ in range(2)))


# The pretrained encoder


def test_states_of_pieces_become_those_of_words():
    states = torch.arange(10.0).view(5, 2)
    found = _by_word(states, [None, 1, 1, 0, None], 3)
    np.testing.assert_allclose(found, [[6, 7], [3, 4], [4, 5]])  # the third has no piece: the mean of all
    assert found.dtype == np.float16
    np.testing.assert_allclose(_by_word(states, [None] * 5, 1), [[4, 5]])
    assert _by_word(states, [None] * 5, 0).shape == (0, 2)


def test_batches_of_pieces_are_of_one_length_and_as_large_as_may_be(monkeypatch):
    monkeypatch.setattr(pretrained, "AT_ONCE", 6)
    with seeded(0):
        tiny = PretrainedEncoder(Encoder(20, 8, 1, 2, 12), lambda words: (list(map(len, words)), []), None)
    sizes = []
    tiny.encoder.register_forward_pre_hook(lambda _, inputs: sizes.append(tuple(inputs[0].shape)))
    sentences = [("a",) * length for length in (2, 3, 2, 7, 2, 2, 1, 3)]
    vectors = tiny.sentence_vectors(sentences)
    assert sizes == [(1, 1), (3, 2), (1, 2), (2, 3), (1, 7)]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    mean = tiny.encoder(torch.ones(1, 7, dtype=torch.long))[0].mean(0)
    np.testing.assert_allclose(vectors[3], mean / mean.norm(), atol=1e-6)


def test_likeness_by_its_formula(monkeypatch):
    generator = np.random.default_rng(0)
    asked, said = generator.normal(size=(4, 3)), generator.normal(size=(2, 3))
    real = np.array([True, False, True, True])

    def cosine(one, other):
        return one @ other / np.linalg.norm(one) / np.linalg.norm(other)

    best = np.array([max(cosine(word, other) for other in said) for word in asked])
    found = _likeness(asked.astype(np.float16), said.astype(np.float16), real)
    assert found[:2] == pytest.approx((cosine(asked.mean(0), said.mean(0)), best[real].mean()), abs=2e-3)
    np.testing.assert_allclose(found.question, best, atol=2e-3)
    np.testing.assert_allclose(found.answer, [max(cosine(word, other) for word in asked) for other in said], atol=2e-3)
    assert _likeness(asked[:0], said, real[:0])[:2] == _likeness(asked, said[:0], real)[:2] == (0, 0)
    assert _real_words(("who", "?", "3")).tolist() == [True, False, True] and _real_words(("?", "!")).all()
    rows = {words: generator.normal(size=(len(words), 3)) for words in (("who", "?"), ("me",), ("you", "two"))}

    class States:
        def states(self, sentences):
            return [rows[words] for words in sentences]

    monkeypatch.setattr(minilm, "shared_encoder", States)
    system, one = Likeness(Vocabulary(("a",))), corpus(question("who ?", "me", "you two"))
    parts = system.parts(one)
    for row, words in zip(parts, (("me",), ("you", "two")), strict=True):
        assert row == pytest.approx(_likeness(rows["who", "?"], rows[words], np.array([True, False]))[:2])
    np.testing.assert_allclose(system.log_odds(one), SCALE * parts.sum(1) + SHIFT)


def test_what_is_remembered_fills_what_it_may_and_one_sentence_always_stays(monkeypatch):
    with seeded(0):
        tiny = PretrainedEncoder(
            Encoder(20, 8, 1, 2, 12), lambda words: ([1, *map(len, words)], [None, *range(len(words))]), None
        )
    tiny.states([("a", "b")])
    size = tiny.bytes
    assert size == 2 * 8 * 2  # two words, eight numbers of 16 bits
    monkeypatch.setattr(pretrained, "MAX_REMEMBERED", 2 * size)
    tiny.states([("c", "d")])
    assert tiny.bytes == 2 * size and len(tiny.remembered) == 2  # just as much as may be
    tiny.states([("e",)])
    assert list(tiny.remembered) == [("c", "d"), ("e",)] and tiny.bytes == size + size // 2
    monkeypatch.setattr(pretrained, "MAX_REMEMBERED", 1)
    tiny.states([("f", "g")])
    assert list(tiny.remembered) == [("f", "g")] and tiny.bytes == size


# Columns


def test_columns_of_overlap_by_hand():
    overlap = Overlap(Vocabulary(("king", "old")), np.array([2, 4]), 9)
    asked = corpus(question("Who was the old King ?", "The king , a KING was old", "?", positions=[3, None]))
    first, second = (dict(zip(COLUMNS, row, strict=True)) for row in overlap.features(asked).values)
    rare = {"king": math.log(10 / 3), "old": math.log(10 / 5), "the": math.log(10), "was": math.log(10)}
    assert first["word_overlap"] == 2 and first["word_overlap_all"] == 4
    assert first["idf_overlap"] == pytest.approx(rare["king"] + rare["old"])
    assert first["idf_overlap_all"] == pytest.approx(sum(rare.values()))
    assert first["overlap_density"] == pytest.approx(sum(rare.values()) / math.sqrt(8))
    assert (first["log_position"], first["log_length"]) == pytest.approx((math.log(4), math.log(8)))
    assert not any(second[name] for name in COUNTS) and math.isnan(second["log_position"])
    assert second["log_length"] == pytest.approx(math.log(2))


def test_how_often_words_stand_in_training_answers():
    train = corpus(question("a king", "the the king", "The lake"), question("a lake", "a king"))
    found = Overlap.learn(train, Vocabulary(("the", "king", "lake", "queen")))
    assert found.document_frequencies.tolist() == [2, 2, 1, 0] and found.n_answers == 3  # once an answer
    assert found.idf("queen") == found.idf("never") == pytest.approx(math.log(4))


def test_what_a_folder_keeps_of_a_system_is_of_its_type():
    kept = OverlapRegression(Vocabulary(("king", "lake")), "bm25").state_dict()
    real = ("mean", "scale", "coefficients", "intercept", "mean_length")
    assert {name: value.dtype for name, value in kept.items()} == dict.fromkeys(real, torch.float64) | {
        "document_frequencies": torch.int64,
        "n_answers": torch.int64,
    }
    assert kept["mean"].shape == kept["scale"].shape == kept["coefficients"].shape == (1,)
    assert kept["document_frequencies"].shape == (2,) and kept["mean_length"] == 1


def test_the_first_sentence_and_places_that_nobody_knows():
    words = Vocabulary(("king",))
    system = OverlapRegression(words, "first_sentence,log_position")
    asked = corpus(question("king", "a king", "king", "the", positions=[0, 2, None]))
    values = dict(zip(system.columns, system.features(asked).T, strict=True))
    np.testing.assert_allclose(values["first_sentence"], [1, 0, np.nan])
    np.testing.assert_allclose(values["log_position"], [0, math.log(3), np.nan])


def test_features_of_words_pair_by_pair():
    """Loops over the words of every pair, in place of running sums over all candidates."""
    asked, overlap = made_up(5, 7), Overlap.learn(made_up(9, 8), KNOWN_WORDS)
    pairs = [(one, candidate) for one in asked.questions for candidate in one.candidates]
    for (one, candidate), found in zip(pairs, word_features(asked, overlap), strict=True):
        for own, other, columns in (
            (one.words, candidate.words, found.question),
            (candidate.words, one.words, found.answer),
        ):
            assert columns.shape == (len(own), len(WORD_FEATURES))
            for word, row in zip(own, columns, strict=True):
                rare, shared = overlap.idf(word) / math.log(1 + overlap.n_answers), float(word in other)
                assert row[[0, 2, 3]].tolist() == pytest.approx([shared, rare, rare * shared])
                assert row[1] >= row[0]


def test_stop_words_numbers_capitals_and_signs():
    asked = corpus(question("Did 3rd of", "The B2 !", "... the"))
    overlap = Overlap(Vocabulary(("of",)), np.array([0]), 1)
    (first, second) = word_features(asked, overlap)
    kinds = {"Did": [1, 0, 1, 0], "3rd": [0, 1, 0, 0], "of": [1, 0, 0, 0]}
    assert first.question[:, 4:].tolist() == list(kinds.values()) == second.question[:, 4:].tolist()
    assert first.answer[:, 4:].tolist() == [[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    assert second.answer[:, 4:].tolist() == [[0, 0, 0, 1], [1, 0, 0, 0]]


# Word alignment


def test_alignment_features_of_random_sentences_word_by_word():
    """Similarities back from the candidate, and how far apart aligned words lie, by loops."""
    generator, names = np.random.default_rng(0), [f"w{n}" for n in range(9)]
    vectors = unit_vectors(generator.normal(size=(9, 3)).astype(np.float32), (9, 3))
    vocabulary, frequencies = Vocabulary(tuple(names)), generator.integers(0, 6, 9)
    overlap = Overlap(vocabulary, frequencies, 6)
    drawn = [" ".join(generator.choice(names, length)) for length in (4, 6, 3, 7)]
    asked = corpus(question(*drawn))
    system = WordAlignment(vocabulary, 3)
    system.document_frequencies.copy_(torch.from_numpy(frequencies))
    system.n_answers.fill_(6)
    system.word_vectors.copy_(torch.from_numpy(vectors))
    aligned = system.word_vectors.float().numpy()
    (pairs,) = AlignedCorpus.of(asked, overlap, aligned).questions()
    different = list(dict.fromkeys(drawn[0].split()))

    def similarity(one, other):
        cosine = float(aligned[vocabulary.index[one]] @ aligned[vocabulary.index[other]])
        return 1.0 if one == other else min(1.0, max(0.0, cosine))

    for row, text in zip(system.features(asked), drawn[1:], strict=True):
        found, said = dict(zip(system.columns, row, strict=True)), text.split()
        back = [max(similarity(word, other) for word in different) for other in said]
        rare = [overlap.idf(other) for other in said]
        assert found["similarity_back"] == pytest.approx(np.mean(back), abs=1e-5)
        assert found["idf_similarity_back"] == pytest.approx(np.average(back, weights=rare), abs=1e-5)
        places, best = [], []
        for word in different:
            values = [similarity(word, other) for other in said]
            best.append(max(values))
            if best[-1] >= FAR:
                places.append(int(np.argmax(values)))
        gaps = [max(abs(one - other) - 1, 0) ** 2 for one, other in itertools.pairwise(places)]
        assert found["dispersion"] == pytest.approx(math.log1p(sum(gaps) / max(len(gaps), 1)))
        assert found["span"] == pytest.approx(math.log1p(max(places) - min(places)))
        missed = [overlap.idf(word) * (value < FAR) for word, value in zip(different, best, strict=True)]
        assert found["idf_missed"] == pytest.approx(sum(missed))
        assert found["idf_missed_most"] == pytest.approx(max(missed))
        assert found["log_length"] == pytest.approx(math.log1p(len(said)))
    assert pairs.asked.tolist() == [0, 1, 2, 3][: len(different)]


def test_unit_vectors_are_about_their_mean():
    start = np.array([[3.0, 1.0], [1.0, 1.0], [2.0, 1.0]], np.float32)
    for scale in (1, 1e-3, 1e3):
        np.testing.assert_allclose(unit_vectors(scale * start, (3, 2)), [[1, 0], [-1, 0], [0, 0]], atol=1e-4)


def test_a_weighted_mean_does_not_depend_on_the_size_of_weights():
    values, weights = np.array([[1.0, 4.0], [3.0, 8.0]]), np.array([1.0, 3.0])
    for scale in (1, 1e-6, 1e6):
        np.testing.assert_allclose(_share(values, scale * weights), [2.5, 7])
    assert _share(values, 0 * weights).tolist() == [0, 0]


@pytest.mark.parametrize("kind", [WordAlignment, LCLR])
def test_word_vectors_are_learned_about_their_mean(kind):
    train = made_up(6, 0)
    start = np.random.default_rng(0).normal(size=(len(KNOWN_WORDS), 3)).astype(np.float32)
    system = kind(KNOWN_WORDS, 3, "similarity" if kind is WordAlignment else "vectors")
    system.learn_words(train, train, AnswerWords(KNOWN_WORDS, start, "given", 0), 0)
    expected = unit_vectors(start, start.shape)
    np.testing.assert_allclose(system.word_vectors.float().numpy(), expected, atol=1e-3)  # 16 bits


# LCLR


def lclr(features, names, vectors=None) -> LCLR:
    system = LCLR(Vocabulary(tuple(names)), 2, features)
    system.n_answers.fill_(9)
    if vectors is not None:
        system.word_vectors.copy_(torch.tensor(vectors))
    return system


def test_a_word_may_choose_of_the_nearest_vectors_alone():
    """Seven candidates' words: the five nearest above what is unrelated, each less that, nearest first."""
    angles = [0.1, 1.4, 0.3, 0.5, 0.7, 0.9, 0.2]
    vectors = [[1.0, 0.0], *([math.cos(angle), math.sin(angle)] for angle in angles)]
    system = lclr("vectors", ["king", *(f"w{n}" for n in range(7))], vectors)
    found = system.choices(corpus(question("king", " ".join(f"w{n}" for n in range(7)))))
    nearest = sorted((math.cos(angle) - UNRELATED for angle in angles), reverse=True)[:MAX_CHOICES]
    np.testing.assert_allclose(found.features[0, :, 0], nearest, atol=2e-3)  # 16 bits
    assert found.features.shape == (1, MAX_CHOICES, 1)


def test_a_shared_word_comes_before_any_vector():
    vectors = [[1.0, 0.0]] * 7
    system = lclr("lexical,vectors", [*(f"w{n}" for n in range(6)), "kings"], vectors)
    found = system.choices(corpus(question("w0", "w1 w2 w3 w4 w5 w0")))
    first, *others = found.features[0]
    assert first.tolist() == pytest.approx([1, 0, 0, 0]) and [row[3] for row in others] == pytest.approx([0.65] * 4)


def test_a_choice_weighs_as_much_as_its_word_is_rare():
    system = lclr("lexical,length", ["king", "lake"])
    system.document_frequencies.copy_(torch.tensor([9, 1]))
    found = system.choices(corpus(question("king lake", "lake king xyzzy", "")))
    king, lake = 1e-3, math.log(10 / 2)  # a word that all answers have weighs next to nothing, not nothing
    rows = found.features[found.pair_of == 0].sum((1, 2))
    assert rows.tolist() == pytest.approx([king / (king + lake), lake / (king + lake), math.log(4) / 4], rel=1e-5)
    assert found.n_pairs == 2 and not found.features[found.pair_of == 1].any()


SENSES = {  # word: (meant, above, opposite, derived)
    "car": ({0}, {1}, set(), set()),
    "auto": ({0}, {1}, set(), set()),
    "vehicle": ({1}, set(), set(), set()),
    "hot": ({2}, set(), {3}, set()),
    "cold": ({3}, set(), {2}, set()),
    "invent": ({4}, set(), set(), {5}),
    "inventor": ({5}, set(), set(), {4}),
    "the": ({6}, set(), set(), set()),
}


class SmallWordNet(WordNet):
    """The relations above, in place of WordNet's files."""

    def __init__(self):
        pass

    def senses(self, words):
        matrices = []
        for kind in range(4):
            dense = np.zeros((len(words), 7), np.int32)
            for row, word in enumerate(words):
                for column in SENSES.get(word, (set(),) * 4)[kind]:
                    dense[row, column] = 1
            matrices.append(scipy.sparse.csr_array(dense))
        return WordSenses(*matrices)


RELATED = {
    ("car", "auto"): "synonym",
    ("hot", "cold"): "antonym",
    ("vehicle", "car"): "kind",
    ("car", "vehicle"): "kind_of",
    ("invent", "inventor"): "same_root",
}


@pytest.mark.parametrize(("pair", "relation"), RELATED.items())
def test_relations_of_wordnet_become_features_of_a_choice(pair, relation, monkeypatch):
    monkeypatch.setattr("varitext.models.answers.lclr.needed_wordnet", SmallWordNet)
    asked, said = pair
    system = lclr("lexical,wordnet", list(SENSES))
    found = system.choices(corpus(question(asked, f"xyzzy {said} plugh", "xyzzy", asked)))
    names, first = list(system.names), found.features[found.pair_of == 0]
    assert [names[column] for column in first.nonzero()[2]] == [relation] and first.sum() == pytest.approx(1)
    assert first[0, 0, names.index(relation)] == 1  # the related word is the first choice
    assert not (found.pair_of == 1).any()
    itself = found.features[found.pair_of == 2]  # the same word is that, and no synonym of itself
    assert [names[column] for column in itself.nonzero()[2]] == ["same"]


def test_stop_words_have_no_relations_and_padding_none(monkeypatch):
    monkeypatch.setattr("varitext.models.answers.lclr.needed_wordnet", SmallWordNet)
    system = lclr("wordnet", list(SENSES))
    assert not system.choices(corpus(question("the", "the the", "car"))).features.any()
    asked = corpus(question("car auto", "vehicle auto hot", "cold"))
    aligned = AlignedCorpus.of(asked, system.overlap, np.zeros((8, 2), np.float32))
    (pairs,) = aligned.questions()
    found = _relations(SmallWordNet().senses(aligned.table.words), pairs)  # [5, n, C, T]
    expected = np.zeros((5, 2, 2, 3), bool)
    expected[0, :, 0, 1] = True  # auto stands for the same as car, and as itself
    expected[3, :, 0, 0] = True  # both are kinds of vehicle
    np.testing.assert_array_equal(found, expected)


def write_nouns(folder, *synsets: tuple[str, list[int]]) -> list[int]:
    """A WordNet of nouns in two pieces, as the package has them: words of each synset, and what it is a kind of."""
    places = [0] * len(synsets)
    for _ in range(2):  # lines name the places of others: a first pass finds these
        lines, place = ["  1 licence"], len("  1 licence\n")
        for number, (words, above) in enumerate(synsets):
            places[number] = place
            named = "".join(f"{word} 0 " for word in words.split())
            pointed = "".join(f"@ {places[one]:08d} n 0000 " for one in above)
            lines.append(f"{place:08d} 00 n {len(words.split()):02x} {named}{len(above):03d} {pointed}| gloss")
            place += len(lines[-1]) + 1
    (folder / "data.noun1").write_text("\n".join(lines[:2]) + "\n")
    (folder / "data.noun2").write_text("\n".join(lines[2:]) + "\n")
    senses: dict[str, list[int]] = {}
    for place, (words, _) in zip(places, synsets, strict=True):
        for word in words.split():
            senses.setdefault(word, []).append(place)
    index = [
        f"{word} n {len(found)} 2 @ ~ {len(found)} 0 {' '.join(f'{one:08d}' for one in found)}  "
        for word, found in senses.items()
    ]
    (folder / "index.noun").write_text("\n".join(["  1 licence", *index]) + "\n")
    for name in ("verb", "adj", "adv"):
        for part in ("data", "index"):
            (folder / f"{part}.{name}").write_text("  1 licence\n")
    return places


def test_the_database_of_wordnet_is_read_as_it_is_written(tmp_path):
    """A synset of eighteen words, whose number is hexadecimal; a word of four senses; a chain of five levels."""
    many = " ".join(f"word{n}" for n in range(18))
    chain = [(many, [1]), ("b", [2]), ("c", [3, 5]), ("d", [4]), ("e", []), ("x", []), ("x", []), ("x", []), ("x", [])]
    places = [("n", place) for place in write_nouns(tmp_path, *chain)]
    wordnet = WordNet(tmp_path)
    assert wordnet.synsets("word7") == places[:1] and wordnet.synsets("x") == places[5:8]  # the commonest three
    assert wordnet.follow(places[:1], "@") == {places[1]}
    assert wordnet.follow(places[:1], "@", 3) == {places[1], places[2], places[3], places[5]}
    assert wordnet.follow(places[4:5], "@", 3) == set() == wordnet.follow(places[:1], "!")
    assert wordnet.synsets("word7s") == places[:1] and wordnet.synsets("xs") == wordnet.synsets("y") == []
    senses = wordnet.senses(["word0", "c", "e"])
    assert (senses.meant @ senses.above.T).toarray().tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert not senses.opposite.nnz and not senses.derived.nnz


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("when was it", [[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]),
        ("how many was it", [[0, 1, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]]),
        ("who was it", [[0, 0, 1, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]),
        ("where was it", [[0, 0, 1, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]),
        ("why 1914 Paris", [[0, 0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]),
    ],
)
def test_what_looks_like_an_answer(asked, expected):
    """Year, number and name where wanted; numbers and names where not; words of the question never."""
    one = question(asked, "in 1914 Paris", "12 men", "The")
    aligned = AlignedCorpus.of(corpus(one), Overlap(Vocabulary(("a",)), np.array([0]), 1), np.zeros((1, 2), np.float32))
    (pairs,) = aligned.questions()
    assert _answer_types(one, aligned, pairs).astype(int).tolist() == expected


def test_learning_goes_on_while_turns_gain_and_stops_when_they_do_not():
    generator = np.random.default_rng(1)
    pair_of = np.sort(generator.integers(0, 40, 120))
    choices = AlignmentChoices(generator.normal(size=(120, 3, 4)), pair_of, 40)
    labels = (np.arange(40) % 3 == 0).astype(int)
    start, losses = np.ones(5), []
    for turns in range(9):
        theta = learn(choices, labels, start, 0.5, turns)
        losses.append(loss_and_gradient(theta, choices, None, labels, 0.5)[0])
    gains = -np.diff(losses) / losses[:-1]
    taken = gains > 0
    assert taken[:2].all() and not taken[-1]  # the second turn gains, and is taken; the last is not
    assert (gains[taken] > 1e-4).all() and (np.diff(taken.astype(int)) <= 0).all() and not gains[~taken].any()
    further = learn(choices, labels, theta, 0.5, 1)
    assert loss_and_gradient(further, choices, None, labels, 0.5)[0] >= losses[-1] * (1 - 1e-3)


# Paragraph vectors


def test_noise_words_are_as_frequent_as_their_weights():
    weights = np.array([1.0, 0.0, 3.0, 4.0])
    assert _spread(weights, 8).tolist() == [0, 2, 2, 2, 3, 3, 3, 3]
    assert _spread(weights, 2).tolist() == [2, 3]
    shares = np.bincount(_spread(np.arange(1.0, 9), 3600), minlength=8)
    assert shares.tolist() == [100 * n for n in range(1, 9)]


def test_frequent_words_are_kept_less_often():
    """word2vec's formula: sqrt(t / f) + t / f, and never more than all."""
    counts = np.array([90_000.0, 9_999.0, 1.0, 0.0])
    frequency = counts[:2] / counts.sum()
    expected = np.sqrt(SAMPLE / frequency) + SAMPLE / frequency
    np.testing.assert_allclose(_kept_share(counts), [*expected, 1, 1])


def test_gensim_learns_what_the_formula_has():
    """A distributed bag of words with negative sampling, every word of the vocabulary, in one worker."""
    pytest.importorskip("gensim")
    texts = [["king", "lake"], [], ["king"], ["queen", "king"]]
    model = paragraph_vectors._train(texts, 5, 3, 7)
    assert (model.vector_size, model.epochs, model.seed, model.workers, model.min_count) == (5, 3, 7, 1, 1)
    assert (model.negative, model.ns_exponent, model.sample) == (NEGATIVE, NOISE_POWER, SAMPLE)
    assert model.sg == 1 and not model.hs and model.dbow_words == 0
    assert sorted(model.wv.index_to_key) == ["king", "lake", "queen"]
    assert model.train_count == 1


def test_paragraph_vectors_learn_noise_and_shares_from_the_words_that_were_read():
    pytest.importorskip("gensim")
    train, system = made_up(8, 0), paragraph_vectors.ParagraphVectors(KNOWN_WORDS, 4, doc2vec_epochs=1)
    system.learn_words(train, train, AnswerWords(KNOWN_WORDS, None, "random", 0), 0)
    sentences = [one.words for one in train.questions]
    sentences += [candidate.words for one in train.questions for candidate in one.candidates]
    counts = np.array([sum(sentence.count(word) for sentence in sentences) for word in KNOWN_WORDS.words], float)
    assert system.noise.tolist() == _spread(counts**NOISE_POWER, 256).tolist()
    np.testing.assert_allclose(system.kept.numpy(), _kept_share(counts), rtol=1e-6)


def test_paragraph_vectors_gain_all_there_is_also_where_word_vectors_are_large():
    system = paragraph_vectors.ParagraphVectors(KNOWN_WORDS, 4)
    with seeded(0):
        system.word_rows.copy_(6 * torch.randn(len(KNOWN_WORDS), 4))
        system.kept.copy_(torch.rand(len(KNOWN_WORDS)))
        system.noise.copy_(torch.randint(len(KNOWN_WORDS), (256,)))
    words = ("king", "of", "the", "old", "lake")
    rows = [KNOWN_WORDS.index[word] for word in words]
    u, c, noise = system.word_rows[rows].double(), system.kept[rows].double(), system.word_rows[system.noise].double()

    def height(v):
        v, logsigmoid = torch.as_tensor(v), torch.nn.functional.logsigmoid
        outside = NEGATIVE * c.sum() * logsigmoid(-(noise @ v)).mean()
        return float((c * logsigmoid(u @ v)).sum() + outside - system.shrinkage / 2 * v @ v)

    best = scipy.optimize.minimize(lambda v: -height(v), np.zeros(4)).x
    gained = height(system.vectors([words])[0]) - height(np.zeros(4))
    assert gained > 0.98 * (height(best) - height(np.zeros(4))) > 0


def test_the_cosine_of_paragraph_vectors_pair_by_pair(monkeypatch):
    monkeypatch.setattr(paragraph_vectors, "CHUNK", 2)
    system = paragraph_vectors.ParagraphVectors(KNOWN_WORDS, 3)
    with seeded(0):
        system.word_rows.copy_(torch.randn(len(KNOWN_WORDS), 3))
        system.noise.copy_(torch.randint(len(KNOWN_WORDS), (256,)))
    asked = made_up(4, 1)
    found = iter(system.features(asked)[:, 0])
    for one in asked.questions:
        for candidate in one.candidates:
            question_vector, answer_vector = system.vectors([one.words, candidate.words])
            cosine = torch.cosine_similarity(question_vector, answer_vector, dim=0)
            assert next(found) == pytest.approx(cosine.item(), abs=1e-6)
