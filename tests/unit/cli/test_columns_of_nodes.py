"""`tenure columns` on a cluster of real nodes in this process: its rows are seen and copied."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tenure.cli.app import run
from tenure.columns.opening import open_store
from tenure.columns.owned_rows import OwnedRows
from tenure.columns.tables import Family, Table
from tenure.errors import LeaseLost
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.records import PoolCreated, State
from tenure.protocol.lease.restoration import restored
from tenure.protocol.log.journal import Seat
from tests.unit.columns.node.ringed import form_ring, running, settings_of
from tests.unit.columns.test_owned_rows import lease

pytestmark = pytest.mark.asyncio

MAIL = Table("mail", profile=Family(columns=str), terms=Family(supers=str, columns=int))
ROOMS = Table("rooms", fenced_by="rooms", state=Family(columns=str))


@pytest_asyncio.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    nodes = settings_of(tmp_path)
    form_ring(nodes, MAIL, ROOMS)
    async with running(nodes) as services:
        url = "columns:" + ",".join(service.url for service in services)
        async with open_store(url, MAIL) as store:
            await store.insert(
                MAIL, "ann", {"profile": {"name": b"Ann"}, "terms": {"tea": {7: b""}}}
            )
            await store.insert(MAIL, "bob", {"profile": {"name": b"Bob"}})
        yield url


async def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints. It runs in a thread, beside the loop of the nodes."""
    assert await asyncio.to_thread(run, ["columns", *arguments]) == code
    found = capsys.readouterr()
    return found.out if code == 0 else found.err


async def test_rows_of_a_cluster_are_read_and_written(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_CASSANDRA_DRIVER", "no_such_module:X")  # is not for nodes
    assert "mail\tterms\tsupers=str" in await said(capsys, "inspect", url)
    assert (await said(capsys, "get", url, "mail", "ann", "profile", "name")).startswith(
        "name\tAnn"
    )
    await said(capsys, "insert", url, "mail", "cid", "profile", "name", "Cid")
    await said(capsys, "delete", url, "mail", "bob")
    lines = (await said(capsys, "scan", url, "mail")).splitlines()
    assert {line.split("\t")[0] for line in lines} == {"ann", "cid"}
    assert "no table 'no'" in await said(capsys, "get", url, "no", "k", code=2)


async def test_the_rows_of_a_cluster_are_copied_into_a_directory_and_back(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = await said(capsys, "scan", url, "mail")
    copy = f"rocksdb:{tmp_path / 'copy'}"
    told = await said(capsys, "copy", url, copy, "--table", "mail")
    assert told == "mail: 3 columns copied\n"
    assert await said(capsys, "scan", copy, "mail") == before
    await said(capsys, "copy", copy, url)
    assert await said(capsys, "scan", url, "mail") == before


async def test_rows_of_owners_are_copied_only_by_your_word(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_store(url, ROOMS) as store:
        attic = await OwnedRows(store, ROOMS).load(lease(5), "attic")
        await attic.insert({"state": {"topic": b"tea"}})
    copy, again = f"rocksdb:{tmp_path / 'copy'}", f"rocksdb:{tmp_path / 'again'}"
    assert "stop its owners" in await said(capsys, "copy", url, copy, code=2)
    told = await said(capsys, "copy", url, copy, "--without-fences")
    assert "rooms: 1 columns copied\n" in told
    # In the copy any lease may take the row; behind an owner there, no other copy may go.
    async with open_store(copy, ROOMS) as store:
        attic = await OwnedRows(store, ROOMS).load(lease(1), "attic")
        assert attic.get("state", "topic").value == b"tea"
    refused = await said(capsys, "copy", url, copy, "--without-fences", code=2)
    assert "an owner with the lease number 1 has written" in refused
    await said(capsys, "copy", copy, again, "--without-fences")


async def test_fences_of_a_lost_journal_stay_and_numbers_go_on_above_them(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_store(url, ROOMS) as store:
        former = await OwnedRows(store, ROOMS).load(lease(97, journal=0xA), "attic")
        await former.insert({"state": {"topic": b"tea"}})
        bare = await OwnedRows(store, ROOMS).load(lease(3, "cellar", journal=0xA), "cellar")
        await bare.insert({"state": {"topic": b"wine"}})
        await OwnedRows(store, ROOMS).load(lease(98, "cellar", journal=0xA), "cellar")
        await OwnedRows(store, ROOMS).load(lease(2, "hall", journal=0xB), "hall")  # has no column
        with pytest.raises(LeaseLost, match="columns refence"):
            await OwnedRows(store, ROOMS).load(lease(1, journal=0xB), "attic")
        for _ in range(2):  # asking changes nothing
            table, *advice = (await said(capsys, "refence", url, "rooms")).split("if the managers")
            assert table.splitlines() == [
                "journal\trows\thighest number",
                "000000000000000a\t2\t98",
            ]
            assert "tenure restore --journal URL --above 98\n" in advice[0]
        refused = await said(capsys, "refence", url, "rooms", "--journal", "a", code=2)
        assert f"tenure columns refence {url} rooms" in refused
        assert "has no fence" in await said(capsys, "refence", url, "mail", code=2)

        _, state = restored(_begun_anew(), Seat(1), bytes(32), above=98)
        number = state.pools[0].next_number
        await former.insert({"state": {"topic": b"still"}})  # nobody else has been there
        attic = await OwnedRows(store, ROOMS).load(lease(number, journal=0xB), "attic")
        assert attic.get("state", "topic").value == b"still"
        with pytest.raises(LeaseLost):
            await former.insert({"state": {"topic": b"late"}})
        await attic.insert({"state": {"topic": b"milk"}})
        assert (await store.get(ROOMS, "attic", "state", "topic")).value == b"milk"


def _begun_anew() -> LeaseHistory:
    history = LeaseHistory(State(), 0)
    history.apply(PoolCreated(pool="rooms", kind="hashed"))
    return history


async def test_rows_that_nobody_owned_have_no_fence_and_get_none(
    url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    old = f"rocksdb:{tmp_path / 'old'}"
    async with open_store(old, ROOMS) as store:
        attic = await OwnedRows(store, ROOMS).load(lease(5), "attic")
        await attic.insert({"state": {"topic": b"tea"}})
    await said(capsys, "copy", old, url, "--without-fences")
    for _ in range(2):
        assert (await said(capsys, "refence", url, "rooms")).splitlines() == [
            "journal\trows\thighest number"
        ]
    assert await said(capsys, "refence", url, "rooms", "--json") == "[]\n"
    async with open_store(url, ROOMS) as store:  # the first try of the first owner is still free
        attic = await OwnedRows(store, ROOMS).load(lease(1), "attic")
        await attic.insert({"state": {"topic": b"milk"}})


@pytest.mark.parametrize("command", [["compact"], ["check"], ["backup"]])
async def test_what_nodes_do_on_their_own_needs_no_command(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [str(tmp_path / "new")] if command == ["backup"] else []
    refused = await said(capsys, *command, "columns:http://127.0.0.1:1", *more, code=2)
    assert "tenure columns copy columns:http://127.0.0.1:1 rocksdb:PATH" in refused
