"""Nodes over loopback: requests through any of them, one away, another cluster, gossip."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from tenure.columns.backends.cluster import STORE_ROLE, ClusterBackend
from tenure.columns.backends.known_nodes import KnownNodes
from tenure.columns.node.node_service import NodeSettings
from tenure.columns.opening import StoreOpening, open_store
from tenure.columns.store import ColumnStore
from tenure.columns.tables import Family, Table, by_name
from tenure.errors import (
    ConfigurationError,
    NotEnoughReplicas,
    SchemaError,
    Unreachable,
    WriteUnknown,
)
from tenure.manager.access.roles import AccessRole
from tenure.manager.access.tokens import TokenFile, new_token
from tenure.protocol.replication.messages import AskTopology, NodeMessage, WriteRow
from tenure.protocol.replication.node_events import Convicted, NodeEvent, NodeTold, TopologyLearned
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version
from tenure.protocol.topology.tables import FamilyRecord, TableRecord
from tenure.transport.credentials import Credentials
from tenure.transport.websocket import WebSocketTransport
from tenure.wire.versions import SUBPROTOCOLS
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.columns.node.managed import managed
from tests.unit.columns.node.ringed import form_ring, running, settings_of
from tests.unit.transport.test_websocket import server

pytestmark = pytest.mark.asyncio
STORE, VIEWER = AccessRole.STORE, AccessRole.VIEWER
MAIL = Table(
    "mail", profile=Family(columns=str), terms=Family(supers=str, columns=int, order="time")
)


def url_of(nodes: Sequence[NodeSettings]) -> str:
    return "columns:" + ",".join(f"http://127.0.0.1:{node.port}" for node in nodes)


def opening(nodes: Sequence[NodeSettings], token: str | None) -> StoreOpening:
    """A store whose program shows a token."""
    urls = [f"http://127.0.0.1:{node.port}" for node in nodes]
    transport = WebSocketTransport(STORE_ROLE, Credentials(token=token))
    return StoreOpening(ColumnStore(ClusterBackend(urls, [MAIL], transport, 2), by_name([MAIL])))


async def test_with_tokens_only_who_shows_one_reads_and_writes_and_only_while_it_counts(
    tmp_path: Path,
) -> None:
    """Nodes show theirs to each other, too."""
    file = tmp_path / "tokens"
    node, store, viewer = (new_token(role) for role in (AccessRole.NODE, STORE, VIEWER))
    for each in (node, store, viewer):
        TokenFile(file).add(each.entry)
    nodes = [msgspec.structs.replace(each, tokens=file) for each in settings_of(tmp_path)]
    form_ring(nodes, MAIL)
    async with running(nodes, Credentials(token=node.text)):
        for wrong in (None, viewer.text, "tenure_0_x"):
            with pytest.raises(Unreachable, match="it wants a token that counts"):
                async with opening(nodes, wrong):
                    pass
        async with opening(nodes, store.text) as found:
            await found.insert(MAIL, "ann", {"profile": {"a": b"b"}})
            assert (await found.get(MAIL, "ann", "profile", "a")).value == b"b"
            TokenFile(file).remove(store.entry.id)
            with pytest.raises(Unreachable, match="token"):
                await read_on(found)


async def read_on(store: ColumnStore) -> None:
    while True:
        await store.get(MAIL, "ann", "profile", "a")


async def test_tokens_of_nodes_and_clients_are_rotated_while_all_goes_on(tmp_path: Path) -> None:
    """Two of each role count at once; nodes read theirs again, and show the new one to each other.

    A write needs two nodes of three, so it waits for those that have not come in again.
    """
    file, shown = tmp_path / "tokens", tmp_path / "shown"
    old, new = ([new_token(role) for role in (AccessRole.NODE, STORE)] for _ in range(2))
    for each in old:
        TokenFile(file).add(each.entry)
    shown.write_text(old[0].text)
    nodes = [msgspec.structs.replace(each, tokens=file) for each in settings_of(tmp_path)]
    form_ring(nodes, MAIL)
    async with (
        running(nodes, Credentials(token_file=shown)),
        opening(nodes, old[1].text) as before,
    ):
        await before.insert(MAIL, "ann", {"profile": {"a": b"1"}})
        for each in new:
            TokenFile(file).add(each.entry)
        async with opening(nodes, new[1].text) as after:
            await after.insert(MAIL, "ann", {"profile": {"a": b"2"}})
            assert (await before.get(MAIL, "ann", "profile", "a")).value == b"2"
            shown.write_text(new[0].text)
            for each in old:
                TokenFile(file).remove(each.entry.id)
            with pytest.raises(Unreachable, match="token"):
                await read_on(before)
            async with asyncio.timeout(DEADLINE_SECONDS):
                for _ in range(3):
                    await until_written(after)
        for wrong in old:
            with pytest.raises(Unreachable, match="it wants a token that counts"):
                async with opening(nodes, wrong.text):
                    pass


async def until_written(store: ColumnStore) -> None:
    """All three nodes take a write; those that are cut off from each other come in again."""

    async def is_written() -> bool:
        with suppress(Unreachable, NotEnoughReplicas, WriteUnknown):
            await store.insert(MAIL, "ann", {"profile": {"a": b"3"}})
            await store.get(MAIL, "ann", "profile", "a", consistency="all")
            return True
        return False

    await until(is_written)


async def test_what_one_node_was_told_another_tells(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    async with running(nodes):
        for number, node in enumerate(nodes):
            async with open_store(url_of([node]), MAIL) as store:
                await store.insert(MAIL, "ann", {"profile": {f"at-{number}": b"here"}})
        async with open_store(url_of(nodes), MAIL) as store:
            page = await store.get(MAIL, "ann", "profile")
            assert [column.name for column in page] == ["at-0", "at-1", "at-2"]
            await store.delete(MAIL, "ann", "profile", "at-1")
            assert await store.get(MAIL, "ann", "profile", "at-1") is None
            await store.insert(MAIL, "ann", {"terms": {"tea": {1: b"x"}}})
            assert (await store.get(MAIL, "ann", "terms", "tea", 1)).value == b"x"
            row = await store.get(MAIL, "ann")
            assert sorted(row.families) == ["profile", "terms"]


async def test_a_quorum_goes_on_without_one_node_and_all_does_not(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    async with running(nodes[:2]) as services, open_store(url_of(nodes), MAIL) as store:
        await store.insert(MAIL, "ann", {"profile": {"name": b"Ann"}})
        assert (await store.get(MAIL, "ann", "profile", "name")).value == b"Ann"
        # With the third convicted nothing is sent that needs all three.
        third = next(n.id for n in services[0].store.topology.nodes if str(nodes[2].port) == n.name)
        for service in services:
            service.store.post(Convicted((third,)))
        with pytest.raises(NotEnoughReplicas):
            await store.insert(MAIL, "ann", {"profile": {"name": b"Ann"}}, consistency="all")


async def test_a_replica_that_answers_late_is_not_the_nearest_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    async with running(nodes) as services:
        context = services[0].store.machine.context
        await until(lambda: len(context.nearest) == 2)
        nearest = context.nearest[0]
        late = next(each.store for each in services if each.directory.identity.node == nearest)
        post, loop = late.post, asyncio.get_running_loop()

        def post_late(event: NodeEvent) -> None:
            if isinstance(event, NodeTold):
                loop.call_later(0.1, post, event)
            else:
                post(event)

        monkeypatch.setattr(late, "post", post_late)
        monkeypatch.setattr(KnownNodes, "replicas", lambda *_: [])  # one node takes all requests
        async with (
            open_store(url_of(nodes[:1]), MAIL) as store,
            asyncio.timeout(DEADLINE_SECONDS),
        ):
            while context.nearest[0] == nearest:
                await store.get(MAIL, "ann", "profile", "name")


async def test_nodes_hear_each_other(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    async with running(nodes) as services:

        def all_heard() -> bool:
            views = [service.gossip.view().nodes for service in services]
            return all(
                len(view) == 2 and all(each.digest.heartbeat and each.state for each in view)
                for view in views
            )

        await until(all_heard)


async def test_a_directory_of_another_cluster_is_refused_by_name(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    other = msgspec.structs.replace(nodes[0], cluster="chat")
    with pytest.raises(ConfigurationError, match="cluster 'mail', not of 'chat'"):
        async with running([other]):
            pass


async def test_a_table_that_was_made_otherwise_is_refused(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes[:1], MAIL)
    other = Table("mail", profile=Family(columns=int))
    unknown = Table("chat", lines=Family(columns=int))
    async with running(nodes[:1]):
        with pytest.raises(SchemaError, match="profile"):
            async with open_store(url_of(nodes[:1]), other):
                pass
        with pytest.raises(SchemaError, match="--manager"):
            async with open_store(url_of(nodes[:1]), unknown):
                pass


async def test_a_manager_forms_the_ring_and_makes_tables(tmp_path: Path) -> None:
    async with managed(tmp_path) as services:
        url = "columns:" + ",".join(service.url for service in services)
        async with open_store(url, MAIL) as store:
            await store.insert(MAIL, "ann", {"profile": {"name": b"Ann"}})
        async with open_store(f"columns:{services[2].url}", MAIL) as store:
            assert (await store.get(MAIL, "ann", "profile", "name")).value == b"Ann"


async def test_nodes_say_what_they_carry_and_what_they_have_compared(tmp_path: Path) -> None:
    async with managed(tmp_path) as services:
        async with open_store(f"columns:{services[0].url}", MAIL) as store:
            for number in range(50):
                await store.insert(MAIL, f"user-{number}", {"profile": {"name": b"x" * 1_000}})
        cluster = f"{services[0].settings.managers[0]}/v1/clusters/mail"
        async with aiohttp.ClientSession() as session:

            async def compared() -> Any:  # noqa: ANN401 - JSON
                async with session.post(f"{cluster}/compare", json={}) as said:
                    assert said.ok
                async with session.get(f"{cluster}/upkeep") as said:
                    upkeep = await said.json()
                async with session.get(f"{cluster}/ring") as said:
                    ring = await said.json()
                is_told = all(each["compared_seconds"] is not None for each in upkeep["ranges"])
                is_whole = is_told and all(each["bytes"] for each in ring["nodes"])
                return is_whole and (upkeep, ring)

            upkeep, ring = await until(compared)
        assert {each["by"] for each in upkeep["seen"]} == {each["name"] for each in ring["nodes"]}
        for node in ring["nodes"]:  # each node has every row
            assert 45_000 < node["bytes"] < 60_000


async def test_a_message_of_another_cluster_is_turned_away_by_name(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    topology = form_ring(nodes[:1], MAIL)
    message = NodeMessage(
        cluster="chat", id=3, sender=4, receiver=5, version=6, body=AskTopology(ticket=7)
    )
    lost: asyncio.Queue[str] = asyncio.Queue()
    transport = WebSocketTransport(STORE_ROLE)
    transport.start(lambda _node, _said: None, lambda _node, why: lost.put_nowait(why))
    try:
        async with running(nodes[:1]) as [service]:
            transport.send(service.url, message)
            assert f"of the cluster 'mail' ({topology.id:x}), and not of 'chat'" in await lost.get()
    finally:
        await transport.close()


async def test_a_store_goes_on_with_another_node_when_its_own_ends(tmp_path: Path) -> None:
    nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL)
    async with running(nodes[:2], waits=False) as services, running(nodes[2:]) as last:
        async with open_store(f"columns:{last[0].url}", MAIL) as store:
            await store.insert(MAIL, "ann", {"profile": {"name": b"Ann"}})
            await last[0].__aexit__()
            assert (await store.get(MAIL, "ann", "profile", "name")).value == b"Ann"
            await store.insert(MAIL, "ann", {"profile": {"name": b"Anna"}})
        assert services[0].has_ring


async def test_a_topology_that_one_node_learns_reaches_the_others_by_gossip(
    tmp_path: Path,
) -> None:
    nodes = settings_of(tmp_path)
    topology = form_ring(nodes, MAIL)
    async with running(nodes) as services:
        newer = msgspec.structs.replace(topology, version=topology.version + 1)
        services[0].store.post(TopologyLearned(newer))
        await until(lambda: all(each.store.topology == newer for each in services))


async def test_a_topology_with_a_table_that_cannot_be_opened_ends_no_node(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No manager of this release has one, but one of a later release may."""
    [settings] = settings_of(tmp_path, 1)
    known = form_ring([settings], MAIL)
    unknown = TableRecord("ordered", "date", "", {"f": FamilyRecord("str")})
    newer = msgspec.structs.replace(
        known, version=known.version + 1, tables={**known.tables, "t": unknown}
    )
    for _ in range(2):  # it starts again, too
        async with running([settings]) as [node], opening([settings], None) as store:
            node.store.post(TopologyLearned(newer))
            await until(lambda: "cannot open" in caplog.text)
            assert node.store.topology == known
            await store.insert(MAIL, "ann", {"profile": {"name": b"Ann"}})
            assert node.directory.topology() == known
        caplog.clear()


async def test_what_a_node_says_to_another_does_not_wait_behind_all_that_is_large(
    tmp_path: Path,
) -> None:
    """One client's large rows and another's small ones go to the same place."""
    sizes: asyncio.Queue[int] = asyncio.Queue()

    async def reading(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse(max_msg_size=0, protocols=SUBPROTOCOLS)
        await answer.prepare(request)
        async for said in answer:
            sizes.put_nowait(len(said.data))
        return answer

    def row(size: int) -> WriteRow:
        edits = (Edit("profile", None, b"n", bytes(size)),)
        attempt = Attempt(Version(0, 1), "merge")
        return WriteRow(request=1, table="mail", key=b"k", edits=edits, attempt=attempt)

    nodes = settings_of(tmp_path, 1)
    form_ring(nodes, MAIL)
    async with running(nodes) as [service], server(reading, STORE_ROLE.path) as other:
        for size in (1 << 20, 1 << 20, 10):
            service.store._transport.send(other, row(size))
        async with asyncio.timeout(DEADLINE_SECONDS):
            found = [await sizes.get() for _ in range(3)]
    assert [each > 1 << 20 for each in found] == [False, True, True]
