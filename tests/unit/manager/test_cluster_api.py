"""Clusters over the JSON API, with a real manager, its journal, and a node that is a socket."""

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.manager.config import ManagerSettings
from tenure.manager.service import ManagerService
from tenure.protocol.topology.limits import NODES
from tenure.protocol.topology.messages import NodeRefused, TopologyTold
from tenure.protocol.topology.records import Placement
from tests import patience
from tests.sessions import client_session
from tests.unit.manager.nodes import SocketNode, connected

pytestmark = pytest.mark.asyncio


AT_24 = {"token": "18"}


class Asker:
    """A manager, and a client that asks it."""

    def __init__(
        self, url: str, session: aiohttp.ClientSession, headers: Mapping[str, str] | None = None
    ) -> None:
        self.url, self.session, self.headers = url, session, headers

    async def leads(self) -> None:
        await self.until("proven", bool)

    async def until(self, field: str, is_so: Callable[[object], bool]) -> None:
        async def holds() -> bool:
            return is_so((await self.status())[field])

        await patience.until(holds, field)

    async def status(self) -> dict[str, object]:
        status: dict[str, object] = (await self.get("/v1/status"))[1]
        return status

    async def get(self, path: str) -> tuple[int, Any]:
        async with self.session.get(self.url + path, headers=self.headers) as response:
            return response.status, await response.json()

    async def post(self, path: str, **body: object) -> tuple[int, Any]:
        url, headers = self.url + path, self.headers
        async with self.session.post(url, json=body, headers=headers) as response:
            return response.status, await response.json()

    async def node(self, name: str, number: int) -> SocketNode:
        return await connected(self.url, self.session, number, name)


@pytest_asyncio.fixture
async def asker(tmp_path: Path) -> AsyncIterator[Asker]:
    settings = ManagerSettings(port=0, journal=f"sqlite:{tmp_path}/journal")
    async with ManagerService(settings) as service, client_session() as session:
        asker = Asker(service.url, session)
        await asker.leads()
        yield asker


async def formed(asker: Asker) -> list[SocketNode]:
    assert (await asker.post("/v1/clusters", name="chat", placement="2"))[0] == 201
    nodes = [await asker.node(name, number) for number, name in ((1, "a"), (2, "b"))]
    for node in (*nodes, *nodes):
        assert isinstance(await node.ask(), TopologyTold)
    return nodes


async def test_a_cluster_forms_grows_and_says_what_runs(asker: Asker) -> None:
    nodes = await formed(asker)
    third = await asker.node("c", 3)
    await third.ask()
    status, preview = await asker.post("/v1/clusters/chat/add", node="c", dry_run=True)
    assert (status, preview["dry_run"], preview["gains"][0]["node"]) == (200, True, "c")
    assert (await asker.get("/v1/clusters/chat/ring"))[1]["change"] == ""
    status, added = await asker.post("/v1/clusters/chat/add", node="c", **AT_24)
    assert status == 200
    assert added["done"].startswith("c is being added since version")
    status, refused = await asker.post("/v1/clusters/chat/remove", node="a")
    assert status == 409
    assert "one change at a time: c is being added" in refused["error"]
    assert refused["error"].endswith("and is filling, and waits for c: 0 of 0 bytes")
    for _ in range(4):
        for node in (third, *nodes):
            await node.ask()
    _, ring = await asker.get("/v1/clusters/chat/ring")
    assert ring["change"] == ""
    assert {node["name"]: node["standing"] for node in ring["nodes"]} == dict.fromkeys(
        "abc", "member"
    )
    assert nodes[0].topology is not None
    assert nodes[0].topology.version == ring["version"]
    _, listed = await asker.get("/v1/clusters")
    assert [cluster["name"] for cluster in listed["clusters"]] == ["chat"]


@pytest.mark.parametrize("number", [-1, 1 << 63, 10**40])
async def test_a_number_that_no_journal_keeps_is_refused_and_the_manager_lives(
    asker: Asker, number: int
) -> None:
    await formed(asker)
    for path, body in (
        ("/v1/clusters/chat/balance", {"bytes_a_day": number}),
        ("/v1/clusters", {"name": "new", "first_nodes": number}),
    ):
        status, refused = await asker.post(path, **body)
        assert (status, "Expected `int`" in refused["error"]) == (400, True), refused
    _, ring = await asker.get("/v1/clusters/chat/ring")
    assert ring["balance_bytes"] == 0


