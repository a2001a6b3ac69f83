"""What a gateway counts, for `/metrics`."""

from collections.abc import Iterator

from tenure.observe.metrics import Histogram, MetricFamily, Sample


class GatewayCounts:
    """How often it has answered what, and how long that took."""

    def __init__(self) -> None:
        self.under_way = 0
        """How many requests are not answered yet."""
        self.refused_connections = 0
        self._answers: dict[tuple[str, int], int] = {}
        self._seconds: dict[str, Histogram] = {}

    def answered(self, target: str, status: int, seconds: float) -> None:
        """Count an answer; status 0 is one that the client did not wait for."""
        which = target, status
        self._answers[which] = self._answers.get(which, 0) + 1
        if target not in self._seconds:
            self._seconds[target] = Histogram()
        self._seconds[target].observe(seconds)

    def families(self, connections: int) -> Iterator[MetricFamily]:
        """The counts as Prometheus has them."""
        answers = (
            Sample(count, {"target": target, "status": str(status)})
            for (target, status), count in self._answers.items()
        )
        seconds = (Sample(each, {"target": target}) for target, each in self._seconds.items())
        yield MetricFamily(
            "tenure_gateway_answers", "Answers, by target and status.", "counter", tuple(answers)
        )
        yield MetricFamily(
            "tenure_gateway_answer_seconds",
            "Time until a request was answered whole.",
            "histogram",
            tuple(seconds),
        )
        yield _one("under_way", "Requests that are not answered yet.", self.under_way)
        yield _one("connections", "Connections of clients.", connections)
        yield MetricFamily(
            "tenure_gateway_refused_connections",
            "Connections that were refused, or cut off.",
            "counter",
            (Sample(self.refused_connections),),
        )


def _one(name: str, help_: str, value: int) -> MetricFamily:
    return MetricFamily(f"tenure_gateway_{name}", help_, "gauge", (Sample(value),))
