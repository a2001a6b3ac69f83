"""Frames of WebSocket (RFC 6455): made once for many, and read one at a time.

A server's frames are not masked, so the bytes of one message are the same for all its receivers. A
peer's frames are read only when it is their turn: if it sends thousands at once, a few are read,
and the rest stay in the buffer as they came. A connection at rest keeps no buffer.

However a client cuts its message, reading it costs what its bytes cost: pieces are kept as they
came, and are joined once, when the last one is there.
"""

from collections.abc import Callable
from random import getrandbits

from aiohttp import WSCloseCode

try:
    from aiohttp._websocket.helpers import websocket_mask as mask_in_place
except ImportError:  # it has no public name; it is in C, and a hundred times as fast

    def mask_in_place(mask: bytes, data: bytearray) -> None:
        """Add or remove the mask, which is repeated over the data."""
        for place, byte in enumerate(mask):
            data[place::4] = data[place::4].translate(_EXCLUSIVE_OR[byte])


BINARY = 2
CLOSE, PING, PONG = 8, 9, 10
PIECE = 0
"""A piece of a message that is not the last."""
TEXT_REFUSED = "a text frame, where messages are binary"
REASON_BYTES = 123
"""The room for a reason in a close frame (RFC 6455, 5.5)."""
MOST_PIECES = 1024
"""The most pieces of one message: 16 KiB each in the largest request to a manager. A piece may be
empty, so without a bound a message would never have to end. Our own clients send none in pieces.
"""

_LAST, _RESERVED, _OPCODE = 0x80, 0x70, 0x0F
_LAST_BINARY = _LAST | BINARY
_MASKED, _LENGTH = 0x80, 0x7F
_TWO_BYTE_LENGTH, _EIGHT_BYTE_LENGTH = 126, 127
_TEXT = 1
_MASK_BYTES = 4
_NO_STATUS = 1005
_EXCLUSIVE_OR = tuple(bytes(mask ^ byte for byte in range(256)) for mask in range(256))


class FrameError(Exception):
    """A peer sent bytes that are not WebSocket, or a frame that is not accepted here."""

    def __init__(self, code: WSCloseCode, why: str) -> None:
        super().__init__(why)
        self.code = code


def frame(payload: bytes, opcode: int = BINARY) -> bytes:
    """`payload` as one frame of a server."""
    return _head(len(payload), opcode, 0) + payload


def masked_frame(payload: bytes, opcode: int = BINARY) -> bytes:
    """`payload` as one frame of a client, with a mask that nobody foresees."""
    mask = getrandbits(8 * _MASK_BYTES).to_bytes(_MASK_BYTES, "big")
    return b"".join((_head(len(payload), opcode, _MASKED), mask, unmasked(mask, payload)))


def unmasked(mask: bytes | bytearray, data: bytes) -> bytes:
    """Add the mask to data, or remove it."""
    found = bytearray(data)
    mask_in_place(bytes(mask), found)
    return bytes(found)


def _head(size: int, opcode: int, masked: int) -> bytes:
    first = _LAST | opcode
    if size < _TWO_BYTE_LENGTH:
        return bytes((first, masked | size))
    if size < 1 << 16:
        return bytes((first, masked | _TWO_BYTE_LENGTH)) + size.to_bytes(2, "big")
    return bytes((first, masked | _EIGHT_BYTE_LENGTH)) + size.to_bytes(8, "big")


def close_frame(code: int, why: str, framed: Callable[[bytes, int], bytes] = frame) -> bytes:
    """The last frame of a connection, with as much of the reason as there is room for."""
    reason = why.encode()[:REASON_BYTES].decode(errors="ignore").encode()
    return framed(code.to_bytes(2, "big") + reason, CLOSE)


def closed_because(payload: bytes) -> str:
    """What the peer's last frame says, for people to read."""
    code = int.from_bytes(payload[:2], "big") if payload else _NO_STATUS
    reason = payload[2:].decode(errors="replace")
    return f"it closed the connection ({code}{': ' if reason else ''}{reason})"


