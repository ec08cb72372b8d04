"""Many questions ranked together: read in batches, each answered as if it were alone."""

from collections.abc import Iterator

import numpy as np

from varitext.answers.prediction import Prediction
from varitext.answers.ranking import Ranking, ranked, ranking_of
from varitext.answers.ranking_posterior import RankingPosterior
from varitext.corpora.question_answers import CanonicalOrder, QuestionAnswers
from varitext.evaluation.posterior_ranks import RankIntervals


def rankings_of(
    arranged: CanonicalOrder,
    prediction: Prediction,
    posterior: RankingPosterior,
    known: np.ndarray,
    abstain: float | None,
) -> list[Ranking]:
    """One for each question, in the order in which they were given; `known` and the rest are of arranged pairs."""
    found: list[tuple[int, Ranking]] = []
    for number, rows in enumerate(_rows(arranged.question_answers)):
        alone = _of_one(arranged, number, rows)
        of_one = _prediction_of(prediction, rows)
        of_question = _posterior_of(posterior, number, rows)
        candidates = ranked(alone, of_one, of_question, known[rows])
        text = alone.question_answers.questions[0].text
        ranking = ranking_of(text, candidates, of_question, len(prediction.sampled), abstain)
        found.append((int(arranged.place[rows].min()), ranking))
    found.sort(key=lambda one: one[0])
    return [ranking for _, ranking in found]


def _rows(question_answers: QuestionAnswers) -> Iterator[slice]:
    end = 0
    for question in question_answers.questions:
        begin, end = end, end + len(question.candidates)
        yield slice(begin, end)


def _of_one(arranged: CanonicalOrder, number: int, rows: slice) -> CanonicalOrder:
    """The question by itself; its candidates' places count from its own first one."""
    given = arranged.question_answers
    place = arranged.place[rows]
    one = QuestionAnswers(given.name, given.part, given.files, (given.questions[number],))
    return CanonicalOrder(one, place - place.min())


def _prediction_of(prediction: Prediction, rows: slice) -> Prediction:
    attention = prediction.attention
    return Prediction(
        prediction.probability[rows], prediction.sampled[:, rows], None if attention is None else attention[rows]
    )


def _posterior_of(posterior: RankingPosterior, number: int, rows: slice) -> RankingPosterior:
    none = None if posterior.none is None else posterior.none[number : number + 1]
    intervals = RankIntervals(*(values[rows] for values in posterior.intervals))
    question_of = np.zeros(rows.stop - rows.start, np.int64)
    return RankingPosterior(posterior.right[rows], posterior.best[rows], none, intervals, question_of)
