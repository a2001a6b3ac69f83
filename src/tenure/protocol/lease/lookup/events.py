"""The events and actions of the lookup machine."""

from collections.abc import Mapping
from functools import cached_property
from typing import TypeAlias

import msgspec

from tenure.base.keys import Key, PoolKind
from tenure.base.noted import Noted
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid, ManagersNamed, TellManager
from tenure.protocol.lease.messages import OwnerInfo, ToLookup
from tenure.protocol.lease.table_columns import TableColumns


class LookupConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a lookup machine."""

    managers: tuple[str, ...]
    pool: str
    reads_columns: bool = True
    """False for a lookup from before there were columns."""
    realm: str = ""
    """The realm of its managers; empty if it follows those of any."""


class LookupView(msgspec.Struct, frozen=True, kw_only=True):
    """A lookup machine, as the shell that runs it may see it, beside its actions."""

    journal: int
    leadership: int
    lsn: int
    in_contact: bool
    is_searching: bool
    """Whether it is looking for a leader."""
    hold_ns: int
    """How long a manager says that it waits for an owner that is gone."""


# --- events -------------------------------------------------------------------------------------


LookupEvent: TypeAlias = ManagerSaid[ToLookup] | ManagerLost | ManagersNamed


# --- actions ------------------------------------------------------------------------------------


class RoutingTable(msgspec.Struct, frozen=True):
    """The server of each range. Out of contact, no range has a server (P17)."""

    starts: tuple[Key, ...]
    addresses: tuple[str | None, ...]
    """The address of the range from each start up to the next."""
    kind: PoolKind
    in_contact: bool
    caches: tuple[str | None, ...] = ()
    """The addresses at which caches read each range; empty if no owner takes caches."""


class ColumnTable:
    """A `RoutingTable` of a table in columns, each part of which is made when it is asked for."""

    in_contact = True

    def __init__(
        self, columns: TableColumns, owners: Mapping[int, OwnerInfo], kind: PoolKind
    ) -> None:
        self.kind = kind
        self._columns = columns
        self._owners = owners

    @cached_property
    def starts(self) -> tuple[Key, ...]:
        return tuple(self._columns.all_starts())

    @cached_property
    def addresses(self) -> tuple[str | None, ...]:
        addresses = {number: owner.address for number, owner in self._owners.items()}
        return tuple(map(addresses.get, self._columns.all_owners()))

    @cached_property
    def caches(self) -> tuple[str | None, ...]:
        taken = {number: owner.cache for number, owner in self._owners.items() if owner.cache}
        return tuple(map(taken.get, self._columns.all_owners())) if taken else ()


AnyRoutingTable: TypeAlias = RoutingTable | ColumnTable


class Route(msgspec.Struct, frozen=True):
    """Route by `table` from here on, which may differ from the former one in these ranges."""

    changed: tuple[KeyRange, ...]
    table: AnyRoutingTable


class SignalLoss(msgspec.Struct, frozen=True):
    """Tell the application that the state of these ranges is gone."""

    ranges: tuple[KeyRange, ...]
    why: str


LookupAction: TypeAlias = TellManager | Route | SignalLoss | Noted
