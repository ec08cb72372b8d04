"""Words are the user's: languages, stop words, n-grams, phrases, markup, segmenters."""

import sys

import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from varitext import DocumentModel, InputError
from varitext.text import TokenRules, Vocabulary, VocabularyRules, count_texts, tokenise, tokens
from varitext.text.stop_words import CONTRACTIONS
from varitext.text.tokens import language_without_spaces, resolve_segmenter

EVERY_WORD = VocabularyRules(minimum_documents=1, maximum_document_share=1.0, stop_words="none")

# language, segmenter that it needs, a text, some of its words, some of its stop words
LANGUAGES = [
    ("english", None, "The rocket flew to the moon, and the crew came home.", {"rocket", "moon"}, {"the", "and"}),
    ("german", None, "Die Rakete flog zum Mond und die Größe überraschte.", {"rakete", "größe"}, {"die", "und"}),
    ("french", None, "La fusée a décollé vers la Lune, et l'été était là.", {"fusée", "lune"}, {"la", "et"}),
    ("russian", None, "Ракета полетела на Луну, и экипаж вернулся домой.", {"ракета", "луну"}, {"на"}),
    ("chinese", "chinese", "我们今天去北京大学学习经济，他们喜欢音乐。", {"北京大学", "经济", "音乐"}, {"我们"}),
    ("japanese", "japanese", "東京の大学で経済を勉強しています。これは音楽です。", {"東京", "大学", "音楽"}, {"これ"}),
    ("thai", "thai", "วันนี้อากาศดีมาก ฉันรักภาษาไทยและดนตรี", {"อากาศ", "ภาษาไทย", "ดนตรี"}, {"และ"}),
]  # fmt: skip


@pytest.mark.parametrize(("language", "segmenter", "text", "words", "stop_words"), LANGUAGES)
def test_text_in_seven_languages(language, segmenter, text, words, stop_words):
    assert language_without_spaces([text]) == segmenter
    rules = resolve_segmenter(TokenRules(segmenter="auto"), [text])
    assert rules.segmenter == (segmenter or "none")
    found = set(tokenise(text, rules))
    assert words <= found and stop_words <= found
    counted = count_texts([text], rules, vocabulary_rules=VocabularyRules(stop_words=language))
    kept = set(counted.vocabulary.words)
    assert words - stop_words <= kept and not stop_words & kept
    assert (count_texts([text], rules, counted.vocabulary).counts != counted.counts).nnz == 0


def test_a_loud_warning_where_clauses_would_be_words(monkeypatch):
    chinese = [LANGUAGES[4][2]] * 3
    with pytest.warns(UserWarning, match=r"looks Chinese.*whole clauses.*--segmenter chinese"):
        assert resolve_segmenter(TokenRules(), chinese).segmenter == "none"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"looks Chinese.*varitext\[segment\]"):
        assert resolve_segmenter(TokenRules(segmenter="auto"), chinese).segmenter == "none"


def test_a_model_of_chinese_keeps_its_segmenter_and_names_what_is_missing(tmp_path, monkeypatch):
    texts = [LANGUAGES[4][2], "音乐会今天在北京举行，我们都去听。", "经济学家喜欢讨论市场和价格。"] * 10
    model = DocumentModel(latent_dim=2, epochs=1, threads=1).fit(texts)
    assert model.fitted_.token_rules.segmenter == "chinese" and "音乐" in model.fitted_.vocabulary.words
    model.save(tmp_path / "m")
    again = DocumentModel.load(tmp_path / "m")
    assert again.count(texts[:1]).nnz == model.count(texts[:1]).nnz > 3
    tokens._cutter.cache_clear()
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(InputError, match=r"Chinese text into words needs rjieba: pip install 'varitext\[segment\]'"):
        again.count(texts[:1])


def test_markup_and_addresses_are_left_out():
    text = '<p class="lead">Bread &amp; butter</p><script>var x;</script> 3 < 5 https://x.org/page?q=moon www.x.org'
    assert "lead" in tokenise(text) and "https" in tokenise(text)
    assert tokenise(text, TokenRules(strip_html=True, strip_urls=True)) == ["bread", "butter"]


def test_ngrams_and_stop_words_in_them():
    rules = TokenRules(longest_ngram=2)
    assert tokenise("new york city", rules) == ["new", "york", "city", "new york", "york city"]
    assert tokenise("new york city", TokenRules(shortest_ngram=2, longest_ngram=2)) == ["new york", "york city"]
    words = count_texts(["new york of the mayor"] * 2, rules).vocabulary.words
    assert set(words) == {"new", "york", "mayor", "new york"}  # "york of" and "the mayor" have a stop word


def test_phrases_are_found_and_counted_as_one_word():
    some = ["moon", "bread", "goal", "team", "oven", "orbit", "salt", "ball", "yeast", "crew"]
    texts = [f"{some[i % 10]} {some[i * 3 % 10]} new york {some[i * 7 % 10]}" for i in range(40)]
    counted = count_texts(texts, TokenRules(phrases=True), vocabulary_rules=EVERY_WORD)
    assert "new york" in counted.vocabulary.index and not {"new", "york"} & set(counted.vocabulary.words)
    again = count_texts(texts, TokenRules(phrases=True), counted.vocabulary)
    assert (again.counts != counted.counts).nnz == 0
    known = Vocabulary(("new york", "york"))
    assert count_texts(["york new york"], TokenRules(phrases=True), known).counts.toarray().tolist() == [[1, 1]]


def test_stop_words_by_language_code_together_or_ones_own():
    assert VocabularyRules(stop_words="de").stop_word_set() == VocabularyRules(stop_words="german").stop_word_set()
    both = VocabularyRules(stop_words="german, english").stop_word_set()
    assert {"und", "and"} <= both
    english = VocabularyRules(stop_words="english").stop_word_set()
    assert english > ENGLISH_STOP_WORDS and english - ENGLISH_STOP_WORDS == set(CONTRACTIONS.split())
    spoken = "I'll go, you don't, they've gone, she isn't here, we wouldn't"
    assert not {word for word in tokenise(spoken) if len(word) > 1} - english - {"gone"}
    own = VocabularyRules(stop_words=["rocket"], minimum_documents=1)
    assert count_texts(["the rocket flew"], vocabulary_rules=own).vocabulary.words == ("flew", "the")
    assert VocabularyRules.from_dict(own.as_dict()) == own
