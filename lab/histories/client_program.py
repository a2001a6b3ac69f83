"""Some clients in one process, each with a handle of its own, until the process is told to end.

Each operation is one line of the process's file, as soon as it has ended. A client whose handle
fails for long opens another one, with the nodes that there are by then: how long a handle was
without answers is the last line of the standard output.
"""

import asyncio
import json
import signal
import time
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from lab.histories.operations_of_clients import OWNED, TABLE, ClientOperations
from lab.histories.program import arguments
from lab.judges.operations import AnyRecord
from tenure import open_store
from tenure.errors import TenureError

GIVES_UP_NS = 12_000_000_000
PAUSES = (0.0, 0.002, 0.05)


class Clients:
    """See above."""

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said
        self._random = Random(said["seed"])
        self._file = Path(said["file"]).open("wb")  # noqa: SIM115 - until the process ends
        self._is_over = asyncio.Event()
        self._encoder = msgspec.json.Encoder()
        self._left = said["operations"]
        self._outages: list[int] = []

    def _note(self, record: AnyRecord) -> None:
        self._file.write(self._encoder.encode(record) + b"\n")
        self._left -= 1
        if self._left == 0:
            self._is_over.set()

    async def run(self) -> None:
        """Run all clients to the end."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._is_over.set)
        names = [f"{self._said['name']}.{n}" for n in range(self._said["clients"])]
        tasks = [asyncio.create_task(self._client(name)) for name in names]
        await self._is_over.wait()
        await asyncio.wait(tasks, timeout=self._said["ends_seconds"])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._file.close()
        print(json.dumps({"longest_outage_seconds": max(self._outages, default=0) / 1e9}))

    async def _client(self, name: str) -> None:
        random = Random(f"{self._said['seed']} {name}")
        said = self._said
        does = ClientOperations(name, random, said["began_ns"], self._note, said["kinds"])
        while not self._is_over.is_set():
            url = await asyncio.to_thread(Path(self._said["url"]).read_text)
            try:
                async with open_store(url, TABLE, OWNED) as store:
                    await self._use(does, store, random)
            except TenureError:
                await asyncio.sleep(0.2)
        self._outages.append(does.longest_outage_ns)

    async def _use(self, does: ClientOperations, store: Any, random: Random) -> None:
        pause = random.choice(PAUSES)
        while not self._is_over.is_set():
            await does.one(store)
            since = does.failed_since
            if since is not None and time.monotonic_ns() - since > GIVES_UP_NS:
                does.failed_since = None
                return
            await asyncio.sleep(random.expovariate(1.0) * pause if since is None else 0.05)


if __name__ == "__main__":
    asyncio.run(Clients(arguments()).run())
