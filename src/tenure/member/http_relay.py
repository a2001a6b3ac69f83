"""One HTTP request, relayed to the member that owns its key.

Whether it may be sent to another member after a failure decides `Trying`, as for any client. A body
whose length is known and small is read first, so that it can be sent again; any other is passed on
as it comes, and so are all answers.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

from aiohttp import ClientError, ClientResponse
from aiohttp.client_exceptions import ClientConnectorError
from yarl import URL

from tenure.base.keys import UserKey
from tenure.client.refusals import refusal
from tenure.errors import TenureError
from tenure.member.asgi import (
    RELAYED,
    Message,
    Receive,
    Relayed,
    Scope,
    Send,
    end_to_end,
    header,
    raw_path,
    respond,
    text_of,
)
from tenure.member.member import Member
from tenure.routing.router import Router
from tenure.routing.trying import (
    IDEMPOTENCY_KEY,
    Attempted,
    InDoubt,
    Refused,
    Unsent,
    Wanted,
    judge,
)

MOST_REPEATED_BYTES = 65_536
"""A body up to this size is kept until it is answered. Larger ones are rare, and many at once would
fill the memory."""

ServeHere: TypeAlias = Callable[[Receive], Awaitable[None]]
"""Serves the request in this process after all."""


async def relay_http(
    member: Member,
    router: Router,
    scope: Scope,
    receive: Receive,
    send: Send,
    key: UserKey,
    serve_here: ServeHere,
) -> None:
    """Have it answered by the owner of `key`; by `serve_here` where that is this member by then."""
    body = await Body.of(scope, receive)
    if body is None:
        return
    try:
        came = await obtained(member, router, scope, key, body)
    except TenureError as error:
        answer = refusal(error)
        if answer is None:
            raise
        await respond(send, answer)
        return
    if came is None:
        await serve_here(body.receive)
        return
    async with came as response:
        await pass_on(response, body, send)


class Body:
    """The body of a request: all of it, where it is small, or as it comes."""

    def __init__(self, receive: Receive, whole: bytes | None) -> None:
        self.rest = receive
        self.whole = whole
        self.is_there = True
        """Whether all of it can be sent, again or for the first time."""
        self.over = asyncio.Event()
        """Nothing more of it is to come."""
        if whole is not None:
            self.over.set()

    @classmethod
    async def of(cls, scope: Scope, receive: Receive) -> "Body | None":
        """That of a request of which nothing was read; None where its client has gone."""
        headers = scope["headers"]
        length = header(headers, b"content-length")
        if length is None and header(headers, b"transfer-encoding") is None:
            return cls(receive, b"")
        if length is None or not length.isdigit() or int(length) > MOST_REPEATED_BYTES:
            return cls(receive, None)
        parts: list[bytes] = []
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        return cls(receive, b"".join(parts))

    def to_send(self) -> "bytes | Body | None":
        """For a request: all of it, or itself, to be iterated."""
        return self if self.whole is None else self.whole or None

    def __aiter__(self) -> AsyncIterator[bytes]:
        if not self.is_there:  # aiohttp would send what is left of it, as if it were all
            raise ConnectionAbortedError("the body was read, and cannot be sent again")
        return self._stream()

    async def _stream(self) -> AsyncIterator[bytes]:
        self.is_there = False
        while True:
            message = await self.rest()
            if message["type"] == "http.disconnect":
                raise ConnectionAbortedError("the client has gone in the middle of its request")
            yield message.get("body", b"")
            if not message.get("more_body"):
                self.over.set()
                return

    async def receive(self) -> Message:
        """For an application in this process."""
        if self.whole is None:
            return await self.rest()
        whole, self.whole = self.whole, None
        return {"type": "http.request", "body": whole, "more_body": False}


async def obtained(
    member: Member, router: Router, scope: Scope, key: UserKey, body: Body
) -> ClientResponse | None:
    """The owner's answer; None where this member owns the key by now."""
    has_idempotency_key = header(scope["headers"], IDEMPOTENCY_KEY.lower().encode()) is not None
    wanted = Wanted(key, scope["method"], scope["path"], has_idempotency_key)

    async def attempt(address: str, _: float) -> ClientResponse | Attempted | None:
        if member.check(key) is not None and body.is_there:
            return None
        if address == member.owner.address:
            return Refused(None)  # ours, says the table, and the grant is on its way
        return await sent(member, router, scope, wanted, address, body)

    return await router.ask(wanted, attempt, lambda _: body.is_there)


async def sent(
    member: Member, router: Router, scope: Scope, wanted: Wanted, address: str, body: Body
) -> ClientResponse | Attempted:
    """Send it once."""
    url = url_at(router, address, scope)
    # No limit in time: how long the application may take is for the client to say. But what may be
    # repeated is given up when its key goes elsewhere.
    limit = router.limit_of(wanted, address, None)
    try:
        with limit:
            response = await member.session.request(
                scope["method"],
                url,
                headers=headers_for(member, scope),
                data=body.to_send(),
                allow_redirects=False,
            )
    except ClientConnectorError as error:
        return Unsent(str(error))
    except (ClientError, OSError) as error:
        return limit.ended_it() or InDoubt(f"the connection broke: {error!r}")
    came = judge(response.status, response.headers)
    if came is None:
        return response
    response.release()
    return came


def headers_for(member: Member, scope: Scope) -> list[tuple[str, str]]:
    """What the owner gets."""
    relayed = str(Relayed.by(member.owner.address, scope))
    headers = [*end_to_end(scope["headers"]), (RELAYED, relayed.encode())]
    return [(text_of(name), text_of(value)) for name, value in headers]


def url_at(router: Router, address: str, scope: Scope) -> URL:
    """The request's URL at another member."""
    origin = router.origin(address)
    return URL.build(
        scheme=origin.scheme,
        authority=origin.authority,
        path=origin.prefix + raw_path(scope),
        query_string=scope["query_string"].decode("latin-1"),
        encoded=True,
    )


async def pass_on(response: ClientResponse, body: Body, send: Send) -> None:
    """Answer with the owner's answer, as it comes; stop when the client has gone."""
    headers = end_to_end((name.lower(), value) for name, value in response.raw_headers)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    content = response.content
    if content.is_eof():
        await send({"type": "http.response.body", "body": await content.read()})
        return
    going = asyncio.ensure_future(_close_when_gone(body, response))
    try:
        async for chunk in content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except ClientError:
        if not going.done():
            raise  # the owner broke off, and so do we: the client must not take it for the end
        return
    finally:
        going.cancel()
    await send({"type": "http.response.body", "body": b""})


async def _close_when_gone(body: Body, response: ClientResponse) -> None:
    await body.over.wait()
    while (await body.rest())["type"] != "http.disconnect":
        pass
    response.close()
