"""One HTTP request, relayed to the member that owns its key.

`Trying` decides whether the request may go to another member after a failure, as it does for any
client. A body of a known and small length is read first, so that it can be sent again; any other
body is passed on as it comes, and so are all answers.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeAlias

from tenure.base.keys import UserKey
from tenure.base.origin import Origin
from tenure.client.refusals import refusal
from tenure.errors import TenureError
from tenure.member.asgi import Message, Receive, Scope, Send, end_to_end, header, raw_path, respond
from tenure.member.forwarded_answer import CONTENT_LENGTH, SWITCHING, TRANSFER_ENCODING
from tenure.member.forwarding import Forwarded, Forwarding, NotConnected
from tenure.member.member import Member
from tenure.routing.router import Router
from tenure.routing.trying import (
    IDEMPOTENCY_KEY,
    REPEATABLE_METHODS,
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

ITS_KEY = IDEMPOTENCY_KEY.lower().encode()
ServeHere: TypeAlias = Callable[[Receive], Awaitable[None]]
"""Serves the request in this process after all."""


class Passer(Protocol):
    """Whoever passes requests on to owners: a member, or a gateway."""

    answer_seconds: float | None
    """How long an owner may take until its answer begins; None if the client decides that."""

    @property
    def forwarding(self) -> Forwarding:
        """Its connections to owners."""
        ...

    def check(self, key: UserKey) -> object | None:
        """The lease by which it owns the key itself; None if it does not."""
        ...

    def is_own(self, address: str) -> bool:
        """Whether an owner's address is its own."""
        ...

    def passed_headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """The headers that the owner gets."""
        ...


async def relay_http(
    member: Member,
    router: Router,
    scope: Scope,
    receive: Receive,
    send: Send,
    key: UserKey,
    serve_here: ServeHere,
) -> None:
    """Have the owner of `key` answer, or `serve_here` if this member owns the key by then."""
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
    try:
        await pass_on(came, body, send)
    finally:
        came.close()


class Body:
    """The body of a request: the whole body if it is small, or as it comes."""

    def __init__(self, receive: Receive, whole: bytes | None) -> None:
        self.rest = receive
        self.whole = whole
        self.is_there = True
        """Whether the whole body can be sent, again or for the first time."""
        self.over = asyncio.Event() if whole is None else None
        """Set when no more of the body is to come, if it has not come whole."""

    @classmethod
    async def of(cls, scope: Scope, receive: Receive) -> "Body | None":
        """The body of a request of which nothing was read; None if its client has gone."""
        headers = scope["headers"]
        length = header(headers, CONTENT_LENGTH)
        is_chunked = header(headers, TRANSFER_ENCODING) is not None
        if length is None and not is_chunked:
            return cls(receive, b"")
        if (
            is_chunked
            or length is None
            or not length.isdigit()
            or int(length) > MOST_REPEATED_BYTES
        ):
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

    def __aiter__(self) -> AsyncIterator[bytes]:
        if not self.is_there:
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
                if self.over is not None:
                    self.over.set()
                return

    async def receive(self) -> Message:
        """The next message of the client, for an application in this process."""
        if self.whole is None:
            return await self.rest()
        whole, self.whole = self.whole, None
        return {"type": "http.request", "body": whole, "more_body": False}


async def obtained(
    passer: Passer,
    router: Router,
    scope: Scope,
    key: UserKey,
    body: Body,
    seconds: float | None = None,
) -> Forwarded | None:
    """The owner's answer; None if this process owns the key by now. It is tried for `seconds`, or
    as long as the router says.
    """
    method = scope["method"]
    has_key = method not in REPEATABLE_METHODS and header(scope["headers"], ITS_KEY) is not None
    wanted = Wanted(key, method, scope["path"], has_key)

    async def attempt(address: str, _: float) -> Forwarded | Attempted | None:
        if passer.check(key) is not None and body.is_there:
            return None
        if passer.is_own(address):
            return Refused(None)  # the table names this member, and the grant is on its way
        return await sent(passer, router, scope, wanted, address, body)

    began = asyncio.get_running_loop().time()
    first: tuple[str, Attempted] | None = None
    found = router.lookup.find(key)
    if found is not None and not passer.is_own(found):
        # Nearly all requests are answered at once, and pay for no more than this.
        if passer.check(key) is not None:
            return None
        came = await sent(passer, router, scope, wanted, found, body)
        if not isinstance(came, Attempted):
            return came
        first = found, came
    deadline = began + (router.limit if seconds is None else seconds)
    return await router.ask(
        wanted, attempt, lambda _: body.is_there, deadline=deadline, first=first
    )


async def sent(
    passer: Passer, router: Router, scope: Scope, wanted: Wanted, address: str, body: Body
) -> Forwarded | Attempted:
    """Send the request once."""
    # Behind a member there is no limit in time: the client decides how long the application may
    # take. But a request that may be repeated is given up when its key goes elsewhere.
    seconds = passer.answer_seconds
    by = None if seconds is None else asyncio.get_running_loop().time() + seconds
    limit = router.limit_of(wanted, address, by)
    passed, to_send = passer.passed_headers(scope), body.whole
    if to_send is None:
        passed = with_one_length(passed, scope)
    origin = router.origin(address)
    try:
        with limit:
            answer = await passer.forwarding.ask(
                *(origin, scope["method"], target_at(origin, scope), passed),
                body if to_send is None else to_send,
            )
    except NotConnected as error:
        return Unsent(str(error))
    except OSError as error:
        return limit.ended_it() or InDoubt(f"the connection broke: {error!r}")

    def told(name: str) -> str | None:
        value = header(answer.headers, name.lower().encode())
        return None if value is None else value.decode("latin-1")

    came = judge(answer.status, told)
    if answer.status == SWITCHING and header(passed, b"upgrade") is None:
        came = InDoubt("it answered 101 to a request that asked for no other protocol")
    if came is None:
        return answer
    answer.close()
    return came


def with_one_length(headers: list[tuple[bytes, bytes]], scope: Scope) -> list[tuple[bytes, bytes]]:
    """The headers without a length if the body came in chunks: those count."""
    if header(scope["headers"], TRANSFER_ENCODING) is None:
        return headers
    return [each for each in headers if each[0] != CONTENT_LENGTH]


def target_at(origin: Origin, scope: Scope) -> str:
    """The request's path and query at another member, as they are on the wire."""
    path, query = origin.path_to(raw_path(scope)), scope["query_string"]
    return f"{path}?{query.decode('latin-1')}" if query else path


async def pass_on(answer: Forwarded, body: Body, send: Send) -> None:
    """Answer with the owner's answer, as it comes; stop when the client has gone."""
    headers = end_to_end(answer.headers)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    whole = answer.whole()
    if whole is not None:
        await send({"type": "http.response.body", "body": whole})
        return
    going = asyncio.ensure_future(_close_when_gone(body, answer))
    try:
        async for chunk in answer:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except ConnectionError:
        if not going.done():
            raise  # break off as the owner did: the client must not mistake this for the end
        return
    finally:
        going.cancel()
    await send({"type": "http.response.body", "body": b""})


async def _close_when_gone(body: Body, answer: Forwarded) -> None:
    if body.over is not None:
        await body.over.wait()
    while (await body.rest())["type"] != "http.disconnect":
        pass
    answer.close()