async def test_while_a_node_is_replaced_moves_are_asked_for_and_the_manager_lives(
    asker: Asker,
) -> None:
    """The one that goes and the one that comes have the same token, and pages ask all the time."""
    nodes = await formed(asker)
    for number, name in ((3, "c"), (4, "d")):
        await (await asker.node(name, number)).ask()
    status, begun = await asker.post("/v1/clusters/chat/replace", node="a", by="c")
    assert (status, begun["changed"]) == (200, True)
    status, found = await asker.get("/v1/clusters/chat/moves")
    assert (status, found["moves"]) == (200, [])
    status, refused = await asker.post("/v1/clusters/chat/add", node="d")
    assert (status, "one change at a time" in refused["error"]) == (409, True)
    for path in ("/v1/clusters/chat/ring", "/v1/clusters/chat/upkeep", "/v1/clusters", "/metrics"):
        async with asker.session.get(asker.url + path) as response:
            assert response.status == 200
    assert isinstance(await nodes[1].ask(), TopologyTold)


async def test_what_is_wrong_is_said_with_a_way_out(asker: Asker) -> None:
    await formed(asker)
    await (await asker.node("c", 3)).ask()
    cases: list[tuple[str, dict[str, object], int, str]] = [
        ("/v1/clusters", {"name": "x", "placement": "many"}, 400, "is not a placement"),
        ("/v1/clusters", {"name": "chat", "placement": "3"}, 409, "with the placement 2"),
        ("/v1/clusters/shop/add", {"node": "c"}, 404, "there is no cluster 'shop'"),
        ("/v1/clusters/chat/add", {"node": "z"}, 404, "no node that waits 'z'"),
        ("/v1/clusters/chat/add", {"node": "a"}, 409, "'a' is a member of 'chat' already"),
        ("/v1/clusters/chat/move", {"node": "c"}, 409, "'c' waits, and is no member of 'chat' yet"),
        ("/v1/clusters/chat/remove", {"node": "z"}, 404, "no member 'z'"),
        ("/v1/clusters/chat/remove", {"node": "a"}, 409, "on 1 nodes"),
        ("/v1/clusters/chat/move", {"node": "a", "token": "xyz"}, 400, "not in hexadecimal"),
        ("/v1/clusters/chat/move", {"node": "a"}, 409, "nodes have not said what they carry"),
        ("/v1/clusters/chat/take-back", {}, 409, "no change of the ring of 'chat' runs"),
        ("/v1/clusters/chat/add", {"nodes": "a"}, 400, "unknown field `nodes`"),
    ]
    for path, body, status, said in cases:
        found, problem = await asker.post(path, **body)
        assert (found, said in problem["error"]) == (status, True), (path, problem)
        assert problem["way_out"]


async def test_a_stranger_is_told_that_there_is_no_such_cluster(asker: Asker) -> None:
    node = await asker.node("a", 1)
    told = await node.ask("shop")
    assert isinstance(told, NodeRefused)
    assert told.reason == "cluster"
    assert "make it: tenure columns create" in told.detail


async def test_a_journal_in_memory_keeps_no_cluster() -> None:
    settings = ManagerSettings(port=0, journal="memory")
    async with ManagerService(settings) as service, client_session() as session:
        asker = Asker(service.url, session)
        await asker.leads()
        status, problem = await asker.post("/v1/clusters", name="chat")
    assert status == 409
    assert "journal is memory" in problem["error"]


async def test_a_cluster_outlives_its_manager(tmp_path: Path) -> None:
    settings = ManagerSettings(port=0, journal=f"sqlite:{tmp_path}/journal")
    for round_ in range(2):
        async with ManagerService(settings) as service, client_session() as session:
            asker = Asker(service.url, session)
            await asker.leads()
            if round_ == 0:
                await formed(asker)
            _, ring = await asker.get("/v1/clusters/chat/ring")
            assert [node["name"] for node in ring["nodes"]] == ["a", "b"]
            assert ring["phase"] == "settled"


