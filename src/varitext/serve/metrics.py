"""What the service did, in Prometheus' text form."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from varitext.runtime.memory import peak_so_far

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
BATCH_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Metrics:
    """Counts since the start. Routes are named by their pattern, so that there are never more than the service has."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()  # two applications in one process count apart
        self._requests = Counter(
            "varitext_requests_total", "Requests answered, by route and status.", ["route", "status"], registry=own
        )
        self._seconds = Histogram(
            "varitext_request_seconds", "Time from request to answer.", ["route"], buckets=SECONDS, registry=own
        )
        self._batches = Histogram(
            "varitext_batch_size",
            "Requests that a model answered together.",
            ["model"],
            buckets=BATCH_SIZES,
            registry=own,
        )
        self.in_flight = Gauge("varitext_requests_in_flight", "Requests begun and not answered yet.", registry=own)
        self._queues = Gauge("varitext_queue_length", "Requests that wait for a model.", ["model"], registry=own)
        Gauge("varitext_peak_memory_bytes", "Most memory so far.", registry=own).set_function(
            lambda: peak_so_far() * 2**20
        )

    def request(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def batch(self, model: str, size: int) -> None:
        self._batches.labels(model).observe(size)

    def queue(self, model: str, length: Callable[[], int]) -> None:
        """Ask there how many wait, whenever somebody looks."""
        self._queues.labels(model).set_function(length)

    def text(self) -> str:
        lines = generate_latest(self._registry).decode().splitlines(keepends=True)
        return "".join(line for line in lines if "_created" not in line.split("{")[0])  # when each was first seen
