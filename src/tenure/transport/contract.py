"""What every transport promises: the client's end of the connections to managers.

- `send` never waits, and raises nothing because of the network. It connects if there is no
  connection; messages sent meanwhile go out once there is one.
- What is sent to one manager arrives in the order sent, or not at all: a connection that breaks
  takes with it what was not yet sent. Nothing is sent twice.
- `lost` is called once for each connection that breaks, or cannot be made, with the reason; nothing
  is delivered from that connection afterwards. The next `send` connects anew.
- A connection has a version of the protocol, the highest that both its ends speak. Every message on
  it is of that version, even one that was sent before there was a connection. A message that the
  version does not know is not sent, and the transport logs that: it is lost, as any message may be.
- A message that cannot be decoded, or is of another version than its connection, closes the
  connection, with a reason, and is logged.
- Neither callback is called while `send` runs, nor after `close`; all calls come in the loop of
  `start`.

A transport does not promise that a message arrives, nor that it notices at once when a manager is
gone. `lab.contracts.transport` tests all this.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from tenure.protocol.lease.messages import ToLookup
from tenure.wire.frame import Bytes
from tenure.wire.lease import HeardByOwner, decode_to_lookup, decode_to_owner, encode

M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)
"""The messages from managers to this kind of client."""


class NeverConnected(str):
    """The reason why a connection could not be made: so nothing was sent over it."""

    __slots__ = ()


Lost: TypeAlias = Callable[[str, str], None]
"""Called with the manager's URL and the reason, which is `NeverConnected` if none was ever made."""

WAITING_MESSAGES = 64
"""The most messages that may wait for one connection to a manager. A client has one unanswered
request and repeats it every second or so. So when this many wait, the manager has not read for a
minute, and the messages are of no use to it.
"""
PING_SECONDS = 4.0
"""A server that has not been heard for this long is pinged; after half as long again the connection
is given up.
"""
UNHEARD_SECONDS = 6.0
"""If bytes do not even reach the server's kernel for this long, the connection is given up. This is
within half a term of the default preset, so that another leader is found in the other half.
"""
SELDOM_SECONDS = 45.0
"""Like `PING_SECONDS`, for clients that ask by themselves, at least every 30 s, and look for
another manager if no answer comes. They need no pings: those of 1,000 lookups at rest would be more
than all that the lookups ask.
"""


def _never(_: object) -> bool:
    return False


class Role(NamedTuple, Generic[M]):
    """The role in which a client speaks to servers: where, what it accepts, and how it writes
    messages.
    """

    path: str
    decode: Callable[[Bytes, int], M]
    """Decodes bytes, for the version of the connection on which they came."""
    encode: Callable[[Any, int], bytes]
    """Encodes a message, for the version of the connection that it goes over. Raises
    LocalProtocolError if that version does not know such messages, or if the message is too large.
    """
    waiting: int = WAITING_MESSAGES
    """How many messages may wait for one connection."""
    waiting_bytes: int | None = None
    """With so many bytes waiting there, a connection that is given another message ends; None if
    only their number is bounded. So one message may be as large as it likes.
    """
    continues: Callable[[Any], bool] = _never
    """Whether a message goes on with the one before: it may wait, too, whatever waits."""
    small_bytes: int = 0
    """Larger messages have a connection of their own, and may come before or after those that are
    not; with 0, all keep their order.
    """
    ping_seconds: float = PING_SECONDS
    proves: bool = False
    """Whether its servers are processes of a pool, and not managers: then both sides prove that
    they belong to it.
    """


OWNER: Role[HeardByOwner] = Role("/v1/owner", decode_to_owner, encode, ping_seconds=SELDOM_SECONDS)
LOOKUP: Role[ToLookup] = Role("/v1/lookup", decode_to_lookup, encode, ping_seconds=SELDOM_SECONDS)


class Transport(Protocol[M_co]):
    """Connections to managers, distinguished by their URLs."""

    def start(self, deliver: Callable[[str, M_co], None], lost: Lost) -> None:
        """Begin, in the running event loop. `deliver` gets a manager's URL and message."""
        ...

    def send(self, manager: str, message: msgspec.Struct) -> None:
        """Send `message` to the manager at the URL. Raises LocalProtocolError if too large."""
        ...

    async def close(self) -> None:
        """Close every connection; a second close does nothing."""
        ...
