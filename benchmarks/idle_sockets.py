"""What a client costs a gateway that waits for it: the private memory of a connection on which a
request was answered, and of a socket of an entity on which a word was said and answered.

    python -m benchmarks idle_sockets

Each kind has a gateway of its own. Connections that are there before are not counted, and have what
comes with the first of them; neither is what the kernel keeps of a connection.
"""

import asyncio
import sys
from pathlib import Path

from benchmarks._quick import sized
from benchmarks._rounds import line
from benchmarks._shop import POOL, shop
from benchmarks.gateway import gateway

CLIENTS = sized(3_000, 600)
BEFORE = 200
AT_ONCE = 20
SETTLES_SECONDS = sized(12, 2)
"""The full form waits until owners were asked about all sockets once."""
HEADERS = (
    "Host: shop\r\nOrigin: https://shop.example\r\nAccept-Language: en-US,en;q=0.5\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef\r\n"
)
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
WORD, ANSWER = b"\x81\x82\0\0\0\0hi", b"\x81\x02hi"
END = b"\r\n\r\n"
BOUNDS = {"connection": 5_000, "entity socket": 13_000}
GOALS = {"entity socket": 10_000}


async def asked(url: str, number: int) -> asyncio.StreamWriter:
    """A connection on which a request was answered."""
    reader, writer = await opened(url)
    writer.write(f"GET /carts/user-{number // 10} HTTP/1.1\r\n{HEADERS}\r\n".encode())
    head = await reader.readuntil(END)
    assert head.startswith(b"HTTP/1.1 200 "), head
    return writer


async def attached(url: str, number: int) -> asyncio.StreamWriter:
    """A socket on which a word was answered."""
    reader, writer = await opened(url)
    path = f"/carts/user-{number // 10}/live"
    writer.write(f"GET {path} HTTP/1.1\r\n{HEADERS}{UPGRADE}\r\n".encode())
    head = await reader.readuntil(END)
    assert head.startswith(b"HTTP/1.1 101 "), head
    writer.write(WORD)
    assert await reader.readexactly(len(ANSWER)) == ANSWER
    return writer


async def opened(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the gateway."""
    host, _, port = url.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))


KINDS = {"connection": asked, "entity socket": attached}


async def measured(kind: str) -> float:
    """Return the bytes of one of them."""
    async with shop(1, "app_of_entities") as service, gateway(service, "--sockets", POOL) as behind:
        url, pid = behind
        clients: list[asyncio.StreamWriter] = []

        async def come(count: int) -> int:
            for first in range(len(clients), len(clients) + count, AT_ONCE):
                some = (KINDS[kind](url, number) for number in range(first, first + AT_ONCE))
                clients.extend(await asyncio.gather(*some))
            await asyncio.sleep(SETTLES_SECONDS)
            return private_bytes(pid)

        before = await come(BEFORE)
        found = (await come(CLIENTS) - before) / CLIENTS
        for each in clients:
            each.transport.abort()
        return found


def private_bytes(pid: int) -> int:
    """The memory that a process shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    return sum(int(each.split()[1]) << 10 for each in lines if each.startswith("Private_"))


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    are_kept = True
    for kind, bound in BOUNDS.items():
        figure = asyncio.run(measured(kind))
        is_kept = figure <= bound
        print(line(f"bytes of an idle {kind}", f"{figure:,.0f}", f"<= {bound:,}", is_kept=is_kept))
        if kind in GOALS:
            is_reached = figure <= GOALS[kind]
            print(f"the goal is {GOALS[kind]:,}: {'reached' if is_reached else 'not reached'}")
        are_kept = are_kept and is_kept
    return 0 if are_kept else 1


if __name__ == "__main__":
    sys.exit(main())
