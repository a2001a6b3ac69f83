"""`Service`: entities behind an HTTP API. A service is a subclass: an `Entity` class has its state,
and methods marked `@operation` are its operations.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from math import ceil
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec
from aiohttp import web

from tenure import Entities, Entity, __version__
from tenure.errors import ConfigurationError, ServiceRefusal
from tenure.services.client import ID_HEADER
from tenure.services.limits import ID_BYTES, OF_ALL, TTL_SECONDS, ServiceLimit
from tenure.services.openapi import document
from tenure.services.operations import (
    BoundHandler,
    ServiceAnswer,
    ServiceRequest,
    operation,
    operations_of,
)

E = TypeVar("E", bound=Entity[Any])
DAY = 86_400.0
DEADLINE_SECONDS = 60.0
SocketHandler = Callable[
    [web.Request, str, asyncio.Future[int]], Coroutine[Any, Any, web.StreamResponse]
]
"""Its future gets the code with which to close the socket, when the socket may no longer stay."""


class ServicePort(Protocol):
    """Listens for a service. Anybody on the network may connect, even if tokens are required
    afterwards, so it bounds the connections, and how long they are silent.
    """

    @property
    def silent_seconds(self) -> float:
        """How long a whole request may take to arrive, with its body."""
        ...

    async def listen(
        self, host: str, port: int, tls: ssl.SSLContext | None, *, reuse_port: bool = False
    ) -> int:
        """Open the port and return it. Raises OSError if it cannot be bound."""
        ...

    def spoke(self, request: web.Request, *, is_socket: bool = False) -> None:
        """A whole request was read; with `is_socket`, messages follow on its connection."""
        ...

    def proven(self, request: web.Request) -> None:
        """The peer of a request has shown that it may be here."""
        ...

    def take_no_more(self) -> None:
        """Refuse new connections; present ones go on until `close`."""
        ...

    async def close(self) -> None:
        """Refuse new connections, and end present ones."""
        ...


class MakePort(Protocol):
    """Makes the handler that serves an application."""

    def __call__(self, app: web.Application, *, knows_peers: bool = False) -> ServicePort:
        """With `knows_peers`, who has not proven who it is gives way to others."""
        ...


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a service: the options of `tenure serve`."""

    pool: str
    managers: str | None = None
    store: str | None = None
    ttl: float = 30 * DAY
    """How many seconds a key is kept that nobody refreshes, unless a request gives another time."""
    watch: tuple[str, ...] = ()
    """Pools whose losses this service reports, if it reports losses."""
    queues: tuple[str, ...] = ()
    """URLs of the queues into which messages go, for pubsub."""
    queues_token: Path | None = None
    """A file with the token for these queues, if it is not this process's own."""
    publish_to: tuple[str, ...] = ()
    """URLs of the pubsub to which documents publish their changes."""
    publish_token: Path | None = None
    """A file with the token for that, if it is not this process's own."""
    rules: str | None = None
    """The rules of feeds, as module:name."""
    inward: bool = False
    """Whether URLs that users name may lead to private addresses."""
    reads: Literal["owner", "everywhere"] | None = None
    """Where documents are read; see `Entities`."""
    stale_after: float | None = None
    """How old a copy may be while the owner does not answer; see `Entities`."""
    members: str = "127.0.0.1:0"
    """The address at which the other processes of the pool reach this one."""
    address: str | None = None
    insecure: bool = False
    deadline: float = DEADLINE_SECONDS
    """Seconds for which a request is tried."""


NOT_OF_ALL = frozenset(
    {
        *("store", "watch", "queues", "queues_token", "rules", "inward"),
        *("publish_to", "publish_token", "reads", "stale_after"),
    }
)
"""Settings that only some services have."""


class LimitShown(msgspec.Struct):
    """A limit, as `GET /limits` shows it."""

    name: str
    most: int
    status: int
    why: str


Ttl = Annotated[float, msgspec.Meta(ge=0)]


class TimeToLive(msgspec.Struct, forbid_unknown_fields=True):
    """How long something is kept."""

    ttl: Ttl = 0.0
    """Seconds; 0 to leave the time unchanged."""


