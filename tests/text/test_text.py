"""Text to counts: words, vocabulary, counting in one or more processes."""

import json
import os
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refusal import refused

from varitext.errors import InputError
from varitext.text import TokenRules, Vocabulary, VocabularyRules, count_texts, count_tokens, counting, tokenise
from varitext.text.counting import GrowingIds, plain_occurrences
from varitext.text.tokens import unicode_runs

EVERY_WORD = VocabularyRules(size=10**9, minimum_documents=1, maximum_document_share=1.0, stop_words="none")

# Many short words that repeat, some long ones, and whatever else Unicode has, lone surrogates and NULs included.
wordlike = st.text("abAB \n-1_", max_size=60)
anything = st.text(st.characters(), max_size=60)
texts = st.lists(st.one_of(wordlike, anything, st.text(st.characters(max_codepoint=127), max_size=80)), max_size=12)
rules = st.builds(
    TokenRules,
    lowercase=st.booleans(),
    alphabet=st.sampled_from(["unicode", "ascii"]),
    minimum_length=st.integers(1, 4),
    maximum_length=st.integers(4, 30),
)


def counts_by_hand(token_lists: list[list[str]]) -> list[dict[str, int]]:
    return [dict(Counter(tokens)) for tokens in token_lists]


def as_dicts(counted) -> list[dict[str, int]]:
    words = counted.vocabulary.words
    rows = (counted.counts[row] for row in range(counted.counts.shape[0]))
    return [{words[column]: int(n) for column, n in zip(row.indices, row.data, strict=True)} for row in rows]


def run_python(*arguments) -> subprocess.CompletedProcess:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


# --- words ---


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat's 2 mats_and hats!", ["the", "cat", "mats", "and", "hats"]),
        ("Größe ÉCOLE naïve", ["größe", "école", "naïve"]),
        ("cafe\u0301 caf\u00e9", ["café", "café"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("x² Ⅷ ½cup 10km", ["cup", "km"]),
        ("inter\u00adnational می\u200cخواهم", ["international", "میخواهم"]),
        ("I ❤\ufe0flove it", ["love", "it"]),
        ("a\x00bc\ud800de " + "z" * 41, ["bc", "de"]),
        ("\u201cQuoted\u201d \u2014 it\u2019s", ["quoted", "it"]),
        ("\u0301\u0302 \u0301ab", ["ab"]),
        ("", []),
    ],
)
def test_words_of_every_script(text, words):
    assert tokenise(text) == words


def test_ascii_words_are_those_of_the_paper():
    text = "Größe \u212aelvin, don't! \u0130x"
    assert tokenise(text, TokenRules(alphabet="ascii")) == re.findall("[a-z]{2,}", text.lower())


def test_case_is_kept_on_request():
    assert tokenise("The ÉCOLE Café", TokenRules(lowercase=False)) == ["The", "ÉCOLE", "Café"]
    assert tokenise("The ÉCOLE", TokenRules(lowercase=False, alphabet="ascii")) == ["The", "COLE"]


@given(st.text(st.characters(max_codepoint=127)), st.booleans())
@example("supercalifragilistic a-b_c", True)
def test_the_fast_way_for_ascii_is_the_general_way(text, lowercase):
    general = unicode_runs(text.lower() if lowercase else text)
    chosen = TokenRules(lowercase=lowercase, minimum_length=1, maximum_length=10**9)
    assert tokenise(text, chosen) == general
    ids = GrowingIds()
    found = plain_occurrences(["", text, "last"], chosen, ids)
    words = list(ids)
    assert [words[number] for number in found.word_ids] == [*general, "last"]
    assert found.documents.tolist() == [1] * len(general) + [2]


@given(anything, rules)
@example("e\u00ad\u0301te", TokenRules())  # composed only when the soft hyphen has gone
def test_words_obey_the_rules(text, rules):
    for word in tokenise(text, rules):
        assert rules.minimum_length <= len(word) <= rules.maximum_length
        assert word[0].isalpha() and not any(character.isspace() or character.isdigit() for character in word)
        assert not rules.lowercase or word == word.lower()
        assert rules.alphabet == "unicode" or word.isascii()
        assert tokenise(word, rules) == [word]


# --- counting ---


@settings(deadline=None)
@given(texts, rules)
def test_counting_is_tokenising_and_counting(texts, rules):
    expected = counts_by_hand([tokenise(text, rules) for text in texts])
    if not any(expected):
        with pytest.raises(InputError):
            count_texts(texts, rules, vocabulary_rules=EVERY_WORD)
        return
    counted = count_texts(texts, rules, vocabulary_rules=EVERY_WORD)
    assert as_dicts(counted) == expected
    totals = sum(map(Counter, expected), Counter())
    assert list(counted.vocabulary.words) == sorted(totals, key=lambda word: (-totals[word], word))


