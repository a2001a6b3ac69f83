"""Operations: what a client wrote or read, when, and what it was told.

Columns are named by strings. A value is written at most once in a history, so that a read says
which write it has seen; deletes are the exception: they all write None. A write that was repeated
because its outcome was unknown is one operation, from its first attempt to the last answer.
"""

from typing import Any, Literal

import msgspec

from tenure.base.instants import SECOND_NS

NEVER = 1 << 62
"""The end of what never ended: an unknown write may take effect at any later time."""
Told = Literal["written", "not written", "unknown"]


class WriteOperation(msgspec.Struct, frozen=True, tag="write"):
    """A write of some columns of one key. Its columns change together."""

    client: str
    key: str
    columns: dict[str, str | None]
    """The value of each column; None if the write deletes it."""
    began: int
    ended: int
    told: Told

    @property
    def last(self) -> int:
        """The last instant at which it may have taken effect."""
        return NEVER if self.told == "unknown" else self.ended

    def __str__(self) -> str:
        return f"{self.client} wrote {said(self.columns)} ({self.told}) {self.key}"


class ReadOperation(msgspec.Struct, frozen=True, tag="read"):
    """A read of some columns of one key, which showed them together."""

    client: str
    key: str
    columns: dict[str, str | None]
    """The value of each column that the read tells about; None if there was none."""
    began: int
    ended: int

    def __str__(self) -> str:
        return f"{self.client} read {said(self.columns)} {self.key}"


AnyOperation = WriteOperation | ReadOperation


class Complaint(msgspec.Struct, frozen=True):
    """What a judge has found, with the operations that show it."""

    promise: str
    what: str
    operations: tuple[AnyOperation, ...] = ()

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"

    def lines(self) -> list[str]:
        """The operations, oldest first, for people."""
        return [
            f"{each.began / SECOND_NS:.6f} to {each.ended / SECOND_NS:.6f}: {each}"
            for each in sorted(self.operations, key=lambda each: each.began)
        ]


def said(columns: dict[str, Any]) -> str:
    """Columns for people."""
    return ", ".join(f"{name}={value}" for name, value in columns.items())
