"""Calls a key's entity at its owner: here, or over a link to the member that has it.

A call has an id, and who carries it out keeps its answer with the entity. So whatever an attempt
came to, the call can be made again: at the next owner it gets the first answer, if there was one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from random import Random
from typing import TypeAlias

from tenure.client.lookup import Lookup
from tenure.client.owner import Owner
from tenure.entities.entity_turn import CURRENT, EntityTurn
from tenure.entities.links import Links, Unconnected
from tenure.entities.options import EntityOptions
from tenure.errors import LeaseLost, NotOwner, OutcomeUnknown, UsageError
from tenure.protocol.entity.key_line import EntityCall, cycle
from tenure.protocol.entity.messages import MOST_CHAIN
from tenure.routing.trying import (
    Attempted,
    Fail,
    InDoubt,
    Pause,
    Refused,
    Send,
    Step,
    Trying,
    Unsent,
    Wanted,
)
from tenure.runtime.loops import wait_for
from tenure.transport.channels import ChannelLost

Perform: TypeAlias = Callable[[EntityCall], Awaitable[bytes]]
METHOD = "CALL"
ID_BYTES = 8


class Caller:
    """Calls from this process."""

    def __init__(
        self,
        owner: Owner,
        lookup: Lookup,
        links: Links,
        perform: Perform,
        options: EntityOptions,
        random: Random,
    ) -> None:
        self._owner = owner
        self._lookup = lookup
        self._links = links
        self._perform = perform
        self._options = options
        self._random = random
        self._prefix = random.getrandbits(8 * ID_BYTES).to_bytes(ID_BYTES, "big")
        self._count = count()

    def new_id(self) -> bytes:
        """Of a call that nobody has made before."""
        return self._prefix + next(self._count).to_bytes(ID_BYTES, "big")

    async def call(self, key: str | int, method: str, data: bytes, id: bytes = b"") -> bytes:  # noqa: A002
        """The answer of the entity. Raises NoOwner, Busy, OutcomeUnknown, and what it raised."""
        turn = CURRENT.get()
        call = EntityCall(key, id or self.new_id(), method, data)
        if turn is None or turn.is_over:
            return await self._anywhere(call)
        call.chain = (*turn.call.chain, turn.place)
        closed = cycle(call.chain, (self._owner.pool, key))
        if closed is not None or len(call.chain) > MOST_CHAIN:
            raise UsageError(
                f"{method} is called in a circle, and would wait for itself: "
                f"{closed or call.chain[-3:]}. Let one of them return first, or leave the other a "
                "message, such as an alarm"
            )
        return await self._on_behalf_of(turn, call)

    async def _on_behalf_of(self, turn: EntityTurn, call: EntityCall) -> bytes:
        """What the turn has changed is kept before others can learn of it."""
        if turn.is_reading:
            return await self._anywhere(call)
        await turn.commit()
        turn.live.line.waits_for = self._owner.pool, call.key
        try:
            return await self._anywhere(call)
        finally:
            turn.live.line.waits_for = None

    async def _anywhere(self, call: EntityCall) -> bytes:
        came: Attempted | None = None
        if self._owner.check(call.key) is not None:
            try:
                return await self._perform(call)
            except NotOwner:
                came = Refused(None)
            except LeaseLost as error:
                came = InDoubt(str(error))
        return await self._ask(call, came)

    async def _ask(self, call: EntityCall, came: Attempted | None) -> bytes:
        loop, find = asyncio.get_running_loop(), self._lookup.find
        wanted = Wanted(call.key, METHOD, f"{call.method} of {call.key!r:.100}", True)  # noqa: FBT003
        trying = Trying(wanted, loop.time() + self.seconds, self._random)
        step: Step = trying.begin(find(call.key) if came is None else self._owner.address)
        while True:
            match step:
                case Send(address):
                    attempted = came or await self._attempt(call, address, trying.deadline)
                    came = None
                    if isinstance(attempted, bytes):
                        return attempted
                    step = trying.after(attempted, loop.time(), find(call.key))
                case Pause(seconds, not_at):
                    await wait_for(self._lookup.moved(call.key, not_at, seconds))
                    step = trying.resume(loop.time(), find(call.key))
                case Fail(error):
                    raise error

    @property
    def seconds(self) -> float:
        """For all attempts of a call."""
        given = self._options.deadline
        if given is not None:
            return given
        return 2 * self._lookup.hold + self._options.turn + self._options.wait

    async def _attempt(self, call: EntityCall, address: str, deadline: float) -> bytes | Attempted:
        try:
            if self._owner.check(call.key) is not None:
                return await self._perform(call)
            if address == self._owner.address:
                return Refused(None)  # ours, says the table, and the grant is on its way
            async with asyncio.timeout_at(deadline):
                link = await self._links.link(address)
                return await link.ask(call)
        except NotOwner as error:
            return Refused(error.address)
        except Unconnected as error:
            return Unsent(str(error))
        except (LeaseLost, ChannelLost) as error:
            return InDoubt(str(error))
        except TimeoutError:
            raise OutcomeUnknown(
                f"{call.method} of {call.key!r:.100} was not answered in time by {address}; it may "
                "be carried out yet"
            ) from None
