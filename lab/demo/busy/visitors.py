"""The visitors of the busy pool: WebSockets that talk in rooms, most of them in one."""

import asyncio
from contextlib import suppress
from random import Random

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

HOT_ROOM = "lobby"
HOT_VISITORS = 12
QUIET_VISITORS = 24
QUIET_ROOMS = tuple(f"room-{i}" for i in range(1, 13))
HOT_SECONDS, QUIET_SECONDS = 0.6, 4.0
"""How often a visitor says something, on average."""
AGAIN_SECONDS = 1.0


async def visit(gateway: str, random: Random) -> None:
    """Be all visitors, without an end."""
    async with asyncio.TaskGroup() as visitors:
        for number in range(HOT_VISITORS + QUIET_VISITORS):
            is_hot = number < HOT_VISITORS
            room = HOT_ROOM if is_hot else QUIET_ROOMS[number % len(QUIET_ROOMS)]
            url = f"{gateway}/rooms/{room}?name=visitor-{number}"
            pause = HOT_SECONDS if is_hot else QUIET_SECONDS
            visitors.create_task(_stay(url, pause, random))


async def _stay(url: str, pause: float, random: Random) -> None:
    while True:
        with suppress(OSError, WebSocketException, TimeoutError):  # of a worker that has just died
            async with connect(url) as connection:
                await _talk(connection, pause, random)
        await asyncio.sleep(AGAIN_SECONDS)


async def _talk(connection: ClientConnection, pause: float, random: Random) -> None:
    listening = asyncio.create_task(_listen(connection))
    try:
        while True:
            await asyncio.sleep(2 * pause * random.random())
            await connection.send("hello")
    finally:
        listening.cancel()


async def _listen(connection: ClientConnection) -> None:
    with suppress(WebSocketException):
        async for _ in connection:
            pass
