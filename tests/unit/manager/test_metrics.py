"""`/metrics`: what Prometheus reads is what happened."""

import asyncio
import math
import sys
from collections.abc import Mapping

import aiohttp
import msgspec
import pytest
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from tenure import (
    Cache,
    CacheServer,
    ConfigurationError,
    Entities,
    KeyedState,
    Lookup,
    MetricsCollector,
    Owner,
    Volume,
)
from tenure.base.instants import Instant, in_seconds
from tenure.cli.service_gate import service_port
from tenure.journals import MemoryJournal
from tenure.manager.engine import ManagerEngine
from tenure.manager.metrics import PushTimes, _of_pools
from tenure.observe.events import Observer
from tenure.observe.metrics import Histogram
from tenure.protocol.lease.answers import Owners, OwnerSummary
from tenure.protocol.lease.leader.manager import ManagerConfig
from tenure.protocol.lease.messages import Changes, Sync
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.lease.timing import DEFAULT
from tenure.protocol.log.journal import Appended, Committed, Mandate, Unknown
from tenure.protocol.topology.messages import NodeReport, NodeScrubbed
from tenure.services.documents.service import Documents
from tenure.services.service import ServiceSettings
from tenure.testing.clock import TurnedClock
from tenure.transport.peers import Peers
from tenure.wire.lease import encode
from tenure.wire.lease_records import LEASE_RECORDS
from tenure.wire.versions import NEWEST
from tests.patience import DEADLINE_SECONDS, until
from tests.unit.entities.stage import Counter
from tests.unit.manager.nodes import connected
from tests.unit.manager.serving import Events, Serving, serving
from tests.unit.manager.test_api import ready
from tests.unit.manager.test_server import grant_everything

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def value(families: Mapping[str, Metric], name: str, /, **labels: str) -> float:
    found = [
        sample.value
        for family in families.values()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert len(found) == 1, (name, labels, found)
    return float(found[0])


async def scraped(manager: Serving, accept: str = "") -> dict[str, Metric]:
    url = manager.service.url + "/metrics"
    async with manager.session.get(url, headers={"Accept": accept}) as response:
        assert response.status == 200
        text = await response.text()
    parse = open_metrics if accept else text_string_to_metric_families
    return {family.name: family for family in parse(text)}


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["x", "1.x", "", "٣", "9" * 5000])
async def test_a_version_that_is_none_is_answered_with_the_usual_format(version: str) -> None:
    async with serving() as manager:
        accept = f"application/openmetrics-text;version={version}"
        async with manager.session.get(
            manager.service.url + "/metrics", headers={"Accept": accept}
        ) as response:
            assert response.status == 200
            assert "tenure_leading 1.0" in await response.text()


@pytest.mark.asyncio
@pytest.mark.parametrize("accept", ["", OPEN_METRICS])
async def test_what_happened_is_shown(accept: str) -> None:
    async with serving() as manager:
        async with (
            Owner(manager.service.url, pool="rooms", address="http://a", name="ann") as owner,
            Lookup(manager.service.url, pool="rooms") as lookup,
        ):
            await owner.ready()
            assert lookup.in_contact
            seen = await scraped(manager, accept)
            assert value(seen, "tenure_leading") == 1
            assert value(seen, "tenure_events_total", event="owner joined") == 1
            assert value(seen, "tenure_messages_received_total", message="Join") >= 1
            assert value(seen, "tenure_owners", pool="rooms") == 1
            assert value(seen, "tenure_owner_share", pool="rooms", owner="ann") == 1
            assert value(seen, "tenure_journal_seconds_count", operation="append") >= 1
            assert value(seen, "tenure_connections") == 2
            assert value(seen, "tenure_lookup_lag_records") >= 0
            assert value(seen, "tenure_pool_imbalance", pool="rooms") == 1
        after = await scraped(manager, accept)
        assert value(after, "tenure_events_total", event="owner left") == 1
        assert value(after, "tenure_owners", pool="rooms") == 0


@pytest.mark.asyncio
async def test_without_the_extra_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tenure.observe.prometheus", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    async with serving() as manager:
        status, problem = await manager.get("/metrics")
        assert status == 501
        assert "pip install 'tenure[metrics]'" in problem["error"]


def test_a_push_is_measured_from_the_commit_of_what_it_tells() -> None:
    clock = [Instant(0)]
    times = PushTimes(lambda: clock[0])
    times.committed(Appended(1, 0, Unknown("no answer")))
    for lsn in (5, 7):
        times.committed(Appended(1, lsn - 1, Committed(lsn)))
    clock[0] = Instant(20_000_000)
    changes = Changes(pool="rooms", journal=1, leadership=1, after=4, lsn=6, entries=(), owners=())
    times.pushed(changes)
    assert (sum(times.histogram.counts), times.histogram.sum) == (1, 0.02)
    times.pushed(changes)  # twice
    assert sum(times.histogram.counts) == 1