@settings(deadline=None)
@given(texts, rules, st.sets(st.sampled_from(["a", "ab", "ba", "aab", "é", "abababababab"])))
def test_counts_against_a_vocabulary_are_the_known_tokens(texts, rules, words):
    vocabulary = Vocabulary(tuple(sorted(words)))
    counted = count_texts(texts, rules, vocabulary)
    known = [word for text in texts for word in tokenise(text, rules) if word in words]
    assert counted.counts.shape == (len(texts), len(words))
    assert counted.counts.sum() == len(known)
    assert counted.vocabulary is vocabulary


@settings(deadline=None)
@given(texts.filter(lambda texts: any(tokenise(text) for text in texts)), st.randoms())
def test_the_order_of_documents_changes_only_the_order_of_rows(texts, random):
    order = list(range(len(texts)))
    random.shuffle(order)
    first = count_texts(texts, vocabulary_rules=EVERY_WORD)
    second = count_texts([texts[place] for place in order], vocabulary_rules=EVERY_WORD)
    assert first.vocabulary == second.vocabulary
    assert (first.counts[order] != second.counts).nnz == 0


@settings(deadline=None)
@given(texts)
def test_tokens_and_texts_count_alike(texts):
    tokens = [tokenise(text) for text in texts]
    if any(tokens):
        by_text = count_texts(texts, vocabulary_rules=EVERY_WORD)
        by_token = count_tokens(tokens, vocabulary_rules=EVERY_WORD)
        assert by_text.vocabulary == by_token.vocabulary
        assert (by_text.counts != by_token.counts).nnz == 0


def test_counts_are_plain_csr():
    counts = count_texts(["bb aa bb", "", "cc bb"], vocabulary_rules=EVERY_WORD).counts
    assert counts.format == "csr" and counts.dtype == np.float32 and counts.indices.dtype == np.int32
    assert counts.has_sorted_indices and counts.has_canonical_format
    assert counts.toarray().tolist() == [[2, 1, 0], [0, 0, 0], [1, 0, 1]]


def test_a_corpus_of_many_chunks_with_one_huge_line():
    texts = ["naïve cats", "dog " * 700_000, "", *["cat dog"] * 40_000]
    counted = count_texts(iter(texts), vocabulary_rules=EVERY_WORD)
    assert counted.vocabulary.words == ("dog", "cat", "cats", "naïve")
    assert counted.counts.sum(axis=0).tolist() == [[740_000, 40_000, 1, 1]]
    assert counted.counts[1, 0] == 700_000


@pytest.mark.parametrize("rules", [TokenRules(), TokenRules(longest_ngram=2)])  # in threads, in processes
@pytest.mark.parametrize("vocabulary", [None, Vocabulary(("word3", "école", "wordword"))])
def test_two_cores_give_what_one_gives(vocabulary, rules, monkeypatch):
    monkeypatch.setattr(counting, "TRANSFER_SIZE", 1 << 18)
    monkeypatch.setattr(counting, "CHUNK_SIZE", 1 << 18)
    generator = np.random.default_rng(0)
    letters = np.array(["".join(generator.choice(list("abcdefg"), size)) for size in generator.integers(1, 14, 3000)])
    texts = [" ".join(generator.choice(letters, 60)) + (" école" if n % 7 == 0 else "") for n in range(6000)]
    one = count_texts(texts, rules, vocabulary, processes=1)
    two = count_texts(iter(texts), rules, vocabulary, processes=2)
    assert one.vocabulary == two.vocabulary
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(one.counts, name), getattr(two.counts, name))


def test_an_error_elsewhere_arrives_here():
    refused(lambda: count_texts(["aa", "bb", 3], processes=2), "document 2 (from 0) must be text, not int")


def test_a_script_without_a_guard_can_use_processes(tmp_path):
    script = tmp_path / "script.py"
    call = "count_texts(['cat', 'cat'], TokenRules(longest_ngram=2), processes=2).counts.sum()"
    script.write_text(f"from varitext.text import TokenRules, count_texts\nprint({call})")
    done = run_python(script)
    assert (done.stdout, done.stderr) == ("2.0\n", "")


# --- vocabulary ---


