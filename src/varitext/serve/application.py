"""The application: routes, errors and guards together."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.resources import files as package_files
from itertools import chain
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.exceptions import HTTPException

import varitext
from varitext.answers.ranker import AnswerRanker
from varitext.documents.model import DocumentModel
from varitext.errors import InputError
from varitext.serve import schemas
from varitext.serve.answers import answer_routes
from varitext.serve.documents import dimensions_by_number, document_routes, topic_routes, topics_of
from varitext.serve.guards import LOOPBACK, Guard, Limits, Metrics
from varitext.serve.models import ServedModel, ServedModels
from varitext.serve.queue import serving
from varitext.serve.schemas import Problem

ABOUT = """Models of text behind an API: topics and vectors with their uncertainty, and rankings with
probabilities. Requests and answers are JSON; every error is an object with one line, `error`."""
PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The body is not JSON."},
    401: {"model": Problem, "description": "The token is missing or wrong."},
    403: {"model": Problem, "description": "The request came from a page of another site."},
    404: {"model": Problem, "description": "There is no such model, or it is of the other kind."},
    408: {"model": Problem, "description": "The request did not arrive in time."},
    413: {"model": Problem, "description": "The body is too large."},
    421: {"model": Problem, "description": "The host name is not one of this server."},
    422: {"model": Problem, "description": "The request is invalid, too large, or has no word that the model knows."},
    500: {"model": Problem, "description": "Something went wrong; the server's log says what."},
    503: {"model": Problem, "description": "The server is too busy or stopping; Retry-After says when to try again."},
    504: {"model": Problem, "description": "The answer took too long."},
}


def create_application(
    loaded: Mapping[str, DocumentModel | AnswerRanker],
    token: str | None = None,
    limits: Limits | None = None,
    host: str = "127.0.0.1",
    data_dir: Path | None = None,
) -> FastAPI:
    """The service for these models. Without a token only names of this machine's loopback are answered to."""
    limits, metrics = limits or Limits(), Metrics()
    models = ServedModels(dict(loaded), limits, metrics)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with serving([served.queue for served in models]):
            for served in models:
                served.index.start(data_dir)
            yield
            for served in models:
                served.index.stop()

    application = FastAPI(
        title="varitext",
        version=varitext.__version__,
        description=ABOUT,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,  # FastAPI's own pages load their scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    application.state.models = models
    application.include_router(service_routes(models, metrics, PROBLEMS))
    application.include_router(topic_routes(models, PROBLEMS))
    application.include_router(document_routes(models, PROBLEMS))
    application.include_router(answer_routes(models, PROBLEMS))
    application.include_router(page_routes())
    application.add_exception_handler(RequestValidationError, _invalid)
    application.add_exception_handler(HTTPException, _http_problem)
    application.add_exception_handler(InputError, _input_problem)
    application.add_middleware(
        Guard, token=token, open_paths=OPEN_PATHS, hosts=LOOPBACK | {host}, limits=limits, metrics=metrics
    )
    return application


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    """The first thing wrong, in one line; what was sent is not sent back."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _problem(400, "the body is not JSON")
    where = ".".join(map(str, first["loc"][1:])) or "the body"
    return _problem(422, f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}")


async def _http_problem(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    said = {404: "there is nothing at this address; /api says what there is", 405: "this address takes another method"}
    return _problem(error.status_code, said.get(error.status_code, str(error.detail)), error.headers)


async def _input_problem(_: Request, error: Exception) -> JSONResponse:
    return _problem(422, " ".join(str(error).split()))


def _problem(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)


# Routes about the service

TOPICS_IN_EXAMPLE = 3
GUARD_STATUSES = (400, 401, 403, 408, 413, 421, 500)  # statuses that any address may answer with
EXAMPLE_QUESTION = "Who discovered penicillin ?"
EXAMPLE_CANDIDATES = [
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
    async def list_models() -> schemas.Models:
        """The models that are served."""
        return schemas.Models(models=[served.info() for served in models], version=varitext.__version__)

    @routes.get("/api/models/{model}/example", responses=of_models)
    async def example(model: str) -> schemas.Example:
        """An example to try the model with."""
        return _example(models.named(model))

    @routes.get("/health", responses=of_guards)
    async def health() -> schemas.Health:
        """Whether the service is up."""
        return schemas.Health(status="ok", models=len(models), version=varitext.__version__)

    @routes.get("/metrics", response_class=PlainTextResponse, responses=of_guards)
    async def prometheus_metrics() -> str:
        """Requests, times, batches and queues, in Prometheus' text form."""
        return metrics.text()

    return routes


def _example(served: ServedModel) -> schemas.Example:
    """A document that is typical of a coherent topic, if the model was fitted on texts; else words of topics."""
    if served.is_ranker:
        return schemas.Example(question=EXAMPLE_QUESTION, candidates=EXAMPLE_CANDIDATES)
    topics = sorted(topics_of(served.model), key=lambda topic: -(topic.coherence or 0.0))
    kept = (one.text for topic in topics for one in topic.typical if one.text)
    if text := next(kept, None) or served.index.example:
        return schemas.Example(text=text)
    words = [one.words for one in topics or dimensions_by_number(served.model).values()]
    return schemas.Example(text=" ".join(chain.from_iterable(words[:TOPICS_IN_EXAMPLE])))


# The page

FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/api": ("interface.html", "text/html; charset=utf-8"),
    "/static/page.css": ("page.css", "text/css; charset=utf-8"),
    "/static/asking.js": ("asking.js", "text/javascript; charset=utf-8"),
    "/static/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/static/documents.js": ("documents.js", "text/javascript; charset=utf-8"),
    "/static/topics.js": ("topics.js", "text/javascript; charset=utf-8"),
    "/static/map.js": ("map.js", "text/javascript; charset=utf-8"),
    "/static/answers.js": ("answers.js", "text/javascript; charset=utf-8"),
    "/static/interface.js": ("interface.js", "text/javascript; charset=utf-8"),
    "/static/icon.svg": ("icon.svg", "image/svg+xml"),
}
OPEN_PATHS = frozenset(FILES)


def page_routes() -> APIRouter:
    routes = APIRouter(include_in_schema=False)
    folder = package_files("varitext.serve") / "static"
    for address, (name, kind) in FILES.items():
        routes.add_api_route(address, _answering(folder.joinpath(name).read_bytes(), kind))
    return routes


def _answering(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def file() -> Response:
        return Response(content, media_type=kind)

    return file
