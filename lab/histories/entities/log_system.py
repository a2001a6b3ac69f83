"""All processes of a run: managers, nodes of a store, owners, readers and clients."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lab.demo.ring.home_ring import HomeRing
from lab.histories.entities.log_clients import ANSWER_SECONDS
from lab.histories.program import command
from tenure.cli.asking import HttpReply, ask
from tenure.cli.demo.ports import HOST, free_ports
from tenure.columns.opening import open_store
from tenure.errors import TenureError

NODES = ("node-1", "node-2", "node-3")
MANAGERS = ("manager", "manager-2")
START_SECONDS = 120.0


class LogSystem(HomeRing):
    """See above. Processes are called `manager`, `node-1`, `owner-1`, `reader-1`, `clients-1`."""

    end_seconds = 2 * ANSWER_SECONDS  # clients wait for their last answers

    def __init__(self, place: Path, clients: Mapping[str, Mapping[str, object]]) -> None:
        """`clients` says what each process of clients is told."""
        super().__init__(place, len(NODES), 0, managing=("--preset", "test"))
        self._clients = clients
        self._ports = (self.port, free_ports(1)[0])
        self._has_begun = False
        self.members = place / "members"
        self.managers = (self.manager, f"http://{HOST}:{self._ports[1]}")

    def command(self, name: str) -> list[str]:
        kind = name.partition("-")[0]
        match kind:
            case "owner" | "reader":
                where = str(self.members / f"{name}.port")
                return command("entities.member_program", only_reads=kind == "reader", where=where)
            case "clients":
                return command("entities.log_clients", **self._clients[name])
            case "manager":
                return self._manager(name)
            case _:
                return [*super().command(name), "--manager", self.managers[1]]

    def _manager(self, name: str) -> list[str]:
        at = MANAGERS.index(name)
        first = () if self._has_begun else ("--first-start",)
        return [
            *(
                sys.executable,
                "-m",
                "tenure",
                "manager",
                "--port",
                str(self._port_of(name)),
                "--json",
            ),
            *("--journal", f"sqlite:{self.data / 'journal.sqlite'}"),
            *(f"--others={self.managers[1 - at]}", *self._managing, *first),
        ]

    def environment(self, name: str) -> Mapping[str, str] | None:
        if name.startswith(("node", "manager")):
            return None
        where = {"TENURE_MANAGERS": ",".join(self.managers), "TENURE_STORE": self.url}
        return {**os.environ, **where}

    async def said(self, what: str, body: object = None) -> HttpReply:
        path = f"/v1/clusters/{self.cluster}/{what}"
        return await asyncio.to_thread(ask, self.managers, path, body)

    async def start_all(self, members: Sequence[str]) -> None:
        """Start everything but clients."""
        await self.start()
        self._has_begun = True
        self.members.mkdir()
        await self.launch(MANAGERS[1])
        for name in members:
            await self.launch(name)
        for name in members:
            await self.answers(name)

    async def answers(self, name: str) -> None:
        """Wait until a process answers."""
        async with asyncio.timeout(START_SECONDS):
            while not await self._answers_now(name):
                if self._running[name].returncode is not None:
                    await self.launch(name)  # as a supervisor does: others were away as it began
                await asyncio.sleep(0.2)

    async def _answers_now(self, name: str) -> bool:
        with suppress(OSError, TenureError):
            if name in MANAGERS:
                _, writer = await asyncio.open_connection(HOST, self._port_of(name))
                writer.close()
                await writer.wait_closed()
            elif name in NODES:
                async with open_store(f"columns:http://{HOST}:{self._port_of(name)}"):
                    return True
            else:
                return (self.members / f"{name}.port").exists()
            return True
        return False

    def _port_of(self, name: str) -> int:
        if name in MANAGERS:
            return self._ports[MANAGERS.index(name)]
        return self.port + 1 + NODES.index(name)

    def send(self, name: str, what: signal.Signals) -> None:
        """Send a process a signal."""
        self._running[name].send_signal(what)

    async def kill_now(self, name: str) -> None:
        """Kill a process, and wait until it is gone."""
        (self.members / f"{name}.port").unlink(missing_ok=True)
        self.kill(name)
        await self._running[name].wait()

    async def end_clients(self) -> None:
        """Let them have their last answers."""
        for name in self._clients:
            await self.end_one(name)
