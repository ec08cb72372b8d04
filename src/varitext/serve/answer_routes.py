"""Routes for rankers of answers."""

from functools import partial
from typing import Any

from fastapi import APIRouter

from varitext.answers.ranker import AnswerRanker
from varitext.serve import bodies
from varitext.serve.batch_queue import SingleJob
from varitext.serve.served_models import ServedModels


def answer_routes(models: ServedModels, problems: dict[int | str, dict[str, Any]]) -> APIRouter:
    routes = APIRouter(prefix="/api/models/{model}", tags=["answers"], responses=problems)

    @routes.post("/rank", response_model=bodies.RankingResponse)
    async def rank(model: str, asked: bodies.RankRequest) -> Any:
        """The candidates, best first, with probabilities, rank intervals and attention."""
        served = models.of_answers(model)
        return await served.queue.ask(SingleJob(partial(_rank, served.model, asked)))

    return routes


def _rank(ranker: AnswerRanker, asked: bodies.RankRequest) -> dict[str, Any]:
    positions = range(len(asked.candidates)) if asked.ordered else None
    return ranker.rank(asked.question, asked.candidates, asked.samples, positions).as_dict()
