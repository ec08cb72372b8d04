"""The real server: many clients at once, a stop with answers in flight, a stop while it starts, and a kill."""

import asyncio
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import contents, forked
from served import fitted_news, started, texts

from varitext.cli import main
from varitext.serve.guards import TEXTS

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from lab.speed import serve_load as load  # noqa: E402

ENDED_WITHIN = 10  # seconds: five are promised, and a machine that runs other tests too has its own


@pytest.fixture(scope="module")
def news(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "news"
    fitted_news().save(folder)
    return folder


@pytest.fixture
def server(news) -> Iterator[tuple[subprocess.Popen, str]]:
    server, address = started(news)
    yield server, address
    server.kill()
    server.wait()
    server.stderr.close()


def test_many_clients_and_a_stop_in_the_middle(server):
    process, address = server
    call = load.Call("/api/models/news/transform", {"texts": texts(20)})
    asyncio.run(load.load(address, [call], 40, 1, process.pid))  # what is made once is made before memory is looked at
    before = load.resident_megabytes(process.pid)
    seen, memory = asyncio.run(load.load(address, [call], 40, 3, process.pid))
    outcomes = Counter(one.outcome for one in seen)
    assert outcomes["200"] > 40 and outcomes.keys() <= {"200", "503"}, outcomes
    assert max(memory) - before < 20  # megabytes
    call = load.Call("/api/models/news/transform", {"texts": texts(TEXTS // 4)})
    stop = asyncio.run(load.stop_under_load(process, address, call, 40))
    assert stop["outcomes"].keys() <= {"200", "503"} and stop["outcomes"]["200"] and stop["in_flight"], stop
    assert stop["exit_code"] == 0 and stop["seconds_to_exit"] < ENDED_WITHIN, stop
    assert process.stderr.read() == ""


def test_everybody_who_waits_at_a_stop_is_answered_or_told(server):
    process, address = server
    call = load.Call("/api/models/news/perplexity", {"texts": [" ".join(texts(80))] * TEXTS, "samples": 100})
    stop = asyncio.run(load.stop_under_load(process, address, call, 100))
    assert stop["outcomes"].keys() <= {"200", "503"} and sum(stop["outcomes"].values()) == 100, stop
    assert stop["exit_code"] == 0 and stop["seconds_to_exit"] < ENDED_WITHIN, stop


def test_a_killed_server_loses_nothing(news, server):
    process, address = server
    before, asked = contents(news), {"texts": texts(5)}
    answer = httpx.post(f"{address}/api/models/news/transform", json=asked, timeout=30).json()
    with ThreadPoolExecutor(8) as pool:
        slow = {"texts": [" ".join(texts(40))] * TEXTS, "samples": 100}
        lost = [
            pool.submit(httpx.post, f"{address}/api/models/news/perplexity", json=slow, timeout=60) for _ in range(8)
        ]
        while "requests_in_flight 1\n" in httpx.get(f"{address}/metrics", timeout=30).text:
            time.sleep(0.01)
        process.kill()
        assert any(isinstance(one.exception(), httpx.HTTPError) for one in lost)
    assert process.wait() == -signal.SIGKILL and contents(news) == before
    again, address = started(news)
    with again.stderr:
        assert httpx.post(f"{address}/api/models/news/transform", json=asked, timeout=30).json() == answer
        again.send_signal(signal.SIGTERM)
        assert again.wait() == 0
    assert contents(news) == before


def test_a_stop_is_heard_while_the_server_starts_where_ctrl_c_is_ignored(news):
    """A script's background jobs ignore Ctrl-C, and SIGTERM must not be lost with it."""
    from varitext import serve

    def run() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        serve._listen = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
        main()

    server = forked("serve", news, "--port", 0, run=run)
    server.communicate(timeout=120)
    assert server.returncode == 130
