"""What the lookup machine is told, and what it wants done."""

from typing import TypeAlias

import msgspec

from tenure.base.keys import Key, PoolKind
from tenure.base.noted import Noted
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid, ManagersNamed, TellManager
from tenure.protocol.lease.messages import ToLookup


class LookupConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a lookup is told when it is made."""

    managers: tuple[str, ...]
    pool: str


class LookupView(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever runs a lookup machine may read of it, beside what its actions say."""

    journal: int
    leadership: int
    lsn: int
    in_contact: bool
    is_searching: bool
    """Whether a leader is being looked for."""
    hold_ns: int
    """How long a manager waits for an owner that is gone, as it says."""


# --- events -------------------------------------------------------------------------------------


LookupEvent: TypeAlias = ManagerSaid[ToLookup] | ManagerLost | ManagersNamed


# --- actions ------------------------------------------------------------------------------------


class RoutingTable(msgspec.Struct, frozen=True):
    """Where each range is served. Out of contact it is one range, which nobody serves (P17)."""

    starts: tuple[Key, ...]
    addresses: tuple[str | None, ...]
    """Of the range from each start up to the next."""
    kind: PoolKind
    in_contact: bool
    caches: tuple[str | None, ...] = ()
    """Where caches read each range; empty where no owner takes caches."""


class Route(msgspec.Struct, frozen=True):
    """From here on route by `table`, which may differ in these ranges from the one before."""

    changed: tuple[KeyRange, ...]
    table: RoutingTable


class SignalLoss(msgspec.Struct, frozen=True):
    """Tell the application that the state of these ranges is gone."""

    ranges: tuple[KeyRange, ...]
    why: str


LookupAction: TypeAlias = TellManager | Route | SignalLoss | Noted
