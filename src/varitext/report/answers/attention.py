"""Where a model looks: the words of an answer on a ground that darkens with attention, a bar for how unsure that is."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from varitext.answers.ranking import RankedCandidate
from varitext.corpora.question_answers import Question
from varitext.errors import InputError
from varitext.evaluation.attention import strength
from varitext.evaluation.columns import merge_ties
from varitext.report.answers.evaluated import EvaluatedAnswers

QUESTIONS = 6
FIRST_ANSWERS = 3
RULE = (
    f"{QUESTIONS} questions, evenly spaced from the one whose first answer is most probable to the one whose is least; "
    f"the first {FIRST_ANSWERS} answers of each, and the first right one if it is not among them"
)


class WordHeat(NamedTuple):
    word: str
    mean: float  # attention weight, over samples of h
    std: float
    heat: float  # how far the mean is above equal weights: 0 where it is not, 1 at eight times as much
    spread: float  # the standard deviation as a share of the mean, at most 1


class AnswerHeat(NamedTuple):
    candidate: RankedCandidate
    right: bool
    with_spread: bool = True  # over samples of h: only where h carries something

    @property
    def about(self) -> str:
        one, (low, high) = self.candidate, self.candidate.rank_interval
        held = f"{low}" if low == high else f"{low} to {high}"
        ranks = f"rank {one.rank} ({held} with {one.rank_interval_probability:.0%})"
        return (
            f"{'right' if self.right else 'wrong'} · {ranks} · "
            f"probability {one.probability:.2f} · of being best {one.probability_best:.2f}"
        )

    @property
    def words(self) -> list[WordHeat]:
        mean, std = self.candidate.attention_mean or (), self.candidate.attention_std or ()
        return word_heats(self.candidate.words, mean, std if self.with_spread else (0.0,) * len(std))


class QuestionHeat(NamedTuple):
    question: str
    answers: tuple[AnswerHeat, ...]


def attention_heat(evaluated: EvaluatedAnswers, number: int = QUESTIONS) -> list[QuestionHeat]:
    """Questions that count, chosen by `RULE`; none for a model without attention."""
    surest_first = np.argsort(-merge_ties(evaluated.top.confidence), kind="stable")
    places = np.unique(np.linspace(0, len(surest_first) - 1, min(number, len(surest_first))).round().astype(int))
    ids = evaluated.top.question_ids[surest_first[places]].tolist()
    return list(_heats(evaluated, [evaluated.question_by_id[one] for one in ids]))


def word_heats(words: Sequence[str], mean: Sequence[float], std: Sequence[float]) -> list[WordHeat]:
    return [
        WordHeat(word, weight, spread, heat, min(1.0, spread / max(weight, 1e-9)))
        for word, weight, spread, heat in zip(words, mean, std, strength(mean), strict=True)
    ]


def _heats(evaluated: EvaluatedAnswers, questions: Sequence[Question]) -> Iterator[QuestionHeat]:
    for question in questions:
        texts = [one.text for one in question.candidates]
        positions = [one.position for one in question.candidates] if evaluated.ranker.reads_positions else None
        try:
            ranking = evaluated.ranker.rank(question.text, texts, positions=positions)
        except InputError:  # no word that the model knows: there is nothing to look at
            continue
        said = evaluated.ranker.fitted_.latent_carries or not evaluated.has_latent
        answers = [AnswerHeat(one, bool(question.candidates[one.place].label), said) for one in ranking.candidates]
        attended = [answer for answer in _first_ones(answers) if answer.candidate.attention_mean]
        if attended:
            yield QuestionHeat(question.text, tuple(attended))


def _first_ones(answers: list[AnswerHeat]) -> list[AnswerHeat]:
    first, others = answers[:FIRST_ANSWERS], answers[FIRST_ANSWERS:]
    if not any(answer.right for answer in first):
        first += [answer for answer in others if answer.right][:1]
    return first
