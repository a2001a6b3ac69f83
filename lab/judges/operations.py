"""Operations: what a client wrote or read, when, and what it was told.

Columns are named by strings. A value is written at most once in a history, so that a read says
which write it has seen; deletes are the exception: they all write None. A write that was repeated
because its outcome was unknown is one operation, from its first attempt to the last answer.
"""

from collections.abc import Iterable
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
    is_weak: bool = False
    """Whether it was written at a level that promises nothing to others."""

    @property
    def is_sure(self) -> bool:
        """Whether it must be seen from its end on."""
        return self.told == "written" and not self.is_weak

    @property
    def last(self) -> int:
        """The last instant at which it may have taken effect."""
        return self.ended if self.is_sure else NEVER

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
    is_weak: bool = False
    """Whether it was read at a level that promises nothing."""

    def __str__(self) -> str:
        return f"{self.client} read {said(self.columns)} {self.key}"


class PageOperation(msgspec.Struct, frozen=True, tag="page"):
    """A read of columns whose names the reader did not know: all of a section between two bounds.
    A column that is not shown, and that lies there, was not there.
    """

    client: str
    key: str
    section: str
    """The part that the names of its columns have in common, with the slash at its end."""
    columns: dict[str, str | None]
    began: int
    ended: int
    after: str = ""
    """The name after which it begins."""
    until: str | None = None
    """The last name that it tells about; None if it goes on to the end."""
    is_weak: bool = False

    def covers(self, name: str) -> bool:
        """Whether it tells about a column."""
        return (
            name.startswith(self.section)
            and name > self.after
            and (self.until is None or name <= self.until)
        )

    def over(self, names: Iterable[str]) -> ReadOperation:
        """The same as a read of the columns that it tells about, of those with these names."""
        columns = dict.fromkeys(filter(self.covers, names)) | self.columns
        return ReadOperation(self.client, self.key, columns, self.began, self.ended, self.is_weak)


AnyOperation = WriteOperation | ReadOperation
AnyRecord = AnyOperation | PageOperation


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
