"""What every request passes before it is handled: host, token, size. Also limits, refusals, metrics and the log."""

import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from varitext.runtime.memory import peak_so_far

# Limits

# of one request: part of the schema
TEXT_CHARACTERS = 100_000
TEXTS = 64
QUESTION_CHARACTERS = 2_000
CANDIDATE_CHARACTERS = 5_000
CANDIDATES = 1_000
QUESTIONS = 64
CANDIDATES_IN_ALL = 2_000  # of all questions of a request
SAMPLES = 100
WORD_CHARACTERS = 200


@dataclass(frozen=True)
class Limits:
    """Limits of the server."""

    body_bytes: int = 2_000_000
    seconds: float = 30.0  # for one answer, including the wait
    queue: int = 256  # requests waiting for one model
    wait_seconds: float = 3.0  # expected before a model begins with a request: what waits at a stop is still answered
    arrival_seconds: float = 30.0  # for a request to arrive, from its first byte, or from the connection on
    sending_seconds: float = 60.0  # for a client to read what was written
    idle_seconds: int = 75  # between requests: longer than clients keep a connection, so that they close it first
    connections: int = 512
    connections_per_address: int = 256

    def within_files(self, files: int) -> "Limits":
        """No more connections than files that may be open."""
        return replace(self, connections=max(1, min(self.connections, files)))


class Refusal(Exception):
    """An answer other than 200, with a message of one line."""

    def __init__(self, status: int, message: str, retry_after: int | None = None):
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after  # seconds


