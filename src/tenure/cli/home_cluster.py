"""A manager and some nodes on this host, each a process of its own.

They are started with the very commands that a user would type, so that any of them can be killed,
looked at and started again. What they keep is in one directory, and the next start there goes on
with it.
"""

import asyncio
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tenure.cli.asking import ask
from tenure.cli.host_processes import HostProcesses
from tenure.columns.opening import open_store
from tenure.errors import ConfigurationError, NoManager, TenureError
from tenure.protocol.topology.answers import RingRead
from tenure.runtime.private_files import make_directory, overwrite

START_SECONDS = 30.0
MOST_REPLICAS = 3


class HomeCluster(HostProcesses):
    """The processes."""

    def __init__(
        self,
        data: Path,
        cluster: str,
        nodes: int,
        port: int,
        options: Sequence[str] = (),
        managing: Sequence[str] = (),
        budget: int | None = None,
        manager: str = "",
    ) -> None:
        """`options` are those of each node, and `managing` those of the manager; `budget` is what
        it may move in a day, where that is to be changed. `manager` is the URL of one that runs
        already, and is not started.
        """
        super().__init__(data)
        self.cluster = cluster
        self.nodes = nodes
        self.port = port
        self._options = options
        self._managing = managing
        self._budget = budget
        self._has_manager = bool(manager)
        self.manager = manager or f"http://127.0.0.1:{port}"

    def command(self, name: str) -> list[str]:
        """Return the command that starts the process called `name`, as a user types it."""
        tenure = [sys.executable, "-m", "tenure"]
        if name == "manager":
            journal = f"sqlite:{self.data / 'journal.sqlite'}"
            port = str(self.port)
            command = [*tenure, "manager", "--port", port, "--journal", journal, "--json"]
            return [*command, *self._managing]
        number = int(name.removeprefix("node-"))
        return [
            *(*tenure, "columns", "node", "--cluster", self.cluster, "--name", name),
            *("--data", str(self.data / name), "--secret", str(self.data / "secret")),
            *("--manager", self.manager, "--port", str(self.port + number), "--json"),
            *self._options,
        ]

    @property
    def url(self) -> str:
        """The URL of the store."""
        return "columns:" + ",".join(self._nodes())

    def _nodes(self) -> list[str]:
        ports = range(self.port + 1, self.port + 1 + self.nodes)
        return [f"http://127.0.0.1:{port}" for port in ports]

    async def start(self) -> None:
        """Start all, and wait until the ring is formed, and every node takes part. Raises
        TenureError.
        """
        try:
            make_directory(self.data)
        except OSError as error:
            raise ConfigurationError(
                f"the directory {self.data} cannot be made: {error.strerror}. Name another one"
            ) from error
        secret = self.data / "secret"
        if not secret.exists():
            overwrite(secret, secrets.token_hex(32).encode())
        if not self._has_manager:
            await self.launch("manager")
        if self.nodes == 0:
            await self._until(self._answers)
            return
        body = {
            "name": self.cluster,
            "placement": str(min(self.nodes, MOST_REPLICAS)),
            "first_nodes": self.nodes,
        }
        await self._until(lambda: self._is_made(body))
        if self._budget is not None:
            path = f"/v1/clusters/{self.cluster}/balance"
            await asyncio.to_thread(ask, [self.manager], path, {"bytes_a_day": self._budget})
        for number in range(1, self.nodes + 1):
            await self.launch(f"node-{number}")
        await self._until(self._is_formed)
        for url in self._nodes():
            async with open_store(f"columns:{url}"):
                pass  # the node has answered: others vouch for it

    def _answers(self) -> bool:
        try:
            ask([self.manager], "/v1/pools")
        except NoManager:
            return False
        return True

    def _is_made(self, body: dict[str, object]) -> bool:
        try:
            ask([self.manager], "/v1/clusters", body)
        except NoManager:
            return False
        return True

    def _is_formed(self) -> bool:
        reply = ask([self.manager], f"/v1/clusters/{self.cluster}/ring")
        return bool(reply.read(RingRead).ranges)

    async def _until(self, holds: Callable[[], bool]) -> None:
        until = time.monotonic() + START_SECONDS
        while not await asyncio.to_thread(holds):
            for name, process in self._running.items():
                if process.returncode is not None:
                    raise TenureError(f"{name} has ended: {self.last_words(name)}")
            if time.monotonic() > until:
                raise TenureError(f"it takes too long; the logs are in {self.data}")
            await asyncio.sleep(0.1)
