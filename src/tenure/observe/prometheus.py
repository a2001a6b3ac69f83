"""Metrics as prometheus_client has them, which needs the extra `metrics`."""

from collections.abc import Callable, Iterable, Iterator

from tenure.observe.metrics import Histogram, MetricFamily

try:
    from prometheus_client import CollectorRegistry, ProcessCollector
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
    )
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.registry import Collector
except ImportError as error:
    raise ImportError("metrics need prometheus_client: pip install 'tenure[metrics]'") from error


class FamiliesCollector(Collector):
    """A collector for a registry of prometheus_client: asks for the families at each scrape."""

    def __init__(self, families: Callable[[], Iterable[MetricFamily]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return map(_converted, self._families())

    def describe(self) -> list[Metric]:
        """Return nothing: otherwise a registry would collect in order to learn the names."""
        return []


def exposition(families: Iterable[MetricFamily], accept: str) -> tuple[bytes, str]:
    """Write the families, and those of this process, in the format that `accept` names; returns the
    type, too.
    """
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(FamiliesCollector(lambda: families))
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # it compares versions, and this one is not a number
        encode, content_type = choose_encoder("")
    return encode(registry), content_type


def _converted(family: MetricFamily) -> Metric:
    names = tuple(family.samples[0].labels) if family.samples else ()
    if family.kind == "histogram":
        histograms = HistogramMetricFamily(family.name, family.help, labels=names)
        for each in family.samples:
            assert isinstance(each.value, Histogram)
            of = [each.labels[name] for name in names]
            histograms.add_metric(of, each.value.cumulative, each.value.sum)
        return histograms
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    numbers: CounterMetricFamily | GaugeMetricFamily = kind(family.name, family.help, labels=names)
    for each in family.samples:
        assert not isinstance(each.value, Histogram)
        numbers.add_metric([each.labels[name] for name in names], each.value)
    return numbers
