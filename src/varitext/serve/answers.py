"""Routes of answer rankers."""

from typing import Any

from fastapi import APIRouter

from varitext.answers.ranker import AnswerRanker
from varitext.serve import schemas
from varitext.serve.models import ServedModels

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

    @routes.post("/rank", response_model=schemas.RankingResponse)
    async def rank(model: str, asked: schemas.RankRequest) -> Any:
        """The candidates, best first, with probabilities, rank intervals and attention."""
        return await models.of_answers(model).run(ranking, asked)

    return routes


def ranking(ranker: AnswerRanker, asked: schemas.RankRequest) -> dict[str, Any]:
    positions = range(len(asked.candidates)) if asked.ordered else None
    return ranker.rank(asked.question, asked.candidates, asked.samples, positions).as_dict()
