"""The tiers in `tenure top`, `status` and `events`: what they say is what the API says."""

import asyncio
import json

import msgspec
import pytest

from tenure import Entities, Owner, Volume
from tenure.cli.app import run
from tenure.cli.tiers import StoreTier, tiers_of, words_of_pool, words_of_store
from tenure.protocol.lease.answers import OwnerSummary
from tenure.protocol.lease.reports import EntityReport, TierReport, VolumeReport, WaitingWrite
from tenure.protocol.topology.answers import (
    HintsHeld,
    NodeSummary,
    PeerSeen,
    RangeSummary,
    RangeUpkept,
    RingRead,
    UpkeepRead,
)
from tenure.protocol.topology.messages import HintsFor, NodeReport, NodeSeen
from tests.integration.owner import WireOwner
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.entities.stage import Counter
from tests.unit.manager.nodes import SocketNode, connected
from tests.unit.manager.serving import Events, Serving, serving

Capture = pytest.CaptureFixture[str]
IDLE = VolumeReport(readers=2, leases=5, unacknowledged=0, writes=0, loads=0)
WRITE = WaitingWrite(keys="row-7", seconds=2.5, readers=("10.0.0.1:99",), missing=3)
BUSY = msgspec.structs.replace(IDLE, unacknowledged=3, writes=1, waiting=(WRITE,))
TURN = EntityReport(
    kind="Room",
    instances=7,
    turns=1,
    waiting=2,
    alarms=3,
    longest="say of 'attic'",
    longest_seconds=12.0,
    kept_in="columns",
    sockets=36,
)


async def said(capsys: Capture, *words: str, code: int = 0) -> str:
    assert await asyncio.to_thread(run, list(words)) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


async def formed(manager: Serving) -> list[SocketNode]:
    _, made = await manager.post("/v1/clusters", {"name": "mail", "placement": "2"})
    assert made["created"]
    nodes = [await connected(manager.service.url, manager.session, each) for each in (1, 2)]
    for node in (*nodes, *nodes):
        await node.ask("mail")
    return nodes


@pytest.mark.asyncio
async def test_top_and_status_say_of_each_tier_what_the_api_says(capsys: Capture) -> None:
    volume: Volume[str] = Volume({}.get, durable=True, term=0.5)
    async with serving() as manager, asyncio.timeout(DEADLINE_SECONDS):
        url = manager.service.url
        nodes = await formed(manager)
        nodes[0].report = NodeReport(
            seen=(NodeSeen(node=2, phi=9.0, is_convicted=True),),
            hints=(HintsFor(node=2, count=41, bytes=900),),
        )
        await nodes[0].ask("mail")
        async with (
            Owner(url, pool="rows", address="http://127.0.0.1/a", name="a", volume=volume),
            Entities(Counter, "counters", url) as counters,
        ):
            await counters["x"].add()

            async def is_reported() -> bool:
                _, rows = await manager.get("/v1/pools/rows/owners")
                _, counting = await manager.get("/v1/pools/counters/owners")
                told = rows["owners"][0]["volume"], counting["owners"][0]["entities"]
                return all(told) and told[1]["instances"] == 1

            await until(is_reported)
            of_rows = await said(capsys, "top", "rows", "--once", "-m", url)
            assert "caches: 1 volume, 0 readers with 0 object leases" in of_rows
            assert "store mail: 2 nodes, 2 connected" in of_rows
            assert "n2 is considered down by 1 node" in of_rows
            assert "n1 keeps 41 writes for n2" in of_rows
            of_counters = await said(capsys, "top", "counters", "--once", "-m", url)
            assert "entities (Counter): 1 instance on 1 owner" in of_counters
            seen = json.loads(await said(capsys, "top", "rows", "--once", "--json", "-m", url))
            ring = (await manager.get("/v1/clusters/mail/ring"))[1]
            assert [each["id"] for each in seen["stores"][0]["ring"]["nodes"]] == [
                each["id"] for each in ring["nodes"]
            ]
            assert seen["tiers"]["caches"]["volumes"] == 1
            whole = json.loads(await said(capsys, "status", "--json", "-m", url))
            assert [each["name"] for each in whole["pools"]] == ["counters", "rows"]
            assert whole["tiers"][0]["entities"]["instances"] == 1
            assert whole["stores"][0]["upkeep"]["hints"][0]["count"] == 41
            lines = (await said(capsys, "status", "-m", url)).splitlines()
            assert "store mail\tn2 is considered down by 1 node" in lines
            assert any(line.startswith("pool rows\tcaches: 1 volume,") for line in lines)
            refused = await said(capsys, "top", "--once", "-m", url, code=2)
            assert "there are 2 pools: name one of counters, rows" in refused
        for node in nodes:
            await node.socket.close()


@pytest.mark.asyncio
async def test_without_a_pool_top_shows_the_store_alone(capsys: Capture) -> None:
    async with serving() as manager:
        nodes = await formed(manager)
        text = await said(capsys, "top", "--once", "-m", manager.service.url)
        assert text.startswith("no pool yet")
        assert "store mail: 2 nodes, 2 connected" in text
        assert "[mail] ring formed: n1, n2" in text
        for node in nodes:
            await node.socket.close()


