"""The lease table of one pool: who has which range, under which number, and since when unbroken.

The table changes only by applying records, so that a standby that reads the journal, a restarted
manager and the leader itself come to the same table by the same code. Deciding is elsewhere
(`pool`); here is only what is so.

Every range has a right, even if nobody has the range: the record that freed it raised its number
and `since`, so that its loss is told at once, not when it finds its next owner (rule P16).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from tenure.base.keys import Key, PoolKind
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.protocol.lease.limits import GONE_NAMES_PER_POOL
from tenure.protocol.lease.messages import Entry, Held, Join
from tenure.protocol.lease.records import (
    UNSTEERED,
    Changed,
    Joined,
    Left,
    MemberRecord,
    PoolCreated,
    PoolState,
)
from tenure.protocol.lease.table_columns import TableColumns, packed, packed_starts

NOBODY = 0
FIRST_NUMBER = 1
NOT_HANDED = 0
NOT_RENUMBERED = 0


class Counters(NamedTuple):
    """The lowest possible numbers of the next lease and the next incarnation of a pool."""

    number: int = FIRST_NUMBER
    incarnation: int = 1


BEGINNING = Counters()


class Right(NamedTuple):
    """The table's words about a range."""

    owner: int
    """The incarnation that has it; NOBODY where it is free."""
    number: int
    since: int
    """The number from which the state of the range is unbroken."""


def owners_of(rights: RangeMap[Right]) -> RangeMap[int]:
    """The owner of each range."""
    return RangeMap.at_starts(rights.starts(), [right.owner for right in rights.values()])


CHANGED_AT_MOST = 4096
"""Ranges of one owner that are remembered as changed, until somebody asks what it has."""


