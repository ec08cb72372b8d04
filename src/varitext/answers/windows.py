"""Candidates longer than a sentence, read in overlapping windows: the best window counts for its candidate.

A window is a run of whole sentences with at most `WINDOW` words; a sentence that is longer is divided. Each window
begins one sentence after the previous one. If there are more than `MAX_WINDOWS`, those with the most words of the
question are read. All windows of a question's candidates are ranked as one list, so that features relative to the list
see what the model sees.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from varitext.corpora.question_answers import Candidate, Question, QuestionAnswers, sentence_words
from varitext.models.answers.features.overlap import STOP_WORDS, is_word
from varitext.text.sentences import sentence_spans

LONGEST_WHOLE = 100  # words of a candidate that is read whole; 0.1 % of WikiQA's have more, none of QASent's
WINDOW = 60  # words: `python -m lab long_candidates`
MAX_WINDOWS = 30  # of a candidate

Span = tuple[int, int]  # begin and end, in characters of the candidate's text


class Window(NamedTuple):
    """The part of a candidate that a model read."""

    span: Span
    words: tuple[str, ...]


class Windows(NamedTuple):
    """A corpus as models read it: every candidate is a window of one that was given."""

    question_answers: QuestionAnswers
    pair_of: np.ndarray  # [W] the pair that each window is of
    read: list[Window | None]  # [W] None for a candidate that is read whole


def in_windows(question_answers: QuestionAnswers) -> Windows:
    questions: list[Question] = []
    pair_of: list[int] = []
    read: list[Window | None] = []
    pair = 0
    for question in question_answers.questions:
        parts: list[Candidate] = []
        for candidate in question.candidates:
            windows = windows_of(candidate, question)
            parts += [candidate if one is None else candidate._replace(words=one.words) for one in windows]
            pair_of += [pair] * len(windows)
            read += windows
            pair += 1
        questions.append(question._replace(candidates=tuple(parts)))
    return Windows(replace(question_answers, questions=tuple(questions)), np.array(pair_of, np.int64), read)


def best_windows(question_answers: QuestionAnswers) -> QuestionAnswers:
    """Long candidates cut to the window with the most words of the question: what training reads."""
    questions = []
    for question in question_answers.questions:
        cut = (windows_of(candidate, question, 1)[0] for candidate in question.candidates)
        shown = zip(question.candidates, cut, strict=True)
        candidates = tuple(one if window is None else one._replace(words=window.words) for one, window in shown)
        questions.append(question._replace(candidates=candidates))
    return replace(question_answers, questions=tuple(questions))


def windows_of(candidate: Candidate, question: Question, most: int = MAX_WINDOWS) -> Sequence[Window | None]:
    """The windows of a long candidate in the order of its text, at most `most`; None: it is read whole."""
    if len(candidate.words) <= LONGEST_WHOLE:
        return (None,)
    windows = [Window(span, sentence_words(candidate.text[slice(*span)])) for span in window_spans(candidate.text)]
    if len(windows) > most:
        asked = {word.lower() for word in question.words if is_word(word)} - STOP_WORDS
        shared = [-len(asked.intersection(map(str.lower, window.words))) for window in windows]
        windows = [windows[place] for place in sorted(np.argsort(shared, kind="stable")[:most].tolist())]
    return windows or (None,)


def window_spans(text: str) -> list[Span]:
    """Runs of sentences of at most `WINDOW` words, or of a single sentence; none inside another."""
    units = [unit for span in sentence_spans(text) for unit in _parts(text, span)]
    lengths = [len(text[slice(*unit)].split()) for unit in units]
    spans: list[Span] = []
    end = n_words = 0  # of the window that begins at the current unit
    for (begin, _), length in zip(units, lengths, strict=True):
        before = end
        while end < len(units) and (n_words == 0 or n_words + lengths[end] <= WINDOW):
            n_words += lengths[end]
            end += 1
        if end > before:
            spans.append((begin, units[end - 1][1]))
        n_words -= length
    return spans


def _parts(text: str, span: Span) -> list[Span]:
    """A sentence as it is, or in parts of at most half a window if it is longer than one."""
    words = [(found.start(), found.end()) for found in re.compile(r"\S+").finditer(text, *span)]
    if len(words) <= WINDOW:
        return [span]
    parts = np.array_split(words, math.ceil(len(words) / (WINDOW // 2)))
    return [(int(part[0, 0]), int(part[-1, 1])) for part in parts]
