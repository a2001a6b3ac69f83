"""Calls entities from a process that has none: a gateway, where sockets of entities end.

As `Caller`, but each call goes over a link, and none is made on behalf of a turn.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count
from random import Random

from tenure.entities.caller import ID_BYTES, METHOD, Answering
from tenure.errors import LeaseLost, NotOwner, OutcomeUnknown
from tenure.protocol.entity.key_line import EntityCall
from tenure.routing.finder import Finder
from tenure.routing.router import pursued
from tenure.routing.trying import Attempted, InDoubt, Refused, Trying, Unsent, Wanted
from tenure.transport.channels import ChannelLost
from tenure.transport.link import Unconnected
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
        self._prefix = random.getrandbits(8 * ID_BYTES).to_bytes(ID_BYTES, "big")
        self._count = count()

    def call(
        self,
        key: str | int,
        method: str,
        data: bytes,
        id: bytes = b"",  # noqa: A002
    ) -> Answering:
        """Return the answer of the entity. Raises what `Caller.call` does."""
        drawn = self._prefix + next(self._count).to_bytes(ID_BYTES, "big")
        return self._ask(EntityCall(key, id or drawn, method, data))

    async def _ask(self, call: EntityCall) -> bytes:
        finder, now = self._finder(), asyncio.get_running_loop().time()
        what = f"{call.method} of {call.key!r:.100}"
        wanted = Wanted(call.key, METHOD, what, has_idempotency_key=True)
        trying = Trying(wanted, now + self._seconds, self._random)
        step = trying.begin(finder.find(call.key))
        return await pursued(finder, call.key, trying, step, partial(self._attempt, call))

    async def _attempt(self, call: EntityCall, address: str, deadline: float) -> bytes | Attempted:
        limit = asyncio.timeout_at(deadline)
        try:
            async with limit:
                link = await self._links.link(address)
                return await link.ask(call)
        except NotOwner as error:
            return Refused(error.address)
        except Unconnected as error:
            return Unsent(str(error))
        except (LeaseLost, ChannelLost) as error:
            return InDoubt(str(error))
        except TimeoutError:
            if not limit.expired():
                raise
            raise OutcomeUnknown(
                f"{call.method} of {call.key!r:.100} was not answered in time by {address}; it may "
                "be carried out yet"
            ) from None
