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

from tenure.base.instants import Instant
from tenure.protocol.replication.catching_up import CatchingUp
from tenure.protocol.replication.copying import Copying
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.node_events import StepThrough
from tenure.protocol.topology.records import Topology


class Filler:
    """See above."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self.through = 0
        """The version with which the step began that it is through with."""
        self._seen: Topology | None = None
        self._work: Copying | CatchingUp | None = None

    def look(self, now: Instant) -> None:
        """Do what the topology wants that counts now."""
        topology = self._context.topology
        if topology is self._seen:
            return
        self._seen = topology
        change = topology.change
        gained = topology.gaining().get(self._context.node, [])
        version = (change.joint or change.began) if change and gained else 0
        if self._work is not None and self._work.version == version:
            self._work.on_topology(now)
            return
        if self._work is not None:
            self._work.end()
            self._work = None
        if change is None or version in (0, self.through):
            return
        through = partial(self._on_through, version)
        if change.phase == "filling":
            self._work = Copying(self._context, version, gained, through)
        elif self._context.filling.began == change.began:
            self._work = CatchingUp(self._context, version, gained, through)
        if self._work is not None:
            self._work.begin(now)

    def _on_through(self, version: int) -> None:
        if self._work is not None and self._work.version == version:
            self._work = None
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
