"""Where a gateway passes requests on: the owners of a pool's keys, or a plain server. Both go the
way of a member's relay: a plain server is as an owner that has every key and never moves.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from tenure.base.keys import UserKey
from tenure.client.environment import environment_here
from tenure.client.lookup import Lookup
from tenure.client.watching import KeyChange
from tenure.entities.socket_offer import OFFER
from tenure.errors import NoOwner, TenureError
from tenure.gateway.passed_headers import (
    FORWARDED_FOR,
    ClientSeen,
    PairsOfHeaders,
    TrustedProxies,
    for_owner,
)
from tenure.member.asgi import RELAYED, Relayed, Scope
from tenure.member.forwarding import KeptConnections
from tenure.routing.finder import Watching
from tenure.routing.outstanding import MOST_OUTSTANDING
from tenure.routing.router import Router
from tenure.transport.credentials import Credentials
from tenure.transport.pool_secret import PoolSecret

ENTER_SECONDS = 3.0
AGAIN_SECONDS = 1.0
"""How long a pool is asked for at a time, and how long after that again: it may be made any moment.
"""
NAME = "gateway"
"""What it calls itself where members give their address."""
logger = logging.getLogger("tenure.gateway")


class TargetSettings:
    """What all targets of a gateway have in common."""

    def __init__(
        self,
        managers: str | None,
        credentials: Credentials,
        trusted: TrustedProxies,
        deadline: float,
        answer_seconds: float,
    ) -> None:
        self.managers = managers
        self.credentials = credentials
        self.trusted = trusted
        self.deadline = deadline
        self.answer_seconds = answer_seconds


class Target:
    """One of them. See `Passer`."""

    name: str
    router: Router
    tells_client = False
    """Whether it is told by a header of ours who the client is: a member gives that client to its
    application.
    """

    def __init__(self, settings: TargetSettings, secret: PoolSecret) -> None:
        self.settings = settings
        self.answer_seconds: float | None = settings.answer_seconds
        self.credentials = settings.credentials
        self.forwarding = KeptConnections(settings.credentials, secret)

    def check(self, key: UserKey) -> object | None:
        """See `Passer`. A gateway owns nothing."""
        return None

    def is_own(self, address: str) -> bool:
        return False

    def may_give(self, pool: str) -> bool:
        """Whether it may give sockets of that pool's entities over. A plain server may: the
        operator has named it, and the application behind it has entities of any pool.
        """
        return True

    def passed_headers(self, scope: Scope) -> PairsOfHeaders:
        host = scope["client"][0]
        is_trusted = self.settings.trusted.has(host)
        passed = for_owner(scope["headers"], ClientSeen(host, scope["scheme"], is_trusted))
        if self.tells_client:
            passed.append((RELAYED, said_of_client(scope, is_trusted=is_trusted)))
        if "upgrade" in scope:
            passed += [(b"connection", b"upgrade"), (b"upgrade", scope["upgrade"])]
            passed += [(OFFER.encode(), each.header.encode()) for each in scope["offers"]]
        return passed

    async def routed(self, seconds: float) -> Router:
        """The router, once there is one. Raises NoOwner if there is none in time."""
        return self.router

    @property
    def is_ready(self) -> bool:
        """Whether requests can be passed on."""
        return True

    async def close(self) -> None:
        """Pass nothing more on."""
        self.forwarding.close()


class PlainServer(Target):
    """A server that gets whatever no pool gets."""

    def __init__(self, url: str, settings: TargetSettings) -> None:
        super().__init__(settings, PoolSecret())
        self.name = url
        self.router = _router(OneAddress(url), settings)


class OneAddress:
    """A finder that finds the same address for every key."""

    hold = 0.0

    def __init__(self, address: str) -> None:
        self._address = address

    def find(self, key: UserKey, /) -> str | None:
        return self._address

    def watch(self, key: UserKey, callback: Callable[[KeyChange], object]) -> Watching:
        """See `Finder`. It never changes."""
        return NoWatch()

    def moved(self, key: UserKey, not_at: str | None, timeout: float) -> "Future[None]":
        waiting: Future[None] = Future()

        def end() -> None:
            if waiting.set_running_or_notify_cancel():
                waiting.set_result(None)

        asyncio.get_running_loop().call_later(timeout, end)
        return waiting


class NoWatch:
    """A watch of what does not change."""

    def cancel(self) -> None:
        """There is nothing to cancel."""


class PoolTarget(Target):
    """The owners of a pool. Follows its table, from the moment at which a manager can be asked."""

    tells_client = True

    def __init__(self, pool: str, settings: TargetSettings) -> None:
        self.secret = PoolSecret()
        lookup = _lookup(pool, settings, self.secret)
        super().__init__(settings, self.secret)
        self.name = pool
        self._pool = pool
        self._lookup = lookup
        self._is_there = asyncio.Event()
        self._why = ""
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def _follow(self) -> None:
        while True:
            try:
                async with self._lookup as lookup:
                    self.router = _router(lookup, self.settings)
                    self._is_there.set()
                    await asyncio.Event().wait()
            except TenureError as error:
                if not self._why:
                    logger.warning("pool %s cannot be followed yet: %s", self._pool, error)
                self._why = str(error)
            await asyncio.sleep(AGAIN_SECONDS)
            self._lookup = _lookup(self._pool, self.settings, self.secret)

    @property
    def finder(self) -> Lookup:
        """Its Lookup. Raises NoOwner while that knows nothing."""
        if not self._is_there.is_set():
            raise NoOwner(f"no owner in pool {self._pool} is known yet")
        return self._lookup

    async def routed(self, seconds: float) -> Router:
        if not self._is_there.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._is_there.wait()
                    return self.router
            raise NoOwner(
                f"no owner in pool {self._pool} is known: {self._why or 'no manager has answered'}"
            )
        return self.router

    @property
    def is_ready(self) -> bool:
        return self._is_there.is_set() and self._lookup.in_contact

    def may_give(self, pool: str) -> bool:
        """See `Target`. Who may join one pool is not told of the sockets of another."""
        return pool == self.name

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})
        await super().close()


def said_of_client(scope: Scope, *, is_trusted: bool) -> bytes:
    """The value of that header. A load balancer that is trusted says who its client is."""
    host, port = scope["client"]
    if is_trusted:
        # Some put a header of their own behind that of a client, which may say anything.
        said = [value for name, value in scope["headers"] if name == FORWARDED_FOR] or [b""]
        nearest = said[-1].rpartition(b",")[2].strip().decode("latin-1")
        host, port = (nearest, 0) if nearest and " " not in nearest else (host, port)
    return str(Relayed(NAME, host, port, scope["scheme"])).encode()


def _router(finder: "OneAddress | Lookup", settings: TargetSettings) -> Router:
    # The gateway's routes have found the key already.
    deadline, most = settings.deadline, MOST_OUTSTANDING
    return Router(finder, lambda _: None, deadline=deadline, outstanding=most, origin=None)


def _lookup(pool: str, settings: TargetSettings, secret: PoolSecret) -> Lookup:
    environment = environment_here(settings.credentials)
    environment.secret = secret
    return Lookup(
        settings.managers, pool=pool, enter_timeout=ENTER_SECONDS, _environment=environment
    )
