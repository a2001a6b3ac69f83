"""The lookup machine: a copy of the lease table, kept up to date, and the losses since (Centrifuge
2.2).

It asks the manager every few seconds what changed since its LSN, and takes the changes pushed in
between. It compares its former knowledge with the news, and so finds what was lost: every range
that it knew under a number below the present `since` (P16). The paper's flag on the last change
would miss losses when a lookup was away for long; this comparison misses none.

Contact counts from when it sent the last sync that was answered (P17). Past its bound, the lookup
cannot know what was lost, so everything counts as lost, and it routes nothing until it is answered
again.
"""

from collections.abc import Iterable
from random import Random
from typing import assert_never

import msgspec

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, Instant, in_seconds
from tenure.base.keys import Key, PoolKind
from tenure.base.machine import Output
from tenure.base.noted import Noted
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import WHOLE, KeyRange, in_words
from tenure.base.standing import KeyStanding
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid, ManagersNamed, TellManager
from tenure.protocol.lease.lookup.entries import is_whole, said_last
from tenure.protocol.lease.lookup.events import (
    AnyRoutingTable,
    ColumnTable,
    LookupAction,
    LookupConfig,
    LookupEvent,
    LookupView,
    Route,
    RoutingTable,
    SignalLoss,
)
from tenure.protocol.lease.lookup.known import NEVER_KNOWN, Known, doubted, told_by
from tenure.protocol.lease.lookup.noted import LookupKind
from tenure.protocol.lease.messages import (
    Changes,
    Entry,
    OwnerInfo,
    Standby,
    Sync,
    SyncRefusal,
    SyncResponse,
    ToLookup,
)
from tenure.protocol.lease.other_leaders import (
    AROUND,
    OtherLeaders,
    is_of_realm,
    two_leaders,
    wrong_realm,
)
from tenure.protocol.lease.rivalry import Rival
from tenure.protocol.lease.search import LONGEST_PAUSE_NS, Patience, Search
from tenure.protocol.lease.table import entries_of
from tenure.protocol.lease.table_columns import TableColumns
from tenure.protocol.lease.timing import PAPER

NONCE_LIMIT = 1 << 63
FIRST_SYNC_NS = 1_000 * MILLISECOND_NS
"""The time between syncs until a manager tells another."""
SHORTEST_SYNC_NS = 100 * MILLISECOND_NS
"""The shortest time between syncs, whatever a manager says."""
LONGEST_HOLD_NS = PAPER.hold_ns
"""The longest hold, if no manager tells how long it waits for an owner that is gone."""
ANSWERS_A_SYNC = 4
"""How often a sync is repeated, with a new number, before all managers are asked."""
FEW_OWNERS = 64
"""The number of owners up to which none is worth forgetting."""
NO_JOURNAL = 0


