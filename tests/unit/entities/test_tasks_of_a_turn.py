"""Several tasks of one turn may call, commit and send; with a store each waits for the one
before.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tenure import Entity, Socket
from tests.unit.entities.stage import Count, attached, on_stage

pytestmark = pytest.mark.asyncio
OTHERS: dict[str, Any] = {}


class Asker(Entity[Count]):
    async def add(self) -> int:
        self.state.value += 1
        return self.state.value

    async def ask(self, *, keys: list[str]) -> int:
        self.state.value += 1
        await asyncio.gather(*(OTHERS["all"][key].add() for key in keys))
        return self.state.value

    async def send_while_it_commits(self) -> None:
        async def send(each: str) -> None:
            self.state.value += 1
            self.broadcast(each)
            await self.commit()

        await asyncio.gather(*map(send, "abc"))

    async def on_message(self, socket: Socket[Any], text: str) -> None:
        del socket
        self.broadcast(text)


@pytest.mark.parametrize("has_store", [False, True])
async def test_a_turn_calls_several_at_once_and_acts_once(
    tmp_path: Path,
    has_store: bool,
) -> None:
    options = {"store": f"sqlite:{tmp_path / 'store'}"} if has_store else {}
    async with on_stage(1, kind=Asker, deadline=5.0, **options) as stage:
        asker = OTHERS["all"] = stage.members[0]
        assert await stage.done(asker["a"].ask(keys=["b", "c", "d"])) == 1
        assert await stage.done(asker["a"].add()) == 2
        assert await stage.done(asker["d"].add()) == 2


@pytest.mark.parametrize("has_store", [False, True])
async def test_what_a_task_sends_while_another_commits_goes_out(
    tmp_path: Path,
    has_store: bool,
) -> None:
    options = {"store": f"sqlite:{tmp_path / 'store'}"} if has_store else {}
    async with on_stage(1, kind=Asker, deadline=5.0, **options) as stage:
        asker = stage.members[0]
        ann, _ = attached(asker, "a")
        ann.send("first")
        await stage.until(lambda: ann.received)
        await stage.done(asker["a"].send_while_it_commits())
        assert await stage.done(asker["a"].add()) == 4
        ann.send("last")
        await stage.until(lambda: ann.received[-1] == "last")
        assert ann.received == ["first", "a", "b", "c", "last"]
        ann.leave()
