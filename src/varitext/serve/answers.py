"""Routes of answer rankers."""

from functools import partial
from typing import Any

from fastapi import APIRouter

from varitext.answers.ranker import AnswerRanker
from varitext.serve import schemas
from varitext.serve.models import ServedModels
from varitext.serve.queue import SingleJob


def answer_routes(models: ServedModels, problems: dict[int | str, dict[str, Any]]) -> APIRouter:
    routes = APIRouter(prefix="/api/models/{model}", tags=["answers"], responses=problems)

    @routes.post("/rank", response_model=schemas.RankingResponse)
    async def rank(model: str, asked: schemas.RankRequest) -> Any:
        """The candidates, best first, with probabilities, rank intervals and attention."""
        served = models.of_answers(model)
        return await served.queue.ask(SingleJob(partial(_rank, served.model, asked)))

    return routes


def _rank(ranker: AnswerRanker, asked: schemas.RankRequest) -> dict[str, Any]:
    positions = range(len(asked.candidates)) if asked.ordered else None
    return ranker.rank(asked.question, asked.candidates, asked.samples, positions).as_dict()
