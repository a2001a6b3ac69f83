"""A real Cassandra of today: one that TENURE_CASSANDRA names, or one of the tests' own.

Their own is the release in `pom.xml`. Maven copies it into `build/` once, and it runs on Java 17.
"""

import fcntl
import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tenure.cli.demo.ports import free_ports
from tests.integration.cassandra.server import APART, Commands
from tests.patience import DEADLINE_SECONDS, blocking_until
from tests.repo.reading import ROOT

NAMED = "TENURE_CASSANDRA"
"""A Cassandra or ScyllaDB of today, as host[:port]/keyspace; what its driver is told is named by
TENURE_CASSANDRA_DRIVER, as for the commands. Keyspaces whose names begin with that one are made,
and removed.
"""
POM = Path(__file__).with_name("pom.xml")
JAVA = 17
HEAP = "512M"
START_SECONDS = 4 * DEADLINE_SECONDS
OPENED = (
    *("java.io", "java.lang", "java.lang.module", "java.lang.reflect", "java.math", "java.net"),
    *("java.nio", "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch"),
    *("jdk.internal.loader", "jdk.internal.math", "jdk.internal.misc", "jdk.internal.module"),
    *("jdk.internal.ref", "jdk.internal.reflect", "jdk.internal.util.jar", "jdk.internal.vm"),
)
"""Java packages that Cassandra reaches into, and that a present Java keeps closed."""
EXPORTED = (
    *("java.base/jdk.internal.misc", "java.base/sun.nio.ch", "java.sql/java.sql"),
    *("java.management.rmi/com.sun.jmx.remote.internal.rmi", "java.rmi/sun.rmi.registry"),
    "java.rmi/sun.rmi.server",
)
SETTINGS = """\
cluster_name: tests
num_tokens: 1
initial_token: "{token}"
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
data_file_directories: [{directory}/data]
commitlog_directory: {directory}/commitlog
saved_caches_directory: {directory}/caches
hints_directory: {directory}/hints
cdc_raw_directory: {directory}/cdc
commitlog_sync: batch
auto_snapshot: false
auto_bootstrap: false
listen_address: {host}
rpc_address: {host}
native_transport_port: {cql}
storage_port: {storage}
ssl_storage_port: {tls}
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{{seeds: "{seed}:{storage}"}}]
"""
"""With `batch` it acknowledges a write when it has synced it."""
LOGGING = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %logger{0} %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="out"/></root>
</configuration>
"""
OPTIONS = bytes.fromhex("040000000500000000")
"""A driver's first question: what the server supports."""
SUPPORTED = 0x06
LINES_SAID = 20


class Ports(NamedTuple):
    """The ports on which one server listens."""

    cql: int
    storage: int
    tls: int


class PreparedServer(NamedTuple):
    """One with its directory: how it is started, where it answers, and where its lines are."""

    commands: Commands
    host: str
    port: int
    log: Path

    @property
    def address(self) -> str:
        """Where it answers, for a URL."""
        return f"{self.host}:{self.port}"


def why_not() -> str | None:
    """Return what is missing here to start a server, or None."""
    java, maven = shutil.which("java"), shutil.which("mvn")
    if java is None or maven is None:
        return "`java` and `mvn` are not on PATH (Debian: openjdk-17-jre-headless, maven)"
    said = subprocess.run([java, "-version"], check=False, capture_output=True, text=True).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) != JAVA:
        return f"{java} is not Java {JAVA}"
    return None if _jars() else "Maven could not copy it: see build/cassandra/maven.txt"


