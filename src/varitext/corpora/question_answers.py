"""Questions with candidate answers: the record, evaluation protocols, tokenisation, and the order in which models read.

Words keep their case, as the corpora give them.
"""

import itertools
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from varitext.corpora.sources import SourceFile, combined_sha256
from varitext.errors import InputError
from varitext.text.sentences import sentence_spans


class Protocol(NamedTuple):
    """Which questions count, and the factor on their values."""

    questions: str  # in words
    needs_right: bool
    needs_wrong: bool
    scale: float = 1.0

    def counts(self, n_right: np.ndarray, n_candidates: np.ndarray) -> np.ndarray:
        """Whether each question counts, from its numbers of right answers and of candidates."""
        enough_right = (n_right > 0) | (not self.needs_right)
        return enough_right & ((n_right < n_candidates) | (not self.needs_wrong))


PROTOCOLS = {
    "answerable": Protocol("questions with a right answer", needs_right=True, needs_wrong=False),
    "both": Protocol("questions with a right and a wrong answer", needs_right=True, needs_wrong=True),
    "all": Protocol(
        "every question, 0 for one without a right answer, as trec_eval does", needs_right=False, needs_wrong=False
    ),
    # the early QASent script counted 72 test questions, 4 of which no system could get right; the paper seems to use it
    "paper-qasent": Protocol(
        "as `both`, times 68/72: 4 of 72 questions always count as wrong",
        needs_right=True,
        needs_wrong=True,
        scale=68 / 72,
    ),
}
PROTOCOLS |= {"clean": PROTOCOLS["both"], "raw": PROTOCOLS["all"]}  # as they are called for QASent


