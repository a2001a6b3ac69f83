"""One class in several releases, for tests: each release has all of them under one name."""

from typing import Annotated, Any

import msgspec

from tenure import Entity, reading, upgrade, was


class OldLine(msgspec.Struct):
    text: str = ""


class NewLine(msgspec.Struct):
    text: str = ""
    edited: int = 0


class OldLines(msgspec.Struct):
    count: int = 0
    last: list[OldLine] = []
    pinned: OldLine = msgspec.field(default_factory=OldLine)
    by: dict[str, OldLine] = {}


class NewLines(msgspec.Struct):
    count: int = 0
    topic: str = "none"
    last: list[NewLine] = []
    pinned: NewLine = msgspec.field(default_factory=NewLine)
    by: dict[str, NewLine] = {}


class VersionedLines(msgspec.Struct):
    total: Annotated[int, was("count")] = 0
    words: int = 0
    last: list[NewLine] = []


class _Room(Entity[OldLines]):
    """What the two releases without a version have in common."""

    async def say(self, text: str) -> int:
        state: Any = self.state
        line = type(state.pinned)
        state.count += 1
        state.last = [*state.last, line(text)][-3:]
        state.by[text] = line(text)
        count: int = state.count
        return count

    async def pin(self, text: str) -> None:
        self.state.pinned = msgspec.structs.replace(self.state.pinned, text=text)

    async def renew(self) -> None:
        self.state = type(self.state)(count=self.state.count)

    @reading
    async def count(self) -> int:
        state: OldLines = self.state
        return state.count


class OldRoom(_Room, name="Room"):
    """The first release."""


class NewRoom(Entity[NewLines], name="Room"):
    """The second: it has new fields, in the state and in what the state holds."""

    say: Any = _Room.say
    pin: Any = _Room.pin
    renew: Any = _Room.renew
    count: Any = _Room.count

    async def edit(self, topic: str) -> None:
        self.state.topic = topic
        for line in (*self.state.last, self.state.pinned, *self.state.by.values()):
            line.edited += 1

    @reading
    async def everything(self) -> NewLines:
        return self.state


class VersionedRoom(Entity[VersionedLines], version=3, name="Room"):
    """The third, in which one field has another name, and another was made of several."""

    @upgrade(from_version=1)
    @staticmethod
    def count_words(fields: dict[str, Any]) -> dict[str, Any]:
        if any(each["text"] == "poison" for each in fields["last"]):
            raise ValueError("nobody can count that")
        return {**fields, "words": sum(len(each["text"].split()) for each in fields["last"])}

    @upgrade(from_version=2)
    @staticmethod
    def begin_at_ten(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "total": fields.get("total", 0) + 10}

    async def say(self, text: str) -> int:
        self.state.total += 1
        self.state.words += len(text.split())
        self.state.last.append(NewLine(text))
        return self.state.total

    @reading
    async def everything(self) -> VersionedLines:
        return self.state
