"""The handler that an application offers so that its state moves with its ranges.

The library calls its three methods in the application's event loop, or in the thread of its
callbacks, and never in the thread that renews. The content of chunks is the application's affair;
the library carries them from one owner to the other and never looks inside.
"""

import inspect
from abc import abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Protocol, Self, TypeAlias, TypeVar, cast

from tenure.base.keys import PoolKind
from tenure.base.names import shown
from tenure.base.ranges import KeyRange
from tenure.client.callbacks import check_arity
from tenure.client.guard import Guards
from tenure.errors import ConfigurationError

Mark: TypeAlias = Any
"""Whatever the application uses for "from here on"; the library only keeps it."""
Chunks: TypeAlias = Iterable[bytes] | AsyncIterable[bytes]
Exported: TypeAlias = tuple[Mark, Chunks]
T = TypeVar("T")


class HandOffHandler(Protocol):
    """The state of an application, range by range. Each method may be a coroutine function."""

    def export_range(
        self, key_range: KeyRange, since: Mark | None
    ) -> Exported | Awaitable[Exported]:
        """Return a mark that stands for now, and the chunks of what is in the range: everything if
        `since` is None, otherwise everything that was changed, or removed, since that mark was
        returned.

        The range may be served meanwhile. What changes after the mark was made may be in the chunks
        or not; it must be in those of the next call, which has this mark. The library keeps only
        the newest mark of an export, and drops it when the export is over.
        """
        ...

    def import_chunk(self, key_range: KeyRange, chunk: bytes) -> object:
        """Put a chunk into the state, replacing existing values of the same keys.

        Nobody is served from it yet; later `on_grant` or `discard_range` is called for the range,
        or for all parts of it.
        """
        ...

    def discard_range(self, key_range: KeyRange) -> object:
        """Drop everything in the range, which may be empty."""
        ...


class SettlingHandler(HandOffHandler, Protocol):
    """A handler that must finish something before a range of its state moves."""

    def settle_range(self, key_range: KeyRange, deadline: float) -> object:
        """Begin nothing new in the range that must finish before its keys move, and return (or let
        the coroutine return) when everything that had begun there has finished.

        The range is still served, and it is not handed over before this has returned, or `deadline`
        seconds have passed: after that, whatever still runs there has lost its lease.
        """
        ...

    def resume_range(self, key_range: KeyRange) -> object:
        """The hand-off has ended, successfully or not: `check` decides again what may begin in the
        range. Called once for each `settle_range`.
        """
        ...


class OwnersState(HandOffHandler):
    """A handler that learns which owner's state it is."""

    @abstractmethod
    def belong_to(self, owner: str, kind: PoolKind, has_ended: Callable[[], bool]) -> None:
        """Be the state of `owner`, whose pool is of `kind`, until `has_ended`; `Owner` calls it.

        Raises ConfigurationError if it is another owner's state: what one of them gives up would be
        dropped while the other serves it.
        """

    @abstractmethod
    def guard_with(self, guards: Guards) -> None:
        """The owner is entered, and these are its guards; `Owner` calls it."""

    async def open_store(self, pool: str, name: str = "") -> None:  # most have none
        """Open the store that the state is kept in, before the owner joins `pool`; `name` is the
        state's own where an owner has several. Called in the loop that renews: it must not block.

        Raises ConfigurationError if the store has something else, and StoreFailed.
        """

    async def close_store(self) -> None:  # as above
        """The owner has left: let go of the store, if it was opened."""


class Granted(tuple[KeyRange, ...]):  # noqa: SLOT001  # a tuple takes no slots
    """The ranges that `on_grant` gets; some of them may have come with their state."""

    with_state: tuple[KeyRange, ...]
    """The ranges whose state is here, unbroken; the others begin empty."""

    def __new__(cls, ranges: Iterable[KeyRange], with_state: Iterable[KeyRange] = ()) -> Self:
        """`with_state` are among `ranges`."""
        new = super().__new__(cls, ranges)
        new.with_state = tuple(with_state)
        return new


METHODS = {"export_range": 2, "import_chunk": 2, "discard_range": 1}
"""The methods of a handler, and with how many arguments the library calls each."""
SETTLING = {"settle_range": 2, "resume_range": 1}
"""The methods of a SettlingHandler, with the number of their arguments."""


def check_handler(handler: object) -> None:
    """Raise ConfigurationError if `handler` cannot hand over state."""
    if isinstance(handler, type):
        raise ConfigurationError(
            f"hand_off is an instance, not the class {handler.__name__}: pass "
            f"hand_off={handler.__name__}(...)"
        )
    missing = [name for name in METHODS if not callable(getattr(handler, name, None))]
    if missing:
        raise ConfigurationError(
            f"hand_off is asked for state by {', '.join(METHODS)}, and {shown(handler)} has no "
            f"{', '.join(missing)}; tenure.KeyedState has them all"
        )
    settling = [name for name in SETTLING if callable(getattr(handler, name, None))]
    if len(settling) == 1:
        raise ConfigurationError(
            f"{shown(handler)} has {settling[0]} alone: a handler that settles a range before it "
            f"moves has {' and '.join(SETTLING)}"
        )
    for name, arguments in {**METHODS, **(SETTLING if settling else {})}.items():
        check_arity(f"hand_off.{name}", getattr(handler, name), arguments)


def settling(handler: HandOffHandler) -> SettlingHandler | None:
    """Return the handler if it is one that settles."""
    return cast("SettlingHandler", handler) if hasattr(handler, "settle_range") else None


async def result_of(result: object) -> object:
    """Return what a method returned, or what its coroutine returned."""
    return await result if inspect.isawaitable(result) else result


async def exported_by(
    handler: HandOffHandler, key_range: KeyRange, since: Mark | None
) -> tuple[Mark, AsyncIterator[bytes]]:
    """Return the mark, and the chunks one at a time."""
    exported = await result_of(handler.export_range(key_range, since))
    try:
        mark, chunks = cast("Exported", exported)
    except (TypeError, ValueError):
        raise TypeError(
            f"export_range returns a mark and chunks, not {type(exported).__name__}"
        ) from None
    if mark is None:
        raise TypeError("the mark of export_range cannot be None, which asks for everything")
    return mark, _one_by_one(chunks)


async def _one_by_one(chunks: Chunks) -> AsyncIterator[bytes]:
    if isinstance(chunks, AsyncIterable):
        async for chunk in chunks:
            yield _checked(chunk)
    else:
        for chunk in chunks:
            yield _checked(chunk)


def _checked(chunk: object) -> bytes:
    if not isinstance(chunk, bytes | bytearray | memoryview):
        raise TypeError(f"chunks are bytes, not {type(chunk).__name__}")
    return bytes(chunk)
