"""`Fence`: for a store that is in the memory of one process."""

from collections.abc import Hashable
from threading import Lock

from tenure.client.lease import Lease
from tenure.client.turns import InLine, Turns
from tenure.fencing.admission import (
    Claim,
    check_declared,
    check_history,
    lease_of,
    name_of,
    too_old,
)

WAIT_SECONDS = 10.0
MOST_WAITING = 1000


class Fence:
    """Refuses what an earlier owner of a key sends late, for what this process keeps in memory.

        with fence.admit(request.headers):    # Fenced: nothing was done
            ...                               # write

    `async with` does the same. Bodies for one key run one after another, so that a write is not
    overtaken between being admitted and being done.
    """

    def __init__(self) -> None:
        self._turns = Turns(MOST_WAITING)
        self._lock = Lock()
        self._histories: dict[str, tuple[str, list[str]]] = {}
        self._numbers: dict[Hashable, tuple[str, int]] = {}

    def admit(self, claim: Claim) -> "FencedBody":
        """A body that writes under the lease which `claim` is, or which its headers name.

        Entering raises Fenced where a newer owner of the key was admitted before, or the lease is
        of another history; RemoteProtocolError for headers that cannot be read; Busy where it waits
        for others for too long.
        """
        return FencedBody(self, lease_of(claim))

    def declare(self, pool: str, journal: int | str) -> None:
        """The managers of `pool` have another journal from here on; leases of the one before are
        refused. Raises ConfigurationError for a journal that was replaced before.
        """
        new = name_of(journal)
        with self._lock:
            current, past = self._histories.get(pool, (new, []))
            if current != new:
                check_declared(pool, new, past)
                past = [*past, current]
            self._histories[pool] = new, past

    def check(self, lease: Lease) -> None:
        """Admit `lease`, when it is its turn."""
        journal = name_of(lease.journal)
        with self._lock:
            current, past = self._histories.setdefault(lease.pool, (journal, []))
            check_history(lease.pool, journal, current, past)
            key = (lease.pool, lease.key)
            of, seen = self._numbers.get(key, (journal, 0))
            if of == journal and lease.number < seen:
                raise too_old(lease, seen)
            self._numbers[key] = journal, lease.number

    def turns(self) -> Turns:
        """The lines of bodies, which run one at a time for each key."""
        return self._turns


class FencedBody:
    """A body to be admitted once: `with` or `async with`."""

    def __init__(self, fence: Fence, lease: Lease) -> None:
        self._fence = fence
        self._lease = lease
        self._place: InLine

    def _enter(self) -> Lease:
        try:
            self._fence.check(self._lease)
        except BaseException:
            self._fence.turns().end(self._place)
            raise
        return self._lease

    def _key(self) -> Hashable:
        return self._lease.pool, self._lease.key

    def __enter__(self) -> Lease:
        self._place = self._fence.turns().take_blocking(self._key(), WAIT_SECONDS)
        return self._enter()

    async def __aenter__(self) -> Lease:
        self._place = await self._fence.turns().take(self._key(), WAIT_SECONDS)
        return self._enter()

    def __exit__(self, *_: object) -> None:
        self._fence.turns().end(self._place)

    async def __aexit__(self, *_: object) -> None:
        self._fence.turns().end(self._place)
