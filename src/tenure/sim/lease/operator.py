"""An operator who steers the pools at random, and takes all of it back when the world heals.

Commands go to a manager as they do over the JSON API. A manager that does not lead, or is deposed
before its record is committed, does nothing, and the operator does not ask again until the world
heals. The operator declares only dead processes dead: it has looked.

If there are several pools, the operator deletes some, once their owners have been told to leave;
the operator, or the first owner that comes back, makes them again.
"""

from collections.abc import Iterator
from operator import itemgetter

from tenure.protocol.lease.leader.events import CreatePool, DeletePool, Question, QuestionAsked
from tenure.protocol.lease.leader.policies import POLICIES
from tenure.protocol.lease.owner.events import CloseRequested
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

DELETES = 0.3
"""The part of all commands that are to delete a pool, if there are several pools."""
TRIES_TO_DELETE = 8
"""How often the operator asks. It is refused as long as an owner is there, or may still believe
that it is.
"""


class Operator:
    """Steers the world's pools."""

    def __init__(self, site: LeaseSite) -> None:
        self.site = site
        self._tickets = 0

    def steer(self) -> None:
        """Give a command at random."""
        random, pools = self.site.random, self.site.pools
        pool = random.choice(pools) if len(pools) > 1 else pools[0]
        if len(pools) > 1 and random.random() < DELETES:
            self._empty(pool)
            return
        table = self._table(pool)
        if table is None or not table.members:
            return
        members = [table.members[incarnation] for incarnation in sorted(table.members)]
        member = random.choice(members)
        key = random.choice(self.site.watched_keys)
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

    def _empty(self, pool: str) -> None:
        """Tell all owners of a pool to leave, and delete the pool when they have left."""
        site = self.site
        self._delete((pool, TRIES_TO_DELETE))
        for owner in site.owners():
            if owner.pool == pool and owner.alive and not owner.is_frozen:
                owner.post(CloseRequested())
                site.restart_later(owner.slot, site.faults.span(0.5, 4.0))

    def _delete(self, which: tuple[str, int]) -> None:
        pool, tries = which
        site = self.site
        if not site.faults.is_on:
            return
        self._say(DeletePool(pool))
        if tries:
            site.at(site.now + site.timing.renew_ns, self._delete, (pool, tries - 1))
        elif site.random.random() < 1 / 2:
            self._say(CreatePool(pool, site.kinds[pool]))

    def prod(self) -> None:
        """Let the leader write. A leader from before its journal went back notices then."""
        for pool in self.site.pools:
            self._say(Freeze(pool=pool))

    def let_go(self) -> None:
        """Take back every command that still holds."""
        for table in filter(None, map(self._table, self.site.pools)):
            for command in self._taking_back(table):
                self._say(command)

    def still_steers(self) -> str | None:
        """The commands that are not taken back yet, by the journal."""
        tables = self.site.checkers.committed.tables.values()
        there = (table for table in tables if not table.is_deleted)
        holding = [command for table in there for command in self._taking_back(table)]
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
        """Whether that very process is gone. No other process ever has its address."""
        process = self.site.owner_at(member.address)
        return process is None or not process.alive

    def _table(self, pool: str) -> LeaseTable | None:
        """The table of the newest manager that leads, or believes that it does."""
        views = [each.machine.view(each.now()) for each in self.site.managers() if each.alive]
        tables = [
            (view.leadership, view.history.tables[pool])
            for view in views
            if view.history is not None and pool in view.pools
        ]
        return max(tables, key=itemgetter(0))[1] if tables else None

    def _say(self, command: Question) -> None:
        """Tell all managers: only the leader acts on it."""
        self._tickets += 1
        self.site.tell("operator", "says", command)
        for manager in self.site.managers():
            manager.post(QuestionAsked(self._tickets, command))
