"""Metrics of owners, lookups, caches, volumes and entities, in the process that they run in."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from tenure.base.names import shown
from tenure.client.lookup import Lookup
from tenure.client.owner import Owner
from tenure.errors import ConfigurationError, TenureError
from tenure.observe.metrics import MetricFamily, Sample, gauges
from tenure.observe.prometheus import FamiliesCollector
from tenure.observe.tier_families import entity_families, volume_families
from tenure.protocol.lease.owner.noted import OwnerKind


class MetricsCollector(FamiliesCollector):
    """Shows what `watched` do to Prometheus: `REGISTRY.register(MetricsCollector(owner, lookup))`.

    `watched` are Owners, with their volumes; Lookups, Caches, CacheServers, Entities, and Services.
    Raises ConfigurationError for anything else.
    """

    def __init__(self, *watched: Any) -> None:  # noqa: ANN401  # checked in the next lines
        watched = tuple(getattr(each, "entities", each) for each in watched)  # of a Service
        for each in watched:
            if not callable(getattr(each, "stats", None)):
                raise ConfigurationError(
                    "a MetricsCollector watches Owners, Lookups, Caches, CacheServers, Entities "
                    f"and Services, not {shown(each)}"
                )
        self._watched = watched
        super().__init__(self._all)

    def _all(self) -> Iterator[MetricFamily]:
        yield MetricFamily(
            "tenure_client_events",
            "What happened to an owner, a lookup or a cache of this process.",
            "counter",
            tuple(
                Sample(count, {**_labels(each), "event": what})
                for each in self._watched
                for what, count in sorted({**_nothing_yet(each), **each.stats()}.items())
            ),
        )
        owners = [each for each in self._watched if isinstance(each, Owner)]
        lookups = [each for each in self._watched if isinstance(each, Lookup)]
        yield gauges(
            "tenure_client_ranges",
            "Ranges that an owner of this process holds.",
            ((_labels(each), _now(partial(_held, each))) for each in owners),
        )
        yield gauges(
            "tenure_client_in_contact",
            "1 where the table of a lookup is kept up.",
            ((_labels(each), _now(partial(_is_in_contact, each))) for each in lookups),
        )
        tiers = [(_labels(each), each.tiers()) for each in self._watched if hasattr(each, "tiers")]
        volumes = [(of, told.volume) for of, told in tiers if told.volume is not None]
        yield from volume_families("tenure_client", volumes)
        entities = [(of, told.entities) for of, told in tiers if told.entities is not None]
        yield from entity_families("tenure_client", entities)


def _nothing_yet(watched: Any) -> dict[str, int]:  # noqa: ANN401
    """Counters at zero: Prometheus sees an increase only of a counter that existed before it."""
    if isinstance(watched, Owner):
        return {each.phrase: 0 for each in (OwnerKind.LAPSED, OwnerKind.HAND_OFF_FAILED)}
    if isinstance(watched, Lookup):
        return {"ranges lost": 0}
    return {}


def _now(ask: Callable[[], float]) -> float:
    """The values now; 0 for a client that is not entered, or was left."""
    with suppress(TenureError):
        return ask()
    return 0


def _held(owner: Owner) -> int:
    return len(owner.ranges)


def _is_in_contact(lookup: Lookup) -> bool:
    return lookup.in_contact


def _labels(watched: Any) -> dict[str, str]:  # noqa: ANN401
    return {
        "client": type(watched).__name__.lower(),
        "pool": getattr(watched, "pool", ""),
        "name": getattr(watched, "name", ""),
    }
