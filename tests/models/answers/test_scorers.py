"""Models without gradients: what holds for all, overlap, word alignment, paragraph vectors, and as rankers."""

import itertools
import math
import sys

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import torch
from made_up_questions import VECTORS, corpus, labelled, made_up, named_answers, question
from made_up_questions import WORDS as KNOWN_WORDS

from varitext.answers.ranker import AnswerRanker
from varitext.answers.settings import AnswerRecipe
from varitext.corpora.question_answers import reading_form
from varitext.errors import InputError
from varitext.models.answers import paragraph_vectors
from varitext.models.answers.features.alignment import AlignedCorpus, unit_vectors
from varitext.models.answers.features.overlap import COUNTS, Overlap
from varitext.models.answers.lclr import LCLR
from varitext.models.answers.overlap_regression import OverlapRegression
from varitext.models.answers.paragraph_vectors import (
    NEGATIVE,
    NOISE_POWER,
    SAMPLE,
    ParagraphVectors,
    _kept_share,
    _spread,
)
from varitext.models.answers.scorer import AnswerScorer, chosen
from varitext.models.answers.vocabulary import AnswerWords, learn_words
from varitext.models.answers.word_alignment import FAR, GROUPS, WordAlignment, _share
from varitext.runtime.randomness import seeded
from varitext.text import Vocabulary

TRAIN, DEV, TEST = named_answers(60, 1), named_answers(15, 2), named_answers(30, 3)


ODD = corpus(
    labelled("1", "who ?", ("", 0), ("xyzzy plugh", 1), ("the king", 0)),
    labelled("2", "", ("a king", 1), ("", 0)),
    labelled("3", "wer schrieb „Straße“ 詩人 ?", ("Die STRASSE 詩人", 1), ("\u0130stanbul e\u0301", 0), ("… — !", 0)),
)


SYSTEMS = {
    "overlap": lambda words: OverlapRegression(words, position=True),
    "bm25": lambda words: OverlapRegression(words, "bm25"),
    "pv": lambda words: ParagraphVectors(words, 6, doc2vec_epochs=3),
    "word_alignment": lambda words: WordAlignment(words, 6),
    "lclr": lambda words: LCLR(words, 6, ("lexical", "vectors", "type", "length")),
}


for_every_system = pytest.mark.parametrize("name", SYSTEMS)


@pytest.fixture(scope="module")
def fitted() -> dict[str, AnswerScorer]:
    words = learn_words(TRAIN, VECTORS, 6, 0)
    made = {}
    for name, build in SYSTEMS.items():
        made[name] = build(words.vocabulary)
        made[name].learn(TRAIN, DEV, words, seed=0)
    return made


@for_every_system
def test_learns(fitted, name):
    odds = fitted[name].log_odds(TEST)
    right = TEST.labels == 1
    assert odds.shape == (TEST.n_pairs,)
    if name == "pv":  # names that training never saw are all that tells answers apart, and it cannot read them
        assert np.isfinite(odds).all()
    else:
        assert odds[right].mean() > odds[~right].mean() + 0.5


@for_every_system
def test_odd_sentences_have_finite_odds(fitted, name):
    assert np.isfinite(fitted[name].log_odds(ODD)).all()


@for_every_system
def test_arrays_are_all_there_is(fitted, name):
    """Whatever was learned comes back from the arrays and the vocabulary, and all of it learns the same again."""
    again = SYSTEMS[name](fitted[name].vocabulary)
    again.load_state_dict(fitted[name].state_dict())
    assert np.array_equal(again.log_odds(TEST), fitted[name].log_odds(TEST))
    relearned = SYSTEMS[name](fitted[name].vocabulary)
    relearned.learn(TRAIN, DEV, learn_words(TRAIN, VECTORS, 6, 0), seed=0)
    assert all(np.array_equal(values, fitted[name].state_dict()[key]) for key, values in relearned.state_dict().items())


@for_every_system
def test_how_rare_words_are_is_learned_from_training_answers(fitted, name):
    expected = Overlap.learn(TRAIN, fitted[name].vocabulary)
    found = fitted[name].overlap
    assert np.array_equal(found.document_frequencies, expected.document_frequencies)
    assert expected.document_frequencies.any() and found.n_answers == expected.n_answers > 0


def test_features_are_named_or_refused():
    assert chosen("b, a", ("a", "b", "c"), ("c",)) == ("a", "b")
    assert chosen(None, ("a", "b"), ("b",)) == ("b",)
    with pytest.raises(InputError, match="no feature of this model is called 'x'; there are: a, b"):
        chosen(["x"], ("a", "b"), ())
    with pytest.raises(InputError, match="features is empty"):
        chosen([], ("a",), ())


