"""`deploy/three-hosts.yml` on this machine: its commands, with ports that are free here. One host
dies, and what was acknowledged is there.
"""

import asyncio
import re
import shlex
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from lab.demo.mesh.service_processes import ServiceProcess
from tenure.cli.demo.ports import free_ports
from tenure.errors import TenureError
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tests.certificates import Authority
from tests.integration.etcd.servers import etcd_binary
from tests.integration.processes import run
from tests.patience import DEADLINE_SECONDS, until
from tests.repo.reading import ROOT

pytestmark = pytest.mark.asyncio
FILE = ROOT / "deploy/three-hosts.yml"
PORTS = ("2379", "2380", "7400", "7500", "7600", "8101", "8443")
TOKENS = {
    "manager_token": (AccessRole.VIEWER, ""),
    "node_token": (AccessRole.NODE, ""),
    "documents_token": (AccessRole.OWNER, "documents"),
    "admin_token": (AccessRole.ADMIN, ""),
}


class HostHere:
    """One of the three, as processes of this machine."""

    def __init__(self, number: int, directory: Path, ports: dict[int, dict[str, int]]) -> None:
        self.number = number
        self.directory = directory / f"n{number}"
        self.directory.mkdir()
        self._secrets = directory / "secrets"
        self._ports = ports
        self.services: dict[str, Any] = yaml.safe_load(FILE.read_text())["services"]
        self.etcd: subprocess.Popen[bytes] | None = None
        self.processes: dict[str, ServiceProcess] = {
            name: ServiceProcess(name, self._command(name), self.environment(name))
            for name in self.services
            if name != "etcd"
        }

    def here(self, text: str) -> str:
        """The text with the ports, names and files of this machine."""
        text = re.sub(r"\$\{HOST_(\d)\}=", r"n\1=", text).replace(
            "--name ${HOST}", f"--name n{self.number}"
        )

        def port(found: re.Match[str]) -> str:
            of = int(found[2]) if found[2] else self.number
            return f"{found[1]}127.0.0.1:{self._ports[of][found[3]]}"

        text = re.sub(r"()(?:\$\{HOST(?:_(\d))?\}|127\.0\.0\.1|0\.0\.0\.0):(\d{4})", port, text)
        text = re.sub(r"--port (\d+)", lambda it: f"--port {self._ports[self.number][it[1]]}", text)
        text = text.replace("${HOST}", "127.0.0.1").replace("/run/secrets", str(self._secrets))
        return re.sub(r"/var/lib/tenure|(?<= )/data", str(self.directory), text)

    def environment(self, name: str) -> dict[str, str]:
        given = self.services[name].get("environment", {})
        return {each: self.here(value) for each, value in given.items()}

    def _command(self, name: str) -> list[str]:
        return shlex.split(self.here(self.services[name]["command"]))

    def start_etcd(self) -> None:
        with (self.directory / "etcd.log").open("wb") as log:
            self.etcd = subprocess.Popen(
                [etcd_binary(), *self._command("etcd")[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def start(self, name: str) -> None:
        """Start it, again and again as the supervisor does."""
        async with asyncio.timeout(2 * DEADLINE_SECONDS):
            while True:
                with suppress(TenureError):
                    await self.processes[name].start()
                    return

    async def die(self) -> None:
        if self.etcd is not None:
            self.etcd.kill()
            self.etcd.wait(DEADLINE_SECONDS)
        await asyncio.gather(*(each.end() for each in self.processes.values()))


def make_secrets(directory: Path) -> None:
    secrets = directory / "secrets"
    secrets.mkdir()
    made = Authority(secrets, "ca").sign("host")
    for path, name in ((secrets / "ca.pem", "ca"), (made.cert, "cert"), (made.key, "key")):
        path.rename(secrets / name)
    (secrets / "cluster").write_text("5" * 64)
    tokens = TokenFile(secrets / "tokens")
    for name, (role, pool) in TOKENS.items():
        token = new_token(role, pool)
        tokens.add(token.entry)
        (secrets / name).write_text(token.text)
    for each in secrets.iterdir():
        each.chmod(0o600)


@asynccontextmanager
async def three_hosts(directory: Path) -> AsyncIterator[list[HostHere]]:
    """All of them, as the page says."""
    make_secrets(directory)
    free = iter(free_ports(3 * len(PORTS)))
    ports = {number: {each: next(free) for each in PORTS} for number in (1, 2, 3)}
    async with AsyncExitStack() as stack:
        hosts = [HostHere(number, directory, ports) for number in ports]
        for each in hosts:
            stack.push_async_callback(each.die)
            each.start_etcd()
        await asyncio.gather(*(each.start("manager") for each in hosts))
        first = hosts[0]
        told = first.environment("manager")
        told["TENURE_TOKEN_FILE"] = str(directory / "secrets" / "admin_token")
        create = ("columns", "create", "home", "--placement", "3")

        async def is_created() -> bool:
            done = await asyncio.to_thread(run, *create, **told)
            return done.returncode == 0

        await until(is_created, "the cluster is made")
        for name in ("node", "documents", "gateway"):
            await asyncio.gather(*(each.start(name) for each in hosts))
        yield hosts


async def test_a_host_dies_and_the_others_have_all_that_was_acknowledged(tmp_path: Path) -> None:
    async with three_hosts(tmp_path) as hosts, aiohttp.ClientSession() as session:
        trust = ssl.create_default_context(cafile=tmp_path / "secrets" / "ca")

        async def asked(host: HostHere, method: str, key: str, **what: Any) -> Any:  # noqa: ANN401
            url = f"{host.processes['gateway'].url}/documents/{key}"

            async def answer() -> Any:  # noqa: ANN401
                with suppress(aiohttp.ClientError):
                    async with session.request(method, url, ssl=trust, **what) as found:
                        if found.status < 300:
                            return await found.json()
                return None

            return await until(answer, f"{method} {key}", 2 * DEADLINE_SECONDS)

        keys = [f"d{number}" for number in range(12)]
        for number, key in enumerate(keys):
            host = hosts[number % 3]
            await asked(host, "PUT", key, json={"sections": {"number": number}})
        await hosts[0].die()
        for number, key in enumerate(keys):
            for host in hosts[1:]:
                found = await asked(host, "GET", key)
                assert found["sections"] == {"number": number}
        await asked(hosts[1], "PUT", keys[0], json={"sections": {"number": -1}})
        assert (await asked(hosts[2], "GET", keys[0]))["sections"] == {"number": -1}
