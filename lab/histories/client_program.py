"""Some clients in one process, each with a handle of its own, until the process is told to end.

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
GROUP = 2
"""How many clients of a process are in one group."""


class Clients:
    """See above."""

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
        tasks = [asyncio.create_task(self._client(n)) for n in range(self._said["clients"])]
        await self._is_over.wait()
        await asyncio.wait(tasks, timeout=self._said["ends_seconds"])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for file in self._files.values():
            file.close()

    async def _client(self, number: int) -> None:
        said = self._said
        name = f"{said['name']}.{number}"
        random = Random(f"{said['seed']} {name}")
        group = str(number // GROUP)
        does = ClientOperations(name, random, said["began_ns"], self._note, said["kinds"], group)
        try:
            await self._go_on(does, random)
        finally:
            does.end()

    async def _go_on(self, does: ClientOperations, random: Random) -> None:
        while not self._is_over.is_set():
            url = await asyncio.to_thread(Path(self._said["url"]).read_text)
            try:
                async with open_store(url, TABLE, OWNED) as store:
                    await self._use(does, store, random)
            except TenureError:
                await asyncio.sleep(0.2)

    async def _use(self, does: ClientOperations, store: Any, random: Random) -> None:
        pause = random.choice(PAUSES)
        while not self._is_over.is_set():
            await does.one(store)
            since = does.failed_since
            if since is not None and time.monotonic_ns() - since > GIVES_UP_NS:
                does.failed_since = None
                return
            await asyncio.sleep(
                random.expovariate(1.0) * pause if since is None else BACK_OFF_SECONDS
            )


if __name__ == "__main__":
    asyncio.run(Clients(arguments()).run())