def test_a_histogram_counts_what_is_at_or_below_each_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    for each in (0.5, 1.0, 1.5, 3.0, math.inf):
        histogram.observe(each)
    assert histogram.cumulative == [("1.0", 2), ("2.0", 3), ("+Inf", 5)]


@pytest.mark.asyncio
async def test_a_process_shows_its_owner_and_its_lookup() -> None:
    async with serving() as manager:
        owner = Owner(manager.service.url, pool="rooms", address="http://a", name="ann")
        lookup = Lookup(manager.service.url, pool="rooms")
        registry = CollectorRegistry()
        registry.register(MetricsCollector(owner, lookup))

        def seen() -> dict[str, Metric]:
            text = generate_latest(registry).decode()
            return {family.name: family for family in text_string_to_metric_families(text)}

        assert value(seen(), "tenure_client_in_contact", client="lookup") == 0  # not entered
        async with owner, lookup:
            await owner.ready()
            assert value(seen(), "tenure_client_ranges", name="ann") == len(owner.ranges)
            assert value(seen(), "tenure_client_in_contact", pool="rooms") == 1
            joined = value(seen(), "tenure_client_events_total", event="joined")
            assert joined == owner.stats()["joined"] == 1
        assert value(seen(), "tenure_client_ranges", name="ann") == 0


def test_only_what_has_numbers_can_be_watched() -> None:
    with pytest.raises(ConfigurationError, match=r"watches Owners, .* and Services, not 7"):
        MetricsCollector(7)


@pytest.mark.asyncio
async def test_a_process_shows_its_volumes_entities_and_services() -> None:
    volume: Volume[str] = Volume({"a": "x"}.get, durable=True, term=0.5, value_type=str)
    alone: Volume[str] = Volume({"a": "x"}.get, term=0.5, value_type=str)
    server = CacheServer(alone, listen="127.0.0.1:0")
    async with serving() as manager, asyncio.timeout(DEADLINE_SECONDS):
        url = manager.service.url
        owner = Owner(url, pool="rows", address="http://127.0.0.1/a", name="ann", volume=volume)
        counters = Entities(Counter, "counters", url)
        documents = Documents(ServiceSettings(pool="documents", managers=url), watchdog=None)
        registry = CollectorRegistry()
        registry.register(MetricsCollector(owner, counters, documents, server))

        def seen() -> dict[str, Metric]:
            text = generate_latest(registry).decode()
            return {family.name: family for family in text_string_to_metric_families(text)}

        before = await asyncio.to_thread(seen)  # nothing is entered yet
        assert before["tenure_client_volume_readers"].samples == []
        async with (
            owner,
            counters,
            documents.running(service_port),
            server,
            Cache(server.url, value_type=str) as cache,
        ):
            assert await cache.get("a") == "x"
            await counters["x"].add()

            async def all_seen() -> dict[str, Metric]:
                found = await asyncio.to_thread(seen)
                volumes = found["tenure_client_volume_readers"].samples
                entities = found["tenure_client_entity_instances"].samples
                # Documents are read everywhere, so their copies are of a volume, too.
                is_whole = len(volumes) == 3 and len(entities) == 2
                return found if is_whole and any(it.value for it in entities) else {}

            found = await until(all_seen)
            assert value(found, "tenure_client_volume_readers", client="cacheserver") == 1
            assert value(found, "tenure_client_volume_readers", name="ann") == 0
            assert value(found, "tenure_client_entity_instances", kind="Counter") == 1
            assert value(found, "tenure_client_entity_instances", pool="documents") == 0


