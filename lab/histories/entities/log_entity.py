"""The entity whose calls are recorded, and what a client and a member say to each other.

A log takes texts, each once, and shows its last ones in its state, which is read everywhere. All of
them are in a collection, which is kept with the state.
"""

from typing import Literal

import msgspec

from lab.judges.operations import Told
from tenure import Entities, Entity, Series, reading

POOL = "logs"
SHOWN = 8
"""How many texts a reading shows."""
PAGE = 1000
What = Literal["add", "look", "whole"]


class LogAsked(msgspec.Struct, frozen=True):
    """What a client asks a member."""

    what: What
    key: str
    text: str = ""


class LogAnswer(msgspec.Struct, frozen=True):
    """What a member answers."""

    told: Told
    count: int = 0
    texts: tuple[str, ...] = ()
    copied: bool = False
    """Whether the member read a copy."""
    error: str = ""


class Tail(msgspec.Struct):
    """The state of a log."""

    count: int = 0
    last: list[str] = []


class KeptLog(Entity[Tail]):
    """A list that grows."""

    texts = Series(str)

    async def add(self, text: str) -> int:
        """Add a text; how many there are."""
        self.state.count += 1
        self.state.last = [*self.state.last, text][-SHOWN:]
        self.texts.add(text)
        return self.state.count

    @reading
    async def look(self) -> Tail:
        """Return the last texts."""
        return self.state

    async def whole(self) -> list[str]:
        """Return all texts. It has a turn of its own, so its owner has adopted the row."""
        found: list[str] = []
        page = await self.texts.page(PAGE)
        while True:
            found += page
            if page.next is None:
                return found
            page = await self.texts.page(PAGE, next=page.next)


def logs(**options: object) -> Entities[KeptLog]:
    """The logs, as a process enters them; managers and store are in its environment."""
    return Entities(KeptLog, POOL, store="columns:", reads="everywhere", turn=10.0, **options)  # type: ignore[arg-type]  # the caller's