def id_in(headers: Mapping[str, str]) -> str | None:
    """The id of a request, if it has one. Raises ServiceRefusal if it cannot be an id."""
    given = headers.get(ID_HEADER)
    if given is not None:
        try:
            ID_BYTES.check(len(given.encode()))
        except UnicodeEncodeError:
            raise ServiceRefusal(400, "id", f"the {ID_HEADER} is no UTF-8") from None
    return given


class Service(Generic[E]):
    """One process of a service. `name`, `entity` and `limits` are its class's."""

    name: ClassVar[str]
    port: ClassVar[int]
    """The port on which `tenure serve` listens unless told otherwise."""
    entity: type[E]
    limits: ClassVar[tuple[ServiceLimit, ...]] = ()
    takes: ClassVar[frozenset[str]] = frozenset({"store"})
    """The optional settings that this service has."""

    def __init__(self, settings: ServiceSettings, **of_entities: Any) -> None:  # noqa: ANN401
        self.settings = self.checked(settings)
        self.entities: Entities[E] = Entities(
            self.entity_type(),
            settings.pool,
            settings.managers,
            store=settings.store,
            listen=settings.members,
            address=settings.address,
            insecure=settings.insecure,
            deadline=settings.deadline,
            **of_entities,
        )

    @classmethod
    def checked(cls, settings: ServiceSettings) -> ServiceSettings:
        """Return the settings. Raises ConfigurationError if one does not apply to this service."""
        if not 0 < settings.ttl <= TTL_SECONDS.most:
            raise ConfigurationError(
                f"the time to live is more than 0 seconds, and {TTL_SECONDS.most} at most, not "
                f"{settings.ttl:g}: give --ttl another"
            )
        for name in sorted(NOT_OF_ALL - cls.takes):
            if getattr(settings, name):
                option = name.replace("_", "-")
                raise ConfigurationError(f"{cls.name} has no use for --{option}: leave it out")
        return settings

    def entity_type(self) -> type[E]:
        """The class of its entities; a process may make its own."""
        return self.entity

    @asynccontextmanager
    async def running(self, make_port: MakePort) -> AsyncIterator[None]:
        """Own keys of the pool until the block ends, and then hand them over. `make_port` is for a
        service that listens for its other processes itself.
        """
        async with self.entities:
            yield

    def repeatable(self, asked: ServiceRequest) -> E:
        """The requested entity, called under the id of the request if it has one."""
        given = id_in(asked.headers)
        if given is None:
            return self.entities[asked.key]
        of = asked.request
        return self.entities.once(f"{of.method} {of.path} {given}")[asked.key]

    def checked_ttl(self, given: float, usual: float | None = None) -> float:
        """The seconds to keep something, or the default for 0. Raises ServiceRefusal."""
        if not given:
            return self.settings.ttl if usual is None else usual
        TTL_SECONDS.check(ceil(given))
        return given

    def sockets(self) -> dict[str, SocketHandler]:
        """The paths, with {key}, at which the service takes WebSockets."""
        return {}

    async def carried_out(self, handler: BoundHandler, asked: ServiceRequest) -> ServiceAnswer:
        """Carry an operation out and return its answer: all operations go through this."""
        return await handler(asked)

    def end_waiting(self) -> None:
        """The process is about to end: answer all waiting requests now."""

    @operation("GET", "/limits", "List the limits", {200: list[LimitShown]})
    async def list_limits(self, asked: ServiceRequest) -> ServiceAnswer:
        """Every limit, with its reason."""
        return ServiceAnswer(200, [LimitShown(*each) for each in (*OF_ALL, *self.limits)])

    @operation("GET", "/openapi.json", "This document", {200: dict[str, Any]})
    async def describe(self, asked: ServiceRequest) -> ServiceAnswer:
        """The OpenAPI document."""
        return ServiceAnswer(200, self.document())

    def document(self) -> dict[str, Any]:
        """The OpenAPI document."""
        listed = [each for each, _ in operations_of(self)]
        return document(f"tenure {self.name}", __version__, listed)
