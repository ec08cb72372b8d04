"""Many clients at once against a running server: statuses, latencies, and the server's memory before and after.

varitext serve models/news --port 8000 &
python benchmarks/serve_load.py --pid $! --seconds 30
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np

TEXT = "the shuttle is in orbit around the moon and the team won the game in the last minute " * 12  # about a page


def resident_megabytes(pid: int | None) -> float | None:
    if pid is None:
        return None
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def ask_again_and_again(
    client: httpx.AsyncClient, address: str, until: float, seen: list[tuple[int, float]]
) -> None:
    while time.monotonic() < until:
        started = time.monotonic()
        response = await client.post(address, json={"texts": [TEXT]})
        seen.append((response.status_code, time.monotonic() - started))
        if response.status_code == 503:
            await asyncio.sleep(float(response.headers["retry-after"]))


async def load(address: str, clients: int, seconds: float) -> list[tuple[int, float]]:
    seen: list[tuple[int, float]] = []
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client:
        until = time.monotonic() + seconds
        await asyncio.gather(*(ask_again_and_again(client, address, until, seen) for _ in range(clients)))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", default="http://127.0.0.1:8000/api/models/news/transform")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--pid", type=int, help="of the server, to see its memory")
    typed = parser.parse_args()
    asyncio.run(load(typed.address, 4, 1))  # what is made once is made before memory is looked at
    before = resident_megabytes(typed.pid)
    seen = asyncio.run(load(typed.address, typed.clients, typed.seconds))
    seconds = np.array([took for status, took in seen if status == 200])
    quantiles = np.quantile(seconds, [0.5, 0.9, 0.99]) if len(seconds) else [None] * 3
    record = {
        "clients": typed.clients,
        "requests": len(seen),
        "answered_per_second": len(seconds) / typed.seconds,
        "statuses": dict(Counter(status for status, _ in seen)),
        "seconds_50_90_99": list(map(float, quantiles)) if len(seconds) else None,
        "memory_mb_before_after": [before, resident_megabytes(typed.pid)],
    }
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
