"""The servers that are compared, each on loopback, with its data in a directory, ended by its pid.

A peer that is not there is not an error: `why_not` says what is missing, and the report names it.
"""

import asyncio
import importlib.util
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import NamedTuple

from benchmarks._family import family
from benchmarks._manager import TICK_SECONDS, running_manager
from benchmarks._redis_readers import redis_binary
from tenure.cli.demo.ports import free_ports
from tests.integration.etcd.servers import Cluster, etcd_binary
from tests.unit.fencing.databases import postgres_programs, postgres_server

ZOOKEEPER_JARS = Path(__file__).parents[2] / ".venv" / "zookeeper-debian" / "jars"
FETCH = "`.ci/peers` fetches it"
DEADLINE_SECONDS = 60.0
TITLES = {
    "tenure": "tenure",
    "zookeeper": "kazoo SetPartitioner",
    "redis": "redis-py Lock",
    "etcd": "etcd lease",
    "postgres": "PostgreSQL advisory lock",
}
"""The feature of each system that is compared."""


class Server(NamedTuple):
    """One that answers."""

    url: str
    """The URL as its client wants it."""
    pid: int

    def cpu_seconds(self) -> float:
        """User and system time of it and what it has started."""
        return sum(map(_cpu_seconds, family(self.pid)))


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) * TICK_SECONDS


def why_not(system: str) -> str | None:
    """Return what is missing here to run it, or None."""
    if system == "zookeeper":
        if not _has_module("kazoo"):
            return f"the package kazoo is not installed: {FETCH}"
        if not ZOOKEEPER_JARS.exists():
            return f"no ZooKeeper here: {FETCH}"
        return None if shutil.which("java") else "no java on PATH"
    if system == "redis":
        if not _has_module("redis"):
            return f"the package redis is not installed: {FETCH}"
        return None if redis_binary() else f"no redis-server here: {FETCH}"
    if system == "etcd":
        try:
            etcd_binary()
        except AssertionError as error:
            return str(error)
    if system == "postgres" and postgres_programs() is None:
        return "PostgreSQL is not installed"
    return None


def there(notes: list[str]) -> list[str]:
    """The systems that can be compared here; notes on the others."""
    missing = {system: why_not(system) for system in TITLES}
    notes += [f"{TITLES[system]}: skipped, {why}" for system, why in missing.items() if why]
    return [system for system, why in missing.items() if not why]


def _has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


@contextmanager
def serving(system: str, place: Path, term: float) -> Iterator[Server]:
    """A server of this system. The manager of tenure has the preset whose hold is the term."""
    if system == "tenure":
        preset = "test" if term < 10 else "default"
        with running_manager("--preset", preset, log_level="error") as manager:
            yield Server(manager.url, manager.pid)
    elif system == "postgres":
        with postgres_server() as url:
            directory = url.split()[0].removeprefix("host=")
            pid = int(Path(directory, "data", "postmaster.pid").read_text().split()[0])
            yield Server(url, pid)
    elif system == "etcd":
        with _etcd(place) as server:
            yield server
    elif system == "redis":
        with running_redis(place) as server:
            yield server
    else:
        with _running(*_zookeeper(place, term)) as server:
            yield server


@contextmanager
def _etcd(place: Path) -> Iterator[Server]:
    cluster = Cluster(place, 1, (), None)
    cluster.start()
    try:
        asyncio.run(_is_ready(cluster))
        process = cluster.members[0].process
        assert process is not None
        yield Server(cluster.urls[0], process.pid)
    finally:
        cluster.kill()


async def _is_ready(cluster: Cluster) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not await cluster.ready():
            assert not cluster.has_ended, "etcd has ended: its port was taken, perhaps"
            await asyncio.sleep(0.05)


def _zookeeper(place: Path, term: float) -> tuple[list[str], int]:
    [port] = free_ports(1)
    place.mkdir(parents=True, exist_ok=True)
    settings = {
        "tickTime": ceil(term * 1000 / 4),  # no session may be shorter than two ticks
        "dataDir": place / "zookeeper",
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
    }
    (place / "zoo.cfg").write_text("".join(f"{key}={each}\n" for key, each in settings.items()))
    jars = ":".join(ZOOKEEPER_JARS.read_text().split())
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    return ["java", "-Xmx512m", "-cp", jars, main, str(place / "zoo.cfg")], port


@contextmanager
def running_redis(place: Path, *options: str) -> Iterator[Server]:
    """A Redis that keeps nothing, unless the options say so."""
    [port] = free_ports(1)
    place.mkdir(parents=True, exist_ok=True)
    said = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(place)]
    with _running([redis_binary() or "", *said, *options], port) as server:
        yield server


@contextmanager
def _running(command: list[str], port: int) -> Iterator[Server]:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(process, port)
        yield Server(f"127.0.0.1:{port}", process.pid)
    finally:
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    wanted = f":{port:04X} "
    while not any(
        wanted in line and " 0A " in line  # it listens
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{os.getpid()}/net/{table}").read_text().splitlines()
    ):
        assert process.poll() is None, f"{process.args!r} has ended"
        assert time.monotonic() < deadline, f"{process.args!r} does not listen"
        time.sleep(0.05)
