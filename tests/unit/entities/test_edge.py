"""An edge asks owners for the frames that follow, a few sockets at a time; nonsense it refuses."""

import asyncio
from random import Random
from typing import Any

import pytest

from tenure.entities import edge
from tenure.entities.edge_socket import EdgeSocket
from tenure.protocol.entity.messages import RESUME, Resumed
from tenure.testing.clock import come_to_rest
from tenure.wire.entity import packed
from tests.patience import until
from tests.unit.entities.stage import Client, ServerEnd

pytestmark = pytest.mark.asyncio


async def test_sockets_are_asked_about_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten thousand, all at once would hold everything else up."""
    monkeypatch.setattr(edge, "ASKED_AT_ONCE", 2)
    monkeypatch.setattr(edge, "ASK_SECONDS", 0.1)
    asked: list[str | int] = []
    most = [0]

    class Owner:
        async def call(self, key: str | int, method: str, data: bytes, id: bytes = b"") -> bytes:  # noqa: A002
            if method != RESUME:
                return packed(True)
            asked.append(key)
            before = len(asked)
            await come_to_rest()
            most.append(1 + len(asked) - before)
            return packed(Resumed(1, (), 0))

    running: list[asyncio.Task[None]] = []

    def go(work: Any) -> None:  # noqa: ANN401
        running.append(asyncio.ensure_future(work))

    made = edge.Edge(Owner(), "http://here", Random(1), go)
    clients = {f"room-{n}": Client() for n in range(5)}
    holding = [
        asyncio.create_task(made.attach(made.socket(key, ServerEnd(client)), None))
        for key, client in clients.items()
    ]
    await come_to_rest()
    asking = asyncio.create_task(made.keep_asking())
    await until(lambda: len(asked) >= 10)
    asking.cancel()
    assert sorted(asked[:5]) == sorted(asked[5:10]) == sorted(clients)
    assert max(most) <= 2
    for client in clients.values():
        client.leave()
    await asyncio.gather(*holding, *running)


@pytest.mark.parametrize("nonsense", [b"", b"\xc1", b"\x94\x01\x91\x05\x00\x00"])
async def test_an_answer_of_an_owner_that_cannot_be_read_closes_the_socket(nonsense: bytes) -> None:
    """It cannot be told what follows."""

    class Owner:
        def call(self, key: str | int, method: str, data: bytes, id: bytes = b"") -> Any:  # noqa: A002, ANN401
            async def answer() -> bytes:
                return nonsense if method == RESUME else packed(True)

            return answer()

    running: list[asyncio.Task[None]] = []
    made = edge.Edge(
        Owner(),
        "http://here",
        Random(1),
        lambda work: running.append(asyncio.ensure_future(work)),
    )
    client = Client()
    await made.go_on(EdgeSocket(b"id", "key", ServerEnd(client)))
    assert client.code == 1012
    await asyncio.gather(*running)


async def test_however_many_links_are_lost_each_socket_is_asked_about_once() -> None:
    """And once more afterwards, for what was on its way in the later ones."""
    asked = 0

    class Owner:
        async def call(self, key: str | int, method: str, data: bytes, id: bytes = b"") -> bytes:  # noqa: A002
            nonlocal asked
            asked += method == RESUME
            return packed(Resumed(1, (), 0) if method == RESUME else True)

    running: list[asyncio.Task[None]] = []
    made = edge.Edge(
        Owner(),
        "http://here",
        Random(1),
        lambda work: running.append(asyncio.ensure_future(work)),
    )
    client = Client()
    holding = asyncio.create_task(made.attach(made.socket("room", ServerEnd(client)), None))
    await come_to_rest()
    for _ in range(50):
        made.lost()
        await come_to_rest()
    assert (asked, len(running)) == (1, 2)
    await until(lambda: asked == 2)
    client.leave()
    await asyncio.gather(holding, *running)
