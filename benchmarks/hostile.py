"""What 1,000 hostile connections do to 200 owners: nothing, but for a part of a second.

Owners renew what they hold, as the preset says how often. Beside them a process of its own opens
connections from other addresses of this host, and makes new ones whenever the manager ends them: a
quarter sends garbage, a quarter begins requests and never ends them, a quarter floods with requests
and messages that could be meant, and a quarter asks for much and reads nothing. The manager asks
for no tokens, which is the harder case: whatever a flood says is dealt with.

No lease may be lost, no number may change, and 99 of 100 renewals are answered within a third of
the time between two.
"""

import asyncio
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import urlsplit

import aiohttp

from benchmarks._manager import allow_many_files, loop_name, running_manager
from benchmarks._quick import at_most, sized
from benchmarks.renewal import Owner, settle
from tenure.protocol.lease.messages import Sync
from tenure.transport.websocket_frames import frame
from tenure.wire.lease import encode
from tenure.wire.versions import NEWEST, SUBPROTOCOLS

OWNERS = sized(200, 40)
HOSTILE = sized(1_000, 200)
SECONDS = sized(60, 9)
RENEW_SECONDS = 3.0
"""The interval of the preset `default`."""
BOUND_SECONDS = at_most(RENEW_SECONDS / 3)
LOST_SECONDS = 12.0
"""The term of the preset: an owner that is answered later has lost what it held."""
END_SECONDS = 10.0
AGAIN_SECONDS = 0.05
"""The pause before a connection is made again: the attacker uses the owners' CPU, too."""
UPGRADE = (
    "GET /v1/lookup HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {SUBPROTOCOLS[0]}\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
Attack = Callable[[str, asyncio.StreamReader, asyncio.StreamWriter, random.Random], Awaitable[None]]


def masked(payload: bytes) -> bytes:
    """A client's frame, with a mask that changes nothing."""
    first, second, rest = (whole := frame(payload))[0], whole[1], whole[2:]
    extra = {126: 2, 127: 8}.get(second, 0)
    return bytes((first, second | 0x80)) + rest[:extra] + bytes(4) + rest[extra:]


SYNC = masked(
    encode(Sync(pool="bench", nonce=1, sequence=1, journal=0, leadership=0, lsn=0), NEWEST)
)


async def garbage(
    host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rng: random.Random
) -> None:
    """Bytes that are no HTTP, or no message."""
    if rng.random() < 0.5:
        writer.write(UPGRADE.format(host=host).encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(masked(rng.randbytes(rng.randrange(1, 400))))
    else:
        writer.write(rng.choice((b"", b"GET /\xff ", b"POST / HTTP/1.1\r\nA: \x01")))
        writer.write(rng.randbytes(rng.randrange(1, 4_000)) + b"\r\n\r\n")
    await writer.drain()
    await reader.read()


async def half(
    host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rng: random.Random
) -> None:
    """A request, a body or a frame that never ends."""
    body = f"POST /v1/pools HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99\r\n\r\n{{"
    if rng.random() < 0.3:
        writer.write(UPGRADE.format(host=host).encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(SYNC[: rng.randrange(1, len(SYNC))])
    else:
        writer.write(rng.choice((b"GET / HTTP/1.1\r\nHos", body.encode(), b"")))
    await writer.drain()
    await reader.read()


async def flood(
    host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rng: random.Random
) -> None:
    """Send as much as the connection takes."""
    if rng.random() < 0.5:
        writer.write(UPGRADE.format(host=host).encode())
        await reader.readuntil(b"\r\n\r\n")
        said = SYNC
    else:
        path = rng.choice(("/v1/status", "/metrics", "/v1/pools/bench/table", "/nowhere"))
        said = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    reading = asyncio.ensure_future(read_on(reader))
    try:
        while not reading.done():
            writer.write(said * 50)
            await writer.drain()
            await asyncio.sleep(0)
    finally:
        reading.cancel()


async def read_on(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass


async def never_read(
    host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rng: random.Random
) -> None:
    """Ask for much, and take nothing."""
    del reader
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    if rng.random() < 0.5:
        writer.write(UPGRADE.format(host=host).encode() + SYNC * 20)
    else:
        writer.write(f"GET /v1/pools/bench/table HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() * 200)
    await asyncio.sleep(20)


ATTACKS: tuple[Attack, ...] = (garbage, half, flood, never_read)


async def attack(url: str, number: int, made: Counter[str]) -> None:
    """One hostile connection after another."""
    parts, rng = urlsplit(url), random.Random(number)
    by = ATTACKS[number % len(ATTACKS)]
    peer = f"127.0.1.{number % 200 + 1}"
    while True:
        with suppress(OSError, EOFError, asyncio.LimitOverrunError):
            reader, writer = await asyncio.open_connection(
                parts.hostname, parts.port, local_addr=(peer, 0)
            )
            made[by.__name__] += 1
            try:
                await by(parts.netloc, reader, writer, rng)
            finally:
                writer.transport.abort()
        await asyncio.sleep(AGAIN_SECONDS)


async def attack_all(url: str) -> None:
    made: Counter[str] = Counter()
    attacks = [asyncio.ensure_future(attack(url, number, made)) for number in range(HOSTILE)]
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until it is closed
    for each in attacks:
        each.cancel()
    await asyncio.wait(attacks)
    said = ", ".join(f"{count:,} that do `{name}`" for name, count in sorted(made.items()))
    print(f"hostile connections made: {said}", flush=True)


async def renew_on(owner: Owner, first: float, ended: asyncio.Event, waited: list[float]) -> None:
    loop = asyncio.get_running_loop()
    at = first
    while not ended.is_set():
        await asyncio.sleep(max(0.0, at - loop.time()))
        began = loop.time()
        try:
            async with asyncio.timeout(LOST_SECONDS):
                await owner.renew()
        except (TimeoutError, TypeError):  # it was not answered, or its connection is gone
            waited.append(LOST_SECONDS)
            owner.held = ()
            return
        waited.append(loop.time() - began)
        at = max(at + RENEW_SECONDS, loop.time())


async def measure(url: str) -> tuple[list[float], list[float], int, dict[str, int]]:
    loop = asyncio.get_running_loop()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        owners = [
            Owner(n, await session.ws_connect(url + "/v1/owner", protocols=SUBPROTOCOLS))
            for n in range(OWNERS)
        ]
        for owner in owners:
            await owner.join()
        await settle(owners)
        before = [owner.held for owner in owners]

        async def status() -> dict[str, int]:
            async with session.get(url + "/v1/status") as response:
                events: dict[str, int] = (await response.json())["events"]
                return events

        async def rounds(seconds: float) -> tuple[list[float], dict[str, int]]:
            """Renew for this long, and until the manager has reported what happened meanwhile."""
            waited: list[float] = []
            ended = asyncio.Event()
            now = loop.time()
            spread = (now + RENEW_SECONDS * n / OWNERS for n in range(OWNERS))
            renewing = (
                renew_on(each, first, ended, waited)
                for each, first in zip(owners, spread, strict=True)
            )
            async with asyncio.TaskGroup() as group:
                for each in renewing:
                    group.create_task(each)
                await asyncio.sleep(seconds)
                events = await status()
                ended.set()
            return waited, events

        quiet, earlier = await rounds(2 * RENEW_SECONDS)
        command = sys.executable, "-m", "benchmarks.hostile", "attack", url
        hostile = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE)
        try:
            beset, events = await rounds(SECONDS)
        finally:
            assert hostile.stdin
            hostile.stdin.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(hostile.wait(), END_SECONDS)
            if hostile.returncode is None:
                hostile.kill()
                await hostile.wait()
        lost = sum(was != owner.held for was, owner in zip(before, owners, strict=True))
        happened = {what: count - earlier.get(what, 0) for what, count in events.items()}
        return quiet, beset, lost, happened


def percentile(waited: list[float], part: float) -> float:
    return sorted(waited)[min(len(waited) - 1, int(len(waited) * part))]


def main() -> int:
    allow_many_files()
    if sys.argv[1:2] == ["attack"]:
        asyncio.run(attack_all(sys.argv[2]))
        return 0
    began = time.monotonic()
    with running_manager(log_level="error") as manager:
        quiet, beset, lost, events = asyncio.run(measure(manager.url))
        cpu = manager.cpu_seconds() / (time.monotonic() - began)
    print(f"{OWNERS} owners that renew every {RENEW_SECONDS:g} s, {HOSTILE:,} hostile connections")
    print(f"{SECONDS} s, {len(beset):,} renewals, {cpu:.2f} of a core, {loop_name()}")
    for what, waited in (("alone", quiet), ("beset", beset)):
        parts = (f"{percentile(waited, part) * 1e3:.1f}" for part in (0.5, 0.99, 1))
        print("renewal, {}: {} ms (median, p99, longest)".format(what, ", ".join(parts)))
    told = ("peer refused", "silent peer disconnected", "malformed message", "too many messages")
    print("the manager: " + ", ".join(f"{events.get(each, 0):,} {each}" for each in told))
    expired = events.get("owner expired", 0)
    p99 = percentile(beset, 0.99)
    print(f"owners whose leases changed: {lost} (bound 0); expired: {expired} (bound 0)")
    print(f"p99 {p99:.3f} s (bound {BOUND_SECONDS:.2f} s)")
    return 0 if lost == expired == 0 and p99 <= BOUND_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
