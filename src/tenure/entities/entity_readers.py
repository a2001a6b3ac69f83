"""`rooms.readers()`: entities in a process that owns none of them.

Readings run here, on copies; every other call goes to the owner of its key.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar, cast

from tenure.entities.caller import in_turn
from tenure.entities.copies_here import CopiesHere
from tenure.entities.entered_place import EnteredPlace
from tenure.entities.entity import Entity
from tenure.entities.entity_kind import EntityKind
from tenure.entities.far_caller import FarCaller
from tenure.entities.method_runs import MethodRuns
from tenure.entities.methods import CallHere, checked_key
from tenure.entities.settings import EntitySettings
from tenure.errors import ClosedError, NotOwner, UsageError
from tenure.protocol.entity.key_line import EntityCall
from tenure.transport.link import GatedAnswer
from tenure.transport.links import Links

E = TypeVar("E", bound=Entity[Any])


class EntityReaders(EnteredPlace["ReadersPlace"], Generic[E]):
    """The entities of a pool, for a process that only calls them: see `Entities.readers`."""

    what = "these readers"

    def __init__(
        self, kind: EntityKind, settings: EntitySettings, stub: Callable[..., Any]
    ) -> None:
        super().__init__()
        self._kind = kind
        self._settings = settings
        self._stub = stub

    def __getitem__(self, key: str | int) -> E:
        return cast("E", self._stub(self, checked_key(key)))

    async def _call(
        self, key: str | int, name: str, id_: bytes, taken: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:  # noqa: ANN401  # whatever the method returns
        if self._place is None:
            raise self.not_entered()
        here = CallHere(self._kind.method(name), taken, named)
        call = EntityCall(key, id_, name, b"")
        # The same process may have entered entities of this pool or another, whose methods use it.
        return await in_turn(
            self._settings.pool, call, partial(self._answer, self._place, call, here)
        )

    async def _answer(self, place: "ReadersPlace", call: EntityCall, here: CallHere) -> Any:  # noqa: ANN401  # as above
        method = here.method
        may_read = method.is_reading and (method.is_coroutine or self.in_threads)
        if may_read and await place.copies.read(call, here) is not None:
            return here.value
        call.data = here.encoded()
        return method.arrived(await place.caller.ask(call))

    def called(
        self, key: str | int, name: str, id_: bytes, taken: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:  # noqa: ANN401
        """Make the call, here or in the thread of these readers. For stubs."""
        call: Any = self._call(key, name, id_, taken, named)
        call.__qualname__ = f"{self._kind.name}.{name}"  # Python says it of a forgotten await
        return self.in_its_loop(call)

    def no_method(self, name: str) -> UsageError:
        """The error of a call to what the class does not have."""
        return self._kind.no_method(name)

    @property
    def station_here(self) -> NoReturn:
        """Raise UsageError: no socket can end here."""
        raise UsageError(
            "readers take no sockets: attach them in a process that has entered the Entities, or "
            "let a gateway hold them"
        )

    def _make_place(self) -> "ReadersPlace":
        return ReadersPlace(self._kind, self._settings)

    def not_entered(self) -> ClosedError:
        return ClosedError("these readers are not entered: use `async with rooms.readers()`")

    def __repr__(self) -> str:
        state = "not entered" if self._place is None else "entered"
        return f"<readers of {self._kind.name} in pool {self._settings.pool!r}: {state}>"


class ReadersPlace:
    """What runs in one process of readers."""

    def __init__(self, kind: EntityKind, settings: EntitySettings) -> None:
        self._settings = settings
        self._links = Links(settings.environment.channels(), _serve, _on_link_lost)
        self.lookup = settings.lookup()
        runs = MethodRuns(settings.pool, settings.turn)
        self.copies = CopiesHere(kind, settings, self.lookup, runs)
        self.caller: FarCaller

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read and call until the block ends."""
        settings = self._settings
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._links.close)
            await stack.enter_async_context(self.lookup)
            await stack.enter_async_context(self.copies)
            self.caller = FarCaller(
                lambda: self.lookup,
                self._links,
                settings.call_seconds(self.lookup.hold),
                settings.environment.random(),
            )
            yield


async def _serve(call: EntityCall) -> GatedAnswer:
    await asyncio.sleep(0)
    raise NotOwner(f"{call.key!r:.100} is not held here: this process only reads")


def _on_link_lost(_: str) -> None:
    """Do nothing: whoever waits for an answer is told by the link."""
