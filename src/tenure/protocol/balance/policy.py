"""The interface of a policy: from the situation of a pool to the plan for it.

A policy is a stateless function, so that a new leader plans as the old one did, and so that a test
is a table. It may look at which owner has what now, in order to move little. It never sees leases,
clocks or messages. This is the papers' pluggable module (PRS 4.1, Centrifuge 2.1.2).

Some policies need to know what they did a moment ago: which moves they have planned that the table
does not show yet, and how much churn they have left. They return that with the plan, as its memory,
and find it in the next situation. Only the policy reads its memory, nobody writes it down, and a
new leader begins without one.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key, PoolKind
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange, lower_end
from tenure.protocol.balance.load import Loads
from tenure.protocol.lease.table import Right

NOBODY = 0
NOTHING: Mapping[str, str] = MappingProxyType({})


class Candidate(NamedTuple):
    """A member that may be given ranges."""

    incarnation: int
    name: str
    capacity: float = 1.0
    labels: Mapping[str, str] = NOTHING
    cordoned: bool = False
    """Whether the owner keeps what it has, and is given nothing new except what is pinned to it."""
    hands_over: bool = False
    """Whether the owner gives and takes ranges with their state, which then stays as old as it was.
    """


class Pin(NamedTuple):
    """A key that an operator wants at the owner of that name, while the owner is a candidate."""

    key: Key
    name: str


class Situation(NamedTuple):
    """Everything that a policy may look at."""

    candidates: Sequence[Candidate]
    present: RangeMap[Right]
    now: Instant = Instant(0)
    loads: Loads | None = None
    pins: Sequence[Pin] = ()
    frozen: bool = False
    """Whether nothing is balanced: only ranges without an owner are given one, and pins are obeyed.
    """
    memory: object = None
    """The memory in the policy's last plan. The memory of another policy counts as none."""
    leavers: Sequence[Candidate] = ()
    """Members that may no longer have anything. They give a plan its reasons, and their zones say
    who should have their ranges.
    """
    kind: PoolKind = "hashed"
    split_points: Sequence[Key] = ()
    """Of an ordered pool: the keys with which it was created."""
    levels: Mapping[str, Loads] = MappingProxyType({})
    """What keys take up by other metrics than requests, by the metric's name."""


class Why(NamedTuple):
    """The phase of a policy that decided on a move, and its reason in words."""

    phase: str
    reason: str


class HeldBack(NamedTuple):
    """A move that the policy wanted, and the reason why it was not made."""

    what: str
    why: str


class Plan(NamedTuple):
    """The owner that each range should have, and why."""

    owners: RangeMap[int]
    """The incarnation that should have each range. NOBODY everywhere if there are no candidates;
    NOBODY for ranges without an owner if all candidates are cordoned.
    """
    why: RangeMap[Why | None]
    """The reason for each range that is not where it should be. None if the policy never moved it.
    """
    held_back: Sequence[HeldBack] = ()
    memory: object = None
    again_at: Instant = FAR_FUTURE
    """The time at which to ask the policy again although nothing else has happened; later than now.
    """


def nothing_to_plan() -> Plan:
    """The plan without candidates."""
    return Plan(RangeMap(NOBODY), RangeMap(None))


def open_to_more(situation: Situation) -> list[Candidate]:
    """The candidates that may be given something."""
    return [candidate for candidate in situation.candidates if not candidate.cordoned]


class Policy(Protocol):
    """A function that decides which incarnation should have each range."""

    def __call__(self, situation: Situation) -> Plan:
        """Plan for the situation: the same plan for the same situation, wherever it runs."""
        ...


def follows_load(policy: Policy) -> bool:
    """Whether to ask the policy again and again while there is load: all that do not say
    otherwise.
    """
    return bool(getattr(policy, "follows_load", True))


class PolicyFailed(Exception):
    """A policy gives no plan, for a reason that is said in whole sentences."""


def is_outside(policy: Policy) -> bool:
    """Whether the policy runs in a process of its own, which holds up no other policy: all that do
    not say so run in the leader's.
    """
    return bool(getattr(policy, "is_outside", False))


def after_failure(policy: Policy, memory: object) -> object:
    """What the policy finds of its memory after it has failed: nothing, if it does not say
    otherwise, because its memory may be what it failed at.
    """
    kept = getattr(policy, "after_failure", None)
    return None if kept is None else kept(memory)


ENOUGH = 10
"""How often a policy is asked again while nothing else happens: none wants it as often."""


def in_time(policy: Policy, situation: Situation, first: Plan | None = None) -> Plan:
    """The plan after the policy has been asked again as often as it wants to be.

    It begins with the plan `first`, if that is known already.
    """
    plan = policy(situation) if first is None else first
    for _ in range(ENOUGH):
        if plan.again_at == FAR_FUTURE:
            break
        plan = policy(situation._replace(now=plan.again_at, memory=plan.memory))
    return plan


class PlannedMove(NamedTuple):
    """A range that should go from one incarnation to another."""

    range: KeyRange
    giver: int
    taker: int
    why: Why | None


def changes(present: RangeMap[Right], plan: Plan) -> Iterator[PlannedMove]:
    """The differences between the table and the plan, in the order of keys.

    Mostly there are next to none. So the two are traversed side by side, and a range is made only
    where they differ.
    """
    starts: list[Key | None] = [*present.starts(), None]
    ends: list[Key | None] = [*plan.owners.starts()[1:], None]
    takers = plan.owners.values()
    j = 0
    for i, right in enumerate(present.values()):
        start, end = starts[i], starts[i + 1]
        assert start is not None
        while True:
            until = ends[j]
            if takers[j] != right.owner:
                for part, why in plan.why.within(KeyRange(start, lower_end(until, end))):
                    yield PlannedMove(part, right.owner, takers[j], why)
            if until is None or (end is not None and end < until):
                break
            j += 1
            if until == end:
                break
            start = until


def obeying(situation: Situation, owners: RangeMap[int]) -> RangeMap[int]:
    """`owners`, except for ranges that are frozen, pinned, or at a cordoned owner.

    It serves policies that only compute a map of the candidates that are open to more.
    """
    there = {candidate.name: candidate.incarnation for candidate in situation.candidates}
    stays = {each.incarnation for each in situation.candidates if situation.frozen or each.cordoned}
    obedient = owners
    if stays:
        obedient = owners.copy()
        for key_range, right in situation.present:
            if right.owner in stays:
                obedient.assign(key_range, right.owner)
    if situation.pins:
        obedient = obedient.copy()
        for key, name in situation.pins:
            if name in there:
                obedient.assign(only(key), there[name])
    return obedient


def forbidden(situation: Situation) -> list[HeldBack]:
    """The moves that the operator's commands forbid and a policy would make otherwise: balancing a
    frozen pool, and pinning a key to an owner that is not there.
    """
    there = {candidate.name for candidate in situation.candidates}
    astray = [pin for pin in situation.pins if pin.name not in there]
    return [
        *([HeldBack("balance", "the pool is frozen")] if situation.frozen else []),
        *(
            HeldBack(f"the pin of {key!r} to {name}", "no candidate has that name")
            for key, name in astray
        ),
    ]


def only(key: Key) -> KeyRange:
    """The range of that one key."""
    return KeyRange(key, key + b"\0")
