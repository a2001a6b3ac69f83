"""A WebSocket of an application, byte by byte: what either side sends goes to the other as it is,
until one of them closes.
"""

import asyncio

from tenure.gateway.client_request import ClientRequest
from tenure.member.forwarded_answer import ForwardedAnswer
from tenure.member.forwarding import Forwarded


async def tunnel(request: ClientRequest, answer: Forwarded) -> None:
    """Pass on what either side sends after an answer of 101."""
    assert isinstance(answer, ForwardedAnswer), "no other one has both directions"
    request.switch(answer.headers)
    there = asyncio.ensure_future(_to_owner(request, answer))
    try:
        async for part in answer:
            await request.send_raw(part)
    except ConnectionError:
        pass  # the client learns it by the end of its connection
    finally:
        there.cancel()
        await asyncio.wait({there})
        request.end_raw()


async def _to_owner(request: ClientRequest, answer: ForwardedAnswer) -> None:
    while (message := await request.receive())["type"] == "http.request":
        await answer.send(message["body"])
    answer.close()
