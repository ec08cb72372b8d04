"""Features of a pair that mean the same in every corpus: relative to the question, and to the list it is ranked in.

coverage            idf of the question's words that the candidate has, over that of all its words
saturated           the same with BM25's term of each word, at a usual length of 20 words
coverage_of_best    both over their highest value among the question's candidates
saturated_of_best
list_coverage       the share of the question's content words that the candidate has in some form, weighted by idf
                    among the question's candidates and 20 more that have none of them: no corpus is needed
name_missing        the share of the question's capitalised words that the candidate does not have
year_missing        it has years, and none of those in the question
no_date             "when", "what year": no year, month or day that is not in the question
no_number           "how many", "how long", ...: no number that is not in the question
no_name             "who", "where": no capitalised word, after the first, that is not in the question
no_new_word         no content word that is not in the question: an echo
is_question         it ends with a question mark
negation            a negation, where the question has none
"""

import re
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from varitext.corpora.question_answers import Question, QuestionAnswers
from varitext.models.answers.features.overlap import STOP_WORDS, Overlap, PairFeatures, idf, is_word, saturated
from varitext.text.tokens import stem

RELATIVE = ("coverage", "saturated", "coverage_of_best", "saturated_of_best")
EXPECTED = (
    *("list_coverage", "name_missing", "year_missing", "no_date", "no_number", "no_name"),
    *("no_new_word", "is_question", "negation"),
)
CARRIED = RELATIVE + EXPECTED
# weights of log odds that are plausible for any corpus: a fit starts there, and few questions keep it there
PLAUSIBLE = {
    "coverage": 3.0,
    "list_coverage": 2.0,
    "name_missing": -1.0,
    "year_missing": -4.0,
    "no_date": -2.0,
    "no_number": -1.5,
    "no_name": -2.0,
    "no_new_word": -4.0,
    "is_question": -5.0,
    "negation": -1.0,
}
PRIOR = np.array([PLAUSIBLE.get(name, 0.0) for name in CARRIED])
USUAL_LENGTH = 20  # words
WITHOUT = 20  # candidates without any word of the question, beside those of the list
NEGATIONS = frozenset({"not", "never", "n't", "no", "none", "neither", "nor", "without", "cannot", "unlike", "nobody"})
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAY_WORDS = frozenset({*MONTHS, "November", "December", *DAYS, "century"})
YEAR = re.compile(r"(1\d|20)\d\d('?s)?")
DATE = re.compile(rf"{YEAR.pattern}|\d+(st|nd|rd|th)")
WHEN = re.compile(r"\bwhen\b|\b(what|which) (year|date|day|month|century|decade)\b")
HOW_MANY = re.compile(
    r"\bhow (many|much|long|old|far|tall|big|large|high|fast|deep|heavy|hot|cold|wide)\b"
    r"|\bwhat (temperature|percent|percentage|age|number|population|speed|height)\b"
)
WHO = re.compile(r"\b(who|whom|whose|where)\b")


class _Word(NamedTuple):
    lower: str
    stem: str
    is_content: bool
    is_number: bool
    is_year: bool
    is_date: bool
    is_capitalised: bool


@lru_cache(200_000)
def _word(word: str) -> _Word:
    lower = word.lower()
    is_content, is_number = is_word(word) and lower not in STOP_WORDS, any(map(str.isdigit, word))
    is_date = word in DAY_WORDS or DATE.fullmatch(lower) is not None
    return _Word(
        lower, stem(lower), is_content, is_number, YEAR.fullmatch(lower) is not None, is_date, word[:1].isupper()
    )


def carried_features(question_answers: QuestionAnswers, overlap: Overlap) -> PairFeatures:
    """All features; `overlap` has the document frequencies behind the columns of `RELATIVE`."""
    values = [np.hstack([_relative(question, overlap), _expected(question)]) for question in question_answers.questions]
    return PairFeatures(CARRIED, np.concatenate(values), question_answers.groups)


