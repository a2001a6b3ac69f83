"""What the processes of a pool show each other at their ports: a secret that managers tell them.

Managers tell it to owners with their leases, and to lookups with the table. It is of the pool and
of the journal: all leaders of one journal tell the same, so that a takeover changes nothing. No
process sends it; see `base.challenges`.
"""

from typing import Annotated

import msgspec

MOST_SECRET_BYTES = 64


class PortProof(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The secret of a pool, and whether to ask for it."""

    secret: Annotated[bytes, msgspec.Meta(min_length=16, max_length=MOST_SECRET_BYTES)]
    is_wanted: bool = False
    """Whether every process of the pool can prove that it has the secret, as far as the leader
    knows: only then may one refuse another that does not.
    """

    def __repr__(self) -> str:
        """Without the secret, which would get into logs."""
        return f"PortProof(is_wanted={self.is_wanted})"
