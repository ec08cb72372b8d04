"""The service: models behind a JSON API, and a page that uses it. Needs the extra: pip install 'varitext[serve]'.

application.py  routes, errors and guards together
guards.py       what every request passes: host, token, size; limits and metrics
schemas.py      request and response bodies
documents.py    routes and jobs of document models; corpus.py has their training documents and the map
answers.py      routes of answer rankers
models.py       the served models, by name
queue.py        requests wait here for their model, and share its calls
static/         the page, written by hand: no build step, nothing loaded from elsewhere
"""

import asyncio
import contextlib
import ipaddress
import logging
import os
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from varitext.errors import InputError

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI


MIN_TOKEN_LENGTH = 16
FINISH_SECONDS = 3.5  # for answers in flight when asked to stop; those that are not ready then are told so
GRACE_SECONDS = 4  # to send them; with the rest the process ends within five
KEEP_ALIVE_SECONDS = 75  # longer than clients keep a connection: whoever closes first must be the one who asks


def run_service(
    folders: Sequence[Path], host: str, port: int, token: str | None, threads: int | None, data_dir: Path | None
) -> None:
    """Serve the models in the folders until asked to stop."""
    try:
        import uvicorn

        from varitext.serve.application import create_application
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "prometheus_client"):
            raise
        raise InputError(f"serving needs {error.name}: pip install 'varitext[serve]'") from None
    from varitext.serve.models import load_models

    token = _token_for(host, token)
    listening = _listen(host, port)  # before the models: a port that is taken should not cost a minute
    with listening:
        models = load_models(folders, threads)
        application = create_application(models, token, host=host, data_dir=data_dir)
        logging.getLogger("varitext.serve").addHandler(logging.StreamHandler(sys.stderr))
        config = uvicorn.Config(
            application,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            http="h11",
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        server = uvicorn.Server(config)
        _announce(models, listening, token)
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn hands on the signal that ended it; it was obeyed
            asyncio.run(_serve(server, application, listening))
    _leave()


async def _serve(server: "uvicorn.Server", application: "FastAPI", listening: socket.socket) -> None:
    """Serve until asked to stop; then answers in flight have a while to be finished."""
    stopping = asyncio.create_task(_refuse_the_rest(server, application))
    try:
        await server.serve([listening])
    finally:
        stopping.cancel()


async def _refuse_the_rest(server: "uvicorn.Server", application: "FastAPI") -> None:
    while not server.should_exit:
        await asyncio.sleep(0.1)
    await asyncio.sleep(FINISH_SECONDS)
    application.state.models.refuse_all()


def _leave() -> None:
    """End the process without waiting for threads that compute what nobody waits for; nothing is ever written in them.

    Python's own way would end them in the middle of torch's code, which aborts the process.
    """
    sys.stderr.flush()
    os._exit(0)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token_for(host: str, token: str | None) -> str | None:
    """The token that was given; a new one where others could reach the server and none was."""
    if token is None:
        return None if is_loopback(host) else secrets.token_urlsafe(24)
    if len(token) < MIN_TOKEN_LENGTH or not (token.isascii() and token.isprintable()) or " " in token:
        raise InputError(f"--token must have at least {MIN_TOKEN_LENGTH} letters, digits or signs, and no space")
    return token


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address, family=family, backlog=1024)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot listen on {host} port {port}: {reason}; --port can name another") from None
    # as asyncio does for sockets of its own: else every answer waits 40 ms until the client acknowledges its head
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _announce(models: Mapping[str, object], listening: socket.socket, token: str | None) -> None:
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    count = "1 model" if len(models) == 1 else f"{len(models)} models"
    print(f"{count} at http://{shown}:{port} (Ctrl-C stops)", file=sys.stderr, flush=True)
    if token is not None:
        print(f"token: {token}", file=sys.stderr, flush=True)
