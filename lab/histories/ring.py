"""The ring of a recorded run: a manager, nodes that come and go, and what can be done to them."""

import asyncio
import secrets
import signal
import sys
import time
from pathlib import Path
from random import Random

from lab.histories.hosts import HERE, Hosts
from lab.histories.node_program import CLUSTER, LOOK_SECONDS
from lab.histories.program import command
from tenure.cli.asking import ask
from tenure.cli.demo.ports import free_ports
from tenure.errors import TenureError
from tenure.protocol.topology.answers import RingRead

REPLICAS = 3
START_SECONDS = 60.0
CLOCKS_APART = 2.0
"""Seconds by which the wall clock of a node may be wrong."""


class NodeHost:
    """One node through all its lives: its host, its disk and its clock."""

    def __init__(self, number: int, port: int, disk: Path, clock_seconds: float) -> None:
        self.number = number
        self.name = f"node-{number}"
        self.port = port
        self.disk = disk
        self.clock_seconds = clock_seconds
        self.process: asyncio.subprocess.Process | None = None
        self.tells = disk.parent / f"{self.name}-takes-part"
        """The file that is there while the node takes part."""
        self.is_in_trouble = False

    @property
    def has_ended(self) -> bool:
        """Whether its present process has ended, if it ever had one."""
        return self.process is not None and self.process.returncode is not None

    def signal(self, what: signal.Signals) -> None:
        """Send the process a signal, if it is there."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(what)


class Ring:
    """See above. Nodes have the numbers from 10 on, as hosts do."""

    def __init__(self, place: Path, hosts: Hosts, random: Random) -> None:
        self.place = place
        self.hosts = hosts
        self.nodes: list[NodeHost] = []
        self._random = random
        self._secret = place / "secret"
        self._secret.write_text(secrets.token_hex(32))
        self._port = free_ports(1)[0]
        self._manager: asyncio.subprocess.Process | None = None
        self._made = 9
        self.url = place / "url"
        """The file that says where the store is."""

    @property
    def manager(self) -> str:
        """The manager's URL."""
        return f"http://{self.hosts.address(HERE)}:{self._port}"

    async def start(self, count: int) -> None:
        """Start all, and wait until the ring is formed."""
        journal = f"sqlite:{self.place / 'journal.sqlite'}"
        host = self.hosts.address(HERE)
        self._manager = await self._launch(
            "manager",
            [
                *(sys.executable, "-m", "tenure", "manager", "--first-start", "--insecure"),
                *("--host", host, "--port", str(self._port), "--journal", journal),
            ],
        )
        body = {"name": CLUSTER, "placement": str(REPLICAS), "first_nodes": count}
        await self._until("/v1/clusters", body)
        for _ in range(count):
            await self.start_node(self.new_node())
        async with asyncio.timeout(START_SECONDS):
            while not (await self.read()).ranges:  # noqa: ASYNC110 - it can only be asked
                await asyncio.sleep(0.2)
        self.say_where()

    async def _until(self, path: str, body: dict[str, object]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                await asyncio.to_thread(ask, [self.manager], path, body)
            except TenureError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)
            else:
                return

    async def read(self) -> RingRead:
        """The ring, as the manager has it."""
        reply = await asyncio.to_thread(ask, [self.manager], f"/v1/clusters/{CLUSTER}/ring")
        return reply.read(RingRead)

    async def steer(self, verb: str, **said: str) -> None:
        """Change the ring. Raises TenureError if the manager refuses."""
        await asyncio.to_thread(ask, [self.manager], f"/v1/clusters/{CLUSTER}/{verb}", {**said})

    def say_where(self) -> None:
        """Write down where the store is."""
        urls = (f"http://{self.hosts.address(each.number)}:{each.port}" for each in self.nodes)
        self.url.write_text("columns:" + ",".join(urls))

    def pids(self) -> list[int]:
        """The processes of the nodes that run, and are not in trouble."""
        processes = [each.process for each in self.nodes if not each.is_in_trouble]
        return [each.pid for each in processes if each is not None and each.returncode is None]

    # --- nodes ---

    def new_node(self) -> NodeHost:
        """A node with an empty disk, which is not started yet."""
        self._made += 1
        self.hosts.make(self._made)
        clock_seconds = self._random.choice((0.0, -CLOCKS_APART, CLOCKS_APART))
        disk = self.hosts.disk(f"disk-{self._made}")
        node = NodeHost(self._made, free_ports(1)[0], disk, clock_seconds)
        self.nodes.append(node)
        return node

    async def start_node(self, node: NodeHost) -> None:
        """Begin a life of a node."""
        node.tells.unlink(missing_ok=True)
        said = {
            "tells": str(node.tells),
            "name": node.name,
            "data": str(node.disk / "data"),
            "manager": self.manager,
            "secret": str(self._secret),
            "host": self.hosts.address(node.number),
            "port": node.port,
            "clock_seconds": node.clock_seconds,
        }
        on = self.hosts.command(node.number, command("node_program", **said))
        node.process = await self._launch(node.name, on)

    async def _launch(self, name: str, command: list[str]) -> asyncio.subprocess.Process:
        with (self.place / f"{name}.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *command, stdout=log, stderr=log, start_new_session=True
            )

    async def takes_part(self, node: NodeHost) -> None:
        """Wait until a node takes part in requests, or is not on the ring any more."""
        async with asyncio.timeout(START_SECONDS):
            while node in self.nodes and not node.tells.exists():
                assert not node.has_ended, f"{node.name} has ended by itself: its log says why"
                await asyncio.sleep(LOOK_SECONDS)

    async def kill(self, node: NodeHost) -> None:
        """End a node at once."""
        node.signal(signal.SIGKILL)
        if node.process is not None:
            await node.process.wait()

    async def end(self) -> None:
        for node in self.nodes:
            await self.kill(node)
        if self._manager is not None and self._manager.returncode is None:
            self._manager.kill()
            await self._manager.wait()
