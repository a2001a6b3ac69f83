"""Tables and lookups against dictionaries with an entry for every key.

The naive table has each key's owner, number and `since`. The naive lookup remembers, for each key,
the number under which it last knew it, and asks the naive table what became of it.
"""

from random import Random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tenure.base.instants import Instant, seconds
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.client_events import ManagerSaid
from tenure.protocol.lease.history import LeaseHistory
from tenure.protocol.lease.leader.change_log import ChangeLog
from tenure.protocol.lease.lookup.events import LookupConfig, SignalLoss
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import Changes, Entry, Held, SyncResponse, ToLookup
from tenure.protocol.lease.records import AnyRecord, Changed, Joined, Left, PoolCreated, State
from tenure.protocol.lease.table import FIRST_NUMBER, NOBODY, columns_of
from tenure.protocol.lease.table import Right as TableRight
from tenure.wire.lease_records import LEASE_RECORDS
from tests.properties.spaces import KEYS, keys_in, ranges

OWNERS = 3
FOREVER = seconds(1000)


class Right(NamedTuple):
    owner: int
    number: int
    since: int


class Naive:
    """A right for every key, and the records that made them so."""

    def __init__(self) -> None:
        self.rights = dict.fromkeys(KEYS, Right(NOBODY, FIRST_NUMBER, FIRST_NUMBER))
        self.next_number = FIRST_NUMBER + 1
        self.records: list[AnyRecord] = [PoolCreated(pool="p", kind="ordered")]
        self.changes: list[tuple[Entry, ...]] = [()]
        for i in range(1, OWNERS + 1):
            self.record(
                Joined(pool="p", incarnation=i, name=f"o{i}", nonce=i, address=f"http://{i}"), ()
            )

    def record(self, record: AnyRecord, entries: tuple[Entry, ...]) -> None:
        self.records.append(record)
        self.changes.append(entries)
        for entry in entries:
            right = Right(entry.owner, entry.number, entry.since)
            self.rights |= dict.fromkeys(keys_in(entry.range), right)
            self.next_number = max(self.next_number, entry.number + 1)

    def change(self, change: "Change") -> None:
        """One record, of one or two ranges."""
        entries: list[Entry] = []
        for key_range in change.ranges:
            sinces = [self.rights[key].since for key in keys_in(key_range)]
            # A range that is handed over cleanly keeps the latest `since` of its parts.
            since = max(sinces) if change.clean else self.next_number
            entries.append(
                Entry(
                    start=key_range.start,
                    end=key_range.end,
                    owner=change.owner,
                    number=self.next_number,
                    since=since,
                )
            )
        record = (
            Left(pool="p", incarnation=99, entries=tuple(entries))
            if change.leaving
            else Changed(pool="p", entries=tuple(entries))
        )
        self.record(record, tuple(entries))


class Change(NamedTuple):
    ranges: list[KeyRange]
    owner: int
    clean: bool
    leaving: bool
    """Whether somebody left by it; the entries count the same."""


changes = st.builds(
    Change,
    st.lists(ranges(), min_size=1, max_size=3),
    st.integers(0, OWNERS),
    st.booleans(),
    st.booleans(),
)
stories = st.lists(changes, max_size=12)


def told(story: list[Change]) -> Naive:
    naive = Naive()
    for change in story:
        naive.change(change)
    return naive


# --- tables ---------------------------------------------------------------------------------------


@given(stories)
def test_records_make_the_table_that_they_say(story: list[Change]) -> None:
    naive, history = told(story), LeaseHistory(State(), 0)
    for record in naive.records:
        history.apply(record)
        history.invariants()
    table = history.tables["p"]
    assert {key: Right(*table.rights[key]) for key in KEYS} == naive.rights
    assert (table.next_number, history.lsn) == (naive.next_number, len(naive.records))


@given(stories)
def test_what_an_owner_has_is_listed_as_it_would_list_it(story: list[Change]) -> None:
    naive, history = told(story), LeaseHistory(State(), 0)
    for record in naive.records:
        history.apply(record)
        for i in range(1, OWNERS + 1):  # asked after each record: nothing kept may be stale
            held = history.tables["p"].held_by(i) if history.lsn > OWNERS else ()
    for i in range(1, OWNERS + 1):
        held = history.tables["p"].held_by(i)
        listed = {key: item.number for item in held for key in keys_in(item.range)}
        assert listed == {k: right.number for k, right in naive.rights.items() if right.owner == i}
        assert held == tuple(sorted(held, key=lambda item: item.start))
        assert all(isinstance(item, Held) for item in held)