class FrameReader:
    """Splits what one peer sends into frames, for messages of up to `most_bytes`. Those of a client
    are masked.
    """

    __slots__ = ("_at", "_buffer", "_mask", "_most_bytes", "_pieces", "_pieces_bytes")

    def __init__(self, most_bytes: int, *, is_masked: bool = True) -> None:
        self._mask = _MASKED if is_masked else 0
        self._most_bytes = most_bytes
        self._buffer: bytes | bytearray = b""
        self._at = 0
        """The position in the buffer up to which frames were taken."""
        self._pieces: list[bytes] = []
        """The pieces so far of a message that comes in pieces."""
        self._pieces_bytes = 0

    def __len__(self) -> int:
        """The number of bytes that were not taken yet, those of an incomplete frame included."""
        return len(self._buffer) - self._at

    @property
    def unfinished(self) -> int:
        """The bytes that are kept of messages that have not arrived as a whole."""
        return len(self._buffer) - self._at + self._pieces_bytes

    def feed(self, data: bytes) -> None:
        """Add bytes that arrived."""
        if not self._buffer:
            self._buffer = data
            return
        if isinstance(self._buffer, bytes):
            self._buffer = bytearray(self._buffer)
        del self._buffer[: self._at]
        self._at = 0
        self._buffer += data

    def take(self) -> tuple[int, bytes] | None:
        """Take the next frame, with its opcode; None if it has not arrived as a whole. The last
        piece of a message is taken as the whole message.

        Raises FrameError if the bytes break the protocol.
        """
        buffer, at = self._buffer, self._at
        size = len(buffer)
        if size - at < 2:  # noqa: PLR2004 - the head
            return None
        first, second = buffer[at], buffer[at + 1]
        if first != _LAST_BINARY or second & _MASKED != self._mask or self._pieces:
            self._check(first, second)
        length, begins = second & _LENGTH, at + (2 + _MASK_BYTES if self._mask else 2)
        if length >= _TWO_BYTE_LENGTH:
            wide = 2 if length == _TWO_BYTE_LENGTH else 8
            begins += wide
            if size < at + 2 + wide:
                return None
            length = int.from_bytes(buffer[at + 2 : at + 2 + wide], "big")
        if length > self._most_bytes - self._pieces_bytes and first & _OPCODE < CLOSE:
            why = f"a message of more than {self._most_bytes} bytes"
            raise FrameError(WSCloseCode.MESSAGE_TOO_BIG, why)
        ends = begins + length
        if size < ends:
            return None
        payload = bytes(buffer[begins:ends])
        if self._mask:
            payload = unmasked(buffer[begins - _MASK_BYTES : begins], payload)
        self._buffer, self._at = (b"", 0) if ends == size else (buffer, ends)
        if first == _LAST_BINARY:
            return BINARY, payload
        opcode = first & _OPCODE
        return (opcode, payload) if opcode >= CLOSE else self._put_together(first, payload)

    def _put_together(self, first: int, payload: bytes) -> tuple[int, bytes]:
        """Add a piece to its message. Returns the message if this is the last piece."""
        if len(self._pieces) == MOST_PIECES:
            why = f"a message in more than {MOST_PIECES} pieces"
            raise FrameError(WSCloseCode.POLICY_VIOLATION, why)
        self._pieces.append(payload)
        self._pieces_bytes += len(payload)
        if not first & _LAST:
            return PIECE, payload
        whole, self._pieces, self._pieces_bytes = b"".join(self._pieces), [], 0
        return BINARY, whole

    def _check(self, first: int, second: int) -> None:
        """Check the head of a frame that is not a whole message. Raises FrameError."""
        opcode, why = first & _OPCODE, None
        if first & _RESERVED:
            why = "a frame with reserved bits"
        elif opcode == _TEXT:
            raise FrameError(WSCloseCode.UNSUPPORTED_DATA, TEXT_REFUSED)
        elif opcode not in (PIECE, BINARY, CLOSE, PING, PONG):
            why = f"a frame of the unknown kind {opcode}"
        elif second & _MASKED != self._mask:
            why = "a frame of a client that is not masked" if self._mask else "a masked frame"
        elif opcode >= CLOSE and (not first & _LAST or second & _LENGTH >= _TWO_BYTE_LENGTH):
            why = "a control frame that is long, or in pieces"
        elif opcode < CLOSE and (opcode == PIECE) != bool(self._pieces):
            why = "pieces of messages that do not belong together"
        if why is not None:
            raise FrameError(WSCloseCode.PROTOCOL_ERROR, why)
