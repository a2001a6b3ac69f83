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
"""The oldest version that is still spoken. It is raised only when no process is in use that speaks
no later version (`tenure status` tells), and only after a release whose changelog has announced it.
Two versions are spoken at all times: nobody could upgrade under load to a release that brings one
version and drops the one before it.
"""

NEWEST: Final = 3
"""The newest version. It is raised for a message type that older peers do not know, and for every
change that they would misunderstand, but not for a field that they may skip.
"""

UNSAID: Final = 1
"""The version that is spoken if a side offered nothing, or chose nothing."""

_SUBPROTOCOL = re.compile(r"tenure\.([1-9]\d{0,2})")


def subprotocol(version: int) -> str:
    """The name of a version in the header Sec-WebSocket-Protocol."""
    return f"tenure.{version}"


SUBPROTOCOLS: Final = tuple(subprotocol(version) for version in range(NEWEST, OLDEST - 1, -1))
"""The subprotocols that our clients offer."""


def agreed(said: Iterable[str]) -> int:
    """The version of a connection, from what the other side said: its offers, or its choice.

    Raises RemoteProtocolError if there is no version in common. The error's text is true on both
    sides, because the other side is sent it, too.
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
