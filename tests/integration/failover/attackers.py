"""Strangers, clients of another pool, and neighbours, all at once, in a process of their own.

Each connection does one thing that once cost others their leases, and comes again whenever it is
let go. It ends when its input does.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count as numbers_from
from urllib.parse import urlsplit

from benchmarks.hostile import masked, read_on
from tenure.protocol.entity.key_line import EntityCall
from tenure.protocol.entity.messages import EntityAsk
from tenure.protocol.lease.messages import (
    Hello,
    Introduction,
    Join,
    LeaseRequest,
    LeaseResponse,
    ToOwner,
)
from tenure.transport.websocket_channels import PATH
from tenure.transport.websocket_frames import PIECE
from tenure.wire.entity import encode
from tenure.wire.lease import decode_to_owner
from tenure.wire.lease import encode as encode_lease
from tenure.wire.versions import NEWEST, SUBPROTOCOLS
from tests.hostile.test_bounds import join_of_many_labels
from tests.unit.transport.test_large_messages import whole_table

AGAIN_SECONDS = 0.3
REFUSED_SECONDS = 3.0
STAYS_SECONDS = 4.0
MIB = 1 << 20
UPGRADE = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {SUBPROTOCOLS[0]}\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
HUGE_FRAME = b"\x82\xff" + (15 * MIB).to_bytes(8) + bytes(4)
CHUNK = b"\x82\xff" + (4 * MIB).to_bytes(8) + bytes(4)
FIRST_PIECE = b"\x02\xff" + (15 * MIB).to_bytes(8) + bytes(4)
EMPTY_PIECE = bytes((PIECE, 0x80)) + bytes(4)
"""A continuation with nothing in it, and no end."""
Attack = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _upgraded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
    host = "{}:{}".format(*writer.get_extra_info("peername")[:2])
    writer.write(UPGRADE.format(path=path, host=host).encode())
    await reader.readuntil(b"\r\n\r\n")


async def labels(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """S2: a lookup says what only an owner says, with millions of labels."""
    await _upgraded(reader, writer, "/v1/lookup")
    writer.write(LABELS)
    await writer.drain()
    await reader.read()


async def large_joins(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Who may own sends as much as an owner may, and none of it is for the pool."""
    await _upgraded(reader, writer, "/v1/owner")
    writer.write(LABELS)
    await writer.drain()
    await reader.read()


async def tables(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Valid requests that list as many ranges as there may be, one after the other."""
    await _upgraded(reader, writer, "/v1/owner")
    reading = asyncio.ensure_future(read_on(reader))
    try:
        while not reading.done():
            writer.write(TABLE)
            await writer.drain()
    finally:
        reading.cancel()


async def unfinished(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """S14: a frame that does not end."""
    await _upgraded(reader, writer, "/v1/owner")
    writer.write(HUGE_FRAME + bytes(MIB))
    await writer.drain()
    await reader.read()


async def idle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """S15: one request, and then nothing."""
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await writer.drain()
    await read_on(reader)


async def pieces(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """S3: one large piece, and empty ones behind it."""
    await _upgraded(reader, writer, "/ws")
    writer.write(FIRST_PIECE + bytes(15 * MIB))
    await writer.drain()
    reading = asyncio.ensure_future(read_on(reader))
    try:
        while not reading.done():
            writer.write(EMPTY_PIECE * 1000)
            await writer.drain()
    finally:
        reading.cancel()


async def asks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """S13: calls of entities, whose answers nobody reads."""
    await _upgraded(reader, writer, PATH)
    call = masked(encode(EntityAsk(1, EntityCall("", b"key", "method", b""))))
    while True:
        writer.write(call * 100)
        await writer.drain()


async def unfinished_asks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """S14 at a port of entities."""
    await _upgraded(reader, writer, PATH)
    writer.write(CHUNK + bytes(4 * MIB - 1))
    await writer.drain()
    await read_on(reader)


async def _answer(reader: asyncio.StreamReader) -> ToOwner:
    size = (await reader.readexactly(2))[1]
    if size >= TWO_BYTES_OF_LENGTH:
        size = int.from_bytes(await reader.readexactly(2 if size == TWO_BYTES_OF_LENGTH else 8))
    return decode_to_owner(await reader.readexactly(size), NEWEST)


async def decoys(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An owner of another pool comes, stays until it is planned for, and is gone."""
    await _upgraded(reader, writer, "/v1/owner")
    number = next(NUMBERS)
    writer.write(masked(encode_lease(Hello(pool="decoys", token=number), NEWEST)))
    introduced = await _answer(reader)
    assert isinstance(introduced, Introduction)
    joining = Join(
        pool="decoys",
        kind="hashed",
        name=f"decoy-{number}",
        address="http://10.0.0.1",
        owner_nonce=number,
        manager_nonce=introduced.manager_nonce,
        sequence=1,
    )
    writer.write(masked(encode_lease(joining, NEWEST)))
    while not isinstance(joined := await _answer(reader), LeaseResponse):
        pass
    asking = LeaseRequest(
        pool="decoys",
        incarnation=joined.incarnation,
        owner_nonce=number,
        manager_nonce=introduced.manager_nonce,
        sequence=2,
        journal=joined.journal,
        leadership=joined.leadership,
        held=(),
    )
    writer.write(masked(encode_lease(asking, NEWEST)))
    async with asyncio.timeout(STAYS_SECONDS):
        await read_on(reader)


async def follow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything that happens is to be told, and nothing of it is read."""
    del reader
    writer.write(b"GET /v1/live?level=debug HTTP/1.1\r\nHost: localhost\r\n\r\n")
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(STAYS_SECONDS)


AT_MANAGER: tuple[tuple[Attack, int], ...] = (
    (labels, 3),
    (large_joins, 3),
    (tables, 6),
    (unfinished, 30),
    (idle, 400),
    (decoys, 300),
    (follow, 50),
)
AT_DOOR: tuple[tuple[Attack, int], ...] = ((pieces, 3),)
AT_ENTITIES: tuple[tuple[Attack, int], ...] = ((asks, 4), (unfinished_asks, 40))
LABELS = TABLE = b""
NUMBERS = numbers_from(1)
TWO_BYTES_OF_LENGTH = 126


async def attack(url: str, by: Attack, number: int, made: Counter[str]) -> None:
    """One connection after another."""
    where, peer = urlsplit(url), f"127.0.1.{number % 2 + 1}"
    while True:
        with suppress(OSError, EOFError, TimeoutError):
            reader, writer = await asyncio.open_connection(
                where.hostname, where.port, local_addr=(peer, 0)
            )
            made[by.__name__] += 1
            try:
                await by(reader, writer)
            finally:
                writer.transport.abort()
        await asyncio.sleep(AGAIN_SECONDS if by is not idle else REFUSED_SECONDS)


async def main(manager: str, door: str, entities: str) -> None:
    """Attack until the input ends."""
    global LABELS, TABLE
    LABELS, TABLE = masked(join_of_many_labels()), masked(whole_table())
    made: Counter[str] = Counter()
    attacks = [
        asyncio.ensure_future(attack(url, by, number, made))
        for url, kinds in ((manager, AT_MANAGER), (door, AT_DOOR), (entities, AT_ENTITIES))
        for by, count in kinds
        for number in range(count)
    ]
    print("begun", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for each in attacks:
        each.cancel()
    await asyncio.wait(attacks)
    print(*(f"{name} {count}" for name, count in made.items()), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