@pytest.mark.parametrize(
    ("written", "placement"),
    [
        ("3", Placement("rack_unaware", 3)),
        ("racks=3", Placement("rack_aware", 3)),
        ("west=1, east=2", Placement("datacentre_aware", 3, (("east", 2), ("west", 1)))),
    ],
)
async def test_a_placement_is_written_as_people_write_it(
    written: str, placement: Placement
) -> None:
    assert Placement.read(written) == placement


@pytest.mark.parametrize("written", ["", "0", "10", "racks", "east=2,east=1", "=3", "east=x"])
async def test_what_is_no_placement_is_said(written: str) -> None:
    with pytest.raises(ValueError, match="is not a placement"):
        Placement.read(written)


async def test_a_change_goes_on_under_the_manager_that_takes_over(tmp_path: Path) -> None:
    settings = ManagerSettings(port=0, journal=f"sqlite:{tmp_path}/journal")
    async with (
        client_session() as session,
        ManagerService(settings) as second,
        ManagerService(settings) as first,
    ):
        leader, standby = await _leading(session, first, second)
        nodes = await formed(leader)
        third = await leader.node("c", 3)
        await third.ask()
        assert (await leader.post("/v1/clusters/chat/add", node="c"))[0] == 200
        told = await (await standby.node("a", 1)).standby()
        assert told.leader == leader.url
        leading = first if leader.url == first.url else second
        await leading.stop()
        await standby.leads()
        again = [await standby.node(name, number) for name, number in ABC]
        for node, before in zip(again, (*nodes, third), strict=True):
            node.topology, node.life = before.topology, 2
        for _ in range(4):
            for node in again:
                await node.ask()
        _, ring = await standby.get("/v1/clusters/chat/ring")
        assert ring["change"] == ""
        assert [node["standing"] for node in ring["nodes"]] == ["member"] * 3


ABC = (("a", 1), ("b", 2), ("c", 3))


async def _leading(
    session: aiohttp.ClientSession, *services: ManagerService
) -> tuple[Asker, Asker]:
    """The manager that leads, and the one that stands by."""
    askers = [Asker(service.url, session) for service in services]
    for asker in askers:
        await asker.until("leader", lambda said: said is not None)
    roles = [(await asker.get("/v1/status"))[1]["role"] for asker in askers]
    assert sorted(roles) == ["leading", "standing by"]
    return (askers[0], askers[1]) if roles[0] == "leading" else (askers[1], askers[0])


async def test_one_token_keeps_no_place_from_the_nodes_of_another(tmp_path: Path) -> None:
    tokens = [new_token(role, "") for role in (AccessRole.ADMIN, *[AccessRole.NODE] * 2)]
    for token in tokens:
        TokenFile(tmp_path / "tokens").add(token.entry)
    admin, theirs, ours = ({"Authorization": f"Bearer {each.text}"} for each in tokens)
    settings = ManagerSettings(
        port=0, journal=f"sqlite:{tmp_path}/journal", tokens=tmp_path / "tokens"
    )
    async with ManagerService(settings) as service, client_session() as session:
        asker = Asker(service.url, session, admin)
        await asker.leads()
        created = await asker.post("/v1/clusters", name="chat", placement="1", first_nodes=1)
        assert created[0] == 201
        first = await connected(service.url, session, 1, "a", **ours)
        assert isinstance(await first.ask(), TopologyTold)
        flood = await connected(service.url, session, 2, "s", **theirs)
        answers = []
        for number in range(20, NODES + 20):
            address = f"http://evil:{number}"
            flood.node = replace(flood.node, id=number, name=f"s{number}", address=address)
            answers.append(await flood.ask())
        assert isinstance(answers[-1], NodeRefused)
        assert answers[-1].reason == "full"
        late = await connected(service.url, session, 15, "b", **ours)
        assert isinstance(await late.ask(), TopologyTold)
        ring = (await asker.get("/v1/clusters/chat/ring"))[1]
        assert "b" in [node["name"] for node in ring["nodes"]]
        assert any("no more are allowed" in each for each in ring["doubted"])
        assert (await asker.status())["store_troubles"] == {"chat": ring["doubted"]}
