"""Routes about the service itself: which models there are, whether it is well, what it did."""

from itertools import chain
from typing import Any

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

import varitext
from varitext.serve import bodies
from varitext.serve.document_jobs import dimensions_by_number, topics_of
from varitext.serve.metrics import Metrics
from varitext.serve.served_models import ServedModel, ServedModels

TOPICS_IN_EXAMPLE = 3
GUARD_STATUSES = (400, 401, 403, 408, 413, 421, 500)  # statuses that any address may answer with
QUESTION = "Who discovered penicillin ?"
CANDIDATES = [
    "Penicillin is taken by mouth or given as an injection .",
    "Penicillin was discovered in 1928 by the Scottish scientist Alexander Fleming .",
    "It was the first of a group of antibiotics that are still widely used today .",
    "The first patient was treated in 1941 in Oxford , England .",
    "Fleming shared the Nobel Prize in Medicine with Howard Florey and Ernst Chain .",
]


def service_routes(models: ServedModels, metrics: Metrics, problems: dict[int | str, dict[str, Any]]) -> APIRouter:
    routes = APIRouter(tags=["service"])
    of_guards: dict[int | str, dict[str, Any]] = {status: problems[status] for status in GUARD_STATUSES}
    of_models: dict[int | str, dict[str, Any]] = {status: problems[status] for status in (*GUARD_STATUSES, 404, 422)}

    @routes.get("/api/models", responses=of_guards)
    async def list_models() -> bodies.Models:
        """The models that are served."""
        return bodies.Models(models=[served.info() for served in models], version=varitext.__version__)

    @routes.get("/api/models/{model}/example", responses=of_models)
    async def example(model: str) -> bodies.Example:
        """An example to try the model with."""
        return _example(models.named(model))

    @routes.get("/health", responses=of_guards)
    async def health() -> bodies.Health:
        """Whether the service is up."""
        return bodies.Health(status="ok", models=len(models), version=varitext.__version__)

    @routes.get("/metrics", response_class=PlainTextResponse, responses=of_guards)
    async def prometheus_metrics() -> str:
        """Requests, times, batches and queues, in Prometheus' text form."""
        return metrics.text()

    return routes


def _example(served: ServedModel) -> bodies.Example:
    """A document that is typical of a coherent topic, if the model was fitted on texts; else words of topics."""
    if served.is_ranker:
        return bodies.Example(question=QUESTION, candidates=CANDIDATES)
    topics = sorted(topics_of(served.model), key=lambda topic: -(topic.coherence or 0.0))
    kept = (one.text for topic in topics for one in topic.typical if one.text)
    if text := next(kept, None) or served.index.example:
        return bodies.Example(text=text)
    words = [one.words for one in topics or dimensions_by_number(served.model).values()]
    return bodies.Example(text=" ".join(chain.from_iterable(words[:TOPICS_IN_EXAMPLE])))
