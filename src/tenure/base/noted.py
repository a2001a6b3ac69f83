"""The notes that a machine makes for its watchers: counters, the log, and subscribers.

A kind is one of a closed set for each protocol, with the words under which it is counted and the
level of its line. So nobody has to guess the level of an event from its words, and no code can
depend on how a phrase is spelled.
"""

from enum import Enum, IntEnum
from typing import Self

import msgspec

NOTED = "tenure_noted"
"""The attribute of a record of the standard log that has what a machine noted."""


class Level(IntEnum):
    """The level of a line, by the numbers of the standard library's `logging`.

    Events of every rebalance are for debugging. An event on which an operator may have to act is a
    warning.
    """

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


class NotedKind(Enum):
    """The base of the closed sets: each member is its words, its level, and whether it repeats."""

    phrase: str
    level: Level
    repeats: bool
    """Whether the event comes again and again until something changes. Its line is then loud only
    once for each detail.
    """

    def __new__(cls, phrase: str, level: Level, repeats: bool = False) -> Self:  # noqa: FBT001, FBT002 - a member has its arguments by position
        self = object.__new__(cls)
        self._value_ = self.phrase = phrase
        self.level = level
        self.repeats = repeats
        return self


class Noted(msgspec.Struct, frozen=True):
    """Something worth counting, and a line in the log."""

    kind: NotedKind
    pool: str = ""
    detail: str = ""
    cause: str = ""
    """The ids of the stories that it is part of: the same id stands in the logs of all who are
    concerned.
    """

    @property
    def text(self) -> str:
        """The event in a line."""
        text = f"{self.kind.phrase}: {self.detail}" if self.detail else self.kind.phrase
        return text + self.because

    @property
    def because(self) -> str:
        """The end of a line: the cause, if any."""
        return f" (cause {self.cause})" if self.cause else ""