@pytest.mark.parametrize("column", [*COUNTS, "bm25"])
def test_one_column_ranks_by_itself_even_where_it_misleads(column):
    """Right answers share nothing with their question: the regression must not turn the ranking over."""
    misleading = named_answers(20, 5)
    flipped = tuple(
        one._replace(candidates=tuple(pair._replace(label=1 - pair.label) for pair in one.candidates))
        for one in misleading.questions
    )
    words = learn_words(TRAIN, "random", 6, 0)
    system = OverlapRegression(words.vocabulary, column)
    system.learn(corpus(*flipped), DEV, words)
    values = system.features(TEST)[:, 0]
    order = np.argsort(values, kind="stable")
    assert (np.diff(system.log_odds(TEST)[order]) >= 0).all() and np.ptp(values) > 0


def test_position_counts_only_where_it_is_asked_for_and_known():
    words = learn_words(TRAIN, "random", 6, 0)
    without, with_it = OverlapRegression(words.vocabulary), OverlapRegression(words.vocabulary, position=True)
    assert set(with_it.columns) - set(without.columns) == {"log_position", "first_sentence"}
    with_it.learn(TRAIN, DEV, words)
    column = with_it.columns.index("first_sentence")
    assert with_it.features(TEST)[:4, column].tolist() == [1, 0, 0, 0]
    nowhere = corpus(labelled("1", "who", ("king", 1), ("lake", 0)))
    nowhere = corpus(
        *(
            one._replace(candidates=tuple(pair._replace(position=None) for pair in one.candidates))
            for one in nowhere.questions
        )
    )
    assert np.isnan(with_it.features(nowhere)[:, column]).all() and np.isfinite(with_it.log_odds(nowhere)).all()
    with_it.learn(nowhere, DEV, words)  # a column that nothing is known of has no say
    assert with_it.coefficients[column] == 0


def test_the_first_sentence_and_places_that_nobody_knows():
    words = Vocabulary(("king",))
    system = OverlapRegression(words, "first_sentence,log_position")
    asked = corpus(question("king", "a king", "king", "the", positions=[0, 2, None]))
    values = dict(zip(system.columns, system.features(asked).T, strict=True))
    np.testing.assert_allclose(values["first_sentence"], [1, 0, np.nan])
    np.testing.assert_allclose(values["log_position"], [0, math.log(3), np.nan])


# Word alignment


def test_alignment_features_by_hand():
    """Vectors on two axes: king and queen are near (0.8), lake is far from both."""
    words = Vocabulary(("king", "queen", "lake", "crowned"))
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 1], [0, 0]], np.float32)
    asked = corpus(labelled("1", "king crowned the xyzzy ?", ("the queen crowns lake Xyzzy", 1), ("", 0)))
    overlap = Overlap(words, np.array([3, 1, 1, 1]), 7)
    (pairs,) = AlignedCorpus.of(asked, overlap, vectors).questions()
    assert pairs.similarity[0, 0] == pytest.approx([0, 0.8, 0, 0, 0])
    assert pairs.same[3, 0].tolist() == [False] * 4 + [True] and not pairs.same[:, 1].any()
    assert pairs.same_stem[1, 0].tolist() == [False, False, True, False, False]  # crowned, crowns
    system = WordAlignment(words, 2)
    system.assign(document_frequencies=overlap.document_frequencies)
    system.assign(n_answers=7)
    system.assign(word_vectors=vectors)
    first, empty = (dict(zip(system.columns, row, strict=True)) for row in system.features(asked))
    idf = {"king": math.log(8 / 4), "crowned": math.log(8 / 2), "the": math.log(8), "xyzzy": math.log(8)}
    assert first["similarity"] == pytest.approx((0.8 + 0 + 1 + 1) / 4, abs=1e-3)
    assert first["similarity_content"] == pytest.approx((0.8 + 0 + 1) / 3, abs=1e-3)
    weighted = 0.8 * idf["king"] + idf["the"] + idf["xyzzy"]
    assert first["idf_similarity"] == pytest.approx(weighted / sum(idf.values()), abs=1e-3)
    assert [first[f"count_{name}"] for name in ("same", "stem", "near", "far", "none")] == [1, 1, 1, 0, 0]
    assert first["idf_stem"] == pytest.approx(idf["crowned"]) and first["count_same_stop"] == 1
    assert first["idf_missed"] == first["idf_missed_most"] == pytest.approx(idf["crowned"])
    assert first["log_length"] == pytest.approx(math.log(6))
    # king is at place 1, xyzzy at 4, crowned nowhere: one gap of two words
    assert first["dispersion"] == pytest.approx(math.log1p(4)) and first["span"] == pytest.approx(math.log1p(3))
    assert empty["count_none"] == 3 and empty["similarity"] == empty["span"] == empty["log_length"] == 0