def expected_features(question_answers: QuestionAnswers) -> PairFeatures:
    """The features of `EXPECTED`, which need no document frequencies."""
    values = [_expected(question) for question in question_answers.questions]
    return PairFeatures(EXPECTED, np.concatenate(values), question_answers.groups)


def new_words(question: Question) -> list[np.ndarray]:
    """Which words of each candidate are content words that the question has in no form, C times [T]."""
    asked = {_word(word).stem for word in question.words}
    return [np.array(_are_new([_word(word) for word in one.words], asked), bool) for one in question.candidates]


def _are_new(words: list[_Word], asked: set[str]) -> list[bool]:
    return [word.is_content and word.stem not in asked for word in words]


def _relative(question: Question, overlap: Overlap) -> np.ndarray:
    asked = sorted({word.lower() for word in question.words if is_word(word)})
    weights = np.array([overlap.idf(word) for word in asked])
    tallies = [Counter(word.lower() for word in one.words) for one in question.candidates]
    often = np.array([[tally[word] for word in asked] for tally in tallies], np.float64).reshape(len(tallies), -1)
    lengths = np.array([[len(one.words)] for one in question.candidates]) / USUAL_LENGTH
    shares = np.column_stack([(often > 0) @ weights, saturated(often, lengths) @ weights]) / max(weights.sum(), 1e-9)
    return np.hstack([shares, shares / np.maximum(shares.max(0), 1e-9)])  # [C, 4]


def _expected(question: Question) -> np.ndarray:
    asked = [_word(word) for word in question.words]
    read = [[_word(word) for word in one.words] for one in question.candidates]
    kind = _kind(question)
    known = {word.stem for word in asked}
    names = {word.lower for word in asked[1:] if word.is_capitalised and word.is_content}
    years = {word.lower for word in asked if word.is_year}
    negated = any(word.lower in NEGATIONS for word in asked)
    rows = [
        (
            *_missing(names, years, words),
            *_lacks(kind, words, known),
            candidate.text.rstrip().endswith("?"),
            not negated and any(word.lower in NEGATIONS for word in words),
        )
        for candidate, words in zip(question.candidates, read, strict=True)
    ]
    return np.column_stack([_list_coverage(asked, read), np.array(rows, np.float64)])  # [C, 9]


def _list_coverage(asked: list[_Word], read: list[list[_Word]]) -> np.ndarray:
    content = sorted({word.stem for word in asked if word.is_content} or {word.stem for word in asked})
    have = [{word.stem for word in words} for words in read]
    shared = np.array([[one in stems for one in content] for stems in have], np.float64).reshape(len(read), -1)
    weights = idf(len(read) + WITHOUT, shared.sum(0))
    return np.asarray(shared @ weights / max(weights.sum(), 1e-9))  # [C]


def _kind(question: Question) -> str:
    """What is asked for: a number, a date, a name, or anything."""
    words = " ".join(question.words).lower()
    kinds = (("number", HOW_MANY), ("date", WHEN), ("name", WHO))
    return next((kind for kind, cues in kinds if cues.search(words)), "")


def _missing(names: set[str], years: set[str], words: list[_Word]) -> tuple[float, bool]:
    """name_missing, year_missing."""
    has, has_years = {word.lower for word in words}, {word.lower for word in words if word.is_year}
    other_year = bool(years) and bool(has_years) and years.isdisjoint(has_years)
    return len(names - has) / max(1, len(names)), other_year


def _lacks(kind: str, words: list[_Word], known: set[str]) -> tuple[bool, bool, bool, bool]:
    """no_date, no_number, no_name, no_new_word."""
    new = _are_new(words, known)
    date = any(word.is_date and word.stem not in known for word in words)
    number = any(one and word.is_number for one, word in zip(new, words, strict=True))
    name = any(one and word.is_capitalised for one, word in zip(new[1:], words[1:], strict=True))
    return kind == "date" and not date, kind == "number" and not number, kind == "name" and not name, not any(new)
