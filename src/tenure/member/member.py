"""`Member`: one process of a web service, whose server may have several.

It is an Owner and a Lookup of one pool, and a listener at which the other members find it: the
address of the Owner is the listener's. `Relay` relays requests for another member's keys to that
member, so that a client may ask any process, through the one port that they share.

A Member may be made when a module is imported, before a server forks its workers: it makes its
Owner, and everything else that belongs to one process, when it is entered.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Unpack

from tenure.base.keys import UserKey
from tenure.client.arguments import checked_drain, checked_flag, checked_name
from tenure.client.callbacks import check_callback
from tenure.client.environment import Environment, environment_here
from tenure.client.lease import Lease
from tenure.client.lookup import Lookup, OnChange
from tenure.client.managers import find_managers
from tenure.client.options import MemberOptions, OnRanges
from tenure.client.owner import DRAIN_SECONDS, Owner
from tenure.client.refusals import HttpAnswer
from tenure.client.watching import Watch
from tenure.errors import ClosedError, ConfigurationError, UsageError
from tenure.member.aiohttp.session import Application, MemberSession
from tenure.member.asgi import (
    PRIVATE,
    PROBE,
    RELAYED,
    App,
    Receive,
    Relayed,
    Scope,
    Send,
    end_to_end,
    respond,
)
from tenure.member.environment import member_environment
from tenure.member.forwarding import Forwarding
from tenure.member.listener import MemberListener, checked_listen, checked_member_address
from tenure.member.told_routes import told_routes
from tenure.routing.template import PathKey
from tenure.transport.answer_body import read_body
from tenure.transport.credentials import Credentials
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.port_guard import PortGuard

HOW_TO_ENTER = (
    "pass its lifespan to the application, as in FastAPI(lifespan=member.lifespan), or its "
    "cleanup_ctx, as in app.cleanup_ctx.append(member.cleanup_ctx) with aiohttp, or use "
    "`async with member.serving(app)`"
)
PROBE_BYTES = 4_096
"""The most that is read of the answer to a probe, which is a name."""
WATCHDOG_SECONDS = 10.0
"""After this time, a member that does not answer its own probe loses its leases: less than a term
of the preset `default`, and longer than a merely busy event loop hangs.
"""


class Member:
    """One process of `pool`, behind a server that may have several processes.

    `managers` are given as to Owner. `listen` ("HOST:PORT") is where the other members reach it: by
    default a free port on loopback, for servers whose processes are all on one machine. If other
    machines can reach it, its `credentials` must be mutual TLS, or `insecure` must say that you
    trust everybody there; `address` is its URL if that differs from where it listens. `credentials`
    are by default those that the environment names. `drain` is how many seconds it spends on
    handing over when it leaves. `on_loss` and all other options are those of Lookup and Owner.
    `watchdog` is 10 seconds unless given: it asks the member's own listener, so a member that does
    not serve loses its leases.

    Enter it with the application: `FastAPI(lifespan=member.lifespan)`,
    `async with member.serving(app)` for any ASGI application, or, with aiohttp's servers,
    `app.cleanup_ctx.append(member.cleanup_ctx)`. It can be entered once at a time, in as many
    processes as have forked. Raises ConfigurationError for arguments that cannot be used.
    """

    def __init__(
        self,
        pool: str,
        managers: str | Sequence[str] | None = None,
        *,
        listen: str = "127.0.0.1:0",
        address: str | None = None,
        insecure: bool = False,
        drain: float = DRAIN_SECONDS,
        on_loss: OnRanges | None = None,
        credentials: Credentials | None = None,
        **options: Unpack[MemberOptions],
    ) -> None:
        self.pool = checked_name("pool", pool)
        if managers is not None:  # the environment may change before it is entered
            find_managers(managers)
        self._managers = managers
        check_callback("on_loss", on_loss)
        self.credentials = environment_here(credentials).credentials
        is_safe = checked_flag("insecure", insecure) or self.credentials.mutual
        self._listen = checked_listen(listen, address, insecure=is_safe)
        self._address = checked_member_address(address)
        self._drain = checked_drain(drain)
        self._on_loss = on_loss
        self._options = options
        options.setdefault("watchdog", WATCHDOG_SECONDS)
        self._owner: Owner | None = None
        self._lookup: Lookup | None = None
        self._session: MemberSession | None = None
        self._forwarding: Forwarding | None = None
        self._listener: MemberListener
        self._is_entered = False
        self._paths: dict[str, None] = {}
        self.has_begun = False
        """Whether anybody has ever entered it here."""
        self.state: Mapping[str, Any] = {}
        """The state of requests that the application's lifespan has set."""

    # --- what is held ---

    @property
    def owner(self) -> Owner:
        """The member's Owner. Raises ClosedError if the member is not entered."""
        if self._owner is None:
            raise _not_entered()
        return self._owner

    @property
    def lookup(self) -> Lookup:
        """The member's Lookup. Raises ClosedError if the member is not entered."""
        if self._lookup is None:
            raise _not_entered()
        return self._lookup

    @property
    def session(self) -> MemberSession:
        """The session with which it relays WebSockets, and asks itself."""
        if self._session is None:
            raise _not_entered()
        return self._session

    @property
    def forwarding(self) -> Forwarding:
        """The connections by which it relays requests."""
        if self._forwarding is None:
            raise _not_entered()
        return self._forwarding

    def is_asked_at(self, key: PathKey) -> None:
        """Take note of where in a path its keys are, which `tenure gateway` asks for; see
        `told_routes`. Where a function finds them, nobody else can know.
        """
        if not callable(key):
            self._paths.update(dict.fromkeys((key,) if isinstance(key, str) else key))

    def check(self, key: UserKey) -> Lease | None:
        """Return what `Owner.check` does; None if the member is not entered yet."""
        return self.owner.check(key) if self._is_entered else None

    # --- where the keys of others are, with the methods of a Lookup ---

    def find(self, key: UserKey, /) -> str | None:
        """Return what `Lookup.find` does."""
        return self.lookup.find(key)

    def watch(self, key: UserKey, callback: OnChange) -> Watch:
        """Watch a key as `Lookup.watch` does."""
        return self.lookup.watch(key, callback)

    def moved(self, key: UserKey, not_at: str | None, timeout: float) -> "Future[None]":
        """Return what `Lookup.moved` does."""
        return self.lookup.moved(key, not_at, timeout)

    @property
    def hold(self) -> float:
        """The seconds that `Lookup.hold` has."""
        return self.lookup.hold

    # --- what it passes on ---

    answer_seconds: float | None = None

    def is_own(self, address: str) -> bool:
        """Whether an owner's address is this member's."""
        return address == self.owner.address

    def passed_headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """The headers that the owner gets. One of them says which client asked."""
        relayed = str(Relayed.by(self.owner.address, scope))
        return [*end_to_end(scope["headers"]), (RELAYED, relayed.encode())]

    @property
    def is_entered(self) -> bool:
        """Whether it can serve and relay: entered, and not left yet."""
        return self._is_entered

    @property
    def is_ready(self) -> bool:
        """Whether it holds keys, and is not leaving: for a readiness probe."""
        return self._is_entered and bool(self.owner.ranges)

    def __repr__(self) -> str:
        held = repr(self._owner) if self._owner is not None else "not entered"
        return f"<Member of pool {self.pool!r}: {held}>"

    # --- living ---

    @asynccontextmanager
    async def lifespan(self, app: Any) -> AsyncIterator[None]:  # noqa: ANN401  # of any framework
        """The lifespan of an ASGI application: `FastAPI(lifespan=member.lifespan)`."""
        async with self.serving(app):
            yield

    @asynccontextmanager
    async def serving(self, app: App) -> AsyncIterator["Member"]:
        """Be a member, and serve `app` at the member's own listener, until the block ends.

        Leaving hands over everything, and serves it until that is done; see `Owner.close`.
        """
        listener = member_environment().listener
        door = self._own_door(app)
        async with self._entered(partial(listener, door)):
            yield self

    async def cleanup_ctx(self, app: Application) -> AsyncIterator[None]:
        """The same for aiohttp's servers: `app.cleanup_ctx.append(member.cleanup_ctx)`."""
        from tenure.member.aiohttp.exchange import watch_answers  # noqa: PLC0415
        from tenure.member.aiohttp.listener import AiohttpDoor  # noqa: PLC0415  # loads servers

        watch_answers(app)
        listener = member_environment().aiohttp_listener
        door = AiohttpDoor(app, self._shown_name)
        async with self._entered(partial(listener, door)):
            yield

    @asynccontextmanager
    async def _entered(
        self, listen: Callable[[str, Credentials, PortGuard], MemberListener]
    ) -> AsyncIterator[None]:
        if self._owner is not None:
            raise UsageError(
                "this Member is entered already; a process that serves two applications has a "
                "Member for each"
            )
        self.has_begun = True
        async with AsyncExitStack() as stack:
            secret = PoolSecret()
            guard = PortGuard(secret)
            listener = self._listener = listen(self._listen, self.credentials, guard)
            stack.push_async_callback(listener.stop)
            address = self._address or listener.url
            guard.answers_to(address)
            lookup = Lookup(
                self._managers,
                pool=self.pool,
                on_loss=self._on_loss,
                _environment=self._environment(secret),
            )
            owner = Owner(
                self._managers,
                pool=self.pool,
                address=address,
                lookup=lookup,
                _environment=self._environment(secret),
                probe=self._probe if self._options["watchdog"] else None,
                **self._joining(),
            )
            stack.callback(self._forget)
            self._owner, self._lookup = owner, lookup
            await listener.start()
            around = member_environment()
            self._session = await stack.enter_async_context(around.session())
            self._forwarding = around.forwarding(self.credentials, secret)
            stack.callback(self._forwarding.close)
            await stack.enter_async_context(owner)  # which creates the pool, where there is none
            await stack.enter_async_context(lookup)
            stack.push_async_callback(self._leave)
            self._is_entered = True
            yield

    def _joining(self) -> MemberOptions:
        return {**self._options, "labels": told_routes(self._paths, self._options.get("labels"))}

    def _environment(self, secret: PoolSecret) -> Environment:
        made = environment_here(self.credentials)
        made.secret = secret
        return made

    async def _leave(self) -> None:
        await self.owner.close(drain=self._drain)
        self._is_entered = False  # before the lookup goes: further requests are refused

    def _forget(self) -> None:
        self._is_entered = False
        self._owner = self._lookup = self._session = self._forwarding = None

    async def _probe(self) -> None:
        """Ask its own listener who answers. Raises if another process does, or none."""
        name = self.owner.name
        url = self.owner.address + PROBE
        async with self.session.get(url, ssl=self.credentials.to(url) or True) as response:
            said = await read_body(response, PROBE_BYTES)
        found = (said or b"more than a name").decode(errors="replace")
        if found != name:
            raise ConfigurationError(
                f"{self.owner.address} is answered by {found[:100]!r}, and not by {name!r}: a "
                "member's address must lead to its own listener, not to a shared port"
            )

    def _shown_name(self) -> str:
        """The answer to the probe."""
        return self._owner.name if self._owner is not None else ""

    def _own_door(self, app: App) -> App:
        """The application as the listener serves it, with a mark that the request came that way."""

        async def door(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["path"] == PROBE:
                await respond(send, HttpAnswer(200, {}, self._shown_name()))
                return
            scope[PRIVATE] = True
            scope["state"] = dict(self.state)
            await app(scope, receive, send)

        return door


def _not_entered() -> ClosedError:
    return ClosedError(f"this Member is not entered: {HOW_TO_ENTER}")
