"""Calls entities from a process that has none: a gateway, where sockets of entities end.

As `Caller`, but each call goes over a link. A gateway has no turns on whose behalf it calls.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random

from tenure.entities.caller import METHOD, Answering, CallIds, ask_at, tried
from tenure.protocol.entity.key_line import EntityCall
from tenure.routing.finder import Finder
from tenure.routing.trying import Trying, Wanted
from tenure.transport.links import Links


class FarCaller:
    """Calls from a process that owns nothing. `finder` raises NoOwner while there is none."""

    def __init__(
        self, finder: Callable[[], Finder], links: Links, seconds: float, random: Random
    ) -> None:
        self._finder = finder
        self._links = links
        self._seconds = seconds
        """How long each call is tried."""
        self._random = random
        self._ids = CallIds(random)

    def call(
        self,
        key: str | int,
        method: str,
        data: bytes,
        id: bytes = b"",  # noqa: A002
    ) -> Answering:
        """Return the answer of the entity. Raises what `Caller.call` does."""
        return self.ask(EntityCall(key, id, method, data))

    async def ask(self, call: EntityCall) -> bytes:
        """The answer to this call, which gets an id if it has none."""
        call.id = call.id or self._ids.draw()
        finder, now = self._finder(), asyncio.get_running_loop().time()
        what = f"{call.method} of {call.key!r:.100}"
        wanted = Wanted(call.key, METHOD, what, has_idempotency_key=True)
        trying = Trying(wanted, now + self._seconds, self._random)
        step = trying.begin(finder.find(call.key))
        return await tried(finder, wanted, trying, step, partial(ask_at, self._links, call))
