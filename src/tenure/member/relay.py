"""`Relay`: makes the process that owns a request's key serve the request.

It stands around an ASGI application, outermost. If this member holds the key, the application
serves the request at once. If another member holds it, the request is relayed to that member's
listener, which answers it. A request is relayed once, and never further. So the client, or a load
balancer that knows nothing of keys, may ask any process.

A refusal is truthful: 421 if nothing was begun, 503 with `Tenure-Outcome: unknown` if the lease was
lost in the middle. An application raises NotOwner, LeaseLost and the like, and Relay answers.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tenure.base.keys import UserKey
from tenure.client.refusals import NOT_BEGUN, OUTCOME_HEADER, RETRY_HEADER, HttpAnswer, refusal
from tenure.errors import KeyTypeError, LeaseLost, NotOwner, TenureError
from tenure.member.aiohttp.websocket_relay import relay_websocket
from tenure.member.asgi import (
    KEY,
    MEMBER,
    OURS,
    PRIVATE,
    RELAYED,
    SERVICE_RESTART,
    App,
    Message,
    Receive,
    Relayed,
    Scope,
    Send,
    below_root,
    deny,
    header,
    respond,
    routed_path,
)
from tenure.member.http_relay import relay_http
from tenure.member.member import HOW_TO_ENTER, Member
from tenure.member.next_message import NextMessage
from tenure.routing.outstanding import MOST_OUTSTANDING
from tenure.routing.router import Router
from tenure.routing.template import PathKey, Templates

DEADLINE_SECONDS = 10.0
"""How long a client waits until an owner is found. People wait no longer, and two holds, for which
programs wait, may be more than a minute.
"""
ENDS_WITHIN_SECONDS = 5.0
"""How long after the disconnection of a WebSocket whose lease is lost its handler is cancelled."""
NO_PATHS = "", "*"
"""What stands in the place of a path without being one: the root itself, and the whole server."""
Refuse = Callable[[HttpAnswer], Awaitable[None]]

logger = logging.getLogger("tenure.member")


class Relay:
    """ASGI middleware: `app.add_middleware(Relay, member=member, key="/carts/{user}")`.

    `key` says where the key stands in the path; see `route`. Paths without a key are served here.
    With `relay=False`, what another member has is refused with 421, which names it. `ready` is a
    path to be answered 200 while this member holds keys, and 503 otherwise. A request that cannot
    be relayed is tried for `deadline` seconds, by default ten; `outstanding` requests may
    wait for one member. Raises ConfigurationError for arguments that cannot be used.
    """

    def __init__(
        self,
        app: App,
        *,
        member: Member,
        key: PathKey,
        relay: bool = True,
        ready: str | None = None,
        deadline: float | None = None,
        outstanding: int = MOST_OUTSTANDING,
    ) -> None:
        self._app = app
        self._member = member
        self.key = key
        self.templates = Templates(key)
        member.is_asked_at(key)
        self._relays = relay
        self._ready = ready
        self._has_warned = False
        seconds = DEADLINE_SECONDS if deadline is None else deadline
        self._router = Router(member, key, deadline=seconds, outstanding=outstanding, origin=None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            if scope["type"] == "lifespan":
                self._member.state = scope.get("state", {})
            await self._app(scope, receive, send)
            return
        scope = dict(scope)
        relayed = _unmark(scope)
        scope[MEMBER] = self._member
        path = below_root(scope["path"], scope)

        async def refuse(answer: HttpAnswer) -> None:
            if scope["type"] == "http":
                await respond(send, answer)
            else:
                await deny(scope, send, answer)

        if path == self._ready:
            await refuse(self._readiness())
        elif not path.startswith("/") and path not in NO_PATHS:
            await refuse(
                HttpAnswer(400, {}, "the target of a request is a path, and begins with /")
            )
        elif (key := self.key_in(scope)) is None:
            await self._app(scope, receive, send)
        elif not self._member.is_entered:
            # A member, or a client that knows members, can ask others; any other client waits.
            is_known = scope.get(PRIVATE)
            self._warn_if_never_entered()
            await refuse(_refused(NotOwner("it is leaving")) if is_known else _not_yet())
        elif relayed is not None and not scope.get(PRIVATE) and self._is_member(relayed.member):
            await refuse(_loop(relayed.member))
        else:
            await self._by_key(scope, receive, send, key, refuse)

    def key_in(self, scope: Scope) -> UserKey | None:
        """The key of a request. It is taken from the path as the application's router sees it: if
        the two read a path differently, a process without the key's lease could serve it.
        """
        return self.templates.find(routed_path(scope))

    def _warn_if_never_entered(self) -> None:
        if not (self._member.has_begun or self._has_warned):
            self._has_warned = True
            logger.warning(
                "%r serves no key, and requests are answered 503: %s", self._member, HOW_TO_ENTER
            )

    async def _by_key(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        key: UserKey,
        refuse: Refuse,
    ) -> None:
        member = self._member
        try:
            is_ours = member.check(key) is not None
        except KeyTypeError as error:
            await refuse(HttpAnswer(400, {}, str(error)))
            return
        serve = self._serve_http if scope["type"] == "http" else self._serve_websocket

        async def serve_here(receive: Receive) -> None:
            scope[KEY] = key
            member.owner.record_load(key, 1)
            await serve(scope, receive, send, key, refuse)

        if is_ours:
            await serve_here(receive)
        elif scope.get(PRIVATE) or not self._relays:
            await refuse(_refused(self._not_owner(key)))
        elif scope["type"] == "http":
            await relay_http(member, self._router, scope, receive, send, key, serve_here)
        else:
            await relay_websocket(member, self._router, scope, receive, send, key, serve_here)

    def _is_member(self, address: str) -> bool:
        return any(address == each for _, each in self._member.lookup.table())

    def _not_owner(self, key: UserKey) -> NotOwner:
        found = self._member.lookup.find(key)
        elsewhere = None if found == self._member.owner.address else found
        return NotOwner(f"{key!r} is not held here", address=elsewhere)

    def _readiness(self) -> HttpAnswer:
        if self._member.is_ready:
            return HttpAnswer(200, {}, "ready")
        return HttpAnswer(503, {}, "this member holds no keys")

    # --- keys of this member ---

    async def _serve_http(
        self, scope: Scope, receive: Receive, send: Send, key: UserKey, refuse: Refuse
    ) -> None:
        has_begun = False

        async def sending(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except TenureError as error:
            answer = refusal(error)
            if answer is None or has_begun:
                raise
            await refuse(answer)

    async def _serve_websocket(
        self, scope: Scope, receive: Receive, send: Send, key: UserKey, refuse: Refuse
    ) -> None:
        served = ServedWebSocket(self._member, key, receive, send)
        watching = asyncio.ensure_future(served.watch())
        try:
            async with served.limit:
                await self._app(scope, served.receive, served.send)
        except TimeoutError:
            if not served.limit.expired():
                raise
        except TenureError as error:
            answer = refusal(error)
            if answer is None:
                raise
            if served.is_accepted:
                await served.close()
            else:
                await refuse(answer)
        finally:
            served.end()
            if served.is_lost:  # the WebSocket is closing, and if cut off might not say why
                await asyncio.wait({watching}, timeout=ENDS_WITHIN_SECONDS)
            watching.cancel()
            await asyncio.wait({watching})


class ServedWebSocket:
    """A WebSocket that is served here: closed with 1012 when the lease of its key is lost."""

    def __init__(self, member: Member, key: UserKey, receive: Receive, send: Send) -> None:
        self._member = member
        self._key = key
        self._send = send
        self._lease = member.owner.check(key)
        self._is_lost = asyncio.Event()
        self._is_closed = False
        self._next = NextMessage(receive, self._is_lost)
        self.is_accepted = False
        self.limit = asyncio.timeout(None)
        """Ends the application's handler, if it goes on after the disconnection."""

    @property
    def is_lost(self) -> bool:
        """Whether the lease is lost."""
        return self._is_lost.is_set()

    async def watch(self) -> None:
        """Wait until the lease is lost, and close."""
        try:
            async with self._member.owner.guard(self._key):
                await asyncio.Event().wait()
        except (NotOwner, LeaseLost):
            await self._lose()

    async def _lose(self) -> None:
        if not self.is_lost:
            self._is_lost.set()
            self.limit.reschedule(asyncio.get_running_loop().time() + ENDS_WITHIN_SECONDS)
            if self.is_accepted:
                await self.close()

    def end(self) -> None:
        """The handler is over."""
        self._next.end()

    async def close(self) -> None:
        """Tell the client to connect again."""
        if not self._is_closed:
            self._is_closed = True
            await self._send({"type": "websocket.close", "code": SERVICE_RESTART, "reason": ""})

    async def send(self, message: Message) -> None:
        """Send what the application sends; nothing goes out once it is closed."""
        if self.is_lost and message["type"] == "websocket.accept":
            raise NotOwner(f"{self._key!r} was lost before its WebSocket was accepted")
        # A process that was stopped may write before it checks the lease.
        if message["type"] == "websocket.send" and not self._holds():
            await self._lose()
        if self._is_closed:
            return
        self._is_closed = message["type"] == "websocket.close"
        self.is_accepted = self.is_accepted or message["type"] == "websocket.accept"
        await self._send(message)

    def _holds(self) -> bool:
        return self._lease is not None and self._member.owner.holds(self._lease)

    async def receive(self) -> Message:
        """The next message of the client, or its disconnection because the lease is lost."""
        message = await self._next.get()
        if message is None or self.is_lost:
            return {"type": "websocket.disconnect", "code": SERVICE_RESTART, "reason": ""}
        if message["type"] == "websocket.receive":
            self._member.owner.record_load(self._key, 1)
        return message


def _unmark(scope: Scope) -> Relayed | None:
    """Take our header out of a scope, written by a member or by somebody who pretends to be one.

    Only requests that come by the member's own listener may say which client asked.
    """
    given = scope["headers"]
    scope["headers"] = [each for each in given if each[0] not in OURS]
    mark = header(given, RELAYED) if len(scope["headers"]) < len(given) else None
    if mark is None:
        return None
    relayed = Relayed.read(mark)
    if relayed is not None and scope.get(PRIVATE):
        scope["client"] = None if relayed.host == "-" else (relayed.host, relayed.port)
        scope["scheme"] = relayed.scheme
    return relayed


def _refused(error: TenureError) -> HttpAnswer:
    answer = refusal(error)
    assert answer is not None, error
    return answer


def _not_yet() -> HttpAnswer:
    headers = {OUTCOME_HEADER: NOT_BEGUN, RETRY_HEADER: "1"}
    return HttpAnswer(503, headers, "this process is starting or ending")


def _loop(member: str) -> HttpAnswer:
    text = (
        f"this was relayed by {member} to a port that several processes share: give Member an "
        "address at which this process alone is reached"
    )
    return HttpAnswer(508, {OUTCOME_HEADER: NOT_BEGUN}, text)
