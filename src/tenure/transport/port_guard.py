"""Who may come in at a port between the processes of a pool.

A process that connects asks for a challenge first (`PATH`), by which the listener proves itself,
and shows its own proof with the request that follows. The listener demands it as soon as a manager
has told it to, of everybody except processes of its own user on its own machine. The secret itself
is never sent.
"""

import secrets
from typing import Any

from tenure.base.challenges import NONCE_BYTES, Challenge, is_nonce, is_sealed, seal
from tenure.base.instants import Instant, seconds
from tenure.base.origin import parse
from tenure.runtime.clock import Clock, boot_clock
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.same_user import is_of_same_user

PATH = "/.tenure/proof"
HEADER = "Tenure-Proof"
VALID_NS = seconds(10.0)
"""For how long a challenge may be answered."""
MOST_SPENT = 100_000
"""How many nonces are remembered as used; only processes of the pool use any."""
MOST_CHARACTERS = 400
"""Of a header: its four parts have 179."""
_PARTS = 4
MOST_IDS = 8
_STAMP_BYTES = 8
REFUSAL = (
    "this port wants a proof that the process belongs to the pool: the managers give it the secret "
    "with its leases, or with the table that a Lookup gets. A process of an older version has none"
)


class PortGuard:
    def __init__(self, secret: PoolSecret, clock: Clock = boot_clock) -> None:
        self.secret = secret
        self._clock = clock
        self._origins: set[str] = set()
        self._key = secrets.token_bytes(NONCE_BYTES)
        """By which it knows its own nonces again: strangers may ask for any number."""
        self._spent: dict[str, Instant] = {}

    def answers_to(self, *urls: str | None) -> None:
        """The URLs at which others reach this port. A proof for another one is none here."""
        for each in urls:
            if each is not None:
                self._origins.add(origin_of(each))

    # --- the challenge ---

    def challenge(self, at: str, nonce: str, ids: str) -> str | None:
        """The answer to a process that is about to show its proof; None if none can be given."""
        known = (each for each in ids.split(",")[:MOST_IDS] if self.secret.get(each) is not None)
        id_ = next(known, None)
        if id_ is None or at not in self._origins or not is_nonce(nonce):
            return None
        secret = self.secret.get(id_)
        assert secret is not None
        mine = self._nonce()
        return f"{id_} {mine} {seal(secret, 'listener', Challenge(at, nonce, mine))}"

    def _nonce(self) -> str:
        stamp = self._clock().to_bytes(_STAMP_BYTES, "big") + secrets.token_bytes(_STAMP_BYTES)
        return stamp.hex() + self._mark(stamp)

    def _mark(self, stamp: bytes) -> str:
        return seal(self._key, "listener", Challenge("", "", stamp.hex()))[: 2 * NONCE_BYTES]

    # --- coming in ---

    def refuses(self, shown: str | None, near: Any, far: Any) -> bool:  # noqa: ANN401  # addresses of a socket
        """Whether to turn away a process that shows this proof, or none, on a connection from `far`
        to `near`.
        """
        if shown is not None and self.secret.ids:
            return not self.is_proof(shown)
        if not self.secret.is_wanted:
            return False
        return not is_of_same_user(near, far)

    def is_proof(self, shown: str) -> bool:
        """Whether this proves that its sender has the secret. The second time it does not."""
        parts = shown.split(" ") if len(shown) <= MOST_CHARACTERS else []
        if len(parts) != _PARTS:
            return False
        id_, client, mine, sealed = parts
        secret = self.secret.get(id_)
        if secret is None or not is_nonce(client) or not self._is_mine(mine):
            return False
        challenges = (Challenge(at, client, mine) for at in self._origins)
        if not any(is_sealed(sealed, secret, "client", each) for each in challenges):
            return False
        return self._spend(mine)

    def _is_mine(self, nonce: str) -> bool:
        stamp, mark = nonce[: 4 * _STAMP_BYTES], nonce[4 * _STAMP_BYTES :]
        if not (is_nonce(stamp) and is_nonce(mark)):
            return False
        if not secrets.compare_digest(mark, self._mark(bytes.fromhex(stamp))):
            return False
        made_at = int(stamp[: 2 * _STAMP_BYTES], 16)
        return 0 <= self._clock() - made_at <= VALID_NS

    def _spend(self, nonce: str) -> bool:
        now = self._clock()
        if nonce in self._spent:
            return False
        if len(self._spent) >= MOST_SPENT:
            recent = {each: at for each, at in self._spent.items() if now - at <= VALID_NS}
            if len(recent) >= MOST_SPENT:
                return False
            self._spent = recent
        self._spent[nonce] = now
        return True


def origin_of(url: str) -> str:
    """The origin of a URL, in the one form in which both sides know it. Raises ConfigurationError
    if it is not the URL of a server.
    """
    origin = parse(url, "address")
    return f"{origin.scheme}://{origin.authority.lower()}"