# Metrics

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
BATCH_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Metrics:
    """Counts since the start, in the text format of Prometheus. Routes are named by their pattern."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()  # applications in one process count separately
        self._requests = Counter(
            "varitext_requests_total", "Requests answered, by route and status.", ["route", "status"], registry=own
        )
        self._seconds = Histogram(
            "varitext_request_seconds", "Time from request to answer.", ["route"], buckets=SECONDS, registry=own
        )
        self._batches = Histogram(
            "varitext_batch_size", "Requests per call of a model.", ["model"], buckets=BATCH_SIZES, registry=own
        )
        self.in_flight = Gauge("varitext_requests_in_flight", "Requests that are not answered yet.", registry=own)
        self._closed = Counter(
            "varitext_connections_closed_total", "Connections that the server gave up.", ["reason"], registry=own
        )
        self._queues = Gauge("varitext_queue_length", "Requests waiting for a model.", ["model"], registry=own)
        memory = Gauge("varitext_peak_memory_bytes", "Peak memory so far.", registry=own)
        memory.set_function(lambda: peak_so_far() * 2**20)

    def request(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def batch(self, model: str, size: int) -> None:
        self._batches.labels(model).observe(size)

    def closed(self, reason: str) -> None:
        """A connection: late (no request in time), unread (its answer), crowded, or open when the server stopped."""
        self._closed.labels(reason).inc()

    def queue(self, model: str, length: Callable[[], int]) -> None:
        """Read the length of the queue whenever the metrics are requested."""
        self._queues.labels(model).set_function(length)

    def text(self) -> str:
        lines = generate_latest(self._registry).decode().splitlines(keepends=True)
        return "".join(line for line in lines if "_created" not in line.split("{")[0])  # times of creation


# Log: JSON objects, one per line. Controls and all that is not ASCII are escaped, so nothing that a client sends can
# begin a line or control a terminal.

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,64}")

logger = logging.getLogger("varitext.serve")


class JSONLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_request(
    method: str, path: str, status: int, seconds: float, size: int, client: str, request_id: str | None
) -> None:
    """`path` is the pattern of a route: what clients typed, their token and their texts are never logged."""
    fields = {
        "method": method if method in METHODS else "other",
        "path": path,
        "status": status,
        "seconds": round(seconds, 4),
        "bytes": size,
        "client": client,
        "request_id": request_id,
    }
    logger.log(logging.WARNING if status >= 500 else logging.INFO, "request", extra={"fields": fields})


# Guard

HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+))(?::\d*)?", re.ASCII)
REFUSAL = "varitext.refusal"  # in the scope: why the rest of a body is not waited for
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
READ_ON = 8  # a body that is too large is read up to this many times the limit, so that the client gets the answer


class Guard:
    """The outermost layer. `open_paths` need no token: the page, which holds no data and asks for it, and health."""

    def __init__(
        self,
        app: Any,
        token: str | None,
        open_paths: frozenset[str],
        hosts: frozenset[str],
        limits: Limits,
        metrics: Metrics,
    ):
        self._app = app
        self._token = token
        self._open_paths = open_paths
        self._hosts = hosts
        self._limits = limits
        self._metrics = metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._app(scope, receive, send)

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        started, status, size = time.perf_counter(), None, 0
        request_id = _request_id(scope)
        self._metrics.in_flight.inc()

        async def send_with_headers(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS, (b"x-request-id", request_id.encode())]
            size += len(message.get("body", b""))
            await send(message)

        try:
            self._check(scope)
            body = await self._read(scope, receive)
            await self._app(scope, _replay(body, receive), send_with_headers)
        except Refusal as refusal:
            await _refuse(refusal, send_with_headers, close=REFUSAL in scope)
        except Exception:
            logger.exception("a request failed", extra={"fields": {"request_id": request_id}})
            if status is None:
                await _refuse(Refusal(500, "internal error: see the server's log"), send_with_headers)
        finally:
            self._metrics.in_flight.dec()
            route, seconds = self._route(scope), time.perf_counter() - started
            self._metrics.request(route, status or 499, seconds)
            client = (scope.get("client") or ("",))[0]
            log_request(scope["method"], route, status or 499, seconds, size, client, request_id)

    def _route(self, scope: Message) -> str:
        """The pattern of the route, or a fixed address: nothing that a client made up."""
        fixed: str = scope["path"] if scope["path"] in self._open_paths else "other"
        return getattr(scope.get("route"), "path", fixed)

    def _check(self, scope: Message) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if b"content-length" in headers and b"transfer-encoding" in headers:
            scope[REFUSAL] = Refusal(400, "not a valid HTTP request")  # a proxy may see another end of the body
            raise scope[REFUSAL]
        host = headers.get(b"host", "")
        if self._token is None:
            if _name_of(host) not in self._hosts:  # a page of another site could use a name that leads here
                raise Refusal(421, "wrong host name: use the address that the server printed")
        elif scope["path"] not in self._open_paths:
            _check_token(headers.get(b"authorization", ""), self._token)
        origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        if any(origin.partition("://")[2] != host for origin in origins):
            raise Refusal(403, "pages of other sites may not use this server")

    async def _read(self, scope: Message, receive: Receive) -> bytes:
        """The whole body, unless it is too large or late."""
        parts, size, limit = [], 0, self._limits.body_bytes
        more = True
        while more and size <= READ_ON * limit:
            message = await receive()
            if REFUSAL in scope:
                raise scope[REFUSAL]
            if message["type"] == "http.disconnect":
                raise Refusal(499, "the client has gone")  # not sent to anyone, but counted
            part, more = message.get("body", b""), message.get("more_body", False)
            size += len(part)
            if size <= limit:
                parts.append(part)
        if size > limit:
            raise Refusal(413, f"the request is larger than {limit:,} bytes: send fewer or shorter texts")
        return b"".join(parts)


def _request_id(scope: Message) -> str:
    """The client's, if it is short and plain; otherwise a new one."""
    sent = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"x-request-id"), "")
    return sent if REQUEST_ID.fullmatch(sent) else secrets.token_hex(8)


def _check_token(authorization: str, token: str) -> None:
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() != "bearer" or not secrets.compare_digest(given.strip().encode(), token.encode()):
        raise Refusal(401, "token missing or wrong: send the header Authorization: Bearer TOKEN")


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then whatever comes next: that the client has gone."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


def _name_of(host: str) -> str:
    """The host without its port; empty if it is not valid."""
    found = HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""


def response_to(refusal: Refusal) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Headers and body."""
    body = json.dumps({"error": refusal.message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.retry_after is not None:
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return headers, body


async def _refuse(refusal: Refusal, send: Send, close: bool = False) -> None:
    headers, body = response_to(refusal)
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
