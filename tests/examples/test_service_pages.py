"""The pages of the services say what happens: their curl sessions and programs are run."""

import asyncio
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tenure.services.catalogue import service_type
from tests.repo.reading import ROOT
from tests.repo.test_prose import python_fences
from tests.unit.manager.serving import serving
from tests.unit.services.stage import ServiceStage, on_service_stage
from tests.unit.services.test_feeds import titles

pytestmark = pytest.mark.asyncio

PAGES = {
    "documents": ("rename", ("home-pc", "study")),
    "feeds": ("collect", ("people",)),
    "pubsub": ("announce", ("home-pc", "10.0.0.9")),
    "queues": ("receive", ("work-pc", 2)),
}
"""For each service, the arguments with which its page's program is called."""
DRAWN = re.compile(r"[0-9a-f.]*\d[0-9a-f.]*")
"""Versions, times and names of readers, which differ from run to run."""


def page(name: str) -> str:
    return (ROOT / "docs" / "services" / f"{name}.md").read_text("utf-8")


def session(text: str, which: int = 0) -> list[tuple[str, str]]:
    """The commands of a session on a page, each with what it prints."""
    block = re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[which]
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [
        (command, printed.strip()) for command, _, printed in (x.partition("\n") for x in parts)
    ]


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl is installed")
@pytest.mark.parametrize("name", PAGES)
async def test_the_curl_session_prints_what_the_page_says(name: str) -> None:
    async with on_service_stage(name) as stage:
        await said(session(page(name)), stage)


async def said(commands: list[tuple[str, str]], *stages: ServiceStage) -> None:
    """Each command prints what the page says, where these services run."""
    for command, printed in commands:
        here = command
        for each in stages:
            here = here.replace(f"http://127.0.0.1:{each.service.port}", each.url)
        process = await asyncio.create_subprocess_shell(here, stdout=asyncio.subprocess.PIPE)
        found, _ = await process.communicate()
        assert DRAWN.sub("#", found.decode().strip()) == DRAWN.sub("#", printed), command


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl is installed")
async def test_what_is_published_into_a_queue_is_drained_as_the_page_says() -> None:
    async with serving(preset="default") as serves:
        manager = serves.service.url
        async with on_service_stage("pubsub", manager=manager):
            pass  # which makes the pool that queues watch
        async with (
            on_service_stage("queues", manager=manager, watch=("pubsub",)) as queues,
            on_service_stage("pubsub", manager=manager, queues=(queues.url,)) as topics,
        ):
            await said(session(page("pubsub"), 1), topics, queues)


def rules_of(name: str, place: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """How a process is started that is to have the rules of the page, if it has any."""
    *rules, _ = python_fences(page(name))
    if not rules:
        return (), {}
    (place / "presence.py").write_text(rules[0][1], "utf-8")
    return ("--rules", "presence:rules"), {"PYTHONPATH": str(place)}


async def program_of(name: str, urls: str, key: str) -> Any:  # noqa: ANN401  # what it returns
    """Run the program of the page with another key, at a service that runs at these URLs, and
    return its result.
    """
    *_, (_, program) = python_fences(page(name))
    function, (_, *others) = PAGES[name]
    names: dict[str, Any] = {}
    there = f"http://127.0.0.1:{service_type(name).port}"
    exec(compile(program.replace(there, urls), name, "exec"), names)  # noqa: S102
    return await names[function](key, *others)


def check_program(name: str, found: Any) -> None:  # noqa: ANN401
    """It came to what the page says."""
    if name == "documents":
        assert isinstance(found, str)
    if name == "pubsub":
        assert found == 0, "nobody has subscribed"
    if name == "queues":
        assert found == ["ask again", "home-pc has moved"]
    if name == "feeds":
        assert titles(found.encode()) == ["Carol is online", "Alice updated her profile"]


@pytest.mark.parametrize("name", PAGES)
async def test_the_program_on_the_page_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    settings: dict[str, Any] = {"rules": "presence:rules"} if rules_of(name, tmp_path)[0] else {}
    async with on_service_stage(name, **settings) as stage:
        check_program(name, await program_of(name, stage.url, str(PAGES[name][1][0])))
