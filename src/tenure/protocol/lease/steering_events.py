"""What the manager machine is told in order to steer a pool, or to explain it, and its answers.

Who is meant by a name is so after a restart too; an eviction is of one incarnation. With `dry_run`
nothing is changed, and the answer says what would be.
"""

from typing import TypeAlias

import msgspec

from tenure.base.keys import Key
from tenure.protocol.lease.messages import OwnerInfo
from tenure.protocol.lease.records import Steering


class Steer(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all that steers."""

    pool: str
    dry_run: bool = False


class Drain(Steer, frozen=True, kw_only=True):
    """Plan the owner for nothing: all that it has moves away. The process is not told to end."""

    owner: str


class Cordon(Steer, frozen=True, kw_only=True):
    """Give the owner nothing new; it keeps what it has."""

    owner: str


class Uncordon(Steer, frozen=True, kw_only=True):
    """The owner is as any other again, cordoned or drained."""

    owner: str


class PinKey(Steer, frozen=True, kw_only=True):
    """The key goes to the owner of that name, as long as it may be given anything."""

    key: Key
    owner: str


class UnpinKey(Steer, frozen=True, kw_only=True):
    """The key goes where the policy has it."""

    key: Key


class Freeze(Steer, frozen=True, kw_only=True):
    """Balance nothing: only what has no owner is given one."""


class Unfreeze(Steer, frozen=True, kw_only=True):
    """Balance again."""


class Evict(Steer, frozen=True, kw_only=True):
    """Do not renew this incarnation any more."""

    incarnation: int
    confirmed_dead: bool = False
    """The operator's word that this very process is gone: what it had is free at once (P14)."""


class ChoosePolicy(Steer, frozen=True, kw_only=True):
    """Plan by the policy of this name."""

    policy: str


SteeringCommand: TypeAlias = (
    Drain | Cordon | Uncordon | PinKey | UnpinKey | Freeze | Unfreeze | Evict | ChoosePolicy
)


class ReadPlan(msgspec.Struct, frozen=True):
    """What would the policy do now, and why not more?"""

    pool: str


class ExplainKey(msgspec.Struct, frozen=True):
    """Who has this key, since when, where was it before, and why did it move?"""

    pool: str
    key: Key


# --- answers ------------------------------------------------------------------------------------


class Flow(msgspec.Struct, frozen=True):
    """Ranges that go from one owner to another."""

    giver: str | None
    """None: nobody has them."""
    taker: str | None
    """None: nobody is to have them."""
    ranges: int
    share: float
    """The part of the key space, from 0 to 1."""
    with_state: bool
    phase: str = ""
    reason: str = ""


class Steered(msgspec.Struct, frozen=True):
    """The command was carried out, or would be."""

    pool: str
    changed: bool
    """False where it was so already."""
    dry_run: bool
    flows: tuple[Flow, ...]
    """What moves because of it, and would not without."""
    steering: Steering
    """All that holds now, or would."""
    ranges: int = 0
    """What the owner that is named has at the moment."""
    hold_seconds: float = 0.0
    """For an eviction: after how long the ranges are free."""


class HeldBackMove(msgspec.Struct, frozen=True):
    """What the policy would do, and why it does not."""

    what: str
    why: str


class PlanRead(msgspec.Struct, frozen=True):
    """What the policy would do now, as it is steered."""

    pool: str
    policy: str
    steering: Steering
    flows: tuple[Flow, ...]
    held_back: tuple[HeldBackMove, ...]


class PastMove(msgspec.Struct, frozen=True):
    """A move of a range that this leader remembers."""

    seconds_ago: float
    how: str
    giver: str | None
    taker: str | None
    number: int
    since: int
    phase: str
    reason: str


class KeyExplained(msgspec.Struct, frozen=True):
    """Which owner has a key, and how it came there."""

    pool: str
    start: Key
    end: Key | None
    number: int
    since: int
    owner: OwnerInfo | None
    joined_seconds_ago: float | None
    """When the owner joined; None where that was before the leader remembers anything."""
    planned: str | None
    """Who should have it by the present plan."""
    pinned_to: str | None
    moves: tuple[PastMove, ...]
    """The latest first."""
    remembered_seconds: float
    """How far back the leader remembers all moves; earlier ones, it does not know."""
    stuck: tuple[str, ...] = ()
    """Owners that had the key and whose applications do not let go of it."""
