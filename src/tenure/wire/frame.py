"""The frame that all messages share: one byte of protocol version, then msgpack.

The version comes first, so that a peer which speaks another one can be told so, and not that its
message is malformed.

Whatever the bytes, reading returns a message or raises RemoteProtocolError, and the peer that sent
them is the only one to suffer. Bytes are counted before they are decoded. Afterwards the message's
protocol checks what types cannot express. Each protocol has a file of its own here.
"""

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from tenure.errors import MALFORMED, LocalProtocolError, RemoteProtocolError

Bytes: TypeAlias = bytes | bytearray | memoryview
M = TypeVar("M")

HIGHEST_VERSION: Final = 255
_PREFIXES: Final = tuple(bytes([version]) for version in range(HIGHEST_VERSION + 1))
_SHOWN_CHARACTERS = 200  # of the decoder's error, which may repeat what the peer sent
_encoder = msgspec.msgpack.Encoder()


def framed(message: msgspec.Struct, version: int) -> bytes:
    """The bytes of a message of that version."""
    return _PREFIXES[version] + _encoder.encode(message)


class MessageWriter(Generic[M]):
    """Writes the messages of one protocol.

    `since` says which version introduced each type, `limits` how many bytes of it a peer takes, and
    `for_older` reduces a message for a peer that does not speak the newest version.
    """

    def __init__(
        self,
        since: Mapping[type[M], int],
        limits: Mapping[type[M], int],
        for_older: Callable[[M, int], M] = lambda message, _: message,
    ) -> None:
        self._since = since
        self._limits = limits
        self._newest = max(since.values())
        self._for_older = for_older

    def __call__(self, message: M, version: int) -> bytes:
        """The bytes of a message, for a connection of `version`.

        Raises LocalProtocolError if that version does not know such messages, or if the bytes are
        more than a peer would take.
        """
        since = self._since[type(message)]
        if since > version:
            raise LocalProtocolError(
                f"{type(message).__name__} is of protocol version {since}, and the peer speaks "
                f"version {version}: upgrade tenure there"
            )
        if version < self._newest:
            message = self._for_older(message, version)
        data = _PREFIXES[version] + _encoder.encode(message)
        if len(data) > self._limits[type(message)]:
            limit = self._limits[type(message)]
            raise LocalProtocolError(
                f"a {type(message).__name__} of {len(data)} bytes; at most {limit} are allowed: "
                "use shorter keys as range bounds, or more and smaller pools"
            )
        return data


def other_version(theirs: int, ours: int) -> str:
    """The reason, in words that are true on both sides: either side may close the connection with
    it.
    """
    return (
        f"a message of protocol version {theirs}, where version {ours} is spoken; upgrade the "
        "older side, if both are tenure"
    )


class Reader(Generic[M]):
    """Reads the messages that one kind of receiver takes; any other message is malformed for it.

    `check` raises ValueError if a message breaks a rule of that version which types cannot express.
    """

    def __init__(
        self,
        decoder: msgspec.msgpack.Decoder[M],
        limit: int,
        check: Callable[[M, int], None],
        other_version: Callable[[int, int], str] = other_version,
    ) -> None:
        self._decoder = decoder
        self._limit = limit
        self._check = check
        self._other_version = other_version

    def __call__(self, data: Bytes, version: int) -> M:
        """Decode a message. Raises RemoteProtocolError for any malformed bytes."""
        if len(data) > self._limit:
            raise RemoteProtocolError(
                f"a message of {len(data)} bytes; at most {self._limit} are allowed"
            )
        if not data:
            raise RemoteProtocolError("an empty message: not even a protocol version")
        if data[0] != version:
            raise RemoteProtocolError(self._other_version(data[0], version))
        try:
            message = self._decoder.decode(memoryview(data)[1:])
            self._check(message, version)
        except MALFORMED as error:
            said = str(error)[:_SHOWN_CHARACTERS]
            raise RemoteProtocolError(
                f"a malformed message of {len(data)} bytes: {said}"
            ) from error
        return message
