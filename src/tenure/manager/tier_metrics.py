"""The metrics of a leader at `/metrics` about the tiers beside leases: volumes, entities, the
store.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tenure.observe.metrics import MetricFamily, gauges
from tenure.observe.tier_families import entity_families, volume_families
from tenure.protocol.lease.answers import Owners
from tenure.protocol.topology.answers import NodeSummary, RingRead, ScrubSeen, UpkeepRead


class ReadCluster(NamedTuple):
    """A cluster of the store, as the leader answers."""

    ring: RingRead
    upkeep: UpkeepRead


def tier_families(
    pools: tuple[Owners, ...], clusters: tuple[ReadCluster, ...]
) -> Iterator[MetricFamily]:
    """All families; without samples if a tier is not used."""
    each = [({"pool": pool.pool, "owner": it.name}, it) for pool in pools for it in pool.owners]
    volumes = [(of, it.volume) for of, it in each if it.volume is not None]
    yield from volume_families("tenure", volumes)
    entities = [(of, it.entities) for of, it in each if it.entities is not None]
    yield from entity_families("tenure", entities)
    yield from _of_clusters(clusters)


def _of_clusters(clusters: tuple[ReadCluster, ...]) -> Iterator[MetricFamily]:
    found = [
        ({"cluster": each.ring.cluster, "node": node.name}, node)
        for each in clusters
        for node in each.ring.nodes
    ]

    def each(name: str, help_: str, value: Callable[[NodeSummary], float]) -> MetricFamily:
        return gauges(f"tenure_node_{name}", help_, ((of, value(it)) for of, it in found))

    yield each("connected", "1 while a node is connected to this manager.", lambda it: it.connected)
    yield each("damaged", "1 while a node's disk has lost something.", lambda it: bool(it.damage))
    yield each("bytes", "How many bytes of the store a node has.", lambda it: it.bytes)
    yield each("load", "The load of a node, divided by the mean.", lambda it: it.load)
    yield gauges(
        "tenure_node_convicted_by",
        "How many nodes consider a node down.",
        _summed(clusters, lambda it: ((seen.node, seen.is_convicted) for seen in it.seen)),
    )
    yield gauges(
        "tenure_node_hints",
        "Writes that other nodes keep for a node.",
        _summed(clusters, lambda it: ((hints.target, hints.count) for hints in it.hints)),
    )
    yield from _of_scrubs(clusters)
    yield gauges(
        "tenure_ring_changing",
        "1 while a change of a cluster's ring runs.",
        (({"cluster": each.ring.cluster}, bool(each.ring.change)) for each in clusters),
    )
    yield gauges(
        "tenure_ring_doubted",
        "Nodes that were refused, or not believed, in the last hour.",
        (({"cluster": each.ring.cluster}, len(each.ring.doubted)) for each in clusters),
    )
    yield gauges(
        "tenure_ring_unevenness",
        "The load of the heaviest node, divided by the mean.",
        (({"cluster": each.ring.cluster}, each.ring.unevenness) for each in clusters),
    )
    yield gauges(
        "tenure_ring_oldest_seal_seconds",
        "How long ago the range that has waited longest was sealed.",
        (
            ({"cluster": each.ring.cluster}, max(sealed))
            for each in clusters
            if (sealed := [r.sealed_seconds for r in each.upkeep.ranges if r.sealed_seconds])
        ),
    )


def _of_scrubs(clusters: tuple[ReadCluster, ...]) -> Iterator[MetricFamily]:
    found = [
        ({"cluster": each.upkeep.cluster, "node": scrub.node}, scrub)
        for each in clusters
        for scrub in each.upkeep.scrubs
    ]

    def each(name: str, help_: str, value: Callable[[ScrubSeen], float]) -> MetricFamily:
        return gauges(f"tenure_node_{name}", help_, ((of, value(it)) for of, it in found))

    yield each(
        "scrubbed_entries",
        "How many entries a node has read to find damage, since it began.",
        lambda it: it.entries,
    )
    yield each("scrub_passes", "How often a node has read all that it keeps.", lambda it: it.passes)
    yield each(
        "damages",
        "How often a node's disk was found to have lost something.",
        lambda it: it.damages,
    )
    yield each(
        "mended",
        "How often a node has got again from others what its disk had lost.",
        lambda it: it.mended,
    )


def _summed(
    clusters: tuple[ReadCluster, ...],
    counted: Callable[[UpkeepRead], Iterator[tuple[str, float]]],
) -> Iterator[tuple[Mapping[str, str], float]]:
    for each in clusters:
        sums: dict[str, float] = {node.name: 0 for node in each.ring.nodes}
        for node, count in counted(each.upkeep):
            sums[node] = sums.get(node, 0) + count
        for node, count in sums.items():
            yield {"cluster": each.ring.cluster, "node": node}, count
