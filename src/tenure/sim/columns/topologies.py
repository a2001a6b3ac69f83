"""The checker of topologies: changes are made one after the other, and no node invents one (D8).

Each node acts by a topology that the managers' journal has, and never by an earlier one than it
acted by before. Each topology asserts its own invariants, once: it never changes.
"""

from collections import Counter
from collections.abc import Sequence

from tenure.protocol.topology.history import AnyClusterRecord, TopologySet
from tenure.protocol.topology.records import NodeId, Topology
from tenure.sim.columns.processes import NodeProcess
from tenure.sim.kernel.checkers import Violation


class TopologyChecker:
    """Checks the promises that the module describes."""

    def __init__(self, journal: Sequence[AnyClusterRecord]) -> None:
        self._journal = journal
        self._seen: dict[NodeId, Topology] = {}
        self._counted = 1
        self._checked: set[int] = set()
        self.counts: Counter[str] = Counter()

    def on_step(self, process: NodeProcess) -> None:
        """A node has taken an event."""
        topology, node = process.machine.context.topology, process.disk.node
        before = self._seen.get(node)
        if topology is before or not process.is_part:
            return
        self._seen[node] = topology
        told = f"{process.slot} acts by version {topology.version}"
        if before is not None and topology.version < before.version:
            raise Violation(
                "D8: a node acts by an earlier topology", f"{told} after {before.version}"
            )
        if topology not in (each.topology for each in self._topologies()):
            raise Violation("D8: a node acts by a topology that nobody decided", told)
        if topology.version not in self._checked:
            self._checked.add(topology.version)
            topology.invariants()
        self._count()

    def _topologies(self) -> list[TopologySet]:
        return [each for each in self._journal if isinstance(each, TopologySet)]

    def _count(self) -> None:
        """Count the outcomes of changes, to show that each of them occurred."""
        decided = self._topologies()
        while self._counted < len(decided):
            before = decided[self._counted - 1].topology
            after = decided[self._counted].topology
            self._counted += 1
            was, now = before.change, after.change
            if was is None and now is not None:
                self.counts[f"changes begun: {now.kind}"] += 1
            elif was is not None and now is None:
                has_old = all(after.at(each.range.start).old == each.old for each in before.each())
                what = "taken back" if has_old else f"done: {was.kind}"
                self.counts[f"changes {what}"] += 1
