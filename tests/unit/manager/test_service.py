"""A manager put together: starting, stopping, and what makes it give up."""

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest

from tenure.errors import ClosedError, ConfigurationError, JournalDamaged, JournalWentBack
from tenure.journals import MemoryJournal
from tenure.manager.config import ManagerSettings
from tenure.manager.service import ManagerService
from tenure.protocol.lease.leader.events import CreatePool, ListPools
from tenure.protocol.lease.leader.leader import Leader
from tenure.protocol.lease.leader.receipts import Receipt, sealed
from tenure.protocol.lease.messages import LeaseRequest
from tenure.protocol.lease.records import AnyRecord, PoolCreated, State
from tenure.protocol.log.journal import Mandate
from tenure.wire.lease import encode
from tenure.wire.lease_records import LEASE_RECORDS
from tenure.wire.versions import NEWEST
from tests.unit.manager.serving import Events, serving

pytestmark = pytest.mark.asyncio


def names(directory: Path) -> list[str]:
    return [each.name for each in directory.iterdir()]


async def test_a_stopped_manager_has_resigned_and_let_its_port_go() -> None:
    journal = MemoryJournal(LEASE_RECORDS)
    async with serving(journal) as manager:
        await Events(manager.service.observer).wait_for("leading")
        port = int(manager.service.url.rpartition(":")[2])
    assert (await journal.read_seat()).manager == ""
    async with serving(port=port) as manager:
        assert (await manager.get("/healthz"))[0] == 200


async def test_stopping_twice_or_before_the_start_does_nothing() -> None:
    service = ManagerService(ManagerSettings(port=0, journal="memory"))
    await service.stop()
    with pytest.raises(ClosedError, match="was not started"):
        _ = service.engine
    async with service:
        await service.stop()


async def test_a_journal_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"what somebody wrote over it")
    service = ManagerService(ManagerSettings(port=0, journal=f"sqlite:{path}"))
    with pytest.raises(JournalDamaged):
        await service.start()
    assert path.read_bytes() == b"what somebody wrote over it"
    assert names(tmp_path) == [path.name]


async def test_a_port_in_use_is_found_before_a_journal_is_made(tmp_path: Path) -> None:
    async with serving() as manager:
        port = int(manager.service.url.rpartition(":")[2])
        second = ManagerService(ManagerSettings(port=port, state_dir=tmp_path))
        with pytest.raises(ConfigurationError, match="is in use"):
            await second.start()
    assert names(tmp_path) == []


async def test_pools_from_the_configuration_are_there_and_conflicts_are_told() -> None:
    journal = MemoryJournal(LEASE_RECORDS)
    async with serving(journal, pools=(CreatePool("docs", "ordered", (b"g",)),)) as manager:
        await Events(manager.service.observer).wait_for("pool created")
    other = (CreatePool("docs", "hashed"), CreatePool("rooms", "hashed"))
    async with serving(journal, pools=other) as manager:
        events = Events(manager.service.observer)
        await events.wait_for("pool created")
        _, answer = await manager.get("/v1/pools")
        kinds = [(pool["name"], pool["kind"]) for pool in answer["pools"]]
        assert kinds == [("docs", "ordered"), ("rooms", "hashed")]
        assert manager.counted("pool from the configuration refused") == 1


async def test_a_pool_whose_making_breaks_the_leader_is_made_once_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise each leader would make it again, and none would lead for long."""
    make = Leader._create

    def broken(leader: Leader, record: PoolCreated) -> object:
        if record.pool == "docs":
            raise ValueError("a bug")
        return make(leader, record)

    monkeypatch.setattr(Leader, "_create", broken)
    pools = (CreatePool("docs", "hashed"), CreatePool("rooms", "hashed"))
    async with serving(pools=pools) as manager:
        await Events(manager.service.observer).wait_for("pool created")
        _, answer = await manager.get("/v1/pools")
        assert [pool["name"] for pool in answer["pools"]] == ["rooms"]
        assert manager.counted("pool from the configuration refused") == 1
        assert manager.counted("leading") == 2


async def test_a_journal_that_contradicts_itself_ends_the_manager() -> None:
    class Contradicting(MemoryJournal[AnyRecord, State]):
        async def beat(self, mandate: Mandate, beat: int) -> NoReturn:
            raise JournalDamaged("this disk forgets")

    async with serving(Contradicting(LEASE_RECORDS)) as manager:
        with pytest.raises(JournalDamaged, match="this disk forgets"):
            await manager.service.wait()


async def test_a_journal_that_went_back_ends_the_manager() -> None:
    """A peer has the receipt of a later leader of this very journal, and the next beat holds."""
    async with serving(MemoryJournal(LEASE_RECORDS)) as manager:
        events = Events(manager.service.observer)
        await events.wait_for("leading")
        leader = manager.service.engine._machine.leader
        assert leader is not None
        owner = await manager.connect("/v1/owner")
        journal = leader.context.seal.journal
        receipt = sealed(Receipt(9, 1, 1), journal, leader.context.history.secret)
        await owner.send_bytes(
            encode(
                LeaseRequest(
                    pool="rooms",
                    incarnation=1,
                    owner_nonce=1,
                    manager_nonce=1,
                    sequence=1,
                    journal=journal,
                    leadership=9,
                    held=(),
                    receipt=receipt,
                ),
                NEWEST,
            )
        )
        with pytest.raises(JournalWentBack, match="the journal has gone back"):
            await manager.service.wait()
        assert manager.counted("gave up") == 1


async def test_a_broken_invariant_ends_the_manager_and_not_only_a_connection() -> None:
    async with serving() as manager:
        engine = manager.service.engine
        assert engine._machine.leader is not None
        del engine._machine.leader.context  # whatever a bug does
        asking = asyncio.create_task(engine.ask(ListPools()))
        with pytest.raises(AttributeError):
            await manager.service.wait()
        asking.cancel()
        await asyncio.wait([asking])


async def test_what_is_asked_while_a_manager_stops_is_answered() -> None:
    class Slow(MemoryJournal[AnyRecord, State]):
        def __init__(self) -> None:
            super().__init__(LEASE_RECORDS)
            self.resigning = asyncio.Event()
            self.may_go_on = asyncio.Event()

        async def resign(self, mandate: Mandate) -> None:
            self.resigning.set()
            await self.may_go_on.wait()
            await super().resign(mandate)

    journal = Slow()
    async with serving(journal) as manager:
        await Events(manager.service.observer).wait_for("leading")
        stopping = asyncio.create_task(manager.service.stop())
        await journal.resigning.wait()
        status, problem = await manager.get("/v1/pools")
        assert (status, problem["error"]) == (503, "no manager leads yet")
        assert manager.service.engine.view.role == "stopped"
        journal.may_go_on.set()
        await stopping
        assert (await journal.read_seat()).manager == ""


async def test_a_question_that_nobody_can_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tenure.manager.engine.ANSWER_SECONDS", 0.01)
    monkeypatch.setattr("tenure.manager.engine.RESIGN_SECONDS", 0.01)

    class Silent(MemoryJournal[AnyRecord, State]):
        async def append(self, *_: object) -> NoReturn:
            await asyncio.Event().wait()
            raise AssertionError

    async with serving(Silent(LEASE_RECORDS)) as manager:
        await Events(manager.service.observer).wait_for("leading")
        with pytest.raises(TimeoutError):
            await manager.service.engine.ask(ListPools())
        status, problem = await manager.get("/v1/pools")
        assert (status, problem["way_out"]) == (503, "ask again")
