"""The contract of an engine: sorted entries in named spaces, written in batches, durable once
synced.

An engine knows nothing of rows. The layers above rely on four properties, and the contract's tests
check them: a batch is applied whole or not at all, even in a crash; a cursor sees the instant at
which it was opened; what was applied before a sync began survives once the sync has ended, whatever
happens; and a sync may run in another thread while batches are applied.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from tenure.protocol.replication.row.pages import Cursor

Entry: TypeAlias = tuple[str, bytes, bytes | None]
"""A space, a key, and the value to keep there; None removes it."""


class StorageEngine(Protocol):
    """Sorted entries in named spaces."""

    def make_spaces(self, names: Iterable[str]) -> None:
        """Make those of these spaces that do not exist."""
        ...

    def drop_spaces(self, names: Iterable[str]) -> None:
        """Drop these spaces with all that they have."""
        ...

    def spaces(self) -> set[str]:
        """The names of all spaces."""
        ...

    def get(self, space: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The value at each of `keys`."""
        ...

    def apply(self, batch: Sequence[Entry]) -> None:
        """Write the whole batch, or nothing. It is visible at once, and durable when it is synced.

        Raises EngineBusy if the disk does not keep up; then nothing was written.
        """
        ...

    def cursor(self, space: str) -> Cursor:
        """A view of the space as it is now."""
        ...

    def passing_cursor(self, space: str) -> Cursor:
        """The same for what is read once: it is not kept in memory."""
        ...

    def sync(self) -> None:
        """Wait until everything that was applied before this call will survive a crash. From any
        thread.
        """
        ...

    def flush(self) -> None:
        """Write what is in memory to files. From any thread."""
        ...

    def compact(self) -> None:
        """Merge all files of each space into one. From any thread."""
        ...

    def backup(self, directory: str) -> None:
        """Make a copy of this instant in a new directory. From any thread."""
        ...

    def figures(self) -> dict[str, dict[str, int]]:
        """Entries and bytes of each space, as estimates."""
        ...

    def close(self) -> None:
        """Release everything. No method may be called afterwards."""
        ...


class EngineBusy(Exception):
    """The disk does not keep up with what is written; nothing was done."""
