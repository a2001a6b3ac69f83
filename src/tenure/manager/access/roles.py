"""What a token allows, as one table that a reader can check.

| | health | read | `/v1/owner` | `/v1/lookup` | `/v1/node` | change |
|---|---|---|---|---|---|---|
| nobody | yes | | | | | |
| owner of a pool | yes | that pool | that pool | that pool | | |
| lookup of a pool | yes | that pool | | that pool | | |
| node | yes | clusters | | | yes | tables of clusters |
| store | yes | | | | | |
| viewer | yes | all | | | | |
| admin | yes | all | all pools | all pools | yes | yes |

At a port of `tenure serve` with a file of tokens, a bearer with a role in the pool of the service,
or with `admin`, may ask anything. A `viewer` may ask what only reads: no WebSocket, because
a reader of a queue acknowledges messages away.

At a node of the store, a bearer with the role `store`, `node` or `admin` reads and writes rows.
"""

from enum import StrEnum
from typing import NamedTuple

from tenure.protocol.lease.messages import Sync, ToManager


class AccessRole(StrEnum):
    """The role in which somebody comes."""

    OWNER = "owner"
    LOOKUP = "lookup"
    VIEWER = "viewer"
    ADMIN = "admin"
    NODE = "node"
    STORE = "store"

    @property
    def is_of_a_pool(self) -> bool:
        """Whether it is a role in one pool."""
        return self in (AccessRole.OWNER, AccessRole.LOOKUP)


_OF_ROWS = (AccessRole.NODE, AccessRole.STORE)


class Permit(NamedTuple):
    """The rights of the bearer of a token."""

    who: str
    """The token's id, for the audit."""
    role: AccessRole
    pool: str = ""
    """The one that its role is in; empty where it is in none."""

    def __str__(self) -> str:
        where = f" of {self.pool!r}" if self.pool else ""
        return f"token {self.who}, {self.role}{where}"

    @property
    def may_change(self) -> bool:
        """Whether it may steer, make and delete pools."""
        return self.role is AccessRole.ADMIN

    def may_read(self, pool: str | None) -> bool:
        """Whether it may read of `pool`; with None, of the manager as a whole."""
        if self.role in _OF_ROWS:
            return False
        return not self.role.is_of_a_pool or (pool is not None and pool == self.pool)

    @property
    def may_own(self) -> bool:
        """Whether it may be an owner somewhere."""
        return self.role in (AccessRole.OWNER, AccessRole.ADMIN)

    @property
    def may_look_up(self) -> bool:
        """Whether it may be a lookup somewhere."""
        return self.role is not AccessRole.VIEWER and self.role not in _OF_ROWS

    def may_use(self, pool: str) -> bool:
        """Whether it may ask anything of a service of `pool`."""
        return self.role is AccessRole.ADMIN or (self.role.is_of_a_pool and self.pool == pool)

    @property
    def may_be_node(self) -> bool:
        """Whether it may be a node of a cluster."""
        return self.role in (AccessRole.NODE, AccessRole.ADMIN)

    @property
    def may_keep_rows(self) -> bool:
        """Whether it may read and write rows at a node of the store."""
        return self.role in _OF_ROWS or self.role is AccessRole.ADMIN

    def may_say(self, message: ToManager) -> bool:
        """Whether a client that shows it may send this message."""
        if not (self.may_look_up if isinstance(message, Sync) else self.may_own):
            return False
        return not self.pool or message.pool == self.pool


ANYBODY = Permit("nobody", AccessRole.ADMIN)
"""The permit if no tokens are asked for: only this machine's processes come, or all are trusted."""