@given(stories, st.data())
def test_a_leader_that_takes_over_anywhere_comes_to_the_same(
    story: list[Change], data: st.DataObject
) -> None:
    """P21: by records, by a snapshot, or by a snapshot and the records after it, through bytes."""
    naive, whole = told(story), LeaseHistory(State(), 0)
    cut = data.draw(st.integers(0, len(naive.records)))
    snapshot, lsn = whole.state(), 0
    for i, record in enumerate(naive.records):
        if i == cut:
            snapshot, lsn = (
                LEASE_RECORDS.decode_state(LEASE_RECORDS.encode_state(whole.state()), "here"),
                whole.lsn,
            )
        whole.apply(record)
    later = LeaseHistory(snapshot, lsn)
    for record in naive.records[lsn:]:
        later.apply(LEASE_RECORDS.decode_record(LEASE_RECORDS.encode_record(record), "here"))
    later.invariants()
    assert (later.state(), later.lsn) == (whole.state(), whole.lsn)


# --- lookups --------------------------------------------------------------------------------------


class Followed:
    """A lookup machine, a naive one beside it, and the change log of a leader."""

    def __init__(self, naive: Naive) -> None:
        self.naive = naive
        self.log = ChangeLog(begins_after=0)
        self.lsn = 0
        self.machine = LookupMachine(LookupConfig(managers=("a",), pool="p"), Random(1))
        self.machine.advance(Instant(0))
        self.known: dict[bytes, int] = {}
        """The number under which the naive one knows each key; none, before its first table."""
        self.signalled: set[bytes] = set()

    def commit(self) -> None:
        """Put into the log what the naive table has done since."""
        for entries in self.naive.changes[self.lsn :]:
            self.lsn += 1
            if entries:
                self.log.add(self.lsn, Instant(self.lsn), entries)

    def sync(self, at_most: int, *, as_columns: bool = False) -> None:
        machine = self.machine
        machine.search.start(Instant(0))
        machine.advance(Instant(0))
        entries = self.log.since(machine.lsn, at_most) if machine.in_contact else None
        whole = entries is None
        message = SyncResponse(
            sequence=machine.sequence,
            nonce=machine.nonce,
            journal=9,
            leadership=1,
            lsn=self.lsn,
            kind="ordered",
            snapshot=whole,
            entries=() if whole and as_columns else self.table() if whole else entries or (),
            owners=(),
            sync_ns=FOREVER,
            contact_ns=FOREVER,
            columns=columns_of(KEYS, [TableRight(*self.naive.rights[key]) for key in KEYS])
            if whole and as_columns
            else None,
        )
        self._hear(ManagerSaid("a", message), self.lsn)

    def push(self, after: int) -> None:
        """All changes after an LSN, which may begin before what the lookup knows."""
        entries = self.log.since(after, 1 << 30)
        assert entries is not None
        message = Changes(
            pool="p", journal=9, leadership=1, after=after, lsn=self.lsn, entries=entries, owners=()
        )
        follows = after <= self.machine.lsn < self.lsn and self.machine.in_contact
        self._hear(ManagerSaid("a", message), self.lsn if follows else self.machine.lsn)

    def table(self) -> tuple[Entry, ...]:
        bounds = [*KEYS, None]
        return tuple(
            Entry(start=key, end=end, **self.naive.rights[key]._asdict())
            for key, end in zip(KEYS, bounds[1:], strict=True)
        )

    def _hear(self, event: ManagerSaid[ToLookup], lsn: int) -> None:
        lost: set[bytes] = set()
        for action in self.machine.handle(Instant(0), event).actions:
            if isinstance(action, SignalLoss):
                ranges_lost = [key for r in action.ranges for key in keys_in(r)]
                assert len(ranges_lost) == len(set(ranges_lost)), "signalled once"
                lost |= set(ranges_lost)
        self.machine.invariants()
        assert self.machine.lsn == lsn
        if lsn == self.lsn:
            assert lost == self.lost_by_the_book()
            self.known = {key: right.number for key, right in self.naive.rights.items()}
        else:
            assert lost == set()

    def lost_by_the_book(self) -> set[bytes]:
        """P16: keys whose state did not last from the number that it knew."""
        rights = self.naive.rights
        return {key for key, number in self.known.items() if number < rights[key].since}


@given(st.data())
def test_a_lookup_signals_what_was_lost_and_nothing_else(data: st.DataObject) -> None:
    """Whatever it is told in whichever steps: pushes that overlap, changes since, whole tables."""
    naive = Naive()
    followed = Followed(naive)
    for _ in range(8):
        for change in data.draw(st.lists(changes, max_size=3)):
            naive.change(change)
        followed.commit()
        if data.draw(st.booleans()):
            at_most = data.draw(st.sampled_from((0, 2, 1000)))
            followed.sync(at_most, as_columns=data.draw(st.booleans()))
        else:
            followed.push(after=data.draw(st.integers(0, followed.lsn)))
    followed.sync(at_most=1000)
    machine = followed.machine
    assert {k: machine.table[k].number for k in KEYS} == {
        k: right.number for k, right in naive.rights.items()
    }
