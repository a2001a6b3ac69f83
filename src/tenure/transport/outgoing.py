"""A client's message between `send` and its connection, whose version may not be known yet."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from tenure.errors import LocalProtocolError
from tenure.wire.versions import NEWEST

logger = logging.getLogger("tenure.transport")

OVERTAKEN_TIMES = 256
"""How many messages overtake a larger one at most: it is sent in the end, whatever comes."""


class Outgoing:
    """A message to be sent. Raises LocalProtocolError at once if it is too large for any peer."""

    __slots__ = ("_encode", "_message", "_newest")

    def __init__(self, message: msgspec.Struct, encode: Callable[[Any, int], bytes]) -> None:
        self._message = message
        self._encode = encode
        self._newest = encode(message, NEWEST)

    @property
    def size(self) -> int:
        """The bytes that it takes."""
        return len(self._newest)

    def data(self, version: int) -> bytes | None:
        """The message's bytes on a connection of `version`; None if that version does not know such
        messages.
        """
        if version == NEWEST:
            return self._newest
        return older(self._message, self._encode, version)


class OutgoingQueue:
    """The messages that wait for one connection.

    With `small_bytes`, messages of up to that size overtake larger ones, but never each other. What
    one client of a node reads may be 30 MiB large, and another client's answer goes to the same
    place: it would wait until all that is sent, encoded and read.
    """

    def __init__(self, most: int, small_bytes: int = 0) -> None:
        self._most = most
        self._small_bytes = small_bytes
        self._small: deque[Outgoing] = deque()
        self._large: deque[Outgoing] = deque()
        self._overtaken = 0
        self._has_some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._small) + len(self._large)

    @property
    def is_full(self) -> bool:
        """Whether no other message may wait."""
        return len(self) >= self._most

    def put(self, outgoing: Outgoing, *, continues: bool) -> None:
        """Let it wait. One that goes on with a larger one must not overtake that."""
        is_small = outgoing.size <= self._small_bytes and not continues
        (self._small if is_small else self._large).append(outgoing)
        self._has_some.set()

    async def get(self) -> Outgoing:
        """The next to be sent, once there is one."""
        await self._has_some.wait()
        is_small = bool(self._small) and not (self._large and self._overtaken >= OVERTAKEN_TIMES)
        self._overtaken = self._overtaken + 1 if is_small and self._large else 0
        found = (self._small if is_small else self._large).popleft()
        if not self:
            self._has_some.clear()
        return found


def older(
    message: msgspec.Struct, encode: Callable[[Any, int], bytes], version: int
) -> bytes | None:
    """The message's bytes in a version that may not know such messages. If it does not, this logs a
    warning and returns None.
    """
    try:
        return encode(message, version)
    except LocalProtocolError as error:
        logger.warning("not sent: %s", error)
        return None
