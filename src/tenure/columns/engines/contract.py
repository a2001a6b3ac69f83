"""What an engine is: sorted entries in named spaces, written in batches, kept when synced.

It knows nothing of rows. What is above it needs four things of it, and the contract's tests ask for
them: a batch is there whole or not at all, also after a crash; a cursor sees the instant at which
it was opened; what was applied before a sync began is there after it, whatever happens; and a sync
may run in another thread while batches are applied.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from tenure.protocol.replication.pages import Cursor

Entry: TypeAlias = tuple[str, bytes, bytes | None]
"""A space, a key, and what is to be kept there; None removes it."""


class StorageEngine(Protocol):
    """Sorted entries in named spaces."""

    def make_spaces(self, names: Iterable[str]) -> None:
        """Have these spaces, whichever are there already."""
        ...

    def spaces(self) -> set[str]:
        """The names of the spaces that there are."""
        ...

    def get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """What is kept at each of `keys`."""
        ...

    def apply(self, batch: Sequence[Entry]) -> None:
        """Write all of it, or nothing. It is seen at once, and lasts when it is synced.

        Raises EngineBusy where the disk does not keep up: nothing was written.
        """
        ...

    def cursor(self, space: str) -> Cursor:
        """A view of the space as it is now."""
        ...

    def sync(self) -> None:
        """Wait until all that was applied before will survive a crash. From any thread."""
        ...

    def flush(self) -> None:
        """Move what is in memory to files. From any thread."""
        ...

    def compact(self) -> None:
        """Merge all files of each space into one. From any thread."""
        ...

    def backup(self, directory: str) -> None:
        """A copy of this instant in a new directory. From any thread."""
        ...

    def figures(self) -> dict[str, dict[str, int]]:
        """Entries and bytes of each space, as estimates."""
        ...

    def close(self) -> None:
        """Let go of everything. Afterwards nothing may be called."""
        ...


class EngineBusy(Exception):
    """The disk does not keep up with what is written; nothing was done."""
