"""What routing needs of a Lookup, in whatever form it was entered."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from tenure.base.keys import UserKey
from tenure.client.watching import KeyChange


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
        """A future that is done when the key is served and no longer at `not_at`, or after that
        many seconds.
        """
        ...