@pytest.mark.asyncio
async def test_every_tier_that_is_there_is_shown() -> None:
    async with serving() as manager:
        _, made = await manager.post("/v1/clusters", {"name": "mail", "placement": "1"})
        assert made["created"]
        node = await connected(manager.service.url, manager.session, 1)
        scrubbed = NodeScrubbed(entries=500, passes=3, damages=2, mended=1)
        node.report = NodeReport(scrubbed=scrubbed)
        for _ in range(2):
            await node.ask("mail")
        volume: Volume[str] = Volume({}.get, durable=True, term=0.5)
        url = manager.service.url
        async with (
            Owner(url, pool="rows", address="http://127.0.0.1/a", name="a", volume=volume),
            Entities(Counter, "counters", url) as counters,
            asyncio.timeout(DEADLINE_SECONDS),
        ):
            await counters["x"].add()
            seen = await scraped(manager)
            while not (
                seen["tenure_volume_readers"].samples
                and seen["tenure_entity_instances"].samples
                and value(seen, "tenure_entity_instances", kind="Counter")
            ):
                seen = await scraped(manager)
            assert value(seen, "tenure_volume_readers", pool="rows", owner="a") == 0
        assert value(seen, "tenure_node_connected", cluster="mail", node="n1") == 1
        assert value(seen, "tenure_node_convicted_by", node="n1") == 0
        assert value(seen, "tenure_node_damaged", cluster="mail", node="n1") == 0
        for name, expected in msgspec.structs.asdict(scrubbed).items():
            metric = {"entries": "scrubbed_entries", "passes": "scrub_passes"}.get(name, name)
            assert value(seen, f"tenure_node_{metric}", cluster="mail", node="n1") == expected
        assert value(seen, "tenure_ring_changing", cluster="mail") == 0
        assert value(seen, "tenure_ring_doubted", cluster="mail") == 0
        await node.socket.close()


@pytest.mark.asyncio
async def test_a_loss_is_an_increase_of_what_was_shown_before() -> None:
    """An alert on an increase sees nothing of a counter that begins with its first event."""
    async with serving(preset="test") as manager:
        lookup = Lookup(manager.service.url, pool="rooms")
        registry = CollectorRegistry()
        registry.register(MetricsCollector(lookup))

        def lost() -> float:
            text = generate_latest(registry).decode()
            seen = {family.name: family for family in text_string_to_metric_families(text)}
            return value(seen, "tenure_client_events_total", event="ranges lost")

        before = await scraped(manager)
        assert value(before, "tenure_events_total", event="owner expired") == 0
        await grant_everything(manager)  # to an owner that says nothing more
        async with lookup:
            assert await asyncio.to_thread(lost) == 0
            await Events(manager.service.observer).wait_for("owner expired")
            assert value(await scraped(manager), "tenure_events_total", event="owner expired") == 1
            while await asyncio.to_thread(lost) == 0:
                pass


def test_of_each_owner_its_own_numbers_are_shown() -> None:
    def owner(
        name: str, ranges: int, share: float, recalled: int, load: float, capacity: float
    ) -> OwnerSummary:
        return OwnerSummary(
            name=name,
            address="http://a",
            incarnation=1,
            ranges=ranges,
            share=share,
            recalled_ranges=recalled,
            connected=True,
            hold_seconds=13.0,
            capacity=capacity,
            labels={},
            load=load,
        )

    def shown(*owners: OwnerSummary) -> dict[str, list[float | Histogram]]:
        families = _of_pools((Owners("rooms", owners),))
        return {each.name: [it.value for it in each.samples] for each in families}

    assert shown(owner("ann", 7, 0.75, 2, 60.0, 2.0), owner("bob", 5, 0.25, 3, 10.0, 1.0)) == {
        "tenure_owners": [2],
        "tenure_owner_ranges": [7, 5],
        "tenure_owner_share": [0.75, 0.25],
        "tenure_owner_recalled_ranges": [2, 3],
        "tenure_owner_load": [60.0, 10.0],
        "tenure_pool_imbalance": [1.5],  # the most over the mean, by capacity
    }
    assert shown(owner("ann", 1, 1.0, 0, 0.0, 1.0))["tenure_pool_imbalance"] == [1.0]


@pytest.mark.asyncio
async def test_leadership_is_seen_to_go_from_one_manager_to_the_next() -> None:
    async def shown(manager: Serving) -> tuple[float, ...]:
        seen = await scraped(manager)
        names = ("tenure_leading", "tenure_leadership_proven", "tenure_leadership")
        assert bool(seen["tenure_owners"].samples) == value(seen, "tenure_leading")
        return tuple(value(seen, name) for name in names)

    journal = MemoryJournal(LEASE_RECORDS, State(waited_out=True))
    async with serving(journal) as leader:
        await Events(leader.service.observer).wait_for("leading")
        await leader.post("/v1/pools", {"name": "rooms", "kind": "hashed"})
        async with serving(journal) as standby:
            await ready(standby)
            assert (await shown(leader), await shown(standby)) == ((1, 1, 1), (0, 0, 1))
            await leader.service.stop()
            await Events(standby.service.observer).wait_for("leading")
            assert await shown(standby) == (1, 1, 2)


@pytest.mark.asyncio
async def test_how_long_a_leader_still_waits_is_shown() -> None:
    async with serving(first_start=False) as manager:
        seen = await scraped(manager)
        assert 0 < value(seen, "tenure_grants_in_seconds") <= in_seconds(DEFAULT.longest_hold_ns)
    async with serving() as manager:
        assert value(await scraped(manager), "tenure_grants_in_seconds") == 0


