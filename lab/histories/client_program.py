"""Clients in one process, a few with each handle, until the process is told to end.

Each operation is one line of a file, when it has ended: all operations on a row are in files of one
batch, so that batches can be judged apart. Stretches without an answer have a file of their own. A
client whose handle fails for long opens another one, with the nodes that there are by then.
"""

import asyncio
import signal
import time
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

import msgspec

from lab.histories.operations_of_clients import OWNED, TABLE, ClientOperations
from lab.histories.outages import Stretch
from lab.histories.program import arguments
from lab.histories.verdicts import batch_of
from lab.judges.operations import AnyRecord
from tenure import open_store
from tenure.errors import TenureError

GIVES_UP_NS = 12_000_000_000
PAUSES = (0.0, 0.002, 0.05)
BACK_OFF_SECONDS = 0.25
"""How long a client waits after a failure. If all asked again at once, nodes would be too busy to
hear of each other.
"""
SHARERS = 4
"""How many clients share a handle."""
GROUP = 2
"""How many clients of a process are in one group."""


class Clients:
    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said
        self._random = Random(said["seed"])
        self._place = Path(said["place"])
        self._files: dict[str, BinaryIO] = {}
        self._is_over = asyncio.Event()
        self._encoder = msgspec.json.Encoder()
        self._left = said["operations"]

    def _note(self, record: AnyRecord | Stretch) -> None:
        if isinstance(record, Stretch):
            self._write("outages", record)
            return
        self._write(f"history-{batch_of(record.key):04}", record)
        self._left -= 1
        if self._left == 0:
            self._is_over.set()

    def _write(self, kind: str, record: msgspec.Struct) -> None:
        if kind not in self._files:
            name = f"{kind}-{self._said['name']}.jsonl"
            self._files[kind] = (self._place / name).open("wb")
        self._files[kind].write(self._encoder.encode(record) + b"\n")

    async def run(self) -> None:
        """Run all clients to the end."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._is_over.set)
        numbers = range(self._said["clients"])
        handles = [numbers[first : first + SHARERS] for first in numbers[::SHARERS]]
        tasks = [asyncio.create_task(self._handle(each)) for each in handles]
        await self._is_over.wait()
        await asyncio.wait(tasks, timeout=self._said["ends_seconds"])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for file in self._files.values():
            file.close()

    async def _handle(self, numbers: range) -> None:
        """Open handles, one after the other, for these clients."""
        clients = [self._client(number) for number in numbers]
        try:
            while not self._is_over.is_set():
                url = await asyncio.to_thread(Path(self._said["url"]).read_text)
                try:
                    async with open_store(url, TABLE, OWNED) as store:
                        gives_up = asyncio.Event()
                        await asyncio.gather(
                            *(self._use(each, store, gives_up) for each in clients)
                        )
                except TenureError:
                    await asyncio.sleep(BACK_OFF_SECONDS)
        finally:
            for client, _ in clients:
                client.end()

    def _client(self, number: int) -> tuple[ClientOperations, Random]:
        said = self._said
        name = f"{said['name']}.{number}"
        random = Random(f"{said['seed']} {name}")
        group = str(number // GROUP)
        return (
            ClientOperations(name, random, said["began_ns"], self._note, said["kinds"], group),
            random,
        )

    async def _use(
        self, client: tuple[ClientOperations, Random], store: Any, gives_up: asyncio.Event
    ) -> None:
        does, random = client
        pause = random.choice(PAUSES)
        while not self._is_over.is_set() and not gives_up.is_set():
            await does.one(store)
            since = does.failed_since
            if since is not None and time.monotonic_ns() - since > GIVES_UP_NS:
                does.failed_since = None
                gives_up.set()
            rests = random.expovariate(1.0) * pause
            await asyncio.sleep(rests if since is None else BACK_OFF_SECONDS)


if __name__ == "__main__":
    asyncio.run(Clients(arguments()).run())
