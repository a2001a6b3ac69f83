"""A small world with two masters: two managers, each on a journal of its own, and two owners (P25).

The world says who knows of whom: which managers each owner lists, and whether the managers name
each other. Both grant the key before a story begins, or only the first does.
"""

from typing import Any

import msgspec

from lab.search.exhaustive import MOST_STATES, Found, search
from lab.search.memo import Dice
from lab.worlds.lease.small import (
    MANAGERS,
    OWNERS,
    POOL,
    Limits,
    Records,
    SmallPool,
    nothing_at_commit,
    policy_of,
)
from lab.worlds.lease.small_judge import SeenLease, SmallJudge
from lab.worlds.rivals.seen import as_seen
from tenure.protocol.lease.leader import events as manager_events
from tenure.protocol.lease.leader.context import PLANS_AT_ONCE
from tenure.protocol.lease.leader.manager import Manager, ManagerConfig
from tenure.protocol.lease.owner import events as owner_events
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.sim.journal import waited_out
from tenure.sim.kernel.checkers import Violation


class Masters(msgspec.Struct, frozen=True):
    """Who knows of whom."""

    lists: tuple[str, str] = ("0", "1")
    """The managers that each owner lists, by number."""
    named: bool = True
    """Whether the managers name each other."""
    both: bool = False
    """Whether both have granted the key to their owners before they can reach each other."""
    alone: int = 0
    """For how many ticks each goes on like this before the story begins."""
    bound: int = 0
    """After how many ticks of the story the key has one owner at most."""


class TwoMasters(SmallPool):
    """One story of that world."""

    def __init__(self, masters: Masters, limits: Limits) -> None:
        super().__init__(limits)
        self.masters = masters
        self.most_ticks = limits.ticks
        self.judged_from = 0
        self.is_apart = True
        """Whether managers cannot reach each other yet."""

    def begin(self) -> None:
        """Let one master lead and grant, or both; then they can reach each other."""
        self.journals = tuple(
            self.memory.number(waited_out(Dice(7 + slot), nothing_at_commit)) for slot in MANAGERS
        )
        self.judge = SmallJudge((SeenLease(),) * len(OWNERS))
        self.is_apart, self.judged_from = True, 1 << 60
        count = len(MANAGERS) if self.masters.both else 1
        for manager, owner in list(zip(MANAGERS, OWNERS, strict=True))[:count]:
            self.start(manager)
            self.start(owner)
            while not self.believes(owner):
                self.go_on()
        begun = self.tick
        while self.tick < begun + self.masters.alone:
            self.go_on()
        self.is_apart = False
        self.judged_from = self.tick + self.masters.bound
        self.ticks = self.tick + self.most_ticks
        for manager in MANAGERS[count:]:
            self.start(manager)

    def opened_by(self, slot: int) -> int:
        """See `SmallPool.opened_by`: each has its own."""
        return MANAGERS.index(slot)

    def may_start(self, slot: int) -> bool:
        """Whether a process may start."""
        return slot in (*MANAGERS, *OWNERS)

    def make(self, slot: int, uid: int) -> Any:
        dice = Dice(1_000 * uid)
        if slot in MANAGERS:
            config = ManagerConfig(
                url=self.slots[slot],
                timing=self.timing,
                plans_at_once=PLANS_AT_ONCE,
                others=self.masters.named,
            )
            return Manager(config, dice, policy_of)
        at = OWNERS.index(slot)
        managers = tuple(self.slots[int(each)] for each in self.masters.lists[at])
        name, address = self.names[at], self.slots[slot]
        owner = owner_events.OwnerConfig(managers=managers, pool=POOL, name=name, address=address)
        return OwnerMachine(owner, dice)

    def act(self, slot: int, action: Any) -> None:
        match action:
            case manager_events.LookAround(asked_at=asked_at):
                seen = [self._view_of(each) for each in MANAGERS if each != slot]
                answers = tuple(each for each in seen if each is not None)
                self.tell(lambda: f"{self.slots[slot]} looks around, and {len(answers)} answer")
                self.answer(self.memory.number(manager_events.OthersSeen(asked_at, answers)))
            case _:
                super().act(slot, action)

    def _view_of(self, slot: int) -> manager_events.OtherSeen | None:
        life = self.lives[slot]
        if self.is_apart or not self.is_there(slot) or life.frozen:
            return None
        view = self.memory.thing(life.machine).view(self.now(slot))
        return as_seen(view)

    def judge_commit(self, records: Records) -> None:
        """Two journals share no numbers: nothing is judged."""

    def publish(self, slot: int, holdings: owner_events.Holdings) -> None:
        number = next((lease.number for lease in holdings.leases), 0)
        belief = SeenLease(holdings.incarnation, number, holdings.expires_at if number else 0)
        self.judge = self.judge.with_belief(slot - OWNERS[0], belief)

    def check(self) -> None:
        """S1, from the tick on at which P25 promises it."""
        if self.tick >= self.judged_from and all(map(self.believes, OWNERS)):
            raise Violation("S1: two owners", f"at tick {self.tick}")


def search_masters(masters: Masters, limits: Limits, most_states: int = MOST_STATES) -> Found:
    """Look at every story of these masters within `limits`."""
    return search(TwoMasters(masters, limits), most_states)


def in_short(masters: Masters) -> str:
    """Name a world by who knows of whom."""
    knows = "managers know each other" if masters.named else "managers know nobody"
    return f"owners know {', '.join(masters.lists)}; {knows}"
