"""The application: routes, errors and guards put together."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

import varitext
from varitext.answers.ranker import AnswerRanker
from varitext.documents.model import DocumentModel
from varitext.errors import InputError
from varitext.serve.answer_routes import answer_routes
from varitext.serve.batch_queue import serving
from varitext.serve.bodies import Problem
from varitext.serve.document_routes import document_routes
from varitext.serve.guards import LOOPBACK, Guard
from varitext.serve.limits import Limits
from varitext.serve.metrics import Metrics
from varitext.serve.page_routes import OPEN_PATHS, page_routes
from varitext.serve.served_models import ServedModels
from varitext.serve.service_routes import service_routes
from varitext.serve.topic_routes import topic_routes

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