def test_groups_of_features_can_be_left_out():
    words = learn_words(TRAIN, VECTORS, 6, 0)
    whole = WordAlignment(words.vocabulary, 6)
    whole.learn(TRAIN, DEV, words)
    for group, columns in GROUPS.items():
        part = WordAlignment(words.vocabulary, 6, group)
        part.learn(TRAIN, DEV, words)
        places = [whole.columns.index(name) for name in columns]
        np.testing.assert_array_equal(part.features(TEST), whole.features(TEST)[:, places])


def test_without_vectors_only_words_themselves_match():
    assert not unit_vectors(None, (3, 2)).any()
    words = learn_words(TRAIN, "random", 6, 0)
    system = WordAlignment(words.vocabulary, 6)
    system.learn(TRAIN, DEV, words)
    assert set(np.unique(system.features(TEST)[:, system.columns.index("count_near")])) == {0}


def test_alignment_features_of_random_sentences_word_by_word():
    """Similarities back from the candidate, and how far apart aligned words lie, by loops."""
    generator, names = np.random.default_rng(0), [f"w{n}" for n in range(9)]
    vectors = unit_vectors(generator.normal(size=(9, 3)).astype(np.float32), (9, 3))
    vocabulary, frequencies = Vocabulary(tuple(names)), generator.integers(0, 6, 9)
    overlap = Overlap(vocabulary, frequencies, 6)
    drawn = [" ".join(generator.choice(names, length)) for length in (4, 6, 3, 7)]
    asked = corpus(question(*drawn))
    system = WordAlignment(vocabulary, 3)
    system.assign(document_frequencies=frequencies)
    system.assign(n_answers=6)
    system.assign(word_vectors=vectors)
    aligned = system.word_vectors.astype(np.float32)
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
    np.testing.assert_allclose(system.word_vectors.astype(np.float32), expected, atol=1e-3)  # 16 bits


# Paragraph vectors


def test_a_paragraph_vector_is_the_maximum_of_its_objective(fitted):
    system = fitted["pv"]
    words = TRAIN.questions[0].candidates[0].words
    known = system.vocabulary.index
    columns = [known[reading_form(word)] for word in words if reading_form(word) in known]
    word_rows, kept_of = (torch.from_numpy(values).double() for values in (system.word_rows, system.kept))
    rows, noise, kept = word_rows[columns], word_rows[system.noise], kept_of[columns]

    def negative(vector: np.ndarray) -> float:
        at = torch.from_numpy(vector)
        inside = (kept * torch.nn.functional.logsigmoid(rows @ at)).sum()
        outside = NEGATIVE * kept.sum() * torch.nn.functional.logsigmoid(-(noise @ at)).mean()
        return -float(inside + outside - system.shrinkage / 2 * at @ at)

    best = scipy.optimize.minimize(negative, np.zeros(6), options={"gtol": 1e-8}, method="BFGS").x
    np.testing.assert_allclose(system.vectors([words])[0], best, atol=2e-3 * np.abs(best).max() + 1e-6)


