"""The service under load: latency of single requests, many clients at once, memory, and a stop under load.

Starts and stops the server itself, for the model folders given.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np

from varitext.files import write_json
from varitext.reproduce.provenance import provenance

PAGE = "the shuttle is in orbit around the moon and the team won the game in the last minute " * 29  # 493 words
QUESTION = "who discovered penicillin ?"
CANDIDATES = ["penicillin was discovered in 1928 by the scottish scientist alexander fleming ."] * 15
SINGLE = 50  # requests, one after the other
SLOW = {"texts": [PAGE] * 4}  # so that answers are in flight when the server is stopped
IN_FLIGHT = re.compile(r"^varitext_requests_in_flight (\d+)\.0$", re.MULTILINE)


class Call(NamedTuple):
    path: str
    body: dict[str, Any]


class Seen(NamedTuple):
    outcome: str  # the status, or the name of the error
    seconds: float


@contextlib.contextmanager
def running_server(folders: list[Path]) -> Iterator[tuple[subprocess.Popen, str]]:
    """The server and its address; it is killed at the end if it still runs."""
    command = [sys.executable, "-c", "from varitext.cli import main; main()", "serve", *map(str, folders)]
    command += ["--port", "0", "--threads", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield server, re.search(r"http://\S+", server.stderr.readline())[0]
        finally:
            server.kill()


def resident_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def client_for(address: str) -> httpx.AsyncClient:
    """One client per caller: a shared pool would spend its time searching itself."""
    return httpx.AsyncClient(base_url=address, timeout=60, verify=False, trust_env=False)


async def ask(client: httpx.AsyncClient, call: Call) -> Seen:
    started = time.perf_counter()
    try:
        response = await client.post(call.path, json=call.body)
        return Seen(str(response.status_code), time.perf_counter() - started)
    except httpx.HTTPError as error:
        return Seen(type(error).__name__, time.perf_counter() - started)


async def single_requests(address: str, calls: dict[str, Call]) -> dict[str, dict[str, float]]:
    """Milliseconds of single requests without other clients."""
    found = {}
    async with client_for(address) as client:
        for name, call in calls.items():
            await ask(client, call)  # warm-up
            seen = [await ask(client, call) for _ in range(SINGLE)]
            assert {one.outcome for one in seen} == {"200"}, (name, seen)
            found[name] = quantiles([1000 * one.seconds for one in seen])
    return found


def quantiles(values: list[float]) -> dict[str, float]:
    median, most, nearly_all = np.quantile(values, [0.5, 0.9, 0.99]).round(2).tolist()
    return {"median": median, "90 %": most, "99 %": nearly_all}


async def load(address: str, call: Call, clients: int, seconds: float, pid: int) -> tuple[list[Seen], list[float]]:
    """All responses, and the server's memory once per second."""
    seen: list[Seen] = []
    memory: list[float] = []
    until = time.monotonic() + seconds

    async def keep_asking() -> None:
        async with client_for(address) as client:
            while time.monotonic() < until:
                seen.append(await ask(client, call))
                if seen[-1].outcome != "200":
                    await asyncio.sleep(1)  # as Retry-After says

    async def watch() -> None:
        while time.monotonic() < until:
            memory.append(resident_megabytes(pid))
            await asyncio.sleep(1)

    await asyncio.gather(watch(), *(keep_asking() for _ in range(clients)))
    return seen, memory


async def stop_under_load(server: subprocess.Popen, address: str, call: Call, clients: int) -> dict[str, Any]:
    """SIGTERM when all clients wait for an answer: what each of them gets, and how long the server takes to end."""
    async with contextlib.AsyncExitStack() as stack:
        each = [await stack.enter_async_context(client_for(address)) for _ in range(clients)]
        asked = [asyncio.create_task(ask(client, call)) for client in each]
        async with client_for(address) as watching:
            while sum(one.done() for one in asked) + await in_flight(watching) < clients:
                await asyncio.sleep(0.01)
        unanswered = sum(not one.done() for one in asked)
        server.send_signal(signal.SIGTERM)
        started = time.monotonic()
        code = await asyncio.to_thread(server.wait)
        seconds = time.monotonic() - started
        outcomes = Counter(one.outcome for one in await asyncio.gather(*asked))
    return {
        "in_flight": unanswered,
        "outcomes": dict(outcomes),
        "seconds_to_exit": round(seconds, 2),
        "exit_code": code,
    }


async def in_flight(client: httpx.AsyncClient) -> int:
    """Requests that the server has begun and not answered, without this one."""
    return int(IN_FLIGHT.search((await client.get("/metrics")).text)[1]) - 1


def log(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def measure(folders: list[Path], clients: int, seconds: float) -> dict[str, Any]:
    documents, answers = f"/api/models/{folders[0].name}", f"/api/models/{folders[-1].name}"
    calls = {
        "transform": Call(f"{documents}/transform", {"texts": [PAGE]}),
        "explain": Call(f"{documents}/explain", {"text": PAGE}),
        "perplexity": Call(f"{documents}/perplexity", {"texts": [PAGE]}),
    }
    if len(folders) > 1:
        calls["rank"] = Call(f"{answers}/rank", {"question": QUESTION, "candidates": CANDIDATES})
    busy = os.getloadavg()[0]
    with running_server(folders) as (server, address):
        log("one request at a time")
        single = asyncio.run(single_requests(address, calls))
        log(f"{clients} clients for {seconds:g} s")
        asyncio.run(load(address, calls["transform"], clients, 3, server.pid))  # warm-up of connections and buffers
        before = resident_megabytes(server.pid)
        seen, memory = asyncio.run(load(address, calls["transform"], clients, seconds, server.pid))
        after = resident_megabytes(server.pid)
        log("a stop under load")
        stopped = asyncio.run(stop_under_load(server, address, Call(calls["transform"].path, SLOW), clients))
    answered = [1000 * one.seconds for one in seen if one.outcome == "200"]
    return {
        "processors": os.cpu_count(),
        "load_average_before": round(busy, 1),
        "single_request_ms": single,
        "clients": clients,
        "seconds": seconds,
        "outcomes": dict(Counter(one.outcome for one in seen)),
        "answered_per_second": round(len(answered) / seconds, 1),
        "answer_ms": quantiles(answered),
        "memory_mb": {"before": round(before, 1), "most": round(max(memory), 1), "after": round(after, 1)},
        "stop": stopped,
    }


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m lab serve_load", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="a document model, then an answer model")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the results")
    typed = parser.parse_args(arguments)
    record = measure(typed.folders, typed.clients, typed.seconds) | provenance()
    print(json.dumps(record, indent=2))
    write_json(typed.out / "serve_load.json", record)
