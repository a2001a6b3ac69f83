"""The lease, as a value: proof that a key was held, and under what number.

The lease number and ownership handle of the papers (Centrifuge 3.2, PRS 2.2).
"""

from collections.abc import Mapping
from typing import Self

import msgspec

from tenure.base.keys import Key
from tenure.client.lease_header import LEASE_HEADER, LeaseParts, encoded, found_in


class Lease(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The right to one key, as `Owner.check` found it.

    Keep it while you work on the key, and ask `Owner.holds(lease)` later: it returns True only if
    the lease has been held without interruption since. `number` grows with every break in a key's
    ownership, so it can fence effects elsewhere: a store that refuses lower numbers than it has
    seen for the same `journal` refuses every owner that has lost the key.
    """

    key: Key
    """The key in the pool's key space: hashed, or the user's bytes themselves in an ordered pool.
    """
    number: int
    journal: int
    """The identity of the manager's journal: numbers of two journals cannot be compared."""
    pool: str = ""

    def headers(self) -> dict[str, str]:
        """The headers to send along with a request, so that a fence refuses it once a newer owner
        of the key has been there. Raises UsageError for a key that is too long.
        """
        parts = LeaseParts(self.key, self.number, self.journal, self.pool)
        return {LEASE_HEADER: encoded(parts)}

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """The lease that a request's headers name. Raises RemoteProtocolError if they do not name
        one.

        A fence does this for you. A header proves nothing: accept it only from owners.
        """
        return cls(*found_in(headers))

    def __repr__(self) -> str:
        is_text = self.key.isascii() and self.key.decode("ascii").isprintable()
        key = repr(self.key.decode("ascii")) if self.key and is_text else self.key.hex() or "-"
        return f"<Lease of key {key}, number {self.number}, journal {self.journal:x}>"
