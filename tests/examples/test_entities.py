"""The examples of entities, run as their docstrings say; and the guide shows the chat room."""

import asyncio
from pathlib import Path

import httpx
import pytest
from aiohttp import web

from examples import agent, auction, chat, history, scheduler, user_limits
from tenure.testing.clock import come_to_rest
from tests.repo.reading import ROOT
from tests.repo.test_prose import python_fences
from tests.unit.entities.stage import attached
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def client_of(app: object) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url="http://service")


async def test_a_user_has_twenty_requests_and_then_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as manager:
        monkeypatch.setenv("TENURE_MANAGERS", manager.service.url)
        async with user_limits.limits, client_of(user_limits.app) as client:
            user_limits.limits.station.host.gate.wall = lambda: 1_000_000.0
            answers = [await client.get("/", headers={"X-User": "ann"}) for _ in range(21)]
            assert [each.status_code for each in answers] == [200] * 20 + [429]
            assert answers[-1].headers["Retry-After"] == "1"
            assert (await client.get("/", headers={"X-User": "bob"})).status_code == 200


async def test_a_job_runs_when_it_is_due_and_sends_its_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leases: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        leases.append(request.headers["Tenure-Lease"])
        return web.Response(status=204)

    service = web.Application()
    service.router.add_post("/", answer)
    runner = web.AppRunner(service)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    async with serving() as manager:
        monkeypatch.setenv("TENURE_MANAGERS", manager.service.url)
        async with scheduler.jobs, client_of(scheduler.app) as client:
            await client.put("/jobs/report", params={"every": 0.05, "url": url})
            while len(found := (await client.get("/jobs/report")).json()) < 3:
                await come_to_rest()
            assert {status for _, status in found} == {204}
            assert len({due for due, _ in found}) == len(found)
    await runner.cleanup()
    assert leases[0].startswith("jobs;journal=")


async def test_a_session_streams_is_kept_and_can_be_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as manager:
        monkeypatch.setenv("TENURE_MANAGERS", manager.service.url)
        async with agent.sessions, client_of(agent.app) as client:
            watching, attaching = attached(agent.sessions, "one")
            live = agent.sessions.station.host._live
            while "one" not in live or not live["one"].envelope.sockets:
                await come_to_rest()
            assert (await client.post("/sessions/one", params={"text": "a b"})).json() == "a b "
            watching.send("c d")
            while len(watching.received) < 4:
                await come_to_rest()
            assert watching.received == ["a ", "b ", "c ", "d "]
            saying = asyncio.create_task(agent.sessions["one"].say("x " * 1000))
            while len(watching.received) < 5:
                await come_to_rest()
            await client.post("/sessions/one/stop")
            assert len(await saying) < 200
            watching.leave()
            await attaching
            kept = await agent.sessions["one"].messages()
            assert [each["role"] for each in kept] == ["user", "assistant"] * 3
        async with agent.sessions:
            assert await agent.sessions["one"].messages() == kept


async def test_the_chat_room_knows_who_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as manager:
        monkeypatch.setenv("TENURE_MANAGERS", manager.service.url)
        async with chat.rooms, client_of(chat.app) as client:
            ann, task = attached(chat.rooms, "attic", "ann")
            ann.send("hello")
            while not ann.received:
                await come_to_rest()
            assert (await client.get("/rooms/attic/people")).json() == ["ann"]
            assert "new WebSocket(" in (await client.get("/")).text
            ann.leave()
            await task


async def test_a_room_keeps_everything_that_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as manager:
        monkeypatch.setenv("TENURE_MANAGERS", manager.service.url)
        async with history.rooms, client_of(history.app) as client:
            for i in range(50):
                said = {"who": f"user-{i % 3}", "text": f"text {i}"}
                assert (await client.post("/rooms/attic", params=said)).json() == i + 1
        async with history.rooms, client_of(history.app) as client:
            found: list[str] = []
            older: str | None = None
            while not found or older:
                params = {"older": older} if older else None
                part = (await client.get("/rooms/attic", params=params)).json()
                found += [each["text"] for each in part["messages"]]
                older = part["older"]
            assert found == [f"text {i}" for i in reversed(range(50))]
            assert (await client.get("/rooms/attic/people")).json() == [
                "user-0",
                "user-1",
                "user-2",
            ]
            for no_token in ("nonsense", "", "é"):
                refused = await client.get("/rooms/attic", params={"older": no_token})
                assert (refused.status_code, "next is what" in refused.text) == (400, True)
            after = {"after": "user-1"}
            assert (await client.get("/rooms/attic/people", params=after)).json() == ["user-2"]


async def test_whoever_looks_at_an_auction_waits_for_a_higher_bid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as manager:
        monkeypatch.setenv("TENURE_MANAGERS", manager.service.url)
        async with auction.auctions, client_of(auction.app) as client:
            ann: dict[str, int | str] = {"amount": 10, "bidder": "ann"}
            assert (await client.post("/auctions/clock", params=ann)).json() is True
            assert (await client.post("/auctions/clock", params=ann)).json() is False
            assert (await client.get("/auctions/clock")).json() == ann
            waiting = asyncio.create_task(client.get("/auctions/clock", params={"above": 10}))
            await come_to_rest()
            assert not waiting.done()
            bob: dict[str, int | str] = {"amount": 11, "bidder": "bob"}
            await client.post("/auctions/clock", params=bob)
            assert (await waiting).json() == bob


@pytest.mark.parametrize(
    ("guide", "example", "lines"),
    [
        ("entities", "chat", 46),
        ("collections", "history", 73),
        ("reading-everywhere", "auction", 50),
    ],
)
async def test_the_guide_shows_these_very_programs(guide: str, example: str, lines: int) -> None:
    text = (ROOT / "docs" / "guides" / f"{guide}.md").read_text("utf-8")
    programs = [program for _, program in python_fences(text)]
    shown = (ROOT / "examples" / f"{example}.py").read_text("utf-8").split('"""', 2)[2].lstrip()
    assert shown in programs
    assert len(shown.splitlines()) < lines
