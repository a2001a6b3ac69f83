"""The part of a Lookup that routing needs, in whatever form the Lookup was entered."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from tenure.base.keys import UserKey
from tenure.client.watching import KeyChange


class Watching(Protocol):
    """The part of a Watch that routing needs."""

    def cancel(self) -> None: ...


class Finder(Protocol):
    """The part of a Lookup that routing needs."""

    @property
    def hold(self) -> float: ...
    def find(self, key: UserKey, /) -> str | None: ...
    def watch(self, key: UserKey, callback: Callable[[KeyChange], object]) -> Watching: ...
    def moved(self, key: UserKey, not_at: str | None, timeout: float) -> "Future[None]":
        """A future that is done when the key is served and no longer at `not_at`, or after that
        many seconds.
        """
        ...
