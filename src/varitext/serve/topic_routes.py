"""Routes for topics, and for the latent dimensions that lie beneath them."""

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from varitext.serve import bodies
from varitext.serve.batch_queue import SingleJob
from varitext.serve.document_jobs import all_dimensions, check_is_read, document_table, topic_table
from varitext.serve.served_models import ServedModels


def topic_routes(models: ServedModels, problems: dict[int | str, dict[str, Any]]) -> APIRouter:
    routes = APIRouter(prefix="/api/models/{model}", tags=["topics"], responses=problems)

    @routes.get("/topics", response_model=bodies.Topics)
    async def topics(model: str, words: Annotated[int, Query(ge=1, le=50)] = 10) -> Any:
        """The topics, each with its name, size, words and typical documents."""
        served = models.of_documents(model)
        return await served.queue.ask(SingleJob(partial(topic_table, served.model, words)))

    @routes.post("/assign", response_model=bodies.DocumentsAssigned)
    async def assign(model: str, asked: bodies.AssignRequest) -> Any:
        """What each text is about: its topic, how probable that is, and how surprising the text is."""
        served = models.of_documents(model)
        return await served.queue.ask(SingleJob(partial(document_table, served.model, asked.texts)))

    @routes.get("/topic-shares", response_model=bodies.TopicShares)
    async def topic_shares(model: str, by: Literal["label", "date"] = "label") -> Any:
        """Topics by label or over time, with intervals, in the documents that the model was fitted on."""
        index = models.of_documents(model).index
        check_is_read(index, "there are no labels and dates to look at")
        return index.shares(by)

    @routes.get("/latent-dimensions", response_model=bodies.Dimensions)
    async def latent_dimensions(model: str, words: Annotated[int, Query(ge=1, le=50)] = 10) -> Any:
        """The latent dimensions as ranked words, with the words at both ends."""
        served = models.of_documents(model)
        return await served.queue.ask(SingleJob(partial(all_dimensions, served.model, words)))

    return routes