class LookupMachine:
    def __init__(self, config: LookupConfig, random: Random) -> None:
        self.config = config
        self.random = random
        self.search = Search(random)
        self.nonce = random.randrange(1, NONCE_LIMIT)
        self.manager: str | None = None
        self.journal = 0
        self.leadership = 0
        self.lsn = 0
        self.kind: PoolKind | None = None
        self._table: RangeMap[Known] = RangeMap(NEVER_KNOWN)
        self._columns: TableColumns | None = None
        """The first table, until it is asked about single ranges."""
        self.owners: dict[int, OwnerInfo] = {}
        self._most_owners = FEW_OWNERS
        self.in_contact = False
        self.sync_ns = FIRST_SYNC_NS
        self.contact_ns = 2 * FIRST_SYNC_NS
        self.contact_until = Instant(0)
        self.hold_ns = LONGEST_HOLD_NS
        self._receipt = b""
        """The receipt of the last answer or push, for the next leader (P22)."""
        self.sequence = 0
        self._sent_at: Instant | None = None
        """When the sync under way was sent."""
        self._unanswered_since: Instant | None = None
        self._patience = Patience()
        self._sync_at = FAR_FUTURE
        self.others = OtherLeaders()
        self._met_by = 0
        """The sync whose answer told of the journal."""
        self._alone = 0
        """How many syncs went to the leader alone since all managers were asked."""
        self._actions: list[LookupAction] = []
        self.search.start(Instant(0))

    # --- the machine ---

    def handle(self, now: Instant, event: LookupEvent) -> Output[LookupAction]:
        """Do what is due at `now`, then take `event`."""
        self._advance(now)
        match event:
            case ManagerSaid(manager=manager, message=message):
                self._on_message(now, manager, message)
            case ManagerLost(manager=manager):
                if manager == self.manager:
                    self._look_for_leader(now)
            case ManagersNamed(managers=managers):
                self.config = msgspec.structs.replace(self.config, managers=managers)
            case _:
                assert_never(event)
        return self._output(now)

    def advance(self, now: Instant) -> Output[LookupAction]:
        """Do what is due at `now`."""
        self._advance(now)
        return self._output(now)

    def _advance(self, now: Instant) -> None:
        if self.in_contact and now >= self.contact_until:
            self._lose_contact()
            self.search.start(now)
        if now >= self._sync_at and self.manager is not None and not self.search.is_on:
            self._sync_or_search(now)
        if now >= self.search.at:
            self._ask_all(now)

    def _output(self, now: Instant) -> Output[LookupAction]:
        is_searching = self.search.is_on or self.manager is None
        wake_at = self.search.at if is_searching else self._sync_at
        if self.in_contact:
            wake_at = min(wake_at, self.contact_until)
        actions, self._actions = self._actions, []
        return Output(actions, max(wake_at, now))

    def view(self) -> LookupView:
        """The lookup, as the shell that runs it may see it."""
        return LookupView(
            journal=self.journal,
            leadership=self.leadership,
            lsn=self.lsn,
            in_contact=self.in_contact,
            is_searching=self.search.is_on,
            hold_ns=self.hold_ns,
        )

    # --- asking ---

    def _sync_or_search(self, now: Instant) -> None:
        silent_since = self._unanswered_since
        if silent_since is not None and now - silent_since >= self.sync_ns // 2:
            self.search.start(now)
        else:
            assert self.manager is not None
            self._alone += 1
            looks = bool(self.others) or self._alone >= AROUND
            self._sync(now, self.config.managers if looks else (self.manager,))

    def _sync(self, now: Instant, managers: Iterable[str]) -> None:
        self.sequence += 1
        self._sent_at = now
        if self._unanswered_since is None:
            self._unanswered_since = now
        wait_ns = self._patience.asked(now, self.sync_ns // ANSWERS_A_SYNC, self.sync_ns)
        self._sync_at = Instant(now + wait_ns)
        message = Sync(
            pool=self.config.pool,
            sequence=self.sequence,
            journal=self.journal,
            leadership=self.leadership,
            lsn=self.lsn,
            nonce=self.nonce,
            receipt=self._receipt,
            reads_columns=self.config.reads_columns,
            proves=True,
            rival=self.others.rival,
        )
        for manager in managers:
            told = self._without_itself(manager, message) if self.others else message
            self._actions.append(TellManager(manager, told))

    def _without_itself(self, manager: str, message: Sync) -> Sync:
        """Tell the leader of another journal of ours."""
        rival = message.rival
        if rival is None or rival.manager != manager or self.manager is None:
            return message
        ours = Rival(manager=self.manager, journal=self.journal)
        return msgspec.structs.replace(message, rival=ours)

    def _ask_all(self, now: Instant) -> None:
        self._alone = 0
        self._sync(now, self.config.managers)
        # A slow search must not cost contact; once contact is lost, a hasty one would hear nothing.
        longest_ns = self.sync_ns // 2 if self.in_contact else LONGEST_PAUSE_NS
        self.search.asked(now, longest_ns, self._patience.needed_ns)

    def _look_for_leader(self, now: Instant) -> None:
        self.search.start(now)
        if now >= self.search.at:
            self._ask_all(now)

    # --- answers ---

    def _on_message(self, now: Instant, manager: str, message: ToLookup) -> None:
        match message:
            case SyncResponse():
                self._on_response(now, manager, message)
            case Changes():
                self._on_changes(now, manager, message)
            case SyncRefusal():
                is_newest = (message.nonce, message.sequence) == (self.nonce, self.sequence)
                if is_newest and (manager == self.manager or not self.in_contact):
                    self._note(LookupKind.REFUSED_NO_POOL, f"is refused: {message.detail}")
                    if self.in_contact and self._sent_at is not None:
                        self._find_nothing("the pool is gone")
            case Standby():
                if manager == self.manager:
                    self._look_for_leader(now)

    def _on_response(self, now: Instant, manager: str, message: SyncResponse) -> None:
        """Take the answer to the newest sync; go back neither in leadership nor in LSN (P15)."""
        if (message.nonce, message.sequence) != (self.nonce, self.sequence):
            self._note(LookupKind.OLD_ANSWER)
            return
        if not is_of_realm(message.realm, self.config.realm):
            why_not = wrong_realm(message.realm, self.config.realm)
            self._note(LookupKind.WRONG_REALM, f"does not follow {manager}: {why_not}")
            return
        if self._is_rival(manager, message):
            rival = Rival(manager=manager, journal=message.journal)
            self.others.hear(now, rival, granted=True)
            return
        if self._is_beside_ours(manager, message):
            self._note(LookupKind.ANOTHER_LEADER, f"does not follow {manager}")
            return
        if self._sent_at is None or not self._is_forward(message):
            self._note(LookupKind.GOING_BACK)
            return
        if now >= self._sent_at + message.contact_ns:
            self._note(LookupKind.LATE_ANSWER)
            return
        was_another = self.journal not in (message.journal, 0)
        has_returned = not self.in_contact
        if message.journal != self.journal:
            self._meet_journal(message)
        self._answered(now, manager, message)
        if message.snapshot:
            self.owners = {}
        # A lookup that lost contact published a table that finds nothing, so on return all of it is
        # new.
        self._take(message, snapshot=message.snapshot, is_all_new=message.snapshot or has_returned)
        if was_another:  # once `find` knows the new places, as with any other loss
            self._table = doubted(self.table)
            self._signal_loss([WHOLE], "another journal")

    def _is_rival(self, manager: str, message: SyncResponse) -> bool:
        """Whether another leads another journal, while our leader answers (P25)."""
        differs = self.manager != manager and message.journal not in (self.journal, NO_JOURNAL)
        is_later = message.sequence > self._met_by  # it did not end before ours began
        return differs and is_later and self.in_contact and not self.search.is_on

    def _is_beside_ours(self, manager: str, message: SyncResponse) -> bool:
        """Whether another says that it leads our journal, while our leader has not been silent. If
        it is true, ours says so, or is silent (P19).
        """
        is_other = self.manager != manager and message.journal == self.journal
        return is_other and self.in_contact and not self.search.is_on

    def _is_forward(self, message: SyncResponse) -> bool:
        if message.journal == NO_JOURNAL:
            return False
        if message.journal != self.journal:  # changes since an LSN of another journal mean nothing
            return message.snapshot
        return message.leadership >= self.leadership and message.lsn >= self.lsn

    def _answered(self, now: Instant, manager: str, message: SyncResponse) -> None:
        assert self._sent_at is not None
        for rival in self.others.answered(self._sent_at) if manager == self.manager else ():
            self._note(LookupKind.TWO_LEADERS, two_leaders(manager, self.journal, rival))
        self.others.advance(now)
        self.manager = manager
        self.kind = message.kind
        self.sync_ns = max(message.sync_ns, SHORTEST_SYNC_NS)
        self.contact_ns = message.contact_ns
        self.hold_ns = message.hold_ns or LONGEST_HOLD_NS
        self.contact_until = Instant(self._sent_at + self.contact_ns)
        self._sync_at = max(Instant(self._sent_at + self.sync_ns), now)
        self._patience.answered(now - self._sent_at)
        self._sent_at = None
        self._unanswered_since = None
        self.search.found()
        if not self.in_contact:
            self._note(LookupKind.IN_CONTACT, f"is in contact with {manager}")
        self.in_contact = True

    def _meet_journal(self, message: SyncResponse) -> None:
        """Meet another history: nothing known under the old one can be compared with it (P22)."""
        self.journal = message.journal
        self.others.forget_all()
        self._met_by = message.sequence
        self.leadership = 0
        self.lsn = 0
        self.owners = {}
        self._columns = None
        self._table = RangeMap(NEVER_KNOWN)

    def _on_changes(self, now: Instant, manager: str, message: Changes) -> None:
        """Take what is pushed if it follows on what is known; otherwise ask for the changes
        between.
        """
        if manager != self.manager or message.pool != self.config.pool or not self.in_contact:
            return
        if message.journal != self.journal or message.leadership != self.leadership:
            return
        if message.after > self.lsn:
            self._note(LookupKind.GAP)
            if self._sent_at is None:
                self._sync(now, (manager,))
        elif message.lsn > self.lsn:
            self._take(message, snapshot=False, is_all_new=False)

    # --- the table ---

    @property
    def table(self) -> RangeMap[Known]:
        """The knowledge of each range."""
        columns = self._columns
        if columns is not None:
            of = map(Known, columns.all_owners(), columns.all_numbers(), columns.all_sinces())
            self._table, self._columns = RangeMap.at_starts(columns.all_starts(), [*of]), None
        return self._table

    def _take(self, message: SyncResponse | Changes, *, snapshot: bool, is_all_new: bool) -> None:
        self.leadership, self.lsn = message.leadership, message.lsn
        self._receipt = message.receipt
        for owner in message.owners:
            self.owners[owner.incarnation] = owner
        columns = message.columns if isinstance(message, SyncResponse) else None
        entries = message.entries
        if columns is not None:
            if not self._has_known:
                self._take_columns(message, columns)
                return
            entries = entries_of(columns)
        if snapshot and not self._has_known and is_whole(entries):
            self._take_first(message)
            return
        lost: list[KeyRange] = []
        changed: list[KeyRange] = []
        for key_range, entry in said_last(entries, overlapping=not snapshot):
            for piece, known in told_by(key_range, entry, self.table):
                if not self.table.has(piece, known):  # most of a snapshot is known already
                    lost.extend(self.lost_by(piece, entry))
                    self.table.assign(piece, known)
                    changed.append(piece)
        self._forget_owners()
        if changed or is_all_new:
            self._route((WHOLE,) if is_all_new else tuple(changed))
        if lost:
            self._signal_loss(lost, "lost")
        if changed:
            detail = f"learns that {in_words(len(changed))} changed, and {len(lost)} were lost"
            self._actions.append(Noted(LookupKind.CHANGED, self.config.pool, detail, message.cause))

    @property
    def _has_known(self) -> bool:
        if self._columns is not None:
            return True
        return len(self._table) > 1 or self._table[WHOLE.start] != NEVER_KNOWN

    def _take_columns(self, message: SyncResponse | Changes, columns: TableColumns) -> None:
        """Take a whole table as `_take_first` does, in columns that are read when they are asked
        for.
        """
        self._columns = columns
        self._most_owners = 2 * len(self.owners) + FEW_OWNERS
        self._route((WHOLE,))
        self._note_first(message, columns.ranges)

    def _take_first(self, message: SyncResponse | Changes) -> None:
        """Take the first table: there is nothing to compare it with, and nothing can be lost."""
        entries = message.entries
        known = [Known(entry.owner, entry.number, entry.since) for entry in entries]
        self._table = RangeMap.at_starts([entry.start for entry in entries], known)
        self._forget_owners()
        self._route((WHOLE,))
        self._note_first(message, len(entries))

    def _note_first(self, message: SyncResponse | Changes, ranges: int) -> None:
        detail = f"learns of {in_words(ranges)}"
        self._actions.append(Noted(LookupKind.CHANGED, self.config.pool, detail, message.cause))

    def _forget_owners(self) -> None:
        """Drop owners that no longer have anything, once they may be half of all owners."""
        if len(self.owners) > self._most_owners:
            present = {known.owner for known in self.table.values()}
            self.owners = {i: owner for i, owner in self.owners.items() if i in present}
            self._most_owners = 2 * len(self.owners) + FEW_OWNERS

    def lost_by(self, key_range: KeyRange, entry: Entry) -> list[KeyRange]:
        """The ranges that were known under a number below `since`: their state is gone (P16)."""
        return [piece for piece, known in self.table.within(key_range) if known.is_lost_by(entry)]

    def _lose_contact(self) -> None:
        """Signal the loss of everything, since it may be lost. The numbers are kept, to be compared
        on return (P17).
        """
        bound = in_seconds(self.contact_ns)
        self._note(
            LookupKind.OUT_OF_CONTACT,
            f"is out of contact: no manager has answered for {bound:g} s. Until one does it finds "
            "nothing, and everything counts as lost",
        )
        self._find_nothing("out of contact")

    def _find_nothing(self, why: str) -> None:
        self.in_contact = False
        self._route((WHOLE,))
        self._signal_loss([WHOLE], why)

    def _signal_loss(self, ranges: list[KeyRange], why: str) -> None:
        self._actions.append(SignalLoss(tuple(ranges), why))

    def _route(self, changed: tuple[KeyRange, ...]) -> None:
        assert self.kind is not None
        table: AnyRoutingTable
        if not self.in_contact:
            table = RoutingTable((WHOLE.start,), (None,), self.kind, in_contact=False)
        elif self._columns is not None:
            table = ColumnTable(self._columns, self.owners, self.kind)
        else:
            addresses = {incarnation: owner.address for incarnation, owner in self.owners.items()}
            places = tuple(addresses.get(known.owner) for known in self.table.values())
            starts, caches = tuple(self.table.starts()), self._caches()
            table = RoutingTable(starts, places, self.kind, in_contact=True, caches=caches)
        self._actions.append(Route(changed, table))

    def _caches(self) -> tuple[str | None, ...]:
        taken = {number: owner.cache for number, owner in self.owners.items() if owner.cache}
        if not taken:
            return ()
        return tuple(taken.get(known.owner) for known in self.table.values())

    def find(self, key: Key) -> OwnerInfo | None:
        """The owner of `key`, as far as known; what is published says the same of every key."""
        return self.owners.get(self.table[key].owner) if self.in_contact else None

    def standing(self, key: Key) -> KeyStanding | None:
        """The standing of `key`, to be compared later; None while out of contact."""
        if not self.in_contact:
            return None
        known = self.table[key]
        return KeyStanding(self.journal, known.number, known.since)

    def _note(self, kind: LookupKind, detail: str = "") -> None:
        self._actions.append(Noted(kind, self.config.pool, detail))

    def invariants(self) -> None:
        """A lookup in contact has a manager and a journal."""
        assert not self.in_contact or (self.manager and self.journal)
