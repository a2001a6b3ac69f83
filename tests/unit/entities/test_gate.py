"""The gate: nothing leaves a process for a key whose lease it has lost meanwhile.

The process is stopped at the worst moment: its clock jumps past the term. What it says then was
said for a key that another process may have, so the next owner of the key must say it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tenure import Entity, Socket, reading
from tenure.entities import edge
from tenure.entities.turns import EntityHost
from tests.unit.entities.stage import Client, Count, Stage, attached, on_stage

pytestmark = pytest.mark.asyncio

PAST_THE_TERM = 100.0
TRIED: list[int] = []
"""The lease numbers under which it was tried."""
JUMP: list[Callable[[float], None]] = []
OTHERS: list[Any] = []


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin with nothing. Edges ask soon for what has not left: it is all that tells them."""
    monkeypatch.setattr(edge, "ASK_SECONDS", 0.05)
    yield
    for each in (TRIED, JUMP, OTHERS):
        each.clear()


def stopped() -> None:
    """The first time, the process stands still here."""
    if len(TRIED) == 1:
        JUMP[0](PAST_THE_TERM)


class Late(Entity[Count]):
    async def on_connect(self, socket: Socket[None]) -> None:
        socket.send("welcome")

    def _try(self) -> None:
        TRIED.append(self.lease.number)

    async def tries(self) -> int:
        self._try()
        return len(TRIED)

    async def says(self) -> None:
        self._try()
        self.broadcast(f"frame {len(TRIED)}")

    async def answers(self) -> int:
        self._try()
        stopped()
        return len(TRIED)

    async def sends(self) -> None:
        self._try()
        self.broadcast(f"frame {len(TRIED)}")
        stopped()

    async def sends_early(self) -> None:
        self._try()
        stopped()
        self.broadcast(f"frame {len(TRIED)}", early=True)

    async def calls(self) -> int:
        self._try()
        stopped()
        found: int = await OTHERS[0]["other"].add()
        return found

    async def add(self) -> int:
        self.state.value += 1
        return self.state.value

    @reading
    async def reads(self) -> int:
        self._try()
        stopped()
        return len(TRIED)


async def begun(stage: Stage) -> str:
    """A key of the first member."""
    JUMP.append(stage.cluster._need_turned().jump)
    key = stage.key_of(stage.members[0])
    await stage.done(stage.members[0][key].add())
    return key


async def listening(stage: Stage, member: int, key: str) -> Client:
    client, _ = attached(stage.members[member], key)
    await stage.until(lambda: client.received == ["welcome"])
    return client


@pytest.mark.parametrize("method", ["answers", "reads"])
@pytest.mark.parametrize("caller", [0, 1])
async def test_no_answer_leaves(method: str, caller: int) -> None:
    async with on_stage(2, kind=Late) as stage:
        key = await begun(stage)
        assert await stage.done(getattr(stage.members[caller][key], method)()) == 2
        first, second = TRIED
        assert first < second


@pytest.mark.parametrize("method", ["sends", "sends_early"])
@pytest.mark.parametrize("place", [0, 1])
async def test_no_frame_leaves(method: str, place: int) -> None:
    async with on_stage(2, kind=Late) as stage:
        key = await begun(stage)
        client = await listening(stage, place, key)
        await stage.done(getattr(stage.members[0][key], method)())
        assert len(TRIED) == 2
        await stage.until(lambda: client.code is not None)
        assert (client.received, client.code) == (["welcome"], 1012)


async def test_no_call_to_another_leaves() -> None:
    async with on_stage(1, kind=Late) as stage:
        OTHERS.extend(stage.members)
        key = await begun(stage)
        assert await stage.done(stage.members[0][key].calls()) == 1, "it is made once"
        assert len(TRIED) == 2


async def test_no_answer_leaves_that_waits_for_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    perform = EntityHost.perform

    async def slowly(self: EntityHost, *call: Any) -> bytes:  # noqa: ANN401
        answer = await perform(self, *call)
        stopped()
        return answer

    async with on_stage(2, kind=Late) as stage:
        key = await begun(stage)
        monkeypatch.setattr(EntityHost, "perform", slowly)
        assert await stage.done(stage.members[1][key].tries()) == 2
        first, second = TRIED
        assert first < second


async def test_no_frame_leaves_that_waits_for_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with on_stage(2, kind=Late) as stage:
        key = await begun(stage)
        client = await listening(stage, 1, key)
        gate = stage.members[0].station.host.gate
        let_out = gate._let_out

        def slowly(*frames: Any) -> None:  # noqa: ANN401
            let_out(*frames)
            stopped()

        monkeypatch.setattr(gate, "_let_out", slowly)
        await stage.done(stage.members[0][key].says())
        await stage.until(lambda: client.code is not None)
        assert (client.received, client.code) == (["welcome"], 1012)
