"""Limits the requests to each owner at a time.

A slow owner must not tie up everything that its clients have: connections, memory, and the requests
to healthy owners.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class AddressSlots:
    """The requests under way, by the address that they go to."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._users: dict[str, int] = {}

    def at(self, address: str) -> int:
        """How many requests to this address are under way, or wait."""
        return self._users.get(address, 0)

    def is_full(self, address: str) -> bool:
        """Whether another one would have to wait."""
        return self.at(address) >= self._most

    @asynccontextmanager
    async def slot(self, address: str) -> AsyncIterator[None]:
        """Hold one of the slots of an address; waits its turn if all are taken."""
        slots = self._slots.setdefault(address, asyncio.Semaphore(self._most))
        self._users[address] = self.at(address) + 1
        try:
            async with slots:
                yield
        finally:
            self._users[address] -= 1
            if not self._users[address]:
                del self._users[address], self._slots[address]
