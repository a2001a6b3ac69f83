"""Damage: a disk loses entries that perhaps nobody reads, and its node finds that by itself (R35).

Each node reads all that it has again and again, with the scrub that real nodes run. Whoever meets
what is damaged tells the manager, leaves when it may, and comes back as another node, which gets
the rows again from the others. It must find the damage soon, since nobody can say how long the
others have theirs, and when all is healed, no disk may be damaged.

One disk is damaged at a time, as one is lost at a time: of two copies of three, nothing would be
left to heal from. What is damaged is drawn apart from all else, so that a world without it is as it
was before there was any.
"""

from random import Random
from typing import Final

from lab.worlds.columns.processes import NodeProcess
from lab.worlds.columns.strikes import RingSite
from tenure.base.instants import seconds
from tenure.columns.spaces import space
from tenure.sim.kernel.checkers import Violation

DAMAGING: Final = 0.15
"""The share of worlds with damage."""
APART_NS: Final = seconds(30)
"""The time between two damages, on average."""
PART: Final = 0.2
"""The part of a node's entries that half of the damages take: those of a block are lost together.
The others take one entry, which perhaps nobody reads.
"""

LOOK_NS: Final = seconds(15)
LOOKS: Final = 3
"""A node that goes on at so many looks, one after the other, has read all of its disk meanwhile."""


class DamagedDisks:
    """The damage of one simulated cluster."""

    def __init__(self, site: RingSite, seed: int, *, may_be: bool) -> None:
        self._site = site
        self._random = Random(f"damage of {seed}")
        self._is_over = False
        self.is_on = self._random.random() < DAMAGING and may_be
        if self.is_on:
            self._go_on()

    def end(self) -> None:
        """Let nothing more be damaged, after the last time."""
        if self.is_on:
            self._damage_one()
        self._is_over = True

    def _go_on(self) -> None:
        self._site.at(self._site.now + self._random.randrange(2 * APART_NS), self._strike, None)

    def _strike(self, _: object) -> None:
        if not self._is_over:
            self._damage_one()
            self._go_on()

    def _damage_one(self) -> None:
        members = list(self._site.members())
        if members and self._site.topology.change is None and not self._site.is_disk_missing:
            self._damage(self._random.choice(members))

    def _damage(self, node: NodeProcess) -> None:
        entries = [
            (name, key)
            for table, record in sorted(self._site.topology.tables.items())
            for name in (space(table, family) for family in sorted(record.families))
            for key, _ in node.disk.engine.cursor(name).walk(b"", None)
        ]
        if entries:
            count = self._random.choice((1, max(1, int(PART * len(entries)))))
            begin = self._random.randrange(len(entries))
            node.disk.engine.damaged.update(entries[begin : begin + count])
            self._site.tell(node.slot, "disk damaged", count)
            self._site.at(self._site.now + LOOK_NS, self._look, (node, 1))

    def _look(self, watched: tuple[NodeProcess, int]) -> None:
        """Look whether a node has found out. A life that ends is watched no longer."""
        node, looks = watched
        if not node.alive or node.damage or not node.disk.engine.damaged:
            return
        if looks == LOOKS:
            lost = sorted(node.disk.engine.damaged)
            raise Violation(
                "R35: a node does not find what its disk has lost", f"{node.slot}: {lost}"
            )
        looks = looks + 1 if node.is_part and not node.is_frozen else 0
        self._site.at(self._site.now + LOOK_NS, self._look, (node, looks))