@pytest.mark.asyncio
async def test_the_lag_is_that_of_the_lookup_furthest_behind_while_it_is_there() -> None:
    async with serving() as manager:
        events = Events(manager.service.observer)
        for pool in ("rooms", "carts", "more"):
            await manager.post("/v1/pools", {"name": pool, "kind": "hashed"})
        first, second = [await manager.connect("/v1/lookup") for _ in range(2)]

        async def lag_after(
            which: aiohttp.ClientWebSocketResponse, lsn: int, sequence: int
        ) -> tuple[float, float]:
            said = Sync(pool="rooms", nonce=1, sequence=sequence, journal=0, leadership=0, lsn=lsn)
            await which.send_bytes(encode(said, NEWEST))
            await which.receive()
            seen = await scraped(manager)
            lag = value(seen, "tenure_lookup_lag_records")
            return lag, value(seen, "tenure_lsn") - lag

        lag, _ = await lag_after(second, 0, 1)
        assert lag == 0, "it has just come, and is told the whole table"
        lag, lsn = await lag_after(second, 0, 2)
        assert (lag, lsn) == (4, 0), "it has asked again, and still knows nothing"
        assert await lag_after(second, 4, 3) == (0, 4)
        assert await lag_after(first, 1, 1) == (3, 1)
        assert await lag_after(second, 2, 4) == (3, 1)
        assert await lag_after(first, 4, 2) == (2, 2)
        await second.close()
        await events.wait_for("disconnected")
        assert await lag_after(first, 3, 3) == (1, 3)


@pytest.mark.asyncio
async def test_how_long_the_journal_takes_is_measured() -> None:
    clock = TurnedClock()

    class Slow(MemoryJournal[AnyRecord, State]):
        async def beat(self, mandate: Mandate, beat: int) -> bool:
            clock.jump(0.25)
            return await super().beat(mandate, beat)

    engine = ManagerEngine(
        ManagerConfig(url="http://m", timing=DEFAULT, first_start=True),
        Slow(LEASE_RECORDS),
        Observer("tenure.test"),
        Peers(),
        clock=clock,
        timers=clock.alarm,
        plans_beside=False,
    )
    engine.start()
    times = engine.metrics.journal.by_operation
    while "beat" not in times:
        await clock.turn(0.1)
    beats = sum(times["beat"].counts)
    assert (times["beat"].sum, times["append"].sum) == (beats * 0.25, 0)
    await engine.stop()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("state", "moved"), [(True, "handed over"), (False, "recalled")], ids=["state", "no state"]
)
async def test_each_number_of_an_owner_moves_as_its_keys_do(*, state: bool, moved: str) -> None:
    async with serving() as manager:
        url = manager.service.url

        def owner(name: str) -> Owner:
            where, handed = f"http://127.0.0.1/{name}", KeyedState[int]() if state else None
            return Owner(url, pool="rooms", address=where, name=name, hand_off=handed)

        async with owner("ann") as ann, Lookup(url, pool="rooms"):
            await ann.ready()
            seen = await scraped(manager)
            assert value(seen, "tenure_events_total", event="granted") >= 1
            assert value(seen, "tenure_owner_ranges", owner="ann") == 1
            for event in ("recalled", "handed over", "owner expired", "late request"):
                assert value(seen, "tenure_events_total", event=event) == 0, event
            async with owner("bob") as bob:
                await bob.ready()
                after = await scraped(manager)
                given = "ranges handed over" if state else "ranges revoked"
                while not (
                    value(after, "tenure_events_total", event=moved) and ann.stats().get(given)
                ):
                    after = await scraped(manager)
                assert value(after, "tenure_owner_share", owner="bob") > 0
                for name in ("tenure_push_seconds_count", "tenure_lsn"):
                    assert value(after, name) > value(seen, name), name
                renewals = {"message": "LeaseRequest"}
                more = value(after, "tenure_messages_received_total", **renewals)
                assert more > value(seen, "tenure_messages_received_total", **renewals)


@pytest.mark.asyncio
async def test_a_living_leader_of_another_journal_is_a_rival_in_what_is_scraped() -> None:
    async with serving() as first:
        await Events(first.service.observer).wait_for("leading")
        assert value(await scraped(first), "tenure_rivals") == 0
        async with serving(others=(first.service.url,)) as second:
            told = Events(second.service.observer)
            await told.wait_for("another journal has a living leader")
            assert value(await scraped(second), "tenure_rivals") == 1
            status = (await second.get("/v1/status"))[1]  # what the dashboard shows
            assert [each["manager"] for each in status["rivals"]] == [first.service.url]
