"""Features of words and pairs by hand: overlap, BM25, alignment; the vocabulary and the regression on columns."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_questions import VECTORS, corpus, labelled, made_up, named_answers, question
from made_up_questions import WORDS as KNOWN_WORDS
from sklearn.linear_model import LogisticRegression

from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers
from varitext.corpora.word_vectors import WordVectors
from varitext.errors import InputError
from varitext.models.answers.features.alignment import padded_candidates, unit_vectors
from varitext.models.answers.features.overlap import COLUMNS, COUNTS, Overlap, WordTable, bm25
from varitext.models.answers.features.word_features import WORD_FEATURES, word_features
from varitext.models.answers.scorer import Regression, Standardisation
from varitext.models.answers.vocabulary import learn_words, reduce_vectors
from varitext.text import Vocabulary
from varitext.text.tokens import stem


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


def test_unknown_words_keep_their_identity():
    table = WordTable.of(corpus(labelled("1", "Who is Xyzzy", ("xyzzy is", 1), ("", 0), ("plugh", 0))))
    assert table.words == ("who", "is", "xyzzy", "plugh")
    (rows,) = table.questions
    assert rows.answers.tolist() == [2, 1, 3] and rows.lengths.tolist() == [2, 0, 1]
    assert rows.per_candidate(np.array([[1, 2, 4], [1, 1, 1]])).tolist() == [[3, 0, 4], [2, 0, 1]]
    assert table.columns_in(Vocabulary(("is",))).tolist() == [-1, 0, -1, -1]


def test_bm25_by_hand():
    """Three training answers: `lake` is in one, `old` in two, `xyzzy` in none; mean length 2."""
    train = corpus(labelled("1", "a", ("old lake", 1), ("old", 0), ("the near king", 0)))
    overlap = Overlap.learn(train, Vocabulary(("old", "lake", "the", "near", "king")))
    asked = corpus(labelled("2", "old lake lake xyzzy ?", ("lake lake old x", 1), ("xyzzy ?", 0), ("", 0)))
    found = bm25(WordTable.of(asked), overlap, 2.0)
    old, lake, xyzzy = (math.log(1 + (3 - df + 0.5) / (df + 0.5)) for df in (2, 1, 0))
    long, short = 1.2 * (0.25 + 0.75 * 4 / 2), 1.2 * (0.25 + 0.75 * 2 / 2)
    expected = [lake * 2 * 2.2 / (2 + long) + old * 2.2 / (1 + long), xyzzy * 2.2 / (1 + short), 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# Words


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


@pytest.mark.parametrize(
    ("one", "other"),
    [("forms", "formed"), ("planned", "plan"), ("making", "make"), ("cities", "city"), ("caves", "cave")],
)
def test_stems(one, other):
    assert stem(one) == stem(other)


@given(st.text(max_size=12))
def test_a_stem_never_fails_and_never_grows(word):
    assert len(stem(word.lower())) <= len(word.lower())


def test_padded_candidates():
    filled = padded_candidates(np.array([3, 4, 5]), np.array([2, 0, 1]), -1)
    assert filled.tolist() == [[3, 4], [-1, -1], [5, -1]]
    assert padded_candidates(np.array([], int), np.array([0]), -1).tolist() == [[-1]]


def test_unit_vectors_are_about_their_mean():
    start = np.array([[3.0, 1.0], [1.0, 1.0], [2.0, 1.0]], np.float32)
    for scale in (1, 1e-3, 1e3):
        np.testing.assert_allclose(unit_vectors(scale * start, (3, 2)), [[1, 0], [-1, 0], [0, 0]], atol=1e-4)


# The vocabulary and its vectors


def questions(*sentences):
    """Of each two, a question and its one candidate."""
    pairs = zip(sentences[::2], sentences[1::2], strict=True)
    made = [
        Question(str(n), tuple(q.split()), q, (Candidate(f"{n}-0", tuple(a.split()), a, 1),))
        for n, (q, a) in enumerate(pairs)
    ]
    return QuestionAnswers("by hand", "train", (), tuple(made))


def test_words_without_a_vector_come_first_then_known_then_unseen_ones():
    train = questions("who is twice", "twice once known", "who known", "often often often rare")
    vectors = WordVectors(("other", "known", "rare", "more", "last"), np.arange(10, dtype=np.float32).reshape(5, 2))
    words = learn_words(train, vectors, None, 0, unseen=2)
    assert words.vocabulary.words == ("often", "twice", "who", "known", "rare", "other", "more")
    assert words.n_known == 4 and words.source == "given"
    np.testing.assert_array_equal(words.vectors[3:], [[2, 3], [4, 5], [0, 1], [6, 7]])
    assert learn_words(train, vectors, None, 0).vocabulary.words == ("often", "twice", "who", "known", "rare")
    assert not np.array_equal(learn_words(train, vectors, None, 1).vectors[0], words.vectors[0])
    random = learn_words(train, "random", 6, 0)
    assert random.vectors is None and (random.n_known, random.source) == (0, "random")
    assert random.vocabulary.words == ("often", "known", "twice", "who")
    with pytest.raises(InputError, match="nothing to learn"):
        learn_words(questions("a b", "c d"), "random", 6, 0)


def test_fewer_numbers_are_principal_components():
    generator = np.random.default_rng(0)
    full = (generator.normal(size=(50, 4)) * [1.0, 5.0, 0.1, 3.0] + 2.0).astype(np.float32)
    vectors = WordVectors(tuple(map(str, range(50))), full)
    assert reduce_vectors(vectors, 4) is vectors
    found = reduce_vectors(vectors, 2).vectors
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-5)
    for column, original in ((0, 1), (1, 3)):
        assert np.corrcoef(found[:, column], full[:, original])[0, 1] > 0.9  # its largest number is positive
    with pytest.raises(InputError, match="must not be above, but is 5"):
        reduce_vectors(vectors, 5)


def test_the_source_of_vectors_is_named(tmp_path):
    train = named_answers(20, 1)
    assert learn_words(train, VECTORS, 6, 0).source == "given" and learn_words(train, "random", 6, 0).source == "random"
    path = tmp_path / "glove.txt"
    rows = zip(VECTORS.words, VECTORS.vectors, strict=True)
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows))
    assert learn_words(train, path, None, 0).source == "glove.txt"


# Regression


def test_columns_are_standardised_over_what_is_known():
    values = np.array([[1.0, 5.0, 2.0], [3.0, 5.0, np.nan], [8.0, 5.0, 6.0]])
    found = Standardisation.learn(values, np.isfinite(values))
    np.testing.assert_allclose(found.mean, [4, 5, 4])
    np.testing.assert_allclose(found.scale, [np.std([1, 3, 8]), 1, 2])
    np.testing.assert_allclose(found(values)[:, 2], [-1, np.nan, 1])
    unknown = Standardisation.learn(np.full((2, 1), np.nan), np.zeros((2, 1), bool))
    assert (unknown.mean, unknown.scale) == (0, 1)
    nearly = np.array([[1000.0], [1000.001]])
    assert Standardisation.learn(nearly, nearly > 0, rounding=1e-5).scale == 1
    assert Standardisation.learn(nearly, nearly > 0, rounding=1e-8).scale == pytest.approx(0.0005)
    assert Standardisation.learn(-nearly, nearly > 0, rounding=1e-5).scale == 1


def test_log_odds_are_those_of_scikit_learn():
    generator = np.random.default_rng(0)
    columns = generator.normal(size=(60, 3))
    labels = (columns @ [1.0, -2.0, 0.0] + generator.normal(size=60) > 0.3).astype(int)
    expected = LogisticRegression(C=1.0, max_iter=1000).fit(columns, labels).decision_function(columns)
    np.testing.assert_allclose(Regression.fit(columns, labels).log_odds(columns), expected)