class LeaseTable:
    """One pool: its rights, its members, and every number that must never come again."""

    def __init__(self, created: PoolCreated, first: Counters = BEGINNING) -> None:
        """`first` is above all that pools of this name ever had: numbers never restart."""
        self.pool: str = created.pool
        self.kind: PoolKind = created.kind
        self.split_points: tuple[Key, ...] = created.split_points
        self.rights = RangeMap(Right(NOBODY, first.number, first.number))
        self.handed: RangeMap[int] = RangeMap(NOT_HANDED)
        """The number under which the state of a range was served last that was granted with it. It
        names the one copy that belongs to the grant (P13).
        """
        self.former: RangeMap[int] = RangeMap(NOT_RENUMBERED)
        """The number of a range before it was renumbered while it was held. Its owner may not have
        been told, and goes on listing that number (P11).
        """
        self.steering = UNSTEERED
        self.members: dict[int, MemberRecord] = {}
        self.characters = 0
        """The characters of all members' names and addresses."""
        self.numbered: dict[str, tuple[int, int]] = {}
        """The last incarnation and nonce of every name that is remembered."""
        self._gone: dict[str, int] = {}
        """Those of them whose owners are gone, the first that went first."""
        self.next_number: int = first.number + 1
        self.next_incarnation: int = first.incarnation
        self.is_deleted = False
        self.reads_ns = 0
        """The longest volume lease that any owner, past or present, may have given (V13)."""
        self.laid_lsn = 0
        """The LSN of the last record that may have laid entries: anybody who knows the table after
        it, of the same journal, knows the table as it is.
        """
        self._held: dict[int, tuple[Held, ...]] = {}
        self._changed: dict[int, list[KeyRange]] = {}
        """The ranges that were had by, or given to, owners whose list is out of date."""
        self._entries: tuple[Entry, ...] | None = None
        self._columns: TableColumns | None = None

    # --- applying records ---

    def apply(self, record: Joined | Left | Changed) -> None:
        """Make `record` so."""
        match record:
            case Changed(entries=entries, handed=handed, steering=steering, deleted=deleted):
                self._lay(entries, handed, renumbers=record.renumbers)
                self.is_deleted = deleted
                self.steering = self.steering if steering is None else steering
            case Joined():
                self._join(record)
            case Left(incarnation=incarnation, entries=entries):
                member = self.members.pop(incarnation, None)
                self.characters -= characters_of(member) if member else 0
                self._lay(entries, NOT_HANDED)
                self._held.pop(incarnation, None)
                self._changed.pop(incarnation, None)
                self._forget_eviction(incarnation)
                if member is not None:
                    self._remember_gone(member)

    def _forget_eviction(self, incarnation: int) -> None:
        evicted = self.steering.evicted
        if incarnation in evicted:
            rest = tuple(each for each in evicted if each != incarnation)
            self.steering = msgspec.structs.replace(self.steering, evicted=rest)

    def _remember_gone(self, member: MemberRecord) -> None:
        """Remember the name of an owner that is gone, and not too many (see `Sessions`)."""
        if self.numbered.get(member.name, (NOBODY, 0))[0] == member.incarnation:
            self._gone[member.name] = member.incarnation
            if len(self._gone) > GONE_NAMES_PER_POOL:
                self.forget(*next(iter(self._gone.items())))

    def _join(self, record: Joined) -> None:
        self.is_deleted = False
        self.members[record.incarnation] = MemberRecord(
            incarnation=record.incarnation,
            name=record.name,
            nonce=record.nonce,
            address=record.address,
            capacity=record.capacity,
            labels=record.labels,
            process=record.process,
            hand_off=record.hand_off,
            reads_ns=record.reads_ns,
            cache=record.cache,
        )
        self._held[record.incarnation] = ()
        self.reads_ns = max(self.reads_ns, record.reads_ns)
        self.characters += characters_of(self.members[record.incarnation])
        self.numbered[record.name] = (record.incarnation, record.nonce)
        self._gone.pop(record.name, None)
        self.next_incarnation = max(self.next_incarnation, record.incarnation + 1)

    def _lay(self, entries: Iterable[Entry], handed: int, *, renumbers: bool = False) -> None:
        self._entries = self._columns = None
        for entry in entries:
            for piece, right in list(self.rights.within(entry.range)):
                self._change(right.owner)
                self.former.assign(piece, right.number if renumbers else NOT_RENUMBERED)
            self._change(entry.owner, entry.range)
            self.rights.assign(entry.range, Right(entry.owner, entry.number, entry.since))
            self.handed.assign(entry.range, handed)
            self.next_number = max(self.next_number, entry.number + 1)

    def _change(self, owner: int, given: KeyRange | None = None) -> None:
        known = self._held.pop(owner, None)
        if known is not None:
            self._changed[owner] = [each.range for each in known]
        changed = self._changed.get(owner)
        if changed is None or given is None:
            return
        changed.append(given)
        if len(changed) > CHANGED_AT_MOST:  # nobody asks for it: no leader is here
            del self._changed[owner]

    # --- forgetting ---

    def forget_the_gone(self) -> None:
        """Forget the names of all that are gone, because another leader takes over: joins that
        were made before do not have its nonce, so none of them is ever numbered (P2, P9).
        """
        for name in self._gone:
            del self.numbered[name]
        self._gone.clear()

    def forget(self, name: str, incarnation: int) -> None:
        """Forget a name, unless it is another incarnation's by now."""
        if self.numbered.get(name, (NOBODY, 0))[0] == incarnation not in self.members:
            del self.numbered[name]
            del self._gone[name]

    # --- reading ---

    def held_by(self, incarnation: int) -> tuple[Held, ...]:
        """The ranges that the table gives `incarnation`, in order, as its owner would list them."""
        if incarnation not in self._held:
            changed = self._changed.pop(incarnation, None)
            if changed is None:
                self._list_held(incarnation)
            else:
                self._held[incarnation] = self._held_in(incarnation, changed)
        return self._held[incarnation]

    def _held_in(self, incarnation: int, ranges: Iterable[KeyRange]) -> tuple[Held, ...]:
        """All that it has, none of which lies outside of these. Otherwise each of two thousand
        owners that are granted something would cost a walk through the whole table.
        """
        found: dict[Key, Held] = {}
        for each in ranges:
            for piece, right in self.rights.within(each):
                if right.owner == incarnation:
                    whole = self.rights.range_at(piece.start)
                    found[whole.start] = Held(start=whole.start, end=whole.end, number=right.number)
        return tuple(found[start] for start in sorted(found))

    def _list_held(self, incarnation: int) -> None:
        """List what is held, in one go for all whose list is not known: after a takeover that is
        every owner.
        """
        found: dict[int, list[Held]] = {incarnation: []}
        for key_range, right in self.rights:
            if right.owner != NOBODY and right.owner not in self._held:
                held = Held(start=key_range.start, end=key_range.end, number=right.number)
                found.setdefault(right.owner, []).append(held)
        self._held.update((owner, tuple(held)) for owner, held in found.items())

    def not_listed(self, incarnation: int, held: tuple[Held, ...]) -> list[KeyRange]:
        """The ranges that `incarnation` has and `held` does not name, by range and number. A range
        that was renumbered is named by the number before, until its owner has heard of that (P11).
        """
        listed = RangeMap.of(((item.range, item.number) for item in held), 0)
        return [
            part
            for item in self.held_by(incarnation)
            for piece, number in listed.within(item.range)
            if number != item.number
            for part, former in self.former.within(piece)
            if former == NOT_RENUMBERED or number != former
        ]

    def goes_by(self, key: Key) -> tuple[int, ...]:
        """The numbers under which its owner may list the range that the key is in."""
        former = self.former[key]
        number = self.rights[key].number
        return (number,) if former == NOT_RENUMBERED else (number, former)

    def entries(self) -> tuple[Entry, ...]:
        """The whole table."""
        if self._entries is None:
            self._entries = tuple(entry_of(key_range, right) for key_range, right in self.rights)
        return self._entries

    def columns(self) -> TableColumns:
        """The same, as columns."""
        if self._columns is None:
            self._columns = columns_of(self.rights.starts(), self.rights.values())
        return self._columns

    def owners(self) -> RangeMap[int]:
        """The owner of each range."""
        return owners_of(self.rights)

    def within(self, key_range: KeyRange) -> Iterator[tuple[KeyRange, Right]]:
        """The rights in `key_range`, cut at its ends."""
        return self.rights.within(key_range)

    # --- snapshots ---

    def state(self) -> PoolState:
        """All of this that a later leader must know (rule P21)."""
        return PoolState(
            pool=self.pool,
            kind=self.kind,
            split_points=self.split_points,
            next_number=self.next_number,
            next_incarnation=self.next_incarnation,
            entries=self.entries(),
            members=tuple(self.members[incarnation] for incarnation in sorted(self.members)),
            numbered=tuple((name, *self.numbered[name]) for name in sorted(self.numbered)),
            handed=tuple(
                Held(start=key_range.start, end=key_range.end, number=number)
                for key_range, number in self.handed
                if number != NOT_HANDED
            ),
            steering=self.steering,
            deleted=self.is_deleted,
            former=tuple(
                Held(start=key_range.start, end=key_range.end, number=number)
                for key_range, number in self.former
                if number != NOT_RENUMBERED
            ),
            reads_ns=self.reads_ns,
        )

    @classmethod
    def from_state(cls, state: PoolState) -> "LeaseTable":
        """The table that `state` was taken of."""
        table = cls(PoolCreated(pool=state.pool, kind=state.kind, split_points=state.split_points))
        table.rights = RangeMap.at_starts(
            [entry.start for entry in state.entries],
            [Right(entry.owner, entry.number, entry.since) for entry in state.entries],
        )
        table.handed = RangeMap.of(((item.range, item.number) for item in state.handed), NOT_HANDED)
        former = ((item.range, item.number) for item in state.former)
        table.former = RangeMap.of(former, NOT_RENUMBERED)
        table.members = {member.incarnation: member for member in state.members}
        table.characters = sum(map(characters_of, state.members))
        table.numbered = {name: (number, nonce) for name, number, nonce in state.numbered}
        gone = sorted((number, name) for name, number, _ in state.numbered)
        table._gone = {name: number for number, name in gone if number not in table.members}
        table.next_number = state.next_number
        table.next_incarnation = state.next_incarnation
        table.steering = state.steering
        table.is_deleted = state.deleted
        table.reads_ns = state.reads_ns
        return table

    def invariants(self) -> None:
        """Numbers below the next, `since` at most the number, owners that are members."""
        for key_range, right in self.rights:
            assert right.since <= right.number < self.next_number, (key_range, right)
            assert right.owner == NOBODY or right.owner in self.members, (key_range, right)
        for incarnation, member in self.members.items():
            assert incarnation < self.next_incarnation, member
            assert self.numbered[member.name] == (incarnation, member.nonce), member
        gone = {name for name, (number, _) in self.numbered.items() if number not in self.members}
        assert self._gone.keys() == gone, self._gone.keys() ^ gone
        assert not (self.is_deleted and self.members), self.members
        assert set(self.steering.evicted) <= self.members.keys(), self.steering


