"""A room that is read everywhere, and what tests of that need to know of its processes."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from tenure import Entities, Entity, reading
from tenure.entities.copies_here import CopiesHere
from tenure.testing.cluster import InProcessCluster
from tests.unit.entities.stage import Stage, on_stage


class Lines(msgspec.Struct):
    said: list[str] = []


class Room(Entity[Lines]):
    async def say(self, text: str) -> int:
        self.state.said.append(text)
        return len(self.state.said)

    async def fail(self, text: str) -> None:
        self.state.said.append(text)
        raise ValueError(text)

    async def clear(self) -> None:
        self.forget()

    async def draw(self) -> None:
        self.drawn = "a line"

    async def alarm(self) -> None:
        self.set_alarm("later", self.now() + 1e6)

    async def on_alarm(self, _: object) -> None:
        """It is never due."""

    @reading
    async def last(self) -> str:
        return self.state.said[-1] if self.state.said else ""

    @reading
    async def after(self, text: str) -> str:
        while not self.state.said or self.state.said[-1] == text:
            await self.changed()
        return self.state.said[-1]

    @reading
    async def people(self) -> int:
        return len(self.state.said) + len(self.sockets)

    @reading
    async def people_or_none(self) -> int:
        try:
            return len(self.sockets)
        except Exception:  # noqa: BLE001  # as programs do
            return -1

    @reading
    async def drawing(self) -> str:
        return self.drawn

    @reading
    async def alarmed(self) -> list[str]:
        return [*self.alarms]

    @reading
    async def times(self) -> list[float]:
        return [self.now(), self.fair_now()]

    @reading
    async def number(self) -> int:
        return self.lease.number

    @reading
    async def is_after_a_loss(self) -> bool:
        return self.was_interrupted

    @reading
    async def spoil(self) -> str:
        self.state.said.append("spoilt")
        return self.state.said[-1]

    @reading
    async def change(self) -> None:
        self.state = Lines()

    @reading
    async def stumble(self) -> str:
        return self.state.missing  # type: ignore[attr-defined,no-any-return]


def everywhere(
    members: int = 2,
    **options: Any,  # noqa: ANN401
) -> AbstractAsyncContextManager[Stage]:
    return on_stage(members, kind=Room, reads="everywhere", **options)


def copies_of(member: Entities[Any]) -> CopiesHere:
    copies = member.station.copies
    assert copies is not None
    return copies


def stats(member: Entities[Any]) -> dict[str, int]:
    return copies_of(member).client.stats()


def asked(member: Entities[Any]) -> int:
    """How many messages about copies it has sent."""
    return stats(member)["sent"]


def waits(member: Entities[Any], key: str) -> bool:
    """Whether the next change of a key of its own waits for others."""
    return member.station.host._live[key].is_copied


async def shared(stage: Stage, text: str = "old") -> tuple[Entities[Any], Entities[Any], str]:
    """An owner, another process, and a room of which that has a copy."""
    owner, elsewhere = stage.members[:2]
    key = stage.key_of(owner)
    await stage.done(owner[key].say(text))
    assert await stage.done(elsewhere[key].last()) == text
    await until_copied(stage, elsewhere, key)
    return owner, elsewhere, key


async def until_copied(stage: Stage, member: Entities[Any], key: str) -> None:
    for _ in range(100):
        await stage.done(member[key].last())
        if copies_of(member)._hits.proof(key) is not None:
            return
        await stage.cluster.turn(0.05)
    raise AssertionError(f"{key} cannot be copied")


class Silence:
    """The doors at which copies are given, all shut; clients cannot connect again either."""

    def __init__(self, cluster: InProcessCluster, member: Entities[Any]) -> None:
        self._network = cluster.network
        urls = {url for url in copies_of(member)._given._values if url}
        self._shut = {url: self._network._listening[url] for url in urls}
        for url in urls:
            self._network.fall_silent(url)

    def end(self) -> None:
        self._network._listening.update(self._shut)


async def seconds_until(stage: Stage, doing: "asyncio.Task[Any]") -> float:
    """How long something takes, by the turned clock."""
    began = stage.cluster.clock()
    await stage.until(doing.done)
    return (stage.cluster.clock() - began) / 1e9
