"""A journal is not a journal of leases: another protocol's records go through all three."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tenure.errors import JournalTooNew, LocalProtocolError
from tenure.journals import Journal, Tail, WholeLog, open_journal, perform
from tenure.protocol.log.follower import Follower
from tenure.protocol.log.journal import (
    Append,
    Appended,
    Committed,
    Followed,
    Loaded,
    LogAction,
    Mandate,
    Seat,
)
from tenure.wire.journal_codec import JournalCodec
from tests.contracts.test_etcd_journal import etcd, fresh_url
from tests.integration.etcd.servers import Cluster

__all__ = ["etcd"]


class Painted(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A wall has this colour from here on."""

    wall: str
    colour: str


class Demolished(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A wall is gone."""

    wall: str


Change = Painted | Demolished
House = dict[str, str]
"""The colour of every wall."""


def check_change(change: Change) -> None:
    if not change.wall:
        raise ValueError("a wall without a name")


def check_house(house: House) -> None:
    if "" in house:
        raise ValueError("a wall without a name")


def codec(format_version: int = 1) -> JournalCodec[Change, House]:
    changes: msgspec.msgpack.Decoder[Change] = msgspec.msgpack.Decoder(Change)
    return JournalCodec(
        newest=format_version,
        format_of=lambda _: format_version,
        records=changes,
        states=msgspec.msgpack.Decoder(House),
        empty={},
        check_record=check_change,
        check_state=check_house,
    )


class Houses:
    """The state to which changes lead: a `History` of `protocol.log`."""

    def __init__(self, house: House, lsn: int) -> None:
        self.house, self.lsn = dict(house), lsn

    def apply(self, record: Change) -> None:
        self.lsn += 1
        match record:
            case Painted(wall=wall, colour=colour):
                self.house[wall] = colour
            case Demolished(wall=wall):
                self.house.pop(wall, None)

    def invariants(self) -> None:
        check_house(self.house)


@pytest.fixture(params=["memory", "sqlite", "etcd"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "etcd":
        running: Cluster = request.getfixturevalue("etcd")
        return fresh_url(running)
    return "memory" if request.param == "memory" else f"sqlite:{tmp_path}/journal.sqlite"


@pytest_asyncio.fixture
async def journal(url: str) -> AsyncIterator[Journal[Change, House]]:
    opened = open_journal(url, codec())
    yield opened
    await opened.close()


CHANGES: tuple[Change, ...] = (Painted("north", "red"), Painted("south", "blue"))


async def lead(journal: Journal[Change, House]) -> Mandate:
    mandate = await journal.campaign(Seat(), Seat(1, 0, "http://a", 1))
    assert mandate is not None
    return mandate


@pytest.mark.asyncio
async def test_its_records_and_snapshots_come_back(journal: Journal[Change, House]) -> None:
    begun = await journal.load()
    assert begun == WholeLog(begun.journal, {}, 0, ())
    leadership = await lead(journal)
    assert await journal.append(leadership, 0, CHANGES) == Committed(2)
    assert await journal.load_after(begun.journal, 1) == Tail(1, CHANGES[1:])
    assert await journal.compact(leadership, 1, {"north": "red"})
    more: LogAction[Change, House] = Append(leadership, 2, (Demolished("north"),))
    assert await perform(journal, more) == Appended(1, 2, Committed(3))
    records = (*CHANGES[1:], Demolished("north"))
    assert await journal.load() == WholeLog(begun.journal, {"north": "red"}, 1, records)


@pytest.mark.asyncio
async def test_a_standby_of_it_follows(journal: Journal[Change, House]) -> None:
    leadership = await lead(journal)
    follower: Follower[Change, House, Houses] = Follower(Houses)
    for lsn in range(4):
        await journal.append(leadership, lsn, (Painted("north", f"colour {lsn}"),))
        await journal.compact(leadership, lsn, {"north": f"colour {lsn - 1}"})
        [look] = follower.look()
        told = await perform(journal, look)
        assert isinstance(told, Loaded | Followed)
        assert follower.on_read(told)
        assert follower.history is not None
        assert follower.history.house == {"north": f"colour {lsn}"}


@pytest.mark.asyncio
async def test_what_its_codec_refuses_is_not_written(tmp_path: Path, etcd: Cluster) -> None:
    """This concerns journals that keep records as bytes."""
    for url in (f"sqlite:{tmp_path}/journal.sqlite", fresh_url(etcd)):
        journal = open_journal(url, codec())
        leadership = await lead(journal)
        with pytest.raises(LocalProtocolError, match="a wall without a name"):
            await journal.append(leadership, 0, (Painted("", "red"),))
        assert await journal.append(leadership, 0, CHANGES) == Committed(2)
        await journal.close()


@pytest.mark.asyncio
async def test_a_later_format_of_it_is_told_apart(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/journal.sqlite"
    await open_journal(url, codec(format_version=2)).close()
    with pytest.raises(JournalTooNew, match="is of format 2, and this tenure reads up to 1"):
        open_journal(url, codec())
