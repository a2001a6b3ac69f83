"""`Entities`: a class for each key, in the user's own application.

rooms = Entities(Room, pool="rooms")
app = FastAPI(lifespan=rooms.lifespan)
await rooms["attic"].last()              # here, or at its owner
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, cast

from xxhash import xxh3_128_digest

from tenure.base.names import shown
from tenure.client.environment import Environment
from tenure.client.options import BeingAnOwner, MemberPlace, check_known
from tenure.entities.entered_place import EnteredPlace
from tenure.entities.entity import Entity
from tenure.entities.entity_kind import EntityKind
from tenure.entities.entity_readers import EntityReaders
from tenure.entities.giving_over import give
from tenure.entities.methods import CallHere, checked_key
from tenure.entities.settings import EntitySettings, Reads
from tenure.entities.socket_offer import TakenSocket
from tenure.entities.station import Station
from tenure.errors import ClosedError, ConfigurationError, UsageError
from tenure.protocol.lease.reports import TierReport

if TYPE_CHECKING:
    from aiohttp import web

E = TypeVar("E", bound=Entity[Any])

WATCHDOG_SECONDS = 10.0


class EntitiesOptions(MemberPlace, BeingAnOwner, total=False):
    """How long calls and instances may last, and how many there may be."""

    idle: float
    limit: int
    turn: float
    wait: float
    most_waiting: int
    deadline: float | None
    settle: float
    reads: Reads
    stale_after: float | None


class Entities(EnteredPlace[Station], Generic[E]):
    """The entities of `pool`, one instance of the class for each key, at the key's owner.

    `entities[key]` has the type of an instance: call its methods, whichever process owns the key.
    `managers` are given as to Owner, and so are `capacity`, `labels`, `name`, `enter_timeout`,
    `watchdog`, and `kind`. `store` ("sqlite:FILE", "postgresql://...", "rocksdb:DIRECTORY",
    "columns:URL,URL", "cassandra:HOST,HOST/KEYSPACE") keeps what survives the loss of a process;
    without one, state moves from owner to owner, and a crash loses it.

    `turn` is how many seconds a call may run, `wait` how long it waits for its turn behind at most
    `most_waiting` others, and `deadline` how long a caller keeps trying. An instance that is unused
    for `idle` seconds is dropped, and so are the oldest over `limit`. Before a range moves, turns
    there may continue for `settle` seconds. With `reads="everywhere"`, methods marked `@reading`
    run in the process that calls them, on a copy of the state that is never older than an answer
    that was sent before. While a key's owner does not answer, they raise Unreachable, or take a
    copy that was current `stale_after` seconds ago or later. `listen`, `address`, `insecure` and
    `drain` are those of Member. `on_loss` is called with the ranges whose entities were lost.

    Enter it with `async with`, or as the lifespan of an application. With `with`, methods may be
    plain functions, and run in threads. Raises ConfigurationError for what cannot be used.
    """

    what = "these Entities"

    def __init__(
        self,
        entity: type[E],
        pool: str,
        managers: str | Sequence[str] | None = None,
        *,
        store: str | None = None,
        _environment: Environment | None = None,
        **options: Unpack[EntitiesOptions],
    ) -> None:
        check_known(options, EntitiesOptions, "Entities")
        super().__init__()
        self._kind = EntityKind(entity)
        ours: dict[str, Any] = {}
        of_owner: dict[str, Any] = {"watchdog": WATCHDOG_SECONDS}
        for name, given in options.items():
            (of_owner if name in BeingAnOwner.__annotations__ else ours)[name] = given
        self._settings = EntitySettings(
            pool=pool,
            managers=managers,
            store=store,
            environment_given=_environment,
            of_owner=of_owner,
            **ours,
        )
        self._stub = stub_type(self._kind)

    # --- calls ---

    def __getitem__(self, key: str | int) -> E:
        """The entity of `key`, to be called. Nothing is asked before that."""
        return self._stub(self, checked_key(key))  # type: ignore[return-value]  # it stands for one

    def once(self, id: str) -> "RepeatableCalls[E]":  # noqa: A002  # what it is
        """Calls under your own id, as in `await rooms.once(id)["attic"].say(...)`: if any process
        has made the call before, it gets the first answer, as long as the key keeps that: the last
        64 answers, for ten minutes. Use one id for one call of one method. Raises UsageError for
        what is no text.
        """
        if not isinstance(id, str) or not id:
            raise UsageError(
                f"the id of a call is a text, such as that of an order, not {shown(id)}"
            )
        return RepeatableCalls(self, xxh3_128_digest(id.encode(errors="surrogatepass")))

    def readers(self) -> EntityReaders[E]:
        """The same entities, for a process that owns none of them: `async with rooms.readers() as
        readers: await readers["attic"].last()`, or with `with` and without `await`. It runs
        readings on copies, and calls owners for everything else. Raises ConfigurationError unless
        these have reads="everywhere".
        """
        if self._settings.reads != "everywhere":
            raise ConfigurationError(
                'readers() is for Entities(..., reads="everywhere"), whose owners give copies'
            )
        return EntityReaders(self._kind, self._settings, self._stub)

    async def _call(
        self,
        key: str | int,
        name: str,
        id_: bytes,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:  # noqa: ANN401
        station = self.station_here
        method = self._kind.method(name)
        if not (method.is_coroutine or self.in_threads):
            raise UsageError(
                f"{method.label} is not a coroutine function, and would block the event loop: use "
                f"`async def {name}`. In threads, with `with Entities(...)`, it may be a plain one"
            )
        here = CallHere(method, arguments, named)
        answer = await station.caller.call(key, name, b"", id_, here)
        return here.value if answer is here.data else method.arrived(answer)

    def called(
        self,
        key: str | int,
        name: str,
        id_: bytes,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:  # noqa: ANN401
        """Make the call, here or in the thread of these Entities. For stubs."""
        call: Any = self._call(key, name, id_, arguments, named)
        call.__qualname__ = f"{self._kind.name}.{name}"  # Python says it of a forgotten await
        return self.in_its_loop(call)

    def no_method(self, name: str) -> UsageError:
        """The error of a call to what the class does not have."""
        return self._kind.no_method(name)

    def stub(self, key: str | int, id_: bytes) -> "EntityStub":
        """The entity of `key`, to be called under that id."""
        return self._stub(self, checked_key(key), id_)

    @property
    def station(self) -> Station:
        """The station that is entered. Raises ClosedError if none is entered."""
        if self._place is None:
            raise self.not_entered()
        return self._place

    @property
    def station_here(self) -> Station:
        """The same, for the event loop in which it was entered. Raises UsageError in another."""
        station = self.station
        if asyncio.get_running_loop() is not station.loop:
            raise UsageError(
                "these Entities were entered in another event loop, and must be called there, as "
                "with asyncio.run_coroutine_threadsafe(...); an `async def` endpoint runs there"
            )
        return station

    def close_sockets(self) -> None:
        """Close all WebSockets of this process with 1012, which asks their clients to connect
        again. Call it before you end a server that waits for its connections.
        """
        if self._place is not None:
            self._place.edge.close_all()

    @property
    def name(self) -> str:
        """The name of its owner; empty before it is entered."""
        return "" if self._place is None else self._place.owner.name

    @property
    def pool(self) -> str:
        """Whose keys these are."""
        return self._settings.pool

    def stats(self) -> dict[str, int]:
        """See `Owner.stats`."""
        return {} if self._place is None else self._place.owner.stats()

    def tiers(self) -> TierReport:
        """The report about its entities that the managers were told last."""
        return TierReport() if self._place is None else self._place.owner.tiers()

    def __repr__(self) -> str:
        state = "not entered" if self._place is None else repr(self._place.owner)
        return f"<Entities of {self._kind.name} in pool {self._settings.pool!r}: {state}>"

    # --- living ---

    def _make_place(self) -> Station:
        return Station(self._kind, self._settings)

    def not_entered(self) -> ClosedError:
        return ClosedError(
            "these Entities are not entered: pass their lifespan to the application, as in "
            "FastAPI(lifespan=rooms.lifespan), or use `async with rooms`"
        )

    async def cleanup_ctx(self, app: "web.Application") -> AsyncIterator[None]:
        """The same for aiohttp's servers: `app.cleanup_ctx.append(rooms.cleanup_ctx)`. WebSockets
        are closed when the server begins to shut down, as aiohttp asks of applications.
        """

        async def on_shutdown(_: object) -> None:
            self.close_sockets()

        app.on_shutdown.append(on_shutdown)
        async with self:
            yield


class RepeatableCalls(Generic[E]):
    """See `Entities.once`."""

    __slots__ = ("_entities", "_id")

    def __init__(self, entities: Entities[E], id_: bytes) -> None:
        self._entities = entities
        self._id = id_

    def __getitem__(self, key: str | int) -> E:
        """The entity of `key`, to be called under that id."""
        return cast("E", self._entities.stub(key, self._id))


class EntityStub:
    """Stands for an entity, wherever that is: its methods are calls. Those of the class are in a
    subclass for each, because Python finds a method in a class sooner than by `__getattr__`.
    """

    __slots__ = ("_entities", "_id", "_key")

    def __init__(
        self, entities: Entities[Any] | EntityReaders[Any], key: str | int, id_: bytes = b""
    ) -> None:
        self._entities = entities
        self._key = key
        self._id = id_

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise self._entities.no_method(name)

    async def attach(
        self,
        websocket: Any,  # noqa: ANN401
        attachment: object = None,
        *,
        until: asyncio.Future[int] | None = None,
    ) -> Any:  # noqa: ANN401
        """See `Entity.attach`."""
        station = self._entities.station_here
        edge = station.edge
        made = None if until is not None else station.offered(websocket)
        if made is not None:
            return await give(websocket, made, TakenSocket(station.pool, self._key, attachment))
        if hasattr(websocket, "accept"):
            return await edge.attach(edge.socket(self._key, websocket), attachment, until)
        if not hasattr(websocket, "rel_url"):
            raise UsageError(
                "attach takes a WebSocket of Starlette or FastAPI, or the web.Request of aiohttp "
                f"that opens one, not {websocket!r:.100}"
            )
        from tenure.member.aiohttp.socket import AiohttpSocket  # noqa: PLC0415  # loads a server

        socket = AiohttpSocket(websocket)
        await edge.attach(edge.socket(self._key, socket), attachment, until)
        return socket.response

    def __repr__(self) -> str:
        return f"<entity {self._key!r} of {self._entities!r}>"


def stub_type(kind: EntityKind) -> type[EntityStub]:
    """The class of stubs for entities of that kind."""
    calls = {name: _calling(name) for name in kind.methods}
    return type(f"{kind.name}Stub", (EntityStub,), {"__slots__": (), **calls})


def _calling(name: str) -> Callable[..., Any]:
    def call(self: EntityStub, /, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        return self._entities.called(self._key, name, self._id, arguments, named)

    return call
