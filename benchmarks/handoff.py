"""What it costs to hand over 100 MB of state in 1,000,000 keys from one process to another.

A manager, an owner that has all of it, and one that joins; then the first leaves, as in a restart.
The time counts from before the second joins until it has everything, and is compared with that of
the same without leases: the same encoding, the same WebSocket, decoding, and inserting into a dict,
between two processes in the same run. The pause of a range is the time for which nobody's `check`
says yes, read where both put up what they hold, on the one clock of the machine.

The values are bytes of an application's, as msgpack; the preset is the default one.
"""

import asyncio
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from time import sleep
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from benchmarks._manager import running_manager
from benchmarks._quick import at_most, sized, soon
from benchmarks._rounds import line
from tenure import KeyedState, Owner
from tenure.base.instants import Instant, in_seconds
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.client.holdings import Board
from tenure.protocol.lease.owner.events import Holdings
from tenure.runtime.clock import boot_clock

KEYS = sized(1_000_000, 300_000)
VALUE = "x" * 84
"""With its key, an entry has some 100 bytes."""
BATCH = 2_500
POOL = "state"
ROUNDS = sized(3, 1)
BOUND_RATIO = at_most(3.0)
BOUND_PAUSE_SECONDS = soon(0.1)
NEVER = 0
DEADLINE_SECONDS = 60.0


def main() -> int:
    """In a child process, play the given part. Otherwise measure, and print; return 1 if a
    bound is not kept.
    """
    if len(sys.argv) > 1:
        asyncio.run(ROLES[sys.argv[1]](*sys.argv[2:]))
        return 0
    return measure()


def measure() -> int:
    """Measure both ways, several times in turn."""
    bare, handed, pauses, ranges = [], [], [], 0
    for _ in range(ROUNDS):
        bare.append(without_leases())
        seconds, each = with_leases()
        handed.append(seconds)
        pauses.append(max(each))
        ranges = len(each)
    ratio = statistics.median(handed) / statistics.median(bare)
    pause = max(pauses)
    print(f"{KEYS} keys, {ranges} ranges; the median of {ROUNDS}, the longest pause of all")
    print(f"  without leases {shown(bare)} s; handed over {shown(handed)} s")
    print(f"  longest pauses {shown(pauses)} s")
    kept = (ratio <= BOUND_RATIO, pause <= BOUND_PAUSE_SECONDS)
    print(line("handing over", f"{ratio:.2f} x", f"<= {BOUND_RATIO} x", is_kept=kept[0]))
    bound = f"<= {BOUND_PAUSE_SECONDS * 1e3:.0f} ms"
    print(line("longest pause of a range", f"{pause * 1e3:.0f} ms", bound, is_kept=kept[1]))
    return 0 if all(kept) else 1


def shown(each: list[float]) -> str:
    return ", ".join(f"{seconds:.3f}" for seconds in each)


# --- processes ------------------------------------------------------------------------------------