def test_rules_choose_the_vocabulary():
    texts = ["common usual rare"] * 2 + ["common usual usual"] * 2 + ["common"] * 295 + ["the the"]
    chosen = count_texts(texts, vocabulary_rules=VocabularyRules(maximum_document_share=1.0)).vocabulary
    assert chosen.words == ("common", "usual")  # "rare" is in two documents, "the" is a stop word
    assert count_texts(texts).vocabulary.words == ("usual",)
    keep_rare = VocabularyRules(minimum_documents=2, skip_most_frequent=1, stop_words="none")
    assert count_texts(texts, vocabulary_rules=keep_rare).vocabulary.words == ("usual", "rare")
    smallest = VocabularyRules(size=1, minimum_documents=1, maximum_document_share=1.0)
    assert count_texts(texts, vocabulary_rules=smallest).vocabulary.words == ("common",)


def test_a_tiny_corpus_keeps_its_words():
    assert count_texts(["a single document"]).vocabulary.words == ("document", "single")


def test_ties_go_by_the_word_also_at_the_edge_of_the_vocabulary():
    rules = VocabularyRules(size=3, minimum_documents=1, stop_words="none")
    assert count_texts(["ee dd cc bb aa ee"], vocabulary_rules=rules).vocabulary.words == ("ee", "aa", "bb")


def test_tokens_that_cannot_be_saved_are_no_words():
    assert count_tokens([["new\nline", "", "good", "\ud800", "two words"]]).vocabulary.words == ("good", "two words")


@given(st.sets(st.text(st.characters(exclude_categories=["Cs", "Zl", "Zp", "Cc"]), min_size=1)))
def test_a_vocabulary_survives_its_file(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.txt"
    vocabulary = Vocabulary(tuple(words))
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary
    assert path.read_text(encoding="utf-8").count("\n") == len(vocabulary)


@pytest.mark.parametrize("words", [("a", "b", "a"), ("",), ("a\nb",), ("a\u2028b",), ("a\x85",), (3,), ("\ud800",)])
def test_a_vocabulary_refuses_what_a_file_cannot_hold(words):
    with pytest.raises(InputError):
        Vocabulary(words)


@pytest.mark.parametrize("content", [b"cat\ncat\n", b"cat\n\ndog\n", b"cat\x0bdog\n", b"\xff\xfe"])
def test_a_damaged_vocabulary_file_is_named(tmp_path, content):
    (tmp_path / "vocabulary.txt").write_bytes(content)
    refused(lambda: Vocabulary.load(tmp_path / "vocabulary.txt"), "vocabulary.txt")


# --- bad input ---


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: count_texts([]), "no documents"),
        (lambda: count_texts(["", "1 2 3"]), "No usable words in 2 documents: all are stop words"),
        (lambda: count_texts("one text"), "not a single string"),
        (lambda: count_texts(["fine", None]), r"document 1 .from 0. must be text, not None"),
        (lambda: count_texts([b"bytes"]), r"document 0 .from 0. must be text, not bytes"),
        (lambda: count_tokens(["a string"]), r"document 0 .from 0. must be a list"),
        (lambda: count_tokens([["fine"], ["fine", 3]]), r"document 1 .from 0. must be a list"),
        (lambda: count_texts(["fine"], processes=0), "processes"),
        (lambda: tokenise(None), "must be a string"),
    ],
)
def test_bad_documents_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("kind", [TokenRules, VocabularyRules])
def test_rules_travel_as_json(kind):
    assert kind.from_dict(json.loads(json.dumps(kind().as_dict()))) == kind()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (TokenRules, {"colour": "red"}),
        (TokenRules, {"lowercase": 1}),
        (TokenRules, {"minimum_length": True}),
        (TokenRules, {"minimum_length": "2"}),
        (TokenRules, {"minimum_length": 5, "maximum_length": 4}),
        (TokenRules, {"alphabet": "greek"}),
        (TokenRules, [1, 2]),
        (VocabularyRules, {"size": 0}),
        (VocabularyRules, {"size": 1.5}),
        (VocabularyRules, {"maximum_document_share": 0}),
        (VocabularyRules, {"maximum_document_share": float("nan")}),
        (VocabularyRules, {"stop_words": "klingon"}),
        (VocabularyRules, {"stop_words": 5}),
        (TokenRules, {"segmenter": "klingon"}),
        (TokenRules, {"longest_ngram": 0}),
        (TokenRules, {"longest_ngram": 2, "phrases": True}),
    ],
)
def test_wrong_rules_are_refused(kind, values):
    with pytest.raises(InputError):
        kind.from_dict(values)


def test_importing_text_stays_light():
    heavy = "{'torch', 'pandas', 'sklearn', 'pyarrow'}"
    code = f"import sys, varitext.text, varitext.corpora; print({heavy} & set(sys.modules))"
    done = run_python("-c", code)
    assert done.stdout == "set()\n", done.stderr
