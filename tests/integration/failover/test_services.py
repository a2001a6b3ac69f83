"""Services in real processes, some of them killed: they answer, and nobody is left in the dark."""

import asyncio
import json
import shutil
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tenure import Lookup
from tenure.cli.demo.mesh.service_processes import ServiceProcess
from tenure.cli.demo.ports import free_ports
from tenure.services.catalogue import service_type
from tests.examples.test_service_pages import DRAWN, PAGES, page, session
from tests.integration.demos import run


def test_the_live_mesh_scenario_knows_no_silence(tmp_path: Path) -> None:
    done = run(tmp_path, "--mesh", "--seconds", "30", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["silent"] == 0, done.stderr
    assert summary["kills"] + summary["stops"] >= 2
    assert summary["learned_by_message"] + summary["told_to_ask_again"] == summary["rounds"]
    troubles = summary["troubles"]
    assert len(troubles) == summary["kills"] + summary["stops"]
    assert done.stderr.count("; told: ") == len(troubles), "after each it says who was told"


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl is installed")
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.asyncio
async def test_four_processes_of_which_one_is_killed_meanwhile_answer_as_the_page_says(
    name: str,
) -> None:
    """Without a store what the killed one has is lost, so it is one that does not have the key."""
    there, key = f"http://127.0.0.1:{service_type(name).port}", str(PAGES[name][1][0])
    async with AsyncExitStack() as stack:
        options = ("--port", "0", "--journal", "memory", "--first-start", "--log-level", "error")
        manager = ServiceProcess("manager", ("manager", *options))
        stack.push_async_callback(manager.end)
        serve = ("serve", name, "--manager", await manager.start(), "--log-level", "error")
        ports = free_ports(8)
        processes = {
            members: ServiceProcess(
                name,
                (*serve, *("--listen", f"127.0.0.1:{port}", "--members", f"127.0.0.1:{members}")),
            )
            for port, members in zip(ports[:4], ports[4:], strict=True)
        }
        for each in processes.values():
            stack.push_async_callback(each.end)
        await asyncio.gather(*(each.start() for each in processes.values()))
        lookup = await stack.enter_async_context(Lookup(manager.url, pool=name))
        asked, victim = await asked_and_victim(lookup, key, processes)
        for number, (command, printed) in enumerate(session(page(name))):
            if number == 1:
                await victim.kill()
            process = await asyncio.create_subprocess_shell(
                command.replace(there, asked.url), stdout=asyncio.subprocess.PIPE
            )
            found, _ = await process.communicate()
            assert DRAWN.sub("#", found.decode().strip()) == DRAWN.sub("#", printed), command


async def asked_and_victim(
    lookup: Lookup, key: str, processes: dict[int, ServiceProcess]
) -> tuple[ServiceProcess, ServiceProcess]:
    """When each process has ranges: two of them that do not have this key."""

    def owner(of: str) -> int:
        return int((lookup.find(of) or ":0").rpartition(":")[2])

    async with asyncio.timeout(60):
        while {owner(f"any-{number}") for number in range(1000)} != set(processes):  # noqa: ASYNC110  # no event
            await asyncio.sleep(0.1)
    others = [each for members, each in processes.items() if members != owner(key)]
    return others[0], others[1]
