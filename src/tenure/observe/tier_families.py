"""Caches and entities as families of metrics: at managers, and in the processes that run them.

Both show the same numbers, from the same reports. Only the prefixes of the names differ, so that a
sum over everything that Prometheus scrapes counts nothing twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from tenure.observe.metrics import MetricFamily, gauges
from tenure.protocol.lease.reports import EntityReport, VolumeReport

Labels: TypeAlias = Mapping[str, str]


def volume_families(
    prefix: str, found: Sequence[tuple[Labels, VolumeReport]]
) -> Iterator[MetricFamily]:
    """The families of each volume; without samples if there are no volumes."""

    def each(name: str, help_: str, value: Callable[[VolumeReport], float]) -> MetricFamily:
        return gauges(f"{prefix}_volume_{name}", help_, ((of, value(it)) for of, it in found))

    yield each("readers", "Caches that read what an owner owns.", lambda it: it.readers)
    yield each("leases", "Object leases of all of them.", lambda it: it.leases)
    yield each(
        "unacknowledged",
        "Invalidations that caches have not acknowledged.",
        lambda it: it.unacknowledged,
    )
    yield each("writes", "Writes that are asked for and not done.", lambda it: it.writes)


def entity_families(
    prefix: str, found: Sequence[tuple[Labels, EntityReport]]
) -> Iterator[MetricFamily]:
    """The families of each process's entities; without samples if there are no entities."""
    of_kinds = [({**of, "kind": it.kind}, it) for of, it in found]

    def each(name: str, help_: str, value: Callable[[EntityReport], float]) -> MetricFamily:
        return gauges(f"{prefix}_entity_{name}", help_, ((of, value(it)) for of, it in of_kinds))

    yield each("instances", "Entities in memory.", lambda it: it.instances)
    yield each("turns", "Turns that run.", lambda it: it.turns)
    yield each("waiting_calls", "Calls that wait for a turn.", lambda it: it.waiting)
    yield each("alarms", "Keys with an alarm.", lambda it: it.alarms)
    yield each("sockets", "WebSockets that are attached to entities.", lambda it: it.sockets)
