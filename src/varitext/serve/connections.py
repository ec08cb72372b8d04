"""Connections: how many may be open, and how long a client may take to send a request or to read its answer.

uvicorn waits without limit for headers, for a body that was refused before it arrived, and for clients that do not
read. Here every connection is in one of four phases, and all but `ANSWERING` have a deadline. If there is no room for a
new connection, the one that has waited longest is closed for it: clients that send nothing cannot keep others out.
"""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from http import HTTPStatus
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from varitext.serve.guards import REFUSAL, Limits, Metrics, Refusal, log_request, logger, response_to

RESERVED_FILES = 64  # that are not connections, beside those that are open already
BACKLOG = 1024  # connections that the system keeps until they are accepted
ACCEPTED_TOGETHER = 8  # four times as many may be open before the first makes room: fewer than RESERVED_FILES
RETRY_AFTER = 1  # seconds


class Phase(IntEnum):
    """In the order in which connections are closed to make room; those with a request to answer are not."""

    IDLE = 0  # between two requests; the deadline is uvicorn's
    ARRIVING = 1  # a request is on its way, or the connection is new
    SENDING = 2  # the client has not yet read what was written
    ANSWERING = 3  # the request is here; the queue of its model has a deadline


class Connection(H11Protocol):
    """One connection; `connections_within` sets the limits."""

    limits: Limits
    metrics: Metrics
    _timer: asyncio.TimerHandle | None = None
    _closed = False  # by this class; uvicorn hears of it a little later

    # uvicorn's events

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # `pause_writing` tells at once that the client does not read
        self.address = self.client[0] if self.client else ""
        self._phase = Phase.ANSWERING
        self._update()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._update()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._update()

    def send_400_response(self, msg: str) -> None:
        self._tell(Refusal(400, "not a valid HTTP request"))

    def shutdown(self) -> None:
        """A request that has not arrived yet is refused; those that are here are answered."""
        if self._in_body():
            self._refuse_body(Refusal(503, "the server is stopping", RETRY_AFTER))
        super().shutdown()

    # Deadlines

    def _current_phase(self) -> Phase:
        if self.flow.write_paused:
            return Phase.SENDING
        if self.conn.their_state is h11.IDLE:
            is_new = self.cycle is None or self.conn.trailing_data[0]
            return Phase.ARRIVING if is_new else Phase.IDLE
        return Phase.ARRIVING if self.conn.their_state is h11.SEND_BODY else Phase.ANSWERING

    def _update(self) -> None:
        """A new phase has a new deadline; within a phase, bytes that trickle in do not move it."""
        if (phase := self._current_phase()) is self._phase:
            return
        self._phase, self._since = phase, self.loop.time()
        self._stop_timer()
        allowed = {Phase.ARRIVING: self.limits.arrival_seconds, Phase.SENDING: self.limits.sending_seconds}
        if phase in allowed:
            self._timer = self.loop.call_later(allowed[phase], self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        if self._phase is Phase.SENDING:
            self.abandon("unread")
        elif self._in_body():
            self._refuse_body(self._late())
        elif self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._tell(self._late())
        else:  # nothing was sent, or the rest of a body after its answer
            self.abandon("late")

    def _late(self) -> Refusal:
        return Refusal(408, f"the request did not arrive within {self.limits.arrival_seconds:g} s")

    def _in_body(self) -> bool:
        """Whether the headers are here, and the body is not and has no answer yet."""
        return self.conn.their_state is h11.SEND_BODY and self.cycle is not None and not self.cycle.response_started

    def _refuse_body(self, refusal: Refusal) -> None:
        """The guard, which waits for the body, answers."""
        self.scope[REFUSAL] = refusal  # type: ignore[literal-required]
        self.cycle.message_event.set()

    def _tell(self, refusal: Refusal) -> None:
        """Answer what is not a request yet, and close."""
        headers, body = response_to(refusal)
        status = f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}".encode()
        fields = [name + b": " + value for name, value in (*headers, (b"connection", b"close"))]
        self.transport.write(b"\r\n".join([status, *fields, b"", body]))
        self.transport.close()
        seconds = self.loop.time() - self._since
        self.metrics.request("other", refusal.status, seconds)
        log_request("other", "other", refusal.status, seconds, len(body), self.address, None)

    def abandon(self, reason: str) -> None:
        self._closed = True
        self.metrics.closed(reason)
        logger.info("connection closed", extra={"fields": {"reason": reason, "client": self.address}})
        self.transport.abort()

    # Room

    def _make_room(self) -> None:
        """Close another connection if there are too many from this address, or in all."""
        others = [one for one in self.connections if isinstance(one, Connection) and not (one is self or one._closed)]
        own = [one for one in others if one.address == self.address]
        if len(own) >= self.limits.connections_per_address:
            rivals = own
        elif len(others) >= self.limits.connections:
            rivals = others
        else:
            return
        from_address = Counter(one.address for one in others)
        waiting = [one for one in rivals if one._phase is not Phase.ANSWERING]
        if waiting:  # at the busiest address, the one that has waited longest
            min(waiting, key=lambda one: (-from_address[one.address], one._phase, one._since)).abandon("crowded")
        else:
            self._tell(Refusal(503, "too many connections: try again shortly", RETRY_AFTER))


def connections_within(limits: Limits, metrics: Metrics) -> type[Connection]:
    """The protocol with these limits, and with no more connections than the process may have open files."""
    limits = limits.within_files(_open_file_limit() - _open_files() - RESERVED_FILES)
    return type("LimitedConnection", (Connection,), {"limits": limits, "metrics": metrics})


def _open_file_limit() -> int:
    try:
        import resource
    except ImportError:  # Windows, where sockets are not files
        return 2**31
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if soft == resource.RLIM_INFINITY else soft


def _open_files() -> int:
    """How many this process has open now; 0 where the system does not tell."""
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:
        return 0


class Server(uvicorn.Server):
    """uvicorn's server; `on_stop` is called at the moment of the signal that stops it."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]):
        super().__init__(config)
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)  # asyncio has set it to the number that it accepts together

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._on_stop()
        super().handle_exit(sig, frame)

    def abandon_all(self) -> None:
        """Close what is still open."""
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.abandon("stopping")
