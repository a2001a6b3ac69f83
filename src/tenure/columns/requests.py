"""The request of a store to its backend to write; to read, it asks by the messages themselves.

A backend carries a request out itself, hands it to a replica, or sends it to another process: none
of them takes it apart on the way.
"""

from collections.abc import Sequence

import msgspec

from tenure.columns.tables import Table
from tenure.protocol.replication.levels import Level
from tenure.protocol.replication.row.edits import Edit

Consistency = Level
"""How many replicas must answer. With one replica all levels are the same."""


class RowMutation(msgspec.Struct, frozen=True):
    """The changes to one row."""

    table: Table
    key: bytes
    edits: Sequence[Edit]
    level: Consistency = "quorum"
    time: int | None = None
    """The time that the user gives; otherwise the store draws one."""
    number: int = 0
    """The lease number; 0 in a table that is not fenced."""
    journal: int = 0
    """The journal of the lease number; 0 without one."""
    above: int = 0
    """A time that an owner must write above: the newest of the row when it was adopted, or of its
    last write.
    """

    @property
    def is_ordered(self) -> bool:
        """Whether the version must lie above all that was acknowledged before (R4). An owner, who
        is the only writer, knows what that is.
        """
        return self.table.writes != "clock" and self.level != "one" and not self.number
