"""The view of a manager machine, for the shell that runs it."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from tenure.base.keys import PoolKind
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.rivalry import Rivalry, Succession

JournalPast = Literal["unknown", "restored", "another journal"]
"""What the manager knows of the time before its journal. A restored journal goes on from an old
copy; "another journal" means that clients have brought the history of another one."""
ManagerRole = Literal["leading", "taking over", "standing by", "stopped"]


class RivalsView(msgspec.Struct, frozen=True, kw_only=True):
    """What a leader knows of leaders of other journals, and what it tells them of itself (P25)."""

    realm: str = ""
    granted: bool = True
    """Whether its journal may have granted anything; False only if all that it knows of its rivals
    is durable, so that it will grant nothing beside them."""
    is_over: bool = False
    """Whether an operator has declared its journal over: it answers no client."""
    rivals: tuple[Rivalry, ...] = ()
    """The rivals that no operator has decided about."""
    over: tuple[int, ...] = ()
    succeeds: tuple[Succession, ...] = ()


NO_RIVALS = RivalsView()


class ManagerView(msgspec.Struct, frozen=True, kw_only=True):
    """A manager at one moment."""

    url: str
    """The URL at which clients and other managers find it."""
    role: ManagerRole
    is_proven: bool
    """Whether it leads, and nobody can have taken over by waiting."""
    leader: str | None
    """The URL of the manager that leads, as far as known."""
    leadership: int
    """The number of the present leadership, as far as known."""
    beat: int
    """The last beat of the leadership that was seen."""
    lsn: int
    """The LSN up to which the journal is written or, by a standby, was read."""
    grants_in_ns: int
    """How long until ranges can be granted; 0 if they can, or if the manager does not lead."""
    past: JournalPast
    """Its knowledge of the time before its journal, if it leads."""
    is_listening: bool
    """Whether it waits only to hear whether a client has the history of another journal."""
    preset: str
    creates_pools: bool
    """Whether a pool's first owner creates it."""
    pools: Mapping[str, PoolKind]
    """The pools, if the manager leads."""
    troubles: Mapping[str, str]
    """The reasons why some pools are not planned by their policies, by pool."""
    store_troubles: Mapping[str, tuple[str, ...]]
    """What is wrong with clusters of the store, and whom the manager did not believe."""
    journal: int
    """The identity of the journal in which it leads; 0 if it does not lead."""
    rivals: RivalsView
    history: LeaseHistory | None
    """Everything that it has decided, if it leads: to be read, and nothing else."""

    @property
    def leads(self) -> bool:
        """Whether it leads, past the taking over: shells begin and end by this, not by a word."""
        return self.role == "leading"
