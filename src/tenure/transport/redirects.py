"""Redirects of WebSockets: aiohttp follows them, to whatever the other side names.

Whoever lets a process connect to it could so have it ask what only that process can reach, and send
along what was meant for one address only. No listener of ours redirects.
"""

from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, WSServerHandshakeError

REDIRECTS = (301, 302, 303, 307, 308)


async def follow_nothing(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """A middleware for sessions that open WebSockets. Raises WSServerHandshakeError."""
    response = await handler(request)
    if response.status in REDIRECTS:
        response.close()
        raise WSServerHandshakeError(
            response.request_info,
            response.history,
            message="a redirect, which is not followed",
            status=response.status,
            headers=response.headers,
        )
    return response