def _jars() -> Path | None:
    """The directory of the jars. The first who asks copies them, the others wait for that."""
    place = ROOT / "build" / "cassandra"
    place.mkdir(parents=True, exist_ok=True)
    jars, said = place / "jars", place / "maven.txt"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = POM.read_bytes()
        copied = place / "pom.xml"
        if not copied.exists() or copied.read_bytes() != wanted:
            shutil.rmtree(jars, ignore_errors=True)
            command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
            more = ["-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
            with said.open("wb") as output:
                ended = subprocess.run([*command, *more], check=False, stdout=output, stderr=output)
            if ended.returncode:
                return None
            copied.write_bytes(wanted)
    return jars


@contextmanager
def cassandra_of_today(directory: Path) -> Iterator[tuple[str, Commands]]:
    """Yield the address of one that answers, and how it is killed and started again."""
    ports = Ports(*free_ports(3))
    server = prepared(directory, APART, ports)
    with running([server]):
        yield server.address, server.commands


@contextmanager
def ring_of_today(directory: Path) -> Iterator[list[str]]:
    """Yield the addresses of three that form a ring, on the same ports of three addresses."""
    ports, hosts = Ports(*free_ports(3)), [f"127.0.0.{11 + number}" for number in range(3)]
    tokens = [-(1 << 63) + number * ((1 << 64) // 3) for number in range(3)]
    nodes = [
        prepared(directory / host, host, ports, seed=hosts[0], token=token)
        for host, token in zip(hosts, tokens, strict=True)
    ]
    with running(nodes):
        yield [node.address for node in nodes]


@contextmanager
def running(servers: list[PreparedServer]) -> Iterator[None]:
    """Start servers one after the other, each when the one before it answers; end them."""
    try:
        for server in servers:
            server.commands.run(server.commands.start)
            _wait_for(server)
        yield
    finally:
        for server in servers:
            with suppress(subprocess.CalledProcessError):  # it is down where a test has ended early
                server.commands.run(server.commands.kill)


def _wait_for(server: PreparedServer) -> None:
    """Its line "Starting listening for CQL clients" comes before it listens: only asking tells."""
    with suppress(AssertionError):  # what it has said tells more
        blocking_until(lambda: _answers(server) or _has_ended(server), seconds=START_SECONDS)
    if not _answers(server):
        state = "has ended" if _has_ended(server) else f"does not answer at {server.address}"
        lines = server.log.read_text(errors="replace").splitlines()[-LINES_SAID:]
        raise AssertionError("\n".join([f"Cassandra {state}; it said last:", *lines]))


def _answers(server: PreparedServer) -> bool:
    with (
        suppress(OSError),
        socket.create_connection((server.host, server.port), DEADLINE_SECONDS) as asking,
    ):
        asking.sendall(OPTIONS)
        header = asking.recv(len(OPTIONS))
        return len(header) == len(OPTIONS) and header[4] == SUPPORTED
    return False


def _has_ended(server: PreparedServer) -> bool:
    try:
        os.kill(int(server.log.with_name("pid").read_text()), 0)
    except ProcessLookupError:
        return True
    return False


def prepared(
    directory: Path, host: str, ports: Ports, *, seed: str = "", token: int = 0
) -> PreparedServer:
    """Make the directory of one."""
    jars = _jars()
    assert jars is not None
    directory.mkdir(parents=True)
    told = {"directory": directory, "host": host, "seed": seed or host, "token": token}
    (directory / "cassandra.yaml").write_text(SETTINGS.format(**told, **ports._asdict()))
    (directory / "logback.xml").write_text(LOGGING)
    program = shlex.join(
        [
            "java",
            *(f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in OPENED),
            *(f"--add-exports={each}=ALL-UNNAMED" for each in EXPORTED),
            "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
            *(f"-Xms{HEAP}", f"-Xmx{HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Dcassandra.config=file:{directory}/cassandra.yaml",
            f"-Dcassandra.storagedir={directory}",
            f"-Dlogback.configurationFile={directory}/logback.xml",
            "-Dcassandra-foreground=yes",
            "-Dcassandra.ring_delay_ms=5000",
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            *("-cp", f"{jars}/*", "org.apache.cassandra.service.CassandraDaemon"),
        ]
    )
    log, number = directory / "log.txt", directory / "pid"
    start = f"{program} >> {log} 2>&1 & echo $! > {number}"
    return PreparedServer(Commands(f"kill -9 $(cat {number})", start), host, ports.cql, log)


@contextmanager
def place_of_today(directory: Path) -> Iterator[str]:
    """Yield where one is, as host:port/keyspace: the one that is named, or one for these tests."""
    if named := os.environ.get(NAMED):
        yield named
        return
    with cassandra_of_today(directory / "server") as (place, _):
        yield f"{place}/tenure"
