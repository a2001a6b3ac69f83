"""Filling: how a node gets what a change of the ring gives it (R15, R17).

In the first step of a change it is wiped and copied, see `copying`; in the second it catches up
with what was written meanwhile, see `catching_up`. When it has completed a step, durably, it names
the version with which the step began, and the managers go on.

A node that comes back goes on where it was: its disk has the copied rows, and how far the copy has
come. In the second step it takes part in requests, so nothing is wiped there any longer. If its
disk knows nothing of the first step, it has lost what others count on, and never completes the
step: the change must be taken back.
"""

from functools import partial

from tenure.protocol.replication.conversation import Conversing
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.node_events import StepThrough
from tenure.protocol.replication.upkeep.catching_up import CatchingUp
from tenure.protocol.replication.upkeep.copying import Copying
from tenure.protocol.replication.upkeep.errand import Errand, Part, errand
from tenure.protocol.topology.records import Topology


class Filler:
    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self.through = 0
        """The version with which the step began that it is through with."""
        self.seen: Topology | None = None
        self._version = 0
        """The version with which the step began that is under way; 0 if none is."""
        self._work: Errand | None = None

    def look(self) -> None:
        """Do what the topology wants that counts now."""
        topology = self._context.topology
        if topology is self.seen:
            return
        self.seen = topology
        change = topology.change
        gained = topology.gaining().get(self._context.node, [])
        version = (change.joint or change.began) if change and gained else 0
        if version == self._version:  # the same step goes on, under another topology
            return
        if self._work is not None:  # the step is over, or was taken back
            self._work.end()
        self._version, self._work = version, None
        if change is None or version in (0, self.through):
            return
        if change.phase == "filling":
            copying = Copying(self._context, version, gained)
            self._work = errand(self._context, partial(self._fill, version, copying.run))
        elif self._context.filling.began == change.began:  # otherwise the disk forgot what it has
            catching_up = CatchingUp(self._context, gained)
            self._work = errand(self._context, partial(self._fill, version, catching_up.run))

    def _fill(self, version: int, step: Part, talk: Errand) -> Conversing[None]:
        yield from step(talk)
        assert version == self._version, "what was taken back is never completed"
        self.through = version
        self._context.actions.append(StepThrough(version))

    @property
    def copied(self) -> int:
        """Bytes of what was gained last."""
        return sum(part.bytes for part in self._context.filling.parts)

    @property
    def to_copy(self) -> int:
        """How many bytes that will be, as far as can be told from what is done of it."""
        parts = self._context.filling.parts
        done = sum(part.is_done for part in parts)
        return self.copied * len(parts) // done if done else self.copied
