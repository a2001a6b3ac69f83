"""The session with which a member relays WebSockets to other members, and asks its own listener.

It adds nothing to what it relays, follows nothing, and keeps nothing of one client for another.
"""

from typing import TYPE_CHECKING, TypeAlias

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from tenure.runtime.read_size import SmallBlocksResponse, SmallBlocksSocket
from tenure.transport.redirects import follow_nothing

if TYPE_CHECKING:
    from aiohttp import web  # which loads servers

MemberSession: TypeAlias = ClientSession
Application: TypeAlias = "web.Application"
ADDED_BY_AIOHTTP = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Headers that aiohttp would add to requests without them, and must not add to relayed requests."""


def member_session(keep_alive_seconds: float) -> MemberSession:
    """A session over real connections."""
    return ClientSession(
        connector=TCPConnector(limit=0, keepalive_timeout=keep_alive_seconds),
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=ADDED_BY_AIOHTTP,
        timeout=ClientTimeout(total=None),
        response_class=SmallBlocksResponse,
        ws_response_class=SmallBlocksSocket,
        middlewares=(follow_nothing,),
    )
