"""A client's message between `send` and its connection, whose version may not be known yet."""

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from tenure.errors import LocalProtocolError
from tenure.wire.versions import NEWEST

logger = logging.getLogger("tenure.transport")


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
