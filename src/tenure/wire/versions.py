"""Versions of the protocol: which ones exist, what each knows, and how two sides agree on one.

Managers and libraries are upgraded one process after the other, so for a while both versions are in
use. A connection has one version, the highest that both ends speak, and every message on it is of
that version. The two sides settle it in WebSocket's own way: the client offers subprotocols,
highest first, and the server names one of them. A side that offers none, or names none, is from
before there was a choice, and speaks the first version.

A field added at the end of a message, with a default, is sent on every connection: older readers
skip it. A new message type is different: a peer that does not know it takes it for damage. So each
type has the version that introduced it, and is neither sent nor taken on a connection with an older
version. The machines know nothing of this; they ask a peer only what it has shown that it
understands.
"""

import re
from collections.abc import Iterable
from typing import Final

from tenure.errors import RemoteProtocolError

OLDEST: Final = 1
"""The oldest version that is still spoken. It rises when no tenure is in use that speaks no
later one (`tenure status` tells), and after a release whose changelog has said that it will. Two
versions are spoken at all times: to a release that brings one and drops the one before it, nobody
could upgrade under load."""

NEWEST: Final = 3
"""The newest version. It rises with a message type that older peers do not know, and with every
change that they would misunderstand; not with a field that they may pass over."""

UNSAID: Final = 1
"""What is spoken where nothing was offered, or nothing chosen."""

_SUBPROTOCOL = re.compile(r"tenure\.([1-9]\d{0,2})")


def subprotocol(version: int) -> str:
    """The name of a version in Sec-WebSocket-Protocol."""
    return f"tenure.{version}"


SUBPROTOCOLS: Final = tuple(subprotocol(version) for version in range(NEWEST, OLDEST - 1, -1))
"""What a client of ours offers."""


def agreed(said: Iterable[str]) -> int:
    """The version of a connection, from what the other side said: its offers, or its choice.

    Raises RemoteProtocolError if there is no version in common. Its words are true on both sides,
    because they are sent to the other one too.
    """
    found = (_SUBPROTOCOL.fullmatch(each) for each in said)
    theirs = [int(each[1]) for each in found if each] or [UNSAID]
    common = [version for version in theirs if OLDEST <= version <= NEWEST]
    if not common:
        one, other = sorted(((OLDEST, NEWEST), (min(theirs), max(theirs))))
        raise RemoteProtocolError(
            f"no protocol version in common: one side speaks {_span(*one)}, the other "
            f"{_span(*other)}; upgrade tenure on the first"
        )
    return max(common)


def _span(oldest: int, newest: int) -> str:
    return str(oldest) if oldest == newest else f"{oldest} to {newest}"
