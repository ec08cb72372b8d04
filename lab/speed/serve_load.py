"""The service under load: single requests, many clients with mixed requests, too many, memory, and a stop under load.

Starts and stops the server itself, for the model folders given. Clients run in this process, so that on two processors
the server has one to itself.
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
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
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
MIXED = ("transform", "explain", "assign", "rank")
IN_FLIGHT_TEXTS = 4  # so that answers are in flight when the server is stopped
TOO_MANY_TEXTS = 16  # so that 200 clients ask for more than can be answered
IN_FLIGHT = re.compile(r"^varitext_requests_in_flight (\d+)\.0$", re.MULTILINE)


class Call(NamedTuple):
    path: str
    body: dict[str, Any]


class Seen(NamedTuple):
    outcome: str  # the status, or the name of the error
    seconds: float
    call: Call
    retry_after: float = 0.0  # seconds


@contextlib.contextmanager
def running_server(folders: list[Path]) -> Iterator[tuple[subprocess.Popen, str]]:
    """The server and its address; it is killed at the end if it still runs. It logs every request to a file."""
    command = [sys.executable, "-c", "from varitext.cli import main; main()", "serve", *map(str, folders)]
    command += ["--port", "0", "--threads", "1"]
    with tempfile.NamedTemporaryFile() as log, subprocess.Popen(command, stderr=log) as server:
        try:
            while not (found := re.search(r"http://\S+", Path(log.name).read_text())):
                assert server.poll() is None, Path(log.name).read_text()
                time.sleep(0.1)
            yield server, found[0]
        finally:
            server.kill()


def processor_seconds(pid: int) -> float:
    """Time that the process has used, on all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    except httpx.HTTPError as error:
        return Seen(type(error).__name__, time.perf_counter() - started, call, 1.0)
    seconds = time.perf_counter() - started
    return Seen(str(response.status_code), seconds, call, float(response.headers.get("retry-after", 0)))


async def single_requests(address: str, calls: dict[str, Call], pid: int) -> dict[str, dict[str, float]]:
    """Milliseconds of single requests without other clients, and what they cost the server's processor."""
    found = {}
    async with client_for(address) as client:
        for name, call in calls.items():
            await ask(client, call)  # warm-up
            before = processor_seconds(pid)
            seen = [await ask(client, call) for _ in range(SINGLE)]
            used = 1000 * (processor_seconds(pid) - before) / SINGLE
            assert {one.outcome for one in seen} == {"200"}, (name, seen)
            found[name] = quantiles([one.seconds for one in seen]) | {"processor": round(used, 1)}
    return found


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """In milliseconds."""
    median, most, nearly_all = (1000 * np.quantile(seconds, [0.5, 0.9, 0.99])).round(2).tolist()
    return {"median": median, "90 %": most, "99 %": nearly_all}


async def load(
    address: str, calls: Sequence[Call], clients: int, seconds: float, pid: int
) -> tuple[list[Seen], list[float]]:
    """All responses, and the server's memory once per second. Clients cycle through the calls from different starts."""
    seen: list[Seen] = []
    memory: list[float] = []
    until = time.monotonic() + seconds

    async def keep_asking(number: int) -> None:
        async with client_for(address) as client:
            while time.monotonic() < until:
                seen.append(one := await ask(client, calls[number % len(calls)]))
                await asyncio.sleep(one.retry_after)
                number += 1

    async def watch() -> None:
        while time.monotonic() < until:
            memory.append(resident_megabytes(pid))
            await asyncio.sleep(1)

    await asyncio.gather(watch(), *(keep_asking(number) for number in range(clients)))
    return seen, memory


async def stop_under_load(server: subprocess.Popen, address: str, call: Call, clients: int) -> dict[str, Any]:
    """SIGTERM while all clients wait for an answer: the response to each, and the time until the server ends."""
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


def calls_to(folders: list[Path]) -> dict[str, Call]:
    documents, answers = f"/api/models/{folders[0].name}", f"/api/models/{folders[1].name}"
    return {
        "transform": Call(f"{documents}/transform", {"texts": [PAGE]}),
        "explain": Call(f"{documents}/explain", {"text": PAGE}),
        "assign": Call(f"{documents}/assign", {"texts": [PAGE]}),
        "perplexity": Call(f"{documents}/perplexity", {"texts": [PAGE]}),
        "rank": Call(f"{answers}/rank", {"question": QUESTION, "candidates": CANDIDATES}),
    }


def measure(folders: list[Path], clients: int, seconds: float) -> dict[str, Any]:
    calls = calls_to(folders)
    busy = os.getloadavg()[0]
    with running_server(folders) as (server, address):
        while "reading" in httpx.get(f"{address}/api/models", timeout=60).text:  # training documents, in the background
            time.sleep(0.5)
        log("one request at a time")
        single = asyncio.run(single_requests(address, calls, server.pid))
        log("too many texts")
        too_many = Call(calls["assign"].path, {"texts": [PAGE] * TOO_MANY_TEXTS})
        crowded = under_load(server, address, [too_many], clients, seconds / 2)
        log(f"{clients} clients for {seconds:g} s")
        mixed = under_load(server, address, [calls[name] for name in MIXED], clients, seconds)
        log("a stop under load")
        slow = Call(calls["transform"].path, {"texts": [PAGE] * IN_FLIGHT_TEXTS})
        stopped = asyncio.run(stop_under_load(server, address, slow, clients))
    return {
        "processors": os.cpu_count(),
        "load_average_before": round(busy, 1),
        "niceness": os.nice(0),  # below 0, other work on the machine has to wait
        "single_request_ms": single,
        "clients": clients,
        "mixed": mixed,
        "overload": crowded | {"texts": TOO_MANY_TEXTS},
        "stop": stopped,
    }


def under_load(
    server: subprocess.Popen, address: str, calls: Sequence[Call], clients: int, seconds: float
) -> dict[str, Any]:
    asyncio.run(load(address, calls, clients, 3, server.pid))  # warm-up of connections and buffers
    before, used = resident_megabytes(server.pid), processor_seconds(server.pid)
    seen, memory = asyncio.run(load(address, calls, clients, seconds, server.pid))
    used, answered = processor_seconds(server.pid) - used, [one for one in seen if one.outcome == "200"]
    refused = [one.seconds for one in seen if one.outcome == "503"]
    by_path = {call.path.rpartition("/")[2]: [one.seconds for one in answered if one.call == call] for call in calls}
    return {
        "seconds": seconds,
        "outcomes": dict(Counter(one.outcome for one in seen)),
        "answered_per_second": round(len(answered) / seconds, 1),
        "answer_ms": quantiles([one.seconds for one in answered]),
        "answer_ms_by_call": {name: quantiles(values) for name, values in by_path.items() if values},
        "refusal_ms": quantiles(refused) if refused else None,
        "processor_ms_per_answer": round(1000 * used / len(answered), 1),
        "memory_mb": {
            "before": round(before, 1),
            "most": round(max(memory), 1),
            "after": round(resident_megabytes(server.pid), 1),
        },
    }


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m lab serve_load", description=__doc__)
    parser.add_argument("folders", nargs=2, type=Path, metavar="DIR", help="a document model, then an answer model")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the results")
    typed = parser.parse_args(arguments)
    record = measure(typed.folders, typed.clients, typed.seconds) | provenance()
    print(json.dumps(record, indent=2))
    write_json(typed.out / "serve_load.json", record)
