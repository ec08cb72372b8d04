"""Questions by their question word, and MAP within each group.

The rule: the first word of the question that is a question word decides. Words are runs of letters, in lower case, so
that "What's", "whats" and "In what year" are all `what`; `who` takes in whom and whose; "how many" is `how`. A question
without one is `other` ("Name a film by ..."). The paper groups by the word a question *starts* with: `leading=True`,
which leaves "In what year" to `other`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from varitext.errors import InputError
from varitext.evaluation.ranking import RankingRecord

QUESTION_WORDS = ("how", "what", "who", "when", "where", "which", "why", "other")

_GROUP_OF = {word: word for word in QUESTION_WORDS[:-1]} | {"whom": "who", "whose": "who"}
# Written without an apostrophe, as people type into a search box.
_GROUP_OF |= {f"{word}s": word for word in ("how", "what", "who", "when", "where", "why")}
_LETTERS = re.compile(r"[^\W\d_]+")


class QuestionWordRanking(NamedTuple):
    """MAP and MRR of the questions of one word."""

    question_word: str
    map: float
    mrr: float
    n_questions: int


def question_word(question: str, leading: bool = False) -> str:
    """The group of a question: one of `QUESTION_WORDS`."""
    words = _LETTERS.findall(question.lower())
    return next((_GROUP_OF[word] for word in words[: 1 if leading else None] if word in _GROUP_OF), "other")


def question_words(questions: Iterable[str], leading: bool = False) -> np.ndarray:
    return np.array([question_word(question, leading) for question in questions])


def ranking_by_question_word(
    record: RankingRecord, questions: Mapping[Any, str], leading: bool = False
) -> tuple[QuestionWordRanking, ...]:
    """MAP and MRR within each group that has a question; `questions` maps ids to texts."""
    missing = [one for one in record.question_ids.tolist() if one not in questions]
    if missing:
        raise InputError(f"{len(missing)} ranked questions have no text, the first is {missing[0]!r}")
    words = question_words((questions[one] for one in record.question_ids.tolist()), leading)
    return tuple(_group(record, word, words == word) for word in QUESTION_WORDS if (words == word).any())


def _group(record: RankingRecord, word: str, chosen: np.ndarray) -> QuestionWordRanking:
    precision, reciprocal = record.average_precision[chosen], record.reciprocal_rank[chosen]
    return QuestionWordRanking(word, float(precision.mean()), float(reciprocal.mean()), int(chosen.sum()))
