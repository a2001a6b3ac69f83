"""The metrics that a manager shows at `/metrics`."""

from collections import Counter, deque
from collections.abc import Callable, Iterator

from tenure.base.instants import Instant, in_seconds
from tenure.manager.noted import ServiceKind
from tenure.manager.tier_metrics import ReadCluster, tier_families
from tenure.observe.events import Observer
from tenure.observe.metrics import Histogram, MetricFamily, Sample, counter, gauge, gauges
from tenure.protocol.lease.answers import Connection, Owners
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.view import ManagerView
from tenure.protocol.lease.messages import Changes, FromManager, Sync, ToManager
from tenure.protocol.log.journal import Appended, Committed
from tenure.protocol.log.noted import LogKind
from tenure.protocol.topology.noted import TopologyKind
from tenure.transport.peers import Peers

NOTHING_YET = {
    each.phrase: 0 for kinds in (LogKind, LeaderKind, TopologyKind, ServiceKind) for each in kinds
}
"""The events that can happen, and have not: Prometheus sees an increase only of what was there
before.
"""
WAITING_COMMITS = 10_000
"""Commits whose push is waited for; none comes for a pool that no lookup follows."""


class JournalTimes:
    """How long a journal takes, by kind of call."""

    def __init__(self) -> None:
        self.by_operation: dict[str, Histogram] = {}
        self._slowest = 0.0

    def observe(self, action: object, seconds: float) -> None:
        """Count how long an action took."""
        name = type(action).__name__.lower()
        self.by_operation.setdefault(name, Histogram()).observe(seconds)
        self._slowest = max(self._slowest, seconds)

    def take_slowest(self) -> float:
        """The longest that an action took since this was asked last, in seconds."""
        slowest, self._slowest = self._slowest, 0.0
        return slowest


class PushTimes:
    """The time from the commit of a change until the sockets of the lookups that follow it have it.

    If several pools change within the same milliseconds, the first push stands for all.
    """

    def __init__(self, clock: Callable[[], Instant]) -> None:
        self.histogram = Histogram()
        self._clock = clock
        self._committed: deque[tuple[int, Instant]] = deque(maxlen=WAITING_COMMITS)

    def committed(self, event: object) -> None:
        """The journal answered; perhaps that records are durable."""
        if isinstance(event, Appended) and isinstance(event.result, Committed):
            self._committed.append((event.result.lsn, self._clock()))

    def pushed(self, message: FromManager) -> None:
        """A message was given to the sockets of all that it is for."""
        if not isinstance(message, Changes):
            return
        now = self._clock()
        while self._committed and self._committed[0][0] <= message.lsn:
            _, at = self._committed.popleft()
            self.histogram.observe(in_seconds(now - at))


class ManagerMetrics:
    """Counts what passes, and combines it with values that are known anyway."""

    def __init__(self, clock: Callable[[], Instant]) -> None:
        self.journal = JournalTimes()
        self.pushes = PushTimes(clock)
        self._received: Counter[str] = Counter()
        self._synced: dict[Connection, int | None] = {}
        """Up to which LSN the lookup on a connection said that it is; None of one that has just
        come and knows nothing: its first answer is the whole table.
        """

    def received(self, connection: Connection, message: ToManager) -> None:
        """A client sent a valid message."""
        self._received[type(message).__name__] += 1
        if isinstance(message, Sync):
            has_just_come = connection not in self._synced and not message.lsn
            self._synced[connection] = None if has_just_come else message.lsn

    def gone(self, connection: Connection) -> None:
        """A client is gone."""
        self._synced.pop(connection, None)

    @property
    def lookups(self) -> int:
        """How many lookups are connected."""
        return len(self._synced)

    def lookup_lag(self, lsn: int) -> int:
        """How many records the one furthest behind had not seen when it last asked."""
        known = (seen for seen in self._synced.values() if seen is not None)
        return max((max(lsn - seen, 0) for seen in known), default=0)

    def families(
        self,
        view: ManagerView,
        observer: Observer,
        peers: Peers,
        pools: tuple[Owners, ...],
        clusters: tuple[ReadCluster, ...],
    ) -> Iterator[MetricFamily]:
        """All, now. Pools and clusters are those of a leader; a standby knows none."""
        yield counter(
            "tenure_events",
            "Events, under the names that the log uses.",
            "event",
            {**NOTHING_YET, **observer.counters},
        )
        yield counter(
            "tenure_messages_received",
            "Messages from clients; a LeaseRequest or a ShortRequest is a renewal.",
            "message",
            self._received,
        )
        yield gauge("tenure_leading", "1 if this manager leads.", view.leads)
        yield gauge(
            "tenure_leadership_proven",
            "1 if it leads, and no other manager can have taken over by waiting.",
            view.is_proven,
        )
        yield gauge("tenure_leadership", "The number of the leadership.", view.leadership)
        yield gauge("tenure_lsn", "Up to which position the journal is written.", view.lsn)
        yield gauge(
            "tenure_grants_in_seconds",
            "How long until ranges can be granted.",
            in_seconds(view.grants_in_ns),
        )
        yield gauge(
            "tenure_rivals",
            "Living leaders of other journals: nothing is granted until an operator decides.",
            len(view.rivals.rivals),
        )
        versions = ((str(v), n) for v, n in sorted(peers.versions().items()))
        yield gauges(
            "tenure_connections",
            "Clients that are connected, by the version of the protocol.",
            (({"protocol": version}, count) for version, count in versions),
        )
        yield gauge(
            "tenure_lookup_lag_records",
            "How many records the lookup that is furthest behind had not seen when it last asked.",
            self.lookup_lag(view.lsn),
        )
        yield MetricFamily(
            "tenure_journal_seconds",
            "How long the journal took, by what it was asked.",
            "histogram",
            tuple(
                Sample(times, {"operation": name})
                for name, times in sorted(self.journal.by_operation.items())
            ),
        )
        yield MetricFamily(
            "tenure_push_seconds",
            "From the commit of a change until it was sent to the lookups of its pool.",
            "histogram",
            (Sample(self.pushes.histogram),),
        )
        yield from _of_pools(pools)
        yield from tier_families(pools, clusters)


def _of_pools(pools: tuple[Owners, ...]) -> Iterator[MetricFamily]:
    each = [({"pool": pool.pool, "owner": o.name}, o) for pool in pools for o in pool.owners]
    yield gauges(
        "tenure_owners",
        "Owners of a pool.",
        (({"pool": pool.pool}, len(pool.owners)) for pool in pools),
    )
    yield gauges(
        "tenure_owner_ranges", "Ranges that an owner has.", ((of, o.ranges) for of, o in each)
    )
    yield gauges(
        "tenure_owner_share",
        "The owner's share of the key space.",
        ((of, o.share) for of, o in each),
    )
    yield gauges(
        "tenure_owner_load",
        "Requests that an owner gets, per second.",
        ((of, o.load) for of, o in each),
    )
    yield gauges(
        "tenure_owner_recalled_ranges",
        "Ranges that an owner must give back.",
        ((of, o.recalled_ranges) for of, o in each),
    )
    yield gauges(
        "tenure_pool_imbalance",
        "The load of the busiest owner, divided by the mean; both by capacity.",
        (({"pool": pool.pool}, _imbalance(pool)) for pool in pools),
    )


def _imbalance(pool: Owners) -> float:
    loads = [each.load / each.capacity for each in pool.owners]
    return max(loads) * len(loads) / sum(loads) if sum(loads) > 0 else 1.0
