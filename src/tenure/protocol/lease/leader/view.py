"""What a manager machine shows of itself to the shell that runs it."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from tenure.base.keys import PoolKind
from tenure.protocol.lease.history import LeaseHistory

JournalPast = Literal["unknown", "restored", "another journal"]
"""It goes on from an old copy; or clients have come with the history of another one."""
ManagerRole = Literal["leading", "taking over", "standing by", "stopped"]


class ManagerView(msgspec.Struct, frozen=True, kw_only=True):
    """A manager at one moment."""

    url: str
    """Where clients and other managers find it."""
    role: ManagerRole
    is_proven: bool
    """Whether it leads, and nobody can have taken over by waiting."""
    leader: str | None
    """The URL of whoever leads, as far as known."""
    leadership: int
    """The number of the present leadership, as far as known."""
    beat: int
    """The last beat of the leadership that was seen."""
    lsn: int
    """Up to which the journal is written or, standing by, was read."""
    grants_in_ns: int
    """How long until ranges can be granted; 0 where they can, or where it does not lead."""
    past: JournalPast
    """What is known of the time before its journal, where it leads."""
    is_listening: bool
    """Whether it waits only to hear whether a client has the history of another journal."""
    preset: str
    creates_pools: bool
    """Whether a pool's first owner creates it."""
    pools: Mapping[str, PoolKind]
    """Those that there are, where it leads."""
    troubles: Mapping[str, str]
    """Of pools that are not planned by their policies: why not."""
    journal: int
    """The identity of the journal that it leads in; 0 where it does not lead."""
    history: LeaseHistory | None
    """All that it has decided, where it leads: to be read, and nothing else."""
