"""The paragraph of docs/how-to/serve.md that comes from results/serve_load.json, which `serve_load.py` writes."""

import json
from pathlib import Path


def load_block(root: Path) -> str:
    found = json.loads((root / "results" / "serve_load.json").read_text())
    answers, memory, stop = found["outcomes"], found["memory_mb"], found["stop"]
    single = ", ".join(f"{name} {values['median']:.0f} ms" for name, values in found["single_request_ms"].items())
    told = {"200": "answered", "503": "told to try again"}
    outcomes = " and ".join(f"{number:,} {told.get(status, status)}" for status, number in answers.items())
    stopped = " and ".join(f"{number:,} {told.get(status, status)}" for status, number in stop["outcomes"].items())
    lines = [
        f"one request at a time, a page of text or 15 candidates, median: {single};",
        f"{found['clients']} clients for {found['seconds']:.0f} s: {outcomes}, {found['answered_per_second']:,.0f} a "
        f"second, median {found['answer_ms']['median']:.0f} ms, 99 % within {found['answer_ms']['99 %']:.0f} ms;",
        f"memory of the server: {memory['before']:.0f} MB before, {memory['most']:.0f} MB at most, "
        f"{memory['after']:.0f} MB after;",
        f"stopped with {stop['in_flight']} requests in flight: {stopped}, gone after {stop['seconds_to_exit']:.1f} s.",
    ]
    listed = "\n".join(f"- {line}" for line in lines)
    return f"On a machine of {found['processors']} processors, which server and clients share:\n\n{listed}"
