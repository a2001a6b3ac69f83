"""Services in real processes, some of them killed: they answer, and nobody is left in the dark."""

import asyncio
import json
import shutil
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tenure.cli.demo.mesh.live_mesh import free_ports
from tenure.cli.demo.mesh.service_processes import ServiceProcess
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


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl is installed")
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.asyncio
async def test_four_processes_of_which_one_is_killed_answer_as_the_page_says(name: str) -> None:
    there = f"http://127.0.0.1:{service_type(name).port}"
    async with AsyncExitStack() as stack:
        options = ("--port", "0", "--journal", "memory", "--first-start", "--log-level", "error")
        manager = ServiceProcess("manager", ("manager", *options))
        stack.push_async_callback(manager.end)
        serve = ("serve", name, "--manager", await manager.start(), "--log-level", "error")
        processes = [
            ServiceProcess(name, (*serve, "--listen", f"127.0.0.1:{port}"))
            for port in free_ports(4)
        ]
        for each in processes:
            stack.push_async_callback(each.end)
        await asyncio.gather(*(each.start() for each in processes))
        await processes[3].kill()
        for command, printed in session(page(name)):
            process = await asyncio.create_subprocess_shell(
                command.replace(there, processes[0].url), stdout=asyncio.subprocess.PIPE
            )
            found, _ = await process.communicate()
            assert DRAWN.sub("#", found.decode().strip()) == DRAWN.sub("#", printed), command
