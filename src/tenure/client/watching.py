"""Follows single keys: picks out their moves and losses from the whole table.

The papers' lookups report ranges; an application that cares about a few keys would have to search
each range for them.
"""

from concurrent.futures import Future

import msgspec

from tenure.base.keys import Key, UserKey
from tenure.client.callbacks import Callback
from tenure.client.interests import Interests


class KeyChange(msgspec.Struct, frozen=True):
    """A change of a watched key."""

    key: UserKey
    """The key as it was given to `watch`."""
    address: str | None
    """The address at which the key is served now, as far as known."""
    lost: bool
    """Whether its state is gone. If not, it only moved."""


class Watch:
    """One key that is watched, until `cancel`."""

    def __init__(
        self, watches: "Interests[Watch]", given: UserKey, key: Key, callback: Callback
    ) -> None:
        self._watches = watches
        self.given = given
        self.key = key
        self.callback = callback
        self.address: str | None = None
        self.is_cancelled = False

    def cancel(self) -> None:
        """Stop watching: no call begins after this returns, except in other threads."""
        self.is_cancelled = True
        self._watches.remove(self.key, self)


class AwaitedMove:
    """A caller that waits until a key is served elsewhere."""

    def __init__(self, key: Key, not_at: str | None) -> None:
        self.key = key
        self.not_at = not_at
        self.over: Future[None] = Future()
        """Done when the key has moved, or nobody waits any longer."""

    def end(self) -> None:
        """Let nobody wait any longer."""
        if not self.over.done():
            self.over.set_result(None)
