"""The program of a PC: `python -m lab.demo.mesh.device_program home|work DISK FRONTEND...`.

It reports on standard output what happens to it, as JSON lines. Each line of standard input is an
address to which it moves, and at the end of the input it goes offline.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from lab.demo.mesh.device_disk import DeviceDisk
from lab.demo.mesh.mesh_clients import MeshClients, mesh_clients
from lab.demo.mesh.mesh_devices import HomeDevice, HomeKept, WorkDevice, WorkKept, tried

DRAIN_SECONDS = 1.0


def report(event: str, **details: object) -> None:
    """Say what has happened."""
    line = msgspec.json.encode({"event": event, **details}).decode()
    print(line, flush=True)


async def lines_in() -> AsyncIterator[str]:
    """The lines of standard input."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode().strip()


async def _home(clients: MeshClients, disk: Path, addresses: AsyncIterator[str]) -> None:
    home = HomeDevice(clients, DeviceDisk(disk, HomeKept), report)
    await tried(home.begin)

    async def watch() -> None:
        while True:
            await tried(home.watch)

    watching = asyncio.create_task(watch())
    await home.moved(addresses)
    watching.cancel()


async def _work(
    clients: MeshClients, disk: Path, inputs: AsyncIterator[str], *, asks: bool
) -> None:
    work = WorkDevice(clients, DeviceDisk(disk, WorkKept), report)

    async def drain() -> None:
        if asks:
            await tried(work.ask)
        report("online")
        while True:
            await tried(lambda: work.drain(wait=DRAIN_SECONDS))

    draining = asyncio.create_task(drain())
    async for _ in inputs:
        pass
    draining.cancel()


async def run_device(name: str, disk: Path, frontends: Sequence[str]) -> None:
    """Be that PC until the input ends."""
    async with mesh_clients(frontends) as clients:
        if name == "home":
            await _home(clients, disk, lines_in())
        else:
            await _work(clients, disk, lines_in(), asks=name == "asking")


if __name__ == "__main__":
    asyncio.run(run_device(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
