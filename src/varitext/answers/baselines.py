"""Baselines that need no fit, on the questions that a ranker is evaluated on: word count, BM25 and untrained MiniLM.

BM25 takes its idf from the candidates of these questions, as a search engine over them would. MiniLM is left out if
its package is missing or if it would have to read more than `MAX_NEW_SENTENCES`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from varitext.answers.fitted import NO_FREQUENCIES, untrained
from varitext.answers.settings import AnswerSettings
from varitext.corpora.question_answers import QuestionAnswers, choose_questions
from varitext.errors import InputError
from varitext.evaluation.ranking import RankingRecord, counted_rows, ranking_record
from varitext.evaluation.significance import PairedTest, paired_randomisation_test
from varitext.models.answers.features.overlap import Overlap, WordTable, bm25
from varitext.text import Vocabulary

WORD_COUNT, BM25, MINILM = "word_count", "bm25", "minilm"
MAX_NEW_SENTENCES = 5_000  # for MiniLM to read: half a minute on one thread


@dataclass(frozen=True)
class Baseline:
    """A ranking that needs no fit, to compare the evaluated ranker with, on the questions that the protocol counts.

    Attributes
    ----------
    name : {"word_count", "bm25", "minilm"}
    ranking : RankingRecord or None
        MAP, MRR and precision at 1. None if it was left out.
    test : PairedTest or None
        Paired randomisation test of MAP; a positive difference is in favour of the ranker.
    left_out : str
        Why it was left out; empty if it was not.
    """

    name: str
    ranking: RankingRecord | None
    test: PairedTest | None
    left_out: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The record for JSON; the figures of a baseline that was left out are None."""
        measures = {one: getattr(self.ranking, one, None) for one in ("map", "mrr", "precision_at_1")}
        test = {one: getattr(self.test, one, None) for one in ("difference", "p_value")}
        return {"name": self.name} | measures | test | {"left_out": self.left_out}


def measured_baselines(
    question_answers: QuestionAnswers, question_ids: np.ndarray, ranker: RankingRecord, itself: str | None, seed: int
) -> tuple[Baseline, ...]:
    """Every baseline except the evaluated ranker `itself`; `question_ids`, [P], as `ranker` has them."""

    def measured(name: str, scores: np.ndarray) -> Baseline:
        ranking = ranking_record(scores, question_answers.labels, question_ids, ranker.protocol, seed)
        test = paired_randomisation_test(ranker.average_precision, ranking.average_precision, seed=seed)
        return Baseline(name, ranking, test)

    found = [measured(WORD_COUNT, word_counts(question_answers)), measured(BM25, corpus_bm25(question_answers))]
    if itself != MINILM:
        counted = counted_rows(question_answers.labels, question_ids, ranker.protocol)
        reason = _minilm_left_out(_chosen(question_answers, counted))
        found.append(
            Baseline(MINILM, None, None, reason) if reason else measured(MINILM, _minilm(question_answers, counted))
        )
    return tuple(one for one in found if one.name != itself)


def best_baseline(baselines: tuple[Baseline, ...]) -> Baseline | None:
    """The baseline with the highest MAP; None if none was measured."""
    measured = [one for one in baselines if one.ranking is not None]
    return max(measured, key=lambda one: one.ranking.map if one.ranking else 0.0, default=None)


def corpus_bm25(question_answers: QuestionAnswers) -> np.ndarray:
    """BM25 of every pair, [P], with the idf and the mean length of the candidates of this corpus."""
    table = WordTable.of(question_answers)
    overlap = Overlap.learn(question_answers, Vocabulary(table.words))
    mean_length = np.mean(np.concatenate([rows.lengths for rows in table.questions]))
    return bm25(table, overlap, max(1.0, float(mean_length)))


def word_counts(question_answers: QuestionAnswers) -> np.ndarray:
    """Distinct words that question and candidate share, without stop words, [P]."""
    return NO_FREQUENCIES.features(question_answers).only(["word_overlap"]).values[:, 0]


def _chosen(question_answers: QuestionAnswers, counted: np.ndarray) -> QuestionAnswers:
    """The questions of the pairs that are `counted`, [P]."""
    questions = np.isin(np.arange(question_answers.n_questions), question_answers.groups[counted])
    return choose_questions(question_answers, questions)


def _minilm_left_out(questions: QuestionAnswers) -> str:
    """Why MiniLM does not rank them; empty if it does."""
    from varitext.models.answers.pretrained import pretrained  # imports torch

    sentences = [words for one in questions.questions for words in (one.words, *(two.words for two in one.candidates))]
    try:
        new = pretrained().n_unread(sentences)
    except InputError as missing:
        return str(missing)
    return f"{new:,} sentences are more than the {MAX_NEW_SENTENCES:,} it reads here" if new > MAX_NEW_SENTENCES else ""


def _minilm(question_answers: QuestionAnswers, counted: np.ndarray) -> np.ndarray:
    """MiniLM's probability for the pairs of questions that count; zero for others, [P]."""
    settings, found = AnswerSettings(MINILM), np.zeros(question_answers.n_pairs)
    found[counted] = untrained(settings).predict(_chosen(question_answers, counted), settings).probability
    return found
