"""Managers that are closed, killed, or race each other."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.errors import ClosedError
from tenure.journals import SqliteJournal
from tenure.protocol.lease.records import Left
from tenure.wire.lease_records import LEASE_RECORDS
from tests.unit.journals.sqlite.disk import opened


def test_a_closed_journal_says_so(path: Path) -> None:
    async def use_after_close() -> None:
        journal = SqliteJournal.open(path, LEASE_RECORDS)
        await journal.close()
        await journal.close()
        await journal.read_seat()

    with pytest.raises(ClosedError):
        asyncio.run(use_after_close())


WRITER = """
import sys
from pathlib import Path
from tenure.journals.sqlite.store import SqliteStore
from tenure.wire.lease_records import LEASE_RECORDS
from tenure.protocol.log.journal import Committed, Seat
from tenure.protocol.lease.records import Left, State

store = SqliteStore(Path(sys.argv[1]), LEASE_RECORDS)
seat = store.read_seat()
leadership = seat.leadership + 1
mandate = store.campaign(seat, Seat(leadership, 0, "http://writer"))
lsn = store.load().lsn
while True:
    batch = tuple(Left(pool="rooms", incarnation=lsn + i, entries=()) for i in range(lsn % 5 + 1))
    assert store.append(mandate, lsn, batch) == Committed(lsn + len(batch))
    lsn += len(batch)
    print(lsn, flush=True)
    store.beat(mandate, lsn)
    if lsn % 7 == 0:
        store.compact(mandate, lsn - 3, State(leadership=lsn - 3))
"""


@pytest.mark.parametrize("lines", [1, 2, 25, 120])
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "journal.sqlite"
    acknowledged = 0
    for leadership in (1, 2):  # the second begins with what the first left behind
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        with writer:
            said = [writer.stdout.readline() for _ in range(lines)]
            writer.kill()
            said += writer.stdout.readlines()
        acknowledged = max(int(line) for line in said if line.endswith("\n"))
        with opened(path) as store:
            found = store.load()
            assert store.read_seat().leadership == leadership
        # The last append may have been committed, and its answer cut off.
        assert acknowledged <= found.lsn <= acknowledged + 5
        assert found.state.leadership == found.state_lsn
        expected = range(found.state_lsn, found.lsn)
        assert [record.incarnation for record in found.records if isinstance(record, Left)] == [
            *expected
        ]


RACER = """
import sys
from pathlib import Path
from tenure.journals.sqlite.store import SqliteStore
from tenure.wire.lease_records import LEASE_RECORDS
from tenure.protocol.log.journal import Seat

print("ready", flush=True)
sys.stdin.readline()
store = SqliteStore(Path(sys.argv[1]), LEASE_RECORDS)
for _ in range(20):
    seat = store.read_seat()
    if store.campaign(seat, Seat(seat.leadership + 1, 0, "http://racer")):
        print(store.load().journal, seat.leadership + 1)
store.close()
"""


def test_processes_that_start_at_once_make_one_journal_and_share_its_leaderships(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.sqlite"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    said = [line.split() for racer in racers for line in racer.communicate()[0].splitlines()]
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    with opened(path) as store:
        last, identity = store.read_seat().leadership, store.load().journal
    assert {journal for journal, _ in said} == {str(identity)}
    assert sorted(int(leadership) for _, leadership in said) == list(range(1, last + 1))
    assert last >= 20
