"""Calls a key's entity at its owner: here, or over a link to the member that has it.

A call has an id, and the owner that carries it out keeps its answer with the entity. So the call
can be repeated after any outcome of an attempt: at the next owner it gets the first answer, if
there was one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from itertools import count
from random import Random
from typing import Any, TypeAlias, TypeVar

from tenure.client.lookup import Lookup
from tenure.client.owner import Owner
from tenure.entities.copies_here import CopiesHere
from tenure.entities.entity_turn import CURRENT, EntityTurn
from tenure.entities.methods import CallHere
from tenure.entities.settings import EntitySettings
from tenure.entities.turns import EntityHost
from tenure.errors import (
    Busy,
    LeaseLost,
    NewerState,
    NotOwner,
    OutcomeUnknown,
    StoreAway,
    UsageError,
)
from tenure.observe.tracing import Attribute, span
from tenure.protocol.entity.key_line import MOST_CHAIN, EntityCall, Place, cycle
from tenure.routing.finder import Finder
from tenure.routing.router import pursued
from tenure.routing.trying import Attempted, InDoubt, Refused, Step, Trying, Unsent, Wanted
from tenure.transport.channels import ChannelLost
from tenure.transport.link import Unconnected
from tenure.transport.links import Links

T = TypeVar("T")
Answering: TypeAlias = Coroutine[Any, Any, bytes]
Attempt: TypeAlias = Callable[[str, float], Awaitable[bytes | Attempted]]
METHOD = "CALL"
ID_BYTES = 8


class CallIds:
    """The ids of the calls of one process, which no other call has."""

    def __init__(self, random: Random) -> None:
        self._prefix = random.getrandbits(8 * ID_BYTES).to_bytes(ID_BYTES, "big")
        self._count = count()

    def draw(self) -> bytes:
        """An id for a new call."""
        return self._prefix + next(self._count).to_bytes(ID_BYTES, "big")


class Caller:
    """Calls from this process."""

    def __init__(
        self,
        owner: Owner,
        lookup: Lookup,
        links: Links,
        host: EntityHost,
        settings: EntitySettings,
        random: Random,
        copies: CopiesHere | None = None,
    ) -> None:
        self._copies = copies
        self._owner = owner
        self._lookup = lookup
        self._links = links
        self._host = host
        self._settings = settings
        self._random = random
        self._ids = CallIds(random)

    def call(
        self,
        key: str | int,
        method: str,
        data: bytes,
        id: bytes = b"",  # noqa: A002
        here: CallHere | None = None,
    ) -> Answering:
        """Return the answer of the entity. The arguments are `data`, or those of `here`. Raises
        NoOwner, Busy, OutcomeUnknown, and what the entity raised.
        """
        if here is not None:
            here.is_first = not id
        call = EntityCall(key, id or self._ids.draw(), method, data)
        return in_turn(self._owner.pool, call, partial(self._anywhere, call, here))

    async def _anywhere(self, call: EntityCall, here: CallHere | None) -> bytes:
        with span("tenure.call", partial(_attributes, self._owner.pool, call)):
            return await self._here_or_there(call, here)

    async def _here_or_there(self, call: EntityCall, here: CallHere | None) -> bytes:
        came: Attempted | None = None
        found = self._host.guards.found(call.key)
        if found[1] is not None:
            try:
                return await self._host.perform(call, here, found)
            except NotOwner:
                came = Refused(None)
            except LeaseLost as error:
                came = InDoubt(str(error))
        elif self._copies is not None and here is not None and here.method.is_reading:
            answer = await self._copies.read(call, here)
            if answer is not None:
                return answer
        if here is not None:
            call.data = here.encoded()
        return await self._ask(call, came)

    async def _ask(self, call: EntityCall, came: Attempted | None) -> bytes:
        now, find = asyncio.get_running_loop().time(), self._lookup.find
        wanted = Wanted(call.key, METHOD, f"{call.method} of {call.key!r:.100}", True)  # noqa: FBT003
        trying = Trying(
            wanted, now + self.seconds, self._random, longest_pause=self._settings.longest_pause
        )
        step = trying.begin(find(call.key) if came is None else self._owner.address)
        if came is not None:
            step = trying.after(came, now, find(call.key))
        return await tried(self._lookup, wanted, trying, step, partial(self._attempt, call))

    @property
    def seconds(self) -> float:
        """The time for all attempts of a call."""
        return self._settings.call_seconds(self._lookup.hold)

    async def _attempt(self, call: EntityCall, address: str, deadline: float) -> bytes | Attempted:
        is_in_table = address == self._lookup.find(call.key)
        if self._owner.check(call.key) is not None:
            try:
                return await self._host.perform(call)
            except NotOwner as error:
                return Refused(error.address)
            except LeaseLost as error:
                return InDoubt(str(error))
        if address == self._owner.address:
            return Refused(None)  # the table names this owner, and the grant is on its way
        came = await ask_at(self._links, call, address, deadline)
        if isinstance(came, Refused) and not is_in_table:
            self._links.let_go(address)
        return came


def in_turn(
    pool: str, call: EntityCall, ask: Callable[[], Coroutine[Any, Any, T]]
) -> Coroutine[Any, Any, T]:
    """Have a call to an entity of that pool asked, by the turn on whose behalf code runs, if there
    is one. Raises UsageError for a circle.
    """
    turn = CURRENT.get()
    if turn is None or turn.phase == "over":
        return ask()
    call.chain = (*turn.call.chain, turn.place)
    closed = cycle(call.chain, (pool, call.key))
    if closed is not None or len(call.chain) > MOST_CHAIN:
        raise UsageError(
            f"{call.method} is called in a circle, and would wait for itself: "
            f"{closed or call.chain[-3:]}. Let one of them return first, or leave the other a "
            "message, such as an alarm"
        )
    return _on_behalf_of(turn, (pool, call.key), ask)


async def _on_behalf_of(
    turn: EntityTurn, whom: Place, ask: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """Keep what the turn has changed before others can learn of it."""
    if turn.phase == "reading":
        return await ask()
    await turn.commit()
    turn.live.line.waits_for = whom
    try:
        return await ask()
    finally:
        turn.live.line.waits_for = None


async def tried(
    finder: Finder, wanted: Wanted, trying: Trying, step: Step, attempt: Attempt
) -> bytes:
    """The answer of the key's owner, after as many attempts as it takes."""
    try:
        return await pursued(finder, wanted.key, trying, step, attempt)
    except (Busy, NewerState, StoreAway) as error:
        if not trying.is_in_doubt:
            raise
        raise OutcomeUnknown(  # the last attempt was not begun; an earlier one may have been
            f"{wanted} may have been carried out, or not, and could not be repeated: {error}"
        ) from error


async def ask_at(
    links: Links, call: EntityCall, address: str, deadline: float
) -> bytes | Attempted:
    """The answer of a member over a link, or what became of the attempt."""
    limit = asyncio.timeout_at(deadline)
    try:
        async with limit:
            link = await links.link(address)
            return await link.ask(call)
    except NotOwner as error:
        return Refused(error.address)
    except Unconnected as error:
        return Unsent(str(error))
    except (LeaseLost, ChannelLost) as error:
        return InDoubt(str(error))
    except TimeoutError:
        if not limit.expired():
            raise  # as the entity did
        raise OutcomeUnknown(
            f"{call.method} of {call.key!r:.100} was not answered in time by {address}; it may "
            "be carried out yet"
        ) from None


def _attributes(pool: str, call: EntityCall) -> dict[str, Attribute]:
    return {"tenure.pool": pool, "tenure.key": str(call.key), "tenure.method": call.method}