def characters_of(member: MemberRecord | Join) -> int:
    """How many characters an owner has chosen: all are journaled, and lookups are told most."""
    labels = sum(len(label) + len(value) for label, value in member.labels.items())
    urls = len(member.address) + len(member.hand_off or "") + len(member.cache or "")
    return len(member.name) + urls + labels


def entry_of(key_range: KeyRange, right: Right) -> Entry:
    """The entry that says `right` of `key_range`."""
    return Entry(
        start=key_range.start,
        end=key_range.end,
        owner=right.owner,
        number=right.number,
        since=right.since,
    )


def columns_of(starts: Sequence[Key], rights: Sequence[Right]) -> TableColumns:
    """The table from each start on, as columns."""
    after_first, lengths = packed_starts(starts[1:])
    return TableColumns(
        ranges=len(starts),
        starts=after_first,
        lengths=lengths,
        owners=packed([right.owner for right in rights]),
        numbers=packed([right.number for right in rights]),
        sinces=packed([right.since for right in rights]),
    )


def entries_of(columns: TableColumns) -> tuple[Entry, ...]:
    """The entries that columns tell."""
    starts = columns.all_starts()
    said = (columns.all_owners(), columns.all_numbers(), columns.all_sinces())
    return tuple(
        Entry(start=start, end=end, owner=owner, number=number, since=since)
        for start, end, owner, number, since in zip(starts, [*starts[1:], None], *said, strict=True)
    )
