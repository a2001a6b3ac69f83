"""The next message of a client: none is lost, and none comes twice."""

import asyncio

import pytest

from tenure.member.asgi import Message
from tenure.member.next_message import NextMessage

pytestmark = pytest.mark.asyncio


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_message_that_comes_while_the_wait_ends_is_there_for_the_next_one() -> None:
    incoming: asyncio.Queue[Message] = asyncio.Queue()
    following = NextMessage(incoming.get, asyncio.Event())
    waiting = asyncio.ensure_future(following.get())
    await settled()
    incoming.put_nowait({"type": "a"})
    waiting.cancel()
    incoming.put_nowait({"type": "b"})
    assert [await following.get(), await following.get()] == [{"type": "a"}, {"type": "b"}]


async def test_two_tasks_that_wait_at_once_get_one_message_each() -> None:
    incoming: asyncio.Queue[Message] = asyncio.Queue()
    following = NextMessage(incoming.get, asyncio.Event())
    both = [asyncio.ensure_future(following.get()) for _ in range(2)]
    await settled()
    incoming.put_nowait({"type": "a"})
    incoming.put_nowait({"type": "b"})
    got = await asyncio.gather(*both)
    assert sorted(str(each) for each in got) == ["{'type': 'a'}", "{'type': 'b'}"]


async def test_who_waits_is_told_that_it_has_ended() -> None:
    incoming: asyncio.Queue[Message] = asyncio.Queue()
    has_ended = asyncio.Event()
    following = NextMessage(incoming.get, has_ended)
    waiting = asyncio.ensure_future(following.get())
    await settled()
    has_ended.set()
    assert await waiting is None
    following.end()
    await settled()
    assert not any("Queue.get" in repr(each) for each in asyncio.all_tasks())
