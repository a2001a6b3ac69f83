"""Services in real processes, some of them killed: they answer, and nobody is left in the dark."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from lab.demo.mesh.service_processes import ServiceProcess
from tenure.services.catalogue import service_type
from tests.examples.test_service_pages import (
    DRAWN,
    PAGES,
    check_program,
    page,
    program_of,
    rules_of,
    session,
)
from tests.integration.demos import run
from tests.integration.failover.four_processes import four_processes
from tests.patience import DEADLINE_SECONDS
from tests.unit.services.test_feeds import titles

ENTRIES = {"Carol is online", "Alice updated her profile"}
"""Those of the page's program: the casino is never one."""


@pytest.mark.parametrize("options", [(), ("--stored",)])
def test_the_live_mesh_scenario_knows_no_silence_whoever_is_killed(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """A client, a frontend, a worker and the manager in turn, which takes as long as it does."""
    said = ("mesh", "--seconds", "1", "--json", *options)
    done = run(tmp_path, *said, seconds=5 * DEADLINE_SECONDS)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["silent"], summary["doubled"]) == (0, 0), done.stderr
    assert {*summary["kills"]} == {"client", "frontend", "worker", "manager"}
    assert summary["stops"] >= 1
    assert summary["learned_by_message"] + summary["told_to_ask_again"] == summary["rounds"]
    untold = sum(not each["told"] for each in summary["troubles"])
    assert summary["learned_by_message"] >= untold, "where nothing is told, nothing was lost"
    assert len(summary["troubles"]) == summary["rounds"] - 1
    assert done.stderr.count("; told: ") == summary["kills"]["worker"] + 2, (
        "after the trouble of a server and of the manager it says who was told"
    )
    if options:
        assert summary["republished"] == 0, "nothing that was stored was lost"


async def answers_as_the_page_says(
    name: str, asked: ServiceProcess, victim: ServiceProcess
) -> None:
    """Each command; the victim is killed after the first."""
    there = f"http://127.0.0.1:{service_type(name).port}"
    for number, (command, printed) in enumerate(session(page(name))):
        if number == 1:
            await victim.kill()
        process = await asyncio.create_subprocess_shell(
            command.replace(there, asked.url), stdout=asyncio.subprocess.PIPE
        )
        found, _ = await process.communicate()
        assert DRAWN.sub("#", found.decode().strip()) == DRAWN.sub("#", printed), command


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="no curl is installed")


@needs_curl
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.asyncio
async def test_four_processes_of_which_one_is_killed_meanwhile_answer_as_the_page_says(
    name: str,
) -> None:
    """Without a store everything that the killed process has is lost, so this kills one that does
    not have the key.
    """
    async with four_processes(name) as there:
        asked, victim, *_ = there.others(str(PAGES[name][1][0]))
        await answers_as_the_page_says(name, asked, victim)


@needs_curl
@pytest.mark.parametrize("name", ["documents", "pubsub", "queues"])
@pytest.mark.asyncio
async def test_with_a_store_the_one_that_is_killed_may_be_the_one_that_has_the_key(
    name: str, tmp_path: Path
) -> None:
    """Feeds have no store."""
    key = str(PAGES[name][1][0])
    store = ("--store", f"sqlite:{tmp_path / 'store'}")
    async with four_processes(name, *store, preset="test") as there:
        asked, victim = there.others(key)[0], there.processes[there.owner(key)]
        await answers_as_the_page_says(name, asked, victim)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.asyncio
async def test_the_program_of_a_page_runs_while_one_of_four_processes_is_killed(
    name: str, tmp_path: Path
) -> None:
    """The program runs as a user runs it who has given it the URLs of all four. It runs on several
    keys at once, so that some of these programs begin at the process that is killed.
    """
    options, env = rules_of(name, tmp_path)
    async with four_processes(name, *options, env=env) as there:
        victim_at, victim = next(iter(there.processes.items()))
        urls = ",".join(each.url for each in there.processes.values())
        kept = [f"{name}-{n}" for n in range(100) if there.owner(f"{name}-{n}") != victim_at]
        running = [asyncio.create_task(program_of(name, urls, key)) for key in kept[:8]]
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        await victim.kill()
        after = [asyncio.create_task(program_of(name, urls, key)) for key in kept[8:16]]
        for found in await asyncio.gather(*running, *after):
            if name == "feeds":  # of which an entry may be missing after a kill, as the page says
                assert set(titles(found.encode())) <= ENTRIES
            else:
                check_program(name, found)
