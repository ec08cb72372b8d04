"""Routes of answer rankers."""

from typing import Any

from fastapi import APIRouter

from varitext.answers.ranker import AnswerRanker
from varitext.answers.ranking import Ranking
from varitext.errors import InputError
from varitext.serve import schemas
from varitext.serve.guards import CANDIDATES_IN_ALL
from varitext.serve.models import ServedIndex, ServedModels

EXAMPLE = schemas.Example(
    question="Who discovered penicillin ?",
    candidates=[
        "Penicillin is taken by mouth or given as an injection .",
        "Penicillin was discovered in 1928 by the Scottish scientist Alexander Fleming .",
        "It was the first of a group of antibiotics that are still widely used today .",
        "The first patient was treated in 1941 in Oxford , England .",
        "Fleming shared the Nobel Prize in Medicine with Howard Florey and Ernst Chain .",
    ],
)


def answer_routes(models: ServedModels, problems: dict[int | str, dict[str, Any]]) -> APIRouter:
    routes = APIRouter(prefix="/api/models/{model}", tags=["answers"], responses=problems)

    @routes.post("/rank", response_model=schemas.RankingResponse | schemas.Rankings)
    async def rank(model: str, asked: schemas.RankRequest) -> Any:
        """The candidates of a question, best first, with probabilities, rank intervals and attention.

        For `questions`, an object with their `rankings`, in their order. Without candidates, those that BM25 finds in
        the index are ranked, if the server has one.
        """
        check(asked)
        return await models.of_answers(model).run(ranked, asked, models.index)

    return routes


def check(asked: schemas.RankRequest) -> None:
    """Check what concerns several fields."""
    if (asked.question is None) == (asked.questions is None):
        raise InputError("question: send either question, with candidates or without, or questions")
    if asked.questions is not None and asked.candidates is not None:
        raise InputError("candidates: with questions, each has its own")
    total = sum(len(one.candidates or ()) for one in asked.questions or ())
    if total > CANDIDATES_IN_ALL:
        raise InputError(f"questions: at most {CANDIDATES_IN_ALL:,} candidates in all, not {total:,}")


def ranked(ranker: AnswerRanker, asked: schemas.RankRequest, index: ServedIndex | None) -> dict[str, Any]:
    """One ranking, or those of many questions."""
    if asked.questions is None:
        return ranking(ranker, asked, str(asked.question), asked.candidates, index)
    found = []
    for number, one in enumerate(asked.questions):
        try:
            found.append(ranking(ranker, asked, one.question, one.candidates, index))
        except InputError as error:
            raise InputError(f"questions.{number}: {error}") from None
    return {"rankings": found}


def ranking(
    ranker: AnswerRanker,
    asked: schemas.RankRequest,
    question: str,
    candidates: list[str] | None,
    index: ServedIndex | None,
) -> dict[str, Any]:
    if candidates is not None:
        positions = range(len(candidates)) if asked.ordered else None
        found = ranker.rank(question, candidates, asked.samples, positions, asked.abstain)
    elif index is None:
        raise InputError("candidates: missing, and the server has no index: varitext serve --index DIR")
    else:
        found = ranker.search(question, index.current(), samples=asked.samples, abstain=asked.abstain)
    return _cut(found, asked.top)


def _cut(ranking: Ranking, top: int | None) -> dict[str, Any]:
    record = ranking.as_dict()
    return record | {"candidates": record["candidates"][:top]}
