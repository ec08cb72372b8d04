"""Clients that stall, against a real server: they are told or closed in time, and never keep others out."""

import contextlib
import json
import re
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from command_line import forked
from served import fitted_news, texts

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from varitext import serve  # noqa: E402
from varitext.cli import main  # noqa: E402
from varitext.serve.guards import TEXTS, Limits  # noqa: E402

PATIENCE = 30  # seconds: the machine may be busy with other tests
SHORT = Limits(arrival_seconds=1, sending_seconds=1, idle_seconds=1)
LONG = Limits(arrival_seconds=300, sending_seconds=300, idle_seconds=300)  # nothing ends by itself
HALF_A_HEADER = b"GET /health HTTP/1.1\r\nHost: 127.0"
HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
METRICS = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
HALF_A_BODY = (
    b"POST /api/models/news/transform HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b'Content-Length: 1000000\r\n\r\n{"texts": '
)
TOKEN = "a-token-of-the-tests"
LOG_ALL = ("--log-level", "info")


class Running:
    """A server in a process of its own; its log is a file, since nobody would empty a pipe."""

    def __init__(self, process: subprocess.Popen, log: Path):
        self.process, self._log = process, log
        while not (found := re.search(r"http://[\d.]+:(\d+) ", log.read_text())):
            assert process.poll() is None, log.read_text()
            time.sleep(0.02)
        self.place = ("127.0.0.1", int(found[1]))

    def connect(self, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
        connected = socket.create_connection(self.place, PATIENCE, (source, 0))
        connected.sendall(sent)
        return connected

    def log(self) -> list[dict]:
        """What it logged, once it has been stopped."""
        self.process.send_signal(signal.SIGTERM)
        code, said = self.process.wait(PATIENCE), self._log.read_text()
        assert code == 0 and "raceback" not in said, said
        return [json.loads(line) for line in said.splitlines()[1:]]


Start = Callable[..., Running]


@pytest.fixture(scope="module")
def news(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "news"
    fitted_news().save(folder)
    return folder


@pytest.fixture
def start(news, tmp_path) -> Iterator[Start]:
    with contextlib.ExitStack() as stack:

        def started(limits: Limits, *options: str, files: int | None = None) -> Running:
            def run() -> None:
                if files is not None:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
                serve.run_service = partial(serve.run_service, limits=limits)
                main()

            log = tmp_path / "log"
            with log.open("w") as stderr:
                typed = ("serve", news, "--port", 0, "--threads", 1, *options)
                process = forked(*typed, run=run, stdout=None, stderr=stderr)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return Running(process, log)

        yield started


def until_closed(connected: socket.socket) -> bytes:
    """All that comes; a connection that the server resets is closed too."""
    received = b""
    with connected, contextlib.suppress(ConnectionResetError):
        while more := connected.recv(2**16):
            received += more
    return received


def received(connected: socket.socket) -> bytes:
    """A whole answer."""
    answer = b""
    while not answer.endswith(b"}"):
        answer += connected.recv(2**16)
    return answer


def error_of(answer: bytes) -> str:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    return json.loads(body)["error"]


@pytest.mark.parametrize(
    "options, logged",
    [
        ((), []),
        (LOG_ALL, ["/health"]),
        (("--host", "0.0.0.0", "--token", TOKEN), ["/health"]),
        (("--host", "0.0.0.0", "--token", TOKEN, "--log-level", "warning"), []),
    ],
)
def test_requests_are_logged_if_other_machines_can_send_them(start, options, logged):
    server = start(LONG, *options)
    with server.connect(HEALTH) as connected:
        received(connected)
    assert [one["path"] for one in server.log()] == logged


# Deadlines


def test_a_request_must_arrive_in_time(start):
    server = start(SHORT, *LOG_ALL)
    silent, half, body = (server.connect(sent) for sent in (b"", HALF_A_HEADER, HALF_A_BODY))
    assert until_closed(silent) == b""
    for stalled in (half, body):
        answer = until_closed(stalled)
        assert answer.startswith(b"HTTP/1.1 408 ") and error_of(answer) == "the request did not arrive within 1 s"
    lines = server.log()
    assert [one["status"] for one in lines if one["event"] == "request"] == [408, 408]
    assert [one["reason"] for one in lines if one["event"] == "connection closed"] == ["late"]


@pytest.mark.parametrize("begun", [HALF_A_HEADER, HALF_A_BODY])
def test_bytes_that_trickle_in_do_not_move_the_deadline(start, begun):
    with start(SHORT).connect(begun) as connected:
        began, answer = time.monotonic(), b""
        connected.settimeout(0.1)
        while not answer:
            assert time.monotonic() - began < PATIENCE
            with contextlib.suppress(TimeoutError):
                connected.sendall(b"a")
                answer = connected.recv(2**16)
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_body_that_trickles_in_after_its_refusal_is_not_waited_for(start):
    """The token is missing: that is told before the body is here, and uvicorn would read on for ever."""
    server = start(SHORT, "--token", TOKEN, "--public-metrics")
    assert until_closed(server.connect(METRICS)).startswith(b"HTTP/1.1 200 ")
    with server.connect(HALF_A_BODY) as connected:
        began = time.monotonic()
        assert received(connected).startswith(b"HTTP/1.1 401 ")
        with pytest.raises(ConnectionError):
            while time.monotonic() - began < PATIENCE:
                connected.sendall(b"a")
                time.sleep(0.05)


def test_idle_connections_are_closed_and_the_next_request_has_its_own_deadline(start):
    server = start(SHORT)
    idle, next_one = server.connect(HEALTH), server.connect(HEALTH)
    assert received(next_one).startswith(b"HTTP/1.1 200 ")
    next_one.sendall(HALF_A_HEADER)
    assert until_closed(next_one).startswith(b"HTTP/1.1 408 ")
    assert until_closed(idle).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_does_not_read_is_given_up(start):
    """Its requests come one behind the other, so that the answers fill all buffers between the two."""
    server = start(SHORT, *LOG_ALL)
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.settimeout(PATIENCE)
    deaf.connect(server.place)
    page = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with deaf, pytest.raises(ConnectionError):
        while True:
            deaf.sendall(page * 100)
    assert any(line.get("reason") == "unread" for line in server.log())


def test_half_closed_connections_are_closed(start):
    server = start(LONG)
    for sent in (b"", HALF_A_HEADER, HALF_A_BODY):
        connected = server.connect(sent)
        connected.shutdown(socket.SHUT_WR)
        assert until_closed(connected) == b""


def test_what_is_not_http_is_refused(start):
    answer = until_closed(start(LONG).connect(b"\x16\x03\x01\x1b[31m\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 400 ") and error_of(answer) == "not a valid HTTP request"


def test_a_body_with_two_ends_is_refused_and_what_follows_it_is_not_read(start):
    head = HALF_A_BODY.partition(b"Content-Length")[0] + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = until_closed(start(LONG).connect(head + b"0\r\n\r\n" + HEALTH))
    assert answer.startswith(b"HTTP/1.1 400 ") and error_of(answer) == "not a valid HTTP request"


# Room


@pytest.mark.parametrize("sent", [b"", HALF_A_HEADER, HALF_A_BODY, HEALTH])
def test_clients_that_stall_do_not_keep_others_out(start, sent):
    """300 connections where 256 files may be open; another client, from the same address, is answered."""
    server = start(LONG, *LOG_ALL, files=256)
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(server.connect(sent))
        for _ in range(3):
            address = f"http://127.0.0.1:{server.place[1]}/api/models/news/transform"
            assert httpx.post(address, json={"texts": texts(2)}, timeout=PATIENCE).status_code == 200
    assert {line.get("reason") for line in server.log()} >= {"crowded"}


def test_a_busy_address_makes_room_itself(start):
    """Its own limit, and that of all, cost the address with the most connections the one that waited longest."""
    server = start(Limits(arrival_seconds=300, connections=4, connections_per_address=3))
    other = server.connect(source="127.0.0.2")
    ours = [server.connect() for _ in range(4)]
    assert until_closed(ours[0]) == b""
    third = server.connect(source="127.0.0.3")
    assert until_closed(ours[1]) == b""
    for one in (other, third, *ours[2:]):
        one.sendall(HEALTH)
        with one:
            assert received(one).startswith(b"HTTP/1.1 200 ")


def test_a_request_in_progress_is_never_closed_to_make_room(start):
    server = start(Limits(connections_per_address=1))
    body = json.dumps({"texts": [" ".join(texts(80))] * TEXTS, "samples": 100}).encode()
    head = HALF_A_BODY.partition(b"Content-Length")[0].replace(b"transform", b"perplexity")
    busy = server.connect(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    begun = b""
    while b'varitext_batch_size_count{model="news"} 1.0' not in begun:
        begun = until_closed(server.connect(METRICS, source="127.0.0.2"))
    refused = until_closed(server.connect())
    assert refused.startswith(b"HTTP/1.1 503 ") and "too many connections" in error_of(refused)
    assert b"retry-after: 1" in refused and received(busy).startswith(b"HTTP/1.1 200 ")
    busy.close()


def test_a_stop_does_not_wait_for_half_a_request(start):
    server = start(LONG, *LOG_ALL)
    header, body, idle = (server.connect(sent) for sent in (HALF_A_HEADER, HALF_A_BODY, HEALTH))
    assert received(idle).startswith(b"HTTP/1.1 200 ")
    assert sorted(line["status"] for line in server.log()) == [200, 503]
    assert until_closed(header) == until_closed(idle) == b""
    answer = until_closed(body)
    assert answer.startswith(b"HTTP/1.1 503 ") and "stopping" in error_of(answer) and b"retry-after: 1" in answer
