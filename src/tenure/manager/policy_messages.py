"""What a manager and a process with a policy tell each other: a situation, and a plan for it.

Both are plain data, because nothing that the process says is to be run here.
"""

from collections.abc import Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, TypeVar

import msgspec

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import KEY_BYTES, Key, PoolKind
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import LOWEST
from tenure.protocol.balance.load import Loads
from tenure.protocol.balance.policy import (
    Candidate,
    HeldBack,
    Pin,
    Plan,
    PolicyFailed,
    Situation,
    Why,
)
from tenure.protocol.lease.limits import RANGES_PER_TABLE
from tenure.protocol.lease.table import Right

V = TypeVar("V")
# The manager does nothing else while it decodes, so what is longer is not even begun.
Bounded = Annotated[list[V], msgspec.Meta(max_length=RANGES_PER_TABLE)]

HELD_BACK = 100
"""The most moves that a policy may say it held back: nobody reads more."""
WORDS = 500
"""The most characters of each text from a policy."""


class AskedSituation(msgspec.Struct, frozen=True, array_like=True):
    """Everything that the policy may look at, and whose memory it is to find."""

    candidates: Sequence[Candidate]
    starts: Sequence[Key]
    rights: Sequence[Right]
    now: int
    loads: Loads | None
    pins: Sequence[Pin]
    frozen: bool
    leavers: Sequence[Candidate]
    kind: PoolKind
    split_points: Sequence[Key]
    memory: int
    """The number of the plan whose memory the policy is to find; 0 for none."""
    levels: dict[str, Loads] = {}

    def situation(self, memory: object) -> Situation:
        """The situation, for the policy."""
        return Situation(
            self.candidates,
            RangeMap.at_starts(list(self.starts), list(self.rights)),
            Instant(self.now),
            self.loads,
            self.pins,
            self.frozen,
            memory,
            self.leavers,
            self.kind,
            self.split_points,
            self.levels,
        )


class ToldPlan(msgspec.Struct, frozen=True, array_like=True):
    """A plan; or why there is none."""

    failed: str = ""
    starts: Bounded[Key] = []
    owners: Bounded[int] = []
    why_starts: Bounded[Key] = []
    whys: Bounded[Why | None] = []
    held_back: Annotated[list[HeldBack], msgspec.Meta(max_length=HELD_BACK)] = []
    again_at: int = FAR_FUTURE
    memory: int = 0

    def plan(self) -> Plan:
        """The plan. Raises PolicyFailed if it is none."""
        return Plan(
            _map("its owners", self.starts, self.owners),
            _map("its reasons", self.why_starts, [why and _short_why(why) for why in self.whys]),
            [HeldBack(*map(_short, each)) for each in self.held_back],
            self.memory,
            Instant(self.again_at),
        )


def asked(situation: Situation) -> bytes:
    """The situation, as it goes to the process. Its memory is a number there."""
    memory = situation.memory
    return msgspec.msgpack.encode(
        AskedSituation(
            situation.candidates,
            situation.present.starts(),
            situation.present.values(),
            situation.now,
            situation.loads,
            situation.pins,
            situation.frozen,
            situation.leavers,
            situation.kind,
            situation.split_points,
            memory if isinstance(memory, int) else 0,
            dict(situation.levels),
        ),
        enc_hook=_plain,
    )


def _plain(value: object) -> object:
    if isinstance(value, MappingProxyType):  # labels, where there are none
        return dict(value)
    raise NotImplementedError(type(value).__name__)


def told(plan: object, memory: int) -> ToldPlan:
    """The plan, as it goes back. Raises TypeError if it is none, ValueError if it is too large."""
    if not isinstance(plan, Plan) or not isinstance(plan.owners, RangeMap):
        raise TypeError(f"it returned {type(plan).__name__}, which is no tenure.policies.Plan")
    ranges = max(len(plan.owners), len(plan.why))
    if ranges > RANGES_PER_TABLE:
        raise ValueError(f"its plan has {ranges} ranges; the limit is {RANGES_PER_TABLE}")
    return ToldPlan(
        "",
        plan.owners.starts(),
        plan.owners.values(),
        plan.why.starts(),
        plan.why.values(),
        list(plan.held_back[:HELD_BACK]),
        plan.again_at,
        memory,
    )


def _map(what: str, starts: list[Key], values: list[V]) -> RangeMap[V]:
    """A map of what another process says."""
    if len(starts) != len(values) or not starts or starts[0] != LOWEST:
        raise PolicyFailed(f"{what} do not cover the key space: {len(starts)} ranges")
    for before, start in pairwise(starts):
        if before >= start:
            raise PolicyFailed(f"{what} overlap, or are out of order, at {start!r}")
    longest = max(map(len, starts))
    if longest > KEY_BYTES:
        raise PolicyFailed(f"{what} have a bound of {longest} bytes, and {KEY_BYTES} are the most")
    return RangeMap.at_starts(starts, values)


def _short(text: str) -> str:
    return text[:WORDS]


def _short_why(why: Why) -> Why:
    return Why(_short(why.phase), _short(why.reason))
