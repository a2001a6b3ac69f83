"""What each role may ask at a service's port. The ways in are those that the service itself knows,
so one that is added is tried, too.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from tenure.cli.service_gate import ServiceGate
from tenure.manager.access.pages import OwnNames
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.services.catalogue import service_type
from tenure.services.operations import operations_of
from tests.roles_table import may_ask
from tests.unit.services.stage import ServiceStage, on_service_stage

pytestmark = pytest.mark.asyncio
LOOPBACK = OwnNames("service", "http://127.0.0.1:1", (), is_loopback=True)
SERVICES = ("documents", "feeds", "pubsub", "queues")
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


class Way(NamedTuple):
    method: str
    path: str
    is_socket: bool = False

    @property
    def row(self) -> str:
        """The row in SECURITY.md that it belongs to."""
        return "WebSocket" if self.is_socket else "read" if self.method == "GET" else "change"


def tokens_in(file: Path, pool: str) -> tuple[TokenFile, dict[str, str]]:
    """A file with a token of each role, and of an owner of another pool; and what each shows."""
    tokens, shown = TokenFile(file), {"nobody": "", "stranger": "Bearer tenure_00000000_x"}
    roles = [(str(each), each, pool if each.is_of_a_pool else "") for each in AccessRole]
    for who, role, of in [*roles, ("other owner", AccessRole.OWNER, "elsewhere")]:
        made = new_token(role, of)
        tokens.add(made.entry)
        shown[who] = f"Bearer {made.text}"
    return tokens, shown


def ways_of(stage: ServiceStage) -> list[Way]:
    """Every operation and every socket of a service."""
    found = [Way(of.method, named(of.path)) for of, _ in operations_of(stage.service)]
    return [*found, *(Way("GET", named(path), True) for path in stage.service.sockets())]


def named(path: str) -> str:
    return "/".join("a" if "{" in part else part for part in path.split("/"))


@pytest.mark.parametrize("name", SERVICES)
async def test_each_role_asks_what_it_may_and_nothing_else(tmp_path: Path, name: str) -> None:
    tokens, shown = tokens_in(tmp_path / "tokens", name)
    gate = ServiceGate(name, LOOPBACK, tokens)
    async with on_service_stage(name, check=gate) as stage:
        assert service_type(name) is type(stage.service)
        table = may_ask("service")
        for way in ways_of(stage):
            for who, token in shown.items():
                status = await asked(stage, way, token)
                refused = 401 if who in ("nobody", "stranger") else 403
                assert (status == refused) == (who not in table[way.row]), (way, who, status)
                assert status not in {401, 403} - {refused}, (way, who, status)
        assert {way.row for way in ways_of(stage)} | {"WebSocket"} == set(table)


async def asked(stage: ServiceStage, way: Way, token: str) -> int:
    """The status of the answer; its body is not waited for, since a socket has none."""
    headers = {"Authorization": token} if token else {}
    async with stage.session.request(
        way.method, stage.url + way.path, headers=headers | (UPGRADE if way.is_socket else {})
    ) as answer:
        return answer.status


async def test_a_viewer_gets_no_socket_of_a_queue_and_acknowledges_nothing_away(
    tmp_path: Path,
) -> None:
    """A reader that comes evicts the one before, and what it acknowledges is gone: that is no
    reading.
    """
    tokens, shown = tokens_in(tmp_path / "tokens", "queues")
    gate = ServiceGate("queues", LOOPBACK, tokens)
    async with on_service_stage("queues", check=gate) as stage:
        ours = {"Authorization": shown["lookup"]}
        url = f"{stage.url}/queues/a/socket"
        reader = await stage.session.ws_connect(url, headers=ours)
        assert (await reader.receive_json())["loss"] == {"began": True}
        for method in ("GET", "HEAD"):
            way = Way(method, "/queues/a/socket", is_socket=True)
            assert await asked(stage, way, shown["viewer"]) in (403, 405)
        await stage.ask("POST", "/queues/a/entries", {"message": "hello"}, **ours)
        assert (await reader.receive_json(timeout=60))["message"] == "hello", "it was evicted"
        viewer = {"Authorization": shown["viewer"]}
        assert (await stage.ask("GET", "/queues/a", **viewer)).body["entries"] == 2
