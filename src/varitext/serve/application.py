"""The application: routes, errors, guards and the page together."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from functools import partial
from importlib.resources import files
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
from varitext.serve import answers, schemas
from varitext.serve.documents import document_routes, topic_routes, topics_of
from varitext.serve.guards import LOOPBACK, Guard, Limits, Metrics
from varitext.serve.models import ServedIndex, ServedModel, ServedModels

ABOUT = """Text models behind an API: topics and document vectors with their uncertainty, and answer rankings with
probabilities. Requests and responses are JSON. Every error is an object with one line, `error`."""
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Problem, "description": description}
    for status, description in {
        400: "The body is not JSON.",
        401: "The token is missing or wrong.",
        403: "The request came from a page of another site.",
        404: "There is no such model, or it is of the other kind.",
        408: "The request did not arrive in time.",
        413: "The body is too large.",
        421: "The host name does not belong to this server.",
        422: "The request is invalid, too large, or has no word that the model knows.",
        500: "Internal error. See the server's log.",
        503: "The server is busy, starting or stopping. Retry-After has the seconds to wait.",
        504: "The answer took too long.",
    }.items()
}
GUARD_STATUSES = (400, 401, 403, 408, 413, 421, 500, 503)  # statuses that any address may answer with
PAGE = {"/": "page.html", "/api": "interface.html"}
SCRIPTS = ("asking", "page", "documents", "topics", "map", "answers", "interface")
PAGE |= {f"/static/{name}": name for name in ("page.css", "icon.svg", *(f"{script}.js" for script in SCRIPTS))}
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
TOPICS_IN_EXAMPLE = 3
INVALID = {  # what pydantic found wrong with a field
    "missing": "missing",
    "extra_forbidden": "unknown field",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length:,} characters",
    "string_unicode": "must be text",
    "list_type": "must be a list",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length:,} entries",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "must be a number"),
    "bool_type": "must be true or false",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "must be a JSON object"),
}


def create_application(
    loaded: Mapping[str, DocumentModel | AnswerRanker] | None,
    token: str | None = None,
    limits: Limits | None = None,
    host: str = "127.0.0.1",
    data_dir: Path | None = None,
    index: Path | None = None,
    public_metrics: bool = False,
) -> FastAPI:
    """The service for these models, or for those that `state.models.load` adds later.

    Without a token, it answers only to names of this machine's loopback.
    """
    limits, metrics = limits or Limits(), Metrics()
    models = ServedModels(limits, metrics, None if index is None else ServedIndex(index), data_dir)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if loaded is not None:
            models.serve(loaded)
        yield
        models.stop()

    application = FastAPI(
        title="varitext",
        version=varitext.__version__,
        description=ABOUT,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,  # FastAPI's pages load scripts from other servers
        redoc_url=None,
        redirect_slashes=False,
    )
    application.state.models, application.state.metrics = models, metrics
    application.include_router(service_routes(models, metrics))
    for side in (topic_routes, document_routes, answers.answer_routes):
        application.include_router(side(models, PROBLEMS))
    application.include_router(page_routes())
    application.add_exception_handler(RequestValidationError, _invalid)
    application.add_exception_handler(HTTPException, _http_problem)
    application.add_exception_handler(InputError, _input_problem)
    application.add_middleware(
        Guard,
        token=token,
        open_paths=frozenset({*PAGE, "/health", "/ready", *(["/metrics"] if public_metrics else [])}),
        hosts=LOOPBACK | {host},
        limits=limits,
        metrics=metrics,
    )
    return application


def service_routes(models: ServedModels, metrics: Metrics) -> APIRouter:
    routes = APIRouter(tags=["service"], responses={status: PROBLEMS[status] for status in GUARD_STATUSES})

    @routes.get("/api/models")
    async def list_models() -> schemas.Models:
        """The served models."""
        models.check_loaded()
        return schemas.Models(models=[served.info(models.index) for served in models], version=varitext.__version__)

    @routes.get("/api/models/{model}/example", responses={status: PROBLEMS[status] for status in (404, 422)})
    async def example(model: str) -> schemas.Example:
        """An example to try the model with."""
        return _example(models.named(model))

    @routes.get("/health")
    async def health() -> schemas.Health:
        """Whether the service is alive. It needs no token."""
        return schemas.Health(status="ok", models=len(models), version=varitext.__version__)

    @routes.get("/ready")
    async def ready() -> schemas.Health:
        """Whether requests will be answered: 503 until the models are loaded, and while the server stops."""
        models.check_ready()
        return schemas.Health(status="ok", models=len(models), version=varitext.__version__)

    @routes.get("/metrics", response_class=PlainTextResponse)
    async def prometheus_metrics() -> str:
        """Requests, times, batches and queues in the text format of Prometheus."""
        return metrics.text()

    return routes


def _example(served: ServedModel) -> schemas.Example:
    """A typical document of a coherent topic, or words of topics if the model was fitted on counts.

    Small topics come last: the most coherent of all may be encoded files or one author's signature.
    """
    if served.is_ranker:
        return answers.EXAMPLE
    found = topics_of(served.model)
    topics = sorted(found, key=lambda topic: (topic.share * len(found) < 1, -(topic.coherence or 0.0)))
    typical = (one.text for topic in topics for one in topic.typical if one.text)
    words = chain.from_iterable(topic.words for topic in topics[:TOPICS_IN_EXAMPLE])
    return schemas.Example(text=next(typical, None) or served.index.example or " ".join(words))


def page_routes() -> APIRouter:
    """The page: a few files that are read once, each at a fixed address. No path ever comes from a request."""
    routes = APIRouter(include_in_schema=False)
    folder = files("varitext.serve") / "static"
    for address, name in PAGE.items():
        content, kind = folder.joinpath(name).read_bytes(), MEDIA_TYPES[Path(name).suffix]
        routes.add_route(address, partial(_file, content, kind))
    return routes


async def _file(content: bytes, kind: str, _: Request) -> Response:
    return Response(content, media_type=kind)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    """The first error in one line; what was sent is not sent back."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _problem(400, "the body is not JSON")
    where = ".".join(map(str, first["loc"][1:])) or "the body"
    said = INVALID.get(first["type"], "is not valid").format_map(first.get("ctx", {}))
    return _problem(422, f"{where}: {said}")


async def _http_problem(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    messages = {
        400: "the body is not JSON",
        404: "nothing at this address: /api lists the routes",
        405: "wrong method for this address",
    }
    return _problem(error.status_code, messages.get(error.status_code, str(error.detail)), error.headers)


async def _input_problem(_: Request, error: Exception) -> JSONResponse:
    return _problem(422, " ".join(str(error).split()))


def _problem(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)
