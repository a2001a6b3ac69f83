"""The events that steer a pool, or ask for explanations.

A command that names an owner holds after its restart too; an eviction concerns one incarnation.
With `dry_run` nothing is changed, and the answer says what would change.
"""

from typing import TypeAlias

import msgspec

from tenure.base.keys import Key
from tenure.base.numbers import Number
from tenure.protocol.lease.messages import Name


class Steer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all steering commands."""

    pool: str
    dry_run: bool = False


class Drain(Steer, frozen=True, kw_only=True):
    """Plan the owner for nothing: all that it has moves away. The process is not told to end."""

    owner: Name


class Cordon(Steer, frozen=True, kw_only=True):
    """Give the owner nothing new; it keeps what it has."""

    owner: Name


class Uncordon(Steer, frozen=True, kw_only=True):
    """The owner is as any other again, cordoned or drained."""

    owner: Name


class PinKey(Steer, frozen=True, kw_only=True):
    """The key goes to the owner of that name, as long as it may be given anything."""

    key: Key
    owner: Name


class UnpinKey(Steer, frozen=True, kw_only=True):
    """The key goes where the policy wants it."""

    key: Key


class Freeze(Steer, frozen=True, kw_only=True):
    """Balance nothing: only ranges without an owner are given one."""


class Unfreeze(Steer, frozen=True, kw_only=True):
    """Balance again."""


class Evict(Steer, frozen=True, kw_only=True):
    """Stop renewing this incarnation."""

    incarnation: Number
    confirmed_dead: bool = False
    """The operator's word that this very process is gone: what it had is free at once (P14)."""


class ChoosePolicy(Steer, frozen=True, kw_only=True):
    """Plan by the policy of this name."""

    policy: Name


SteeringCommand: TypeAlias = (
    Drain | Cordon | Uncordon | PinKey | UnpinKey | Freeze | Unfreeze | Evict | ChoosePolicy
)


class ReadPlan(msgspec.Struct, frozen=True):
    """Ask what the policy would do now, and why not more."""

    pool: str


class ExplainKey(msgspec.Struct, frozen=True):
    """Ask who has this key, since when, where it was before, and why it moved."""

    pool: str
    key: Key
