"""A failure detector for a simulated world, which is often wrong about who is up.

It sees which nodes could hear each other, as no real detector can, so that a world spends its time
on the store. Gossip has a world of its own (`sim/gossip`), with the real one.
"""

from tenure.base.instants import seconds
from tenure.protocol.replication.node_events import Convicted
from tenure.protocol.topology.records import NodeId
from tenure.sim.columns.processes import NodeProcess
from tenure.sim.columns.strikes import WRONGLY_CONVICTED, RingSite

LOOKED_APART_NS = seconds(4)
CONVICTED_AFTER_NS = seconds(8)


class Convictions:
    """Tells each node which others it does not hear."""

    def __init__(self, site: RingSite) -> None:
        self._site = site
        self._silent_since: dict[tuple[str, str], int] = {}
        """The time since when each node is silent for each other node."""
        self._told: dict[int, tuple[NodeId, ...]] = {}
        """The nodes that each process was told last."""
        site.at(site.now + LOOKED_APART_NS, self._look, None)

    def begin(self, process: NodeProcess) -> None:
        """A node has begun to take part."""
        self._told[process.uid] = down = self._down_for(process, self._site.nodes(), self._lost())
        process.post(Convicted(down))

    def _look(self, _: object) -> None:
        nodes, lost = self._site.nodes(), self._lost()
        for process in nodes:
            if not process.alive or not process.is_part:
                continue
            down = self._down_for(process, nodes, lost)
            if down != self._told[process.uid]:
                self._told[process.uid] = down
                process.post(Convicted(down))
        self._site.at(self._site.now + LOOKED_APART_NS, self._look, None)

    def _lost(self) -> set[NodeId]:
        lost = self._site.lost()
        return {lost.id} if lost else set()

    def _down_for(
        self, process: NodeProcess, nodes: list[NodeProcess], lost: set[NodeId]
    ) -> tuple[NodeId, ...]:
        others = (other for other in nodes if other is not process)
        silent = {other.disk.node for other in others if self._convicts(process, other)}
        return tuple(sorted(silent | process.refused | lost))

    def _convicts(self, process: NodeProcess, other: NodeProcess) -> bool:
        pair = other.slot, process.slot
        if other.alive and not other.is_frozen and pair not in self._site.network.cuts:
            self._silent_since.pop(pair, None)
            return self._site.faults.strikes(WRONGLY_CONVICTED)
        now = self._site.now
        return now - self._silent_since.setdefault(pair, now) >= CONVICTED_AFTER_NS
