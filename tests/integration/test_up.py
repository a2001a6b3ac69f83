"""`tenure up`: a whole system on this host, of which anything may be killed."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession

from tenure.cli.demo.ports import free_ports
from tests.patience import DEADLINE_SECONDS, until
from tests.repo.reading import ROOT

pytestmark = pytest.mark.asyncio
TENURE = [sys.executable, "-m", "tenure"]
FENCED = re.compile(r"```toml\n(.*?)```", re.DOTALL)
TELLS = "import os, signal; print(os.environ['TENURE_STORE'], flush=True); signal.pause()"


@pytest.fixture
def ports() -> list[int]:
    return free_ports(4)


def write(file: Path, ports: list[int], *more: str) -> None:
    """A file that runs a node, a service and a command."""
    lines = [
        f"data = {json.dumps(str(file.parent / 'kept'))}",
        f"port = {ports[0]}",
        'nodes = 1\npreset = "test"',
        f'[[serve]]\nservice = "documents"\nlisten = "127.0.0.1:{ports[2]}"',
        f'[[command]]\nname = "teller"\nrun = {json.dumps([sys.executable, "-c", TELLS])}',
        *more,
    ]
    file.write_text("\n".join(lines))


@asynccontextmanager
async def running(file: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, Any]]]:
    """The system, and what it says of itself; it is ended at the end."""
    up = await asyncio.create_subprocess_exec(
        *TENURE, "up", "--file", str(file), "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert up.stdout is not None
    told = None
    try:
        told = json.loads(await up.stdout.readline())
        yield up, told
    finally:
        up.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await up.wait() == 0
        for pid in told["pids"].values() if told else ():
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


async def said(up: asyncio.subprocess.Process, text: str) -> str:
    """Its line on standard error that has this in it."""
    assert up.stderr is not None
    async with asyncio.timeout(DEADLINE_SECONDS):
        while line := (await up.stderr.readline()).decode():
            if text in line:
                return line
    raise AssertionError(f"it has not said {text!r}")


async def asked(method: str, url: str, **what: Any) -> Any:  # noqa: ANN401  # JSON
    """The answer, as soon as there is one."""

    async def ask() -> tuple[Any, ...]:
        with suppress(ClientError):
            async with session.request(method, url, **what) as answer:
                if answer.status < 300:
                    return (await answer.json(content_type=None),)
        return ()

    async with ClientSession() as session:
        return (await until(ask))[0]


async def test_what_is_killed_comes_again_and_has_lost_nothing(
    tmp_path: Path, ports: list[int]
) -> None:
    file = tmp_path / "tenure.toml"
    write(file, ports)
    document = f"http://127.0.0.1:{ports[2]}/documents/home"
    async with running(file) as (up, told):
        assert list(told["pids"]) == ["manager", "node-1", "documents", "teller"]
        await asked("PUT", document, json={"sections": {"address": "10.0.0.7"}})
        log = tmp_path / "kept" / "teller.log"
        await until(lambda: log.read_text() == f"{told['store']}\n")
        for name in ("documents", "node-1", "manager"):
            os.kill(told["pids"][name], signal.SIGKILL)
            await said(up, f"{name} has ended (killed by signal 9), and was started again")
            found = await asked("GET", f"{document}/sections/address")
            assert "10.0.0.7" in json.dumps(found)
    async with running(file):  # the next start goes on with what was kept
        assert "10.0.0.7" in json.dumps(await asked("GET", f"{document}/sections/address"))


@pytest.mark.parametrize("name", ["deploy/one-host.toml", "docs/operating/one-host.md"])
async def test_the_gateway_of_the_file_that_we_give_leads_to_its_service(
    tmp_path: Path, ports: list[int], name: str
) -> None:
    """On ports that are free here, with one node, and without the command of the page."""
    given = (ROOT / name).read_text()
    if name.endswith(".md"):
        given = next(each for each in FENCED.findall(given) if "[gateway]" in each)
        given = given.partition("[[command]]")[0]
    text = re.sub(r"^(data|port|nodes) = .*\n", "", given, flags=re.MULTILINE)
    text = re.sub(r'"[\d.]+:8080"', f'"127.0.0.1:{ports[3]}"', text)
    text = text.replace("127.0.0.1:8101", f"127.0.0.1:{ports[2]}")
    file = tmp_path / "tenure.toml"
    data = json.dumps(str(tmp_path / "kept"))
    file.write_text(
        f'data = {data}\nport = {ports[0]}\nnodes = 1\n{text}listen = "127.0.0.1:{ports[2]}"\n'
    )
    async with running(file):
        document = f"http://127.0.0.1:{ports[3]}/documents/home"
        await asked("PUT", document, json={"sections": {"address": "10.0.0.7"}})
        found = await asked("GET", document)
        assert found["sections"] == {"address": "10.0.0.7"}


async def test_a_file_is_read_again_and_with_a_mistake_everything_runs_on(
    tmp_path: Path, ports: list[int]
) -> None:
    file = tmp_path / "tenure.toml"
    write(file, ports)
    log = tmp_path / "kept" / "second.log"
    async with running(file) as (up, told):
        write(file, ports, '[[command]]\nname = "second"\nrnu = "true"')
        up.send_signal(signal.SIGHUP)
        line = await said(up, "nothing was changed")
        assert f"{file}:13: there is no setting 'rnu'; did you mean run?" in line
        write(file, [ports[0], 0, ports[2]], '[[command]]\nname = "second"\nrun = "sleep 600"')
        up.send_signal(signal.SIGHUP)
        assert "changed: second\n" in await said(up, "read again")
        assert log.exists()
        write(file, [ports[0] + 1, 0, ports[2]])
        up.send_signal(signal.SIGHUP)
        await said(up, "nothing was changed: data, port, nodes")
        write(file, ports)
        up.send_signal(signal.SIGHUP)
        assert "changed: second\n" in await said(up, "read again")
        for pid in told["pids"].values():  # what has not changed has not been touched
            os.kill(pid, 0)


async def test_a_start_that_fails_says_why_and_leaves_nothing(
    tmp_path: Path, ports: list[int]
) -> None:
    file = tmp_path / "tenure.toml"
    write(file, ports)
    taken = socket.create_server(("127.0.0.1", ports[0]))
    up = await asyncio.create_subprocess_exec(
        *TENURE, "up", "--file", str(file), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    async with asyncio.timeout(DEADLINE_SECONDS):
        with taken:
            _, errors = await up.communicate()
    assert up.returncode == 1
    assert b"manager has ended" in errors
