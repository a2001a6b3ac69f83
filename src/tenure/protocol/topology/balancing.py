"""Moving tokens automatically: one at a time, within a budget of bytes a day.

Only this leader knows how much was spent: the next one begins with the whole budget, so a cluster
whose managers fail over ten times a day may copy ten times as much.
"""

from collections import deque

from tenure.base.instants import SECOND_NS, Instant
from tenure.protocol.topology.change import ChangeRefused, WantedChange, begin, gained
from tenure.protocol.topology.cluster import LedCluster
from tenure.protocol.topology.moves import proposed_moves
from tenure.protocol.topology.records import Topology

LOOK_NS = 600 * SECOND_NS
"""How often it looks: load that comes and goes within minutes moves nothing."""
DAY_NS = 86_400 * SECOND_NS


class Balancing:
    """The balancing of one cluster, under one leadership."""

    def __init__(self, now: Instant) -> None:
        self.wake_at = Instant(now + LOOK_NS)
        self._spent: deque[tuple[Instant, int]] = deque()

    def advance(self, now: Instant, cluster: LedCluster) -> Topology | None:
        """The change to begin now, if there is one."""
        if now < self.wake_at:
            return None
        self.wake_at = Instant(now + LOOK_NS)
        topology, weights = cluster.topology, cluster.weights()
        is_idle = topology.change is None and topology.ranges and not cluster.trouble
        if not (topology.balance_bytes and is_idle):
            return None
        while self._spent and self._spent[0][0] <= now - DAY_NS:
            self._spent.popleft()
        budget = topology.balance_bytes - sum(spent for _, spent in self._spent)
        move = next(proposed_moves(topology, weights, budget), None)
        if move is None:
            return None
        wanted = WantedChange(kind="move", node=move.node, token=move.token)
        try:
            begun = begin(topology, wanted, cluster.next_version, weights.of_a_thousand)
        except ChangeRefused:
            return None
        self._spent.append((now, sum(gained(begun, weights.bytes_in).values())))
        return begun
