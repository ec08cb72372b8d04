"""Words counted in C against the same in Python."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from varitext import compiled
from varitext.corpora import load_documents
from varitext.text import TokenRules, Vocabulary, VocabularyRules, count_texts
from varitext.text.tokens import character_table, tokenise

needs_library = pytest.mark.skipif(not compiled.available(), reason="no C compiler when varitext was installed")
ALL_WORDS = VocabularyRules(10**9, minimum_documents=1, maximum_document_share=1.0, stop_words="none")
RULES = (
    TokenRules(),
    TokenRules(lowercase=False, minimum_length=1, maximum_length=3),
    TokenRules(alphabet="ascii"),
    TokenRules(strip_html=True, strip_urls=True, maximum_length=2**62),
)
# letters, marks that join and marks that do not, numerals, invisible characters, capitals whose lower case is two
# letters or depends on what follows, a sign that becomes an ASCII letter, syllables in parts, emoji, a lone surrogate
ODD = (
    "aZé_\u0301\u0308\u093f\u094d\u0903कख½²٣५\u00ad\u200d\u200cİΣςσK\u212bÅ가\u1100\u1161\u11a8漢字🙂𝒳𠀀"
    "\ud800ǅßŉ’—\x00\n<b>.:/ "
)
TEXTS = st.lists(st.text(st.one_of(st.sampled_from(ODD), st.characters()), max_size=40), max_size=6)


@pytest.fixture
def in_python(monkeypatch):
    """A way to have the same call done in Python."""

    def call(*arguments, **named):
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "available", lambda: False)
            return count_texts(*arguments, **named)

    return call


def assert_same(one, other):
    assert one.vocabulary.words == other.vocabulary.words
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one.counts, name), getattr(other.counts, name))


@needs_library
@pytest.mark.parametrize("rules", RULES)
@given(texts=TEXTS)
@example(["A rocket, to the MOON", "", "cafe\u0301 café CAFÉ", "x2y", "ὈΔΥΣΣΕΎΣ", "“curly” don’t", "हिन्दी में"])
def test_words_are_those_of_python(rules, texts):
    """Here without `count_texts`, which refuses to choose among no words."""
    vocabulary = Vocabulary(tuple(sorted({word for text in texts for word in tokenise(text, rules)})))
    counted = count_texts(texts, rules, vocabulary)
    for text, row in zip(texts, counted.counts.toarray(), strict=True):
        expected = np.zeros(len(vocabulary))
        np.add.at(expected, [vocabulary.index[word] for word in tokenise(text, rules)], 1)
        np.testing.assert_array_equal(row, expected)
    assert counted.counts.has_sorted_indices


@needs_library
@pytest.mark.parametrize("lowercase", [True, False])
def test_every_character_is_read_as_in_python(lowercase):
    """Between letters, at the start and at the end of a word, and two in a row."""
    tables, rules = [character_table(each) for each in (True, False)], TokenRules(lowercase=lowercase, minimum_length=1)
    codes = range(len(tables[0]) + 99) if lowercase else np.flatnonzero(tables[0] != tables[1])
    texts = [f"a{one}b {one}c d{one}{one} {one}" for one in map(chr, codes)]
    expected = [sorted(set(tokenise(text, rules))) for text in texts]
    vocabulary = Vocabulary(tuple(sorted({word for words in expected for word in words})))
    counts = count_texts(texts, rules, vocabulary).counts
    found = np.array(vocabulary.words)[counts.indices]
    assert [sorted(row) for row in np.split(found, counts.indptr[1:-1])] == expected


@needs_library
def test_real_articles_are_counted_as_in_python(data_dir, in_python):
    texts = load_documents("20newsgroups", "train", data_dir).texts[:3000:2]
    texts = [*texts, *(text.replace("e ", "ü ").replace("'", "’") for text in texts[:500]), ""]
    every = in_python(texts, vocabulary_rules=ALL_WORDS)
    known = Vocabulary(every.vocabulary.words[100:5000:3])
    of_known = in_python(texts, vocabulary=known)
    for cores in (1, 2, 3):
        assert_same(count_texts(texts, vocabulary_rules=ALL_WORDS, processes=cores), every)
        assert_same(count_texts(texts, vocabulary=known, processes=cores), of_known)
