"""A real Cassandra of today: one that TENURE_CASSANDRA names, or one of the tests' own.

Their own is the release in `pom.xml`. Maven copies it into `build/` once, and it runs on Java 17.
"""

import fcntl
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tenure.cli.demo.ports import free_ports
from tests.integration.cassandra.server import APART, Commands
from tests.patience import DEADLINE_SECONDS
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
READY = "Starting listening for CQL clients"


class Ports(NamedTuple):
    """The ports on which one server listens."""

    cql: int
    storage: int
    tls: int


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
    commands, log = prepared(directory, APART, ports)
    with running([(commands, log)]):
        yield f"{APART}:{ports.cql}", commands


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
        yield [f"{host}:{ports.cql}" for host in hosts]


@contextmanager
def running(nodes: list[tuple[Commands, Path]]) -> Iterator[None]:
    """Start servers one after the other, each when the one before it answers; end them."""
    try:
        for commands, log in nodes:
            commands.run(commands.start)
            _wait_for(log)
        yield
    finally:
        for commands, _ in nodes:
            with suppress(subprocess.CalledProcessError):  # it is down where a test has ended early
                commands.run(commands.kill)


def _wait_for(log: Path) -> None:
    """Nothing tells of it but its lines, which are read until it has ended."""
    lines = f"tail -n +1 -F --pid=$(cat {log.with_name('pid')}) {log} 2>/dev/null"
    found = subprocess.run(
        ["bash", "-c", f"grep -q -m1 '{READY}' <(exec {lines})"],
        check=False,
        timeout=START_SECONDS,
    )
    assert found.returncode == 0, f"Cassandra has ended; see {log}"


def prepared(
    directory: Path, host: str, ports: Ports, *, seed: str = "", token: int = 0
) -> tuple[Commands, Path]:
    """Make the directory of one; the commands that end and start it, and its log."""
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
    return Commands(f"kill -9 $(cat {number})", start), log


@contextmanager
def place_of_today(directory: Path) -> Iterator[str]:
    """Yield where one is, as host:port/keyspace: the one that is named, or one for these tests."""
    if named := os.environ.get(NAMED):
        yield named
        return
    with cassandra_of_today(directory / "server") as (place, _):
        yield f"{place}/tenure"
