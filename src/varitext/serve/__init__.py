"""The service: models behind a JSON API, and a page that uses it. Needs the extra: pip install 'varitext[serve]'.

application.py  routes, errors and guards together
connections.py  deadlines and limits of connections
guards.py       what every request passes: host, token, size; limits, metrics and the log
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
from collections.abc import Coroutine, Sequence, Sized
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varitext.errors import InputError

if TYPE_CHECKING:
    from varitext.serve.connections import Server
    from varitext.serve.guards import Limits
    from varitext.serve.models import ServedModels


MIN_TOKEN_LENGTH = 16
FINISH_SECONDS = 3.5  # for requests in progress when the server stops; the rest then get a 503
TELL_SECONDS = 0.3  # for that answer to be sent
GRACE_SECONDS = 4  # until their connections close; the process ends within five seconds


def run_service(
    folders: Sequence[Path],
    host: str,
    port: int,
    token: str | None,
    threads: int | None,
    data_dir: Path | None,
    trust: str | None = None,
    index: Path | None = None,
    public_metrics: bool = False,
    log_level: str | None = None,
    limits: "Limits | None" = None,
) -> None:
    """Serve the models in the folders until the process is told to stop; rankers search the index, if there is one."""
    try:
        import uvicorn

        from varitext.serve.application import create_application
        from varitext.serve.connections import ACCEPTED_TOGETHER, Server, connections_within
        from varitext.serve.guards import Limits
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "prometheus_client"):
            raise
        raise InputError(f"`varitext serve` needs {error.name}: pip install 'varitext[serve]'") from None
    from varitext.serve.models import load_models

    given, token, limits = token, _token_for(host, token), limits or Limits()
    listening = _listen(host, port)  # before the models are loaded, so that a taken port is reported at once
    with listening:
        application = create_application(None, token, limits, host, data_dir, index, public_metrics)
        models = application.state.models
        _log_to_standard_error(log_level or ("warning" if is_loopback(host) else "info"))
        config = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            http=connections_within(limits, application.state.metrics),
            backlog=ACCEPTED_TOGETHER,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=limits.idle_seconds,
        )
        server = Server(config, models.begin_stop)

        async def load() -> None:
            await models.load(partial(load_models, folders, threads, trust))
            _announce(models, listening, token if given is None else None)

        with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signal that stopped it again
            asyncio.run(_serve(server, models, listening, load()))
    _leave()


async def _serve(
    server: "Server", models: "ServedModels", listening: socket.socket, load: Coroutine[Any, Any, None]
) -> None:
    """Serve until told to stop, or until a model cannot be loaded."""

    async def load_or_stop() -> None:
        try:
            await load
        except Exception:
            server.should_exit = True
            raise

    loading, stopping = asyncio.create_task(load_or_stop()), asyncio.create_task(_refuse_the_rest(server, models))
    try:
        await server.serve([listening])
        if loading.done():
            loading.result()
    finally:
        stopping.cancel()


async def _refuse_the_rest(server: "Server", models: "ServedModels") -> None:
    """When the server stops, requests in progress have some seconds to finish."""
    while not server.should_exit:
        await asyncio.sleep(0.1)
    await asyncio.sleep(FINISH_SECONDS)
    models.refuse_all()
    await asyncio.sleep(TELL_SECONDS)
    server.abandon_all()


def _log_to_standard_error(level: str) -> None:
    from varitext.serve.guards import JSONLines

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONLines())
    for name in ("varitext.serve", "uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "varitext.serve" else logging.ERROR)


def _leave() -> None:
    """End the process without waiting for threads whose results nobody needs; they never write anything.

    A normal exit would end them in the middle of torch's code, which aborts the process.
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
    """The given token, or a new one if other machines can reach the server."""
    if token is None:
        return None if is_loopback(host) else secrets.token_urlsafe(24)
    if len(token) < MIN_TOKEN_LENGTH or not (token.isascii() and token.isprintable()) or " " in token:
        raise InputError(f"--token needs at least {MIN_TOKEN_LENGTH} ASCII characters without spaces")
    return token


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address, family=family, backlog=1024)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"Cannot listen on {host} port {port}: {reason}. Choose another port with --port.") from None
    # as asyncio does for its own sockets: otherwise every answer waits 40 ms for an acknowledgement
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _announce(models: Sized, listening: socket.socket, new_token: str | None) -> None:
    """A token that the user gave is not shown: terminals and logs are kept."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    count = "1 model" if len(models) == 1 else f"{len(models)} models"
    print(f"{count} at http://{shown}:{port} (press Ctrl-C to stop)", file=sys.stderr, flush=True)
    if new_token is not None:
        print(f"token: {new_token}", file=sys.stderr, flush=True)
