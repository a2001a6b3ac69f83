"""A stranger: it has no token, and opens connections from many addresses."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from benchmarks._attacks.attempt import Attempt, Family, masked
from tenure.columns.backends.cluster import STORE_PATH
from tenure.protocol.lease.messages import Sync
from tenure.transport.websocket_channels import PATH as HAND_OFF
from tenure.transport.websocket_frames import PIECE
from tenure.wire.lease import encode
from tenure.wire.versions import NEWEST

MIB = 1 << 20
STAYS_SECONDS = 20.0
FIRST_PIECE = b"\x02\xff" + (15 * MIB).to_bytes(8) + bytes(4)
EMPTY_PIECE = bytes((PIECE, 0x80)) + bytes(4)
"""A continuation with nothing in it, and no end."""
SYNC = masked(
    encode(Sync(pool="bench", nonce=1, sequence=1, journal=0, leadership=0, lsn=0), NEWEST)
)


async def garbage(it: Attempt) -> None:
    """Bytes that are no HTTP, or no message."""
    random = it.random
    if random.random() < 0.5:
        await it.upgrade("/v1/lookup")
        await it.send(masked(random.randbytes(random.randrange(1, 400))))
    else:
        await it.open()
        begins = random.choice((b"", b"GET /\xff ", b"POST / HTTP/1.1\r\nA: \x01"))
        await it.send(begins + random.randbytes(random.randrange(1, 4_000)) + b"\r\n\r\n")
    await it.read_on()


async def half(it: Attempt) -> None:
    """A request, a body or a frame that never ends."""
    random = it.random
    if random.random() < 0.3:
        await it.upgrade("/v1/lookup")
        await it.send(SYNC[: random.randrange(1, len(SYNC))])
    else:
        await it.open()
        body = it.head("POST", "/v1/pools", "Content-Length: 99\r\n") + b"{"
        await it.send(random.choice((b"GET / HTTP/1.1\r\nHos", body, b"")))
    await it.read_on()


async def flood(it: Attempt) -> None:
    """Send as much as the connection takes."""
    if it.random.random() < 0.5:
        await it.upgrade("/v1/lookup")
        await it.send_on(SYNC * 50)
    await it.open()
    path = it.random.choice(("/v1/status", "/metrics", "/v1/pools/bench/table", "/nowhere"))
    await it.send_on(it.head("GET", path) * 50)


async def never_read(it: Attempt) -> None:
    """Ask for much, and take nothing."""
    if it.random.random() < 0.5:
        await it.upgrade("/v1/lookup")
        it.read_nothing()
        await it.send(SYNC * 20)
    else:
        await it.open()
        it.read_nothing()
        await it.send(it.head("GET", "/v1/pools/bench/table") * 200)
    await asyncio.sleep(STAYS_SECONDS)


async def idle(it: Attempt) -> None:
    """S15: one request, and then nothing."""
    await it.open()
    await it.send(it.head("GET", "/healthz"))
    await it.read_on()


async def audited(it: Attempt) -> None:
    """S8: requests that once were written to the audit, each as an admin's."""
    await it.open()
    path = it.random.choice(("/dashboard/x", "/healthz", "/v1/sign-in"))
    body = b'{"token": "tenure_00000000_x"}'
    head = it.head(
        "POST", path, "Content-Type: application/json\r\n", f"Content-Length: {len(body)}\r\n"
    )
    await it.send_on((head + body) * 20)


async def silent(it: Attempt) -> None:
    """S16: a channel on which nothing is said."""
    await it.upgrade(HAND_OFF)
    await it.read_on()


Prove: TypeAlias = Callable[[Attempt], Awaitable[str]]
"""Makes the header that proves something to the listener."""


async def nothing(it: Attempt) -> str:
    """Prove nothing."""
    del it
    return ""


PATHS = {
    "volume": "/v1/volume",
    "cache": "/v1/volume",
    "node": STORE_PATH,
    "entities": HAND_OFF,
    "hand_off": HAND_OFF,
    "member": "/carts/it/talk",
}
"""Where each takes WebSockets. The port that visitors use is the web server's own, which takes
frames apart as it does: SECURITY.md says what that means.
"""


def pieces_at(at: str, connections: int, shows: str = "", prove: Prove = nothing) -> Family:
    """S3: one large piece, and empty ones behind it."""

    async def pieces(it: Attempt) -> None:
        await it.upgrade(PATHS[at], await prove(it))
        await it.send(FIRST_PIECE + bytes(15 * MIB))
        await it.send_on(EMPTY_PIECE * 1000)

    pieces.__name__ = "pieces" if at == "volume" else f"pieces_at_{at}"
    return Family(pieces, at, connections, shows)


BASIC = (garbage, half, flood, never_read)
FAMILIES = (
    *(Family(by, "manager", 100) for by in BASIC),
    Family(idle, "manager", 300),
    Family(audited, "manager", 20),
    *(Family(by, "service", 20) for by in (garbage, half, idle)),
    *(Family(by, "node", 10) for by in (garbage, half)),
    Family(silent, "hand_off", 70),
    *(pieces_at(at, 3) for at in PATHS),
)
