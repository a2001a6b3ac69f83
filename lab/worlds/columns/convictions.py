"""A failure detector for a simulated world, which is often wrong about who is up.

It sees which nodes could hear each other, as no real detector can, so that a world spends its time
on the store. Gossip has a world of its own (`lab/worlds/gossip`), with the real one.
"""

from lab.worlds.columns.processes import NodeProcess
from lab.worlds.columns.strikes import WRONGLY_CONVICTED, RingSite
from tenure.base.instants import seconds
from tenure.protocol.replication.node_events import Convicted
from tenure.protocol.topology.records import NodeId

LOOKED_APART_NS = seconds(4)
CONVICTED_AFTER_NS = seconds(8)


class Convictions:
    """Tells each node which others it does not hear."""

    def __init__(self, site: RingSite) -> None:
        self._site = site
        self._nodes: dict[str, NodeProcess] = {}
        self._silent_since: dict[tuple[str, str], int] = {}
        """The time since when each node is silent for each other node."""
        self._convicted: dict[str, list[str]] = {}
        """The nodes that each node has not heard for long enough, by their slots."""
        self._told: dict[int, tuple[NodeId, ...]] = {}
        """The nodes that each process was told last."""
        site.at(site.now + LOOKED_APART_NS, self._look, None)

    def begin(self, process: NodeProcess) -> None:
        """A node has begun to take part."""
        self._listen()
        self._tell(process, self._lost())

    def _look(self, _: object) -> None:
        self._listen()
        lost = self._lost()
        for process in self._nodes.values():
            if process.alive and process.is_part:
                self._tell(process, lost)
        self._site.at(self._site.now + LOOKED_APART_NS, self._look, None)

    def _listen(self) -> None:
        """Find out who is silent for whom: few are, so the others are not looked at."""
        self._nodes = nodes = {node.slot: node for node in self._site.nodes()}
        silent = [slot for slot, node in nodes.items() if not node.alive or node.is_frozen]
        pairs = [(slot, by) for slot in silent for by in nodes if by != slot]
        for pair in self._site.network.cuts:
            slot, by = pair
            if slot in nodes and by in nodes:
                pairs.append(pair)
        before, now = self._silent_since, self._site.now
        self._silent_since = since = dict.fromkeys(pairs, now)
        self._convicted = {}
        for pair in since:
            if pair not in before:
                continue
            at = since[pair] = before[pair]
            if now - at >= CONVICTED_AFTER_NS:
                self._convicted.setdefault(pair[1], []).append(pair[0])

    def _tell(self, process: NodeProcess, lost: set[NodeId]) -> None:
        down = self._down_for(process, lost)
        if down != self._told.get(process.uid):
            self._told[process.uid] = down
            process.post(Convicted(down))

    def _lost(self) -> set[NodeId]:
        lost = self._site.lost()
        return {lost.id} if lost else set()

    def _down_for(self, process: NodeProcess, lost: set[NodeId]) -> tuple[NodeId, ...]:
        slot, since, nodes = process.slot, self._silent_since, self._nodes
        silent = self._convicted.get(slot, [])
        heard = [one for one in nodes if one != slot and (one, slot) not in since]
        wrongly = self._site.faults.struck(WRONGLY_CONVICTED, heard)
        down = {nodes[each].disk.node for each in (*silent, *wrongly)}
        return tuple(sorted(down | process.refused | lost))
