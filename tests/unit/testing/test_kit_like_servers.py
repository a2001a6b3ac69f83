"""The kit's server and judge behave as a real server and Relay do, where these take care."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tenure.base.keys import Key, hashed_key
from tenure.member.asgi import Message, Receive, Scope, Send
from tenure.testing.asgi_channel import MemoryServer, encoded
from tenure.testing.judge import Judge
from tenure.transport.channels import Channel
from tenure.transport.in_process_channels import MemoryChannelNetwork
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio


class Nobody:
    """Watches nothing."""

    def leaves(self, message: Message) -> None:
        del message

    def failed(self, error: Exception) -> None:
        raise AssertionError from error


async def test_no_frame_is_lost_where_a_handler_stops_waiting_for_it() -> None:
    network = MemoryChannelNetwork()
    client: list[Channel] = []
    got: list[Message] = []
    over = asyncio.Event()

    def is_asked() -> bool:
        return any("._receive" in repr(each) for each in asyncio.all_tasks())

    async def impatient(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, send
        waiting = asyncio.ensure_future(receive())
        while not is_asked():  # noqa: ASYNC110
            await asyncio.sleep(0)
        for text in "abc":
            await client[0].send(encoded({"type": "websocket.receive", "text": text}))
        while is_asked():  # noqa: ASYNC110
            await asyncio.sleep(0)  # until its task has it, and the handler does not yet
        waiting.cancel()
        got.extend([await receive() for _ in range(3)])
        over.set()

    server = MemoryServer(impatient, lambda _: Nobody())
    url = network.listen(server.serve)
    client.append(await network.connect(url))
    await client[0].send(encoded({"type": "websocket", "path": "/", "headers": []}))
    async with asyncio.timeout(DEADLINE_SECONDS):
        await over.wait()
    assert [each["text"] for each in got] == ["a", "b", "c"]


async def test_the_judge_finds_the_key_that_relay_finds() -> None:
    failed: list[Any] = []

    def lease_of(key: Key) -> object:
        return "a lease" if key == hashed_key("a") else None

    owner = SimpleNamespace(
        look=lambda: None, engine=SimpleNamespace(config=SimpleNamespace(kind="hashed"))
    )
    process: Any = SimpleNamespace(
        site=SimpleNamespace(is_old_copy=False, fail=failed.append, owners=list),
        alive=True,
        slot="p0",
        turns={},
        owners=lambda: [owner],
        lease_of=lease_of,
    )
    judge = Judge("/rooms/{room}")
    scope = {"path": "/base/rooms/a/b", "raw_path": b"/base/rooms/a%2Fb", "root_path": "/base"}
    judge.judge(process, scope, "an answer")
    assert (judge.judged, failed) == (1, [])
    judge.judge(process, {"path": "/rooms/c"}, "an answer")
    assert (judge.judged, len(failed)) == (2, 1)
