"""A leader's account of the upkeep that nodes do by themselves, from their latest reports."""

from collections.abc import Callable, Iterator

from tenure.base.instants import Instant, in_seconds
from tenure.protocol.topology.answers import HintsHeld, PeerSeen, RangeUpkept, ScrubSeen, UpkeepRead
from tenure.protocol.topology.change import shown_token
from tenure.protocol.topology.cluster import LedCluster
from tenure.protocol.topology.messages import NodeReport, RangeTended
from tenure.protocol.topology.records import Node, NodeId

NameOf = Callable[[NodeId], str]


def upkeep_read(now: Instant, cluster: LedCluster) -> UpkeepRead:
    """The upkeep of a cluster as a whole."""
    topology = cluster.topology
    known = {node.id: node.name for node in topology.removed}
    known |= {node.id: node.name for node in (*topology.nodes, *topology.waiting)}

    def name(node: NodeId) -> str:
        return known.get(node, f"{node:016x}")

    reports = {node.id: report for node, report, _ in _reports(now, cluster)}
    return UpkeepRead(
        cluster=topology.cluster,
        ranges=tuple(_ranges(now, cluster, name)),
        hints=tuple(
            HintsHeld(at=name(at), target=name(each.node), count=each.count, bytes=each.bytes)
            for at, report in reports.items()
            for each in report.hints
        ),
        hints_dropped=sum(report.hints_dropped for report in reports.values()),
        seen=tuple(
            PeerSeen(
                by=name(by),
                node=name(each.node),
                phi=each.phi,
                is_convicted=each.is_convicted,
                clock_ahead_us=each.clock_ahead_us,
            )
            for by, report in reports.items()
            for each in report.seen
        ),
        scrubs=tuple(
            ScrubSeen(
                node=name(of),
                entries=report.scrubbed.entries,
                passes=report.scrubbed.passes,
                damages=report.scrubbed.damages,
                mended=report.scrubbed.mended,
            )
            for of, report in reports.items()
        ),
    )


def _reports(now: Instant, cluster: LedCluster) -> Iterator[tuple[Node, NodeReport, float]]:
    """The reports of members, and how many seconds old each is."""
    for node in sorted(cluster.topology.nodes, key=lambda node: node.name):
        session = cluster.sessions.get(node.id)
        if session is not None:
            yield node, session.request.report, in_seconds(now - session.heard_at)


def _ranges(now: Instant, cluster: LedCluster, name: NameOf) -> Iterator[RangeUpkept]:
    told: dict[tuple[bytes, bytes | None], tuple[float, str, RangeTended]] = {}
    for node, report, ago in _reports(now, cluster):
        for each in report.tended:
            place = each.start, each.end
            if place not in told or ago < told[place][0]:  # a silent node looks after nothing
                told[place] = ago, node.name, each
    for replicas in cluster.topology.each():
        start, end = replicas.range.start, replicas.range.end
        shown = RangeUpkept(
            start=shown_token(start) if start else "",
            end=None if end is None else shown_token(end),
        )
        if (start, end) not in told:
            yield shown
            continue
        ago, by, each = told[start, end]
        yield RangeUpkept(
            start=shown.start,
            end=shown.end,
            by=by,
            compared_seconds=_older(each.compared_seconds, ago),
            sealed_seconds=_older(each.sealed_seconds, ago),
            differing=each.differing,
            bytes=each.bytes,
            held_back_by=tuple(map(name, each.held_back_by)),
        )


def _older(seconds: float | None, by: float) -> float | None:
    return None if seconds is None else seconds + by
