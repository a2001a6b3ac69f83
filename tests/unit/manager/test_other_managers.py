"""A manager shows the others: which one leads, which ones stand by, and which ones do
not answer.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tenure.base.instants import Instant
from tenure.errors import ConfigurationError
from tenure.journals import MemoryJournal
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.manager.config import ManagerSettings
from tenure.manager.other_managers import NO_MANAGER, STATUS_BYTES, WANTS_TOKEN
from tenure.manager.rival_watch import RivalWatch
from tenure.observe.events import Observer
from tenure.protocol.lease.leader.events import OtherSeen
from tenure.protocol.lease.timing import PAPER
from tenure.wire.lease_records import LEASE_RECORDS
from tests.unit.manager.serving import serving
from tests.unit.manager.test_api import ready

pytestmark = pytest.mark.asyncio
MANAGERS = "/v1/managers"


@asynccontextmanager
async def answering(status: int, body: object) -> AsyncIterator[tuple[str, list[str]]]:
    """Yield a server that is not a manager: its URL, and the tokens that it was shown."""
    shown: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        shown.append(request.headers.get("Authorization", ""))
        return web.json_response(body, status=status, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_get("/{any:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/"), shown


async def asks_nobody(_: RivalWatch) -> tuple[OtherSeen, ...]:
    """Stands for a leader that does not ask the others for itself."""
    return ()


async def test_a_standby_and_the_leader_see_each_other() -> None:
    journal = MemoryJournal(LEASE_RECORDS)
    async with (
        serving(journal) as standby_to_be,
        serving(journal, others=(standby_to_be.service.url + "/",)) as other,
    ):
        managers = {each.service.url: each for each in (standby_to_be, other)}
        await ready(standby_to_be)
        await ready(other)
        roles = {url: each.service.engine.view.role for url, each in managers.items()}
        assert sorted(roles.values()) == ["leading", "standing by"]
        leader = next(each for each in managers.values() if roles[each.service.url] == "leading")
        standby = next(each for each in managers.values() if each is not leader)
        _, told = await other.get(MANAGERS)
        assert {each["url"]: each["role"] for each in told["managers"]} == roles
        assert told["managers"][0]["url"] == other.service.url, "itself first"
        _, told = await standby.get(MANAGERS)
        assert [each["role"] for each in told["managers"]] == ["standing by", "leading"], (
            "the leader is shown by a standby, whether it was named or not"
        )
        assert [each["error"] for each in told["managers"]] == ["", ""]


async def test_who_does_not_say_is_shown_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RivalWatch, "look", asks_nobody)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        nobody = f"http://127.0.0.1:{bound.getsockname()[1]}"
    async with (
        answering(200, ["no manager"]) as (stranger, _),
        answering(401, {}) as (guarded, _),
        answering(302, {}) as (elsewhere, asked),
        serving(others=(nobody, stranger, guarded, elsewhere)) as manager,
    ):
        _, told = await manager.get(MANAGERS)
        this, *others = told["managers"]
        assert (this["role"], this["proven"], this["lsn"] > 0) == ("leading", True, True)
        assert {each["url"]: (each["role"], each["error"]) for each in others} == {
            nobody: (None, "it does not answer: Connection refused"),
            stranger: (None, "what answers there is not a manager"),
            guarded: (None, WANTS_TOKEN),
            elsewhere: (None, "what answers there is not a manager"),
        }
        assert len(asked) == 1, "where it is sent to was not asked"


async def rival_status(**said: object) -> dict[str, object]:
    """What a manager of another journal says of itself, with some of it changed."""
    async with serving() as rival:
        _, status = await rival.get("/v1/status")
    return {**status, **said}


async def seen_by_leader(status: object) -> tuple[list[str], list[str]]:
    """The journals that a leader sees when it looks at such a manager, and why others are not."""
    told: list[str] = []
    observer = Observer("tenure.test")
    observer.subscribe(lambda noted: told.append(noted.detail.partition(": ")[2]))
    async with answering(200, status) as (rival, _):
        seen = await RivalWatch((rival,), PAPER, observer).look()
    return [f"{each.journal:016x}" for each in seen], told


async def test_a_rival_with_a_long_status_is_seen_by_the_leader_and_by_people() -> None:
    troubles = {f"pool-{each}": "its policy failed: " + "x" * 300 for each in range(2_000)}
    status = await rival_status(troubles=troubles)
    mine = status["journal_id"]
    assert await seen_by_leader(status) == ([mine], [])
    async with answering(200, status) as (rival, _), serving(others=(rival,)) as manager:
        _, told = await manager.get(MANAGERS)
        assert [(each["error"], each["journal_id"]) for each in told["managers"][1:]] == [
            ("", mine)
        ]


@pytest.mark.parametrize("of", ["journal_id", "rivals", "over"])
async def test_a_journal_that_no_journal_can_name_is_no_rival(of: str) -> None:
    """The leader would write it down, and no manager could read its journal any more."""
    too_late = f"{1 << 63:016x}"
    said: dict[str, object] = {
        "journal_id": too_late,
        "rivals": [{"journal": too_late, "manager": "http://x"}],
        "over": [too_late],
    }
    seen = await seen_by_leader(await rival_status(**{of: said[of]}))
    assert seen == ([], [NO_MANAGER])


async def test_a_status_without_end_is_no_managers() -> None:
    status = await rival_status(preset="x" * STATUS_BYTES)
    assert await seen_by_leader(status) == ([], [NO_MANAGER])


async def test_however_many_ask_the_others_are_asked_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RivalWatch, "look", asks_nobody)
    async with (
        answering(200, {}) as (other, asked),
        serving(others=(other,)) as manager,
    ):
        engine = manager.service.engine
        engine.clock = lambda: Instant(10**9)
        await asyncio.gather(*(manager.get(MANAGERS) for _ in range(5)))
        assert len(asked) == 1
        engine.clock = lambda: Instant(2 * 10**9)
        await manager.get(MANAGERS)
        assert len(asked) == 2


async def test_the_token_of_the_environment_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = new_token(AccessRole.VIEWER)
    TokenFile(tmp_path / "tokens").add(viewer.entry)
    monkeypatch.setenv("TENURE_TOKEN", viewer.text)
    async with (
        serving(tokens=tmp_path / "tokens") as guarded,
        serving(others=(guarded.service.url,)) as manager,
    ):
        _, told = await manager.get(MANAGERS)
        assert [each["role"] for each in told["managers"]] == ["leading", "leading"]


async def test_a_token_is_not_sent_in_the_clear_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_TOKEN", new_token(AccessRole.VIEWER).text)
    async with serving(others=("http://192.0.2.1:7400",)) as manager:
        _, told = await manager.get(MANAGERS)
        assert "in the clear" in told["managers"][1]["error"]


async def test_what_is_no_url_of_a_manager_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="one of the other managers is 'b:7400'"):
        ManagerSettings(others=("b:7400",))
