"""The checker of topologies: changes are made one after the other, and no node invents one (D8).

Each node acts by a topology that the managers' journal has, and never by an earlier one than it
acted by before. Each topology asserts its own invariants, once: it never changes.
"""

from collections import Counter
from collections.abc import Sequence

from lab.worlds.columns.processes import NodeProcess
from tenure.protocol.topology.history import AnyClusterRecord, TopologySet
from tenure.protocol.topology.records import NodeId, Topology
from tenure.sim.kernel.checkers import Violation


class TopologyChecker:
    """Checks the promises that the module describes."""

    def __init__(self, journal: Sequence[AnyClusterRecord]) -> None:
        self._journal = journal
        self._read = 0
        """How many records of the journal are among the decided topologies."""
        self._decided: list[Topology] = []
        self._seen: dict[NodeId, Topology] = {}
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
        self._follow()
        # Most nodes act by one of the latest.
        if topology not in reversed(self._decided):
            raise Violation("D8: a node acts by a topology that nobody decided", told)
        if topology.version not in self._checked:
            self._checked.add(topology.version)
            topology.invariants()

    def _follow(self) -> None:
        """Read what was decided since the last step."""
        for record in self._journal[self._read :]:
            self._read += 1
            if isinstance(record, TopologySet):
                if self._decided:
                    self._count(self._decided[-1], record.topology)
                self._decided.append(record.topology)

    def _count(self, before: Topology, after: Topology) -> None:
        """Count the outcome of a change, to show that each of them occurred."""
        was, now = before.change, after.change
        if was is None and now is not None:
            self.counts[f"changes begun: {now.kind}"] += 1
        elif was is not None and now is None:
            has_old = all(after.at(each.range.start).old == each.old for each in before.each())
            what = "taken back" if has_old else f"done: {was.kind}"
            self.counts[f"changes {what}"] += 1
