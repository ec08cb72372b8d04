"""What the service did, in Prometheus' text form."""

import bisect
import resource
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
BATCH_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Histogram:
    """How many values lie at or under each of some bounds."""

    def __init__(self, bounds: Sequence[float]):
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, label: str) -> Iterable[str]:
        below = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            below += count
            yield f'{name}_bucket{{{label},le="{bound}"}} {below}'
        yield f"{name}_sum{{{label}}} {self.total:.6f}"
        yield f"{name}_count{{{label}}} {below}"


class Metrics:
    """Counts since the start. Routes are named by their pattern, so that there are never more than the service has."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(SECONDS))
        self._batches: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(BATCH_SIZES))

    def request(self, route: str, status: int, seconds: float) -> None:
        self._requests[route, status] += 1
        self._seconds[route].add(seconds)

    def batch(self, model: str, size: int) -> None:
        self._batches[model].add(size)

    def text(self, queue_lengths: dict[str, int]) -> str:
        requests = (
            f'varitext_requests_total{{route="{_escaped(route)}",status="{status}"}} {count}'
            for (route, status), count in sorted(self._requests.items())
        )
        waiting = (f'varitext_queue_length{{model="{_escaped(name)}"}} {n}' for name, n in queue_lengths.items())
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in KB
        in_flight = f"varitext_requests_in_flight {self.in_flight}"
        lines = (
            *_family("varitext_requests_total", "counter", "Requests answered, by route and status.", requests),
            *_histograms("varitext_request_seconds", "Time from request to answer.", "route", self._seconds),
            *_histograms("varitext_batch_size", "Requests that a model answered together.", "model", self._batches),
            *_family("varitext_requests_in_flight", "gauge", "Requests begun and not answered yet.", [in_flight]),
            *_family("varitext_queue_length", "gauge", "Requests that wait for a model.", waiting),
            *_family(
                "varitext_peak_memory_bytes", "gauge", "Most memory so far.", [f"varitext_peak_memory_bytes {memory}"]
            ),
        )
        return "\n".join(lines) + "\n"


def _family(name: str, kind: str, help_text: str, lines: Iterable[str]) -> Iterable[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"
    yield from lines


def _histograms(name: str, help_text: str, label: str, histograms: dict[str, Histogram]) -> Iterable[str]:
    lines = (line for key, one in sorted(histograms.items()) for line in one.lines(name, f'{label}="{_escaped(key)}"'))
    return _family(name, "histogram", help_text, lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
