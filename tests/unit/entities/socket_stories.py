"""Stories of sockets whose owner has found less than its predecessor: each fails if a rule is left
out.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from tenure import Entity, Socket
from tests.unit.entities.stage import Count, attached, on_stage


class Radio(Entity[Count]):
    async def on_connect(self, socket: Socket[Any]) -> None:
        socket.send(f"at {self.state.value}", early=socket.attachment == "early")
        if self.state.value:
            await self.commit()
            await asyncio.Event().wait()

    async def tune(self, value: int) -> None:
        self.state.value = value

    async def say(self, text: str) -> None:
        self.broadcast(text)

    async def say_early(self, text: str) -> None:
        self.broadcast(text, early=True)
        await asyncio.Event().wait()

    async def say_early_and_change(self, text: str) -> None:
        self.broadcast(text, early=True)
        self.state.value += 1


async def _opened_anew() -> None:
    async with on_stage(2, kind=Radio) as stage:
        one, two = stage.members
        key = stage.key_of(one)
        await stage.done(one[key].tune(7))
        ann, _ = attached(two, key)
        await stage.until(lambda: ann.received)
        await stage.crash(one)  # and with it the state, so that nothing stops `on_connect`
        await stage.until(lambda: stage.owner_of(key) is two)
        for _ in range(10):  # the first may be said before the socket is there
            await stage.done(two[key].say("of another time"))
            await stage.cluster.turn(1.0)
        assert (ann.received, ann.code) == (["at 7"], 1012), ann.received


def opened_anew_before_its_edge_had_an_answer() -> None:
    """The next owner gives the first frame another meaning, and the client has one already."""
    asyncio.run(_opened_anew())


STORIES: dict[str, Callable[[], object]] = {
    "forks-followed": opened_anew_before_its_edge_had_an_answer,
}
"""With the rules of sockets, the stories come out well; with one left out, they do not."""