def protocol_named(name: str) -> Protocol:
    if name not in PROTOCOLS:
        raise InputError(f"unknown protocol {name!r}. Protocols: {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]


class Candidate(NamedTuple):
    """A sentence that may answer a question.

    Parameters
    ----------
    id : str
        Id of the candidate.
    words : tuple of str
        Its words, as `sentence_words` splits them.
    text : str
        The sentence.
    label : int
        1 for a right answer, 0 for a wrong one.
    position : int, optional
        Index of the sentence in its document, from 0, if known.
    metadata : mapping, optional
        The other columns of its row, if it was read to be ranked.
    gain : float, optional
        Its grade, or log(1 + count) of its clicks, if the file has any: its weight among the right answers of its
        question in training, and in nDCG.
    """

    id: str
    words: tuple[str, ...]
    text: str
    label: int
    position: int | None = None
    metadata: Mapping[str, Any] = MappingProxyType({})
    gain: float | None = None


class Question(NamedTuple):
    """A question and its candidates.

    Parameters
    ----------
    id : str
        Id of the question.
    words : tuple of str
        Its words, as `sentence_words` splits them.
    text : str
        The question.
    candidates : tuple of Candidate
        The candidate answers.
    """

    id: str
    words: tuple[str, ...]
    text: str
    candidates: tuple[Candidate, ...]

    @property
    def has_right(self) -> bool:
        return any(candidate.label == 1 for candidate in self.candidates)

    @property
    def has_wrong(self) -> bool:
        return any(candidate.label == 0 for candidate in self.candidates)


class Pair(NamedTuple):
    """A question and one candidate: a row of a file, before rows are grouped by their question."""

    question_id: str
    question: str
    question_words: tuple[str, ...]
    candidate: Candidate
    where: str  # file and line, for messages


@dataclass(frozen=True, eq=False)
class QuestionAnswers:
    """One part of a corpus of questions; each question has at least one candidate.

    Parameters
    ----------
    name : str
        Name of the corpus, or path of the file.
    part : str
        "train", "dev", "test", or "all" for a file that is not divided into parts.
    files : tuple of SourceFile
        The files it was read from, with their SHA-256.
    questions : tuple of Question
        The questions.
    """

    name: str
    part: str
    files: tuple[SourceFile, ...]
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        for question in self.questions:
            if not question.candidates:
                raise InputError(f"{self.name}: question {question.id} has no candidates")

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        """Refuse to be used as a matrix of counts, for example by `DocumentModel`."""
        raise InputError(f"{self.name} is a corpus of questions and answers, not of documents")

    @property
    def sha256(self) -> str:
        """One hash of all files that this part was read from: `corpus_sha256` in results."""
        return combined_sha256(self.files)

    @property
    def n_questions(self) -> int:
        return len(self.questions)

    @property
    def n_pairs(self) -> int:
        return len(self.labels)

    @property
    def n_positive(self) -> int:
        return int(self.labels.sum())

    @cached_property
    def labels(self) -> np.ndarray:
        """The labels of all candidates, question by question."""
        every = itertools.chain.from_iterable(question.candidates for question in self.questions)
        return np.array([candidate.label for candidate in every], np.int8)  # [pairs]

    @cached_property
    def gains(self) -> np.ndarray | None:
        """The gains of all candidates, question by question; None if they have labels only."""
        every = [candidate for question in self.questions for candidate in question.candidates]
        if not any(candidate.gain is not None for candidate in every):
            return None
        return np.array([one.label if one.gain is None else one.gain for one in every], np.float64)  # [pairs]

    @cached_property
    def groups(self) -> np.ndarray:
        """The index in `questions` of each candidate's question."""
        sizes = [len(question.candidates) for question in self.questions]
        return np.repeat(np.arange(len(sizes)), sizes)  # [pairs]


def subset(question_answers: QuestionAnswers, protocol: str) -> QuestionAnswers:
    """The questions that a protocol counts; an `InputError` if there are none."""
    rule = protocol_named(protocol)
    n_candidates = np.bincount(question_answers.groups)
    counts = rule.counts(np.bincount(question_answers.groups, question_answers.labels), n_candidates)
    if not counts.any():
        raise InputError(
            f"{question_answers.name} ({question_answers.part}): none of {question_answers.n_questions} questions "
            f"counts under the protocol {protocol!r} ({rule.questions})"
        )
    return choose_questions(question_answers, counts)


def check_both_labels(question_answers: QuestionAnswers) -> None:
    """Refuse to learn from pairs that are all right or all wrong."""
    if question_answers.n_positive in (0, question_answers.n_pairs):
        label = int(question_answers.n_positive > 0)
        raise InputError(
            f"{question_answers.name} ({question_answers.part}): all {question_answers.n_pairs} pairs have "
            f"label {label}; learning needs right and wrong answers"
        )


def check_some_wrong(question_answers: QuestionAnswers) -> None:
    """Refuse to evaluate on questions that any order of candidates would answer."""
    if question_answers.n_positive == question_answers.n_pairs:
        raise InputError(
            f"{question_answers.name} ({question_answers.part}): all {question_answers.n_pairs} answers are right; "
            "an evaluation needs wrong ones, too"
        )


def group_pairs(pairs: Iterable[Pair]) -> tuple[Question, ...]:
    """Questions in order of first appearance with their candidates; contradictory labels are kept, with a warning."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        group = groups.setdefault(pair.question_id, [])
        if group and group[0].question != pair.question:
            raise InputError(f"{pair.where}: question id {pair.question_id!r} belongs to a different question above")
        group.append(pair)
    _warn_of_contradictions(groups.values())
    return tuple(
        Question(question_id, group[0].question_words, group[0].question, tuple(pair.candidate for pair in group))
        for question_id, group in groups.items()
    )


def _warn_of_contradictions(groups: Iterable[Sequence[Pair]]) -> None:
    """Warn of an answer that is labelled both right and wrong for the same question."""
    contradictions = []
    for group in groups:
        labels: dict[str, int] = {}
        for pair in group:
            if labels.setdefault(pair.candidate.text, pair.candidate.label) != pair.candidate.label:
                contradictions.append(pair)
    if contradictions:
        first = contradictions[0]
        others = f", and {len(contradictions) - 1} more such" if len(contradictions) > 1 else ""
        warnings.warn(
            f"{first.where}: this pair occurs above with the other label{others}; both are kept", stacklevel=3
        )


def split_words(text: str) -> tuple[str, ...]:
    """The words of tokenised text; equal words share one object, to save memory."""
    return tuple(map(sys.intern, text.split()))


_DIGIT = re.compile(r"\d")
_STEPS = tuple(  # characters, one of which the text must have for a step to apply, and the step
    (needed.split(), re.compile(pattern), replacement)
    for needed, pattern, replacement in (
        ("“ ”", r"[“”]", '"'),
        ("‘ ’", r"[‘’]", "'"),
        ('"', r'(^|[\s(\[{])"', r"\1 `` "),
        ('"', r'"', " '' "),
        ("... …", r"\.{3,}|…", " ... "),
        ("--", r"-{2,}", " -- "),
        ("; @ # $ % & ! ? , :", r"([;@#$%&!?]|[,:](?!\d))", r" \1 "),
        # the final full stop; others belong to abbreviations
        (".", r"(?<=[^\s.])\.(?=[\s\])}']*$)", " . "),
        ("( ) [ ] { }", r"([()\[\]{}])", r" \1 "),
        ("'", r"(?i)(?<=\w)(n't|'(?:s|m|d|re|ve|ll))(?!\w)", r" \1"),
        ("'", r"(?<=[^\s'])'(?=\s|$)", " '"),  # possessive: the dogs ' tails
    )
)


def sentence_words(text: str) -> tuple[str, ...]:
    """The words of a text, split like those of the corpora, close to the rules of the Penn Treebank.

    Punctuation marks are words, quotes are `` and '', and don't is do n't. Numbers, words with hyphens and
    abbreviations stay whole. Tokenised text stays the same, with rare exceptions. 98 % of WikiQA's sentences are split
    as in the corpus's own tokenised files; the others differ mostly in one full stop (No. for No and .).
    """
    return split_words(" ".join(_split_marks(text[begin:end]) for begin, end in sentence_spans(text)))


@lru_cache(200_000)
def reading_form(word: str) -> str:
    """A word as sentence models read it: in lower case, with 0 for every digit, so that all years are 0000."""
    return _DIGIT.sub("0", word.lower())


def _split_marks(sentence: str) -> str:
    """The sentence with a space between words and punctuation marks."""
    for needed, pattern, replacement in _STEPS:
        if any(map(sentence.__contains__, needed)):
            sentence = pattern.sub(replacement, sentence)
    return sentence


MAX_QUESTION_LENGTH = 250  # words; the rest is not read. Long candidates are read in windows: `answers/windows.py`


class CanonicalOrder(NamedTuple):
    """A corpus sorted by its words, so that the order of a file does not matter, with overlong questions cut."""

    question_answers: QuestionAnswers
    place: np.ndarray  # [P] index of each pair in the corpus as it was given

    def restore_order(self, values: np.ndarray) -> np.ndarray:
        """Values of the sorted pairs, [..., P], in the order of the corpus as it was given."""
        back = np.empty_like(values)
        back[..., self.place] = values
        return back


def canonical_order(question_answers: QuestionAnswers) -> CanonicalOrder:
    """Sort questions and candidates by their words, and cut questions to the length that models read."""
    given, pair = [], 0
    for question in question_answers.questions:
        numbered = list(zip(question.candidates, itertools.count(pair), strict=False))
        pair += len(numbered)
        numbered.sort(key=lambda one: (one[0].words, one[0].position or 0, one[0].id, one[0].label))
        given.append((question._replace(words=question.words[:MAX_QUESTION_LENGTH]), numbered))
    given.sort(key=lambda one: (one[0].words, one[0].id))
    _warn_of_cuts(question_answers)
    questions = tuple(question._replace(candidates=tuple(one for one, _ in numbered)) for question, numbered in given)
    place = np.array([number for _, numbered in given for _, number in numbered], np.int64)
    return CanonicalOrder(replace(question_answers, questions=questions), place)


def choose_questions(question_answers: QuestionAnswers, chosen: np.ndarray) -> QuestionAnswers:
    return replace(question_answers, questions=tuple(itertools.compress(question_answers.questions, chosen)))


def _warn_of_cuts(question_answers: QuestionAnswers) -> None:
    lengths = [len(question.words) for question in question_answers.questions]
    cut = [length for length in lengths if length > MAX_QUESTION_LENGTH]
    if cut:
        many = "questions are" if len(cut) > 1 else "question is"
        warnings.warn(
            f"{len(cut)} {many} longer than {MAX_QUESTION_LENGTH} words (the longest: {max(cut):,}); "
            "only the beginning is read",
            stacklevel=4,
        )
