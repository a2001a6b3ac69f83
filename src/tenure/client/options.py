"""Groups of keyword arguments that several constructors take, with their types, said once.

A constructor takes groups as `**options: Unpack[...]`: users pass the arguments one by one, and a
type checker knows them. What is no option is refused as Python refuses what is no parameter.
"""

from collections.abc import Callable, Mapping, Sequence
from signal import Signals
from typing import Any, TypeAlias, TypedDict

from tenure.base.keys import PoolKind
from tenure.base.ranges import KeyRange
from tenure.client.arguments import KeyFinder
from tenure.client.hand_off.handler import Granted, HandOffHandler
from tenure.client.read_leases import GivesReadsOf
from tenure.transport.credentials import Credentials

Ranges: TypeAlias = tuple[KeyRange, ...]
Probe: TypeAlias = Callable[[], object]
"""A function or coroutine function that looks whether the application serves: it raises if not."""
OnRanges: TypeAlias = Callable[[Ranges], object]
"""A function or a coroutine function of the ranges that it is about."""

OnGrant: TypeAlias = Callable[[Granted], object]
"""The same, which also learns the ranges whose state has come with them."""


class BeingAnOwner(TypedDict, total=False):
    """What managers know of an owner, and how long it waits until one has registered it."""

    kind: PoolKind
    name: str | None
    capacity: float | Mapping[str, float]
    labels: Mapping[str, str] | None
    enter_timeout: float
    watchdog: float | None


class RangeCallbacks(TypedDict, total=False):
    """The functions that are told which ranges an owner has, and no longer has."""

    on_grant: OnGrant | None
    on_revoke: OnRanges | None


class HandingOver(TypedDict, total=False):
    """What moves with its ranges, and where an owner accepts it."""

    hand_off: HandOffHandler | dict[str, Any] | None
    hand_off_listen: str | None
    hand_off_address: str | None
    hand_off_insecure: bool
    hand_off_bytes: int


class MemberOptions(BeingAnOwner, RangeCallbacks, HandingOver, total=False):
    """The options that `Member` passes on to its Owner."""


class OwnerOptions(MemberOptions, total=False):
    """Those of a member, and what only its own process needs to know."""

    volume: GivesReadsOf | None
    lookup: KeyFinder | None
    credentials: Credentials | None
    leave_on: Sequence[Signals]
    probe: Probe | None
    realm: str | None


class MemberPlace(TypedDict, total=False):
    """Where other processes reach a member, and how it leaves."""

    listen: str
    address: str | None
    insecure: bool
    drain: float
    on_loss: OnRanges | None


def check_known(options: Mapping[str, object], known: type, of: str) -> None:
    """Raise TypeError for an option that `known`, a TypedDict, does not have."""
    for name in options:
        if name not in known.__annotations__:
            raise TypeError(f"{of}() got an unexpected keyword argument {name!r}")
