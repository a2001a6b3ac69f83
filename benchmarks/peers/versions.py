"""The versions of what is compared, as the page names them."""

import subprocess
from collections.abc import Iterator

from benchmarks._redis_readers import redis_binary
from benchmarks._report import version_of
from benchmarks.peers.servers import ZOOKEEPER_JARS, why_not
from tests.integration.etcd.servers import etcd_binary
from tests.unit.fencing.databases import postgres_programs

PACKAGES = ("tenure", "kazoo", "redis", "uhashring", "psycopg", "uvloop")


def versions() -> Iterator[str]:
    """Return the versions of what is installed."""
    yield from filter(None, map(version_of, PACKAGES))
    if why_not("zookeeper") is None:
        [jar, *_] = (ZOOKEEPER_JARS.parent).glob("libzookeeper-java_*.deb")
        yield f"ZooKeeper {jar.name.split('_')[1]} (Debian)"
    if binary := redis_binary():
        yield "Redis " + _said(binary, "--version").split("v=")[1].split()[0]
    if why_not("etcd") is None:
        yield _said(etcd_binary(), "--version").splitlines()[0].replace(" Version:", "")
    if programs := postgres_programs():
        yield "PostgreSQL " + _said(str(programs / "postgres"), "--version").split()[2]


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
