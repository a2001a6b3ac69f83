"""Waiting until a key has moved, in an event loop or a thread, whatever the Lookup's own form."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from tenure.base.keys import UserKey
from tenure.client.watching import KeyChange
from tenure.runtime.loops import take, wait_for


class Watching(Protocol):
    """What routing needs of a Watch."""

    def cancel(self) -> None: ...


class Finder(Protocol):
    """What routing needs of a Lookup."""

    @property
    def hold(self) -> float: ...
    def find(self, key: UserKey, /) -> str | None: ...
    def watch(self, key: UserKey, callback: Callable[[KeyChange], object]) -> Watching: ...
    def moved(self, key: UserKey, not_at: str | None, timeout: float) -> "Future[None]":
        """Done when the key is served and not at `not_at` any more, or after so many seconds."""
        ...


async def elsewhere(lookup: Finder, key: UserKey, not_at: str | None, seconds: float) -> str | None:
    """Where the key is, as soon as it has moved from `not_at`, or after so long."""
    await wait_for(lookup.moved(key, not_at, seconds))
    return lookup.find(key)


def elsewhere_blocking(
    lookup: Finder, key: UserKey, not_at: str | None, seconds: float
) -> str | None:
    """The same, in a thread."""
    take(lookup.moved(key, not_at, seconds))
    return lookup.find(key)
