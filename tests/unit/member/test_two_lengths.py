"""A request that says its length and is chunked, too: the chunks count (RFC 9112, 6.3)."""

import asyncio

import pytest

from tenure.client.refusals import HttpAnswer
from tenure.member.asgi import Message, Receive, Scope, Send, respond
from tenure.member.http_relay import MOST_REPEATED_BYTES
from tests.patience import DEADLINE_SECONDS
from tests.unit.member.test_relay import key_of, stage

pytestmark = pytest.mark.asyncio

PART = b"x" * 10_000
PARTS = 2 * MOST_REPEATED_BYTES // len(PART)


async def counting(scope: Scope, receive: Receive, send: Send) -> None:
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    count, more = 0, True
    while more:
        message = await receive()
        count += len(message.get("body", b""))
        more = message.get("more_body", False)
    await respond(send, HttpAnswer(200, {}, f"{count} {lengths}"))


async def test_its_body_is_passed_on_as_it_comes_and_never_kept_whole() -> None:
    left = PARTS
    answer: list[Message] = []

    async def receive() -> Message:
        nonlocal left
        if not left:
            await asyncio.Event().wait()
        left -= 1
        return {"type": "http.request", "body": PART, "more_body": left > 0}

    async def send(message: Message) -> None:
        answer.append(message)

    async with stage() as it, asyncio.timeout(DEADLINE_SECONDS):
        first, _ = await it.member(counting)
        second, relay = await it.member(counting)
        path = f"/carts/{await key_of(first, second)}"
        await relay(
            {
                "type": "http",
                "method": "POST",
                "path": path,
                "query_string": b"",
                "scheme": "http",
                "headers": [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")],
            },
            receive,
            send,
        )
    assert answer[0]["status"] == 200
    assert answer[1]["body"] == b"%d []" % (PARTS * len(PART))
