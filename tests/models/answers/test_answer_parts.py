"""Parts of answer models by hand: regression on columns, chosen features, the words that a ranker learns."""

import numpy as np
import pytest
from made_up_questions import made_up
from sklearn.linear_model import LogisticRegression

from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers
from varitext.corpora.word_vectors import WordVectors
from varitext.errors import InputError
from varitext.models.answers.lclr import _look, _wanted
from varitext.models.answers.overlap_regression import POSITION, WORDS, OverlapRegression
from varitext.models.answers.scorer import Regression, Standardisation, chosen
from varitext.models.answers.vocabulary import learn_words, reduce_vectors


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


def test_features_are_chosen_in_the_order_of_the_system():
    known = ("a", "b", "c")
    assert chosen(None, known, ["b"]) == ("b",) and chosen("c, a", known, known) == chosen(["c", "a"], known, known)
    assert chosen("c, a", known, known) == ("a", "c")
    for names in ("d", ["a", "d"], []):
        with pytest.raises(InputError, match="there are: a, b, c"):
            chosen(names, known, known)


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


def test_overlap_has_places_only_where_asked():
    train = made_up(6, 0)
    vocabulary = learn_words(train, "random", 6, 0).vocabulary
    assert OverlapRegression(vocabulary).columns == WORDS and not OverlapRegression(vocabulary).reads_positions
    placed = OverlapRegression(vocabulary, position=True)
    assert placed.columns == WORDS + POSITION and placed.reads_positions
    assert OverlapRegression(vocabulary, "first_sentence").reads_positions
    words = learn_words(train, "random", 6, 0)
    placed.learn(train, train, words)
    lengths = [len(candidate.words) for question in train.questions for candidate in question.candidates]
    assert placed.mean_length.item() == pytest.approx(np.mean(lengths))
    assert placed.n_answers.item() == len(lengths) == len(placed.log_odds(train))


SIZES = ("many", "much", "old", "long", "tall", "big", "far", "large", "high")
WANTED = {f"how {size} is it": "how many" for size in SIZES}
WANTED |= {words: "when" for words in ("when was it", "in what year", "on what date was it", "on what day")}
WANTED |= {words: "who" for words in ("who is it", "to whom", "whose is it", "what is the name of it")}
WANTED |= {f"{kind} {place}": "where" for kind in ("what", "which") for place in ("city", "country")}
WANTED |= {"where is it": "where", "what state": "where", "what is it": "what", "how is it": "what"}


@pytest.mark.parametrize(("question", "kind"), WANTED.items())
def test_what_a_question_wants(question, kind):
    assert _wanted(question.split()) == kind


@pytest.mark.parametrize(
    ("word", "place", "look"),
    [
        ("1999", 3, (True, True, False)),
        ("199", 3, (False, True, False)),
        ("May", 3, (True, False, True)),
        ("Paris", 1, (False, False, True)),
        ("The", 0, (False, False, False)),
        ("word", 1, (False, False, False)),
        ("B52", 1, (False, True, True)),
    ],
)
def test_how_a_word_looks(word, place, look):
    assert _look(word, place) == look