class Child:
    """This program in another role, which says lines of JSON."""

    def __init__(self, role: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.handoff", role, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> Any:  # noqa: ANN401  # JSON
        assert self.process.stdout
        said = self.process.stdout.readline()
        assert said, f"{self.process.args!r} ended early"
        return json.loads(said)

    def go_on(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@contextmanager
def child(role: str, *arguments: str) -> Iterator[Child]:
    started = Child(role, *arguments)
    try:
        with started.process:
            yield started
            started.process.terminate()
    finally:
        started.process.kill()


def say(what: object) -> None:
    print(json.dumps(what), flush=True)


async def told() -> None:
    await asyncio.to_thread(sys.stdin.readline)


def items() -> Iterator[tuple[str, str]]:
    return ((f"user-{i:07}", VALUE) for i in range(KEYS))


# --- without leases -------------------------------------------------------------------------------


def without_leases() -> float:
    with child("receiver") as receiver, child("sender", receiver.hear()) as sender:
        sender.hear()
        sender.go_on()
        return float(sender.hear())


async def receive() -> None:
    """Decode and insert, and say when it is done."""
    decoder = msgspec.msgpack.Decoder(list[tuple[str, str]])
    values: dict[str, str] = {}

    async def on_request(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0, compress=False)
        await socket.prepare(request)
        async for frame in socket:
            values.update(decoder.decode(frame.data))
            if len(values) == KEYS:
                await socket.send_bytes(b"whole")
        return socket

    app = web.Application()
    app.router.add_get("/", on_request)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    say(f"http://127.0.0.1:{runner.addresses[0][1]}/")
    await asyncio.Event().wait()


async def send(url: str) -> None:
    """Encode and send, and say how long it took until the other had all."""
    values = dict(items())
    say("ready")
    await told()
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
        began = boot_clock()
        batch: list[tuple[str, str]] = []
        for item in values.items():
            batch.append(item)
            if len(batch) == BATCH:
                await socket.send_bytes(msgspec.msgpack.encode(batch))
                batch = []
        await socket.send_bytes(msgspec.msgpack.encode(batch))
        assert await socket.receive_bytes() == b"whole"
        say(in_seconds(boot_clock() - began))


# --- with leases ----------------------------------------------------------------------------------


def with_leases() -> tuple[float, list[float]]:
    """How long it took, and for how long nobody had each of the ranges."""
    with running_manager() as manager, child("source", manager.url) as source:
        source.hear()
        with child("taker", manager.url) as taker:
            taker.hear()
            taker.go_on()
            began = taker.hear()
            assert taker.hear() == "ready"
            source.go_on()
            ended, changes = taker.hear()
            left = source.hear()
    return in_seconds(Instant(ended - began)), pauses_of(left, changes)


def pauses_of(left: list[Any], taken: list[Any]) -> list[float]:
    """Return the times from when the one ceased to hold a range until the other held it."""
    ended = RangeMap(NEVER)
    for start, end, at in left:
        ended.assign(range_of(start, end), at)
    return [
        in_seconds(Instant(at - before))
        for start, end, at in taken
        for _, before in ended.within(range_of(start, end))
        if before != NEVER
    ]


def range_of(start: str, end: str | None) -> KeyRange:
    return KeyRange(bytes.fromhex(start), None if end is None else bytes.fromhex(end))


class Watch:
    """The instants at which this process began to hold ranges, and ceased to hold them."""

    def __init__(self) -> None:
        self.came: list[tuple[str, str | None, int]] = []
        self.went: list[tuple[str, str | None, int]] = []
        publish, held = Board.publish, RangeMap(value=False)

        def watched(board: Board, holdings: Holdings) -> bool:
            is_up = publish(board, holdings)
            now, new = boot_clock(), RangeMap(value=False)
            for lease in holdings.leases:
                new.assign(lease.range, value=True)
            for piece, is_held in new:
                for part, was_held in list(held.within(piece)):
                    if is_held != was_held:
                        changes = self.came if is_held else self.went
                        end = None if part.end is None else part.end.hex()
                        changes.append((part.start.hex(), end, now))
                held.assign(piece, is_held)
            return is_up

        setattr(Board, "publish", watched)  # noqa: B010  # a method of another's


def owner(manager: str, state: KeyedState[str]) -> Owner:
    return Owner(manager, pool=POOL, address="http://127.0.0.1:8000", hand_off=state)


async def be_source(manager: str) -> None:
    """Have all of it, and leave when told."""
    watch, state = Watch(), KeyedState[str](value_type=str)
    state.update(items())
    async with owner(manager, state) as source:
        await source.ready()
        say("ready")
        await told()
        await source.close(drain=DEADLINE_SECONDS)
    say(watch.went)
    assert not state


async def be_taker(manager: str) -> None:
    """Join when told, and say when all is here."""
    watch, state = Watch(), KeyedState[str](value_type=str)
    say("ready")
    await told()
    say(boot_clock())
    async with owner(manager, state) as taker:
        await taker.ready()
        say("ready")
        while not (len(state) == KEYS and covers_all(taker)):  # noqa: ASYNC110  # as users see it
            await asyncio.sleep(0.005)
        say((boot_clock(), watch.came))
        await asyncio.to_thread(sleep, DEADLINE_SECONDS)


def covers_all(taker: Owner) -> bool:
    ranges = taker.ranges
    position: bytes | None = b""
    for each in ranges:
        if each.start != position:
            return False
        position = each.end
    return position is None and bool(ranges)


Role = Callable[..., Coroutine[Any, Any, None]]
ROLES: dict[str, Role] = {
    "receiver": receive,
    "sender": send,
    "source": be_source,
    "taker": be_taker,
}

if __name__ == "__main__":
    sys.exit(main())
