"""An operator who steers the pool at random, and takes all of it back when the world heals.

Commands go to a manager as they do over the JSON API. One that does not lead, or is deposed before
its record is committed, does nothing, and the operator does not ask again until the world heals.
That a process is dead is said only of one that is: the operator looked.
"""

from collections.abc import Iterator

from tenure.protocol.lease.leader.events import QuestionAsked
from tenure.protocol.lease.leader.policies import POLICIES
from tenure.protocol.lease.records import MemberRecord
from tenure.protocol.lease.steering_events import (
    ChoosePolicy,
    Cordon,
    Drain,
    Evict,
    Freeze,
    PinKey,
    SteeringCommand,
    Uncordon,
    Unfreeze,
    UnpinKey,
)
from tenure.protocol.lease.table import LeaseTable
from tenure.sim.lease.processes import LeaseSite


class Operator:
    """Steers the world's pool."""

    def __init__(self, site: LeaseSite) -> None:
        self.site = site
        self._tickets = 0

    def steer(self) -> None:
        """Do something."""
        table = self._table()
        if table is None or not table.members:
            return
        random, pool = self.site.random, table.pool
        members = [table.members[incarnation] for incarnation in sorted(table.members)]
        member = random.choice(members)
        key = random.choice(self.site.workload.keys)
        dead = [each for each in members if self.is_dead(each)]
        commands: list[SteeringCommand] = [
            Drain(pool=pool, owner=member.name),
            Cordon(pool=pool, owner=member.name),
            Uncordon(pool=pool, owner=member.name),
            PinKey(pool=pool, key=key, owner=member.name),
            UnpinKey(pool=pool, key=key),
            Freeze(pool=pool),
            Unfreeze(pool=pool),
            Evict(pool=pool, incarnation=member.incarnation),
            ChoosePolicy(pool=pool, policy=random.choice(list(POLICIES[table.kind]))),
        ]
        if dead:
            evicted = random.choice(dead).incarnation
            commands.append(Evict(pool=pool, incarnation=evicted, confirmed_dead=True))
        self._say(random.choice(commands))

    def prod(self) -> None:
        """Let the leader write: one that leads since before its journal went back notices then."""
        self._say(Freeze(pool=self.site.pool))

    def let_go(self) -> None:
        """Take back all that still holds."""
        table = self._table()
        if table is not None:
            for command in self._taking_back(table):
                self._say(command)

    def still_steers(self) -> str | None:
        """What is not taken back yet, as the journal has it."""
        table = self.site.checkers.committed.tables.get(self.site.pool)
        holding = [] if table is None else list(self._taking_back(table))
        return f"steered still: {holding}" if holding else None

    @staticmethod
    def _taking_back(table: LeaseTable) -> Iterator[SteeringCommand]:
        steering, pool = table.steering, table.pool
        for owner in sorted({*steering.cordoned, *steering.drained}):
            yield Uncordon(pool=pool, owner=owner)
        for key, _ in steering.pins:
            yield UnpinKey(pool=pool, key=key)
        if steering.frozen:
            yield Unfreeze(pool=pool)

    def is_dead(self, member: MemberRecord) -> bool:
        """Whether that very process is gone: the address is of one process only."""
        process = self.site.owner_at(member.address)
        return process is None or not process.alive

    def _table(self) -> LeaseTable | None:
        """What the last manager that leads, or believes to, knows of the pool."""
        leaders = [each.machine.leader for each in self.site.managers() if each.alive]
        tables = [
            (leader.context.seal.leadership, leader.pools[self.site.pool].table)
            for leader in leaders
            if leader is not None and self.site.pool in leader.pools
        ]
        return max(tables, key=lambda each: each[0])[1] if tables else None

    def _say(self, command: SteeringCommand) -> None:
        """To all managers: it is the leader that takes it."""
        self._tickets += 1
        self.site.tell("operator", "says", command)
        for manager in self.site.managers():
            manager.post(QuestionAsked(self._tickets, command))
