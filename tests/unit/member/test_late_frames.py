"""Frames of a WebSocket, after a lease that nobody has seen end."""

import asyncio

import pytest

from tenure import Member, Relay
from tenure.member.asgi import Message, Receive, Scope, Send
from tests.patience import DEADLINE_SECONDS
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio


SCOPE = {
    "type": "websocket",
    "path": "/carts/ann",
    "query_string": b"",
    "headers": [],
    "scheme": "ws",
}


async def test_no_frame_leaves_although_the_handler_goes_on_first() -> None:
    """The handler goes on as in a process that was stopped, before its guard is told."""
    sent: list[Message] = []
    incoming: asyncio.Queue[Message] = asyncio.Queue()

    async def send_to_client(message: Message) -> None:
        sent.append(message)

    async def late(scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "in time"})
        board = member.owner._engine.guards.board
        board._end(board.current)
        await send({"type": "websocket.send", "text": "late"})
        while (await receive())["type"] != "websocket.disconnect":
            pass

    async with serving() as manager, asyncio.timeout(DEADLINE_SECONDS):
        member = Member("carts", manager.service.url, drain=0)
        relay = Relay(late, member=member, key="/carts/{user}")
        async with member.serving(relay):
            await member.owner.ready()
            await relay(dict(SCOPE), incoming.get, send_to_client)
    kinds = ["websocket.accept", "websocket.send", "websocket.close"]
    assert [each["type"] for each in sent] == kinds
    assert sent[-1]["code"] == 1012


async def test_no_frame_is_lost_where_a_handler_stops_waiting_for_it() -> None:
    """As it does with a timeout, in the very moment in which the frame arrives."""
    incoming: asyncio.Queue[Message] = asyncio.Queue()
    got: list[Message] = []
    is_asked = asyncio.Event()

    async def receive_from_client() -> Message:
        is_asked.set()
        return await incoming.get()

    async def send_to_client(message: Message) -> None:
        del message

    async def impatient(scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        await send({"type": "websocket.accept"})
        waiting = asyncio.ensure_future(receive())
        await is_asked.wait()
        for text in "abc":
            incoming.put_nowait({"type": "websocket.receive", "text": text})
        for _ in range(2):  # its own task has it, and the handler does not yet
            await asyncio.sleep(0)
        waiting.cancel()
        got.extend([await receive() for _ in range(3)])

    async with serving() as manager, asyncio.timeout(DEADLINE_SECONDS):
        member = Member("carts", manager.service.url, drain=0)
        relay = Relay(impatient, member=member, key="/carts/{user}")
        async with member.serving(relay):
            await member.owner.ready()
            await relay(dict(SCOPE), receive_from_client, send_to_client)
    assert [each["text"] for each in got] == ["a", "b", "c"]