def test_paragraph_vectors_need_gensim_for_fitting_only(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models.doc2vec", None)
    assert np.isfinite(fitted["pv"].log_odds(TEST)).all()
    words = learn_words(TRAIN, VECTORS, 6, 0)
    with pytest.raises(InputError, match=r"needs gensim: pip install gensim"):
        ParagraphVectors(words.vocabulary, 6).learn(TRAIN, DEV, words)


def test_a_sentence_without_a_known_word_is_like_none(fitted):
    assert not fitted["pv"].vectors([(), ("xyzzy",)]).any()
    assert not fitted["pv"].features(corpus(labelled("1", "xyzzy", ("a king", 0), ("", 1)))).any()


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
    np.testing.assert_allclose(system.kept, _kept_share(counts), rtol=1e-6)


def test_paragraph_vectors_gain_all_there_is_also_where_word_vectors_are_large():
    system = paragraph_vectors.ParagraphVectors(KNOWN_WORDS, 4)
    with seeded(0):
        system.assign(word_rows=6 * torch.randn(len(KNOWN_WORDS), 4))
        system.assign(kept=torch.rand(len(KNOWN_WORDS)))
        system.assign(noise=torch.randint(len(KNOWN_WORDS), (256,)))
    words = ("king", "of", "the", "old", "lake")
    rows = [KNOWN_WORDS.index[word] for word in words]
    word_rows, kept = (torch.from_numpy(values).double() for values in (system.word_rows, system.kept))
    u, c, noise = word_rows[rows], kept[rows], word_rows[system.noise]

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
        system.assign(word_rows=torch.randn(len(KNOWN_WORDS), 3))
        system.assign(noise=torch.randint(len(KNOWN_WORDS), (256,)))
    asked = made_up(4, 1)
    found = iter(system.features(asked)[:, 0])
    for one in asked.questions:
        for candidate in one.candidates:
            question_vector, answer_vector = system.vectors([one.words, candidate.words])
            lengths = np.linalg.norm(question_vector) * np.linalg.norm(answer_vector)
            assert next(found) == pytest.approx(question_vector @ answer_vector / lengths, abs=1e-6)


# In the ranker


QUICK = {
    "vectors": VECTORS,
    "embedding_dim": 6,
    "epochs": 2,
    "threads": 1,
    "recipe": AnswerRecipe(folds=2, dropout=0.1),
}


@pytest.mark.parametrize(
    ("model", "features"),
    [
        ("overlap", None),
        ("overlap", "bm25"),
        ("pv", None),
        ("word_alignment", ["idf", "dispersion"]),
        ("lclr", ["lexical", "type"]),
        ("bigram_cnn", None),
        ("deep_cnn", None),
        ("deep_cnn", "overlap"),
    ],
)
def test_every_system_is_a_ranker_with_a_folder(model, features, tmp_path, monkeypatch):
    ranker = AnswerRanker(model, features=features, counts=True, position=True, **QUICK).fit(TRAIN, DEV)
    expected = ranker.predict_proba(TEST)
    assert ((expected > 0) & (expected < 1)).all() and ranker.fitted_.history[-1]["dev_map"] >= 0
    assert (ranker.fitted_.combination is None) == (model == "overlap")
    ranker.save(tmp_path / "model")
    monkeypatch.setattr("varitext.models.answers.lclr.has_wordnet", lambda: False)  # what was chosen is in the folder
    loaded = AnswerRanker.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(TEST), expected)
    assert loaded.evaluate(TEST) == ranker.evaluate(TEST)
    ranking = loaded.rank("who was the king ?", ["a queen", "the lake 1914", "xyzzy"], positions=[0, 1, 2])
    assert sorted(one.place for one in ranking.candidates) == [0, 1, 2]
    assert ranking.candidates[0].probability >= ranking.candidates[2].probability


def test_counts_of_unknown_words_reach_the_network():
    """Names that training never saw are one number to it; which of them are shared, only counts can tell."""
    asked = corpus(labelled("1", "who was plugh ?", ("the plugh", 1), ("the xyzzy", 0)))
    settings = QUICK | {"learning_rate": 1e-2, "epochs": 4}
    without = AnswerRanker("deep_cnn", **settings).fit(TRAIN, DEV).predict_proba(asked)
    inside = AnswerRanker("deep_cnn", features="overlap", **settings).fit(TRAIN, DEV).predict_proba(asked)
    assert abs(without[0] - without[1]) < 1e-6 < 1e-3 < abs(inside[0] - inside[1])


def test_second_stage_learns_from_questions_that_a_system_has_not_seen(monkeypatch):
    seen: list[tuple[int, int]] = []
    learn = WordAlignment.learn

    def watched(self, train, dev, words, seed=0):
        seen.append((train.n_questions, len(self.vocabulary)))
        learn(self, train, dev, words, seed)

    monkeypatch.setattr(WordAlignment, "learn", watched)
    AnswerRanker("word_alignment", counts=True, **QUICK | {"recipe": AnswerRecipe(folds=3, dropout=0.1)}).fit(
        TRAIN, DEV
    )
    assert [questions for questions, _ in seen] == [60, 40, 40, 40] and len({size for _, size in seen}) == 1


def test_features_of_a_model_without_any_are_refused():
    with pytest.raises(InputError, match="lstm has no features to choose from"):
        AnswerRanker("lstm", features="bm25", **QUICK).fit(TRAIN, DEV)
    with pytest.raises(InputError, match="called 'bm26'; there are: word_overlap"):
        AnswerRanker("overlap", features="bm26", **QUICK).fit(TRAIN, DEV)
