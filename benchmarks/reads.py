"""What it costs to read small messages from a socket, and large answers, by how much is asked for
at once.

Each form reads in a process of its own, because a large block that was ever freed changes how glibc
finds the next one; and there in a thread of its own, as renewals do. What writes to it is not
counted. Forms take turns, and ratios are taken within a round. A page fault for each message is the
sign of memory that is mapped for each.

Bounds: our own reads have at most 0.1 page faults a message, and cost at most 0.75 of asyncio's;
8 MiB cost them at most 1.5 times as much as they cost asyncio.
"""

import asyncio
import json
import socket
import subprocess
import sys
import threading
from resource import RUSAGE_SELF, getrusage
from statistics import median
from typing import Any, TypeAlias, cast

from benchmarks._quick import at_most, sized
from benchmarks._rounds import line
from tenure.cli.long_run import loop_factory
from tenure.runtime.read_size import read_small_blocks

ROUNDS = sized(7, 3)
SMALL = sized(4_000, 1_000)
LARGE = sized(24, 8)
SMALL_BYTES, LARGE_BYTES = 120, 8 << 20
BOUND_FAULTS = 0.1
BOUND_SMALL = at_most(0.75)
BOUND_LARGE = at_most(1.5)
Cost: TypeAlias = dict[str, float]


class Asking(asyncio.Protocol):
    """Asks for so many bytes, and waits until all are there. It reads as asyncio does."""

    transport: asyncio.Transport
    _missing = 0
    _all: asyncio.Future[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._missing -= len(data)
        if not self._missing:
            self._all.set_result(None)

    async def ask(self, size: int) -> None:
        """Ask once."""
        self._missing, self._all = size, asyncio.get_running_loop().create_future()
        self.transport.write(size.to_bytes(4, "big"))
        await self._all


class AskingForLess(Asking):
    """Reads as all of ours do."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        super().connection_made(transport)
        read_small_blocks(transport)


class AskingIntoOne(asyncio.BufferedProtocol):
    """Reads into one buffer, and copies what has come, as a protocol that keeps it must."""

    buffer = memoryview(bytearray(1 << 18))

    def __init__(self) -> None:
        self._asking = Asking()
        self.ask = self._asking.ask

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._asking.connection_made(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """See asyncio."""
        del sizehint
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio."""
        self._asking.data_received(bytes(self.buffer[:nbytes]))


FORMS: dict[str, type[Any]] = {
    "asyncio": Asking,
    "ours": AskingForLess,
    "one shared buffer": AskingIntoOne,
    "uvloop": Asking,
}


def used() -> tuple[float, int]:
    """CPU seconds and page faults of this process until now."""
    found = getrusage(RUSAGE_SELF)
    return found.ru_utime + found.ru_stime, found.ru_minflt


async def read(form: str, port: int) -> Cost:
    """In the process that reads: what one message costs, small and large."""
    loop = asyncio.get_running_loop()
    _, asking = await loop.create_connection(FORMS[form], "127.0.0.1", port)
    cost = {}
    for name, size, count in (("small", SMALL_BYTES, SMALL), ("large", LARGE_BYTES, LARGE)):
        for _ in range(count // 8):  # code that runs for the first time
            await asking.ask(size)
        seconds, faults = used()
        for _ in range(count):
            await asking.ask(size)
        after_seconds, after_faults = used()
        cost[f"{name} us"] = (after_seconds - seconds) / count * 1e6
        cost[f"{name} faults"] = (after_faults - faults) / count
    return cost


def read_in_a_thread(form: str, port: int) -> None:
    """Read, and print the cost."""

    def body() -> None:
        made = loop_factory() if form == "uvloop" else None
        with asyncio.Runner(loop_factory=made) as runner:
            print(json.dumps(runner.run(read(form, port))))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()


def write(listening: socket.socket) -> None:
    """Send what the one process asks for that connects."""
    with listening.accept()[0] as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while asked := peer.recv(4):
            peer.sendall(bytes(int.from_bytes(asked, "big")))


def measured(form: str) -> Cost:
    """What a process says that reads in this form."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = (sys.executable, "-m", "benchmarks.reads", form, str(listening.getsockname()[1]))
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            write(listening)
            said, _ = process.communicate()
    found: Cost = json.loads(said)
    return found


def main() -> int:
    """Measure and print; return 1 if a bound is not kept."""
    if sys.argv[1:]:
        read_in_a_thread(sys.argv[1], int(sys.argv[2]))
        return 0
    forms = [each for each in FORMS if each != "uvloop" or loop_factory()]
    rounds = [{form: measured(form) for form in forms} for _ in range(ROUNDS)]

    def middle(form: str, what: str) -> float:
        return median(each[form][what] for each in rounds)

    def ratio(form: str, what: str) -> float:
        return median(each[form][what] / each["asyncio"][what] for each in rounds)

    print(f"{'':20} {'120 bytes, us':>14}  ratio  faults  8 MiB, us  ratio")
    for form in forms:
        small, large = middle(form, "small us"), middle(form, "large us")
        beside = f"{ratio(form, 'small us'):6.2f} {middle(form, 'small faults'):7.2f}"
        print(f"{form:20} {small:14.1f} {beside} {large:10.0f} {ratio(form, 'large us'):6.2f}")
    found = (
        ("page faults a message of ours", middle("ours", "small faults"), BOUND_FAULTS),
        ("a small message, to asyncio's", ratio("ours", "small us"), BOUND_SMALL),
        ("8 MiB, to asyncio's", ratio("ours", "large us"), BOUND_LARGE),
    )
    for what, figure, bound in found:
        print(line(what, f"{figure:.2f}", f"<= {bound:g}", is_kept=figure <= bound))
    return 0 if all(figure <= bound for _, figure, bound in found) else 1


if __name__ == "__main__":
    sys.exit(main())