@pytest.mark.asyncio
async def test_what_begins_and_ends_in_a_tier_is_an_event_once(capsys: Capture) -> None:
    async with serving() as manager:
        url, honest = manager.service.url, WireOwner()
        nodes, events = await formed(manager), Events(manager.service.observer)
        convicts = (NodeSeen(node=2, phi=9.0, is_convicted=True),)
        for seen in (convicts, convicts, ()):
            nodes[0].report = NodeReport(seen=seen)
            await nodes[0].ask("mail")
        async with honest.connected(url):
            await honest.own_everything()
            for volume, entities in ((IDLE, None), (BUSY, TURN), (BUSY, TURN), (IDLE, None)):
                await honest.renew(TierReport(volume=volume, entities=entities))
            await events.wait_for("no write waits for caches any more")
        told = json.loads(
            f"[{','.join((await said(capsys, 'events', '--json', '-m', url)).splitlines())}]"
        )
        of_tiers = [(each["pool"], each["kind"], each["detail"]) for each in told]
        busy = f"{honest.name}: row-7 waits for 10.0.0.1:99"
        wanted = [
            ("mail", "node taken to be down", "n2"),
            ("mail", "node is up again", "n2"),
            ("rooms", "write waits for caches", busy),
            ("rooms", "turn of an entity takes long", f"{honest.name}: say of 'attic'"),
            ("rooms", "no write waits for caches any more", busy),
        ]
        assert [each for each in of_tiers if each in wanted] == wanted
        for node in nodes:
            await node.socket.close()


def owner(name: str, **of_tiers: object) -> OwnerSummary:
    of_lease = {"name": name, "address": "http://a", "incarnation": 1, "ranges": 1, "share": 1.0}
    rest = {"recalled_ranges": 0, "connected": True, "hold_seconds": 9.0, "capacity": 1.0}
    return OwnerSummary(**{**of_lease, **rest, "labels": {}, **of_tiers})  # type: ignore[arg-type]


def test_a_pool_is_summed_up_and_the_longest_waits_come_first() -> None:
    longer = msgspec.structs.replace(WRITE, keys="row-8", seconds=9.0, readers=(), missing=0)
    other = msgspec.structs.replace(IDLE, writes=1, waiting=(longer,))
    found = tiers_of("rows", [owner("a", volume=BUSY), owner("b", volume=other, entities=TURN)])
    assert list(words_of_pool(found)) == [
        (
            "caches: 2 volumes, 4 readers with 10 object leases, 3 invalidations not acknowledged, "
            "2 writes and 0 loads under way"
        ),
        "  write of row-8 at b has waited 9.0 s for its time: an earlier reader may still hit",
        "  write of row-7 at a has waited 2.5 s for 10.0.0.1:99 and 2 more",
        (
            "entities (Room): 7 instances on 1 owner, 1 turn running, 2 calls waiting, "
            "3 alarms set, 36 sockets open, kept in columns"
        ),
        "  longest turn: say of 'attic', for 12.0 s, at b",
    ]
    assert list(words_of_pool(tiers_of("rows", [owner("a")]))) == []


def test_of_the_store_everything_is_said_that_runs_or_is_not_well() -> None:
    def node(name: str, **other: object) -> NodeSummary:
        common = {"id": name, "address": "http://a", "gossip": "", "rack": "r", "datacentre": "d"}
        more = {"token": "0", "standing": "member", "ranges": 1, "load": 1.0, "bytes": 1}
        said = {"name": name, **common, **more, "connected": True, **other}
        return NodeSummary(**said)  # type: ignore[arg-type]

    ring = RingRead(
        cluster="mail",
        id="1",
        version=4,
        placement="3",
        phase="joint",
        nodes=(
            node("a"),
            node("b", connected=False),
            node("c", standing="joining", copied=30, to_copy=120),
        ),
        ranges=(RangeSummary(start="", end=None, replicas=("a", "b")),),
        tables=(),
        removed=(),
        short_racks={},
        unevenness=1.5,
        change="c is being added",
        waits_for=("c",),
        trouble="a node has a later topology",
        doubted=("somebody speaks for the node 7",),
    )
    upkept = RangeUpkept(
        start="",
        end=None,
        by="a",
        compared_seconds=30,
        sealed_seconds=7200,
        differing=2,
        held_back_by=("b",),
    )
    upkeep = UpkeepRead(
        cluster="mail",
        ranges=(upkept,),
        hints=(HintsHeld(at="a", target="b", count=5, bytes=10),),
        hints_dropped=7,
        seen=(PeerSeen(by="a", node="b", phi=9.0, is_convicted=True),),
    )
    assert list(words_of_store(StoreTier(ring=ring, upkeep=upkeep))) == [
        (
            "store mail: 3 nodes, 2 connected, 1 range, replicas 3, "
            "the heaviest node carries 1.50 of the mean"
        ),
        "  a node has a later topology",
        "  somebody speaks for the node 7",
        "  change: c is being added, waits for c",
        "  c has copied 25% of what it gains",
        "  b is not connected to the managers and considered down by 1 node",
        "  c is joining",
        "  a keeps 5 writes for b",
        "  7 hints were too many and not kept: comparing brings them",
        "  repair: 1 of 1 range compared within 30 s; 2 rows differed",
        "  seals: 1 of 1 range, the oldest 2.0 h ago",
        "  nothing is sealed without b",
    ]
